#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/cli/argument_groups.h"

namespace octet::cli {
namespace {

/// Every flag can also come from the environment: --api-key from OCTET_API_KEY.
void add_environment_names(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::vector<std::string>& names = option->get_lnames();
    if (names.empty() || names.front() == "help" || names.front() == "config") {
      continue;
    }
    std::string variable = "OCTET_" + names.front();
    std::transform(variable.begin(), variable.end(), variable.begin(), [](char c) {
      return c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    });
    option->envname(variable);
    if (!option->get_option_text().empty()) {  // which help shows instead of all else
      option->option_text(fmt::format("{} (Env:{})", option->get_option_text(), variable));
    }
  }
}

void add_serve_limits(CLI::App& app, ServeArguments& serve) {
  const char* group = "Limits";
  app.add_option(
      "--parallel", serve.parallel, "replies in the making at once (default 4); also spelled -np"
  );
  app.add_option("--queue", serve.queue_length, "requests that may wait, then 429 (default 64)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20))
      ->type_name("N")
      ->group(group);
  app.add_option(
         "--slots", serve.slots, "texts kept for reuse, running ones included; 0: --parallel + 8"
  )
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 16))
      ->type_name("N")
      ->group(group);
  app.add_option(
         "--cache-limit",
         serve.cache_limit_mib,
         "ceiling for keys, values and draft contexts, in MiB; 0: none"
  )
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 24))
      ->type_name("MIB")
      ->group(group);
  app.add_option(
         "-n,--predict", serve.max_tokens, "most tokens of replies that do not say; 0: the context"
  )
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 24))
      ->type_name("N")
      ->group(group);
  app.add_option("--max-body", serve.max_body_bytes, "bytes of a request (default 4194304)")
      ->check(CLI::Range(int64_t{1024}, int64_t{1} << 30))
      ->type_name("BYTES")
      ->group(group);
  app.add_option("--max-connections", serve.max_connections, "open connections (default 256)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 16))
      ->type_name("N")
      ->group(group);
}

void add_tls(CLI::App& app, ServeArguments& serve) {
  CLI::Option* certificate = app.add_option(
      "--tls-cert", serve.tls_certificate, "PEM file with certificate and chain: answer by TLS"
  );
  CLI::Option* key = app.add_option("--tls-key", serve.tls_key, "PEM file with its key");
  certificate->type_name("FILE")->group("Server")->needs(key);
  key->type_name("FILE")->group("Server")->needs(certificate);
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\"");
  const size_t end = text.find_last_not_of(" \t\r\"");
  return begin == std::string::npos ? std::string() : text.substr(begin, end + 1 - begin);
}

/// A comment begins at the line's start or behind white space, outside of quotes.
std::string without_comment(const std::string& line) {
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    quoted = quoted != (line[i] == '"');
    if (line[i] == '#' && !quoted && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
      return line.substr(0, i);
    }
  }
  return line;
}

/// Whether the arguments give the flag, under any of its names: "-c 5", "-c5", "--ctx-size=5".
bool is_given(const CLI::App& app, const std::string& flag, const std::vector<std::string>& list) {
  const CLI::Option* option = app.get_option_no_throw(flag);
  const auto names = [&](const std::string& argument) {
    if (argument.starts_with("--")) {
      const std::string name = argument.substr(0, argument.find('='));
      return option != nullptr ? option->check_lname(name.substr(2)) : name == flag;
    }
    return option != nullptr && argument.size() > 1 && argument[0] == '-' &&
           option->check_sname(argument.substr(1, 1));
  };
  return std::ranges::any_of(list, names);
}

}  // namespace

void add_serve(CLI::App& app, ServeArguments& serve) {
  add_pair(app, serve.pair);
  const char* group = "Server";
  app.add_option("--host", serve.host, "address to listen on (default 127.0.0.1)")
      ->type_name("IP")
      ->group(group);
  app.add_option("--port", serve.port, "0: any free one (default 8080)")
      ->check(CLI::Range(0, 65535))
      ->type_name("N")
      ->group(group);
  add_tls(app, serve);
  app.add_option(
         "--api-key", serve.api_keys, "wanted by every route but /health and the page; repeatable"
  )
      ->type_name("KEY")
      ->expected(1)
      ->take_all()
      ->group(group);
  app.add_option("--api-key-file", serve.api_key_file, "one key a line")
      ->type_name("FILE")
      ->group(group);
  app.add_option(
         "--cors-origin",
         serve.cors_origins,
         "pages that may use it beside those of this machine; repeatable"
  )
      ->type_name("ORIGIN")
      ->expected(1)
      ->take_all()
      ->group(group);
  app.add_option("--alias", serve.name, "the model's name in the API; default: from its file")
      ->type_name("NAME")
      ->group(group);
  add_chat_template(app, serve.chat_template, group);
  app.add_option(
         "--pin-system", serve.pinned_system_file, "a system message to keep processed for ever"
  )
      ->type_name("FILE")
      ->group(group);
  app.add_option(
         "--ping", serve.ping_seconds, "seconds of silence before a stream pings (default 15)"
  )
      ->check(CLI::Range(1, 3600))
      ->type_name("S")
      ->group(group);
  app.add_option(
         "--drain", serve.drain_seconds, "seconds that replies may go on after SIGTERM (default 30)"
  )
      ->check(CLI::Range(0, 3600))
      ->type_name("S")
      ->group(group);
  add_serve_limits(app, serve);
  app.get_option("--parallel")->check(CLI::Range(1, 256))->type_name("N")->group(group);
  add_sampling(app, serve.sampling);
  add_optional(
      app,
      "--draft-max",
      serve.draft_max,
      "drafts a step at most; 0 turns drafting off",
      CLI::Range(0, kMaxDrafts),
      kGroupDrafting
  );
  add_draft_policy(app, serve.adapt_drafts);
  app.add_option(
         "--config",
         serve.config_file,
         "flags from a file, one NAME = VALUE a line, # for comments; also OCTET_CONFIG"
  )
      ->type_name("FILE")
      ->group(group);
  add_environment_names(app);
  app.footer(
      "Every flag may also be set by OCTET_NAME, for example OCTET_API_KEY. The command line wins, "
      "then the file, then the environment."
  );
}

void add_config_file(const CLI::App& app, std::vector<std::string>& list) {
  if (list.empty() || list.front() != app.get_name()) {
    return;
  }
  const auto config = std::ranges::find_if(list, [](const std::string& argument) {
    return argument == "--config" || argument.starts_with("--config=");
  });
  const char* variable = std::getenv("OCTET_CONFIG");  // NOLINT(concurrency-mt-unsafe): at start
  std::string path;
  if (config == list.end() && variable != nullptr) {
    path = variable;
  } else if (config == list.end() || (*config == "--config" && std::next(config) == list.end())) {
    return;
  } else {
    path = *config == "--config" ? *std::next(config) : config->substr(9);
  }
  std::ifstream file(path);
  if (!file) {
    throw Error(ErrorKind::kNotFound, fmt::format("{}: cannot read this --config file", path));
  }
  std::vector<std::string> more;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const std::string text = trimmed(without_comment(line));
    const size_t equals = text.find('=');
    if (text.empty()) {
      continue;
    }
    if (equals == std::string::npos) {
      throw Error(
          ErrorKind::kMalformed, fmt::format("{}: line {} is not NAME = VALUE", path, number)
      );
    }
    const std::string flag = fmt::format("--{}", trimmed(text.substr(0, equals)));
    if (!is_given(app, flag, list)) {
      more.push_back(fmt::format("{}={}", flag, trimmed(text.substr(equals + 1))));
    }
  }
  list.insert(list.end(), more.begin(), more.end());
}

}  // namespace octet::cli
