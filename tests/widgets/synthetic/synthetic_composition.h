// SPDX-License-Identifier: GPL-3.0-or-later
// A composition made by hand, as the engine puts one together: two rows of two tiles, one of twelve, one of three, a number, and a run of
// 40 tokens.
#pragma once

#include <cmath>
#include <memory>
#include <string>

#include "trace/composition.h"

namespace reclab::test {

struct Composed {
  std::size_t oscillation = 9;
  double tau = 4.0;
  bool turns = false;
  bool runs = true;
};

inline std::shared_ptr<Composition> synthetic_composition(const Composed& as = {}) {
  auto made = std::make_shared<Composition>();
  const auto matrix = [](double from) {
    Composition::Picture picture{4, 5, {}};
    for (int i = 0; i < 20; ++i) picture.values.push_back(0.2 + 0.8 * std::fmod(from + 0.37 * i, 1.0));
    return picture;
  };
  Composition::Picture curve{1, 21, {}};
  for (int i = 0; i < 21; ++i) curve.values.push_back(i < 10 ? 0.0 : 0.1 * (i - 10));
  made->rows = {{"expand",
                 "Expand",
                 "What the input is multiplied with.",
                 {{"independent", "E", "E", "A learned matrix.", false, matrix(0.0)},
                  {"dependent", "e_t", "e_t = W_e x_t", "A key.", true, {4, 1, {1, 0.6, 0.3, 0.8}}}},
                 1},
                {"oscillation", "Oscillation", "What the memory is multiplied with, entry by entry, at every step.", {}, as.oscillation},
                {"shrink",
                 "Shrink",
                 "What the memory is read with.",
                 {{"independent", "S", "S", "A learned matrix.", false, matrix(0.5)},
                  {"dependent", "s_t", "s_t = W_s x_t", "A query.", true, {4, 1, {0.3, 1, 0.6, 0.4}}}},
                 1},
                {"activation",
                 "Activation",
                 "What expand and shrink go through.",
                 {{"identity", "x", "x", "As they are.", false, {1, 2, {-1, 1}}},
                  {"relu", "relu(x)", "relu(x)", "Negative entries are 0.", false, curve},
                  {"square", "x²", "x²", "Squared.", false, curve}},
                 0}};
  for (int i = 0; i < 12; ++i)
    made->rows[1].choices.push_back({(i % 3 == 0 ? "key-gated-matrix-" : "gates-") + std::to_string(i), "g_t 1ᵀ", "σ(W_o x_t)^{1/τ} 1ᵀ",
                                     "The sentence of choice " + std::to_string(i) + ".", i % 2 == 1, matrix(0.07 * i)});
  made->numbers = {{"tau", "τ", "Larger forgets more slowly.", as.tau, 1e-3, 1e4, as.turns ? "A rotation has no τ." : ""}};
  made->code = "1-" + std::to_string(as.oscillation) + "-1-0";
  made->equations = {"m_t = o_t ⊙ m_{t-1} + e_t i_tᵀ", "y_t = m_tᵀ s_t", "i_t = W_i x_t", "e_t = W_e x_t",
                     "o_t = σ(W_o x_t)^{1/τ} 1ᵀ",      "s_t = W_s x_t"};
  made->nearest = {{"GLA", "gla"}, {{"GateLoop", ""}}, as.oscillation == 3, "In GLA there are several heads."};
  made->forms = {{"sequential", "O(T k d)", "T steps"},
                 {"scan", "O(T k d)", "2 log₂ T rounds"},
                 {"chunkwise", "O(T (k d + c (k + d)))", "T / c chunks"}};
  made->preset = made->architecture = "composed";
  made->others = {{"transition", "entries"}};
  made->settings = {{"expand", "dependent"}, {"tau", "4"}, {"transition", "entries"}};
  if (!as.runs) {
    made->problem = "The state became non-finite at step 3.";
    return made;
  }
  made->command = "reclab run composed --task noise --length 40 --seed 1";
  made->input = "noise";
  made->steps = made->rows_of_factors = 40;
  made->entries = 8;
  for (int t = 0; t < 40; ++t)
    for (int i = 0; i < 8; ++i) {
      const double size = as.turns ? 1.0 : 0.99 - 0.02 * i - 0.05 / as.tau * (1.0 + std::sin(0.5 * t + i));
      made->factors.push_back(as.turns ? std::polar(size, 0.1 * (i + 1)) : std::complex<double>(size));
    }
  return made;
}

}  // namespace reclab::test
