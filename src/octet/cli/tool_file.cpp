#include "octet/cli/tool_file.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/error.h"
#include "octet/base/mapped_file.h"
#include "octet/cli/program_output.h"
#include "octet/grammar/tool_signature.h"

namespace octet::cli {
namespace {

using Json = nlohmann::ordered_json;

Json parse(const std::string& text, const std::string& path) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    throw Error(ErrorKind::kMalformed, path + " is not JSON");
  }
  return json;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
    text.pop_back();
  }
  return text;
}

bool names_a_function(const Json& tool) {
  return tool.is_object() && tool.contains("function") && tool["function"].is_object() &&
         tool["function"].contains("name") && tool["function"]["name"].is_string() &&
         !tool["function"]["name"].get_ref<const std::string&>().empty() &&
         (!tool.contains("type") || tool["type"] == "function");
}

}  // namespace

struct ToolFile::AnswerSource {
  std::optional<std::string> text;
  std::string file;                  // empty: none
  std::vector<std::string> command;  // empty: none

  static AnswerSource take(Json& tool, const std::filesystem::path& folder);
};

/// Takes the ways to answer out of the entry, and refuses what is neither those nor a tool.
ToolFile::AnswerSource ToolFile::AnswerSource::take(
    Json& tool, const std::filesystem::path& folder
) {
  AnswerSource source;
  int ways = 0;
  Json rest = Json::object();
  for (auto& [key, value] : tool.items()) {
    if (key == "answer") {
      source.text = value.is_string() ? value.get<std::string>() : value.dump();
    } else if (key == "answer_file" && value.is_string()) {
      source.file = (folder / value.get<std::string>()).string();
    } else if (key == "answer_command" && value.is_array() && !value.empty() &&
               std::all_of(value.begin(), value.end(), [](const Json& word) {
                 return word.is_string();
               })) {
      source.command = value.get<std::vector<std::string>>();
    } else if (key == "type" || key == "function") {
      rest[key] = std::move(value);
      continue;
    } else {
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format(
              "has '{}', expected type, function and answer (a value), answer_file (a path) or "
              "answer_command (a list of strings)",
              key
          )
      );
    }
    ++ways;
  }
  if (ways > 1) {
    throw Error(ErrorKind::kInvalidArgument, "says more than one way to answer; leave one");
  }
  tool = std::move(rest);
  return source;
}

ToolFile::ToolFile() : tools_(std::make_unique<Json>()) {}

ToolFile::ToolFile(const std::string& path) {
  Json json = parse(read_whole_file(path), path);
  if (json.is_object() && json.contains("tools")) {
    json = Json(std::move(json["tools"]));
  }
  if (!json.is_array() || json.empty()) {
    throw Error(
        ErrorKind::kInvalidArgument, path + ": expected an array of tools, or {\"tools\": [...]}"
    );
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (size_t i = 0; i < json.size(); ++i) {
    Json& tool = json[i];
    if (!names_a_function(tool)) {
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format(
              "{}: tool {} is not {{\"type\": \"function\", \"function\": {{\"name\": ...}}}}",
              path,
              i + 1
          )
      );
    }
    try {
      sources_.push_back(AnswerSource::take(tool, folder));
    } catch (Error& error) {
      error.add_context(fmt::format("{}: tool {}", path, i + 1));
      throw;
    }
    names_.push_back(tool["function"]["name"].get<std::string>());
  }
  tools_ = std::make_unique<Json>(std::move(json));
}

ToolFile::~ToolFile() = default;
ToolFile::ToolFile(ToolFile&&) noexcept = default;
ToolFile& ToolFile::operator=(ToolFile&&) noexcept = default;

const Json& ToolFile::tools() const {
  return *tools_;
}

bool ToolFile::strict() const {
  return std::any_of(tools_->begin(), tools_->end(), is_strict_tool);
}

std::optional<std::string> ToolFile::answer(const std::string& name, const std::string& arguments)
    const {
  const auto found = std::ranges::find(names_, name);
  if (found == names_.end()) {
    return std::nullopt;
  }
  const AnswerSource& source = sources_[static_cast<size_t>(found - names_.begin())];
  if (!source.command.empty()) {
    return trimmed(program_output(source.command, arguments));
  }
  if (!source.file.empty()) {
    return trimmed(read_whole_file(source.file));
  }
  return source.text;
}

}  // namespace octet::cli
