#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "octet/base/error.h"
#include "octet/cli/arguments.h"
#include "octet/cli/commands/commands.h"

namespace octet::cli {
namespace {

constexpr int kExitInput = 2;
constexpr int kExitBug = 1;

struct Dispatch {
  int operator()(const Notice& notice) const {
    std::fputs(notice.text.c_str(), stdout);
    return 0;
  }
  int operator()(const RunArguments& arguments) const { return run(arguments); }
  int operator()(const ChatArguments& arguments) const { return chat(arguments); }
  int operator()(const InspectArguments& arguments) const { return inspect(arguments); }
  int operator()(const VerifyArguments& arguments) const { return verify(arguments); }
  int operator()(const ConvertArguments& arguments) const { return convert(arguments); }
  int operator()(const QuantizeArguments& arguments) const { return quantize(arguments); }
  int operator()(const ImatrixArguments& arguments) const { return imatrix(arguments); }
  int operator()(const CompareArguments& arguments) const { return compare(arguments); }
  int operator()(const SynthArguments& arguments) const { return synth(arguments); }
  int operator()(const DraftHeadArguments& arguments) const { return draft_head(arguments); }
  int operator()(const BenchArguments& arguments) const { return bench(arguments); }
  int operator()(const GenerateDataArguments& arguments) const { return generate_data(arguments); }
  int operator()(const EvalArguments& arguments) const { return eval(arguments); }
  int operator()(const ServeArguments& arguments) const { return serve(arguments); }
};

/// Where even this cannot be written there is nobody left to tell, only the exit code.
void tell(const char* cause, const char* what) noexcept {
  std::fprintf(stderr, "octet: %s%s\n", cause, what);
}

/// Output that was accepted may still be waiting in a buffer for a place that has no room.
int finish(int exit_code) {
  if (std::fflush(stdout) != 0) {
    tell("the output could not be written: ", std::generic_category().message(errno).c_str());
    return kExitInput;
  }
  return exit_code;
}

int guarded_main(const std::vector<std::string>& arguments) {
  try {
    return finish(std::visit(Dispatch{}, parse_arguments(arguments)));
  } catch (const Error& error) {
    tell("", error.what());
    return kExitInput;
  } catch (const std::bad_alloc&) {
    tell("", "out of memory; try a smaller context (-c) or a smaller model");
    return kExitInput;
  } catch (const std::system_error& error) {  // printing throws it where there is no room
    tell("the system refused: ", error.what());
    return kExitInput;
  } catch (const std::exception& error) {
    tell("this is a bug of octet, please report it: ", error.what());
    return kExitBug;
  }
}

}  // namespace
}  // namespace octet::cli

int main(int argc, char** argv) {
  return octet::cli::guarded_main(std::vector<std::string>(argv + 1, argv + argc));
}
