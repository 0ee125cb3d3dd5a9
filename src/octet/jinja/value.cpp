#include "octet/jinja/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/jinja/callable.h"

namespace octet::jinja {
namespace {

constexpr size_t kIndexFrom = 12;  // entries of a dict from which a hash index pays

int checked_depth(int deepest_child) {
  if (deepest_child >= kMaxValueDepth) {
    throw Error(
        ErrorKind::kResourceExhausted,
        fmt::format("a value is nested more than {} levels deep", kMaxValueDepth)
    );
  }
  return deepest_child + 1;
}

/// Equal keys have equal codes: 1, 1.0 and true are one key.
std::string key_code(const Value& key) {
  if (const Text* text = key.as_text()) {
    return "s" + text->bytes();
  }
  if (key.is_number()) {
    const double real = key.real();
    return key.is_real() && real != std::floor(real) ? fmt::format("r{}", real)
                                                     : fmt::format("i{}", real);
  }
  if (key.is_none()) {
    return "n";
  }
  if (const Sequence* sequence = key.as_sequence(); sequence != nullptr && sequence->tuple) {
    return "t" + to_repr(key).bytes();
  }
  throw Error(
      ErrorKind::kInvalidArgument, fmt::format("a {} cannot be a key of a dict", type_name(key))
  );
}

template <typename T>
const T* shared(const Value::Storage& storage) {
  const auto* pointer = std::get_if<std::shared_ptr<const T>>(&storage);
  return pointer == nullptr ? nullptr : pointer->get();
}

int compare_sequences(const Values& a, const Values& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (!equal(a[i], b[i])) {
      return compare(a[i], b[i]);
    }
  }
  return a.size() == b.size() ? 0 : a.size() < b.size() ? -1 : 1;
}

bool equal_dicts(const Dict& a, const Dict& b) {
  return a.entries().size() == b.entries().size() &&
         std::all_of(a.entries().begin(), a.entries().end(), [&](const Entry& entry) {
           const Value* other = b.find(entry.first);
           return other != nullptr && equal(entry.second, *other);
         });
}

}  // namespace

Value Value::undefined(std::string what) {
  return Value(Undefined{std::make_shared<const std::string>(std::move(what))}, 0);
}
Value Value::boolean(bool value) {
  return Value(value, 0);
}
Value Value::integer(int64_t value) {
  return Value(value, 0);
}
Value Value::real(double value) {
  return Value(value, 0);
}
Value Value::text(Text text) {
  return Value(std::make_shared<const Text>(std::move(text)), 0);
}
Value Value::text(std::string_view bytes, Origin origin) {
  return text(Text(bytes, origin));
}

namespace {
std::shared_ptr<const Sequence> sequence_of(Values items, bool tuple) {
  int deepest = 0;
  for (const Value& item : items) {
    deepest = std::max(deepest, item.depth());
  }
  return std::make_shared<const Sequence>(Sequence{
      .items = std::move(items), .tuple = tuple, .depth = checked_depth(deepest)});
}
}  // namespace

Value Value::list(Values items) {
  return Value(sequence_of(std::move(items), false), 0);
}
Value Value::tuple(Values items) {
  return Value(sequence_of(std::move(items), true), 0);
}
Value Value::dict(std::vector<Entry> entries) {
  return Value(std::make_shared<const Dict>(std::move(entries)), 0);
}

const Text* Value::as_text() const {
  return shared<Text>(storage_);
}
const Sequence* Value::as_sequence() const {
  return shared<Sequence>(storage_);
}
const Dict* Value::as_dict() const {
  return shared<Dict>(storage_);
}
const Callable* Value::as_callable() const {
  return shared<Callable>(storage_);
}
Namespace* Value::as_namespace() const {
  const auto* pointer = std::get_if<std::shared_ptr<Namespace>>(&storage_);
  return pointer == nullptr ? nullptr : pointer->get();
}
LoopState* Value::as_loop() const {
  const auto* pointer = std::get_if<std::shared_ptr<LoopState>>(&storage_);
  return pointer == nullptr ? nullptr : pointer->get();
}

int64_t Value::integer() const {
  return is_boolean() ? static_cast<int64_t>(boolean()) : std::get<int64_t>(storage_);
}
double Value::real() const {
  return is_real() ? std::get<double>(storage_) : static_cast<double>(integer());
}
const std::string& Value::what() const {
  return *std::get<Undefined>(storage_).what;
}

bool Value::truthy() const {
  if (is_number()) {
    return real() != 0.0;
  }
  if (const Text* text = as_text()) {
    return !text->empty();
  }
  if (const Sequence* sequence = as_sequence()) {
    return !sequence->items.empty();
  }
  if (const Dict* dict = as_dict()) {
    return !dict->entries().empty();
  }
  return !is_undefined() && !is_none();
}

int Value::depth() const {
  if (const Sequence* sequence = as_sequence()) {
    return sequence->depth;
  }
  if (const Dict* dict = as_dict()) {
    return dict->depth();
  }
  return 0;
}

Dict::Dict(std::vector<Entry> entries) {
  entries_.reserve(entries.size());
  int deepest = 0;
  const bool indexed = entries.size() >= kIndexFrom;
  for (Entry& entry : entries) {
    deepest = std::max(deepest, entry.second.depth());
    const std::string code = key_code(entry.first);
    const auto same = [&](const Entry& other) { return key_code(other.first) == code; };
    if (indexed) {
      const auto [at, added] = index_.try_emplace(code, entries_.size());
      if (!added) {
        entries_[at->second].second = std::move(entry.second);
        continue;
      }
    } else if (const auto at = std::find_if(entries_.begin(), entries_.end(), same);
               at != entries_.end()) {
      at->second = std::move(entry.second);
      continue;
    }
    entries_.push_back(std::move(entry));
  }
  depth_ = checked_depth(deepest);
}

const Value* Dict::find(const Value& key) const {
  if (const Text* text = key.as_text()) {
    return find(text->view());
  }
  if (key.is_undefined() || key.as_sequence() != nullptr || key.as_dict() != nullptr) {
    return nullptr;
  }
  const std::string code = key_code(key);
  const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& other) {
    return key_code(other.first) == code;
  });
  return entry == entries_.end() ? nullptr : &entry->second;
}

const Value* Dict::find(std::string_view key) const {
  if (!index_.empty()) {
    const auto at = index_.find(std::string("s").append(key));
    return at == index_.end() ? nullptr : &entries_[at->second].second;
  }
  const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& other) {
    const Text* text = other.first.as_text();
    return text != nullptr && text->view() == key;
  });
  return entry == entries_.end() ? nullptr : &entry->second;
}

Value* Namespace::find(std::string_view name) {
  for (auto& [key, value] : attributes) {
    if (key == name) {
      return &value;
    }
  }
  return nullptr;
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    return a.is_real() || b.is_real() ? a.real() == b.real() : a.integer() == b.integer();
  }
  if (a.storage().index() != b.storage().index()) {
    return false;
  }
  if (const Text* text = a.as_text()) {
    return text->bytes() == b.as_text()->bytes();
  }
  if (const Sequence* sequence = a.as_sequence()) {
    const Sequence& other = *b.as_sequence();
    return sequence->tuple == other.tuple && std::equal(
                                                 sequence->items.begin(),
                                                 sequence->items.end(),
                                                 other.items.begin(),
                                                 other.items.end(),
                                                 equal
                                             );
  }
  if (const Dict* dict = a.as_dict()) {
    return equal_dicts(*dict, *b.as_dict());
  }
  return a.is_none() || a.is_undefined() ||
         (a.as_namespace() == b.as_namespace() && a.as_loop() == b.as_loop() &&
          a.as_callable() == b.as_callable());
}

int compare(const Value& a, const Value& b) {
  const auto sign = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : 0; };
  if (a.is_number() && b.is_number()) {
    return a.is_real() || b.is_real() ? sign(a.real(), b.real()) : sign(a.integer(), b.integer());
  }
  if (a.is_text() && b.is_text()) {
    return sign(a.as_text()->bytes().compare(b.as_text()->bytes()), 0);
  }
  const Sequence* left = a.as_sequence();
  const Sequence* right = b.as_sequence();
  if (left != nullptr && right != nullptr && left->tuple == right->tuple) {
    return compare_sequences(left->items, right->items);
  }
  throw Error(
      ErrorKind::kInvalidArgument,
      fmt::format("a {} and a {} have no order", type_name(a), type_name(b))
  );
}

bool contains(const Value& container, const Value& item) {
  if (const Text* text = container.as_text()) {
    const Text* part = item.as_text();
    if (part == nullptr) {
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format("only a string can be in a string, not a {}", type_name(item))
      );
    }
    return text->view().find(part->view()) != std::string_view::npos;
  }
  if (const Sequence* sequence = container.as_sequence()) {
    return std::any_of(sequence->items.begin(), sequence->items.end(), [&](const Value& value) {
      return equal(value, item);
    });
  }
  if (const Dict* dict = container.as_dict()) {
    return dict->find(item) != nullptr;
  }
  if (container.is_undefined()) {
    return false;
  }
  throw Error(ErrorKind::kInvalidArgument, fmt::format("a {} holds nothing", type_name(container)));
}

std::string_view type_name(const Value& value) {
  static constexpr std::array<std::string_view, 11> kNames = {
      "undefined value",
      "None",
      "boolean",
      "integer",
      "float",
      "string",
      "list",
      "dict",
      "namespace",
      "loop",
      "function"};
  return kNames.at(value.storage().index());
}

std::string real_repr(double value) {
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value < 0 ? "-inf" : "inf";
  }
  std::array<char, 64> buffer{};
  const auto result = std::to_chars(
      buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific
  );
  const std::string_view shortest(buffer.data(), static_cast<size_t>(result.ptr - buffer.data()));
  const size_t mark = shortest.find('e');
  int exponent = 0;
  const std::string_view power = shortest.substr(mark + (shortest[mark + 1] == '+' ? 2 : 1));
  std::from_chars(power.data(), power.data() + power.size(), exponent);
  if (exponent < -4 || exponent >= 16) {
    return std::string(shortest);
  }
  const auto fixed =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
  std::string text(buffer.data(), fixed.ptr);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

}  // namespace octet::jinja
