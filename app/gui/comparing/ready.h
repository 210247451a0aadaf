// SPDX-License-Identifier: GPL-3.0-or-later
// Comparisons that are ready to be looked at: those of resources/comparisons.json, and those that follow from the present setup.
#pragma once

#include <QString>
#include <vector>

#include "gui/session/setup.h"

namespace reclab {

struct ReadyComparison {
  QString title, why;
  std::vector<Setup> runs;  ///< on the input that is looked at, the first of them beside the others
};

/// The comparisons of a file, on the input of `now` with its seed and loss: each run with the values of its preset and of the file, and
/// drawn weights. Throws Error for a model, a key or a value that there is not.
std::vector<ReadyComparison> readyComparisons(const QString& file, const Library& library, const Setup& now);
/// Comparisons from the model that is looked at: other seeds, and each value of its choices.
std::vector<ReadyComparison> comparisonsOf(const ModelDescription& model, const Setup& now);

}  // namespace reclab
