#include "octet/chat/json_value.h"

#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/error.h"
#include "octet/base/utf8.h"

namespace octet {
namespace {

using jinja::Entry;
using jinja::Origin;
using jinja::Value;

Value convert(const nlohmann::ordered_json& json, int depth) {
  if (depth >= jinja::kMaxValueDepth) {
    throw Error(
        ErrorKind::kResourceExhausted,
        fmt::format("JSON is nested more than {} levels deep", jinja::kMaxValueDepth)
    );
  }
  switch (json.type()) {
    case nlohmann::ordered_json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case nlohmann::ordered_json::value_t::number_integer:
      return Value::integer(json.get<int64_t>());
    case nlohmann::ordered_json::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        throw Error(ErrorKind::kInvalidArgument, "a number does not fit 64 bits");
      }
      return Value::integer(json.get<int64_t>());
    case nlohmann::ordered_json::value_t::number_float:
      return Value::real(json.get<double>());
    case nlohmann::ordered_json::value_t::string:
      return Value::text(replace_invalid_utf8(json.get_ref<const std::string&>()), Origin::kCaller);
    case nlohmann::ordered_json::value_t::array: {
      jinja::Values items;
      items.reserve(json.size());
      for (const auto& item : json) {
        items.push_back(convert(item, depth + 1));
      }
      return Value::list(std::move(items));
    }
    case nlohmann::ordered_json::value_t::object: {
      std::vector<Entry> entries;
      entries.reserve(json.size());
      for (const auto& [key, item] : json.items()) {
        entries.emplace_back(
            Value::text(replace_invalid_utf8(key), Origin::kCaller), convert(item, depth + 1)
        );
      }
      return Value::dict(std::move(entries));
    }
    default:
      return {};
  }
}

}  // namespace

jinja::Value caller_value(const nlohmann::ordered_json& json) {
  return convert(json, 0);
}

}  // namespace octet
