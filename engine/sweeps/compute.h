// SPDX-License-Identifier: GPL-3.0-or-later
// A cell computed: by whomever, as often as they like, and once alone. A process that ends at any moment leaves no result or a whole one.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "experiment/experiment.h"
#include "sweeps/cells.h"

namespace reclab {

enum class CellEnd : std::uint8_t {
  done,         ///< now or before
  mistake,      ///< of the user's, or a disk that is full: doing it again alone does not help
  interrupted,  ///< a training has a checkpoint, from which it goes on
  taken,        ///< another process has it
  fault         ///< ours
};
struct CellOutcome {
  CellEnd end = CellEnd::done;
  std::string sentence{};  ///< why it is not done
};

/// Computes the cell where it is not done, under its lock: a training goes on from its checkpoint, which is written once a minute and when
/// it is stopped. What is not done is said in the file of its failure. Throws nothing.
CellOutcome compute_cell(const SweepFolder& folder, const SweepCell& cell, const PresetLibrary& presets, std::stop_token stop) noexcept;

/// Takes away what killed processes left of cells that are done.
void tidy(const SweepFolder& folder) noexcept;

/// Throws Error where a measure of the plan cannot be taken of its first cell: of a training, with weights that have not learned yet.
void check_measures(const SweepPlan& plan, const PresetLibrary& presets, std::stop_token stop);

}  // namespace reclab
