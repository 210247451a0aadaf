// SPDX-License-Identifier: GPL-3.0-or-later
// Random feedback local online learning (J. M. Murray, eLife 8, 2019). For gated units it is e-prop with random feedback (G. Bellec and
// others, Nature Communications 11, 2020).
#include "learning/online/eligibility.h"

namespace reclab::rules_by_name {

LearningRuleInfo rflo() {
  return {.title = "Random feedback local online learning",
          .year = 2019,
          .name = "RFLO",
          .gradient = GradientKind::biased,
          .local = true,
          .sparse = true,
          .memory = "|θ|, d_s² for a full matrix",
          .time = "|θ|, d_s² for a full matrix",
          .memory_power = 2,
          .time_power = 2,
          .source = "J. M. Murray, Local online learning in recurrent networks with random feedback, eLife 8:e43299, 2019",
          .idea =
              "Each weight keeps a trace that decays with the leak of its own unit, and fixed random feedback brings the error to the "
              "units. What passes from one unit to another is left out.",
          .online = [](const OnlineSetup& setup) { return eligibility(setup, Feedback::random, "Random feedback local online learning"); }};
}

}  // namespace reclab::rules_by_name
