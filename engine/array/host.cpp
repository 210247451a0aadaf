// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/host.h"

#include <type_traits>

#include "array/demand.h"
#include "array/stop.h"

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
  const auto converted = [&](const auto* x) {
    std::vector<To> made;
    made.reserve(static_cast<std::size_t>(n));
    piece_by_piece(static_cast<std::size_t>(n), sizeof(To),
                   [&](std::size_t first, std::size_t some) { made.insert(made.end(), x + first, x + first + some); });
    return made;
  };
  switch (type) {
    case DType::f32: return converted(reinterpret_cast<const float*>(at));
    case DType::f64: return converted(reinterpret_cast<const double*>(at));
    default: break;
  }
  if constexpr (!std::is_same_v<To, double>) {
    if (type == DType::c64) return converted(reinterpret_cast<const std::complex<float>*>(at));
    return converted(reinterpret_cast<const std::complex<double>*>(at));
  }
  RECLAB_DEMAND(!"a complex array is not read as real");
  return {};
}

}  // namespace

std::vector<double> zeros(std::int64_t n) {
  std::vector<double> made;
  made.reserve(static_cast<std::size_t>(n));
  piece_by_piece(static_cast<std::size_t>(n), sizeof(double), [&](std::size_t first, std::size_t some) { made.resize(first + some); });
  return made;
}

std::vector<char> narrowed(DType type, std::span<const double> values) {
  const std::size_t size = bytes_of(type);
  std::vector<char> bytes;
  bytes.reserve(values.size() * size);
  piece_by_piece(values.size(), sizeof(double), [&](std::size_t first, std::size_t some) {
    if (type == DType::f64) {
      const auto* from = reinterpret_cast<const char*>(values.data() + first);
      bytes.insert(bytes.end(), from, from + some * size);
    } else {
      bytes.resize((first + some) * size);
      auto* to = reinterpret_cast<float*>(bytes.data());
      for (std::size_t i = first; i < first + some; ++i) to[i] = static_cast<float>(values[i]);
    }
  });
  return bytes;
}

bool all_finite(DType type, std::span<const char> bytes) {
  const auto look = [&](const auto* x) {
    auto sum = *x * 0;  // 0, or not a number
    piece_by_piece(bytes.size() / sizeof *x, sizeof *x, [&](std::size_t first, std::size_t some) {
      for (std::size_t i = first; i < first + some; ++i) sum += x[i] * 0;
    });
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
