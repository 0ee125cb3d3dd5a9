// Flags that several commands share, and the flags of `serve`, `eval` and `generate-data`. For the
// sources of flags alone: they know CLI11. Invariant: a flag of one name means the same in every
// command, except that what --limit counts is what the command reads: prompts, or recorded replies.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <CLI/CLI.hpp>

#include "octet/cli/options.h"

namespace octet::cli {

inline constexpr const char* kGroupModels = "Models";
inline constexpr const char* kGroupMachine = "Machine";
inline constexpr const char* kGroupPrompt = "Prompt";
inline constexpr const char* kGroupSampling =
    "Sampling (what is not set comes from the model file, else greedy)";
inline constexpr const char* kGroupDrafting = "Drafting (changes speed, never text)";
inline constexpr const char* kGroupOutput = "Output";
inline constexpr const char* kGroupDraftHead = "Draft head";

template <typename T>
void add_optional(
    CLI::App& app,
    const std::string& flags,
    std::optional<T>& target,
    const std::string& text,
    const CLI::Validator& range,
    const char* group
) {
  app.add_option_function<T>(
         flags, [&target](const T& value) { target = value; }, text
  )
      ->check(range)
      ->type_name(std::is_floating_point_v<T> ? "X" : "N")
      ->group(group);
}

void add_pair(CLI::App& app, PairOptions& pair);
/// --chat-template.
void add_chat_template(CLI::App& app, std::string& choice, const char* group);
void add_draft_head_choice(CLI::App& app, std::string& choice);
void add_kv_type(CLI::App& app, KvType& type);
/// -t and --cpus; the latter takes effect while the flags are read: nothing has started threads by
/// then.
void add_threads(CLI::App& app, int& threads, const char* group);
void add_isa(CLI::App& app, std::string& isa, const char* group);
/// --activation, in the group `group`.
void add_activation(CLI::App& app, ActivationMode& mode, const char* group);
void add_sampling(CLI::App& app, SamplingOptions& sampling);
/// --draft-policy adaptive|fixed.
void add_draft_policy(CLI::App& app, bool& adapt_drafts);
/// --limit and -n; the present value of `max_tokens` is its default.
void add_reply_limits(CLI::App& app, int64_t& limit, int64_t& max_tokens);
/// --prompts, --limit and -n: the replies that a command asks for. `text` says what prompts are
/// for.
void add_prompts(
    CLI::App& app, std::string& file, int64_t& limit, int64_t& max_tokens, const std::string& text
);

void add_eval(CLI::App& app, EvalArguments& eval);
void add_eval_replay(CLI::App& app, EvalReplayArguments& replay);
void add_generate_data(CLI::App& app, GenerateDataArguments& data);
void add_serve(CLI::App& app, ServeArguments& serve);
/// `serve --config FILE`: what the file says joins the arguments, where those do not say it
/// themselves, under whatever name. `app` is that command, its flags added. Throws Error for a file
/// that cannot be read.
void add_config_file(const CLI::App& app, std::vector<std::string>& list);

}  // namespace octet::cli
