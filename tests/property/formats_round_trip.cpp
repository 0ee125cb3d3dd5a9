// What the writers write, the readers read back: metadata of every type, tensors of every type and
// shape, whole models, split files.

#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/formats/checked_size.h"
#include "octet/formats/gguf_reader.h"
#include "octet/formats/gguf_writer.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/formats/safetensors_reader.h"
#include "octet/formats/safetensors_writer.h"
#include "support/random_models.h"
#include "support/temporary_directory.h"
#include "support/write_checkpoint.h"

namespace octet {
namespace {

using test::RandomNumbers;
using test::TemporaryDirectory;

std::string random_text(RandomNumbers& random, int64_t max_bytes) {
  static const std::vector<std::string> pieces = {
      "a", "key", ".", "\u2581", "\xC3\xA9", "\n", "\U0001F999", " "};
  std::string text = "k";
  while (static_cast<int64_t>(text.size()) + 4 < max_bytes && random.integer(0, 9) != 0) {
    text += pieces[static_cast<size_t>(random.integer(0, static_cast<int64_t>(pieces.size()) - 1))];
  }
  return text;
}

template <typename T>
T random_number(RandomNumbers& random) {
  const uint64_t bits = random.bits();
  if constexpr (std::is_same_v<T, bool>) {
    return (bits & 1U) != 0;
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(random.normal());
  } else {
    switch (random.integer(0, 3)) {
      case 0:
        return std::numeric_limits<T>::max();
      case 1:
        return std::numeric_limits<T>::min();
      default:
        return static_cast<T>(bits);
    }
  }
}

template <typename T>
MetadataValue random_value(RandomNumbers& random) {
  if (random.integer(0, 1) == 0) {
    return random_number<T>(random);
  }
  std::vector<T> values;
  for (int64_t i = random.integer(0, 20); i > 0; --i) {
    values.push_back(random_number<T>(random));
  }
  return MetadataArray(std::move(values));
}

MetadataValue random_value_of_any_type(
    RandomNumbers& random, const std::vector<std::string>& words
) {
  switch (random.integer(0, 12)) {
    case 0:
      return random_value<uint8_t>(random);
    case 1:
      return random_value<int8_t>(random);
    case 2:
      return random_value<uint16_t>(random);
    case 3:
      return random_value<int16_t>(random);
    case 4:
      return random_value<uint32_t>(random);
    case 5:
      return random_value<int32_t>(random);
    case 6:
      return random_value<float>(random);
    case 7:
      return random_value<bool>(random);
    case 8:
      return random_value<uint64_t>(random);
    case 9:
      return random_value<int64_t>(random);
    case 10:
      return random_value<double>(random);
    case 11:
      return random_text(random, 500);
    default:
      return MetadataArray(std::vector<std::string_view>(words.begin(), words.end()));
  }
}

constexpr DType kGgufTypes[] = {
    DType::kF32,
    DType::kF16,
    DType::kBF16,
    DType::kQ8_0,
    DType::kQ4_0,
    DType::kQ4_1,
    DType::kQ5_0,
    DType::kQ5_1,
    DType::kQ4K,
    DType::kQ5K,
    DType::kQ6K,
    DType::kIQ4NL,
    DType::kIQ4XS,
    DType::kMXFP4,
    DType::kNVFP4};

struct RandomTensor {
  TensorSpec spec;
  std::string data;
};

RandomTensor random_gguf_tensor(RandomNumbers& random, int index) {
  RandomTensor tensor;
  tensor.spec.name = "tensor." + std::to_string(index);
  tensor.spec.dtype = kGgufTypes[random.integer(0, std::ssize(kGgufTypes) - 1)];
  const DTypeFacts& facts = dtype_facts(tensor.spec.dtype);
  const int64_t blocks = random.integer(1, 3);
  for (int64_t d = random.integer(0, 3); d > 0; --d) {
    tensor.spec.shape.push_back(random.integer(1, 4));
  }
  tensor.spec.shape.push_back(blocks * facts.block_values);
  const int64_t bytes =
      *checked_elements(tensor.spec.shape) / facts.block_values * facts.block_bytes;
  for (int64_t i = 0; i < bytes; ++i) {
    tensor.data += static_cast<char>(random.bits());
  }
  return tensor;
}

TEST(FormatsRoundTrip, GgufKeepsMetadataAndTensors) {
  const TemporaryDirectory directory;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomNumbers random(seed);
    std::vector<std::string> words(51);  // the last one stays empty
    for (int i = 0; i < 50; ++i) {
      words[static_cast<size_t>(i)] = random_text(random, 40);
    }
    Metadata metadata;
    for (int64_t i = random.integer(0, 30); i > 0; --i) {
      metadata.set(random_text(random, 100), random_value_of_any_type(random, words));
    }
    const uint32_t alignment = 1U << random.integer(0, 8);
    if (alignment != kGgufDefaultAlignment) {
      metadata.set("general.alignment", alignment);
    }
    std::vector<RandomTensor> tensors;
    std::vector<TensorSpec> specs;
    for (int i = 0; i < random.integer(0, 12); ++i) {
      tensors.push_back(random_gguf_tensor(random, i));
      specs.push_back(tensors.back().spec);
    }
    const std::string path = directory.file("file.gguf");
    GgufWriter writer(path, metadata, specs);
    for (const RandomTensor& tensor : tensors) {
      writer.begin_tensor(tensor.spec.name);
      const auto half = static_cast<size_t>(random.integer(0, std::ssize(tensor.data)));
      writer.write(test::bytes_of(tensor.data).first(half));
      writer.write(test::bytes_of(tensor.data).subspan(half));
      writer.end_tensor();
    }
    writer.finish();

    const GgufFile file = read_gguf(path);
    EXPECT_EQ(file.version, 3U);
    EXPECT_EQ(file.alignment, alignment);
    EXPECT_TRUE(file.metadata.entries() == metadata.entries());
    ASSERT_EQ(file.tensors.size(), tensors.size());
    uint64_t offset = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_EQ(file.tensors[i].name, tensors[i].spec.name);
      EXPECT_EQ(file.tensors[i].type_id, dtype_facts(tensors[i].spec.dtype).gguf_id);
      EXPECT_EQ(file.tensors[i].shape, tensors[i].spec.shape);
      EXPECT_EQ(file.tensors[i].offset, offset)
          << "offsets are the exact running sum of padded sizes";
      ASSERT_EQ(file.tensors[i].data.size(), tensors[i].data.size());
      EXPECT_EQ(
          std::memcmp(file.tensors[i].data.data(), tensors[i].data.data(), tensors[i].data.size()),
          0
      );
      offset = align_up(offset + tensors[i].data.size(), alignment);
    }
    EXPECT_EQ(
        file.mapping->bytes().size(),
        file.tensors.empty() ? file.data_start : file.data_start + offset
    );
  }
}

TEST(FormatsRoundTrip, SafetensorsKeepTensors) {
  const TemporaryDirectory directory;
  const std::vector<std::pair<std::string, int64_t>> types = {
      {"BF16", 2}, {"F32", 4}, {"U8", 1}, {"F8_E4M3", 1}, {"I64", 8}};
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomNumbers random(seed);
    std::vector<SafetensorsSpec> specs;
    std::vector<std::string> data;
    for (int i = 0; i < random.integer(0, 12); ++i) {
      const auto& [dtype, value_bytes] =
          types[static_cast<size_t>(random.integer(0, std::ssize(types) - 1))];
      SafetensorsSpec spec = {random_text(random, 60) + "\"\\" + std::to_string(i), dtype, {}};
      for (int64_t d = random.integer(0, 3); d > 0; --d) {
        spec.shape.push_back(random.integer(0, 4));
      }
      data.emplace_back();
      for (int64_t b = *checked_elements(spec.shape) * value_bytes; b > 0; --b) {
        data.back() += static_cast<char>(random.bits());
      }
      specs.push_back(std::move(spec));
    }
    const std::map<std::string, std::string, std::less<>> metadata = {
        {"format", "pt"}, {"note", random_text(random, 90)}};
    const std::string path = directory.file("file.safetensors");
    SafetensorsWriter writer(path, specs, metadata);
    for (size_t i = 0; i < specs.size(); ++i) {
      writer.write_tensor(specs[i].name, test::bytes_of(data[i]));
    }
    writer.finish();

    const SafetensorsFile file = read_safetensors(path);
    EXPECT_EQ(file.metadata, metadata);
    ASSERT_EQ(file.tensors.size(), specs.size());
    std::map<std::string, size_t> index;
    for (size_t i = 0; i < specs.size(); ++i) {
      index.emplace(specs[i].name, i);
    }
    for (const SafetensorsTensor& tensor : file.tensors) {
      ASSERT_TRUE(index.contains(tensor.name)) << tensor.name;
      const size_t i = index[tensor.name];
      EXPECT_EQ(tensor.dtype, specs[i].dtype);
      EXPECT_EQ(tensor.shape, specs[i].shape);
      ASSERT_EQ(tensor.data.size(), data[i].size());
      EXPECT_TRUE(
          data[i].empty() || std::memcmp(tensor.data.data(), data[i].data(), data[i].size()) == 0
      );
    }
  }
}

/// Every tensor of `read` is the one of `written`; dead keys and values may be left out.
void expect_same_tensors(const Checkpoint& read, const Checkpoint& written) {
  for (const LogicalTensor& tensor : read.tensors()) {
    const LogicalTensor* original = written.find(tensor.name);
    if (original == nullptr) {
      EXPECT_EQ(tensor.name, "rope_freqs.weight") << "only this one is made by the reader";
      continue;
    }
    EXPECT_EQ(tensor.dtype, original->dtype) << tensor.name;
    EXPECT_EQ(tensor.shape, original->shape) << tensor.name;
    ASSERT_EQ(tensor.data.size(), original->data.size()) << tensor.name;
    EXPECT_EQ(std::memcmp(tensor.data.data(), original->data.data(), tensor.data.size()), 0)
        << tensor.name;
  }
  for (const LogicalTensor& tensor : written.tensors()) {
    const bool may_be_dead = tensor.name.find("attn_k") != std::string::npos ||
                             tensor.name.find("attn_v") != std::string::npos;
    EXPECT_TRUE(may_be_dead || read.find(tensor.name) != nullptr) << tensor.name;
  }
}

TEST(FormatsRoundTrip, WholeModelsOpen) {
  const TemporaryDirectory directory;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const test::GemmaShape target_shape = test::random_gemma_shape(seed);
    const std::shared_ptr<Checkpoint> target = test::make_gemma(target_shape, seed);
    const std::string target_path = directory.file("target.gguf");
    test::write_gguf(target_path, target->metadata, target->tensors());
    const std::shared_ptr<const Checkpoint> read_target = open_checkpoint(target_path);
    expect_same_tensors(*read_target, *target);
    EXPECT_EQ(read_target->metadata.integer("gemma4.vocab_size"), target_shape.vocabulary);
    EXPECT_EQ(
        read_target->metadata.find_integers("gemma4.feed_forward_length"), target_shape.feed_forward
    );
    EXPECT_EQ(
        read_target->metadata.find_integers("gemma4.attention.head_count_kv"), target_shape.kv_heads
    );

    const test::DFlashShape draft_shape = test::random_dflash_shape(target_shape, seed + 1000);
    const std::shared_ptr<Checkpoint> draft = test::make_dflash(draft_shape, seed);
    const std::string draft_path = directory.file("draft.gguf");
    test::write_gguf(draft_path, draft->metadata, draft->tensors());
    const std::shared_ptr<const Checkpoint> read_draft = open_checkpoint(draft_path);
    expect_same_tensors(*read_draft, *draft);
    EXPECT_EQ(read_draft->metadata.find_integers("dflash.target_layer_ids"), draft_shape.taps);
  }
}

TEST(FormatsRoundTrip, DeadKeysAndValuesAreLeftOut) {
  const TemporaryDirectory directory;
  test::GemmaShape shape;
  shape.dead_kv_tensors = true;
  const std::shared_ptr<Checkpoint> written = test::make_gemma(shape, 1);
  const std::string path = directory.file("target.gguf");
  test::write_gguf(path, written->metadata, written->tensors());
  const std::shared_ptr<const Checkpoint> read = open_checkpoint(path);
  ASSERT_NE(written->find("blk.3.attn_k.weight"), nullptr);
  EXPECT_EQ(read->find("blk.3.attn_k.weight"), nullptr);
  EXPECT_EQ(read->find("blk.3.attn_k_norm.weight"), nullptr);
  EXPECT_NE(read->find("blk.1.attn_k.weight"), nullptr);
}

TEST(FormatsRoundTrip, SplitFilesOpenFromAnyPart) {
  const TemporaryDirectory directory;
  const std::shared_ptr<Checkpoint> written = test::make_gemma({}, 3);
  for (const int count : {2, 3, 7}) {
    const std::vector<std::string> paths =
        test::write_gguf_parts(directory.file("model"), *written, count);
    for (const std::string& path : paths) {
      const std::shared_ptr<const Checkpoint> read = open_checkpoint(path);
      expect_same_tensors(*read, *written);
      EXPECT_EQ(read->files.size(), static_cast<size_t>(count));
    }
  }
}

}  // namespace
}  // namespace octet
