// SPDX-License-Identifier: GPL-3.0-or-later
// The palette's entries of the model and of its sequence: their values, and the tasks that there are.
#pragma once

#include <vector>

#include "gui/frame/palette_source.h"

namespace reclab {

class WindowFrame;

/// Hyper-parameters, seed and loss of the model that is looked at.
std::vector<PaletteEntry> settingEntries(WindowFrame* frame);
/// The tasks, and how the present task is made or the present file is read.
std::vector<PaletteEntry> sequenceEntries(WindowFrame* frame);

}  // namespace reclab
