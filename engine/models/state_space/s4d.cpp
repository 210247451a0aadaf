// SPDX-License-Identifier: GPL-3.0-or-later
//   A = -exp(log_A_real) + i A_imag,   h_t = Ā h_{t-1} + B̄ u_t (one bank of N/2 modes a channel),   y_t = 2 Re(C h_t) + D u_t
//   zoh: Ā = exp(ΔA), B̄ = (Ā - 1)/A B      bilinear: Ā = (1 + ΔA/2)/(1 - ΔA/2), B̄ = Δ/(1 - ΔA/2) B
//   layer: GLU(W gelu(y) + b);   block: norm(x + layer(x)), or x + layer(norm(x))
// A. Gu, A. Gupta, K. Goel, C. Ré, On the parameterization and initialization of diagonal state space models, NeurIPS 2022.
// Conventions of the minimal s4d.py of the authors' repository, or of its full code (kernels/ssm.py, SSMKernelDiag; modules/s4block.py).
#include "models/state_space/s4d/parameters.h"

#include <vector>

#include "models/parts/layers/diagonal_system.h"
#include "models/parts/layers/state_space.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/flow.h"

namespace reclab::architectures {
namespace {

/// 2 Re Σ_n C_n h_n of h_t = Ā ⊙ h_{t-1} + B̄ u_t, read by read; C [reads H, M].
Var read_out(Layer& l, Var A_bar, Var B_bar, Var C, Var u) {
  const std::int64_t H = A_bar.dim(0), M = A_bar.dim(1);
  const bool turns = is_complex(A_bar.dtype());
  const StateSpec state{"h", {H, M}, turns ? "The complex modes of each channel." : "The modes of each channel."};
  if (C.dim(0) == H) return diagonal_bank(l, state, A_bar, B_bar, C * 2.0, u);
  const Var h = diagonal(l, state, A_bar, B_bar * reshape(u, {u.dim(0), u.dim(1), H, 1}));
  std::vector<Var> reads;
  for (std::int64_t from = 0; from < C.dim(0); from += H) {
    const Var terms = h * (slice(C, 0, from, from + H) * 2.0);
    reads.push_back(sum(turns ? real(terms) : terms, -1));
  }
  return concat(reads, -1);
}

/// The layer's output from the system's, with the residual.
Var finished(Layer& l, const parts::NormedBlock& block, Var x, Var y) {
  return block.around(x, l.hyper.choice("output") == "none" ? y : s4d_output(l, y));
}

}  // namespace

Architecture s4d() {
  Architecture a = s4d_card();
  a.layer = [](Layer& l, Var x) {
    const parts::NormedBlock block = parts::normed_block(l);
    const auto [A, dt, B, C, D] = s4d_parameters(l);
    const Var u = block.read(x);

    const std::string& rule = l.hyper.choice("discretisation");
    const Var dtA = A * dt;
    Var A_bar, B_bar;
    if (rule == "zoh") {
      A_bar = exp(dtA);
      B_bar = mean_exp(dtA) * dt;  // (Ā − 1)/A, which cancels for small steps
    } else {
      const Var inverse = reciprocal(1.0 - dtA * 0.5);
      A_bar = (dtA * 0.5 + 1.0) * inverse;
      B_bar = inverse * dt;
    }
    if (B) B_bar = B_bar * B;
    declare_flow(l, {.rule = flow_rule(rule), .exponents = is_complex(dtA.dtype()) ? dtA : Var{}});

    const Var Du = D ? parts::skip(D, u) : Var{};  // before the bank: gradients are added up in this order
    const Var y = read_out(l, A_bar, B_bar, C, u);
    return D ? finished(l, block, x, y + Du) : y;
  };

  // Each direction is a layer of its own; the maps after the system take the sum of both.
  a.shares_directions = [](const Hyper& h) { return h.flag("bidirectional"); };
  a.combine_directions = [](Layer& l, Var x, Var forward, Var backward) {
    const parts::NormedBlock block = parts::normed_block(l);
    const Var u = block.read(x);
    return finished(l, block, x, forward + parts::from_next_step(backward) + parts::skip(s4d_skip(l), u));
  };
  return a;
}

}  // namespace reclab::architectures
