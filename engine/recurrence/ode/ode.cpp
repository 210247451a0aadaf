// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/ode/ode.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "array/demand.h"
#include "array/device_array.h"

namespace reclab {

OdeGradient declare_ode(Layer& layer, const Sentence& why_no_adjoint) {
  auto* listener = dynamic_cast<OdeListener*>(&layer);
  if (!listener) return OdeGradient::steps;
  listener->solves(why_no_adjoint);
  return why_no_adjoint.empty() ? listener->ode_gradient() : OdeGradient::steps;
}

namespace {

/// An explicit Runge-Kutta method: stage i is at s + sum_j a[i][j] k_j, the step to s + sum_i b[i] k_i, with k_i = f there.
struct Tableau {
  std::vector<std::vector<double>> a;
  std::vector<double> b;
};
Tableau tableau(const std::string& method) {
  if (method == "euler") return {{{}}, {1.0}};
  if (method == "midpoint") return {{{}, {0.5}}, {0.0, 1.0}};
  if (method == "rk4") return {{{}, {0.5}, {0.0, 0.5}, {0.0, 0.0, 1.0}}, {1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0}};
  RECLAB_DEMAND(method == "rk4_38");
  return {{{}, {1.0 / 3.0}, {-1.0 / 3.0, 1.0}, {1.0, -1.0, 1.0}}, {0.125, 0.375, 0.375, 0.125}};
}

/// f as a graph of its own.
struct Slope {
  std::unique_ptr<Graph> graph;
  Var at, value;

  Slope(const std::function<Var(Var)>& f, Graph& outer, Shape shape, bool frozen)
      : graph(std::make_unique<Graph>(outer.real(), &outer, frozen)),
        at(graph->leaf(LeafKind::variable, shape, outer.real())),
        value(graph->adopt(f(at))) {
    RECLAB_DEMAND(value.shape() == shape);
  }
};

class SolvedByAdjoint final : public Operation {
 public:
  SolvedByAdjoint(Slope slope, std::unique_ptr<Slope> unweighted, Tableau method, std::int64_t steps, bool checkpoints)
      : slope_(std::move(slope)),
        unweighted_(std::move(unweighted)),
        method_(std::move(method)),
        steps_(steps),
        checkpoints_(checkpoints),
        n_(count(slope_.at.shape())) {}

  void forward(const ForwardCall& c) override {
    prepare(c.backend, c.in);
    c.backend.copy(c.out[0], c.in[0], bytes());
    for (std::int64_t m = 0; m < steps_; ++m) step(c.backend, c.out[0], 1.0);
  }

  /// With h = s(t) and a = dL/ds(t), backward in time: dh = -f, da = (df/ds)^T a, and the gradients of what f reads by (df/dtheta)^T a.
  void backward(const BackwardCall& c) override {
    Backend& b = c.backend;
    prepare(b, c.in);
    slope_.graph->clear_gradients();
    std::vector<DeviceArray> before;
    if (checkpoints_) {
      b.copy(h_.data(), c.in[0], bytes());
      for (std::int64_t m = 0; m < steps_; ++m) {
        b.copy(before.emplace_back(b, type(), n_).data(), h_.data(), bytes());
        step(b, h_.data(), 1.0);
      }
    }
    b.copy(h_.data(), c.out[0], bytes());
    b.copy(a_.data(), c.grad_out[0], bytes());
    for (std::int64_t m = steps_; m-- > 0;) {
      for (std::size_t i = 0; i < method_.b.size(); ++i) {
        combine(b, h_.data(), method_.a[i], k_, -1.0, at_.data());
        combine(b, a_.data(), method_.a[i], back_, 1.0, seed_.data());
        pull_back(b, i);
      }
      combine(b, a_.data(), method_.b, back_, 1.0, a_.data());
      if (checkpoints_)
        b.copy(h_.data(), before[static_cast<std::size_t>(m)].data(), bytes());
      else
        combine(b, h_.data(), method_.b, k_, -1.0, h_.data());
    }
    slope_.graph->backward({}, Graph::Part::invariant);
    const auto& captures = slope_.graph->captures();
    for (std::size_t i = 0; i < captures.size(); ++i)
      if (const void* gradient = slope_.graph->gradient(captures[i].inner); gradient && c.grad_in[1 + i])
        b.add_scaled(captures[i].inner.dtype(), count(captures[i].inner.shape()), 0, gradient, c.grad_in[1 + i], true);
    if (c.grad_in[0]) b.add_scaled(type(), n_, 0, a_.data(), c.grad_in[0], true);
  }

  /// The derivative of the steps themselves.
  void tangent(const TangentCall& c) override {
    Backend& b = c.backend;
    prepare(b, c.in);
    Graph& graph = *slope_.graph;
    const auto& captures = graph.captures();
    for (std::size_t i = 0; i < captures.size(); ++i) graph.bind_tangent(captures[i].inner, c.tangent_in[1 + i]);
    graph.push_tangents({}, Graph::Part::invariant);
    b.copy(h_.data(), c.in[0], bytes());
    if (c.tangent_in[0])
      b.copy(a_.data(), c.tangent_in[0], bytes());
    else
      b.zero(a_.data(), bytes());
    for (std::int64_t m = 0; m < steps_; ++m) {
      for (std::size_t i = 0; i < method_.b.size(); ++i) {
        combine(b, h_.data(), method_.a[i], k_, 1.0, at_.data());
        combine(b, a_.data(), method_.a[i], back_, 1.0, seed_.data());
        graph.bind_tangent(slope_.at, seed_.data());
        evaluate(b, slope_, i);
        graph.push_tangents({}, Graph::Part::varying);
        if (const void* moves = graph.tangent(slope_.value))
          b.copy(back_[i].data(), moves, bytes());
        else
          b.zero(back_[i].data(), bytes());
      }
      combine(b, h_.data(), method_.b, k_, 1.0, h_.data());
      combine(b, a_.data(), method_.b, back_, 1.0, a_.data());
    }
    b.copy(c.tangent_out[0], a_.data(), bytes());
  }

  Cost cost() const override {
    const Cost one = slope_.graph->cost();
    const double times = static_cast<double>(steps_) * static_cast<double>(method_.b.size());
    return {one.flops * times, one.bytes * times, one.launches * times};
  }
  bool is_pure() const override { return true; }
  bool reads_input(std::size_t input) const override { return input > 0 || checkpoints_; }

 private:
  Slope slope_;
  std::unique_ptr<Slope> unweighted_;  // without gradients of what f reads, for stages of weight 0; none where there are no such
  Tableau method_;
  std::int64_t steps_;
  bool checkpoints_;
  std::int64_t n_;
  DeviceArray h_, a_, at_, seed_, part_;
  std::vector<DeviceArray> k_, back_;  // of each stage: f, and (df/ds)^T a or how f moves

  DType type() const { return slope_.at.dtype(); }
  std::size_t bytes() const { return static_cast<std::size_t>(n_) * bytes_of(type()); }

  void prepare(Backend& b, std::span<const void* const> in) {
    if (!slope_.graph->is_allocated()) {
      slope_.graph->allocate(b, true);
      if (unweighted_) unweighted_->graph->allocate(b, true);
      for (DeviceArray* array : {&h_, &a_, &at_, &seed_, &part_}) array->resize(b, type(), n_);
      for (std::size_t i = 0; i < method_.b.size(); ++i) {
        k_.emplace_back(b, type(), n_);
        back_.emplace_back(b, type(), n_);
      }
    }
    for (Slope* slope : {&slope_, unweighted_.get()}) {
      if (!slope) continue;
      const auto& captures = slope->graph->captures();
      for (std::size_t i = 0; i < captures.size(); ++i) slope->graph->bind(captures[i].inner, in[1 + i]);
      slope->graph->bind(slope->at, at_.data());
      slope->graph->forward({}, Graph::Part::invariant);
    }
  }

  /// to = base + sign sum_j weights[j] of[j]; `to` may be `base`.
  void combine(Backend& b, const void* base, std::span<const double> weights, std::span<const DeviceArray> of, double sign, void* to) {
    if (to != base) b.copy(to, base, bytes());
    for (std::size_t j = 0; j < weights.size(); ++j) {
      if (weights[j] == 0.0) continue;
      b.unary(Unary::affine, type(), n_, of[j].data(), part_.data(), sign * weights[j], 0.0);
      b.add_scaled(type(), n_, 0, part_.data(), to, true);
    }
  }

  /// k_[i] = f(at_)
  void evaluate(Backend& b, Slope& slope, std::size_t i) {
    slope.graph->forward({}, Graph::Part::varying);
    b.copy(k_[i].data(), slope.graph->value(slope.value), bytes());
  }

  void step(Backend& b, void* s, double sign) {
    for (std::size_t i = 0; i < method_.b.size(); ++i) {
      combine(b, s, method_.a[i], k_, sign, at_.data());
      evaluate(b, slope_, i);
    }
    combine(b, s, method_.b, k_, sign, s);
  }

  /// k_[i] = f(at_), back_[i] = (df/ds)^T seed_, and b[i] (df/dtheta)^T seed_ to the gradients of what f reads.
  void pull_back(Backend& b, std::size_t i) {
    const double weight = method_.b[i] == 0.0 ? 1.0 : method_.b[i];
    Slope& slope = method_.b[i] == 0.0 ? *unweighted_ : slope_;
    Graph& graph = *slope.graph;
    evaluate(b, slope, i);
    graph.clear_gradients(Graph::Part::varying);
    if (void* gradient = graph.gradient(slope.value)) {
      b.unary(Unary::affine, type(), n_, seed_.data(), part_.data(), weight, 0.0);
      b.add_scaled(type(), n_, 0, part_.data(), gradient, true);
    }
    graph.backward({}, Graph::Part::varying);
    if (const void* gradient = graph.gradient(slope.at))
      b.unary(Unary::affine, type(), n_, gradient, back_[i].data(), 1.0 / weight, 0.0);
    else
      b.zero(back_[i].data(), bytes());
  }
};

}  // namespace

Var solve_by_adjoint(const std::string& method, std::int64_t steps, OdeGradient gradient, const std::function<Var(Var)>& f, Var s) {
  RECLAB_DEMAND(gradient != OdeGradient::steps && steps > 0);
  Graph& outer = *s.graph;
  Tableau rule = tableau(method);
  Slope slope(f, outer, s.shape(), false);
  std::unique_ptr<Slope> unweighted;
  if (std::ranges::find(rule.b, 0.0) != rule.b.end()) unweighted = std::make_unique<Slope>(f, outer, s.shape(), true);
  std::vector<Var> inputs{s};
  for (const Graph::Capture& capture : slope.graph->captures()) inputs.push_back(capture.outer);
  return outer.apply(std::make_unique<SolvedByAdjoint>(std::move(slope), std::move(unweighted), std::move(rule), steps,
                                                       gradient == OdeGradient::checkpoints),
                     inputs, {{s.shape(), s.dtype()}})[0];
}

}  // namespace reclab
