// SPDX-License-Identifier: GPL-3.0-or-later
// The cells of a sweep on this machine: processes that are handed one cell after the other, `reclab sweep cell DIR -`, so that one that
// ends takes nothing with it but the cell that it had.
#pragma once

#include <cstdint>
#include <stop_token>

#include "sweeps/cells.h"

namespace reclab::cli {

struct RunCounts {
  std::int64_t before = 0, done = 0, mistakes = 0, faults = 0, taken = 0, interrupted = 0;
};
/// Computes what is not done, `jobs` at a time with so many threads each, and says on standard error which cells are not, and why. When it
/// is stopped the processes write their checkpoints.
RunCounts run_cells(const SweepFolder& folder, int jobs, int threads, std::stop_token stop);
/// The process itself: reads numbers of cells, a line each, and writes a line for each, "17 75 why".
void serve_cells(const SweepFolder& folder, const PresetLibrary& presets, std::stop_token stop);

}  // namespace reclab::cli
