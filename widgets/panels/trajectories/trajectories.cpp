// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/trajectories/trajectories.h"

#include <QApplication>
#include <QButtonGroup>
#include <QClipboard>
#include <QHBoxLayout>
#include <QMenu>
#include <QSignalBlocker>
#include <QSortFilterProxyModel>
#include <QVBoxLayout>
#include <QWidgetAction>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "panels/panel_info.h"
#include "panels/trajectories/past_view.h"
#include "plain_text.h"
#include "plot/heatmap.h"
#include "plot/pinned.h"
#include "plot/plot.h"
#include "plot/plot_panel.h"
#include "plot/value_axis.h"
#include "scene/trajectory_view.h"

namespace reclab {
namespace {

constexpr std::size_t mostLines = 7;  // as many colours as one tells apart
constexpr double inlineCost = 1e7;    // multiplications that take less than a frame

QToolButton* flatButton(const QString& text, const QString& tip) {
  auto* button = new QToolButton;
  button->setText(text);
  button->setToolTip(safeTip(tip));
  button->setCheckable(true);
  button->setAutoRaise(true);
  button->setFocusPolicy(Qt::TabFocus);
  return button;
}

QComboBox* smallChoice(const char* name, const QString& tip) {
  auto* choice = new QComboBox;
  choice->setProperty("choice", name);
  choice->setToolTip(safeTip(tip));
  choice->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  choice->setMinimumContentsLength(7);
  choice->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  choice->setMaxVisibleItems(20);
  return choice;
}

}  // namespace

TrajectoriesPanel::TrajectoriesPanel(QWidget* parent, bool openGl) : Panel(parent) {
  pool_.setMaxThreadCount(1);
  past_ = new PastView;
  makeControls();
  scene_ = new TrajectoryView(nullptr, openGl);
  flat_ = plainLabel(tr("There is no OpenGL 3.2 on this display: the curve is drawn flat, without light."));
  flat_->setWordWrap(true);
  flat_->setContentsMargins(8, 2, 8, 4);
  auto* scenePage = new QWidget;
  auto* sceneColumn = new QVBoxLayout(scenePage);
  sceneColumn->setContentsMargins(0, 0, 0, 0);
  sceneColumn->setSpacing(0);
  sceneColumn->addWidget(scene_, 1);
  sceneColumn->addWidget(flat_);
  flat_->setVisible(!scene_->hasOpenGl());
  makeMap();
  makeLines();

  auto* empty = new QWidget;
  empty->setBackgroundRole(QPalette::Base);
  empty->setAutoFillBackground(true);
  sentence_ = plainLabel();
  sentence_->setObjectName("emptyReason");
  sentence_->setWordWrap(true);
  sentence_->setAlignment(Qt::AlignCenter);
  auto* words = new QVBoxLayout(empty);
  words->setContentsMargins(24, 16, 24, 16);
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

void TrajectoriesPanel::resizeEvent(QResizeEvent* event) {
  Panel::resizeEvent(event);
  const bool narrow = width() < 460;
  if (narrow != choiceRow_->isHidden()) return;
  auto* home = narrow ? static_cast<QBoxLayout*>(choiceRow_->layout()) : viewRow_;
  for (QWidget* one : std::initializer_list<QWidget*>{array_, axes_, past_->copyChoice()}) home->addWidget(one, 3);
  home->addWidget(unitsButton_);
  choiceRow_->setVisible(narrow);
}

QString TrajectoriesPanel::hint() const {
  return tr(
      "The way of the state through time: in 3-D along the directions in which it moves most, as a map of all units, or as lines of a few; "
      "or, for a memory of polynomial coefficients, the past that it still holds. "
      "Drag turns the 3-D picture, the wheel zooms, Shift and drag moves it, a double click puts it back, a click on the curve picks that "
      "time.");
}

void TrajectoriesPanel::makeControls() {
  sceneButton_ = flatButton(tr("3-D"), tr("The state's way in three dimensions, coloured by time"));
  mapButton_ = flatButton(tr("map"), tr("All units over time, as colours"));
  linesButton_ = flatButton(tr("lines"), tr("A few units over time, as lines"));
  pastButton_ = flatButton(
      tr("past"), tr("The past that the state at the cursor still holds, over the signal that it was written with, on the time axis of "
                     "all panels; for memories of polynomial coefficients"));
  pastButton_->setObjectName("viewPast");
  sceneButton_->setObjectName("viewScene");
  mapButton_->setObjectName("viewMap");
  linesButton_->setObjectName("viewLines");
  sceneButton_->setChecked(true);
  auto* views = new QButtonGroup(this);
  views->setExclusive(true);
  auto* row = new QHBoxLayout;
  row->setContentsMargins(8, 4, 8, 4);
  row->setSpacing(4);
  for (QToolButton* button : {sceneButton_, mapButton_, linesButton_, pastButton_}) {
    views->addButton(button);
    row->addWidget(button);
  }
  connect(sceneButton_, &QToolButton::clicked, this, [this] { pickView(View::scene); });
  connect(mapButton_, &QToolButton::clicked, this, [this] { pickView(View::map); });
  connect(linesButton_, &QToolButton::clicked, this, [this] { pickView(View::lines); });
  connect(pastButton_, &QToolButton::clicked, this, [this] { pickView(View::past); });

  array_ = smallChoice("array", tr("Which layer's state, and which array of it"));
  array_->setObjectName("stateChoice");
  axes_ = smallChoice("axes", tr("What the three axes are: the directions in which the state moves most, or three units"));
  axes_->setObjectName("axesChoice");
  axes_->addItems({tr("components"), tr("units")});
  unitsButton_ = new QToolButton;
  unitsButton_->setObjectName("unitsButton");
  unitsButton_->setText(tr("units"));
  unitsButton_->setToolTip(tr("Which units are drawn as lines, at most seven; at first those that vary most"));
  unitsButton_->setPopupMode(QToolButton::InstantPopup);
  unitsButton_->setAutoRaise(true);
  row->addStretch(1);
  row->addWidget(array_, 3);
  row->addWidget(axes_, 3);
  row->addWidget(past_->copyChoice(), 3);
  row->addWidget(unitsButton_);
  connect(array_, &QComboBox::activated, this, [this] {
    rememberPlace();
    chooseColumns();
  });
  connect(axes_, &QComboBox::activated, this, [this] {
    fillAxes();
    request();
    turnPage();
  });

  axisNames_ = new QStringListModel(this);
  axisRow_ = new QWidget;
  auto* axisRow = new QHBoxLayout(axisRow_);
  axisRow->setContentsMargins(8, 0, 8, 4);
  axisRow->setSpacing(4);
  for (std::size_t k = 0; k < 3; ++k) {
    axis_[k] = smallChoice(k == 0 ? "x" : k == 1 ? "y" : "z", tr("The unit along this axis"));
    axis_[k]->setObjectName(QString("axis%1").arg(k));
    axis_[k]->setModel(axisNames_);
    axisRow->addWidget(axis_[k], 1);
    connect(axis_[k], &QComboBox::activated, this, &TrajectoriesPanel::request);
  }

  // The chooser of units: a search above a list to tick.
  units_ = new QStandardItemModel(this);
  unitsFound_ = new QSortFilterProxyModel(this);
  unitsFound_->setSourceModel(units_);
  unitsFound_->setFilterCaseSensitivity(Qt::CaseInsensitive);
  unitSearch_ = new QLineEdit;
  unitSearch_->setObjectName("unitSearch");
  unitSearch_->setPlaceholderText(tr("Search units"));
  unitSearch_->setClearButtonEnabled(true);
  connect(unitSearch_, &QLineEdit::textChanged, unitsFound_, &QSortFilterProxyModel::setFilterFixedString);
  auto* list = new QListView;
  list->setObjectName("unitList");
  list->setModel(unitsFound_);
  list->setUniformItemSizes(true);
  list->setSpacing(1);
  list->setMinimumSize(180, 220);
  auto* chooser = new QWidget;
  auto* column = new QVBoxLayout(chooser);
  column->setContentsMargins(8, 8, 8, 8);
  column->setSpacing(8);
  column->addWidget(unitSearch_);
  column->addWidget(list);
  auto* varying = new QToolButton;
  varying->setText(tr("Those that vary most"));
  varying->setAutoRaise(true);
  column->addWidget(varying);
  auto* menu = new QMenu(this);
  auto* action = new QWidgetAction(menu);
  action->setDefaultWidget(chooser);
  menu->addAction(action);
  unitsButton_->setMenu(menu);
  connect(menu, &QMenu::aboutToShow, this, &TrajectoriesPanel::fillUnits);
  connect(varying, &QToolButton::clicked, this, [this] {
    chosenByHand_ = false;
    chosen_.clear();
    linesFresh_ = false;
    turnPage();
    fillUnits();
  });
  connect(units_, &QStandardItemModel::itemChanged, this, [this](QStandardItem* item) {
    std::vector<std::int64_t> now = chosen_;
    const std::int64_t column_number = item->row();
    std::erase(now, column_number);
    if (item->checkState() == Qt::Checked) now.push_back(column_number);
    if (now.size() > mostLines) now.erase(now.begin());
    setLines(now);
    fillUnits();
  });

  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->setSpacing(0);
  all->addLayout(row);
  viewRow_ = row;
  choiceRow_ = new QWidget;
  auto* below = new QHBoxLayout(choiceRow_);
  below->setContentsMargins(8, 0, 8, 4);
  below->setSpacing(4);
  choiceRow_->hide();
  all->addWidget(choiceRow_);
  all->addWidget(axisRow_);
}

void TrajectoriesPanel::makeMap() {
  map_ = new Plot;
  map_->setObjectName("map");
  QCPAxisRect* rect = map_->makeRect();
  map_->plotLayout()->addElement(0, 0, rect);
  map_->addTimeRect(rect);
  QCPAxis* units = rect->axis(QCPAxis::atLeft);
  units->grid()->setVisible(false);
  rect->axis(QCPAxis::atBottom)->grid()->setVisible(false);
  heat_ = new Heatmap(rect->axis(QCPAxis::atBottom), units);
  bar_ = new ColourBar(map_);
  map_->plotLayout()->addElement(0, 1, bar_);
  auto* level = new QCPMarginGroup(map_);  // the bar is as high as the map
  rect->setMarginGroup(QCP::msTop | QCP::msBottom, level);
  bar_->setMarginGroup(QCP::msTop | QCP::msBottom, level);
  map_->setHoverHandler([this](const QPointF& at) -> QString {
    std::int64_t step = 0, unit = 0;
    double value = 0;
    if (!heat_->at(at, &step, &unit, &value)) return {};
    return tr("%1 at step %2: %3").arg(columns_.columnName(unit), grouped(step), number(value, 4));
  });
}

void TrajectoriesPanel::makeLines() {
  lines_ = new Plot;
  lines_->setObjectName("lines");
  legend_ = new Legend(lines_);
  QCPAxisRect* rect = lines_->makeRect();
  lines_->plotLayout()->addElement(0, 0, legend_);
  lines_->plotLayout()->addElement(1, 0, rect);
  lines_->addTimeRect(rect);
  values_ = lines_->addValueAxis(rect);
  addActions({values_->lockAction(), values_->resetAction()});
}

void TrajectoriesPanel::holdAxes(bool hold) { values_->hold(hold); }

QString TrajectoriesPanel::timeName() const {
  if (!trace_) return tr("step");
  QString name = QString::fromStdString(trace_->time_name);
  if (!trace_->time_unit.empty()) name += QString(" (%1)").arg(QString::fromStdString(trace_->time_unit));
  return name;
}

void TrajectoriesPanel::setView(View view) {
  pastWanted_ = false;
  turnTo(view);
}

void TrajectoriesPanel::keepPast() {
  if (!trace_ || (view_ != View::past && !pastWanted_)) return;
  QStringList pasts;  // "0/m"
  for (const TraceArray* array : trace_->of(Kind::basis))
    if (const QString key = QString::fromStdString(array->key).section('/', 1); key.count('/') == 1 && array_->findData(key) >= 0)
      pasts << key;
  if (pasts.isEmpty()) {
    if (!trace_->has(Kind::state) || view_ != View::past) return;
    pastWanted_ = true;
    return turnTo(View::scene);
  }
  const QString chosen = array_->currentData().toString();
  const bool holds = std::any_of(pasts.begin(), pasts.end(),
                                 [&](const QString& past) { return past == chosen || (chosen.endsWith('/') && past.startsWith(chosen)); });
  if (!holds) array_->setCurrentIndex(array_->findData(pasts.front()));
  if (std::exchange(pastWanted_, false)) turnTo(View::past);
}

void TrajectoriesPanel::turnTo(View view) {
  view_ = view;
  sceneButton_->setChecked(view == View::scene);
  mapButton_->setChecked(view == View::map);
  linesButton_->setChecked(view == View::lines);
  pastButton_->setChecked(view == View::past);
  if (view == View::map && !picture_.matrix && columns_.width() > 0 && !pending_) request();
  turnPage();
  emit headlineChanged();
}

void TrajectoriesPanel::pickView(View view) {
  setView(view);
  rememberPlace();
}

void TrajectoriesPanel::rememberPlace() {
  left_for_preset_.reset();
  if (trace_) chosen_by_hand_[QString::fromStdString(trace_->info.preset)] = {view_, array_->currentData().toString()};
}

/// "past", "lines:h", or ":h" for a state in whichever view.
void TrajectoriesPanel::lookAt(const QString& preset, const QString& detail, bool asked) {
  const QString view = detail.section(':', 0, 0);
  Place place{view_, detail.section(':', 1)};
  if (view == u"3-D") place.view = View::scene;
  if (view == u"map") place.view = View::map;
  if (view == u"lines") place.view = View::lines;
  if (view == u"past") place.view = View::past;
  if (detail.isEmpty()) return;
  wanted_places_[preset] = place;
  if (asked) chosen_by_hand_.remove(preset);
  if (!trace_ || QString::fromStdString(trace_->info.preset) != preset) return;
  placed_.clear();
  setTrace(trace_);
}

/// Another model is looked at where it was left, else where its preset says. False when neither says anything.
bool TrajectoriesPanel::takePlace() {
  const QString preset = trace_ ? QString::fromStdString(trace_->info.preset) : QString();
  if (preset.isEmpty() || array_->count() == 0 || placed_ == preset) return false;
  placed_ = preset;
  const bool by_hand = chosen_by_hand_.contains(preset);
  if (!by_hand && !wanted_places_.contains(preset)) {
    // What another preset wanted is not what this one is looked at with.
    if (!left_for_preset_) return false;
    setView(*std::exchange(left_for_preset_, std::nullopt));
    return true;
  }
  if (!by_hand && !left_for_preset_) left_for_preset_ = view_;
  const Place place = by_hand ? chosen_by_hand_[preset] : wanted_places_[preset];
  for (int i = 0; i < array_->count() && !place.state.isEmpty(); ++i) {
    const QString key = array_->itemData(i).toString();
    if (key != place.state && key.section('/', 1) != place.state) continue;
    array_->setCurrentIndex(i);
    break;
  }
  setView(place.view);
  return true;
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
    if (!run.trace) continue;
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

void TrajectoriesPanel::fillArrays() {
  QStringList layers, texts, keys;
  QMap<QString, QStringList> names;
  if (trace_) {
    for (const TraceArray* array : trace_->of(Kind::state)) {
      const QString rest = QString::fromStdString(array->key).mid(6);
      const QString layer = rest.section('/', 0, 0), name = rest.section('/', 1);
      if (name.isEmpty()) continue;
      if (!layers.contains(layer)) layers << layer;
      names[layer] << name;
    }
  }
  for (const QString& layer : layers) {
    const QString of = layers.size() > 1 ? layerName(*trace_, layer) : QString();
    if (names[layer].size() > 1) {
      texts << (of.isEmpty() ? tr("all states") : of);
      keys << layer + '/';
    }
    for (const QString& name : names[layer]) {
      texts << (of.isEmpty() ? name : of + ": " + name);
      keys << layer + '/' + name;
    }
  }
  QStringList present;
  for (int i = 0; i < array_->count(); ++i) present << array_->itemData(i).toString();
  if (present != keys) {
    const QString chosen = array_->currentData().toString();
    array_->clear();
    for (qsizetype i = 0; i < keys.size(); ++i) array_->addItem(texts[i], keys[i]);
    array_->setCurrentIndex(std::max(0, array_->findData(chosen)));
  }
  array_->setVisible(keys.size() > 1);
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
        .arg(trace_->info.title.empty() ? tr("This model") : QString::fromStdString(trace_->info.title));
  }
  if (view_ == View::past) return past_->emptyReason();  // which needs none of what is computed below
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

void TrajectoriesPanel::setLines(std::vector<std::int64_t> columns) {
  std::erase_if(columns, [this](std::int64_t c) { return c < 0 || c >= columns_.width(); });
  if (columns.size() > mostLines) columns.resize(mostLines);
  chosen_ = std::move(columns);
  chosenByHand_ = true;
  linesFresh_ = false;
  turnPage();
}

void TrajectoriesPanel::fillUnits() {
  const QSignalBlocker quiet(units_);
  if (units_->rowCount() != static_cast<int>(columns_.width()) || units_->property("structure").toString() != structure_) {
    units_->clear();
    units_->setProperty("structure", structure_);
    for (std::int64_t j = 0; j < columns_.width(); ++j) {
      auto* item = new QStandardItem(columns_.columnName(j));
      item->setFlags(Qt::ItemIsEnabled | Qt::ItemIsUserCheckable);
      units_->appendRow(item);
    }
    unitsFound_->setSourceModel(nullptr);
    unitsFound_->setSourceModel(units_);
  }
  for (int j = 0; j < units_->rowCount(); ++j)
    units_->item(j)->setCheckState(std::find(chosen_.begin(), chosen_.end(), j) != chosen_.end() ? Qt::Checked : Qt::Unchecked);
  if (auto* list = unitsButton_->menu()->findChild<QListView*>()) list->viewport()->update();
}

/// The names to choose axes from; the first three units at first.
void TrajectoriesPanel::fillAxes() {
  if (axes_->currentIndex() != 1 || axisNames_->property("structure").toString() == structure_) return;
  axisNames_->setProperty("structure", structure_);
  QStringList names{tr("time")};
  for (std::int64_t j = 0; j < wanted_.width(); ++j) names << wanted_.columnName(j);
  axisNames_->setStringList(names);
  for (int k = 0; k < 3; ++k) axis_[std::size_t(k)]->setCurrentIndex(k + 1 < names.size() ? k + 1 : 0);
}

void TrajectoriesPanel::setAxes(std::array<std::int64_t, 3> columns) {
  axes_->setCurrentIndex(1);
  fillAxes();
  for (std::size_t k = 0; k < 3; ++k) axis_[k]->setCurrentIndex(static_cast<int>(columns[k] + 1));
  request();
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
  first_ = first;
  last_ = last;
  map_->setTimeRange(first, last);
  lines_->setTimeRange(first, last);
  past_->setTimeRange(first, last);
  applyRange();
}

/// What lies outside the visible range fades in 3-D.
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
