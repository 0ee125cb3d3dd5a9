// What goes from one file format to the other and back is the same: random checkpoints of every
// structure, and published ones.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/formats/canonical_metadata.h"
#include "octet/formats/hf_config.h"
#include "octet/formats/hf_config_writer.h"
#include "octet/formats/json_value.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/formats/rope_frequencies.h"
#include "octet/formats/safetensors_reader.h"
#include "octet/formats/safetensors_types.h"
#include "octet/formats/tensor_names.h"
#include "octet/quantize/transcoder.h"
#include "support/conversions.h"
#include "support/error_message.h"
#include "support/golden_files.h"
#include "support/random_models.h"
#include "support/temporary_directory.h"
#include "support/write_checkpoint.h"

namespace octet::test {
namespace {

constexpr DType kFloatTypes[] = {DType::kBF16, DType::kF16, DType::kF32};

std::shared_ptr<const Checkpoint> stored(
    const TemporaryDirectory& directory, Checkpoint& model, const SmallTokenizer& tokenizer
) {
  tokenizer.add_to(model.metadata);
  const std::string path = directory.file("source.gguf");
  write_gguf(path, model.metadata, model.tensors());
  return open_checkpoint(path, UnusedTensors::kKeep);
}

TEST(RoundTrips, RandomTargetsSurviveGgufToHfToGguf) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const TemporaryDirectory directory;
    GemmaShape shape = random_gemma_shape(seed);
    shape.dtype = kFloatTypes[seed % 3];
    shape.dead_kv_tensors = seed % 2 == 0;
    const SmallTokenizer tokenizer(shape.vocabulary);
    const auto source = stored(directory, *make_gemma(shape, seed), tokenizer);
    const auto folder =
        convert_to_hf(*source, directory.file("hf"), seed % 4 == 0 ? 2000 : 1 << 30);
    const auto back = convert_to_gguf(*folder, directory.file("back.gguf"));
    expect_same_tensors(*source, *back);
    expect_same_metadata(source->metadata, back->metadata);
    // Once more: a folder comes back as it was, too.
    expect_same_tensors(*folder, *convert_to_hf(*back, directory.file("hf2")));
  }
}

/// Divisors of so many pairs of which the first turn.
std::vector<float> divisors_of(int64_t pairs, int64_t turning) {
  std::vector<float> divisors(static_cast<size_t>(pairs), 1e30F);
  std::fill_n(divisors.begin(), turning, 1.0F);
  return divisors;
}

TEST(RoundTrips, NoRotaryPairIsLost) {
  const GemmaShape shape;
  const auto model = make_gemma(shape, 1);
  canonicalise_gemma4(model->metadata, shape.vocabulary);
  HfTensorFacts facts;
  for (const int64_t pairs : {1, 3, 5, 6, 7, 12, 24, 36, 48, 64, 96, 100, 128, 192, 256, 1000}) {
    for (int64_t turning = 1; turning <= pairs; ++turning) {
      const std::vector<float> divisors = divisors_of(pairs, turning);
      LogicalTensor tensor;
      tensor.dtype = DType::kF32;
      tensor.shape = {pairs};
      tensor.data = std::as_bytes(std::span(divisors));
      facts.partial_rotary_factor = partial_rotary_factor_of(tensor);
      const std::string text = hf_config(model->metadata, facts);
      const HfConfig config = read_hf_config(parse_json(bytes_of(text)));
      Checkpoint owner;
      const LogicalTensor back =
          make_rope_frequencies(owner, 2 * pairs, config.partial_rotary_factor);
      ASSERT_TRUE(std::ranges::equal(tensor.data, back.data))
          << turning << " of " << pairs << ": " << config.partial_rotary_factor;
      if (turning * 4 == pairs) {
        ASSERT_EQ(config.partial_rotary_factor, 0.25) << "as published";
      }
    }
  }
}

TEST(RoundTrips, RotaryPairsThatAreNoPowerOfTwoSurviveGgufToHfToGguf) {
  for (const auto& [pairs, turning] : {std::pair(48, 16), std::pair(12, 7), std::pair(20, 13)}) {
    const TemporaryDirectory directory;
    GemmaShape shape;
    shape.full_head_dim = int64_t{2} * pairs;
    shape.rope_divisors = false;
    const auto model = make_gemma(shape, 1);
    const std::vector<float> divisors = divisors_of(pairs, turning);
    LogicalTensor tensor;
    tensor.name = kRopeFrequenciesName;
    tensor.dtype = DType::kF32;
    tensor.shape = {pairs};
    tensor.data = std::as_bytes(std::span(divisors));
    model->add(tensor);
    const SmallTokenizer tokenizer(shape.vocabulary);
    const auto source = stored(directory, *model, tokenizer);
    const auto folder = convert_to_hf(*source, directory.file("hf"));
    const auto back = convert_to_gguf(*folder, directory.file("back.gguf"));
    expect_same_tensors(*source, *back);
  }
}

TEST(RoundTrips, AFolderNamesThePrevailingType) {
  for (const auto& [type, name] :
       {std::pair(DType::kBF16, "bfloat16"),
        std::pair(DType::kF16, "float16"),
        std::pair(DType::kF32, "float32")}) {
    const TemporaryDirectory directory;
    DFlashShape shape;
    shape.dtype = type;
    const SmallTokenizer tokenizer(shape.vocabulary);
    const auto source = stored(directory, *make_dflash(shape, 1), tokenizer);
    convert_to_hf(*source, directory.file("hf"));
    EXPECT_EQ(*read_json_object(directory.file("hf/config.json")).find_string("dtype"), name);
  }
}

bool has_words_for(const DFlashShape& shape) {
  const auto uniform = [](const std::vector<bool>& flags) {
    return std::all_of(flags.begin(), flags.end(), [&](bool f) { return f == flags.front(); });
  };
  const bool all_windowed = uniform(shape.windowed) && shape.windowed.front() && shape.window > 0;
  const std::vector<bool> none(shape.windowed.size(), false);
  return uniform(shape.causal) || all_windowed ||
         shape.causal == (shape.window > 0 ? shape.windowed : none);
}

TEST(RoundTrips, RandomDraftersSurviveGgufToHfToGguf) {
  int refused = 0;
  for (uint64_t seed = 1; seed <= 14; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const TemporaryDirectory directory;
    DFlashShape shape = random_dflash_shape(random_gemma_shape(seed), seed);
    shape.dtype = kFloatTypes[seed % 3];
    const SmallTokenizer tokenizer(shape.vocabulary);
    const auto source = stored(directory, *make_dflash(shape, seed), tokenizer);
    if (!has_words_for(shape)) {
      ++refused;
      EXPECT_THROW(convert_to_hf(*source, directory.file("hf")), Error);
      EXPECT_FALSE(std::filesystem::exists(directory.file("hf")));
      continue;
    }
    const auto folder = convert_to_hf(*source, directory.file("hf"));
    const auto back = convert_to_gguf(*folder, directory.file("back.gguf"));
    expect_same_tensors(*source, *back);
    expect_same_metadata(source->metadata, back->metadata, {"tokenizer.ggml.mask"});
    expect_same_tensors(*folder, *convert_to_hf(*back, directory.file("hf2")));
  }
  EXPECT_LT(refused, 7);
}

TEST(RoundTrips, Nvfp4KeepsCodesAndScalesBetweenItsLayouts) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const TemporaryDirectory directory;
    DFlashShape shape = nvfp4_shape();
    shape.own_head = seed % 2 == 0;
    const auto model = make_dflash(shape, seed);
    const SmallTokenizer tokenizer(shape.vocabulary);
    const auto source = stored(directory, *model, tokenizer);
    const auto folder = convert_to_hf(*source, directory.file("hf"));
    EXPECT_EQ(folder->at("fc.weight").dtype, DType::kNVFP4ModelOpt);
    EXPECT_TRUE(exists(directory.file("hf/hf_quant_config.json")));
    const auto back = convert_to_gguf(*folder, directory.file("back.gguf"));
    expect_same_tensors(*source, *back);
    std::vector<float> before(128);
    std::vector<float> after(128);
    const LogicalTensor& down = source->at("blk.1.ffn_down.weight");
    for (int64_t row = 0; row < down.rows(); ++row) {
      decode_rows(down, row, 1, before.data());
      decode_rows(folder->at(down.name), row, 1, after.data());
      ASSERT_EQ(before, after) << "row " << row;
    }
  }
}

TEST(RoundTrips, MixturesOfNvfp4SayWhichModulesAreCalibrated) {
  const TemporaryDirectory directory;
  const DFlashShape shape = nvfp4_shape();
  const auto model = make_dflash(shape, 1);
  Checkpoint mixed = with_input_scales(*model, "blk.0.");
  const auto folder = convert_to_hf(mixed, directory.file("hf"));
  EXPECT_EQ(folder->metadata.string("general.quant_algo"), "MIXED_PRECISION");
  const JsonValue nested = read_json_object(directory.file("hf/hf_quant_config.json"));
  const JsonValue flat = read_json_object(directory.file("hf/config.json"));
  for (const JsonValue* config : {nested.find("quantization"), flat.find("quantization_config")}) {
    ASSERT_NE(config, nullptr);
    const JsonObject& layers = *config->find_object("quantized_layers");
    for (const auto& [module, facts] : layers) {
      const bool first = module.starts_with("layers.0.");
      EXPECT_EQ(*facts.find_string("quant_algo"), first ? "NVFP4" : "W4A16_NVFP4") << module;
    }
    EXPECT_EQ(std::ssize(layers), 15) << "seven of each layer, and the fusion";
  }
  const SmallTokenizer tokenizer(shape.vocabulary);
  tokenizer.add_to(mixed.metadata);
  const auto tokens = stored(directory, *make_dflash(shape, 2), tokenizer);
  const auto back = convert_to_gguf(*folder, directory.file("back.gguf"), tokens.get());
  EXPECT_EQ(back->metadata.string("general.quant_algo"), "MIXED_PRECISION");
  expect_same_tensors(mixed, *back);
}

/// `model` with its tensors in the order of their names: layer 10 before layer 2.
std::shared_ptr<Checkpoint> sorted_by_name(const Checkpoint& model) {
  std::vector<LogicalTensor> tensors(model.tensors().begin(), model.tensors().end());
  std::ranges::sort(tensors, {}, &LogicalTensor::name);
  auto sorted = std::make_shared<Checkpoint>();
  sorted->path = model.path;
  sorted->metadata = model.metadata;
  for (const LogicalTensor& tensor : tensors) {
    sorted->add(tensor);
  }
  return sorted;
}

TEST(Recipes, GiveAFolderInTheOrderOfNamesTheTypesOfItsGguf) {
  const TemporaryDirectory directory;
  GemmaShape shape;
  shape.dtype = DType::kBF16;
  shape.hidden = 256;
  shape.sliding.assign(12, true);
  shape.sliding[5] = shape.sliding[11] = false;
  shape.kv_heads.assign(12, 2);
  shape.feed_forward.assign(12, 256);
  shape.shared_layers = 0;
  const auto model = make_gemma(shape, 1);
  const SmallTokenizer tokenizer(shape.vocabulary);
  const auto source = stored(directory, *sorted_by_name(*model), tokenizer);
  const auto folder = convert_to_hf(*source, directory.file("hf"));
  std::vector<std::string> order;
  std::vector<int64_t> fine;
  for (const PlannedTensor& planned : plan_recipe(*folder, find_recipe("Q4_K_M").value(), {})) {
    if (planned.source->name.ends_with("ffn_down.weight")) {
      order.push_back(planned.source->name);
      if (planned.dtype == DType::kQ6K) {
        fine.push_back(layer_number(planned.source->name).value());
      }
    }
  }
  ASSERT_TRUE(std::ranges::is_sorted(order)) << "the folder must not be in the order of layers";
  std::ranges::sort(fine);
  EXPECT_EQ(fine, (std::vector<int64_t>{0, 3, 6, 9, 10, 11}));
}

/// A folder as Model Optimizer writes it, of a drafter with these shapes.
std::shared_ptr<const Checkpoint> nvfp4_folder(
    const DFlashShape& shape, uint64_t seed, const std::string& path, int64_t shard_bytes
) {
  const auto model = make_dflash(shape, seed);
  const SmallTokenizer tokenizer(shape.vocabulary);
  tokenizer.add_to(model->metadata);
  ThreadPool pool(2);
  const CheckpointPlan plan = plan_hf_nvfp4(*model, {});
  write_hf_checkpoint({*model, model->metadata, plan, path}, shard_bytes, pool, {});
  return open_checkpoint(path, UnusedTensors::kKeep);
}

TEST(Nvfp4Folders, HoldEveryTensorAtAMultipleOfItsElements) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const TemporaryDirectory directory;
    RandomNumbers random(seed);
    DFlashShape shape;
    shape.dtype = kFloatTypes[seed % 3];
    shape.own_head = true;
    shape.hidden = 16 * (2 * random.integer(0, 3) + 1);  // odd numbers of groups and of rows
    shape.vocabulary = 2 * random.integer(10, 40) + 1;
    shape.head_dim = 4 * random.integer(1, 5);
    shape.feed_forward = 16 * random.integer(1, 4);
    const std::string path = directory.file("hf");
    nvfp4_folder(shape, seed, path, seed % 2 == 0 ? 3000 : 1 << 30);
    int64_t checked = 0;
    for (const std::filesystem::path& shard : shards_of(path)) {
      const SafetensorsFile file = read_safetensors(shard.string());
      for (const SafetensorsTensor& tensor : file.tensors) {
        const int64_t offset = tensor.data.data() - file.mapping->bytes().data();
        EXPECT_EQ(offset % (safetensors_bits(tensor.dtype).value() / 8), 0)
            << tensor.name << " in " << shard.filename();
        checked += tensor.dtype == "F32" ? 1 : 0;
      }
    }
    EXPECT_GT(checked, 10);
  }
}

TEST(Nvfp4Folders, WithRowsThatGgufHasNoBlocksForGetOtherTypes) {
  const TemporaryDirectory directory;
  DFlashShape shape;  // rows of 32 and 48 values; GGUF's NVFP4 has blocks of 64
  const auto folder = nvfp4_folder(shape, 1, directory.file("hf"), 1 << 30);
  EXPECT_THAT(
      error_message([&] { plan_gguf_copy(*folder); }),
      testing::AllOf(testing::HasSubstr("whole blocks"), testing::HasSubstr("octet quantize"))
  );
  const CheckpointPlan plan = plan_recipe(*folder, find_recipe("Q8_0").value(), {});
  ThreadPool pool(2);
  const std::string path = directory.file("q8.gguf");
  const SmallTokenizer tokenizer(shape.vocabulary);
  Metadata metadata = folder->metadata;
  tokenizer.add_to(metadata);
  write_gguf_checkpoint({*folder, metadata, plan, path}, pool, {});
  const auto made = open_checkpoint(path);
  EXPECT_EQ(made->at("blk.0.attn_q.weight").dtype, DType::kQ8_0);
  EXPECT_EQ(made->at("blk.0.ffn_down.weight").dtype, DType::kF16);
}

TEST(Nvfp4Folders, ScalesWithoutMeaningAreNotRepacked) {
  for (const int bad : {0x7F, 0x80, 0xB8, 0xFF}) {
    OwnedTensor owned = random_tensor("w", DType::kNVFP4ModelOpt, {3, 64}, 1, 0.5F);
    std::vector<std::byte> scales(
        owned.tensor.block_scales.begin(), owned.tensor.block_scales.end()
    );
    scales[9] = static_cast<std::byte>(bad);
    owned.tensor.block_scales = scales;
    const Checkpoint source;
    ThreadPool pool(1);
    Transcoder transcoder(source, pool);
    EXPECT_THAT(
        error_message([&] {
          transcoder.transcode(owned.tensor, {DType::kNVFP4, {}}, [](auto, int64_t) {});
        }),
        testing::AllOf(testing::HasSubstr("tensor 'w'"), testing::HasSubstr("row 2"))
    ) << bad;
  }
}

TEST(RoundTrips, BlockTypesAreRefusedInSafetensorsUnlessDecoded) {
  const TemporaryDirectory directory;
  DFlashShape shape;
  shape.dtype = DType::kQ8_0;
  const SmallTokenizer tokenizer(shape.vocabulary);
  const auto source = stored(directory, *make_dflash(shape, 1), tokenizer);
  EXPECT_THROW(plan_hf_copy(*source, BlockTypes::kRefuse), Error);
  for (const PlannedTensor& planned : plan_hf_copy(*source, BlockTypes::kDecode)) {
    EXPECT_TRUE(planned.dtype == DType::kBF16 || planned.source->dtype == DType::kF32);
  }
}

TEST(RoundTrips, PublishedFolderEqualsPublishedGgufAndComesBack) {
  const std::string golden = shared_path("golden/tiny/");
  if (!exists(golden + "hf-tiny")) {
    GTEST_SKIP() << golden << "hf-tiny is not there";
  }
  const TemporaryDirectory directory;
  const auto folder = open_checkpoint(golden + "hf-tiny", UnusedTensors::kKeep);
  const auto published = open_checkpoint(golden + "tiny-bf16.gguf", UnusedTensors::kKeep);
  const auto made = convert_to_gguf(*folder, directory.file("made.gguf"));
  expect_same_tensors(*published, *made);
  expect_same_metadata(published->metadata, made->metadata, {"general."});
  const auto back = convert_to_hf(*made, directory.file("hf"), 3'000'000);
  EXPECT_TRUE(exists(directory.file("hf/model.safetensors.index.json")));
  expect_same_tensors(*folder, *back);
  expect_same_metadata(folder->metadata, back->metadata, {"general.file_type"});
}

TEST(RoundTrips, PublishedDraftersEqualTheirGgufAndComeBack) {
  const std::string golden = OCTET_SOURCE_DIR "/tests/golden/tiny/";
  const TemporaryDirectory directory;
  // What the published target's folder says of its tokenizer.
  Checkpoint target;
  target.sidecars["tokenizer.json"] = OCTET_SOURCE_DIR "/tests/golden/text/tiny_tokenizer.json";
  target.sidecars["generation_config.json"] =
      directory.write("generation_config.json", R"({"eos_token_id":[1,106,50]})");
  const auto plain = open_checkpoint(golden + "hf-tiny-dflash", UnusedTensors::kKeep);
  EXPECT_THROW(gather_metadata(*plain, nullptr), Error) << "a drafter's folder has no tokenizer";
  // Only a GGUF needs one: a folder comes from a folder as it is.
  const auto copy = convert_to_hf(*plain, directory.file("copy"));
  EXPECT_FALSE(exists(directory.file("copy/tokenizer.json")));
  expect_same_tensors(*plain, *copy);
  const auto made = convert_to_gguf(*plain, directory.file("made.gguf"), &target);
  const auto published = open_checkpoint(golden + "tiny-dflash-bf16.gguf", UnusedTensors::kKeep);
  expect_same_tensors(*published, *made);
  expect_same_metadata(published->metadata, made->metadata, {"general."});

  const auto nvfp4 = open_checkpoint(golden + "hf-tiny-dflash-nvfp4", UnusedTensors::kKeep);
  const auto packed = convert_to_gguf(*nvfp4, directory.file("nvfp4.gguf"), &target);
  EXPECT_EQ(packed->at("fc.weight").dtype, DType::kNVFP4);
  expect_same_tensors(*nvfp4, *convert_to_hf(*packed, directory.file("hf")));
}

}  // namespace
}  // namespace octet::test
