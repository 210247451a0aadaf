// SPDX-License-Identifier: GPL-3.0-or-later
// Asking for files, and writing figures and data: everything that asks the user where, in one place that tests can answer for.
#pragma once

#include <QString>
#include <QStringList>
#include <functional>
#include <optional>
#include <vector>

#include "drawing.h"
#include "experiment/experiment.h"
#include "panel.h"

class QWidget;

namespace reclab {

/// The question before figures are saved: the place, and the style.
struct FigureQuestion {
  QString title;                              ///< of the dialog: "Save Gradients"
  QStringList stems;                          ///< of the files: "lstm-gradients"
  Panel::Format format = Panel::Format::pdf;  ///< that is offered
};
struct FigureAnswer {
  QString folder;
  QString stem;  ///< of a single figure, whose name can be changed
  Panel::Format format = Panel::Format::pdf;
  FigureStyle style;
  QString file() const;  ///< of a single figure
};

/// The dialogs that ask for a path. Each returns an empty string, or nothing, when the user changed her mind.
struct FileChooser {
  std::function<QString(QWidget* parent, const QString& title, const QString& filter)> open;
  std::function<QString(QWidget* parent, const QString& title, const QString& name, const QString& filter)> save;
  /// A folder that need not exist; `name`: of a new one that is proposed, or empty.
  std::function<QString(QWidget* parent, const QString& title, const QString& name)> folder;
  std::function<std::optional<FigureAnswer>(QWidget* parent, const FigureQuestion& question)> figure = {};
};
/// A chooser with dialogs that begin in the folder used last.
FileChooser dialogChooser();

QString suffixOf(Panel::Format format);  ///< "png"

/// Writes atomically. Empty, or one sentence.
QString writeText(const QString& file, const QString& text);

/// Tells a panel the place that its preset names there, if any.
void tellPlace(const Preset& preset, Panel* panel);

/// The faults of the places that presets name to look at, a sentence each.
QStringList problemsOfPlaces(const std::vector<Preset>& presets);

/// "lstm-sunspots", of a run on sunspots.csv: the folder that is proposed for what belongs to it. Empty without one.
QString folderNameOf(const TracePtr& run);
/// "lstm-training": that for what a model has done, "lstm" and "training".
QString folderNameOf(const std::string& model, const QString& what);

/// "lstm-gradients": the stem of the files of a panel, by the model that is looked at, and for a panel of something else by itself.
QString stemOf(const Panel& panel, const QString& model);

/// Saves one figure, in a folder that is made where it is none. Empty, or one sentence.
QString saveFigure(Panel* panel, const FigureAnswer& answer);

/// Saves every panel's figure as <folder>/<model>-<panel id>.<suffix>, in a folder that is made where it is none; of a panel without a
/// picture there is no file.
struct SavedFigures {
  QStringList files, without;  ///< paths; and of which panels there is no figure, and why, a sentence each
  QString problem;             ///< the first thing that went wrong, a sentence
};
SavedFigures saveFigures(const std::vector<Panel*>& panels, const QString& model, const QString& folder, Panel::Format format,
                         const FigureStyle& style);
/// Every panel's data as <model>-<panel id>.csv, of panels that have any.
struct PanelData {
  QString file, text;
};
std::vector<PanelData> dataOf(const std::vector<Panel*>& panels, const QString& model);
/// Saves the data into a folder that is made where it is none. Empty, or the first thing that went wrong, a sentence.
QString saveData(const std::vector<PanelData>& data, const QString& folder);

}  // namespace reclab
