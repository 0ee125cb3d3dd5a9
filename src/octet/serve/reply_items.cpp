#include "octet/serve/reply_items.h"

#include <algorithm>

namespace octet::serve {

bool ChoiceText::has(ItemKind kind) const {
  return std::ranges::any_of(items, [&](const ReplyItem& item) { return item.kind == kind; });
}

std::string ChoiceText::joined(ItemKind kind) const {
  std::string text;
  for (const ReplyItem& item : items) {
    text += item.kind == kind ? item.text : std::string();
  }
  return text;
}

}  // namespace octet::serve
