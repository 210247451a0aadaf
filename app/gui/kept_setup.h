// SPDX-License-Identifier: GPL-3.0-or-later
// What was looked at last, from one start of the window to the next, and the files that were opened.
#pragma once

#include <QByteArray>
#include <QStringList>
#include <optional>

#include "gui/setup.h"

namespace reclab {

struct KeptSetup {
  Setup setup;  ///< its sequence not loaded
  SequenceChoice sequence;
};

QByteArray toJson(const Setup& setup);
/// Nothing where the text is not one of these, or its model or a value is none that there is: anything may come back from a settings file.
std::optional<KeptSetup> keptSetup(const QByteArray& json, const Library& library);

/// The files that were opened, the last first; at most eight.
QStringList recentFiles();
void noteRecentFile(const QString& file);
void forgetRecentFiles();

}  // namespace reclab
