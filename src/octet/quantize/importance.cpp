#include "octet/quantize/importance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/base/mapped_file.h"
#include "octet/formats/byte_cursor.h"
#include "octet/formats/gguf_reader.h"
#include "octet/formats/gguf_writer.h"
#include "octet/formats/message_text.h"
#include "octet/quantize/transcoder.h"

namespace octet {
namespace {

constexpr std::string_view kSumsSuffix = ".in_sum2";
constexpr std::string_view kCountsSuffix = ".counts";
constexpr const char* kDatasetsKey = "imatrix.datasets";
constexpr const char* kChunkCountKey = "imatrix.chunk_count";
constexpr const char* kChunkSizeKey = "imatrix.chunk_size";
constexpr int64_t kMaxEntries = 65536;
constexpr uint64_t kMaxNameBytes = 1024;
constexpr float kCountLimit = 0x1p53F;  // sums of two counts and products with a chunk's fit int64

[[noreturn]] void malformed(std::string_view entry, std::string_view reason) {
  throw Error(ErrorKind::kMalformed, fmt::format("importance of {} {}", shown(entry), reason));
}

std::vector<float> floats_of(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

void require_sums(std::string_view name, const std::vector<float>& sums) {
  const bool fine = std::all_of(sums.begin(), sums.end(), [](float value) {
    return std::isfinite(value) && value >= 0.0F;
  });
  if (!fine || sums.empty()) {
    malformed(name, "holds numbers that are negative or not finite, or none at all");
  }
}

int64_t integer_count(std::string_view name, float count) {
  if (!(count >= 0.0F && count < kCountLimit)) {
    malformed(name, fmt::format("was seen {} times; expected a count", count));
  }
  return std::llround(count);
}

/// Numbers of chunks and of tokens in one: files hold them in 32 bits.
int64_t chunk_number(std::string_view what, int64_t number) {
  if (number < 0 || number > std::numeric_limits<uint32_t>::max()) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("{} is {}; expected an unsigned 32-bit number", what, number)
    );
  }
  return number;
}

void require_readable(const ImportanceMatrix& matrix) {
  for (const auto& [name, entry] : matrix.entries) {
    require_sums(name, entry.sum_squares);
    integer_count(name, static_cast<float>(entry.count));
  }
  chunk_number(kChunkCountKey, matrix.chunk_count);
  chunk_number(kChunkSizeKey, matrix.chunk_size);
}

ImportanceMatrix from_gguf(const GgufFile& file) {
  const std::string* type = file.metadata.find_string("general.type");
  if (type == nullptr || *type != "imatrix") {
    throw Error(
        ErrorKind::kUnsupported, "this GGUF file is no importance matrix (general.type 'imatrix')"
    );
  }
  ImportanceMatrix matrix;
  if (const auto* datasets = file.metadata.find_strings(kDatasetsKey)) {
    matrix.datasets.assign(datasets->begin(), datasets->end());
  }
  matrix.chunk_count = chunk_number(kChunkCountKey, file.metadata.integer(kChunkCountKey));
  matrix.chunk_size = chunk_number(kChunkSizeKey, file.metadata.integer(kChunkSizeKey));
  std::map<std::string, int, std::less<>> halves;
  for (const GgufTensor& tensor : file.tensors) {
    const bool sums = tensor.name.ends_with(kSumsSuffix);
    if (!sums && !tensor.name.ends_with(kCountsSuffix)) {
      malformed(tensor.name, "is neither sums (.in_sum2) nor counts (.counts)");
    }
    const std::string name =
        tensor.name.substr(0, tensor.name.size() - (sums ? kSumsSuffix : kCountsSuffix).size());
    if (tensor.type_id != dtype_facts(DType::kF32).gguf_id) {
      malformed(name, "is not stored as F32");
    }
    const std::vector<float> values = floats_of(tensor.data);
    ImportanceEntry& entry = matrix.entries[name];
    ++halves[name];
    if (sums) {
      require_sums(name, values);
      entry.sum_squares = values;
    } else if (values.size() != 1) {
      malformed(name, fmt::format("has {} counts; experts are not supported", values.size()));
    } else {
      entry.count = integer_count(name, values.front());
    }
  }
  for (const auto& [name, count] : halves) {
    if (count != 2) {
      malformed(name, "lacks its sums or its counts");
    }
  }
  return matrix;
}

/// In the older form of the file values are mean squares times the number of calls, so a call is a
/// count of one.
ImportanceEntry legacy_entry(const std::string& name, int32_t calls, std::vector<float> values) {
  require_sums(name, values);
  ImportanceEntry entry;
  entry.sum_squares = std::move(values);
  entry.count = std::max(calls, 1);
  return entry;
}

ImportanceMatrix from_legacy(std::span<const std::byte> bytes) {
  ByteCursor cursor(bytes);
  ImportanceMatrix matrix;
  matrix.counts_chunks = true;
  const auto entries = cursor.read<int32_t>("the number of entries");
  if (entries < 1 || entries > kMaxEntries) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "not an importance matrix: it would hold {} entries, expected 1 to {}",
            entries,
            kMaxEntries
        )
    );
  }
  for (int32_t i = 0; i < entries; ++i) {
    const auto length = cursor.read<int32_t>("the length of a name");
    if (length < 1 || static_cast<uint64_t>(length) > kMaxNameBytes) {
      throw Error(ErrorKind::kMalformed, fmt::format("entry {} has a name of {} bytes", i, length));
    }
    const auto text = cursor.take(static_cast<uint64_t>(length), "a name");
    const std::string name(reinterpret_cast<const char*>(text.data()), text.size());
    const auto calls = cursor.read<int32_t>("a number of calls");
    const auto values = cursor.read<int32_t>("a number of values");
    if (values < 1) {
      malformed(name, fmt::format("has {} values", values));
    }
    const auto data = cursor.take(static_cast<uint64_t>(values) * sizeof(float), "values");
    if (!matrix.entries.emplace(name, legacy_entry(name, calls, floats_of(data))).second) {
      malformed(name, "is there twice");
    }
  }
  if (cursor.remaining() > 0) {
    matrix.chunk_count =
        chunk_number("the number of chunks", cursor.read<int32_t>("the number of chunks"));
  }
  if (cursor.remaining() > 0) {
    const auto length = cursor.read<int32_t>("the length of the data set's name");
    const auto text = cursor.take(static_cast<uint32_t>(std::max(length, 0)), "a data set's name");
    matrix.datasets.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
  }
  return matrix;
}

bool is_table(std::string_view name) {
  return name == "token_embd.weight" || name == "per_layer_token_embd.weight";
}

/// The types whose encoders weigh errors; others have one way to round.
bool weighs_errors(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ4K:
    case DType::kQ5K:
    case DType::kQ6K:
    case DType::kIQ4NL:
    case DType::kIQ4XS:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::vector<float> ImportanceEntry::weights() const {
  std::vector<float> weights(sum_squares.size(), 1.0F);
  if (count > 0) {
    std::transform(sum_squares.begin(), sum_squares.end(), weights.begin(), [this](float sum) {
      return sum / static_cast<float>(count);
    });
  }
  return weights;
}

ImportanceMatrix read_importance(const std::string& path) {
  return parse_importance(MappedFile::open(path)->bytes(), path);
}

ImportanceMatrix parse_importance(std::span<const std::byte> bytes, const std::string& path) {
  try {
    return looks_like_gguf(bytes) ? from_gguf(parse_gguf(bytes, path)) : from_legacy(bytes);
  } catch (Error& error) {
    error.add_context(path);
    throw;
  }
}

void write_importance(const std::string& path, const ImportanceMatrix& matrix) {
  try {
    require_readable(matrix);
  } catch (Error& error) {
    error.add_context(fmt::format("{} cannot be written", path));
    throw;
  }
  Metadata metadata;
  metadata.set("general.type", std::string("imatrix"));
  metadata.set(
      kDatasetsKey,
      MetadataArray(std::vector<std::string_view>(matrix.datasets.begin(), matrix.datasets.end()))
  );
  metadata.set(kChunkCountKey, static_cast<uint32_t>(matrix.chunk_count));
  metadata.set(kChunkSizeKey, static_cast<uint32_t>(matrix.chunk_size));
  std::vector<TensorSpec> specs;
  for (const auto& [name, entry] : matrix.entries) {
    const auto cols = static_cast<int64_t>(entry.sum_squares.size());
    specs.push_back({name + std::string(kSumsSuffix), DType::kF32, {1, cols}});
    specs.push_back({name + std::string(kCountsSuffix), DType::kF32, {1, 1}});
  }
  GgufWriter writer(path, metadata, specs);
  for (const auto& [name, entry] : matrix.entries) {
    const auto count = static_cast<float>(entry.count);
    writer.write_tensor(
        name + std::string(kSumsSuffix), std::as_bytes(std::span(entry.sum_squares))
    );
    writer.write_tensor(name + std::string(kCountsSuffix), std::as_bytes(std::span(&count, 1)));
  }
  writer.finish();
}

void count_tokens(ImportanceMatrix& matrix, int64_t chunk_tokens) {
  OCTET_CHECK(matrix.counts_chunks);
  for (auto& [name, entry] : matrix.entries) {
    entry.count *= chunk_tokens;
    for (float& sum : entry.sum_squares) {
      sum *= static_cast<float>(chunk_tokens);
    }
    require_sums(name, entry.sum_squares);
  }
  matrix.chunk_size = chunk_tokens;
  matrix.counts_chunks = false;
}

void require_importance_of(const ImportanceMatrix& matrix, const Checkpoint& model) {
  for (const auto& [name, entry] : matrix.entries) {
    const LogicalTensor* tensor = model.find(name);
    if (tensor == nullptr || tensor->cols() != std::ssize(entry.sum_squares)) {
      throw Error(
          ErrorKind::kMismatch,
          fmt::format(
              "importance of {} has {} columns and {} {}; the matrix belongs to another model",
              shown(name),
              entry.sum_squares.size(),
              model.path,
              tensor == nullptr ? "has no such weight" : fmt::format("{}", tensor->cols())
          )
      );
    }
  }
}

void add_importance(ImportanceMatrix& to, const ImportanceMatrix& more) {
  OCTET_CHECK(!to.counts_chunks && !more.counts_chunks);
  for (const auto& [name, entry] : more.entries) {
    ImportanceEntry& sum = to.entries[name];
    if (sum.sum_squares.empty()) {
      sum.sum_squares.resize(entry.sum_squares.size());
    }
    if (sum.sum_squares.size() != entry.sum_squares.size()) {
      throw Error(
          ErrorKind::kMismatch,
          fmt::format(
              "importance of {} has {} columns here and {} there",
              shown(name),
              sum.sum_squares.size(),
              entry.sum_squares.size()
          )
      );
    }
    for (size_t i = 0; i < entry.sum_squares.size(); ++i) {
      sum.sum_squares[i] += entry.sum_squares[i];
    }
    sum.count += entry.count;
  }
  to.datasets.insert(to.datasets.end(), more.datasets.begin(), more.datasets.end());
  to.chunk_count += more.chunk_count;
  to.chunk_size = std::max(to.chunk_size, more.chunk_size);
}

AttachedImportance attach_importance(CheckpointPlan& plan, const ImportanceMatrix& matrix) {
  AttachedImportance attached;
  attached.weights.reserve(plan.size());  // spans of the elements stay valid
  for (PlannedTensor& planned : plan) {
    if (!weighs_errors(planned.dtype) || is_exact_copy(*planned.source, planned.dtype)) {
      continue;
    }
    const std::string& name = planned.source->name;
    const auto found = matrix.entries.find(name);
    if (found == matrix.entries.end()) {
      attached.without.push_back(name);
      continue;
    }
    if (static_cast<int64_t>(found->second.sum_squares.size()) != planned.source->cols()) {
      if (is_table(name)) {
        attached.without.push_back(name);
        continue;
      }
      throw Error(
          ErrorKind::kMismatch,
          fmt::format(
              "tensor '{}' has {} columns and its importance {}; the matrix belongs to another "
              "model",
              name,
              planned.source->cols(),
              found->second.sum_squares.size()
          )
      );
    }
    attached.weights.push_back(found->second.weights());
    planned.importance = attached.weights.back();
  }
  if (attached.weights.empty()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        attached.without.empty()
            ? "no weight is rounded to a type that uses importance; leave out --imatrix"
            : "the importance matrix has no entry for any weight that could use one"
    );
  }
  return attached;
}

}  // namespace octet
