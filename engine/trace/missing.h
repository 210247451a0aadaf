// SPDX-License-Identifier: GPL-3.0-or-later
// The missing cells of a file, and their treatment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reclab {

struct MissingCells {
  std::string treated;     ///< "leave-out", "hold", "interpolate" or "mask"; empty: a missing cell is refused
  std::int64_t cells = 0;  ///< of the inputs
  std::int64_t of = 0;     ///< cells that the inputs have, the missing ones included
  std::int64_t rows_left_out = 0;
  std::int64_t target_steps = 0;              ///< steps that do not count, since their target is missing
  std::vector<std::string> columns;           ///< inputs with missing cells
  std::vector<std::string> columns_left_out;  ///< columns without any number, which are no inputs unless they are chosen
  bool any() const { return cells > 0 || rows_left_out > 0 || target_steps > 0 || !columns_left_out.empty(); }
};

/// The sentences on missing cells beside a run; empty where nothing was missing.
std::vector<std::string> missing_notes(const MissingCells& missing);
/// The same in a few words: "3 of 200 cells held"; empty where nothing was missing.
std::string missing_words(const MissingCells& missing);

}  // namespace reclab
