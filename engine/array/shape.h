// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace reclab {

/// Sizes of an array's dimensions, slowest first (row-major).
using Shape = std::vector<std::int64_t>;

enum class DType : std::uint8_t { f32, f64, c64, c128 };

constexpr std::size_t bytes_of(DType type) { return type == DType::f32 ? 4 : type == DType::c128 ? 16 : 8; }
constexpr bool is_complex(DType type) { return type == DType::c64 || type == DType::c128; }
constexpr DType real_of(DType type) { return type == DType::c64 ? DType::f32 : type == DType::c128 ? DType::f64 : type; }
constexpr DType complex_of(DType type) { return type == DType::f32 ? DType::c64 : type == DType::f64 ? DType::c128 : type; }

inline std::int64_t count(const Shape& shape) {
  std::int64_t n = 1;
  for (const auto d : shape) n *= d;
  return n;
}

/// "[4, 16]", for sentences.
inline std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace reclab
