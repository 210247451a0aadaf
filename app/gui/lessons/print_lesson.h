// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "gui/start/options.h"

namespace reclab {

/// Draws the lesson of the options, or one step of it, as pages of a PDF without a window: prose with its measured numbers, questions with
/// room for an answer, and the panels of each step as vectors under the reclab lines that repeat them. Prints the path. Returns the exit
/// status.
int printLesson(const Options& options);

}  // namespace reclab
