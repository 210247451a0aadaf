// SPDX-License-Identifier: GPL-3.0-or-later
// e-prop with symmetric feedback (G. Bellec and others, Nature Communications 11, 2020, equations 3 and 4). For an LSTM it is the truncated
// real-time recurrent learning that the LSTM was published with (S. Hochreiter, J. Schmidhuber, Neural Computation 9(8), 1997): errors that
// arrive at the gates go no further back, and the cell alone carries them.
#include "learning/online/eligibility.h"

namespace reclab::rules_by_name {

LearningRuleInfo e_prop() {
  return {
      .title = "e-prop",
      .year = 2020,
      .name = "e-prop",
      .gradient = GradientKind::biased,
      .local = true,
      .sparse = true,
      .memory = "|θ|, d_s² for a full matrix",
      .time = "|θ|, d_s² for a full matrix",
      .memory_power = 2,
      .time_power = 2,
      .source =
          "G. Bellec and others, Nature Communications 11:3625, 2020, equations 3 and 4; for an LSTM S. Hochreiter, J. Schmidhuber, "
          "Neural Computation 9(8), 1997, appendix A.1",
      .idea =
          "Each weight keeps a trace of what it did to its own unit, along the leak or the gates of that unit, and the error comes by the "
          "weights of the read-out. What passes from one unit to another is left out. With an LSTM it is the rule that the LSTM was "
          "published with.",
      .online = [](const OnlineSetup& setup) { return eligibility(setup, Feedback::read_out, "e-prop"); }};
}

}  // namespace reclab::rules_by_name
