// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>
#include <cstdint>
#include <vector>

namespace reclab {

/// What is to be timed, as a person chose it.
struct TimingChoice {
  QStringList forms;                                                    ///< empty: every exact form
  std::vector<std::int64_t> lengths = {64, 128, 256, 512, 1024, 2048};  ///< rising
  std::int64_t batch = 1;
  std::int64_t width = 0;  ///< 0: as it is
  QString device, dtype;   ///< "cpu" or "cuda", "f64" or "f32"; empty: as the run
  bool backward = true;    ///< false: the forward pass alone
  bool operator==(const TimingChoice& other) const = default;
};

}  // namespace reclab
