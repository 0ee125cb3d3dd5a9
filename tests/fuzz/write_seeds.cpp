// write_seeds DIR: one directory a fuzz target below DIR, with small valid inputs.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/chat_seeds.h"
#include "support/feature_seeds.h"
#include "support/format_seeds.h"
#include "support/importance_seeds.h"
#include "support/request_seeds.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_seeds DIR\n");
    return 2;
  }
  const std::filesystem::path root(argv[1]);
  auto all = octet::test::format_seeds();
  all.merge(octet::test::chat_seeds());
  for (const auto& [route, body] : octet::test::request_seeds()) {
    all["request_bodies"].push_back(body);
  }
  all["importance"] = octet::test::importance_seeds();
  all["features"] = octet::test::feature_seeds();
  for (const auto& [target, seeds] : all) {
    std::filesystem::create_directories(root / target);
    for (size_t i = 0; i < seeds.size(); ++i) {
      std::ofstream(root / target / ("seed-" + std::to_string(i)), std::ios::binary) << seeds[i];
    }
  }
  return 0;
}
