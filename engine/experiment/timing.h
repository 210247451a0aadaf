// SPDX-License-Identifier: GPL-3.0-or-later
// The timing lab: the exact forms of a model against the length of the sequence.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "experiment/experiment.h"

namespace reclab {

struct TimingRequest {
  std::vector<std::string> forms{};       ///< empty: every exact form
  std::vector<std::int64_t> lengths{};    ///< rising
  std::int64_t batch = 1;
  bool backward = true;                   ///< false: the forward pass alone
};

/// Times forms against length; returns a Trace with keys timing/<form>/length [K], timing/<form>/seconds [K] (median),
/// timing/<form>/low and /high (quartiles), timing/<form>/exponent [1] (slope of log time against log length, largest lengths).
TracePtr time_forms(const Registry& registry, const RunRequest& request, const TimingRequest& timing, const Progress& progress,
                    std::stop_token stop, const Publish& publish = {});

}  // namespace reclab
