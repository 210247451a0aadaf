// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <functional>

#include "array/demand.h"
#include "array/device_array.h"
#include "autodiff/ops.h"
#include "recurrence/attention/attention.h"
#include "recurrence/attention/drawing.h"
#include "recurrence/chunks.h"
#include "recurrence/composed.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/evaluation_order.h"
#include "recurrence/mixing/mixing.h"
#include "recurrence/outer/drawing.h"
#include "recurrence/outer/outer.h"

namespace reclab {
namespace {

class Outer final : public Memory, public HasEvaluationOrder {
 public:
  Outer(DType type, bool attention, bool record, const OuterDims& dims, std::int64_t batch)
      : type_(type), attention_(attention), record_(record), d_(dims), batch_(batch) {}

  Transition transition() const override { return Transition::diagonal(d_.heads / batch_ * d_.key * d_.value, false); }
  void factors(std::int64_t, std::span<std::complex<double>> factors) override { std::fill(factors.begin(), factors.end(), 1.0); }

  void forward(const ForwardCall& c) override {
    c.backend.outer(type_, d_, attention_, c.in[0], c.in[1], c.in[2], c.in[3], c.out[0], record_ ? c.out[2] : nullptr, c.out[1], c.stop);
  }
  void backward(const BackwardCall& c) override {
    const std::int64_t n = d_.heads * d_.key * d_.value;
    const void* carried = carried_.empty() ? nullptr : carried_[0];
    if (carried && exponent_) {  // the memory keeps everything, so its adjoint never leaves the range: back to plain units
      c.backend.add_scaled(type_, n, exponent_, carried, scratch_.resize(c.backend, type_, n), false);
      carried = scratch_.data();
    }
    exponent_ = 0;
    log2_norms_.clear();
    if (!attention_) log2_norms_.assign(1, std::vector<double>(static_cast<std::size_t>(d_.steps)));
    RECLAB_DEMAND(c.grad_in[0] && c.grad_in[1] && c.grad_in[2]);
    c.backend.outer_adjoint(type_, d_, attention_, c.in[0], c.in[1], c.in[2], c.in[3], c.grad_out[0], carried, c.grad_in[0], c.grad_in[1],
                            c.grad_in[2], c.grad_in[3], attention_ ? nullptr : log2_norms_[0].data(), c.stop);
  }
  void tangent(const TangentCall& c) override {  // reads and memory are linear in q, in v and in (k, initial)
    Backend& b = c.backend;
    const std::int64_t sizes[] = {d_.steps * d_.heads * d_.value, d_.heads * d_.key * d_.value, d_.steps * d_.heads * d_.key * d_.value};
    const std::size_t outputs = record_ ? 3 : 2;
    for (std::size_t i = 0; i < outputs; ++i) b.zero(c.tangent_out[i], static_cast<std::size_t>(sizes[i]) * bytes_of(type_));
    const auto add = [&](const void* q, const void* k, const void* v, const void* initial, bool memory) {
      void* made[3] = {};
      for (std::size_t i = 0; i < outputs; ++i) made[i] = c.temporary(i, type_, sizes[i]);
      b.outer(type_, d_, attention_, q, k, v, initial, made[0], made[2], made[1], c.stop);
      for (std::size_t i = 0; i < (memory ? outputs : 1); ++i) b.add_scaled(type_, sizes[i], 0, made[i], c.tangent_out[i], true);
    };
    const void *dq = c.tangent_in[0], *dk = c.tangent_in[1], *dv = c.tangent_in[2], *start = c.tangent_in[3];
    if (start && !dk) {
      const std::int64_t keys = d_.steps * d_.heads * d_.key;
      void* still = c.temporary(3, type_, keys);
      b.zero(still, static_cast<std::size_t>(keys) * bytes_of(type_));
      dk = still;
    }
    if (dq) add(dq, c.in[1], c.in[2], c.in[3], false);
    if (dk) add(c.in[0], dk, c.in[2], start, true);
    if (dv) add(c.in[0], c.in[1], dv, nullptr, true);
  }
  Cost cost() const override {
    const double t = static_cast<double>(d_.steps), h = static_cast<double>(d_.heads), k = static_cast<double>(d_.key),
                 v = static_cast<double>(d_.value);
    const double size = static_cast<double>(bytes_of(type_));
    return {attention_ ? h * t * (t + 1.0) * (k + v) : 4.0 * t * h * k * v, (2.0 * k + 2.0 * v) * t * h * size};
  }
  EvaluationOrder evaluation_order() const override {
    if (attention_) return {.form = Form::attention, .draw = drawing::pairs, .steps = d_.steps, .read = d_.read};
    return {.draw = drawing::steps, .steps = d_.steps};
  }

 private:
  DType type_;
  bool attention_, record_;
  OuterDims d_;
  std::int64_t batch_;
  DeviceArray scratch_;
};

/// The memory with decays or without, a chunk of steps at a time, or with decays step by step: nothing is kept of its single steps.
class Gated final : public Memory, public HasEvaluationOrder {
 public:
  /// `in`: q, k, v and the decays, for drawings.
  Gated(DType type, const GatedDims& dims, bool decayed, std::vector<Var> in)
      : type_(type), d_(dims), decayed_(decayed), in_(std::move(in)) {}

  EvaluationOrder evaluation_order() const override {
    if (d_.method == ScanMethod::steps) return {.draw = drawing::steps, .steps = d_.steps};
    return {.form = Form::chunkwise,
            .draw = drawing::blocks,
            .steps = d_.steps,
            .chunk = chunk,
            .weights = EvaluationOrder::Weights::decayed,
            .read = d_.read,
            .in = in_};
  }

  Transition transition() const override { return Transition::none("nothing is kept of this form's single steps"); }

  void forward(const ForwardCall& c) override {
    c.backend.gated(type_, d_, c.in[0], c.in[1], c.in[2], decayed_ ? c.in[4] : nullptr, c.in[3], c.out[0], c.out[1], c.stop);
  }
  void backward(const BackwardCall& c) override {
    // Where segments follow, the final memory is read by them alone.
    const void* carried = carried_.empty() ? nullptr : carried_[0];
    if (!carried) exponent_ = 0;
    c.backend.gated_adjoint(type_, d_, c.in[0], c.in[1], c.in[2], decayed_ ? c.in[4] : nullptr, c.in[3], c.grad_out[0],
                            carried ? carried : c.grad_out[1], c.grad_in[0], c.grad_in[1], c.grad_in[2], decayed_ ? c.grad_in[4] : nullptr,
                            c.grad_in[3], &exponent_, c.stop);
  }
  void tangent(const TangentCall& c) override {
    if (!composed_) composed_ = composed();
    composed_->tangent(c, d_.steps, {.output = c.tangent_out[0], .last = c.tangent_out[1]});
  }
  Cost cost() const override {
    const double n = static_cast<double>(d_.steps * d_.heads), k = static_cast<double>(d_.key), v = static_cast<double>(d_.value);
    const double flops = d_.method == ScanMethod::steps ? 5.0 * k * v : 4.0 * k * v + static_cast<double>(chunk) * (k + v);
    return {n * flops, n * (2.0 * k + 2.0 * v + (decayed_ ? static_cast<double>(d_.decays) : 0.0)) * static_cast<double>(bytes_of(type_))};
  }

 private:
  DType type_;
  static constexpr std::int64_t chunk = 16;
  GatedDims d_;
  bool decayed_;
  std::vector<Var> in_;
  std::unique_ptr<Composed> composed_;

  std::unique_ptr<Composed> composed() const;
};

/// A time-invariant decay at every step.
Var at_each_step(Graph& graph, Var log_decay, std::int64_t steps) {
  return log_decay.shape().size() < 4 ? log_decay + chunks::zeros(graph, {steps, 1, 1, 1}) : log_decay;
}

/// x one step earlier, zeros in the last one.
Var step_earlier(Var x) {
  const Var none = affine(slice(x, 0, 0, 1), 0.0, 0.0);
  if (x.dim(0) == 1) return none;
  const Var parts[] = {slice(x, 0, 1, x.dim(0)), none};
  return concat(parts, 0);
}

OuterVars summed(Graph& graph, bool attention, const OuterInputs& in, bool record, Var initial = {}) {
  const Var q = in.q, k = in.k, v = in.v;
  const std::int64_t steps = q.dim(0), batch = q.dim(1), heads = q.dim(2), key = q.dim(3), value = v.dim(3);
  OuterVars vars;
  vars.initial = {initial ? initial : graph.leaf(LeafKind::variable, {batch, heads, key, value}, v.dtype())};
  auto operation = std::make_unique<Outer>(v.dtype(), attention, record, OuterDims{steps, batch * heads, key, value, in.read}, batch);
  vars.memory = operation.get();
  std::vector<std::pair<Shape, DType>> outputs{{v.shape(), v.dtype()}, {Shape{batch, heads, key, value}, v.dtype()}};
  if (record) outputs.emplace_back(Shape{steps, batch, heads, key, value}, v.dtype());
  const auto made = graph.apply(std::move(operation), {q, k, v, vars.initial[0]}, std::move(outputs));
  vars.output = made[0];
  vars.finals = {made[1]};
  vars.trajectories = {record ? made[2] : Var{}};
  return vars;
}

/// The factor of each entry of the memory in a step: [heads, key, value] where it is the same in all, else [steps, batch, heads, key,
/// value].
Var factors(Graph& graph, const OuterInputs& in) {
  Var log;
  if (in.key_decay) log = chunks::with_axis(in.key_decay, -1);
  if (in.value_decay) log = log ? log + chunks::with_axis(in.value_decay, -2) : chunks::with_axis(in.value_decay, -2);
  const auto all = [&](Var x) {
    x = x + chunks::zeros(graph, {in.q.dim(3), in.v.dim(3)});
    if (x.shape().size() == 3) return x + chunks::zeros(graph, {in.q.dim(2), 1, 1});
    return x + chunks::zeros(graph, {in.q.dim(0), in.q.dim(1), in.q.dim(2), 1, 1});
  };
  if (!in.phase) return in.value_decay ? all(exp(log)) : exp(log) + chunks::zeros(graph, {in.q.dim(3), in.v.dim(3)});
  const Var phase = chunks::with_axis(in.phase, -1), x = is_complex(phase.dtype()) ? real(phase) : cos(phase),
            y = is_complex(phase.dtype()) ? imag(phase) : sin(phase);
  if (!log) return complex(all(x), all(y));
  const Var size = exp(log);
  return complex(all(size * x), all(size * y));
}

/// Every entry of the memory is a diagonal recurrence of its own, whose states are all there.
OuterVars stepwise(Graph& graph, Form form, const OuterInputs& in) {
  const Var factor = factors(graph, in), written = chunks::with_axis(in.k, -1) * chunks::with_axis(in.v, -2);
  OuterVars vars;
  static_cast<MemoryVars&>(vars) = diagonal(
      graph, form, factor, in.phase && !is_complex(written.dtype()) ? complex(written, affine(written, 0.0, 0.0)) : written, in.shown);
  const Var state = in.read == ReadOrder::before ? states_before(vars) : vars.trajectories[0], query = chunks::with_axis(in.q, -1);
  vars.output = sum(!in.phase ? state * query : is_complex(query.dtype()) ? real(state * query) : real(state) * query, -2);
  return vars;
}

std::unique_ptr<Composed> Gated::composed() const {
  using Role = Composed::Role;
  std::vector<Composed::Input> inputs{{Role::sequence, {1, d_.heads, d_.key}},
                                      {Role::sequence, {1, d_.heads, d_.key}},
                                      {Role::sequence, {1, d_.heads, d_.value}},
                                      {Role::state, {1, d_.heads, d_.key, d_.value}}};
  if (decayed_) inputs.push_back({Role::sequence, {1, d_.heads, d_.decays}});
  return std::make_unique<Composed>(type_, std::move(inputs), [decayed = decayed_, read = d_.read](Graph& graph, std::span<const Var> in) {
    const OuterInputs of{.q = in[0], .k = in[1], .v = in[2], .key_decay = decayed ? in[4] : Var{}, .read = read};
    const OuterVars vars = decayed ? stepwise(graph, Form::sequential, of) : summed(graph, false, of, true);
    return Composed::Made{vars.initial[0], vars.output, vars.trajectories[0]};
  });
}

OuterVars gated(Graph& graph, ScanMethod method, const OuterInputs& in, Var initial = {}) {
  const Var q = in.q, k = in.k, v = in.v, log_decay = in.key_decay;
  const std::int64_t steps = q.dim(0), batch = q.dim(1), heads = q.dim(2), key = q.dim(3), value = v.dim(3);
  OuterVars vars;
  vars.initial = {initial ? initial : graph.leaf(LeafKind::variable, {batch, heads, key, value}, v.dtype())};
  std::vector<Var> inputs{q, k, v, vars.initial[0]};
  if (log_decay) inputs.push_back(log_decay.shape().size() < 4 ? log_decay + chunks::zeros(graph, {steps, batch, 1, 1}) : log_decay);
  auto operation =
      std::make_unique<Gated>(v.dtype(), GatedDims{steps, batch * heads, key, value, log_decay ? log_decay.dim(-1) : 1, method, in.read},
                              static_cast<bool>(log_decay), log_decay ? std::vector<Var>{q, k, v, log_decay} : std::vector<Var>{q, k, v});
  vars.memory = operation.get();
  const auto made = graph.apply(std::move(operation), std::move(inputs), {{v.shape(), v.dtype()}, {vars.initial[0].shape(), v.dtype()}});
  vars.output = made[0];
  vars.finals = {made[1]};
  vars.trajectories = {Var{}};
  return vars;
}

/// The reads of a memory that is read before its update: those after step t become those of step t + 1, behind the read of step 0, [1,
/// ...].
Var step_later(Var first, Var reads, int axis) {
  if (reads.dim(axis) == 1) return first;
  const Var parts[] = {first, slice(reads, axis, 0, reads.dim(axis) - 1)};
  return concat(parts, axis);
}

OuterVars quadratic(Graph& graph, const OuterInputs& in, Var initial = {}) {
  const Var q = in.q, v = in.v;
  const std::int64_t steps = q.dim(0), batch = q.dim(1), heads = q.dim(2), key = q.dim(3), value = v.dim(3), all = batch * heads;
  const bool before = in.read == ReadOrder::before;
  const int heads_first[] = {1, 2, 0, 3};
  const auto by_heads = [&](Var x) { return reshape(permute(x, heads_first), {all, steps, x.dim(3)}); };
  const auto start =
      initial ? chunks::Start{initial, initial, initial, nullptr} : chunks::start(graph, {batch, heads, key, value}, v.dtype());
  const Var Q = by_heads(before ? step_earlier(q) : q), K = by_heads(in.k), V = by_heads(v),
            first = reshape(start.state, {all, key, value});
  // A decay of 0 gets a finite logarithm, so that differences of sums exist.
  const Var all_forgotten = graph.constant({1}, {-1e4});
  const auto [sums, low] =
      chunks::sums(by_heads(maximum(at_each_step(graph, in.key_decay, steps), all_forgotten) + chunks::zeros(graph, {batch, 1, 1})),
                   1);  // [all, steps, 1]
  const Var last_sum = slice(sums, 1, steps - 1, steps), last_low = slice(low, 1, steps - 1, steps);
  Var read = weighted_attention(Q, K, V, sums, -sums, low, -low, in.read) + matmul(Q * exp(sums), first);
  if (before) read = step_later(matmul(slice(by_heads(q), 1, 0, 1), first), read, 1);
  const int time_first[] = {2, 0, 1, 3};
  OuterVars vars;
  vars.memory = start.memory;
  vars.initial = {start.leaf};
  vars.trajectories = {Var{}};
  vars.finals = {
      reshape(matmul(transpose(K * exp(last_sum - sums + (last_low - low))), V) + first * exp(last_sum), {batch, heads, key, value})};
  vars.output = permute(reshape(read, {batch, heads, steps, value}), time_first);
  return vars;
}

constexpr std::int64_t composed_chunk = 16;

/// For drawings: the memory before any rotation.
EvaluationOrder chunks_order(Graph& graph, const OuterInputs& in) {
  const auto or_none = [&](Var decay) { return decay ? decay : chunks::zeros(graph, {in.q.dim(2), 1}); };
  EvaluationOrder order{.form = Form::chunkwise,
                        .draw = drawing::blocks,
                        .steps = in.q.dim(0),
                        .chunk = composed_chunk,
                        .weights = EvaluationOrder::Weights::decayed,
                        .read = in.read,
                        .in = {in.q, in.k, in.v, or_none(in.key_decay)}};
  if (in.value_decay || in.phase) order.in.push_back(or_none(in.value_decay));
  if (in.phase) order.in.push_back(in.phase);
  return order;
}

/// Decays by value, in chunks of 16 steps: the memory is a diagonal recurrence from chunk to chunk, and each pair of steps in one is
/// decayed by a sum of logarithms over the steps between.
OuterVars by_value(Graph& graph, const OuterInputs& in, Var initial = {}) {
  const std::int64_t steps = in.q.dim(0), batch = in.q.dim(1), heads = in.q.dim(2), key = in.q.dim(3), value = in.v.dim(3),
                     chunk = std::min(composed_chunk, steps);
  const bool before = in.read == ReadOrder::before;
  const auto each = [&](Var x) { return at_each_step(graph, x, steps) + chunks::zeros(graph, {batch, heads, 1}); };
  const auto start =
      initial ? chunks::Start{initial, initial, initial, nullptr} : chunks::start(graph, {batch, heads, key, value}, in.v.dtype());
  const Var state = start.state;
  if (start.memory) start.memory->goes(chunks_order(graph, in));
  const Var Q = chunks::split(before ? step_earlier(in.q) : in.q, chunk), K = chunks::split(in.k, chunk),
            V = chunks::split(in.v, chunk);  // [chunks, batch, heads, chunk, d]
  const Var inside = chunks::with_axis(chunks::triangle(graph, chunk, 1.0, 0.0), -1);
  struct Decays {
    Var pairs;                        // [.., chunk, chunk, d]: from step s to t, 0 for s > t
    Var since_start, until_end, all;  // [.., chunk, d], [.., chunk, d], [.., 1, d]
  };
  // Each exponent is the sum of the logarithms of the steps that it passes through, so that its adjoint goes to these alone.
  const auto passes = [&](std::int64_t ways, const std::function<bool(std::int64_t way, std::int64_t step)>& through) {
    std::vector<double> counted;
    for (std::int64_t l = 0; l < chunk; ++l)
      for (std::int64_t way = 0; way < ways; ++way) counted.push_back(through(way, l) ? 1.0 : 0.0);
    return graph.constant({chunk, ways}, std::move(counted));
  };
  const Var between = passes(chunk * chunk, [&](std::int64_t way, std::int64_t l) { return way % chunk < l && l <= way / chunk; }),
            up_to = passes(chunk, [](std::int64_t t, std::int64_t l) { return l <= t; }),
            after = passes(chunk, [](std::int64_t s, std::int64_t l) { return l > s; }),
            whole = passes(1, [](std::int64_t, std::int64_t) { return true; });
  const auto decays_of = [&](Var log) {
    const Var steps_last = transpose(chunks::split(each(log), chunk));  // [.., d, chunk]
    const auto decay = [&](Var way) { return exp(transpose(matmul(steps_last, way))); };
    const Var all_pairs = decay(between);
    Shape shape = all_pairs.shape();
    shape.insert(shape.end() - 2, chunk);
    shape[shape.size() - 2] = chunk;
    return Decays{reshape(all_pairs, shape) * inside, decay(up_to), decay(after), decay(whole)};
  };
  const Decays of_value = decays_of(in.value_decay);
  Var scores, left = Q, right = K, factor = transpose(of_value.all);  // of [key, value], transposed below
  if (in.key_decay) {
    const Decays of_key = decays_of(in.key_decay);
    scores = sum(of_key.pairs * chunks::with_axis(Q, -2) * chunks::with_axis(K, -3), -1);
    left = Q * of_key.since_start;
    right = K * of_key.until_end;
    factor = factor * of_key.all;
  } else {
    scores = matmul_transposed(Q, K);
  }
  const Var written = matmul(transpose(right), V * of_value.until_end);
  const MemoryVars memory = diagonal_from(graph, Form::sequential, transpose(factor + chunks::zeros(graph, {value, key})), written, state);
  if (start.memory) start.memory->follow(memory.memory);
  Var read = chunks::join(of_value.since_start * matmul(left, states_before(memory)) +
                              sum(chunks::with_axis(scores, -1) * of_value.pairs * chunks::with_axis(V, -3), -2),
                          steps);
  if (before) {
    const Var first = matmul(reshape(slice(in.q, 0, 0, 1), {batch, heads, 1, key}), state);
    read = step_later(reshape(first, {1, batch, heads, value}), read, 0);
  }
  OuterVars vars;
  vars.memory = start.memory ? start.memory : memory.memory;
  vars.initial = {start.leaf};
  vars.trajectories = {Var{}};
  vars.finals = memory.finals;
  vars.output = read;
  return vars;
}

/// Cosine and sine of Theta_t, the sum of the phases up to step t.
std::pair<Var, Var> turned_by(Graph& graph, const OuterInputs& in) {
  const std::int64_t steps = in.q.dim(0), heads = in.q.dim(2);
  if (is_complex(in.phase.dtype())) {  // of numbers on the unit circle the product
    const Var factor = at_each_step(graph, in.phase, steps), none = affine(factor, 0.0, 0.0);
    const Var one = affine(real(slice(none, 0, 0, 1)), 0.0, 1.0),
              first = reshape(complex(one, affine(one, 0.0, 0.0)), Shape(factor.shape().begin() + 1, factor.shape().end()));
    const Var product = diagonal_from(graph, Form::scan, factor, none, first).trajectories[0];
    return {real(product), imag(product)};
  }
  // The sum's rounding is turned by too, so an angle is as good after many turns as in the first.
  const auto [sums, low] = chunks::sums(at_each_step(graph, in.phase, steps) + chunks::zeros(graph, {heads, 1}), 0);
  return {cos(sums) * cos(low) - sin(sums) * sin(low), sin(sums) * cos(low) + cos(sums) * sin(low)};
}

Var pair(Var x, Var y, int axis) {
  const Var parts[] = {x, y};
  return concat(parts, axis);
}

/// The memory of turned keys: k by (c, s) = e^{i Theta} at its own step, q by the rotation of the read, which is one step less where it
/// comes first.
OuterInputs turned_keys(const OuterInputs& in, Var c, Var s) {
  Var c_read = c, s_read = s;
  if (in.read == ReadOrder::before) {
    const Var one = slice(c, 0, 0, 1);
    c_read = step_later(affine(one, 0.0, 1.0), c, 0);
    s_read = step_later(affine(one, 0.0, 0.0), s, 0);
  }
  OuterInputs turned = in;
  turned.phase = {};
  if (is_complex(in.q.dtype())) {
    const Var x = real(in.q), y = imag(in.q);
    turned.q = pair(x * c_read - y * s_read, x * s_read + y * c_read, -1);
  } else {
    turned.q = pair(in.q * c_read, in.q * s_read, -1);
  }
  if (is_complex(in.k.dtype())) {
    const Var x = real(in.k), y = imag(in.k);
    turned.k = pair(x * c + y * s, x * s - y * c, -1);
  } else {
    turned.k = pair(in.k * c, in.k * s, -1);
  }
  if (in.key_decay && in.key_decay.dim(-1) > 1) turned.key_decay = pair(in.key_decay, in.key_decay, -1);
  return turned;
}

/// A rotated memory in a form without complex memory: S_t = e^{i Theta_t} (W_t - i W'_t), Theta_t the sum of the phases up to step t, so
/// that W and W' are real memories of keys k cos Theta and k sin Theta, and the reads those of queries turned alike.
OuterVars turning(Graph& graph, const OuterInputs& in, const std::function<OuterVars(const OuterInputs&, Var initial)>& real_memory) {
  const std::int64_t batch = in.q.dim(1), heads = in.q.dim(2), key = in.q.dim(3), value = in.v.dim(3);
  const auto [c, s] = turned_by(graph, in);
  const OuterInputs turned = turned_keys(in, c, s);
  const auto start = chunks::start(graph, {batch, heads, key, value}, complex_of(in.v.dtype()));
  const OuterVars made = real_memory(turned, pair(real(start.state), -imag(start.state), -2));
  start.memory->follow(made.memory);
  if (in.value_decay) start.memory->goes(chunks_order(graph, turned));
  const Var final_memory = made.finals[0], x = slice(final_memory, -2, 0, key), y = slice(final_memory, -2, key, 2 * key),
            last_c = chunks::with_axis(last(c), -1), last_s = chunks::with_axis(last(s), -1);
  OuterVars vars;
  vars.memory = start.memory;
  vars.initial = {start.leaf};
  vars.trajectories = {Var{}};
  vars.finals = {complex(x * last_c + y * last_s, x * last_s - y * last_c)};
  vars.output = made.output;
  return vars;
}

OuterVars memory_of(Graph& graph, Form form, const OuterInputs& in, bool record, Var initial = {});

/// Phases of every step, in chunks of 16, each in a frame of its own: writes and reads in a chunk are rotated from the chunk's start on,
/// and the complex memory from chunk to chunk by all of a chunk. A sum of phases over the whole sequence would have the same value, but the
/// adjoint of a phase would be the difference of the sums over all later queries and all later keys, lost in their rounding; here it is the
/// gradient through its own step and the few after it. For the same reason a step's own token, which no phase comes before, is read beside
/// the memory.
OuterVars in_frames(Graph& graph, const OuterInputs& in, Var initial = {}) {
  const std::int64_t steps = in.q.dim(0), batch = in.q.dim(1), heads = in.q.dim(2), key = in.q.dim(3), value = in.v.dim(3),
                     chunk = std::min(composed_chunk, steps);
  const std::int64_t count = (steps + chunk - 1) / chunk, all = count * batch;
  const bool after = in.read == ReadOrder::after;
  const auto start = initial ? chunks::Start{initial, initial, initial, nullptr}
                             : chunks::start(graph, {batch, heads, key, value}, complex_of(in.v.dtype()));
  if (start.memory) start.memory->goes(chunks_order(graph, in));
  // The chunks stand side by side, as sequences of a batch: [chunk, chunks * batch, heads, d], padded at the end by steps without effect.
  const auto folded = [&](Var x, double rest) {
    x = at_each_step(graph, x, steps) + chunks::zeros(graph, {batch, heads, 1});
    if (count * chunk != steps) x = pair(x, affine(chunks::zeros(graph, {count * chunk - steps, batch, heads, x.dim(3)}), 0.0, rest), 0);
    const int chunks_second[] = {1, 0, 2, 3, 4};
    return reshape(permute(reshape(x, {count, chunk, batch, heads, x.dim(3)}), chunks_second), {chunk, all, heads, x.dim(3)});
  };
  const auto folded_number = [&](Var x, double rest) {
    return is_complex(x.dtype()) ? complex(folded(real(x), rest), folded(imag(x), 0.0)) : folded(x, 0.0);
  };
  OuterInputs local{.q = folded_number(in.q, 0.0),
                    .k = folded_number(in.k, 0.0),
                    .v = folded(in.v, 0.0),
                    .read = in.read,
                    .phase = folded_number(in.phase, 1.0)};
  if (in.key_decay) local.key_decay = folded(in.key_decay, 0.0);
  if (in.value_decay) local.value_decay = folded(in.value_decay, 0.0);
  const auto [c, s] = turned_by(graph, local);
  OuterInputs turned = turned_keys(local, c, s);
  turned.read = ReadOrder::before;
  if (after && in.key_decay) turned.q = turned.q * exp(turned.key_decay);
  const OuterVars made = memory_of(graph, Form::chunkwise, turned, false, chunks::zeros(graph, {all, heads, 2 * key, value}));

  const auto since_start = [](Var log) { return exp(step_later(affine(slice(log, 0, 0, 1), 0.0, 0.0), cumulative_sum(log, 0), 0)); };
  Var factor_c = chunks::with_axis(last(c), -1), factor_s = chunks::with_axis(last(s), -1), left = turned.q;
  const Var wrote = made.finals[0], x = slice(wrote, -2, 0, key), y = slice(wrote, -2, key, 2 * key),
            written = complex(x * factor_c + y * factor_s, x * factor_s - y * factor_c);
  const auto decay_by = [&](Var log, int axis) {
    const Var size = chunks::with_axis(exp(sum(log, 0)), axis);
    factor_c = factor_c * size;
    factor_s = factor_s * size;
  };
  if (in.key_decay) {
    decay_by(local.key_decay, -1);
    left = left * since_start(turned.key_decay);
  }
  if (in.value_decay) decay_by(local.value_decay, -2);
  const Var every = chunks::zeros(graph, {key, value});
  const Shape by_chunks{count, batch, heads, key, value};
  const MemoryVars memory = diagonal_from(graph, Form::sequential, reshape(complex(factor_c + every, factor_s + every), by_chunks),
                                          reshape(written, by_chunks), start.state);
  if (start.memory) start.memory->follow(memory.memory);
  const Var before = reshape(states_before(memory), {all, heads, key, value});
  const int heads_first[] = {1, 2, 0, 3}, time_first[] = {2, 0, 1, 3}, chunks_first[] = {1, 0, 2, 3, 4};
  Var carried = permute(matmul(permute(left, heads_first), pair(real(before), -imag(before), -2)), time_first);
  if (in.value_decay) carried = carried * since_start(local.value_decay);
  Var read = made.output + carried;
  if (after && in.value_decay) read = read * exp(local.value_decay);
  read = slice(reshape(permute(reshape(read, {chunk, count, batch, heads, value}), chunks_first), {count * chunk, batch, heads, value}), 0,
               0, steps);
  if (after) {
    const Var own = sum(in.q * in.k, -1);
    read = read + chunks::with_axis(is_complex(own.dtype()) ? real(own) : own, -1) * in.v;
  }
  OuterVars vars;
  vars.memory = start.memory ? start.memory : memory.memory;
  vars.initial = {start.leaf};
  vars.trajectories = {Var{}};
  vars.finals = memory.finals;
  vars.output = read;
  return vars;
}

/// x, and the gradient of y, which is the same number.
Var with_gradient_of(Var x, Var y) { return x + (y - detach(y)); }

/// The quadratic form of phases of every step. Its reads and all other adjoints are those of turned queries and keys; the adjoints of the
/// phases, which these do not hold (in_frames), are the gradients through each step, by way of the memories between chunks.
OuterVars quadratic_turning(Graph& graph, const OuterInputs& in) {
  const auto held = [](Var x) { return x ? detach(x) : x; };
  OuterInputs still = in;
  still.phase = detach(in.phase);
  OuterVars vars =
      turning(graph, still, [&](const OuterInputs& turned, Var from) { return memory_of(graph, Form::attention, turned, false, from); });
  const OuterVars flow = in_frames(
      graph, {.q = held(in.q), .k = held(in.k), .v = held(in.v), .key_decay = held(in.key_decay), .read = in.read, .phase = in.phase},
      detach(vars.initial[0]));
  vars.output = with_gradient_of(vars.output, flow.output);
  vars.finals[0] = with_gradient_of(vars.finals[0], flow.finals[0]);
  return vars;
}

bool has_quadratic_form(const OuterInputs& in) { return !in.value_decay && (!in.key_decay || in.key_decay.dim(-1) == 1); }

OuterVars memory_of(Graph& graph, Form form, const OuterInputs& in, bool record, Var initial) {
  if (in.phase) {
    const bool varies = in.phase.shape().size() == 4;
    if (varies && form == Form::chunkwise) return in_frames(graph, in);
    if (varies && form == Form::attention && has_quadratic_form(in)) return quadratic_turning(graph, in);
    if (form == Form::chunkwise || (form == Form::attention && has_quadratic_form(in)))
      return turning(graph, in, [&](const OuterInputs& turned, Var from) { return memory_of(graph, form, turned, false, from); });
    return stepwise(graph, form == Form::scan ? Form::scan : Form::sequential, in);
  }
  if (form == Form::chunkwise) return in.value_decay ? by_value(graph, in, initial) : gated(graph, ScanMethod::chunks, in, initial);
  if (!in.key_decay && !in.value_decay) return summed(graph, form == Form::attention, in, record && form != Form::attention, initial);
  if (form == Form::attention && has_quadratic_form(in)) return quadratic(graph, in, initial);
  if (form == Form::sequential && !record && !in.value_decay) return gated(graph, ScanMethod::steps, in);
  return stepwise(graph, form == Form::scan ? Form::scan : Form::sequential, in);
}

}  // namespace

OuterVars outer(Graph& graph, Form form, const OuterInputs& in, bool record) {
  RECLAB_DEMAND(in.k.shape() == in.q.shape() && in.v.dim(2) == in.q.dim(2));
  RECLAB_DEMAND(!in.bonus || in.read == ReadOrder::before);
  RECLAB_DEMAND(in.phase || (!is_complex(in.q.dtype()) && !is_complex(in.k.dtype())));
  OuterVars vars = memory_of(graph, form, in, record);
  // The step's own token is a product of its query, key and value alone: no form needs more of it.
  if (in.bonus) {
    const Var weight = sum(in.q * in.k * in.bonus, -1);
    vars.output = vars.output + chunks::with_axis(is_complex(weight.dtype()) ? real(weight) : weight, -1) * in.v;
  }
  return vars;
}

Var outer(Layer& layer, const StateSpec& state, const OuterInputs& inputs, bool told) {
  OuterInputs in = inputs;
  in.v = apart(layer, in.v, {in.q, in.k, in.key_decay, in.value_decay, in.phase});
  layer.declare_forms({Form::chunkwise});
  if (in.key_decay || in.value_decay || in.phase) layer.declare_forms({Form::scan});
  if (has_quadratic_form(in)) layer.declare_forms({Form::attention});
  const OuterVars vars = outer(layer.graph(), layer.form(), in, layer.records());
  layer.declare({state}, vars);
  if (told && !state.auxiliary) {
    const std::int64_t heads = in.v.dim(2);
    declare_mixing(layer, {.name = state.name,
                           .value = in.v,
                           .output = vars.output,
                           .groups = in.value_decay ? heads * in.v.dim(3) : heads,
                           .group = in.value_decay ? "unit" : "head"});
  }
  return vars.output;
}

}  // namespace reclab
