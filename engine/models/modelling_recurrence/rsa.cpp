// SPDX-License-Identifier: GPL-3.0-or-later
//   y_t = W_o concat_h [ (1 - σ(μ_h)) Σ_{s ≤ t} softmax_s(q_t·k_s/√D) v_s + σ(μ_h) Σ_{s < t} P^h_{t-s} v_s ]
//   P_n: regular λ^n, cyclical γ^n cos(nθ) or γ^n sin(nθ), λ = tanh(η), γ = σ(ν); dilated by m: P_{n/m} where m divides n, else 0
// F. Huang, K. Lu, Y. Cai, Z. Qin, Y. Fang, G. Tian, G. Li, Encoding recurrence into transformers, ICLR 2023. The sum over P is a linear
// recurrence:
//   z_t = λ (z_{t-1} + v_{t-1}), or z_t = γ e^{iθ} (z_{t-1} + v_{t-1}), of which Re or Im is read
#include <cmath>
#include <numbers>

#include "array/error.h"
#include "models/parts/layers/encoder_layer.h"
#include "models/parts/parts.h"
#include "recurrence/attention/attention.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::architectures {
namespace {

/// The number of heads of each recurrence, in this order; `regular` is the rest.
struct Split {
  std::int64_t regular, cosine, sine, dilated_regular, dilated_cosine, dilated_sine;
  std::int64_t plain() const { return regular + cosine + sine; }
  std::int64_t dilated() const { return dilated_regular + dilated_cosine + dilated_sine; }
  std::int64_t real() const { return regular + dilated_regular; }
  std::int64_t cyclical() const { return cosine + sine + dilated_cosine + dilated_sine; }
};
Split split_of(const Hyper& h) {
  Split s{h.integer("heads"),           h.integer("cosine"),         h.integer("sine"),
          h.integer("dilated_regular"), h.integer("dilated_cosine"), h.integer("dilated_sine")};
  s.regular -= s.cosine + s.sine + s.dilated();
  return s;
}

/// Some entries of a, then some of b, [count, 1]; either may have none.
Var joined(Var a, std::int64_t a_from, std::int64_t a_count, Var b, std::int64_t b_from, std::int64_t b_count) {
  std::vector<Var> parts;
  if (a_count) parts.push_back(slice(a, 0, a_from, a_from + a_count));
  if (b_count) parts.push_back(slice(b, 0, b_from, b_from + b_count));
  return reshape(parts.size() == 1 ? parts[0] : concat(parts, 0), {a_count + b_count, 1});
}

/// Re of the first `real_parts` heads of z [steps, batch, heads, D], Im of the others.
Var read_out(Var z, std::int64_t real_parts) {
  const std::int64_t heads = z.dim(2);
  std::vector<Var> parts;
  if (real_parts) parts.push_back(real(slice(z, 2, 0, real_parts)));
  if (real_parts < heads) parts.push_back(imag(slice(z, 2, real_parts, heads)));
  return parts.size() == 1 ? parts[0] : concat(parts, 2);
}

/// 1 where the step's number is `slot` modulo m, else 0: [steps, batch, 1, m, 1].
Var turn(Layer& l, std::int64_t m) {
  std::vector<double> slots;
  for (std::int64_t i = 0; i < m; ++i) slots.push_back(static_cast<double>(i));
  const Var t = l.position(), own = t - floor((t + 0.5) / static_cast<double>(m)) * static_cast<double>(m);
  return reshape(relu(1.0 - abs(own - t.graph->constant({m}, std::move(slots)))), {l.steps(), l.batch(), 1, m, 1});
}

/// Σ_{s < t} P_{t-s} v_s of every head, v [steps, batch, heads, D].
Var recurrence(Layer& l, Var v) {
  const Hyper& h = l.hyper;
  const Split s = split_of(h);
  const std::int64_t T = l.steps(), B = l.batch(), D = v.dim(3), m = h.integer("dilation"), real_heads = s.real(), cyclical = s.cyclical();
  const double low = h.real("init_low"), high = h.real("init_high");
  Var lambda, of_cos, of_sin, still;  // [heads of the kind]
  if (real_heads) {
    lambda = tanh(
        l.parameter("eta", {real_heads}, init::uniform(low, high),
                    "η of the regular heads, those that are dilated last: λ = tanh(η); starts uniform between init_low and init_high."));
    still = affine(lambda, 0.0, 0.0);
  }
  if (cyclical) {
    const Var gamma = sigmoid(l.parameter("nu", {cyclical}, init::uniform(low, high),
                                          "ν of the cyclical heads, cosine, sine, and then those that are dilated: γ = σ(ν); starts "
                                          "uniform between init_low and init_high."));
    const Var theta = l.parameter("theta", {cyclical}, init::constant(std::numbers::pi / 4.0),
                                  "θ of the cyclical heads, in radians a step; starts at π/4.");
    of_cos = gamma * cos(theta);
    of_sin = gamma * sin(theta);
  }
  // Read before the write: the sum begins with the step before this one.
  std::vector<Var> reads;
  if (const std::int64_t count = s.plain()) {
    const std::int64_t turning = s.cosine + s.sine;
    const Var a = complex(joined(lambda, 0, s.regular, of_cos, 0, turning), joined(still, 0, s.regular, of_sin, 0, turning)) *
                  v.graph->constant({1, D}, std::vector<double>(static_cast<std::size_t>(D), 1.0));
    const Var in = slice(v, 2, 0, count);
    const Var state = diagonal(l, {"s", {count, D}, "Σ a^{t−s} v_s with a = λ or γ e^{iθ}, this step's value with it."}, a,
                               complex(in, affine(in, 0.0, 0.0)));
    reads.push_back(read_out(l.previous_state(state) * a, s.regular + s.cosine));
  }
  if (const std::int64_t count = s.dilated()) {
    const std::int64_t turning = s.dilated_cosine + s.dilated_sine, from = s.cosine + s.sine;
    const Var a = reshape(complex(joined(lambda, s.regular, s.dilated_regular, of_cos, from, turning),
                                  joined(still, s.regular, s.dilated_regular, of_sin, from, turning)),
                          {count, 1, 1});
    const Var now = turn(l, m), others = 1.0 - now,
              ones = v.graph->constant({1, 1, D}, std::vector<double>(static_cast<std::size_t>(D), 1.0));
    const Var in = now * reshape(slice(v, 2, s.plain(), s.plain() + count), {T, B, count, 1, D});
    const Var state = diagonal(l,
                               {"dilated",
                                {count, m, D},
                                "The same of the dilated heads, a row for each remainder of the step's number by the dilation: a step "
                                "moves one row, the others stand still."},
                               (now * a + others) * ones, complex(in, affine(in, 0.0, 0.0)));
    reads.push_back(read_out(sum(now * l.previous_state(state), 3) * reshape(a, {count, 1}), s.dilated_regular + s.dilated_cosine));
  }
  return reads.size() == 1 ? reads[0] : concat(reads, 2);
}

}  // namespace

Architecture rsa() {
  Architecture a;
  a.title = "RSA";
  a.equations = {"[q k v] = W_in x_t + b, by head",
                 "y_t = W_o concat_h [(1 − σ(μ_h)) Σ_{s≤t} softmax_s(q_t·k_s/√D) v_s + σ(μ_h) Σ_{s<t} P^h_{t−s} v_s] + b",
                 "P_n, the recurrence encoding matrix: regular λⁿ;  cosine γⁿ cos(nθ);  sine γⁿ sin(nθ);  λ = tanh(η), γ = σ(ν)",
                 "dilated by m: P_{n/m} where m divides n, else 0",
                 "as a recurrence: z_t = a (z_{t-1} + v_{t-1}), a = λ or γ e^{iθ};  Σ_{s<t} P_{t−s} v_s = Re z_t, sine: Im z_t",
                 "block: x ← norm₁(x + y),  x ← norm₂(x + W₂ f(W₁ x)), or with the norms first (prenorm)"};
  a.notes = {
      "No public code of the authors was found. Names and shapes are those of torch.nn.TransformerEncoderLayer, as of transformer, with "
      "mu, eta, nu and theta besides; the masked, causal matrices of the paper.",
      "Heads stand in the order regular, cosine, sine, dilated regular, dilated cosine, dilated sine; eta has the regular ones in that "
      "order, nu and theta the cyclical ones.",
      "The matrices are 0 on the diagonal: what a step itself says comes through the softmax alone. They are not normalised, so they may "
      "be negative and their rows need not sum to 1.",
      "The states s and dilated are what the recurrence holds after the step's value was added; those of regular heads are real. Keys and "
      "values of the softmax are a buffer and not recorded, so spectrum and ds_T/ds_t are those of the recurrence alone.",
      "A dilated head holds one sum for each remainder t mod m. In one step one of them moves and the others stand still, so a step's "
      "spectrum has a once and 1 in the other rows.",
      "Each head has a gate σ(μ) of its own, or with gate=layer all heads of a layer have one. How the authors start η and ν was not to be "
      "found; here they are uniform between init_low and init_high.",
      "Where the window is set, the softmax sees so many steps; the recurrence sees all."};
  a.hyper = parts::encoder_hyper(
      {parts::position_hyper(), parts::rotary_base_hyper(),
       hyper_integer("window", "", 0, 0, 1000000, "Steps that the softmax sees, the current one included; 0: all.", "steps"),
       hyper_integer("cosine", "", 0, 0, 64, "Heads whose recurrence is read as a damped cosine.", "heads"),
       hyper_integer("sine", "", 0, 0, 64, "Heads whose recurrence is read as a damped sine.", "heads"),
       hyper_integer("dilated_regular", "", 0, 0, 64,
                     "Heads whose recurrence is regular and dilated. All heads that are not named are regular.", "heads"),
       hyper_integer("dilated_cosine", "", 0, 0, 64, "Heads whose recurrence is a dilated cosine.", "heads"),
       hyper_integer("dilated_sine", "", 0, 0, 64, "Heads whose recurrence is a dilated sine.", "heads"),
       hyper_integer("dilation", "m", 2, 2, 1024, "Which multiples of a step a dilated head sees.", "steps"),
       hyper_choice("gate", "head", {"head", "layer"}, "Whether each head has a gate of its own or all of a layer have one."),
       initialisation_only(hyper_real("gate_range", "", 3.0, 0.0, 100.0, "μ starts uniform in ± this.")),
       initialisation_only(hyper_real("init_low", "", 1.0, -20.0, 20.0, "η and ν start uniform from here.")),
       initialisation_only(hyper_real("init_high", "", 2.0, -20.0, 20.0, "η and ν start uniform up to here."))});
  a.spectrum = "of the recurrence: λ = tanh(η) and γ e^{iθ}, one for each channel of the head";
  a.source = {"F. Huang, K. Lu, Y. Cai, Z. Qin, Y. Fang, G. Tian, G. Li", "Encoding recurrence into transformers", "ICLR",
              "https://openreview.net/forum?id=7YfHla7IxBJ", 2023};
  a.reference = {{"layers.{n}.*", "*"}, {"norm.*", "final/norm.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    parts::check_encoder(h, "rsa");
    if (const Split s = split_of(h); s.regular < 0)
      throw Error("rsa: cosine, sine and dilated heads are " + std::to_string(h.integer("heads") - s.regular) +
                      " together, more than heads = " + h.text("heads") + ": choose fewer, or more heads.",
                  {.model = "rsa",
                   .parameter = "heads",
                   .value = h.text("heads"),
                   .range = "at least " + std::to_string(h.integer("heads") - s.regular)});
    if (h.real("init_low") > h.real("init_high"))
      throw Error(
          "rsa: init_low = " + h.text("init_low") + " is above init_high = " + h.text("init_high") + ": choose init_low at most init_high.",
          {.model = "rsa", .parameter = "init_low", .value = h.text("init_low"), .range = "at most init_high"});
  };
  a.layer = [](Layer& l, Var x) {
    return parts::encoder_layer(l, parts::with_positions(l, x), [&](Var in) {
      const auto [q, k, v] = parts::projected(l, in);
      const std::int64_t heads = q.dim(2), D = q.dim(3);
      const double range = l.hyper.real("gate_range");
      const Var mu = l.parameter("mu", {l.hyper.choice("gate") == "head" ? heads : 1}, init::uniform(-range, range),
                                 "μ of the gates: σ(μ) is the share of the recurrence; starts uniform in ±gate_range.");
      const Var share = reshape(sigmoid(mu), {-1, 1}), rest = reshape(sigmoid(-mu), {-1, 1});
      const Var recurrent =
          l.gate("recurrent", share * recurrence(l, v), 0.0, 0.0, "σ(μ) Σ P v: what the recurrence gives to the head's output; unbounded.");
      const Var read = attention(l, {.name = "k", .shape = {heads, D}, .text = "The keys so far.", .auxiliary = true},
                                 {.name = "v", .shape = {heads, D}, .text = "The values so far.", .auxiliary = true},
                                 q / std::sqrt(static_cast<double>(D)), k, v, l.hyper.integer("window"));
      return parts::flat(l, l.gate("attended", rest * read, 0.0, 0.0,
                                   "(1 − σ(μ)) softmax(q k) v: what the attention gives to the head's output; unbounded.") +
                                recurrent);
    });
  };
  a.final_layer = parts::encoder_finish;
  return a;
}

}  // namespace reclab::architectures
