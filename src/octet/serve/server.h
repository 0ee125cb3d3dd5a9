// `octet serve`: the routes of the API over one engine. Checks keys and origins, answers what is
// about the server itself, and hands generation to sessions. Invariants: every route but health
// needs a key where there are keys; no text of a prompt or a reply is ever logged.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "octet/engine/engine.h"
#include "octet/serve/generation_request.h"
#include "octet/serve/http_server.h"

namespace octet::serve {

struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;
  std::string tls_certificate;  // PEM files, both or none
  std::string tls_key;
  std::vector<std::string> api_keys;
  /// Origins that browsers may call from, beside those of this machine.
  std::vector<std::string> cors_origins;
  int64_t max_body_bytes = 4 << 20;
  int64_t max_connections = 256;
  int ping_seconds = 15;
  int drain_seconds = 30;     // after SIGTERM, for replies in the making
  std::string pinned_system;  // a system message to keep warm; empty: none
};

/// What /props and /v1/models tell beside what the engine knows.
struct ServedFacts {
  std::string version;
  std::string target;   // description
  std::string drafter;  // empty: none
  std::string undrafted_reason;
  int64_t weights_bytes = 0;
  int64_t drafter_bytes = 0;
  int64_t scratch_bytes = 0;  // planned
  int64_t program_bytes = 0;
  int64_t tables_bytes = 0;
  bool tables_in_memory = false;
  int64_t memory_limit_bytes = 0;  // 0: none
  int64_t trained_context = 0;
  std::string machine;  // the kernels' name
};

class Server {
 public:
  /// Makes the engine with its counters. The models must outlive the server.
  Server(
      TargetModel& target,
      Drafter& drafter,
      ServedModel model,
      ServedFacts facts,
      EngineOptions engine,
      ServerOptions options
  );
  ~Server();

  uint16_t port() const;
  /// Makes a drafted step for every place, then serves until the second signal, or until what runs
  /// at the first one is answered. Throws Error where there is a drafter and no step drafted.
  void run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace octet::serve
