// Fills a MatmulKernels for one instruction set: the only list of which family multiplies which
// weight type.
#pragma once

#include "octet/kernels/cpu/matmul/activation_packing.h"
#include "octet/kernels/cpu/matmul/block_tile.h"
#include "octet/kernels/cpu/matmul/float_tile.h"
#include "octet/kernels/cpu/matmul/super_tile.h"

namespace octet::cpu {

template <typename Lanes>
constexpr MatmulKernels make_matmul_kernels() {
  MatmulKernels kernels;
  kernels.group_rows = Lanes::kGroupRows;

  using Packing = ActivationPacking<Lanes>;
  const auto pack = [&](ActivationKind kind) -> PackActivations& {
    return kernels.pack[static_cast<size_t>(kind)];
  };
  pack(ActivationKind::kF32) = &Packing::pack_f32;
  pack(ActivationKind::kInt8Per32) = &Packing::pack_int8_per_32;
  pack(ActivationKind::kInt8Per256) = &Packing::pack_int8_per_256;
  pack(ActivationKind::kBF16) = &Packing::pack_bf16;
  pack(ActivationKind::kE2M1Per16) = &Packing::pack_e2m1_per_16;

  const auto multiply = [&](DType dtype) -> MultiplyTile& {
    return kernels.multiply[static_cast<size_t>(dtype)];
  };
  multiply(DType::kF32) = &multiply_tile<Lanes, FloatFamily<DType::kF32>>;
  multiply(DType::kF16) = &multiply_tile<Lanes, FloatFamily<DType::kF16>>;
  multiply(DType::kBF16) = &multiply_tile<Lanes, FloatFamily<DType::kBF16>>;
  multiply(DType::kQ8_0) = &multiply_tile<Lanes, SignedBlockFamily<DType::kQ8_0>>;
  multiply(DType::kQ4_0) = &multiply_tile<Lanes, AffineBlockFamily<DType::kQ4_0>>;
  multiply(DType::kQ4_1) = &multiply_tile<Lanes, AffineBlockFamily<DType::kQ4_1>>;
  multiply(DType::kQ5_0) = &multiply_tile<Lanes, AffineBlockFamily<DType::kQ5_0>>;
  multiply(DType::kQ5_1) = &multiply_tile<Lanes, AffineBlockFamily<DType::kQ5_1>>;
  multiply(DType::kQ4K) = &multiply_tile<Lanes, AffineSuperFamily<DType::kQ4K>>;
  multiply(DType::kQ5K) = &multiply_tile<Lanes, AffineSuperFamily<DType::kQ5K>>;
  multiply(DType::kQ6K) = &multiply_tile<Lanes, SixBitFamily>;
  multiply(DType::kIQ4NL) = &multiply_tile<Lanes, SignedBlockFamily<DType::kIQ4NL>>;
  multiply(DType::kIQ4XS) = &multiply_tile<Lanes, LevelSuperFamily>;
  multiply(DType::kMXFP4) = &multiply_tile<Lanes, SignedBlockFamily<DType::kMXFP4>>;
  // The two layouts of NVFP4 become the same tiles.
  multiply(DType::kNVFP4) = &multiply_tile<Lanes, SignedBlockFamily<DType::kNVFP4>>;
  multiply(DType::kNVFP4ModelOpt) = multiply(DType::kNVFP4);
  kernels.multiply_nvfp4_bf16 = &multiply_tile<Lanes, NVFP4FloatFamily>;
  kernels.multiply_nvfp4_e2m1 =
      &multiply_tile<Lanes, SignedBlockFamily<DType::kNVFP4, ActivationKind::kE2M1Per16>>;
  return kernels;
}

}  // namespace octet::cpu
