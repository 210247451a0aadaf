// SPDX-License-Identifier: GPL-3.0-or-later
// The card of the compressive transformer: conventions, options, names of other people's files.
#include <string>

#include "array/error.h"
#include "models/modelling_recurrence/compressive-transformer/parameters.h"

namespace reclab::architectures {

Architecture compressive_transformer_card() {
  Architecture a;
  a.title = "Compressive transformer";
  a.equations = {
      "for each segment X of n steps, depth times:  U = LN X,  A = att(U; [C; M; U]),  X ← X + W_o A,  X ← X + W₂ gelu(W₁ LN X)",
      "att: Σ_j softmax_j(q_i·(k_j + e_{i−j})/√D) v_j by head, causal; i − j counts the rows of [C; M; U]",
      "when the segment is full:  O = the oldest n rows of [M; U],  M ← the last n_m of [M; U],  C ← the last n_cm of [C; f_c(O)]",
      "f_c makes one row of c:  conv: Σ_τ W_τ o_{cj+τ} + b;  mean, max: of the c rows;  most-used: the n/c rows of O with the largest mean "
      "attention",
      "residual=gru:  X ← GRU(input A, state X) in place of both sums"};
  a.notes = {
      "Parameters have the names of lucidrains/compressive-transformer-pytorch: attn_layers, ff_layers, pos_emb. The whole stack of "
      "`depth` layers is one recurrent layer, since with enhanced_recurrence a layer reads the memory of the one above.",
      "The memories hold the normalised inputs of each layer's attention; key and value are made of them anew in each segment.",
      "to_logits.1 is the head, where emb_dim is the code's dim; token_emb and to_model_dim make its inputs of tokens, and are passed "
      "over.",
      "No gradient passes into the memories (stop_gradient), so the convolution has none from the outputs: the authors train it with an "
      "auxiliary loss, that attention to C gives what attention to O gave, which is no part of a run.",
      "start=empty: at first there are no rows, as in the code, and the array of places e begins with the oldest row that there is. "
      "start=zeros: the rows are there and are zeros, as in the paper. Rows that do not exist yet are recorded as zeros.",
      "most-used: the attention is the mean over heads and the steps of the segment in which a row leaves the memory; rows keep their "
      "order.",
      "segment and mem_len are multiples of ratio, so that no row is left over; the code fills up with zeros.",
      "The state of a step is what its segment reads; at the last step of a full segment it is already the next one. It changes once a "
      "segment, hence no spectrum and no ds_T/ds_t."};
  a.hyper = {
      hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("heads", "h", 4, 1, 64, "Heads; must divide the width."),
      hyper_integer("depth", "L", 2, 1, 9, "Transformer layers of the recurrent stack."),
      hyper_integer("segment", "n", 16, 1, 65536, "Steps of a segment (seq_len).", "steps"),
      hyper_integer("mem_len", "n_m", 16, 1, 65536, "Rows of the memory, at least a segment.", "steps"),
      hyper_integer("cmem_len", "n_cm", 4, 1, 65536, "Rows of the compressed memory.", "rows"),
      hyper_integer("ratio", "c", 4, 1, 1024, "Rows that become one.", "rows"),
      hyper_choice("compression", "conv", {"conv", "mean", "max", "most-used"}, "f_c."),
      hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
      hyper_flag("glu", false, "Whether the feed-forward part is gated."),
      hyper_choice("residual", "gru", {"gru", "add"}, "What joins a part with what goes round it."),
      hyper_flag("mogrify", false, "Whether the input and the state of the GRU gate each other first, five times."),
      hyper_flag("mogrify_bias", false,
                 "With mogrify, whether its factors have biases, as in later versions of the package that the code takes it from, where "
                 "they are Q.0.0 and Q.0.1."),
      hyper_flag("enhanced_recurrence", true,
                 "Whether each layer reads and continues the memory of the layer above it, the last one that of the first."),
      hyper_integer("memory_at", "", 0, 0, 987654321, "The numbers of the layers that have a memory, from 1, one digit each; 0: all."),
      hyper_choice("position", "learned", {"learned", "none"}, "Whether distances have vectors e."),
      hyper_choice("start", "empty", {"empty", "zeros"}, "What the memories hold at first."),
      hyper_flag("stop_gradient", true, "Whether no gradient passes into the memories.")};
  a.spectrum = "none: the memories change once a segment, and no matrix takes them from one step to the next";
  a.source = {"J. W. Rae, A. Potapenko, S. M. Jayakumar, C. Hillier, T. P. Lillicrap",
              "Compressive transformers for long-range sequence modelling", "ICLR", "https://arxiv.org/abs/1911.05507", 2020};
  a.reference = {{"to_logits.1.*", "head/*"}, {"to_logits.*", ""}, {"token_emb.weight", ""}, {"to_model_dim.*", ""}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    const auto refuse = [&](const std::string& sentence, const std::string& key, const std::string& range) {
      throw Error("compressive-transformer: " + sentence,
                  {.model = "compressive-transformer", .parameter = key, .value = h.text(key), .range = range});
    };
    if (h.integer("width") % h.integer("heads"))
      refuse("heads = " + h.text("heads") + " does not divide width = " + h.text("width") + ": choose a divisor.", "heads",
             "a divisor of width");
    if (h.integer("mem_len") < h.integer("segment"))
      refuse("mem_len = " + h.text("mem_len") + " is shorter than a segment of " + h.text("segment") + " steps: choose at least as much.",
             "mem_len", "at least segment");
    for (const char* key : {"segment", "mem_len"})
      if (h.integer(key) % h.integer("ratio"))
        refuse(std::string(key) + " = " + h.text(key) + " is no multiple of ratio = " + h.text("ratio") + ": choose one.", key,
               "a multiple of ratio");
    if (h.choice("compression") == "most-used" && h.integer("mem_len") % h.integer("segment"))
      refuse("compression = most-used needs a memory of whole segments, not " + h.text("mem_len") +
                 ": choose a multiple of segment = " + h.text("segment") + ".",
             "mem_len", "a multiple of segment");
    if (h.flag("mogrify") && h.choice("residual") == "add") refuse("mogrify needs residual = gru.", "mogrify", "false");
    const std::string at = h.text("memory_at");
    for (std::size_t i = 0; at != "0" && i < at.size(); ++i)
      if (at[i] == '0' || at[i] - '0' > h.integer("depth") || (i && at[i] <= at[i - 1]))
        refuse("memory_at = " + at + " does not name layers of a stack of " + h.text("depth") +
                   " in their order: give their numbers, one digit each.",
               "memory_at", "0, or digits from 1 to depth, rising");
  };
  return a;
}

}  // namespace reclab::architectures
