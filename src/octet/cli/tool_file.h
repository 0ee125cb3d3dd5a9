// Tools of a talk, from a file: what the model is told of them, and how their calls are answered
// when the file says so: by a fixed answer, by a file, or by a program. Asking a person is not done
// here. Invariant: every entry has a name, and at most one way to be answered.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace octet::cli {

class ToolFile {
 public:
  /// No tools.
  ToolFile();
  /// A JSON array of tools in OpenAI's form, or an object with that array as "tools". Besides
  /// "type" and "function" an entry may hold "answer" (any JSON value), "answer_file" (a path from
  /// the file's folder) or "answer_command" (a list: program and arguments). Throws Error naming
  /// the entry.
  explicit ToolFile(const std::string& path);
  ~ToolFile();
  ToolFile(ToolFile&&) noexcept;
  ToolFile& operator=(ToolFile&&) noexcept;

  /// Without the ways to answer; JSON null when there are none.
  const nlohmann::ordered_json& tools() const;
  const std::vector<std::string>& names() const { return names_; }
  /// Some tool says "strict": true, so arguments must follow the schemas.
  bool strict() const;

  /// The answer to a call; nullopt: the file does not say. A program gets the arguments on its
  /// standard input and answers on its standard output, within a minute and a MiB. Throws Error
  /// when an answer cannot be had.
  std::optional<std::string> answer(const std::string& name, const std::string& arguments) const;

 private:
  struct AnswerSource;

  std::vector<std::string> names_;
  std::vector<AnswerSource> sources_;  // beside names_
  std::unique_ptr<nlohmann::ordered_json> tools_;
};

}  // namespace octet::cli
