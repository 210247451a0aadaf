// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <cstdint>

namespace reclab {

struct StepMark {
  std::int64_t step = 0;  ///< of the sequence, from 0
  QString text;           ///< what begins there
  bool operator==(const StepMark&) const = default;
};

}  // namespace reclab
