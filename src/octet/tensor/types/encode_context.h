// What an encoder may know besides the values of its block.
// Made by encode_rows (encode.h) for every block; not kept.
#pragma once

namespace octet::types {

struct EncodeContext {
  const float* importance = nullptr;  // of the block's columns, each >= 0; null: plain rounding
  float row_mean_square = 0.0F;       // of the whole row; set when importance is
};

}  // namespace octet::types
