// SPDX-License-Identifier: GPL-3.0-or-later
// The card of the Token Turing machine: conventions, options, names of other people's files.
#include <string>

#include "array/error.h"
#include "models/modelling_recurrence/token-turing-machine/parameters.h"

namespace reclab::architectures {

Architecture token_turing_machine_card() {
  Architecture a;
  a.title = "Token Turing machine";
  a.equations = {
      "x_t: the n tokens of step t;  Z = summary_P [m_{t-1}; x_t],  o_t = process(Z),  m_t = summary_M [m_{t-1}; x_t; o_t]",
      "summary_k y (memory_mode=TL, TL-AddErase): W y, rows of W = softmax over the tokens of W₂ gelu(W₁ LN y + b₁)",
      "summary_k y (TL-MHA): k learned tokens attend to y in heads",
      "TL-AddErase: m_t = m_{t-1} ⊙ Π_i (1 − s_i e_iᵀ) + mean_i (1 − s_i a_iᵀ),  s = softmax over rows of W₂ gelu(W₁ LN m + b₁);  e, a = "
      "mlp(mlp over tokens of LN o_t)",
      "process: transformer blocks with norms first on Z + positions, mixer blocks, or z ← mlp(LN z) without residuals; then a norm",
      "unit=simple: [m; summary_P x_t] is processed; of its rows the first P are o_t and the last M are m_t"};
  a.notes = {
      "Names and shapes are those of scenic's TokenTuringMachineUnit, below unit_function in its encoder; kernels are [in, out], [in, "
      "head, entry] and [head, entry, out]; with a dot here where flax has a slash.",
      "What enters a step is n tokens of d channels, one after the other: the encoder in front makes them where the input is not as wide "
      "as that. What is returned is the P tokens o_t, one after the other.",
      "The memory starts at zero.",
      "TL-AddErase adds the mean of 1 − s a, as the code has it, and not that of s a, so that the memory rises by nearly 1 a step. From a "
      "memory of zeros its rows stay alike, so nothing depends on the selection.",
      "Read and write have position embeddings of their own with position; the transformer always has one. With TL-AddErase that of the "
      "write is read from nowhere.",
      "In unit=simple the rows that are returned are the first P of [m; z], which the memory was in: what comes in moves up by P rows a "
      "step.",
      "Biases of keys, and of the last map before a softmax over rows, add the same to all entries of that softmax, and the last bias of a "
      "mixer's token_mixing to all channels of a token: they change nothing, and their gradients are exactly 0.",
      "All norms are layer norms with epsilon 1e-6; gelu is its tanh approximation."};
  a.hyper = {
      hyper_integer("width", "d", 16, 1, 4096, "Width of a token.", "channels"),
      hyper_integer("tokens", "n", 2, 1, 65536, "Tokens that come in at a step.", "tokens"),
      hyper_integer("memory", "M", 4, 1, 65536, "Tokens of the memory (memory_size); 64 in the reference.", "tokens"),
      hyper_integer("process", "P", 2, 1, 65536, "Tokens that are processed at a step (process_size); 8 in the reference.", "tokens"),
      hyper_choice("unit", "full", {"full", "simple"}, "The unit of the paper, or the one whose transformer keeps the memory."),
      hyper_choice("memory_mode", "TL", {"TL", "TL-MHA", "TL-AddErase"},
                   "How tokens are summarised and the memory is written: weighted means, attention, or weighted means to read and add and "
                   "erase to write. unit=simple: TL."),
      hyper_choice("processing_unit", "transformer", {"transformer", "mixer", "mlp"}, "What processes the tokens."),
      hyper_integer("depth", "L", 1, 1, 64, "Layers of the processing unit (num_layers)."),
      hyper_integer("heads", "h", 2, 1, 64, "Heads of the transformer; must divide the width. 12 in the reference."),
      hyper_integer("summary_heads", "", 2, 1, 64, "TL-MHA: heads of reading and writing; must divide the width. 8 in the reference."),
      hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the processing unit (mlp_dim); 0: four times the width.",
                    "units"),
      hyper_integer("sequence_mlp", "", 16, 1, 65536, "mixer: hidden width of what mixes tokens; 128 in the reference.", "units"),
      hyper_integer("bottleneck", "", 16, 1, 65536, "Hidden width of what weighs tokens (bottleneck_dim); 64 in the reference.", "units"),
      hyper_integer("write_tokens", "", 4, 1, 65536, "TL-AddErase: tokens that are written; 8 in the reference.", "tokens"),
      hyper_flag("position", false, "Whether tokens that are read and written have position embeddings (use_positional_embedding).")};
  a.spectrum = "eigenvalues of ∂m_t/∂m_{t-1}";
  a.source = {"M. S. Ryoo, K. Gopalakrishnan, K. Kahatapitiya, T. Xiao, K. Rao, A. Stone, Y. Lu, J. Ibarz, A. Arnab",
              "Token Turing machines", "CVPR", "https://arxiv.org/abs/2211.09119", 2023};
  a.input_width = [](const Hyper& h) { return h.integer("width") * h.integer("tokens"); };
  a.check = [](const Hyper& h) {
    for (const char* heads : {"heads", "summary_heads"})
      if (h.integer("width") % h.integer(heads))
        throw Error(std::string("token-turing-machine: ") + heads + " = " + h.text(heads) + " does not divide width = " + h.text("width") +
                        ": choose a divisor.",
                    {.model = "token-turing-machine", .parameter = heads, .value = h.text(heads), .range = "a divisor of width"});
  };
  return a;
}

}  // namespace reclab::architectures
