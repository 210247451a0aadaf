// SPDX-License-Identifier: GPL-3.0-or-later
// Names, shapes and starts of SGConv's parameters, as GConv of ctlllll/SGConv has them.
#include "models/long_convolutions/sgconv/parameters.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "array/stop.h"

namespace reclab::architectures {
namespace {

/// The step at which scale i begins.
std::int64_t start_of(const Hyper& h, std::int64_t i) {
  return h.choice("combine") == "sum" || i == 0 ? 0 : h.integer("kernel_dim") << (h.integer("init_scale") + i - 1);
}

/// |k| of each row before anything is cut off, from the drawn parameters.
void norms_of(const Hyper& h, InitContext& c) {
  const std::int64_t H = h.integer("width"), d = h.integer("kernel_dim"), S = h.integer("n_scales"), K = sgconv_taps(h);
  const bool nearest = h.choice("interpolation") == "nearest", power = h.choice("decay") == "power";
  const auto decay = c.other(power ? "decay" : "multiplier");
  for (std::size_t row = 0; row < c.values.size(); ++row) {
    check_stop();
    const std::size_t channel = row % static_cast<std::size_t>(H);
    std::vector<double> k(static_cast<std::size_t>(K), 0.0);
    for (std::int64_t i = 0; i < S; ++i) {
      const double* w = c.other("kernel_list." + std::to_string(i)).data() + row * static_cast<std::size_t>(d);
      const double factor = power ? 1.0 : std::pow(decay[channel], static_cast<double>(S - i - 1)),
                   stretch = std::exp2(static_cast<double>(sgconv_stretch(h, i)));
      double* to = k.data() + start_of(h, i);
      const auto count = d << sgconv_stretch(h, i);
      for (std::int64_t j = 0; j < count; ++j) {
        const double at = std::max(0.0, (static_cast<double>(j) + 0.5) / stretch - 0.5);
        const auto low = static_cast<std::int64_t>(at), high = std::min(low + 1, d - 1);
        const double part = at - static_cast<double>(low);
        to[j] += factor * (nearest ? w[j >> sgconv_stretch(h, i)] : (1.0 - part) * w[low] + part * w[high]);
      }
    }
    double square = 0.0;
    for (std::int64_t j = 0; j < K; ++j) {
      const double value = k[static_cast<std::size_t>(j)] * (power ? std::pow(static_cast<double>(j + 1), -decay[channel]) : 1.0);
      square += value * value;
    }
    c.values[row] = std::sqrt(square);
  }
}

/// cos of 2 pi i times even places from 0 to 1, the i-th of the channels in a random order, the same for all rows of a channel.
Init cosines(std::int64_t H, std::int64_t d) {
  return [=](InitContext& c) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(H));
    for (std::int64_t i = 0; i < H; ++i) order[static_cast<std::size_t>(i)] = i;
    for (std::int64_t i = H - 1; i > 0; --i)
      std::swap(order[static_cast<std::size_t>(i)],
                order[static_cast<std::size_t>(std::min(i, static_cast<std::int64_t>(c.rng.uniform(0.0, static_cast<double>(i + 1)))))]);
    for (std::size_t at = 0; at < c.values.size(); ++at) {
      const auto row = static_cast<std::int64_t>(at) / d, place = static_cast<std::int64_t>(at) % d;
      const double waves = static_cast<double>(order[static_cast<std::size_t>(row % H)]);
      c.values[at] = d == 1 ? 1.0 : std::cos(2.0 * std::numbers::pi * waves * static_cast<double>(place) / static_cast<double>(d - 1));
    }
  };
}

}  // namespace

std::int64_t sgconv_taps(const Hyper& h) { return h.integer("kernel_dim") << (h.integer("init_scale") + h.integer("n_scales") - 1); }
std::int64_t sgconv_stretch(const Hyper& h, std::int64_t i) {
  return h.integer("init_scale") + (h.choice("combine") == "sum" ? i : std::max<std::int64_t>(0, i - 1));
}

SgconvKernel sgconv_kernel(Layer& l) {
  const Hyper& h = l.hyper;
  const std::int64_t H = h.integer("width"), d = h.integer("kernel_dim"), S = h.integer("n_scales"), C = h.integer("channels"),
                     rows = h.flag("bidirectional") ? 2 * C : C;
  const bool power = h.choice("decay") == "power", cosine = h.choice("kernel_init") == "cos";
  const double low = h.real("decay_min"), high = h.real("decay_max");
  std::vector<Var> w;
  for (std::int64_t i = 0; i < S; ++i)
    w.push_back(l.parameter(
        "kernel_list." + std::to_string(i), {rows, H, d}, cosine ? cosines(H, d) : init::normal(1.0),
        "w_" + std::to_string(i) + ", the weights of scale " + std::to_string(i) + (cosine ? "; start as cosines." : "; start N(0, 1).")));
  const Var decay =
      power ? l.parameter("decay", {H}, init::uniform(low, high),
                          "α, the power of the lag by which each channel's kernel falls; starts uniform in decay_min to decay_max.")
            : l.parameter("multiplier", {1, H, 1}, init::each([=](Rng&, std::int64_t i) {
                            return H == 1 ? low : low + (high - low) * static_cast<double>(i) / static_cast<double>(H - 1);
                          }),
                          "m, by which a scale is larger than the next longer one, a channel each: evenly from decay_min to decay_max; a "
                          "buffer in the reference, which does not train it.");
  const Var norm = l.parameter(
      "kernel_norm", {rows, H, 1}, [h](InitContext& c) { norms_of(h, c); },
      "Z, the norm of each kernel as it was drawn, which it is divided by ever after; a buffer in the reference, which does not train it.");
  const std::int64_t from = h.flag("bidirectional") && l.backward() ? C : 0, width = C * H;
  const auto own = [&](Var v) { return reshape(h.flag("bidirectional") ? slice(v, 0, from, from + C) : v, {width, -1}); };
  const auto a_channel = [&](Var v) {
    const std::vector<Var> copies(static_cast<std::size_t>(C), reshape(v, {H, 1}));
    return C == 1 ? copies[0] : concat(copies, 0);
  };
  SgconvKernel kernel{{}, a_channel(decay), own(norm)};
  for (const Var& scale : w) kernel.w.push_back(own(scale));
  return kernel;
}

Var sgconv_skip(Layer& l) {
  const std::int64_t H = l.hyper.integer("width"), C = l.hyper.integer("channels");
  return reshape(l.parameter("D", {C, H}, init::normal(1.0), "The skip D; starts normal."), {C * H});
}

}  // namespace reclab::architectures
