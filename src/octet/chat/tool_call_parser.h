// One tool call in the model's own syntax, "call:name{key:value,...}", turned into a name and JSON
// as its text arrives. Liberal: models write plain JSON quotes, spaces and bare words. Not for
// finding calls in a reply (text/reply_parser.h). Invariant: the arguments given out, joined, are a
// prefix of one valid JSON object at every moment, the object itself after finish, and do not
// depend on how the text was cut.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octet {

class ToolCallParser {
 public:
  ToolCallParser();

  /// Takes more text of the call; appends what it adds to the arguments.
  void push(std::string_view text, std::string& arguments);
  /// The call's end: closes what is open. Returns whether the object was complete and nothing but
  /// white space followed it.
  bool finish(std::string& arguments);

  /// The name is known: "call:name{" was read.
  bool has_name() const;
  /// This is not the start of a call: nothing will be given out.
  bool failed() const;
  const std::string& name() const { return name_; }
  /// All text taken so far, as long as the name is not known.
  const std::string& raw() const { return raw_; }

 private:
  std::string name_;
  std::string raw_;
};

}  // namespace octet
