// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/kept/stream_files.h"

#include <QDateTime>
#include <QDir>
#include <QDirIterator>
#include <QFile>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLocale>
#include <QStandardPaths>
#include <algorithm>
#include <functional>
#include <utility>

#include "files/files.h"
#include "files/npz.h"
#include "gui/session/files.h"
#include "gui/session/kept/ring_marks.h"
#include "gui/session/kept_setup.h"
#include "gui/session/requests.h"

namespace reclab {
namespace {

constexpr int streamVersion = 1;
const QString windowsPart = windowsPartOfPlace();

QString textFrom(const std::string& text) { return QString::fromStdString(text); }

/// A number that may be no number, which JSON does not have.
QJsonValue toValue(double number) { return QString::fromStdString(as_text(HyperValue(number))); }
double numberFrom(const QJsonValue& value) { return QLocale::c().toDouble(value.toString()); }

QJsonObject toJson(const StreamNumbers& numbers) {
  QJsonArray rows;
  for (const StreamRow& row : numbers.rows)
    rows.append(QJsonObject{{"name", textFrom(row.name)},
                            {"text", textFrom(row.text)},
                            {"learns", row.learns},
                            {"mean", QJsonArray{toValue(row.mean[0]), toValue(row.mean[1])}},
                            {"windowed", QJsonArray{toValue(row.windowed[0]), toValue(row.windowed[1])}},
                            {"regret", toValue(row.regret)},
                            {"diverged", static_cast<qint64>(row.diverged)}});
  return {{"measures", QJsonArray{textFrom(numbers.measures[0]), textFrom(numbers.measures[1])}},
          {"rows", rows},
          {"step", static_cast<qint64>(numbers.steps)},
          {"drifts", static_cast<qint64>(numbers.drifts)},
          {"left_out", static_cast<qint64>(numbers.leftOut)},
          {"window", static_cast<qint64>(numbers.window)},
          {"done", numbers.done}};
}

StreamNumbers numbersFrom(const QJsonObject& json) {
  StreamNumbers numbers;
  const auto pair = [](const QJsonValue& value) { return Errors{numberFrom(value[0]), numberFrom(value[1])}; };
  for (std::size_t i = 0; i < 2; ++i) numbers.measures[i] = json["measures"][static_cast<qsizetype>(i)].toString().toStdString();
  for (const QJsonValue row : json["rows"].toArray())
    numbers.rows.push_back({.name = row["name"].toString().toStdString(),
                            .text = row["text"].toString().toStdString(),
                            .learns = row["learns"].toBool(),
                            .mean = pair(row["mean"]),
                            .windowed = pair(row["windowed"]),
                            .regret = numberFrom(row["regret"]),
                            .diverged = row["diverged"].toInteger(-1)});
  numbers.steps = json["step"].toInteger();
  numbers.drifts = json["drifts"].toInteger();
  numbers.leftOut = json["left_out"].toInteger();
  numbers.done = json["done"].toBool();
  numbers.window = json["window"].toInteger();
  return numbers;
}

}  // namespace

StreamNumbers numbersOf(const StreamRun& stream) {
  StreamNumbers numbers{.measures = measures_of(stream.form()),
                        .rows = {},
                        .steps = stream.steps(),
                        .drifts = stream.drifts().drifts(),
                        .done = stream.done(),
                        .window = stream.request().errors.window,
                        .note = stream.note()};
  for (std::size_t p = 0; p < stream.predictors().size(); ++p) {
    const StreamRun::Predictor& one = stream.predictors()[p];
    StreamRow row{.name = one.name,
                  .text = one.text,
                  .learns = one.learns,
                  .mean = stream.errors()[p].mean(),
                  .windowed = stream.errors()[p].windowed(),
                  .diverged = one.diverged};
    if (one.learns) row.regret = stream.regret(p);
    numbers.rows.push_back(std::move(row));
  }
  return numbers;
}

StreamCurvesPtr curvesOf(const StreamRun& stream) {
  auto curves = std::make_shared<StreamCurves>();
  const PrequentialCurve& of = stream.curve();
  const auto& predictors = stream.predictors();
  curves->steps.assign(of.steps().begin(), of.steps().end());
  curves->windowed.resize(predictors.size());
  curves->regret.resize(predictors.size());
  for (std::int64_t row = 0; row < of.rows(); ++row) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t p = 0; p < predictors.size(); ++p) {
      curves->windowed[p].push_back(of.at(row, p, PrequentialCurve::windowed, 0));
      const double total = of.at(row, p, PrequentialCurve::total, 0);
      if (predictors[p].learns) curves->regret[p].push_back(total);
      if (predictors[p].learns && total < least) least = total;
    }
    for (auto& regret : curves->regret)
      if (!regret.empty()) regret.back() -= least;
  }
  return curves;
}

RunRequest modelOfStream(const Setup& setup, const Preset& preset) {
  RunRequest run = requestFor(setup, preset, {});
  run.sequence = {};
  run.state.clear();
  run.form = "sequential";
  run.loss = LossKind::automatic;
  return run;
}

QString folderOfStreams() { return QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) + "/streams"; }

QString newStreamFolder(const QString& preset) {
  const QDir all(folderOfStreams());
  QString name = preset + QDateTime::currentDateTime().toString(QStringLiteral("-yyyy-MM-dd-HHmmss"));
  if (QDir().mkpath(all.path()))
    for (int i = 1; i < 100; ++i) {
      const QString one = i == 1 ? name : name + '-' + QString::number(i);
      if (all.mkdir(one)) return all.filePath(one);
      if (!all.exists(one)) break;
    }
  throw Error(all.path().toStdString() + " cannot be made or written to, and the stream is kept there: make room, or see to its rights.",
              {.file = all.path().toStdString()});
}

QString checkpointIn(const QString& stream) { return stream + "/checkpoint"; }

SequenceChoice ringIn(const QString& folder) {
  SequenceChoice choice;
  choice.file = (folder + "/ring.npz").toStdString();
  choice.load.standardise = false;
  return choice;
}

std::vector<StepMark> marksOf(const StreamRun& stream) {
  std::vector<StepMark> marks;
  const std::vector<std::int64_t> regimes = stream.ring()->regimes();
  const auto& names = stream.form().concepts;
  for (std::size_t i = 1; i < regimes.size(); ++i)
    if (const auto regime = static_cast<std::size_t>(regimes[i]); regimes[i] != regimes[i - 1])
      marks.push_back({static_cast<std::int64_t>(i), regimes[i] >= 0 && regime < names.size() ? textFrom(names[regime]) : QString()});
  return marks;
}

StreamPlace leaveStream(StreamRun& stream, const Setup& setup, const StreamNumbers& numbers, const QString& folder) {
  export_stream(stream, folder.toStdString());
  QJsonObject request;  // of the values that are not the usual ones
  for (const PlanField<StreamRequest>& field : stream_fields())
    if (const HyperValue value = field.get(stream.request()); value != field.row.standard)
      request[textFrom(field.row.key)] = textFrom(as_text(value));
  QJsonArray marks;
  for (const StepMark& mark : marksOf(stream)) marks.append(QJsonObject{{"at", static_cast<qint64>(mark.step)}, {"regime", mark.text}});
  const QJsonObject json{{"version", streamVersion},
                         {"marks", marks},
                         {"setup", toJson(setup)},
                         {"stream", request},
                         {"source_seed", textFrom(std::to_string(stream.request().source.seed))},
                         {"numbers", toJson(numbers)}};
  QDir(folder).mkpath(QStringLiteral("window"));
  const QByteArray text = QJsonDocument(json).toJson();
  write_file((folder + windowsPart).toStdString(), {text.constData(), static_cast<std::size_t>(text.size())});
  return {folder, stream.steps(), loadChoice(ringIn(folder))};
}

namespace {

/// Those that export_stream() wrote; an archive without one of them has none.
StreamCurvesPtr curvesIn(const QString& folder, const StreamNumbers& numbers) {
  const NpzFile archive((folder + "/stream.npz").toStdString());
  const auto rowsOf = [&](const std::string& name) { return archive.has(name) ? archive.read(name).real : std::vector<double>(); };
  auto curves = std::make_shared<StreamCurves>();
  curves->steps = rowsOf("step");
  for (const StreamRow& row : numbers.rows) {
    curves->windowed.push_back(rowsOf("windowed/" + numbers.measures[0] + "/" + row.name));
    curves->regret.push_back(row.learns ? rowsOf("regret/" + numbers.measures[0] + "/" + row.name) : std::vector<double>());
  }
  const auto fits = [&](const std::vector<double>& values) { return values.empty() || values.size() == curves->steps.size(); };
  return std::ranges::all_of(curves->windowed, fits) && std::ranges::all_of(curves->regret, fits) ? curves : nullptr;
}

}  // namespace

StreamFiles streamFilesIn(const QString& folder, const Library& library) {
  const std::string file = (folder + windowsPart).toStdString();
  const std::string text = read_file(file);
  const QJsonObject json = QJsonDocument::fromJson(QByteArray::fromStdString(text)).object();
  const auto setup = keptSetup(json["setup"].toObject(), library);
  if (json["version"].toInt() != streamVersion || !setup)
    throw Error(file + " is of another version, or of a preset that is not there: the stream goes on with reclab stream --resume.",
                {.file = file});
  StreamFiles kept{.setup = setup->setup, .request = {}, .numbers = numbersFrom(json["numbers"].toObject())};
  kept.request.run = modelOfStream(kept.setup, library.presets.find(kept.setup.preset));
  const QJsonObject request = json["stream"].toObject();
  for (const PlanField<StreamRequest>& field : stream_fields())
    if (const QJsonValue value = request[textFrom(field.row.key)]; value.isString())
      field.set(kept.request, value_of(field, value.toString().toStdString()));
  kept.numbers.curves = curvesIn(folder, kept.numbers);
  kept.request.source.seed = seed_of(json["source_seed"].toString().toStdString());
  return kept;
}

std::vector<KeptPlace> keptPlaces() {
  std::vector<KeptPlace> found;
  const auto foldersOf = [](const QString& folder) {
    return QDir(folder).entryInfoList(QDir::Dirs | QDir::NoDotAndDotDot | QDir::NoSymLinks);
  };
  for (const QFileInfo& stream : foldersOf(folderOfStreams()))
    for (const QFileInfo& place : foldersOf(stream.filePath())) {
      QFile file(place.filePath() + windowsPart);
      if (!file.open(QIODevice::ReadOnly)) continue;
      const QJsonObject json = QJsonDocument::fromJson(file.readAll()).object();
      if (json["version"].toInt() != streamVersion) continue;
      KeptPlace one{.folder = place.filePath(),
                    .preset = json["setup"]["preset"].toString().toStdString(),
                    .steps = json["numbers"]["step"].toInteger(),
                    .written = QFileInfo(file).lastModified(),
                    .checkpoint = place.fileName() == u"checkpoint"};
      for (QDirIterator files(place.filePath(), QDir::Files, QDirIterator::Subdirectories); files.hasNext();)
        one.bytes += files.nextFileInfo().size();
      found.push_back(std::move(one));
    }
  std::ranges::sort(found, std::ranges::greater(), [](const KeptPlace& one) { return std::pair(one.written, one.steps); });
  return found;
}

void removePlace(const QString& folder) {
  const QDir stream(QFileInfo(folder).path());
  // A folder of another name first: a place is there whole, or not at all.
  const QString away = folder + ".removed";
  if ((QFileInfo::exists(away) && !QDir(away).removeRecursively()) || !QFile::rename(folder, away) || !QDir(away).removeRecursively())
    throw Error(folder.toStdString() + " cannot be removed: see to the rights of its folder.", {.file = folder.toStdString()});
  if (stream.isEmpty(QDir::Dirs | QDir::NoDotAndDotDot)) QDir(stream).removeRecursively();
}

QStringList placesOf(const Setup& setup) {
  QStringList places;
  for (const std::filesystem::path& file :
       {fileOf(setup.weights, setup.preset), std::filesystem::path(setup.sequence ? setup.sequence->choice.file : std::string())})
    if (const QString place = placeOf(file); !place.isEmpty() && !places.contains(place)) places << place;
  return places;
}

}  // namespace reclab
