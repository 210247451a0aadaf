// SPDX-License-Identifier: GPL-3.0-or-later
// What was looked at last, from one start of the window to the next, and the files that were opened.
#pragma once

#include <QByteArray>
#include <QJsonObject>
#include <QStringList>
#include <functional>
#include <optional>
#include <vector>

#include "gui/session/setup.h"

namespace reclab {

/// Weights that a setup has learned, as what says where they lie, and back: null where they lie there no more.
using PutLearned = std::function<QJsonObject(const LearnedPtr& weights)>;
using GetLearned = std::function<LearnedPtr(const QJsonObject& weights)>;

struct KeptSetup {
  Setup setup;  ///< its sequence not loaded
  SequenceChoice sequence;
  bool unlearned = false;  ///< it had learned weights that are there no more
};

/// A run that was pinned, without the input that it was of.
struct KeptPin {
  Setup setup;
  QString given;           ///< the user's own name; empty: named by what differs
  int colour = -1;         ///< which of the colours of pinned runs; -1: none was kept
  QString training;        ///< the id of that which it follows; empty: none
  bool unlearned = false;  ///< as of KeptSetup
};

QByteArray toJson(const Setup& setup, const PutLearned& put = {});
QByteArray toJson(const std::vector<KeptPin>& pins, const PutLearned& put = {});
/// Nothing where the text is not one of these, or its model or a value is none that there is: anything may come back from a settings file.
std::optional<KeptSetup> keptSetup(const QByteArray& json, const Library& library, const GetLearned& get = {});

/// Those that can still be run; none of a text that is not one of these.
std::vector<KeptPin> keptPins(const QByteArray& json, const Library& library, const GetLearned& get = {});

/// The files that were opened, the last first; at most eight.
QStringList recentFiles();
void noteRecentFile(const QString& file);
void forgetRecentFiles();

}  // namespace reclab
