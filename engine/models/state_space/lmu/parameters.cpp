// SPDX-License-Identifier: GPL-3.0-or-later
// Names, shapes and starts of the LMU's parameters, as abr/neurips2019 lmu/lmu.py has them.
#include "models/state_space/lmu/parameters.h"

#include <cmath>
#include <tuple>

namespace reclab::architectures {
namespace {

Init lecun(std::int64_t rows) {
  const double bound = std::sqrt(3.0 / static_cast<double>(rows));
  return init::uniform(-bound, bound);
}
Init glorot(std::int64_t rows, std::int64_t columns) {
  return init::truncated_normal(std::sqrt(2.0 / static_cast<double>(rows + columns)));
}

}  // namespace

LmuParameters lmu_parameters(Layer& l, std::int64_t in) {
  const Hyper& h = l.hyper;
  const std::int64_t H = h.integer("width"), M = h.integer("memory"), q = h.integer("order");
  const bool hidden = h.choice("hidden") == "rnn", euler = h.choice("discretisation") == "euler";
  const double theta = h.real("theta");
  LmuParameters p;
  if (h.flag("trainable_theta")) {
    const Var theta_inv =
        l.parameter("theta_inv", {1}, init::constant(1.0 / theta), "1/θ, one over the window in steps; starts at 1/theta.");
    std::tie(p.A, p.B) = delay_line(q, theta_inv, euler);
  } else {
    const Delay line = delay_line(static_cast<std::size_t>(q), theta, euler);
    p.A = l.graph().constant({q, q}, line.A);
    p.B = l.graph().constant({q}, line.B);
  }
  p.e_x = l.parameter("input_encoders", {in, M}, lecun(in), "e_x [in, M]; starts uniform in ±√(3/in).");
  if (hidden && h.flag("hidden_to_memory"))
    p.e_h = l.parameter("hidden_encoders", {H, M}, lecun(H), "e_h [H, M]; starts uniform in ±√(3/H).");
  if (h.flag("memory_to_memory"))
    p.e_m = l.parameter("memory_encoders", {M * q, M}, init::constant(0.0), "e_m [M q, M], rows memory by memory; starts at 0.");
  if (h.flag("memory_bias")) p.b_u = l.parameter("memory_bias", {M}, init::constant(0.0), "Bias of u; starts at 0.");
  if (!hidden) return p;
  if (h.flag("input_to_hidden"))
    p.W_x = l.parameter("input_kernel", {in, H}, glorot(in, H),
                        "W_x [in, H]; starts truncated normal with variance 2/(in + out), as the other kernels.");
  p.W_h = l.parameter("hidden_kernel", {H, H}, glorot(H, H), "W_h [H, H]; starts truncated normal.");
  p.W_m = l.parameter("memory_kernel", {M * q, H}, glorot(M * q, H), "W_m [M q, H], rows memory by memory; starts truncated normal.");
  if (h.flag("bias")) p.b = l.parameter("bias", {1, H}, init::constant(0.0), "Bias of the hidden state; starts at 0.");
  return p;
}

}  // namespace reclab::architectures
