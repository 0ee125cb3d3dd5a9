#include "octet/tensor/dtype.h"

#include <algorithm>
#include <cctype>

#include "octet/base/check.h"
#include "octet/tensor/type_list.h"

namespace octet {

namespace {

constexpr auto kFactsTable =
    WeightTypes::table<DTypeFacts>([]<typename Type>() { return Type::kFacts; });

template <typename Predicate>
std::optional<DType> find_dtype(Predicate matches) {
  const auto* found = std::find_if(kFactsTable.begin(), kFactsTable.end(), matches);
  if (found == kFactsTable.end()) {
    return std::nullopt;
  }
  return static_cast<DType>(found - kFactsTable.begin());
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

}  // namespace

const DTypeFacts& dtype_facts(DType dtype) {
  return kFactsTable[static_cast<size_t>(dtype)];
}

std::optional<DType> dtype_from_gguf_id(int64_t id) {
  return find_dtype([&](const DTypeFacts& facts) { return id >= 0 && facts.gguf_id == id; });
}

std::optional<DType> dtype_from_name(std::string_view name) {
  return find_dtype([&](const DTypeFacts& facts) { return equal_ignoring_case(facts.name, name); });
}

int64_t row_bytes(DType dtype, int64_t cols) {
  const DTypeFacts& facts = dtype_facts(dtype);
  OCTET_CHECK(cols >= 0 && cols % facts.block_values == 0);
  return cols / facts.block_values * facts.block_bytes;
}

}  // namespace octet
