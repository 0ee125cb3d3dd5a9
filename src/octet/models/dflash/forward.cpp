#include "octet/models/dflash/forward.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "octet/base/check.h"

namespace octet {
namespace {

/// Rows of one injection step: bounds scratch, and never laps a ring (every ring holds at least
/// this many).
constexpr int64_t kInjectRows = kAttentionChunk;

KvCache& cache_of(DraftCache& cache) {
  auto* own = dynamic_cast<DFlashCache*>(&cache);
  OCTET_CHECK(own != nullptr);
  return own->kv();
}

/// The context rows that row j of a block at position p sees, then the block itself: one range,
/// because block rows are stored right behind the context.
KeyRange visible_keys(KeyRange context, const DFlashLayerConfig& layer, int64_t j, int64_t block) {
  const int64_t position = context.end + j;
  const int64_t window_begin = layer.window == 0 ? 0 : position + 1 - layer.window;
  const int64_t end = layer.causal ? position + 1 : context.end + block;
  return {std::max(context.begin, window_begin), end};
}

}  // namespace

float embedding_factor(const EmbeddingScale& choice, const DFlashConfig& config) {
  switch (choice.kind) {
    case EmbeddingScale::Kind::kOne:
      return 1.0F;
    case EmbeddingScale::Kind::kSqrtHidden:
      return static_cast<float>(std::sqrt(static_cast<double>(config.hidden)));
    case EmbeddingScale::Kind::kValue:
      return choice.value;
    case EmbeddingScale::Kind::kFile:
      break;
  }
  return config.embedding_scale.value_or(1.0F);
}

/// The rows of all requests' blocks, block after block.
struct DFlashModel::Block {
  std::vector<KvCache*> caches;    // [requests]
  std::vector<int64_t> positions;  // [rows]
  int64_t rows() const { return static_cast<int64_t>(positions.size()); }
};

std::vector<KvLayer> kv_layers_of(const DFlashConfig& config) {
  std::vector<KvLayer> layers;
  for (const DFlashLayerConfig& layer : config.layers) {
    layers.push_back({config.kv_heads, config.head_dim, layer.window});
  }
  return layers;
}

int64_t activation_floats(const DFlashConfig& config) {
  const int64_t query_width = int64_t{config.heads} * config.head_dim;
  const int64_t kv_width = int64_t{config.kv_heads} * config.head_dim;
  return 3 * config.hidden + 2 * query_width + 2 * kv_width + 2 * config.feed_forward +
         config.head_dim;
}

DFlashCache::DFlashCache(
    std::span<const KvLayer> layers, int64_t positions, int64_t block, KvType type
)
    : kv_(layers, positions + block, kKeptPositions + block, type) {}

void DFlashCache::copy_prefix(const DraftCache& from, int64_t length) {
  const auto* source = dynamic_cast<const DFlashCache*>(&from);
  OCTET_CHECK(source != nullptr);
  kv_.copy_prefix(source->kv_, length);
}

int64_t DFlashCache::spare_positions() const {
  const int64_t until = kv_.keeps_until(0);  // without the window: what may be written from 0 on
  return until == std::numeric_limits<int64_t>::max() ? until : kKeptPositions;
}

DFlashModel::DFlashModel(
    std::shared_ptr<const Checkpoint> checkpoint,
    Ops& ops,
    TargetModel& target,
    DrafterOptions options
)
    : checkpoint_(std::move(checkpoint)),
      ops_(ops),
      target_(target),
      options_(std::move(options)),
      config_(read_dflash_config(*checkpoint_)) {
  check_pair(target.shape(), config_, checkpoint_->path);
  own_head_ = config_.own_vocabulary && options_.head == DraftHead::kOwnIfPresent;
  const bool whole_own_head = own_head_ && options_.draft_head == nullptr;
  WeightLoader loader(*checkpoint_, ops_, options_.progress);
  weights_ = load_dflash_weights(loader, config_, whole_own_head);
  memory_.weights_bytes = loader.weights_bytes();
  shape_ = {
      config_.block,
      config_.context_window(),
      config_.taps,
      config_.mask_token,
      target.shape().vocabulary,
      {},
      config_.final_softcap};
  if (options_.draft_head != nullptr) {
    load_stored_head();
  }
  embedding_scale_ = embedding_factor(options_.embedding_scale, config_);
  kv_layers_ = kv_layers_of(config_);
  rope_ = Rope(config_.rope_base, config_.head_dim, {});
}

/// A stored head takes the place of the pair's: its weight, and a column for each of its tokens.
void DFlashModel::load_stored_head() {
  const LogicalTensor* whole =
      own_head_ ? &checkpoint_->at("output.weight") : target_.head_tensor();
  OCTET_CHECK(whole != nullptr);
  StoredDraftHead stored = load_draft_head(*options_.draft_head, *whole, ops_);
  weights_.head = std::move(stored.weight);
  memory_.weights_bytes += weights_.head->resident_bytes;
  shape_.vocabulary = weights_.head->rows;
  shape_.tokens = std::move(stored.tokens);
}

const Weight* DFlashModel::head() const {
  return weights_.head != nullptr ? weights_.head.get() : target_.head_weight();
}

ModelMemory DFlashModel::memory() const {
  ModelMemory memory = memory_;
  memory.scratch_bytes = rope_.bytes();
  for (const RowBuffer* buffer :
       {&residual_, &normed_, &branch_, &query_, &key_, &value_, &attended_, &gate_, &up_}) {
    memory.scratch_bytes += buffer->bytes();
  }
  return memory;
}

PassWork DFlashModel::block_work(int64_t context) const {
  PassWork work;
  for (size_t l = 0; l < weights_.layers.size(); ++l) {
    const DFlashLayer& w = weights_.layers[l];
    for (const Weight* weight :
         {w.query.get(),
          w.key.get(),
          w.value.get(),
          w.output.get(),
          w.gate.get(),
          w.up.get(),
          w.down.get()}) {
      work.add(weight, config_.block);
    }
    const auto seen = [&](int64_t j) {
      return visible_keys({0, context}, config_.layers[l], j, config_.block);
    };
    for (int64_t j = 0; j < config_.block; ++j) {
      const int64_t keys = seen(j).end - seen(j).begin;
      work.float_multiply_adds += 2 * keys * config_.heads * config_.head_dim;
    }
    const int64_t read = seen(config_.block - 1).end - seen(0).begin;  // by all rows together
    work.kv_bytes += 2 * read * config_.kv_heads * kv_row_bytes(options_.kv_type, config_.head_dim);
  }
  work.add(head(), config_.block - 1);
  return work;
}

PassWork DFlashModel::inject_work(int64_t rows) const {
  PassWork work;
  work.add(weights_.fusion.get(), rows);
  for (const DFlashLayer& layer : weights_.layers) {
    work.add(layer.key.get(), rows);
    work.add(layer.value.get(), rows);
  }
  return work;
}

std::unique_ptr<DraftCache> DFlashModel::new_cache(int64_t positions) const {
  return std::make_unique<DFlashCache>(kv_layers_, positions, config_.block, options_.kv_type);
}

void DFlashModel::fuse(ConstRows features, Rows out) {
  const Product product{weights_.fusion.get(), out};
  ops_.matmul(features, {&product, 1});
  ops_.rms_norm(out, config_.hidden, weights_.fusion_norm.data(), config_.norm_epsilon, out);
}

void DFlashModel::inject(DraftCache& cache, ConstRows features) {
  KvCache& kv = cache_of(cache);
  OCTET_CHECK(features.cols == static_cast<int64_t>(config_.taps.size()) * config_.hidden);
  for (int64_t done = 0; done < features.rows; done += kInjectRows) {
    inject_rows(kv, features.slice(done, std::min(kInjectRows, features.rows - done)));
  }
}

/// Every layer's context keys and values come from the same fused features: k = rope(rms(Wk g)), v
/// = Wv g.
void DFlashModel::inject_rows(KvCache& kv, ConstRows features) {
  const int64_t rows = features.rows;
  const int64_t kv_width = int64_t{config_.kv_heads} * config_.head_dim;
  std::vector<int64_t> positions;
  for (int64_t r = 0; r < rows; ++r) {
    positions.push_back(kv.length() + r);
  }
  rope_.rotate_to(positions);
  const Rows fused = normed_.resize(rows, config_.hidden);  // [n, D]
  const Rows key = key_.resize(rows, kv_width);             // [n, K*d]
  const Rows value = value_.resize(rows, kv_width);         // [n, K*d]
  fuse(features, fused);
  for (size_t l = 0; l < weights_.layers.size(); ++l) {
    const DFlashLayer& w = weights_.layers[l];
    const Product products[] = {{w.key.get(), key}, {w.value.get(), value}};
    ops_.matmul(fused, products);
    ops_.norm_rope(
        key, config_.head_dim, w.key_norm.data(), config_.norm_epsilon, rope_.rows(rows)
    );
    ops_.store_kv(key, value, positions, kv.view(l));
  }
  kv.extend(rows);
}

void DFlashModel::draft(std::span<const DraftRequest> requests, Rows logits_out) {
  OCTET_CHECK(logits_out.rows == static_cast<int64_t>(requests.size()) * (config_.block - 1));
  OCTET_CHECK(logits_out.cols == shape_.vocabulary);
  Block block;
  for (const DraftRequest& request : requests) {
    KvCache& kv = cache_of(*request.cache);
    for (int64_t j = 0; j < config_.block; ++j) {
      block.positions.push_back(kv.length() + j);
    }
    kv.reserve(kv.length() + config_.block);
    block.caches.push_back(&kv);
  }
  rope_.rotate_to(block.positions);

  embed(requests);
  for (size_t l = 0; l < weights_.layers.size(); ++l) {
    attention(l, block);
    mlp(l);
  }
  logits(block, logits_out);
}

/// h = s * E[anchor, mask, mask, ...] with the target's main embedding alone.
void DFlashModel::embed(std::span<const DraftRequest> requests) {
  std::vector<TokenId> ids;
  for (const DraftRequest& request : requests) {
    ids.push_back(request.anchor);
    ids.insert(ids.end(), static_cast<size_t>(config_.block) - 1, config_.mask_token);
  }
  target_.embed(
      ids, embedding_scale_, residual_.resize(static_cast<int64_t>(ids.size()), config_.hidden)
  );
}

/// h = h + Wo softmax(scale * q [k_context; k_block]^T) [v_context; v_block]
void DFlashModel::attention(size_t l, const Block& block) {
  const DFlashLayer& w = weights_.layers[l];
  const int64_t rows = block.rows();
  const int64_t query_width = int64_t{config_.heads} * config_.head_dim;
  const int64_t kv_width = int64_t{config_.kv_heads} * config_.head_dim;
  const Rows h = residual_.rows();                           // [n, D]
  const Rows normed = normed_.resize(rows, config_.hidden);  // [n, D]
  const Rows query = query_.resize(rows, query_width);       // [n, H*d]
  const Rows key = key_.resize(rows, kv_width);              // [n, K*d]
  const Rows value = value_.resize(rows, kv_width);          // [n, K*d]
  ops_.rms_norm(h, config_.hidden, w.attention_norm.data(), config_.norm_epsilon, normed);
  const Product products[] = {{w.query.get(), query}, {w.key.get(), key}, {w.value.get(), value}};
  ops_.matmul(normed, products);
  const RopeRows rope = rope_.rows(rows);
  ops_.norm_rope(query, config_.head_dim, w.query_norm.data(), config_.norm_epsilon, rope);
  ops_.norm_rope(key, config_.head_dim, w.key_norm.data(), config_.norm_epsilon, rope);
  const Rows attended = attended_.resize(rows, query_width);  // [n, H*d]
  store_and_attend(l, block, attended);
  const Rows branch = branch_.resize(rows, config_.hidden);  // [n, D]
  const Product output{w.output.get(), branch};
  ops_.matmul(attended, {&output, 1});
  ops_.add(h, branch);
}

void DFlashModel::store_and_attend(size_t l, const Block& block, Rows out) {
  const int64_t width = config_.block;
  std::vector<KeyRange> ranges;
  for (const KvCache* kv : block.caches) {
    for (int64_t j = 0; j < width; ++j) {
      ranges.push_back(visible_keys({kv->first(l), kv->length()}, config_.layers[l], j, width));
    }
  }
  std::vector<AttendSegment> segments;
  for (size_t i = 0; i < block.caches.size(); ++i) {
    const int64_t first_row = static_cast<int64_t>(i) * width;
    const auto first = static_cast<size_t>(first_row);
    const auto count = static_cast<size_t>(width);
    const KvView& view = block.caches[i]->view(l);
    ops_.store_kv(
        key_.rows().slice(first_row, width),
        value_.rows().slice(first_row, width),
        std::span(block.positions).subspan(first, count),
        view
    );
    segments.push_back({first_row, view, std::span(ranges).subspan(first, count)});
  }
  ops_.attend(query_.rows(), config_.heads, config_.attention_scale, segments, out);
}

/// h = h + Wdown(silu(Wgate y) * (Wup y)), y = rms(h)
void DFlashModel::mlp(size_t l) {
  const DFlashLayer& w = weights_.layers[l];
  const Rows h = residual_.rows();                             // [n, D]
  const Rows normed = normed_.resize(h.rows, config_.hidden);  // [n, D]
  const Rows gate = gate_.resize(h.rows, config_.feed_forward);
  const Rows up = up_.resize(h.rows, config_.feed_forward);
  const Rows branch = branch_.resize(h.rows, config_.hidden);  // [n, D]
  ops_.rms_norm(h, config_.hidden, w.mlp_norm.data(), config_.norm_epsilon, normed);
  const Product gate_and_up[] = {{w.gate.get(), gate}, {w.up.get(), up}};
  ops_.matmul(normed, gate_and_up);
  ops_.silu_mul(gate, up);
  const Product down{w.down.get(), branch};
  ops_.matmul(gate, {&down, 1});
  ops_.add(h, branch);
}

/// z_j = Head rms(h_j; norm) for the mask rows: row j predicts the token at its own position, and
/// row 0 is known.
void DFlashModel::logits(const Block& block, Rows out) {
  const Rows h = residual_.rows();
  const Rows masks = normed_.resize(out.rows, config_.hidden);  // [requests * (block - 1), D]
  const int64_t drafts = config_.block - 1;
  for (int64_t i = 0; i < static_cast<int64_t>(block.caches.size()); ++i) {
    ops_.rms_norm(
        h.slice(i * config_.block + 1, drafts),
        config_.hidden,
        weights_.output_norm.data(),
        config_.norm_epsilon,
        masks.slice(i * drafts, drafts)
    );
  }
  if (weights_.head == nullptr) {
    target_.head(masks, out);
    return;
  }
  const Product product{weights_.head.get(), out};
  ops_.matmul(masks, {&product, 1});
}

}  // namespace octet
