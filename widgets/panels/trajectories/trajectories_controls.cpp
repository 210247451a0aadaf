// SPDX-License-Identifier: GPL-3.0-or-later
// The choices on the states: the view, the array, the axes and the units that are drawn as lines; and their defaults for a model: the
// choice by hand, the preset's place, and a view of the past.
#include <QButtonGroup>
#include <QMenu>
#include <QSignalBlocker>
#include <QSortFilterProxyModel>
#include <QWidgetAction>
#include <algorithm>

#include "box_layout.h"
#include "panels/trajectories/past_view.h"
#include "panels/trajectories/trajectories.h"
#include "plain_text.h"
#include "plot/plot_panel.h"

namespace reclab {
namespace {

constexpr std::size_t mostLines = 7;  // as many colours as one tells apart

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
  choice->setAccessibleName(QString(QChar(*name).toUpper()) + (name + 1));
  choice->setToolTip(safeTip(tip));
  choice->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  choice->setMinimumContentsLength(7);
  choice->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  choice->setMaxVisibleItems(20);
  return choice;
}

}  // namespace

void TrajectoriesPanel::resizeEvent(QResizeEvent* event) {
  Panel::resizeEvent(event);
  const bool narrow = width() < 460;
  if (narrow != choiceRow_->isHidden()) return;
  auto* home = narrow ? static_cast<QBoxLayout*>(choiceRow_->layout()) : viewRow_;
  for (QWidget* one : std::initializer_list<QWidget*>{array_, axes_, past_->copyChoice()}) home->addWidget(one, 3);
  home->addWidget(unitsButton_);
  choiceRow_->setVisible(narrow);
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
  auto* row = boxLayout<QHBoxLayout>(nullptr, 4, {8, 4, 8, 4});
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
  auto* axisRow = boxLayout<QHBoxLayout>(axisRow_, 4, {8, 0, 8, 4});
  for (std::size_t k = 0; k < 3; ++k) {
    axis_[k] = smallChoice(k == 0 ? "x" : k == 1 ? "y" : "z", tr("The unit along this axis"));
    axis_[k]->setObjectName(QString("axis%1").arg(k));
    axis_[k]->setAccessibleName(tr("Axis %1").arg(k + 1));
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
  list->setAccessibleName(tr("Units"));
  list->setModel(unitsFound_);
  list->setUniformItemSizes(true);
  list->setSpacing(1);
  list->setMinimumSize(180, 220);
  auto* chooser = new QWidget;
  auto* column = boxLayout<QVBoxLayout>(chooser, 8, {8, 8, 8, 8});
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

  auto* all = boxLayout<QVBoxLayout>(this, 0);
  all->addLayout(row);
  viewRow_ = row;
  choiceRow_ = new QWidget;
  boxLayout<QHBoxLayout>(choiceRow_, 4, {8, 0, 8, 4});
  choiceRow_->hide();
  all->addWidget(choiceRow_);
  all->addWidget(axisRow_);
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

void TrajectoriesPanel::setView(View view) {
  pastWanted_ = false;
  turnTo(view);
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

void TrajectoriesPanel::rememberPlace() {
  left_for_preset_.reset();
  if (trace_) chosen_by_hand_[QString::fromStdString(trace_->info.preset)] = {view_, array_->currentData().toString()};
}

/// "past", "lines:h", or ":h" for a state in any view.
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
    // The place of another preset does not hold for this one.
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

}  // namespace reclab
