// SPDX-License-Identifier: GPL-3.0-or-later
// The card of SGConv: conventions, options, names of other people's files.
#include <string>

#include "array/error.h"
#include "models/long_convolutions/sgconv/parameters.h"

namespace reclab::architectures {

namespace {

Error refused(const Hyper& h, const std::string& key, const std::string& why, const std::string& range) {
  return Error("sgconv: " + key + " = " + h.text(key) + " " + why,
               {.model = "sgconv", .parameter = key, .value = h.text(key), .range = range});
}

}  // namespace

Architecture sgconv_card() {
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
      initialisation_only(hyper_choice("kernel_init", "randn", {"randn", "cos"},
                                       "How the weights start: normal, or as cosines, of another frequency for each channel.")),
      hyper_choice("decay", "multiplier", {"multiplier", "power"},
                   "How the kernel falls: by a factor from scale to scale, or by a power of the lag."),
      initialisation_only(hyper_real("decay_min", "", 2.0, 0.0, 16.0, "Of the first channel's factor, or the least power at the start.")),
      initialisation_only(hyper_real("decay_max", "", 2.0, 0.0, 16.0, "Of the last channel's factor, or the largest power at the start.")),
      hyper_flag("bidirectional", false, "A second kernel reads what is still to come, from the next step on."),
      hyper_choice("activation", "gelu", {"gelu", "id", "tanh", "relu", "sigmoid", "silu", "ln"}, "After the convolution."),
      hyper_choice("ln", "none", {"none", "scalar", "channels"}, "The norm in front of the output map."),
      hyper_choice("postact", "none", {"none", "glu", "tanh", "relu", "gelu", "silu", "sigmoid", "modrelu", "ln"}, "After the output map."),
      hyper_flag("weight_norm", false, "Whether the output map has a weight norm."),
      initialisation_only(
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
    const std::int64_t S = h.integer("n_scales");
    if (h.integer("init_scale") + S - 1 > 22 || sgconv_taps(h) > sgconv_most_taps)
      throw refused(h, "kernel_dim",
                    "makes a kernel of more than " + std::to_string(sgconv_most_taps) + " taps with " + std::to_string(S) +
                        " scales and init_scale = " + h.text("init_scale") + ": choose fewer of them.",
                    "a kernel of " + std::to_string(sgconv_most_taps) + " taps or fewer");
    if (h.real("decay_min") > h.real("decay_max"))
      throw refused(h, "decay_min", "is above decay_max = " + h.text("decay_max") + ": choose decay_min at most decay_max.",
                    "at most decay_max");
    if ((h.choice("postact") == "glu" || h.choice("postact") == "ln") && h.choice("initializer") != "default")
      throw refused(h, "initializer", "has no gain for postact=" + h.choice("postact") + ": choose default.", "default");
    if (h.choice("output") == "none" && h.integer("channels") > 1 && (h.integer("layers") > 1 || h.choice("block") == "residual"))
      throw refused(h, "channels", "makes more outputs than inputs with output=none: choose 1, or one layer with block=none.", "1");
  };
  return a;
}

}  // namespace reclab::architectures
