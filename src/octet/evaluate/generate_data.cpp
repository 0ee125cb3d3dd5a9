#include "octet/evaluate/generate_data.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/base/mapped_file.h"
#include "octet/base/philox.h"
#include "octet/evaluate/digest.h"
#include "octet/evaluate/hold_conversation.h"
#include "octet/formats/journal_file.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kThinkingPurpose = 0x7468696E;  // of draws: the mix of thinking

std::string hex(uint64_t value) {
  return fmt::format("{:016x}", value);
}

/// What is done already, as the JSON lines of an earlier run tell.
struct Progress {
  struct Conversation {
    int64_t prompt = 0;
    int64_t replies = 0;
    uint64_t end = 0;  // of its lines, in bytes
  };
  std::vector<Conversation> conversations;
};

[[noreturn]] void other_settings(const std::string& path) {
  throw Error(
      ErrorKind::kMismatch,
      fmt::format(
          "{}: was begun with other prompts or settings; delete it, or go on with those",
          JournalFile::partial_path(path)
      )
  );
}

bool holds(const Json& object, const char* name, const Json& value) {
  const auto found = object.find(name);
  return found != object.end() && *found == value;
}

/// Whole conversations from the start of `text`: their lines are intact, and they are those of
/// `prompts` in order.
Progress read_progress(
    std::string_view text,
    std::span<const int64_t> prompts,
    const std::string& settings,
    const std::string& path
) {
  Progress progress;
  int64_t replies = 0;
  size_t at = 0;
  while (std::ssize(progress.conversations) < std::ssize(prompts)) {
    const size_t end = text.find('\n', at);
    if (end == std::string_view::npos) {
      break;
    }
    const Json line = Json::parse(text.substr(at, end - at), nullptr, false);
    if (!line.is_object() || !line.contains("last")) {
      break;  // the run ended while it wrote
    }
    const int64_t expected = prompts[progress.conversations.size()];
    if (!holds(line, "settings", settings) || !holds(line, "prompt", expected)) {
      other_settings(path);
    }
    at = end + 1;
    replies += line.contains("tokens") ? 1 : 0;
    if (holds(line, "last", true)) {
      progress.conversations.push_back({expected, std::exchange(replies, 0), at});
    }
  }
  return progress;
}

void append(JournalFile& file, std::string_view text) {
  file.append(std::as_bytes(std::span(text)));
}

/// The two files as they grow; both always hold the same conversations.
class Outputs {
 public:
  Outputs(const DataRequest& request, const FeatureHeader& header, std::span<const int64_t> prompts)
      : request_(request), header_(header), lines_(request.output) {
    Progress progress = read_progress(
        read_whole_file(JournalFile::partial_path(request.output)),
        prompts,
        hex(header.settings_digest),
        request.output
    );
    if (!request.feature_output.empty()) {
      features_.emplace(request.feature_output);
      resume_features(progress);
    }
    conversations_ = std::ssize(progress.conversations);
    lines_.cut(conversations_ == 0 ? 0 : progress.conversations.back().end);
    for (const Progress::Conversation& conversation : progress.conversations) {
      replies_ += conversation.replies;
    }
  }

  int64_t conversations() const { return conversations_; }
  int64_t replies() const { return replies_; }

  void add(const std::string& lines, std::span<const std::string> records, int64_t replies) {
    replies_ += replies;
    for (const std::string& record : records) {
      append(*features_, record);
    }
    append(lines_, lines);
    feature_records_ += std::ssize(records);
  }

  void sync() {
    if (features_) {
      features_->sync();
    }
    lines_.sync();
  }

  void finish() {
    if (features_) {
      append(*features_, encode_feature_end(feature_records_));
      features_->finish();
    }
    lines_.finish();
  }

 private:
  /// Cuts the features, and `progress`, to the conversations that both files hold.
  void resume_features(Progress& progress) {
    const std::string partial = JournalFile::partial_path(request_.feature_output);
    const std::string header = encode_feature_header(header_);
    int64_t kept = 0;
    if (features_->size() >= header.size() && !progress.conversations.empty()) {
      const auto file = MappedFile::open(partial);
      const FeatureFile found = FeatureFile::salvage(file->bytes(), partial);
      if (!(found.header() == header_)) {
        other_settings(request_.feature_output);
      }
      size_t whole = 0;
      for (; whole < progress.conversations.size(); ++whole) {
        const int64_t end = kept + progress.conversations[whole].replies;
        if (end > std::ssize(found.records())) {
          break;
        }
        kept = end;
      }
      progress.conversations.resize(whole);
      features_->cut(found.end_of(kept - 1));
    } else {
      progress.conversations.clear();
      features_->cut(0);
      append(*features_, header);
    }
    feature_records_ = kept;
  }

  const DataRequest& request_;
  const FeatureHeader& header_;
  JournalFile lines_;
  std::optional<JournalFile> features_;
  int64_t conversations_ = 0;
  int64_t replies_ = 0;
  int64_t feature_records_ = 0;
};

/// The taps of all but the last token, from a pass over the whole text: rows do not depend on how
/// the text came to be.
std::vector<float> features_of(
    TargetModel& target, KvType kv_type, std::span<const TokenId> text, std::span<const int> taps
) {
  const auto rows = std::ssize(text) - 1;
  const auto cache = target.new_cache(rows, kv_type);
  std::vector<float> features;
  ForwardRows out;
  for (int64_t begin = 0; begin < rows;) {
    SequenceRows chunk;
    chunk.cache = cache.get();
    chunk.feature_rows = std::min(target.max_rows(), rows - begin);
    chunk.tokens =
        text.subspan(static_cast<size_t>(begin), static_cast<size_t>(chunk.feature_rows));
    target.forward({&chunk, 1}, taps, out);
    for (int64_t r = 0; r < out.features.rows; ++r) {
      features.insert(features.end(), out.features.row(r), out.features.row(r) + out.features.cols);
    }
    begin += chunk.feature_rows;
  }
  return features;
}

class DataMaker {
 public:
  DataMaker(
      Engine& engine,
      TargetModel& target,
      const ChatTemplate& chat_template,
      const std::shared_ptr<const Tokenizer>& tokenizer,
      const DataRequest& request
  )
      : engine_(engine),
        target_(target),
        template_(chat_template),
        tokenizer_(tokenizer),
        request_(request),
        prompts_(shard_prompts(std::ssize(request.prompts), request.shard, request.shards)),
        header_(
            {request.feature_type,
             target.shape().hidden,
             request.taps,
             request.target_digest,
             settings_digest(request),
             request.sampling}
        ),
        outputs_(request, header_, prompts_) {}

  DataResult run(FunctionRef<void(int64_t, int64_t)> on_batch) {
    result_.resumed_conversations = outputs_.conversations();
    const auto count = std::ssize(prompts_);
    for (int64_t begin = outputs_.conversations(); begin < count; begin += request_.concurrency) {
      const int64_t end = std::min<int64_t>(count, begin + request_.concurrency);
      hold(std::span(prompts_).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin))
      );
      outputs_.sync();
      on_batch(end, count);
    }
    outputs_.finish();
    result_.replies = outputs_.replies();
    return std::move(result_);
  }

 private:
  ConversationSettings settings_of(int64_t prompt) const {
    ConversationSettings settings;
    settings.sampling = request_.sampling;
    settings.sampling.seed += static_cast<uint64_t>(prompt);
    settings.thinking = wants_thinking(request_.sampling.seed, prompt, request_.thinking_share);
    settings.max_tokens = request_.max_tokens;
    settings.max_turns = request_.max_turns;
    settings.draft_max = request_.draft_max;
    settings.adapt_drafts = true;
    return settings;
  }

  void hold(std::span<const int64_t> batch) {
    engine_.forget_texts();
    std::vector<std::vector<ConversationTurn>> turns(batch.size());
    {
      std::vector<std::jthread> speakers;
      for (size_t i = 0; i < batch.size(); ++i) {
        speakers.emplace_back([&, i] {
          turns[i] = hold_conversation(
              engine_,
              template_,
              tokenizer_,
              request_.prompts[static_cast<size_t>(batch[i])],
              settings_of(batch[i])
          );
        });
      }
    }
    for (size_t i = 0; i < batch.size(); ++i) {
      write(batch[i], turns[i]);
    }
  }

  /// What a conversation leaves: at least one line, so that a later run knows that it was held.
  void write(int64_t prompt, std::span<const ConversationTurn> turns) {
    std::string lines;
    std::vector<std::string> records;
    int64_t replies = 0;
    for (size_t turn = 0; turn < turns.size(); ++turn) {
      const ConversationTurn& said = turns[turn];
      if (!said.reply) {
        unanswered(prompt, said.error);
      }
      lines += line(prompt, turn, said, turn + 1 == turns.size());
      replies += said.reply ? 1 : 0;
      result_.tokens += said.reply ? std::ssize(said.reply->result.tokens) : 0;
      if (said.reply && !request_.feature_output.empty()) {
        records.push_back(record(prompt, turn, said));
      }
    }
    outputs_.add(lines, records, replies);
  }

  void unanswered(int64_t prompt, const std::string& why) {
    if (request_.unanswerable == BadLines::kRefuse) {
      const SuitePrompt& asked = request_.prompts[static_cast<size_t>(prompt)];
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format("prompt {} ('{}') got no reply: {}", prompt + 1, asked.id, why)
      );
    }
    result_.unanswered.push_back({prompt, why});
  }

  std::string line(int64_t prompt, size_t turn, const ConversationTurn& said, bool last) const {
    const SuitePrompt& asked = request_.prompts[static_cast<size_t>(prompt)];
    const ConversationSettings settings = settings_of(prompt);
    Json json = {
        {"prompt", prompt},
        {"turn", turn},
        {"id", asked.id},
        {"category", asked.category},
        {"thinking", settings.thinking},
        {"seed", settings.sampling.seed},
        {"temperature", settings.sampling.temperature},
        {"settings", hex(header_.settings_digest)},
        {"target", hex(header_.target_digest)},
        {"last", last}};
    if (said.reply) {
      std::vector<TokenId> tokens = said.prompt;
      const std::vector<TokenId>& reply = said.reply->result.tokens;
      tokens.insert(tokens.end(), reply.begin(), reply.end());
      json["finish"] = std::string(finish_reason_name(said.reply->report.finish));
      json["prompt_tokens"] = said.prompt.size();
      json["tokens"] = std::move(tokens);
    } else {
      json["error"] = said.error;
    }
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  std::string record(int64_t prompt, size_t turn, const ConversationTurn& said) {
    const ConversationSettings settings = settings_of(prompt);
    FeatureRecord record;
    record.prompt = prompt;
    record.turn = static_cast<int64_t>(turn);
    record.thinking = settings.thinking;
    record.seed = settings.sampling.seed;
    record.prompt_tokens = std::ssize(said.prompt);
    record.max_tokens =
        std::min(settings.max_tokens, engine_.context_length() - record.prompt_tokens);
    record.tokens = said.prompt;
    const std::vector<TokenId>& reply = said.reply->result.tokens;
    record.tokens.insert(record.tokens.end(), reply.begin(), reply.end());
    const std::vector<float> features =
        features_of(target_, engine_.options().kv_type, record.tokens, header_.taps);
    const int64_t width = header_.width();
    return encode_feature_record(
        header_, record, {features.data(), std::ssize(features) / width, width, width}
    );
  }

  Engine& engine_;
  TargetModel& target_;
  const ChatTemplate& template_;
  const std::shared_ptr<const Tokenizer>& tokenizer_;
  const DataRequest& request_;
  std::vector<int64_t> prompts_;
  FeatureHeader header_;
  Outputs outputs_;
  DataResult result_;
};

void check_request(const DataRequest& request) {
  OCTET_CHECK(request.shard >= 1 && request.shard <= request.shards);
  OCTET_CHECK(request.thinking_share >= 0.0 && request.thinking_share <= 1.0);
  if (request.sampling.penalises() || !request.sampling.logit_bias.empty()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "penalties and biases are not recorded with the texts; leave them out"
    );
  }
}

}  // namespace

std::vector<int64_t> shard_prompts(int64_t prompts, int64_t shard, int64_t shards) {
  std::vector<int64_t> chosen;
  for (int64_t i = shard - 1; i < prompts; i += shards) {
    chosen.push_back(i);
  }
  return chosen;
}

bool wants_thinking(uint64_t seed, int64_t prompt, double share) {
  return unit_interval(philox_words(seed, prompt, kThinkingPurpose, 0)[0]) < share;
}

uint64_t settings_digest(const DataRequest& request) {
  Digest digest;
  digest.add(suite_digest(request.prompts));
  digest.add_text(fmt::format(
      "{} {} {} {} {} {} {} {} {}/{}",
      request.sampling.temperature,
      request.sampling.top_k,
      request.sampling.top_p,
      request.sampling.min_p,
      request.sampling.seed,
      request.thinking_share,
      request.max_tokens,
      request.max_turns,
      request.shard,
      request.shards
  ));
  digest.add(request.target_digest);
  return digest.value();
}

DataResult generate_data(
    Engine& engine,
    TargetModel& target,
    const ChatTemplate& chat_template,
    const std::shared_ptr<const Tokenizer>& tokenizer,
    const DataRequest& request,
    FunctionRef<void(int64_t, int64_t)> on_batch
) {
  OCTET_CHECK(request.concurrency >= 1 && request.concurrency <= engine.options().parallel);
  check_request(request);
  return DataMaker(engine, target, chat_template, tokenizer, request).run(on_batch);
}

}  // namespace octet
