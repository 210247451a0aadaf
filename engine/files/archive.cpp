// SPDX-License-Identifier: GPL-3.0-or-later
#include "files/archive.h"

#include <algorithm>

namespace reclab {

namespace {

using Either = std::variant<NpzFile, SafetensorsFile>;
enum class Container { npz, safetensors, neither };

Container kind_of(const std::filesystem::path& path) {
  const InputFile file(path);
  // The size of a safetensors header, 8 bytes, does not begin like a ZIP archive: it would be above the format's limit, or nearly so.
  std::string start(std::min<std::uint64_t>(9, file.size()), '\0');
  file.read(0, start.data(), start.size());
  return start.starts_with("PK") ? Container::npz : start.size() == 9 && start[8] == '{' ? Container::safetensors : Container::neither;
}

Either opened(const std::filesystem::path& path) {
  const Container kind = kind_of(path);
  if (kind == Container::safetensors || (kind == Container::neither && path.extension() == ".safetensors"))
    return Either(std::in_place_type<SafetensorsFile>, path);
  if (kind == Container::npz || path.extension() == ".npz") return Either(std::in_place_type<NpzFile>, path);
  throw Error(path.string() + " is neither an NPZ archive nor a safetensors file: save it with numpy.savez or safetensors.numpy.save_file",
              {.file = path.string(), .place = "byte 0"});
}

}  // namespace

Archive::Archive(const std::filesystem::path& file) : file_(opened(file)) {}

bool Archive::recognises(const std::filesystem::path& file) { return kind_of(file) != Container::neither; }

}  // namespace reclab
