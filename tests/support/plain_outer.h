// SPDX-License-Identifier: GPL-3.0-or-later
// A matrix memory as its definition says it, one entry after another: the reference for the forms of recurrence/outer. It shares no code
// with them.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

namespace reclab::test {

/// A number and how it moves: the derivative of all that is computed of it, along one direction.
struct Dual {
  double value = 0.0, moved = 0.0;
  friend Dual operator+(Dual x, Dual y) { return {x.value + y.value, x.moved + y.moved}; }
  friend Dual operator-(Dual x, Dual y) { return {x.value - y.value, x.moved - y.moved}; }
  friend Dual operator*(Dual x, Dual y) { return {x.value * y.value, x.moved * y.value + x.value * y.moved}; }
  friend Dual exp(Dual x) { return {std::exp(x.value), std::exp(x.value) * x.moved}; }
  friend Dual cos(Dual x) { return {std::cos(x.value), -std::sin(x.value) * x.moved}; }
  friend Dual sin(Dual x) { return {std::sin(x.value), std::cos(x.value) * x.moved}; }
};

/// S_t = exp(a_t + i theta_t) b_t^T * S_{t-1} + k_t v_t^T, o_t = Re(S_t^T q_t), or before the update Re((S_{t-1} + u * k_t v_t^T)^T q_t).
struct PlainOuter {
  using Entry = std::function<Dual(std::int64_t t, std::int64_t head, std::int64_t i)>;  ///< of all heads of the batch
  std::int64_t steps = 0, heads = 0, key = 0, value = 0;
  Entry q, k, v;                                       ///< the real parts
  Entry q_imag{}, k_imag{};                            ///< none: real
  Entry key_decay{}, value_decay{}, phase{}, bonus{};  ///< logarithms of decays; none: 0
  bool before = false;
  std::function<Dual(std::int64_t head, std::int64_t i, std::int64_t j)> initial{}, initial_imag{};

  struct Made {
    std::vector<Dual> output;        ///< [steps, heads, value]
    std::vector<Dual> states, imag;  ///< [steps, heads, key, value], after each step
  };
  Made run() const {
    Made made;
    std::vector<Dual> re, im;
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < key; ++i)
        for (std::int64_t j = 0; j < value; ++j) {
          re.push_back(initial(h, i, j));
          im.push_back(initial_imag ? initial_imag(h, i, j) : Dual{});
        }
    for (std::int64_t t = 0; t < steps; ++t)
      for (std::int64_t h = 0; h < heads; ++h) {
        std::vector<Dual> read(static_cast<std::size_t>(value));
        for (std::int64_t i = 0; i < key; ++i) {
          const Dual a = key_decay ? key_decay(t, h, i) : Dual{}, theta = phase ? phase(t, h, i) : Dual{},
                     u = bonus ? bonus(t, h, i) : Dual{};
          const Dual qr = q(t, h, i), qi = q_imag ? q_imag(t, h, i) : Dual{}, kr = k(t, h, i), ki = k_imag ? k_imag(t, h, i) : Dual{};
          for (std::int64_t j = 0; j < value; ++j) {
            const auto cell = static_cast<std::size_t>((h * key + i) * value + j);
            const Dual factor = exp(a + (value_decay ? value_decay(t, h, j) : Dual{})), written = v(t, h, j);
            const Dual x = re[cell], y = im[cell];
            re[cell] = factor * (cos(theta) * x - sin(theta) * y) + kr * written;
            im[cell] = factor * (sin(theta) * x + cos(theta) * y) + ki * written;
            const Dual sr = before ? x + u * kr * written : re[cell], si = before ? y + u * ki * written : im[cell];
            read[static_cast<std::size_t>(j)] = read[static_cast<std::size_t>(j)] + (sr * qr - si * qi);
          }
        }
        made.output.insert(made.output.end(), read.begin(), read.end());
        if (h + 1 == heads) {
          made.states.insert(made.states.end(), re.begin(), re.end());
          made.imag.insert(made.imag.end(), im.begin(), im.end());
        }
      }
    return made;
  }
};

}  // namespace reclab::test
