// SPDX-License-Identifier: GPL-3.0-or-later
//   h_t = f(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh),   y_t = g(h_t [+ W_xy x_t]), or g(W_hy h_t + b_y [+ W_xy x_t])        f: tanh, relu or
//   identity
// J. L. Elman, Finding structure in time, Cognitive Science 14 (1990). Same parameters as torch.nn.RNN.
#include <cmath>

#include "array/error.h"
#include "models/architecture.h"
#include "models/parts/matrices.h"
#include "models/parts/parts.h"
#include "recurrence/mixing/mixing.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

/// rho times the identity.
Init identity(double rho, std::int64_t H) {
  return init::each([=](Rng&, std::int64_t i) { return i / H == i % H ? rho : 0.0; });
}
/// A diagonal of numbers that are uniform in +-rho.
Init diagonal(double rho, std::int64_t H) {
  return init::each([=](Rng& rng, std::int64_t i) { return i / H == i % H ? rng.uniform(-rho, rho) : 0.0; });
}
/// M - M^T of a normal M. Its eigenvalues are imaginary and fill a semicircle's projection whose edge is twice the deviation of an entry
/// times sqrt(H) (Wigner), so this deviation is chosen for an edge at rho.
Init antisymmetric(double rho, std::int64_t H) {
  return [=](InitContext& c) {
    const double deviation = rho / (2.0 * std::sqrt(static_cast<double>(H)));
    for (std::int64_t i = 0; i < H; ++i)
      for (std::int64_t j = 0; j < i; ++j) {
        const double entry = deviation * c.rng.normal();
        c.values[static_cast<std::size_t>(i * H + j)] = entry;
        c.values[static_cast<std::size_t>(j * H + i)] = -entry;
      }
  };
}
/// Blocks rho R(theta) on the diagonal, R a rotation in the plane and each theta uniform in from..to.
Init rotations(double rho, double from, double to, std::int64_t H) {
  return [=](InitContext& c) {
    for (std::int64_t i = 0; i < H; i += 2) {
      const double angle = from < to ? c.rng.uniform(from, to) : from, cosine = rho * std::cos(angle), sine = rho * std::sin(angle);
      double* block = c.values.data() + i * H + i;
      block[0] = cosine;
      block[1] = -sine;
      block[H] = sine;
      block[H + 1] = cosine;
    }
  };
}

}  // namespace

Architecture elman() {
  Architecture a;
  a.title = "Elman network";
  a.equations = {
      "h_t = f(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh)",
      "y_t = g(h_t), with feedthrough g(h_t + W_xy x_t), where g is the identity unless set;  outputs > 0: W_hy h_t + b_y in place of h_t",
      "∂h_t/∂h_{t-1} = diag(f'(a_t)) W_hh"};
  a.notes = {
      "Parameters have the shapes of torch.nn.RNN; its own names (weight_ih_l0, weight_ih_l0_reverse and so on, below any prefix) are read "
      "too.",
      "PyTorch starts every parameter uniform in ±1/√H; here W_hh starts orthogonal times the spectral radius unless recurrent_init says "
      "otherwise.",
      "recurrent_init=identity with ρ = 1, activation=relu, input_init=normal and bias_init=zero is the IRNN (Le, Jaitly and Hinton 2015, "
      "arXiv:1504.00941).",
      "recurrent_init=rotations with ρ above 1 and activation=tanh is the limit cycle initialisation (Park, Ságodi and Sokół 2023, "
      "arXiv:2308.12585): each pair of units keeps turning; the ranges of ρ = 1.5 and of the angles are those of the authors' code.",
      "Where a run has a target, a linear head follows the layers: y_t is then what it reads. outputs, feedthrough and output_activation "
      "give each layer the read-out σ_y(C x + D u) of textbooks under names of this project: weight_hy is C and weight_xy is D, which "
      "Elman's own network does not have.",
      "With h_0 = 0 and neither bias nor input the state stays at 0, which is a fixed point also where it is not a stable one."};
  a.hyper = {
      hyper_integer("width", "H", 64, 1, 4096, "Number of units.", "units"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
      hyper_choice("activation", "tanh", {"tanh", "relu", "identity"}, "The nonlinearity f; identity makes the network linear."),
      initialisation_only(hyper_real("spectral_radius", "ρ", 0.95, 0.0, 2.0,
                                     "Orthogonal W_hh is scaled by this: below 1 gradients vanish, above 1 they can explode.")),
      initialisation_only(
          hyper_choice("recurrent_init", "orthogonal", {"orthogonal", "uniform", "identity", "diagonal", "antisymmetric", "rotations"},
                       "How W_hh starts: orthogonal times ρ; uniform in ±1/√H as in PyTorch; ρ times the identity; diagonal, "
                       "uniform in ±ρ; M − Mᵀ of a normal M, eigenvalues within about ±iρ; or 2 × 2 blocks ρ R(θ).")),
      initialisation_only(hyper_real("angle_min", "θ_min", 0.14960, 0.0, 3.14159, "Smallest angle of a block of recurrent_init=rotations.",
                                     false, "rad/step")),
      initialisation_only(hyper_real("angle_max", "θ_max", 0.82673, 0.0, 3.14159, "Largest angle of a block of recurrent_init=rotations.",
                                     false, "rad/step")),
      initialisation_only(hyper_choice("input_init", "uniform", {"uniform", "normal"},
                                       "How W_ih starts: uniform in ±1/√H, or normal with deviation input_deviation.")),
      initialisation_only(hyper_real("input_deviation", "σ", 0.001, 0.0, 10.0, "Deviation of W_ih where input_init=normal.", false)),
      initialisation_only(hyper_choice("bias_init", "uniform", {"uniform", "zero"}, "How the biases start: uniform in ±1/√H, or at 0.")),
      hyper_flag("bias", true, "Whether the two bias vectors exist, and b_y."),
      hyper_integer("outputs", "M", 0, 0, 4096, "Outputs that a layer reads out of its units; 0: the units themselves.", "units"),
      hyper_flag("feedthrough", false, "Whether what a layer returns has the input in it too, W_xy x_t."),
      hyper_choice("output_activation", "identity", {"identity", "tanh", "logistic"}, "The nonlinearity g of what a layer returns.")};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂h_t/∂h_{t-1}";
  a.source = {"J. L. Elman", "Finding structure in time", "Cognitive Science 14", "https://doi.org/10.1207/s15516709cog1402_1", 1990};
  a.reference = {{"weight_ih_l{n}{_reverse}", "weight_ih"},
                 {"weight_hh_l{n}{_reverse}", "weight_hh"},
                 {"bias_ih_l{n}{_reverse}", "bias_ih"},
                 {"bias_hh_l{n}{_reverse}", "bias_hh"},
                 {"w_ih", "weight_ih"},
                 {"w_hh", "weight_hh"},
                 {"b_ih", "bias_ih"},
                 {"b_hh", "bias_hh"},
                 {"emb", ""},
                 {"emb.weight", ""},
                 {"embedding.weight", ""}};

  a.check = [](const Hyper& h) {
    if (h.choice("recurrent_init") != "rotations") return;
    if (h.integer("width") % 2)
      throw Error("elman: recurrent_init = rotations fills W_hh with 2 × 2 blocks, and the width = " + h.text("width") +
                      " is odd: choose an even width.",
                  {.model = "elman", .parameter = "width", .value = h.text("width"), .range = "even"});
    if (h.real("angle_min") > h.real("angle_max"))
      throw Error("elman: angle_min = " + h.text("angle_min") + " is above angle_max = " + h.text("angle_max") +
                      ": choose angle_min at most angle_max.",
                  {.model = "elman", .parameter = "angle_min", .value = h.text("angle_min"), .range = "at most angle_max"});
  };

  a.input_weights = {{"weight_ih"}, {"weight_xy"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width");
    const double k = 1.0 / std::sqrt(static_cast<double>(H)), rho = l.hyper.real("spectral_radius");
    const Init even = init::uniform(-k, k);
    const auto recurrent = [&]() -> Init {
      const std::string& kind = l.hyper.choice("recurrent_init");
      if (kind == "uniform") return even;
      if (kind == "identity") return identity(rho, H);
      if (kind == "diagonal") return diagonal(rho, H);
      if (kind == "antisymmetric") return antisymmetric(rho, H);
      if (kind == "rotations") return rotations(rho, l.hyper.real("angle_min"), l.hyper.real("angle_max"), H);
      return init::orthogonal(rho);
    };
    const Var W_ih = l.parameter("weight_ih", {H, x.dim(-1)},
                                 l.hyper.choice("input_init") == "normal" ? init::normal(l.hyper.real("input_deviation")) : even,
                                 "W_ih, from the input; starts uniform in ±1/√H (or normal).");
    const Var W_hh =
        l.parameter("weight_hh", {H, H}, recurrent(), "W_hh, from the state; starts orthogonal times ρ (or as recurrent_init says).");
    Var u = linear(x, W_ih);
    if (l.hyper.flag("bias")) {
      const Init start = l.hyper.choice("bias_init") == "zero" ? init::constant(0.0) : even;
      u = u + l.parameter("bias_ih", {H}, start, "b_ih; starts uniform in ±1/√H (or at 0).");
      u = u + l.parameter("bias_hh", {H}, start, "b_hh; starts uniform in ±1/√H (or at 0).");
    }
    const std::string f = l.hyper.choice("activation");
    const StateSpec state{"h", {H}, "The hidden state after the nonlinearity."};
    declare_matrix(l, {.matrix = W_hh});
    const CellFunction cell = [=](Cell&, std::span<const Var> u_t, std::span<const Var> s) {
      const Var sum = linear(s[0], W_hh, u_t[0]);
      return std::vector<Var>{parts::activation(f, sum)};
    };
    const std::int64_t M = l.hyper.integer("outputs");
    const Var W_hy = M ? l.parameter("weight_hy", {M, H}, even, "W_hy, from the units to the outputs; starts uniform in ±1/√H.") : Var{};
    const Var b_y = M && l.hyper.flag("bias") ? l.parameter("bias_y", {M}, even, "b_y; starts uniform in ±1/√H.") : Var{};
    const Var W_xy = l.hyper.flag("feedthrough") ? l.parameter("weight_xy", {M ? M : H, x.dim(-1)}, even,
                                                               "W_xy, from the input to what the layer returns; starts uniform in ±1/√H.")
                                                 : Var{};
    const Var h = f == "identity" ? parts::linear_step(l, state, [=] { return W_hh; }, u, {u}, cell) : step(l, {state}, {u}, cell)[0];
    const Var read = M ? linear(h, W_hy, b_y) : h;
    return parts::activation(l.hyper.choice("output_activation"), W_xy ? read + linear(x, W_xy) : read);
  };
  return a;
}

}  // namespace reclab::architectures
