// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "array/demand.h"
#include "array/device_array.h"
#include "array/host.h"
#include "recurrence/chunks.h"
#include "recurrence/delta/delta.h"
#include "recurrence/delta/drawing.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/mixing/mixing.h"
#include "recurrence/step/step.h"

namespace reclab {
namespace {

/// (I + A)^-1 of strictly lower triangular matrices [..., n, n]; other entries of A are not read.
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
  RECLAB_DEMAND(a.dim(-2) == n);
  return a.graph->apply(std::make_unique<UnitLowerInverse>(a.dtype(), count(a.shape()) / (n * n), n), {a}, {{a.shape(), a.dtype()}})[0];
}

Var row_of(Var x) { return chunks::with_axis(x, -2); }
Var column_of(Var x) { return chunks::with_axis(x, -1); }

Var at_each_step(Graph& graph, Var log_decay, std::int64_t steps, std::int64_t batch) {
  return log_decay && log_decay.shape().size() < 4 ? log_decay + chunks::zeros(graph, {steps, batch, 1, 1}) : log_decay;
}

/// The decay of earlier writes at a chunk's steps: exp of sums of logarithms over the steps between, so that no exponent is above 0.
struct ChunkDecay {
  chunks::Sums sums;  // up to and with each step, [..., chunk, 1 or key]
  explicit operator bool() const { return static_cast<bool>(sums.high); }

  /// From the chunk's start to and with each step.
  Var since_start() const { return exp(sums.high); }
  /// The same without the step itself.
  Var before_step() const { return exp(shifted(sums.high)); }
  /// From behind each step to the chunk's end.
  Var to_end() const { return exp(end(sums.high) - sums.high + (end(sums.low) - sums.low)); }
  Var whole() const { return exp(end(sums.high)); }
  /// x_t . y_s, decayed from behind step s to and with step t, or, where `read_before`, to the step before t. Entries outside of the
  /// triangle, whose exponents would be above 0, are not decayed.
  Var products(Var x, Var y, bool read_before, Var triangle) const {
    const Var high = read_before ? shifted(sums.high) : sums.high, low = read_before ? shifted(sums.low) : sums.low;
    if (sums.high.dim(-1) == 1)
      return matmul_transposed(x, y) * exp((high - transpose(sums.high) + (low - transpose(sums.low))) * triangle);
    const Var between = row_of(high) - chunks::with_axis(sums.high, -3) + (row_of(low) - chunks::with_axis(sums.low, -3));
    return sum(exp(between * column_of(triangle)) * row_of(x) * chunks::with_axis(y, -3), -1);
  }

 private:
  static Var end(Var x) { return slice(x, -2, x.dim(-2) - 1, x.dim(-2)); }
  static Var shifted(Var x) {
    const Var zero = affine(slice(x, -2, 0, 1), 0.0, 0.0);
    if (x.dim(-2) == 1) return zero;
    const Var parts[] = {zero, slice(x, -2, 0, x.dim(-2) - 1)};
    return concat(parts, -2);
  }
};

/// Inside a chunk a triangular system gives each step's value less the recalled one, all chunks at once; the memory goes from chunk to
/// chunk.
OuterVars chunkwise(Graph& graph, Form form, const DeltaInputs& in) {
  const std::int64_t steps = in.q.dim(0), batch = in.q.dim(1), heads = in.q.dim(2), key = in.q.dim(3), value = in.v.dim(3);
  const Var log_decay = at_each_step(graph, in.log_decay, steps, batch);
  const std::int64_t own = form == Form::attention ? steps : log_decay && log_decay.dim(-1) > 1 ? 16 : 32, chunk = std::min(own, steps);
  const auto split = [&](Var x) { return x ? chunks::split(x, chunk) : Var{}; };
  const Var Q = split(in.q), K = split(in.k), V = split(in.v), B = split(in.beta), R = in.recall ? split(in.recall) : K;
  const ChunkDecay decay{log_decay ? chunks::sums(split(log_decay), -2) : chunks::Sums{}};
  const auto start = chunks::start(graph, {batch, heads, key, value}, in.v.dtype());
  start.memory->goes({.form = form,
                      .draw = in.read_before ? drawing::rewrites_read_before : drawing::rewrites,
                      .steps = steps,
                      .chunk = own,
                      .in = {in.q, in.k, in.v, in.beta, in.recall, log_decay}});
  // The chunk writes K^T (U - W S) with S the memory before it; T solves for the chunk's overlapping writes.
  const Var scaled = B ? R * B : R;
  const auto products = [&](Var x, bool read_before, bool strictly) {
    if (!decay) return matmul_transposed(x, K) * chunks::triangle(graph, chunk, 1.0, 0.0, strictly);
    const Var triangle = chunks::triangle(graph, chunk, 1.0, 0.0, strictly);
    return decay.products(x, K, read_before, triangle) * triangle;
  };
  const Var T = unit_lower_inverse(products(scaled, false, true));
  const Var W = matmul(T, decay ? scaled * decay.since_start() : scaled), U = matmul(T, B ? V * B : V);
  std::vector<Var> tokens{decay ? K * decay.to_end() : K, W, U};
  if (decay) tokens.push_back(transpose(decay.whole()));
  const StepVars over =
      step(graph, batch, {{"S", {heads, key, value}}}, tokens,
           [](Cell&, std::span<const Var> chunk_of, std::span<const Var> s) {
             const Var written = chunk_of[2] - matmul(chunk_of[1], s[0]);
             return std::vector<Var>{(chunk_of.size() > 3 ? s[0] * chunk_of[3] : s[0]) + matmul(transpose(chunk_of[0]), written)};
           },
           {start.state});
  start.memory->follow(over.memory);
  const Var S = chunks::previous_state(start.read, over.trajectories[0]);
  const Var weights = products(Q, in.read_before, in.read_before);
  const Var seeing = decay ? Q * (in.read_before ? decay.before_step() : decay.since_start()) : Q;
  OuterVars vars;
  vars.memory = start.memory;
  vars.initial = {start.leaf};
  vars.trajectories = {Var{}};
  vars.finals = over.finals;
  vars.output = chunks::join(matmul(seeing, S) + matmul(weights, U - matmul(W, S)), steps);
  return vars;
}

/// Tells the transitions of the steps, which are a multiple of the identity and a product of two vectors.
void tell_transitions(Graph& graph, const StepVars& stepped, const DeltaInputs& in, Var log_decay) {
  const auto adopted = [&](Var x) { return x ? graph.adopt(x) : Var{}; };
  let_be_low_rank(stepped, 1,
                  [&graph, k = adopted(in.k), beta = adopted(in.beta), recall = adopted(in.recall), decay = adopted(log_decay)](
                      std::int64_t t, std::span<double> scale, std::span<double> left, std::span<double> right) {
                    const std::int64_t batch = k.dim(1), heads = k.dim(2), key = k.dim(3);
                    const auto row = [&](Var of, std::int64_t n) {
                      return to_double(graph.backend(), of.dtype(), graph.value(of), n, t * batch * n);
                    };
                    const std::vector<double> keys = row(k, heads * key),
                                              shares = beta ? row(beta, heads) : std::vector<double>(static_cast<std::size_t>(heads), 1.0);
                    std::ranges::fill(scale, 1.0);
                    if (decay) std::ranges::transform(row(decay, heads), scale.begin(), [](double x) { return std::exp(x); });
                    std::ranges::copy(recall ? row(recall, heads * key) : keys, right.begin());
                    for (std::size_t i = 0; i < keys.size(); ++i) {
                      const std::size_t head = i / static_cast<std::size_t>(key);
                      left[i] = -shares[head] * keys[i];
                      if (decay) left[i] *= scale[head];
                    }
                  });
}

OuterVars sequential(Graph& graph, const DeltaInputs& in) {
  const std::int64_t steps = in.q.dim(0), batch = in.q.dim(1), heads = in.q.dim(2), key = in.q.dim(3), value = in.v.dim(3);
  const Var log_decay = at_each_step(graph, in.log_decay, steps, batch);
  std::vector<Var> tokens;
  const auto token = [&](Var x) {  // its place among the tokens; -1 where there is none
    if (!x) return -1;
    tokens.push_back(x);
    return static_cast<int>(std::ssize(tokens)) - 1;
  };
  const int k = token(in.k), v = token(in.v), beta = token(in.beta), recall = token(in.recall),
            keep = token(log_decay ? exp(log_decay) : Var{}), q = token(in.read_before ? in.q : Var{});
  const StepVars stepped = step(
      graph, batch, {{"S", {heads, key, value}}}, tokens,
      [=](Cell&, std::span<const Var> u, std::span<const Var> s) {
        const auto at = [&](int place) { return u[static_cast<std::size_t>(place)]; };
        const Var held = keep < 0 ? s[0] : s[0] * column_of(at(keep));
        const Var row = row_of(at(recall < 0 ? k : recall)), column = column_of(at(k));
        const Var missing = row_of(at(v)) - matmul(row, held);
        std::vector<Var> made{held + column * (beta < 0 ? missing : missing * row_of(at(beta)))};
        if (q >= 0) made.push_back(sum(s[0] * column_of(at(q)), -2));
        return made;
      },
      {}, Form::sequential, Sees::own_column);
  if (!log_decay || log_decay.dim(-1) == 1) tell_transitions(graph, stepped, in, log_decay);
  OuterVars vars;
  static_cast<MemoryVars&>(vars) = stepped;
  vars.output = in.read_before ? stepped.reads[0] : sum(vars.trajectories[0] * column_of(in.q), -2);
  return vars;
}

bool by_key(Var log_decay) { return log_decay && log_decay.dim(-1) > 1; }

}  // namespace

OuterVars delta(Graph& graph, Form form, const DeltaInputs& in) {
  RECLAB_DEMAND(in.k.shape() == in.q.shape() && in.v.dim(2) == in.q.dim(2) && (!in.beta || in.beta.dim(3) == 1) &&
                (!in.recall || in.recall.shape() == in.k.shape()));
  if (form == Form::chunkwise || (form == Form::attention && !by_key(in.log_decay))) return chunkwise(graph, form, in);
  return sequential(graph, in);
}

OuterVars delta_by_entry(Graph& graph, Form form, Var q, Var k, Var v) {
  const Var column = column_of(k), wide = column + chunks::zeros(graph, {v.dim(3)});
  OuterVars vars;
  static_cast<MemoryVars&>(vars) = diagonal(graph, form, 1.0 - wide, column * row_of(v));
  vars.output = sum(vars.trajectories[0] * column_of(q), -2);
  return vars;
}

Var delta(Layer& layer, const StateSpec& state, const DeltaInputs& inputs) {
  DeltaInputs in = inputs;
  in.v = apart(layer, in.v, {in.q, in.k, in.beta, in.recall, in.log_decay});
  layer.declare_forms({Form::chunkwise});
  if (!by_key(in.log_decay)) layer.declare_forms({Form::attention});
  const OuterVars vars = delta(layer.graph(), layer.form(), in);
  layer.declare({state}, vars);
  declare_mixing(layer, {.name = state.name, .value = in.v, .output = vars.output, .groups = in.v.dim(2), .group = "head"});
  return vars.output;
}

Var delta_by_entry(Layer& layer, const StateSpec& state, Var q, Var k, Var value) {
  const Var v = apart(layer, value, {q, k});
  layer.declare_forms({Form::scan, Form::chunkwise});
  const OuterVars vars = delta_by_entry(layer.graph(), layer.form(), q, k, v);
  layer.declare({state}, vars);
  declare_mixing(layer, {.name = state.name, .value = v, .output = vars.output, .groups = v.dim(2), .group = "head"});
  return vars.output;
}

}  // namespace reclab
