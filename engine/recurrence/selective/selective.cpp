// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "array/demand.h"
#include "array/host.h"
#include "autodiff/ops.h"
#include "recurrence/composed.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/evaluation_order.h"
#include "recurrence/mixing/mixing.h"
#include "recurrence/plan.h"
#include "recurrence/selective/selective.h"

namespace reclab {
namespace {

class Selective final : public Memory, public HasEvaluationOrder {
 public:
  Selective(DType type, const SelectiveDims& dims, bool record) : type_(type), d_(dims), record_(record) {}

  Transition transition() const override { return Transition::diagonal(d_.channels * d_.states, true); }
  void factors(std::int64_t t, std::span<std::complex<double>> factors) override {
    const auto dt = to_double(*backend_, type_, in_[0], d_.channels, t * d_.batch * d_.channels),
               rates = to_double(*backend_, type_, in_[1], std::ssize(factors));
    for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = std::exp(dt[i / static_cast<std::size_t>(d_.states)] * rates[i]);
  }

  // Inputs dt, a, x, b, c and the initial state. Outputs y, and all states or the last one.
  void forward(const ForwardCall& c) override {
    backend_ = &c.backend;
    in_ = {c.in[0], c.in[1]};
    c.backend.selective(type_, d_, c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], c.in[5], c.out[0], record_ ? c.out[1] : nullptr,
                        record_ ? nullptr : c.out[1], c.stop);
  }
  void backward(const BackwardCall& c) override {
    log2_norms_.assign(1, std::vector<double>(static_cast<std::size_t>(d_.steps)));
    const void* carried = carried_.empty() ? nullptr : carried_[0];
    if (!carried) exponent_ = 0;
    c.backend.selective_adjoint(type_, d_, c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], c.in[5], c.grad_out[0],
                                record_ ? c.grad_out[1] : nullptr, carried, c.grad_in[0], c.grad_in[1], c.grad_in[2], c.grad_in[3],
                                c.grad_in[4], c.grad_in[5], log2_norms_[0].data(), &exponent_, c.stop);
  }
  void tangent(const TangentCall& c) override {
    if (!composed_) composed_ = composed();
    composed_->tangent(
        c, d_.steps,
        {.output = c.tangent_out[0], .states = record_ ? c.tangent_out[1] : nullptr, .last = record_ ? nullptr : c.tangent_out[1]});
  }
  Cost cost() const override {
    // The exponential counted as the multiply-adds that it is made of.
    const double rows = static_cast<double>(d_.steps * d_.batch), channels = static_cast<double>(d_.channels),
                 states = static_cast<double>(d_.states);
    return {rows * channels * (40.0 * states + 1.0),
            rows * (3.0 * channels + 2.0 * states + (record_ ? channels * states : 0.0)) * static_cast<double>(bytes_of(type_))};
  }
  EvaluationOrder evaluation_order() const override { return {.draw = drawing::steps, .steps = d_.steps}; }

 private:
  DType type_;
  SelectiveDims d_;
  bool record_;
  Backend* backend_ = nullptr;
  std::array<const void*, 2> in_{};
  std::unique_ptr<Composed> composed_;

  std::unique_ptr<Composed> composed() const;
};

/// Of array operations, in any form of the diagonal recurrence.
SelectiveVars by_arrays(Graph& graph, Form form, Var dt, Var a, Var x, Var b, Var c) {
  const std::int64_t steps = x.dim(0), batch = x.dim(1), channels = x.dim(2), states = a.dim(1);
  const Shape wide{steps, batch, channels, 1}, few{steps, batch, 1, states};
  SelectiveVars vars;
  static_cast<MemoryVars&>(vars) = diagonal(graph, form, exp(reshape(dt, wide) * a), reshape(dt * x, wide) * reshape(b, few));
  vars.output = sum(vars.trajectories[0] * reshape(c, few), -1);
  return vars;
}

std::unique_ptr<Composed> Selective::composed() const {
  using Role = Composed::Role;
  const Shape wide{d_.batch, d_.channels}, few{d_.batch, d_.states};
  const std::vector<Composed::Input> inputs{{Role::sequence, wide}, {Role::constant, {d_.channels, d_.states}},
                                            {Role::sequence, wide}, {Role::sequence, few},
                                            {Role::sequence, few},  {Role::state, {d_.batch, d_.channels, d_.states}}};
  return std::make_unique<Composed>(type_, inputs, [](Graph& graph, std::span<const Var> in) {
    const SelectiveVars vars = by_arrays(graph, Form::sequential, in[0], in[1], in[2], in[3], in[4]);
    return Composed::Made{vars.initial[0], vars.output, vars.trajectories[0]};
  });
}

}  // namespace

SelectiveVars selective(Graph& graph, Form form, Var dt, Var a, Var x, Var b, Var c, bool record) {
  const std::int64_t steps = x.dim(0), batch = x.dim(1), channels = x.dim(2), states = a.dim(1);
  RECLAB_DEMAND(dt.shape() == x.shape() && b.shape() == c.shape() && b.dim(2) == states && a.dim(0) == channels);
  if (form != Form::sequential) return by_arrays(graph, form, dt, a, x, b, c);
  SelectiveVars vars;
  const Shape state{batch, channels, states};
  vars.initial = {graph.leaf(LeafKind::variable, state, x.dtype())};
  auto operation = std::make_unique<Selective>(x.dtype(), SelectiveDims{steps, batch, channels, states}, record);
  vars.memory = operation.get();
  const auto made = graph.apply(std::move(operation), {dt, a, x, b, c, vars.initial[0]},
                                {{x.shape(), x.dtype()}, {record ? Shape{steps, batch, channels, states} : state, x.dtype()}});
  vars.output = made[0];
  vars.trajectories = {record ? made[1] : Var{}};
  vars.finals = {record ? last(made[1]) : made[1]};
  return vars;
}

Var selective(Layer& layer, const StateSpec& state, Var dt, Var a, Var value, Var b, Var c) {
  // Steps, keys and queries are made of x as well: the written value gets memory of its own, so that it can be moved alone.
  const Var x = layer.records() ? affine(value, 1.0, 0.0) : value;
  layer.declare_forms({Form::scan, Form::chunkwise});
  const SelectiveVars vars = selective(layer.graph(), layer.form(), dt, a, x, b, c, layer.records());
  layer.declare({state}, vars);
  declare_mixing(layer, {.name = state.name, .value = x, .output = vars.output, .groups = x.dim(2), .group = "channel"});
  return vars.output;
}

}  // namespace reclab
