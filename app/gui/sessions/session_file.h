// SPDX-License-Identifier: GPL-3.0-or-later
// A session as a document: JSON with the state of the lab, the lines that repeat its runs, and the files that belong to it, each by its
// SHA-256. It names files relative to its folder, and those of the folder beside it, NAME.reclab.files, by their contents.
#pragma once

#include <QJsonObject>
#include <QMap>
#include <QString>
#include <QStringList>
#include <vector>

namespace reclab {

constexpr int sessionVersion = 1;  ///< "reclab session"; newer ones are not read
constexpr const char* sessionSuffix = ".reclab";
bool isSessionFile(const QString& file);  ///< by its name

/// Data that the state names.
struct SessionData {
  QString path;    ///< as the state has it: relative to the folder of the session
  QString sha256;  ///< lower-case hexadecimal
  qint64 bytes = 0;
};

/// Names of files, and their SHA-256: their names in the folder beside the session.
using HashedFiles = QMap<QString, QString>;

struct SessionFile {
  QJsonObject state;  ///< of the lab (lab_json.h), files relative to the folder of the session
  QStringList lines;  ///< "reclab run ...", one a run, the one that is looked at first
  std::vector<SessionData> data;
  HashedFiles weights;                   ///< learned ones, by the names that the state has for them
  QMap<QString, HashedFiles> trainings;  ///< by their ids: "training/weights.npz", "window/learner.json"
  QJsonObject more;                      ///< keys beside those: "saved", "session" of a recovery; and unknown keys of a file
};

/// Throws Error: no JSON, no session, of a newer version, or with names of files that are none.
SessionFile readSession(const QByteArray& bytes, const QString& file);
/// The document; keys of `before` that this version does not know are kept, in every object of it that has fixed keys, and so are panels
/// and parts that `known` (their ids) lacks.
QByteArray bytesOf(const SessionFile& session, const QJsonObject& before = {}, const QStringList& known = {});
/// The document that bytesOf() keeps unknown keys of; empty where it is none.
QJsonObject documentOf(const QByteArray& bytes);

}  // namespace reclab
