// SPDX-License-Identifier: GPL-3.0-or-later
#include "streams/series.h"

namespace reclab::sources_by_name {

StreamSourceInfo s_abrupt() {
  return {.text =
              "S-Abrupt of Pham and others 2023 (FSNet): an autoregressive process whose coefficient is 0.1, 0.4 and 0.6 in turn, each "
              "for so many steps, and the noise has variance 1; theirs ends after 6000 steps",
          .parameters = {hyper_integer("hold", "T", 1000, 1, 1'000'000'000, "Steps of each coefficient", "steps")},
          .make = [](const SourceChoice& choice) {
            const std::int64_t hold = source_parameters(choice).integer("hold");
            return autoregressive(choice, {0.1, 0.4, 0.6}, [hold](std::int64_t t) { return t / hold % 3; });
          }};
}

}  // namespace reclab::sources_by_name
