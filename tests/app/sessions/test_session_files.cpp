// SPDX-License-Identifier: GPL-3.0-or-later
// Sessions as files, without a window: what is written is read back, with the keys that this version does not know; what moved, changed or
// is missing is a sentence, and the rest is there; who ends the process at any moment finds the session before or the new one, whole; and
// every session that was ever written opens.
#include <signal.h>

#include <QCoreApplication>
#include <QDir>
#include <QDirIterator>
#include <QJsonArray>
#include <QJsonDocument>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>
#include <cstdio>

#include "array/error.h"
#include "files/files.h"
#include "gui/session/kept/training_store.h"
#include "gui/session/kept_setup.h"
#include "gui/session/work/training.h"
#include "gui/sessions/recovery.h"
#include "gui/sessions/session_data.h"
#include "gui/sessions/session_work.h"
#include "gui/start/link.h"
#include "gui/start/options.h"
#include "models/registry.h"
#include "places.h"

using namespace reclab;

namespace {

constexpr int childWaits = 60'000;  ///< ms

LibraryPtr library() {
  static const LibraryPtr all = std::make_shared<const Library>(Library{PresetLibrary(builtin_registry(), preset_folders()), tasks(), {}});
  return all;
}

QByteArray bytesIn(const QString& file) {
  QFile in(file);
  return in.open(QIODevice::ReadOnly) ? in.readAll() : QByteArray();
}
void put(const QString& file, const QByteArray& bytes) {
  QDir().mkpath(QFileInfo(file).path());
  QFile out(file);
  if (!out.open(QIODevice::WriteOnly) || out.write(bytes) != bytes.size()) qFatal("the test cannot write its own file");
}
QByteArray rows() {
  QByteArray text = "t,x\n";
  for (int i = 0; i < 40; ++i) text += QByteArray::number(i) + ',' + QByteArray::number((i * 7) % 11) + '\n';
  return text;
}
/// Contents of all files, by their paths; no lock, which is of a process.
QMap<QString, QByteArray> contentsOf(const QString& folder) {
  QMap<QString, QByteArray> all;
  for (QDirIterator files(folder, QDir::Files | QDir::Hidden, QDirIterator::Subdirectories); files.hasNext();) {
    const QString file = files.next();
    all[QDir(folder).relativeFilePath(file)] = bytesIn(file);
  }
  return all;
}

Setup setupOn(const QString& data, std::uint64_t seed = 1) {
  Setup setup;
  setup.preset = "gru";
  setup.setValue("width", "4");
  setup.seed = seed;
  SequenceChoice choice;
  choice.file = data.toStdString();
  setup.sequence = loadChoice(choice);
  return setup;
}

/// A training of so many steps, which is kept in the store.
std::shared_ptr<Learner> trained(const Setup& setup, const QString& store, int steps) {
  TrainingChoice choice;
  choice.steps = 1000;
  choice.options.batch = 2;
  choice.windows.length = 8;
  auto learner = std::make_shared<Learner>(1, 0, library(), setup, choice, "gru");
  for (int i = 0; i < steps; ++i) learner->advance({});
  learner->keep(store + '/' + learner->id());
  return learner;
}

/// A lab with a setup on data, learned weights of the training where there is one, and a pin.
LabSnapshot labOf(Setup setup, const std::shared_ptr<Learner>& learner) {
  LabSnapshot lab;
  if (learner) {
    setup.learned[setup.preset] = learner->newest();
    lab.learners = {learner};
    lab.weights = {{"weights-1.npz", learner->newest()}};
  }
  const PutLearned put = [&](const LearnedPtr& weights) {
    return QJsonObject{{"training", learner->id()}, {"step", QString::number(weights->step)}, {"file", "weights-1.npz"}};
  };
  QJsonObject pin = toJson(setup, put);
  pin.remove("sequence");
  pin["id"] = "7";
  lab.state = {{"version", 1}, {"shown", toJson(setup, put)}, {"pins", QJsonArray{pin}}, {"panels", QJsonObject{}}};
  lab.lines = {"reclab run gru --input " + QString::fromStdString(setup.sequence->choice.file) + " --set width=4"};
  return lab;
}

SessionPlan planOf(const QString& file, const QString& store) {
  SessionPlan plan;
  plan.file = file;
  plan.store = store;
  return plan;
}

OpenedSession openedFrom(const QString& file, const QString& store) { return openSession(file, {}, store, library(), Origin::any); }

/// For a child process: saves the session of a folder with another seed, as a window does that was changed.
int saveAgain(const QString& folder, std::uint64_t seed) {
  const QString store = folder + "/store";
  try {
    const Setup setup = setupOn(folder + "/data.csv", seed);
    saveSession(labOf(setup, trained(setup, store, static_cast<int>(seed))), planOf(folder + "/a.reclab", store));
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}

/// For a child process: writes generations for ever, and says so.
int keepForEver(const QString& folder) {
  Recovery recovery(folder + "/recovery");
  for (std::uint64_t seed = 1;; ++seed) {
    const QString file = recovery.next();
    SessionPlan plan = planOf(file, folder + "/store");
    plan.beside = recovery.filesOf();
    plan.copiesTrainings = false;
    plan.alsoKept = recovery.needed();
    plan.more = {{"seed", static_cast<qint64>(seed)}};
    recovery.wrote(file, saveSession(labOf(setupOn(folder + "/data.csv", seed), nullptr), plan).hashes);
    std::printf("%llu\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
  }
}

int exitStatus(QProcess& process) { return process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1; }

}  // namespace

class TestSessionFiles : public QObject {
  Q_OBJECT

  std::unique_ptr<QTemporaryDir> folder_;
  QString path(const QString& name) const { return folder_->filePath(name); }
  QString store() const { return path("store"); }
  QString data() const { return path("data.csv"); }

  /// Runs this program as a child; `at`: the call that changes a folder before which it is killed, or that fails.
  int child(const QStringList& arguments, const char* what = nullptr, int at = 0, QString* said = nullptr) const {
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    if (what) {
      environment.insert("LD_PRELOAD", QString::fromStdString(test::built("bin/libreclab_shim.so")));
      environment.insert(what, QString::number(at));
    }
    process.setProcessEnvironment(environment);
    process.start(QCoreApplication::applicationFilePath(), arguments);
    if (!process.waitForFinished(childWaits)) return -2;
    if (said) *said = QString::fromUtf8(process.readAllStandardError());
    return exitStatus(process);
  }
  /// The seed of the session, with all that it names whole; 0 where it is none.
  std::uint64_t wholeSeed() const {
    QTemporaryDir other;
    const OpenedSession opened = openedFrom(path("a.reclab"), other.path());
    if (!opened.notes.isEmpty() || opened.trainings.learners.size() != 1 || opened.trainings.weights.size() != 1) return 0;
    const std::uint64_t seed = opened.state["shown"].toObject()["seed"].toString().toULongLong();
    return opened.trainings.learners[0]->newest()->step == static_cast<std::int64_t>(seed) ? seed : 0;
  }

 private slots:
  void init() {
    folder_ = std::make_unique<QTemporaryDir>();
    put(data(), rows());
  }

  void whatIsSavedIsThereAgain() {
    const auto learner = trained(setupOn(data()), store(), 3);
    const LabSnapshot lab = labOf(setupOn(data()), learner);
    saveSession(lab, planOf(path("a.reclab"), store()));
    const SessionFile written = readSession(bytesIn(path("a.reclab")), "a.reclab");
    QCOMPARE(written.lines, QStringList{"reclab run gru --input data.csv --set width=4"});
    QCOMPARE(written.data.size(), std::size_t{1});
    QCOMPARE(written.data[0].path, QString("data.csv"));
    // On another machine.
    const QString other = path("other");
    const OpenedSession opened = openedFrom(path("a.reclab"), other);
    QCOMPARE(opened.notes, QStringList());
    QCOMPARE(opened.state["shown"], lab.state["shown"]);
    QCOMPARE(opened.state["pins"], lab.state["pins"]);
    QCOMPARE(opened.trainings.learners.size(), std::size_t{1});
    QCOMPARE(opened.trainings.learners[0]->id(), learner->id());
    QVERIFY(opened.trainings.learners[0]->curve()->loss == learner->curve()->loss);
    const Parameters& weights = opened.trainings.weights.at("weights-1.npz");
    QCOMPARE(weights.entries().size(), learner->newest()->values.entries().size());
    for (std::size_t i = 0; i < weights.entries().size(); ++i)
      QVERIFY(weights.entries()[i].values == learner->newest()->values.entries()[i].values);
    QVERIFY(opened.sequence->sequence.sha256 == setupOn(data()).sequence->sequence.sha256);
    // It goes on there.
    QVERIFY(opened.trainings.learners[0]->advance({}));
    QCOMPARE(opened.trainings.learners[0]->curve()->done, std::int64_t{4});
    // Opened once more it is the training that it was, beside the one that went on.
    QVERIFY(opened.trainings.learners[0]->keep(other + '/' + learner->id()));
    const OpenedSession again = openedFrom(path("a.reclab"), other);
    QVERIFY(again.trainings.learners[0]->id() != learner->id());
    QCOMPARE(again.trainings.learners[0]->newest()->step, std::int64_t{3});
    QCOMPARE(again.state["shown"].toObject()["learned"].toObject()["gru"].toObject()["training"].toString(),
             again.trainings.learners[0]->id());
    const OpenedSession third = openedFrom(path("a.reclab"), other);
    QCOMPARE(third.trainings.learners[0]->id(), again.trainings.learners[0]->id());  // and not one more each time
  }

  /// Another thread may be writing a training when it is removed for good: no folder of it is left, and a session has it whole.
  void aTrainingThatIsRemovedWhileItIsWrittenIsGone() {
    const auto learner = trained(setupOn(data()), store(), 3);
    const QString folder = store() + '/' + learner->id();
    const auto removes = [&] {
      learner->setRemoved(true);
      QVERIFY(QDir(folder).removeRecursively());
    };
    learner->advance({});
    bool called = false;
    QVERIFY(learner->keep(folder, [&] {
      called = QFileInfo(folder + "/window/learner.json").isFile();
      learner->setRemoved(true);  // the window's thread does that, and finds a folder that is written again behind it
    }));
    QVERIFY(called);
    QVERIFY(!QFileInfo::exists(folder));
    QVERIFY(!learner->keep(folder));
    QVERIFY(!QFileInfo::exists(folder));
    // Undo brings it back, and it is kept again.
    learner->setRemoved(false);
    QVERIFY(learner->keep(folder));
    QCOMPARE(TrainingStore::readTrainings({folder}, library()).learners.size(), std::size_t{1});
    removes();
    QVERIFY(!learner->keep(folder));
    QVERIFY(!QFileInfo::exists(folder));
  }

  void equalFilesLieThereOnce() {
    const auto learner = trained(setupOn(data()), store(), 3);
    LabSnapshot lab = labOf(setupOn(data()), learner);
    lab.weights.emplace_back("weights-2.npz", learner->newest());
    const SavedSession saved = saveSession(lab, planOf(path("a.reclab"), store()));
    const SessionFile written = readSession(bytesIn(path("a.reclab")), "a.reclab");
    QCOMPARE(written.weights["weights-1.npz"], written.weights["weights-2.npz"]);
    QCOMPARE(contentsOf(path("a.reclab.files")).size(), saved.hashes.size());
    // And what is needed no more goes.
    saveSession(labOf(setupOn(data()), nullptr), planOf(path("a.reclab"), store()));
    QVERIFY(!QFileInfo::exists(path("a.reclab.files")));
  }

  void unknownKeysAreKept() {
    saveSession(labOf(setupOn(data()), nullptr), planOf(path("a.reclab"), store()));
    QJsonObject document = documentOf(bytesIn(path("a.reclab")));
    const auto with = [](QJsonObject object) {
      object["of a later version"] = QJsonArray{1, "x"};
      return object;
    };
    QJsonObject state = document["state"].toObject(), shown = state["shown"].toObject();
    shown["sequence"] = with(shown["sequence"].toObject());
    state["shown"] = with(shown);
    state["pins"] = QJsonArray{with(state["pins"][0].toObject())};
    state["panels"] = QJsonObject{{"a later panel", QJsonObject{{"a", 1}}}};
    document["state"] = with(state);
    document["data"] = QJsonArray{with(document["data"][0].toObject())};
    document = with(document);
    put(path("a.reclab"), QJsonDocument(document).toJson());
    const OpenedSession opened = openedFrom(path("a.reclab"), store());
    SessionPlan plan = planOf(path("a.reclab"), store());
    plan.before = opened.document;
    plan.known = {"spectrum"};
    LabSnapshot lab = labOf(setupOn(data(), 2), nullptr);
    saveSession(lab, plan);
    const QJsonObject after = documentOf(bytesIn(path("a.reclab"))), stateAfter = after["state"].toObject();
    const QJsonValue shownAfter = stateAfter.value("shown");
    for (const QJsonValue& one : {QJsonValue(after), after.value("data")[0], QJsonValue(stateAfter), shownAfter, shownAfter["sequence"],
                                  stateAfter.value("pins")[0]})
      QVERIFY2(one["of a later version"] == QJsonValue(QJsonArray{1, "x"}), QJsonDocument(one.toObject()).toJson());
    QVERIFY(stateAfter["panels"].toObject().contains("a later panel"));
    QCOMPARE(shownAfter["seed"].toString(), QString("2"));
    // A known key that is gone stays gone.
    plan.known = {"a later panel"};
    plan.before = after;
    saveSession(lab, plan);
    QVERIFY(!documentOf(bytesIn(path("a.reclab"))).value("state")["panels"].toObject().contains("a later panel"));
  }

  void whatIsNoSessionIsRefused_data() {
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QString>("says");
    QTest::newRow("nothing") << QByteArray() << "is not JSON";
    QTest::newRow("no JSON") << QByteArray("{\"reclab session\": 1,") << "is not JSON";
    QTest::newRow("a list") << QByteArray("[1]") << "no session of Recurrence Lab";
    QTest::newRow("another document") << QByteArray("{\"a\": 1}") << "no session of Recurrence Lab";
    QTest::newRow("a newer one") << QByteArray("{\"reclab session\": 2}")
                                 << "is a session of version 2; this program reads those up to version 1";
    QTest::newRow("no state") << QByteArray("{\"reclab session\": 1}") << "has no state";
    const QByteArray begins = "{\"reclab session\": 1, \"state\": {\"shown\": {\"preset\": \"lstn\"}}";
    QTest::newRow("a model that there is not") << begins + "}" << "shows the model lstn";
    const QByteArray hash(64, 'a');
    QTest::newRow("a file outside") << begins + ", \"weights\": {\"../w.npz\": \"" + hash + "\"}}" << "names ../w.npz";
    QTest::newRow("a hash that is a path") << begins + ", \"weights\": {\"w.npz\": \"../../x\"}}" << "names w.npz";
    QTest::newRow("a training outside") << begins + ", \"trainings\": {\"../x\": {}}}" << "names the training ../x";
    QTest::newRow("a training's file outside") << begins + ", \"trainings\": {\"ab\": {\"training/../../x.y\": \"" + hash + "\"}}}"
                                               << "names training/../../x.y";
    QTest::newRow("nested") << QByteArray(200'000, '[') << "is not JSON";
  }
  void whatIsNoSessionIsRefused() {
    QFETCH(QByteArray, bytes);
    QFETCH(QString, says);
    put(path("a.reclab"), bytes);
    try {
      openedFrom(path("a.reclab"), store());
      QFAIL("it was opened");
    } catch (const Error& error) {
      QVERIFY2(QString(error.what()).contains(says), error.what());
    }
  }

  /// Each is a sentence, and the rest is there.
  void whatIsGoneIsSaid() {
    const auto learner = trained(setupOn(data()), store(), 3);
    const LabSnapshot lab = labOf(setupOn(data()), learner);
    saveSession(lab, planOf(path("a.reclab"), store()));
    const QString files = path("a.reclab.files");
    const QString weights = readSession(bytesIn(path("a.reclab")), "a.reclab").weights["weights-1.npz"];
    const auto notes = [&](const QString& file) {
      QTemporaryDir other;
      return openedFrom(file, other.path()).notes;
    };
    // The folder is another one.
    QVERIFY(QDir().mkpath(path("moved")));
    for (const char* name : {"a.reclab", "a.reclab.files", "data.csv"}) QVERIFY(QFile::rename(path(name), path("moved/") + name));
    QCOMPARE(notes(path("moved/a.reclab")), QStringList());
    // The data have another name, further down.
    QVERIFY(QDir().mkpath(path("moved/b/c")));
    QVERIFY(QFile::rename(path("moved/data.csv"), path("moved/b/c/other name.csv")));
    QCOMPARE(notes(path("moved/a.reclab")), QStringList{"data.csv is now b/c/other name.csv."});
    // They have changed, and are there as they were too; then no more.
    put(path("moved/data.csv"), "t,x\n1,2\n2,3\n3,4\n4,4\n5,5\n6,6\n7,6\n8,6\n9,7\n10,8\n");
    QCOMPARE(notes(path("moved/a.reclab")),
             QStringList{"data.csv has changed since the session was saved; what it held then is b/c/other name.csv, which is taken."});
    QVERIFY(QDir(path("moved/b")).removeRecursively());
    QCOMPARE(notes(path("moved/a.reclab")).value(0),
             QString("data.csv has changed since the session was saved, so what it shows is not what was shown then."));
    QVERIFY(QFile::remove(path("moved/data.csv")));
    {
      QTemporaryDir other;
      const OpenedSession opened = openedFrom(path("moved/a.reclab"), other.path());
      QCOMPARE(opened.notes.value(0), QString("data.csv is missing, and no file beside the session or in its folders holds the same."));
      QVERIFY2(opened.notes.join('|').contains("stands in for it"), qPrintable(opened.notes.join('|')));
      QVERIFY(opened.sequence != nullptr && !opened.sequence->choice.is_file());
    }
    put(path("moved/data.csv"), rows());
    QCOMPARE(notes(path("moved/a.reclab")), QStringList());
    // One file of weights is missing, which are the training's, too; then it is damaged.
    QVERIFY(QFile::rename(path("moved/a.reclab.files/") + weights, path("aside")));
    QVERIFY2(notes(path("moved/a.reclab")).join('|').contains("Learned weights cannot be had from a.reclab.files: "),
             qPrintable(notes(path("moved/a.reclab")).join('|')));
    QVERIFY(notes(path("moved/a.reclab")).value(0).endsWith(weights + " is missing: bring back the file."));
    QCOMPARE(notes(path("moved/a.reclab")).size(), 2);
    put(path("moved/a.reclab.files/") + weights, "x");
    QVERIFY(notes(path("moved/a.reclab")).value(0).contains("is damaged"));
    QVERIFY(QDir(path("moved/a.reclab.files")).removeRecursively());
    QTemporaryDir other;
    const OpenedSession opened = openedFrom(path("moved/a.reclab"), other.path());
    QCOMPARE(opened.notes.size(), 2);
    QVERIFY(opened.trainings.learners.empty() && opened.state["shown"].toObject()["preset"].toString() == "gru");
  }

  void aFolderToSendHasAll() {
    const auto learner = trained(setupOn(data()), store(), 3);
    put(path("elsewhere/data.csv"), "t,x\n1,2\n2,3\n3,5\n");
    LabSnapshot lab = labOf(setupOn(data()), learner);
    QJsonObject pin = lab.state["pins"][0].toObject();
    pin["states"] = QJsonObject{{"gru", path("elsewhere/data.csv")}};  // another file of that name
    lab.state["pins"] = QJsonArray{pin};
    SessionPlan plan = planOf(path("to send/a.reclab"), store());
    plan.copiesData = true;
    saveSession(lab, plan);
    QVERIFY(QDir().rename(path("to send"), path("received")));
    QVERIFY(QFile::remove(data()) && QDir(path("elsewhere")).removeRecursively() && QDir(store()).removeRecursively());
    const OpenedSession opened = openedFrom(path("received/a.reclab"), store());
    QCOMPARE(opened.notes, QStringList());
    QCOMPARE(QString::fromStdString(opened.sequence->choice.file), path("received/data/data.csv"));
    QCOMPARE(opened.state["pins"][0].toObject()["states"].toObject()["gru"].toString(), path("received/data/2-data.csv"));
    QVERIFY(opened.trainings.learners[0]->advance({}));
  }

  /// The weights that a preset brings lie elsewhere in another installation, and in a source tree not among the resources.
  void weightsOfAPresetAreFoundInThisInstallation() {
    Setup setup = setupOn(data());
    useTrained(setup, library()->presets.find("gru"));
    const QString own = QString::fromStdString(setup.weights.at("gru").string()),
                  other = path("elsewhere/presets/recurrent/gru.safetensors");
    put(other, bytesIn(own));
    setup.weights["gru"] = other.toStdString();
    saveSession(labOf(setup, nullptr), planOf(path("a.reclab"), store()));
    QVERIFY(QDir(path("elsewhere")).removeRecursively());
    const OpenedSession opened = openedFrom(path("a.reclab"), store());
    QCOMPARE(opened.notes, QStringList());
    QCOMPARE(QFileInfo(opened.state["shown"].toObject()["weights"].toObject()["gru"].toString()).canonicalFilePath(),
             QFileInfo(own).canonicalFilePath());
    // Other bytes under that name are not taken for it.
    put(other, bytesIn(own).append('x'));
    saveSession(labOf(setup, nullptr), planOf(path("b.reclab"), store()));
    QVERIFY(QDir(path("elsewhere")).removeRecursively());
    QVERIFY2(openedFrom(path("b.reclab"), store()).notes.join('|').contains("is missing"),
             qPrintable(openedFrom(path("b.reclab"), store()).notes.join('|')));
  }

  /// Nothing outside its own folders and the data that it names.
  void aSessionReadsNothingElse() {
    put(path("secret.csv"), "t,x\n1,2\n2,3\n3,5\n");
    saveSession(labOf(setupOn(data()), nullptr), planOf(path("s/a.reclab"), store()));
    QJsonObject document = documentOf(bytesIn(path("s/a.reclab"))), state = document["state"].toObject();
    for (const QString& file : {path("secret.csv"), QString("../secret.csv"), QString("..")}) {
      QJsonObject shown = state["shown"].toObject(), sequence = shown["sequence"].toObject();
      sequence["file"] = file;
      shown["sequence"] = sequence;
      shown["weights"] = QJsonObject{{"gru", file}};
      state["shown"] = shown;
      document["state"] = state;
      put(path("s/a.reclab"), QJsonDocument(document).toJson());
      const OpenedSession opened = openedFrom(path("s/a.reclab"), store());
      QVERIFY(!opened.sequence->choice.is_file());
      QVERIFY(!QJsonDocument(opened.state).toJson().contains("secret.csv\"") ||
              opened.state.value("shown")["weights"]["gru"].toString() == path("s/secret.csv"));
    }
  }

  /// Whoever made the session: a file outside its folder is taken where it holds what the session says, and else by hand alone.
  void aSessionTakesNothingFromOutsideItsFolder() {
    const QByteArray secret = "t,x\n1,2\n2,3\n3,5\n4,9\n";
    put(path("secret.csv"), secret);
    QVERIFY(QDir().mkpath(path("s")));
    saveSession(labOf(setupOn(data()), nullptr), planOf(path("s/a.reclab"), store()));
    QCOMPARE(readSession(bytesIn(path("s/a.reclab")), "a.reclab").data[0].path, QString("../data.csv"));
    QCOMPARE(openedFrom(path("s/a.reclab"), store()).notes, QStringList());  // with the contents that it names
    const auto reads = [&](const OpenedSession& opened) {
      return opened.sequence->choice.is_file() && opened.sequence->sequence.length == 4;
    };
    const auto with = [&](const QString& file, bool named) {
      QJsonObject document = documentOf(bytesIn(path("s/a.reclab"))), state = document["state"].toObject(),
                  shown = state["shown"].toObject(), sequence = shown["sequence"].toObject(), data = document["data"][0].toObject();
      sequence["file"] = file;
      shown["sequence"] = sequence;
      state["shown"] = shown;
      document["state"] = state;
      data["path"] = file;
      document["data"] = named ? QJsonArray{data} : QJsonArray();
      put(path("s/b.reclab"), QJsonDocument(document).toJson());
      return openedFrom(path("s/b.reclab"), store());
    };
    QVERIFY(QFile::link(path("secret.csv"), path("s/link.csv")));
    QVERIFY(QFile::link(path("."), path("s/up")));
    for (const QString& file : {QString("../secret.csv"), path("secret.csv"), QString("link.csv"), QString("up/secret.csv"),
                                QString("/dev/zero"), QString("../../../../../../../dev/zero")})
      for (const bool named : {true, false}) {
        const OpenedSession opened = with(file, named);
        QVERIFY2(!reads(opened), qPrintable(file));
        QVERIFY2(opened.notes.join('|').contains("stands in for it"), qPrintable(file + ": " + opened.notes.join('|')));
      }
    QVERIFY2(with("../secret.csv", true).notes.value(0).contains("lies outside its folder, so it is not taken"), "no sentence");
    QVERIFY2(with("link.csv", false).notes.value(0).contains("a link that leads out of the session's folder"), "no sentence");
    // The same rows in the folder itself are read, changed or not named.
    put(path("s/inside.csv"), secret);
    QVERIFY(reads(with("inside.csv", true)) && reads(with("inside.csv", false)));
    // What is in the program's own folders is the user's: data that changed are taken, and said to have changed.
    put(data(), secret);
    QVERIFY(!reads(openedFrom(path("s/a.reclab"), store())));
    const OpenedSession own = openSession(path("s/a.reclab"), {}, store(), library(), Origin::own);
    QVERIFY(reads(own) && own.notes.value(0).contains("has changed since the session was saved, so"));
  }

  void killedBeforeAnyCallTheSessionIsTheOldOneOrTheNewOne() {
    int olds = 0, news = 0;
    QCOMPARE(saveAgain(folder_->path(), 1), 0);
    const QMap<QString, QByteArray> before = contentsOf(folder_->path());
    for (int at = 1;; ++at) {
      QVERIFY2(at < 200, "no save gets through");
      for (const char* name : {"store", "a.reclab.files"}) QDir(path(name)).removeRecursively();
      for (auto file = before.begin(); file != before.end(); ++file) put(path(file.key()), file.value());
      const int status = child({"--save-again", folder_->path(), "2"}, "SHIM_KILL_AT", at);
      QVERIFY2(status == 0 || status == -1, qPrintable(QString::number(status)));
      const std::uint64_t seed = wholeSeed();
      QVERIFY2(seed == 1 || seed == 2, qPrintable(QStringLiteral("killed before call %1: %2").arg(at).arg(seed)));
      (seed == 1 ? olds : news) += 1;
      // And the next save leaves what a save leaves.
      QCOMPARE(child({"--save-again", folder_->path(), "2"}), 0);
      QCOMPARE(wholeSeed(), std::uint64_t{2});
      const QString left = QDir(folder_->path()).entryList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot).join(' ');
      QCOMPARE(left, QString("a.reclab a.reclab.files data.csv store"));
      for (const QString& name : QDir(path("a.reclab.files")).entryList(QDir::Files | QDir::Hidden)) QCOMPARE(name.size(), 64);
      if (status == 0) {
        QVERIFY2(olds > 5 && news > 1, qPrintable(QStringLiteral("%1 old, %2 new").arg(olds).arg(news)));
        qInfo("%d calls: %d times the old session, %d times the new one", at - 1, olds, news);
        return;
      }
    }
  }

  void whereAnyCallFailsTheSessionIsTheOldOneOrTheNewOne() {
    QCOMPARE(saveAgain(folder_->path(), 1), 0);
    int refused = 0, through = 0;
    for (int at = 1; through < 4; ++at) {
      QVERIFY2(at < 200, "no save gets through");
      QString said;
      QCOMPARE(saveAgain(folder_->path(), 1), 0);
      const int status = child({"--save-again", folder_->path(), "2"}, "SHIM_FAIL_AT", at, &said);
      QVERIFY2(status == 0 || (status == 2 && said.count('\n') == 1), qPrintable(QString::number(status) + said));
      const std::uint64_t seed = wholeSeed();
      if (status == 0)
        QVERIFY2(seed == 2 || said.isEmpty(), qPrintable(QStringLiteral("call %1: %2 %3").arg(at).arg(seed).arg(said)));
      else
        QVERIFY2(seed == 1, qPrintable(QStringLiteral("call %1: %2 %3").arg(at).arg(seed).arg(said)));
      refused += status != 0;
      through = status == 0 ? through + 1 : 0;
    }
    QVERIFY2(refused > 0, "no call failed");
  }

  /// What a process that was killed left is found, whole, by one start at a time; what a living one has is not.
  void whatAKilledProcessLeftIsFound() {
    const QString recovery = path("recovery");
    for (int round = 0; round < 8; ++round) {
      QProcess process;
      process.start(QCoreApplication::applicationFilePath(), {"--keep-for-ever", folder_->path()});
      std::uint64_t told = 0;
      const std::uint64_t wanted = 1 + static_cast<std::uint64_t>(round);
      while (told < wanted && process.waitForReadyRead(childWaits))
        while (process.canReadLine()) told = process.readLine().trimmed().toULongLong();
      QVERIFY(told >= wanted);
      QVERIFY(!Recovery(recovery).left());
      ::kill(static_cast<pid_t>(process.processId()), SIGKILL);
      QVERIFY(process.waitForFinished(childWaits));
      while (process.canReadLine()) told = process.readLine().trimmed().toULongLong();
      std::optional<Recovery::Left> left = Recovery(recovery).left();
      QVERIFY(left.has_value());
      QVERIFY(!Recovery(recovery).left());  // it is held
      QVERIFY(left->files.size() >= static_cast<int>(std::min<std::uint64_t>(told, 3)) && left->files.size() <= 4);
      const OpenedSession opened = openSession(left->files.front(), left->beside, store(), library(), Origin::own);
      QVERIFY(opened.notes.isEmpty());
      const std::uint64_t seed = opened.state.value("shown")["seed"].toString().toULongLong();
      QVERIFY2(seed == told || seed == told + 1, qPrintable(QStringLiteral("%1 %2").arg(seed).arg(told)));
      QCOMPARE(opened.document["seed"].toInteger(), static_cast<qint64>(seed));
      if (round % 2 == 0) {
        left.reset();  // not answered
        QVERIFY(Recovery(recovery).left().has_value());
        left = Recovery(recovery).left();
      }
      left->forget();
      QVERIFY(!Recovery(recovery).left());
      QVERIFY(QDir(recovery).isEmpty());
    }
  }

  void closingLeavesNothing() {
    Recovery recovery(path("recovery"));
    SessionPlan plan = planOf(recovery.next(), store());
    plan.beside = recovery.filesOf();
    recovery.wrote(plan.file, saveSession(labOf(setupOn(data()), nullptr), plan).hashes);
    QVERIFY(QFileInfo::exists(plan.file));
    recovery.close();
    QVERIFY(QDir(path("recovery")).isEmpty());
  }

  void aLinkIsARunAndNothingElse() {
    Setup setup;
    setup.preset = "elman";
    setup.setValue("spectral_radius", "0.7");
    setup.seed = 5;
    SequenceChoice choice;
    choice.task = "adding";
    choice.make.length = 30;
    choice.make.seed = 9;
    setup.sequence = loadChoice(choice);
    const QString link = linkOf(setup, *library());
    QVERIFY2(link.startsWith("reclab:run?elman&--task&adding&--length&30"), qPrintable(link));
    const Options options = readOptions({"recurrence-lab", link});
    Setup again = beginning(options, *library());
    QVERIFY(beginningSequence(options, *library()) == choice);
    again.sequence = setup.sequence;
    QVERIFY(again == setup);
    Setup file = setupOn(data());
    QVERIFY_EXCEPTION_THROWN(linkOf(file, *library()), Error);
    for (const char* bad :
         {"reclab:run?--input&/etc/passwd", "reclab:run?/etc/passwd", "reclab:run?lstm&--figures&/tmp/x", "reclab:train?lstm",
          "reclab:run?lstm&--weights&w.npz", "reclab:run?lstm&--weights=w.npz", "reclab:run?a.reclab", "reclab:run?-h",
          "reclab:run?lstm&--%69nput&x.csv", "reclab:run?reclab:run?lstm", "reclab:run?file:///etc/passwd"})
      QVERIFY_EXCEPTION_THROWN(readOptions({"recurrence-lab", bad}), Error);
  }

  void everySessionThatWasEverWrittenOpens_data() {
    QTest::addColumn<QString>("file");
    const QString sessions = QString::fromStdString(test::source("tests/app/sessions"));
    int count = 0;
    for (QDirIterator files(sessions, {"*.reclab"}, QDir::Files, QDirIterator::Subdirectories); files.hasNext(); ++count) {
      const QString file = files.next();
      QTest::newRow(qPrintable(QDir(sessions).relativeFilePath(file))) << file;
    }
    QVERIFY(count >= 3);
  }
  void everySessionThatWasEverWrittenOpens() {
    QFETCH(QString, file);
    const OpenedSession opened = openedFrom(file, store());
    QCOMPARE(opened.notes, QStringList());
    const SessionFile session = readSession(bytesIn(file), file);
    QCOMPARE(opened.trainings.learners.size(), static_cast<std::size_t>(session.trainings.size()));
    QCOMPARE(opened.trainings.weights.size(), static_cast<std::size_t>(session.weights.size()));
    const auto kept = keptSetup(opened.state["shown"].toObject(), *library());
    QVERIFY(kept && kept->sequence);
    // Written again it says the same.
    SessionFile again = session;
    QCOMPARE(documentOf(bytesOf(again, documentOf(bytesIn(file)))), documentOf(bytesIn(file)));
  }
};

int main(int argc, char** argv) {
  QCoreApplication application(argc, argv);
  QCoreApplication::setOrganizationName("recurrence-lab");
  QCoreApplication::setApplicationName("session-files-test");
  const QStringList arguments = QCoreApplication::arguments();
  if (arguments.size() == 4 && arguments[1] == "--save-again") return saveAgain(arguments[2], arguments[3].toULongLong());
  if (arguments.size() == 3 && arguments[1] == "--keep-for-ever") return keepForEver(arguments[2]);
  TestSessionFiles test;
  return QTest::qExec(&test, argc, argv);
}

#include "test_session_files.moc"
