// SPDX-License-Identifier: GPL-3.0-or-later
// Asking for files, and writing figures and data: everything that asks the user where, in one place that tests can answer for.
#pragma once

#include <QString>
#include <QStringList>
#include <functional>
#include <vector>

#include "experiment/experiment.h"
#include "panel.h"

class QWidget;

namespace reclab {

/// How a path is asked for. Each returns an empty string when the user changed her mind.
struct FileChooser {
  std::function<QString(QWidget* parent, const QString& title, const QString& filter)> open;
  std::function<QString(QWidget* parent, const QString& title, const QString& name, const QString& filter)> save;
  std::function<QString(QWidget* parent, const QString& title)> folder;
};
/// With dialogs that begin in the folder used last.
FileChooser dialogChooser();

QString suffixOf(Panel::Format format);  ///< "png"

/// Writes atomically. Empty, or one sentence.
QString writeText(const QString& file, const QString& text);

/// Tells a panel what its preset says to look at there, if anything.
void tellPlace(const Preset& preset, Panel* panel);

/// What is wrong with where presets say to look, a sentence each.
QStringList problemsOfPlaces(const std::vector<Preset>& presets);

/// Every panel's figure as <folder>/<panel id>.<suffix>. Returns the paths; `sentence` gets the first thing that went wrong.
QStringList saveFigures(const std::vector<Panel*>& panels, const QString& folder, Panel::Format format, QString* sentence);
QStringList saveData(const std::vector<Panel*>& panels, const QString& folder, QString* sentence);

}  // namespace reclab
