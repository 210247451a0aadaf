// SPDX-License-Identifier: GPL-3.0-or-later
// Tables of results that come with the program, resources/atlases, and others that are shown with words on them.
#pragma once

#include <QString>
#include <map>
#include <string>
#include <vector>

#include "gui/results/result_choice.h"
#include "sweeps/plan.h"

namespace reclab {

struct Atlas {
  QString title, text, command;    ///< text: a sentence on it; command: the line that computes the table
  QString file;                    ///< the table, CSV
  std::vector<std::string> plans;  ///< files of the sweeps that its rows are of, one after the other; none where they are no runs
  ResultChoice choice;             ///< the picture that it opens with
  /// Values of the axis "model" that are runs of the window, each in its colour: -1 the one that is shown, else a pin's; the others are
  /// baselines. Empty where none is a run.
  std::map<std::string, int> runs{};
};

/// Throws Error for a file that is none of atlases.
std::vector<Atlas> readAtlases(const QString& file);
/// The line of a row of a table that was collected of these plans. Throws Error.
TypedRun lineOf(const std::vector<std::string>& plans, std::int64_t row);

}  // namespace reclab
