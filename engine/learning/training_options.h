// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "learning/forcing/forcing.h"
#include "learning/optimiser_rule.h"
#include "learning/rate_schedule.h"
#include "models/gate_penalty.h"
#include "recurrence/memory.h"

namespace reclab {

/// The states beside which the adjoint equation is solved: those that are solved backward from the end of a step, or those that were kept
/// at the solver's steps (OdeGradient::adjoint and OdeGradient::checkpoints).
enum class OdeStates : std::uint8_t { backward, checkpoints };
std::string_view to_string(OdeStates states);
/// Throws Error.
OdeStates ode_states(std::string_view name);

struct TrainingOptions {
  std::string rule = "bptt";    ///< an id of learning_rules(): the way from a batch's loss to gradients
  std::int64_t snap_order = 1;  ///< of the rule snap: n, the steps over which a weight may act on an entry of the state that is kept
  std::int64_t rbp_terms = 20;  ///< of neumann-rbp the terms of its series, of cg-rbp the most iterations
  double rbp_damping = 1e-5;    ///< of cg-rbp: eta
  double lipschitz = 0.0, lipschitz_bound = 0.9;  ///< of the rules of fixed points: weight and bound of the Lipschitz coefficient penalty
  /// Weight of a penalty on gates in the loss that rules which go back through whole sequences have the gradient of, and its form; 0: none.
  double gate_penalty = 0.0;
  GatePenalty gate_penalty_of = GatePenalty::l1;
  OdeStates ode_states = OdeStates::backward;  ///< of the rule adjoint
  Forcing forcing;                             ///< of the rule forcing
  /// Of the rule fptt: alpha, how strongly weights are drawn to their running mean, and beta, the share of the newest in that mean.
  double fptt_alpha = 0.5, fptt_beta = 0.5;
  /// Of the rule force: alpha, with which its P = I / alpha begins, and lambda, how much of all that was before a step keeps.
  double force_alpha = 1.0, force_forget = 1.0;
  std::int64_t pc_iterations = 0;  ///< of predictive-coding: how often its errors relax; 0: as often as a sequence has steps
  double pc_rate = 1.0;            ///< of the same
  double tpc_precision = 1.0;      ///< of temporal-pc: of a target, next to that of a predicted state
  double lifted_penalty = 1.0;     ///< of the rules of lifted states, and how often they do what LiftedSequence::lift() and sweep() do
  std::int64_t lifted_rounds = 5, lifted_iterations = 20;
  double lifted_proximal = 10.0;  ///< of block-descent: how strongly weights are held to those before each of its turns
  /// Of lra and p-tncn: beta and alpha of AlignmentForm, and the rate at which their weights of feedback and of predictions learn.
  double align_step = 0.1, align_prediction = 1.0, feedback_rate = 0.01;
  double dni_rate = 0.5;           ///< of dni: of its synthesiser
  std::int64_t stage_steps = 200;  ///< of staged-columns: the steps of training of a stage
  std::uint64_t seed = 1;  ///< of the signs and the feedback that a rule draws; they depend on it, on the step and on the sequence alone
  OptimiserOptions optimiser;
  RateSchedule rate;
  std::int64_t batch = 32;
  /// The gradient of the batch's mean loss is made shorter where its norm is larger: g *= clip_norm / (|g| + 1e-6), as
  /// torch.nn.utils.clip_grad_norm_ does (R. Pascanu, T. Mikolov, Y. Bengio, ICML 2013); and each of its entries is held within
  /// +-clip_value. 0: neither.
  double clip_norm = 0.0, clip_value = 0.0;
  /// Weights that are not trained: their names, or with a * for any letters: "0/weight_hh", "encoder/*".
  std::vector<std::string> frozen;
  /// Truncated backpropagation through time, BPTT(k2; k1) (R. J. Williams, J. Peng, Neural Computation 2(4), 1990): after every `advance`
  /// steps, k1, the weights change by the gradient of these steps' loss, which goes back over at most `truncate` steps, k2, and through no
  /// state before them. That state was computed with the weights before the change. Steps without a target change no weights. truncate = 0:
  /// back to the first step; advance = 0: as many as truncate.
  std::int64_t truncate = 0, advance = 0;
  std::int64_t held_out = 0;  ///< sequences that the model is judged by, at least so many; 0: 128, or all where there are fewer
  Form form = Form::sequential;
  bool operator==(const TrainingOptions&) const = default;
};

}  // namespace reclab
