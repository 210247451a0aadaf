// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/sessions/session_file.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QRegularExpression>
#include <set>
#include <utility>

#include "array/error.h"
#include "experiment/command/run_fields.h"
#include "files/files.h"
#include "sequence/choice.h"

namespace reclab {
namespace {

constexpr const char* versionKey = "reclab session";

[[noreturn]] void refuse(const QString& file, const QString& why) {
  throw Error(printable(file.toStdString()) + " " + why.toStdString(), {.file = file.toStdString()});
}

using Keys = std::set<QString>;
const Keys ofDocument{versionKey, "state", "runs", "data", "weights", "trainings", "saved", "session"};
const Keys ofState{"version", "shown", "follows", "pins", "panels", "parts", "arranged", "time", "together"};
const Keys ofArranged{"layout", "calm", "sides", "own", "columns", "rows", "shape", "without", "window", "docks", "panels"};
const Keys ofData{"path", "sha256", "bytes"};
template <class Fields>
Keys withFields(Keys keys, const Fields& fields) {
  for (const Field& field : fields) keys.insert(QString::fromStdString(field.row.key));
  return keys;
}
const Keys& ofSetup() {
  static const Keys keys =
      withFields({"preset", "set", "weights", "states", "learned", "sequence", "id", "name", "colour", "training"}, run_settings_fields());
  return keys;
}
const Keys& ofSequence() {
  static const Keys keys = withFields({}, sequence_fields());
  return keys;
}

/// Adds what `before` has under keys that are none of ours.
void keepUnknown(QJsonObject& ours, const QJsonObject& before, const Keys& known) {
  for (auto one = before.begin(); one != before.end(); ++one)
    if (!known.contains(one.key()) && !ours.contains(one.key())) ours[one.key()] = one.value();
}
void keepUnknownIn(QJsonObject& ours, const QJsonObject& before, const char* key, const Keys& known) {
  QJsonObject inner = ours.value(QLatin1String(key)).toObject();
  keepUnknown(inner, before[QLatin1String(key)].toObject(), known);
  if (!inner.isEmpty()) ours[QLatin1String(key)] = inner;
}
/// In the entries of a list, which are told from one another by a key.
void keepUnknownInEach(QJsonObject& ours, const QJsonObject& before, const char* list, const char* by, const Keys& known) {
  QJsonArray entries = ours.value(QLatin1String(list)).toArray();
  const QJsonArray others = before[QLatin1String(list)].toArray();
  for (QJsonValueRef entry : entries)
    for (const QJsonValue other : others) {
      if (other[QLatin1String(by)] != QJsonValue(entry)[QLatin1String(by)]) continue;
      QJsonObject object = entry.toObject();
      keepUnknown(object, other.toObject(), known);
      entry = object;
      break;
    }
  if (!entries.isEmpty()) ours[QLatin1String(list)] = entries;
}

/// Names of the files that a session may have: no path leads out of its folders.
const QRegularExpression hashName("\\A[0-9a-f]{64}\\z"), weightsName("\\A[0-9A-Za-z-]{1,100}\\.npz\\z"),
    trainingId("\\A[0-9a-f-]{1,64}\\z"), trainingName("\\A(training|window)/[0-9a-z]{1,40}\\.[0-9a-z]{1,20}\\z");
bool matches(const QString& text, const QRegularExpression& pattern) { return pattern.match(text).hasMatch(); }
bool isHash(const QString& text) { return matches(text, hashName); }

HashedFiles hashedFiles(const QJsonObject& object, const QRegularExpression& name, const QString& file) {
  HashedFiles files;
  for (auto one = object.begin(); one != object.end(); ++one) {
    const QString hash = one.value().toString();
    if (!matches(one.key(), name) || !isHash(hash))
      refuse(file, "names " + QString::fromStdString(printable(one.key().toStdString())) + ", which is no file of a session.");
    files[one.key()] = hash;
  }
  return files;
}

QJsonObject toObject(const HashedFiles& files) {
  QJsonObject object;
  for (auto one = files.begin(); one != files.end(); ++one) object[one.key()] = one.value();
  return object;
}

}  // namespace

bool isSessionFile(const QString& file) { return file.endsWith(QLatin1String(sessionSuffix), Qt::CaseInsensitive); }

QJsonObject documentOf(const QByteArray& bytes) { return QJsonDocument::fromJson(bytes).object(); }

SessionFile readSession(const QByteArray& bytes, const QString& file) {
  QJsonParseError error;
  const QJsonDocument document = QJsonDocument::fromJson(bytes, &error);
  if (error.error != QJsonParseError::NoError)
    refuse(file, QStringLiteral("is no session: at byte %1 it is not JSON (%2).").arg(error.offset).arg(error.errorString()));
  const QJsonObject root = document.object();
  const QJsonValue version = root[QLatin1String(versionKey)];
  if (!version.isDouble() || version.toInt() < 1) refuse(file, "is JSON, but no session of Recurrence Lab.");
  if (version.toInt() > sessionVersion)
    refuse(file, QStringLiteral("is a session of version %1; this program reads those up to version %2: open it with a newer program.")
                     .arg(version.toInt())
                     .arg(sessionVersion));
  if (root["state"].toObject().isEmpty()) refuse(file, "has no state of the lab.");
  SessionFile session;
  session.more = root;
  for (const char* key : {versionKey, "state", "runs", "data", "weights", "trainings"}) session.more.remove(QLatin1String(key));
  session.state = root["state"].toObject();
  session.lines = root["runs"].toVariant().toStringList();
  for (const QJsonValue one : root["data"].toArray()) {
    const SessionData data{one["path"].toString(), one["sha256"].toString(), one["bytes"].toInteger(-1)};
    if (!data.path.isEmpty() && isHash(data.sha256)) session.data.push_back(data);
  }
  session.weights = hashedFiles(root["weights"].toObject(), weightsName, file);
  const QJsonObject trainings = root["trainings"].toObject();
  for (auto one = trainings.begin(); one != trainings.end(); ++one) {
    if (!matches(one.key(), trainingId))
      refuse(file, "names the training " + QString::fromStdString(printable(one.key().toStdString())) + ", which is none.");
    session.trainings[one.key()] = hashedFiles(one.value().toObject(), trainingName, file);
  }
  return session;
}

QByteArray bytesOf(const SessionFile& session, const QJsonObject& before, const QStringList& known) {
  QJsonObject root = session.more, trainings;
  QJsonArray data;
  for (const SessionData& one : session.data) data.append(QJsonObject{{"path", one.path}, {"sha256", one.sha256}, {"bytes", one.bytes}});
  for (auto one = session.trainings.begin(); one != session.trainings.end(); ++one) trainings[one.key()] = toObject(one.value());
  root[QLatin1String(versionKey)] = sessionVersion;
  root["runs"] = QJsonArray::fromStringList(session.lines);
  root["data"] = data;
  root["weights"] = toObject(session.weights);
  root["trainings"] = trainings;
  keepUnknown(root, before, ofDocument);
  keepUnknownInEach(root, before, "data", "path", ofData);

  QJsonObject state = session.state;
  const QJsonObject stateBefore = before["state"].toObject();
  keepUnknown(state, stateBefore, ofState);
  keepUnknownIn(state, stateBefore, "arranged", ofArranged);
  const Keys ids(known.begin(), known.end());
  for (const char* map : {"panels", "parts"}) keepUnknownIn(state, stateBefore, map, ids);
  QJsonObject shown = state.value("shown").toObject();
  const QJsonObject shownBefore = stateBefore["shown"].toObject();
  keepUnknown(shown, shownBefore, ofSetup());
  keepUnknownIn(shown, shownBefore, "sequence", ofSequence());
  state["shown"] = shown;
  keepUnknownInEach(state, stateBefore, "pins", "id", ofSetup());
  root["state"] = state;
  return QJsonDocument(root).toJson();
}

}  // namespace reclab
