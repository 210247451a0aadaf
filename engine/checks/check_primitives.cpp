// SPDX-License-Identifier: GPL-3.0-or-later
#include "checks/check_primitives.h"

#include <chrono>
#include <cmath>

#include "autodiff/ops.h"
#include "execution/rollout.h"
#include "recurrence/attention.h"
#include "recurrence/convolution.h"
#include "recurrence/linear.h"

namespace reclab {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t batch = 2;

std::vector<char> narrowed(DType real, const std::vector<double>& values) {
  std::vector<char> bytes(values.size() * bytes_of(real));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (real == DType::f64)
      reinterpret_cast<double*>(bytes.data())[i] = values[i];
    else
      reinterpret_cast<float*>(bytes.data())[i] = static_cast<float>(values[i]);
  }
  return bytes;
}

std::vector<Var> made(RandomLeaves& leaves, const MemoryVars& vars, Var output = {}) {
  leaves.initial(vars);
  std::vector<Var> outputs;
  if (output) outputs.push_back(output);
  for (const Var trajectory : vars.trajectories)
    if (trajectory) outputs.push_back(trajectory);
  return outputs;
}

}  // namespace

Var RandomLeaves::real(Shape shape, double low, double high) {
  Leaf leaf{graph_.leaf(LeafKind::variable, std::move(shape), graph_.real()), {}};
  leaf.parts.resize(static_cast<std::size_t>(count(leaf.var.shape())));
  for (double& x : leaf.parts) x = rng_.uniform(low, high);
  all_.push_back(std::move(leaf));
  return all_.back().var;
}

Var RandomLeaves::complex(Shape shape, double low, double high) {
  Leaf leaf{graph_.leaf(LeafKind::variable, std::move(shape), graph_.complex()), {}};
  for (std::int64_t i = 0; i < count(leaf.var.shape()); ++i) {
    const double modulus = rng_.uniform(low, high), angle = rng_.uniform(-3.0, 3.0);
    leaf.parts.push_back(modulus * std::cos(angle));
    leaf.parts.push_back(modulus * std::sin(angle));
  }
  all_.push_back(std::move(leaf));
  return all_.back().var;
}

void RandomLeaves::initial(const MemoryVars& vars) {
  for (const Var var : vars.initial) {
    Leaf leaf{var, {}, vars.memory};
    leaf.parts.resize(static_cast<std::size_t>(count(var.shape())) * (is_complex(var.dtype()) ? 2 : 1));
    for (double& x : leaf.parts) x = rng_.uniform(-1.0, 1.0);
    all_.push_back(std::move(leaf));
  }
}

std::vector<PrimitiveCase> primitive_cases() {
  std::vector<PrimitiveCase> cases;
  using Build = std::function<std::vector<Var>(Form form, Graph& graph, RandomLeaves& leaves, std::int64_t steps)>;
  const auto add = [&](const std::string& name, std::initializer_list<Form> forms, const Build& build) {
    for (const Form form : forms)
      cases.push_back({name, std::string(to_string(form)), [form, build](Graph& graph, RandomLeaves& leaves, std::int64_t steps) { return build(form, graph, leaves, steps); }});
  };

  add("step", {Form::sequential, Form::newton, Form::quasi_newton, Form::damped_newton}, [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Var u = x.real({T, batch, 3}), W = x.real({5, 3}), R = x.real({5, 5}, -0.4, 0.4), b = x.real({5});
    const auto cell = [=](Cell&, std::span<const Var> tokens, std::span<const Var> states) {
      return std::vector<Var>{tanh(linear(tokens[0], W, b) + linear(states[0], R))};
    };
    return made(x, step(graph, batch, {{"h", {5}}}, {u}, cell, {}, form));
  });
  add("diagonal, real", {Form::sequential, Form::scan, Form::chunkwise}, [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Var a = x.real({T, batch, 7}, 0.5, 1.0), b = x.real({T, batch, 7});
    return made(x, diagonal(graph, form, a, b));
  });
  add("diagonal, complex", {Form::sequential, Form::scan, Form::chunkwise}, [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Var a = x.complex({T, batch, 7}, 0.5, 1.0), b = x.complex({T, batch, 7});
    return made(x, diagonal(graph, form, a, b));
  });
  add("diagonal, time-invariant", {Form::sequential, Form::scan, Form::chunkwise, Form::convolution}, [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Var a = x.complex({7}, 0.5, 1.0), b = x.complex({T, batch, 7});
    return made(x, diagonal(graph, form, a, b));
  });
  add("diagonal bank", {Form::sequential, Form::scan, Form::chunkwise, Form::convolution}, [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Var a = x.complex({3, 4}, 0.5, 1.0), b = x.complex({3, 4}), w = x.complex({3, 4}), u = x.real({T, batch, 3});
    const BankVars bank = diagonal_bank(graph, form, a, b, w, u);
    return made(x, bank, bank.output);
  });
  for (const bool record : {false, true})
    add(record ? "selective, every state kept" : "selective", {Form::sequential, Form::scan, Form::chunkwise}, [record](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
      const Var dt = x.real({T, batch, 3}, 0.1, 1.0), a = x.real({3, 4}, -1.0, 0.0), u = x.real({T, batch, 3}), b = x.real({T, batch, 4}), c = x.real({T, batch, 4});
      const SelectiveVars vars = selective(graph, form, dt, a, u, b, c, record);
      return made(x, vars, vars.output);
    });
  const auto outer_of = [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T, std::int64_t decays) {
    const Var q = x.real({T, batch, 2, 4}), k = x.real({T, batch, 2, 4}), v = x.real({T, batch, 2, 3});
    const OuterVars vars = outer(graph, form, q, k, v, decays ? x.real({T, batch, 2, decays}, -0.5, 0.0) : Var{}, false);
    return made(x, vars, vars.output);
  };
  add("outer", {Form::sequential, Form::chunkwise, Form::attention}, [outer_of](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) { return outer_of(form, graph, x, T, 0); });
  add("outer, decay by head", {Form::sequential, Form::scan, Form::chunkwise, Form::attention},
      [outer_of](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) { return outer_of(form, graph, x, T, 1); });
  add("outer, decay by key", {Form::sequential, Form::scan, Form::chunkwise},
      [outer_of](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) { return outer_of(form, graph, x, T, 4); });
  add("delta", {Form::sequential, Form::chunkwise}, [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Var q = x.real({T, batch, 2, 4}), k = x.real({T, batch, 2, 4}, -0.5, 0.5), v = x.real({T, batch, 2, 3}), beta = x.real({T, batch, 2, 1}, 0.1, 0.9);
    const OuterVars vars = delta(graph, form, q, k, v, beta);
    return made(x, vars, vars.output);
  });
  add("dense", {Form::sequential, Form::scan}, [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Var A = x.real({4, 4}, -0.4, 0.4), b = x.real({T, batch, 3, 4});
    return made(x, dense(graph, form, A, b));
  });
  add("dense, driven", {Form::sequential, Form::scan, Form::convolution}, [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Var A = x.real({4, 4}, -0.4, 0.4), B = x.real({4}), u = x.real({T, batch, 3});
    return made(x, dense_driven(graph, form, A, B, u));
  });
  add("low-rank bank", {Form::sequential, Form::scan, Form::convolution}, [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Shape shape{2, 3};
    const LowRankSystem system{x.complex(shape, 0.5, 0.8), x.complex(shape, 0.0, 0.2), x.complex(shape, 0.0, 0.2), x.complex(shape), x.complex(shape)};
    const LowRankVars vars = low_rank_bank(graph, form, system, x.real({T, batch, 2}));
    return made(x, vars, vars.output);
  });
  add("convolution", {Form::convolution}, [](Form, Graph&, RandomLeaves& x, std::int64_t T) {
    const Var kernel = x.real({3, T}), u = x.real({T, batch, 3});
    return std::vector<Var>{convolve(kernel, u)};
  });
  add("attention", {Form::sequential, Form::attention}, [](Form form, Graph&, RandomLeaves& x, std::int64_t T) {
    SoftmaxAttention a;
    a.q = x.real({batch, T, 4});
    a.k = x.real({batch, T, 4});
    a.v = x.real({batch, T, 3});
    return std::vector<Var>{softmax_attention(a, form == Form::sequential)};
  });
  return cases;
}

PrimitiveResult run_primitive(const PrimitiveCase& primitive, Backend& backend, DType real, std::int64_t steps, std::stop_token stop) {
  Graph graph(real);
  RandomLeaves leaves(graph, 7);
  const std::vector<Var> outputs = primitive.build(graph, leaves, steps);
  graph.allocate(backend, true);
  std::vector<DeviceArray> held;
  for (const auto& leaf : leaves.all()) {
    held.emplace_back(backend, narrowed(real, leaf.parts));
    graph.bind(leaf.var, held.back().data());
  }
  const auto parts_of = [](Var var) { return count(var.shape()) * (is_complex(var.dtype()) ? 2 : 1); };
  PrimitiveResult result;
  const auto start = Clock::now();
  graph.forward(stop);
  for (const Var output : outputs)
    result.outputs.emplace_back("output " + std::to_string(result.outputs.size()), to_double(backend, real, graph.value(output), parts_of(output)));
  graph.clear_gradients();
  Rng rng(11);
  for (const Var output : outputs) {
    std::vector<double> weights(static_cast<std::size_t>(parts_of(output)));
    for (double& w : weights) w = rng.uniform(-1.0, 1.0);
    const DeviceArray seed(backend, narrowed(real, weights));
    if (void* gradient = graph.gradient(output)) backend.add_scaled(real, parts_of(output), 0, seed.data(), gradient, true);
    backend.finish();
  }
  graph.backward(stop);
  for (const auto& leaf : leaves.all()) {
    if (!graph.gradient(leaf.var)) continue;
    auto values = to_double(backend, real, graph.gradient(leaf.var), parts_of(leaf.var));
    if (leaf.memory)
      for (double& x : values) x = std::ldexp(x, leaf.memory->exponent());
    result.gradients.emplace_back("gradient " + std::to_string(result.gradients.size()), std::move(values));
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

}  // namespace reclab
