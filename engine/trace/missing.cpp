// SPDX-License-Identifier: GPL-3.0-or-later
#include "trace/missing.h"

#include "files/files.h"

namespace reclab {
namespace {

std::string counted(std::int64_t n, const std::string& one) { return std::to_string(n) + " " + one + (n == 1 ? "" : "s"); }

/// A few of them by name.
std::string some(std::vector<std::string> names) {
  constexpr std::size_t most = 4;
  if (names.size() <= most) return listed(names, "and");
  const std::size_t others = names.size() - most + 1;
  names.resize(most - 1);
  names.push_back(std::to_string(others) + " others");
  return listed(names, "and");
}

}  // namespace

std::vector<std::string> missing_notes(const MissingCells& missing) {
  std::vector<std::string> notes;
  const bool one = missing.cells == 1;
  const std::string cells = std::to_string(missing.cells) + " of the " + std::to_string(missing.of) + " cells of the input " +
                            (one ? "was" : "were") + " missing, in " + some(missing.columns);
  if (missing.treated == "leave-out") {
    if (missing.rows_left_out > 0)
      notes.push_back(counted(missing.rows_left_out, "row") + (missing.rows_left_out == 1 ? " was" : " were") + " left out" +
                      (missing.cells > 0 ? ": " + cells + "." : ", whose time is missing."));
  } else if (missing.cells > 0) {
    const std::string each = one ? "it" : "each";
    if (missing.treated == "interpolate")
      notes.push_back(cells + "; " + each + " is on the line between its neighbours, and beyond the first and the last value that value.");
    else
      notes.push_back(cells + "; " + each + " holds the last value before it, or the first one where there is none before" +
                      (missing.treated == "mask" ? ", and a channel for each of these columns is 0 there and 1 elsewhere." : "."));
  }
  if (missing.target_steps > 0)
    notes.push_back("The target is missing at " + counted(missing.target_steps, "step") +
                    (missing.target_steps == 1 ? ", which does not count." : ", which do not count."));
  if (!missing.columns_left_out.empty())
    notes.push_back(some(missing.columns_left_out) +
                    (missing.columns_left_out.size() == 1 ? " has no number and is no input." : " have no number and are no inputs."));
  return notes;
}

std::string missing_words(const MissingCells& missing) {
  std::string words;
  if (missing.treated == "leave-out" && missing.rows_left_out > 0)
    words = counted(missing.rows_left_out, "row") + " left out";
  else if (missing.cells > 0)
    words = std::to_string(missing.cells) + " of " + std::to_string(missing.of) + " cells missing, " +
            (missing.treated == "interpolate" ? "interpolated"
             : missing.treated == "mask"      ? "held and marked"
                                              : "held");
  if (missing.target_steps > 0) words += (words.empty() ? "" : "; ") + counted(missing.target_steps, "step") + " without a target";
  return words;
}

}  // namespace reclab
