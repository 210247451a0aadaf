// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/palette/settings.h"

#include <algorithm>
#include <iterator>

#include "experiment/command/run_fields.h"
#include "gui/frame/window_frame.h"
#include "gui/session/sentences.h"
#include "gui/views/inspector_view.h"
#include "models/registry.h"

namespace reclab {
namespace {

void addTo(std::vector<PaletteEntry>& all, const PaletteSetting& setting) {
  std::ranges::move(entriesOf(setting), std::back_inserter(all));
}

QString textOf(const HyperValue& value) { return QString::fromStdString(as_text(value)); }

}  // namespace

std::vector<PaletteEntry> settingEntries(WindowFrame* frame) {
  std::vector<PaletteEntry> all;
  SessionController* session = frame->session();
  const ModelPtr& model = session->model();
  const Setup& setup = session->setup();
  if (!model || model->preset.id != setup.preset) return all;
  const QString title = QString::fromStdString(model->preset.title), weights = weightsInWords(setup);
  for (const HyperSpec& row : model->hyper.table()) {
    PaletteSetting one{inWords(row.key), title, row, QString::fromStdString(model->hyper.text(row.key))};
    one.whyNot = whyIdle(row, model, weights);
    one.check = [session, key = row.key](const QString& value) {
      Setup after = session->setup();
      after.setValue(key, value.toStdString());
      hyper_of(builtin_registry(), session->library()->presets.find(after.preset), after.settings());
    };
    one.set = [session, key = QString::fromStdString(row.key)](const QString& value) {
      session->request(SettingChoice{key.toStdString(), value.toStdString()});
    };
    addTo(all, one);
  }
  for (const auto& field : run_settings_fields()) {
    if (field.row.key != "seed" && field.row.key != "loss") continue;  // the others are boxes in the tool bar
    const QString name = inWords(field.row.key);
    PaletteSetting one{name, title, field.row, textOf(field.get(setup))};
    if (field.row.key == "seed") one.whyNot = whyNotDrawn(weights);
    one.check = [&field](const QString& value) { value_of(field, value.toStdString()); };
    one.set = [&field, frame, text = name.toLower()](const QString& value) {
      Setup after = frame->session()->setup();
      field.set(after, value_of(field, value.toStdString()));
      frame->change(after, text);
    };
    addTo(all, one);
  }
  return all;
}

std::vector<PaletteEntry> sequenceEntries(WindowFrame* frame) {
  std::vector<PaletteEntry> all;
  SessionController* session = frame->session();
  if (!session->library()) return all;
  const LoadedSequencePtr& sequence = session->setup().sequence;
  const SequenceChoice now = sequence ? sequence->choice : SequenceChoice();
  for (const TaskInfo& task : session->library()->tasks)
    all.push_back({.text = QString::fromStdString(task.title),
                   .detail = QObject::tr("task"),
                   .synonyms = QString::fromStdString(task.name + ' ' + task.text + ' ' + task.source),
                   .does = [session, now, name = task.name, length = task.default_length] {
                     SequenceChoice choice = now.is_file() ? SequenceChoice{} : now;
                     if (now.is_file()) choice.make.length = length;
                     if (choice.task != name) choice.make.set.clear();  // each has its own
                     choice.task = name;
                     session->loadSequence(choice);
                   }});
  if (!sequence) return all;
  const QString of = QString::fromStdString(sequence->sequence.name);
  for (const auto& field : sequence_fields()) {
    const std::string& key = field.row.key;
    if (!is_of(field, now) || key == "file" || key == "task" || key == "set") continue;
    PaletteSetting one{key == "seed" ? QObject::tr("Seed of the sequence") : inWords(key), of, field.row, textOf(field.get(now))};
    one.synonyms = QObject::tr("sequence");
    one.check = [&field](const QString& value) { value_of(field, value.toStdString()); };
    one.set = [&field, session, now](const QString& value) {
      SequenceChoice choice = now;
      field.set(choice, value_of(field, value.toStdString()));
      session->loadSequence(choice);
    };
    addTo(all, one);
  }
  if (now.is_file()) return all;
  const Hyper values = task_parameters(now.task, now.make.set);
  for (const HyperSpec& row : values.table()) {
    PaletteSetting one{inWords(row.key), of, row, QString::fromStdString(values.text(row.key))};
    one.synonyms = QObject::tr("sequence task");
    const auto with = [now, key = row.key](const QString& value) {
      SequenceChoice choice = now;
      choice.make.set.emplace_back(key, value.toStdString());
      choice.make.set = settings_of(task_parameters(choice.task, choice.make.set));
      return choice;
    };
    one.check = [with](const QString& value) { with(value); };
    one.set = [with, session](const QString& value) { session->loadSequence(with(value)); };
    addTo(all, one);
  }
  return all;
}

}  // namespace reclab
