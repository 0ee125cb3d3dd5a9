#include "octet/cli/checkpoint_report.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <type_traits>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "octet/kernels/ops.h"
#include "octet/models/gemma4/config.h"

namespace octet::cli {
namespace {

constexpr size_t kShownElements = 8;
constexpr size_t kShownBytes = 60;

int64_t stored_bytes(const LogicalTensor& tensor) {
  return static_cast<int64_t>(tensor.data.size() + tensor.block_scales.size());
}

/// Tables that are read one row a token. The main embedding is one only where the head is not tied
/// to it.
bool is_gathered(const Checkpoint& checkpoint, const LogicalTensor& tensor) {
  return tensor.name == "per_layer_token_embd.weight" ||
         (tensor.name == "token_embd.weight" && checkpoint.find("output.weight") != nullptr);
}

void count_target_cache(const Checkpoint& checkpoint, CheckpointReport& report) {
  const Gemma4Config config = read_gemma4_config(checkpoint);
  for (const Gemma4LayerConfig& layer : config.layers) {
    if (layer.owns_kv) {
      const int64_t bytes =
          int64_t{2} * layer.kv_heads * kv_row_bytes(KvType::kBF16, layer.head_dim);
      (layer.sliding ? report.kv_window_bytes : report.kv_token_bytes) +=
          bytes * (layer.sliding ? config.window : 1);
    }
  }
}

void count_drafter_cache(const Checkpoint& checkpoint, CheckpointReport& report) {
  const DFlashConfig config = read_dflash_config(checkpoint);
  for (const DFlashLayerConfig& layer : config.layers) {
    const int64_t bytes =
        int64_t{2} * config.kv_heads * kv_row_bytes(KvType::kBF16, config.head_dim);
    (layer.window > 0 ? report.kv_window_bytes : report.kv_token_bytes) +=
        bytes * (layer.window > 0 ? layer.window : 1);
  }
}

bool same_tokenizer(const Checkpoint& target, const Checkpoint& drafter) {
  const auto* a = target.metadata.find_strings("tokenizer.ggml.tokens");
  const auto* b = drafter.metadata.find_strings("tokenizer.ggml.tokens");
  return a != nullptr && b != nullptr && *a == *b;
}

struct TextOfValue {
  template <typename T>
  std::string operator()(const T& value) const {
    return fmt::format("{}", value);
  }
  std::string operator()(const std::string& value) const {
    const std::string line = one_line(std::string_view(value).substr(0, kShownBytes));
    return value.size() > kShownBytes ? fmt::format("\"{}...\" {} bytes", line, value.size())
                                      : "\"" + line + "\"";
  }
  std::string operator()(const MetadataArray& array) const {
    return std::visit([](const auto& values) { return text_of_array(values); }, array);
  }

  template <typename T>
  static std::string text_of_array(const std::vector<T>& values) {
    std::vector<std::string> shown;
    for (size_t i = 0; i < std::min(values.size(), kShownElements); ++i) {
      shown.push_back(one_line(fmt::format("{}", static_cast<T>(values[i]))));
    }
    const std::string text = fmt::format("[{}", fmt::join(shown, ", "));
    return values.size() > kShownElements ? fmt::format("{}, ...] {} values", text, values.size())
                                          : text + "]";
  }
};

}  // namespace

CheckpointReport report_on(const Checkpoint& checkpoint) {
  CheckpointReport report;
  report.path = checkpoint.path;
  report.architecture = checkpoint.architecture();
  std::map<DType, TypeTotals> totals;
  for (const LogicalTensor& tensor : checkpoint.tensors()) {
    TypeTotals& row = totals[tensor.dtype];
    row.type = dtype_facts(tensor.dtype).name;
    ++row.tensors;
    row.parameters += tensor.elements();
    row.bytes += stored_bytes(tensor);
    report.parameters += tensor.elements();
    report.bytes += stored_bytes(tensor);
    report.token_bytes += is_gathered(checkpoint, tensor) ? 0 : stored_bytes(tensor);
  }
  for (auto& [dtype, row] : totals) {
    report.types.push_back(std::move(row));
  }
  if (report.architecture == "gemma4") {
    count_target_cache(checkpoint, report);
  } else {
    count_drafter_cache(checkpoint, report);
  }
  return report;
}

bool PairReport::fits() const {
  return std::all_of(checks.begin(), checks.end(), [](const PairCheck& check) {
    return check.fits;
  });
}

PairReport check_pair_of(const Checkpoint& target, const Checkpoint& drafter) {
  PairReport report{target.path, drafter.path, {}};
  report.checks = pair_checks(read_gemma4_config(target).shape(), read_dflash_config(drafter));
  if (drafter.metadata.contains("tokenizer.ggml.tokens") &&
      target.metadata.contains("tokenizer.ggml.tokens")) {
    const bool same = same_tokenizer(target, drafter);
    report.checks.push_back(
        {"tokenizer", "that of the target", same ? "that of the target" : "another one", same}
    );
  }
  return report;
}

std::string one_line(std::string_view text) {
  const auto byte_at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  std::string line;
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned byte = byte_at(i);
    // U+0080 to U+009F, some of which begin commands as ESC does.
    const bool high_control = byte == 0xc2 && i + 1 < text.size() && byte_at(i + 1) < 0xa0;
    if (byte == '\n') {
      line += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      line += fmt::format("\\x{:02x}", byte);
    } else if (high_control) {
      line += fmt::format("\\x{:02x}", byte_at(++i));
    } else {
      line += text[i];
    }
  }
  return line;
}

std::string metadata_text(const MetadataValue& value) {
  return std::visit(TextOfValue{}, value);
}

}  // namespace octet::cli
