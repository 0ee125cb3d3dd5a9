#include "octet/chat/bounded_json.h"

#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

/// Counts and keeps nothing; every event answers whether to go on.
class Counter : public nlohmann::json_sax<Json> {
 public:
  explicit Counter(const JsonBounds& bounds) : bounds_(bounds) {}

  std::optional<JsonFault> fault() && { return std::move(fault_); }

  bool null() override { return count_value(); }
  bool boolean(bool /*value*/) override { return count_value(); }
  bool number_integer(number_integer_t /*value*/) override { return count_value(); }
  bool number_unsigned(number_unsigned_t /*value*/) override { return count_value(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override {
    return count_value();
  }
  bool string(string_t& /*value*/) override { return count_value(); }
  bool binary(binary_t& /*value*/) override { return count_value(); }
  bool start_object(size_t /*elements*/) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(size_t /*elements*/) override { return open(); }
  bool end_array() override { return close(); }

  bool key(string_t& /*name*/) override {
    comparisons_ += members_.back();
    if (++members_.back() > bounds_.max_members) {
      return refuse(fmt::format("has an object of more than {} members", bounds_.max_members));
    }
    if (comparisons_ > bounds_.max_comparisons) {
      return refuse("has too many objects of many members");
    }
    return true;
  }

  bool parse_error(
      size_t /*position*/,
      const std::string& /*last_token*/,
      const nlohmann::detail::exception& error
  ) override {
    fault_ = {true, fmt::format("is not JSON: {}", error.what())};
    return false;
  }

 private:
  bool refuse(std::string what) {
    fault_ = {false, std::move(what)};
    return false;
  }

  bool count_value() {
    return ++values_ <= bounds_.max_values ||
           refuse(fmt::format("holds more than {} values", bounds_.max_values));
  }

  bool open() {
    members_.push_back(0);
    if (std::ssize(members_) > bounds_.max_depth) {
      return refuse(fmt::format("nests deeper than {} levels", bounds_.max_depth));
    }
    return count_value();
  }

  bool close() {
    members_.pop_back();
    return true;
  }

  const JsonBounds& bounds_;
  int64_t values_ = 0;
  int64_t comparisons_ = 0;
  std::vector<int64_t> members_;  // of the objects and arrays that are open
  std::optional<JsonFault> fault_;
};

}  // namespace

std::optional<JsonFault> json_fault(std::string_view text, const JsonBounds& bounds) {
  Counter counter(bounds);
  Json::sax_parse(text, &counter);
  return std::move(counter).fault();
}

}  // namespace octet
