// The DFlash drafter: fuses target features into context keys and values, and fills a block of
// masks in one pass. Knows nothing of acceptance; see draft_model.h for the contract. Invariant:
// block rows are written behind the committed positions of the same rings and are never read as
// context, because ranges of later rows end where the committed positions end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "octet/models/dflash/config.h"
#include "octet/models/dflash/draft_head.h"
#include "octet/models/dflash/weights.h"
#include "octet/models/draft_model.h"
#include "octet/models/kv_cache.h"
#include "octet/models/rope.h"
#include "octet/models/row_buffer.h"

namespace octet {

/// How the embedding rows of a block are scaled: training recipes differ and a file may not say.
struct EmbeddingScale {
  enum class Kind { kFile, kOne, kSqrtHidden, kValue };
  Kind kind = Kind::kFile;  // the file's dflash.embedding_scale, 1 without it
  float value = 1.0F;       // of kValue

  bool operator==(const EmbeddingScale&) const = default;
};

/// The factor that a choice comes to.
float embedding_factor(const EmbeddingScale& choice, const DFlashConfig& config);

/// Whose head is the pair's.
enum class DraftHead { kOwnIfPresent, kTarget };

struct DrafterOptions {
  EmbeddingScale embedding_scale;
  DraftHead head = DraftHead::kOwnIfPresent;
  /// Read drafts from this head instead (formats/draft_head_file.h opens it); null: the pair's.
  std::shared_ptr<const Checkpoint> draft_head;
  KvType kv_type = KvType::kBF16;
  LoadProgress progress;
};

std::vector<KvLayer> kv_layers_of(const DFlashConfig& config);
/// Floats of activations that a block or an injection keeps for each row.
int64_t activation_floats(const DFlashConfig& config);

/// Positions that may follow a place before the ring forgets what a draft there would see: as many
/// as the target's rings keep, so that both can return to the same places of a conversation.
inline constexpr int64_t kKeptPositions = 256;

class DFlashCache final : public DraftCache {
 public:
  DFlashCache(std::span<const KvLayer> layers, int64_t positions, int64_t block, KvType type);

  int64_t length() const override { return kv_.length(); }
  int64_t valid_from() const override { return kv_.first(); }
  int64_t bytes() const override { return kv_.bytes(); }
  void restart(int64_t position) override { kv_.restart(position); }
  void truncate(int64_t length) override { kv_.truncate(length); }
  void copy_prefix(const DraftCache& from, int64_t length) override;
  int64_t spare_positions() const override;

  KvCache& kv() { return kv_; }

 private:
  KvCache kv_;
};

class DFlashModel final : public DraftModel {
 public:
  /// Throws Error naming the file and the key or tensor that does not fit, kMismatch when the
  /// target does not.
  DFlashModel(
      std::shared_ptr<const Checkpoint> checkpoint,
      Ops& ops,
      TargetModel& target,
      DrafterOptions options
  );

  const DFlashConfig& config() const { return config_; }
  float embedding_scale() const { return embedding_scale_; }
  /// Whether the drafter's file brings a head and it is in use, whole or in part.
  bool has_own_head() const { return own_head_; }
  const DraftShape& shape() const override { return shape_; }
  ModelMemory memory() const override;
  PassWork block_work(int64_t context) const override;
  PassWork inject_work(int64_t rows) const override;
  std::unique_ptr<DraftCache> new_cache(int64_t positions) const override;
  void inject(DraftCache& cache, ConstRows features) override;
  void draft(std::span<const DraftRequest> requests, Rows logits) override;

  /// g = rms(fc features; fusion norm): features [n, T*D], out [n, D]. What inject() makes keys and
  /// values of.
  void fuse(ConstRows features, Rows out);

 private:
  struct Block;

  void inject_rows(KvCache& kv, ConstRows features);
  void embed(std::span<const DraftRequest> requests);
  void attention(size_t l, const Block& block);
  void store_and_attend(size_t l, const Block& block, Rows out);
  void mlp(size_t l);
  void logits(const Block& block, Rows out);
  void load_stored_head();
  const Weight* head() const;  // that drafts are read from

  std::shared_ptr<const Checkpoint> checkpoint_;
  Ops& ops_;
  TargetModel& target_;
  DrafterOptions options_;
  DFlashConfig config_;
  DFlashWeights weights_;
  DraftShape shape_;
  ModelMemory memory_;
  bool own_head_ = false;
  float embedding_scale_ = 1.0F;
  std::vector<KvLayer> kv_layers_;
  Rope rope_;

  // Activations of one block pass or injection, n rows.
  RowBuffer residual_;  // [n, D]
  RowBuffer normed_;    // [n, D]
  RowBuffer branch_;    // [n, D]: what a part adds to the residual
  RowBuffer query_;     // [n, H*d]
  RowBuffer key_;       // [n, K*d]
  RowBuffer value_;     // [n, K*d]
  RowBuffer attended_;  // [n, H*d]
  RowBuffer gate_;      // [n, F]
  RowBuffer up_;        // [n, F]
};

}  // namespace octet
