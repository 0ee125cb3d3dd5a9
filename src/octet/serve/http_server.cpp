#include "octet/serve/http_server.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <poll.h>
#include <thread>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"

namespace octet::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::seconds;

using Strand = asio::strand<asio::io_context::executor_type>;
using PlainStream = beast::basic_stream<tcp, Strand>;
using TlsStream = beast::ssl_stream<PlainStream>;
using Request = http::request<http::string_body>;

constexpr auto kCoroutine = asio::as_tuple(asio::use_awaitable);

std::string header(const Request& request, http::field field) {
  return std::string(request[field]);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// The path of a request target, percent escapes decoded; what is no escape stays as it is.
std::string decoded_path(std::string_view target) {
  target = target.substr(0, target.find('?'));
  std::string path;
  for (size_t i = 0; i < target.size(); ++i) {
    const bool escape = target[i] == '%' && i + 2 < target.size() &&
                        hex_digit(target[i + 1]) >= 0 && hex_digit(target[i + 2]) >= 0;
    if (escape) {
      path += static_cast<char>(hex_digit(target[i + 1]) * 16 + hex_digit(target[i + 2]));
      i += 2;
    } else {
      path += target[i];
    }
  }
  return path;
}

/// The connection under a stream, encrypted or not.
template <typename Stream>
PlainStream& lowest(Stream& stream) {
  return beast::get_lowest_layer(stream);
}

/// The peer sends no more, whatever of it is still unread: a TLS client's last words are a record
/// of their own.
bool hung_up(PlainStream& stream) {
  pollfd entry{stream.socket().native_handle(), POLLRDHUP, 0};
  return poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

[[noreturn]] void refuse_file(const char* what, const std::string& path, const error_code& failed) {
  throw Error(
      ErrorKind::kIo,
      fmt::format("cannot use {} as {}: {}; expected is a PEM file", path, what, failed.message())
  );
}

/// Null: no TLS. Throws Error(kIo) naming the file that cannot be used.
std::unique_ptr<asio::ssl::context> tls_context(const HttpOptions& options) {
  if (options.tls_certificate.empty()) {
    return nullptr;
  }
  using Context = asio::ssl::context;
  auto context = std::make_unique<Context>(Context::tls_server);
  context->set_options(
      Context::default_workarounds | Context::no_sslv2 | Context::no_sslv3 | Context::no_tlsv1 |
      Context::no_tlsv1_1
  );
  // Nobody is there to be asked for a passphrase.
  context->set_password_callback([](size_t, Context::password_purpose) { return std::string(); });
  error_code failed;
  context->use_certificate_chain_file(options.tls_certificate, failed);
  if (failed) {
    refuse_file("the TLS certificate", options.tls_certificate, failed);
  }
  context->use_private_key_file(options.tls_key, Context::pem, failed);
  if (failed) {
    refuse_file("the key of the TLS certificate", options.tls_key, failed);
  }
  return context;
}

/// One more of something while it lives.
class Counted {
 public:
  explicit Counted(std::atomic<int64_t>& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<int64_t>& count_;
};

/// How an answer is put into bytes.
struct Framing {
  unsigned version = 11;
  bool keep = false;
  bool head_alone = false;  // HEAD
};

Framing framing_of(const Request& request, bool keep) {
  return {request.version(), keep, request.method() == http::verb::head};
}

/// HEAD asks what GET would be answered.
HttpRequest without_body(const Request& request) {
  HttpRequest own;
  own.method = request.method() == http::verb::head ? "GET" : std::string(request.method_string());
  own.path = decoded_path(request.target());
  own.authorization = header(request, http::field::authorization);
  own.api_key = std::string(request["X-Api-Key"]);
  own.origin = header(request, http::field::origin);
  own.host = header(request, http::field::host);
  own.request_headers = header(request, http::field::access_control_request_headers);
  own.content_type = header(request, http::field::content_type);
  return own;
}

}  // namespace

namespace {

/// The answer in the making: a queue that the connection empties. Everything on one strand.
class Exchange final : public HttpExchange, public std::enable_shared_from_this<Exchange> {
 public:
  using Broken = std::function<HttpReply(const std::exception& error)>;

  Exchange(Strand strand, int64_t max_backlog_bytes, Broken broken)
      : strand_(strand),
        wake_(strand),
        look_again_(strand),
        max_backlog_bytes_(max_backlog_bytes),
        broken_(std::move(broken)) {}

  void reply(HttpReply reply) override {
    if (head_ || over_) {
      return;
    }
    head_ = std::move(reply);
    over_ = true;
    wake_.cancel();
  }

  void open_stream(HttpReply head) override {
    if (head_ || over_) {
      return;
    }
    streaming_ = true;
    head_ = std::move(head);
    wake_.cancel();
  }

  bool write(std::string text) override {
    if (gone_ || over_) {
      return false;
    }
    backlog_bytes_ += static_cast<int64_t>(text.size());
    if (backlog_bytes_ > max_backlog_bytes_) {
      lose();
      return false;
    }
    queue_.push_back(std::move(text));
    wake_.cancel();
    return true;
  }

  void close() override {
    over_ = true;
    wake_.cancel();
  }

  void on_gone(std::function<void()> call) override {
    if (gone_) {
      call();
    } else {
      on_gone_ = std::move(call);
    }
  }

  void post(std::function<void()> call) override {
    asio::post(strand_, [self = shared_from_this(), call = std::move(call)] {
      try {
        call();
      } catch (const std::exception& error) {
        self->break_off(error);
      }
    });
  }

  /// A whole answer where none has begun. A stream that ends without its last chunk tells its
  /// reader that something is missing.
  void break_off(const std::exception& error) {
    if (!head_ && !gone_) {
      reply(broken_(error));
      if (const auto call = std::exchange(on_gone_, nullptr)) {
        call();  // nobody waits for what is in the making
      }
    } else {
      lose();
    }
  }

  /// The client is not there any more.
  void lose() {
    if (gone_ || (over_ && queue_.empty())) {
      return;
    }
    gone_ = true;
    queue_.clear();
    wake_.cancel();
    if (const auto call = std::exchange(on_gone_, nullptr)) {
      call();
    }
  }

  const std::optional<HttpReply>& head() const { return head_; }
  bool streaming() const { return streaming_; }
  bool gone() const { return gone_; }
  bool readable() const { return !queue_.empty(); }
  bool over() const { return over_ && queue_.empty(); }
  asio::steady_timer& wake() { return wake_; }
  asio::steady_timer& look_again() { return look_again_; }

  std::string take() {
    std::string text;
    for (std::string& piece : queue_) {
      text += piece;
    }
    queue_.clear();
    backlog_bytes_ = static_cast<int64_t>(text.size());
    return text;
  }
  void taken() { backlog_bytes_ = 0; }
  void forget_client() { on_gone_ = nullptr; }

  bool watching = false;       // somebody watches for the client's end of the connection
  bool stop_watching = false;  // and is asked not to

 private:
  Strand strand_;
  asio::steady_timer wake_;
  asio::steady_timer look_again_;
  int64_t max_backlog_bytes_;
  Broken broken_;
  std::optional<HttpReply> head_;
  std::deque<std::string> queue_;
  int64_t backlog_bytes_ = 0;
  bool streaming_ = false;
  bool over_ = false;
  bool gone_ = false;
  std::function<void()> on_gone_;
};

http::response<http::string_body> response_of(const HttpReply& reply, unsigned version) {
  http::response<http::string_body> response(
      static_cast<http::status>(reply.status), version, reply.body
  );
  response.set(http::field::content_type, reply.content_type);
  for (const auto& [name, value] : reply.headers) {
    response.set(name, value);
  }
  return response;
}

}  // namespace

/// Coroutines hold no share of it: the context, destroyed last, destroys those that still wait.
class HttpServer::Impl {
 public:
  explicit Impl(HttpOptions options)
      : options_(std::move(options)),
        tls_(tls_context(options_)),
        acceptor_(asio::make_strand(context_)) {
    listen();
  }

  void run() {
    asio::co_spawn(acceptor_.get_executor(), accept(), asio::detached);
    wait_for_signal(1);
    std::vector<std::thread> threads;
    for (int i = 1; i < options_.threads; ++i) {
      threads.emplace_back([this] { context_.run(); });
    }
    context_.run();
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  void drain() {
    draining_ = true;
    asio::post(acceptor_.get_executor(), [this] {
      error_code ignored;
      acceptor_.close(ignored);
    });
  }

  void after(int milliseconds, std::function<void()> call) {
    auto timer = std::make_shared<asio::steady_timer>(context_);
    timer->expires_after(std::chrono::milliseconds(milliseconds));
    timer->async_wait([timer, call = std::move(call)](error_code failed) {
      if (!failed) {
        call();
      }
    });
  }

  void stop() { context_.stop(); }
  uint16_t port() const { return port_; }
  int64_t open_exchanges() const { return open_exchanges_; }
  int64_t connections() const { return connections_; }

 private:
  void listen() {
    error_code failed;
    const auto address = asio::ip::make_address(options_.host, failed);
    if (!failed) {
      const tcp::endpoint endpoint(address, options_.port);
      acceptor_.open(endpoint.protocol(), failed);
      if (!failed) {
        acceptor_.set_option(asio::socket_base::reuse_address(true), failed);
        acceptor_.bind(endpoint, failed);
      }
      if (!failed) {
        acceptor_.listen(asio::socket_base::max_listen_connections, failed);
      }
    }
    if (failed) {
      throw Error(
          ErrorKind::kIo,
          fmt::format(
              "cannot listen on {} port {}: {}; choose another with --host and --port",
              options_.host,
              options_.port,
              failed.message()
          )
      );
    }
    port_ = acceptor_.local_endpoint().port();
  }

  void wait_for_signal(int count) {
    if (!options_.on_signal) {
      return;
    }
    signals_.async_wait([this, count](error_code failed, int /*number*/) {
      if (!failed) {
        options_.on_signal(count);
        wait_for_signal(count + 1);
      }
    });
  }

  asio::awaitable<void> accept() {
    while (acceptor_.is_open()) {
      const Strand strand = asio::make_strand(context_);
      auto [failed, socket] = co_await acceptor_.async_accept(strand, kCoroutine);
      if (failed) {
        if (!acceptor_.is_open()) {
          break;
        }
        asio::steady_timer pause(
            acceptor_.get_executor(), std::chrono::milliseconds(50)
        );  // out of descriptors
        co_await pause.async_wait(kCoroutine);
        continue;
      }
      error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      asio::co_spawn(strand, connection(std::move(socket)), asio::detached);
    }
  }

  asio::awaitable<void> connection(tcp::socket::rebind_executor<Strand>::other socket) {
    PlainStream stream(std::move(socket));
    const Counted counted(connections_);
    if (tls_ != nullptr) {
      TlsStream secure(std::move(stream), *tls_);
      lowest(secure).expires_after(seconds(options_.receive_seconds));
      const auto [failed] =
          co_await secure.async_handshake(asio::ssl::stream_base::server, kCoroutine);
      if (!failed) {
        co_await requests(secure);
        lowest(secure).expires_after(seconds(1));
        co_await secure.async_shutdown(kCoroutine);
      }
      close(lowest(secure));
    } else {
      co_await requests(stream);
      close(stream);
    }
  }

  static void close(PlainStream& stream) {
    error_code ignored;
    stream.socket().shutdown(tcp::socket::shutdown_both, ignored);
  }

  /// All of a connection.
  template <typename Stream>
  asio::awaitable<void> requests(Stream& stream) {
    beast::flat_buffer buffer;
    if (connections_ > options_.max_connections) {
      const std::string sentence = "the server has as many connections as it may; try again";
      // GCC 12 destroys an aggregate twice that is made inside a co_await.
      const HttpReply refusal = options_.refuse({503, sentence, ""});
      const HttpRequest unread;
      co_await send(stream, dressed(unread, refusal), Framing());
      co_return;
    }
    bool more = true;
    while (more && !draining_) {
      more = co_await request(stream, buffer);
    }
  }

  /// One request and its answer; whether another may follow.
  template <typename Stream>
  asio::awaitable<bool> request(Stream& stream, beast::flat_buffer& buffer) {
    http::request_parser<http::string_body> parser;
    parser.header_limit(static_cast<uint32_t>(options_.max_header_bytes));
    parser.body_limit(static_cast<uint64_t>(options_.max_body_bytes));
    lowest(stream).expires_after(seconds(options_.idle_seconds));
    const auto [head_failed, head_bytes] =
        co_await http::async_read_header(stream, buffer, parser, kCoroutine);
    if (head_failed) {
      co_await refuse_unread(stream, head_failed, parser.get());
      co_return false;
    }
    HttpRequest own = without_body(parser.get());
    if (options_.admit) {
      if (const auto refusal = options_.admit(own)) {
        // The body stays unread, so the connection cannot be used again.
        const bool keep = parser.is_done() && parser.get().keep_alive();
        const Framing framing = framing_of(parser.get(), keep);
        const bool sent = co_await send(stream, dressed(own, *refusal), framing);
        if (sent && !keep) {
          co_await linger(stream);
        }
        co_return sent&& keep;
      }
    }
    lowest(stream).expires_after(seconds(options_.receive_seconds));
    if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
      co_await asio::async_write(stream, asio::buffer(go_on), kCoroutine);
    }
    const auto [body_failed, body_bytes] =
        co_await http::async_read(stream, buffer, parser, kCoroutine);
    if (body_failed) {
      co_await refuse_unread(stream, body_failed, parser.get());
      co_return false;
    }
    const Framing framing = framing_of(parser.get(), parser.get().keep_alive());
    const HttpRequest head = own;
    own.body = std::move(parser.get().body());
    const auto exchange = std::make_shared<Exchange>(
        stream.get_executor(),
        options_.max_backlog_bytes,
        [this, path = own.path](const std::exception& error) {
          return options_.broken(path, error);
        }
    );
    const Counted counted(open_exchanges_);
    options_.handle(std::move(own), exchange);
    const bool sent = co_await answer(stream, exchange, head, framing);
    exchange->forget_client();
    co_return sent&& framing.keep;
  }

  template <typename Stream>
  asio::awaitable<void> refuse_unread(Stream& stream, error_code failed, const Request& request) {
    if (failed == http::error::end_of_stream || failed == beast::error::timeout ||
        failed.category() != http::make_error_code(http::error::bad_method).category()) {
      co_return;  // nobody to talk to
    }
    int status = 400;
    std::string sentence = "this is not HTTP/1.1: " + failed.message();
    if (failed == http::error::body_limit) {
      status = 413;
      sentence =
          fmt::format("the body is larger than the {} bytes allowed", options_.max_body_bytes);
    } else if (failed == http::error::header_limit || failed == http::error::buffer_overflow) {
      status = 431;
      sentence = "the headers are larger than allowed";
    }
    const HttpRequest own = without_body(request);  // as far as it was read
    const HttpReply refusal = options_.refuse({status, sentence, own.path});
    const Framing framing{11, false, request.method() == http::verb::head};
    if (co_await send(stream, dressed(own, refusal), framing)) {
      co_await linger(stream);
    }
  }

  /// Reads on for a moment what was refused unread: a connection that is closed with unread bytes
  /// is reset, and its client never sees the answer.
  template <typename Stream>
  asio::awaitable<void> linger(Stream& stream) {
    error_code ignored;
    lowest(stream).socket().shutdown(tcp::socket::shutdown_send, ignored);
    std::vector<char> sink(64 * 1024);
    int64_t taken = 0;
    lowest(stream).expires_after(seconds(2));
    while (taken < 4 * options_.max_body_bytes) {
      const auto [failed, count] = co_await stream.async_read_some(asio::buffer(sink), kCoroutine);
      if (failed) {
        break;
      }
      taken += static_cast<int64_t>(count);
    }
  }

  /// Piece by piece, so that a reader that takes some of it within send_seconds, however little,
  /// gets all of it.
  template <typename Stream>
  asio::awaitable<bool> send(Stream& stream, const HttpReply& reply, Framing framing) {
    http::response<http::string_body> response = response_of(reply, framing.version);
    response.keep_alive(framing.keep);
    response.prepare_payload();
    http::response_serializer<http::string_body> serializer(response);
    serializer.split(framing.head_alone);
    error_code failed;
    size_t bytes = 0;
    while (!failed && !serializer.is_done() && !(framing.head_alone && serializer.is_header_done())
    ) {
      lowest(stream).expires_after(seconds(options_.send_seconds));
      std::tie(failed, bytes) = co_await http::async_write_some(stream, serializer, kCoroutine);
    }
    co_return !failed;
  }

  /// Notices when the client hangs up while it has nothing to read.
  template <typename Stream>
  asio::awaitable<void> watch(Stream& stream, std::shared_ptr<Exchange> exchange) {
    exchange->watching = true;
    const auto [failed] =
        co_await lowest(stream).socket().async_wait(tcp::socket::wait_read, kCoroutine);
    while (!failed && !exchange->stop_watching) {
      if (hung_up(lowest(stream))) {
        exchange->lose();
        break;
      }
      // Something came early, and cannot be read yet.
      exchange->look_again().expires_after(std::chrono::milliseconds(100));
      co_await exchange->look_again().async_wait(kCoroutine);
    }
    exchange->watching = false;
  }

  HttpReply dressed(const HttpRequest& head, HttpReply reply) const {
    if (options_.dress) {
      options_.dress(head, reply);
    }
    return reply;
  }

  template <typename Stream>
  asio::awaitable<bool> answer(
      Stream& stream, std::shared_ptr<Exchange> exchange, const HttpRequest& head, Framing framing
  ) {
    lowest(stream).expires_never();
    asio::co_spawn(stream.get_executor(), watch(stream, exchange), asio::detached);
    bool sent = false;
    while (!exchange->head() && !exchange->gone()) {
      exchange->wake().expires_after(std::chrono::hours(24));
      co_await exchange->wake().async_wait(kCoroutine);
    }
    if (!exchange->gone()) {
      const HttpReply reply = dressed(head, *exchange->head());
      if (exchange->streaming()) {
        sent = co_await pour(stream, exchange, reply, framing.version);
      } else {
        sent = co_await send(stream, reply, framing);
      }
    }
    if (!sent) {
      exchange->lose();
    }
    // The watcher must be off this connection before anybody reads from it.
    exchange->stop_watching = true;
    while (exchange->watching) {
      error_code ignored;
      lowest(stream).socket().cancel(ignored);
      exchange->look_again().cancel();
      asio::steady_timer turn(stream.get_executor(), std::chrono::milliseconds(0));
      co_await turn.async_wait(kCoroutine);
    }
    co_return sent;
  }

  template <typename Stream>
  asio::awaitable<bool> pour(
      Stream& stream, std::shared_ptr<Exchange> exchange, const HttpReply& reply, unsigned version
  ) {
    const bool chunked = version >= 11;
    http::response<http::empty_body> head(static_cast<http::status>(reply.status), version);
    head.set(http::field::content_type, reply.content_type);
    for (const auto& [name, value] : reply.headers) {
      head.set(name, value);
    }
    head.chunked(chunked);
    head.keep_alive(chunked);
    http::response_serializer<http::empty_body> serializer(head);
    lowest(stream).expires_after(seconds(options_.send_seconds));
    const auto [failed, head_bytes] =
        co_await http::async_write_header(stream, serializer, kCoroutine);
    bool alive = !failed;
    while (alive && !exchange->over() && !exchange->gone()) {
      std::string text = exchange->readable() ? exchange->take() : std::string();
      if (text.empty()) {
        exchange->wake().expires_after(seconds(options_.ping_seconds));
        const auto [cancelled] = co_await exchange->wake().async_wait(kCoroutine);
        text = cancelled ? "" : ": ping\n\n";
      }
      if (!text.empty()) {
        const std::string bytes =
            chunked ? fmt::format("{:x}\r\n{}\r\n", text.size(), text) : std::move(text);
        alive = co_await put(stream, bytes);
        exchange->taken();
      }
    }
    if (alive && exchange->over() && chunked) {
      const std::string last_chunk = "0\r\n\r\n";
      alive = co_await put(stream, last_chunk);
    }
    co_return alive && exchange->over() && chunked;
  }

  /// Piece by piece, as send() does.
  template <typename Stream>
  asio::awaitable<bool> put(Stream& stream, const std::string& bytes) {
    error_code failed;
    size_t count = 0;
    for (size_t begin = 0; !failed && begin < bytes.size(); begin += count) {
      lowest(stream).expires_after(seconds(options_.send_seconds));
      std::tie(failed, count) = co_await stream.async_write_some(
          asio::buffer(bytes.data() + begin, bytes.size() - begin), kCoroutine
      );
    }
    lowest(stream).expires_never();
    co_return !failed;
  }

  HttpOptions options_;
  std::unique_ptr<asio::ssl::context> tls_;  // null: none
  // Before the context: coroutines that it destroys count themselves out.
  std::atomic<bool> draining_{false};
  std::atomic<int64_t> connections_{0};
  std::atomic<int64_t> open_exchanges_{0};
  asio::io_context context_;
  asio::basic_socket_acceptor<tcp, Strand> acceptor_;
  asio::signal_set signals_{context_, SIGINT, SIGTERM};
  uint16_t port_ = 0;
};

HttpServer::HttpServer(HttpOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}

HttpServer::~HttpServer() {
  stop();
}

uint16_t HttpServer::port() const {
  return impl_->port();
}

void HttpServer::run() {
  impl_->run();
}

void HttpServer::drain() {
  impl_->drain();
}

int64_t HttpServer::open_exchanges() const {
  return impl_->open_exchanges();
}

int64_t HttpServer::connections() const {
  return impl_->connections();
}

void HttpServer::stop() {
  impl_->stop();
}

void HttpServer::after(int milliseconds, std::function<void()> call) {
  impl_->after(milliseconds, std::move(call));
}

}  // namespace octet::serve
