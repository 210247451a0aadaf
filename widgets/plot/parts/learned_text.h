// SPDX-License-Identifier: GPL-3.0-or-later
// How much weights have learned, in words.
#pragma once

#include <QObject>
#include <QString>
#include <string_view>

#include "plot/theme.h"
#include "trace/trace.h"

namespace reclab {

/// LearnedInfo::from of weights that a stream has learned: its steps are the stream's, and each change of the weights took several.
inline constexpr std::string_view from_stream = "a stream";

/// "2,000 steps of training", "12,340 steps of the stream".
inline QString stepsLearned(std::string_view from, std::int64_t steps) {
  return (from == from_stream ? QObject::tr("%1 steps of the stream") : QObject::tr("%1 steps of training")).arg(grouped(steps));
}

}  // namespace reclab
