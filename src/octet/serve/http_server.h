// HTTP/1.1 as the API needs it: requests in, whole replies or streams of events out, with every
// limit that a public port needs. The only place that knows Boost. Knows nothing of routes, keys or
// JSON. Invariants: a handler runs on the exchange's own strand, one call at a time; what a slow
// reader has not taken is bounded; a client that goes away is noticed while nothing is being
// written.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace octet::serve {

struct HttpRequest {
  std::string method;  // "GET", also where only the head of its answer is wanted; ...
  std::string path;    // without the query, decoded
  std::string body;
  std::string authorization;  // headers, empty when absent
  std::string api_key;        // X-Api-Key
  std::string origin;
  std::string host;
  std::string request_headers;  // Access-Control-Request-Headers
  std::string content_type;
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

/// Of a request that could not be read.
struct HttpRefusal {
  int status = 400;
  std::string sentence;
  std::string path;  // empty: not even that was read
};

/// One request and its answer. All calls but post() belong to its strand.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  /// The whole answer, once.
  virtual void reply(HttpReply reply) = 0;
  /// The head of a stream of server-sent events; then write() and at last close().
  virtual void open_stream(HttpReply head) = 0;
  /// False: nobody reads any more, or too slowly; on_gone has been called.
  virtual bool write(std::string text) = 0;
  virtual void close() = 0;
  /// Called once when the client goes away before the answer is complete.
  virtual void on_gone(std::function<void()> call) = 0;
  /// From any thread: runs `call` on the strand, unless the server has ended. What it throws ends
  /// this exchange alone: with the answer of HttpOptions::broken, or in the middle of its stream.
  virtual void post(std::function<void()> call) = 0;
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;  // 0: any free one
  /// PEM files; with them everything is TLS 1.2 or newer. Both or none.
  std::string tls_certificate;
  std::string tls_key;
  int threads = 2;
  int64_t max_connections = 256;
  int64_t max_header_bytes = int64_t{16} * 1024;
  int64_t max_body_bytes = 4 << 20;
  int64_t max_backlog_bytes = 1 << 20;  // of one stream, not taken by its reader
  int idle_seconds = 75;                // between requests of a connection
  int receive_seconds = 30;             // for a whole request
  int send_seconds = 30;                // in which a reader must take something of an answer
  int ping_seconds = 15;                // of silence in a stream before a comment is sent

  /// Looks at the head before the body is read; an answer refuses the request.
  std::function<std::optional<HttpReply>(const HttpRequest& head)> admit;
  std::function<void(HttpRequest request, std::shared_ptr<HttpExchange> exchange)> handle;
  /// What a request that never reaches handle() is answered.
  std::function<HttpReply(const HttpRefusal& refusal)> refuse;
  /// What is answered when a call of HttpExchange::post throws.
  std::function<HttpReply(const std::string& path, const std::exception& error)> broken;
  /// Called with every answer before it is sent, and the head of what it answers, as far as that
  /// was read.
  std::function<void(const HttpRequest& head, HttpReply& reply)> dress;
  /// SIGINT or SIGTERM, counted from 1.
  std::function<void(int count)> on_signal;
};

class HttpServer {
 public:
  /// Listens. Throws Error(kIo) when the address cannot be had or the TLS files cannot be used.
  explicit HttpServer(HttpOptions options);
  ~HttpServer();

  uint16_t port() const;
  /// Serves until stop(). Blocks.
  void run();
  /// From any thread: no new connections, no further request on the old ones; returns at once.
  void drain();
  /// Answers that are not finished.
  int64_t open_exchanges() const;
  int64_t connections() const;
  /// From any thread: ends run().
  void stop();
  /// From any thread: calls it on some thread of the server after so many milliseconds.
  void after(int milliseconds, std::function<void()> call);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace octet::serve
