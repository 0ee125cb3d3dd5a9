#include "octet/evaluate/data_outputs.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/error.h"
#include "octet/base/mapped_file.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::ordered_json;

[[noreturn]] void other_settings(const std::string& path) {
  throw Error(
      ErrorKind::kMismatch,
      fmt::format(
          "{}: was begun with other prompts or settings, or is no such file; delete it, or go on "
          "with those",
          JournalFile::partial_path(path)
      )
  );
}

bool holds(const Json& object, const char* name, const Json& value) {
  const auto found = object.find(name);
  return found != object.end() && *found == value;
}

void append(JournalFile& file, std::string_view text) {
  file.append(std::as_bytes(std::span(text)));
}

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

/// Whether one is the beginning of the other: of a file that ended early only so much is left.
bool agree(std::string_view found, std::string_view expected) {
  const size_t both = std::min(found.size(), expected.size());
  return found.substr(0, both) == expected.substr(0, both);
}

/// The reply of a line; nullopt for a line that this plan cannot have written.
std::optional<FeatureRecord> read_reply(const Json& line, const DataPlan& plan) {
  FeatureRecord reply;
  try {
    reply.prompt = line.at("prompt").get<int64_t>();
    reply.turn = line.at("turn").get<int64_t>();
    reply.thinking = line.at("thinking").get<bool>();
    reply.seed = line.at("seed").get<uint64_t>();
    reply.prompt_tokens = line.at("prompt_tokens").get<int64_t>();
    reply.tokens = line.at("tokens").get<std::vector<TokenId>>();
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  const auto count = std::ssize(reply.tokens);
  const bool known = std::all_of(reply.tokens.begin(), reply.tokens.end(), [&](TokenId token) {
    return token >= 0 && token < plan.vocabulary;
  });
  if (!known || reply.prompt_tokens < 1 || reply.prompt_tokens >= count ||
      count > plan.context_length + 1) {
    return std::nullopt;
  }
  reply.max_tokens = plan.most_tokens(reply.prompt_tokens);
  return reply;
}

bool same_reply(const FeatureRecord& a, const FeatureRecord& b) {
  return a.prompt == b.prompt && a.turn == b.turn && a.tokens == b.tokens;
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace

int64_t DataPlan::most_tokens(int64_t prompt_tokens) const {
  return std::min(max_tokens, context_length - prompt_tokens);
}

std::string spell_digest(uint64_t digest) {
  return fmt::format("{:016x}", digest);
}

bool named_by_half(const std::string& lines_path, const std::string& features_path) {
  return is_there(features_path) && !is_there(JournalFile::partial_path(features_path)) &&
         is_there(JournalFile::partial_path(lines_path)) && !is_there(lines_path);
}

/// What is done already, as the lines of an earlier run tell: whole conversations from the start.
struct DataOutputs::Progress {
  int64_t conversations = 0;
  std::vector<FeatureRecord> replies;  // of these conversations
  uint64_t end = 0;                    // of their lines, in bytes
};

DataOutputs::DataOutputs(const DataPlan& plan) : plan_(plan) {
  refuse_existing(plan.lines_path);
  lines_.emplace(plan.lines_path);
  Progress progress =
      read_progress(text_of(*MappedFile::open(JournalFile::partial_path(plan.lines_path))));
  const uint64_t end = progress.end;
  conversations_ = progress.conversations;
  replies_ = std::ssize(progress.replies);
  if (!plan.features_path.empty() && !features_are_finished(progress)) {
    refuse_existing(plan.features_path);
    resume_features(std::move(progress));
  }
  lines_->cut(end);
}

void DataOutputs::refuse_existing(const std::string& path) const {
  if (!plan_.replace && is_there(path)) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("{}: exists already; add --force to replace it", path)
    );
  }
}

DataOutputs::Progress DataOutputs::read_progress(std::string_view text) const {
  if (!agree(text, plan_.beginning)) {
    other_settings(plan_.lines_path);
  }
  Progress progress;
  std::vector<FeatureRecord> replies;  // of a conversation that may not be whole
  size_t at = 0;
  while (progress.conversations < std::ssize(plan_.prompts)) {
    const size_t end = text.find('\n', at);
    if (end == std::string_view::npos) {
      return progress;
    }
    const Json line = Json::parse(text.substr(at, end - at), nullptr, false);
    if (!line.is_object() || !line.contains("last")) {
      return progress;  // the run ended while it wrote
    }
    const int64_t expected = plan_.prompts[static_cast<size_t>(progress.conversations)];
    if (!holds(line, "settings", spell_digest(plan_.header.settings_digest)) ||
        !holds(line, "prompt", expected)) {
      other_settings(plan_.lines_path);
    }
    at = end + 1;
    if (line.contains("tokens")) {
      std::optional<FeatureRecord> reply = read_reply(line, plan_);
      if (!reply) {
        return progress;
      }
      if (plan_.features_path.empty()) {
        reply->tokens = {};  // they are for features alone
      }
      replies.push_back(*std::move(reply));
    }
    if (holds(line, "last", true)) {
      std::move(replies.begin(), replies.end(), std::back_inserter(progress.replies));
      replies.clear();
      ++progress.conversations;
      progress.end = at;
    }
  }
  if (at < text.size()) {
    other_settings(plan_.lines_path);  // more prompts than these
  }
  return progress;
}

/// Whether an earlier run gave the features of all prompts their name, and ended before it did so
/// with the lines.
bool DataOutputs::features_are_finished(const Progress& progress) const {
  if (progress.conversations < std::ssize(plan_.prompts) || !is_there(plan_.features_path)) {
    return false;
  }
  try {
    const FeatureFile file = FeatureFile::open(plan_.features_path);
    return file.header() == plan_.header && std::equal(
                                                file.records().begin(),
                                                file.records().end(),
                                                progress.replies.begin(),
                                                progress.replies.end(),
                                                same_reply
                                            );
  } catch (const Error&) {
    return false;  // something else of that name
  }
}

/// Cuts the features to replies that the lines hold too.
void DataOutputs::resume_features(Progress progress) {
  features_.emplace(plan_.features_path);
  const std::string header = encode_feature_header(plan_.header);
  const std::string partial = JournalFile::partial_path(plan_.features_path);
  const auto file = MappedFile::open(partial);
  if (!agree(text_of(*file), header)) {
    other_settings(plan_.features_path);
  }
  size_t kept = 0;
  if (file->bytes().size() < header.size()) {
    features_->cut(0);
    append(*features_, header);
  } else {
    const FeatureFile found = FeatureFile::salvage(file->bytes(), partial);
    const size_t both = std::min(found.records().size(), progress.replies.size());
    for (; kept < both; ++kept) {
      if (!same_reply(found.records()[kept], progress.replies[kept])) {
        other_settings(plan_.features_path);
      }
    }
    features_->cut(found.end_of(static_cast<int64_t>(kept) - 1));
  }
  feature_records_ = static_cast<int64_t>(kept);
  progress.replies.erase(
      progress.replies.begin(), progress.replies.begin() + static_cast<std::ptrdiff_t>(kept)
  );
  without_features_ = std::move(progress.replies);
}

void DataOutputs::add_features(const std::string& record) {
  append(*features_, record);
  ++feature_records_;
}

void DataOutputs::add(
    const std::string& lines, std::span<const std::string> records, int64_t replies
) {
  replies_ += replies;
  for (const std::string& record : records) {
    add_features(record);
  }
  append(*lines_, lines);
}

void DataOutputs::sync() {
  if (features_) {
    features_->sync();
  }
  lines_->sync();
}

void DataOutputs::finish() {
  if (features_) {
    append(*features_, encode_feature_end(feature_records_));
    features_->finish();
  }
  lines_->finish();
}

}  // namespace octet
