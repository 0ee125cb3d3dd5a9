#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/train/options.h"
#include "octet/train/tensor_memory.h"

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

int out_of_memory() {
  fmt::print(stderr, "octet-train: out of memory; try a smaller --batch, --anchors or --length\n");
  return kExitInput;
}

/// libtorch's allocator throws its general error, which its text alone tells from others.
bool is_of_allocator(const std::exception& error) {
  return std::string_view(error.what()).find("can't allocate memory") != std::string_view::npos;
}

int guarded_main(const std::vector<std::string>& arguments) {
  try {
    return std::visit(Dispatch{}, parse_train_arguments(arguments));
  } catch (const Error& error) {
    fmt::print(stderr, "octet-train: {}\n", error.what());
    return kExitInput;
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& error) {
    if (is_of_allocator(error)) {
      return out_of_memory();
    }
    fmt::print(stderr, "octet-train: this is a bug of octet, please report it: {}\n", error.what());
    return kExitBug;
  }
}

}  // namespace
}  // namespace octet::train

int main(int argc, char** argv) {
  octet::train::keep_tensor_memory();
  return octet::train::guarded_main(std::vector<std::string>(argv + 1, argv + argc));
}
