// SPDX-License-Identifier: GPL-3.0-or-later
// The card of SaShiMi: conventions, options, names of other people's files.
#include <string>

#include "array/error.h"
#include "models/state_space/sashimi/parameters.h"

namespace reclab::architectures {

using namespace sashimi_parts;

Architecture sashimi_card() {
  Architecture a;
  a.title = "SaShiMi";
  a.equations = {"rate 0 is that of the sequence; pool1, pool2, … steps of a rate make one step of the next, which is E times as wide",
                 "down: x_k = W (u_{kp}, …, u_{kp+p−1}) + b",
                 "blocks: u ← u + S4(norm u), u ← u + W₂ gelu(W₁ norm u), at the slowest rate and, after each way up, at that rate (unet: "
                 "before each way down too)",
                 "up: y_{kp+j} = part j of W x_{k−1} + b, one step of the slower rate later, so that nothing is read before it is there",
                 "skips: the slowest rate adds what it was given, each rate on the way up adds what was there on the way down and what its "
                 "own blocks were given; at the end norm(u)",
                 "S4: h_k = Ā h_{k−1} + B̄ u_k, v = W gelu(2 Re(C h_k) + D u_k) + b, out = v₁ ⊙ σ(v₂), A = Λ − P P* with Re Λ < 0 (see s4)"};
  a.notes = {
      "Names and shapes are those of the reference's parts without layer. and kernel.: of a pooling stage linear, of a feed-forward block "
      "norm, ff.0 and ff.2, of an S4 block norm and those of s4; output_linear and ff.0 are without .0. Layers are numbered in the order "
      "of d_layers, c_layers and u_layers, and final/norm comes last.",
      "A layer at a slower rate has a step when the last of its steps of the sequence has come. Its rows in a run are those of the "
      "sequence: its states and gates stand still in between, and before its first step are 0. Its spectrum is that of one step of its "
      "own, and ds_T/ds_t is made of the steps that there were.",
      "The states inputs and held of the pooling stages are the steps that wait and what was made of the last that went: a run may be cut "
      "anywhere.",
      "The reference asks for a length that is a multiple of all pooling factors. Here the steps after the last whole window are read at "
      "the rates that they have reached, as the reference's own steps do.",
      "A pooling factor of 1 keeps the rate and shifts by one step all the same, as the reference's does; 0 leaves the stage out.",
      "bidirectional: S4 blocks read what is still to come too (see s4); the pooling stages stay as they are.",
      "unet: a skip ends at each layer on the way up.",
      "n_ssm, dt_min, dt_max and the other hyper-parameters of s4 are those of all rates.",
      "mode = diag: the blocks' systems are those of s4d, code=full; rank, low_rank, l_kernel and B_clip are then of no use, and of mode = "
      "dplr are discretisation, imag_transform, dt_fast, bandlimit and B_init.",
      "Of the full code residual = R and norm = layer are here; center_layer and interp are not. Dropout does nothing in a run."};
  a.hyper = {hyper_integer("width", "H", 16, 1, 4096, "Width at the rate of the sequence.", "channels"),
             hyper_integer("n_layers", "L", 1, 1, 64, "S4 blocks at each rate, each with a feed-forward block."),
             hyper_integer("pool1", "p₁", 4, 0, 32, "How many steps the first pooling stage makes one; 0: there is none.", "steps"),
             hyper_integer("pool2", "p₂", 4, 0, 32, "Likewise of the second, which begins at the first one's rate.", "steps"),
             hyper_integer("pool3", "p₃", 0, 0, 32, "Of the third.", "steps"),
             hyper_integer("pool4", "p₄", 0, 0, 32, "Of the fourth.", "steps"),
             hyper_integer("expand", "E", 2, 1, 16, "How many times as wide each slower rate is."),
             hyper_integer("ff", "", 2, 0, 16, "How many times as wide as its block a feed-forward block is inside; 0: there are none."),
             hyper_flag("unet", false, "Blocks before each pooling stage too, and a skip for each layer.")};
  a.hyper.push_back(
      hyper_choice("mode", "dplr", {"dplr", "diag"},
                   "The systems of its S4 blocks: diagonal plus low rank, those of s4, or diagonal, those of s4d with code = full."));
  for (HyperSpec& row : system_rows()) a.hyper.push_back(std::move(row));
  for (HyperSpec& row : common_rows()) a.hyper.push_back(std::move(row));
  a.spectrum = s4_block_card().spectrum;
  a.source = {"K. Goel, A. Gu, C. Donahue, C. Ré", "It's raw! Audio generation with state-space models", "ICML",
              "https://arxiv.org/abs/2202.09729", 2022};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.flag("bidirectional") && h.has("direction") && h.choice("direction") != "forward")
      throw Error("sashimi: its S4 blocks run in both directions as it is set, and direction = " + h.choice("direction") +
                      ": choose direction=forward.",
                  {.model = "sashimi", .parameter = "direction", .value = h.choice("direction"), .range = "forward"});
    std::int64_t stride = 1;
    double width = static_cast<double>(h.integer("width"));
    for (const std::int64_t p : pools(h)) {
      stride *= p;
      width *= static_cast<double>(h.integer("expand"));
    }
    if (width > 4096.0)
      throw Error("sashimi: width = " + h.text("width") + " would be " + std::to_string(static_cast<std::int64_t>(width)) +
                      " at the slowest rate: choose one that is at most 4096 there.",
                  {.model = "sashimi", .parameter = "width", .value = h.text("width"), .range = "at most 4096 at the slowest rate"});
    if (h.integer("l_kernel") % stride)
      throw Error(
          "sashimi: l_kernel = " + h.text("l_kernel") + " is not a multiple of the " + std::to_string(stride) +
              " steps of the slowest rate: choose one that is, or 0.",
          {.model = "sashimi", .parameter = "l_kernel", .value = h.text("l_kernel"), .range = "a multiple of " + std::to_string(stride)});
    const std::string& init = h.choice("init");
    const bool of_HiPPO = init == "legs" || init == "legt" || init == "lagt" || init == "fourier";
    if (is_diagonal(h) ? of_HiPPO && init != "legs" : !of_HiPPO)
      throw Error("sashimi: init = " + init + " is none of mode = " + h.choice("mode") + ": choose " +
                      (is_diagonal(h) ? "legs, lin, inv, inv2, quad, real or rand." : "legs, legt, lagt or fourier."),
                  {.model = "sashimi",
                   .parameter = "init",
                   .value = init,
                   .range = is_diagonal(h) ? "legs, lin, inv, inv2, quad, real, rand" : "legs, legt, lagt, fourier"});
    (is_diagonal(h) ? s4d_system() : s4_system()).check(hyper_of_s4(h, h.integer("width"), 1));
  };
  a.period = [](const Hyper& h) {
    std::int64_t period = 1;
    for (const std::int64_t p : pools(h)) period *= p;
    return period;
  };
  return a;
}

}  // namespace reclab::architectures
