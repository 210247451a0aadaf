// SPDX-License-Identifier: GPL-3.0-or-later
// The verdict on a curve of gradient norms, in words: a pure function of the numbers.
#pragma once

#include <QString>
#include <cstdint>
#include <span>

namespace reclab {

enum class Fate { unknown, vanishes, explodes, holds };

struct Verdict {
  Fate fate = Fate::unknown;
  double slope = 0.0;                ///< decades per step further back in time: negative when it vanishes
  double intercept = 0.0;            ///< log10 of the norm at the latest step, on the fitted line
  std::int64_t first = 0, last = 0;  ///< the steps that the line was fitted to, last the one that all others lead back from
  QString sentence;
};

/// The verdict on log10 norms at rising steps (of dL/ds_t, or of singular values of ds_T/ds_t). The part that counts reaches back from the
/// last finite entry to the first, or to one that is NaN or too large; entries that are -inf, exact zeros, are left out of it. The slope is
/// the median of the slopes between pairs of points (Theil and Sen), so that a few outliers do not turn it. It holds when the line changes
/// by less than one decade over that part. `subject` begins the sentence: "The gradient". For a layer that runs `backward` all of this is
/// from the earliest step on. `first_number`: the number by which step 0 is called.
Verdict gradientVerdict(std::span<const std::int64_t> steps, std::span<const double> log10_norms, const QString& subject,
                        bool backward = false, std::int64_t first_number = 0);

}  // namespace reclab
