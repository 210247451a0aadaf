// SPDX-License-Identifier: GPL-3.0-or-later
// The dialogs of the menu Help.
#pragma once

class QWidget;

namespace reclab {

void showGuide(QWidget* parent);
void showShortcuts(QWidget* parent);
void showAbout(QWidget* parent);

}  // namespace reclab
