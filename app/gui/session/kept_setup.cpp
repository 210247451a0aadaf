// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/kept_setup.h"

#include <QFileInfo>
#include <QJsonArray>
#include <QJsonObject>
#include <QSettings>
#include <algorithm>

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

/// Those of a task that is not what it was are left out.
SequenceChoice sequenceOf(const QJsonObject& sequence) {
  SequenceChoice choice;
  choice.isFile = sequence.contains("file");
  if (choice.isFile) {
    choice.file = word(sequence, "file", "");
    choice.load.standardise = sequence["standardise"].toBool(true);
    for (const QJsonValue column : sequence["columns"].toArray()) choice.load.columns.push_back(column.toString().toStdString());
    for (const QJsonValue column : sequence["target"].toArray()) choice.load.target.push_back(column.toString().toStdString());
    if (sequence.contains("time")) choice.load.time = word(sequence, "time", "");
    choice.load.missing = missing_choice(word(sequence, "missing", "refuse")).value_or(Missing::refuse);
    return choice;
  }
  choice.task = word(sequence, "task", "noise");
  choice.options.length = std::clamp<std::int64_t>(sequence["length"].toString("200").toLongLong(), 2, 10'000'000);
  choice.options.seed = sequence["seed"].toString("1").toULongLong();
  choice.options.standardise = sequence["standardise"].toBool();
  choice.options.set = settingsOf(sequence["set"]);
  try {
    task_parameters(choice.task, choice.options.set);
  } catch (const Error&) {
    choice.options.set.clear();
  }
  return choice;
}

}  // namespace

QJsonObject toJson(const Setup& setup, const PutLearned& put) {
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
      sequence = {{"file", wholePath(choice.file)}, {"columns", columns}, {"target", target}, {"standardise", choice.load.standardise}};
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

std::optional<KeptSetup> keptSetup(const QJsonObject& json, const Library& library, const GetLearned& get) {
  KeptSetup kept;
  const std::optional<Setup> setup = setupOf(json, library, get, kept.unlearned);
  if (!setup) return {};
  kept.setup = *setup;
  if (const QJsonObject sequence = json["sequence"].toObject(); !sequence.isEmpty()) kept.sequence = sequenceOf(sequence);
  return kept;
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
