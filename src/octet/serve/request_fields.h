// Reads a JSON body field by field, with the limits that untrusted JSON needs, and remembers what
// was read: a field that nobody read is refused when it would have changed the output, or whenever
// the request says strict. Not for what fields mean (generation_request.h). Invariant: every error
// names the field.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "octet/chat/bounded_json.h"

namespace octet::serve {

using Json = nlohmann::ordered_json;

/// Throws ApiError for text that is no JSON object within the bounds.
Json parse_body(const std::string& body, const JsonBounds& bounds = {});

class RequestFields {
 public:
  /// `object` must outlive it. `path` is where the object sits ("" for the body, "speculative.").
  explicit RequestFields(const Json& object, std::string path = {});

  /// The field, marked as read; null when it is absent or JSON null.
  const Json* find(std::string_view name);

  std::optional<bool> boolean(std::string_view name);
  std::optional<int64_t> integer(std::string_view name, int64_t least, int64_t most);
  std::optional<double> number(std::string_view name);
  std::optional<std::string> text(std::string_view name, size_t most_bytes);
  /// A string or an array of them.
  std::optional<std::vector<std::string>> texts(std::string_view name, size_t most);

  /// Refuses what was not read: everything when strict, else all but what cannot change the output.
  void refuse_unread(bool strict) const;

  std::string name_of(std::string_view name) const { return path_ + std::string(name); }

 private:
  const Json& object_;
  std::string path_;
  std::set<std::string, std::less<>> read_;
};

/// Fields of other servers that would change the output here too, and are therefore refused.
std::span<const std::string_view> refused_fields();

}  // namespace octet::serve
