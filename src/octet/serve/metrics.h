// Counts what the engine and the server do for clients, for Prometheus. The only place that knows
// prometheus-cpp. Names are those that tools for other servers look for, under the prefix "octet:".
// Invariant: every metric exists, at zero, from the start, so that rates have a beginning.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "octet/engine/engine.h"

namespace octet::serve {

class Metrics : public EngineObserver {
 public:
  /// max_drafts: rows of the per-position counters.
  explicit Metrics(int max_drafts);
  ~Metrics() override;

  void on_step(const EngineStep& step) override;
  void on_reply(const ReplyReport& report) override;
  void on_response(int status);

  /// The text format. `status` is read for the gauges.
  std::string text(const EngineStatus& status, int64_t connections);

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace octet::serve
