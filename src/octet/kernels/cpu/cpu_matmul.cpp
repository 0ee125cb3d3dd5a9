#include "octet/kernels/cpu/cpu_matmul.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/base/shared_work.h"
#include "octet/kernels/cpu/matmul/activation_layout.h"
#include "octet/kernels/cpu/matmul/tile_layout.h"
#include "octet/kernels/cpu/matmul/weight_memory.h"
#include "octet/kernels/cpu/matmul/weight_packing.h"
#include "octet/kernels/cpu/matmul/weight_unpacking.h"
#include "octet/kernels/cpu/scratch.h"

namespace octet::cpu {

namespace {

/// A packer drops the file's pages behind itself in steps of this size.
constexpr int64_t kDropBytes = int64_t{4} << 20;
/// Rows that share one pass over the weights: more would push their activations out of the
/// second-level cache, fewer would read the weights more often than their products take. Set by the
/// prefill sweep in docs/kernels.md.
constexpr int64_t kMostRowsPerPass = 64;
constexpr int64_t kActivationCacheBytes = 384 << 10;
/// Below this many values one thread rounds activations faster than several could agree to.
constexpr int64_t kInlinePackValues = 8192;
/// Threads take the weights tile by tile; where rows need several passes, as many tiles as the
/// second-level cache holds in the meantime.
constexpr int64_t kShareBytesOfPasses = 256 << 10;
/// Below this many bytes of weights times rows one thread is done before others have started.
constexpr int64_t kInlineProductBytes = 32 << 10;

struct PackedWeight final : Weight {
  std::shared_ptr<std::byte> tiles;
  int64_t tile_bytes = 0;
  float scale = 1.0F;         // of the finished sums
  float tensor_scale = 1.0F;  // of the rows
  ActivationKind activations = ActivationKind::kF32;
  float input_scale = 1.0F;  // kE2M1Per16
  MultiplyTile multiply = nullptr;
};

/// The shared input rounded in one way: groups of rows, each group's chunks one behind the other.
struct PackedActivations {
  ActivationKind kind = ActivationKind::kF32;
  float input_scale = 1.0F;
  std::byte* groups = nullptr;
  int64_t group_bytes = 0;
};

/// One product of a call.
struct Run {
  const PackedWeight* weight = nullptr;
  Rows out;
  size_t activations = 0;  // which way of rounding the input
  int64_t first_tile = 0;  // of the tiles of all products
  int64_t last_tile = 0;   // one past
};

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

/// Asks for the lines that a tile's results go to, while they are computed: a store that misses
/// holds up those behind it.
void request_outputs(const Rows& out, Range rows, Range outputs) {
  constexpr int64_t kLineValues = 64 / sizeof(float);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t o = outputs.begin; o < outputs.end; o += kLineValues) {
      __builtin_prefetch(out.row(r) + o, 1);
    }
  }
}

/// out = sums * scale for `count` outputs of a tile, nearly always all of them.
void write_outputs(const float* sums, float scale, int64_t count, float* out) {
  if (count == kTileRows) {
    for (int64_t o = 0; o < kTileRows; ++o) {
      out[o] = sums[o] * scale;
    }
    return;
  }
  for (int64_t o = 0; o < count; ++o) {
    out[o] = sums[o] * scale;
  }
}

/// A slice of whole rows, for dropping its pages.
LogicalTensor slice_rows(const LogicalTensor& tensor, int64_t first, int64_t count) {
  LogicalTensor slice;
  slice.name = tensor.name;
  slice.dtype = tensor.dtype;
  slice.shape = {count, tensor.cols()};
  const auto part = [&](std::span<const std::byte> bytes) {
    const int64_t row = static_cast<int64_t>(bytes.size()) / tensor.rows();
    return bytes.subspan(static_cast<size_t>(first * row), static_cast<size_t>(count * row));
  };
  slice.data = part(tensor.data);
  slice.block_scales = part(tensor.block_scales);
  return slice;
}

/// Packs tiles [begin, end) and drops the file's pages as it goes.
void pack_tiles(
    const Checkpoint& owner, const LogicalTensor& tensor, Range range, const PackedWeight& weight
) {
  const int64_t source_bytes = std::max<int64_t>(row_bytes(tensor.dtype, tensor.cols()), 1);
  const int64_t step = std::max<int64_t>(kDropBytes / (source_bytes * kTileRows), 1);
  for (int64_t first = range.begin; first < range.end; first += step) {
    const int64_t last = std::min(first + step, range.end);
    for (int64_t tile = first; tile < last; ++tile) {
      pack_tile(tensor, tile, weight.tiles.get() + tile * weight.tile_bytes);
    }
    const int64_t first_row = first * kTileRows;
    const int64_t row_count = std::min(last * kTileRows, tensor.rows()) - first_row;
    owner.drop_pages(slice_rows(tensor, first_row, row_count));
  }
}

void check_matrix(const LogicalTensor& tensor) {
  const DTypeFacts& facts = dtype_facts(tensor.dtype);
  if (tensor.shape.size() != 2 || tensor.rows() == 0 || tensor.cols() == 0) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "tensor '{}' has {} dimensions; a matrix [out, in] is expected",
            tensor.name,
            tensor.shape.size()
        )
    );
  }
  if (tensor.cols() % facts.block_values != 0) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "tensor '{}' has rows of {} values; {} needs a multiple of {}",
            tensor.name,
            tensor.cols(),
            facts.name,
            facts.block_values
        )
    );
  }
  OCTET_CHECK(
      static_cast<int64_t>(tensor.data.size()) ==
      tensor.rows() * row_bytes(tensor.dtype, tensor.cols())
  );
}

bool is_nvfp4(DType dtype) {
  return dtype == DType::kNVFP4 || dtype == DType::kNVFP4ModelOpt;
}

/// The mode that the file of a weight asks for.
ActivationMode mode_of_file(const Checkpoint& owner, const LogicalTensor& tensor) {
  const std::string* algorithm = owner.metadata.find_string("general.quant_algo");
  if (algorithm == nullptr) {
    return ActivationMode::kFast;
  }
  // Of other names only the input scales tell.
  const bool four_bits =
      *algorithm == "NVFP4" || (*algorithm != "W4A16_NVFP4" && tensor.input_scale);
  return four_bits ? ActivationMode::kW4A4 : ActivationMode::kW4A16;
}

/// Decides how the products of `weight` take their activations.
void choose_products(
    ActivationMode mode,
    const MatmulKernels& kernels,
    const LogicalTensor& tensor,
    PackedWeight& weight
) {
  weight.activations = activation_kind(tensor.dtype);
  weight.multiply = kernels.multiply[static_cast<size_t>(tensor.dtype)];
  weight.scale = output_scale(tensor);
  if (mode == ActivationMode::kW4A16) {
    weight.activations = ActivationKind::kBF16;
    weight.multiply = kernels.multiply_nvfp4_bf16;
  } else if (mode == ActivationMode::kW4A4) {
    if (!tensor.input_scale) {
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format(
              "tensor '{}' has no input scale, and products in W4A4 need a calibrated one; run it "
              "with --activation w4a16 or fast",
              tensor.name
          )
      );
    }
    weight.activations = ActivationKind::kE2M1Per16;
    weight.multiply = kernels.multiply_nvfp4_e2m1;
    weight.input_scale = *tensor.input_scale;
    weight.scale = w4a4_output_scale(tensor);
  }
  weight.float_activations =
      weight.activations == ActivationKind::kF32 || weight.activations == ActivationKind::kBF16;
}

}  // namespace

struct CpuMatmul::State {
  const MatmulKernels& kernels;
  ThreadPool& pool;
  ActivationMode mode;
  WeightMemory memory;
  Scratch sums_scratch;
  std::vector<std::unique_ptr<Scratch>> activation_scratch;  // one a way of rounding
  // The call in progress; kept to spare allocations.
  std::vector<PackedActivations> activations;  // each way of rounding that a product wants
  std::vector<Run> runs;
  int64_t weight_bytes = 0;  // of all runs
  int64_t tiles = 0;         // of all runs
  SharedStreams multiplying;

  State(const MatmulKernels& k, ThreadPool& p, ActivationMode m)
      : kernels(k), pool(p), mode(m), multiplying(p.threads()) {}

  size_t activations_for(const PackedWeight& weight);
  void collect(ConstRows x, std::span<const Product> products);
  void place_activations(ConstRows x);
  void pack_activations(ConstRows x, int64_t unit);
  int64_t rows_per_pass(ConstRows x) const;
  int64_t share_tiles(ConstRows x) const;
  void request_tile(int64_t tile) const;
  void multiply_tiles(Range share, ConstRows x, float* sums);
  void multiply_run(const Run& run, Range tiles_of_run, Range rows, float* sums);

  int64_t pack_units(ConstRows x) const {
    return divide_up(x.rows, kernels.group_rows) * chunk_count(x.cols);
  }
};

size_t CpuMatmul::State::activations_for(const PackedWeight& weight) {
  const auto place =
      std::find_if(activations.begin(), activations.end(), [&](const PackedActivations& known) {
        return known.kind == weight.activations && known.input_scale == weight.input_scale;
      });
  const auto index = static_cast<size_t>(place - activations.begin());
  if (place == activations.end()) {
    activations.push_back({weight.activations, weight.input_scale, nullptr, 0});
  }
  return index;
}

/// Fills `runs`, `weight_bytes`, `tiles` and the ways of rounding that are wanted.
void CpuMatmul::State::collect(ConstRows x, std::span<const Product> products) {
  runs.clear();
  weight_bytes = 0;
  tiles = 0;
  activations.clear();
  for (const Product& product : products) {
    const auto* weight = dynamic_cast<const PackedWeight*>(product.weight);
    OCTET_CHECK(weight != nullptr);
    OCTET_CHECK(weight->cols == x.cols);
    OCTET_CHECK(product.out.rows == x.rows && product.out.cols == weight->rows);
    const int64_t first_tile = tiles;
    tiles += tile_count(weight->rows);
    runs.push_back({weight, product.out, activations_for(*weight), first_tile, tiles});
    weight_bytes += tile_count(weight->rows) * weight->tile_bytes;
  }
}

/// Gives every way of rounding its memory.
void CpuMatmul::State::place_activations(ConstRows x) {
  while (activation_scratch.size() < activations.size()) {
    activation_scratch.push_back(std::make_unique<Scratch>());
  }
  for (size_t i = 0; i < activations.size(); ++i) {
    PackedActivations& packed = activations[i];
    packed.group_bytes = activation_group_bytes(packed.kind, kernels.group_rows, x.cols);
    const int64_t bytes = divide_up(x.rows, kernels.group_rows) * packed.group_bytes;
    packed.groups =
        reinterpret_cast<std::byte*>(activation_scratch[i]->floats(divide_up(bytes, sizeof(float)))
        );
  }
}

/// Rounds one unit of the input in every wanted way: one chunk of one group of rows.
void CpuMatmul::State::pack_activations(ConstRows x, int64_t unit) {
  const int64_t chunks = chunk_count(x.cols);
  const int64_t group = unit / chunks;
  const int64_t chunk = unit % chunks;
  const int64_t first_row = group * kernels.group_rows;
  const int64_t rows = std::min<int64_t>(kernels.group_rows, x.rows - first_row);
  for (const PackedActivations& packed : activations) {
    const int64_t record_bytes = activation_chunk_bytes(packed.kind, rows, kChunkValues);
    kernels.pack[static_cast<size_t>(packed.kind)](
        {x.row(first_row) + chunk * kChunkValues,
         x.stride,
         chunk_values(x.cols, chunk),
         rows,
         packed.groups + group * packed.group_bytes + chunk * record_bytes,
         packed.input_scale}
    );
  }
}

int64_t CpuMatmul::State::rows_per_pass(ConstRows x) const {
  int64_t group_bytes = 1;
  for (const PackedActivations& packed : activations) {
    group_bytes = std::max(group_bytes, packed.group_bytes);
  }
  const int64_t groups = std::clamp<int64_t>(
      kActivationCacheBytes / group_bytes, 1, kMostRowsPerPass / kernels.group_rows
  );
  return std::min(groups * kernels.group_rows, x.rows);
}

/// Consecutive tiles that a thread takes at once.
int64_t CpuMatmul::State::share_tiles(ConstRows x) const {
  const bool one_pass = rows_per_pass(x) == x.rows;
  return one_pass ? 1 : std::max<int64_t>(kShareBytesOfPasses * tiles / weight_bytes, 1);
}

/// Asks the memory for the beginning of a tile of all products.
void CpuMatmul::State::request_tile(int64_t tile) const {
  constexpr int64_t kBytes = 8192;
  for (const Run& run : runs) {
    if (tile < run.last_tile) {
      const PackedWeight& weight = *run.weight;
      const std::byte* begin = weight.tiles.get() + (tile - run.first_tile) * weight.tile_bytes;
      for (int64_t at = 0; at < std::min(kBytes, weight.tile_bytes); at += 64) {
        __builtin_prefetch(begin + at);
      }
      return;
    }
  }
}

/// All rows with some of the tiles of all products. `sums` is the thread's working memory.
void CpuMatmul::State::multiply_tiles(Range share, ConstRows x, float* sums) {
  const int64_t pass_rows = rows_per_pass(x);
  for (int64_t first_row = 0; first_row < x.rows; first_row += pass_rows) {
    const Range rows = {first_row, std::min(first_row + pass_rows, x.rows)};
    for (const Run& run : runs) {
      const Range own = {
          std::max(share.begin, run.first_tile) - run.first_tile,
          std::min(share.end, run.last_tile) - run.first_tile};
      if (own.begin < own.end) {
        multiply_run(run, own, rows, sums);
      }
    }
  }
}

void CpuMatmul::State::multiply_run(const Run& run, Range tiles_of_run, Range rows, float* sums) {
  const PackedWeight& weight = *run.weight;
  const PackedActivations& packed = activations[run.activations];
  TileProduct product{
      weight.tiles.get() + tiles_of_run.begin * weight.tile_bytes,
      packed.groups + rows.begin / kernels.group_rows * packed.group_bytes,
      packed.group_bytes,
      weight.cols,
      rows.end - rows.begin,
      sums};
  for (int64_t tile = tiles_of_run.begin; tile < tiles_of_run.end; ++tile) {
    const int64_t first_output = tile * kTileRows;
    const int64_t outputs = std::min<int64_t>(kTileRows, weight.rows - first_output);
    request_outputs(run.out, rows, {first_output, first_output + outputs});
    weight.multiply(product);
    product.tile += weight.tile_bytes;
    for (int64_t r = 0; r < product.rows; ++r) {
      write_outputs(
          sums + r * kTileRows, weight.scale, outputs, run.out.row(rows.begin + r) + first_output
      );
    }
  }
}

CpuMatmul::CpuMatmul(const KernelTable& kernels, ThreadPool& pool, ActivationMode mode)
    : state_(std::make_unique<State>(kernels.matmul, pool, mode)) {
  OCTET_CHECK(kMostRowsPerPass % kernels.matmul.group_rows == 0);
  state_->sums_scratch.floats(pool.threads() * kMostRowsPerPass * kTileRows);
}

CpuMatmul::~CpuMatmul() = default;

int64_t CpuMatmul::prepared_bytes(const LogicalTensor& tensor) {
  check_matrix(tensor);
  return tile_count(tensor.rows()) * tile_bytes(tensor.dtype, tensor.cols());
}

std::unique_ptr<Weight> CpuMatmul::prepare(const Checkpoint& owner, const LogicalTensor& tensor) {
  check_matrix(tensor);
  auto weight = std::make_unique<PackedWeight>();
  weight->name = tensor.name;
  weight->dtype = tensor.dtype;
  weight->rows = tensor.rows();
  weight->cols = tensor.cols();
  weight->packed = true;
  choose_products(
      !is_nvfp4(tensor.dtype)                 ? ActivationMode::kFast
      : state_->mode == ActivationMode::kAuto ? mode_of_file(owner, tensor)
                                              : state_->mode,
      state_->kernels,
      tensor,
      *weight
  );
  weight->tensor_scale = tensor.scale;
  weight->tile_bytes = tile_bytes(tensor.dtype, tensor.cols());
  const int64_t tiles = tile_count(tensor.rows());
  weight->resident_bytes = prepared_bytes(tensor);
  weight->tiles = state_->memory.allocate(weight->resident_bytes);
  state_->pool.for_ranges(tiles, 1, [&](int64_t begin, int64_t end) {
    pack_tiles(owner, tensor, {begin, end}, *weight);
  });
  return weight;
}

void CpuMatmul::matmul(ConstRows x, std::span<const Product> products) {
  State& state = *state_;
  state.collect(x, products);
  if (x.rows == 0 || state.runs.empty()) {
    return;
  }
  state.place_activations(x);
  SharedWork packing(static_cast<uint32_t>(state.pack_units(x)));
  const auto pack = [&](int64_t unit) { state.pack_activations(x, unit); };
  if (state.weight_bytes * x.rows <= kInlineProductBytes) {
    packing.work(pack);
    state.multiply_tiles({0, state.tiles}, x, state.sums_scratch.data());
    return;
  }
  const bool pack_alone = x.rows * x.cols <= kInlinePackValues;
  const int64_t step = state.share_tiles(x);
  state.multiplying.begin(divide_up(state.tiles, step));
  state.pool.run_available([&](int thread) {
    state.request_tile(state.multiplying.first(thread) * step);
    if (thread == 0 || !pack_alone) {
      packing.work(pack);
    }
    packing.wait(state.pool.spins());
    float* sums = state.sums_scratch.data() + thread * kMostRowsPerPass * kTileRows;
    state.multiplying.work(thread, [&](int64_t share) {
      state.multiply_tiles({share * step, std::min((share + 1) * step, state.tiles)}, x, sums);
    });
  });
}

void CpuMatmul::unpack_row(const Weight& weight, int64_t row, float* out) {
  const auto* packed = dynamic_cast<const PackedWeight*>(&weight);
  OCTET_CHECK(packed != nullptr && row >= 0 && row < packed->rows);
  const std::byte* tile = packed->tiles.get() + row / kTileRows * packed->tile_bytes;
  cpu::unpack_row(packed->dtype, packed->cols, {tile, row % kTileRows, packed->tensor_scale}, out);
}

int64_t CpuMatmul::scratch_bytes() const {
  int64_t bytes = state_->sums_scratch.bytes();
  for (const auto& scratch : state_->activation_scratch) {
    bytes += scratch->bytes();
  }
  return bytes;
}

}  // namespace octet::cpu
