#include "octet/serve/server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <random>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/error.h"
#include "octet/serve/api_error.h"
#include "octet/serve/messages_request.h"
#include "octet/serve/metrics.h"
#include "octet/serve/page.h"
#include "octet/serve/reply_form.h"
#include "octet/serve/reply_session.h"
#include "octet/serve/responses_request.h"
#include "octet/serve/text_routes.h"

namespace octet::serve {
namespace {

using Exchange = std::shared_ptr<HttpExchange>;

constexpr size_t kSpokenReplies = 64;

HttpReply json_reply(const Json& body, int status = 200) {
  HttpReply reply;
  reply.status = status;
  reply.body = dump(body);
  return reply;
}

/// Does not stop at the first difference: how long it takes says nothing about the key.
bool same_key(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0U : 1U;
  for (size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    difference |=
        static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(other));
  }
  return difference == 0;
}

/// http or https, this machine, any port.
bool is_local(std::string_view origin) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!origin.starts_with(scheme)) {
      continue;
    }
    const std::string_view rest = origin.substr(scheme.size());
    for (const std::string_view host : {"localhost", "127.0.0.1", "[::1]"}) {
      if (rest == host || (rest.starts_with(host) && rest[host.size()] == ':')) {
        return true;
      }
    }
  }
  return false;
}

std::string fresh_id(ReplyForm form) {
  static std::atomic<uint64_t> count{std::random_device()()};
  std::random_device device;
  const uint64_t random = (uint64_t{device()} << 32U) | device();
  return fmt::format("{}{:016x}{:x}", id_prefix(form), random, ++count);
}

/// By the route that it was sent to.
GenerationRequest read_request(
    const std::string& path, const Json& body, const ServedModel& model
) {
  if (path == "/v1/responses") {
    return read_responses_request(body, model);
  }
  if (path == "/v1/messages") {
    return read_messages_request(body, model);
  }
  return path == "/v1/completions" ? read_completion_request(body, model)
                                   : read_chat_request(body, model);
}

/// Waits for the end of a reply of the server's own. Throws what it failed of.
ReplyFinished finished_of(ReplyStream& stream) {
  for (;;) {
    ReplyStreamEvent event = stream.next();
    if (const auto* failed = std::get_if<ReplyFailed>(&event)) {
      throw failed->error;
    }
    if (auto* finished = std::get_if<ReplyFinished>(&event)) {
      return std::move(*finished);
    }
  }
}

int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch()
  )
      .count();
}

}  // namespace

class Server::Impl {
 public:
  Impl(
      TargetModel& target,
      Drafter& drafter,
      ServedModel model,
      ServedFacts facts,
      EngineOptions engine,
      ServerOptions options
  )
      : model_(std::move(model)),
        facts_(std::move(facts)),
        options_(std::move(options)),
        thinks_by_default_(model_.chat_template->thinks_by_default(*model_.tokenizer)),
        metrics_(drafter.max_drafts()),
        http_(http_options()),
        engine_(target, drafter, model_.tokenizer, engine, &metrics_) {
    fill_routes();
  }

  /// Sessions hold ends of connections, which must not outlive the server's context.
  ~Impl() { sessions_.clear(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  uint16_t port() const { return http_.port(); }

  void run() {
    std::exception_ptr broken;
    std::thread warmer([&] {
      try {
        warm_up();
      } catch (...) {
        broken = std::current_exception();
        http_.stop();
      }
    });
    http_.run();
    engine_.cancel_all();
    warmer.join();
    if (broken) {
      std::rethrow_exception(broken);
    }
  }

 private:
  using Handler = void (Impl::*)(const HttpRequest&, const Exchange&);
  struct Route {
    std::string method;
    Handler handler;
  };

  HttpOptions http_options() {
    HttpOptions http;
    http.host = options_.host;
    http.port = options_.port;
    http.tls_certificate = options_.tls_certificate;
    http.tls_key = options_.tls_key;
    http.max_body_bytes = options_.max_body_bytes;
    http.max_connections = options_.max_connections;
    http.ping_seconds = options_.ping_seconds;
    http.admit = [this](const HttpRequest& head) { return admit(head); };
    http.handle = [this](HttpRequest request, Exchange exchange) { handle(request, exchange); };
    http.dress = [this](const HttpRequest& head, HttpReply& reply) { dress(head, reply); };
    http.refuse = [](const HttpRefusal& refusal) {
      const char* type = refusal.status == 503 ? "unavailable_error" : "invalid_request_error";
      return ApiError(refusal.status, type, refusal.sentence).reply(error_form_of(refusal.path));
    };
    http.broken = [](const std::string& path, const std::exception& error) {
      return internal_error(error).reply(error_form_of(path));
    };
    http.on_signal = [this](int count) { on_signal(count); };
    return http;
  }

  void fill_routes() {
    routes_ = {
        {"/", {"GET", &Impl::page}},
        {"/health", {"GET", &Impl::health}},
        {"/ready", {"GET", &Impl::ready}},
        {"/metrics", {"GET", &Impl::metrics}},
        {"/props", {"GET", &Impl::props}},
        {"/v1/models", {"GET", &Impl::models}},
        {"/v1/chat/completions", {"POST", &Impl::generate}},
        {"/v1/completions", {"POST", &Impl::generate}},
        {"/v1/responses", {"POST", &Impl::generate}},
        {"/v1/messages", {"POST", &Impl::generate}},
        {"/v1/messages/count_tokens", {"POST", &Impl::count_tokens}},
        {"/tokenize", {"POST", &Impl::tokenize}},
        {"/detokenize", {"POST", &Impl::detokenize}},
        {"/apply-template", {"POST", &Impl::apply_template}}};
  }

  // Who may.
  bool allowed_origin(const HttpRequest& head) const;
  bool has_key(const HttpRequest& head) const;
  std::optional<HttpReply> admit(const HttpRequest& head) const;
  void dress(const HttpRequest& head, HttpReply& reply);

  // What is asked.
  void handle(const HttpRequest& request, const Exchange& exchange);
  void dispatch(const HttpRequest& request, const Exchange& exchange);
  void page(const HttpRequest& request, const Exchange& exchange);
  void health(const HttpRequest& request, const Exchange& exchange);
  void ready(const HttpRequest& request, const Exchange& exchange);
  void metrics(const HttpRequest& request, const Exchange& exchange);
  void props(const HttpRequest& request, const Exchange& exchange);
  void models(const HttpRequest& request, const Exchange& exchange);
  void generate(const HttpRequest& request, const Exchange& exchange);
  void count_tokens(const HttpRequest& request, const Exchange& exchange) {
    exchange->reply(json_reply(count_message_tokens(parse_body(request.body), model_)));
  }
  void tokenize(const HttpRequest& request, const Exchange& exchange) {
    exchange->reply(json_reply(tokenize_text(parse_body(request.body), model_)));
  }
  void detokenize(const HttpRequest& request, const Exchange& exchange) {
    exchange->reply(json_reply(detokenize_text(parse_body(request.body), model_)));
  }
  void apply_template(const HttpRequest& request, const Exchange& exchange) {
    exchange->reply(json_reply(render_prompt(parse_body(request.body), model_)));
  }
  /// POST /v1/requests/ID/cancel, /end_thinking or /barge_in; false: another path.
  bool control(const HttpRequest& request, const Exchange& exchange);
  struct Interruption {
    std::string id;
    Json body;
    Exchange exchange;
  };
  void barge_in(Interruption wanted, const std::shared_ptr<ReplySession>& session);
  HttpReply cut_reply(
      const std::string& id, const std::shared_ptr<const SpokenReply>& spoken, int64_t heard
  );
  void end_session(const std::string& id);
  Json model_object() const;

  // Its life.
  void warm_up();
  void on_signal(int count);
  void await_rest(std::chrono::steady_clock::time_point deadline);

  ServedModel model_;
  ServedFacts facts_;
  ServerOptions options_;
  bool thinks_by_default_;
  Metrics metrics_;
  std::map<std::string, Route, std::less<>> routes_;
  int64_t created_ = seconds_now();
  std::atomic<bool> warming_{true};
  std::atomic<bool> draining_{false};
  std::mutex mutex_;  // of the sessions
  std::map<std::string, std::shared_ptr<ReplySession>> sessions_;
  std::map<std::string, std::shared_ptr<const SpokenReply>> spoken_;  // of the latest that ended
  std::deque<std::string> spoken_order_;                              // the oldest first
  HttpServer http_;
  Engine engine_;  // last: its worker uses the others
};

/// Pages of this machine, those that the owner named, and where there are keys the server's own:
/// without one, any page whose name somebody points here would be that.
bool Server::Impl::allowed_origin(const HttpRequest& head) const {
  const bool own = head.origin == "http://" + head.host || head.origin == "https://" + head.host;
  return is_local(head.origin) || (own && !options_.api_keys.empty()) ||
         std::ranges::find(options_.cors_origins, head.origin) != options_.cors_origins.end();
}

bool Server::Impl::has_key(const HttpRequest& head) const {
  std::string_view given = head.api_key;
  const std::string_view authorization = head.authorization;
  if (authorization.size() > 7 &&
      (authorization.starts_with("Bearer ") || authorization.starts_with("bearer "))) {
    given = authorization.substr(7);
  }
  bool found = false;
  for (const std::string& key : options_.api_keys) {
    found = same_key(key, given) || found;
  }
  return found || options_.api_keys.empty();
}

std::optional<HttpReply> Server::Impl::admit(const HttpRequest& head) const {
  if (!head.origin.empty() && !allowed_origin(head)) {
    return ApiError(
               403,
               "permission_error",
               fmt::format("pages of {} may not use this server (--cors-origin)", head.origin)
    )
        .reply(error_form_of(head.path));
  }
  if (head.method == "OPTIONS") {
    HttpReply reply;
    reply.status = 204;
    return reply;
  }
  if (head.path != "/health" && head.path != "/" && !has_key(head)) {
    return ApiError(401, "authentication_error", "this server wants one of its API keys")
        .with_code("invalid_api_key")
        .reply(error_form_of(head.path));
  }
  return std::nullopt;
}

void Server::Impl::dress(const HttpRequest& head, HttpReply& reply) {
  metrics_.on_response(reply.status);
  if (head.origin.empty() || !allowed_origin(head)) {
    return;
  }
  reply.headers.emplace_back("Access-Control-Allow-Origin", head.origin);
  reply.headers.emplace_back("Vary", "Origin");
  if (head.method == "OPTIONS") {
    reply.headers.emplace_back("Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS");
    // Client libraries send headers of their own, which the server does not read.
    if (!head.request_headers.empty()) {
      reply.headers.emplace_back("Access-Control-Allow-Headers", head.request_headers);
    }
    reply.headers.emplace_back("Access-Control-Max-Age", "600");
  }
}

void Server::Impl::handle(const HttpRequest& request, const Exchange& exchange) {
  const ErrorForm form = error_form_of(request.path);
  try {
    dispatch(request, exchange);
  } catch (const ApiError& error) {
    exchange->reply(error.reply(form));
  } catch (const Error& error) {
    exchange->reply(api_error_of(error).reply(form));
  } catch (const std::exception& error) {
    exchange->reply(internal_error(error).reply(form));
  }
}

void Server::Impl::dispatch(const HttpRequest& request, const Exchange& exchange) {
  if (control(request, exchange)) {
    return;
  }
  if (request.method == "GET" && request.path == "/v1/models/" + model_.name) {
    exchange->reply(json_reply(model_object()));
    return;
  }
  const auto route = routes_.find(request.path);
  if (route == routes_.end()) {
    throw ApiError(
        404,
        "not_found_error",
        fmt::format("there is nothing at {} {}", request.method, request.path)
    );
  }
  if (route->second.method != request.method) {
    HttpReply reply = ApiError(
                          405,
                          "invalid_request_error",
                          fmt::format("{} takes {}", request.path, route->second.method)
    )
                          .reply(error_form_of(request.path));
    reply.headers.emplace_back("Allow", route->second.method);
    exchange->reply(std::move(reply));
    return;
  }
  (this->*route->second.handler)(request, exchange);
}

bool Server::Impl::control(const HttpRequest& request, const Exchange& exchange) {
  constexpr std::string_view kPrefix = "/v1/requests/";
  const std::string_view path = request.path;
  const size_t slash = path.rfind('/');
  if (!path.starts_with(kPrefix) || slash < kPrefix.size()) {
    return false;
  }
  const std::string id(path.substr(kPrefix.size(), slash - kPrefix.size()));
  const std::string_view action = path.substr(slash + 1);
  if (request.method != "POST" ||
      (action != "cancel" && action != "end_thinking" && action != "barge_in")) {
    return false;
  }
  std::shared_ptr<ReplySession> session;
  {
    const std::lock_guard lock(mutex_);
    const auto place = sessions_.find(id);
    session = place != sessions_.end() ? place->second : nullptr;
  }
  if (action == "barge_in") {
    barge_in({id, parse_body(request.body), exchange}, session);
    return true;
  }
  if (session == nullptr) {
    throw ApiError(
        404, "not_found_error", fmt::format("no reply with the id '{}' is in the making", id)
    );
  }
  if (action == "cancel") {
    session->cancel();
  } else {
    session->end_thinking();
  }
  exchange->reply(json_reply({{"id", id}, {"status", action}}));
  return true;
}

void Server::Impl::barge_in(Interruption wanted, const std::shared_ptr<ReplySession>& session) {
  RequestFields fields(wanted.body);
  const auto heard = fields.integer("spoken_characters", 0, int64_t{1} << 40);
  fields.refuse_unread(true);
  if (!heard) {
    throw ApiError("spoken_characters", "barge_in expects spoken_characters, how many were heard");
  }
  if (session != nullptr) {
    session->barge_in([this, wanted, heard](const std::shared_ptr<const SpokenReply>& spoken) {
      // Called on the strand of the reply, which must not suffer when this fails.
      wanted.exchange->post([this, wanted, spoken, heard] {
        wanted.exchange->reply(cut_reply(wanted.id, spoken, *heard));
      });
    });
    return;
  }
  std::shared_ptr<const SpokenReply> spoken;
  {
    const std::lock_guard lock(mutex_);
    const auto place = spoken_.find(wanted.id);
    spoken = place != spoken_.end() ? place->second : nullptr;
  }
  if (spoken == nullptr) {
    throw ApiError(
        404, "not_found_error", fmt::format("no reply with the id '{}' is known", wanted.id)
    );
  }
  wanted.exchange->reply(cut_reply(wanted.id, spoken, *heard));
}

/// What was heard is what was said: the rest is forgotten, and a history with just this finds it.
HttpReply Server::Impl::cut_reply(
    const std::string& id, const std::shared_ptr<const SpokenReply>& spoken, int64_t heard
) {
  if (spoken == nullptr) {
    return ApiError("n", "barge_in is for replies of one choice").reply(ErrorForm::kOpenAI);
  }
  const SpokenReply::Kept kept = spoken->up_to(heard, *model_.tokenizer);
  engine_.cut_text(spoken->text(), kept.tokens);
  return json_reply(
      {{"id", id},
       {"status", "barge_in"},
       {"text", kept.text},
       {"characters", kept.characters},
       {"tokens", kept.tokens}}
  );
}

/// A listener may interrupt when all has long been written, so what was said is known for a while.
void Server::Impl::end_session(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto session = sessions_.find(id);
  if (session == sessions_.end()) {
    return;
  }
  std::erase(spoken_order_, id);
  spoken_.erase(id);
  if (auto spoken = session->second->spoken()) {
    spoken_[id] = std::move(spoken);
    spoken_order_.push_back(id);
  }
  if (spoken_order_.size() > kSpokenReplies) {
    spoken_.erase(spoken_order_.front());
    spoken_order_.pop_front();
  }
  sessions_.erase(session);
}

/// Open without a key, or nobody could type one in: the page is the same for everybody.
void Server::Impl::page(const HttpRequest& /*request*/, const Exchange& exchange) {
  if (built_in_page().empty()) {
    throw ApiError(
        404, "not_found_error", "this octet was built without its page: make webui, then make build"
    );
  }
  HttpReply reply;
  reply.content_type = "text/html; charset=utf-8";
  reply.headers = {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src "
       "'self'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"}};
  reply.body = built_in_page();
  exchange->reply(std::move(reply));
}

void Server::Impl::health(const HttpRequest& /*request*/, const Exchange& exchange) {
  exchange->reply(json_reply({{"status", "ok"}}));
}

void Server::Impl::ready(const HttpRequest& /*request*/, const Exchange& exchange) {
  if (warming_ || draining_) {
    throw ApiError(
        503, "unavailable_error", draining_ ? "the server is going down" : "the model warms up"
    );
  }
  exchange->reply(json_reply({{"status", "ready"}, {"drafted", engine_.status().drafted}}));
}

void Server::Impl::metrics(const HttpRequest& /*request*/, const Exchange& exchange) {
  HttpReply reply;
  reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
  reply.body = metrics_.text(engine_.status(), http_.connections());
  exchange->reply(std::move(reply));
}

Json Server::Impl::model_object() const {
  return {
      {"id", model_.name},
      {"object", "model"},
      {"created", created_},
      {"owned_by", "octet"},
      {"max_model_len", model_.context_length},
      {"meta",
       {{"n_ctx", model_.context_length},
        {"n_ctx_train", facts_.trained_context},
        {"n_vocab", model_.vocabulary},
        {"size", facts_.weights_bytes}}}};
}

void Server::Impl::models(const HttpRequest& /*request*/, const Exchange& exchange) {
  Json list = {{"object", "list"}};
  list["data"] = Json::array();
  list["data"].push_back(model_object());
  exchange->reply(json_reply(list));
}

void Server::Impl::props(const HttpRequest& /*request*/, const Exchange& exchange) {
  const EngineStatus status = engine_.status();
  const SamplingParams& sampling = model_.sampling;
  const double break_even = status.break_even_length();
  Json body = {
      {"schema", 1},
      {"build_info", facts_.version},
      {"model", model_.name},
      {"target", facts_.target},
      {"machine", facts_.machine},
      {"n_ctx", model_.context_length},
      {"total_slots", engine_.options().parallel},
      {"queue_length", engine_.options().queue_length},
      {"chat_template", model_.chat_template->source()},
      {"chat_template_origin", model_.chat_template->origin()},
      {"thinking_by_default", thinks_by_default_},
      {"default_generation_settings",
       {{"temperature", sampling.temperature},
        {"top_k", sampling.top_k},
        {"top_p", sampling.top_p},
        {"min_p", sampling.min_p},
        {"max_tokens", model_.max_tokens}}},
      {"speculative",
       {{"enabled", facts_.undrafted_reason.empty()},
        {"reason", facts_.undrafted_reason.empty() ? Json() : Json(facts_.undrafted_reason)},
        {"drafter", facts_.drafter.empty() ? Json() : Json(facts_.drafter)},
        {"max_length", model_.max_drafts},
        {"plain_step_ms", status.plain_step_ms},
        {"block_step_ms", status.block_step_ms},
        {"draft_ms", status.draft_ms},
        {"break_even_acceptance_length", break_even > 0.0 ? Json(break_even) : Json()}}},
      {"cache",
       {{"bytes", status.cache_bytes},
        {"bytes_limit", status.cache_bytes_limit},
        {"texts", status.slots_idle},
        {"pinned", status.slots_pinned},
        {"evicted", status.evictions}}},
      {"memory",
       {{"weights_bytes", facts_.weights_bytes},
        {"drafter_bytes", facts_.drafter_bytes},
        {"kv_bytes", status.cache_bytes - status.draft_context_bytes},
        {"draft_context_bytes", status.draft_context_bytes},
        {"scratch_bytes", facts_.scratch_bytes},
        {"program_bytes", facts_.program_bytes},
        {"tables_bytes", facts_.tables_bytes},
        {"tables_in_memory", facts_.tables_in_memory},
        {"limit_bytes", facts_.memory_limit_bytes > 0 ? Json(facts_.memory_limit_bytes) : Json()}}},
      {"requests", {{"running", status.running}, {"waiting", status.waiting}}},
      {"limits",
       {{"body_bytes", options_.max_body_bytes}, {"connections", options_.max_connections}}}};
  exchange->reply(json_reply(body));
}

void Server::Impl::generate(const HttpRequest& request, const Exchange& exchange) {
  if (draining_) {
    throw ApiError(503, "unavailable_error", "the server is going down");
  }
  const Json body = parse_body(request.body);
  GenerationRequest wanted = read_request(request.path, body, model_);
  ReplyHead head;
  head.id = wanted.request_id.empty() ? fresh_id(wanted.form) : wanted.request_id;
  head.created = seconds_now();
  head.model = model_.name;
  const std::string id = head.id;
  const auto session = std::make_shared<ReplySession>(
      model_,
      std::move(wanted),
      std::move(head),
      exchange,
      [this](const std::string& ended) { end_session(ended); }
  );
  {
    const std::lock_guard lock(mutex_);
    if (!sessions_.emplace(id, session).second) {
      throw ApiError("request_id", fmt::format("a reply with the id '{}' is in the making", id));
    }
  }
  try {
    session->start(engine_);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    sessions_.erase(id);
    throw;
  }
}

/// A few tokens on every slot, with fixed drafts: what is first is slow, and what fails, fails
/// here.
void Server::Impl::warm_up() {
  std::vector<std::shared_ptr<ReplyStream>> streams;
  const auto warm = [&](EngineRequest request) {
    request.warm_up = true;
    if (auto stream = engine_.submit(std::move(request))) {  // null: going down already
      streams.push_back(std::move(stream));
    }
  };
  EngineRequest first;
  first.generate.prompt = model_.tokenizer->with_bos(
      model_.tokenizer->encode("The first words warm the machine.", SpecialTokens::kPlain)
  );
  for (int i = 0; i < engine_.options().parallel; ++i) {
    EngineRequest request;
    request.generate.prompt = first.generate.prompt;
    request.generate.max_tokens = 12;
    request.generate.stop_tokens = std::vector<TokenId>{};
    request.generate.adapt_drafts = false;
    warm(std::move(request));
  }
  if (!options_.pinned_system.empty()) {
    Json messages = Json::array();
    messages.push_back({{"role", "system"}, {"content", options_.pinned_system}});
    ChatInput input;
    input.messages = &messages;
    input.open_reply = false;
    EngineRequest pin;
    pin.generate.prompt = model_.chat_template->encode(*model_.tokenizer, input);
    pin.generate.max_tokens = 1;
    pin.pin_prompt = true;
    warm(std::move(pin));
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    const ReplyFinished finished = finished_of(*streams[i]);
    if (draining_ || finished.result.finish == FinishReason::kCancelled) {
      return;
    }
    const bool place = static_cast<int>(i) < engine_.options().parallel;
    if (place && engine_.max_drafts() > 0 && finished.result.acceptance.drafted == 0) {
      throw Error(
          ErrorKind::kUnsupported,
          "no draft was made while warming up; --draft-max 0 serves without"
      );
    }
  }
  warming_ = false;
}

void Server::Impl::on_signal(int count) {
  if (count > 1) {
    http_.stop();
    return;
  }
  draining_ = true;
  http_.drain();
  engine_.drain();
  await_rest(std::chrono::steady_clock::now() + std::chrono::seconds(options_.drain_seconds));
}

void Server::Impl::await_rest(std::chrono::steady_clock::time_point deadline) {
  if (engine_.idle() && http_.open_exchanges() == 0) {
    http_.stop();
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now > deadline + std::chrono::seconds(2)) {
    http_.stop();
    return;
  }
  if (now > deadline) {
    engine_.cancel_all();
  }
  http_.after(20, [this, deadline] { await_rest(deadline); });
}

Server::Server(
    TargetModel& target,
    Drafter& drafter,
    ServedModel model,
    ServedFacts facts,
    EngineOptions engine,
    ServerOptions options
)
    : impl_(std::make_unique<Impl>(
          target, drafter, std::move(model), std::move(facts), engine, std::move(options)
      )) {}

Server::~Server() = default;

uint16_t Server::port() const {
  return impl_->port();
}

void Server::run() {
  impl_->run();
}

}  // namespace octet::serve
