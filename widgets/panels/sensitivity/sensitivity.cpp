// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/sensitivity/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "panels/panel_info.h"
#include "plot/pinned.h"

namespace reclab {

namespace {

constexpr double decades_shown = 12.0;  // below the largest
constexpr int room_for_row = 340;       // height of the plot
constexpr double a_hundredth = 2.0;     // decades
constexpr double no_sensitivity = std::numeric_limits<double>::quiet_NaN();

QString sensitivityText(double log10) {
  return std::isfinite(log10) ? powerAsNumber(log10, 3) : log10 < 0 ? QStringLiteral("0") : SensitivityPanel::tr("not finite");
}

}  // namespace

SensitivityPanel::SensitivityPanel(QWidget* parent) : PlotPanel(parent) {
  view_ = new QComboBox;
  view_->setObjectName(QStringLiteral("view"));
  view_->addItem(tr("Sensitivity"), false);
  view_->addItem(tr("Mixing matrix"), true);
  view_->setToolTip(
      tr("How the inputs move the outputs, through all of the model; or which weights one memory gives to what was written into it."));
  memory_ = new QComboBox;
  memory_->setObjectName(QStringLiteral("memory"));
  group_ = new QComboBox;
  group_->setObjectName(QStringLiteral("group"));
  normalised_ = new QCheckBox(tr("Normalised"));
  normalised_->setObjectName(QStringLiteral("normalised"));
  normalised_->setToolTip(tr("Divided by what the keys weigh together, as the model reads it; else the weights before that."));
  normalised_->setChecked(true);
  for (QWidget* one : std::initializer_list<QWidget*>{view_, memory_, group_, normalised_}) controls_->addWidget(one);
  for (QComboBox* box : {memory_, group_}) box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  controls_->addStretch();
  connect(view_, &QComboBox::activated, this, [this](int index) {
    choice_.mixing = view_->itemData(index).toBool();
    by_hand_ = true;
    refresh();
  });
  connect(memory_, &QComboBox::activated, this, [this](int index) {
    choice_.memory = memory_->itemData(index).toString();
    choice_.group = 0;
    refresh();
  });
  connect(group_, &QComboBox::activated, this, [this](int index) {
    choice_.group = index;
    refresh();
  });
  connect(normalised_, &QCheckBox::clicked, this, [this](bool on) {
    choice_.normalised = on;
    refresh();
  });
  connect(plot_, &QCustomPlot::beforeReplot, this, &SensitivityPanel::fitHeight);
  plot_->setLeastPicture(240);
  plot_->setFigureShape(0.8);
  said_ = new Paragraph(plot_);
  said_->setLayer(QStringLiteral("overlay"));  // it moves with the cursor
  legend_ = new Legend(plot_);
  grid_ = new QCPLayoutGrid;
  grid_->setRowSpacing(2);
  grid_->setColumnSpacing(2);
  plot_->plotLayout()->addElement(0, 0, grid_);
  plot_->plotLayout()->addElement(1, 0, legend_);
  plot_->plotLayout()->addElement(2, 0, said_);
  map_rect_ = plot_->makeRect();
  row_rect_ = plot_->makeRect([this] {
    row_rect_->axis(QCPAxis::atLeft)->setLabel(plot_->drawsCursor() ? tr("at the cursor") : tr("at step %1").arg(grouped(step_)));
  });
  bar_ = new ColourBar(plot_);
  grid_->addElement(0, 0, map_rect_);
  grid_->addElement(0, 1, bar_);
  grid_->addElement(1, 0, row_rect_);
  grid_->setRowStretchFactor(0, 2.4);
  auto* left = new QCPMarginGroup(plot_);
  for (QCPAxisRect* rect : {map_rect_, row_rect_}) rect->setMarginGroup(QCP::msLeft | QCP::msRight, left);
  auto* across = new QCPMarginGroup(plot_);
  bar_->setMarginGroup(QCP::msTop | QCP::msBottom, across);
  map_rect_->setMarginGroup(QCP::msTop | QCP::msBottom, across);
  plot_->addTimeRect(map_rect_);
  plot_->addTimeRect(row_rect_, sensitivityText);
  map_rect_->axis(QCPAxis::atBottom)->setTickLabels(false);
  map_rect_->axis(QCPAxis::atBottom)->setLabel(tr("step t (output)"));
  map_rect_->axis(QCPAxis::atLeft)->setLabel(tr("step s (input)"));
  for (const QCPAxis::AxisType side : {QCPAxis::atLeft, QCPAxis::atBottom}) map_rect_->axis(side)->grid()->setVisible(false);
  row_rect_->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new PowerTicker));
  values_ = plot_->addValueAxis(row_rect_);
  addActions({values_->lockAction(), values_->resetAction()});
  heatmap_ = new Heatmap(map_rect_->axis(QCPAxis::atBottom), map_rect_->axis(QCPAxis::atLeft));
  row_ = plot_->addCurve(row_rect_, plot_->theme().shown(), 1.6);
  row_->setLayer(QStringLiteral("now"));
  input_ = new QCPItemStraightLine(plot_);
  input_->setLayer(QStringLiteral("overlay"));
  input_->setSelectable(false);
  plot_->addCursorMark(input_);
  input_->setClipAxisRect(map_rect_);
  for (QCPItemPosition* point : {input_->point1, input_->point2})
    point->setAxes(map_rect_->axis(QCPAxis::atBottom), map_rect_->axis(QCPAxis::atLeft));
  logarithmic_ = new QAction(tr("Logarithmic colours"), this);
  logarithmic_->setCheckable(true);
  logarithmic_->setChecked(true);
  logarithmic_->setToolTip(tr("Colours stand for powers of ten, so that what is small is seen too; else for the values themselves."));
  connect(logarithmic_, &QAction::toggled, this, &SensitivityPanel::refresh);
  addAction(logarithmic_);
  offer_->setText(tr("Show the sensitivity"));
  connect(offer_, &QPushButton::clicked, this, [this] {
    choice_.mixing = false;
    by_hand_ = true;
    refresh();
  });
  plot_->setHoverHandler([this](const QPointF& at) { return tipAt(at); });
  refresh();
}

QString SensitivityPanel::hint() const {
  return tr(
      "How much the input of each step moves the output of each, |dy/du|, or which weights a memory that is linear in what it holds gives "
      "to the steps before: attention and recurrence in one picture.");
}

namespace {

/// "0/S" of the last mixing matrix of the first layer that has one: what stands before the memory in a layer (a short convolution) is no
/// memory to look at.
QString mixingMemory(const Trace& trace, const QString& wanted) {
  QString found;
  for (const TraceArray* array : trace.of(Kind::mixing)) {
    const QString name = QString::fromStdString(array->key).section(u'/', 1);
    if (name == wanted) return name;
    if (found.isEmpty() || found.section(u'/', 0, 0) == name.section(u'/', 0, 0)) found = name;
  }
  return found;
}

const TraceArray* mixingUnnormalised(const Trace& trace, const QString& memory) {
  return trace.find(prefix_of(Kind::mixing_unnormalised) + memory.toStdString());
}

}  // namespace

SensitivityPanel::Blocks SensitivityPanel::blocksOf(const Trace& trace, const Choice& choice) {
  Blocks blocks;
  const QString memory = mixingMemory(trace, choice.memory);
  const TraceArray* array =
      choice.mixing ? trace.find(prefix_of(Kind::mixing) + memory.toStdString()) : trace.find(key_of(Kind::sensitivity));
  if (const TraceArray* plain = mixingUnnormalised(trace, memory); choice.mixing && plain && !choice.normalised) array = plain;
  const std::size_t dimensions = choice.mixing ? 3 : 2;
  if (!array || array->shape.size() != dimensions || array->size() == 0 || array->axes.size() != dimensions ||
      std::ssize(array->axes[1].labels) != array->shape[1])
    return blocks;
  if (!choice.mixing && !array->real) return blocks;
  blocks.array = array;
  blocks.rows = array->steps.empty() ? trace.steps : array->steps;
  for (const std::string& label : array->axes[1].labels) blocks.columns.push_back(QString::fromStdString(label).toLongLong());
  if (!choice.mixing) {
    auto values = std::make_shared<std::vector<double>>(*array->real);
    for (double& x : *values) x = std::isnan(x) ? x : std::pow(10.0, x);
    blocks.values = std::move(values);
    blocks.logarithms = array->real;
    return blocks;
  }
  const std::int64_t groups = array->shape[2], group = std::clamp(choice.group, std::int64_t{0}, groups - 1);
  const auto all = realValues(*array);
  auto values = std::make_shared<std::vector<double>>(), logarithms = std::make_shared<std::vector<double>>();
  for (std::size_t i = static_cast<std::size_t>(group); i < all->size(); i += static_cast<std::size_t>(groups)) {
    values->push_back((*all)[i]);
    logarithms->push_back(std::log10(std::abs((*all)[i])));
  }
  blocks.values = std::move(values);
  blocks.logarithms = std::move(logarithms);
  return blocks;
}

SensitivityPanel::Choice SensitivityPanel::choice() const {
  Choice choice = choice_;
  const QString named = trace_ ? wanted_.value(QString::fromStdString(trace_->info.preset)) : QString();
  if (!by_hand_ && !named.isEmpty()) choice.mixing = named == u"mixing";
  return choice;
}

QString SensitivityPanel::symbol() const { return choice().mixing ? tr("M") : tr("|dy/du|"); }

QString SensitivityPanel::valueText(const Blocks& blocks, std::int64_t row, std::int64_t column) const {
  if (!choice().mixing) return sensitivityText(blocks.at(row, column));
  const double value = blocks.value(row, column);
  return value == 0.0           ? QStringLiteral("0")
         : std::isfinite(value) ? (value < 0.0 ? QStringLiteral("−") : QString()) + sensitivityText(std::log10(std::abs(value)))
                                : tr("not finite");
}

/// What there is to choose of the run.
void SensitivityPanel::fillControls() {
  const bool mixing = choice().mixing && trace_;
  control_row_->show();
  offer_->setVisible(mixing && !blocksOf(*trace_, choice()).array);
  view_->setCurrentIndex(choice().mixing ? 1 : 0);
  const QString memory = mixing ? mixingMemory(*trace_, choice().memory) : QString();
  memory_->clear();
  if (mixing)
    for (const TraceArray* array : trace_->of(Kind::mixing)) {
      const QString name = QString::fromStdString(array->key).section(u'/', 1), layer = name.section(u'/', 0, 0);
      memory_->addItem(trace_->info.layers > 1 ? tr("%1, %2").arg(name.section(u'/', 1), layerName(*trace_, layer)) : name.section(u'/', 1),
                       name);
    }
  memory_->setCurrentIndex(memory_->findData(memory));
  memory_->setVisible(memory_->count() > 1);
  group_->clear();
  const Blocks blocks = mixing ? blocksOf(*trace_, choice()) : Blocks{};
  if (blocks.array)
    for (const std::string& label : blocks.array->axes[2].labels)
      group_->addItem(tr("%1 %2").arg(QString::fromStdString(blocks.array->axes[2].name), QString::fromStdString(label)));
  group_->setCurrentIndex(static_cast<int>(std::clamp<std::int64_t>(choice().group, 0, std::max(0, group_->count() - 1))));
  group_->setVisible(group_->count() > 1);
  normalised_->setVisible(mixing && mixingUnnormalised(*trace_, memory));
  normalised_->setChecked(choice().normalised);
}

std::int64_t SensitivityPanel::Blocks::columnNear(std::int64_t step) const {
  const auto after = std::ranges::lower_bound(columns, step);
  if (after == columns.end()) return std::ssize(columns) - 1;
  const std::int64_t column = after - columns.begin();
  return column > 0 && step - *(after - 1) < *after - step ? column - 1 : column;
}

QString SensitivityPanel::whyEmpty() const {
  if (const QString said = noRunSentence(trace_.get(), tr("how its inputs move its outputs appears here")); !trace_) return said;
  if (blocksOf(*trace_, choice()).array) return {};
  const auto absent = trace_->info.absent.find(choice().mixing ? Kind::mixing : Kind::sensitivity);
  if (absent != trace_->info.absent.end())
    return (QString::fromStdString(absent->second) + u' ' + pinsThatHave(pinned_, {choice().mixing ? Kind::mixing : Kind::sensitivity}))
        .trimmed();
  if (trace_->info.outcome == Outcome::diverged || trace_->info.outcome == Outcome::cancelled)
    return tr("This run has none of what is drawn here, for it ended early: %1").arg(QString::fromStdString(trace_->info.sentence));
  return choice().mixing
             ? tr("This run has no mixing matrices yet: they are made while this panel is in front of others, after states and gradients.")
             : tr("This run has no sensitivities yet: they are made while this panel is in front of others, after states and gradients.");
}

void SensitivityPanel::setPinned(const std::vector<Run>& runs) {
  pinned_ = runs;
  refresh();
}

void SensitivityPanel::lookAt(const QString& preset, const QString& detail, bool asked) {
  wanted_[preset] = detail;
  if (asked) by_hand_ = false;
  refresh();
}

void SensitivityPanel::forget() {
  blocks_ = {};
  fillControls();
}

void SensitivityPanel::rebuild() {
  fillControls();
  blocks_ = blocksOf(*trace_, choice());
  const Theme& theme = plot_->theme();
  colours_ = showPowers(*heatmap_, *bar_, *blocks_.logarithms, std::ssize(blocks_.columns), blocks_.rows, decades_shown, {});
  const double high = colours_.high;
  if (!logarithmic_->isChecked()) {
    // What is exactly 0 has no colour, as in the other scale; what is too small or too large for a number has that of the smallest or
    // largest one.
    constexpr double smallest = std::numeric_limits<double>::min(), largest = std::numeric_limits<double>::max();
    auto shown = std::make_shared<std::vector<double>>(*blocks_.values);
    for (std::size_t i = 0; i < shown->size(); ++i)
      if (double& x = (*shown)[i]; !std::isfinite((*blocks_.logarithms)[i]))
        x = no_sensitivity;
      else if (std::abs(x) < smallest)
        x = smallest;
      else if (std::isinf(x))
        x = largest;
    double least = 0.0;
    for (const double x : *shown)
      if (x < least) least = x;
    heatmap_->setData(std::move(shown), std::ssize(blocks_.columns), blocks_.rows);
    heatmap_->setScale(least, std::clamp(std::pow(10.0, high), smallest, largest));
    bar_->axis()->setTicker(QSharedPointer<QCPAxisTicker>(new NumberTicker));
  }
  bar_->show(*heatmap_, logarithmic_->isChecked() && choice().mixing ? tr("|M|") : symbol());
  map_rect_->axis(QCPAxis::atBottom)->setLabel(choice().mixing ? tr("step t (read)") : tr("step t (output)"));
  map_rect_->axis(QCPAxis::atLeft)->setLabel(choice().mixing ? tr("step s (written)") : tr("step s (input)"));
  QCPAxis* inputs = map_rect_->axis(QCPAxis::atLeft);
  const QSharedPointer<StepTicker> ticker(new StepTicker);
  if (blocks_.columns.size() > 1)
    ticker->setTime(static_cast<double>(blocks_.columns.front()), static_cast<double>(blocks_.columns.back() - blocks_.columns.front()) /
                                                                      static_cast<double>(blocks_.columns.size() - 1));
  inputs->setTicker(ticker);
  inputs->setRange(-0.5, static_cast<double>(blocks_.columns.size()) - 0.5);
  row_->setPen(QPen(theme.shown(), 1.6));
  input_->setPen(QPen(theme.accent, 1.0, Qt::DotLine));
  makePins();
  const double pad = std::max(0.05 * (high - colours_.low), 0.2);
  values_->fit({colours_.low - pad, high + pad});
}

/// Pinned runs have their curve at the cursor; the map has room for one run.
void SensitivityPanel::makePins() {
  for (const Pinned& pin : pins_) plot_->removePlottable(pin.curve);
  pins_.clear();
  legend_->clear();
  if (pinned_.empty()) return;
  if (low_plot_)
    return addPinsWithout(legend_, pinned_, plot_->theme(), tr("in a higher panel"),
                          tr("The map is of the run that is looked at. What pinned runs have at the cursor is under it where the panel is "
                             "higher; their maps are seen side by side (Ctrl+B)."));
  legend_->add(QStringLiteral("shown"), tr("shown"), QPen(plot_->theme().shown(), 1.6), {row_},
               tr("The run that is looked at; the map is its own. Those of pinned runs are seen side by side (Ctrl+B)."));
  for (const Run& run : pinned_) {
    if (!run.trace) continue;
    Blocks blocks = blocksOf(*run.trace, choice());
    if (!blocks.array) {
      addPinWithout(legend_, run, plot_->theme(), choice().mixing ? tr("no mixing matrix of that name") : tr("no sensitivities"),
                    notesOn(*run.trace, {choice().mixing ? Kind::mixing : Kind::sensitivity}));
      continue;
    }
    QCPGraph* curve = plot_->addCurve(row_rect_, run.colour, 1.2);
    curve->setLayer(QStringLiteral("now"));
    pins_.push_back({run.trace, std::move(blocks), curve});
    addPin(legend_, run, QPen(run.colour, 1.2), {curve}, {},
           choice().mixing ? tr("Which weights its memory gives to the steps before the cursor.")
                           : tr("How much its inputs move its output at the cursor."));
  }
}

void SensitivityPanel::drawRow(QCPGraph* curve, const Trace& trace, const Blocks& blocks) const {
  const std::int64_t row = trace.row_of_step(*blocks.array, step_);
  QVector<QCPGraphData> points;
  for (std::int64_t column = 0; column < std::ssize(blocks.columns); ++column) {
    const double x = blocks.at(row, column);
    points.append({static_cast<double>(blocks.columns[static_cast<std::size_t>(column)]), std::isfinite(x) ? x : no_sensitivity});
  }
  curve->data()->set(points, true);
}

SensitivityPanel::Reach SensitivityPanel::reachOf(std::int64_t row) const {
  Reach reach;
  const std::int64_t t = blocks_.rows[static_cast<std::size_t>(row)];
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t column = 0; column < std::ssize(blocks_.columns); ++column)
    if (const double x = blocks_.at(row, column); std::isfinite(x) && x > largest)
      largest = x, reach.strongest = blocks_.columns[static_cast<std::size_t>(column)];
  reach.largest = largest;
  for (std::int64_t column = 0; column < std::ssize(blocks_.columns); ++column) {
    const std::int64_t s = blocks_.columns[static_cast<std::size_t>(column)];
    if (blocks_.at(row, column) < largest - a_hundredth || std::isnan(blocks_.at(row, column))) continue;
    reach.back = std::max(reach.back, t - s);
    reach.ahead = std::max(reach.ahead, s - t);
  }
  return reach;
}

void SensitivityPanel::moveTime() {
  // Columns are evenly apart, the last one may be a step nearer.
  const double first = static_cast<double>(blocks_.columns.front()),
               apart = blocks_.columns.size() > 1 ? static_cast<double>(blocks_.columns[1]) - first : 1.0;
  const double column = std::min((static_cast<double>(step_) - first) / apart, static_cast<double>(blocks_.columns.size() - 1));
  input_->point1->setCoords(0, column);
  input_->point2->setCoords(1, column);
  drawRow(row_, *trace_, blocks_);
  for (const Pinned& pin : pins_) drawRow(pin.curve, *pin.trace, pin.blocks);
  const std::int64_t row = trace_->row_of_step(*blocks_.array, step_), t = blocks_.rows[static_cast<std::size_t>(row)];
  const Reach reach = reachOf(row);
  QStringList said;
  const auto value = [&](std::int64_t s) { return valueText(blocks_, row, blocks_.columnNear(s)); };
  if (reach.strongest < 0) {
    said << (choice().mixing ? tr("Nothing that was written is read at step %1.") : tr("No input moves the output of step %1."))
                .arg(grouped(t));
  } else {
    const bool alone = reach.back == 0 && reach.ahead == 0 && reach.strongest == t;
    QString text = (choice().mixing ? tr("What is read at step %1 has most weight on what was written at step %2, M = %3")
                                    : tr("The output of step %1 is moved most by the input of step %2, |dy/du| = %3"))
                       .arg(grouped(t), grouped(reach.strongest), value(reach.strongest));
    if (alone)
      text += choice().mixing ? tr("; nothing else has a hundredth of that weight.") : tr("; no other moves it by a hundredth of that.");
    else
      text += (choice().mixing ? tr("; what has a hundredth of that weight or more is up to %1 steps back")
                               : tr("; those that move it by a hundredth of that or more are up to %1 steps back"))
                  .arg(grouped(reach.back)) +
              (reach.ahead > 0 ? tr(" and up to %1 ahead.").arg(grouped(reach.ahead)) : QStringLiteral("."));
    said << text;
  }
  said << (choice().mixing ? tr("y_t = Σ M[t, s] v_s; without colour: what was written has no weight.")
                           : tr("Without colour: the output does not depend on the input, |dy/du| is 0."));
  if (logarithmic_->isChecked()) said << clippedText(colours_);
  said << notesOn(*trace_, {choice().mixing ? Kind::mixing : Kind::sensitivity});
  said.removeAll(QString());
  const QSize before = said_->minimumOuterSizeHint();
  said_->setText(said.join(u' '), true);
  if (said_->minimumOuterSizeHint() != before) plot_->redraw();
  plot_->redrawNow();
}

QString SensitivityPanel::makeHeadline() const {
  const Reach reach = reachOf(trace_->row_of_step(*blocks_.array, step_));
  return reach.strongest < 0 ? QString()
         : reach.ahead > 0   ? tr("reaches %1 steps back, %2 ahead").arg(grouped(reach.back), grouped(reach.ahead))
                             : tr("reaches %1 steps back").arg(grouped(reach.back));
}

/// In a low panel the map is alone.
void SensitivityPanel::fitHeight() {
  const bool low = plot_->height() < room_for_row;
  if (low == low_plot_) return;
  low_plot_ = low;
  plot_->setLeastPicture(low ? 170 : 240);
  row_rect_->setVisible(!low);
  row_rect_->setMinimumSize(low ? QSize(0, 0) : QSize(30, 22));
  row_rect_->setMaximumSize(QWIDGETSIZE_MAX, low ? 0 : QWIDGETSIZE_MAX);
  for (const QCPAxis::AxisType side : {QCPAxis::atLeft, QCPAxis::atBottom}) row_rect_->axis(side)->setVisible(!low);
  row_rect_->setAutoMargins(low ? QCP::msLeft | QCP::msRight : QCP::msAll);
  if (low) row_rect_->setMargins(QMargins());
  map_rect_->axis(QCPAxis::atBottom)->setTickLabels(low);  // else those of the curve
  if (blocks_.array && !pinned_.empty()) {
    makePins();
    for (const Pinned& pin : pins_) drawRow(pin.curve, *pin.trace, pin.blocks);
  }
}

QString SensitivityPanel::tipAt(const QPointF& position) const {
  if (!blocks_.array) return {};
  std::int64_t t = 0, column = 0;
  double value = 0.0;
  const auto text = [&](std::int64_t row) {
    const QString s = grouped(blocks_.columns[static_cast<std::size_t>(column)]), x = valueText(blocks_, row, column);
    return choice().mixing ? tr("read at step %1, written at step %2: M = %3").arg(grouped(t), s, x)
                           : tr("output of step %1, input of step %2: |dy/du| = %3").arg(grouped(t), s, x);
  };
  if (heatmap_->at(position, &t, &column, &value)) return text(trace_->row_of_step(*blocks_.array, t));
  if (row_rect_->visible() && row_rect_->rect().contains(position.toPoint())) {
    const std::int64_t row = trace_->row_of_step(*blocks_.array, step_);
    column = blocks_.columnNear(std::llround(row_rect_->axis(QCPAxis::atBottom)->pixelToCoord(position.x())));
    t = blocks_.rows[static_cast<std::size_t>(row)];
    return text(row);
  }
  return {};
}

QVariantMap SensitivityPanel::choices() const {
  QVariantMap chosen{{QStringLiteral("logarithmic"), logarithmic_->isChecked()},
                     {QStringLiteral("normalised"), choice().normalised},
                     {QStringLiteral("group"), QVariant::fromValue(static_cast<qlonglong>(choice().group))}};
  if (by_hand_) chosen.insert(QStringLiteral("view"), choice().mixing ? QStringLiteral("mixing") : QStringLiteral("sensitivity"));
  if (!choice().memory.isEmpty()) chosen.insert(QStringLiteral("memory"), choice().memory);
  return chosen;
}

void SensitivityPanel::setChoices(const QVariantMap& saved) {
  const auto off = [&](const QString& key) { return saved.value(key, true).toString() == u"false"; };
  const QSignalBlocker quiet(logarithmic_);
  logarithmic_->setChecked(!off(QStringLiteral("logarithmic")));
  choice_.normalised = !off(QStringLiteral("normalised"));
  choice_.group = std::max<qlonglong>(0, saved.value(QStringLiteral("group")).toLongLong());
  choice_.memory = saved.value(QStringLiteral("memory")).toString();
  const QString view = saved.value(QStringLiteral("view")).toString();
  by_hand_ = view == u"mixing" || view == u"sensitivity";
  if (by_hand_) choice_.mixing = view == u"mixing";
  refresh();
}

QString SensitivityPanel::subject() const {
  if (!choice().mixing || !trace_) return {};
  const QString memory = mixingMemory(*trace_, choice().memory);
  return tr("mixing matrix of %1%2").arg(memory.section(u'/', 1), group_->count() > 1 ? tr(", %1").arg(group_->currentText()) : QString());
}

QString SensitivityPanel::dataAsCsv() const {
  const bool mixing = choice().mixing;
  if (!trace_ || !emptyReason().isEmpty()) return {};
  // Pinned runs have the rows of the same steps.
  QByteArray text = "step,time";
  const auto header = [&](const Blocks& blocks, const QString& run) {
    for (const std::int64_t s : blocks.columns)
      text += ',' +
              csvCell((mixing ? QStringLiteral("M of step %1%2") : QStringLiteral("log10 |dy/du| of step %1%2")).arg(s).arg(run)).toUtf8();
  };
  header(blocks_, {});
  std::vector<Blocks> others;
  for (const Run& run : pinned_)
    if (run.trace && blocksOf(*run.trace, choice()).array) {
      others.push_back(blocksOf(*run.trace, choice()));
      header(others.back(), QStringLiteral(" [%1]").arg(run.label));
    }
  text += '\n';
  for (std::int64_t row = 0; row < std::ssize(blocks_.rows); ++row) {
    const std::int64_t step = blocks_.rows[static_cast<std::size_t>(row)], in_trace = trace_->row_of_step(step);
    const bool timed = in_trace >= 0 && trace_->steps[static_cast<std::size_t>(in_trace)] == step;
    text += QByteArray::number(static_cast<qlonglong>(step)) + ',' +
            (timed ? csvNumber(trace_->time[static_cast<std::size_t>(in_trace)]) : QByteArray());
    for (std::int64_t column = 0; column < std::ssize(blocks_.columns); ++column)
      text += ',' + csvNumber(mixing ? blocks_.value(row, column) : blocks_.at(row, column));
    for (const Blocks& other : others) {
      const auto same = std::ranges::lower_bound(other.rows, step);
      const bool there = same != other.rows.end() && *same == step;
      for (std::int64_t column = 0; column < std::ssize(other.columns); ++column)
        text +=
            ',' + (there ? csvNumber(mixing ? other.value(same - other.rows.begin(), column) : other.at(same - other.rows.begin(), column))
                         : QByteArray());
    }
    text += '\n';
  }
  return QString::fromUtf8(text);
}

RECLAB_PANEL_IS(sensitivity, SensitivityPanel)

}  // namespace reclab
