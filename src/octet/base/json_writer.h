// Writes one JSON document: machine-readable output, configuration files. Only writing: readers
// live in formats/ and text/. Invariant: the text is valid JSON whatever bytes the strings hold
// (invalid UTF-8 becomes U+FFFD) and whatever the numbers are (infinities and NaN become null).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octet {

class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();

  /// The name of the next value of the open object.
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(int64_t number);
  JsonWriter& value(int number) { return value(static_cast<int64_t>(number)); }
  JsonWriter& value(double number);
  JsonWriter& value(bool truth);
  JsonWriter& null();

  template <typename T>
  JsonWriter& member(std::string_view name, const T& content) {
    return key(name).value(content);
  }

  const std::string& text() const { return text_; }

 private:
  void separate();
  void append_escaped(std::string_view text);

  std::string text_;
  bool first_ = true;  // nothing yet in the innermost object or array, or a key was just written
};

}  // namespace octet
