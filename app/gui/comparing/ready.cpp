// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/comparing/ready.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QObject>
#include <algorithm>
#include <initializer_list>

#include "gui/session/pins.h"
#include "models/registry.h"

namespace reclab {
namespace {

constexpr std::size_t mostRuns = Pins::most + 1;  ///< with the run that is looked at

/// Weights that were read or learned are for the settings that they came with.
void drawAgain(Setup& setup) {
  setup.learned.erase(setup.preset);
  setup.weights.erase(setup.preset);
  setup.states.erase(setup.preset);
}

}  // namespace

std::vector<ReadyComparison> readyComparisons(const QString& file, const Library& library, const Setup& now) {
  QFile opened(file);
  if (!opened.open(QIODevice::ReadOnly)) throw Error(QObject::tr("%1: cannot be read: %2.").arg(file, opened.errorString()).toStdString());
  std::vector<ReadyComparison> all;
  for (const QJsonValue& one : QJsonDocument::fromJson(opened.readAll()).array()) {
    ReadyComparison made{one["title"].toString(), one["why"].toString(), {}};
    for (const QJsonValue& run : one["runs"].toArray()) {
      Setup setup = now;
      setup.preset = run["preset"].toString().toStdString();
      Hyper hyper = hyper_of(builtin_registry(), library.presets.find(setup.preset));
      if (setup.preset != now.preset) setup.form = "auto";  // another model may not have this one's
      const QJsonObject set = run["set"].toObject();
      // The same terms for all: settings, loaded files and trainings of one of them are dropped.
      setup.set.erase(setup.preset);
      drawAgain(setup);
      for (auto value = set.begin(); value != set.end(); ++value) {
        const std::string key = value.key().toStdString(), standard = hyper.has(key) ? hyper.text(key) : std::string();
        hyper.set_text(key, value->toString().toStdString(), setup.preset);
        if (hyper.text(key) != standard) setup.setValue(key, hyper.text(key));
      }
      made.runs.push_back(std::move(setup));
    }
    all.push_back(std::move(made));
  }
  return all;
}

std::vector<ReadyComparison> comparisonsOf(const ModelDescription& model, const Setup& now) {
  std::vector<ReadyComparison> all;
  ReadyComparison seeds{
      QObject::tr("Three seeds"), QObject::tr("What of the picture is the model's, and what of the weights that were drawn"), {}};
  for (const std::uint64_t more : {0U, 1U, 2U}) {
    Setup setup = now;
    setup.seed += more;
    drawAgain(setup);
    seeds.runs.push_back(std::move(setup));
  }
  all.push_back(std::move(seeds));
  for (const HyperSpec& row : model.hyper.table()) {
    if (row.choices.size() < 2) continue;
    const QString words = QString::fromStdString(row.key).replace('_', ' ');
    ReadyComparison each{QObject::tr("Every %1").arg(words), QString::fromStdString(row.text), {}};
    std::vector<std::string> values{model.hyper.text(row.key)};  // the present value comes first: its run stays the current one
    for (const std::string& value : row.choices)
      if (value != values.front() && values.size() < mostRuns) values.push_back(value);
    for (const std::string& value : values) {
      Setup setup = now;
      if (value != values.front()) {
        drawAgain(setup);
        setup.setValue(row.key, value);
      }
      each.runs.push_back(std::move(setup));
    }
    all.push_back(std::move(each));
  }
  return all;
}

}  // namespace reclab
