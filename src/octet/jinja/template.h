// A compiled template and its rendering: Jinja2 as the transformers library sets it up for chat
// templates (trim_blocks, lstrip_blocks, loop controls, generation blocks, an immutable sandbox).
// Not for messages and prompts (octet/chat). Invariants: a rendering depends on the template, the
// variables and the clock alone; it ends within its limits; every byte of the result knows whether
// the template or the caller wrote it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "octet/jinja/value.h"

namespace octet::jinja {

struct Program;

/// What goes beyond is an Error(kResourceExhausted).
struct RenderLimits {
  int64_t max_steps = 5'000'000;               // nodes evaluated, items and blocks of text touched
  int64_t max_text_bytes = int64_t{64} << 20;  // of any one text
  int max_depth = 1000;                        // nested evaluations
};

/// Seconds since the epoch, for strftime_now.
using Clock = std::function<int64_t()>;

class Template {
 public:
  /// Throws Error: kMalformed with line and column, kUnsupported naming a statement,
  /// kResourceExhausted for one nested too deeply.
  explicit Template(std::string_view source);
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  /// Throws Error with line and column: kInvalidArgument for what fails and what the template
  /// refuses (raise_exception), kUnsupported naming a filter, test or method.
  Text render(std::vector<Entry> variables, const RenderLimits& limits, Clock clock = {}) const;

 private:
  std::unique_ptr<const Program> program_;
};

}  // namespace octet::jinja
