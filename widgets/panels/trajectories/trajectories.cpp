// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/trajectories/trajectories.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "box_layout.h"
#include "panels/panel_info.h"
#include "panels/trajectories/past_view.h"
#include "plain_text.h"
#include "plot/parts/layout.h"
#include "plot/parts/step_text.h"
#include "plot/plot.h"
#include "plot/plot_panel.h"
#include "plot/value_axis.h"
#include "scene/trajectory_view.h"
#include "trace/stream_steps.h"

namespace reclab {
namespace {

constexpr double inlineCost = 1e7;  // multiplications that take less than a frame

}  // namespace

TrajectoriesPanel::TrajectoriesPanel(QWidget* parent, bool openGl) : Described(parent) {
  pool_.setMaxThreadCount(1);
  past_ = new PastView;
  makeControls();
  scene_ = new TrajectoryView(nullptr, openGl);
  flat_ = plainLabel(tr("There is no OpenGL 3.2 on this display: the curve is drawn flat, without light."));
  flat_->setWordWrap(true);
  flat_->setContentsMargins(8, 2, 8, 4);
  auto* scenePage = new QWidget;
  auto* sceneColumn = boxLayout<QVBoxLayout>(scenePage, 0);
  sceneColumn->addWidget(scene_, 1);
  sceneColumn->addWidget(flat_);
  flat_->setVisible(!openGl);
  connect(scene_, &TrajectoryView::openGlKnown, this, [this] { flat_->setVisible(!scene_->hasOpenGl()); });
  makeMap();
  makeLines();

  auto* empty = new QWidget;
  empty->setBackgroundRole(QPalette::Base);
  empty->setAutoFillBackground(true);
  sentence_ = plainLabel();
  sentence_->setObjectName("emptyReason");
  sentence_->setWordWrap(true);
  sentence_->setAlignment(Qt::AlignCenter);
  auto* words = boxLayout<QVBoxLayout>(empty, -1, {24, 16, 24, 16});
  words->addWidget(sentence_);

  pages_ = new QStackedWidget;
  pages_->addWidget(scenePage);
  pages_->addWidget(map_);
  pages_->addWidget(lines_);
  pages_->addWidget(past_);
  pages_->addWidget(empty);
  layout()->addWidget(pages_);
  unpinned_ = plainLabel(tr("Pinned runs are in “3-D” and “lines”; this view has room for one run."));
  unpinned_->setWordWrap(true);
  unpinned_->setForegroundRole(QPalette::PlaceholderText);
  unpinned_->setContentsMargins(8, 0, 8, 2);
  layout()->addWidget(unpinned_);
  static_cast<QVBoxLayout*>(layout())->setStretchFactor(pages_, 1);

  connect(scene_, &TrajectoryView::picked, this, [this](qint64 row) {
    if (row < columns_.rows()) emit timePicked(columns_.steps()[std::size_t(row)]);
  });
  for (Plot* plot : {map_, lines_, static_cast<Plot*>(past_)}) {
    connect(plot, &Plot::timePicked, this, &Panel::timePicked);
    connect(plot, &Plot::timeRangePicked, this, &Panel::timeRangePicked);
  }
  connect(past_, &PastView::headlineChanged, this, [this] {
    if (view_ == View::past) emit headlineChanged();
  });
  connect(map_, &Plot::themeChanged, this, [this] {
    mapFresh_ = false;
    turnPage();
  });
  connect(lines_, &Plot::themeChanged, this, [this] {
    linesFresh_ = false;
    turnPage();
  });
  turnPage();
}

TrajectoriesPanel::~TrajectoriesPanel() {
  stop_.request_stop();
  pool_.waitForDone();
}

void TrajectoriesPanel::makeMap() {
  map_ = new Plot;
  map_->setObjectName("map");
  const MapPicture picture(map_);
  heat_ = picture.heatmap;
  bar_ = picture.bar;
  map_->plotLayout()->addElement(0, 0, picture.rect);
  map_->plotLayout()->addElement(0, 1, bar_);
  map_->addTimeRect(picture.rect);
  map_->setHoverHandler([this](const QPointF& at) {
    const auto entry = heat_->at(at);
    return entry
               ? tr("%1 at step %2: %3").arg(columns_.columnName(entry->unit), stepText(trace_.get(), entry->step), number(entry->value, 4))
               : QString();
  });
}

void TrajectoriesPanel::makeLines() {
  lines_ = new Plot;
  lines_->setObjectName("lines");
  legend_ = new Legend(lines_);
  QCPAxisRect* rect = lines_->makeRect();
  stack(lines_, {legend_, rect});
  lines_->addTimeRect(rect);
  values_ = lines_->addValueAxis(rect);
  addActions({values_->lockAction(), values_->resetAction()});
}

void TrajectoriesPanel::holdAxes(bool hold) { values_->hold(hold); }

QString TrajectoriesPanel::timeName() const {
  if (!trace_ || counts_stream(*trace_)) return tr("step");
  QString name = QString::fromStdString(trace_->time_name);
  if (!trace_->time_unit.empty()) name += QString(" (%1)").arg(QString::fromStdString(trace_->time_unit));
  return name;
}

void TrajectoriesPanel::setPinned(const std::vector<Run>& runs) {
  // One line of each of many runs can be told apart, five of each cannot.
  if (!chosenByHand_ && (pinned_.size() > 1) != (runs.size() > 1)) chosen_.clear();
  pinned_ = runs;
  linesFresh_ = false;
  if (wanted_.width() > 0)
    request();
  else
    turnPage();
}

void TrajectoriesPanel::setOwnColour(const QColor& colour) {
  for (Plot* plot : {lines_, static_cast<Plot*>(past_)}) plot->setOwnColour(colour);
}

std::vector<PinnedState> TrajectoriesPanel::pinnedStates() const {
  std::vector<PinnedState> all;
  const QString key = array_->currentData().toString();
  for (const Run& run : pinned_) {
    StateColumns columns(*run.trace, key.section('/', 0, 0), key.section('/', 1));
    const auto alike = [](const StateColumns::Part& a, const StateColumns::Part& b) { return a.name == b.name && a.width == b.width; };
    const bool same = std::equal(columns.parts().begin(), columns.parts().end(), wanted_.parts().begin(), wanted_.parts().end(), alike);
    all.push_back({same                   ? run.label
                   : columns.width() == 0 ? tr("%1: no such state").arg(run.label)
                                          : tr("%1: other units").arg(run.label),
                   run.colour, same ? std::move(columns) : StateColumns()});
  }
  return all;
}

void TrajectoriesPanel::setTrace(std::shared_ptr<const Trace> trace) {
  const bool otherModel = !trace_ || !trace || trace_->info.preset != trace->info.preset;
  trace_ = std::move(trace);
  if (trace_ && trace_->info.length > 0) {
    for (Plot* plot : {map_, lines_, static_cast<Plot*>(past_)}) {
      plot->setTimeExtent(0, trace_->info.length - 1);
      plot->setTimeNames(*trace_);
    }
  }
  const QString before = array_->currentData().toString();
  fillArrays();
  // A state that was chosen by hand stays chosen while its model does.
  if (!takePlace() && (otherModel || pastWanted_ || array_->currentData().toString() != before)) keepPast();
  chooseColumns();
}

void TrajectoriesPanel::chooseColumns() {
  const QString key = array_->currentData().toString();
  StateColumns columns = trace_ && !key.isEmpty() ? StateColumns(*trace_, key.section('/', 0, 0), key.section('/', 1)) : StateColumns();
  const bool same = columns.width() > 0 && columns.sameAs(wanted_) && (picture_.trajectory || !picture_.reason.isEmpty() || pending_);
  wanted_ = std::move(columns);
  pastFresh_ = false;
  if (same) return turnPage();
  QString structure;
  for (const StateColumns::Part& part : wanted_.parts()) structure += part.name + QString(":%1;").arg(part.width);
  if (structure != structure_ && wanted_.width() > 0) {
    structure_ = structure;
    chosen_.clear();
    chosenByHand_ = false;
    picture_.components = {};
    fillAxes();
  }
  request();
}

void TrajectoriesPanel::request() {
  stop_.request_stop();
  stop_ = {};
  {
    const std::lock_guard lock(mutex_);
    ready_.reset();
  }
  pending_ = false;
  StateRequest asked;
  asked.columns = wanted_;
  asked.components = axes_->currentIndex() == 0;
  for (std::size_t k = 0; k < 3; ++k) asked.axes[k] = axis_[k]->currentIndex() - 1;
  asked.timeName = timeName();
  asked.previous = picture_.components.directions;
  asked.matrix = view_ == View::map;
  asked.pinned = pinnedStates();
  if (costOf(asked) <= inlineCost) return take(asked.columns, statePicture(asked));
  pending_ = true;
  pool_.start([this, asked, stop = stop_.get_token()] {
    auto result = std::make_shared<std::pair<StateColumns, StatePicture>>(asked.columns, statePicture(asked, stop));
    const std::lock_guard lock(mutex_);
    if (stop.stop_requested()) return;
    ready_ = std::move(result);
    QMetaObject::invokeMethod(this, &TrajectoriesPanel::takeReady, Qt::QueuedConnection);
  });
  turnPage();
}

void TrajectoriesPanel::takeReady() {
  std::shared_ptr<std::pair<StateColumns, StatePicture>> ready;
  {
    const std::lock_guard lock(mutex_);
    ready.swap(ready_);
  }
  if (!ready) return;  // superseded, or already taken by finish()
  pending_ = false;
  take(std::move(ready->first), std::move(ready->second));
}

void TrajectoriesPanel::finish() {
  while (pending_) {
    pool_.waitForDone();
    pending_ = false;
    takeReady();  // which asks anew when the view has changed meanwhile
  }
}

void TrajectoriesPanel::take(StateColumns columns, StatePicture picture) {
  columns_ = std::move(columns);
  picture_ = std::move(picture);
  mapFresh_ = linesFresh_ = false;
  scene_->scene().setTrajectory(picture_.trajectory);
  applyRange();
  scene_->scene().setCursor(columns_.rowOfStep(step_));
  scene_->refresh();
  // The view may have changed to the map while this was computed.
  if (view_ == View::map && !picture_.matrix && picture_.rows > 0) return request();
  turnPage();
  QString headline;
  if (const std::int64_t held = picture_.components.count; columns_.width() > 0 && held > 0 && picture_.components.variance > 0.0)
    headline = held == 1 ? tr("1 component holds 100 %") : tr("%1 components hold %2 %").arg(held).arg(number(100.0 * picture_.held, 3));
  if (headline != headline_) {
    headline_ = headline;
    emit headlineChanged();
  }
}

QString TrajectoriesPanel::emptyReason() const {
  if (!trace_) return tr("Nothing has run yet: choose a model and a sequence, and the way of its state appears here.");
  if (wanted_.width() == 0) {
    if (!trace_->info.sentence.empty()) return tr("This run has no states to show: %1").arg(QString::fromStdString(trace_->info.sentence));
    if (property("modelHas").toStringList().contains(QStringLiteral("states")))
      return tr("The states of this run were not recorded. Press Run.");
    return tr("%1 has no state that one step hands to the next, so there is no path to draw. Choose another model.")
        .arg(modelName(*trace_));
  }
  if (view_ == View::past) return past_->emptyReason();  // which needs no components
  if (pending_ && columns_.width() == 0) return tr("The components of %1 units are being computed.").arg(grouped(wanted_.width()));
  if (picture_.rows == 0)
    return tr("The state is not finite from its first step on, so there is nothing to draw: lower the weights or the input.");
  return view_ == View::scene ? picture_.reason : QString();
}

QString TrajectoriesPanel::headline() const { return view_ == View::past ? past_->headline() : headline_; }

void TrajectoriesPanel::turnPage() {
  if (view_ == View::past) showPast();
  const QString reason = emptyReason();
  const bool some = reason.isEmpty();
  axes_->setVisible(view_ == View::scene && wanted_.width() > 0);
  axisRow_->setVisible(view_ == View::scene && axes_->currentIndex() == 1 && wanted_.width() > 0);
  unitsButton_->setVisible(view_ == View::lines && some);
  past_->copyChoice()->setVisible(view_ == View::past && some && past_->severalCopies());
  unpinned_->setVisible(some && !pinned_.empty() && (view_ == View::map || view_ == View::past));
  sentence_->setText(reason);
  if (some && view_ == View::map && !mapFresh_) showMap();
  if (some && view_ == View::lines && !linesFresh_) showLines();
  pages_->setCurrentIndex(some ? static_cast<int>(view_) : 4);
}

void TrajectoriesPanel::setTime(std::int64_t step) {
  if (step == step_) return;
  step_ = step;
  scene_->setCursor(columns_.rowOfStep(step));
  map_->setCursorStep(step);
  lines_->setCursorStep(step);
  if (view_ == View::past) past_->setStep(step);
}

void TrajectoriesPanel::setTimeRange(std::int64_t first, std::int64_t last) {
  for (Plot* plot : {map_, lines_, static_cast<Plot*>(past_)}) plot->setTimeRange(first, last);
  if (first == first_ && last == last_) return;  // told again with every run: the scene is drawn anew for another range alone
  first_ = first;
  last_ = last;
  applyRange();
}

/// Parts outside the visible range fade in 3-D.
void TrajectoriesPanel::applyRange() {
  const std::vector<std::int64_t>& steps = columns_.steps();
  std::int64_t first = 0, last = -1;
  if (!steps.empty() && first_ <= last_ && (first_ > steps.front() || last_ < steps.back())) {
    first = std::lower_bound(steps.begin(), steps.end(), first_) - steps.begin();
    last = std::upper_bound(steps.begin(), steps.end(), last_) - steps.begin() - 1;
    if (first > last) first = last = columns_.rowOfStep(first_);
  }
  scene_->scene().setRange(first, last);
  scene_->refresh();
}

RECLAB_PANEL_IS(trajectories, TrajectoriesPanel)

}  // namespace reclab
