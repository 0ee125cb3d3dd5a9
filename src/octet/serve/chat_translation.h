// What translations of other APIs to a chat request share: a body from which one side takes what it
// knows, while the rest goes on unchanged, and errors that name the client's own fields. Invariant:
// what was not taken reaches the chat request, which honours, refuses or ignores it by its rules.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "octet/serve/api_error.h"
#include "octet/serve/request_fields.h"

namespace octet::serve {

/// Messages of a conversation, and items or blocks of one that becomes messages.
constexpr size_t kMostMessages = 10'000;

/// Chat's name of a field, and the client's.
using FieldName = std::pair<std::string_view, std::string_view>;

class ChatTranslation {
 public:
  explicit ChatTranslation(const Json& body);
  ~ChatTranslation();
  ChatTranslation(const ChatTranslation&) = delete;
  ChatTranslation& operator=(const ChatTranslation&) = delete;

  /// The body of the chat request in the making.
  Json& chat() { return *chat_; }
  /// Takes the field out; null when it is absent.
  Json take(const char* name);
  /// Takes out what changes nothing here, whatever it says.
  void drop(std::initializer_list<const char*> names);
  /// Throws ApiError where a field is given that the API does not have, though chat has it.
  void refuse_foreign(std::initializer_list<const char*> names) const;
  /// Takes the field out; throws ApiError, "field is not supported", unless it is absent, null,
  /// false, or `harmless`.
  void refuse_unless(const char* name, const Json& harmless);
  void refuse(const char* name);
  /// When the request is strict, throws ApiError for a member that is not read, of an object of the
  /// body or of each object of an array. What is neither is left to its reader.
  void expect_members(
      const Json& value, const std::string& place, const std::vector<std::string_view>& read
  ) const;

  /// Appends a system message's text; all of them become the one that templates want first.
  void add_system(const std::string& text);
  void add_message(Json message);
  /// The last message when it is the assistant's and nothing but its parts came since; else a new
  /// one.
  Json& assistant();
  /// Writes what add_* collected to "messages".
  void finish_messages();

 private:
  std::unique_ptr<Json> chat_;
  std::unique_ptr<Json> messages_;
  std::string system_;
  bool strict_;
};

/// Appends to a text that may be null so far, in time proportional to what is appended.
void append_text(Json& text, const std::string& more);

[[noreturn]] void refuse_field(const std::string& field, const std::string& sentence);

/// The string of a member that must be there. Throws ApiError.
std::string text_member(const Json& object, const char* name, const std::string& place);

/// The text of a part {"type", "text"} of one of the given types. Throws ApiError naming it.
std::string text_of_part(
    const Json& part, const std::string& place, std::initializer_list<std::string_view> types
);
/// Text that is a string or an array of such parts, joined.
std::string text_of_parts(
    const Json& content, const std::string& place, std::initializer_list<std::string_view> types
);

/// {"type": "function", "function": ...} of a tool with its schema. Null members are left out.
Json function_tool(
    const Json& name, const Json& description, const Json& schema, const Json& strict
);

/// Gives an error about one of chat's fields the client's name for it.
void rename_field(ApiError& error, std::span<const FieldName> names);

}  // namespace octet::serve
