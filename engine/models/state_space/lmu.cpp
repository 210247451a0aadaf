// SPDX-License-Identifier: GPL-3.0-or-later
//   u_t = e_xᵀ x_t + e_hᵀ h_{t-1} + e_mᵀ m_{t-1},   m_t = Ā m_{t-1} + B̄ u_t,   h_t = f(W_xᵀ x_t + W_hᵀ h_{t-1} + W_mᵀ m_t)
//   Ā, B̄: θ m' = A m + B u, whose m holds the Legendre coefficients of u over the last θ steps, one step on.
// A. Voelker, I. Kajić, C. Eliasmith, Legendre memory units, NeurIPS 2019. Names of abr/neurips2019 lmu/lmu.py; the switches of keras-lmu.
#include <span>
#include <string>
#include <vector>

#include "models/parts/parts.h"
#include "models/state_space/lmu/parameters.h"
#include "recurrence/linear/linear.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

StateSpec memory_of(const LmuParameters& p) {
  return {"m", {p.e_x.dim(1), p.B.dim(0)}, "The Legendre coefficients of each memory's signal over the last θ steps, lowest first."};
}

/// The contribution of the previous state to the memory's signal, for the record.
Var fed(Layer& l, const Var& trajectory, const Var& encoders) {
  return matmul(detach(reshape(l.previous_state(trajectory), {l.steps(), l.batch(), encoders.dim(0)})), detach(encoders));
}

/// hidden=none: m alone, which is linear; [m_t, x_t].
Var bare_memory(Layer& l, const LmuParameters& p, Var x, Var u) {
  const Var A = p.A, B = p.B;
  const std::int64_t M = p.e_x.dim(1), q = B.dim(0), T = l.steps(), batch = l.batch();
  Var m;
  if (p.e_m) {  // one matrix for all memories, since each may feed any other
    std::vector<double> each(static_cast<std::size_t>(M * M), 0.0);
    for (std::int64_t k = 0; k < M; ++k) each[static_cast<std::size_t>(k * M + k)] = 1.0;
    const Var apart = reshape(l.graph().constant({M, 1, M, 1}, std::move(each)) * reshape(A, {1, q, 1, q}), {M * q, M * q});
    const Var feedback = reshape(transpose(p.e_m), {M, 1, M * q}) * reshape(B, {q, 1});
    m = linear(l, memory_of(p), apart + reshape(feedback, {M * q, M * q}), reshape(reshape(u, {T, batch, M, 1}) * B, {T, batch, 1, M * q}));
  } else {
    m = linear_driven(l, memory_of(p), A, B, u);
  }
  l.reconstruction("m", [&] { return p.e_m ? detach(u) + fed(l, m, p.e_m) : u; }, legendre_past(l.hyper));
  const Var parts[] = {reshape(m, {T, batch, M * q}), x};
  return l.hyper.flag("input_to_hidden") ? concat(parts, -1) : parts[0];
}

}  // namespace

Architecture lmu() {
  Architecture a = lmu_card();
  a.layer = [](Layer& l, Var x) {
    const LmuParameters p = lmu_parameters(l, x.dim(-1));
    const std::int64_t M = p.e_x.dim(1), q = p.B.dim(0);
    Var u = matmul(x, p.e_x);
    if (p.b_u) u = u + p.b_u;
    if (!p.W_h) return bare_memory(l, p, x, u);

    std::vector<Var> tokens{u};
    if (p.W_x) tokens.push_back(matmul(x, p.W_x));
    const std::string f = l.hyper.choice("activation");
    const Var A_turned = transpose(p.A);
    const CellFunction cell = [=](Cell&, std::span<const Var> token, std::span<const Var> before) {
      const std::int64_t copies = before[0].dim(0);
      Var signal = token[0];
      if (p.e_h) signal = signal + matmul(before[1], p.e_h);
      if (p.e_m) signal = signal + matmul(reshape(before[0], {copies, M * q}), p.e_m);
      const Var m = matmul(before[0], A_turned) + reshape(signal, {copies, M, 1}) * p.B;
      Var h = matmul(before[1], p.W_h) + matmul(reshape(m, {copies, M * q}), p.W_m);
      if (p.W_x) h = h + token[1];
      if (p.b) h = h + p.b;
      return std::vector<Var>{m, parts::activation(f, h)};
    };
    const StateSpec hidden{"h", {p.W_h.dim(0)}, "The hidden state: what is read out and fed back."};
    const std::vector<Var> states = step(l, {memory_of(p), hidden}, tokens, cell);
    l.reconstruction(
        "m",
        [&] {
          Var signal = detach(u);
          if (p.e_h) signal = signal + fed(l, states[1], p.e_h);
          if (p.e_m) signal = signal + fed(l, states[0], p.e_m);
          return signal;
        },
        legendre_past(l.hyper));
    return states[1];
  };
  return a;
}

}  // namespace reclab::architectures
