// SPDX-License-Identifier: GPL-3.0-or-later
// The elapsed times of a batch on the device, for the networks whose layers read them (Layer::elapsed).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "array/device_array.h"
#include "execution/batch.h"
#include "models/network.h"
#include "sequence/elapsed.h"

namespace reclab {

class ElapsedTimes {
 public:
  /// Whether any sequence of the batch has unequal steps.
  static bool uneven(const Batch& batch);

  explicit ElapsedTimes(Backend& backend) : backend_(backend) {}
  /// Where each sequence's last run stood, two numbers a sequence as the state "clock" has them (none: they begin), for the next upload.
  void set_clocks(std::span<const double> values);
  /// For so many steps, of which a segment has so many; what follows a shorter sequence counts as one unit a step.
  void upload(const Network& network, const Batch& batch, std::int64_t steps, std::int64_t segment);
  /// What a network of the segment `index` reads, and what the clock is after it.
  void bind(Network& network, std::int64_t index) const;
  std::int64_t bytes() const;

 private:
  Backend& backend_;
  std::vector<TimeMark> clocks_;      // empty: none
  std::vector<DeviceArray> elapsed_;  // of each Network::elapsed(): [steps, batch, 1]
  DeviceArray ends_;                  // [segments, batch, 2], float64: the clock after each segment
  std::int64_t segment_ = 0, batch_ = 0;
};

}  // namespace reclab
