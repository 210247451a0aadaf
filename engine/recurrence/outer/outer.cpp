// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cassert>

#include "array/device_array.h"
#include "autodiff/ops.h"
#include "recurrence/attention/attention.h"
#include "recurrence/attention/drawing.h"
#include "recurrence/chunks.h"
#include "recurrence/composed.h"
#include "recurrence/evaluation_order.h"
#include "recurrence/diagonal/diagonal.h"
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
    assert(c.grad_in[0] && c.grad_in[1] && c.grad_in[2]);
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
    const double t = static_cast<double>(d_.steps), h = static_cast<double>(d_.heads), k = static_cast<double>(d_.key), v = static_cast<double>(d_.value);
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
  /// `in`: q, k, v and the decays, for who draws it.
  Gated(DType type, const GatedDims& dims, bool decayed, std::vector<Var> in) : type_(type), d_(dims), decayed_(decayed), in_(std::move(in)) {}

  EvaluationOrder evaluation_order() const override {
    if (d_.method == ScanMethod::steps) return {.draw = drawing::steps, .steps = d_.steps};
    return {.form = Form::chunkwise, .draw = drawing::blocks, .steps = d_.steps, .chunk = chunk, .weights = EvaluationOrder::Weights::decayed, .read = d_.read, .in = in_};
  }

  Transition transition() const override { return Transition::none("nothing is kept of this form's single steps"); }

  void forward(const ForwardCall& c) override {
    c.backend.gated(type_, d_, c.in[0], c.in[1], c.in[2], decayed_ ? c.in[4] : nullptr, c.in[3], c.out[0], c.out[1], c.stop);
  }
  void backward(const BackwardCall& c) override {
    // Where segments follow, the final memory is read by them alone.
    const void* carried = carried_.empty() ? nullptr : carried_[0];
    if (!carried) exponent_ = 0;
    c.backend.gated_adjoint(type_, d_, c.in[0], c.in[1], c.in[2], decayed_ ? c.in[4] : nullptr, c.in[3], c.grad_out[0], carried ? carried : c.grad_out[1], c.grad_in[0],
                            c.grad_in[1], c.grad_in[2], decayed_ ? c.grad_in[4] : nullptr, c.grad_in[3], &exponent_, c.stop);
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

OuterVars summed(Graph& graph, bool attention, const OuterInputs& in, bool record) {
  const Var q = in.q, k = in.k, v = in.v;
  const std::int64_t steps = q.dim(0), batch = q.dim(1), heads = q.dim(2), key = q.dim(3), value = v.dim(3);
  OuterVars vars;
  vars.initial = {graph.leaf(LeafKind::variable, {batch, heads, key, value}, v.dtype())};
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

/// Every entry of the memory is a diagonal recurrence of its own, whose states are all there.
OuterVars stepwise(Graph& graph, Form form, const OuterInputs& in) {
  const Var decay = exp(chunks::with_axis(in.key_decay, -1)) + chunks::zeros(graph, {in.q.dim(3), in.v.dim(3)});
  OuterVars vars;
  static_cast<MemoryVars&>(vars) = diagonal(graph, form, decay, chunks::with_axis(in.k, -1) * chunks::with_axis(in.v, -2), in.shown);
  const Var read = in.read == ReadOrder::before ? states_before(vars) : vars.trajectories[0];
  vars.output = sum(read * chunks::with_axis(in.q, -1), -2);
  return vars;
}

std::unique_ptr<Composed> Gated::composed() const {
  using Role = Composed::Role;
  std::vector<Composed::Input> inputs{{Role::sequence, {1, d_.heads, d_.key}}, {Role::sequence, {1, d_.heads, d_.key}}, {Role::sequence, {1, d_.heads, d_.value}}, {Role::state, {1, d_.heads, d_.key, d_.value}}};
  if (decayed_) inputs.push_back({Role::sequence, {1, d_.heads, d_.decays}});
  return std::make_unique<Composed>(type_, std::move(inputs), [decayed = decayed_, read = d_.read](Graph& graph, std::span<const Var> in) {
    const OuterInputs of{.q = in[0], .k = in[1], .v = in[2], .key_decay = decayed ? in[4] : Var{}, .read = read};
    const OuterVars vars = decayed ? stepwise(graph, Form::sequential, of) : summed(graph, false, of, true);
    return Composed::Made{vars.initial[0], vars.output, vars.trajectories[0]};
  });
}

OuterVars gated(Graph& graph, ScanMethod method, const OuterInputs& in) {
  const Var q = in.q, k = in.k, v = in.v, log_decay = in.key_decay;
  const std::int64_t steps = q.dim(0), batch = q.dim(1), heads = q.dim(2), key = q.dim(3), value = v.dim(3);
  OuterVars vars;
  vars.initial = {graph.leaf(LeafKind::variable, {batch, heads, key, value}, v.dtype())};
  std::vector<Var> inputs{q, k, v, vars.initial[0]};
  if (log_decay) inputs.push_back(log_decay.shape().size() < 4 ? log_decay + chunks::zeros(graph, {steps, batch, 1, 1}) : log_decay);
  auto operation = std::make_unique<Gated>(v.dtype(), GatedDims{steps, batch * heads, key, value, log_decay ? log_decay.dim(-1) : 1, method, in.read}, static_cast<bool>(log_decay),
                                           log_decay ? std::vector<Var>{q, k, v, log_decay} : std::vector<Var>{q, k, v});
  vars.memory = operation.get();
  const auto made = graph.apply(std::move(operation), std::move(inputs), {{v.shape(), v.dtype()}, {vars.initial[0].shape(), v.dtype()}});
  vars.output = made[0];
  vars.finals = {made[1]};
  vars.trajectories = {Var{}};
  return vars;
}

OuterVars quadratic(Graph& graph, const OuterInputs& in) {
  const Var q = in.q, v = in.v;
  const std::int64_t steps = q.dim(0), batch = q.dim(1), heads = q.dim(2), key = q.dim(3), value = v.dim(3), all = batch * heads;
  const bool before = in.read == ReadOrder::before;
  const int heads_first[] = {1, 2, 0, 3};
  const auto by_heads = [&](Var x) { return reshape(permute(x, heads_first), {all, steps, x.dim(3)}); };
  const auto start = chunks::start(graph, {batch, heads, key, value}, v.dtype());
  // What is read before an update is what the step before reads after its own.
  const Var Q = by_heads(before ? step_earlier(q) : q), K = by_heads(in.k), V = by_heads(v), first = reshape(start.state, {all, key, value});
  const auto [sums, low] = chunks::sums(by_heads(at_each_step(graph, in.key_decay, steps) + chunks::zeros(graph, {batch, 1, 1})), 1);  // [all, steps, 1]
  const Var last_sum = slice(sums, 1, steps - 1, steps), last_low = slice(low, 1, steps - 1, steps);
  Var read = weighted_attention(Q, K, V, sums, -sums, low, -low, in.read) + matmul(Q * exp(sums), first);
  if (before) {
    const Var first_read = matmul(slice(by_heads(q), 1, 0, 1), first);
    const Var parts[] = {first_read, steps > 1 ? slice(read, 1, 0, steps - 1) : Var{}};
    read = concat(std::span(parts, steps > 1 ? 2 : 1), 1);
  }
  const int time_first[] = {2, 0, 1, 3};
  OuterVars vars;
  vars.memory = start.memory;
  vars.initial = {start.leaf};
  vars.trajectories = {Var{}};
  vars.finals = {reshape(matmul(transpose(K * exp(last_sum - sums + (last_low - low))), V) + first * exp(last_sum), {batch, heads, key, value})};
  vars.output = permute(reshape(read, {batch, heads, steps, value}), time_first);
  return vars;
}

OuterVars memory_of(Graph& graph, Form form, const OuterInputs& in, bool record) {
  if (form == Form::chunkwise) return gated(graph, ScanMethod::chunks, in);
  if (!in.key_decay) return summed(graph, form == Form::attention, in, record && form != Form::attention);
  if (form == Form::attention && in.key_decay.dim(-1) == 1) return quadratic(graph, in);
  if (form == Form::sequential && !record) return gated(graph, ScanMethod::steps, in);
  return stepwise(graph, form == Form::scan ? Form::scan : Form::sequential, in);
}

}  // namespace

OuterVars outer(Graph& graph, Form form, const OuterInputs& in, bool record) {
  assert(in.k.shape() == in.q.shape() && in.v.dim(2) == in.q.dim(2));
  assert(!in.bonus || in.read == ReadOrder::before);
  OuterVars vars = memory_of(graph, form, in, record);
  // The step's own token is a product of its query, key and value alone: no form needs more of it.
  if (in.bonus) vars.output = vars.output + chunks::with_axis(sum(in.q * in.k * in.bonus, -1), -1) * in.v;
  return vars;
}

Var outer(Layer& layer, const StateSpec& state, const OuterInputs& in) {
  layer.offer({Form::chunkwise});
  if (in.key_decay) layer.offer({Form::scan});
  if (!in.key_decay || in.key_decay.dim(-1) == 1) layer.offer({Form::attention});
  const OuterVars vars = outer(layer.graph(), layer.form(), in, layer.records());
  layer.declare({state}, vars);
  return vars.output;
}

}  // namespace reclab
