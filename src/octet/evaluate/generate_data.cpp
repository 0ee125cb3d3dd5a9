#include "octet/evaluate/generate_data.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/base/philox.h"
#include "octet/evaluate/data_outputs.h"
#include "octet/evaluate/digest.h"
#include "octet/evaluate/hold_conversation.h"
#include "octet/models/run_text.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kThinkingPurpose = 0x7468696E;  // of draws: the mix of thinking

/// Names that are no UTF-8 are mended: they only tell people which prompt it was.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
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
        plan_(plan()),
        outputs_(plan_) {}

  DataResult run(FunctionRef<void(int64_t, int64_t)> on_batch) {
    result_.resumed_conversations = outputs_.conversations();
    for (const FeatureRecord& reply : outputs_.without_features()) {
      outputs_.add_features(record(reply));
    }
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
  DataPlan plan() const {
    DataPlan plan;
    plan.lines_path = request_.output;
    plan.features_path = request_.feature_output;
    plan.replace = request_.replace;
    plan.header = {
        request_.feature_type,
        target_.shape().hidden,
        request_.taps,
        request_.target_digest,
        settings_digest(request_, engine_, template_),
        request_.sampling};
    plan.prompts = prompts_;
    if (!prompts_.empty()) {
      plan.beginning = dump(line_head(prompts_.front(), 0, plan.header));
      plan.beginning.back() = ',';
    }
    plan.vocabulary = target_.shape().vocabulary;
    plan.context_length = engine_.context_length();
    plan.max_tokens = request_.max_tokens;
    return plan;
  }

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
    std::vector<ConversationTask> tasks;
    for (const int64_t prompt : batch) {
      tasks.push_back({&request_.prompts[static_cast<size_t>(prompt)], settings_of(prompt)});
    }
    engine_.forget_texts();
    const auto turns = hold_conversations(engine_, template_, tokenizer_, tasks);
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
      if (said.error) {
        unanswered(prompt, *said.error);
      }
      lines += line(prompt, turn, said, turn + 1 == turns.size());
      replies += said.reply ? 1 : 0;
      result_.tokens += said.reply ? std::ssize(said.reply->result.tokens) : 0;
      if (said.reply && !request_.feature_output.empty()) {
        records.push_back(record(reply_of(prompt, turn, said)));
      }
    }
    outputs_.add(lines, records, replies);
  }

  /// A prompt that cannot be answered may be skipped; a run that fails may not.
  void unanswered(int64_t prompt, Error why) {
    const SuitePrompt& asked = request_.prompts[static_cast<size_t>(prompt)];
    if (request_.unanswerable == BadLines::kRefuse || why.kind() != ErrorKind::kInvalidArgument) {
      throw why.add_context(fmt::format("{} got no reply", place_of(asked, prompt)));
    }
    result_.unanswered.push_back({prompt, why.what()});
  }

  /// What a line says before it says whether it is the last of its conversation.
  Json line_head(int64_t prompt, size_t turn, const FeatureHeader& header) const {
    const SuitePrompt& asked = request_.prompts[static_cast<size_t>(prompt)];
    const ConversationSettings settings = settings_of(prompt);
    return {
        {"prompt", prompt},
        {"turn", turn},
        {"id", asked.id},
        {"category", asked.category},
        {"thinking", settings.thinking},
        {"seed", settings.sampling.seed},
        {"temperature", settings.sampling.temperature},
        {"settings", spell_digest(header.settings_digest)},
        {"target", spell_digest(header.target_digest)}};
  }

  std::string line(int64_t prompt, size_t turn, const ConversationTurn& said, bool last) const {
    Json json = line_head(prompt, turn, plan_.header);
    json["last"] = last;
    if (said.reply) {
      json["finish"] = std::string(finish_reason_name(said.reply->report.finish));
      json["prompt_tokens"] = said.prompt.size();
      json["tokens"] = text_of(said);
    } else {
      json["error"] = said.error->what();
    }
    return dump(json) + "\n";
  }

  static std::vector<TokenId> text_of(const ConversationTurn& said) {
    std::vector<TokenId> tokens = said.prompt;
    const std::vector<TokenId>& reply = said.reply->result.tokens;
    tokens.insert(tokens.end(), reply.begin(), reply.end());
    return tokens;
  }

  FeatureRecord reply_of(int64_t prompt, size_t turn, const ConversationTurn& said) const {
    const ConversationSettings settings = settings_of(prompt);
    FeatureRecord reply;
    reply.prompt = prompt;
    reply.turn = static_cast<int64_t>(turn);
    reply.thinking = settings.thinking;
    reply.seed = settings.sampling.seed;
    reply.prompt_tokens = std::ssize(said.prompt);
    reply.max_tokens = plan_.most_tokens(reply.prompt_tokens);
    reply.tokens = text_of(said);
    return reply;
  }

  /// The taps of all but the last token, from a pass over the whole text: rows do not depend on how
  /// the text came to be.
  std::string record(const FeatureRecord& reply) const {
    const int64_t width = plan_.header.width();
    const int64_t rows = std::ssize(reply.tokens) - 1;
    std::vector<float> features;
    features.reserve(static_cast<size_t>(rows * width));
    run_text(
        target_,
        std::span(reply.tokens).first(static_cast<size_t>(rows)),
        {.taps = plan_.header.taps, .kv_type = engine_.options().kv_type},
        [&](const ForwardRows& out) {
          for (int64_t r = 0; r < out.features.rows; ++r) {
            features.insert(features.end(), out.features.row(r), out.features.row(r) + width);
          }
        }
    );
    return encode_feature_record(plan_.header, reply, {features.data(), rows, width, width});
  }

  Engine& engine_;
  TargetModel& target_;
  const ChatTemplate& template_;
  const std::shared_ptr<const Tokenizer>& tokenizer_;
  const DataRequest& request_;
  std::vector<int64_t> prompts_;
  DataPlan plan_;
  DataOutputs outputs_;
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

uint64_t settings_digest(
    const DataRequest& request, const Engine& engine, const ChatTemplate& chat_template
) {
  Digest digest;
  digest.add(suite_digest(request.prompts));
  digest.add_text(fmt::format(
      "{} {} {} {} {} {} {} {}",
      request.sampling.temperature,
      request.sampling.top_k,
      request.sampling.top_p,
      request.sampling.min_p,
      request.sampling.seed,
      request.thinking_share,
      request.max_tokens,
      request.max_turns
  ));
  digest.add_text(
      fmt::format("{} {}", kv_type_name(engine.options().kv_type), engine.context_length())
  );
  digest.add_text(request.arithmetic);
  digest.add_text(chat_template.source());
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
