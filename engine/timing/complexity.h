// SPDX-License-Identifier: GPL-3.0-or-later
// The survey's tables of complexities beside measurements here. M. Tiezzi et al., "State-Space Modeling in Long Sequence Processing: A
// Survey on Recurrence in the Transformer Era", 2024 (arXiv 2406.09062), Tables 2 and 3.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/scaling.h"
#include "experiment/experiment.h"

namespace reclab {

/// A row of the survey's tables, and the preset that stands for it here.
struct StatedComplexity {
  int table;
  std::string_view section, model;  ///< as the survey names them
  bool recurrent;
  std::string_view time, space;  ///< of a sequence of L steps and d features, as the survey has them
  double (*time_of)(double length, double width);
  double (*space_of)(double length, double width);
  std::string_view preset, form;       ///< the preset and form that are timed here
  std::string_view of_time, of_space;  ///< why the measurement here is of something else than the statement; empty where it is of the same
};
std::span<const StatedComplexity> stated_complexities();

/// One row with exponents of the length: the p of L^p.
struct ComplexityRow {
  int table = 0;
  std::string section, model, preset, form;
  bool recurrent = false;
  std::string stated_time, stated_space;
  double stated_time_exponent = 0.0, stated_space_exponent = 0.0;  ///< of the stated costs, over the same lengths
  Banded time{}, space{};                                          ///< measured, with the 90 % band
  std::vector<std::int64_t> lengths;
  std::string device, of_time, of_space;  ///< the latter: as in StatedComplexity
};
/// The largest difference of a measured exponent from the stated one that counts as agreement.
inline constexpr double allowed_exponent = 0.15;
inline bool agrees(double stated, const Banded& measured) { return std::abs(measured.value - stated) <= allowed_exponent; }

/// Slope of the logarithm of a cost against that of the length.
double exponent_of(double (*cost)(double length, double width), std::span<const std::int64_t> lengths, double width);

/// Times the forward pass of the row's preset at these lengths (at least two), in float64 on the CPU, and fits all of them. Throws Error
/// for an unknown preset, and Cancelled; nothing where a length could not be timed.
std::optional<ComplexityRow> measure_complexity(const Registry& registry, const PresetLibrary& presets, const StatedComplexity& stated,
                                                std::span<const std::int64_t> lengths, const Progress& progress, std::stop_token stop);
/// 512, 1024, ..., 16384
std::vector<std::int64_t> complexity_lengths();

/// A sentence about a row: whether time and memory are as stated, and why not.
std::string verdict_of(const ComplexityRow& row);

std::string to_csv(std::span<const ComplexityRow> rows);
std::string to_json(std::span<const ComplexityRow> rows);
/// Reads the text that to_json made. Throws Error that names `source`.
std::vector<ComplexityRow> complexities_from_json(const std::string& text, const std::string& source);

}  // namespace reclab
