// SPDX-License-Identifier: GPL-3.0-or-later
// Generalised teacher forcing (F. Hess, Z. Monfared, M. Brenner, D. Durstewitz, ICML 2023) and sparse teacher forcing (J. M. Mikhaeil, Z.
// Monfared, D. Durstewitz, NeurIPS 2022): the model runs on its own output, u[t] = a x[t] + (1 - a) y[t-1], with data x at every `every`-th
// step, and the loss of that loop goes back through its states and through what was fed back.
#include <cmath>
#include <memory>
#include <vector>

#include "learning/forcing/closed_loop.h"
#include "learning/learning_rule.h"
#include "learning/losses.h"
#include "learning/online/sequence_rule.h"

namespace reclab::rules_by_name {
namespace {

constexpr const char* title = "Generalised teacher forcing";

class ForcingRule final : public SequenceRule {
 public:
  explicit ForcingRule(const LearningSetup& setup)
      : SequenceRule(checked(setup), title), forcing_(setup.options.forcing), length_(setup.length) {}
  bool exact() const override { return forcing_.strength == 1.0 && forcing_.every == 1; }

 private:
  static const LearningSetup& checked(const LearningSetup& setup) {
    const Forcing& forcing = setup.options.forcing;
    if (!(forcing.strength >= 0.0 && forcing.strength <= 1.0))
      throw Error("forcing is a share of the data: choose 0 to 1.", {.parameter = "forcing", .range = "0 to 1"});
    if (forcing.every < 1) throw Error("forcing_every is out of range: choose 1 or more.", {.parameter = "forcing_every"});
    require_no_parts(setup.options, std::string(title) + " goes back over whole sequences", ", and choose shorter sequences");
    require_own_future(setup.examples.front(), title);
    return setup;
  }
  std::size_t numbers(const StepMap& step) const override {
    return static_cast<std::size_t>(length_) * (step.states() + step.inputs() + 2 * step.outputs());
  }
  void take(StepMap& step, const Sequence& sequence, SequenceGradient& own, const std::stop_token& stop) const override {
    ClosedLoop loop(step, sequence);
    loop.run(forcing_, stop);
    if (!loop.bad_array().empty()) {
      own.bad = {loop.bad_array() + " became non-finite at step " + std::to_string(loop.bad_step()) + " of a sequence", loop.bad_array()};
      return;
    }
    if (!own.counts) return;
    const SequenceLoss loss(LossKind::task, sequence);
    std::vector<double> adjoints(loop.outputs().size());
    own.value = loss.segment(0, length_, sequence.width, loop.outputs(), adjoints);
    if (!std::isfinite(own.value)) {
      own.bad = {"the loss of a sequence became non-finite", "loss"};
      return;
    }
    loop.pull_back(adjoints, own.gradient, stop);
  }

  Forcing forcing_;
  std::int64_t length_;
};

}  // namespace

LearningRuleInfo forcing() {
  return {.title = title,
          .year = 2023,
          .name = "teacher forcing",
          .gradient = GradientKind::biased,
          .past_facing = false,
          .memory = "T d_s",
          .time = "|θ|, d_s² for a full matrix",
          .memory_power = 1,
          .time_power = 2,
          .source =
              "F. Hess, Z. Monfared, M. Brenner, D. Durstewitz, ICML 2023; sparse: J. M. Mikhaeil, Z. Monfared, D. Durstewitz, NeurIPS "
              "2022",
          .idea =
              "The model runs on its own output, into which the data are mixed by a share, and the loss of that loop goes back through its "
              "states and through what was fed back. Forcing keeps a chaotic run near the data, and so its gradients bounded.",
          .make = [](const LearningSetup& setup) -> std::unique_ptr<LearningRule> { return std::make_unique<ForcingRule>(setup); }};
}

}  // namespace reclab::rules_by_name
