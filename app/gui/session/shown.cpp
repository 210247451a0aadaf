// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/shown.h"

#include <QCoreApplication>
#include <QLocale>
#include <QStringList>
#include <algorithm>

#include "plot/parts/learned_text.h"
#include "plot/theme.h"
#include "trace/input_scale.h"
#include "window_text.h"

namespace reclab {
namespace {

/// A later run of the same setup, with the arrays that only the earlier one has so far. Both have the same numbers; an array of fewer rows,
/// as that of the cursor's step alone, does not replace one of more.
TracePtr continued(const TracePtr& before, const TracePtr& now) {
  if (before->steps != now->steps) return now;
  auto both = std::make_shared<Trace>(*now);
  for (const auto& array : before->arrays()) {
    const TraceArray* newer = now->find(array->key);
    const bool longer = newer && !array->shape.empty() && !newer->shape.empty() && array->shape[0] > newer->shape[0];
    if (!newer || longer) both->put(*array);
  }
  return both;
}

}  // namespace

bool Shown::take(const TracePtr& run, const std::shared_ptr<const Setup>& setup, std::shared_ptr<const FinalState> state) {
  state_ = std::move(state);
  if (std::exchange(given_, run).lock() == run) return false;
  const bool finished = run->info.outcome == Outcome::finished;
  const bool same = run_ && setup_ && finished && run_->info.outcome == Outcome::finished && setup->sameRun(*setup_);
  run_ = same ? continued(run_, run) : run;
  setup_ = setup;
  return true;
}

TracePtr Shown::join(const TracePtr& timing, const std::vector<TracePtr>& others) {
  TracePtr all = run_;
  if (timing) all = withTiming(all, timing);
  for (const TracePtr& other : others)
    if (other) all = merged(all, other);
  TracePtr before = std::exchange(trace_, all);
  std::erase_if(setups_, [](const auto& one) { return one.first.expired(); });
  setups_.emplace_back(trace_, setup_);
  return before;
}

std::shared_ptr<const Setup> Shown::setupOf(const TracePtr& trace) const {
  for (const auto& [shown, setup] : setups_)
    if (trace && shown.lock() == trace) return setup;
  return nullptr;
}

QString Shown::summary() const {
  const RunInfo& run = trace_->info;
  QStringList words{QObject::tr("%1 on %2, %3 steps")
                        .arg(QString::fromStdString(run.title.empty() ? run.preset : run.title), QString::fromStdString(input_words(run)),
                             QLocale(QLocale::English).toString(static_cast<qlonglong>(run.length)))};
  // A note about some arrays alone is shown in their panel.
  for (const Sentence& note : run.notes)
    if (std::none_of(run.note_kinds.begin(), run.note_kinds.end(), [&](const auto& about) { return about.second == note; }))
      words << windowText(note);
  return words.join(". ");
}

QString weightsInWords(const Setup& setup) {
  if (const LearnedPtr learned = setup.learnedWeights()) return stepsLearned(learned->from, learned->step);
  return QString::fromStdString(fileOf(setup.weights, setup.preset).string());
}

QString nameOfFormer(const RunInfo& run, const Setup& its, const Setup& now) {
  if (its.sameRun(now)) return {};
  QStringList words{QString::fromStdString(run.title.empty() ? run.preset : run.title)};
  if (its.preset == now.preset) {
    const auto valueIn = [](const Settings& values, const std::string& key) {
      const auto found = std::find_if(values.begin(), values.end(), [&](const auto& one) { return one.first == key; });
      return found == values.end() ? std::string() : found->second;
    };
    const Settings mine = its.settings(), others = now.settings();
    for (const auto& [key, value] : run.hyper)
      if (valueIn(mine, key) != valueIn(others, key)) words << QString::fromStdString(key + " = " + value).replace('_', ' ');
    if (const LearnedPtr mineLearned = its.learnedWeights(); mineLearned != now.learnedWeights())
      words << (mineLearned ? QCoreApplication::translate("Setup", "after %1").arg(stepsLearned(mineLearned->from, mineLearned->step))
                            : QCoreApplication::translate("Setup", "not trained"));
    else if (const auto file = fileOf(its.weights, its.preset); file != fileOf(now.weights, now.preset))
      words << (file.empty() ? QCoreApplication::translate("Setup", "drawn weights")
                             : QCoreApplication::translate("Setup", "weights %1").arg(QString::fromStdString(file.filename().string())));
    if (const auto file = fileOf(its.states, its.preset); file != fileOf(now.states, now.preset))
      words << (file.empty() ? QCoreApplication::translate("Setup", "own initial state")
                             : QCoreApplication::translate("Setup", "begun from %1").arg(QString::fromStdString(file.filename().string())));
  }
  if (its.seed != now.seed) words << QCoreApplication::translate("Setup", "seed %1").arg(run.seed);
  if (its.sequence != now.sequence) words << QString::fromStdString(run.input_name);
  if (its.form != now.form) words << QCoreApplication::translate("Setup", "form %1").arg(QString::fromStdString(run.form));
  if (its.device != now.device) words << QString::fromStdString(run.device);
  if (its.dtype != now.dtype) words << QString::fromStdString(run.dtype);
  if (its.loss != now.loss)
    words << QCoreApplication::translate("Setup", "loss %1").arg(QString::fromStdString(run.loss).section(':', 0, 0));
  return words.join(QStringLiteral(", "));
}

}  // namespace reclab
