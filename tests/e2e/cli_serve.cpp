// The server as its users have it: started from the command line, driven by an independent client,
// stopped by a signal.

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <regex>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/missing.h"
#include "support/run_program.h"
#include "support/sanitizers.h"
#include "support/temporary_directory.h"

namespace octet::test {
namespace {

const std::string kClients = OCTET_SOURCE_DIR "/tests/differential";
const std::string kKey = "a-key-for-tests";

/// A server on a free port of this machine, with the shipped pair on one thread.
class RunningServer {
 public:
  enum class Keyed : uint8_t { kYes, kNo };
  explicit RunningServer(const std::vector<std::string>& more = {}, Keyed keyed = Keyed::kYes)
      : log_(directory_.file("log")) {
    std::vector<std::string> arguments = {
        "serve",
        "-m",
        kPairTarget,
        "-md",
        kPairDrafter,
        "-t",
        "1",
        "-c",
        "2048",
        "--port",
        "0",
        "--drain",
        "60"};
    if (keyed == Keyed::kYes) {
      arguments.insert(arguments.end(), {"--api-key", kKey});
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    process_ = fork();
    if (process_ == 0) {
      const int out = open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(out, STDOUT_FILENO);
      dup2(out, STDERR_FILENO);
      become_octet(arguments);
    }
  }

  ~RunningServer() {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
  }

  /// The address that it says it has; empty when it does not come up.
  std::string address() const {
    for (int i = 0; i < 600; ++i) {
      const std::string log = read_text(log_);
      const size_t begin = log.find("http");
      if (begin != std::string::npos && log.find('\n', begin) != std::string::npos) {
        return log.substr(begin, log.find_first_of(" \n", begin) - begin);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ADD_FAILURE() << read_text(log_);
    return {};
  }

  /// Its exit code after a signal (0: none); -1 when it does not end.
  int stop(int signal) {
    kill(process_, signal);
    for (int i = 0; i < 400; ++i) {
      int status = 0;
      if (waitpid(process_, &status, WNOHANG) == process_) {
        process_ = 0;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return -1;
  }

  std::string log() const { return read_text(log_); }
  pid_t process() const { return process_; }

 private:
  TemporaryDirectory directory_;
  std::string log_;
  pid_t process_ = 0;
};

/// Runs a client of tests/differential; its report, or why there is none.
struct ClientReport {
  int exit_code = -1;
  std::string text;
};

/// `trusted`: a certificate to trust, or nothing.
ClientReport run_client(
    const std::string& script,
    const std::string& address,
    const std::string& more = {},
    const std::string& trusted = {}
) {
  const TemporaryDirectory directory;
  const std::string command = fmt::format(
      "cd {} && NODE_EXTRA_CA_CERTS={} node {} {} {} {} >{} 2>&1",
      shell_quoted(kClients),
      shell_quoted(trusted),
      script,
      shell_quoted(address),
      kKey,
      more,
      shell_quoted(directory.file("out"))
  );
  const int status =
      std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe): tests have one thread
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(directory.file("out"))};
}

bool has_node() {
  return std::system("node --version >/dev/null 2>&1") == 0;  // NOLINT(concurrency-mt-unsafe)
}

TEST(Serve, IndependentClientsFindWhatTheyExpect) {
  for (const char* package : {"openai", "@anthropic-ai/sdk", "ajv"}) {
    if (!has_node() || !std::filesystem::exists(kClients + "/node_modules/" + package)) {
      OCTET_NEEDS("node, or " << package << " in " << kClients);
    }
  }
  RunningServer server;
  const std::string address = server.address();
  ASSERT_FALSE(address.empty());
  for (const char* client :
       {"serve_conformance.mjs",
        "serve_responses.mjs",
        "serve_messages.mjs",
        "serve_speech.mjs",
        "serve_schemas.mjs"}) {
    const ClientReport report = run_client(client, address);
    EXPECT_EQ(report.exit_code, 0) << client << ":\n" << report.text;
  }
  EXPECT_EQ(server.stop(SIGTERM), 0) << server.log();
  EXPECT_EQ(server.log().find("Finland"), std::string::npos) << "prompts do not belong in logs";
}

TEST(Serve, HasNoneOfTheFaultsReportedElsewhere) {
  if (!has_node()) {
    OCTET_NEEDS("node");
  }
  RunningServer server;
  const std::string address = server.address();
  ASSERT_FALSE(address.empty());
  const ClientReport report = run_client("serve_faults.mjs", address);
  EXPECT_EQ(report.exit_code, 0) << report.text;
  EXPECT_EQ(server.stop(SIGTERM), 0) << server.log();
}

TEST(Serve, WithstandsARoughCrowd) {
  if (!has_node()) {
    OCTET_NEEDS("node");
  }
  RunningServer server({"--parallel", "4", "--queue", "8", "--cache-limit", "64"});
  const std::string address = server.address();
  ASSERT_FALSE(address.empty());
  // What is resident is judged where freed memory is not kept aside.
  const ClientReport report = run_client(
      "serve_load.mjs", address, kKeepsShadowMemory ? "" : std::to_string(server.process())
  );
  EXPECT_EQ(report.exit_code, 0) << report.text;
  EXPECT_EQ(server.stop(SIGTERM), 0) << server.log();
}

TEST(Serve, GoesDownGentlyThenAtOnce) {
  if (!has_node()) {
    OCTET_NEEDS("node");
  }
  for (const char* mode : {"drain", "hard"}) {
    // At the slowest kernels a reply of the small pair lasts long enough to be looked at.
    RunningServer server({"--isa", "portable"});
    const std::string address = server.address();
    ASSERT_FALSE(address.empty());
    const std::string more = fmt::format("{} {}", mode, server.process());
    const ClientReport report = run_client("serve_states.mjs", address, more);
    EXPECT_EQ(report.exit_code, 0) << report.text;
    EXPECT_EQ(server.stop(0), 0) << server.log();  // the client has signalled
  }
}

/// A server under `flags` in a state that serve_states.mjs looks at. `more`: for the client.
void check_state(
    const std::string& mode,
    const std::vector<std::string>& flags,
    const std::string& more = {},
    RunningServer::Keyed keyed = RunningServer::Keyed::kYes
) {
  if (!has_node()) {
    OCTET_NEEDS("node");
  }
  RunningServer server(flags, keyed);
  const std::string address = server.address();
  ASSERT_FALSE(address.empty());
  const ClientReport report = run_client(
      "serve_states.mjs", address, fmt::format("{} {} {}", mode, server.process(), more)
  );
  EXPECT_EQ(report.exit_code, 0) << report.text;
  EXPECT_EQ(server.stop(SIGTERM), 0) << server.log();
}

TEST(Serve, SaysWhyItDoesNotDraft) {
  check_state("plain", {"--draft-max", "0", "--chat-template", "gemma4"});
}

TEST(Serve, WithoutAKeyItsOwnPageIsThatOfThisMachine) {
  check_state("open", {}, {}, RunningServer::Keyed::kNo);
}

TEST(Serve, IsReadyOnceEveryPlaceHasDrafted) {
  check_state("warm", {"--parallel", "96", "--queue", "0"});
}

TEST(Serve, RefusesWhoeverFindsNoPlace) {
  check_state("full", {"--parallel", "1", "--queue", "0"});
}

TEST(Serve, FlagsOfAFileHaveTheirEffect) {
  const TemporaryDirectory directory;
  const std::string system =
      directory.write("system", "You are Robi, an expressive tabletop companion robot.");
  const std::string keys = directory.write("keys", "first-key\nsecond-key\n");
  const std::string file = directory.write(
      "octet.conf",
      fmt::format(
          "pin-system = {}\napi-key-file = {}\ncors-origin = https://page.example\nalias = "
          "from-file\nmax-body = 3000\nmax-connections = 8\nqueue = 5\n",
          system,
          keys
      )
  );
  setenv("OCTET_ALIAS", "from-environment", 1);  // NOLINT(concurrency-mt-unsafe)
  setenv("OCTET_QUEUE", "7", 1);                 // NOLINT(concurrency-mt-unsafe)
  setenv("OCTET_PREDICT", "17", 1);              // NOLINT(concurrency-mt-unsafe)
  check_state("flags", {"--config", file, "--alias", "from-line"});
  unsetenv("OCTET_ALIAS");    // NOLINT(concurrency-mt-unsafe)
  unsetenv("OCTET_QUEUE");    // NOLINT(concurrency-mt-unsafe)
  unsetenv("OCTET_PREDICT");  // NOLINT(concurrency-mt-unsafe)
}

// The least that a server of one text needs: everything that it keeps beyond has to go again.
TEST(Serve, StaysBelowItsMemoryLimit) {
  std::vector<std::string> flags = {"--parallel", "1", "--slots", "64", "--memory-limit"};
  std::vector<std::string> tight = flags;
  tight.insert(tight.end(), {"1M", "-c", "2048", "--port", "0"});  // as the server below has it
  const ProgramResult refused = run_with_pair("serve", tight);
  EXPECT_EQ(refused.exit_code, 2);
  std::smatch match;
  const std::regex need("less than the ([0-9.]+) ([MG]B) that this needs");
  ASSERT_TRUE(std::regex_search(refused.err, match, need)) << refused.err;
  const double unit = match[2] == "GB" ? 1e9 : 1e6;
  const auto limit = static_cast<int64_t>((std::stod(match[1]) + 1.0) * unit);
  flags.push_back(std::to_string(limit));
  // AddressSanitizer's own memory would count as the server's.
  const char* judge = kKeepsShadowMemory ? "" : "resident";
  check_state("memory", flags, fmt::format("{} {}", limit, judge));
}

TEST(Serve, CacheAndMemoryLimitAgree) {
  const ProgramResult result =
      run_with_pair("serve", {"--port", "0", "--memory-limit", "1GB", "--cache-limit", "2000"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("--cache-limit"), std::string::npos) << result.err;
}

// What the examples in deploy/ set is read by somebody.
TEST(Serve, VariablesOfTheDeployFilesAreFlags) {
  const std::string help = run_octet({"serve", "--help"}).out;
  const std::regex name("(-D)?\\b(OCTET_[A-Z_]+)");
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(OCTET_SOURCE_DIR "/deploy")) {
    const std::string text = read_text(entry.path());
    for (std::sregex_iterator match(text.begin(), text.end(), name), end; match != end; ++match) {
      if ((*match)[1].matched) {
        continue;  // an option of the build
      }
      const std::string variable = (*match)[2];
      EXPECT_TRUE(std::regex_search(help, std::regex(variable + "\\b")))
          << entry.path() << ": " << variable;
      ++found;
    }
  }
  EXPECT_GT(found, 8);
}

/// A certificate for this machine, made on the spot; false: there is no openssl.
bool make_certificate(const std::string& certificate, const std::string& key) {
  const std::string command = fmt::format(
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
      "/CN=localhost -addext subjectAltName=IP:127.0.0.1 -out {} -keyout {} >/dev/null 2>&1",
      shell_quoted(certificate),
      shell_quoted(key)
  );
  return std::system(command.c_str()) == 0;  // NOLINT(concurrency-mt-unsafe)
}

TEST(Serve, SpeaksTls) {
  const TemporaryDirectory directory;
  const std::string certificate = directory.file("cert.pem");
  const std::string key = directory.file("key.pem");
  const bool ready = has_node() && std::filesystem::exists(kClients + "/node_modules/openai") &&
                     make_certificate(certificate, key);
  if (!ready) {
    OCTET_NEEDS("node, openai in " << kClients << ", or the program openssl");
  }
  RunningServer server({"--tls-cert", certificate, "--tls-key", key});
  const std::string address = server.address();
  ASSERT_EQ(address.rfind("https://", 0), 0U) << address;
  const ClientReport report = run_client("serve_conformance.mjs", address, {}, certificate);
  EXPECT_EQ(report.exit_code, 0) << report.text;
  // Without TLS, and without trust, nothing is said.
  EXPECT_NE(
      run_client("serve_speech.mjs", "http" + address.substr(5), {}, certificate).exit_code, 0
  );
  EXPECT_NE(run_client("serve_speech.mjs", address).exit_code, 0);
  EXPECT_EQ(server.stop(SIGTERM), 0) << server.log();
}

TEST(Serve, SaysWhichTlsFileIsWrong) {
  const TemporaryDirectory directory;
  const std::string certificate = directory.file("cert.pem");
  const std::string key = directory.file("key.pem");
  const std::string other = directory.file("other.pem");
  if (!make_certificate(certificate, key) || !make_certificate(directory.file("c2.pem"), other)) {
    OCTET_NEEDS("the program openssl");
  }
  const std::string garbage = directory.write("garbage.pem", "nothing of the kind");
  const auto error = [](const std::vector<std::string>& flags) {
    const ProgramResult result = run_with_pair("serve", flags);
    EXPECT_EQ(result.exit_code, 2);
    return result.err;
  };
  const auto names = [](const std::string& text, const std::string& name) {
    return text.find(name) != std::string::npos;
  };
  EXPECT_TRUE(names(error({"--tls-cert", "/nonexistent.pem", "--tls-key", key}), "/nonexistent.pem")
  );
  EXPECT_TRUE(names(error({"--tls-cert", garbage, "--tls-key", key}), garbage));
  EXPECT_TRUE(names(error({"--tls-cert", certificate, "--tls-key", garbage}), garbage));
  EXPECT_TRUE(names(error({"--tls-cert", certificate, "--tls-key", other}), other));
  EXPECT_TRUE(names(error({"--tls-cert", certificate}), "--tls-key"));
}

TEST(Serve, SaysWhatIsWrongBeforeItLoads) {
  const ProgramResult taken = run_octet({"serve", "-m", "/nonexistent.gguf"});
  EXPECT_EQ(taken.exit_code, 2);
  const ProgramResult unknown = run_octet({"serve", "-m", kPairTarget, "--prot", "1"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("--prot"), std::string::npos);
  const ProgramResult address = run_with_pair("serve", {"--host", "256.1.1.1", "--port", "0"});
  EXPECT_EQ(address.exit_code, 2);
  EXPECT_NE(address.err.find("256.1.1.1"), std::string::npos);
}

TEST(Serve, FlagsComeFromTheEnvironmentAndFromAFile) {
  const TemporaryDirectory directory;
  const std::string file = directory.write("octet.conf", "host = \"256.1.1.2\"\nport = 0\n");
  const ProgramResult from_file = run_with_pair("serve", {"--config", file});
  EXPECT_EQ(from_file.exit_code, 2);
  EXPECT_NE(from_file.err.find("256.1.1.2"), std::string::npos) << from_file.err;
  setenv("OCTET_HOST", "256.1.1.3", 1);  // NOLINT(concurrency-mt-unsafe)
  const ProgramResult from_environment = run_with_pair("serve", {"--port", "0"});
  unsetenv("OCTET_HOST");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(from_environment.exit_code, 2);
  EXPECT_NE(from_environment.err.find("256.1.1.3"), std::string::npos) << from_environment.err;
}

// What --help lists is what can be set from outside, each by its own variable.
TEST(Serve, EveryFlagHasAnEnvironmentVariable) {
  const std::string help = run_octet({"serve", "--help"}).out;
  const std::regex flag("\n  (?:-[a-z],)?--([a-z0-9-]+)([^\n]*)");
  int flags = 0;
  for (std::sregex_iterator match(help.begin(), help.end(), flag), end; match != end; ++match) {
    const std::string name = (*match)[1];
    if (name == "help") {
      continue;
    }
    std::string variable = "OCTET_" + name;
    std::transform(variable.begin(), variable.end(), variable.begin(), [](unsigned char c) {
      return c == '-' ? '_' : static_cast<char>(std::toupper(c));
    });
    // Help wraps long lines; the next flag begins another entry.
    const auto begin = static_cast<size_t>(match->position());
    const size_t end_of_entry = help.find("\n  -", begin + 1);
    const std::string entry = help.substr(begin, end_of_entry - begin);
    EXPECT_TRUE(std::regex_search(entry, std::regex(variable + "\\b"))) << name;
    ++flags;
  }
  EXPECT_GT(flags, 35);
}

TEST(Serve, VariablesAndFileLinesOfEveryKindCount) {
  const TemporaryDirectory directory;
  const std::string bad = "256.1.1.4";  // the server ends there, with everything read
  const auto error = [&](const std::string& line) {
    const std::string file = directory.write("octet.conf", "host = " + bad + "\n" + line + "\n");
    return run_with_pair("serve", {"--config", file}).err;
  };
  EXPECT_NE(error("kv-type = q8_0\nno-mmap = true # a flag").find(bad), std::string::npos);
  EXPECT_NE(error("kv-type = q9").find("--kv-type"), std::string::npos);
  EXPECT_NE(error("parallel = 0").find("--parallel"), std::string::npos);
  EXPECT_NE(error("prot = 1").find("--prot"), std::string::npos);
  EXPECT_NE(error("port").find("line 2 is not NAME = VALUE"), std::string::npos);
  for (const auto& [variable, value] : std::vector<std::pair<const char*, const char*>>{
           {"OCTET_KV_TYPE", "q9"},
           {"OCTET_DRAFT_HEAD", "/nonexistent"},
           {"OCTET_DRAFT_MAX", "99"},
           {"OCTET_CONFIG", "/nonexistent.conf"}}) {
    setenv(variable, value, 1);  // NOLINT(concurrency-mt-unsafe)
    const ProgramResult result = run_with_pair("serve", {"--host", bad, "--port", "0"});
    unsetenv(variable);  // NOLINT(concurrency-mt-unsafe)
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.err.find(bad), std::string::npos)
        << variable << " was ignored: " << result.err;
  }
}

}  // namespace
}  // namespace octet::test
