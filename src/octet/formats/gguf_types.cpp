#include "octet/formats/gguf_types.h"

#include <array>

#include "octet/tensor/dtype.h"

namespace octet {

namespace {

struct ForeignType {
  int id;
  GgufType facts;
};

// Legal in a file, but nothing octet computes with.
constexpr std::array kForeignTypes = {
    ForeignType{9, {"Q8_1", 32, 36}},      ForeignType{10, {"Q2_K", 256, 84}},
    ForeignType{11, {"Q3_K", 256, 110}},   ForeignType{15, {"Q8_K", 256, 292}},
    ForeignType{16, {"IQ2_XXS", 256, 66}}, ForeignType{17, {"IQ2_XS", 256, 74}},
    ForeignType{18, {"IQ3_XXS", 256, 98}}, ForeignType{19, {"IQ1_S", 256, 50}},
    ForeignType{21, {"IQ3_S", 256, 110}},  ForeignType{22, {"IQ2_S", 256, 82}},
    ForeignType{24, {"I8", 1, 1}},         ForeignType{25, {"I16", 1, 2}},
    ForeignType{26, {"I32", 1, 4}},        ForeignType{27, {"I64", 1, 8}},
    ForeignType{28, {"F64", 1, 8}},        ForeignType{29, {"IQ1_M", 256, 56}},
    ForeignType{34, {"TQ1_0", 256, 54}},   ForeignType{35, {"TQ2_0", 256, 66}},
    ForeignType{41, {"Q1_0", 128, 18}},    ForeignType{42, {"Q2_0", 64, 18}},
};

}  // namespace

std::optional<GgufType> gguf_type(int64_t id) {
  if (const std::optional<DType> dtype = dtype_from_gguf_id(id)) {
    const DTypeFacts& facts = dtype_facts(*dtype);
    return GgufType{facts.name, facts.block_values, facts.block_bytes};
  }
  for (const ForeignType& type : kForeignTypes) {
    if (type.id == id) {
      return type.facts;
    }
  }
  return std::nullopt;
}

}  // namespace octet
