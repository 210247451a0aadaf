// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/primitive.h"

#include <cmath>
#include <sstream>

namespace reclab {

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

namespace primitive {

using Numbers = std::vector<double>;

Var Arguments::operator()(Shape shape) {
  const std::int64_t from = at_;
  at_ += count(shape);
  shape.insert(shape.begin(), {layer_.steps(), layer_.batch()});
  return reshape(slice(x_, -1, from, at_), std::move(shape));
}
HyperSpec width(std::int64_t standard) { return hyper_integer("width", "d", standard, 1, 1 << 20, "Entries of the state.", "channels"); }
std::vector<HyperSpec> heads() {
  return {hyper_integer("heads", "h", 4, 1, 1024, "Memories side by side."),
          hyper_integer("key", "d_k", 16, 1, 1024, "Length of keys and queries."),
          hyper_integer("value", "d_v", 16, 1, 1024, "Length of values.")};
}
Shape of_heads(const Layer& l, const char* size) { return {l.hyper.integer("heads"), l.hyper.integer(size)}; }
Var flat(const Layer& l, Var y) { return reshape(y, {l.steps(), l.batch(), -1}); }
StateSpec memory_of_heads(const Layer& l) {
  return {"S", {l.hyper.integer("heads"), l.hyper.integer("key"), l.hyper.integer("value")}, "The memory of each head."};
}

std::vector<Var> made(RandomLeaves& leaves, const MemoryVars& vars, Var output) {
  leaves.initial(vars);
  std::vector<Var> outputs;
  if (output) outputs.push_back(output);
  for (const Var trajectory : vars.trajectories)
    if (trajectory) outputs.push_back(trajectory);
  return outputs;
}

Input normal(const std::string& name, Shape shape, double size, std::uint64_t seed) {
  Rng rng(seed);
  Numbers values;
  for (std::int64_t i = 0; i < count(shape); ++i) values.push_back(size * rng.normal());
  return {name, std::move(shape), std::move(values)};
}
Input chosen(const std::string& name, Shape shape, const Numbers& choices, std::uint64_t seed) {
  Rng rng(seed);
  Numbers values;
  for (std::int64_t i = 0; i < count(shape); ++i)
    values.push_back(choices[static_cast<std::size_t>(rng.uniform(0.0, static_cast<double>(choices.size()))) % choices.size()]);
  return {name, std::move(shape), std::move(values)};
}
void add_numbers(Inputs& inputs, const std::string& name, const Shape& shape, const Numbers& moduli, std::uint64_t seed) {
  Input re = chosen(name + "_re", shape, moduli, seed), im = re;
  im.name = name + "_im";
  Rng rng(seed + 1);
  for (std::size_t i = 0; i < re.values.size(); ++i) {
    const double phase = rng.uniform(-3.1, 3.1);
    im.values[i] = re.values[i] * std::sin(phase);
    re.values[i] *= std::cos(phase);
  }
  inputs.push_back(re);
  inputs.push_back(im);
}
Numbers rotation(std::int64_t n, double factor, double angle) {
  Numbers matrix(static_cast<std::size_t>(n * n), 0.0);
  for (std::int64_t i = 0; i + 1 < n; i += 2, angle *= 1.7) {
    const auto at = [&](std::int64_t r, std::int64_t c) -> double& { return matrix[static_cast<std::size_t>(r * n + c)]; };
    at(i, i) = at(i + 1, i + 1) = factor * std::cos(angle);
    at(i, i + 1) = -factor * std::sin(angle);
    at(i + 1, i) = factor * std::sin(angle);
  }
  return matrix;
}
std::string text(double x) {
  std::ostringstream stream;
  stream << x;
  return stream.str();
}

Numbers edges() { return {1e-9, 1.0 - 1e-9, 0.0, 1.0, 0.5, 1e-300}; }
Numbers log_edges() { return {-1e-9, std::log(1e-9), 0.0, -0.7, -800.0, -1e4}; }
std::vector<Form> scans() { return {Form::sequential, Form::scan, Form::chunkwise}; }
std::vector<Form> newtons() { return {Form::sequential, Form::newton, Form::quasi_newton, Form::damped_newton}; }

}  // namespace primitive
}  // namespace reclab
