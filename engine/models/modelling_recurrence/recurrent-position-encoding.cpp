// SPDX-License-Identifier: GPL-3.0-or-later
//   x = [u; v], u of d − d_r channels, v of d_r:  r_t = tanh(U v_t + b + W r_{t-1}),  z_t = [u_t + PE_t; r_t]
//   heads = independent: heads of z's first part, and heads of its last d_r channels, side by side;  heads = parts: each head sees a share
//   of both
// K. Chen, R. Wang, M. Utiyama, E. Sumita, Recurrent positional embedding for neural machine translation, EMNLP 2019.
#include <cmath>

#include "array/error.h"
#include "models/parts/layers/encoder_layer.h"
#include "models/parts/layers/torch_cell.h"
#include "models/parts/parts.h"
#include "recurrence/attention/attention.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

std::int64_t recurrent_width(const Hyper& h) {
  return h.integer("recurrent_width") ? h.integer("recurrent_width") : h.integer("width") / 2;
}

Var read_of(Layer& l, const std::string& name, const parts::AttentionInputs& of) {
  const std::int64_t heads = of.q.dim(2), D = of.q.dim(3);
  return attention(l, {.name = name + "k", .shape = {heads, D}, .text = "The keys so far.", .auxiliary = true},
                   {.name = name + "v", .shape = {heads, D}, .text = "The values so far.", .auxiliary = true},
                   of.q / std::sqrt(static_cast<double>(D)), of.k, of.v, l.hyper.integer("window"));
}

}  // namespace

Architecture recurrent_position_encoding() {
  Architecture a;
  a.title = "Recurrent positional embedding";
  a.equations = {"the stream below the first layer is [u_t; v_t], of d − d_r and d_r channels",
                 "r_t = tanh(W_ih v_t + b_ih + W_hh r_{t−1} + b_hh), or a GRU or LSTM of v_t",
                 "z_t = [u_t + PE_t; r_t], PE sinusoidal",
                 "independent: y_t = W_o [att(u part of z) by h heads; att(r part of z) by h_r heads]",
                 "parts: q = [q^u; q^r] in each of h heads, k and v alike, scaled by 1/√(d/h)",
                 "block: z ← norm₁(z + y),  z ← norm₂(z + W₂ f(W₁ z)), or with the norms first (prenorm)"};
  a.notes = {
      "No public code of the authors was found. The block is torch.nn.TransformerEncoderLayer with its names; self_attn.in_proj is that of "
      "the first part of the stream, recurrent_attn.in_proj that of the last d_r channels, rnn.* as in torch.nn.RNN, GRU and LSTM.",
      "The paper splits the word vector in two, of which the recurrent network reads the second; here it is what the encoder returns, and "
      "only below the first layer. In the layers above the same channels are taken for the recurrent part.",
      "independent is the paper's RPEHead, parts its MPRHead. The sentence of a translation is read causally here, by the network and by "
      "the attention.",
      "Keys and values are buffers and not recorded, so spectrum and ds_T/ds_t are those of the recurrent network, in the first layer; the "
      "layers above have no state."};
  a.hyper = parts::encoder_hyper(
      {hyper_integer("recurrent_width", "d_r", 0, 0, 4096, "Channels of the stream that the recurrent network makes; 0: half of them.",
                     "channels"),
       hyper_choice("recurrent_heads", "independent", {"independent", "parts"},
                    "Whether the recurrent channels have heads of their own or are a part of each head."),
       hyper_integer("own_heads", "h_r", 1, 1, 64, "Heads of the recurrent channels where they are independent.", "heads"),
       hyper_choice("cell", "rnn", {"rnn", "gru", "lstm"}, "The recurrent network; rnn is that with tanh."),
       hyper_choice("position", "sinusoidal", {"sinusoidal", "none"}, "What is added to the channels beside the recurrent ones."),
       hyper_integer("window", "", 0, 0, 1000000, "Steps that the attention sees, the current one included; 0: all.", "steps")});
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂r_t/∂r_{t-1} (lstm: of h and c)";
  a.source = {"K. Chen, R. Wang, M. Utiyama, E. Sumita", "Recurrent positional embedding for neural machine translation", "EMNLP",
              "https://aclanthology.org/D19-1139", 2019};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    const std::int64_t d = h.integer("width"), own = recurrent_width(h), heads = h.integer("heads");
    const std::string model = "recurrent-position-encoding";
    if (own >= d || own == 0)
      throw Error(
          model + ": recurrent_width = " + h.text("recurrent_width") + " leaves nothing on one side of width = " + h.text("width") +
              ": choose another, or a larger width.",
          {.model = model, .parameter = "recurrent_width", .value = h.text("recurrent_width"), .range = "1.." + std::to_string(d - 1)});
    const auto divides = [&](std::int64_t width, std::int64_t count, const char* key, const std::string& of) {
      if (width % count)
        throw Error(model + ": " + key + " = " + std::to_string(count) + " does not divide " + of + " = " + std::to_string(width) +
                        ": choose a divisor.",
                    {.model = model, .parameter = key, .value = std::to_string(count), .range = "a divisor of " + of});
    };
    divides(d - own, heads, "heads", "width − recurrent_width");
    if (h.choice("recurrent_heads") == "parts") divides(own, heads, "heads", "recurrent_width");
    if (h.choice("recurrent_heads") == "independent") divides(own, h.integer("own_heads"), "own_heads", "recurrent_width");
    if (h.choice("position") == "sinusoidal" && (d - own) % 2)
      throw Error(model + ": position = sinusoidal needs an even width − recurrent_width, not " + std::to_string(d - own) +
                      ": choose another width, or position=none.",
                  {.model = model, .parameter = "position", .value = "sinusoidal", .range = "none"});
  };
  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), own = recurrent_width(h), heads = h.integer("heads");
    if (l.index() == 0) {
      const parts::TorchCell network(l, h.choice("cell"), "rnn.", own, own);
      std::vector<StateSpec> states{{"r", {own}, "The recurrent positional embedding: the state of the recurrent network."}};
      if (h.choice("cell") == "lstm") states.push_back({"c", {own}, "The cell of its LSTM."});
      const Var r =
          step(l, states, {network.driven(slice(x, -1, d - own, d))}, [=](Cell& cell, std::span<const Var> u, std::span<const Var> s) {
            std::vector<parts::TorchCell::Gate> gates;
            const auto next = network(u[0], s, &gates);
            for (const auto& gate : gates) cell.gate(gate.name, gate.value, 0.0, 1.0, gate.text);
            return next;
          })[0];
      Var rest = slice(x, -1, 0, d - own);
      if (h.choice("position") == "sinusoidal") rest = parts::with_sinusoids(l, rest);
      const Var both[] = {rest, r};
      x = concat(both, -1);
    }
    return parts::encoder_layer(l, x, [&](Var z) {
      const parts::AttentionInputs content = parts::projected(l, "self_attn", slice(z, -1, 0, d - own), heads);
      const bool independent = h.choice("recurrent_heads") == "independent";
      const parts::AttentionInputs order =
          parts::projected(l, "recurrent_attn", slice(z, -1, d - own, d), independent ? h.integer("own_heads") : heads);
      if (!independent) {
        const auto joined = [](Var first, Var second) {
          const Var both[] = {first, second};
          return concat(both, -1);
        };
        return parts::flat(l, read_of(l, "", {joined(content.q, order.q), joined(content.k, order.k), joined(content.v, order.v)}));
      }
      const Var both[] = {parts::flat(l, read_of(l, "", content)), parts::flat(l, read_of(l, "recurrent_", order))};
      return concat(both, -1);
    });
  };
  a.final_layer = parts::encoder_finish;
  return a;
}

}  // namespace reclab::architectures
