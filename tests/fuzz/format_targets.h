// What the fuzzers of file formats do with one input, also run by the ordinary tests over mutated
// files: read it as far as it goes and use what comes out. Anything but success or an Error is a
// defect.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "octet/base/error.h"
#include "octet/formats/gguf_checkpoint.h"
#include "octet/formats/gguf_reader.h"
#include "octet/formats/hf_config.h"
#include "octet/formats/hf_tensors.h"
#include "octet/formats/json_value.h"
#include "octet/formats/safetensors_reader.h"
#include "octet/models/dflash/config.h"
#include "octet/models/gemma4/config.h"
#include "octet/tensor/logical_tensor.h"
#include "octet/text/load_tokenizer.h"

namespace octet::fuzz {

/// Decodes the first and the last row, so that every range is touched at both ends.
inline void touch(const LogicalTensor& tensor) {
  std::vector<float> row(static_cast<size_t>(tensor.cols()));
  decode_rows(tensor, 0, 1, row.data());
  decode_rows(tensor, tensor.rows() - 1, 1, row.data());
}

/// Each returns "" when the input was accepted, else the message of the Error.
inline std::string try_gguf(std::span<const std::byte> bytes) {
  try {
    std::vector<GgufFile> parts;
    parts.push_back(parse_gguf(bytes, "input"));
    const std::shared_ptr<const Checkpoint> checkpoint =
        checkpoint_from_gguf(std::move(parts), "input");
    for (const LogicalTensor& tensor : checkpoint->tensors()) {
      touch(tensor);
    }
    if (checkpoint->architecture() == "gemma4") {
      read_gemma4_config(*checkpoint);
    } else {
      read_dflash_config(*checkpoint);
    }
    if (checkpoint->metadata.contains("tokenizer.ggml.model")) {
      load_tokenizer(*checkpoint);
    }
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

inline std::string try_safetensors(std::span<const std::byte> bytes) {
  try {
    for (const LogicalTensor& tensor : join_hf_tensors(parse_safetensors(bytes, "input").tensors)) {
      touch(tensor);
    }
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

inline std::string try_hf_config(std::span<const std::byte> bytes) {
  try {
    const JsonValue json = parse_json(bytes);
    HfConfig config = read_hf_config(json);
    add_generation_config(config.metadata, json);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace octet::fuzz
