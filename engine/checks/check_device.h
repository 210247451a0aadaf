// SPDX-License-Identifier: GPL-3.0-or-later
// A check whether the CUDA device of this machine computes the same as its CPU.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "experiment/experiment.h"

namespace reclab {

/// One preset, or one primitive, in one exact form on the CPU and on the CUDA device: the largest relative error of the recorded arrays,
/// and the array that has it.
struct DeviceReport {
  std::string id, form, dtype;
  double forward_error = 0.0;   ///< output, states and gates: largest |difference| over the array's largest |value|; NaN if not comparable
  double gradient_error = 0.0;  ///< of gradients, in the same way; logarithms of norms by the ratio of the norms
  std::string forward_array{}, gradient_array{};
  double cpu_seconds = 0.0, cuda_seconds = 0.0;
  Sentence problem{};      ///< a run that did not finish, or not on the device; where nothing could be compared the errors are NaN
  bool primitive = false;  ///< id is the name of a memory by itself, on random inputs
  /// Arrays of a float32 run that differ by more than is allowed, where the device is no further from the CPU's float64 run than is
  /// allowed, or than the CPU's own float32 run is: they are not among the errors.
  std::vector<std::string> coarse{};
  /// The allowed error: 1e-9 in float64, 1e-3 in float32, as between exact forms.
  double allowed() const { return dtype == "f64" ? 1e-9 : 1e-3; }
  bool agrees() const { return problem.empty() && forward_error <= allowed() && gradient_error <= allowed(); }
  /// "agrees", the run that did not finish, or the array that differs.
  Sentence verdict() const;
};
struct DeviceCheck {
  std::int64_t length =
      0;  ///< steps, or the fewest of a preset's task where that needs more; 0: each preset's own task's, and 160 of a primitive
  std::vector<std::string> only{};                   ///< of presets and primitives these alone; empty: all
  Backend* cuda = nullptr;                           ///< the backend that is compared with the CPU; null: cuda_backend()
  std::function<void(const DeviceReport&)> found{};  ///< called with each line when it is there
};
/// Every primitive, and every preset on its own task, in every exact form and both precisions, forward and gradients. Throws Error without
/// a CUDA device and for an id that is neither a preset's nor a primitive's, Cancelled when stopped. A device that is lost ends it: the
/// line says so, and is the last.
std::vector<DeviceReport> check_device(const Registry& registry, const PresetLibrary& presets, const Progress& progress,
                                       std::stop_token stop, const DeviceCheck& check = {});
/// The lines as CSV, with a header.
std::string to_csv(const std::vector<DeviceReport>& reports);

}  // namespace reclab
