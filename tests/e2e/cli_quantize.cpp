// `octet convert` and `octet quantize` as a user runs them: published bytes come out, whatever the
// number of threads, and what they are asked in vain they say.

#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/formats/open_checkpoint.h"
#include "octet/quantize/importance.h"
#include "support/conversions.h"
#include "support/golden_files.h"
#include "support/quantize_runs.h"
#include "support/random_models.h"
#include "support/run_program.h"
#include "support/terminal_session.h"
#include "support/write_checkpoint.h"

namespace octet::test {
namespace {

const std::string kGolden = OCTET_SOURCE_DIR "/tests/golden/quant/ggml/";
constexpr int64_t kGoldenRows = 6;
constexpr int64_t kGoldenCols = 1024;
constexpr const char* kGoldenTensor = "blk.0.ffn_down.weight";

struct PublishedType {
  const char* name;
  const char* file;
  bool uses_importance;
};

constexpr PublishedType kPublished[] = {
    {"Q8_0", "q8_0", false},
    {"Q4_0", "q4_0", true},
    {"Q4_1", "q4_1", true},
    {"Q5_0", "q5_0", true},
    {"Q5_1", "q5_1", true},
    {"Q4_K", "q4_k", true},
    {"Q5_K", "q5_k", true},
    {"Q6_K", "q6_k", true},
    {"IQ4_NL", "iq4_nl", true},
    {"IQ4_XS", "iq4_xs", true},
    {"MXFP4", "mxfp4", false},
    {"NVFP4", "nvfp4", false},
};

std::vector<float> golden_floats(const std::string& name) {
  const std::vector<char> bytes = read_bytes(kGolden + name);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// A drafter with `values` as the first rows of one of its matrices; `fill` is the rest.
std::string write_drafter_with(
    const TemporaryDirectory& directory,
    const DFlashShape& shape,
    const char* name,
    std::vector<float> values,
    float fill
) {
  const auto random = make_dflash(shape, 1);
  Checkpoint model;
  model.metadata = random->metadata;
  const SmallTokenizer tokenizer(shape.vocabulary);
  tokenizer.add_to(model.metadata);
  for (const LogicalTensor& tensor : random->tensors()) {
    LogicalTensor copy = tensor;
    if (copy.name == name) {
      values.resize(static_cast<size_t>(copy.elements()), fill);
      copy.dtype = DType::kF32;
      copy.data = std::as_bytes(std::span(values));
    }
    model.add(copy);
  }
  std::string path = directory.file("golden.gguf");
  write_gguf(path, model.metadata, model.tensors());
  return path;
}

std::string write_drafter_with_golden_rows(const TemporaryDirectory& directory) {
  DFlashShape shape;
  shape.windowed = {true};
  shape.causal = {false};
  shape.feed_forward = kGoldenCols;
  return write_drafter_with(directory, shape, kGoldenTensor, golden_floats("x.f32"), 0.25F);
}

std::string golden_rows(const std::string& path) {
  const auto checkpoint = open_checkpoint(path);
  const LogicalTensor& tensor = checkpoint->at(kGoldenTensor);
  const auto bytes = static_cast<size_t>(kGoldenRows * row_bytes(tensor.dtype, kGoldenCols));
  return {reinterpret_cast<const char*>(tensor.data.data()), bytes};
}

TEST(Quantize, WritesThePublishedBytesOfEveryType) {
  const TemporaryDirectory directory;
  const std::string source = write_drafter_with_golden_rows(directory);
  ImportanceMatrix matrix;
  matrix.entries[kGoldenTensor] = {golden_floats("imatrix.f32"), 1};
  const std::string importance = directory.file("importance.gguf");
  write_importance(importance, matrix);
  for (const PublishedType& type : kPublished) {
    SCOPED_TRACE(type.name);
    const std::string plain = directory.file("plain.gguf");
    const ProgramResult result =
        run_octet({"quantize", source, plain, "--type", type.name, "--force", "-q", "-t", "2"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(golden_rows(plain), read_text(kGolden + type.file + ".q"));
    if (type.uses_importance) {
      const std::string weighted = directory.file("weighted.gguf");
      ASSERT_EQ(
          run_octet({"quantize",
                     source,
                     weighted,
                     "--type",
                     type.name,
                     "--imatrix",
                     importance,
                     "--force",
                     "-q"})
              .exit_code,
          0
      );
      EXPECT_EQ(golden_rows(weighted), read_text(kGolden + type.file + ".im.q"));
      EXPECT_EQ(open_checkpoint(weighted)->metadata.integer("quantize.imatrix.entries_count"), 1);
    }
  }
}

TEST(Quantize, EqualsPublishedFiles) {
  const std::string golden = shared_path("golden/tiny/");
  if (!exists(golden + "tinyq-dflash-bf16.gguf")) {
    GTEST_SKIP() << golden << "tinyq-dflash-bf16.gguf is not there";
  }
  const TemporaryDirectory directory;
  for (const auto& [type, file] : {std::pair("Q4_1", "q4_1"), std::pair("Q8_0", "q8_0")}) {
    SCOPED_TRACE(type);
    const std::string made = directory.file(file);
    ASSERT_EQ(
        run_octet(
            {"quantize", golden + "tinyq-dflash-bf16.gguf", made + ".gguf", "--type", type, "-q"}
        )
            .exit_code,
        0
    );
    expect_same_tensors(
        *open_checkpoint(golden + "tinyq-dflash-" + file + ".gguf"),
        *open_checkpoint(made + ".gguf")
    );
  }
}

TEST(Quantize, TheTablesTypeComesBeforeRulesThatMatchEverything) {
  const TemporaryDirectory directory;
  const std::string made = directory.file("made.gguf");
  const ProgramResult result = run_octet(
      {"quantize", kPairTarget, made, "--type", "Q8_0", "--tensor", "*=Q5_1", "--ple-type", "Q4_1"}
  );
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(open_checkpoint(made)->at("per_layer_token_embd.weight").dtype, DType::kQ4_1);
  EXPECT_EQ(open_checkpoint(made)->at("blk.0.attn_q.weight").dtype, DType::kQ5_1);
}

TEST(Quantize, BytesDoNotDependOnThreads) {
  const TemporaryDirectory directory;
  const std::string source = synth_target(directory);
  std::string first;
  for (const char* threads : {"1", "2", "5"}) {
    const std::string path = directory.file(std::string("t") + threads);
    const ProgramResult result = run_octet(
        {"quantize",
         source,
         path + ".gguf",
         "--type",
         "Q4_K_M",
         "--ple-type",
         "Q5_K",
         "--tensor",
         "blk.1.attn_q=Q6_K",
         "-t",
         threads}
    );
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, testing::HasSubstr("Q6_K"));
    const std::string bytes = read_text(path + ".gguf");
    first = first.empty() ? bytes : first;
    EXPECT_TRUE(first == bytes) << threads << " threads";
  }
  const auto made = open_checkpoint(directory.file("t1.gguf"));
  // Its rows of 192 are no whole super-blocks.
  EXPECT_EQ(made->at("per_layer_token_embd.weight").dtype, DType::kQ5_1);
  EXPECT_EQ(made->at("blk.1.attn_q.weight").dtype, DType::kQ6K);
  EXPECT_EQ(made->at("blk.0.attn_q.weight").dtype, DType::kQ4K);
  EXPECT_EQ(made->at("per_layer_model_proj.weight").dtype, DType::kBF16);
  EXPECT_EQ(made->metadata.integer("general.file_type"), 15);
}

TEST(Quantize, ANumberThatIsNoneInTheLastTensorLeavesNothing) {
  const TemporaryDirectory directory;
  DFlashShape shape;
  shape.feed_forward = 64;  // whole blocks: other rows would stay as they are
  const auto source = make_dflash(shape, 1);
  const LogicalTensor& last = source->tensors().back();
  std::vector<float> values(static_cast<size_t>(last.elements()), 0.25F);
  values.back() = std::numeric_limits<float>::quiet_NaN();
  const std::string path =
      write_drafter_with(directory, shape, last.name.c_str(), std::move(values), 0.25F);
  const std::string file = directory.file("out.gguf");
  const std::string folder = directory.file("folder");
  for (const auto& [type, output] :
       {std::pair("Q8_0", file), std::pair("IQ4_NL", file), std::pair("NVFP4", folder)}) {
    const ProgramResult result = run_octet({"quantize", path, output, "--type", type, "-q"});
    EXPECT_EQ(result.exit_code, 2) << type;
    EXPECT_THAT(result.err, testing::HasSubstr(last.name)) << type;
    EXPECT_FALSE(exists(output)) << type;
    EXPECT_EQ(partial_files(directory), 0) << type;
  }
}

TEST(Quantize, OnATerminalItTellsRateAndTimeLeft) {
  const TemporaryDirectory directory;
  const std::string source = synth_target(directory);
  TerminalSession terminal(
      {"quantize", source, directory.file("out.gguf"), "--type", "Q4_K_M", "-t", "1"}
  );
  EXPECT_THAT(terminal.wait_for(" left: "), testing::HasSubstr("/s, "));
}

TEST(Convert, RefusesWhatWouldLoseSomething) {
  const TemporaryDirectory directory;
  const std::string source = synth_target(directory);
  const std::string quantized = directory.file("q.gguf");
  ASSERT_EQ(run_octet({"quantize", source, quantized, "--type", "Q8_0", "-q"}).exit_code, 0);
  const auto expect_refusal = [](const std::vector<std::string>& command, const char* reason) {
    const ProgramResult result = run_octet(command);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, testing::HasSubstr(reason));
  };
  expect_refusal({"quantize", source, quantized, "--type", "Q8_0"}, "--force");
  expect_refusal({"convert", quantized, quantized, "--force"}, "are the same");
  expect_refusal({"convert", quantized, directory.file("hf")}, "--dequantize");
  expect_refusal({"convert", source, directory.file("no/where.gguf")}, "does not exist");
  expect_refusal({"quantize", source, directory.file("x.gguf"), "--type", "Q3_K"}, "Q4_K_M");
  expect_refusal({"quantize", source, directory.file("x"), "--type", "Q8_0"}, ".gguf");
  expect_refusal(
      {"quantize", source, directory.file("x.gguf"), "--type", "drafter-q4_1"}, "drafters"
  );
  expect_refusal(
      {"quantize", source, directory.file("x.gguf"), "--type", "Q8_0", "--tensor", "nix=Q8_0"},
      "matches no matrix"
  );
  EXPECT_EQ(run_octet({"convert", quantized, directory.file("hf"), "--dequantize"}).exit_code, 0);
  EXPECT_EQ(open_checkpoint(directory.file("hf"))->at("blk.0.attn_q.weight").dtype, DType::kBF16);
}

TEST(Convert, ConvertedPairsVerify) {
  const TemporaryDirectory directory;
  const std::string folder = directory.file("target");
  const std::string drafter = directory.file("drafter");
  const ProgramResult target =
      run_octet({"convert", kPairTarget, folder, "--dequantize", "--shard-size", "4MB"});
  ASSERT_EQ(target.exit_code, 0) << target.err;
  ASSERT_EQ(run_octet({"convert", kPairDrafter, drafter, "--dequantize"}).exit_code, 0);
  const ProgramResult verified = run_octet(
      {"verify", "-m", folder, "-md", drafter, "-n", "24", "-t", "1", "--drafter", "dflash"}
  );
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
}

TEST(Convert, FoldersOfDraftersNeedNoTokenizer) {
  const TemporaryDirectory directory;
  const std::string folder = directory.file("folder");
  ASSERT_EQ(run_octet({"convert", kPairDrafter, folder, "--dequantize", "-q"}).exit_code, 0);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    std::filesystem::remove(folder + "/" + name);  // as drafters are published
  }
  const std::string copy = directory.file("copy");
  const std::string named = directory.file("named");
  const std::string nvfp4 = directory.file("nvfp4");
  const std::string gguf = directory.file("out.gguf");
  EXPECT_EQ(run_octet({"convert", folder, copy, "-q"}).exit_code, 0);
  EXPECT_FALSE(exists(copy + "/tokenizer.json"));
  EXPECT_EQ(run_octet({"quantize", folder, nvfp4, "--type", "NVFP4", "-q"}).exit_code, 0);
  EXPECT_FALSE(exists(nvfp4 + "/tokenizer.json"));
  EXPECT_EQ(run_octet({"convert", folder, named, "--tokenizer", kPairTarget, "-q"}).exit_code, 0);
  EXPECT_TRUE(exists(named + "/tokenizer.json"));
  const ProgramResult refused = run_octet({"convert", folder, gguf, "-q"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, testing::HasSubstr("--tokenizer"));
}

TEST(Quantize, NVFP4FolderOpensAndSharesScalesOfFusedWeights) {
  const TemporaryDirectory directory;
  const std::string drafter = directory.file("d.gguf");
  ASSERT_EQ(
      run_octet({"synth", "--preset", "tiny", "--kind", "drafter", "-o", drafter, "-q"}).exit_code,
      0
  );
  const std::string folder = directory.file("nvfp4");
  const ProgramResult result =
      run_octet({"quantize", drafter, folder, "--type", "NVFP4", "--exclude", "fc"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto made = open_checkpoint(folder);
  EXPECT_EQ(made->at("fc.weight").dtype, DType::kBF16);
  EXPECT_EQ(made->at("blk.0.attn_q.weight").dtype, DType::kNVFP4ModelOpt);
  EXPECT_EQ(made->at("blk.0.attn_q.weight").scale, made->at("blk.0.attn_v.weight").scale);
  EXPECT_EQ(made->at("blk.0.ffn_gate.weight").scale, made->at("blk.0.ffn_up.weight").scale);
  EXPECT_EQ(*made->metadata.find_string("general.quant_algo"), "W4A16_NVFP4");
  EXPECT_THAT(read_text(folder + "/hf_quant_config.json"), testing::HasSubstr("\"fc\""));
}

TEST(Quantize, WhatASourceSaidOfItsOwnWeightsDoesNotStay) {
  const TemporaryDirectory directory;
  const auto drafter = open_checkpoint(kPairDrafter);
  Metadata metadata = drafter->metadata;
  metadata.set("general.quant_algo", std::string("NVFP4"));
  const std::string source = directory.file("source.gguf");
  write_gguf(source, metadata, drafter->tensors());
  ASSERT_NE(open_checkpoint(source)->metadata.find_string("general.quant_algo"), nullptr);
  // NVFP4 would promise input scales.
  const std::string folder = directory.file("folder");
  ASSERT_EQ(run_octet({"quantize", source, folder, "--type", "NVFP4", "-q"}).exit_code, 0);
  EXPECT_EQ(open_checkpoint(folder)->metadata.string("general.quant_algo"), "W4A16_NVFP4");
  const std::string gguf = directory.file("out.gguf");
  ASSERT_EQ(run_octet({"quantize", source, gguf, "--type", "Q4_0", "-q"}).exit_code, 0);
  EXPECT_EQ(open_checkpoint(gguf)->metadata.find_string("general.quant_algo"), nullptr);
}

std::string first_bytes(std::span<const std::byte> bytes, size_t count) {
  return {reinterpret_cast<const char*>(bytes.data()), count};
}

TEST(Quantize, WritesThePublishedBytesOfNVFP4InBothLayouts) {
  const TemporaryDirectory directory;
  const std::string golden = OCTET_SOURCE_DIR "/tests/golden/quant/nvfp4/";
  DFlashShape shape;
  shape.head_dim = 16;  // four heads of it are the 64 columns of the published weight
  shape.hidden = 64;    // and all other rows are whole blocks of GGUF's layout too
  shape.feed_forward = 64;
  constexpr const char* kName = "blk.0.attn_output.weight";
  const std::string source =
      write_drafter_with(directory, shape, kName, golden_floats("../nvfp4/w.f32"), 0.0F);
  const std::string folder = directory.file("folder");
  const std::string gguf = directory.file("repacked.gguf");
  for (const char* threads : {"1", "3"}) {
    const ProgramResult result =
        run_octet({"quantize", source, folder, "--type", "NVFP4", "--force", "-q", "-t", threads});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto made = open_checkpoint(folder);
    const LogicalTensor& tensor = made->at(kName);
    ASSERT_EQ(tensor.dtype, DType::kNVFP4ModelOpt);
    EXPECT_EQ(first_bytes(tensor.data, 256), read_text(golden + "w.weight.u8"));
    EXPECT_EQ(first_bytes(tensor.block_scales, 32), read_text(golden + "w.weight_scale.e4m3"));
    EXPECT_EQ(tensor.scale, golden_floats("../nvfp4/w.weight_scale_2.f32").front());
  }
  ASSERT_EQ(run_octet({"convert", folder, gguf, "-q"}).exit_code, 0);
  const auto repacked = open_checkpoint(gguf);
  const LogicalTensor& tensor = repacked->at(kName);
  ASSERT_EQ(tensor.dtype, DType::kNVFP4);
  EXPECT_EQ(first_bytes(tensor.data, 288), read_text(golden + "w.ggml_nvfp4.q"));
  EXPECT_EQ(tensor.scale, golden_floats("../nvfp4/w.weight_scale_2.f32").front());
}

/// What a drafter is calibrated with; few tokens, one thread.
std::vector<std::string> calibrating(const std::string& text, std::vector<std::string> more) {
  std::vector<std::string> arguments = {
      "--calibrate", text, "--target", kPairTarget, "--chunk", "64"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Quantize, GptqDraftersDependOnTheTextNotOnThreads) {
  const TemporaryDirectory directory;
  const std::string text = directory.write(
      "text",
      "<|turn>user\nWhat is a river?<turn|>\n<|turn>model\nA river is water that flows.<turn|>\n"
  );
  const auto quantize = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "quantize", kPairDrafter, directory.file(name), "--type", "NVFP4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_octet(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return open_checkpoint(directory.file(name));
  };
  const auto plain = quantize("plain", {});
  const auto one = quantize("one", calibrating(text, {"--gptq", "-t", "1"}));
  const auto two = quantize("two", calibrating(text, {"--gptq", "-t", "2"}));
  expect_same_tensors(*one, *two);
  for (const char* name : {"fc.weight", "blk.0.attn_q.weight", "blk.1.ffn_down.weight"}) {
    EXPECT_EQ(one->at(name).dtype, DType::kNVFP4ModelOpt);
    EXPECT_EQ(one->at(name).scale, plain->at(name).scale);
    EXPECT_FALSE(std::ranges::equal(one->at(name).data, plain->at(name).data)) << name;
  }
  EXPECT_EQ(*one->metadata.find_string("general.quant_algo"), "W4A16_NVFP4");
  // Four bits, rounded for the text, keep most of the acceptance.
  const ProgramResult judged = judge_drafter(
      kPairDrafter, directory.file("one"), {"-n", "48", "--max-acceptance-loss", "20"}
  );
  EXPECT_EQ(judged.exit_code, 0) << judged.out << judged.err;
  const auto w4a4 = quantize("w4a4", calibrating(text, {"--activation", "w4a4", "-t", "1"}));
  EXPECT_EQ(*w4a4->metadata.find_string("general.quant_algo"), "NVFP4");
  EXPECT_THAT(
      read_text(directory.file("w4a4/config.json")), testing::HasSubstr("input_activations")
  );
  ASSERT_TRUE(w4a4->at("blk.0.attn_q.weight").input_scale.has_value());
  EXPECT_EQ(
      w4a4->at("blk.0.attn_q.weight").input_scale, w4a4->at("blk.0.attn_v.weight").input_scale
  );
  EXPECT_TRUE(std::ranges::equal(w4a4->at("fc.weight").data, plain->at("fc.weight").data));
  // Both together: the input scales of the calibration, codes of their own.
  const auto both =
      quantize("both", calibrating(text, {"--gptq", "--activation", "w4a4", "-t", "2"}));
  EXPECT_EQ(*both->metadata.find_string("general.quant_algo"), "NVFP4");
  for (const char* name : {"fc.weight", "blk.0.attn_q.weight", "blk.1.ffn_down.weight"}) {
    EXPECT_EQ(both->at(name).input_scale, w4a4->at(name).input_scale) << name;
    EXPECT_EQ(both->at(name).scale, plain->at(name).scale) << name;
    EXPECT_FALSE(std::ranges::equal(both->at(name).data, plain->at(name).data)) << name;
    EXPECT_FALSE(std::ranges::equal(both->at(name).data, one->at(name).data)) << name;
  }
  // As GGUF it says the same.
  const std::string gguf = directory.file("w4a4.gguf");
  ASSERT_EQ(
      run_octet({"convert", directory.file("w4a4"), gguf, "--tokenizer", kPairTarget}).exit_code, 0
  );
  const auto repacked = open_checkpoint(gguf);
  EXPECT_EQ(*repacked->metadata.find_string("general.quant_algo"), "NVFP4");
  EXPECT_EQ(repacked->at("fc.weight").input_scale, w4a4->at("fc.weight").input_scale);
  // Both run, in every mode that they allow; text never depends on it.
  std::string text_of_all;
  for (const char* mode : {"auto", "fast", "w4a16", "w4a4"}) {
    const ProgramResult run = run_octet(
        {"run",
         "-m",
         kPairTarget,
         "-md",
         gguf,
         "-t",
         "1",
         "-n",
         "24",
         "--temp",
         "0",
         "-q",
         "-p",
         "What is a river?",
         "--activation",
         mode}
    );
    EXPECT_EQ(run.exit_code, 0) << run.err;
    text_of_all = text_of_all.empty() ? run.out : text_of_all;
    EXPECT_EQ(run.out, text_of_all) << mode;
  }
  const ProgramResult lacking = run_octet(
      {"run", "-m", kPairTarget, "-md", directory.file("one"), "-p", "x", "--activation", "w4a4"}
  );
  EXPECT_EQ(lacking.exit_code, 2);
  EXPECT_THAT(lacking.err, testing::HasSubstr("no input scale"));
  const ProgramResult idle = run_with_pair("run", {"-p", "x", "--activation", "fast"});
  EXPECT_EQ(idle.exit_code, 2);
  EXPECT_THAT(idle.err, testing::HasSubstr("there are none"));
}

TEST(Quantize, CalibrationSaysWhatItLacks) {
  const TemporaryDirectory directory;
  const std::string text = directory.write("text", "A river.");
  const std::string out = directory.file("out");
  const auto expect_refusal = [&](std::vector<std::string> arguments, const char* reason) {
    arguments.insert(arguments.begin(), {"quantize", kPairDrafter});
    const ProgramResult result = run_octet(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, testing::HasSubstr(reason));
    EXPECT_FALSE(exists(out));
  };
  expect_refusal({out, "--type", "NVFP4", "--gptq"}, "--calibrate");
  expect_refusal({out, "--type", "NVFP4", "--gptq", "--calibrate", text}, "--target");
  expect_refusal({out, "--type", "NVFP4", "--calibrate", text}, "add --gptq");
  expect_refusal({out, "--type", "NVFP4", "--target", kPairTarget}, "leave it out");
  expect_refusal(
      {out + ".gguf", "--type", "NVFP4", "--gptq", "--calibrate", text}, "octet convert"
  );
  expect_refusal(
      {out,
       "--type",
       "NVFP4",
       "--activation",
       "w4a4",
       "--exclude",
       "*",
       "--calibrate",
       text,
       "--target",
       kPairTarget},
      "nothing to calibrate"
  );
  for (const char* flag : {"--chunk", "--chunks", "--isa"}) {
    expect_refusal({out, "--type", "NVFP4", flag, "2"}, "there is none");
  }
  for (const char* flag : {"--prompts", "-n", "-s"}) {
    expect_refusal({out, "--type", "NVFP4", flag, "2"}, "--rollouts");
  }
}

}  // namespace
}  // namespace octet::test
