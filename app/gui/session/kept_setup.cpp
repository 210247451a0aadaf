// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/kept_setup.h"

#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QSettings>
#include <algorithm>

#include "models/registry.h"

namespace reclab {
namespace {

QString toText(const std::string& value) { return QString::fromStdString(value); }

QJsonObject toObject(const std::map<std::string, std::filesystem::path>& files) {
  QJsonObject object;
  for (const auto& [preset, file] : files) object[toText(preset)] = toText(file.string());
  return object;
}

std::map<std::string, std::filesystem::path> filesOf(const QJsonObject& object) {
  std::map<std::string, std::filesystem::path> files;
  for (auto entry = object.begin(); entry != object.end(); ++entry)
    if (const QString file = entry.value().toString(); QFileInfo(file).isFile()) files[entry.key().toStdString()] = file.toStdString();
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

QJsonObject toObject(const Setup& setup, const PutLearned& put) {
  QJsonObject set;
  for (const auto& [preset, settings] : setup.set) {
    set[toText(preset)] = toArray(settings);
  }
  QJsonObject root{{"preset", toText(setup.preset)},      {"set", set},
                   {"weights", toObject(setup.weights)},  {"states", toObject(setup.states)},
                   {"seed", QString::number(setup.seed)}, {"form", toText(setup.form)},
                   {"device", toText(setup.device)},      {"dtype", toText(setup.dtype)},
                   {"loss", toText(setup.loss)}};
  if (setup.sequence) {
    const SequenceChoice& choice = setup.sequence->choice;
    QJsonObject sequence;
    if (choice.isFile) {
      QJsonArray columns;
      for (const std::string& column : choice.load.columns) columns.append(toText(column));
      QJsonArray target;
      for (const std::string& column : choice.load.target) target.append(toText(column));
      sequence = {{"file", toText(choice.file)}, {"columns", columns}, {"target", target}, {"standardise", choice.load.standardise}};
      if (choice.load.time) sequence["time"] = toText(*choice.load.time);
      if (choice.load.missing != Missing::refuse) sequence["missing"] = QString::fromUtf8(to_string(choice.load.missing));
    } else {
      sequence = {{"task", toText(choice.task)},
                  {"length", QString::number(choice.options.length)},
                  {"seed", QString::number(choice.options.seed)},
                  {"standardise", choice.options.standardise},
                  {"set", toArray(choice.options.set)}};
    }
    root["sequence"] = sequence;
  }
  if (put) {
    QJsonObject learned;
    for (const auto& [preset, weights] : setup.learned)
      if (weights) learned[toText(preset)] = put(weights);
    if (!learned.isEmpty()) root["learned"] = learned;
  }
  return root;
}

std::string word(const QJsonObject& from, const char* key, const char* otherwise) {
  return from[QLatin1String(key)].toString(otherwise).toStdString();
}

/// All but its sequence; nothing where the model or a value is none that there is.
std::optional<Setup> setupOf(const QJsonObject& root, const Library& library, const GetLearned& get, bool& unlearned) {
  Setup setup;
  setup.preset = word(root, "preset", "");
  setup.seed = root["seed"].toString().toULongLong();
  setup.form = word(root, "form", "auto");
  setup.device = word(root, "device", "auto");
  setup.dtype = word(root, "dtype", "f64");
  setup.loss = word(root, "loss", "auto");
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
    const auto kind = [](const std::string& one, std::initializer_list<const char*> all) {
      return std::find(all.begin(), all.end(), one) != all.end();
    };
    if (!kind(setup.device, {"auto", "cpu", "cuda"}) || !kind(setup.dtype, {"f64", "f32"}) ||
        (setup.loss != "auto" && !loss_kind(setup.loss)))
      return {};
    hyper_of(builtin_registry(), library.presets.find(setup.preset), setup.settings());
  } catch (const Error&) {
    return {};  // of a preset or a table that is not what it was
  }
  return setup;
}

}  // namespace

QByteArray toJson(const Setup& setup, const PutLearned& put) { return QJsonDocument(toObject(setup, put)).toJson(QJsonDocument::Compact); }

QByteArray toJson(const std::vector<KeptPin>& pins, const PutLearned& put) {
  QJsonArray all;
  for (const KeptPin& pin : pins) {
    QJsonObject one = toObject(pin.setup, put);
    one.remove("sequence");
    if (!pin.given.isEmpty()) one["name"] = pin.given;
    if (pin.colour >= 0) one["colour"] = pin.colour;
    if (!pin.training.isEmpty()) one["training"] = pin.training;
    all.append(one);
  }
  return QJsonDocument(all).toJson(QJsonDocument::Compact);
}

std::optional<KeptSetup> keptSetup(const QByteArray& json, const Library& library, const GetLearned& get) {
  const QJsonObject root = QJsonDocument::fromJson(json).object();
  const QJsonObject sequence = root["sequence"].toObject();
  if (root.isEmpty() || sequence.isEmpty()) return {};
  bool unlearned = false;
  const std::optional<Setup> setup = setupOf(root, library, get, unlearned);
  if (!setup) return {};
  KeptSetup kept{*setup, {}, unlearned};
  SequenceChoice& choice = kept.sequence;
  choice.isFile = sequence.contains("file");
  if (choice.isFile) {
    choice.file = word(sequence, "file", "");
    choice.load.standardise = sequence["standardise"].toBool(true);
    for (const QJsonValue column : sequence["columns"].toArray()) choice.load.columns.push_back(column.toString().toStdString());
    for (const QJsonValue column : sequence["target"].toArray()) choice.load.target.push_back(column.toString().toStdString());
    if (sequence.contains("time")) choice.load.time = word(sequence, "time", "");
    choice.load.missing = missing_choice(word(sequence, "missing", "refuse")).value_or(Missing::refuse);
  } else {
    choice.task = word(sequence, "task", "noise");
    choice.options.length = std::clamp<std::int64_t>(sequence["length"].toString("200").toLongLong(), 2, 10'000'000);
    choice.options.seed = sequence["seed"].toString("1").toULongLong();
    choice.options.standardise = sequence["standardise"].toBool();
    choice.options.set = settingsOf(sequence["set"]);
    try {
      task_parameters(choice.task, choice.options.set);
    } catch (const Error&) {
      choice.options.set.clear();  // of a task that is not what it was
    }
  }
  return kept;
}

std::vector<KeptPin> keptPins(const QByteArray& json, const Library& library, const GetLearned& get) {
  std::vector<KeptPin> pins;
  for (const QJsonValue one : QJsonDocument::fromJson(json).array()) {
    bool unlearned = false;
    if (const std::optional<Setup> setup = setupOf(one.toObject(), library, get, unlearned))
      pins.push_back({*setup, one[QLatin1String("name")].toString(), one[QLatin1String("colour")].toInt(-1),
                      one[QLatin1String("training")].toString(), unlearned});
  }
  return pins;
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
