// SPDX-License-Identifier: GPL-3.0-or-later
//   k = [interpolate(w_0, 1) m^{S-1}, interpolate(w_1, 1) m^{S-2}, interpolate(w_2, 2) m^{S-3}, .., interpolate(w_{S-1}, 2^{S-2})] / Z
//   y_t = Σ_{j<K} k_j ⊙ u_{t-j} + D ⊙ u_t,   layer: W gelu(y) + b
// Y. Li et al., What makes convolutional models great on long sequence modeling?, ICLR 2023. Names and conventions of GConv in
// ctlllll/SGConv (gconv_standalone.py, gconv.py), which make the same.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "array/error.h"
#include "array/stop.h"
#include "models/parts/layers/diagonal_system.h"
#include "models/parts/parts.h"
#include "recurrence/convolution/convolution.h"

namespace reclab::architectures {
namespace {

constexpr std::int64_t most_taps = std::int64_t{1} << 22;

std::int64_t scales_of(const Hyper& h) { return h.integer("n_scales"); }
/// By how much the weights of scale i are stretched, as a power of two.
std::int64_t stretch_of(const Hyper& h, std::int64_t i) {
  return h.integer("init_scale") + (h.choice("combine") == "sum" ? i : std::max<std::int64_t>(0, i - 1));
}
/// The step at which scale i begins.
std::int64_t start_of(const Hyper& h, std::int64_t i) {
  return h.choice("combine") == "sum" || i == 0 ? 0 : h.integer("kernel_dim") << (h.integer("init_scale") + i - 1);
}
std::int64_t taps_of(const Hyper& h) { return h.integer("kernel_dim") << (h.integer("init_scale") + scales_of(h) - 1); }
std::int64_t rows_of(const Hyper& h) { return h.integer("channels") * (h.flag("bidirectional") ? 2 : 1); }

/// |k| of each row before anything is cut off, from what was drawn.
void norms_of(const Hyper& h, InitContext& c) {
  const std::int64_t H = h.integer("width"), d = h.integer("kernel_dim"), S = scales_of(h), K = taps_of(h);
  const bool nearest = h.choice("interpolation") == "nearest", power = h.choice("decay") == "power";
  const auto decay = c.other(power ? "decay" : "multiplier");
  for (std::size_t row = 0; row < c.values.size(); ++row) {
    check_stop();
    const std::size_t channel = row % static_cast<std::size_t>(H);
    std::vector<double> k(static_cast<std::size_t>(K), 0.0);
    for (std::int64_t i = 0; i < S; ++i) {
      const double* w = c.other("kernel_list." + std::to_string(i)).data() + row * static_cast<std::size_t>(d);
      const double factor = power ? 1.0 : std::pow(decay[channel], static_cast<double>(S - i - 1)),
                   stretch = std::exp2(static_cast<double>(stretch_of(h, i)));
      double* to = k.data() + start_of(h, i);
      const auto count = d << stretch_of(h, i);
      for (std::int64_t j = 0; j < count; ++j) {
        const double at = std::max(0.0, (static_cast<double>(j) + 0.5) / stretch - 0.5);
        const auto low = static_cast<std::int64_t>(at), high = std::min(low + 1, d - 1);
        const double part = at - static_cast<double>(low);
        to[j] += factor * (nearest ? w[j >> stretch_of(h, i)] : (1.0 - part) * w[low] + part * w[high]);
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

/// The output map's start (get_initializer of the reference), for what follows it.
Init output_start(const Hyper& h, std::int64_t in, std::int64_t out) {
  const std::string &how = h.choice("initializer"), &after = h.choice("postact");
  const double gain = after == "tanh"                                         ? 5.0 / 3.0
                      : after == "relu" || after == "gelu" || after == "silu" ? std::numbers::sqrt2
                                                                              : 1.0,
               n = static_cast<double>(in);
  if (how == "uniform") return init::uniform(-gain * std::sqrt(3.0 / n), gain * std::sqrt(3.0 / n));
  if (how == "normal") return init::normal(gain / std::sqrt(n));
  if (how == "xavier") return init::normal(std::sqrt(2.0 / static_cast<double>(in + out)));
  if (how == "zero" || how == "one") return init::constant(how == "one" ? 1.0 : 0.0);
  return parts::torch_uniform(in);
}

/// A layer norm with one scale and one shift, name.s and name.m, and no epsilon.
Var scalar_norm(Layer& l, const std::string& name, Var x) {
  const Var m =
      l.parameter(name + ".m", {1}, init::constant(0.0), "What the norm adds to all channels before it scales them; starts at 0.");
  const Var s = l.parameter(name + ".s", {1}, init::constant(1.0), "The norm's one scale; starts at 1.");
  const Var centred = x - mean_keep(x, -1);
  return s / sqrt(mean_keep(square(centred), -1) + 1e-36) * (centred + m);
}

/// After the convolution and after the output map.
Var activated(Layer& l, const std::string& kind, const std::string& name, Var x) {
  if (kind == "ln") return scalar_norm(l, name, x);
  if (kind == "glu") {
    const auto halves = split(x, -1, 2);
    return halves[0] * l.gate("glu", sigmoid(halves[1]), 0.0, 1.0, "The GLU after the output map: how much of each channel passes.");
  }
  if (kind == "modrelu") {
    const Var b = l.parameter(name + ".b", {x.dim(-1)}, init::uniform(-0.01, 0.01),
                              "What is added to |x| before it is cut at 0; starts uniform in ±0.01.");
    return detach(sign(x)) * relu(abs(x) + b);
  }
  return parts::activation(kind, x);
}

/// One scale, stretched: w [rows, d] -> [rows, count], the first `count` of d 2^log2 entries.
Var stretched(Var w, std::int64_t log2, std::int64_t count, bool nearest) {
  const std::int64_t rows = w.dim(0), d = w.dim(1), s = std::int64_t{1} << log2, places = (count + s - 1) / s;
  const auto some = [&](Var v) { return reshape(places < d ? slice(v, 1, 0, places) : v, {rows, places, 1}); };
  std::vector<double> own, before, after;
  for (std::int64_t r = 0; r < s; ++r) {
    const double at = (static_cast<double>(r) + 0.5) / static_cast<double>(s) - 0.5;
    own.push_back(nearest ? 1.0 : 1.0 - std::abs(at));
    before.push_back(nearest ? 0.0 : std::max(0.0, -at));
    after.push_back(nearest ? 0.0 : std::max(0.0, at));
  }
  const auto weights = [&](std::vector<double> values) { return w.graph->constant({s}, std::move(values)); };
  Var y = some(w) * weights(own);
  if (!nearest && s > 1) {
    const Var back[] = {slice(w, 1, 0, 1), slice(w, 1, 0, d - 1)}, on[] = {slice(w, 1, 1, d), slice(w, 1, d - 1, d)};
    y = y + some(d > 1 ? concat(back, 1) : w) * weights(before) + some(d > 1 ? concat(on, 1) : w) * weights(after);
  }
  y = reshape(y, {rows, places * s});
  return count < places * s ? slice(y, 1, 0, count) : y;
}

/// The kernel of this layer's direction, [channels * width, taps].
Var kernel_of(Layer& l) {
  const Hyper& h = l.hyper;
  const std::int64_t H = h.integer("width"), d = h.integer("kernel_dim"), S = scales_of(h), K = taps_of(h), rows = rows_of(h),
                     C = h.integer("channels");
  const bool power = h.choice("decay") == "power", summed = h.choice("combine") == "sum", nearest = h.choice("interpolation") == "nearest";
  const double low = h.real("decay_min"), high = h.real("decay_max");
  const bool cosine = h.choice("kernel_init") == "cos";
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
  const Var m = a_channel(decay);
  std::vector<Var> parts;
  Var factor;
  for (std::int64_t i = S - 1; i >= 0; --i) {  // the longest first: each has the next one's factor times m
    Var part = stretched(own(w[static_cast<std::size_t>(i)]), stretch_of(h, i), d << stretch_of(h, i), nearest);
    if (factor) part = part * factor;
    if (!power) factor = factor ? factor * m : m;
    if (summed && part.dim(1) < K) {
      const Var padded[] = {part, l.graph().constant({width, K - part.dim(1)},
                                                     std::vector<double>(static_cast<std::size_t>(width * (K - part.dim(1))), 0.0))};
      part = concat(padded, 1);
    }
    parts.insert(parts.begin(), part);
  }
  Var k = parts[0];
  for (std::size_t i = 1; summed && i < parts.size(); ++i) k = k + parts[i];
  if (!summed && parts.size() > 1) k = concat(parts, 1);
  if (power) {
    std::vector<double> lags;
    for (std::int64_t j = 0; j < K; ++j) lags.push_back(std::log(static_cast<double>(j + 1)));
    k = k * exp(-m * l.graph().constant({1, K}, std::move(lags)));
  }
  return k / own(norm);
}

/// Every copy of the layer's input that the channels read, convolved: [steps, batch, channels * width].
Var convolved(Layer& l, Var u) {
  return finite_convolution(l, "u", kernel_of(l), u, "The last K − 1 inputs of the convolution, oldest first.");
}

Var read_by(Layer& l, Var x) {
  return l.hyper.choice("block") == "residual" && l.hyper.flag("prenorm") ? parts::layer_norm(l, "block_norm", x) : x;
}

/// From what the kernels return to the end of the layer.
Var finished(Layer& l, Var x, Var u, Var y) {
  const Hyper& h = l.hyper;
  const std::int64_t H = h.integer("width"), C = h.integer("channels");
  const Var D = l.parameter("D", {C, H}, init::normal(1.0), "The skip D; starts normal.");
  const std::vector<Var> copies(static_cast<std::size_t>(C), u);
  y = y + (C == 1 ? u : concat(copies, -1)) * reshape(D, {C * H});
  if (h.choice("output") == "linear") {
    const std::string& after = h.choice("postact");
    const std::int64_t out = after == "glu" ? 2 * H : H;
    y = activated(l, h.choice("activation"), "activation", y);
    if (h.choice("ln") == "scalar") y = scalar_norm(l, "norm.norm", y);
    if (h.choice("ln") == "channels") y = parts::layer_norm(l, "norm.norm", y);
    const std::string name = after == "none" ? "output_linear" : "output_linear.0";
    const parts::Linear how{output_start(h, C * H, out), parts::torch_uniform(C * H),
                            after == "glu" ? "W, value rows, then gate rows" : "W, columns channel-major (c, h)",
                            "starts as initializer says"};
    y = activated(l, after, "output_linear.1",
                  h.flag("weight_norm") ? parts::weight_normed(l, name, y, out, how) : parts::linear(l, name, y, out, how));
  }
  if (h.choice("block") == "none") return y;
  return h.flag("prenorm") ? x + y : parts::layer_norm(l, "block_norm", x + y);
}

Error refused(const Hyper& h, const std::string& key, const std::string& why, const std::string& range) {
  return Error("sgconv: " + key + " = " + h.text(key) + " " + why,
               {.model = "sgconv", .parameter = key, .value = h.text(key), .range = range});
}

}  // namespace

Architecture sgconv() {
  Architecture a;
  a.title = "SGConv";
  a.equations = {
      "combine=cat: k = [I_1 w_0 m^{S−1}, I_1 w_1 m^{S−2}, I_2 w_2 m^{S−3}, .., I_{2^{S−2}} w_{S−1}] / Z, I_s: interpolation to s times "
      "the length; all lengths times 2^init_scale",
      "combine=sum: k = Σ_i [I_{2^i} w_i m^{S−1−i}, 0 ..] / Z;  decay=power: m = 1 and k_j is multiplied by (j + 1)^{−α}",
      "y_t = Σ_{j<K} k_j ⊙ u_{t−j} + D ⊙ u_t, K = kernel_dim 2^{init_scale + S − 1}; bidirectional: y_t + Σ_{j≥0} k'_j ⊙ u_{t+1+j}",
      "layer: postact(W norm(gelu(y_t)) + b)", "block: x + layer(norm(x)), or norm(x + layer(x))"};
  a.notes = {
      "Names and shapes are those of the reference's GConv, whose mode is spelt out as combine, kernel_init, interpolation and decay; the "
      "block's own norm is block_norm.",
      "The reference makes S = 1 + ⌈log₂(l_max/d)⌉ − init_scale scales where n_scales is not given, so that the kernel is l_max steps long "
      "or longer.",
      "m^{S−1−i} makes the shorter scales, which are nearer, the larger ones: with m = 2, the default, the kernel halves where the scale "
      "doubles.",
      "Z is the norm of each kernel at the reference's first pass, before anything is cut off, kept in a buffer; here it is what the "
      "kernel's weights were drawn with, so a file that was saved before any pass has ones there.",
      "The kernel ends after K taps: a step reads the last K − 1 inputs and itself, and the state is those inputs. The reference cuts the "
      "kernel at the length of the sequence, which gives the same.",
      "Interpolation is PyTorch's: place (i + 1/2)/s − 1/2 between the weights, held at both ends.",
      "bidirectional reads what is still to come from the next step on, as the reference's padding does.",
      "ln=scalar is the reference's norm of the layout (batch, channels, steps): s/σ (x − mean + m) with one s and m and no epsilon; "
      "channels is that of the other layout, with epsilon 1e-5. The norm of the block has epsilon 1e-5.",
      "The reference's mode with fixed keeps the same decay without training it. Its hyper_act gives arrays that its output map does not "
      "take, and its d_state and shift change nothing: none of them is here.",
      "output=none is its linear=True: what the kernels and D return, channel-major (c, h)."};
  a.hyper = {
      hyper_integer("width", "H", 64, 1, 4096, "Channels of the input.", "channels"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
      hyper_integer("kernel_dim", "d", 64, 1, 16384, "Weights of each scale.", "weights"),
      hyper_integer("n_scales", "S", 3, 1, 23, "Scales."),
      hyper_integer("init_scale", "", 0, 0, 20, "Power of two by which all scales are stretched."),
      hyper_integer("channels", "C", 1, 1, 64, "Kernels that read each input."),
      hyper_choice("combine", "cat", {"cat", "sum"}, "Whether the scales follow each other or all begin at lag 0."),
      hyper_choice("interpolation", "linear", {"linear", "nearest"}, "How a scale's weights are stretched."),
      draws_only(hyper_choice("kernel_init", "randn", {"randn", "cos"},
                              "How the weights start: normal, or as cosines, of another frequency for each channel.")),
      hyper_choice("decay", "multiplier", {"multiplier", "power"},
                   "How the kernel falls: by a factor from scale to scale, or by a power of the lag."),
      draws_only(hyper_real("decay_min", "", 2.0, 0.0, 16.0, "Of the first channel's factor, or the least power at the start.")),
      draws_only(hyper_real("decay_max", "", 2.0, 0.0, 16.0, "Of the last channel's factor, or the largest power at the start.")),
      hyper_flag("bidirectional", false, "A second kernel reads what is still to come, from the next step on."),
      hyper_choice("activation", "gelu", {"gelu", "id", "tanh", "relu", "sigmoid", "silu", "ln"}, "After the convolution."),
      hyper_choice("ln", "none", {"none", "scalar", "channels"}, "The norm in front of the output map."),
      hyper_choice("postact", "none", {"none", "glu", "tanh", "relu", "gelu", "silu", "sigmoid", "modrelu", "ln"}, "After the output map."),
      hyper_flag("weight_norm", false, "Whether the output map has a weight norm."),
      draws_only(
          hyper_choice("initializer", "default", {"default", "uniform", "normal", "xavier", "zero", "one"},
                       "How the output map starts: PyTorch's way, Kaiming's with the gain of postact, Xavier's normal, or a constant.")),
      hyper_choice("output", "linear", {"linear", "none"}, "After the convolution: activation, norm and output map, or nothing."),
      hyper_choice("block", "residual", {"residual", "none"}, "The block with norm and residual, or the layer alone."),
      hyper_flag("prenorm", true, "Whether the norm comes before the layer (after the residual otherwise).")};
  a.spectrum = "none: the inputs that a kernel reads move on by one place each step, so all eigenvalues are 0";
  a.source = {"Y. Li, T. Cai, Y. Zhang, D. Chen, D. Dey", "What makes convolutional models great on long sequence modeling?", "ICLR",
              "https://arxiv.org/abs/2210.09298", 2023};
  a.reference = {
      {"layers.{n}.norm.norm.*", "block_norm.*"}, {"layers.{n}.layer.*", "*"}, {"kernel_norm_initialized", ""}, {"multiplier", ""}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    const std::int64_t S = scales_of(h);
    if (h.integer("init_scale") + S - 1 > 22 || taps_of(h) > most_taps)
      throw refused(h, "kernel_dim",
                    "makes a kernel of more than " + std::to_string(most_taps) + " taps with " + std::to_string(S) +
                        " scales and init_scale = " + h.text("init_scale") + ": choose fewer of them.",
                    "a kernel of " + std::to_string(most_taps) + " taps or fewer");
    if (h.real("decay_min") > h.real("decay_max"))
      throw refused(h, "decay_min", "is above decay_max = " + h.text("decay_max") + ": choose decay_min at most decay_max.",
                    "at most decay_max");
    if ((h.choice("postact") == "glu" || h.choice("postact") == "ln") && h.choice("initializer") != "default")
      throw refused(h, "initializer", "has no gain for postact=" + h.choice("postact") + ": choose default.", "default");
    if (h.choice("output") == "none" && h.integer("channels") > 1 && (h.integer("layers") > 1 || h.choice("block") == "residual"))
      throw refused(h, "channels", "makes more outputs than inputs with output=none: choose 1, or one layer with block=none.", "1");
  };
  a.joint = [](const Hyper& h) { return h.flag("bidirectional"); };
  a.joined = [](Layer& l, Var below, Var forward, Var backward) {
    return finished(l, below, read_by(l, below), forward + parts::from_next_step(backward));
  };
  a.layer = [](Layer& l, Var x) {
    const Var u = read_by(l, x), y = convolved(l, u);
    return l.hyper.flag("bidirectional") ? y : finished(l, x, u, y);
  };
  return a;
}

}  // namespace reclab::architectures
