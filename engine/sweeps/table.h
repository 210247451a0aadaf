// SPDX-License-Identifier: GPL-3.0-or-later
// What came out of sweeps, as a table: a row a cell, its axes, its measures, how it stands, and its seconds, which stand last since they
// alone are others when it is computed again.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sweeps/cells.h"

namespace reclab {

enum class CellState : std::uint8_t { done, diverged, running, interrupted, failed, waiting };
constexpr std::array<std::string_view, 6> cell_states{"done", "diverged", "running", "interrupted", "failed", "waiting"};

struct SweepStatus {
  std::array<std::int64_t, cell_states.size()> count{};        ///< of each state
  double seconds = 0.0;                                        ///< of all that are done
  std::vector<std::pair<std::int64_t, std::string>> failures;  ///< cells and sentences, of the first ten
  std::int64_t of(CellState state) const { return count[static_cast<std::size_t>(state)]; }
};
SweepStatus status_of(const SweepFolder& folder);

/// Writes the cells of all folders into a CSV file, or an NPZ file by its name, with a column for each axis and measure that one of them
/// has. Empty cells, and NaN, where there is nothing. CSV is written in constant memory, of NPZ the columns are kept. Throws Error.
void collect(const std::vector<SweepFolder>& folders, const std::filesystem::path& file);
/// The same as CSV, a piece at a time.
void collect(const std::vector<SweepFolder>& folders, const std::function<void(std::string_view)>& write);

}  // namespace reclab
