// SPDX-License-Identifier: GPL-3.0-or-later
// The rows of the benchmark: the computation, its input, and the least time that it can take.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
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
  /// The part whose peers are its own too, since it computes the same another way; empty: no other.
  std::string beside{};
  const std::string& group() const { return beside.empty() ? name : beside; }
};

struct Row {
  std::string name, text;
  std::vector<Part> parts;  ///< the first is the row's own figure
  /// The largest error of the first part's result, which ran last, against plain loops in float64, over the largest value.
  std::function<double()> error;
  /// The inputs that a peer computes the same from, and float64 results to be checked by.
  std::function<void(NpzWriter&)> save;
  std::shared_ptr<void> kept;
};

/// The names of all rows.
std::vector<std::string> row_names();
/// Throws Error for a name that is none, and where the row's device is not there. `folder`: for the files of a row.
Row make_row(const std::string& name, const std::filesystem::path& folder);

/// An LSTM layer of each size, the first of which is the row's own figure (lstm.cpp).
Row lstm(const std::string& name, std::int64_t batch, std::int64_t steps, const std::vector<std::int64_t>& sizes, bool backward);
/// A step of training, of several models (training.cpp).
Row training(const std::string& name);
/// The evaluation of an LSTM over many sequences (evaluation.cpp).
Row evaluation(const std::string& name);
/// The opening of a long table of text (reading.cpp).
Row reading(const std::string& name, const std::filesystem::path& folder);

// Studies: rows that are no comparison with peers but of this program with the theory. Each prints its table on standard error.

/// Their names: "grow", "S1".
std::vector<std::string> study_names();
/// Runs one with so many threads.
nlohmann::ordered_json study(const std::string& name, int threads);
/// A measurement of a study in this process, which does nothing else; the words are those behind --cell.
nlohmann::ordered_json study_cell(const std::vector<std::string>& words);

/// Time and peak memory of a rollout over length, width and layers, beside the powers of the theory (growth.cpp).
nlohmann::ordered_json growth(int threads);
nlohmann::ordered_json growth_cell(const std::vector<std::string>& words);
/// A step of training and an evaluation over the number of threads, beside a prediction from parts (scaling.cpp).
nlohmann::ordered_json scaling(int threads);
nlohmann::ordered_json scaling_cell(const std::vector<std::string>& words);

/// The least seconds that a part can take under a roof; 0 where the roof is not known.
double floor_of(const Part& part, const Roof& roof);

}  // namespace reclab::bench
