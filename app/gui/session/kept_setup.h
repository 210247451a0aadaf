// SPDX-License-Identifier: GPL-3.0-or-later
// What was looked at last, from one start of the window to the next, and the files that were opened.
#pragma once

#include <QByteArray>
#include <QStringList>
#include <optional>
#include <vector>

#include "gui/session/setup.h"

namespace reclab {

struct KeptSetup {
  Setup setup;  ///< its sequence not loaded
  SequenceChoice sequence;
};

/// A run that was pinned, without the input that it was of.
struct KeptPin {
  Setup setup;
  QString given;  ///< the user's own name; empty: named by what differs
  int colour = -1;  ///< which of the colours of pinned runs; -1: none was kept
};

QByteArray toJson(const Setup& setup);
QByteArray toJson(const std::vector<KeptPin>& pins);
/// Nothing where the text is not one of these, or its model or a value is none that there is: anything may come back from a settings file.
std::optional<KeptSetup> keptSetup(const QByteArray& json, const Library& library);

/// Those that can still be run; none of a text that is not one of these.
std::vector<KeptPin> keptPins(const QByteArray& json, const Library& library);

/// The files that were opened, the last first; at most eight.
QStringList recentFiles();
void noteRecentFile(const QString& file);
void forgetRecentFiles();

}  // namespace reclab
