// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/kept/stream_files.h"

#include <QDateTime>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLocale>
#include <QStandardPaths>

#include "files/files.h"
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
  return numbers;
}

}  // namespace

StreamNumbers numbersOf(const StreamRun& stream) {
  StreamNumbers numbers{.measures = measures_of(stream.form()),
                        .rows = {},
                        .steps = stream.steps(),
                        .drifts = stream.drifts().drifts(),
                        .done = stream.done()};
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
  kept.request.source.seed = seed_of(json["source_seed"].toString().toStdString());
  return kept;
}

}  // namespace reclab
