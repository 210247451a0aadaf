// SPDX-License-Identifier: GPL-3.0-or-later
// The cells of torch.nn.RNN (tanh), GRU and LSTM, for models that have one inside: the equations of elman, gru and lstm.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "models/architecture.h"

namespace reclab::parts {

struct TorchCell {
  std::string kind;  ///< "rnn", "gru" or "lstm"
  Var W_ih, W_hh, b_ih, b_hh;

  static std::int64_t rows(const std::string& kind) { return kind == "rnn" ? 1 : kind == "gru" ? 3 : 4; }
  /// Declares the parameters name + weight_ih_l0, weight_hh_l0, bias_ih_l0 and bias_hh_l0; all start uniform in ±1/√units.
  TorchCell(Layer& l, std::string which, const std::string& name, std::int64_t inputs, std::int64_t units) : kind(std::move(which)) {
    const std::int64_t n = rows(kind) * units;
    const double k = 1.0 / std::sqrt(static_cast<double>(units));
    const std::string order = kind == "rnn"   ? ""
                              : kind == "gru" ? ", rows r z n"
                                              : ", rows i f g o",
                      starts = "; starts uniform in ±1/√units.";
    W_ih = l.parameter(name + "weight_ih_l0", {n, inputs}, init::uniform(-k, k), "W_ih of the recurrent network" + order + starts);
    W_hh = l.parameter(name + "weight_hh_l0", {n, units}, init::uniform(-k, k), "W_hh, from its state" + order + starts);
    b_ih = l.parameter(name + "bias_ih_l0", {n}, init::uniform(-k, k), "b_ih" + order + starts);
    b_hh = l.parameter(name + "bias_hh_l0", {n}, init::uniform(-k, k),
                       "b_hh" + order + (kind == "gru" ? "; its n rows lie inside the reset product" : "") + starts);
  }

  std::vector<std::string> states() const { return kind == "lstm" ? std::vector<std::string>{"h", "c"} : std::vector<std::string>{"h"}; }
  /// W_ih x + b_ih, of a sequence or of a step.
  Var driven(Var x) const { return linear(x, W_ih, b_ih); }

  struct Gate {
    std::string name, text;
    Var value;
  };
  /// The next states from driven(x) and the states before, h first; with its gates, if they are asked for.
  std::vector<Var> operator()(Var drive, std::span<const Var> s, std::vector<Gate>* gates = nullptr) const {
    const Var turned = linear(s[0], W_hh, b_hh);
    const auto named = [&](const char* gate, const char* text, Var value) {
      if (gates) gates->push_back({gate, text, value});
      return value;
    };
    if (kind == "rnn") return {tanh(drive + turned)};
    if (kind == "gru") {
      const auto u = split(drive, -1, 3), w = split(turned, -1, 3);
      const Var r = named("reset", "r: how much of the old state the candidate sees.", sigmoid(u[0] + w[0]));
      const Var z = named("update", "z: how much of the old state is kept.", sigmoid(u[1] + w[1]));
      return {(1.0 - z) * tanh(u[2] + r * w[2]) + z * s[0]};
    }
    const auto pre = split(drive + turned, -1, 4);
    const Var i = named("input", "i: how much is written.", sigmoid(pre[0]));
    const Var f = named("forget", "f: how much of the cell is kept.", sigmoid(pre[1]));
    const Var o = named("output", "o: how much of the cell is shown.", sigmoid(pre[3]));
    const Var c = f * s[1] + i * tanh(pre[2]);
    return {o * tanh(c), c};
  }
};

}  // namespace reclab::parts
