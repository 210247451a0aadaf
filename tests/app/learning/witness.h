// SPDX-License-Identifier: GPL-3.0-or-later
// A check of the contents of a window against runs, trainings and panels that are made anew from its own settings. Nothing of the window's
// own traces, weights and curves goes into them: trainings are made again from their settings and seed, runs of the weights that these come
// to, and panels that never showed anything else are given those runs.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QRegularExpression>
#include <QSet>
#include <QSlider>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiment/training/training.h"
#include "gui/docks/panel_area.h"
#include "gui/learning/training_bar.h"
#include "gui/look/look.h"
#include "gui/session/pins.h"
#include "gui/views/inspector_view.h"
#include "gui/views/pin_chip.h"
#include "gui/views/status_line.h"
#include "gui/window/main_window.h"
#include "models/registry.h"
#include "plot/plot.h"

namespace reclab::test {

/// The texts in a panel, without those that it paints by itself: labels, sentences, legends, names of axes; and which of its sliders move.
inline QStringList textsOf(const QWidget* panel) {
  QStringList texts;
  for (const QLabel* label : panel->findChildren<QLabel*>())
    if (label->isVisibleTo(panel) && !label->text().isEmpty()) texts << label->text();
  for (const QSlider* slider : panel->findChildren<QSlider*>())
    if (slider->isVisibleTo(panel))
      texts
          << QStringLiteral("%1 at %2%3").arg(slider->objectName()).arg(slider->value()).arg(slider->isEnabledTo(panel) ? "" : ", greyed");
  for (QCustomPlot* plot : panel->findChildren<QCustomPlot*>()) {
    if (!plot->isVisibleTo(panel)) continue;
    for (QCPLayoutElement* element : plot->plotLayout()->elements(true)) {
      if (element == nullptr) continue;
      if (const auto* paragraph = qobject_cast<Paragraph*>(element)) texts << paragraph->text();
      if (const auto* legend = qobject_cast<Legend*>(element)) texts << legend->namesAsHtml(false);
      if (const auto* title = qobject_cast<QCPTextElement*>(element)) texts << title->text();
      if (const auto* rect = qobject_cast<QCPAxisRect*>(element))
        for (const QCPAxis* axis : rect->axes())
          if (axis->axisType() == QCPAxis::atLeft) texts << axis->label();  // that of time has its room or none by the texts around it
    }
  }
  return texts;
}

class Witness {
 public:
  /// Notes the choice of the next training before it begins, as a person made it.
  void chose(const TrainingChoice& choice) { choice_ = choice; }
  /// Notes that these weights were written to a file: a window that reads it shows the same.
  void wrote(const QString& file, const MainWindow& window) {
    const TracePtr& trace = window.session()->trace();
    auto& kept = files_[file.toStdString()];
    kept.clear();
    for (const auto& array : trace->arrays())
      if (array->key.starts_with("param/") && array->real) kept[array->key] = *array->real;
  }
  void forgetAll() { trainings_.clear(), runs_.clear(), files_.clear(); }
  /// The runs that were made anew when it looked last, the one that is looked at first.
  const std::vector<Panel::Run>& made() const { return seen_; }
  int compared() const { return compared_; }  ///< values and texts until now

  /// Whether everything that it computes is done and shown, but for timings.
  static bool rests(MainWindow& window) {
    SessionController& session = *window.session();
    const TracePtr& trace = session.trace();
    if (session.running() || session.training() || window.pins()->running() || !trace || trace->info.outcome != Outcome::finished)
      return false;
    if (!session.nameOfFormer(trace).isEmpty()) return false;
    const auto runs = window.pins()->runs();
    const auto cannot = std::ranges::count_if(window.pins()->pins(), [](const Pin& pin) { return !pin.problem.isEmpty(); });
    if (runs.size() + static_cast<std::size_t>(cannot) < window.pins()->pins().size() || !std::ranges::all_of(runs, &Panel::Run::whole))
      return false;
    return std::ranges::all_of(window.area()->docks(),
                               [](const PanelDock* dock) { return !dock->inSight() || dock->formerName().isEmpty(); });
  }

  /// The faults found, a line each; none where everything that is shown is true.
  QStringList look(MainWindow& window) {
    wrong_.clear();
    window_ = &window;
    SessionController& session = *window.session();
    if (session.learning()) follow(*session.learning());
    const Setup& shown = session.shownSetup();
    const LearnedPtr learned = shown.learnedWeights();
    const TracePtr truth = runOf(shown, learned);
    if (!truth) return wrong_;
    alike("the run that is looked at", *session.trace(), *truth);
    const Learning* learning = session.learning().get();
    lookAtWords(*truth, learning);
    std::vector<Panel::Run> pinned = lookAtPins();
    seen_ = pinned;
    seen_.insert(seen_.begin(), Panel::Run{truth, window.pins()->columns().front().colour, {}, {}});
    auto curves = learning ? truthOf(*learning) : nullptr;
    for (PanelDock* dock : window.area()->docks())
      if (dock->inSight()) lookAt(*dock, truth, pinned, curves);
    return wrong_;
  }

 private:
  struct Made {
    Setup setup;
    TrainingChoice choice;
    QString parent;
    std::int64_t first = 0;
    std::unique_ptr<Training> training;
    std::map<std::int64_t, LearnedPtr> weights;  ///< those that were asked for
  };

  void say(const QString& what) { wrong_ << what; }
  void same(const QString& where, const QString& shown, const QString& is) {
    ++compared_;
    if (shown == is) return;
    // The excerpt begins a little before the first difference.
    const auto parts = std::ranges::mismatch(shown, is).in1 - shown.begin();
    const qsizetype from = std::max<qsizetype>(0, parts - 60);
    say(QStringLiteral("%1: shown is \"%2\", it is \"%3\"").arg(where, shown.mid(from, 300), is.mid(from, 300)));
  }

  static std::unique_ptr<Training> begun(const Setup& setup, const TrainingChoice& choice) {
    auto training = std::make_unique<Training>(builtin_registry(), trainingRequestFor(setup, library().find(setup.preset), choice));
    training->begin();
    return training;
  }
  static const PresetLibrary& library() {
    static const PresetLibrary all(builtin_registry(), preset_folders());
    return all;
  }

  /// Notes new trainings, with the choice that they were begun by.
  void follow(const Learning& learning) {
    for (const LearningCurvePtr& curve : learning.trainings) {
      const QString id = window_->session()->idOfTraining(curve->training);
      if (curve->waits || (curve->kept.empty() && window_->session()->learning()->shown != curve->training) || trainings_.contains(id))
        continue;
      const auto setup = window_->session()->setupAt(curve->training, curve->first);
      if (!setup) {
        say(QStringLiteral("training %1 has no weights of its first step").arg(id));
        continue;
      }
      Made one{*setup, choice_, window_->session()->idOfTraining(curve->parent), curve->first, nullptr, {}};
      one.setup.learned.clear();
      trainings_.emplace(id, std::move(one));
    }
  }

  /// The weights of a training made anew.
  LearnedPtr weightsOf(const QString& id, std::int64_t step) {
    const auto found = trainings_.find(id);
    if (found == trainings_.end()) return say(QStringLiteral("weights of a training that nobody began: %1").arg(id)), nullptr;
    Made& one = found->second;
    if (const auto known = one.weights.find(step); known != one.weights.end()) return known->second;
    if (step < one.first) return say(QStringLiteral("step %1 of a training that began at %2").arg(step).arg(one.first)), nullptr;
    advance(one, step);
    const auto known = one.weights.find(step);
    return known == one.weights.end() ? nullptr : known->second;
  }
  void advance(Made& one, std::int64_t step) {
    if (!one.training || one.first + one.training->trainer().steps() > step) {
      Setup from = one.setup;
      if (one.first > 0) {
        const LearnedPtr parent = weightsOf(one.parent, one.first);
        if (!parent) return;
        from.learned[from.preset] = parent;
      }
      one.training = begun(from, one.choice);
    }
    while (one.first + one.training->trainer().steps() < step) {
      if (one.training->done()) one.training->extend(one.choice.steps);
      one.training->advance();
    }
    auto weights = std::make_shared<LearnedWeights>(*one.training->learned(1));
    weights->step = step;
    one.weights[step] = std::move(weights);
  }

  /// The engine's own run of a setup; null where it has none.
  TracePtr runOf(const Setup& setup, const LearnedPtr& learned) {
    Setup its = setup;
    its.learned.clear();
    QString key = QString::fromStdString(setup.preset);
    for (const auto& [name, value] : setup.settings())
      key += QStringLiteral(" %1=%2").arg(QString::fromStdString(name), QString::fromStdString(value));
    const SequenceChoice& from = setup.sequence->choice;
    key += QStringLiteral(" %1 %2 %3 %4")
               .arg(QString::fromStdString(from.is_file() ? from.file : from.task))
               .arg(setup.sequence->sequence.length)
               .arg(setup.seed)
               .arg(setup.sequence->sequence.sha256.c_str());
    for (const std::string& target : from.load.target) key += " target " + QString::fromStdString(target);
    if (learned) {
      const QString id = window_->session()->idOfTraining(learned->training);
      key += QStringLiteral(" %1 %2").arg(id).arg(learned->step);
      const LearnedPtr weights = weightsOf(id, learned->step);
      if (!weights) return nullptr;
      its.learned[its.preset] = weights;
    } else if (const auto file = setup.weights.find(setup.preset); file != setup.weights.end()) {
      key += " " + QString::fromStdString(file->second.string());
    }
    if (const auto known = runs_.find(key); known != runs_.end()) return known->second;
    if (runs_.size() > 60) runs_.clear();
    QStringList all;
    for (const PanelInfo& panel : panels()) all << panel.id;
    try {
      return runs_[key] = run(builtin_registry(), requestFor(its, library().find(its.preset), recordingFor(all, false)), {}, {}).trace;
    } catch (const Error& error) {
      say("the run that is shown cannot be made: " + QString(error.what()));
      return nullptr;
    }
  }

  /// Compares each array that is shown with the expected one, to the bit.
  void alike(const QString& name, const Trace& shown, const Trace& is) {
    int arrays = 0;
    for (const auto& array : shown.arrays()) {
      if (array->key.starts_with("timing/") || array->key.starts_with("schedule/")) continue;
      const TraceArray* its = is.find(array->key);
      if (its == nullptr) {
        say(QStringLiteral("%1: %2 is not there when it is made anew").arg(name, QString::fromStdString(array->key)));
        continue;
      }
      ++arrays;
      ++compared_;
      const auto bits = [](const auto& a, const auto& b) {
        if (!a || !b) return !a && !b;
        return a->size() == b->size() && std::memcmp(a->data(), b->data(), a->size() * sizeof((*a)[0])) == 0;
      };
      if (array->shape != its->shape || !bits(array->real, its->real) || !bits(array->complex, its->complex))
        say(QStringLiteral("%1: other values of %2").arg(name, QString::fromStdString(array->key)));
    }
    if (arrays < 3) say(QStringLiteral("%1 has hardly any array").arg(name));
    if (!(shown.info.loss_value == is.info.loss_value) && !(std::isnan(shown.info.loss_value) && std::isnan(is.info.loss_value)))
      say(QStringLiteral("%1: the loss is shown as %2, it is %3").arg(name).arg(shown.info.loss_value).arg(is.info.loss_value));
    if (const auto file = files_.find(shown.info.weights); file != files_.end())
      for (const auto& [key, values] : file->second)
        if (const TraceArray* its = shown.find(key); its == nullptr || !its->real || *its->real != values)
          say(QStringLiteral("%1: %2 is not what was written to the file").arg(name, QString::fromStdString(key)));
  }

  /// The status line, the training bar, chips.
  void lookAtWords(const Trace& truth, const Learning* learning) {
    SessionController& session = *window_->session();
    const RunInfo& info = session.trace()->info;
    const QStringList facts = window_->statusLine()->facts().split(" | ");
    const QString weights = info.learned           ? QStringLiteral("%1 steps of training").arg(info.learned->steps)
                            : info.weights.empty() ? QStringLiteral("seed %1").arg(session.shownSetup().seed)
                                                   : QString();
    if (!weights.isEmpty() && !facts.contains(weights)) say("the status line says not \"" + weights + "\": " + facts.join(" | "));
    const QString loss = QStringLiteral("L %1 on this sequence").arg(number(truth.info.loss_value, 4));
    if (!facts.contains(loss)) say("the status line says not \"" + loss + "\": " + facts.join(" | "));
    compared_ += 2;
    // The settings beside the picture are those of the run.
    const ModelPtr& model = session.model();
    if (!model || model->preset.id != info.preset) return say("the settings are of another model");
    for (const auto& [key, value] : truth.info.hyper)
      same("the setting " + QString::fromStdString(key), QString::fromStdString(model->hyper.text(key)), QString::fromStdString(value));
    const LearnedPtr learned = session.shownSetup().learnedWeights();
    if (learned) {
      if (!info.learned || info.learned->steps != learned->step) return say("the run that is looked at is not of the weights that are set");
    }
    if (!learning) return;
    TrainingBar* bar = window_->trainingBar();
    if (bar->isVisible() != !learning->trainings.empty()) say("the training bar is seen where nothing has learned, or the other way round");
    if (const LearningCurve* current = learning->find(learning->current); current != nullptr && current->waits) {
      same("the training bar, of a fork that waits", bar->where().section(QStringLiteral("from step "), -1), grouped(current->first));
    } else if (learned && learning->shown == learned->training && learning->find(learned->training)) {
      const LearningCurve& curve = *learning->find(learned->training);
      const QString where = QStringLiteral("step %1 of %2").arg(grouped(learned->step), grouped(curve.wanted));
      ++compared_;
      if (!bar->where().contains(where)) say("the training bar says not \"" + where + "\": " + bar->where());
      if (bar->strip()->step() != learned->step)
        say(QStringLiteral("the time of training stands at %1, and what is looked at is of step %2")
                .arg(bar->strip()->step())
                .arg(learned->step));
    }
  }

  /// The pinned runs, made anew.
  std::vector<Panel::Run> lookAtPins() {
    std::vector<Panel::Run> all;
    Pins& pins = *window_->pins();
    const auto columns = pins.columns();
    const auto chips = window_->findChildren<PinChip*>();
    if (static_cast<std::size_t>(chips.size()) != pins.pins().size()) say("chips and pinned runs are not as many");
    QSet<QRgb> colours{columns.front().colour.rgb()};
    for (std::size_t i = 0; i < pins.pins().size(); ++i) {
      const Pin& pin = pins.pins()[i];
      colours << columns[i + 1].colour.rgb();
      if (const QString said = i < static_cast<std::size_t>(chips.size())
                                   ? chips[static_cast<qsizetype>(i)]->text().section(QStringLiteral(": "), 0, 0)
                                   : QString();
          !pin.name.endsWith(said))
        say("a chip is called " + chips[static_cast<qsizetype>(i)]->text() + ", its run " + pin.name);
      if (!pin.problem.isEmpty()) continue;
      Setup setup = pin.setup;
      setup.sequence = window_->session()->shownSetup().sequence;
      LearnedPtr weights = pin.weights ? pin.weights : setup.learnedWeights();
      // A run that learns beside has the kept weights nearest to the step at which the time of training stands.
      if (const std::uint64_t training = window_->session()->trainingOf(pin.id); training != 0) {
        const LearningCurve* curve = window_->session()->learning()->find(training);
        const std::int64_t line = window_->session()->trainingStep();
        if (curve && !curve->kept.empty()) {
          if (!weights || weights->training != training) {
            say(pin.name + " has learned, and is shown as it was drawn");
          } else {
            std::int64_t nearest = std::abs(curve->kept.front() - line);
            for (const std::int64_t step : curve->kept) nearest = std::min(nearest, std::abs(step - line));
            if (std::abs(weights->step - line) > nearest)
              say(QStringLiteral("%1 is of step %2, the time of training stands at %3").arg(pin.name).arg(weights->step).arg(line));
          }
        }
      }
      if (weights && (!pin.trace->info.learned || pin.trace->info.learned->steps != weights->step))
        say(pin.name + " is not of the weights that it is said to be of");
      const TracePtr truth = runOf(setup, weights);
      if (!truth) continue;
      alike(pin.name, *pin.trace, *truth);
      const bool untrained = window_->session()->trace()->info.learned && !truth->info.learned && truth->info.weights.empty();
      if (pin.name.endsWith(", untrained") && !untrained) say(pin.name + " is said to be untrained");
      all.push_back({std::make_shared<const Trace>(*truth), columns[i + 1].colour, pin.name, {}});  // panels tell runs by their traces
    }
    ++compared_;
    if (colours.size() != static_cast<qsizetype>(columns.size())) say("two runs have one colour");
    return all;
  }

  /// Curves of learning, made anew.
  std::shared_ptr<const Learning> truthOf(const Learning& learning) {
    auto truth = std::make_shared<Learning>(learning);
    truth->runs = window_->pins()->named(learning);
    for (LearningCurvePtr& curve : truth->trainings) {
      if (curve->waits || curve->done == curve->first) continue;
      const QString id = window_->session()->idOfTraining(curve->training);
      if (!weightsOf(id, curve->done)) continue;
      Made& one = trainings_.at(id);
      if (!one.training || one.first + one.training->trainer().steps() != curve->done) {
        one.weights.erase(curve->done);
        if (!weightsOf(id, curve->done)) continue;
      }
      auto again = std::make_shared<LearningCurve>(*curve);
      again->loss.clear();
      again->norm.clear();
      for (const TrainingStep& step : one.training->history()) again->loss.push_back(step.loss), again->norm.push_back(step.norm);
      // The place of an evaluation depends on when more steps were asked for; its values do not.
      for (const Evaluation& judgement : one.training->evaluations())
        for (std::size_t i = 0; i < again->judged.size(); ++i)
          if (again->judged[i] == one.first + judgement.step)
            again->judged_loss[i] = judgement.loss, again->judged_metric[i] = judgement.metric;
      again->baseline_loss = one.training->trainer().baseline().loss;
      compared_ += 3;
      if (again->loss != curve->loss || again->norm != curve->norm || again->judged_loss != curve->judged_loss ||
          again->judged_metric != curve->judged_metric || again->baseline_loss != curve->baseline_loss)
        say(QStringLiteral("the curves of %1 are not those of its training").arg(QString::fromStdString(curve->name)));
      curve = again;
    }
    return truth;
  }

  /// Makes the choices of the shown panel's boxes in the fresh one's.
  static void chooseAs(const Panel& shown, const Panel& fresh) {
    for (const QComboBox* theirs : shown.findChildren<QComboBox*>()) {
      auto* ours = theirs->objectName().isEmpty() ? nullptr : fresh.findChild<QComboBox*>(theirs->objectName());
      if (ours == nullptr || theirs->isHidden() || theirs->count() != ours->count() || ours->currentIndex() == theirs->currentIndex())
        continue;
      ours->setCurrentIndex(theirs->currentIndex());
      emit ours->activated(theirs->currentIndex());
    }
  }

  void lookAt(PanelDock& dock, const TracePtr& truth, const std::vector<Panel::Run>& pinned,
              const std::shared_ptr<const Learning>& curves) {
    const QString id = dock.panel()->id();
    if (id == "timing" || id == "steps" || id == "composer" || id == "credit")
      return;  // they show no run: times of this machine, pieces of work, a model that is put together, rules that are asked by a study
    const PanelInfo& info = *std::ranges::find(panels(), id, &PanelInfo::id);
    const std::unique_ptr<Panel> fresh(info.make(nullptr));
    fresh->setAttribute(Qt::WA_DontShowOnScreen);  // it has its room, and lays itself out
    fresh->resize(dock.panel()->size());
    fresh->show();
    for (const std::string& place : library().find(truth->info.preset).look_at) {
      const QStringList parts = QString::fromStdString(place).split(':');
      if (parts.front() == id) fresh->lookAt(QString::fromStdString(truth->info.preset), parts.mid(1).join(':'), false);
    }
    fresh->setChoices(dock.panel()->choices());
    if (const ModelPtr& model = window_->session()->model()) {
      const Setup& now = window_->session()->shownSetup();
      const auto file = now.weights.find(now.preset);
      fresh->setSettings(settings_beside(model, now.learnedWeights()
                                                    ? QStringLiteral("%1 steps of training").arg(now.learnedWeights()->step)
                                                : file == now.weights.end() ? QString()
                                                                            : QString::fromStdString(file->second.string())));
    }
    if (curves) fresh->setResult("train", curves, {});
    fresh->setPinned(pinned);
    fresh->setTrace(truth);
    chooseAs(*dock.panel(), *fresh);
    fresh->setTimeRange(window_->time()->first(), window_->time()->last());
    fresh->setTime(window_->time()->step());
    fresh->finish();
    dock.panel()->finish();
    same(id + ", why it is empty", dock.panel()->emptyReason(), fresh->emptyReason());
    same(id + ", its number", dock.panel()->headline(), fresh->headline());
    QString shown = dock.panel()->dataAsCsv(), is = fresh->dataAsCsv();
    if (id == "trajectories")  // the directions of its axes are those of the picture before
      for (QString* text : {&shown, &is}) text->replace(",-", ",");
    const QStringList data = shown.split('\n'), expected = is.split('\n');
    ++compared_;
    for (qsizetype i = 0; i < std::max(data.size(), expected.size()); ++i)
      if (data.value(i) != expected.value(i)) {
        same(QStringLiteral("%1, line %2 of its data").arg(id).arg(i), data.value(i), expected.value(i));
        break;
      }
    // The trail of eigenvalues at steps of training that were looked at before: no other panel has seen those.
    static const QRegularExpression trail(QStringLiteral(" Small dots: where they were at [^.]*\\."));
    const QStringList texts = textsOf(dock.panel()).replaceInStrings(trail, {}), should = textsOf(fresh.get()).replaceInStrings(trail, {});
    for (qsizetype i = 0; i < std::max(texts.size(), should.size()); ++i) same(id + ", its words", texts.value(i), should.value(i));
  }

  MainWindow* window_ = nullptr;
  TrainingChoice choice_;
  std::map<QString, Made> trainings_;
  std::map<QString, TracePtr> runs_;
  std::map<std::string, std::map<std::string, std::vector<double>>> files_;
  std::vector<Panel::Run> seen_;
  QStringList wrong_;
  int compared_ = 0;
};

}  // namespace reclab::test
