// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/sessions/session_work.h"

#include <QDir>
#include <QFileInfo>
#include <QJsonArray>
#include <QSet>
#include <QUuid>
#include <algorithm>
#include <map>

#include "array/error.h"
#include "experiment/command/command.h"
#include "files/files.h"
#include "files/parts.h"
#include "gui/frame/lab_json.h"
#include "gui/session/sentences.h"
#include "gui/session/work/training.h"
#include "gui/sessions/session_data.h"

namespace reclab {
namespace {

constexpr std::uint64_t largestSession = std::uint64_t{64} << 20;
const QString learnerName = QStringLiteral("window/learner.json");

QString folderBeside(const QString& file, const QString& beside) { return beside.isEmpty() ? file + ".files" : beside; }
QString nameOf(const QString& file) { return QFileInfo(file).fileName(); }
std::string_view viewOf(const QByteArray& bytes) { return {bytes.constData(), static_cast<std::size_t>(bytes.size())}; }
QString hashOf(const QString& file) { return QString::fromStdString(sha256_of_file(file.toStdString())); }

/// The data that a session names, as it is written.
class WrittenData {
 public:
  explicit WrittenData(const SessionPlan& plan) : plan_(plan), folder_(QFileInfo(plan.file).absolutePath()) {}

  /// The path that the session has for a file.
  QString path(const QString& whole) {
    const QString file = fileWithoutPart(whole);
    auto found = paths_.find(file);
    if (found == paths_.end()) found = paths_.emplace(file, add(file)).first;
    return found->second + whole.mid(file.size());
  }
  const std::vector<SessionData>& all() const { return data_; }
  const QStringList& notes() const { return notes_; }
  const std::map<QString, QString>& paths() const { return paths_; }

 private:
  QString add(const QString& file) {
    QString path = folder_.relativeFilePath(file);
    try {
      const QString hash = hashOf(file);
      if (plan_.copiesData) path = copied(file, hash);
      data_.push_back({path, hash, QFileInfo(file).size()});
    } catch (const Error& error) {
      notes_ << QString::fromUtf8(error.what());
      for (const QJsonValue before : plan_.before["data"].toArray())  // it may be found again
        if (before["path"].toString() == path) data_.push_back({path, before["sha256"].toString(), before["bytes"].toInteger(-1)});
    }
    return path;
  }
  QString copied(const QString& file, const QString& hash) {
    const QString name = nameOf(file);
    QString path = "data/" + name;
    for (int more = 2; std::ranges::find(data_, path, &SessionData::path) != data_.end(); ++more)
      path = QStringLiteral("data/%1-%2").arg(more).arg(name);  // another file of that name
    const QString place = folder_.absoluteFilePath(path);
    if (QFileInfo(place).isFile() && hashOf(place) == hash) return path;
    QDir().mkpath(QFileInfo(place).path());
    write_file(place.toStdString(), read_file(file.toStdString()));
    return path;
  }

  const SessionPlan& plan_;
  QDir folder_;
  std::map<QString, QString> paths_;
  std::vector<SessionData> data_;
  QStringList notes_;
};

/// The line with paths as the session has them.
QString withPaths(QString line, const std::map<QString, QString>& paths) {
  line += ' ';
  for (const auto& [from, to] : paths) {
    const QString word = QString::fromStdString(shell_word(from.toStdString())),
                  other = QString::fromStdString(shell_word(to.toStdString()));
    for (const QChar end : {QChar(' '), QChar(':')}) line.replace(' ' + word + end, ' ' + other + end);
  }
  return line.chopped(1);
}

/// Copies what lies in the folder of a training.
HashedFiles copyTraining(const QString& folder, HashedFolder& into, WrittenData& data) {
  HashedFiles files;
  for (const char* part : {"training", "window"})
    for (const QFileInfo& file : QDir(folder + '/' + part).entryInfoList(QDir::Files, QDir::Name)) {
      const QString name = QString(part) + u'/' + file.fileName();
      if (name != learnerName) {
        files[name] = into.putFile(file.filePath());
        continue;
      }
      const std::string manifest = read_file(file.filePath().toStdString());
      files[name] = into.put(QByteArray::fromStdString(learnerWithFiles(manifest, [&](const QString& one) { return data.path(one); })));
    }
  return files;
}

QString putWeights(const LearnedPtr& weights, HashedFolder& into) {
  writeWeights(into.unnamed().toStdString(), weights->values);
  const QString hash = into.putFile(into.unnamed());
  QFile::remove(into.unnamed());
  return hash;
}

}  // namespace

SavedSession saveSession(const LabSnapshot& lab, const SessionPlan& plan) {
  QDir().mkpath(QFileInfo(plan.file).absolutePath());  // where it cannot be made, the file says why
  const parts::Turn turn(parts::folder_of(plan.file.toStdString()));
  HashedFolder files(folderBeside(plan.file, plan.beside));
  WrittenData data(plan);
  SavedSession saved;
  SessionFile session;
  session.more = plan.more;
  session.state = withFilesOfState(lab.state, [&](const QString& file) { return data.path(file); });
  for (const auto& [name, weights] : lab.weights) session.weights[name] = putWeights(weights, files);
  for (const auto& learner : lab.learners) {
    const QString folder = plan.store + '/' + learner->id();
    try {
      if (plan.copiesTrainings) {
        learner->keep(folder, [&] { session.trainings[learner->id()] = copyTraining(folder, files, data); });
      } else {
        session.trainings[learner->id()] = {};
        if (!QFileInfo(folder + '/' + learnerName).isFile()) learner->keep(folder, {});  // a new one, that the store has not yet
      }
    } catch (const Error&) {
      saved.notes << sentenceOf(std::current_exception());
    }
  }
  for (const QString& line : lab.lines) session.lines << withPaths(line, data.paths());
  session.data = data.all();
  saved.notes += data.notes();
  const QByteArray bytes = bytesOf(session, plan.before, plan.known);
  write_file(plan.file.toStdString(), viewOf(bytes));
  for (const QString& hash : session.weights) saved.hashes.insert(hash);
  for (const HashedFiles& training : session.trainings)
    for (const QString& hash : training) saved.hashes.insert(hash);
  files.keepOnly(QSet<QString>(saved.hashes).unite(plan.alsoKept));
  saved.document = documentOf(bytes);
  return saved;
}

namespace {

/// Writes a training into the store, unless it is there; returns its id there, which is another one where the store has another training of
/// that id. Throws Error.
QString takeTraining(const QString& id, const HashedFiles& files, const HashedFolder& from, const QString& store, DataPlaces& data) {
  std::map<QString, QByteArray> contents;
  for (auto file = files.begin(); file != files.end(); ++file) contents[file.key()] = from.get(file.value());
  if (!contents.contains(learnerName))
    throw Error("The training " + id.toStdString() + " of the session has no " + learnerName.toStdString() + ": it cannot be shown.");
  QByteArray& learner = contents[learnerName];
  learner = QByteArray::fromStdString(learnerWithFiles(learner.toStdString(), [&](const QString& file) { return data.place(file); }));
  const auto lies = [&](const QString& folder) {  // all but the manifest, which has the paths of a machine
    return std::ranges::all_of(contents, [&](const auto& one) {
      const QString file = folder + '/' + one.first;
      return QFileInfo(file).isFile() && (one.first == learnerName || hashOf(file) == files[one.first]);
    });
  };
  QString its = id;
  if (QFileInfo::exists(store + '/' + its) && !lies(store + '/' + its))
    its = QUuid::createUuidV5(QUuid(), id + QStringList(files.values()).join(' ')).toString(QUuid::WithoutBraces);
  const QString folder = store + '/' + its;
  if (lies(folder)) {
    write_file((folder + '/' + learnerName).toStdString(), viewOf(learner));
    return its;
  }
  for (const char* part : {"training", "window"}) {
    AtomicFolder out((folder + '/' + part).toStdString());
    for (const bool last : {false, true})  // the manifest vouches for the others, so it is the last
      for (const auto& [name, bytes] : contents)
        if (name.startsWith(QString(part) + u'/') && (name.endsWith(".json") == last)) {
          AtomicFile& file = out.file(nameOf(name).toStdString());
          file.write(viewOf(bytes));
          out.finish(file);
        }
    out.commit();
  }
  return its;
}

QJsonObject withTrainings(QJsonObject state, const QMap<QString, QString>& ids) {
  const auto renamed = [&](const QJsonValue& id) { return ids.value(id.toString(), id.toString()); };
  const auto inSetup = [&](QJsonObject setup) {
    QJsonObject learned = setup.value("learned").toObject();
    for (auto one = learned.begin(); one != learned.end(); ++one) {
      QJsonObject weights = one.value().toObject();
      weights["training"] = renamed(weights.value("training"));
      one.value() = weights;
    }
    if (!learned.isEmpty()) setup["learned"] = learned;
    if (setup.contains("training")) setup["training"] = renamed(setup.value("training"));
    return setup;
  };
  state["shown"] = inSetup(state.value("shown").toObject());
  QJsonArray pins = state.value("pins").toArray(), together = state.value("together").toArray();
  for (QJsonValueRef pin : pins) pin = inSetup(pin.toObject());
  for (QJsonValueRef one : together) one = renamed(QJsonValue(one));
  state["pins"] = pins;
  state["together"] = together;
  return state;
}

/// The sequence of the runs; where it cannot be had, the model's own stands in for it.
LoadedSequencePtr sequenceFor(const KeptSetup& shown, const Library& library, QStringList& notes) {
  const SequenceChoice own = library.presets.find(shown.setup.preset).own_sequence();
  if (shown.sequence) try {
      return loadChoice(*shown.sequence);
    } catch (...) {
      notes << QObject::tr("%1 The task %2 stands in for it.")
                   .arg(sentenceOf(std::current_exception()), QString::fromStdString(own.task).replace('_', ' '));
    }
  return loadChoice(own);
}

}  // namespace

OpenedSession openSession(const QString& file, const QString& beside, const QString& store, const LibraryPtr& library, Origin origin) {
  const std::string path = file.toStdString();
  if (InputFile(path).size() > largestSession)
    throw Error(path + " is no session: it has more than " + std::to_string(largestSession >> 20) + " MiB.", {.file = path});
  const QByteArray bytes = QByteArray::fromStdString(read_file(path));
  const SessionFile session = readSession(bytes, file);
  if (session.state["version"].toInt() > labVersion)
    throw Error(path + " has a state of a newer version of the lab: open it with a newer program.", {.file = path});
  OpenedSession opened;
  opened.file = QFileInfo(file).absoluteFilePath();
  opened.document = documentOf(bytes);
  DataPlaces data(session.data, QFileInfo(file).absolutePath(), origin == Origin::own);
  opened.state = withFilesOfState(session.state, [&](const QString& one) { return data.place(one); });
  const std::optional<KeptSetup> shown = keptSetup(opened.state.value("shown").toObject(), *library);
  if (!shown)
    throw Error(path + " shows the model " + printable(opened.state.value("shown")["preset"].toString().toStdString()) +
                    " with values of its own, and this program has no such model, or it does not take them: open it with the program that "
                    "wrote it.",
                {.file = path});

  const HashedFolder files(folderBeside(file, beside));
  const QString besideName = nameOf(folderBeside(file, beside));
  QMap<QString, QString> ids;
  for (auto training = session.trainings.begin(); training != session.trainings.end(); ++training) try {
      if (origin == Origin::own && training->isEmpty())
        ids[training.key()] = training.key();
      else
        ids[training.key()] = takeTraining(training.key(), *training, files, store, data);
    } catch (...) {
      opened.notes << QObject::tr("A training of the session cannot be shown: %1").arg(sentenceOf(std::current_exception()));
    }
  QStringList folders;
  for (const QString& id : ids)
    if (QFileInfo(store + '/' + id + '/' + learnerName).isFile()) folders << store + '/' + id;
  opened.trainings = TrainingStore::readTrainings(folders, library);
  opened.notes += opened.trainings.problems;
  opened.trainings.problems.clear();
  std::ranges::sort(opened.trainings.learners, {}, &Learner::number);
  opened.state = withTrainings(opened.state, ids);

  QMap<QString, Parameters> known;  // of names with the same contents
  for (auto weights = session.weights.begin(); weights != session.weights.end(); ++weights) try {
      files.get(weights.value());
      if (!known.contains(weights.value())) known[weights.value()] = readWeights(files.place(weights.value()).toStdString());
      opened.trainings.weights.emplace(weights.key(), known[weights.value()]);
    } catch (...) {
      opened.notes << QObject::tr("Learned weights cannot be had from %1: %2").arg(besideName, sentenceOf(std::current_exception()));
    }
  opened.sequence = sequenceFor(*shown, *library, opened.notes);
  opened.notes = data.notes() + opened.notes;
  return opened;
}

}  // namespace reclab
