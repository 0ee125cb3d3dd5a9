#include "octet/jinja/template.h"

#include <ctime>

#include "octet/jinja/interpreter.h"
#include "octet/jinja/parser.h"

namespace octet::jinja {

Template::Template(std::string_view source)
    : program_(std::make_unique<const Program>(parse(source))) {}
Template::~Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;

Text Template::render(std::vector<Entry> variables, const RenderLimits& limits, Clock clock) const {
  if (!clock) {
    clock = [] { return static_cast<int64_t>(std::time(nullptr)); };
  }
  return Interpreter(*program_, std::move(variables), limits, std::move(clock)).run();
}

}  // namespace octet::jinja
