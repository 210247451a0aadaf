// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/noise.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "array/error.h"
#include "array/host.h"
#include "array/rng.h"
#include "array/stop.h"

namespace reclab {
namespace {

using Draw = std::function<double(Rng&)>;

class Noise final : public Operation {
 public:
  Noise(DType type, Rng rng, std::int64_t steps, std::int64_t batch, std::int64_t n, Draw draw)
      : type_(type), rng_(rng), steps_(steps), batch_(batch), n_(n), draw_(std::move(draw)) {}

  void forward(const ForwardCall& c) override {
    const std::vector<double> position = to_double(c.backend, type_, c.in[0], steps_ * batch_);
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(steps_ * batch_ * n_));
    for (std::int64_t t = 0; t < steps_; ++t) {
      if (t % 64 == 0 && c.stop.stop_requested()) throw Cancelled();
      Rng step = rng_.split(std::to_string(static_cast<std::int64_t>(position[static_cast<std::size_t>(t * batch_)])));
      for (std::int64_t i = 0; i < n_; ++i) values.push_back(draw_(step));
      for (std::int64_t i = 0; i < (batch_ - 1) * n_; ++i) values.push_back(values[values.size() - static_cast<std::size_t>(n_)]);
    }
    const std::vector<char> bytes = narrowed(type_, values);
    c.backend.upload(c.out[0], bytes.data(), bytes.size());
  }
  void backward(const BackwardCall&) override {}
  void tangent(const TangentCall& c) override {
    c.backend.zero(c.tangent_out[0], static_cast<std::size_t>(steps_ * batch_ * n_) * bytes_of(type_));
  }
  bool passes_gradient() const override { return false; }
  Cost cost() const override {
    const double entries = static_cast<double>(steps_ * batch_ * n_);
    return {20.0 * entries, entries * static_cast<double>(bytes_of(type_))};
  }

 private:
  DType type_;
  Rng rng_;
  std::int64_t steps_, batch_, n_;
  Draw draw_;
};

Var drawn(Layer& layer, const std::string& name, std::int64_t n, std::int64_t seed, Draw draw) {
  Graph& graph = layer.graph();
  const std::int64_t T = layer.steps(), B = layer.batch();
  auto operation = std::make_unique<Noise>(
      graph.real(), Rng(static_cast<std::uint64_t>(seed)).split(std::to_string(layer.index()) + "/" + name), T, B, n, std::move(draw));
  return graph.apply(std::move(operation), {layer.position()}, {{{T, B, n}, graph.real()}})[0];
}

}  // namespace

Var noise(Layer& layer, const std::string& name, std::int64_t n, double deviation, std::int64_t seed) {
  return drawn(layer, name, n, seed, [deviation](Rng& rng) { return deviation * rng.normal(); });
}
Var uniform_noise(Layer& layer, const std::string& name, std::int64_t n, double low, double high, std::int64_t seed) {
  return drawn(layer, name, n, seed, [low, high](Rng& rng) { return rng.uniform(low, high); });
}

}  // namespace reclab
