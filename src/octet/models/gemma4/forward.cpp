#include "octet/models/gemma4/forward.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "octet/base/check.h"
#include "octet/models/gemma4/output_logits.h"

namespace octet {
namespace {

Gemma4Cache& cache_of(const SequenceRows& sequence) {
  auto* cache = dynamic_cast<Gemma4Cache*>(sequence.cache);
  OCTET_CHECK(cache != nullptr);
  return *cache;
}

/// out[i] = source[rows[i]].
void copy_rows(ConstRows source, std::span<const int64_t> rows, Rows out) {
  for (size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(source.row(rows[i]), source.cols, out.row(static_cast<int64_t>(i)));
  }
}

Rows resize_result(std::vector<float>& buffer, int64_t rows, int64_t cols) {
  const auto needed = static_cast<size_t>(rows * cols);
  if (buffer.size() < needed) {
    buffer.resize(needed);
  }
  return {buffer.data(), rows, cols, cols};
}

/// Rows that run layer l to its end, as the plan of a forward has them.
int64_t rows_through(int64_t l, const PassRows& rows, const DepthRule& rule) {
  if (l < rule.last_kv_layer) {
    return rows.rows;
  }
  return l < rule.feature_layers ? std::max(rows.feature_rows, rows.logits_rows) : rows.logits_rows;
}

/// Positions that the last `rows` before `end` see together. window: keys that a row sees, itself
/// included; 0: all.
int64_t keys_read(int64_t end, int64_t rows, int64_t window) {
  if (rows == 0) {
    return 0;
  }
  return window > 0 ? std::min(end, window + rows - 1) : end;
}

/// The same, added up over the rows.
int64_t keys_seen(int64_t end, int64_t rows, int64_t window) {
  int64_t keys = 0;
  for (int64_t row = 0; row < rows; ++row) {
    keys += keys_read(end - row, 1, window);
  }
  return keys;
}

}  // namespace

std::vector<KvLayer> kv_layers_of(const Gemma4Config& config) {
  std::vector<KvLayer> layers;
  for (const Gemma4LayerConfig& layer : config.layers) {
    if (layer.owns_kv) {
      layers.push_back({layer.kv_heads, layer.head_dim, layer.sliding ? config.window : 0});
    }
  }
  return layers;
}

int64_t activation_floats(const Gemma4Config& config) {
  int64_t query_width = 0;
  int64_t kv_width = 0;
  int64_t feed_forward = 0;
  for (const Gemma4LayerConfig& layer : config.layers) {
    query_width = std::max(query_width, int64_t{layer.heads} * layer.head_dim);
    kv_width = std::max(kv_width, int64_t{layer.kv_heads} * layer.head_dim);
    feed_forward = std::max(feed_forward, layer.feed_forward);
  }
  const int64_t ple = config.ple_width * (2 * config.layer_count() + 1);
  const int64_t angles = config.full_head_dim + config.sliding_head_dim;
  return 3 * config.hidden + 2 * query_width + 2 * kv_width + 2 * feed_forward + ple + angles;
}

Gemma4Cache::Gemma4Cache(
    std::span<const KvLayer> layers, int64_t positions, int64_t max_rows, KvType type
)
    : kv_(layers, positions, max_rows, type) {}

void Gemma4Cache::truncate(int64_t length) {
  OCTET_CHECK(kv_.can_truncate(length));
  kv_.truncate(length);
}

void Gemma4Cache::copy_prefix(const SequenceCache& from, int64_t length) {
  const auto* source = dynamic_cast<const Gemma4Cache*>(&from);
  OCTET_CHECK(source != nullptr && source->can_truncate(length));
  kv_.copy_prefix(source->kv_, length);
}

Gemma4Model::Gemma4Model(
    std::shared_ptr<const Checkpoint> checkpoint, Ops& ops, TargetOptions options
)
    : checkpoint_(std::move(checkpoint)),
      ops_(ops),
      options_(std::move(options)),
      config_(read_gemma4_config(*checkpoint_)) {
  OCTET_CHECK(options_.max_rows > 0);
  WeightLoader loader(*checkpoint_, ops_, options_.progress, options_.tables);
  weights_ = load_gemma4_weights(loader, config_);
  weights_bytes_ = loader.weights_bytes();
  tables_bytes_ = loader.tables_bytes();
  shape_ = config_.shape();
  kv_layers_ = kv_layers_of(config_);
  size_t owners = 0;
  for (const Gemma4LayerConfig& layer : config_.layers) {
    kv_index_.push_back(layer.owns_kv ? owners++ : kv_index_[static_cast<size_t>(layer.donor)]);
  }
  sliding_rope_ = Rope(config_.sliding_rope_base, config_.sliding_head_dim, {});
  full_rope_ = Rope(config_.full_rope_base, config_.full_head_dim, weights_.full_rope_divisors);
}

ModelMemory Gemma4Model::memory() const {
  int64_t scratch = result_bytes_ + sliding_rope_.bytes() + full_rope_.bytes();
  for (const RowBuffer* buffer :
       {&residual_,
        &normed_,
        &branch_,
        &query_,
        &key_,
        &value_,
        &attended_,
        &gate_,
        &up_,
        &ple_input_,
        &ple_tokens_,
        &ple_gate_}) {
    scratch += buffer->bytes();
  }
  return {weights_bytes_, tables_bytes_, scratch};
}

PassWork Gemma4Model::pass_work(const PassRows& rows, std::span<const int> taps, KvType type)
    const {
  const DepthRule rule = depth_rule(taps);
  const int64_t end = rows.position + rows.rows;
  PassWork work;
  work.add(weights_.ple_model_projection.get(), rows.rows);
  for (int64_t l = 0; l < config_.layer_count(); ++l) {
    const Gemma4LayerConfig& c = config_.layer(l);
    const Gemma4Layer& w = weights_.layers[static_cast<size_t>(l)];
    const int64_t staying = rows_through(l, rows, rule);
    for (const Weight* weight : {w.key.get(), w.value.get()}) {
      work.add(weight, rows.rows);  // null where another layer's are read
    }
    for (const Weight* weight :
         {w.query.get(),
          w.output.get(),
          w.gate.get(),
          w.up.get(),
          w.down.get(),
          w.ple_gate.get(),
          w.ple_projection.get()}) {
      work.add(weight, staying);
    }
    const int64_t window = c.sliding ? config_.window : 0;
    const int64_t head_bytes = kv_row_bytes(type, c.head_dim);
    work.kv_bytes += 2 * keys_read(end, staying, window) * c.kv_heads * head_bytes;
    // A multiplication and an addition for the score, and as many for the value.
    work.float_multiply_adds += 2 * keys_seen(end, staying, window) * c.heads * c.head_dim;
  }
  work.add(weights_.head.get(), rows.logits_rows);
  return work;
}

std::unique_ptr<SequenceCache> Gemma4Model::new_cache(int64_t positions, KvType type) const {
  return std::make_unique<Gemma4Cache>(kv_layers_, positions, options_.max_rows, type);
}

void Gemma4Model::forward(Batch batch, std::span<const int> taps, ForwardRows& out) {
  const RowPlan rows = plan(batch, taps);
  out.logits = resize_result(
      out.logits_buffer, static_cast<int64_t>(rows.logits_from.size()), config_.vocabulary
  );
  out.features = resize_result(
      out.features_buffer,
      static_cast<int64_t>(rows.features_from.size()),
      static_cast<int64_t>(taps.size()) * config_.hidden
  );
  result_bytes_ = static_cast<int64_t>(
      (out.logits_buffer.capacity() + out.features_buffer.capacity()) * sizeof(float)
  );
  sliding_rope_.rotate_to(rows.positions);
  full_rope_.rotate_to(rows.positions);

  embed_rows(rows);
  embed_per_layer(rows);
  for (int64_t l = 0; l < config_.layer_count(); ++l) {
    attention(l, rows, batch);
    if (rows.rows_through(l) == 0) {
      break;  // every row has left its last keys and values, and nobody reads more of them
    }
    mlp(l, rows);
    per_layer_input(l, rows);
    record_taps(l, rows, taps, out.features);
  }
  logits(rows, batch, out.logits);

  for (const SequenceRows& sequence : batch) {
    cache_of(sequence).kv().extend(static_cast<int64_t>(sequence.tokens.size()));
  }
}

void Gemma4Model::check_sequence(const SequenceRows& sequence) const {
  const auto rows = static_cast<int64_t>(sequence.tokens.size());
  OCTET_CHECK(rows <= options_.max_rows);
  OCTET_CHECK(cache_of(sequence).length() + rows <= sequence.cache->capacity());
  OCTET_CHECK(sequence.logits_rows >= 0 && sequence.logits_rows <= rows);
  OCTET_CHECK(sequence.feature_rows >= 0 && sequence.feature_rows <= rows);
  for (const TokenId token : sequence.tokens) {
    OCTET_CHECK(token >= 0 && token < config_.vocabulary);
  }
}

DepthRule Gemma4Model::depth_rule(std::span<const int> taps) const {
  DepthRule rule;
  rule.layers = config_.layer_count();
  rule.last_kv_layer = options_.skip_unread_rows ? config_.last_kv_layer() : rule.layers;
  rule.window = config_.window;
  for (const int tap : taps) {
    OCTET_CHECK(tap >= 0 && tap < rule.layers);
    rule.feature_layers = std::max<int64_t>(rule.feature_layers, tap + 1);
  }
  return rule;
}

RowPlan Gemma4Model::plan(Batch batch, std::span<const int> taps) const {
  for (const SequenceRows& sequence : batch) {
    check_sequence(sequence);
  }
  return plan_rows(batch, depth_rule(taps));
}

/// x = E[t] * sqrt(D)
void Gemma4Model::embed_rows(const RowPlan& plan) {
  const auto scale = static_cast<float>(std::sqrt(static_cast<double>(config_.hidden)));
  const Rows x = residual_.resize(plan.rows(), config_.hidden);  // [n, D]
  embed(plan.tokens, scale, x);
}

/// u = (rms(M x / sqrt(D)) + T[t] * sqrt(P)) / sqrt(2), the norm over each layer's P values. It
/// depends on the token alone. The model projection M reads the scaled embedding, which is still
/// the residual here.
void Gemma4Model::embed_per_layer(const RowPlan& plan) {
  if (config_.ple_width == 0) {
    return;
  }
  const int64_t width = config_.layer_count() * config_.ple_width;
  std::vector<TokenId> ids = plan.tokens;
  for (TokenId& id : ids) {
    id = id < weights_.ple_embedding->rows() ? id : 0;
  }
  const auto token_scale = static_cast<float>(std::sqrt(static_cast<double>(config_.ple_width)));
  const auto context_scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(config_.hidden)));
  const auto sum_scale = static_cast<float>(std::sqrt(0.5));
  const Rows tokens = ple_tokens_.resize(plan.rows(), width);  // [n, L*P]
  const Rows u = ple_input_.resize(plan.rows(), width);        // [n, L*P]
  ops_.gather_rows(*weights_.ple_embedding, ids, token_scale, tokens);
  const Product context{weights_.ple_model_projection.get(), u};
  ops_.matmul(residual(plan.rows()), {&context, 1});
  ops_.scale(u, context_scale);
  ops_.rms_norm(u, config_.ple_width, weights_.ple_projection_norm.data(), config_.norm_epsilon, u);
  ops_.add_scale(u, tokens, sum_scale);
}

/// x = x + rms(Wo softmax(q K^T) V; post norm). Every row leaves its keys and values, also those
/// that end here.
void Gemma4Model::attention(int64_t l, const RowPlan& plan, Batch batch) {
  const Gemma4LayerConfig& c = config_.layer(l);
  const Gemma4Layer& w = weights_.layers[static_cast<size_t>(l)];
  const int64_t entering = c.owns_kv ? plan.rows() : plan.rows_through(l);
  const int64_t staying = plan.rows_through(l);
  const int64_t query_width = int64_t{c.heads} * c.head_dim;
  const int64_t kv_width = int64_t{c.kv_heads} * c.head_dim;

  const Rows normed = normed_.resize(entering, config_.hidden);  // [n, D]
  const Rows query = query_.resize(staying, query_width);        // [n, H*d]
  ops_.rms_norm(
      residual(entering), config_.hidden, w.attention_norm.data(), config_.norm_epsilon, normed
  );
  if (c.owns_kv) {
    const Rows key = key_.resize(entering, kv_width);      // [n, K*d]
    const Rows value = value_.resize(entering, kv_width);  // [n, K*d]
    const Product products[] = {{w.key.get(), key}, {w.value.get(), value}, {w.query.get(), query}};
    const bool together = entering == staying;
    ops_.matmul(normed, {products, together ? 3U : 2U});
    if (!together) {
      ops_.matmul(normed.slice(0, staying), {products + 2, 1});
    }
    store_keys_and_values(l, plan, batch);
  } else {
    const Product product{w.query.get(), query};
    ops_.matmul(normed, {&product, 1});
  }
  if (staying == 0) {
    return;
  }
  const Rope& rope = c.sliding ? sliding_rope_ : full_rope_;
  ops_.norm_rope(query, c.head_dim, w.query_norm.data(), config_.norm_epsilon, rope.rows(staying));
  const Rows attended = attended_.resize(staying, query_width);  // [n, H*d]
  attend(l, plan, batch, attended);
  const Rows branch = branch_.resize(staying, config_.hidden);  // [n, D]
  const Product product{w.output.get(), branch};
  ops_.matmul(attended, {&product, 1});
  ops_.add_rms_norm(
      residual(staying), branch, w.post_attention_norm.data(), config_.norm_epsilon, 1.0F
  );
}

/// k = rope(rms(k; k_norm)), v = rms(v), into the caches.
void Gemma4Model::store_keys_and_values(int64_t l, const RowPlan& plan, Batch batch) {
  const Gemma4LayerConfig& c = config_.layer(l);
  const Gemma4Layer& w = weights_.layers[static_cast<size_t>(l)];
  const Rope& rope = c.sliding ? sliding_rope_ : full_rope_;
  const Rows key = key_.rows();
  const Rows value = value_.rows();
  ops_.norm_rope(key, c.head_dim, w.key_norm.data(), config_.norm_epsilon, rope.rows(key.rows));
  ops_.rms_norm(value, c.head_dim, nullptr, config_.norm_epsilon, value);
  for (const RowGroup& group : plan.groups) {
    const auto positions =
        std::span(plan.positions)
            .subspan(static_cast<size_t>(group.first_row), static_cast<size_t>(group.rows));
    ops_.store_kv(
        key.slice(group.first_row, group.rows),
        value.slice(group.first_row, group.rows),
        positions,
        cache_of(batch[group.sequence]).kv().view(kv_index_[static_cast<size_t>(l)])
    );
  }
}

/// Scores are q . k, unscaled: the norms of q and k carry the scale.
void Gemma4Model::attend(int64_t l, const RowPlan& plan, Batch batch, Rows out) {
  const Gemma4LayerConfig& c = config_.layer(l);
  const std::span<const KeyRange> ranges = c.sliding ? plan.sliding_keys : plan.full_keys;
  std::vector<AttendSegment> segments;
  for (const RowGroup& group : plan.groups) {
    if (group.depth <= l) {
      break;
    }
    segments.push_back(
        {group.first_row,
         cache_of(batch[group.sequence]).kv().view(kv_index_[static_cast<size_t>(l)]),
         ranges.subspan(static_cast<size_t>(group.first_row), static_cast<size_t>(group.rows))}
    );
  }
  ops_.attend(query_.rows(), c.heads, 1.0F, segments, out);
}

/// x = x + rms(Wdown(gelu(Wgate m) * (Wup m)); post norm), m = rms(x). Without per-layer embeddings
/// the layer ends here, and so its scalar applies here.
void Gemma4Model::mlp(int64_t l, const RowPlan& plan) {
  const Gemma4Layer& w = weights_.layers[static_cast<size_t>(l)];
  const int64_t rows = plan.rows_through(l);
  const int64_t width = config_.layer(l).feed_forward;
  const Rows x = residual(rows);                             // [n, D]
  const Rows normed = normed_.resize(rows, config_.hidden);  // [n, D]
  const Rows gate = gate_.resize(rows, width);               // [n, F]
  const Rows up = up_.resize(rows, width);                   // [n, F]
  const Rows branch = branch_.resize(rows, config_.hidden);  // [n, D]
  ops_.rms_norm(x, config_.hidden, w.mlp_norm.data(), config_.norm_epsilon, normed);
  const Product gate_and_up[] = {{w.gate.get(), gate}, {w.up.get(), up}};
  ops_.matmul(normed, gate_and_up);
  ops_.gelu_mul(gate, up);
  const Product down{w.down.get(), branch};
  ops_.matmul(gate, {&down, 1});
  const float scale = config_.ple_width == 0 ? w.scale : 1.0F;
  ops_.add_rms_norm(x, branch, w.post_mlp_norm.data(), config_.norm_epsilon, scale);
}

/// x = (x + rms(Wpp(gelu(Wpg x) * u_l); post norm)) * layer scalar. The gate reads the residual
/// itself, not a norm.
void Gemma4Model::per_layer_input(int64_t l, const RowPlan& plan) {
  if (config_.ple_width == 0) {
    return;
  }
  const Gemma4Layer& w = weights_.layers[static_cast<size_t>(l)];
  const int64_t rows = plan.rows_through(l);
  const int64_t width = config_.ple_width;
  const Rows x = residual(rows);                             // [n, D]
  const Rows gate = ple_gate_.resize(rows, width);           // [n, P]
  const Rows branch = branch_.resize(rows, config_.hidden);  // [n, D]
  Rows u = ple_input_.rows().slice(0, rows);                 // [n, P] of [n, L*P]
  u.data += l * width;
  u.cols = width;
  const Product gate_product{w.ple_gate.get(), gate};
  ops_.matmul(x, {&gate_product, 1});
  ops_.gelu_mul(gate, u);
  const Product projection{w.ple_projection.get(), branch};
  ops_.matmul(gate, {&projection, 1});
  ops_.add_rms_norm(x, branch, w.post_ple_norm.data(), config_.norm_epsilon, w.scale);
}

/// A tap is the residual after a whole layer, its scalar included and no norm applied.
void Gemma4Model::record_taps(
    int64_t l, const RowPlan& plan, std::span<const int> taps, Rows features
) const {
  for (size_t t = 0; t < taps.size(); ++t) {
    if (taps[t] != l) {
      continue;
    }
    Rows columns = features;  // [n, D] of [n, taps * D]
    columns.data += static_cast<int64_t>(t) * config_.hidden;
    columns.cols = config_.hidden;
    copy_rows(residual_.rows(), plan.features_from, columns);
  }
}

/// logits = cap * tanh(E rms(x; n_out) / cap) for the rows that asked; tanh only where more than
/// the order of logits counts.
void Gemma4Model::logits(const RowPlan& plan, Batch batch, Rows out) {
  const Rows hidden = normed_.resize(out.rows, config_.hidden);  // [n, D]
  copy_rows(residual_.rows(), plan.logits_from, hidden);
  norm_and_head(ops_, {weights_.output_norm, config_.norm_epsilon}, *this, hidden, out);
  int64_t first = 0;
  for (const SequenceRows& sequence : batch) {
    if (config_.softcap > 0.0F && !sequence.raw_logits && sequence.logits_rows > 0) {
      ops_.softcap(out.slice(first, sequence.logits_rows), config_.softcap);
    }
    first += sequence.logits_rows;
  }
}

void Gemma4Model::embed(std::span<const TokenId> ids, float scale, Rows out) {
  if (weights_.embedding != nullptr) {
    ops_.gather_rows(*weights_.embedding, ids, scale, out);
  } else {
    ops_.gather_rows(*weights_.head, ids, scale, out);
  }
}

void Gemma4Model::head(ConstRows hidden, Rows logits) {
  const Product product{weights_.head.get(), logits};
  ops_.matmul(hidden, {&product, 1});
}

}  // namespace octet
