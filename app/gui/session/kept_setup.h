// SPDX-License-Identifier: GPL-3.0-or-later
// The last setup, kept from one start of the window to the next, and the recent files.
#pragma once

#include <QJsonObject>
#include <QStringList>
#include <functional>
#include <optional>
#include <vector>

#include "gui/session/setup.h"

namespace reclab {

/// The trained weights of a setup, as a reference to their place, and back: null if they are gone.
using PutLearned = std::function<QJsonObject(const LearnedPtr& weights)>;
using GetLearned = std::function<LearnedPtr(const QJsonObject& weights)>;

struct KeptSetup {
  Setup setup;                             ///< its sequence not loaded
  std::optional<SequenceChoice> sequence;  ///< none where none was written
  bool unlearned = false;                  ///< it had learned weights that are there no more
};

QJsonObject toJson(const Setup& setup, const PutLearned& put = {});
/// Nothing where it is none, or its model or a value is none that there is: anything may come back from a file.
std::optional<KeptSetup> keptSetup(const QJsonObject& json, const Library& library, const GetLearned& get = {});

/// A setup that was written, with each of its files as `place` says: the file of its sequence, weights and initial states.
QJsonObject withFiles(QJsonObject setup, const std::function<QString(const QString& file)>& place);
/// Of a part of a file of weights, "weights.safetensors:part", the file; else the path itself.
QString fileWithoutPart(const QString& path);

/// The files that were opened, the last first; at most eight.
QStringList recentFiles();
void noteRecentFile(const QString& file);
void forgetRecentFiles();

}  // namespace reclab
