// SPDX-License-Identifier: GPL-3.0-or-later
// Names, roles and values for screen readers, of controls that paint themselves, or whose own value is a place and not a number of the
// model.
#pragma once

#include <QString>

class QWidget;

namespace reclab {

/// The name of a control: its own, that of its label, its words, or the beginning of its tooltip.
QString spokenName(const QWidget* control);
/// Sets the number that a control stands for, and its range.
void setSpokenValue(QWidget* control, double value, double low, double high);
/// Lets screen readers have the roles and values of the lab's own controls, before there are any. Again is nothing.
void installSpokenRoles();

}  // namespace reclab
