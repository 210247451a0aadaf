// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>

#include "array/demand.h"
#include "array/device_array.h"
#include "array/host.h"
#include "array/order.h"
#include "autodiff/fresh.h"
#include "autodiff/ops.h"
#include "recurrence/chunks.h"
#include "recurrence/convolution/convolution.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/diagonal/drawing.h"
#include "recurrence/evaluation_order.h"
#include "recurrence/linear_system.h"
#include "recurrence/mixing/mixing.h"

namespace reclab {
namespace {

const void* at(const void* base, std::size_t bytes) { return static_cast<const char*>(base) + bytes; }
void* at(void* base, std::size_t bytes) { return static_cast<char*>(base) + bytes; }

class Diagonal final : public Memory, public OverwritesGradient, public HasEvaluationOrder, public HasLinearSystem {
 public:
  Diagonal(DType type, ScanMethod method, const DiagonalDims& dims, std::int64_t batch)
      : type_(type), method_(method), d_(dims), batch_(batch) {}

  void show(std::int64_t groups, bool invariant, DType type) {
    groups_ = groups;
    shown_invariant_ = invariant;
    shown_type_ = type;
  }
  /// Says that the graph reads the initial state beside this operation, after it.
  void read_initial() { initial_is_read_ = true; }
  bool time_invariant() const { return groups_ ? shown_invariant_ : d_.period > 0; }
  Transition transition() const override { return Transition::diagonal(d_.width / batch_, !time_invariant()); }
  void factors(std::int64_t t, std::span<std::complex<double>> factors) override {
    if (groups_) {
      const auto own = to_complex(*backend_, shown_type_, shown_, groups_, shown_invariant_ ? 0 : t * groups_ * batch_);
      const std::size_t each = factors.size() / own.size();
      for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = own[i / each];
      return;
    }
    std::ranges::copy(to_complex(*backend_, type_, a_, std::ssize(factors), time_invariant() ? 0 : t * d_.width), factors.begin());
  }

  void forward(const ForwardCall& c) override {
    backend_ = &c.backend;
    a_ = c.in[0];
    if (groups_) shown_ = c.in[3];
    c.backend.diagonal(type_, d_, method_, c.in[0], c.in[1], c.in[2], c.out[0], c.stop);
  }
  void backward(const BackwardCall& c) override { backward(c, std::vector<char>(c.in.size())); }
  bool writes(std::size_t input) const override { return input < 2; }
  void backward(const BackwardCall& c, std::span<const char> fresh) override {
    log2_norms_.assign(1, std::vector<double>(static_cast<std::size_t>(d_.steps)));
    const void* carried = carried_.empty() ? nullptr : carried_[0];
    if (!carried) exponent_ = 0;
    int power = exponent_;
    if (records_backpropagated_) record_backpropagated(c, carried);
    // Other reads of the initial state have added their gradients in plain units; the recurrence's may have another unit.
    const void* read = initial_is_read_ && c.grad_in[2] ? read_.resize(c.backend, type_, d_.width) : nullptr;
    if (read) {
      const std::size_t bytes = static_cast<std::size_t>(d_.width) * bytes_of(type_);
      c.backend.copy(read_.data(), c.grad_in[2], bytes);
      c.backend.zero(c.grad_in[2], bytes);
    }
    c.backend.diagonal_adjoint(type_, d_, method_, c.in[0], c.out[0], c.in[2], c.grad_out[0], carried, c.grad_in[0], !fresh[0],
                               c.grad_in[1], !fresh[1], c.grad_in[2], log2_norms_[0].data(), &exponent_, c.stop);
    if (read) add_plain(c.backend, read, c.grad_in[2]);
    // A scan is in plain numbers; where they end, the norms are followed further step by step.
    if (method_ != ScanMethod::steps && std::any_of(log2_norms_[0].begin(), log2_norms_[0].end(), [](double x) { return std::isinf(x); }))
      c.backend.diagonal_adjoint(type_, d_, ScanMethod::steps, c.in[0], c.out[0], c.in[2], c.grad_out[0], carried, nullptr, true, nullptr,
                                 true, nullptr, log2_norms_[0].data(), &power, c.stop);
  }
  void tangent(const TangentCall& c) override {  // ds_t = a_t ds_{t-1} + (da_t s_{t-1} + db_t)
    Backend& b = c.backend;
    const std::int64_t n = d_.steps * d_.width;
    const void *da = c.tangent_in[0], *db = c.tangent_in[1];
    void* drive = c.temporary(0, type_, n);
    if (db)
      b.copy(drive, db, static_cast<std::size_t>(n) * bytes_of(type_));
    else
      b.zero(drive, static_cast<std::size_t>(n) * bytes_of(type_));
    if (da) {
      void* moved = c.temporary(1, type_, n);
      const auto entries = [&](auto* base, std::int64_t from) { return at(base, static_cast<std::size_t>(from) * bytes_of(type_)); };
      const auto multiply = [&](std::int64_t steps, const void* before, const void* factors, void* to) {
        Shape common;
        const Broadcast shape = d_.period ? broadcast({steps * d_.width / d_.period, d_.period}, {d_.period}, common)
                                          : broadcast({steps * d_.width}, {steps * d_.width}, common);
        b.binary(Binary::multiply, type_, shape, before, factors, to);
      };
      multiply(1, c.in[2], da, moved);
      if (d_.steps > 1) multiply(d_.steps - 1, c.out[0], d_.period ? da : entries(da, d_.width), entries(moved, d_.width));
      b.add_scaled(type_, n, 0, moved, drive, true);
    }
    b.diagonal(type_, d_, method_, c.in[0], drive, c.tangent_in[2], c.tangent_out[0], c.stop);
  }
  /// The norms of conj(a_t) λ_t, by the same recurrence one step at a time.
  void record_backpropagated(const BackwardCall& c, const void* carried) {
    Backend& b = c.backend;
    const std::size_t row = static_cast<std::size_t>(d_.width) * bytes_of(type_);
    DiagonalDims one = d_;
    one.steps = 1;
    int power = exponent_;
    double norm = 0.0;
    void* const spare[] = {passes_[0].resize(b, type_, d_.width), passes_[1].resize(b, type_, d_.width)};
    log2_backpropagated_.assign(1, std::vector<double>(static_cast<std::size_t>(d_.steps)));
    for (std::int64_t t = d_.steps - 1; t >= 0; --t) {
      const std::size_t before = static_cast<std::size_t>(t) * row;
      void* const passed = spare[t % 2];
      b.zero(passed, row);
      b.diagonal_adjoint(type_, one, ScanMethod::steps, d_.period ? c.in[0] : at(c.in[0], before), at(c.out[0], before),
                         t ? at(c.out[0], before - row) : c.in[2], at(c.grad_out[0], before), carried, nullptr, true, nullptr, true, passed,
                         &norm, &power, c.stop);
      log2_backpropagated_[0][static_cast<std::size_t>(t)] = b.log2_norm(type_, d_.width, passed, power);
      carried = passed;
    }
  }
  /// y, in units of 2^exponent_, = itself and x, in plain ones. The unit stays or becomes 1, or is that of the larger where neither holds
  /// both.
  void add_plain(Backend& b, const void* x, void* y) {
    const int own = exponent_ == 0 ? 0 : b.exponent(type_, d_.width, y), added = exponent_ == 0 ? 0 : b.exponent(type_, d_.width, x);
    int unit = exponent_;
    if (own == no_exponent || added == infinite_exponent || own == infinite_exponent)
      unit = 0;
    else if (added != no_exponent && exponent_ != 0)
      unit = std::abs(std::max(own + exponent_, added)) > 32 ? std::max(own + exponent_, added) : 0;
    if (unit != exponent_) b.add_scaled(type_, d_.width, exponent_ - unit, y, y, false);
    b.add_scaled(type_, d_.width, -unit, x, y, true);
    exponent_ = unit;
  }
  Cost cost() const override {
    const double n = static_cast<double>(d_.steps * d_.width), each = is_complex(type_) ? 8.0 : 2.0;
    const double arrays = d_.period ? 2.0 : 3.0;
    const double passes = method_ == ScanMethod::steps    ? 0.0
                          : method_ == ScanMethod::chunks ? 2.0
                                                          : 2.0 * std::log2(static_cast<double>(d_.steps) + 1.0);
    return {(method_ == ScanMethod::steps ? 1.0 : 3.0) * each * n, (arrays + passes) * n * static_cast<double>(bytes_of(type_))};
  }
  EvaluationOrder evaluation_order() const override {
    switch (method_) {
      case ScanMethod::tree: return {.form = Form::scan, .draw = drawing::tree, .steps = d_.steps, .diagonal_scan = true};
      case ScanMethod::chunks:
        return {.form = Form::chunkwise, .draw = drawing::chunks, .steps = d_.steps, .chunk = order::diagonal_chunk, .diagonal_scan = true};
      case ScanMethod::steps: break;
    }
    return {.draw = drawing::diagonal, .steps = d_.steps};
  }

 private:
  DType type_;
  ScanMethod method_;
  DiagonalDims d_;
  std::int64_t batch_;
  bool initial_is_read_ = false;
  DeviceArray read_, passes_[2];
  Backend* backend_ = nullptr;
  const void* a_ = nullptr;
  const void* shown_ = nullptr;
  std::int64_t groups_ = 0;
  bool shown_invariant_ = false;
  DType shown_type_ = DType::f64;
};

class VandermondeOperation final : public Operation {
 public:
  VandermondeOperation(DType type, std::int64_t channels, std::int64_t modes, std::int64_t steps)
      : type_(type), channels_(channels), modes_(modes), steps_(steps) {}
  void forward(const ForwardCall& c) override { c.backend.vandermonde(type_, channels_, modes_, steps_, c.in[0], c.in[1], c.out[0]); }
  void backward(const BackwardCall& c) override {
    c.backend.vandermonde_adjoint(type_, channels_, modes_, steps_, c.in[0], c.in[1], c.grad_out[0], c.grad_in[0], c.grad_in[1]);
  }
  void tangent(const TangentCall& c) override {  // sum_n dw a^k + k (w da) a^(k-1)
    Backend& b = c.backend;
    const void *dw = c.tangent_in[0], *da = c.tangent_in[1];
    if (dw)
      b.vandermonde(type_, channels_, modes_, steps_, dw, c.in[1], c.tangent_out[0]);
    else
      b.zero(c.tangent_out[0], static_cast<std::size_t>(channels_ * steps_) * bytes_of(type_));
    const std::int64_t later = steps_ - 1;
    if (!da || later == 0) return;
    void *product = c.temporary(0, type_, channels_ * modes_), *lower = c.temporary(1, type_, channels_ * later),
         *times = c.temporary(2, type_, later), *made = c.temporary(3, type_, channels_ * later);
    Shape common;
    b.binary(Binary::multiply, type_, broadcast({channels_ * modes_}, {channels_ * modes_}, common), c.in[0], da, product);
    b.vandermonde(type_, channels_, modes_, later, product, c.in[1], lower);
    std::vector<double> powers;
    for (std::int64_t k = 1; k < steps_; ++k) powers.insert(powers.end(), {static_cast<double>(k), 0.0});
    const std::vector<char> bytes = narrowed(real_of(type_), powers);
    b.upload(times, bytes.data(), bytes.size());
    b.binary(Binary::multiply, type_, broadcast({channels_, later}, {later}, common), lower, times, made);
    Strided after_first;
    after_first.rank = 2;
    after_first.size[0] = channels_;
    after_first.stride[0] = steps_;
    after_first.size[1] = later;
    after_first.stride[1] = after_first.offset = 1;
    after_first.elements = channels_ * later;
    b.scatter(type_, after_first, made, c.tangent_out[0], true);
  }
  Cost cost() const override {
    const double n = static_cast<double>(channels_ * steps_);
    return {8.0 * n * static_cast<double>(modes_), n * static_cast<double>(bytes_of(type_))};
  }

 private:
  DType type_;
  std::int64_t channels_, modes_, steps_;
};

/// kernel [C, steps] = sum_n w[c, n] a[c, n]^k.
Var vandermonde(Var w, Var a, std::int64_t steps) {
  const std::int64_t channels = a.dim(0), modes = a.dim(1);
  RECLAB_DEMAND(is_complex(a.dtype()) && w.dtype() == a.dtype() && w.shape() == a.shape());
  return a.graph->apply(std::make_unique<VandermondeOperation>(a.dtype(), channels, modes, steps), {w, a},
                        {{Shape{channels, steps}, a.dtype()}})[0];
}

/// Knows the transition of a bank that is run as a convolution; passes its input through.
class TransitionOnly final : public Memory {
 public:
  TransitionOnly(DType type, std::int64_t width) : type_(type), width_(width) {}
  bool carries() const override { return false; }
  Transition transition() const override { return Transition::diagonal(width_, false); }
  void factors(std::int64_t, std::span<std::complex<double>> factors) override {
    std::ranges::copy(to_complex(*backend_, type_, a_, std::ssize(factors)), factors.begin());
  }
  void forward(const ForwardCall& c) override {
    backend_ = &c.backend;
    a_ = c.in[0];
    c.backend.add_scaled(type_, width_, 0, c.in[0], c.out[0], false);
  }
  void backward(const BackwardCall& c) override {
    RECLAB_DEMAND((carried_.empty() || !carried_[0]) && "a convolution covers the whole sequence");
    log2_norms_.clear();
    exponent_ = 0;
    if (c.grad_in[0]) c.backend.add_scaled(type_, width_, 0, c.grad_out[0], c.grad_in[0], true);
  }
  void tangent(const TangentCall& c) override { c.backend.add_scaled(type_, width_, 0, c.tangent_in[0], c.tangent_out[0], false); }
  Cost cost() const override { return {}; }

 private:
  DType type_;
  std::int64_t width_;
  Backend* backend_ = nullptr;
  const void* a_ = nullptr;
};

std::pair<Memory*, Var> witness(Var a) {
  auto operation = std::make_unique<TransitionOnly>(a.dtype(), count(a.shape()));
  Memory* memory = operation.get();
  return {memory, a.graph->apply(std::move(operation), {a}, {{a.shape(), a.dtype()}})[0]};
}

}  // namespace

MemoryVars diagonal(Graph& graph, Form form, Var a, Var b, Var shown) {
  return diagonal_from(graph, form, a, b, graph.leaf(LeafKind::variable, Shape(b.shape().begin() + 1, b.shape().end()), b.dtype()), shown);
}

MemoryVars diagonal_from(Graph& graph, Form form, Var a, Var b, Var initial, Var shown) {
  const std::int64_t steps = b.dim(0), batch = b.dim(1);
  const bool invariant = a.shape().size() < b.shape().size();
  Shape state(b.shape().begin() + 1, b.shape().end());
  MemoryVars vars;
  vars.initial = {initial};
  RECLAB_DEMAND(a.dtype() == b.dtype());
  if (form == Form::convolution && invariant && is_complex(b.dtype())) {
    const std::int64_t channels = count(a.shape());
    const auto [memory, own] = witness(a);
    const Var factors = reshape(own, {channels, 1});
    std::vector<double> ones(static_cast<std::size_t>(channels), 1.0);
    const Var one = graph.constant({channels, 1}, ones);
    const Var weights = complex(one, affine(one, 0.0, 0.0));
    const Var kernel = vandermonde(weights, factors, steps);
    // The response to the initial state, a^(t+1) s_0, is the convolution with an impulse at step 0.
    const Var driven = reshape(b, {steps, batch, channels});
    const Var first = slice(driven, 0, 0, 1) + reshape(vars.initial[0], {1, batch, channels}) * reshape(own, {1, 1, channels});
    Var input = first;
    if (steps > 1) {
      const Var parts[] = {first, slice(driven, 0, 1, steps)};
      input = concat(parts, 0);
    }
    vars.memory = memory;
    vars.trajectories = {reshape(convolve(kernel, input), b.shape())};
    vars.finals = {last(vars.trajectories[0])};
    return vars;
  }
  DiagonalDims dims{steps, count(state), invariant ? count(a.shape()) : 0};
  RECLAB_DEMAND(invariant ? count(state) / batch == count(a.shape()) : a.shape() == b.shape());
  auto operation = std::make_unique<Diagonal>(b.dtype(),
                                              form == Form::scan        ? ScanMethod::tree
                                              : form == Form::chunkwise ? ScanMethod::chunks
                                                                        : ScanMethod::steps,
                                              dims, batch);
  vars.memory = operation.get();
  std::vector<Var> inputs{a, b, vars.initial[0]};
  if (shown) {
    const bool constant = shown.shape().size() < 3;
    operation->show(constant ? count(shown.shape()) : count(shown.shape()) / (steps * batch), constant, shown.dtype());
    inputs.push_back(detach(shown));
  }
  vars.trajectories = graph.apply(std::move(operation), std::move(inputs), {{b.shape(), b.dtype()}});
  if (invariant && !shown)
    describe(vars.memory, {.structure = LinearSystem::Structure::modes, .input = b, .output = vars.trajectories[0], .a = a});
  vars.finals = {last(vars.trajectories[0])};
  return vars;
}

Var states_before(const MemoryVars& vars) {
  auto* operation = dynamic_cast<Diagonal*>(vars.memory);
  RECLAB_DEMAND(operation);
  operation->read_initial();
  return chunks::previous_state(vars.initial[0], vars.trajectories[0]);
}

BankVars diagonal_bank(Graph& graph, Form form, Var a, Var b, Var w, Var u) {
  const std::int64_t steps = u.dim(0), batch = u.dim(1), channels = u.dim(2), modes = a.dim(1);
  BankVars vars;
  if (form == Form::convolution) {
    const auto [memory, own] = witness(a);
    vars.memory = memory;
    vars.initial = {graph.leaf(LeafKind::variable, {batch, channels, modes}, a.dtype())};
    vars.trajectories = {Var{}};
    vars.finals = {Var{}};
    const auto complexed = [](Var x) { return is_complex(x.dtype()) ? x : complex(x, affine(x, 0.0, 0.0)); };
    const Var factors = complexed(own);
    const Var kernel = real(vandermonde(complexed(w * b), factors, steps));
    vars.output = convolve(kernel, u);
    // The initial state's own response, Re sum_n w a^(t+1) s_0[n], one a sequence of the batch.
    std::vector<Var> responses;
    for (std::int64_t i = 0; i < batch; ++i) {
      const Var start = reshape(slice(vars.initial[0], 0, i, i + 1), {channels, modes});
      responses.push_back(reshape(transpose(real(vandermonde(complexed(w * start * own), factors, steps))), {steps, 1, channels}));
    }
    vars.output = vars.output + concat(responses, 1);
    return vars;
  }
  const Var input = reshape(u, {steps, batch, channels, 1});
  const bool is_real = !is_complex(a.dtype());
  static_cast<MemoryVars&>(vars) = diagonal(graph, form, a, (is_real ? input : complex(input, affine(input, 0.0, 0.0))) * b);
  vars.output = is_real ? sum(vars.trajectories[0] * w, -1) : sum(real(vars.trajectories[0] * w), -1);
  describe(vars.memory, {.structure = LinearSystem::Structure::modes, .input = u, .output = vars.output, .a = a, .b = b, .c = w});
  return vars;
}

Var diagonal(Layer& layer, const StateSpec& state, Var a, Var added, Var shown) {
  const Var b = apart(layer, added, {a});
  layer.declare_forms({Form::scan, Form::chunkwise});
  if (a.shape().size() < b.shape().size() && is_complex(b.dtype())) layer.declare_forms({Form::convolution});
  const MemoryVars vars = diagonal(layer.graph(), layer.form(), a, b, shown);
  layer.declare({state}, vars);
  if (!state.auxiliary && vars.trajectories[0])
    declare_mixing(layer, {.name = state.name, .value = b, .output = vars.trajectories[0], .groups = count(state.shape), .group = "unit"});
  return vars.trajectories[0];
}

Var diagonal_bank(Layer& layer, const StateSpec& state, Var a, Var b, Var w, Var channels) {
  const Var u = apart(layer, channels, {a, b, w});
  layer.declare_forms({Form::scan, Form::chunkwise, Form::convolution});
  const BankVars vars = diagonal_bank(layer.graph(), layer.form(), a, b, w, u);
  layer.declare({state}, vars);
  declare_mixing(layer, {.name = state.name, .value = u, .output = vars.output, .groups = u.dim(2), .group = "channel"});
  return vars.output;
}

}  // namespace reclab
