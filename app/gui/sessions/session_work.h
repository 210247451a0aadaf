// SPDX-License-Identifier: GPL-3.0-or-later
// Sessions written and read, in any thread: the lab as the window's thread has seen it, and a file with the folder beside it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "gui/session/kept/training_store.h"
#include "gui/session/setup.h"
#include "gui/sessions/session_file.h"

namespace reclab {

/// All of the lab that a session has.
struct LabSnapshot {
  QJsonObject state;  ///< with absolute paths
  QStringList lines;
  std::vector<std::pair<QString, LearnedPtr>> weights;  ///< by the names that the state has for them
  std::vector<std::shared_ptr<Learner>> learners;
};

struct SessionPlan {
  QString file;                 ///< the session
  QString beside;               ///< the folder of its files; empty: NAME.reclab.files
  QString store;                ///< the folder in which trainings are kept (TrainingStore)
  bool copiesTrainings = true;  ///< else they stay in the store, and are named alone: a session for this machine
  bool copiesData = false;      ///< into "data" beside the session, as for somebody else
  QJsonObject before = {};      ///< the document whose unknown keys are kept
  QStringList known = {};       ///< ids of the panels and parts that there are
  QJsonObject more = {};        ///< keys beside those of every session
  QSet<QString> alsoKept = {};  ///< hashes of files that other sessions with the same folder need
};
struct SavedSession {
  QJsonObject document;
  QSet<QString> hashes;  ///< of its files
  QStringList notes;     ///< on files that are not in it, a sentence each
};
/// Writes the files first, then the session, and removes files that it does not need last: a process that ends at any moment leaves the
/// session before or this one, whole. Throws Error.
SavedSession saveSession(const LabSnapshot& lab, const SessionPlan& plan);

struct OpenedSession {
  QString file;
  QJsonObject document;     ///< as it was read
  QJsonObject state;        ///< with the paths of this machine
  KeptTrainings trainings;  ///< with the learned weights of setups
  LoadedSequencePtr sequence;
  QStringList notes;  ///< on all that is missing, moved or has changed, a sentence each
};
/// Where a session comes from: anybody, so that all that it names lies beside it, or a window of this machine, so that its trainings are in
/// the store.
enum class Origin { any, own };
/// Reads a session and all that it names; its trainings come into the store. What is missing is noted, and the rest is there. Throws Error
/// where it is no session, or of a model that there is not.
OpenedSession openSession(const QString& file, const QString& beside, const QString& store, const LibraryPtr& library, Origin origin);

}  // namespace reclab
