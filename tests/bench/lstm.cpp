// SPDX-License-Identifier: GPL-3.0-or-later
// LSTM layers as the engine runs them.
#include <algorithm>
#include <cmath>
#include <memory>

#include "array/error.h"
#include "execution/batch_rollout.h"
#include "inputs.h"
#include "models/registry.h"
#include "rows.h"

namespace reclab::bench {

std::vector<double> rounded(Parameters& parameters, const std::string& name) {
  std::vector<double> values;
  for (const double value : parameters.find(name)->values) values.push_back(static_cast<double>(static_cast<float>(value)));
  return values;
}

std::vector<double> lstm_in_float64(const LstmWeights& weights, std::span<const float> x, std::int64_t steps, std::int64_t batch,
                                    std::int64_t width, std::int64_t hidden) {
  const auto H = static_cast<std::size_t>(hidden), B = static_cast<std::size_t>(batch), D = static_cast<std::size_t>(width);
  const auto sigmoid = [](double v) { return 1.0 / (1.0 + std::exp(-v)); };
  std::vector<double> out(static_cast<std::size_t>(steps) * B * H);
  cpu::parallel(batch, [&](std::int64_t sequence) {
    const auto b = static_cast<std::size_t>(sequence);
    std::vector<double> h(H, 0.0), c = h, sums(4 * H);
    for (std::size_t t = 0; t < static_cast<std::size_t>(steps); ++t) {
      const float* now = x.data() + (t * B + b) * D;
      for (std::size_t r = 0; r < 4 * H; ++r) {
        sums[r] = weights.b_ih[r] + weights.b_hh[r];
        for (std::size_t j = 0; j < D; ++j) sums[r] += weights.w_ih[r * D + j] * static_cast<double>(now[j]);
        for (std::size_t j = 0; j < H; ++j) sums[r] += weights.w_hh[r * H + j] * h[j];
      }
      for (std::size_t i = 0; i < H; ++i) {
        c[i] = sigmoid(sums[H + i]) * c[i] + sigmoid(sums[i]) * std::tanh(sums[2 * H + i]);
        h[i] = sigmoid(sums[3 * H + i]) * std::tanh(c[i]);
        out[(t * B + b) * H + i] = h[i];
      }
    }
  });
  return out;
}

namespace {

/// One layer. `size`: of the names of its parts, " H64", and of its arrays, "H64/"; empty where the row has one layer alone.
Row layer(const std::string& name, std::int64_t B, std::int64_t T, std::int64_t H, bool backward, const std::string& size) {
  struct Data {
    Backend& backend;
    std::unique_ptr<Network> network;
    std::vector<std::unique_ptr<Network>> parts;  // of the batch, as training cuts it (BatchRollout)
    Parameters parameters;
    std::vector<float> x;
    std::vector<std::vector<float>> weights;
    std::vector<DeviceArray> arrays;
  };
  Backend& backend = backend_of(name);
  const Architecture& architecture = builtin_registry().find("lstm");
  Hyper hyper(architecture.hyper);
  hyper.set("width", H, "lstm");
  NetworkOptions options;
  options.steps = T;
  options.batch = B;
  options.input = H;
  options.real = DType::f32;
  options.record = false;
  Rng rng(1);
  auto data = std::make_shared<Data>(
      Data{backend, std::make_unique<Network>(architecture, hyper, options), {}, {}, normal(rng, T * B * H), {}, {}});
  Data& d = *data;
  d.parameters = d.network->initialise(1);
  for (const auto& entry : d.parameters.entries()) d.weights.emplace_back(entry.values.begin(), entry.values.end());
  const auto ready = [&](Network& network, std::int64_t first) {
    Graph& graph = network.graph();
    graph.allocate(backend, backward);
    const auto bind = [&](Var var, const std::vector<float>& values) {
      d.arrays.push_back(on(backend, values));
      graph.bind(var, d.arrays.back().data());
    };
    std::vector<float> x;
    for (std::int64_t t = 0; t < T; ++t)
      x.insert(x.end(), d.x.begin() + (t * B + first) * H, d.x.begin() + (t * B + first + network.options().batch) * H);
    bind(network.input(), x);
    for (std::size_t i = 0; i < d.weights.size(); ++i) bind(network.parameters()[i].var, d.weights[i]);
    for (const auto& state : network.states())
      bind(state.initial, std::vector<float>(static_cast<std::size_t>(count(state.initial.shape())), 0.0f));
  };
  ready(*d.network, 0);
  const std::int64_t of_part = BatchRollout::sequences_of_part(8 * H * H);
  options.batch = of_part;
  for (std::int64_t first = 0; B > of_part && B % of_part == 0 && backend.device() == Device::cpu && first < B; first += of_part) {
    d.parts.push_back(std::make_unique<Network>(architecture, hyper, options));
    ready(*d.parts.back(), first);
  }
  Row row;
  row.name = name;
  row.text = "LSTM, float32, B" + std::to_string(B) + " T" + std::to_string(T) + " H" + std::to_string(H);
  const double batch = static_cast<double>(B), steps = static_cast<double>(T), width = static_cast<double>(H);
  const std::string of_size = size.empty() ? "" : " " + size;
  Part forward{"forward" + of_size, [&d] {
                 d.network->graph().forward();
                 d.backend.finish();
               }};
  forward.flops = 2.0 * batch * steps * 4.0 * width * 2.0 * width;
  forward.floor = "the products with both matrices";
  if (B == 1) {
    forward.cached = steps * 4.0 * width * width * 4.0;
    forward.floor = "the recurrent weights, read from the caches at every step";
  }
  row.parts.push_back(forward);
  const auto forward_in_parts = [&d] {
    cpu::parallel(std::ssize(d.parts), [&](std::int64_t i) { d.parts[static_cast<std::size_t>(i)]->graph().forward(); });
  };
  if (!d.parts.empty())
    row.parts.push_back({"forward" + of_size + ", in parts of " + std::to_string(of_part),
                         forward_in_parts,
                         0.0,
                         0.0,
                         forward.flops,
                         forward.floor,
                         {},
                         forward.name});
  const auto there_and_back = [&d](Network& network) {
    Graph& g = network.graph();
    g.forward({}, Graph::Part::all, true);
    g.clear_gradients();
    d.backend.add_scaled(DType::f32, count(network.output().shape()), 0, g.value(network.output()), g.gradient(network.output()), true);
    g.backward();
  };
  const std::string floor = "three times the products of the forward pass";
  if (backward)
    row.parts.push_back({"with backward" + of_size,
                         [&d, there_and_back] {
                           there_and_back(*d.network);
                           d.backend.finish();
                         },
                         0.0, 0.0, 3.0 * forward.flops, floor});
  if (backward && !d.parts.empty())
    row.parts.push_back({"with backward" + of_size + ", in parts of " + std::to_string(of_part),
                         [&d, there_and_back] {
                           cpu::parallel(std::ssize(d.parts),
                                         [&](std::int64_t i) { there_and_back(*d.parts[static_cast<std::size_t>(i)]); });
                           for (std::size_t part = 1; part < d.parts.size(); ++part)
                             for (std::size_t i = 0; i < d.weights.size(); ++i)
                               d.backend.add_scaled(DType::f32, std::ssize(d.weights[i]), 0,
                                                    d.parts[part]->graph().gradient(d.parts[part]->parameters()[i].var),
                                                    d.parts[0]->graph().gradient(d.parts[0]->parameters()[i].var), true);
                         },
                         0.0,
                         0.0,
                         3.0 * forward.flops,
                         floor,
                         {},
                         "with backward" + of_size});
  row.error = [&d, B, T, H] {
    const auto weights = [&](const std::string& key) { return rounded(d.parameters, "0/" + key); };
    const auto exact = lstm_in_float64({weights("weight_ih"), weights("weight_hh"), weights("bias_ih"), weights("bias_hh")}, d.x,
                                       std::min<std::int64_t>(T, 50), B, H, H);
    return difference(from<float>(d.backend, d.network->graph().value(d.network->output()), exact.size()), exact);
  };
  row.save = [&d, B, T, H, backward, of = size.empty() ? "" : size + "/"](NpzWriter& file) {
    save(file, of + "x", {T, B, H}, d.x);
    for (std::size_t i = 0; i < d.weights.size(); ++i)
      save(file, of + d.parameters.entries()[i].name.substr(2), d.parameters.entries()[i].shape, d.weights[i]);
    if (backward) save(file, "backward", {1}, {1.0f});
  };
  row.kept = data;
  return row;
}

}  // namespace

Row lstm(const std::string& name, std::int64_t B, std::int64_t T, const std::vector<std::int64_t>& sizes, bool backward) {
  if (sizes.size() == 1) return layer(name, B, T, sizes[0], backward, "");
  auto layers = std::make_shared<std::vector<Row>>();
  Row all;
  all.name = name;
  all.text = "LSTM, float32, B" + std::to_string(B) + " T" + std::to_string(T) + ", H";
  for (const std::int64_t H : sizes) {
    layers->push_back(layer(name, B, T, H, backward, "H" + std::to_string(H)));
    for (Part& part : layers->back().parts) all.parts.push_back(std::move(part));
    all.text += (H == sizes.front() ? " " : H == sizes.back() ? " and " : ", ") + std::to_string(H);
  }
  all.error = [&of = *layers] {
    double worst = 0.0;
    for (const Row& row : of) worst = std::max(worst, row.error());
    return worst;
  };
  all.save = [&of = *layers](NpzWriter& file) {
    for (const Row& row : of) row.save(file);
  };
  all.kept = layers;
  return all;
}

}  // namespace reclab::bench
