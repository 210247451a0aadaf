// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/independent/independent.h"

#include <algorithm>

#include "array/demand.h"
#include "array/device_array.h"
#include "array/host.h"
#include "autodiff/fresh.h"
#include "autodiff/ops.h"
#include "recurrence/evaluation_order.h"
#include "recurrence/plan.h"
#include "recurrence/step/step.h"

namespace reclab {
namespace {

Unary function_of(Activation f) {
  switch (f) {
    case Activation::identity: return Unary::affine;
    case Activation::relu: return Unary::relu;
    case Activation::sigmoid: return Unary::sigmoid;
    case Activation::tanh: return Unary::tanh;
  }
  return Unary::affine;
}
Var applied(Activation f, Var x) {
  switch (f) {
    case Activation::identity: return x;
    case Activation::relu: return relu(x);
    case Activation::sigmoid: return sigmoid(x);
    case Activation::tanh: return tanh(x);
  }
  return x;
}

class Independent final : public Memory, public OverwritesGradient, public HasEvaluationOrder {
 public:
  Independent(Unary f, DType type, std::int64_t steps, std::int64_t batch, std::int64_t n) : f_(f), type_(type), d_{steps, batch * n, n} {}

  Transition transition() const override { return Transition::diagonal(d_.period, true); }
  /// f'(x_t + u h_{t-1}) u.
  void factors(std::int64_t t, std::span<std::complex<double>> factors) override {
    const Slopes own = slopes(*backend_, t, 1);
    std::ranges::copy(to_complex(*backend_, type_, own.transition, d_.period), factors.begin());
  }

  void forward(const ForwardCall& c) override {
    backend_ = &c.backend;
    in_.assign(c.in.begin(), c.in.end());
    out_ = c.out[0];
    c.backend.independent(f_, type_, d_, c.in[1], c.in[0], c.in[2], c.out[0], c.stop);
  }
  void backward(const BackwardCall& c) override { backward(c, std::vector<char>(c.in.size())); }
  bool writes(std::size_t input) const override { return input == 0; }
  void backward(const BackwardCall& c, std::span<const char> fresh) override {
    Backend& b = c.backend;
    const std::int64_t rows = d_.steps * d_.width / d_.period;
    log2_norms_.assign(1, std::vector<double>(static_cast<std::size_t>(d_.steps)));
    const void* carried = carried_.empty() ? nullptr : carried_[0];
    if (!carried) exponent_ = 0;
    in_.assign(c.in.begin(), c.in.end());
    out_ = c.out[0];
    const Slopes own = slopes(b, 0, d_.steps);
    const std::int64_t n = d_.steps * d_.width;
    void *adjoint = !c.grad_in[0] || fresh[0] ? c.grad_in[0] : adjoint_.resize(b, type_, n),
         *with_state = c.grad_in[1] ? with_state_.resize(b, type_, n) : nullptr;
    b.diagonal_adjoint(type_, {d_.steps, d_.width, 0}, ScanMethod::steps, own.transition, c.out[0], c.in[2], c.grad_out[0], carried,
                       with_state, false, adjoint, false, c.grad_in[2], log2_norms_[0].data(), &exponent_, c.stop);
    Shape shape;
    const Broadcast alike = broadcast({n}, {n}, shape);
    if (c.grad_in[0]) {
      b.binary(Binary::multiply, type_, alike, own.slope, adjoint, adjoint);
      if (!fresh[0]) b.add_scaled(type_, n, 0, adjoint, c.grad_in[0], true);
    }
    if (c.grad_in[1]) {
      b.binary(Binary::multiply, type_, alike, own.slope, with_state, with_state);
      void* sum = sum_.resize(b, type_, d_.period);
      b.sum(type_, 1, rows, d_.period, 1.0, with_state, sum);
      b.add_scaled(type_, d_.period, 0, sum, c.grad_in[1], true);
    }
  }
  void tangent(const TangentCall& c) override {  // dh_t = f' u dh_{t-1} + f' (dx_t + du h_{t-1})
    Backend& b = c.backend;
    const std::int64_t n = d_.steps * d_.width;
    const std::size_t row = static_cast<std::size_t>(d_.width) * bytes_of(type_);
    const void *dx = c.tangent_in[0], *du = c.tangent_in[1];
    in_.assign(c.in.begin(), c.in.end());
    out_ = c.out[0];
    const Slopes own = slopes(b, 0, d_.steps);
    void* drive = zeros(b, adjoint_, d_.steps);
    Shape shape;
    if (du) {
      b.copy(drive, c.in[2], row);
      if (d_.steps > 1) b.copy(static_cast<char*>(drive) + row, c.out[0], static_cast<std::size_t>(d_.steps - 1) * row);
      b.binary(Binary::multiply, type_, broadcast({n / d_.period, d_.period}, {d_.period}, shape), drive, du, drive);
    }
    if (dx) b.add_scaled(type_, n, 0, dx, drive, true);
    b.binary(Binary::multiply, type_, broadcast({n}, {n}, shape), own.slope, drive, drive);
    b.diagonal(type_, {d_.steps, d_.width, 0}, ScanMethod::steps, own.transition, drive, c.tangent_in[2], c.tangent_out[0], c.stop);
  }
  Cost cost() const override {
    const double n = static_cast<double>(d_.steps * d_.width);
    return {3.0 * n, 2.0 * n * static_cast<double>(bytes_of(type_))};
  }
  EvaluationOrder evaluation_order() const override { return {.draw = drawing::steps, .steps = d_.steps}; }

 private:
  Unary f_;
  DType type_;
  DiagonalDims d_;
  Backend* backend_ = nullptr;
  std::vector<const void*> in_;
  const void* out_ = nullptr;

  // Kept from call to call, so that only the first takes memory.
  DeviceArray slope_, transition_, before_, at_, adjoint_, with_state_, sum_;

  void* zeros(Backend& b, DeviceArray& array, std::int64_t steps) const {
    void* made = array.resize(b, type_, steps * d_.width);
    b.zero(made, static_cast<std::size_t>(steps * d_.width) * bytes_of(type_));
    return made;
  }

  /// f' at the pre-activations of some steps, and the transition that follows; [steps, width].
  struct Slopes {
    const void *slope, *transition;
  };
  Slopes slopes(Backend& b, std::int64_t first, std::int64_t steps) {
    const std::int64_t width = d_.width, n = d_.period, all = steps * width;
    const std::size_t bytes = static_cast<std::size_t>(width) * bytes_of(type_);
    const auto row = [&](const void* base, std::int64_t t) { return static_cast<const char*>(base) + static_cast<std::size_t>(t) * bytes; };
    void *before = before_.resize(b, type_, all), *at = at_.resize(b, type_, all), *slope = zeros(b, slope_, steps),
         *transition = transition_.resize(b, type_, all);
    b.copy(before, first ? row(out_, first - 1) : static_cast<const char*>(in_[2]), bytes);
    if (steps > 1) b.copy(static_cast<char*>(before) + bytes, row(out_, first), static_cast<std::size_t>(steps - 1) * bytes);
    Shape shape;
    const Broadcast by_u = broadcast({all / n, n}, {n}, shape), alike = broadcast({all}, {all}, shape);
    b.binary(Binary::multiply, type_, by_u, before, in_[1], before);
    b.binary(Binary::add, type_, alike, row(in_[0], first), before, at);
    b.unary(Unary::affine, type_, all, at, before, 0.0, 1.0);
    b.unary_adjoint(f_, type_, all, at, row(out_, first), before, slope, 1.0, 0.0);
    b.binary(Binary::multiply, type_, by_u, slope, in_[1], transition);
    return {slope, transition};
  }
};

}  // namespace

MemoryVars independent(Graph& graph, Form form, Activation f, Var x, Var u) {
  const std::int64_t steps = x.dim(0), batch = x.dim(1), n = x.dim(2);
  RECLAB_DEMAND(!is_complex(x.dtype()) && u.shape() == Shape{n});
  if (is_newton(form))
    return step(
        graph, batch, {{"h", {n}}}, {x},
        [=](Cell&, std::span<const Var> now, std::span<const Var> h) { return std::vector<Var>{applied(f, now[0] + u * h[0])}; }, {}, form,
        Sees::own_entry);
  auto operation = std::make_unique<Independent>(function_of(f), graph.real(), steps, batch, n);
  MemoryVars vars;
  vars.memory = operation.get();
  vars.initial = {graph.leaf(LeafKind::variable, {batch, n}, graph.real())};
  vars.trajectories = graph.apply(std::move(operation), {x, u, vars.initial[0]}, {{x.shape(), x.dtype()}});
  vars.finals = {last(vars.trajectories[0])};
  return vars;
}

Var independent(Layer& layer, const StateSpec& state, Activation f, Var x, Var u) {
  layer.declare_forms({Form::newton, Form::quasi_newton, Form::damped_newton});
  const MemoryVars vars = independent(layer.graph(), layer.form(), f, x, u);
  layer.declare({state}, vars);
  return vars.trajectories[0];
}

}  // namespace reclab
