// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/convolution/convolution.h"

#include <algorithm>
#include <cmath>

#include "array/demand.h"
#include "array/device_array.h"
#include "array/error.h"
#include "autodiff/ops.h"
#include "recurrence/attention/drawing.h"
#include "recurrence/convolution/drawing.h"
#include "recurrence/convolution/kernel.h"
#include "recurrence/evaluation_order.h"
#include "recurrence/linear_system.h"
#include "recurrence/mixing/mixing.h"

namespace reclab {
namespace {

class Convolve final : public Operation, public HasEvaluationOrder {
 public:
  /// Of `steps` inputs, the first `before` of which came before the sequence that is run.
  Convolve(DType type, std::int64_t steps, std::int64_t batch, std::int64_t channels, std::int64_t before = 0)
      : type_(type), steps_(steps), batch_(batch), channels_(channels), before_(before) {}
  void forward(const ForwardCall& c) override {
    const std::size_t bytes = c.backend.spectrum_size(type_, steps_, channels_);
    if (bytes && !spectrum_) spectrum_ = DeviceArray(c.backend, bytes);
    c.backend.spectrum(type_, steps_, channels_, c.in[0], spectrum_.data());
    c.backend.convolve_with(type_, steps_, batch_, channels_, c.in[0], spectrum_.data(), c.in[1], c.out[0]);
  }
  void backward(const BackwardCall& c) override {  // the kernel is still the one of the way forward
    c.backend.convolve_adjoint_with(type_, steps_, batch_, channels_, c.in[0], spectrum_.data(), c.in[1], c.grad_out[0], c.grad_in[0],
                                    c.grad_in[1]);
  }
  void tangent(const TangentCall& c) override {
    const void *dk = c.tangent_in[0], *du = c.tangent_in[1];
    const std::int64_t n = steps_ * batch_ * channels_;
    if (du) c.backend.convolve_with(type_, steps_, batch_, channels_, c.in[0], spectrum_.data(), du, c.tangent_out[0]);
    if (!dk) return;
    void* other = du ? c.temporary(0, type_, n) : c.tangent_out[0];
    c.backend.convolve(type_, steps_, batch_, channels_, dk, c.in[1], other);
    if (du) c.backend.add_scaled(type_, n, 0, other, c.tangent_out[0], true);
  }
  Cost cost() const override {
    const double n = static_cast<double>(steps_ * batch_ * channels_);
    return {10.0 * n * std::log2(2.0 * static_cast<double>(steps_)), 2.0 * n * static_cast<double>(bytes_of(type_))};
  }
  EvaluationOrder evaluation_order() const override {
    return {.form = Form::convolution, .draw = drawing::transforms, .steps = steps_ - before_, .cached_steps = before_};
  }

 private:
  DType type_;
  std::int64_t steps_, batch_, channels_, before_;
  DeviceArray spectrum_;  // of the kernel; empty where the backend needs none
};

/// The taps are taken some at a time: group g holds those of g * group .. g * group + group - 1 steps ago, and acts on the rows that are
/// late enough to have one of them. Zeros stand in front of the first input, so that a row's sum does not depend on the history that is
/// held.
class Direct final : public Operation, public HasEvaluationOrder, public HasLinearSystem {
 public:
  Direct(DType type, std::int64_t all, std::int64_t steps, std::int64_t batch, std::int64_t channels, std::int64_t taps)
      : type_(type), all_(all), steps_(steps), batch_(batch), channels_(channels), taps_(taps) {}

  void forward(const ForwardCall& c) override {
    Backend& b = c.backend;
    prepare(b);
    pad(b, c.in[1]);
    b.zero(c.out[0], bytes(steps_ * row()));
    each_group(c.stop, [&](std::int64_t first, std::int64_t taps, std::int64_t from) {
      b.gather(type_, reversed(first, taps), c.in[0], weight_.data(), false);
      b.depthwise(type_, {steps_ - from, batch_, channels_, taps}, rows(padded_.data(), input_row(first, taps, from)), weight_.data(),
                  part_.data());
      b.add_scaled(type_, (steps_ - from) * row(), 0, part_.data(), rows(c.out[0], from), true);
    });
  }
  void backward(const BackwardCall& c) override {
    Backend& b = c.backend;
    prepare(b);
    pad(b, c.in[1]);
    b.zero(padded_gradient_.data(), bytes((group_ - 1 + all_) * row()));
    each_group(c.stop, [&](std::int64_t first, std::int64_t taps, std::int64_t from) {
      const std::int64_t at = input_row(first, taps, from);
      b.gather(type_, reversed(first, taps), c.in[0], weight_.data(), false);
      b.zero(weight_gradient_.data(), bytes(channels_ * taps));
      b.depthwise_adjoint(type_, {steps_ - from, batch_, channels_, taps}, rows(padded_.data(), at), weight_.data(),
                          rows(c.grad_out[0], from), c.grad_in[1] ? rows(padded_gradient_.data(), at) : nullptr,
                          c.grad_in[0] ? weight_gradient_.data() : nullptr);
      if (c.grad_in[0]) b.scatter(type_, reversed(first, taps), weight_gradient_.data(), c.grad_in[0], true);
    });
    if (c.grad_in[1]) b.add_scaled(type_, all_ * row(), 0, rows(padded_gradient_.data(), group_ - 1), c.grad_in[1], true);
  }
  void tangent(const TangentCall& c) override {
    const void *dk = c.tangent_in[0], *du = c.tangent_in[1];
    void* other = du ? c.temporary(0, type_, steps_ * row()) : c.tangent_out[0];
    const void *by_input[] = {c.in[0], du}, *by_kernel[] = {dk, c.in[1]};
    if (du) forward({c.backend, by_input, c.tangent_out, c.stop});
    if (dk) forward({c.backend, by_kernel, {&other, 1}, c.stop});
    if (du && dk) c.backend.add_scaled(type_, steps_ * row(), 0, other, c.tangent_out[0], true);
  }
  Cost cost() const override {
    const double cached_steps = static_cast<double>(all_ - steps_), taps = static_cast<double>(taps_);
    double pairs = 0.0;
    for (std::int64_t t = 0; t < steps_; ++t) pairs += std::min(taps, cached_steps + static_cast<double>(t + 1));
    return {2.0 * pairs * static_cast<double>(row()),
            static_cast<double>((all_ + steps_) * row() + channels_ * taps_) * static_cast<double>(bytes_of(type_))};
  }
  EvaluationOrder evaluation_order() const override {
    return {
        .draw = drawing::rows, .steps = steps_, .cached_steps = all_ - steps_, .window = taps_, .weights = EvaluationOrder::Weights::other};
  }

 private:
  static constexpr std::int64_t group_ = 32;
  DType type_;
  std::int64_t all_, steps_, batch_, channels_, taps_;
  DeviceArray padded_, padded_gradient_, part_, weight_, weight_gradient_;

  std::int64_t row() const { return batch_ * channels_; }
  std::size_t bytes(std::int64_t n) const { return static_cast<std::size_t>(n) * bytes_of(type_); }
  template <class P>
  P* rows(P* from, std::int64_t n) const {
    using Byte = std::conditional_t<std::is_const_v<P>, const char, char>;
    return static_cast<Byte*>(from) + bytes(n * row());
  }
  void prepare(Backend& b) {
    if (padded_) return;
    for (DeviceArray* inputs : {&padded_, &padded_gradient_}) inputs->resize(b, type_, (group_ - 1 + all_) * row());
    part_.resize(b, type_, steps_ * row());
    for (DeviceArray* taps : {&weight_, &weight_gradient_}) taps->resize(b, type_, channels_ * group_);
  }
  void pad(Backend& b, const void* u) {
    b.zero(padded_.data(), bytes((group_ - 1) * row()));
    b.copy(rows(padded_.data(), group_ - 1), u, bytes(all_ * row()));
  }
  /// The taps of a group, the oldest input's first, as depthwise() wants them.
  Strided reversed(std::int64_t first, std::int64_t taps) const {
    Strided box;
    box.rank = 2;
    box.size[0] = channels_;
    box.stride[0] = taps_;
    box.size[1] = taps;
    box.stride[1] = -1;
    box.offset = first + taps - 1;
    box.elements = channels_ * taps;
    return box;
  }
  /// The row in the padded inputs of the oldest input of row `from`.
  std::int64_t input_row(std::int64_t first, std::int64_t taps, std::int64_t from) const {
    return group_ - 1 + all_ - steps_ + from - (first + taps - 1);
  }
  template <class F>
  void each_group(const std::stop_token& stop, const F& body) const {
    const std::int64_t cached_steps = all_ - steps_;
    for (std::int64_t first = 0; first < std::min(taps_, all_); first += group_) {
      if (stop.stop_requested()) throw Cancelled();
      body(first, std::min(group_, taps_ - first), std::max<std::int64_t>(0, first - cached_steps));
    }
  }
};

Var convolve_after(Var kernel, Var u, std::int64_t before) {
  RECLAB_DEMAND(kernel.dtype() == u.dtype() && u.shape().size() == 3 && kernel.dim(1) == u.dim(0));
  return u.graph->apply(std::make_unique<Convolve>(u.dtype(), u.dim(0), u.dim(1), u.dim(2), before), {kernel, u},
                        {{u.shape(), u.dtype()}})[0];
}

/// Of all inputs that there are: the rows of the last `steps` of them.
Var read(Layer& layer, Var kernel, Var joined) {
  const std::int64_t all = joined.dim(0), channels = kernel.dim(0), taps = kernel.dim(1);
  if (layer.form() != Form::convolution) return convolve_directly(kernel, joined, layer.steps());
  if (taps < all) {
    const Var parts[] = {kernel, layer.graph().constant({channels, all - taps},
                                                        std::vector<double>(static_cast<std::size_t>(channels * (all - taps)), 0.0))};
    kernel = concat(parts, 1);
  } else if (taps > all) {
    kernel = slice(kernel, 1, 0, all);
  }
  return slice(convolve_after(kernel, joined, all - layer.steps()), 0, all - layer.steps(), all);
}

}  // namespace

std::optional<Var> kernel_of(const Operation& operation, std::span<const Var> in) {
  if (!dynamic_cast<const Convolve*>(&operation) && !dynamic_cast<const Direct*>(&operation)) return {};
  return is_complex(in[0].dtype()) ? std::nullopt : std::optional(in[0]);
}

Var convolve(Var kernel, Var u) { return convolve_after(kernel, u, 0); }

Var convolve_directly(Var kernel, Var u, std::int64_t steps) {
  RECLAB_DEMAND(kernel.dim(0) == u.dim(2) && steps <= u.dim(0) && !is_complex(u.dtype()));
  auto operation = std::make_unique<Direct>(u.dtype(), u.dim(0), steps, u.dim(1), u.dim(2), kernel.dim(1));
  Direct* own = operation.get();
  const Var y = u.graph->apply(std::move(operation), {kernel, u}, {{Shape{steps, u.dim(1), u.dim(2)}, u.dtype()}})[0];
  own->describe({.structure = LinearSystem::Structure::taps, .input = u, .output = y, .a = kernel});
  return y;
}

Var convolution(Layer& layer, const std::string& name, Var kernel, Var u, const std::string& text) {
  layer.declare_forms({Form::convolution});
  layer.require_single_segment();
  const std::int64_t before = layer.cached_steps(), channels = u.dim(-1);
  RECLAB_DEMAND(kernel.dim(0) == channels && u.shape().size() == 3);
  const Var initial = layer.graph().leaf(LeafKind::variable, {before, layer.batch(), channels}, u.dtype());
  Var joined = u;
  if (before) {
    const Var parts[] = {initial, u};
    joined = concat(parts, 0);
  }
  layer.add_carried_state({.name = name, .text = text, .shape = {channels}, .initial = initial, .final_state = joined, .growing = true});
  const Var made = read(layer, kernel, joined);
  declare_mixing(layer, {.name = name, .value = u, .output = made, .groups = channels, .group = "channel"});
  return made;
}

Var finite_convolution(Layer& layer, const std::string& name, Var kernel, Var u, const std::string& text) {
  layer.declare_forms({Form::convolution});
  RECLAB_DEMAND(kernel.dim(0) % u.dim(-1) == 0 && u.shape().size() == 3);
  const Var joined = kernel.dim(1) > 1 ? layer.history(name, u, kernel.dim(1) - 1, text) : u;
  const std::vector<Var> copies(static_cast<std::size_t>(kernel.dim(0) / u.dim(-1)), joined);
  return read(layer, kernel, copies.size() == 1 ? joined : concat(copies, -1));
}

}  // namespace reclab
