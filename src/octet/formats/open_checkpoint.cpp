#include "octet/formats/open_checkpoint.h"

#include <filesystem>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/mapped_file.h"
#include "octet/formats/gguf_checkpoint.h"
#include "octet/formats/gguf_reader.h"
#include "octet/formats/hf_checkpoint.h"
#include "octet/formats/safetensors_reader.h"

namespace octet {

namespace {

std::shared_ptr<const Checkpoint> open_any(const std::string& path, UnusedTensors unused) {
  if (std::filesystem::is_directory(path)) {
    return open_hf_directory(path, unused);
  }
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  if (looks_like_gguf(file->bytes())) {
    return open_gguf_checkpoint(path, unused);
  }
  if (looks_like_safetensors(file->bytes())) {
    return open_hf_file(path, unused);
  }
  throw Error(
      ErrorKind::kUnsupported,
      fmt::format(
          "{}: neither a GGUF nor a safetensors file ({} bytes); name a .gguf file, a .safetensors "
          "file or a "
          "Hugging Face directory",
          path,
          file->bytes().size()
      )
  );
}

}  // namespace

std::shared_ptr<const Checkpoint> open_checkpoint(const std::string& path, UnusedTensors unused) {
  try {
    return open_any(path, unused);
  } catch (const std::filesystem::filesystem_error& error) {
    throw Error(ErrorKind::kIo, fmt::format("{}: {}", path, error.code().message()));
  }
}

}  // namespace octet
