// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/linear/linear.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "array/device_array.h"
#include "array/error.h"
#include "array/host.h"
#include "autodiff/ops.h"
#include "recurrence/chunks.h"
#include "recurrence/convolution/convolution.h"
#include "recurrence/evaluation_order.h"
#include "recurrence/linear/carried.h"
#include "recurrence/linear/krylov.h"
#include "recurrence/linear_system.h"
#include "recurrence/mixing/mixing.h"
#include "recurrence/plan.h"

namespace reclab {
namespace {

/// The low-rank recurrence, with pairs of real numbers in place of complex ones where its product of two vectors is applied:
/// h <- a h + m (r . h) + drive with m, r [channels, 2 modes] real.
class LowRank final : public Memory, public HasEvaluationOrder, public HasLinearSystem {
 public:
  LowRank(DType type, std::int64_t steps, std::int64_t batch, std::int64_t channels, std::int64_t modes)
      : type_(type), real_(real_of(type)), steps_(steps), batch_(batch), channels_(channels), modes_(modes) {}

  Transition transition() const override { return Transition::blocks(channels_, 2 * modes_, 1, false); }
  void jacobian(std::int64_t, std::span<double> matrix) override {
    const std::int64_t pairs = 2 * channels_ * modes_;
    const auto n = static_cast<std::size_t>(2 * modes_);
    const auto a = to_double(*backend_, real_, a_, pairs), r = to_double(*backend_, real_, r_, pairs),
               m = to_double(*backend_, real_, m_, pairs);
    for (std::size_t c = 0; c < static_cast<std::size_t>(channels_); ++c) {
      const auto block = matrix.subspan(c * n * n, n * n);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) block[i * n + j] = m[c * n + i] * r[c * n + j];
      for (std::size_t i = 0; i < n; i += 2) {
        const double re = a[c * n + i], im = a[c * n + i + 1];
        block[i * n + i] += re;
        block[i * n + i + 1] -= im;
        block[(i + 1) * n + i] += im;
        block[(i + 1) * n + i + 1] += re;
      }
    }
  }

  void forward(const ForwardCall& c) override {
    Backend& b = c.backend;
    backend_ = &b;
    a_ = c.in[0];
    r_ = c.in[1];
    m_ = c.in[2];
    void* applied = applied_.resize(b, type_, entries());
    void* read = read_.resize(b, real_, batch_ * channels_);
    b.copy(c.out[0], c.in[3], static_cast<std::size_t>(steps_) * row());
    const Broadcast by_step = over_time(1);
    for (std::int64_t t = 0; t < steps_; ++t) {
      if (t % 256 == 0 && c.stop.stop_requested()) throw Cancelled();
      const void* before = t ? step(static_cast<const void*>(c.out[0]), t - 1) : static_cast<const char*>(c.in[4]);
      void* now = step(c.out[0], t);
      b.binary(Binary::multiply, type_, by_step, before, a_, applied);
      b.add_scaled(type_, entries(), 0, applied, now, true);
      dot(b, before, r_, read);
      spread(b, read, m_, now);
    }
  }

  void backward(const BackwardCall& c) override {
    Backend& b = c.backend;
    const void* carried = carried_.empty() ? nullptr : carried_[0];
    auto* lambda = static_cast<char*>(lambda_.resize(b, type_, steps_ * entries()));
    void* now = now_.resize(b, type_, entries());
    void* start = applied_.resize(b, type_, entries());
    void* read = read_.resize(b, real_, batch_ * channels_);
    const Broadcast by_step = over_time(1);
    log2_norms_.assign(1, std::vector<double>(static_cast<std::size_t>(steps_)));
    if (records_backpropagated_) log2_backpropagated_ = log2_norms_;
    Carried adjoint(b, type_, entries());
    adjoint.power = carried ? exponent_ : 0;
    if (carried)
      b.copy(start, carried, row());
    else
      b.zero(start, row());
    for (std::int64_t t = steps_ - 1; t >= 0; --t) {
      if (t % 256 == 0 && c.stop.stop_requested()) throw Cancelled();
      const void* before = t ? step(c.out[0], t - 1) : static_cast<const char*>(c.in[4]);
      char* plain = lambda + static_cast<std::size_t>(t) * row();
      b.copy(now, start, row());
      log2_norms_[0][static_cast<std::size_t>(t)] = adjoint.add(step(c.grad_out[0], t), now);
      b.add_scaled(type_, entries(), adjoint.power, now, plain, false);
      if (c.grad_in[1]) {
        dot(b, plain, c.in[2], read);
        gather(b, read, before, c.grad_in[1]);
      }
      if (c.grad_in[2]) {
        dot(b, before, c.in[1], read);
        gather(b, read, plain, c.grad_in[2]);
      }
      b.zero(start, row());
      b.binary_adjoint(Binary::multiply, type_, by_step, before, c.in[0], now, start, nullptr);
      dot(b, now, c.in[2], read);
      spread(b, read, c.in[1], start);
      if (records_backpropagated_)
        log2_backpropagated_[0][static_cast<std::size_t>(t)] = b.log2_norm(type_, entries(), start, adjoint.power);
    }
    if (c.grad_in[3]) b.add_scaled(type_, steps_ * entries(), 0, lambda, c.grad_in[3], true);
    if (c.grad_in[0]) {
      b.binary_adjoint(Binary::multiply, type_, by_step, c.in[4], c.in[0], lambda, nullptr, c.grad_in[0]);
      if (steps_ > 1)
        b.binary_adjoint(Binary::multiply, type_, over_time(steps_ - 1), c.out[0], c.in[0], lambda + row(), nullptr, c.grad_in[0]);
    }
    exponent_ = adjoint.power;
    if (c.grad_in[4]) b.add_scaled(type_, entries(), 0, start, c.grad_in[4], true);
  }

  void tangent(const TangentCall& c) override {  // the same recurrence, driven by the terms of the moving coefficients too
    Backend& b = c.backend;
    const void *da = c.tangent_in[0], *dr = c.tangent_in[1], *dm = c.tangent_in[2], *driven = c.tangent_in[3], *start = c.tangent_in[4];
    void* drive = c.temporary(0, type_, steps_ * entries());
    void* product = c.temporary(1, type_, entries());
    void* read = c.temporary(2, real_, batch_ * channels_);
    if (driven)
      b.copy(drive, driven, static_cast<std::size_t>(steps_) * row());
    else
      b.zero(drive, static_cast<std::size_t>(steps_) * row());
    for (std::int64_t t = 0; (da || dr || dm) && t < steps_; ++t) {
      if (t % 256 == 0 && c.stop.stop_requested()) throw Cancelled();
      const void* before = t ? step(c.out[0], t - 1) : static_cast<const char*>(c.in[4]);
      void* now = step(drive, t);
      if (da) {
        b.binary(Binary::multiply, type_, over_time(1), before, da, product);
        b.add_scaled(type_, entries(), 0, product, now, true);
      }
      if (dr) {
        dot(b, before, dr, read);
        spread(b, read, c.in[2], now);
      }
      if (dm) {
        dot(b, before, c.in[1], read);
        spread(b, read, dm, now);
      }
    }
    if (!start) {
      void* still = c.temporary(3, type_, entries());
      b.zero(still, row());
      start = still;
    }
    const void* in[] = {c.in[0], c.in[1], c.in[2], drive, start};
    forward({b, in, c.tangent_out, c.stop});
  }

  Cost cost() const override {
    const double n = static_cast<double>(steps_ * batch_ * channels_ * modes_);
    return {16.0 * n, 2.0 * n * static_cast<double>(bytes_of(type_))};
  }
  EvaluationOrder evaluation_order() const override { return {.draw = drawing::steps, .steps = steps_}; }

 private:
  DType type_, real_;
  std::int64_t steps_, batch_, channels_, modes_;
  Backend* backend_ = nullptr;
  const void *a_ = nullptr, *r_ = nullptr, *m_ = nullptr;
  DeviceArray applied_, read_, lambda_, now_;

  std::int64_t entries() const { return batch_ * channels_ * modes_; }
  std::size_t row() const { return static_cast<std::size_t>(entries()) * bytes_of(type_); }
  std::size_t reads() const { return static_cast<std::size_t>(batch_ * channels_) * bytes_of(real_); }
  const char* step(const void* sequence, std::int64_t t) const { return at(sequence, static_cast<std::size_t>(t) * row()); }
  char* step(void* sequence, std::int64_t t) const { return at(sequence, static_cast<std::size_t>(t) * row()); }
  Broadcast over_time(std::int64_t steps) const {
    Shape common;
    return broadcast({steps * batch_, channels_ * modes_}, {channels_ * modes_}, common);
  }
  /// For each sequence of the batch and each channel: to = x . v; to += s v; and v += s x over the batch.
  void dot(Backend& b, const void* x, const void* v, void* to) const {
    const std::int64_t n = 2 * modes_;
    for_batch([&](std::size_t of_x, std::size_t of_s) {
      b.matmul(real_, {channels_, 1, 1, n, false, false, n, n, 1}, at(x, of_x), v, at(to, of_s), false);
    });
  }
  void spread(Backend& b, const void* s, const void* v, void* to) const {
    const std::int64_t n = 2 * modes_;
    for_batch([&](std::size_t of_x, std::size_t of_s) {
      b.matmul(real_, {channels_, 1, n, 1, false, false, 1, n, n}, at(s, of_s), v, at(to, of_x), true);
    });
  }
  void gather(Backend& b, const void* s, const void* x, void* v) const {
    const std::int64_t n = 2 * modes_;
    for_batch([&](std::size_t of_x, std::size_t of_s) {
      b.matmul(real_, {channels_, 1, n, 1, false, false, 1, n, n}, at(s, of_s), at(x, of_x), v, true);
    });
  }
  template <class F>
  void for_batch(F&& f) const {
    for (std::int64_t i = 0; i < batch_; ++i)
      f(static_cast<std::size_t>(i) * row() / static_cast<std::size_t>(batch_),
        static_cast<std::size_t>(i) * reads() / static_cast<std::size_t>(batch_));
  }
};

/// [channels, modes] complex -> [channels, 2 modes] real, each as two numbers in a row.
Var as_pairs(Var z) {
  const std::int64_t channels = z.dim(0), modes = z.dim(1);
  const Var parts[] = {reshape(real(z), {channels, modes, 1}), reshape(imag(z), {channels, modes, 1})};
  return reshape(concat(parts, -1), {channels, 2 * modes});
}
/// [..., modes] complex -> [..., 2 modes] real, all real parts first.
Var as_halves(Var z) {
  const Var parts[] = {real(z), imag(z)};
  return concat(parts, -1);
}
Var from_halves(Var x) {
  const auto parts = split(x, -1, 2);
  return complex(parts[0], parts[1]);
}
Var conjugate(Var z) { return complex(real(z), -imag(z)); }

/// The real map of (Re h, Im h), [channels, 2 modes, 2 modes].
Var real_transition(Graph& graph, const LowRankSystem& s) {
  const std::int64_t channels = s.a.dim(0), modes = s.a.dim(1);
  std::vector<double> unit(static_cast<std::size_t>(modes * modes), 0.0);
  for (std::int64_t i = 0; i < modes; ++i) unit[static_cast<std::size_t>(i * modes + i)] = 1.0;
  const Var one = graph.constant({modes, modes}, std::move(unit));
  const Var re = reshape(real(s.a), {channels, modes, 1}) * one, im = reshape(imag(s.a), {channels, modes, 1}) * one;
  const Var upper[] = {re, -im}, lower[] = {im, re};
  const Var rows[] = {concat(upper, -1), concat(lower, -1)};
  return concat(rows, -2) - chunks::with_axis(as_halves(s.p), -1) * chunks::with_axis(as_halves(conjugate(s.q)) * 2.0, -2);
}

LowRankVars low_rank_convolution(Graph& graph, const LowRankSystem& s, Var u) {
  const std::int64_t steps = u.dim(0), batch = u.dim(1), channels = u.dim(2), modes = s.a.dim(1);
  LowRankVars vars;
  vars.initial = {graph.leaf(LeafKind::variable, {batch, channels, modes}, s.a.dtype())};
  vars.trajectories = {Var{}};
  vars.finals = {Var{}};
  const auto [memory, A] = dense_witness(real_transition(graph, s), channels);
  vars.memory = memory;
  // Columns: the state after one input, and each initial state after one step.
  const int channels_first[] = {1, 2, 0};
  const Var starts = permute(as_halves(vars.initial[0]), channels_first);
  const Var columns[] = {chunks::with_axis(as_halves(s.b), -1), matmul(A, starts)};
  const std::int64_t few = power_of_two_from(static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(steps))))),
                     many = power_of_two_from((steps + few - 1) / few);
  const Krylov fine = krylov(A, concat(columns, -1), few);
  const Var readout = chunks::with_axis(as_halves(conjugate(s.c)) * 2.0, -1);
  const Krylov coarse = krylov(transpose(fine.power), readout, many);
  // [channels, many, few, 1 + batch]: the response after many * few steps
  const Var responses = reshape(matmul(transpose(coarse.columns), fine.columns), {channels, many * few, 1 + batch});
  const Var wanted = slice(responses, 1, 0, steps);
  const int time_first[] = {1, 2, 0};
  vars.output = convolve(reshape(slice(wanted, -1, 0, 1), {channels, steps}), u) + permute(slice(wanted, -1, 1, 1 + batch), time_first);
  return vars;
}

}  // namespace

LowRankVars low_rank_bank(Graph& graph, Form form, const LowRankSystem& s, Var u) {
  const std::int64_t steps = u.dim(0), batch = u.dim(1), channels = u.dim(2), modes = s.a.dim(1);
  if (form == Form::convolution) return low_rank_convolution(graph, s, u);
  LowRankVars vars;
  const Var leaf = graph.leaf(LeafKind::variable, {batch, channels, modes}, s.a.dtype());
  const Var input = chunks::with_axis(u, -1);
  Var h;
  if (form == Form::scan) {
    const MemoryVars made = dense_from(graph, form, real_transition(graph, s), input * as_halves(s.b), as_halves(leaf));
    vars.memory = made.memory;
    h = from_halves(made.trajectories[0]);
  } else {
    auto operation = std::make_unique<LowRank>(s.a.dtype(), steps, batch, channels, modes);
    vars.memory = operation.get();
    const Var drive = complex(input, affine(input, 0.0, 0.0)) * s.b;
    h = graph.apply(std::move(operation), {s.a, as_pairs(conjugate(s.q)) * 2.0, as_pairs(-s.p), drive, leaf},
                    {{drive.shape(), drive.dtype()}})[0];
  }
  vars.initial = {leaf};
  vars.trajectories = {h};
  vars.finals = {last(h)};
  vars.output = sum(real(h * (s.c * 2.0)), -1);
  describe(vars.memory, {.structure = LinearSystem::Structure::low_rank,
                         .input = u,
                         .output = vars.output,
                         .a = s.a,
                         .b = s.b,
                         .c = s.c,
                         .p = s.p,
                         .q = s.q});
  return vars;
}

Var low_rank_bank(Layer& layer, const StateSpec& state, const LowRankSystem& system, Var u) {
  layer.declare_forms({Form::scan, Form::convolution});
  const LowRankVars vars = low_rank_bank(layer.graph(), layer.form(), system, u);
  layer.declare({state}, vars);
  declare_mixing(layer, {.name = state.name, .value = u, .output = vars.output, .groups = u.dim(2), .group = "channel"});
  return vars.output;
}

}  // namespace reclab
