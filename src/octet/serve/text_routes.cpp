#include "octet/serve/text_routes.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/error.h"
#include "octet/base/utf8.h"
#include "octet/serve/api_error.h"

namespace octet::serve {
namespace {

constexpr size_t kMostPieces = 65'536;       // each is an object of some hundred bytes
constexpr size_t kMostTextBytes = 64 << 20;  // the body's limit is the one that counts

/// Text where the bytes are text, else the bytes: tokens may hold half characters.
Json piece_of(std::string_view bytes) {
  if (is_valid_utf8(bytes)) {
    return std::string(bytes);
  }
  Json list = Json::array();
  for (const char c : bytes) {
    list.push_back(static_cast<int>(static_cast<unsigned char>(c)));
  }
  return list;
}

}  // namespace

Json tokenize_text(const Json& body, const ServedModel& model) {
  RequestFields fields(body);
  const bool strict = fields.boolean("strict").value_or(false);
  fields.text("model", 512);
  std::vector<TokenId> tokens;
  if (fields.find("messages") != nullptr) {
    tokens = read_chat_prompt(fields, model).tokens;
  } else {
    auto text = fields.text("content", kMostTextBytes);
    text = text ? text : fields.text("prompt", kMostTextBytes);
    if (!text) {
      throw ApiError("content", "tokenize expects content (or prompt), or messages");
    }
    const bool parse = fields.boolean("parse_special").value_or(true);
    tokens = model.tokenizer->encode(*text, parse ? SpecialTokens::kParse : SpecialTokens::kPlain);
    const auto special = fields.boolean("add_special");
    if (special ? *special : fields.boolean("add_special_tokens").value_or(false)) {
      tokens = model.tokenizer->with_bos(std::move(tokens));
    }
  }
  const bool pieces = fields.boolean("with_pieces").value_or(false);
  fields.refuse_unread(strict);
  if (pieces && tokens.size() > kMostPieces) {
    throw ApiError(
        "with_pieces",
        fmt::format(
            "with_pieces tells at most {} tokens, and the text has {}", kMostPieces, tokens.size()
        )
    );
  }
  Json list = Json::array();
  for (const TokenId token : tokens) {
    if (pieces) {
      list.push_back({{"id", token}, {"piece", piece_of(model.tokenizer->bytes(token))}});
    } else {
      list.push_back(token);
    }
  }
  return {
      {"tokens", std::move(list)},
      {"count", tokens.size()},
      {"max_model_len", model.context_length}};
}

Json detokenize_text(const Json& body, const ServedModel& model) {
  RequestFields fields(body);
  const bool strict = fields.boolean("strict").value_or(false);
  fields.text("model", 512);
  const Json* list = fields.find("tokens");
  fields.refuse_unread(strict);
  if (list == nullptr || !list->is_array()) {
    throw ApiError("tokens", "detokenize expects tokens, an array of token ids");
  }
  std::string text;
  for (const Json& id : *list) {
    const bool known = id.is_number_integer() && id.get<int64_t>() >= 0 &&
                       id.get<int64_t>() < model.tokenizer->vocabulary_size();
    if (!known) {
      throw ApiError(
          "tokens",
          fmt::format(
              "tokens holds {}, expected ids in [0, {})",
              id.dump(),
              model.tokenizer->vocabulary_size()
          )
      );
    }
    text += model.tokenizer->bytes(static_cast<TokenId>(id.get<int64_t>()));
  }
  return {{"content", text}, {"prompt", text}};
}

Json render_prompt(const Json& body, const ServedModel& model) {
  RequestFields fields(body);
  const bool strict = fields.boolean("strict").value_or(false);
  fields.text("model", 512);
  const ChatPrompt prompt = read_chat_prompt(fields, model);
  fields.refuse_unread(strict);
  return {
      {"prompt", prompt.text},
      {"tokens", prompt.tokens.size()},
      {"thinking",
       prompt.thinking.value_or(model.chat_template->thinks_by_default(*model.tokenizer))},
      {"thinking_token_budget", prompt.thinking_budget ? Json(*prompt.thinking_budget) : Json()}};
}

}  // namespace octet::serve
