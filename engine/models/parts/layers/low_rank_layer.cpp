// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/layers/low_rank_layer.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <utility>

#include "array/error.h"
#include "models/parts/hippo.h"
#include "models/parts/layers/diagonal_system.h"
#include "models/parts/layers/state_space.h"
#include "recurrence/flow.h"

namespace reclab::parts {
namespace {

/// One half of the conjugate pairs: the transition diag(a) - Σ_r p_r q_rᵀ of the whole set, and the input vector; [channels, modes]
/// each.
struct ConjugateHalf {
  Var a, b;
  std::vector<Var> p, q;
};

/// The transition of each channel in real coordinates (Re h, Im h), [channels, 2 modes, 2 modes].
Var real_transition(const ConjugateHalf& system) {
  const std::int64_t H = system.a.dim(0), n = system.a.dim(1);
  std::vector<double> identity(static_cast<std::size_t>(n * n), 0.0);
  for (std::int64_t i = 0; i < n; ++i) identity[static_cast<std::size_t>(i * n + i)] = 1.0;
  const Var one = system.a.graph->constant({n, n}, std::move(identity));
  const auto diagonal = [&](Var v) { return reshape(v, {H, n, 1}) * one; };
  const auto product = [&](Var p, Var q) { return reshape(p, {H, n, 1}) * reshape(q, {H, 1, n}) * 2.0; };
  const Var a = real(system.a), b = imag(system.a);
  Var sum;
  for (std::size_t i = 0; i < system.p.size(); ++i) {
    const Var p = real(system.p[i]), s = imag(system.p[i]), q = real(system.q[i]), r = imag(system.q[i]);
    const Var above[] = {i ? -product(p, q) : diagonal(a) - product(p, q), i ? product(p, r) : product(p, r) - diagonal(b)},
              below[] = {i ? -product(s, q) : diagonal(b) - product(s, q), i ? product(s, r) : diagonal(a) + product(s, r)};
    const Var rows[] = {concat(above, -1), concat(below, -1)}, all = concat(rows, -2);
    sum = sum ? sum + all : all;
  }
  return sum;
}
Var real_transition(const LowRankSystem& system) { return real_transition(ConjugateHalf{system.a, system.b, {system.p}, {system.q}}); }

/// (diag(d) - Σ_r p_r q_rᵀ)⁻¹ where `inverse` is 1/d, by Sherman and Morrison's formula term by term: 1/d - Σ_r x_r y_rᵀ; the whole set of
/// pairs counts.
ConjugateHalf inverted(Var inverse, const std::vector<Var>& p, const std::vector<Var>& q) {
  ConjugateHalf found{inverse, {}, {}, {}};
  const auto both = [](Var v) { return reshape(reclab::sum(real(v), -1) * 2.0, {v.dim(0), 1}); };
  for (std::size_t r = 0; r < p.size(); ++r) {
    Var x = inverse * p[r], y = inverse * q[r];
    for (std::size_t j = 0; j < r; ++j) {
      x = x - found.p[j] * both(found.q[j] * p[r]);
      y = y - found.q[j] * both(q[r] * found.p[j]);
    }
    found.p.push_back(-x * reciprocal(1.0 - both(q[r] * x)));
    found.q.push_back(y);
  }
  return found;
}

/// The readout c of which c (1 - Abar^length) is C~: c = C~ (1 + M)(1 + M^2)(1 + M^4)..., M = Abar^length, until the powers of any decay
/// from 1e-9 a step on have died away. In real coordinates, where a readout is the row (Re c, -Im c) and the state the column (Re h, Im h);
/// rows [channels, readouts, 2 modes].
Var solved_rows(Var transition, Var row, std::int64_t length) {
  Var power = transition, M;
  for (std::int64_t left = length; left > 0; left /= 2) {
    if (left % 2) M = M ? matmul(M, power) : power;
    if (left > 1) power = matmul(power, power);
  }
  for (double steps = static_cast<double>(length); steps < 4e10; steps *= 2.0) {
    row = row + matmul(row, M);
    M = matmul(M, M);
  }
  return row;
}
Var solved_readout(const LowRankSystem& system, Var c, std::int64_t length) {
  const std::int64_t H = c.dim(0), n = c.dim(1);
  const Var parts[] = {real(c), -imag(c)};
  const Var row = reshape(solved_rows(real_transition(system), reshape(concat(parts, -1), {H, 1, 2 * n}), length), {H, 2 * n});
  return complex(slice(row, -1, 0, n), -slice(row, -1, n, 2 * n));
}

/// The layer after the system; y is the system's output, with the skip.
Var finished(Layer& l, const NormedBlock& block, Var x, Var y) {
  if (l.hyper.choice("output") == "none") return block.around(x, y);
  const bool once = y.dim(-1) == l.hyper.integer("width");
  return block.around(
      x, gated_output(l, y, {"system", once ? "value rows, then gate rows" : "value rows, then gate rows, columns read by read"}));
}

/// The number of reads of each system.
std::int64_t reads_of(const Hyper& h) { return h.has("channels") ? h.integer("channels") : 1; }

Var skip_of(Layer& l) {
  const std::int64_t H = l.hyper.integer("width"), reads = reads_of(l.hyper);
  return l.parameter("D", {reads, H}, init::normal(1.0),
                     reads == 1 ? "The skip D; starts normal." : "The skip D, a row a read; starts normal.");
}

/// A memory of several low-rank terms or readouts, by its real matrices: y [steps, batch, reads * channels], read by read, of C [reads,
/// channels, modes].
Var dense_modes(Layer& l, const ConjugateHalf& system, const std::vector<Var>& C, std::int64_t length, Var u) {
  const std::int64_t H = system.a.dim(0), n = system.a.dim(1), reads = std::ssize(C);
  const Var transition = real_transition(system), drive[] = {real(system.b), imag(system.b)};
  std::vector<Var> rows;
  for (const Var& c : C) {
    const Var parts[] = {real(c) * 2.0, imag(c) * -2.0};
    rows.push_back(reshape(concat(parts, -1), {H, 1, 2 * n}));
  }
  Var row = reads == 1 ? rows[0] : concat(rows, 1);
  if (length) row = solved_rows(transition, row, length);
  const Var y =
      dense_bank(l,
                 {.name = "h",
                  .shape = {H, 2 * n},
                  .text = "The complex modes of each channel, one of each conjugate pair: all real parts, then all imaginary parts.",
                  .pairs = true},
                 transition, concat(drive, -1), row, u);
  const int reads_first[] = {0, 1, 3, 2};
  return reshape(permute(y, reads_first), {u.dim(0), u.dim(1), reads * H});
}

}  // namespace

std::vector<HyperSpec> low_rank_layer_hyper(bool first_version) {
  std::vector<HyperSpec> rows{
      hyper_integer("width", "H", 64, 1, 4096, "Channels; each is a system of its own.", "channels"),
      hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
      hyper_integer("state", "N", 64, 2, 1024, "State size a channel, conjugates counted: N/2 complex modes are stored.", "states"),
      hyper_integer("n_ssm", "S", 0, 0, 4096,
                    "Independent copies of A, B, P, shared by the channels in turn; it divides the width; 0: one a channel."),
      hyper_integer("rank", "R", 1, 1, 16, "Rank of the low-rank part: terms P P*."),
      hyper_integer("channels", "C", 1, 1, 64,
                    "How often each system is read out, each time with a C and D of its own; the output map takes all reads side by side."),
      initialisation_only(
          hyper_choice("init", "legs", {"legs", "legt", "lagt", "fourier"},
                       "The measure of HiPPO that A, B and P start as; legt is of rank 2, and starts without its second term where "
                       "rank is 1; terms beyond a measure's own start at 0.")),
      initialisation_only(hyper_real("dt_min", "Δ_min", 0.001, 1e-6, 10.0, "Smallest time step at the start.", true)),
      initialisation_only(hyper_real("dt_max", "Δ_max", 0.1, 1e-6, 10.0, "Largest time step at the start.", true)),
      hyper_choice("dt_transform", "exp", {"exp", "softplus"}, "How the time step comes from inv_dt."),
      initialisation_only(hyper_real("B_clip", "", 0.0, 0.0, 1000.0,
                                     "Where the imaginary part of B is cut at the start (2 in the reference); 0: nowhere.")),
      hyper_integer("l_kernel", "L", 0, 0, 1 << 20,
                    "Length that the reference's kernel was made for, where C is its C̃; 0: C is the readout itself.", "steps"),
      hyper_flag("bidirectional", false, "A second readout of the same system reads what is still to come, from the next step on."),
      hyper_choice("low_rank", "tied", {"tied", "free"}, "The low-rank part: P and its own conjugate, or P and a parameter Q."),
      hyper_flag("dt_tie", true, "Whether all modes of a channel share one time step."),
      hyper_choice("real_transform", "exp", {"exp", "none", "relu", "sigmoid", "softplus"}, "How −Re Λ comes from A_real."),
      hyper_choice("output", "glu", {"glu", "none"}, "After the system: gelu and a gated linear map, or nothing."),
      hyper_choice("block", "residual", {"residual", "none"}, "The block with norm and residual, or the S4 layer alone."),
      hyper_flag("prenorm", true, "Whether the norm comes before the layer (after the residual otherwise).")};
  if (first_version)
    std::erase_if(rows, [](const HyperSpec& row) {
      return row.key == "dt_transform" || row.key == "dt_tie" || row.key == "low_rank" || row.key == "B_clip" || row.key == "rank" ||
             row.key == "channels" || row.key == "init";
    });
  if (first_version) {
    for (HyperSpec& row : rows)
      if (row.key == "real_transform") row.text = "How −Re Λ comes from inv_w_real.";
    rows.insert(
        std::ranges::find(rows, "real_transform", &HyperSpec::key),
        hyper_real("bandlimit", "", 0.0, 0.0, 10.0, "Modes that turn by half of this a step or more, in turns, are not read; 0: all are."));
  }
  return rows;
}

Var low_rank_kernel(const LowRankSystem& system, std::int64_t steps) {
  const std::int64_t H = system.a.dim(0), n = system.a.dim(1);
  Graph& graph = *system.a.graph;
  const auto zeros = [&](Shape shape) { return graph.constant(shape, std::vector<double>(static_cast<std::size_t>(count(shape)), 0.0)); };
  const Var both[] = {real(system.b), imag(system.b)};
  std::vector<Var> drive{reshape(concat(both, -1), {1, 1, H, 2 * n})};
  if (steps > 1) drive.push_back(zeros({steps - 1, 1, H, 2 * n}));
  const Var h = reshape(
      dense_from(graph, Form::sequential, real_transition(system), drive.size() > 1 ? concat(drive, 0) : drive[0], zeros({1, H, 2 * n}))
          .trajectories[0],
      {steps, H, 2 * n});
  return transpose(sum(slice(h, -1, 0, n) * real(system.c) - slice(h, -1, n, 2 * n) * imag(system.c), -1) * 2.0);
}

Var low_rank_modes(Layer& l, const LowRankSystem& system, Var u) {
  return low_rank_bank(l, {"h", {system.a.dim(0), system.a.dim(1)}, "The complex modes of each channel, one of each conjugate pair."},
                       system, u);
}

void make_low_rank_layer(Architecture& a, const LowRankLayer& how) {
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [id = how.id](const Hyper& h) {
    if (h.integer("state") % 2)
      throw Error(id + ": state = " + h.text("state") + " is odd: it counts conjugate pairs, choose an even number.",
                  {.model = id, .parameter = "state", .value = h.text("state"), .range = "even"});
    if (h.integer("n_ssm") && h.integer("width") % h.integer("n_ssm"))
      throw Error(id + ": n_ssm = " + h.text("n_ssm") + " does not divide width = " + h.text("width") +
                      ": choose a divisor, or 0 for one copy a channel.",
                  {.model = id, .parameter = "n_ssm", .value = h.text("n_ssm"), .range = "a divisor of width"});
    if (h.has("channels")) check_reads(h, id);
    check_time_steps(h, id);
  };

  a.layer = [how](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), N = l.hyper.integer("state"), modes = N / 2,
                       S = l.hyper.integer("n_ssm") ? l.hyper.integer("n_ssm") : H;
    const bool first = how.first_version, softplus_dt = !first && l.hyper.choice("dt_transform") == "softplus";
    const double low = std::log(l.hyper.real("dt_min")), high = std::log(l.hyper.real("dt_max"));
    const NormedBlock block = normed_block(l);

    const bool tied_dt = first || l.hyper.flag("dt_tie"), bidirectional = l.hyper.flag("bidirectional"),
               two = bidirectional || (how.adds_backward && how.adds_backward(l.hyper));
    const Var inv_dt =
        l.parameter(first ? "log_dt" : "inv_dt", first ? Shape{H} : Shape{H, tied_dt ? 1 : modes}, init::each([=](Rng& rng, std::int64_t) {
                      const double value = rng.uniform(low, high);
                      return softplus_dt ? std::log(std::expm1(std::exp(value))) : value;
                    }),
                    first ? "log Δ a channel; starts uniform between log dt_min and log dt_max."
                          : "Δ a channel before exp or softplus; starts with log Δ uniform between log dt_min and log dt_max.");
    const std::string measure = first ? "legs" : l.hyper.choice("init");
    const std::int64_t rank = first ? 1 : l.hyper.integer("rank"), reads = reads_of(l.hyper);
    /// Every copy starts as the same modes of the measure; `value` is of a mode and, of P, the term.
    const auto from_measure = [N, modes, S, measure](auto value) -> Init {
      return [=](InitContext& c) {
        const auto start_of = hippo::low_rank_of(measure, N);
        const std::size_t each = c.shape.size() == 4 ? 2 : 1;
        for (std::size_t i = 0; i < c.values.size(); i += each) {
          const std::complex<double> start =
              value(start_of, i / each % static_cast<std::size_t>(modes), i / each / static_cast<std::size_t>(S * modes));
          c.values[i] = start.real();
          if (each == 2) c.values[i + 1] = start.imag();
        }
      };
    };
    const double clip = first ? 0.0 : l.hyper.real("B_clip");
    const auto clipped = [clip](const hippo::LowRankMeasure& start, std::size_t n, std::size_t) -> std::complex<double> {
      if (clip == 0.0) return start.input[n];
      // Of an eigenvector whose first entry is 0, as all but one of fourier's, the phase is that of B.
      const double size = std::abs(start.first[n]);
      const std::complex<double> phase = size > 1e-12 ? start.first[n] / size : 1.0, theirs = start.input[n] * phase;
      return std::complex<double>(theirs.real(), std::clamp(theirs.imag(), -clip, clip)) / phase;
    };
    const std::string& transform = l.hyper.choice("real_transform");
    const std::string re_name = first ? "inv_w_real" : "A_real";
    const double decays =
        measure == "legs" ? 0.5 : 1e-4;  // of the others the diagonal part only turns, and starts as the reference's least
    const std::string of_start = measure == "legs" ? "½." : "1e-4.";
    const Var A_real = transform == "exp"
                           ? l.parameter(re_name, {S, modes}, init::constant(std::log(decays)), "log of −Re Λ; starts at log " + of_start)
                           : l.parameter(re_name, {S, modes}, init::constant(from_positive(transform, decays)),
                                         "−Re Λ before " + transform + "; starts at that of " + of_start);
    const double sign = first ? 1.0 : -1.0;  // of Im Λ as stored
    const Var A_imag = l.parameter(
        first ? "w_imag" : "A_imag", {S, modes}, from_measure([sign](const hippo::LowRankMeasure& start, std::size_t n, std::size_t) {
          return -sign * std::max(start.frequencies[n], 1e-4);
        }),
        std::string(
            first ? "Im Λ; starts with the eigenvalues of HiPPO-LegS that are negative, largest first."
                  : "−Im Λ; starts with the eigenvalues of the measure init, by default HiPPO-LegS, largest first, and at least 1e-4."));
    const Var B = l.parameter("B", {1, S, modes, 2}, from_measure(clipped),
                              "B in the eigenvectors' basis, last axis re and im; starts as init, by default HiPPO-LegS, with phases that "
                              "make it real and positive" +
                                  std::string(clip == 0.0 ? "." : ", then cut."));
    const Var P = l.parameter("P", {rank, S, modes, 2}, from_measure([](const hippo::LowRankMeasure& start, std::size_t n, std::size_t r) {
                                return r < start.low_rank.size() ? start.low_rank[r][n] : 0.0;
                              }),
                              measure == "legs" ? "P of the low-rank part, last axis re and im; starts as HiPPO-LegS, B/√2."
                                                : "P of the low-rank part, term by term, last axis re and im; starts as init says.");
    const Var Q = first || l.hyper.choice("low_rank") == "tied"
                      ? Var{}
                      : l.parameter(
                            "Q", {rank, S, modes, 2},
                            [](InitContext& c) {
                              const auto p = c.other("P");
                              for (std::size_t i = 0; i < c.values.size(); ++i) c.values[i] = i % 2 ? -p[i] : p[i];
                            },
                            "Q of the low-rank part, last axis re and im; starts as the conjugate of P.");
    const Var both_C =
        l.parameter("C", {(bidirectional ? 2 : 1) * reads, H, modes, 2}, init::normal(std::sqrt(0.5)),
                    l.hyper.integer("l_kernel") ? "C̃ = (1 − Ā^L)ᵀ times the readout, last axis re and im; starts complex normal."
                                                : "The readout C, last axis re and im; starts complex normal.");
    const Var C = bidirectional ? slice(both_C, 0, l.backward() ? reads : 0, l.backward() ? 2 * reads : reads) : both_C;
    const auto skipped = [&](Var u) { return two ? Var{} : skip(skip_of(l), u); };
    const auto number = [&](Var v, std::int64_t rows) { return complex_modes(v, rows, modes); };
    const auto for_channels = [&](Var v) { return parts::for_channels(v, H); };
    const auto half_sum = [](Var v) { return reshape(sum(real(v), -1) * 2.0, {v.dim(0), 1}); };  // over a mode and its conjugate
    const Var decay = transform == "exp" ? exp_in_range(A_real) : first && transform == "relu" ? relu(A_real) : positive(transform, A_real);
    const auto term = [&](Var v, std::int64_t r) { return for_channels(number(rank == 1 ? v : slice(v, 0, r, r + 1), S)); };
    const Var lambda = for_channels(complex(-decay, first ? A_imag : -A_imag)), low_rank = term(P, 0), input = for_channels(number(B, S));
    const Var dt = first ? reshape(exp(inv_dt), {H, 1}) : softplus_dt ? softplus(inv_dt) : exp(inv_dt), half = dt * 0.5;
    // (1 - Δ/2 A)⁻¹ by Sherman and Morrison; Ā = 2 (1 - Δ/2 A)⁻¹ - 1.
    const Var inverse = reciprocal(1.0 - lambda * half), conjugate = !Q          ? complex(real(low_rank), -imag(low_rank))
                                                                     : rank == 1 ? for_channels(number(Q, S))
                                                                                 : Var{};  // of several terms: below
    if (rank > 1 || reads > 1) {
      declare_flow(l, {.rule = Flow::Rule::bilinear});
      std::vector<Var> p, q, rows;
      for (std::int64_t r = 0; r < rank; ++r) {
        const Var of_P = term(P, r);
        p.push_back(of_P * half * -1.0);
        q.push_back(Q ? term(Q, r) : complex(real(of_P), -imag(of_P)));
      }
      // 1 - Δ/2 A = diag(1 - Δ/2 Λ) + Δ/2 Σ P Qᵀ
      ConjugateHalf way = inverted(inverse, p, q);
      const Var driven = input * dt;
      way.b = inverse * driven;
      for (std::int64_t r = 0; r < rank; ++r)
        way.b = way.b - way.p[static_cast<std::size_t>(r)] * half_sum(way.q[static_cast<std::size_t>(r)] * driven);
      way.a = inverse * 2.0 - 1.0;
      for (Var& one : way.p) one = one * 2.0;
      for (std::int64_t i = 0; i < reads; ++i) rows.push_back(number(slice(C, 0, i, i + 1), H));
      const Var u = block.read(x);
      const Var Du = skipped(u), read = dense_modes(l, way, rows, l.hyper.integer("l_kernel"), u);
      return two ? read : finished(l, block, x, read + Du);
    }
    if (!l.hyper.has("order") || l.hyper.integer("order") > 0)
      declare_flow(l, {.rule = Flow::Rule::bilinear});  // else the input is in the transition
    LowRankSystem system;
    system.a = inverse * 2.0 - 1.0;
    system.q = conjugate * inverse;
    if (tied_dt) {
      system.p = inverse * low_rank * (dt / (1.0 + half * half_sum(low_rank * system.q)));
      system.b = inverse * input * dt - system.p * (half * half_sum(system.q * input));
    } else {
      const Var scaled = low_rank * dt;
      system.p = inverse * scaled * reciprocal(1.0 + half_sum(scaled * system.q) * 0.5);
      system.b = inverse * input * dt - system.p * (half_sum(system.q * input * dt) * 0.5);
    }
    system.c = number(C, H);
    if (first && l.hyper.real("bandlimit") > 0.0)
      system.c = system.c * in_band(dt * abs(imag(lambda)) * (0.5 / std::numbers::pi), l.hyper.real("bandlimit"));
    if (const std::int64_t length = l.hyper.integer("l_kernel")) system.c = solved_readout(system, system.c, length);

    const Var u = block.read(x);
    const Var Du = skipped(u);  // before the bank: gradients are added up in this order
    const Var read = how.read(l, system, u);
    return two ? read : finished(l, block, x, read + Du);
  };
  a.shares_directions = [adds = how.adds_backward](const Hyper& h) { return h.flag("bidirectional") || (adds && adds(h)); };
  a.combine_directions = [](Layer& l, Var below, Var forward, Var backward) {
    const NormedBlock block = normed_block(l);
    const Var u = block.read(below);
    return finished(l, block, below, forward + (l.hyper.flag("bidirectional") ? from_next_step(backward) : backward) + skip(skip_of(l), u));
  };
}

}  // namespace reclab::parts
