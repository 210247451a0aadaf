// SPDX-License-Identifier: GPL-3.0-or-later
// The rows of the benchmark: the computation, its input, and the least time that it can take.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "array/backend.h"
#include "files/npz.h"
#include "timing/roof.h"

namespace reclab::bench {

/// A part of a row that is timed by itself ("forward", "with backward").
struct Part {
  std::string name;
  std::function<void()> run;  ///< once, to the end
  double bytes = 0.0;         ///< to and from memory at the least
  double cached = 0.0;        ///< bytes that are read from a cache at the least
  double flops = 0.0;
  std::string floor{};  ///< where these come from, in words
  /// Figures of the last run beside its time, by name: "iterations", "residual".
  std::function<std::map<std::string, double>()> facts{};
};

struct Row {
  std::string name, text;
  std::vector<Part> parts;  ///< the first is the row's own figure
  /// The largest error of the first part's result, against plain loops in float64, over the largest value.
  std::function<double()> error;
  /// The inputs that a peer computes the same from, and float64 results to be checked by.
  std::function<void(NpzWriter&)> save;
  std::shared_ptr<void> kept;
};

/// The names of all rows.
std::vector<std::string> row_names();
/// Throws Error for a name that is none, and where the row's device is not there.
Row make_row(const std::string& name);

/// A step of training, of several models (training.cpp).
Row training(const std::string& name);

/// The least seconds that a part can take under a roof; 0 where the roof is not known.
double floor_of(const Part& part, const Roof& roof);

}  // namespace reclab::bench
