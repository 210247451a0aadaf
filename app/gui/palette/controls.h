// SPDX-License-Identifier: GPL-3.0-or-later
// The palette's entries of the window itself: its panels, every action of its menus, and every button and box of its bars and panels, by
// the name that a screen reader has for it.
#pragma once

#include <vector>

#include "gui/frame/palette_source.h"

namespace reclab {

class WindowFrame;

std::vector<PaletteEntry> controlEntries(WindowFrame* frame);

}  // namespace reclab
