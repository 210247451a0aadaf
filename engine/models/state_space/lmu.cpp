// SPDX-License-Identifier: GPL-3.0-or-later
//   u_t = e_xᵀ x_t + e_hᵀ h_{t-1} + e_mᵀ m_{t-1},   m_t = Ā m_{t-1} + B̄ u_t,   h_t = f(W_xᵀ x_t + W_hᵀ h_{t-1} + W_mᵀ m_t)
//   Ā, B̄: θ m' = A m + B u, whose m holds the Legendre coefficients of u over the last θ steps, one step on.
// A. Voelker, I. Kajić, C. Eliasmith, Legendre memory units, NeurIPS 2019. Names of abr/neurips2019 lmu/lmu.py; the switches of keras-lmu.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>
#include <utility>

#include "models/architecture.h"
#include "models/parts/legendre.h"
#include "models/parts/parts.h"
#include "models/parts/projection/exponential.h"
#include "recurrence/linear/linear.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

struct Delay {
  std::vector<double> A, B;  // [order, order] and [order]
};
/// The Legendre delay line over theta steps in continuous time.
Delay continuous(std::size_t order, double theta = 1.0) {
  Delay line;
  for (std::size_t i = 0; i < order; ++i) {
    const double scale = (2.0 * static_cast<double>(i) + 1.0) / theta;
    for (std::size_t j = 0; j < order; ++j) line.A.push_back(scale * (i < j || (i - j) % 2 == 0 ? -1.0 : 1.0));
    line.B.push_back(i % 2 ? -scale : scale);
  }
  return line;
}
/// The same, moved on by one step.
Delay delay_line(std::size_t order, double theta, bool euler) {
  const std::size_t n = order + 1;
  const Delay flow = continuous(order, theta);
  std::vector<double> both(n * n, 0.0);  // [A B; 0 0]
  for (std::size_t i = 0; i < order; ++i) {
    for (std::size_t j = 0; j < order; ++j) both[i * n + j] = flow.A[i * order + j];
    both[i * n + order] = flow.B[i];
  }
  if (euler)
    for (std::size_t i = 0; i < n; ++i) both[i * n + i] += 1.0;
  else
    both = hippo::exponential(std::move(both), n);
  Delay line;
  for (std::size_t i = 0; i < order; ++i) {
    for (std::size_t j = 0; j < order; ++j) line.A.push_back(both[i * n + j]);
    line.B.push_back(both[i * n + order]);
  }
  return line;
}

/// The same with theta a parameter [1], given as 1/theta. exp of a multiple of a constant matrix has the slope matrix exp, so the
/// exponential is made of held values, with as many squarings as they need; the graph has room for those of any theta from 0.001 steps on.
std::pair<Var, Var> delay_line(std::int64_t order, Var theta_inv, bool euler) {
  const std::int64_t n = order + 1;
  Graph& graph = *theta_inv.graph;
  const Delay unit = continuous(static_cast<std::size_t>(order));
  std::vector<double> entries, identity;
  double norm = 0.0;
  for (std::int64_t i = 0; i < n; ++i) {
    double row = 0.0;
    for (std::int64_t j = 0; j < n; ++j) {
      entries.push_back(i == order  ? 0.0
                        : j < order ? unit.A[static_cast<std::size_t>(i * order + j)]
                                    : unit.B[static_cast<std::size_t>(i)]);
      identity.push_back(i == j ? 1.0 : 0.0);
      row += std::abs(entries.back());
    }
    norm = std::max(norm, row);
  }
  const Var matrix = graph.constant({n, n}, std::move(entries)), one = graph.constant({n, n}, std::move(identity));
  Var both;
  if (euler) {
    both = one + matrix * theta_inv;
  } else {
    const Var held = detach(theta_inv);
    const Var squarings = -floor(minimum(-log(abs(held) * (2.0 * norm)) / std::numbers::ln2, 0.0));
    const Var scaled = matrix * (held * exp(squarings * -std::numbers::ln2));
    both = one;
    for (int k = 16; k > 0; --k) both = one + matmul(scaled, both) / k;
    for (double k = 0.0; k < std::log2(2000.0 * norm); k += 1.0) {
      const Var more = sign(relu(squarings - (k + 0.5)));
      both = more * matmul(both, both) + (1.0 - more) * both;
    }
    both = both + (theta_inv - held) * matmul(matrix, both);
  }
  const Var rows = slice(both, 0, 0, order);
  return {slice(rows, 1, 0, order), reshape(slice(rows, 1, order, n), {order})};
}

/// u(t - a) = sum_i m_i P_i(2a/theta - 1): what has just come in meets P_i(-1) = (-1)^i, the sign of B.
PastBasis legendre_past(double theta) {
  PastBasis past;
  past.window = theta;
  past.coefficient = "Legendre coefficient";
  past.values = [](std::span<const double> places, std::span<double> values) {
    std::vector<double> x;
    for (const double place : places) x.push_back(1.0 - 2.0 * place);
    legendre(x, values);
  };
  return past;
}

}  // namespace

Architecture lmu() {
  Architecture a;
  a.title = "LMU";
  a.equations = {
      "u_t = e_xᵀ x_t + e_hᵀ h_{t-1} + e_mᵀ m_{t-1}",    "m_t = Ā m_{t-1} + B̄ u_t, for each of M memories of order q",
      "Ā = exp(A), B̄ = A⁻¹(Ā − 1)B   (euler: 1 + A, B)", "A_ij = (2i+1)/θ · (−1 if i < j, (−1)^(i−j+1) otherwise), B_i = (2i+1)/θ · (−1)^i",
      "h_t = f(W_xᵀ x_t + W_hᵀ h_{t-1} + W_mᵀ m_t)",     "y_t = h_t; with hidden=none: y_t = [m_t, x_t]"};
  a.notes = {"Parameters have the names and the [in, out] storage of abr/neurips2019 lmu/lmu.py; m counts as [M, q], memory by memory.",
             "hidden_to_memory, memory_to_memory and input_to_hidden are on as in the original, and off by default in keras-lmu, whose "
             "kernel is input_encoders over hidden_encoders and whose recurrent_kernel is memory_encoders.",
             "Ā and B̄ are constants. With trainable_theta they are made of the parameter theta_inv = 1/θ [1], as in keras-lmu, which keeps "
             "it at 0 or above; it starts at 1/theta.",
             "The original replaces the hidden state's sum by 0 when include_bias is false; the equation of the paper is taken.",
             "m reconstructs the last θ steps of u: u(t − a) ≈ Σ m_i P_i(2a/θ − 1).",
             "dL/ds_t takes m_t and h_t as independent coordinates of the state after step t: dL/dm_t does not include m_t's way into h_t "
             "of the same step."};
  a.hyper = {
      hyper_integer("width", "H", 64, 1, 4096, "Number of hidden units.", "units"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
      hyper_integer("order", "q", 16, 1, 256, "Legendre coefficients a memory: more follow faster changes.", "coefficients"),
      hyper_integer("memory", "M", 1, 1, 256, "Memories, each with a signal of its own.", "memories"),
      hyper_real("theta", "θ", 100.0, 0.1, 1e6, "The window that the memory holds.", true, "steps"),
      hyper_flag("trainable_theta", false, "Whether 1/θ is a parameter of each layer, which starts with the value of theta."),
      hyper_choice("hidden", "rnn", {"rnn", "none"}, "A nonlinear hidden state beside the memory, or the bare memory, which is linear."),
      hyper_flag("hidden_to_memory", true, "Whether h feeds the memory (where there is an h)."),
      hyper_flag("memory_to_memory", true, "Whether the memory feeds itself, beside Ā."),
      hyper_flag("input_to_hidden", true, "Whether the input reaches the hidden state directly, or with hidden=none the output."),
      hyper_flag("bias", false, "Whether the hidden state has a bias."),
      hyper_flag("memory_bias", false, "Whether the memory's signal has a bias."),
      hyper_choice("discretisation", "zoh", {"zoh", "euler"},
                   "From continuous to discrete time: zero-order hold, exact for held inputs, or Euler's step."),
      hyper_choice("activation", "tanh", {"tanh", "relu", "identity"}, "The hidden state's nonlinearity f.")};
  a.spectrum = "eigenvalues of ∂(m_t, h_t)/∂(m_{t-1}, h_{t-1}); with hidden=none of the memory's constant matrix";
  a.source = {"A. Voelker, I. Kajić, C. Eliasmith", "Legendre memory units: continuous-time representation in recurrent neural networks",
              "NeurIPS", "https://proceedings.neurips.cc/paper/2019/hash/952285b9b7e7a1be5aa7849f32ffff05-Abstract.html", 2019};

  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), M = l.hyper.integer("memory"), q = l.hyper.integer("order"), in = x.dim(-1),
                       T = l.steps(), batch = l.batch();
    const bool hidden = l.hyper.choice("hidden") == "rnn", feeds_itself = l.hyper.flag("memory_to_memory"),
               sees_input = l.hyper.flag("input_to_hidden");
    const auto lecun = [](std::int64_t rows) {
      const double bound = std::sqrt(3.0 / static_cast<double>(rows));
      return init::uniform(-bound, bound);
    };
    const auto glorot = [](std::int64_t rows, std::int64_t columns) {
      return init::truncated_normal(std::sqrt(2.0 / static_cast<double>(rows + columns)));
    };
    Graph& graph = *x.graph;
    const double theta = l.hyper.real("theta");
    const bool trained = l.hyper.flag("trainable_theta"), euler = l.hyper.choice("discretisation") == "euler";
    Var A, B;
    if (trained) {
      const Var theta_inv =
          l.parameter("theta_inv", {1}, init::constant(1.0 / theta), "1/θ, one over the window in steps; starts at 1/theta.");
      std::tie(A, B) = delay_line(q, theta_inv, euler);
    } else {
      const Delay line = delay_line(static_cast<std::size_t>(q), theta, euler);
      A = graph.constant({q, q}, line.A);
      B = graph.constant({q}, line.B);
    }
    PastBasis past = legendre_past(theta);
    if (trained) past.inverse_window = "theta_inv";

    Var u = matmul(x, l.parameter("input_encoders", {in, M}, lecun(in), "e_x [in, M]; starts uniform in ±√(3/in)."));
    const Var e_h = hidden && l.hyper.flag("hidden_to_memory")
                        ? l.parameter("hidden_encoders", {H, M}, lecun(H), "e_h [H, M]; starts uniform in ±√(3/H).")
                        : Var{};
    const Var e_m =
        feeds_itself ? l.parameter("memory_encoders", {M * q, M}, init::constant(0.0), "e_m [M q, M], rows memory by memory; starts at 0.")
                     : Var{};
    if (l.hyper.flag("memory_bias")) u = u + l.parameter("memory_bias", {M}, init::constant(0.0), "Bias of u; starts at 0.");
    const StateSpec memory{"m", {M, q}, "The Legendre coefficients of each memory's signal over the last θ steps, lowest first."};

    // What a state of the step before adds to the memory's signal, for the record.
    const auto fed = [&](const Var& trajectory, std::int64_t width, const Var& encoders) {
      return matmul(detach(reshape(l.before(trajectory), {T, batch, width})), detach(encoders));
    };

    if (!hidden) {
      Var m;
      if (e_m) {  // one matrix for all memories, since each may feed any other
        std::vector<double> each(static_cast<std::size_t>(M * M), 0.0);
        for (std::int64_t k = 0; k < M; ++k) each[static_cast<std::size_t>(k * M + k)] = 1.0;
        const Var apart = reshape(graph.constant({M, 1, M, 1}, std::move(each)) * reshape(A, {1, q, 1, q}), {M * q, M * q});
        const Var feedback = reshape(transpose(e_m), {M, 1, M * q}) * reshape(B, {q, 1});
        m = linear(l, memory, apart + reshape(feedback, {M * q, M * q}), reshape(reshape(u, {T, batch, M, 1}) * B, {T, batch, 1, M * q}));
      } else {
        m = linear_driven(l, memory, A, B, u);
      }
      l.reconstruction("m", [&] { return e_m ? detach(u) + fed(m, M * q, e_m) : u; }, past);
      const Var parts[] = {reshape(m, {T, batch, M * q}), x};
      return sees_input ? concat(parts, -1) : parts[0];
    }

    Var W_x;
    if (sees_input)
      W_x = l.parameter("input_kernel", {in, H}, glorot(in, H),
                        "W_x [in, H]; starts truncated normal with variance 2/(in + out), as the other kernels.");
    const Var W_h = l.parameter("hidden_kernel", {H, H}, glorot(H, H), "W_h [H, H]; starts truncated normal.");
    const Var W_m =
        l.parameter("memory_kernel", {M * q, H}, glorot(M * q, H), "W_m [M q, H], rows memory by memory; starts truncated normal.");
    std::vector<Var> tokens{u};
    if (W_x) tokens.push_back(matmul(x, W_x));
    const Var b = l.hyper.flag("bias") ? l.parameter("bias", {1, H}, init::constant(0.0), "Bias of the hidden state; starts at 0.") : Var{};
    const std::string activation = l.hyper.choice("activation");
    const Var A_turned = transpose(A);
    const std::vector<Var> states = step(l, {memory, {"h", {H}, "The hidden state: what is read out and fed back."}}, tokens,
                                         [=](Cell&, std::span<const Var> t, std::span<const Var> s) {
                                           const std::int64_t copies = s[0].dim(0);
                                           Var signal = t[0];
                                           if (e_h) signal = signal + matmul(s[1], e_h);
                                           if (e_m) signal = signal + matmul(reshape(s[0], {copies, M * q}), e_m);
                                           const Var m = matmul(s[0], A_turned) + reshape(signal, {copies, M, 1}) * B;
                                           Var h = matmul(s[1], W_h) + matmul(reshape(m, {copies, M * q}), W_m);
                                           if (t.size() > 1) h = h + t[1];
                                           if (b) h = h + b;
                                           return std::vector<Var>{m, parts::activation(activation, h)};
                                         });
    l.reconstruction(
        "m",
        [&] {
          Var signal = detach(u);
          if (e_h) signal = signal + fed(states[1], H, e_h);
          if (e_m) signal = signal + fed(states[0], M * q, e_m);
          return signal;
        },
        past);
    return states[1];
  };
  return a;
}

}  // namespace reclab::architectures
