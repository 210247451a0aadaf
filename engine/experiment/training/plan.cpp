// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/training/plan.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "array/error.h"

namespace reclab {
namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();
constexpr std::int64_t longest = std::int64_t{1} << 40, most = std::int64_t{1} << 20;
constexpr double most_steps = 1e7, longest_sequence = 1e6;  // in the form

template <class T, class Of>
TrainingField field(std::string flag, std::string argument, HyperSpec row, Of of) {
  return plan_field<TrainingPlan, T>(std::move(flag), std::move(argument), std::move(row), of);
}

template <class Of>
TrainingField count(std::string flag, std::string argument, std::string key, std::int64_t low, std::int64_t high, std::string text, Of of) {
  return count_field<TrainingPlan>(std::move(flag), std::move(argument), std::move(key), low, high, std::move(text), of);
}

/// From 0 on.
template <class Of>
TrainingField real(std::string flag, std::string key, double high, std::string text, Of of) {
  return field<double>(std::move(flag), "X", hyper_real(std::move(key), {}, 0.0, 0.0, high, std::move(text)), of);
}

template <class Of, class Named>
TrainingField choice(std::string flag, std::string key, std::vector<std::string> choices, std::string text, Of of, Named named) {
  TrainingField made;
  made.row = hyper_choice(std::move(key), choices.front(), choices, std::move(text));
  made.flag = std::move(flag);
  made.argument = "NAME";
  made.get = [of](const TrainingPlan& plan) { return HyperValue(std::string(to_string(of(plan)))); };
  made.set = [of, named](TrainingPlan& plan, const HyperValue& value) { of(plan) = named(std::get<std::string>(value)); };
  made.row.standard = made.get(TrainingPlan());
  return made;
}

TrainingField usually(std::string usual, TrainingField made) {
  made.usual = std::move(usual);
  return made;
}
TrainingField always(TrainingField made) {
  made.always = true;
  return made;
}
TrainingField of_file(std::string why, TrainingField made) {
  made.of = Field::Of::file;
  made.why = std::move(why);
  return made;
}
TrainingField where(std::function<bool(const TrainingPlan&)> applies, TrainingField made) {
  made.applies = std::move(applies);
  return made;
}
TrainingField shown(FormRow form, TrainingField made) {
  made.form = std::move(form);
  return made;
}

TrainingField rule_choice() {
  std::vector<std::string> ids, names;
  std::string known;
  for (const LearningRuleInfo& rule : learning_rules()) {
    ids.push_back(rule.id);
    names.push_back(rule.name);
    known += (known.empty() ? "" : ", ") + rule.id + " (" + rule.title + ")";
  }
  TrainingField made = field<std::string>("--rule", "NAME", hyper_choice("rule", TrainingOptions().rule, ids, known),
                                          [](auto& plan) -> auto& { return plan.options.rule; });
  made.set = [](TrainingPlan& plan, const HyperValue& value) { plan.options.rule = learning_rule(std::get<std::string>(value)).id; };
  return shown({"learning rule", "How the loss becomes gradients: backwards through the steps, or forwards with them", 0, 0, names}, made);
}

TrainingField optimiser_choice() {
  std::vector<std::string> ids, titles;
  for (const OptimiserRule& rule : optimiser_rules()) {
    ids.push_back(rule.id);
    titles.push_back(rule.title);
  }
  std::string known = ids.front();
  for (std::size_t i = 1; i < ids.size(); ++i) known += (i + 1 < ids.size() ? ", " : " or ") + ids[i];
  TrainingField made = field<std::string>(
      "--optimiser", "NAME", hyper_choice("optimiser", OptimiserOptions().rule, ids, known + ", with the conventions of torch.optim"),
      [](auto& plan) -> auto& { return plan.options.optimiser.rule; });
  made.set = [](TrainingPlan& plan, const HyperValue& value) {
    plan.options.optimiser.rule = optimiser_rule(std::get<std::string>(value)).id;
  };
  return always(
      shown({"optimiser", "The rule by which gradients change weights, with the conventions of torch.optim", 0, 0, titles}, made));
}

/// Whether a rule has the states of whole sequences, or changes the weights by itself.
bool learns_whole(const TrainingPlan& plan) {
  const std::string& rule = plan.options.rule;
  static const std::set<std::string_view> whole{
      "forcing", "force", "predictive-coding", "temporal-pc", "block-descent", "lifted", "local-propagation", "lra", "p-tncn", "dni"};
  return whole.contains(rule);
}

/// Whether an optimiser has gradients to change weights by.
bool optimises(const TrainingPlan& plan) { return plan.options.rule != "force" && plan.options.rule != "block-descent"; }

/// Of one optimiser or several.
TrainingField of_optimiser(const Field& option) {
  const std::string key = option.row.key;
  TrainingField made{option};
  made.flag = flag_of(key);
  if (option.row.kind == HyperKind::real) made.argument = "X";
  made.get = [key](const TrainingPlan& plan) { return plan.options.optimiser.value(key); };
  made.set = [key](TrainingPlan& plan, const HyperValue& value) { plan.options.optimiser.set(key, value); };
  made.applies = [key](const TrainingPlan& plan) { return optimises(plan) && has_field(optimiser_rule(plan.options.optimiser.rule), key); };
  return made;
}

bool of_fixed_points(const TrainingPlan& plan) {
  return plan.options.rule == "rbp" || plan.options.rule == "cg-rbp" || plan.options.rule == "neumann-rbp";
}

/// Whether a rule goes back through the steps of a sequence.
bool goes_back(const TrainingPlan& plan) { return plan.options.rule == "bptt" || plan.options.rule == "adjoint"; }
bool goes_back_in_parts(const TrainingPlan& plan) { return goes_back(plan) || plan.options.rule == "fptt"; }

std::vector<TrainingField> made() {
  std::vector<TrainingField> all;
  const auto add = [&all](TrainingField one) { all.push_back(std::move(one)); };
  add(shown({"window of the file",
             "Steps of the file that are learned from at once, or as many as fit where it is short; the last fifth of the file is held out",
             2,
             longest_sequence,
             {}},
            always(of_file("a task has a length of its own", count("--window", "T", "window", 1, longest, "Steps of a window",
                                                                   [](auto& plan) -> auto& { return plan.windows.length; })))));
  add(shown({"steps ahead", "Of a file without a target: which of its coming values is to be foretold", 1, longest_sequence, {}},
            always(of_file("a task brings the target that it has",
                           count("--ahead", "K", "ahead", 1, longest, "The target is the file's own value so many steps later",
                                 [](auto& plan) -> auto& { return plan.windows.ahead; })))));
  add(always(of_file("of a task a number of sequences is held out",
                     real("--held-out-share", "held_out_share", 1.0, "Share of the file that is held out",
                          [](auto& plan) -> auto& { return plan.windows.held_out; }))));
  add(shown({"number of steps", "How often the weights are changed, a batch each", 1, most_steps, {}},
            always(count("--steps", "N", "length", 0, longest, "Batches to learn from", [](auto& plan) -> auto& { return plan.steps; }))));
  add(usually("all", count("--until", "N", "until", 1, longest, "End after so many of them, at the rates that all of them would have",
                           [](auto& plan) -> auto& { return plan.until; })));
  add(shown(
      {"batch", "Sequences that a step learns from; the gradient is the mean of theirs", 1, 4096, {}},
      always(count("--batch", "B", "batch", 1, most, "Sequences of a batch", [](auto& plan) -> auto& { return plan.options.batch; }))));
  add(shown({"learning rate", "How far a step goes; the largest of the schedule", 0, 1e3, {}},
            where(optimises, always(real("--lr", "rate", unbounded, "Rate of learning",
                                         [](auto& plan) -> auto& { return plan.options.rate.rate; })))));
  add(rule_choice());
  add(shown(
      {"order of SnAp", "The influence of a weight is kept on the entries of the state that it reaches within so many steps", 1, 64, {}},
      where([](const TrainingPlan& plan) { return plan.options.rule == "snap"; },
            count("--snap-order", "N", "snap_order", 1, most, "Of snap: the steps within which a weight reaches the entries that are kept",
                  [](auto& plan) -> auto& { return plan.options.snap_order; }))));
  add(shown({"terms of RBP", "Of Neumann's series, or the most iterations of conjugate gradients", 1, 1000, {}},
            where([](const TrainingPlan& plan) { return plan.options.rule == "neumann-rbp" || plan.options.rule == "cg-rbp"; },
                  count("--rbp-terms", "N", "rbp_terms", 1, most, "Of neumann-rbp: terms of its series; of cg-rbp: the most iterations",
                        [](auto& plan) -> auto& { return plan.options.rbp_terms; }))));
  add(shown({"damping of RBP", "η: what is added to the normal equations, so that conjugate gradients have a solution", 0, 1, {}},
            where([](const TrainingPlan& plan) { return plan.options.rule == "cg-rbp"; },
                  real("--rbp-damping", "rbp_damping", unbounded, "Of cg-rbp: the damping η of the normal equations",
                       [](auto& plan) -> auto& { return plan.options.rbp_damping; }))));
  add(shown({"Lipschitz penalty", "μ: weight of the penalty that keeps the step a contraction, |(1ᵀJ − λ)⁺|", 0, 1e3, {}},
            where(of_fixed_points,
                  real("--lipschitz", "lipschitz", unbounded, "Of rbp, cg-rbp and neumann-rbp: weight of the penalty |(1ᵀJ − λ)⁺|",
                       [](auto& plan) -> auto& { return plan.options.lipschitz; }))));
  add(shown({"its bound", "λ: sums of the columns of the step's Jacobian up to it have no penalty", 0, 1e3, {}},
            where([](const TrainingPlan& plan) { return of_fixed_points(plan) && plan.options.lipschitz > 0.0; },
                  real("--lipschitz-bound", "lipschitz_bound", unbounded, "The bound λ of that penalty",
                       [](auto& plan) -> auto& { return plan.options.lipschitz_bound; }))));
  add(shown(
      {"gate penalty", "Weight of a penalty on the gates, which is added to the loss that gradients are of", 0, 1e3, {}},
      where(goes_back_in_parts, usually("none", real("--gate-penalty", "gate_penalty", unbounded,
                                                     "Of bptt, fptt and adjoint: weight of a penalty on gates, the mean over their entries",
                                                     [](auto& plan) -> auto& { return plan.options.gate_penalty; })))));
  add(shown(
      {"of gates",
       "g: a gate's value; or, of gates between two bounds, how near it is to either, 1 there and 0 in the middle",
       0,
       0,
       {"|g|", "g²", "saturation"}},
      where([](const TrainingPlan& plan) { return goes_back_in_parts(plan) && plan.options.gate_penalty > 0.0; },
            choice(
                "--gate-penalty-of", "gate_penalty_of", {"l1", "l2", "saturation"},
                "What it is of: l1 is |g|, l2 g^2, saturation (2u - 1)^2 of gates between two bounds, u from 0 at one to 1 at the other",
                [](auto& plan) -> auto& { return plan.options.gate_penalty_of; }, gate_penalty))));
  add(shown({"states of the adjoint",
             "What the adjoint equation is solved beside: the state solved backward, or its values at the solver's steps, which are kept",
             0,
             0,
             {"solved backward", "checkpoints"}},
            where([](const TrainingPlan& plan) { return plan.options.rule == "adjoint"; },
                  choice(
                      "--ode-states", "ode_states", {"backward", "checkpoints"},
                      "Of adjoint: the state is solved backward from the end of a step, or kept at the solver's steps",
                      [](auto& plan) -> auto& { return plan.options.ode_states; }, ode_states))));
  add(shown(
      {"teacher forcing", "α: the share of the data in what is fed back at a forced step; the rest is the model's own output", 0, 1, {}},
      where([](const TrainingPlan& plan) { return plan.options.rule == "forcing"; },
            real("--forcing", "forcing", 1.0, "Of forcing: the share α of the data at a forced step; 1 is teacher forcing, 0 none",
                 [](auto& plan) -> auto& { return plan.options.forcing.strength; }))));
  add(shown(
      {"forced every", "Steps from one forced step to the next; between them the model's own output is fed back", 1, longest_sequence, {}},
      where([](const TrainingPlan& plan) { return plan.options.rule == "forcing"; },
            count("--forcing-every", "N", "forcing_every", 1, longest, "Of forcing: the steps from one forced step to the next",
                  [](auto& plan) -> auto& { return plan.options.forcing.every; }))));
  const auto fptt = [](const TrainingPlan& plan) { return plan.options.rule == "fptt"; };
  add(shown({"α of FPTT", "How strongly the weights are drawn to their running mean; 0: backpropagation within parts alone", 0, 1e6, {}},
            where(fptt, real("--fptt-alpha", "fptt_alpha", unbounded, "Of fptt: how strongly weights are drawn to their running mean",
                             [](auto& plan) -> auto& { return plan.options.fptt_alpha; }))));
  add(shown({"β of FPTT", "The share of the newest weights in the running mean", 0, 1, {}},
            where(fptt, real("--fptt-beta", "fptt_beta", 1.0, "Of fptt: the share of the newest weights in their running mean",
                             [](auto& plan) -> auto& { return plan.options.fptt_beta; }))));
  const auto force = [](const TrainingPlan& plan) { return plan.options.rule == "force"; };
  add(shown({"α of FORCE", "P = I / α in the beginning: the smaller α, the larger the first changes", 0, 1e6, {}},
            where(force, real("--force-alpha", "force_alpha", unbounded, "Of force: P is I / α in the beginning",
                              [](auto& plan) -> auto& { return plan.options.force_alpha; }))));
  add(shown({"λ of FORCE", "The share of all steps so far that the next one keeps; 1: nothing is forgotten", 0, 1, {}},
            where(force, real("--force-forget", "force_forget", 1.0, "Of force: the share of all steps so far that the next one keeps",
                              [](auto& plan) -> auto& { return plan.options.force_forget; }))));
  const auto coding = [](const TrainingPlan& plan) { return plan.options.rule == "predictive-coding"; };
  add(shown({"iterations",
             "How often all errors relax at once: after K of them a loss has gone K steps back; 0: as many as steps",
             0,
             longest_sequence,
             {}},
            where(coding, usually("as many as steps", count("--pc-iterations", "K", "pc_iterations", 1, longest,
                                                            "Of predictive-coding: how often its errors relax",
                                                            [](auto& plan) -> auto& { return plan.options.pc_iterations; })))));
  add(shown({"rate of errors", "The share of the way to where it is drawn that an error goes in an iteration", 0, 1, {}},
            where(coding, real("--pc-rate", "pc_rate", 1.0, "Of predictive-coding: the rate at which errors relax",
                               [](auto& plan) -> auto& { return plan.options.pc_rate; }))));
  add(shown({"precision of targets", "How far a target moves the state from its prediction", 0, 1e6, {}},
            where([](const TrainingPlan& plan) { return plan.options.rule == "temporal-pc"; },
                  real("--tpc-precision", "tpc_precision", unbounded, "Of temporal-pc: precision of a target, next to a predicted state's",
                       [](auto& plan) -> auto& { return plan.options.tpc_precision; }))));
  const auto lifted = [](const TrainingPlan& plan) {
    return plan.options.rule == "lifted" || plan.options.rule == "local-propagation" || plan.options.rule == "block-descent";
  };
  add(shown({"penalty of states", "How strongly a state is held to what the step makes of the one before", 0, 1e6, {}},
            where(lifted, real("--lifted-penalty", "lifted_penalty", unbounded,
                               "Of lifted, local-propagation and block-descent: how strongly states are held to the recurrence",
                               [](auto& plan) -> auto& { return plan.options.lifted_penalty; }))));
  add(shown({"iterations of states", "By which the states move, and with block descent the weights", 1, 1e4, {}},
            where(lifted, count("--lifted-iterations", "K", "lifted_iterations", 1, most,
                                "Of the same: the most iterations by which the states move, and with block-descent the weights",
                                [](auto& plan) -> auto& { return plan.options.lifted_iterations; }))));
  add(shown({"rounds", "How often the states move, and then the multipliers rise or the weights move", 1, 1e4, {}},
            where([](const TrainingPlan& plan) { return plan.options.rule == "local-propagation" || plan.options.rule == "block-descent"; },
                  count("--lifted-rounds", "M", "lifted_rounds", 1, most,
                        "Of local-propagation and block-descent: how often the states move and the multipliers rise, or the weights move",
                        [](auto& plan) -> auto& { return plan.options.lifted_rounds; }))));
  add(shown(
      {"hold of weights", "How strongly weights are held to those before a round: the larger, the smaller are the changes", 0, 1e6, {}},
      where(
          [](const TrainingPlan& plan) { return plan.options.rule == "block-descent"; },
          real("--lifted-proximal", "lifted_proximal", unbounded, "Of block-descent: how strongly weights are held to those before a round",
               [](auto& plan) -> auto& { return plan.options.lifted_proximal; }))));
  const auto aligns = [](const TrainingPlan& plan) { return plan.options.rule == "lra" || plan.options.rule == "p-tncn"; };
  add(shown(
      {"step to targets", "β: how far a target lies from the state in the direction that the feedback shows", 0, 1e3, {}},
      where(aligns, real("--align-step", "align_step", unbounded, "Of lra and p-tncn: how far the target of a layer lies from its state",
                         [](auto& plan) -> auto& { return plan.options.align_step; }))));
  add(shown(
      {"weight of predictions", "α: how far a layer is moved to what the layer behind it predicted of it", 0, 1e3, {}},
      where([](const TrainingPlan& plan) { return plan.options.rule == "p-tncn"; },
            real("--align-prediction", "align_prediction", unbounded, "Of p-tncn: how far a layer is moved to what was predicted of it",
                 [](auto& plan) -> auto& { return plan.options.align_prediction; }))));
  add(shown({"rate of feedback", "At which the weights of the feedback, and of predictions, learn; 0: they stay as drawn", 0, 1e3, {}},
            where(aligns, real("--feedback-rate", "feedback_rate", unbounded,
                               "Of lra and p-tncn: the rate at which the weights of feedback and predictions learn",
                               [](auto& plan) -> auto& { return plan.options.feedback_rate; }))));
  add(shown({"rate of the synthesiser", "At which the forecast of the gradient learns; 0: it stays as it is", 0, 2, {}},
            where([](const TrainingPlan& plan) { return plan.options.rule == "dni"; },
                  real("--dni-rate", "dni_rate", 2.0, "Of dni: the rate at which its synthesiser learns",
                       [](auto& plan) -> auto& { return plan.options.dni_rate; }))));
  add(shown(
      {"steps of a stage", "After which the columns of a layer stay as they are and those of the next begin to learn", 1, most_steps, {}},
      where([](const TrainingPlan& plan) { return plan.options.rule == "staged-columns"; },
            count("--stage-steps", "N", "stage_steps", 1, longest, "Of staged-columns: steps after which the next layer learns",
                  [](auto& plan) -> auto& { return plan.options.stage_steps; }))));
  add(where(optimises, optimiser_choice()));
  for (const Field& option : optimiser_fields()) add(of_optimiser(option));
  add(shown({"schedule",
             "How the rate goes over training: it stays, falls to 0 as half a cosine, or falls as one over the square root of the step",
             0,
             0,
             {"constant", "cosine", "inverse square root"}},
            where(optimises, choice(
                                 "--schedule", "schedule", {"constant", "cosine", "inverse-sqrt"},
                                 "constant, cosine, or inverse-sqrt, which falls from the warm-up on",
                                 [](auto& plan) -> auto& { return plan.options.rate.shape; }, schedule_shape))));
  add(shown({"warm-up steps", "Steps over which the rate rises to its largest", 0, most_steps, {}},
            where(optimises, count("--warm-up", "N", "warm_up", 0, longest, "Steps in which the rate rises from 0",
                                   [](auto& plan) -> auto& { return plan.options.rate.warm_up; }))));
  add(real("--least-lr", "least_rate", unbounded, "Where a cosine ends", [](auto& plan) -> auto& { return plan.options.rate.least; }));
  add(shown({"clip norm at", "A gradient whose norm is larger is made so long; 0: none is", 0, 1e6, {}},
            where(optimises, usually("none", real("--clip", "clip", unbounded, "The gradient's largest norm",
                                                  [](auto& plan) -> auto& { return plan.options.clip_norm; })))));
  add(usually("none", real("--clip-value", "clip_value", unbounded, "The largest entry of a gradient",
                           [](auto& plan) -> auto& { return plan.options.clip_value; })));
  add(list_field<TrainingPlan>(
      "--freeze", "frozen", Field::Says::names, "Weights that are not trained, by their names on the card; * is any letters",
      [](const TrainingPlan& plan) { return plan.options.frozen; },
      [](TrainingPlan& plan, std::vector<std::string> names) { plan.options.frozen = std::move(names); }));
  add(shown(
      {"truncate after",
       "Weights change every so many steps of a sequence, and gradients go no further back; 0: whole sequences, of FPTT single steps",
       0,
       longest_sequence,
       {}},
      where(goes_back_in_parts,
            usually("none, of fptt 1", count("--truncate", "K", "truncate", 1, longest,
                                             "No gradient of bptt, adjoint or fptt goes further back than K steps, and the weights change "
                                             "every K",
                                             [](auto& plan) -> auto& { return plan.options.truncate; })))));
  add(shown({"change every",
             "Steps of a sequence after which the weights change; 0: where backpropagation is truncated, or at the sequence's end",
             0,
             longest_sequence,
             {}},
            where(
                [](const TrainingPlan& plan) {
                  return !learns_whole(plan) && plan.options.rule != "fptt" && (!goes_back(plan) || plan.options.truncate > 0);
                },
                usually("as many as --truncate",
                        count("--advance", "K", "advance", 1, longest, "The weights change every K steps, by the loss of these",
                              [](auto& plan) -> auto& { return plan.options.advance; })))));
  const auto flosses = [](const TrainingPlan& plan) { return plan.floss.steps > 0; };
  add(shown({"flossing steps",
             "Gradient flossing: before training, weights are changed so often that the leading Lyapunov exponents come near 0; 0: not",
             0,
             most_steps,
             {}},
            usually("none", count("--floss", "N", "floss", 1, longest,
                                  "Gradient flossing before training: steps of Adam that bring the leading Lyapunov exponents near 0",
                                  [](auto& plan) -> auto& { return plan.floss.steps; }))));
  add(shown({"flossed exponents", "How many of the leading Lyapunov exponents of the state are brought near 0", 1, 4096, {}},
            where(flosses, count("--floss-exponents", "K", "floss_exponents", 1, most, "Of flossing: how many exponents, the leading ones",
                                 [](auto& plan) -> auto& { return plan.floss.exponents; }))));
  add(shown({"flossing rate", "The rate of flossing's own Adam", 0, 1e3, {}},
            where(flosses, real("--floss-lr", "floss_rate", unbounded, "Of flossing: its rate",
                                [](auto& plan) -> auto& { return plan.floss.rate; }))));
  add(usually("128", count("--held-out", "N", "held_out", 1, most, "Sequences that it is judged by",
                           [](auto& plan) -> auto& { return plan.options.held_out; })));
  add(usually("a twentieth of all", count("--judge-every", "N", "judge_every", 1, longest, "Steps between judgements",
                                          [](auto& plan) -> auto& { return plan.judge_every; })));
  return all;
}

}  // namespace

const std::vector<TrainingField>& training_fields() {
  static const std::vector<TrainingField> all = made();
  return all;
}

}  // namespace reclab
