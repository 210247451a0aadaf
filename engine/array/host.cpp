// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/host.h"

#include <cassert>
#include <cstring>
#include <type_traits>

namespace reclab {
namespace {

template <class To>
std::vector<To> fetched(Backend& backend, DType type, const void* from, std::int64_t n, std::int64_t offset) {
  const std::size_t size = bytes_of(type);
  const char* at = static_cast<const char*>(from) + static_cast<std::size_t>(offset) * size;
  std::vector<char> copy;
  if (backend.device() != Device::cpu) {
    copy.resize(static_cast<std::size_t>(n) * size);
    backend.download(copy.data(), at, copy.size());
    at = copy.data();
  }
  const auto converted = [&](const auto* x) { return std::vector<To>(x, x + n); };
  switch (type) {
    case DType::f32: return converted(reinterpret_cast<const float*>(at));
    case DType::f64: return converted(reinterpret_cast<const double*>(at));
    default: break;
  }
  if constexpr (!std::is_same_v<To, double>) {
    if (type == DType::c64) return converted(reinterpret_cast<const std::complex<float>*>(at));
    return converted(reinterpret_cast<const std::complex<double>*>(at));
  }
  assert(!"a complex array is not read as real");
  return {};
}

}  // namespace

std::vector<char> narrowed(DType type, std::span<const double> values) {
  std::vector<char> bytes(values.size() * bytes_of(type));
  if (type == DType::f64) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  } else {
    auto* to = reinterpret_cast<float*>(bytes.data());
    for (std::size_t i = 0; i < values.size(); ++i) to[i] = static_cast<float>(values[i]);
  }
  return bytes;
}

bool all_finite(DType type, std::span<const char> bytes) {
  const auto look = [&](const auto* x) {
    auto sum = *x * 0;  // 0, or not a number
    for (std::size_t i = 0; i < bytes.size() / sizeof *x; ++i) sum += x[i] * 0;
    return sum == 0;
  };
  if (bytes.empty()) return true;
  return type == DType::f32 ? look(reinterpret_cast<const float*>(bytes.data())) : look(reinterpret_cast<const double*>(bytes.data()));
}

std::vector<double> to_double(Backend& backend, DType type, const void* from, std::int64_t n, std::int64_t offset) {
  return fetched<double>(backend, type, from, n, offset);
}
std::vector<std::complex<double>> to_complex(Backend& backend, DType type, const void* from, std::int64_t n, std::int64_t offset) {
  return fetched<std::complex<double>>(backend, type, from, n, offset);
}

}  // namespace reclab
