// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/kept_setup.h"

#include <QFileInfo>
#include <QJsonArray>
#include <QJsonObject>
#include <QSettings>
#include <algorithm>

#include "experiment/command/run_fields.h"
#include "models/registry.h"

namespace reclab {
namespace {

QString toText(const std::string& value) { return QString::fromStdString(value); }

/// The next start may be in another folder.
QString wholePath(const std::string& file) { return QFileInfo(toText(file)).absoluteFilePath(); }

QJsonObject toObject(const std::map<std::string, std::filesystem::path>& files) {
  QJsonObject object;
  for (const auto& [preset, file] : files) object[toText(preset)] = wholePath(file.string());
  return object;
}

std::map<std::string, std::filesystem::path> filesOf(const QJsonObject& object) {
  std::map<std::string, std::filesystem::path> files;
  for (auto entry = object.begin(); entry != object.end(); ++entry)
    if (const QString file = entry.value().toString(); QFileInfo(fileWithoutPart(file)).isFile())
      files[entry.key().toStdString()] = file.toStdString();
  return files;
}

QJsonArray toArray(const Settings& settings) {
  QJsonArray pairs;  // in their order
  for (const auto& [key, value] : settings) pairs.append(QJsonArray{toText(key), toText(value)});
  return pairs;
}

Settings settingsOf(const QJsonValue& pairs) {
  Settings settings;
  for (const QJsonValue pair : pairs.toArray()) settings.emplace_back(pair[0].toString().toStdString(), pair[1].toString().toStdString());
  return settings;
}

/// As a field has it, whether it was written as text, as yes or no, or as a list of names or pairs.
std::string textOf(const QJsonValue& value) {
  if (value.isBool()) return value.toBool() ? "yes" : "no";
  if (!value.isArray()) return value.toString().toStdString();
  std::vector<std::string> names;
  for (const QJsonValue one : value.toArray())
    names.push_back(one.isArray() ? names_of_pairs({{one[0].toString().toStdString(), one[1].toString().toStdString()}}).front()
                                  : one.toString().toStdString());
  return list_of_names(names);
}

template <class Plan>
void write(QJsonObject& object, const PlanField<Plan>& field, const Plan& plan) {
  object[toText(field.row.key)] = toText(as_text(field.get(plan)));
}

/// Throws Error for a value that cannot be.
template <class Plan>
void read(const QJsonObject& object, const PlanField<Plan>& field, Plan& plan) {
  const QString key = toText(field.row.key);
  if (object.contains(key)) field.set(plan, value_of(field, textOf(object[key])));
}

/// All but its sequence; nothing where the model or a value is none that there is.
std::optional<Setup> setupOf(const QJsonObject& root, const Library& library, const GetLearned& get, bool& unlearned) {
  Setup setup;
  setup.preset = root["preset"].toString().toStdString();
  setup.weights = filesOf(root["weights"].toObject());
  setup.states = filesOf(root["states"].toObject());
  const QJsonObject learned = root["learned"].toObject();
  for (auto entry = learned.begin(); entry != learned.end(); ++entry) {
    const LearnedPtr weights = get ? get(entry.value().toObject()) : nullptr;
    if (weights) setup.learned[entry.key().toStdString()] = weights;
    unlearned = unlearned || (!weights && entry.key().toStdString() == setup.preset);
  }
  const QJsonObject set = root["set"].toObject();
  for (auto entry = set.begin(); entry != set.end(); ++entry) setup.set[entry.key().toStdString()] = settingsOf(entry.value());
  try {
    for (const auto& field : run_settings_fields()) read(root, field, static_cast<RunSettings&>(setup));
    hyper_of(builtin_registry(), library.presets.find(setup.preset), setup.settings());
  } catch (const Error&) {
    return {};  // of a preset or a table that has changed
  }
  return setup;
}

/// Values that cannot be, as those of a task that has changed, are left out.
SequenceChoice sequenceOf(const QJsonObject& sequence) {
  SequenceChoice choice;
  for (const auto& field : sequence_fields()) try {
      read(sequence, field, choice);
      if (field.row.key == "set") task_parameters(choice.task, choice.make.set);
    } catch (const Error&) {
      if (field.row.key == "set") choice.make.set.clear();
    }
  choice.make.length = std::clamp<std::int64_t>(choice.make.length, 2, 10'000'000);
  return choice;
}

}  // namespace

QJsonObject toJson(const Setup& setup, const PutLearned& put) {
  QJsonObject set;
  for (const auto& [preset, settings] : setup.set) {
    set[toText(preset)] = toArray(settings);
  }
  QJsonObject root{
      {"preset", toText(setup.preset)}, {"set", set}, {"weights", toObject(setup.weights)}, {"states", toObject(setup.states)}};
  for (const auto& field : run_settings_fields()) write(root, field, static_cast<const RunSettings&>(setup));
  if (setup.sequence) {
    SequenceChoice choice = setup.sequence->choice;
    if (choice.is_file()) choice.file = wholePath(choice.file).toStdString();
    QJsonObject sequence;
    for (const auto& field : sequence_fields())
      if (is_of(field, choice)) write(sequence, field, choice);
    root["sequence"] = sequence;
  }
  if (put) {
    QJsonObject learned;
    for (const auto& [preset, weights] : setup.learned)
      if (const QJsonObject its = weights ? put(weights) : QJsonObject(); !its.isEmpty()) learned[toText(preset)] = its;
    if (!learned.isEmpty()) root["learned"] = learned;
  }
  return root;
}

std::optional<KeptSetup> keptSetup(const QJsonObject& json, const Library& library, const GetLearned& get) {
  KeptSetup kept;
  const std::optional<Setup> setup = setupOf(json, library, get, kept.unlearned);
  if (!setup) return {};
  kept.setup = *setup;
  if (const QJsonObject sequence = json["sequence"].toObject(); !sequence.isEmpty()) kept.sequence = sequenceOf(sequence);
  return kept;
}

QJsonObject withFiles(QJsonObject setup, const std::function<QString(const QString& file)>& place) {
  if (QJsonObject sequence = setup.value("sequence").toObject(); !sequence["file"].toString().isEmpty()) {
    sequence["file"] = place(sequence["file"].toString());
    setup["sequence"] = sequence;
  }
  for (const QLatin1String key : {QLatin1String("weights"), QLatin1String("states")}) {
    QJsonObject files = setup.value(key).toObject();
    for (auto file = files.begin(); file != files.end(); ++file) file.value() = place(file.value().toString());
    if (!files.isEmpty()) setup[key] = files;
  }
  return setup;
}

QString fileWithoutPart(const QString& path) {
  const auto colon = path.lastIndexOf(':');
  return colon <= 0 || QFileInfo::exists(path) ? path : path.left(colon);
}

QStringList recentFiles() { return QSettings().value("recentFiles").toStringList().mid(0, 8); }

void noteRecentFile(const QString& file) {
  QStringList files = recentFiles();
  const QString whole = QFileInfo(file).absoluteFilePath();
  files.removeAll(whole);
  files.prepend(whole);
  QSettings().setValue("recentFiles", files.mid(0, 8));
}

void forgetRecentFiles() { QSettings().remove("recentFiles"); }

}  // namespace reclab
