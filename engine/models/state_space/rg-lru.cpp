// SPDX-License-Identifier: GPL-3.0-or-later
//   r = σ(W_a x + b_a), i = σ(W_x x + b_x) by blocks,  a_t = exp(-c r softplus(Λ)),  h_t = a_t h_{t-1} + √(1 - a_t²) (i x_t)
//   recurrent block: W_out (RG-LRU(conv(W_x u)) gelu(W_y u));   residual block: x + block(rms x), x + mlp(rms x)
// S. De, S. Smith et al., Griffin: mixing gated linear recurrences with local attention for efficient language models, 2024.
#include "array/error.h"
#include "models/parts/hawk.h"

namespace reclab::architectures {

Architecture rg_lru() {
  Architecture a;
  a.title = "RG-LRU (Hawk)";
  a.equations = {"r = σ(W_a x_t + b_a),  i = σ(W_x x_t + b_x), block-diagonal by head",
                 "a_t = exp(−c r softplus(Λ)),  h_t = a_t ⊙ h_{t-1} + √(1 − a_t²) ⊙ (i ⊙ x_t)",
                 "where a document begins: a_t = 0 and 1 in place of √(1 − a_t²)",
                 "recurrent block: W_out (RG-LRU(conv(W_x u)) ⊙ gelu(W_y u))",
                 "residual block: x ← x + block(rms(x)),  x ← x + W_down (gelu(v W₀) ⊙ v W₁), v = rms(x)"};
  a.notes = {
      "Names and shapes are those of recurrentgemma's torch modules below blocks.<l>.: temporal_pre_norm, recurrent_block, "
      "channel_pre_norm, mlp_block; final/final_norm is that of the stack.",
      "At position 0 the reference sets a_0 = 0 and writes with strength 1 (reset); the paper has no such step.",
      "With reset_column every document of the sequence begins so, and the convolution does not reach before it: where that column is "
      "above 0 (which a column of 0 and 1 is, standardised too), segment_pos is 0 in the reference.",
      "The paper writes a = σ(Λ); the reference stores a_param = −Λ, so that a = exp(−softplus(a_param)). Its start draws the base, not "
      "its c-th power, between min_rad and max_rad.",
      "The slope of √(1 − a²) is bounded by 1000, as the reference does. gelu is the tanh approximation; the norms' epsilon is 1e-6 and "
      "their scale 1 + s.",
      "The whole language model reads one-hot tokens with encoder_bias = no, scale_embedding = yes where its embedding is scaled "
      "(scale_embeddings), read_out = tied and its soft_cap; embedder.input_embedding is the encoder's matrix transposed."};
  a.hyper = {hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
             hyper_integer("layers", "L", 1, 1, 64, "Residual blocks in a row."),
             hyper_integer("heads", "", 4, 1, 64, "Blocks of the two gates; must divide the recurrence's width.")};
  for (auto& row : hawk::hyper(false)) a.hyper.push_back(std::move(row));
  for (auto& row : hawk::hyper_after()) a.hyper.push_back(std::move(row));
  a.hyper.push_back(hyper_choice("block", "residual", {"residual", "recurrent", "none"},
                                 "The residual block with MLP, the recurrent block alone, or the RG-LRU alone."));
  a.spectrum = "the decay a_t";
  a.source = {"S. De, S. L. Smith, A. Fernando, A. Botev et al.",
              "Griffin: mixing gated linear recurrences with local attention for efficient language models", "",
              "https://arxiv.org/abs/2402.19427", 2024};
  a.reference = hawk::reference();
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    hawk::check(h, "rg-lru");
    if (h.choice("block") == "none" && h.integer("lru_width") && h.integer("lru_width") != h.integer("width"))
      throw Error("rg-lru: lru_width = " + h.text("lru_width") + " is not the width " + h.text("width") +
                      ", which the RG-LRU alone reads: choose lru_width=0, or block=recurrent.",
                  {.model = "rg-lru", .parameter = "lru_width", .value = h.text("lru_width"), .range = "0"});
  };
  a.document_column = "reset_column";
  a.layer = [](Layer& l, Var x) {
    const auto block = hawk::block_of(l.hyper);
    if (l.hyper.choice("block") == "none") return hawk::rg_lru(l, block, x);
    if (l.hyper.choice("block") == "recurrent") return hawk::recurrent(l, block, x);
    return hawk::residual(l, block, x, [&](Var u) { return hawk::recurrent(l, block, u); });
  };
  a.final_layer = [](Layer& l, Var x) {
    return l.hyper.choice("block") == "residual" && l.hyper.flag("final_norm") ? hawk::final_norm(l, x) : x;
  };
  return a;
}

}  // namespace reclab::architectures
