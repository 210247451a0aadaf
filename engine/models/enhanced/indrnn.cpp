// SPDX-License-Identifier: GPL-3.0-or-later
//   h_t = f(W_ih x_t + b_ih + u ∘ h_{t-1}),   y_t = h_t          f: relu, tanh, sigmoid or identity
//   norm before: f(bn(W_ih x_t + b_ih) + u ∘ h_{t-1});   after: y_t = bn(h_t);   within: h_t = bn(f(...))
//   bn(v) = (v - m)/sqrt(s + eps) w + b, m and s the running mean and variance
// S. Li, W. Li, C. Cook, C. Zhu, Y. Gao, Independently recurrent neural network (IndRNN), CVPR 2018. Names of the authors' PyTorch code.
#include <cmath>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/independent/independent.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

Activation activation_of(const std::string& name) {
  return name == "relu" ? Activation::relu : name == "tanh" ? Activation::tanh : Activation::sigmoid;
}

}  // namespace

Architecture indrnn() {
  Architecture a;
  a.title = "IndRNN";
  a.equations = {
      "h_t = f(W_ih x_t + b_ih + u ⊙ h_{t-1})", "y_t = h_t", "∂h_t/∂h_{t-1} = diag(f'(a_t) ⊙ u)",
      "norm=before: f(bn(W_ih x_t + b_ih) + u ⊙ h_{t-1});  after: y_t = bn(h_t);  within: h_t = bn(f(W_ih x_t + b_ih + u ⊙ h_{t-1}))"};
  a.notes = {
      "u is weight_hh [H]. Read too are the names of the authors' plain network (DIs.0.fc.weight, RNNs.0.indrnn1.weight_hh, "
      "RNNs.0.norm1.bn.weight) and of the cells they took over (cells.0.0.weight_ih, bns.0.0.weight); num_batches_tracked and h0 are left "
      "aside.",
      "The batch norm is that of evaluation: its running mean and variance are numbers like the weights, and no step sees another through "
      "it. In training the authors take mean and variance over batch and time.",
      "norm=within is the batch norm of the cells (StefOe's), which comes before a state is fed back; the authors' networks have it before "
      "or after the recurrence.",
      "The authors keep |u| at most γ^(1/T), γ = 2, by clipping after an optimiser's step, which is not done here; u starts uniform in "
      "u_min..u_max, in the authors' networks 0..γ^(1/T), and for long memory γ^(−1/T)..γ^(1/T) in the last layer."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Number of units.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_choice("activation", "relu", {"relu", "tanh", "sigmoid", "identity"}, "The nonlinearity f."),
             hyper_flag("bias", true, "Whether b_ih exists."),
             hyper_choice("norm", "none", {"none", "before", "after", "within"},
                          "Where a batch norm stands: before the recurrence, after it, or within it."),
             initialisation_only(hyper_real("u_min", "u_min", 0.0, -2.0, 2.0, "Smallest u at the start.")),
             initialisation_only(
                 hyper_real("u_max", "u_max", 1.0, -2.0, 2.0,
                            "Largest u at the start: with relu a unit's gradient is multiplied by u at each step at which it is on."))};
  a.spectrum = "the diagonal of the Jacobian, f'(a_t) ⊙ u: an entry a unit";
  a.source = {"S. Li, W. Li, C. Cook, C. Zhu, Y. Gao", "Independently recurrent neural network (IndRNN): building a longer and deeper RNN",
              "CVPR", "https://arxiv.org/abs/1803.04831", 2018};
  a.reference = {{"DIs.{n}.fc.weight", "weight_ih"},
                 {"DIs.{n}.fc.bias", "bias_ih"},
                 {"RNNs.{n}.indrnn1.weight_hh", "weight_hh"},
                 {"RNNs.{n}.norm1.bn.*", "norm.*"},
                 {"RNNs.{n}.indrnn1.indrnn_cell.weight_hh", "weight_hh"},
                 {"cells.{n}.0.weight_ih", "weight_ih"},
                 {"cells.{n}.0.bias_ih", "bias_ih"},
                 {"cells.{n}.0.weight_hh", "weight_hh"},
                 {"bns.{n}.0.*", "norm.*"},
                 {"num_batches_tracked", ""},
                 {"h0", ""}};
  a.check = [](const Hyper& h) {
    if (h.real("u_min") > h.real("u_max"))
      throw Error("indrnn: u_min = " + h.text("u_min") + " is above u_max = " + h.text("u_max") + ": choose u_min at most u_max.",
                  {.model = "indrnn", .parameter = "u_min", .value = h.text("u_min"), .range = "at most u_max"});
  };

  a.input_weights = {{"weight_ih"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), in = x.dim(-1);
    const std::string& norm = l.hyper.choice("norm");
    const double low = l.hyper.real("u_min"), high = l.hyper.real("u_max");
    const Var W = l.parameter("weight_ih", {H, in}, parts::torch_uniform(in), "W_ih, from the input; starts uniform in ±1/√in.");
    const Var u = l.parameter("weight_hh", {H}, low < high ? init::uniform(low, high) : init::constant(low),
                              "u: what each unit sees of itself; starts uniform in u_min..u_max.");
    Var drive = linear(x, W);
    if (l.hyper.flag("bias")) drive = drive + l.parameter("bias_ih", {H}, init::constant(0.0), "b_ih; starts at 0.");
    parts::BatchNorm bn;
    if (norm != "none") bn = parts::batch_norm(l, "norm", H);
    if (norm == "before") drive = bn(drive);
    const StateSpec state{
        "h", {H}, norm == "within" ? "The hidden state after nonlinearity and norm." : "The hidden state after the nonlinearity."};
    const std::string f = l.hyper.choice("activation");
    if (norm == "within")
      return step(
          l, {state}, {drive},
          [=](Cell&, std::span<const Var> now, std::span<const Var> h) {
            return std::vector<Var>{bn(parts::activation(f, now[0] + u * h[0]))};
          },
          Sees::own_entry)[0];
    const Var h = f == "identity" ? diagonal(l, state, u, drive)
                                  : independent(l, state, activation_of(f), drive, u);  // the linear recurrence has more forms
    return norm == "after" ? bn(h) : h;
  };
  return a;
}

}  // namespace reclab::architectures
