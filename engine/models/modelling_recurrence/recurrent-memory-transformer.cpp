// SPDX-License-Identifier: GPL-3.0-or-later
//   Z = [m; X; m] + wpe, X the inputs of one segment;   H = LN_f of a causal stack of Z ← Z + att(LN₁ Z), Z ← Z + MLP(LN₂ Z)
//   outputs: the rows of X in H;   m' = the last M rows of H, read by the next segment
// A. Bulatov, Y. Kuratov, M. Burtsev, Recurrent memory transformer, NeurIPS 2022. Conventions of booydar/recurrent-memory-transformer,
// modeling_rmt/language_modeling.py, round GPT-2, whose names the parameters have.
#include <cmath>
#include <memory>

#include "array/error.h"
#include "models/architecture.h"
#include "recurrence/attention/attention.h"
#include "recurrence/segments/segments.h"

namespace reclab::architectures {
namespace {

struct BlockWeights {
  Var ln_1, ln_1_bias, c_attn, c_attn_bias, c_proj, c_proj_bias, ln_2, ln_2_bias, c_fc, c_fc_bias, mlp_proj, mlp_proj_bias;
};
struct Stack {
  std::vector<BlockWeights> stages;
  Var wpe, ln_f, ln_f_bias;
  std::int64_t heads;
  double eps;
};

Stack declare(Layer& l) {
  const Hyper& h = l.hyper;
  const std::int64_t d = h.integer("width"), depth = h.integer("depth"), M = h.integer("memory"),
                     F = h.integer("feed_forward") ? h.integer("feed_forward") : 4 * d;
  const Init small = init::normal(0.02), last = init::normal(0.02 / std::sqrt(2.0 * static_cast<double>(depth))),
             zero = init::constant(0.0), one = init::constant(1.0);
  const std::string starts = " [in, out]; starts N(0, 0.02²).", starts_last = " [in, out]; starts N(0, 0.02²/(2 depth)).",
                    bias = "Its bias; starts at 0.";
  Stack made{{}, {}, {}, {}, h.integer("heads"), h.real("norm_eps")};
  if (h.choice("position") == "learned")
    made.wpe = l.parameter("wpe.weight", {h.integer("segment") + 2 * M, d}, small,
                           "What is added to row i of a segment with its memory in front and behind; starts N(0, 0.02²).");
  for (std::int64_t i = 0; i < depth; ++i) {
    const std::string at = "h." + std::to_string(i) + ".";
    BlockWeights s;
    s.ln_1 = l.parameter(at + "ln_1.weight", {d}, one, "Scale of the norm before the attention; starts at 1.");
    s.ln_1_bias = l.parameter(at + "ln_1.bias", {d}, zero, "Its shift; starts at 0.");
    s.c_attn = l.parameter(at + "attn.c_attn.weight", {d, 3 * d}, small, "W_qkv, columns q, k, v, each by head," + starts);
    s.c_attn_bias = l.parameter(at + "attn.c_attn.bias", {3 * d}, zero, bias);
    s.c_proj = l.parameter(at + "attn.c_proj.weight", {d, d}, last, "W_o" + starts_last);
    s.c_proj_bias = l.parameter(at + "attn.c_proj.bias", {d}, zero, bias);
    s.ln_2 = l.parameter(at + "ln_2.weight", {d}, one, "Scale of the norm before the feed-forward part; starts at 1.");
    s.ln_2_bias = l.parameter(at + "ln_2.bias", {d}, zero, "Its shift; starts at 0.");
    s.c_fc = l.parameter(at + "mlp.c_fc.weight", {d, F}, small, "W₁" + starts);
    s.c_fc_bias = l.parameter(at + "mlp.c_fc.bias", {F}, zero, bias);
    s.mlp_proj = l.parameter(at + "mlp.c_proj.weight", {F, d}, last, "W₂" + starts_last);
    s.mlp_proj_bias = l.parameter(at + "mlp.c_proj.bias", {d}, zero, bias);
    made.stages.push_back(s);
  }
  made.ln_f = l.parameter("ln_f.weight", {d}, one, "Scale of the norm after the stack, which outputs and memory pass; starts at 1.");
  made.ln_f_bias = l.parameter("ln_f.bias", {d}, zero, "Its shift; starts at 0.");
  return made;
}

/// The causal stack over the rows of Z, [batch, rows, d].
Var run(const Stack& stack, Var Z) {
  const std::int64_t B = Z.dim(0), rows = Z.dim(1), d = Z.dim(2), heads = stack.heads, D = d / heads;
  const int swap[] = {0, 2, 1, 3};
  if (stack.wpe) Z = Z + slice(stack.wpe, 0, 0, rows);
  for (const BlockWeights& s : stack.stages) {
    const auto qkv = split(matmul(layer_norm(Z, s.ln_1, s.ln_1_bias, stack.eps), s.c_attn) + s.c_attn_bias, -1, 3);
    const auto by_head = [&](Var x) { return reshape(permute(reshape(x, {B, rows, heads, D}), swap), {B * heads, rows, D}); };
    SoftmaxAttention a;
    a.q = by_head(qkv[0] / std::sqrt(static_cast<double>(D)));
    a.k = by_head(qkv[1]);
    a.v = by_head(qkv[2]);
    const Var read = reshape(permute(reshape(softmax_attention(a, false), {B, heads, rows, D}), swap), {B, rows, d});
    Z = Z + (matmul(read, s.c_proj) + s.c_proj_bias);
    const Var inside = gelu_tanh(matmul(layer_norm(Z, s.ln_2, s.ln_2_bias, stack.eps), s.c_fc) + s.c_fc_bias);
    Z = Z + (matmul(inside, s.mlp_proj) + s.mlp_proj_bias);
  }
  return layer_norm(Z, stack.ln_f, stack.ln_f_bias, stack.eps);
}

}  // namespace

Architecture recurrent_memory_transformer() {
  Architecture a;
  a.title = "Recurrent memory transformer";
  a.equations = {"Z = [m; x_{t₀} .. x_{t₀+n−1}; m] + wpe, for each segment of n steps",
                 "depth times:  Z ← Z + W_o att(LN₁ Z) + b,  Z ← Z + W₂ gelu(W₁ LN₂ Z + b₁) + b₂",
                 "att: Σ_{j≤i} softmax_j(q_i·k_j/√D) v_j by head, causal over the rows of Z", "H = LN_f Z;  y = the n rows of the steps",
                 "m ← the last M rows of H, when the segment is full"};
  a.notes = {
      "The same m stands in front of a segment, where its steps read it, and behind it, where its rows see all of the segment and become "
      "the next memory.",
      "Parameters have the names of GPT-2, whose matrices are stored [in, out]; the whole stack of `depth` layers is one recurrent layer, "
      "since the memory goes from its top to its bottom.",
      "The state memory is what the segment of a step reads; at the last step of a full segment it is already the new one, and dL/dmemory "
      "is that of the array, the same for all steps that share it.",
      "Gradients pass through all segments: the reference's detach of old segments goes to a name that is not used again.",
      "The memory changes once a segment and not at every step, hence no spectrum and no ds_T/ds_t."};
  a.hyper = {hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
             hyper_integer("heads", "h", 4, 1, 64, "Heads; must divide the width."),
             hyper_integer("depth", "L", 2, 1, 64, "Transformer layers of the recurrent stack."),
             hyper_integer("memory", "M", 4, 1, 1024, "Memory tokens.", "tokens"),
             hyper_integer("segment", "n", 16, 1, 65536, "Steps of a segment.", "steps"),
             hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
             hyper_choice("position", "learned", {"learned", "none"}, "How a row knows where in its segment it is."),
             hyper_real("norm_eps", "ε", 1e-5, 1e-12, 1.0, "Epsilon of all norms.", true)};
  a.spectrum = "none: the memory changes once a segment, and no matrix takes it from one step to the next";
  a.source = {"A. Bulatov, Y. Kuratov, M. S. Burtsev", "Recurrent memory transformer", "NeurIPS", "https://arxiv.org/abs/2207.06881", 2022};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.integer("width") % h.integer("heads"))
      throw Error("recurrent-memory-transformer: heads = " + h.text("heads") + " does not divide width = " + h.text("width") +
                      ": choose a divisor.",
                  {.model = "recurrent-memory-transformer", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of width"});
  };

  a.layer = [](Layer& l, Var x) {
    const std::int64_t d = l.hyper.integer("width"), M = l.hyper.integer("memory"), segment = l.hyper.integer("segment");
    const Var first = l.parameter("memory", {M, d}, init::normal(0.02), "m at the start of the sequence; starts N(0, 0.02²).");
    const Stack stack = declare(l);
    return segments(
        l, {{"memory", {M, d}, "The memory tokens."}}, {first}, x, segment, [=](Cell&, std::span<const Var> memory, Var tokens) {
          const std::int64_t n = tokens.dim(1);
          const Var m = memory[0];
          std::vector<Var> rows{m, tokens};
          if (n == segment) rows.push_back(m);  // the rows that become the next memory see all others and are seen by none
          const Var H = run(stack, concat(rows, 1));
          return SegmentResult{slice(H, 1, M, M + n), n == segment ? std::vector<Var>{slice(H, 1, M + n, 2 * M + n)} : std::vector<Var>{}};
        });
  };
  return a;
}

}  // namespace reclab::architectures
