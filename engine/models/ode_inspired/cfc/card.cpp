// SPDX-License-Identifier: GPL-3.0-or-later
// The card of CfC: conventions, options, names of other people's files.
#include <string>
#include <utility>

#include "models/ode_inspired/cfc/parameters.h"
#include "models/parts/wiring/wiring.h"

namespace reclab::architectures {

Architecture cfc_card() {
  Architecture a;
  a.title = "CfC";
  a.equations = {"u = backbone([x_t; h_{t-1}]), layers of φ(W u + b); φ(z) = 1.7159 tanh(0.666 z) for lecun_tanh",
                 "f = W_1 u + b_1,  g = W_2 u + b_2,  s = σ((A u + a) Δ_t + B u + b)",
                 "default: h_t = (1 − s) ⊙ tanh(f) + s ⊙ tanh(g);  no_gate: h_t = tanh(f) + s ⊙ tanh(g)",
                 "pure: h_t = A − A ⊙ exp(−Δ_t (|w_τ| + |f|)) ⊙ f",
                 "mixed memory: [z i f o] = W_in x_t + b_in + W_rec h_{t-1},  c_t = σ(f + 1) ⊙ c_{t-1} + σ(i) ⊙ tanh(z),  and σ(o) ⊙ "
                 "tanh(c_t) is what the cell reads as h_{t-1}",
                 "y_t = h_t, or W_fc h_t + b_fc with a projection"};
  a.notes = {
      "Names and shapes are those of ncps' torch CfC: rnn_cell.backbone.{0,2,…}, rnn_cell.{ff1,ff2,time_a,time_b}, rnn_cell.{w_tau,A} of "
      "shape [1, H] in pure mode, lstm.{input_map,recurrent_map}, fc; a file of a CfCCell alone is read too.",
      "Elapsed times are ncps' timespans. Its dropout, which acts in training alone, is left out.",
      "wiring is that of a wired CfC: rnn_cell.layer_0, layer_1, … without a backbone, one above the other within a step, whose weights of "
      "ff1 and ff2 are multiplied by sparsity_mask; time_a and time_b have no mask. h is that of all layers after one another, and the "
      "last layer is read out: inter, command and motor neurons of an NCP, all neurons at once of the other wirings.",
      "Masks are entries of ncps' files and numbers here, with a gradient that ncps does not have. An NCP's are drawn as ncps draws them, "
      "of the same seed.",
      "raminmh/CfC calls pure minimal, starts all weights as torch.nn.Linear does, and has no_gate as here; its backbone has at least one "
      "layer."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Units (hidden_size).", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_choice("mode", "default", {"default", "pure", "no_gate"},
                          "How the two ends are joined: by the gate in time, by the solution itself (pure), or added (no_gate)."),
             hyper_integer("backbone_layers", "", 1, 0, 16, "Layers of the backbone; 0: the heads read x and h themselves."),
             hyper_integer("backbone_units", "", 128, 1, 4096, "Width of the backbone.", "units"),
             hyper_choice("activation", "lecun_tanh", {"lecun_tanh", "silu", "relu", "tanh", "gelu"}, "φ of the backbone."),
             hyper_flag("mixed_memory", false, "Whether an LSTM cell stands in front, whose output takes the place of h."),
             hyper_integer("projection", "P", 0, 0, 4096, "Size that h is projected to (proj_size in ncps); 0: no projection.", "units"),
             hyper_integer("motor", "M", 0, 0, 1024, "Motor neurons of an NCP, which are read out; 0: a quarter of the width.", "units")};
  for (HyperSpec& row : parts::wiring_hyper(true)) a.hyper.push_back(std::move(row));
  a.check = [](const Hyper& h) { parts::check_wiring(h, "cfc"); };
  a.knows_time = true;
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂h_t/∂h_{t-1}, with mixed memory of (h, c)";
  a.source = {"R. Hasani, M. Lechner, A. Amini, L. Liebenwein, A. Ray, M. Tschaikowski, G. Teschl, D. Rus",
              "Closed-form continuous-time neural networks", "Nature Machine Intelligence 4", "https://arxiv.org/abs/2106.13898", 2022};
  a.reference = {{"rnn_cell.*", "rnn_cell.*"}, {"lstm.*", "lstm.*"}, {"fc.*", "fc.*"}, {"*", "rnn_cell.*"}};
  a.input_weights = {{"rnn_cell.backbone.0.weight", InputWeight::Part::first_columns},
                     {"rnn_cell.ff1.weight", InputWeight::Part::first_columns, "rnn_cell.backbone.0.weight"},
                     {"rnn_cell.ff2.weight", InputWeight::Part::first_columns, "rnn_cell.backbone.0.weight"},
                     {"rnn_cell.time_a.weight", InputWeight::Part::first_columns, "rnn_cell.backbone.0.weight"},
                     {"rnn_cell.time_b.weight", InputWeight::Part::first_columns, "rnn_cell.backbone.0.weight"},
                     {"rnn_cell.layer_0.ff1.weight", InputWeight::Part::first_columns},
                     {"rnn_cell.layer_0.ff2.weight", InputWeight::Part::first_columns},
                     {"rnn_cell.layer_0.time_a.weight", InputWeight::Part::first_columns},
                     {"rnn_cell.layer_0.time_b.weight", InputWeight::Part::first_columns},
                     {"lstm.input_map.weight"}};
  return a;
}

}  // namespace reclab::architectures
