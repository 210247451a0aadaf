// SPDX-License-Identifier: GPL-3.0-or-later
// The command line of recurrence-lab.
#pragma once

#include <QStringList>
#include <map>
#include <optional>
#include <string>

#include "experiment/command/typed_run.h"
#include "gui/look/look.h"
#include "gui/session/setup.h"
#include "panel.h"

namespace reclab {

struct Options {
  QString model;                             ///< a preset's id; empty: the start
  std::map<std::string, std::string> given;  ///< of the fields of a sequence and of a run, by flag: "--length"
  QString session;                           ///< a file NAME.reclab to open; empty: none
  QString problem;                           ///< why a session or link cannot be opened, which the window says; empty: none
  QString figures;
  QString layout;  ///< its name; empty: as it was left
  QString lesson;  ///< its id; empty: none
  QString print;   ///< a file for the pages of the lesson; empty: the window
  QString step;    ///< of the lesson, that is printed alone
  std::optional<ThemeChoice> theme;
  Panel::Format format = Panel::Format::svg;
  FigureStyle style;
  QStringList panels;  ///< ids of those that figures are drawn of; empty: all
  bool help = false, version = false;
  bool named() const { return !model.isEmpty() || !given.empty(); }
  QString text;  ///< the text of --help or --version
};

/// Reads the arguments (the first is the program): options, or a link or session alone. Throws Error with one sentence for arguments that
/// are not understood.
Options readOptions(const QStringList& arguments);

/// Those of a line of `reclab` that is taken apart.
Options optionsOf(const TypedRun& run);

/// Throws Error for a layout that there is not. The layouts are those of panels, so there is an application already.
void checkLayout(const Options& options);

/// Throws Error for a lesson that there is not.
void checkLesson(const Options& options);

/// The setup to begin with, its sequence not yet loaded: the options, and for the rest that of the start, an LSTM. Throws Error.
Setup beginning(const Options& options, const Library& library);
/// The sequence to begin with: the sunspot numbers when nothing is said.
SequenceChoice beginningSequence(const Options& options, const Library& library);

/// Both, loaded and with the hyper-parameters, weights and state checked. Throws Error.
Setup loadedBeginning(const Options& options);

/// Draws the panels into options.figures without a window; prints the paths. Returns the exit status.
int drawFigures(const Options& options);

}  // namespace reclab
