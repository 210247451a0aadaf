// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

class QWidget;

namespace reclab {

class WindowFrame;

/// The control of a name that lessons use, "inspector/spectral_radius", "action/train", "panel/gradients", "dock/card", "sequence/length",
/// "training/rate" or "time". Null where there is none of that name.
QWidget* targetOf(const WindowFrame* frame, const QString& name);
/// Brings it on the screen, where it is behind another dock, closed or scrolled away. False: it cannot be seen.
bool bringToSight(WindowFrame* frame, QWidget* target);
/// The name of a target as the screen has it: "Train", "Bias init"; empty where it has none.
QString nameOfTarget(const WindowFrame* frame, const QString& name, const QWidget* target);
/// What it is called on the screen, for a sentence, whether or not it is there.
QString wordsOfTarget(const QString& name);

}  // namespace reclab
