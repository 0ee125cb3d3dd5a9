#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/train/options.h"

namespace octet::train {
namespace {

constexpr int kExitInput = 2;
constexpr int kExitBug = 1;

struct Dispatch {
  int operator()(const HelpNotice& notice) const {
    std::fputs(notice.text.c_str(), stdout);
    return 0;
  }
  int operator()(const DrafterArguments& arguments) const { return train_drafter(arguments); }
  int operator()(const TargetArguments& arguments) const { return train_target(arguments); }
  int operator()(const CorpusArguments& arguments) const { return write_corpus(arguments); }
  int operator()(const SamplesArguments& arguments) const { return write_samples(arguments); }
};

int guarded_main(const std::vector<std::string>& arguments) {
  try {
    return std::visit(Dispatch{}, parse_train_arguments(arguments));
  } catch (const Error& error) {
    fmt::print(stderr, "octet-train: {}\n", error.what());
    return kExitInput;
  } catch (const std::bad_alloc&) {
    fmt::print(
        stderr, "octet-train: out of memory; try a smaller --batch, --anchors or --length\n"
    );
    return kExitInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "octet-train: this is a bug of octet, please report it: {}\n", error.what());
    return kExitBug;
  }
}

}  // namespace
}  // namespace octet::train

int main(int argc, char** argv) {
  return octet::train::guarded_main(std::vector<std::string>(argv + 1, argv + argc));
}
