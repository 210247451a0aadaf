// SPDX-License-Identifier: GPL-3.0-or-later
#include "streams/series.h"

namespace reclab::sources_by_name {

StreamSourceInfo recurring() {
  return {.text = "An autoregressive process between two coefficients, each of which returns again and again",
          .parameters = {hyper_real("first", "φ₁", 0.9, -0.999, 0.999, "The coefficient that it begins with"),
                         hyper_real("second", "φ₂", -0.9, -0.999, 0.999, "The other one"),
                         hyper_integer("hold", "T", 2000, 1, 1'000'000'000, "Steps of each", "steps")},
          .make = [](const SourceChoice& choice) {
            const Hyper parameters = source_parameters(choice);
            const std::int64_t hold = parameters.integer("hold");
            return autoregressive(choice, {parameters.real("first"), parameters.real("second")},
                                  [hold](std::int64_t t) { return t / hold % 2; });
          }};
}

}  // namespace reclab::sources_by_name
