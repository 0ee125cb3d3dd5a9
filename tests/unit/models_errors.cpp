// What a model says about files that do not fit: the file, the key or tensor, what was found and
// expected.
#include <cmath>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/models/dflash/config.h"
#include "support/model_runs.h"
#include "support/random_models.h"

namespace octet::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// The same checkpoint with some tensors changed or left out (`change` returns false).
std::shared_ptr<Checkpoint> changed(
    const Checkpoint& from, const std::function<bool(LogicalTensor&)>& change
) {
  auto out = std::make_shared<Checkpoint>();
  out->path = from.path;
  out->metadata = from.metadata;
  out->storage = from.storage;
  for (LogicalTensor tensor : from.tensors()) {
    if (change(tensor)) {
      out->add(std::move(tensor));
    }
  }
  return out;
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

class ModelErrors : public testing::Test {
 protected:
  std::string target_message(const std::shared_ptr<const Checkpoint>& file) {
    return message_of([&] { load_target(file, *ops_, {}); });
  }
  std::string drafter_message(const std::shared_ptr<const Checkpoint>& file) {
    const auto target = load_target(make_gemma({}, 1), *ops_, {});
    return message_of([&] { load_drafter(file, *ops_, *target, {}); });
  }

  std::unique_ptr<Ops> ops_ = test_ops();
};

TEST_F(ModelErrors, WrongArchitecture) {
  EXPECT_THAT(
      target_message(make_dflash({}, 1)),
      AllOf(HasSubstr("random-drafter"), HasSubstr("'dflash'"), HasSubstr("gemma4"))
  );
  EXPECT_THAT(
      drafter_message(make_gemma({}, 1)), AllOf(HasSubstr("random-target"), HasSubstr("dflash"))
  );
  EXPECT_THAT(target_message(std::make_shared<Checkpoint>()), HasSubstr("not stated"));
}

TEST_F(ModelErrors, MissingTensor) {
  const auto file = changed(*make_gemma({}, 1), [](const LogicalTensor& tensor) {
    return tensor.name != "blk.1.ffn_up.weight";
  });
  EXPECT_THAT(
      target_message(file), AllOf(HasSubstr("random-target"), HasSubstr("blk.1.ffn_up.weight"))
  );
}

TEST_F(ModelErrors, WrongShape) {
  const auto file = changed(*make_gemma({}, 1), [](LogicalTensor& tensor) {
    if (tensor.name == "blk.0.attn_q.weight") {
      std::swap(tensor.shape[0], tensor.shape[1]);
      tensor.shape[0] -= 1;
    }
    return true;
  });
  EXPECT_THAT(
      target_message(file),
      AllOf(
          HasSubstr("random-target"),
          HasSubstr("blk.0.attn_q.weight"),
          HasSubstr("[31, 32]"),
          HasSubstr("[32, 32]")
      )
  );
}

TEST_F(ModelErrors, KeysOutOfRange) {
  const auto with = [](const std::string& key, MetadataValue value) {
    auto file = make_gemma({}, 1);
    file->metadata.set(key, std::move(value));
    return file;
  };
  EXPECT_THAT(
      target_message(with("gemma4.block_count", uint32_t{0})),
      AllOf(HasSubstr("random-target"), HasSubstr("gemma4.block_count"), HasSubstr("0"))
  );
  EXPECT_THAT(
      target_message(with("gemma4.attention.shared_kv_layers", uint32_t{3})),
      HasSubstr("without a full layer to share")
  );
  EXPECT_THAT(
      target_message(with("gemma4.rope.dimension_count", uint32_t{4})),
      AllOf(HasSubstr("gemma4.rope.dimension_count is 4"), HasSubstr("16"))
  );
  EXPECT_THAT(
      target_message(with("gemma4.expert_count", uint32_t{4})), HasSubstr("gemma4.expert_count")
  );
  EXPECT_THAT(
      target_message(with("gemma4.attention.head_count_kv", uint32_t{3})),
      HasSubstr("gemma4.attention.head_count_kv is 3")
  );
  EXPECT_THAT(
      target_message(with("gemma4.attention.layer_norm_rms_epsilon", -1.0F)),
      HasSubstr("expected a positive number")
  );
  for (const float cap : {-30.0F, INFINITY, NAN}) {
    EXPECT_THAT(
        target_message(with("gemma4.final_logit_softcapping", cap)),
        HasSubstr("gemma4.final_logit_softcapping")
    ) << cap;
  }
  EXPECT_EQ(target_message(with("gemma4.final_logit_softcapping", 0.0F)), "no error");
}

TEST_F(ModelErrors, PairsThatDoNotFit) {
  auto of_another = make_dflash({}, 1);
  of_another->metadata.set("dflash.target_block_count", uint32_t{48});
  EXPECT_THAT(
      drafter_message(of_another),
      AllOf(HasSubstr("its target is of 48 layers"), HasSubstr("expected of"))
  );
  DFlashShape wide;
  wide.hidden = 64;
  EXPECT_THAT(
      drafter_message(make_dflash(wide, 1)),
      AllOf(HasSubstr("hidden size is 64"), HasSubstr("expected 32"), HasSubstr("random-drafter"))
  );
  DFlashShape wordy;
  wordy.vocabulary = 65;
  EXPECT_THAT(
      drafter_message(make_dflash(wordy, 1)), AllOf(HasSubstr("65 tokens"), HasSubstr("64"))
  );
  DFlashShape deep;
  deep.taps = {1, 4};
  EXPECT_THAT(
      drafter_message(make_dflash(deep, 1)), AllOf(HasSubstr("1, 4"), HasSubstr("layers below 4"))
  );
  DFlashShape masked;
  masked.mask_token = 64;
  EXPECT_THAT(
      drafter_message(make_dflash(masked, 1)), AllOf(HasSubstr("mask token is 64"), HasSubstr("64"))
  );
}

TEST_F(ModelErrors, RelativesOfDFlash) {
  auto file = make_dflash({}, 1);
  add_tensor(*file, random_tensor("blk.0.conv.weight", DType::kF32, {4, 4}, 1, 1.0F));
  EXPECT_THAT(drafter_message(file), HasSubstr("blk.0.conv.weight is not part of plain DFlash"));
  file = make_dflash({}, 1);
  file->metadata.set("dflash.sample_from_anchor", true);
  EXPECT_THAT(drafter_message(file), HasSubstr("dflash.sample_from_anchor"));
  const auto with = [](const char* key, auto value) {
    auto drafter = make_dflash({}, 1);
    drafter->metadata.set(key, MetadataValue(value));
    return drafter;
  };
  EXPECT_THAT(
      drafter_message(with("dflash.attention.value_scale", 2.0F)),
      HasSubstr("dflash.attention.value_scale is 2")
  );
  EXPECT_THAT(
      drafter_message(with("dflash.rope.scaling.type", std::string("yarn"))),
      AllOf(HasSubstr("dflash.rope.scaling.type"), HasSubstr("'yarn'"))
  );
  EXPECT_THAT(
      drafter_message(with("dflash.hidden_activation", std::string("gelu"))),
      AllOf(HasSubstr("dflash.hidden_activation"), HasSubstr("'gelu'"), HasSubstr("'silu'"))
  );
  EXPECT_THAT(
      drafter_message(with("dflash.logit_scale", 0.5F)), HasSubstr("dflash.logit_scale is 0.5")
  );
  EXPECT_THAT(
      drafter_message(with("dflash.final_logit_softcapping", -30.0F)),
      HasSubstr("dflash.final_logit_softcapping")
  );
  for (const float neutral : {0.0F, 1.0F}) {
    EXPECT_EQ(drafter_message(with("dflash.logit_scale", neutral)), "no error");
    EXPECT_EQ(drafter_message(with("dflash.attention.value_scale", neutral)), "no error");
  }
  DFlashShape narrow;
  narrow.window = 7;
  EXPECT_THAT(drafter_message(make_dflash(narrow, 1)), HasSubstr("at least the block of 8"));
}

TEST_F(ModelErrors, KeysOfADrafterAreHonoured) {
  const auto target = load_target(make_gemma({}, 1), *ops_, {});
  const auto shape_with = [&](std::optional<float> cap) {
    auto drafter = make_dflash({}, 1);
    if (cap) {
      drafter->metadata.set("dflash.final_logit_softcapping", *cap);
    }
    return load_drafter(drafter, *ops_, *target, {})->shape().final_softcap;
  };
  EXPECT_EQ(shape_with(std::nullopt), std::nullopt);
  EXPECT_EQ(shape_with(0.0F), 0.0F);
  EXPECT_EQ(shape_with(15.0F), 15.0F);
  auto scaled = make_dflash({}, 1);
  scaled->metadata.set("dflash.attention.scale", 0.25F);
  EXPECT_EQ(read_dflash_config(*scaled).attention_scale, 0.25F);
  EXPECT_EQ(read_dflash_config(*make_dflash({}, 1)).attention_scale, std::sqrt(0.125F));
}

TEST_F(ModelErrors, ProgressReachesTheTotal) {
  TargetOptions options;
  int64_t last = -1;
  int64_t total = 0;
  int calls = 0;
  options.progress = [&](std::string_view, int64_t done_bytes, int64_t total_bytes) {
    EXPECT_GE(done_bytes, last);
    last = done_bytes;
    total = total_bytes;
    ++calls;
  };
  const auto model = load_target(make_gemma({}, 1), *ops_, options);
  EXPECT_EQ(last, total);
  EXPECT_GT(calls, 20);
  EXPECT_GT(model->memory().weights_bytes, 0);
  EXPECT_GT(model->memory().tables_bytes, 0);
}

}  // namespace
}  // namespace octet::test
