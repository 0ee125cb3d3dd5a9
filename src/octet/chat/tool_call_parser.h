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

/// Before and behind strings in calls.
inline constexpr std::string_view kStringDelimiter = "<|\"|>";

class ToolCallParser {
 public:
  /// Takes more text of the call (whole characters); appends what it adds to the arguments.
  void push(std::string_view text, std::string& arguments);
  /// The call's end: closes what is open. Returns whether the call was complete and well-formed.
  bool finish(std::string& arguments);

  /// The name is known: "call:name{" was read.
  bool has_name() const { return state_ != State::kPrefix && state_ != State::kName && !failed(); }
  /// This is not the start of a call: nothing will be given out.
  bool failed() const { return state_ == State::kFailed; }
  const std::string& name() const { return name_; }
  /// All text taken so far.
  const std::string& raw() const { return raw_; }

 private:
  enum class State {
    kPrefix,  // before and inside "call:"
    kName,
    kKeyStart,  // behind "{" or ","
    kBareKey,
    kNativeKey,  // between string delimiters
    kQuotedKey,
    kColon,
    kValueStart,  // behind ":" , "[" or ","
    kBareValue,
    kNativeString,
    kQuotedString,
    kAfterValue,
    kDone,
    kFailed,
  };

  /// Takes what stands at the start of `rest`; returns how many bytes, 0 to wait for more.
  size_t step(std::string_view rest, bool at_end, std::string& arguments);
  size_t prefix(std::string_view rest, bool at_end);
  size_t name_character(char c, std::string& arguments);
  size_t key_start(std::string_view rest, std::string& arguments);
  size_t bare_key(char c, std::string& arguments);
  size_t delimited(std::string_view rest, std::string& arguments);
  size_t quoted(std::string_view rest, bool at_end, std::string& arguments);
  size_t unicode_escape(std::string_view rest, bool at_end, std::string& arguments);
  size_t value_start(std::string_view rest, std::string& arguments);
  size_t bare_value(std::string_view rest, std::string& arguments);
  size_t after_value(char c, std::string& arguments);
  void end_key(std::string& arguments);
  void end_bare_value(std::string& arguments);
  void begin_value(std::string& arguments);
  void open(char bracket, std::string& arguments);
  void close(char bracket, std::string& arguments);
  void put(std::string_view text, std::string& arguments);

  State state_ = State::kPrefix;
  std::string name_;
  std::string raw_;
  std::string pending_;  // text that waits for more
  std::string bare_;     // a bare word or key, as far as it was read
  char quote_ = '"';
  struct Container {
    char close = '}';
    bool empty = true;
  };
  std::vector<Container> open_;
  bool in_pair_ = false;  // a key was given out, its value not begun
  bool tidy_ = true;      // nothing had to be skipped
};

}  // namespace octet
