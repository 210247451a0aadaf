// SPDX-License-Identifier: GPL-3.0-or-later
#include "timing/primitives.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "array/rng.h"

namespace reclab {
namespace {

/// Channels of the input that are one argument of the primitive: normal, or uniform in a range.
struct Part {
  std::int64_t width;
  double deviation = 1.0, low = 0.0, high = 0.0;
};
struct Primitive {
  std::function<std::vector<Part>(const Hyper&)> parts;
  Architecture architecture;
};

std::int64_t width_of(const std::vector<Part>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::int64_t{0}, [](std::int64_t sum, const Part& part) { return sum + part.width; });
}

/// Cuts the input into the parts, each of the given shape behind steps and batch.
class Arguments {
 public:
  Arguments(const Layer& layer, Var x) : layer_(layer), x_(x) {}
  Var operator()(Shape shape) {
    const std::int64_t from = at_;
    at_ += count(shape);
    shape.insert(shape.begin(), {layer_.steps(), layer_.batch()});
    return reshape(slice(x_, -1, from, at_), std::move(shape));
  }

 private:
  const Layer& layer_;
  Var x_;
  std::int64_t at_ = 0;
};

HyperSpec width(std::int64_t standard) { return hyper_integer("width", "d", standard, 1, 1 << 20, "Entries of the state.", "channels"); }
std::vector<HyperSpec> heads() {
  return {hyper_integer("heads", "h", 4, 1, 1024, "Memories side by side."), hyper_integer("key", "d_k", 16, 1, 1024, "Length of keys and queries."),
          hyper_integer("value", "d_v", 16, 1, 1024, "Length of values.")};
}
Shape of_heads(const Layer& l, const char* size) { return {l.hyper.integer("heads"), l.hyper.integer(size)}; }
Var flat(const Layer& l, Var y) { return reshape(y, {l.steps(), l.batch(), -1}); }

std::map<std::string, Primitive> made() {
  std::map<std::string, Primitive> all;
  {
    Primitive& p = all["diagonal"];
    p.architecture.title = "Diagonal recurrence";
    p.architecture.equations = {"s_t = a_t ∘ s_{t-1} + b_t"};
    p.architecture.hyper = {width(64)};
    p.architecture.spectrum = "the factors a_t";
    p.parts = [](const Hyper& h) { return std::vector<Part>{{h.integer("width"), 0.0, 0.8, 1.0}, {h.integer("width")}}; };
    p.architecture.layer = [](Layer& l, Var x) {
      Arguments next(l, x);
      const Shape shape{l.hyper.integer("width")};
      const Var a = next(shape), b = next(shape);
      return l.diagonal({"s", shape, "The state."}, a, b);
    };
  }
  {
    Primitive& p = all["selective"];
    p.architecture.title = "Selective recurrence";
    p.architecture.equations = {"h_t = exp(Δ_t A) ∘ h_{t-1} + Δ_t x_t b_tᵀ", "y_t = h_t c_t"};
    p.architecture.hyper = {hyper_integer("width", "D", 64, 1, 1 << 20, "Channels.", "channels"), hyper_integer("state", "N", 16, 1, 1024, "States of each channel.", "states")};
    p.architecture.spectrum = "the factors exp(Δ_t A)";
    p.parts = [](const Hyper& h) { return std::vector<Part>{{h.integer("width"), 0.0, 0.001, 0.1}, {h.integer("width")}, {h.integer("state")}, {h.integer("state")}}; };
    p.architecture.layer = [](Layer& l, Var x) {
      Arguments next(l, x);
      const std::int64_t D = l.hyper.integer("width"), N = l.hyper.integer("state");
      const Var A = l.parameter("A", {D, N}, init::each([=](Rng&, std::int64_t i) { return -static_cast<double>(i % N + 1); }), "A; starts at −1 to −N in each channel.");
      const Var dt = next({D}), u = next({D}), b = next({N}), c = next({N});
      return l.selective({"h", {D, N}, "The state."}, dt, A, u, b, c);
    };
  }
  {
    Primitive& p = all["outer"];
    p.architecture.title = "Outer-product memory";
    p.architecture.equations = {"S_t = G_t ∘ S_{t-1} + k_t v_tᵀ", "y_t = S_tᵀ q_t"};
    p.architecture.hyper = heads();
    p.architecture.hyper.push_back(hyper_choice("decay", "none", {"none", "scalar", "key"}, "G_t: ones, one factor a head, or one for each key dimension."));
    p.architecture.spectrum = "the factors G_t";
    const auto decays = [](const Hyper& h) { return h.choice("decay") == "none" ? 0 : h.choice("decay") == "scalar" ? h.integer("heads") : h.integer("heads") * h.integer("key"); };
    p.parts = [decays](const Hyper& h) {
      const std::int64_t n = h.integer("heads"), key = h.integer("key");
      return std::vector<Part>{{n * key, 1.0 / std::sqrt(static_cast<double>(key))}, {n * key}, {n * h.integer("value")}, {decays(h), 0.0, -0.1, 0.0}};
    };
    p.architecture.layer = [](Layer& l, Var x) {
      Arguments next(l, x);
      const Var q = next(of_heads(l, "key")), k = next(of_heads(l, "key")), v = next(of_heads(l, "value"));
      const std::string& decay = l.hyper.choice("decay");
      const Var log_decay = decay == "none" ? Var{} : next(decay == "scalar" ? Shape{l.hyper.integer("heads"), 1} : of_heads(l, "key"));
      return flat(l, l.outer({"S", {l.hyper.integer("heads"), l.hyper.integer("key"), l.hyper.integer("value")}, "The memory of each head."}, q, k, v, log_decay));
    };
  }
  {
    Primitive& p = all["delta"];
    p.architecture.title = "Delta-rule memory";
    p.architecture.equations = {"S_t = (I − β_t k_t k_tᵀ) S_{t-1} + β_t k_t v_tᵀ", "y_t = S_tᵀ q_t"};
    p.architecture.hyper = heads();
    p.architecture.spectrum = "eigenvalues of I − β_t k_t k_tᵀ";
    p.parts = [](const Hyper& h) {
      const std::int64_t n = h.integer("heads"), key = h.integer("key");
      const double unit = 1.0 / std::sqrt(static_cast<double>(key));  // |k| about 1, or the memory would grow
      return std::vector<Part>{{n * key, unit}, {n * key, unit}, {n * h.integer("value")}, {n, 0.0, 0.0, 0.5}};
    };
    p.architecture.layer = [](Layer& l, Var x) {
      Arguments next(l, x);
      const Var q = next(of_heads(l, "key")), k = next(of_heads(l, "key")), v = next(of_heads(l, "value")), beta = next({l.hyper.integer("heads"), 1});
      return flat(l, l.delta({"S", {l.hyper.integer("heads"), l.hyper.integer("key"), l.hyper.integer("value")}, "The memory of each head."}, q, k, v, beta));
    };
  }
  {
    Primitive& p = all["linear"];
    p.architecture.title = "Dense linear recurrence";
    p.architecture.equations = {"s_t = A s_{t-1} + b_t"};
    p.architecture.hyper = {width(32)};
    p.architecture.spectrum = "eigenvalues of A";
    p.parts = [](const Hyper& h) { return std::vector<Part>{{h.integer("width")}}; };
    p.architecture.layer = [](Layer& l, Var x) {
      const std::int64_t n = l.hyper.integer("width");
      const Var A = l.parameter("A", {n, n}, init::orthogonal(0.95), "A; starts orthogonal times 0.95.");
      return flat(l, l.linear({"s", {1, n}, "The state."}, A, reshape(x, {l.steps(), l.batch(), 1, n})));
    };
  }
  {
    Primitive& p = all["step"];
    p.architecture.title = "Stepped recurrence";
    p.architecture.equations = {"s_t = tanh(W s_{t-1} + u_t)"};
    p.architecture.hyper = {width(32)};
    p.architecture.spectrum = "eigenvalues of the recurrent Jacobian ∂s_t/∂s_{t-1}";
    p.parts = [](const Hyper& h) { return std::vector<Part>{{h.integer("width")}}; };
    p.architecture.layer = [](Layer& l, Var x) {
      const std::int64_t n = l.hyper.integer("width");
      const Var W = l.parameter("W", {n, n}, init::orthogonal(0.95), "W; starts orthogonal times 0.95.");
      return l.step({{"s", {n}, "The state."}}, {x}, [=](Cell&, std::span<const Var> u, std::span<const Var> s) { return std::vector<Var>{tanh(u[0] + linear(s[0], W))}; })[0];
    };
  }
  {
    Primitive& p = all["convolution"];
    p.architecture.title = "Long convolution";
    p.architecture.equations = {"y_t[c] = Σ_{j ≤ t} K_j[c] u_{t−j}[c],  K_j[c] = λ[c]^j"};
    p.architecture.hyper = {width(32)};
    p.parts = [](const Hyper& h) { return std::vector<Part>{{h.integer("width")}}; };
    p.architecture.layer = [](Layer& l, Var x) {
      const std::int64_t n = l.hyper.integer("width"), taps = l.steps() + l.past();
      const Var rate = l.parameter("log_lambda", {n, 1}, init::uniform(-0.1, 0.0), "Logarithm of λ; starts uniform in −0.1 to 0.");
      std::vector<double> ages;
      for (std::int64_t j = 0; j < taps; ++j) ages.push_back(static_cast<double>(j));
      return l.convolution("u", exp(rate * x.graph->constant({1, taps}, std::move(ages))), x, "All inputs.");
    };
  }
  {
    Primitive& p = all["attention"];
    p.architecture.title = "Softmax attention";
    p.architecture.equations = {"y_t = Σ_{s ≤ t} softmax_s(q_t · k_s) v_s"};
    p.architecture.hyper = heads();
    p.parts = [](const Hyper& h) {
      const std::int64_t n = h.integer("heads"), key = h.integer("key");
      return std::vector<Part>{{n * key, 1.0 / std::sqrt(static_cast<double>(key))}, {n * key}, {n * h.integer("value")}};
    };
    p.architecture.layer = [](Layer& l, Var x) {
      Arguments next(l, x);
      const Var q = next(of_heads(l, "key")), k = next(of_heads(l, "key")), v = next(of_heads(l, "value"));
      return flat(l, l.attention({"k", of_heads(l, "key"), "The keys so far."}, {"v", of_heads(l, "value"), "The values so far."}, q, k, v, 0));
    };
  }
  for (auto& [id, p] : all) p.architecture.input_width = [parts = p.parts](const Hyper& h) { return width_of(parts(h)); };
  return all;
}

const std::map<std::string, Primitive>& table() {
  static const std::map<std::string, Primitive> all = made();
  return all;
}

}  // namespace

const Registry& primitives() {
  static const Registry registry = [] {
    Registry of;
    for (const auto& [id, primitive] : table()) of.add(id, "primitive", primitive.architecture);
    return of;
  }();
  return registry;
}

bool is_primitive(std::string_view id) { return table().contains(std::string(id)); }

std::vector<std::string> primitive_names() {
  std::vector<std::string> names;
  for (const auto& [id, primitive] : table()) names.push_back(id);
  return names;
}

Preset primitive_preset(std::string_view id) {
  Preset preset;
  const Architecture& architecture = primitives().find(id);
  preset.id = preset.architecture = architecture.id;
  preset.title = architecture.title;
  preset.family = architecture.family;
  return preset;
}

Sequence primitive_input(std::string_view id, const Hyper& hyper, std::int64_t length, std::uint64_t seed) {
  const std::vector<Part> parts = table().at(std::string(id)).parts(hyper);
  Sequence sequence;
  sequence.name = "the arguments of " + std::string(id);
  sequence.length = length;
  sequence.width = width_of(parts);
  Rng rng(seed);
  for (std::int64_t t = 0; t < length; ++t) {
    sequence.time.push_back(static_cast<double>(t));
    for (const Part& part : parts)
      for (std::int64_t j = 0; j < part.width; ++j) sequence.input.push_back(part.low < part.high ? rng.uniform(part.low, part.high) : part.deviation * rng.normal());
  }
  for (std::int64_t j = 0; j < sequence.width; ++j) sequence.names.push_back("x" + std::to_string(j + 1));
  return sequence;
}

}  // namespace reclab
