// SPDX-License-Identifier: GPL-3.0-or-later
// What the menu Help shows.
#pragma once

class QWidget;

namespace reclab {

void showGuide(QWidget* parent);
void showShortcuts(QWidget* parent);
void showAbout(QWidget* parent);

}  // namespace reclab
