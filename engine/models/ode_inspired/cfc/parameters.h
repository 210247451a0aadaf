// SPDX-License-Identifier: GPL-3.0-or-later
// The card of CfC, its parameters as the equations use them, the inputs of a cell beside its maps, and the wired layer.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/architecture.h"
#include "models/parts/wiring/wiring.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture cfc_card();

/// A linear map of [x; h], whose part of x is made for all steps at once.
struct CfcJoined {
  Var of_x, W_h;
};
/// A linear map of the backbone's output.
struct CfcPlain {
  Var W, b;
};
struct CfcParameters {
  std::vector<CfcJoined> of_both;  ///< the backbone's first layer; without a backbone the heads
  std::vector<CfcPlain> inner;     ///< the backbone's other layers
  std::vector<CfcPlain> heads;     ///< (W_1, b_1), and where there is a gate (W_2, b_2), (A, a), (B, b); none without a backbone
  Var leak, A;                     ///< |w_τ| and A [1, H]; of mode=pure
};
CfcParameters cfc_parameters(Layer& l, Var x);

/// The inputs of a cell beside its maps: Δ_t, and with mixed memory the LSTM in front, whose output takes the place of h.
class CfcBeside {
 public:
  /// Appends its tokens to `tokens`.
  CfcBeside(Layer& l, Var x, std::vector<Var>& tokens);
  std::vector<StateSpec> states(const std::string& text_of_h) const;
  /// Δ_t; none: 1.
  Var elapsed(std::span<const Var> token) const { return timed_ ? token[elapsed_at_] : Var{}; }
  /// The h that the cell reads, and c.
  parts::MixedMemory::Out read(Cell& cell, std::span<const Var> token, std::span<const Var> before) const;
  std::vector<Var> next(Var h, Var c) const { return memory_ ? std::vector<Var>{h, c} : std::vector<Var>{h}; }

 private:
  std::int64_t width_;
  bool timed_ = false;
  std::size_t elapsed_at_, lstm_at_;
  std::optional<parts::MixedMemory> memory_;
};

/// h_t of f, or of f, g, A u + a and B u + b; leak and A are those of mode=pure. `gate` gets the gate of the step, and returns it.
Var cfc_solution(const std::string& mode, const std::vector<Var>& maps, Var leak, Var A, Var elapsed, const std::function<Var(Var)>& gate);
/// Records it.
Var cfc_gate(Cell& cell, const std::string& mode, Var value);
/// y of the units that are read out.
Var cfc_projected(Layer& l, Var h);

/// A layer whose units are wired, layer above layer within a step.
Var wired_cfc(Layer& l, Var x);

}  // namespace reclab::architectures
