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
  /// Sets the clock at the end of each sequence's last run, two numbers a sequence as the state "clock" has them (none: they begin), for
  /// the next upload.
  void set_clocks(std::span<const double> values);
  /// Uploads the times of so many steps, of which a segment has so many; steps after the end of a shorter sequence count as one unit each.
  void upload(const Network& network, const Batch& batch, std::int64_t steps, std::int64_t segment);
  /// Binds the elapsed times that a network reads in the segment `index`, and the clock after it.
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
