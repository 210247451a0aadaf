// SPDX-License-Identifier: GPL-3.0-or-later
// The files of a session: data where they lie on this machine, and the folder beside it, in which files have their contents' hash for a
// name, so that equal ones lie there once.
#pragma once

#include <QHash>
#include <QSet>
#include <functional>

#include "gui/sessions/session_file.h"

namespace reclab {

/// The state with each file of its setups as `place` says: files of sequences, weights and initial states.
QJsonObject withFilesOfState(QJsonObject state, const std::function<QString(const QString& file)>& place);

/// Finds the data of a session that lies in a folder. What is not where it was is looked for by its hash in that folder and below.
class DataPlaces {
 public:
  /// `own`: the session is of this program's own folders. Any other may be a stranger's, and has nothing from outside its folder, links
  /// followed, but files whose contents it knows.
  DataPlaces(const std::vector<SessionData>& data, const QString& folder, bool own = false);
  /// The absolute path of a file that the session names; where there is none, the place at which it is missed. A part of a file of weights,
  /// "file:part", is one of the file that is found.
  QString place(const QString& path);
  const QStringList& notes() const { return notes_; }  ///< on those that moved, changed or are missing, a sentence each

 private:
  QString find(const SessionData& data);
  bool liesInside(const QString& file) const;
  QString ofTheProgram(const SessionData& data);  ///< the same of its own data; empty: it has none
  QString withHash(const SessionData& data);      ///< in the folder and below; empty: none has it

  const std::vector<SessionData>& data_;
  QString folder_;
  bool own_;
  QHash<QString, QString> found_;
  QHash<qint64, QStringList> bySize_;  ///< files of the folder, once one was looked for
  bool listed_ = false;
  QStringList notes_;
};

/// NAME.reclab.files. Writers of one take turns.
class HashedFolder {
 public:
  explicit HashedFolder(QString folder) : folder_(std::move(folder)) {}
  QString place(const QString& hash) const { return folder_ + '/' + hash; }
  /// Keeps these bytes; returns their hash. Throws Error.
  QString put(const QByteArray& bytes);
  QString putFile(const QString& file);
  QString unnamed() const { return place(QStringLiteral("unnamed")); }  ///< a file that is written before it is put, and is none of these
  /// The file with these contents, as it is now: its bytes. Throws Error where it is missing or damaged.
  QByteArray get(const QString& hash) const;
  /// Removes files of hashes that are not among these, and the folder where nothing is left in it.
  void keepOnly(const QSet<QString>& hashes) const;

 private:
  QString folder_;
};

}  // namespace reclab
