// SPDX-License-Identifier: GPL-3.0-or-later
// Depth-wise and long convolutions, and the kernels of these.
#pragma once

#include "parity/parity.h"

namespace reclab::test {

inline void depthwise_parity(Backend& other) {
  for (const DType type : real_types)
    for (const DepthwiseDims d :
         {DepthwiseDims{1, 1, 1, 1}, DepthwiseDims{50, 3, 7, 4}, DepthwiseDims{3000, 2, 3, 4}, DepthwiseDims{2, 2, 5, 6},
          DepthwiseDims{31, 1, 33, 3}, DepthwiseDims{32, 3, 31, 2}, DepthwiseDims{1023, 1, 1, 5}, DepthwiseDims{1025, 1, 3, 4}}) {
      Parity parity(other, 10);
      const std::int64_t in = (d.steps + d.taps - 1) * d.batch * d.channels, out = d.steps * d.batch * d.channels;
      const std::size_t x = parity.array(type, in), w = parity.array(type, d.channels * d.taps), y = parity.array(type, out),
                        gx = parity.array(type, in), gw = parity.array(type, d.channels * d.taps);
      parity.run(
          [&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
            b.depthwise(type, d, p[x], p[w], p[y]);
            b.depthwise_adjoint(type, d, p[x], p[w], p[y], p[gx], nullptr);
            b.depthwise_adjoint(type, d, p[x], p[w], p[y], nullptr, p[gw]);
            b.depthwise_adjoint(type, d, p[x], p[w], p[y], p[gx], p[gw]);
            return 0;
          },
          0, type == DType::f32 ? 1e-4 : 0.0);
    }
}

inline void kernel_parity(Backend& other) {
  for (const DType type : {DType::c64, DType::c128})
    for (const std::int64_t steps : {1, 9, 31, 32, 33, 700, 1023, 1024, 1025}) {
      const std::int64_t channels = 3, modes = 5;
      Parity parity(other, 14);
      const std::size_t w = parity.array(type, channels * modes), a = parity.factors(type, channels * modes, 0.7, 0.999),
                        kernel = parity.array(type, channels * steps), gw = parity.array(type, channels * modes),
                        ga = parity.array(type, channels * modes);
      parity.run(
          [&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
            b.vandermonde(type, channels, modes, steps, p[w], p[a], p[kernel]);
            b.vandermonde_adjoint(type, channels, modes, steps, p[w], p[a], p[kernel], p[gw], nullptr);
            b.vandermonde_adjoint(type, channels, modes, steps, p[w], p[a], p[kernel], nullptr, p[ga]);
            b.vandermonde_adjoint(type, channels, modes, steps, p[w], p[a], p[kernel], p[gw], p[ga]);
            return 0;
          },
          0, type == DType::c64 ? 2e-4 : 1e-11);
    }
}

inline void convolution_parity(Backend& other) {
  struct Sizes {
    std::int64_t steps, batch = 3, channels = 4;
  };
  std::vector<Sizes> all;
  for (const std::int64_t steps : {1, 2, 31, 32, 33, 37, 512, 1023, 1024, 1025, 3000}) all.push_back({steps});
  // Many and few sequences, each way: tiles of several steps and channels, not all of them full.
  for (const Sizes& sizes : {Sizes{64, 1, 1}, Sizes{65, 1, 33}, Sizes{128, 2, 64}, Sizes{100, 5, 70}, Sizes{40, 19, 3}, Sizes{300, 17, 1},
                             Sizes{9, 2, 16}, Sizes{10, 3, 9}, Sizes{1000, 2, 20}, Sizes{1025, 2, 40}})
    all.push_back(sizes);
  for (const DType type : every_type)
    for (const auto& [steps, batch, channels] : all) {
      Parity parity(other, 15);
      const std::size_t kernel = parity.array(type, channels * steps), u = parity.array(type, steps * batch * channels),
                        y = parity.array(type, steps * batch * channels), gy = parity.array(type, steps * batch * channels),
                        gkernel = parity.array(type, channels * steps), gu = parity.array(type, steps * batch * channels);
      parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
        b.convolve(type, steps, batch, channels, p[kernel], p[u], p[y]);
        b.convolve_adjoint(type, steps, batch, channels, p[kernel], p[u], p[gy], p[gkernel], nullptr);
        b.convolve_adjoint(type, steps, batch, channels, p[kernel], p[u], p[gy], nullptr, p[gu]);
        b.convolve_adjoint(type, steps, batch, channels, p[kernel], p[u], p[gy], p[gkernel], p[gu]);
        return 0;
      });
      parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
        void* spectrum = b.allocate(b.spectrum_size(type, steps, channels));
        b.spectrum(type, steps, channels, p[kernel], spectrum);
        b.convolve_with(type, steps, batch, channels, p[kernel], spectrum, p[u], p[y]);
        b.convolve_adjoint_with(type, steps, batch, channels, p[kernel], spectrum, p[u], p[gy], p[gkernel], p[gu]);
        b.finish();
        b.release(spectrum);
        return 0;
      });
    }
}

inline std::vector<ParityCase> convolution_parity_cases() {
  return {{"convolution: depth-wise convolution and its adjoints", depthwise_parity},
          {"convolution: Vandermonde kernels and their adjoints", kernel_parity},
          {"convolution: long convolutions and their adjoints", convolution_parity}};
}

}  // namespace reclab::test
