// SPDX-License-Identifier: GPL-3.0-or-later
// Inputs of the rows: drawn, put on a backend, read back, compared, saved for the peers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/backend.h"
#include "array/cpu/processor/threads.h"
#include "array/device_array.h"
#include "array/rng.h"
#include "files/npz.h"
#include "models/network.h"

namespace reclab::bench {

/// The backend of a row, by its letter. Throws Error where there is no such device.
Backend& backend_of(const std::string& row);

/// n values in blocks, each block from a seed of its own, so that hundreds of millions take seconds.
template <class F>
std::vector<float> drawn(Rng& rng, std::int64_t n, const F& draw) {
  constexpr std::int64_t block = 1 << 16;
  std::vector<float> values(static_cast<std::size_t>(n));
  std::vector<std::uint64_t> seeds(static_cast<std::size_t>((n + block - 1) / block));
  for (auto& seed : seeds) seed = rng.bits();
  cpu::parallel(std::ssize(seeds), [&](std::int64_t i) {
    Rng own(seeds[static_cast<std::size_t>(i)]);
    for (std::int64_t j = i * block; j < std::min(n, (i + 1) * block); ++j)
      values[static_cast<std::size_t>(j)] = static_cast<float>(draw(own));
  });
  return values;
}
inline std::vector<float> uniform(Rng& rng, std::int64_t n, double low, double high) {
  return drawn(rng, n, [=](Rng& own) { return own.uniform(low, high); });
}
inline std::vector<float> normal(Rng& rng, std::int64_t n, double deviation = 1.0) {
  return drawn(rng, n, [=](Rng& own) { return deviation * own.normal(); });
}

template <class T>
DeviceArray on(Backend& backend, const std::vector<T>& host) {
  return DeviceArray(backend, std::span(reinterpret_cast<const char*>(host.data()), host.size() * sizeof(T)));
}
template <class T>
std::vector<T> from(Backend& backend, const void* data, std::size_t n) {
  std::vector<T> host(n);
  backend.download(host.data(), data, n * sizeof(T));
  return host;
}

/// The largest difference over the largest value.
template <class A, class B>
double difference(const std::vector<A>& ours, const std::vector<B>& exact) {
  double most = 0.0, size = 0.0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double d = std::abs(B(ours[i]) - exact[i]);
    most = std::isnan(d) ? d : std::max(most, d);
    size = std::max(size, std::abs(exact[i]));
  }
  return most / size;
}

inline void save(NpzWriter& file, const std::string& name, const Shape& shape, const std::vector<float>& values) {
  file.add(name, shape, std::span<const float>(values));
}

/// The values of one of these parameters, rounded to float32.
std::vector<double> rounded(Parameters& parameters, const std::string& name);

/// The weights of an LSTM, as PyTorch has them, rounded to float32.
struct LstmWeights {
  std::vector<double> w_ih, w_hh, b_ih, b_hh;
};
/// The outputs h [steps, batch, hidden] of an LSTM by plain loops in float64; x [steps, batch, width].
std::vector<double> lstm_in_float64(const LstmWeights& weights, std::span<const float> x, std::int64_t steps, std::int64_t batch,
                                    std::int64_t width, std::int64_t hidden);

}  // namespace reclab::bench
