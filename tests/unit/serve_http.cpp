// The HTTP server alone, with handlers that do as they please and clients that are plain sockets.

#include <algorithm>
#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <netinet/in.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "octet/serve/http_server.h"

namespace octet::serve {
namespace {

using Exchange = std::shared_ptr<HttpExchange>;

HttpReply text_reply(int status, std::string body) {
  HttpReply reply;
  reply.status = status;
  reply.content_type = "text/plain";
  reply.body = std::move(body);
  return reply;
}

/// A server that runs while it lives.
class Running {
 public:
  explicit Running(HttpOptions options) : server_(with_answers(std::move(options))) {
    thread_ = std::thread([this] { server_.run(); });
  }
  ~Running() {
    server_.stop();
    thread_.join();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  uint16_t port() const { return server_.port(); }

 private:
  static HttpOptions with_answers(HttpOptions options) {
    options.port = 0;
    options.refuse = [](const HttpRefusal& refusal) {
      return text_reply(refusal.status, refusal.sentence);
    };
    options.broken = [](const std::string& path, const std::exception& error) {
      return text_reply(500, fmt::format("{}: {}", path, error.what()));
    };
    return options;
  }

  HttpServer server_;
  std::thread thread_;
};

/// One connection. Waits for at most five seconds.
class Client {
 public:
  explicit Client(uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    const timeval patience{5, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  ~Client() { close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(const std::string& text) const {
    EXPECT_EQ(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL), std::ssize(text));
  }
  void get(const std::string& path, const char* version = "1.1") const {
    send(fmt::format("GET {} HTTP/{}\r\nHost: x\r\n\r\n", path, version));
  }

  /// Everything up to `end`, or to the end of the connection.
  std::string read_to(const std::string& end) {
    std::string text;
    char letter = 0;
    while (!text.ends_with(end) && recv(socket_, &letter, 1, 0) == 1) {
      text += letter;
    }
    return text;
  }
  /// At most so many bytes; empty at the end of the connection.
  std::string read_some(size_t most) {
    std::string text(most, '\0');
    const ssize_t count = recv(socket_, text.data(), text.size(), 0);
    text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    return text;
  }
  std::string read_all() {
    std::string text;
    char buffer[4096];  // NOLINT(modernize-avoid-c-arrays): for recv
    for (ssize_t n = 1; n > 0;) {
      n = recv(socket_, buffer, sizeof(buffer), 0);
      text.append(buffer, static_cast<size_t>(std::max<ssize_t>(n, 0)));
    }
    return text;
  }

 private:
  int socket_;
};

/// What handlers leave for later: joined before the server ends.
class Later {
 public:
  template <typename Call>
  void run(Call call) {
    threads_.emplace_back(std::move(call));
  }
  void join() { threads_.clear(); }

 private:
  std::vector<std::jthread> threads_;
};

/// Whether it becomes true within five seconds.
template <typename Condition>
bool soon(Condition condition) {
  for (int i = 0; i < 500 && !condition(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return condition();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ServeHttp, WhatAPostedCallThrowsEndsItsExchangeAlone) {
  Later later;
  std::atomic<int> gone{0};
  HttpOptions options;
  options.handle = [&](const HttpRequest& request, const Exchange& exchange) {
    if (request.path == "/fine") {
      exchange->reply(text_reply(200, "fine"));
      return;
    }
    exchange->on_gone([&] { ++gone; });
    if (request.path == "/stream") {
      exchange->open_stream(text_reply(200, ""));
      exchange->write("data: one\n\n");
    }
    later.run([exchange] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      exchange->post([] { throw std::runtime_error("a bug"); });
    });
  };
  const Running server(std::move(options));
  Client whole(server.port());
  whole.get("/whole");
  const std::string answer = whole.read_to("a bug");
  EXPECT_TRUE(has(answer, "HTTP/1.1 500")) << answer;
  EXPECT_TRUE(has(answer, "/whole: a bug")) << answer;
  whole.get("/fine");  // also on the same connection
  EXPECT_TRUE(has(whole.read_to("fine"), "HTTP/1.1 200"));
  EXPECT_TRUE(soon([&] { return gone == 1; }));

  Client stream(server.port());
  stream.get("/stream");
  const std::string events = stream.read_all();
  EXPECT_TRUE(has(events, "data: one")) << events;
  EXPECT_FALSE(events.ends_with("0\r\n\r\n")) << "a stream that breaks off must not look whole";
  EXPECT_TRUE(soon([&] { return gone == 2; }));
  Client after(server.port());
  after.get("/fine");
  EXPECT_TRUE(has(after.read_to("fine"), "HTTP/1.1 200"));
  later.join();
}

TEST(ServeHttp, SilentStreamsPing) {
  Later later;
  HttpOptions options;
  options.ping_seconds = 1;
  options.handle = [&](const HttpRequest& /*request*/, const Exchange& exchange) {
    exchange->open_stream(text_reply(200, ""));
    later.run([exchange] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      exchange->post([exchange] {
        exchange->write("data: word\n\n");
        exchange->close();
      });
    });
  };
  const Running server(std::move(options));
  Client client(server.port());
  client.get("/");
  const std::string events = client.read_to("0\r\n\r\n");
  const size_t ping = events.find(": ping\n\n");
  EXPECT_NE(ping, std::string::npos) << events;
  EXPECT_LT(ping, events.find("data: word")) << events;
  EXPECT_EQ(events.find(": ping", ping + 1), std::string::npos) << "only while it is silent";
  EXPECT_TRUE(events.ends_with("0\r\n\r\n"));
  later.join();
}

TEST(ServeHttp, WhatASlowReaderLeavesIsBounded) {
  Later later;
  constexpr int64_t kBacklog = 256 * 1024;
  std::atomic<int64_t> written{0};
  std::atomic<bool> refused{false};
  std::atomic<int> gone{0};
  HttpOptions options;
  options.max_backlog_bytes = kBacklog;
  options.handle = [&](const HttpRequest& /*request*/, const Exchange& exchange) {
    exchange->on_gone([&] { ++gone; });
    exchange->open_stream(text_reply(200, ""));
    later.run([&, exchange] {
      for (int i = 0; i < 1000 && !refused; ++i) {
        exchange->post([&, exchange] {
          const std::string piece(64 * 1024, 'x');
          if (exchange->write(piece)) {
            written += std::ssize(piece);
          } else {
            refused = true;
          }
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  };
  const Running server(std::move(options));
  const Client deaf(server.port());
  deaf.get("/");
  EXPECT_TRUE(soon([&] { return refused.load(); }));
  EXPECT_EQ(gone, 1);
  // What the two sockets of this machine hold is taken; the server itself keeps the backlog.
  EXPECT_LT(written, 32 << 20);
  later.join();
}

/// Tells the size of what it is sent.
HttpOptions counting() {
  HttpOptions options;
  options.handle = [](const HttpRequest& request, const Exchange& exchange) {
    exchange->reply(text_reply(200, fmt::format("took {} bytes", request.body.size())));
  };
  return options;
}

TEST(ServeHttp, LimitsAnswerAndTheServerGoesOn) {
  HttpOptions options = counting();
  options.max_header_bytes = 2048;
  options.max_body_bytes = 1000;
  const Running server(std::move(options));
  const auto answer = [&](const std::string& request) {
    Client client(server.port());
    client.send(request);
    return client.read_to("\r\n");
  };
  const auto post = [](int bytes) {
    return fmt::format(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", bytes, std::string(bytes, 'a')
    );
  };
  EXPECT_TRUE(has(answer(post(1000)), " 200 "));
  EXPECT_TRUE(has(answer(post(1001)), " 413 "));
  EXPECT_TRUE(has(answer("GET / HTTP/1.1\r\nA: " + std::string(3000, 'b') + "\r\n\r\n"), " 431 "));
  EXPECT_TRUE(has(answer("what is this\r\n\r\n"), " 400 "));
  EXPECT_TRUE(has(answer(post(1)), " 200 "));
}

// What HEAD is answered is what GET is, without the body, so that the connection can be used again.
TEST(ServeHttp, HeadIsAnsweredWithoutABody) {
  HttpOptions options;
  options.max_body_bytes = 10;
  options.admit = [](const HttpRequest& head) -> std::optional<HttpReply> {
    return head.path == "/closed" ? std::optional(text_reply(401, "no key")) : std::nullopt;
  };
  options.handle = [](const HttpRequest& request, const Exchange& exchange) {
    exchange->reply(text_reply(200, request.method + " was asked"));
  };
  const Running server(std::move(options));
  Client client(server.port());
  for (const char* path : {"/", "/closed"}) {
    client.send(fmt::format("HEAD {} HTTP/1.1\r\nHost: x\r\n\r\n", path));
    client.get(path);
    const std::string head = client.read_to("\r\n\r\n");
    const std::string next = client.read_to("\r\n\r\n");
    EXPECT_EQ(head, next) << "the same head, and nothing between";
    EXPECT_TRUE(has(head, "HTTP/1.1 ")) << head;
    const std::string body = path[1] == 'c' ? "no key" : "GET was asked";
    EXPECT_TRUE(has(head, fmt::format("Content-Length: {}", body.size()))) << head;
    EXPECT_EQ(client.read_to(body), body);
  }
}

// Whatever is answered is counted and dressed, also where the server never saw the whole request.
TEST(ServeHttp, EveryAnswerIsDressed) {
  std::mutex mutex;
  std::vector<std::string> dressed;
  HttpOptions options = counting();
  options.max_header_bytes = 2048;
  options.max_body_bytes = 10;
  options.max_connections = 1;
  options.dress = [&](const HttpRequest& head, HttpReply& reply) {
    const std::lock_guard lock(mutex);
    dressed.push_back(fmt::format("{} {}", reply.status, head.origin));
    reply.headers.emplace_back("X-Dressed", "yes");
  };
  const Running server(std::move(options));
  const std::string origin = "Origin: http://localhost:1\r\n";
  const auto answer = [&](const std::string& request) {
    std::string head = " 503 ";
    for (int i = 0; i < 500 && has(head, " 503 "); ++i) {  // the one before is on its way out
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      Client client(server.port());
      client.send(request);
      head = client.read_to("\r\n\r\n");
    }
    EXPECT_TRUE(has(head, "X-Dressed: yes")) << head;
    return head;
  };
  EXPECT_TRUE(
      has(answer("POST / HTTP/1.1\r\n" + origin + "Content-Length: 11\r\n\r\n01234567890"), " 413 ")
  );
  EXPECT_TRUE(has(
      answer("GET / HTTP/1.1\r\n" + origin + "A: " + std::string(3000, 'b') + "\r\n\r\n"), " 431 "
  ));
  EXPECT_TRUE(has(answer("what is this\r\n\r\n"), " 400 "));
  {
    std::unique_ptr<Client> one;
    EXPECT_TRUE(soon([&] {
      if (one != nullptr) {
        return true;
      }
      one = std::make_unique<Client>(server.port());
      one->get("/");
      if (has(one->read_to("\r\n\r\n"), " 503 ")) {
        one.reset();
      }
      return one != nullptr;
    }));
    Client two(server.port());
    two.get("/");
    const std::string head = two.read_to("\r\n\r\n");
    EXPECT_TRUE(has(head, " 503 ") && has(head, "X-Dressed: yes")) << head;
  }
  const std::lock_guard lock(mutex);
  for (const char* one : {"413 http://localhost:1", "431 http://localhost:1", "400 ", "503 "}) {
    EXPECT_NE(std::ranges::find(dressed, one), dressed.end()) << one;
  }
}

/// An answer of 24 MiB, more than the sockets of this machine hold, whole, as one stream, or as one
/// that goes on.
HttpOptions large_answers(std::atomic<int>& gone) {
  HttpOptions options;
  options.send_seconds = 1;
  options.max_backlog_bytes = 64 << 20;
  options.handle = [&gone](const HttpRequest& request, const Exchange& exchange) {
    exchange->on_gone([&gone] { ++gone; });
    const std::string body(24 << 20, 'x');
    if (request.path == "/whole") {
      exchange->reply(text_reply(200, body));
      return;
    }
    exchange->open_stream(text_reply(200, ""));
    exchange->write(body);
    if (request.path == "/stream") {
      exchange->close();
    }
  };
  return options;
}

// Only silence counts: a reader that takes something every now and then gets all of it.
TEST(ServeHttp, ASlowReaderGetsEverything) {
  std::atomic<int> gone{0};
  const Running server(large_answers(gone));
  for (const char* path : {"/whole", "/stream"}) {
    Client client(server.port());
    client.get(path, path[1] == 'w' ? "1.1" : "1.0");
    int64_t taken = 0;
    for (int i = 0; i < 8; ++i) {  // 2.4 seconds
      taken += std::ssize(client.read_some(1 << 20));
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
    EXPECT_LT(taken, 20 << 20) << "all of it came at once, so nothing was slow";
    while (taken < (24 << 20)) {
      const auto more = std::ssize(client.read_some(1 << 20));
      ASSERT_GT(more, 0) << path << ": cut behind " << taken << " bytes";
      taken += more;
    }
  }
  EXPECT_EQ(gone, 0);
}

// And one that takes nothing for so long is cut.
TEST(ServeHttp, ADeafReaderIsCut) {
  std::atomic<int> gone{0};
  const Running server(large_answers(gone));
  const auto begin = std::chrono::steady_clock::now();
  const Client deaf(server.port());
  deaf.get("/open");
  EXPECT_TRUE(soon([&] { return gone == 1; }));
  const auto waited = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(waited, std::chrono::milliseconds(900));
  EXPECT_LT(waited, std::chrono::milliseconds(4000));
}

TEST(ServeHttp, OneConnectionTooManyIsRefusedUntilOthersGo) {
  HttpOptions options = counting();
  options.max_connections = 2;
  const Running server(std::move(options));
  {
    Client one(server.port());
    Client two(server.port());
    for (Client* client : {&one, &two}) {
      client->get("/");
      EXPECT_TRUE(has(client->read_to("took 0 bytes"), " 200 "));
    }
    Client three(server.port());
    EXPECT_TRUE(has(three.read_to("\r\n"), " 503 "));
  }
  EXPECT_TRUE(soon([&] {
    Client later(server.port());
    later.get("/");
    return has(later.read_to("\r\n"), " 200 ");
  }));
}

TEST(ServeHttp, OlderClientsGetStreamsWithoutChunks) {
  HttpOptions options;
  options.handle = [](const HttpRequest& /*request*/, const Exchange& exchange) {
    exchange->open_stream(text_reply(200, ""));
    exchange->write("data: a\n\n");
    exchange->write("data: b\n\n");
    exchange->close();
  };
  const Running server(std::move(options));
  Client client(server.port());
  client.get("/", "1.0");
  const std::string events = client.read_all();
  EXPECT_TRUE(events.ends_with("\r\n\r\ndata: a\n\ndata: b\n\n")) << events;
}

}  // namespace
}  // namespace octet::serve
