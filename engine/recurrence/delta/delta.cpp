// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cassert>

#include "array/device_array.h"
#include "array/host.h"
#include "recurrence/chunks.h"
#include "recurrence/delta/delta.h"
#include "recurrence/delta/drawing.h"
#include "recurrence/step/step.h"

namespace reclab {
namespace {

/// (I + A)^-1 of strictly lower triangular matrices [..., n, n]; what A has elsewhere is not read.
class UnitLowerInverse final : public Operation {
 public:
  UnitLowerInverse(DType type, std::int64_t batch, std::int64_t n) : type_(type), batch_(batch), n_(n) {}
  void forward(const ForwardCall& c) override { c.backend.invert_unit_lower(type_, batch_, n_, c.in[0], c.out[0]); }
  void backward(const BackwardCall& c) override {  // gA = -X^T g X^T
    if (!c.grad_in[0]) return;
    const std::int64_t stride = n_ * n_;
    void* half = scratch_.resize(c.backend, type_, 2 * batch_ * stride);
    void* negative = scratch_.at(batch_ * stride);
    c.backend.matmul(type_, {batch_, n_, n_, n_, true, false, stride, stride, stride}, c.out[0], c.grad_out[0], half, false);
    c.backend.matmul(type_, {batch_, n_, n_, n_, false, true, stride, stride, stride}, half, c.out[0], negative, false);
    c.backend.unary(Unary::affine, type_, batch_ * stride, negative, negative, -1.0, 0.0);
    c.backend.add_scaled(type_, batch_ * stride, 0, negative, c.grad_in[0], true);
  }
  void tangent(const TangentCall& c) override {  // -X dA X, dA too being zero but below its diagonal
    const std::int64_t stride = n_ * n_;
    void *half = c.temporary(0, type_, batch_ * stride), *negative = c.temporary(1, type_, batch_ * stride);
    c.backend.matmul(type_, {batch_, n_, n_, n_, false, false, stride, stride, stride}, c.out[0], c.tangent_in[0], half, false);
    c.backend.matmul(type_, {batch_, n_, n_, n_, false, false, stride, stride, stride}, half, c.out[0], negative, false);
    c.backend.unary(Unary::affine, type_, batch_ * stride, negative, c.tangent_out[0], -1.0, 0.0);
  }
  Cost cost() const override {
    const double n = static_cast<double>(n_), b = static_cast<double>(batch_);
    return {b * n * n * n / 3.0, 2.0 * b * n * n * static_cast<double>(bytes_of(type_))};
  }

 private:
  DType type_;
  std::int64_t batch_, n_;
  DeviceArray scratch_;
};

Var unit_lower_inverse(Var a) {
  const std::int64_t n = a.dim(-1);
  assert(a.dim(-2) == n);
  return a.graph->apply(std::make_unique<UnitLowerInverse>(a.dtype(), count(a.shape()) / (n * n), n), {a}, {{a.shape(), a.dtype()}})[0];
}

OuterVars chunkwise(Graph& graph, Var q, Var k, Var v, Var beta) {
  const std::int64_t steps = q.dim(0), batch = q.dim(1), heads = q.dim(2), key = q.dim(3), value = v.dim(3);
  const std::int64_t chunk = std::min<std::int64_t>(32, steps);
  const Var Q = chunks::split(q, chunk), K = chunks::split(k, chunk), V = chunks::split(v, chunk), B = chunks::split(beta, chunk);
  const auto start = chunks::start(graph, {batch, heads, key, value}, v.dtype());
  start.memory->goes({.form = Form::chunkwise, .draw = drawing::rewrites, .steps = steps, .chunk = 32, .in = {q, k, v, beta}});
  // The chunk writes K^T (U - W S) with S the memory before it; T solves for what the steps of the chunk write over each other.
  const Var scaled = K * B;
  const Var T = unit_lower_inverse(matmul_transposed(scaled, K) * chunks::triangle(graph, chunk, 1.0, 0.0, true));
  const Var W = matmul(T, scaled), U = matmul(T, V * B);
  const StepVars over = step(graph, batch, {{"S", {heads, key, value}}}, {K, W, U},
                             [](Cell&, std::span<const Var> chunk_of, std::span<const Var> s) {
                               const Var written = chunk_of[2] - matmul(chunk_of[1], s[0]);
                               return std::vector<Var>{s[0] + matmul(transpose(chunk_of[0]), written)};
                             },
                             {start.state});
  start.memory->follow(over.memory);
  const Var S = chunks::before(start.state, over.trajectories[0]);
  const Var weights = matmul_transposed(Q, K) * chunks::triangle(graph, chunk, 1.0, 0.0);
  OuterVars vars;
  vars.memory = start.memory;
  vars.initial = {start.leaf};
  vars.trajectories = {Var{}};
  vars.finals = over.finals;
  vars.output = chunks::join(matmul(Q, S) + matmul(weights, U - matmul(W, S)), steps);
  return vars;
}

}  // namespace

OuterVars delta(Graph& graph, Form form, Var q, Var k, Var v, Var beta) {
  const std::int64_t batch = q.dim(1), heads = q.dim(2), key = q.dim(3), value = v.dim(3);
  assert(k.shape() == q.shape() && v.dim(2) == heads && beta.dim(3) == 1);
  if (form == Form::chunkwise) return chunkwise(graph, q, k, v, beta);
  const StepVars stepped = step(graph, batch, {{"S", {heads, key, value}}}, {k, v, beta},
                                [](Cell&, std::span<const Var> u, std::span<const Var> s) {
                                  const Var row = chunks::with_axis(u[0], -2), column = chunks::with_axis(u[0], -1);
                                  const Var missing = chunks::with_axis(u[1], -2) - matmul(row, s[0]);
                                  return std::vector<Var>{s[0] + column * (missing * chunks::with_axis(u[2], -2))};
                                },
                                {}, Form::sequential, Sees::own_column);
  let_be_low_rank(stepped, 1, [&graph, k = graph.adopt(k), beta = graph.adopt(beta), batch, heads, key](std::int64_t t, std::span<double> scale, std::span<double> left, std::span<double> right) {
    const auto row = [&](Var of, std::int64_t n) { return to_double(graph.backend(), of.dtype(), graph.value(of), n, t * batch * n); };
    const std::vector<double> keys = row(k, heads * key), shares = row(beta, heads);
    std::ranges::fill(scale, 1.0);
    std::ranges::copy(keys, right.begin());
    for (std::size_t i = 0; i < keys.size(); ++i) left[i] = -shares[i / static_cast<std::size_t>(key)] * keys[i];
  });
  OuterVars vars;
  static_cast<MemoryVars&>(vars) = stepped;
  vars.output = sum(vars.trajectories[0] * chunks::with_axis(q, -1), -2);
  return vars;
}

Var delta(Layer& layer, const StateSpec& state, Var q, Var k, Var v, Var beta) {
  layer.offer({Form::chunkwise});
  const OuterVars vars = delta(layer.graph(), layer.form(), q, k, v, beta);
  layer.declare({state}, vars);
  return vars.output;
}

}  // namespace reclab
