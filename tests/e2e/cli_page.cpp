// The built-in page of `octet serve` in a real browser, driven by webui/tests/page_in_browser.mjs.
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "support/missing.h"
#include "support/run_program.h"

namespace octet::test {
namespace {

TEST(Page, WorksInABrowser) {
  const std::string folder = OCTET_SOURCE_DIR "/webui";
  if (!std::filesystem::exists(folder + "/node_modules/playwright-core")) {
    OCTET_NEEDS("playwright-core in " << folder);
  }
  if (!std::filesystem::exists("/usr/bin/chromium")) {
    OCTET_NEEDS("chromium");
  }
  if (!std::filesystem::exists(OCTET_SOURCE_DIR "/build/webui/index.html")) {
    OCTET_NEEDS("the page in this build (make webui)");
  }
  // Pictures of the page stay there, for whoever wants to look.
  const std::string pictures = OCTET_SOURCE_DIR "/build/page";
  std::filesystem::create_directories(pictures);
  const std::string command = "cd " + shell_quoted(folder) + " && node tests/page_in_browser.mjs " +
                              shell_quoted(OCTET_PROGRAM) + " " + shell_quoted(pictures);
  EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe): one thread
}

}  // namespace
}  // namespace octet::test
