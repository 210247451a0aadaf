// SPDX-License-Identifier: GPL-3.0-or-later
// Names, shapes, signs and starts of S4D's parameters, as the minimal s4d.py and the full code of its authors have them.
#include "models/state_space/s4d/parameters.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <string>

#include "models/parts/hippo.h"
#include "models/parts/layers/diagonal_system.h"
#include "models/parts/layers/state_space.h"

namespace reclab::architectures {
namespace {

bool full(const Layer& l) { return l.hyper.choice("code") == "full"; }

/// −Re A and |Im A| of mode n at the start, but for those of HiPPO-LegS; N counts conjugates.
double real_start(const std::string& init, double n) { return init == "real" ? n + 1.0 : 0.5; }
double imag_start(const std::string& init, double n, double N, Rng& rng) {
  if (init == "real") return 0.0;
  if (init == "rand") return std::exp(rng.normal());
  return parts::frequency_at_start(init, n, N);
}

/// B of HiPPO-LegS in the phases and with the cut of the reference, for Im A < 0.
std::complex<double> legs_input(const hippo::Normal& legs, std::size_t n) {
  const std::complex<double> theirs = legs.input[n] * (legs.vectors[n] / std::abs(legs.vectors[n]));
  return {theirs.real(), std::clamp(theirs.imag(), -2.0, 2.0)};
}

/// The sizes and options that determine names and shapes of the parameters.
struct Sizes {
  bool full, is_real, bidirectional;
  std::int64_t H, M, S, reads;
  double N;  ///< conjugates counted

  explicit Sizes(const Layer& l)
      : full(architectures::full(l)),
        is_real(l.hyper.flag("is_real")),
        bidirectional(l.hyper.flag("bidirectional")),
        H(l.hyper.integer("width")),
        M(is_real ? l.hyper.integer("state") : l.hyper.integer("state") / 2),
        S(l.hyper.integer("n_ssm") ? l.hyper.integer("n_ssm") : H),
        reads(l.hyper.integer("channels")),
        N(static_cast<double>(is_real ? 2 * M : l.hyper.integer("state"))) {}

  hippo::Normal legs(const std::string& init) const { return init == "legs" ? hippo::legs_normal(2 * M) : hippo::Normal{}; }
};

/// Δ from its parameter, by sinh with dt_fast and by dt_transform.
Var step_of(Layer& l, const Sizes& of) {
  const Hyper& h = l.hyper;
  const double low = std::log(h.real("dt_min")), high = std::log(h.real("dt_max"));
  const bool fast = h.flag("dt_fast"), tied = h.flag("dt_tie");
  const std::string& transform = h.choice("dt_transform");
  const Init start = init::each([=](Rng& rng, std::int64_t) {
    const double drawn = rng.uniform(low, high), value = transform == "exp" ? drawn : parts::from_positive(transform, std::exp(drawn));
    return fast ? std::asinh(value) : value;
  });
  const Shape shape = !tied ? Shape{of.H, of.M} : of.full ? Shape{of.H, 1} : Shape{of.H};
  return l.parameter(of.full ? "inv_dt" : "log_dt", shape, start,
                     transform == "exp" && !fast && tied
                         ? "log Δ a channel; starts uniform between log dt_min and log dt_max."
                         : "Δ before dt_transform and dt_fast; starts with log Δ uniform between log dt_min and log dt_max.");
}

/// The parameters of −Re A and |Im A|, [copies, M].
Var real_part(Layer& l, const Sizes& of) {
  const std::string &init = l.hyper.choice("init"), &transform = l.hyper.choice("real_transform");
  const Init each = init::each(
      [=, M = of.M](Rng&, std::int64_t i) { return parts::from_positive(transform, real_start(init, static_cast<double>(i % M))); });
  return l.parameter(of.full ? "A_real" : "log_A_real", {of.S, of.M},
                     init == "real" || transform != "exp" ? each : init::constant(std::log(0.5)),
                     transform == "exp" ? "log of −Re A; starts at log ½, or at log(n + 1) (real)."
                                        : "−Re A before real_transform; starts at that of ½, or of n + 1 (real).");
}

Var imaginary_part(Layer& l, const Sizes& of) {
  const std::string &init = l.hyper.choice("init"), &transform = l.hyper.choice("imag_transform");
  const auto start = [=](InitContext& c) {
    const hippo::Normal legs = of.legs(init);
    for (std::size_t i = 0; i < c.values.size(); ++i) {
      const std::size_t n = i % static_cast<std::size_t>(of.M);
      const double value = init == "legs" ? -legs.frequencies[n] : imag_start(init, static_cast<double>(n), of.N, c.rng);
      c.values[i] = of.full || transform != "none" ? parts::from_positive(transform, value) : value;
    }
  };
  return l.parameter("A_imag", {of.S, of.M}, start,
                     of.full ? "−Im A; starts as init says." : "Im A; starts as πn (lin), (N/π)(N/(2n+1) − 1) (inv), or as init says.");
}

Var readout(Layer& l, const Sizes& of) {
  Shape shape{of.H, of.M};
  if (of.full || of.bidirectional) shape.insert(shape.begin(), (of.bidirectional ? 2 : 1) * of.reads);
  if (!of.is_real) shape.push_back(2);
  return l.parameter(
      "C", shape, init::normal(std::sqrt(0.5)),
      of.is_real ? "The readout C; starts normal with deviation √½." : "The readout C, last axis re and im; starts complex normal.");
}

Var input_matrix(Layer& l, const Sizes& of) {
  const std::string &init = l.hyper.choice("init"), &kind = l.hyper.choice("B_init");
  const auto start = [=](InitContext& c) {
    const hippo::Normal legs = of.legs(init);
    const std::size_t each = of.is_real ? 1 : 2;
    for (std::size_t i = 0; i < c.values.size(); i += each) {
      const std::size_t n = i / each % static_cast<std::size_t>(of.M);
      const double angle = 2.0 * std::numbers::pi * static_cast<double>(n) / of.N;
      std::complex<double> value = 1.0;
      if (init == "legs")
        value = legs_input(legs, n);
      else if (kind == "random")
        value = {c.rng.normal() * std::sqrt(0.5), c.rng.normal() * std::sqrt(0.5)};
      else if (kind == "alternating")
        value = n % 2 ? -1.0 : 1.0;
      else if (kind != "constant")
        value = std::polar(1.0, kind == "unit-cw" ? -angle : angle);
      c.values[i] = value.real();
      if (!of.is_real) c.values[i + 1] = of.full ? value.imag() : 0.0 - value.imag();
    }
  };
  Shape shape{of.S, of.M};
  if (of.full) shape.insert(shape.begin(), 1);
  if (!of.is_real) shape.push_back(2);
  return l.parameter("B", shape, start,
                     of.is_real ? "The input matrix B; starts as its complex one's real part."
                                : "The input matrix B, last axis re and im; starts at 1, or as init and B_init say.");
}

}  // namespace

S4dParameters s4d_parameters(Layer& l) {
  const Hyper& h = l.hyper;
  const Sizes of(l);
  const Var log_dt = step_of(l, of), A_real = real_part(l, of), A_imag = of.is_real ? Var{} : imaginary_part(l, of), C = readout(l, of),
            B = of.full || h.choice("input_matrix") == "trained" ? input_matrix(l, of) : Var{};
  const auto number = [&](Var v, std::int64_t rows) { return of.is_real ? reshape(v, {rows, of.M}) : parts::complex_modes(v, rows, of.M); };

  S4dParameters p;
  if (!of.bidirectional) p.D = s4d_skip(l);
  const Var decay = parts::positive(h.choice("real_transform"), A_real);
  const Var turning = of.is_real ? Var{} : parts::positive(h.choice("imag_transform"), A_imag);
  p.A = parts::for_channels(of.is_real ? -decay : complex(-decay, of.full ? -turning : turning), of.H);
  const Var given = h.flag("dt_fast") ? (exp(log_dt) - exp(-log_dt)) * 0.5 : log_dt;
  const std::string& transform = h.choice("dt_transform");
  p.dt = reshape(transform == "exp" ? exp(given) : parts::positive(transform, given), {of.H, h.flag("dt_tie") ? 1 : of.M});
  if (B) p.B = parts::for_channels(number(B, of.S), of.H);
  const std::int64_t from = l.backward() ? of.reads : 0;
  p.C = number(of.bidirectional ? slice(C, 0, from, from + of.reads) : C, of.reads * of.H);
  if (const double limit = h.real("bandlimit"); limit > 0.0 && !of.is_real) {
    const Var read_too = parts::in_band(p.dt * parts::for_channels(abs(turning), of.H) * (0.5 / std::numbers::pi), limit);
    p.C = of.reads == 1 ? p.C * read_too : reshape(reshape(p.C, {of.reads, of.H, of.M}) * read_too, {of.reads * of.H, of.M});
  }
  return p;
}

Var s4d_skip(Layer& l) {
  const std::int64_t H = l.hyper.integer("width"), reads = l.hyper.integer("channels");
  return l.parameter("D", full(l) ? Shape{reads, H} : Shape{H}, init::normal(1.0), "The skip D; starts normal.");
}

Var s4d_output(Layer& l, Var y) {
  return parts::gated_output(l, y, {.system = "bank", .rows = "value rows, then gate rows", .one_tap = !full(l)});
}

}  // namespace reclab::architectures
