#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/mapped_file.h"
#include "octet/cli/commands/commands.h"
#include "octet/cli/pair.h"
#include "octet/cli/reply.h"
#include "octet/cli/terminal.h"
#include "octet/cli/version.h"
#include "octet/serve/server.h"
#include "octet/speculation/drafters/no_drafter.h"

namespace octet::cli {
namespace {

std::vector<std::string> api_keys(const ServeArguments& arguments) {
  std::vector<std::string> keys = arguments.api_keys;
  if (!arguments.api_key_file.empty()) {
    std::istringstream lines(read_whole_file(arguments.api_key_file));
    for (std::string line; std::getline(lines, line);) {
      line.erase(line.find_last_not_of(" \t\r") + 1);
      if (!line.empty()) {
        keys.push_back(line);
      }
    }
  }
  for (const std::string& key : keys) {
    if (key.empty()) {
      throw Error(ErrorKind::kInvalidArgument, "an API key is empty; leave it out or give one");
    }
  }
  return keys;
}

std::string model_name(const ServeArguments& arguments) {
  return arguments.name.empty() ? std::filesystem::path(arguments.pair.model).stem().string()
                                : arguments.name;
}

serve::ServedModel served_model(const ServeArguments& arguments, const Pair& pair, int max_drafts) {
  serve::ServedModel model;
  model.name = model_name(arguments);
  model.tokenizer = pair.tokenizer;
  model.chat_template = std::make_shared<const ChatTemplate>(
      load_chat_template(*pair.target_checkpoint, arguments.chat_template)
  );
  model.grammars = std::make_shared<GrammarCompiler>(pair.tokenizer);
  model.sampling = resolve_sampling(arguments.sampling, *pair.target_checkpoint);
  model.seed = arguments.sampling.seed;
  model.vocabulary = pair.target->shape().vocabulary;
  model.context_length = pair.context;
  model.max_tokens = arguments.max_tokens;
  model.max_drafts = max_drafts;
  model.adapt_drafts = arguments.adapt_drafts;
  return model;
}

serve::ServedFacts served_facts(const ServeArguments& arguments, const Pair& pair) {
  serve::ServedFacts facts;
  facts.version = kVersion;
  facts.target = std::filesystem::path(arguments.pair.model).filename().string();
  facts.drafter = std::filesystem::path(arguments.pair.draft_model).filename().string();
  if (facts.drafter.empty()) {
    facts.undrafted_reason = "no drafter given (-md)";
  } else if (arguments.draft_max == 0) {
    facts.undrafted_reason = "turned off (--draft-max 0)";
  }
  facts.weights_bytes = pair.target->memory().weights_bytes;
  facts.drafter_bytes = pair.draft_model != nullptr ? pair.draft_model->memory().weights_bytes : 0;
  facts.scratch_bytes = pair.forecast.scratch_bytes;
  facts.program_bytes = pair.program_bytes;
  facts.tables_bytes = pair.target->memory().tables_bytes;
  facts.tables_in_memory = pair.tables == TablePlace::kMemory;
  facts.memory_limit_bytes = arguments.pair.memory_limit.value_or(0);
  facts.trained_context = pair.target->shape().context_length;
  facts.machine = pair.machine;
  return facts;
}

/// Kept texts may take what the limit of memory leaves, and no more than they were given.
int64_t cache_ceiling(const ServeArguments& arguments, const Pair& pair) {
  const int64_t given = arguments.cache_limit_mib << 20;
  const int64_t room = pair.forecast.room_bytes;
  if (room > 0 && given > room) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "--cache-limit {} is more than the {} that --memory-limit leaves; lower it or leave it "
            "out",
            format_bytes(given),
            format_bytes(room)
        )
    );
  }
  return given > 0 ? given : room;
}

}  // namespace

int serve(const ServeArguments& arguments) {
  const std::vector<std::string> keys = api_keys(arguments);
  PairNeeds needs;
  needs.texts = arguments.parallel;
  needs.cache_ceiling_bytes = arguments.cache_limit_mib << 20;
  needs.forecast = true;
  Pair pair = load_pair(arguments.pair, std::move(needs));
  NoDrafter none;
  Drafter& drafter = arguments.draft_max == 0 ? static_cast<Drafter&>(none) : *pair.drafter;
  const int max_drafts = std::min(arguments.draft_max.value_or(kMaxDrafts), drafter.max_drafts());

  EngineOptions engine = pair.engine_options(arguments.parallel);
  engine.queue_length = arguments.queue_length;
  engine.learn_costs_ms = kWarmUpMs;
  engine.slots = arguments.slots;
  engine.cache_bytes = cache_ceiling(arguments, pair);
  engine.draft_context_bytes = pair.forecast.draft_context_bytes;

  serve::ServerOptions options;
  options.host = arguments.host;
  options.port = static_cast<uint16_t>(arguments.port);
  options.tls_certificate = arguments.tls_certificate;
  options.tls_key = arguments.tls_key;
  options.api_keys = keys;
  options.cors_origins = arguments.cors_origins;
  options.max_body_bytes = arguments.max_body_bytes;
  options.max_connections = arguments.max_connections;
  options.ping_seconds = arguments.ping_seconds;
  options.drain_seconds = arguments.drain_seconds;
  if (!arguments.pinned_system_file.empty()) {
    options.pinned_system = read_whole_file(arguments.pinned_system_file);
  }

  serve::Server server(
      *pair.target,
      drafter,
      served_model(arguments, pair, max_drafts),
      served_facts(arguments, pair),
      engine,
      options
  );
  const bool open = options.host != "127.0.0.1" && options.host != "::1" && keys.empty();
  fmt::print(
      stderr,
      "octet: {} on {}://{}:{}{}\n",
      model_name(arguments),
      options.tls_certificate.empty() ? "http" : "https",
      options.host,
      server.port(),
      open ? " (without --api-key: whoever reaches it may use it)" : ""
  );
  std::fflush(stderr);
  server.run();
  fmt::print(stderr, "octet: stopped\n");
  return 0;
}

}  // namespace octet::cli
