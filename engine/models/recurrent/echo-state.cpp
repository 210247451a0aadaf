// SPDX-License-Identifier: GPL-3.0-or-later
//   internal: r_t = (1 - a) r_{t-1} + a f(W r_{t-1} + W_in (u_t + ξ) + W_fb (g(y_{t-1}) + ξ) + b) + ξ
//   external: s_t = (1 - a) s_{t-1} + a (W r_{t-1} + W_in (u_t + ξ) + W_fb (g(y_{t-1}) + ξ) + b) + ξ,   r_t = f(s_t)
//   read-out: y_t = W_out [r_t; u_t] + b_out, by ridge regression on the run itself
// H. Jaeger, The "echo state" approach to analysing and training recurrent neural networks, GMD report 148, 2001; with leak: H. Jaeger,
// M. Lukoševičius, D. Popovici, U. Siewert, Neural Networks 20 (2007). Names and both equations of reservoirpy 0.3.
#include "models/recurrent/echo-state/parameters.h"

#include <span>
#include <string>
#include <vector>

#include "models/parts/matrices.h"
#include "models/parts/parts.h"
#include "recurrence/mixing/mixing.h"
#include "recurrence/noise.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture echo_state() {
  Architecture a = echo_state_card();
  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    const auto [W, W_in, b, W_fb, W_out, b_out] = echo_state_parameters(l, x.dim(-1));
    const std::int64_t N = W.dim(0), M = W_fb ? W_fb.dim(1) : 0;
    const double leak = h.real("leak");
    const bool external = h.choice("equation") == "external", read_input = h.flag("read_input");
    const std::string f = h.choice("activation"), g = h.choice("feedback_activation");
    const auto has_noise = [&](const std::string& name) { return h.real("noise_" + name) > 0.0; };
    const auto noisy = [&](const std::string& name, std::int64_t n) {
      return noise(l, name, n, h.real("noise_" + name), h.integer("noise_seed"));
    };

    // W_in (u + ξ) + b + W_fb ξ, and where the target stands for y in the fit also W_fb g(y).
    Var drive = linear(has_noise("in") ? x + noisy("in", x.dim(-1)) : x, W_in);
    if (b) drive = drive + b;
    if (M && has_noise("feedback")) drive = drive + linear(noisy("feedback", M), W_fb);
    const Var teacher = M ? l.teacher_forcing_input() : Var{};
    if (teacher) drive = drive + linear(parts::activation(g, teacher), W_fb);
    std::vector<Var> tokens{drive};
    const bool shaken = has_noise("state");
    if (shaken) tokens.push_back(noisy("state", N));

    // r, or s in the external form, from W r + drive, and from its value before; then its output.
    const auto next = [=](Var pre, std::span<const Var> now, Var before) {
      Var fresh = external ? pre : parts::activation(f, pre);
      if (leak != 1.0) fresh = (1.0 - leak) * before + leak * fresh;
      return shaken ? fresh + now[1] : fresh;
    };
    const auto seen = [=](Var state) { return external ? parts::activation(f, state) : state; };
    const auto features = [=](Var r, Var u) {
      if (!read_input) return r;
      const Var parts[] = {r, u};
      return concat(parts, -1);
    };
    const StateSpec state = external ? StateSpec{"s", {N}, "The state before the nonlinearity; what is read out is r = f(s)."}
                                     : StateSpec{"r", {N}, "The state of the reservoir, which is read out."};

    if (!M || teacher) {
      if (!external) declare_matrix(l, {.matrix = W});
      const CellFunction cell = [=](Cell&, std::span<const Var> now, std::span<const Var> s) {
        return std::vector<Var>{next(now[0] + linear(seen(s[0]), W), now, s[0])};
      };
      if (f != "identity") return features(seen(step(l, {state}, tokens, cell)[0]), x);
      const auto moved = [&] { return leak == 1.0 ? W : leak * W + (1.0 - leak) * parts::identity(l.graph(), N); };
      const Var driven = leak == 1.0 ? drive : leak * drive;
      return features(parts::linear_step(l, state, moved, shaken ? driven + tokens[1] : driven, tokens, cell), x);
    }
    if (read_input) tokens.push_back(x);
    const CellFunction cell = [=](Cell&, std::span<const Var> now, std::span<const Var> s) {
      const Var made = next(now[0] + linear(seen(s[0]), W) + linear(parts::activation(g, s[1]), W_fb), now, s[0]);
      return std::vector<Var>{made, linear(features(seen(made), now.back()), W_out, b_out)};
    };
    return step(l, {state, {"y", {M}, "The outputs, which are fed back."}}, tokens, cell)[1];
  };
  return a;
}

}  // namespace reclab::architectures
