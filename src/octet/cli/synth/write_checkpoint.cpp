#include "octet/cli/synth/write_checkpoint.h"

#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/cli/synth/presets.h"
#include "octet/cli/synth/random_weights.h"
#include "octet/cli/synth/recipe.h"
#include "octet/cli/synth/vocabulary.h"
#include "octet/formats/atomic_file.h"
#include "octet/formats/gguf_dialect.h"
#include "octet/formats/gguf_writer.h"
#include "octet/formats/hf_config_writer.h"
#include "octet/formats/rope_frequencies.h"
#include "octet/formats/safetensors_writer.h"
#include "octet/text/tokenizer_metadata.h"

namespace octet::cli {
namespace {

using Plan = std::vector<SynthTensor>;
using OnProgress = FunctionRef<void(const SynthProgress&)>;

int64_t total_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const SynthTensor& planned : plan) {
    bytes += planned.rows() * row_bytes(planned.dtype, planned.cols());
  }
  return bytes;
}

std::vector<std::byte> rope_divisors(int64_t pairs) {
  const auto rotated =
      static_cast<int64_t>(kDefaultPartialRotaryFactor * static_cast<double>(pairs));
  std::vector<std::byte> bytes = constant_values(DType::kF32, 1.0F, rotated);
  const std::vector<std::byte> still = constant_values(DType::kF32, 1e30F, pairs - rotated);
  bytes.insert(bytes.end(), still.begin(), still.end());
  return bytes;
}

/// Writer is GgufWriter or SafetensorsWriter; name gives a tensor's name there.
template <typename Writer, typename Name>
int64_t write_tensors(
    Writer& writer, const Plan& plan, uint64_t seed, Name name, OnProgress on_progress
) {
  RandomWeights random(seed);
  const int64_t total = total_bytes(plan);
  int64_t done = 0;
  for (const SynthTensor& planned : plan) {
    const auto write = [&](std::span<const std::byte> bytes) {
      writer.write(bytes);
      done += static_cast<int64_t>(bytes.size());
      on_progress({planned.tensor.name, done, total});
    };
    writer.begin_tensor(name(planned));
    const int64_t values = planned.rows() * planned.cols();
    if (planned.tensor.name == kRopeFrequenciesName) {
      write(rope_divisors(values));
    } else if (planned.deviation == 0.0) {
      write(constant_values(planned.dtype, planned.constant, values));
    } else {
      random.write(planned.dtype, planned.deviation, values, write);
    }
    writer.end_tensor();
  }
  writer.finish();
  return done;
}

int64_t write_gguf(
    const SynthArguments& arguments,
    const Metadata& metadata,
    const Plan& plan,
    OnProgress on_progress
) {
  std::vector<TensorSpec> specs;
  for (const SynthTensor& planned : plan) {
    specs.push_back({planned.tensor.name, planned.dtype, planned.tensor.shape});
  }
  GgufWriter writer(arguments.output, gguf_metadata(metadata), std::move(specs));
  return write_tensors(
      writer,
      plan,
      arguments.seed,
      [](const SynthTensor& planned) { return planned.tensor.name; },
      on_progress
  );
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path.string());
  file.write(std::as_bytes(std::span(text)));
  file.finish();
}

int64_t write_safetensors(
    const SynthArguments& arguments, const Metadata& metadata, Plan plan, OnProgress on_progress
) {
  if (arguments.recipe != SynthRecipe::kBF16) {
    throw Error(
        ErrorKind::kUnsupported,
        "--format safetensors holds bf16 only; use --type bf16 or --format gguf"
    );
  }
  const bool target = arguments.kind == SynthKind::kTarget;
  std::vector<SafetensorsSpec> specs;
  std::erase_if(plan, [](const SynthTensor& planned) { return planned.tensor.hf_name.empty(); });
  const auto name = [target](const SynthTensor& planned) {
    return (target ? "model." : "") + planned.tensor.hf_name;
  };
  for (SynthTensor& planned : plan) {
    planned.dtype = DType::kBF16;
    specs.push_back({name(planned), "BF16", planned.tensor.shape});
  }
  const std::filesystem::path folder(arguments.output);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    throw Error(
        ErrorKind::kIo,
        fmt::format("{}: cannot be created ({})", arguments.output, failed.message())
    );
  }
  write_text(folder / "config.json", hf_config(metadata, HfTensorFacts()));
  if (target) {
    write_text(folder / "generation_config.json", hf_generation_config(metadata));
    write_text(folder / "tokenizer.json", tokenizer_json_text(metadata));
  }
  SafetensorsWriter writer(
      (folder / "model.safetensors").string(), std::move(specs), {{"format", "pt"}}
  );
  return write_tensors(writer, plan, arguments.seed, name, on_progress);
}

}  // namespace

int64_t write_synthetic_checkpoint(const SynthArguments& arguments, OnProgress on_progress) {
  const bool target = arguments.kind == SynthKind::kTarget;
  if (target && arguments.recipe == SynthRecipe::kQ4_1) {
    throw Error(
        ErrorKind::kUnsupported,
        "--type q4_1 is a recipe for drafters; add --kind drafter or use q4_k_m"
    );
  }
  if (!target && arguments.recipe == SynthRecipe::kQ4KM) {
    throw Error(
        ErrorKind::kUnsupported,
        "--type q4_k_m is a recipe for targets; use q4_1, q8_0 or bf16 for a drafter"
    );
  }
  Metadata metadata =
      target ? target_metadata(arguments.preset) : drafter_metadata(arguments.preset);
  metadata.set("general.file_type", recipe_file_type(arguments.recipe));
  const SynthVocabulary vocabulary =
      make_vocabulary(metadata.integer(target ? "gemma4.vocab_size" : "dflash.vocab_size"));
  Plan plan = plan_tensors(metadata, arguments.recipe);
  add_tokenizer(metadata, vocabulary);
  return arguments.format == SynthFormat::kGguf
             ? write_gguf(arguments, metadata, plan, on_progress)
             : write_safetensors(arguments, metadata, std::move(plan), on_progress);
}

}  // namespace octet::cli
