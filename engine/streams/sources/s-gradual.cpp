// SPDX-License-Identifier: GPL-3.0-or-later
#include "streams/series.h"

namespace reclab::sources_by_name {

StreamSourceInfo s_gradual() {
  return {.text =
              "S-Gradual of Pham and others 2023 (FSNet): as s-abrupt, each coefficient for 600 steps (the first for 800), with 200 steps "
              "of the mean of two processes, hence of their mean coefficient, between them; theirs ends after 5000 steps",
          .make = [](const SourceChoice& choice) {
            return autoregressive(choice, {0.1, 0.25, 0.4, 0.5, 0.6, 0.35}, [](std::int64_t t) -> std::int64_t {
              if (t < 200) return 0;
              const std::int64_t third = (t - 200) / 800 % 3, within = (t - 200) % 800;
              return 2 * third + (within < 600 ? 0 : 1);
            });
          }};
}

}  // namespace reclab::sources_by_name
