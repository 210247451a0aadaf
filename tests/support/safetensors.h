// SPDX-License-Identifier: GPL-3.0-or-later
// safetensors files for tests: of any header, right or wrong, and of the arrays of an NPZ file.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "files/npz.h"

namespace reclab::test {

inline std::string safetensors(const std::string& header, const std::string& data) {
  std::string bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 255);
  return bytes + header + data;
}

/// {"name":{"dtype":"F64","shape":[2,3],"data_offsets":[0,48]}} without the braces around it.
inline std::string safetensors_entry(const std::string& name, const std::string& dtype, const std::string& shape, std::size_t from,
                                     std::size_t to) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" + std::to_string(from) + "," +
         std::to_string(to) + "]}";
}

/// Writes those arrays of an archive that begin with the prefix, as F64 and without it; of complex ones re and im are a last axis of 2.
inline void npz_to_safetensors(const std::filesystem::path& npz, const std::string& prefix, const std::filesystem::path& file) {
  const NpzFile archive(npz);
  std::string header, data;
  for (const std::string& name : archive.names()) {
    if (!name.starts_with(prefix)) continue;
    const NpyArray array = archive.read(name);
    Shape shape = array.shape;
    if (array.is_complex()) shape.push_back(2);
    const void* from = array.is_complex() ? static_cast<const void*>(array.complex.data()) : array.real.data();
    const std::size_t size = 8 * (array.is_complex() ? 2 * array.complex.size() : array.real.size());
    header += (header.empty() ? "" : ",") +
              safetensors_entry(name.substr(prefix.size()), "F64", to_string(shape), data.size(), data.size() + size);
    if (size > 0) data.append(static_cast<const char*>(from), size);
  }
  const std::string bytes = safetensors("{" + header + "}", data);
  std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace reclab::test
