// SPDX-License-Identifier: GPL-3.0-or-later
// The menus of the window beside that of files, with the actions that features offer.
#pragma once

namespace reclab {

class Arrangement;
class Keys;
class Scrubber;
class WindowFrame;

void addEditMenu(WindowFrame* frame);
void addViewMenu(WindowFrame* frame, Arrangement* arrangement, Keys* keys);
void addRunMenu(WindowFrame* frame, const Scrubber* scrubber);
void addHelpMenu(WindowFrame* frame);

}  // namespace reclab
