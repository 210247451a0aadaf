// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/sensitivity/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>

#include "panels/panel_info.h"
#include "plot/parts/curves.h"
#include "plot/parts/pinned.h"
#include "plot/parts/step_text.h"

namespace reclab {

namespace {

constexpr double decades_shown = 12.0;  // below the largest
constexpr int room_for_row = 340;       // height of the plot

}  // namespace

SensitivityPanel::SensitivityPanel(QWidget* parent) : Described(parent), map_(plot_) {
  view_ = addChoice(
      "view", false,
      tr("How the inputs move the outputs, through all of the model; or which weights one memory gives to what was written into it."));
  view_->addItem(tr("Sensitivity"), false);
  view_->addItem(tr("Mixing matrix"), true);
  memory_ = addChoice("memory", false);
  group_ = addChoice("group", false);
  normalised_ = new QCheckBox(tr("Normalised"));
  normalised_->setObjectName(QStringLiteral("normalised"));
  normalised_->setToolTip(tr("Divided by what the keys weigh together, as the model reads it; else the weights before that."));
  normalised_->setChecked(true);
  controls_->addWidget(normalised_);
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
  said_ = new CursorText(plot_);
  legend_ = new Legend(plot_);
  QCPLayoutGrid* grid = closeGrid();
  stack(plot_, {grid, legend_, said_});
  row_rect_ = plot_->makeRect([this] {
    row_rect_->axis(QCPAxis::atLeft)
        ->setLabel(plot_->drawsCursor() ? tr("at the cursor") : tr("at step %1").arg(stepText(trace_.get(), step_)));
  });
  grid->addElement(0, 0, map_.rect);
  grid->addElement(0, 1, map_.bar);
  grid->addElement(1, 0, row_rect_);
  grid->setRowStretchFactor(0, 2.4);
  lineUp({map_.rect, row_rect_}, QCP::msLeft | QCP::msRight);
  plot_->addTimeRect(map_.rect);
  plot_->addTimeRect(row_rect_, powerText);
  map_.rect->axis(QCPAxis::atBottom)->setTickLabels(false);
  row_rect_->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new PowerTicker));
  values_ = plot_->addValueAxis(row_rect_);
  addActions({values_->lockAction(), values_->resetAction()});
  row_ = plot_->addCurve(row_rect_, plot_->theme().shown(), 1.6);
  row_->setLayer(QStringLiteral("now"));
  input_ = new StraightLine(map_.rect, QStringLiteral("overlay"));
  plot_->addCursorMark(input_);
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

SensitivityChoice SensitivityPanel::choice() const {
  SensitivityChoice choice = choice_;
  if (const QString named = wanted(); !by_hand_ && !named.isEmpty()) choice.mixing = named == u"mixing";
  return choice;
}

QString SensitivityPanel::symbol() const { return choice().mixing ? tr("M") : tr("|dy/du|"); }

QString SensitivityPanel::valueText(const SensitivityBlocks& blocks, std::int64_t row, std::int64_t column) const {
  if (!choice().mixing) return powerText(blocks.at(row, column));
  const double value = blocks.value(row, column);
  return value == 0.0           ? QStringLiteral("0")
         : std::isfinite(value) ? (value < 0.0 ? QStringLiteral("−") : QString()) + powerText(std::log10(std::abs(value)))
                                : tr("not finite");
}

/// The choices that the run offers.
void SensitivityPanel::fillControls() {
  const bool mixing = choice().mixing && trace_;
  control_row_->show();
  offer_->setVisible(mixing && !sensitivityBlocks(*trace_, choice()).array);
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
  const SensitivityBlocks blocks = mixing ? sensitivityBlocks(*trace_, choice()) : SensitivityBlocks{};
  if (blocks.array)
    for (const std::string& label : blocks.array->axes[2].labels)
      group_->addItem(tr("%1 %2").arg(QString::fromStdString(blocks.array->axes[2].name), QString::fromStdString(label)));
  group_->setCurrentIndex(static_cast<int>(std::clamp<std::int64_t>(choice().group, 0, std::max(0, group_->count() - 1))));
  group_->setVisible(group_->count() > 1);
  normalised_->setVisible(mixing && mixingUnnormalised(*trace_, memory));
  normalised_->setChecked(choice().normalised);
}

QString SensitivityPanel::whyEmpty() const {
  if (const QString said = noRunSentence(trace_.get(), tr("how its inputs move its outputs appears here")); !trace_) return said;
  if (sensitivityBlocks(*trace_, choice()).array) return {};
  const Kind kind = choice().mixing ? Kind::mixing : Kind::sensitivity;
  if (const QString why = whyAbsent(*trace_, kind); !why.isEmpty()) return (why + u' ' + pinsThatHave(pinned_, {kind})).trimmed();
  if (const QString said = endedEarly(*trace_, tr("This run has none of what is drawn here")); !said.isEmpty()) return said;
  return choice().mixing
             ? tr("This run has no mixing matrices yet: they are made while this panel is in front of others, after states and gradients.")
             : tr("This run has no sensitivities yet: they are made while this panel is in front of others, after states and gradients.");
}

void SensitivityPanel::forget() {
  blocks_ = {};
  fillControls();
}

void SensitivityPanel::rebuild() {
  fillControls();
  blocks_ = sensitivityBlocks(*trace_, choice());
  const Theme& theme = plot_->theme();
  colours_ = showPowers(*map_.heatmap, *map_.bar, *blocks_.logarithms, std::ssize(blocks_.columns), blocks_.rows, decades_shown, {});
  const double high = colours_.high;
  if (!logarithmic_->isChecked()) {
    // Exact zeros have no colour, as in the other scale; values beyond the numbers' range have that of the smallest or largest one.
    constexpr double smallest = std::numeric_limits<double>::min(), largest = std::numeric_limits<double>::max();
    auto shown = std::make_shared<std::vector<double>>(*blocks_.values);
    for (std::size_t i = 0; i < shown->size(); ++i)
      if (double& x = (*shown)[i]; !std::isfinite((*blocks_.logarithms)[i]))
        x = no_value;
      else if (std::abs(x) < smallest)
        x = smallest;
      else if (std::isinf(x))
        x = largest;
    double least = 0.0;
    for (const double x : *shown)
      if (x < least) least = x;
    map_.heatmap->setData(std::move(shown), std::ssize(blocks_.columns), blocks_.rows);
    map_.heatmap->setScale(least, std::clamp(std::pow(10.0, high), smallest, largest));
    map_.bar->axis()->setTicker(QSharedPointer<QCPAxisTicker>(new NumberTicker));
  }
  map_.bar->show(*map_.heatmap, logarithmic_->isChecked() && choice().mixing ? tr("|M|") : symbol());
  map_.rect->axis(QCPAxis::atBottom)->setLabel(choice().mixing ? tr("step t (read)") : tr("step t (output)"));
  map_.rect->axis(QCPAxis::atLeft)->setLabel(choice().mixing ? tr("step s (written)") : tr("step s (input)"));
  map_.setUnits(blocks_.columns);
  row_->setPen(QPen(theme.shown(), 1.6));
  input_->setPen(QPen(theme.accent, 1.0, Qt::DotLine));
  makePins();
  values_->fit(padded({colours_.low, high}, 0.05, 0.2));
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
    SensitivityBlocks blocks = sensitivityBlocks(*run.trace, choice());
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

void SensitivityPanel::drawRow(QCPGraph* curve, const Trace& trace, const SensitivityBlocks& blocks) const {
  const std::int64_t row = trace.row_of_step(*blocks.array, step_);
  fillCurve(curve, blocks.columns, std::ssize(blocks.columns), [&](std::int64_t column) { return blocks.at(row, column); });
}

void SensitivityPanel::moveTime() {
  // Columns are evenly apart, the last one may be a step nearer.
  const double first = static_cast<double>(blocks_.columns.front()),
               apart = blocks_.columns.size() > 1 ? static_cast<double>(blocks_.columns[1]) - first : 1.0;
  input_->setLevel(std::min((static_cast<double>(step_) - first) / apart, static_cast<double>(blocks_.columns.size() - 1)));
  drawRow(row_, *trace_, blocks_);
  for (const Pinned& pin : pins_) drawRow(pin.curve, *pin.trace, pin.blocks);
  const std::int64_t row = trace_->row_of_step(*blocks_.array, step_), t = blocks_.rows[static_cast<std::size_t>(row)];
  const SensitivityBlocks::Reach reach = blocks_.reachOf(row);
  QStringList said;
  const auto value = [&](std::int64_t s) { return valueText(blocks_, row, blocks_.columnNear(s)); };
  if (reach.strongest < 0) {
    said << (choice().mixing ? tr("Nothing that was written is read at step %1.") : tr("No input moves the output of step %1."))
                .arg(stepText(trace_.get(), t));
  } else {
    const bool alone = reach.back == 0 && reach.ahead == 0 && reach.strongest == t;
    QString text = (choice().mixing ? tr("What is read at step %1 has most weight on what was written at step %2, M = %3")
                                    : tr("The output of step %1 is moved most by the input of step %2, |dy/du| = %3"))
                       .arg(stepText(trace_.get(), t), stepText(trace_.get(), reach.strongest), value(reach.strongest));
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
  said_->say(said.join(u' '));
}

QString SensitivityPanel::makeHeadline() const {
  const SensitivityBlocks::Reach reach = blocks_.reachOf(trace_->row_of_step(*blocks_.array, step_));
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
  fold(row_rect_, low);
  map_.rect->axis(QCPAxis::atBottom)->setTickLabels(low);  // else those of the curve
  if (blocks_.array && !pinned_.empty()) {
    makePins();
    for (const Pinned& pin : pins_) drawRow(pin.curve, *pin.trace, pin.blocks);
  }
}

QString SensitivityPanel::tipAt(const QPointF& position) const {
  if (!blocks_.array) return {};
  const auto text = [&](std::int64_t t, std::int64_t column) {
    const QString s = stepText(trace_.get(), blocks_.columns[static_cast<std::size_t>(column)]),
                  x = valueText(blocks_, trace_->row_of_step(*blocks_.array, t), column);
    return choice().mixing ? tr("read at step %1, written at step %2: M = %3").arg(stepText(trace_.get(), t), s, x)
                           : tr("output of step %1, input of step %2: |dy/du| = %3").arg(stepText(trace_.get(), t), s, x);
  };
  if (const auto entry = map_.heatmap->at(position)) return text(entry->step, entry->unit);
  if (!row_rect_->visible() || !row_rect_->rect().contains(position.toPoint())) return {};
  const std::int64_t row = trace_->row_of_step(*blocks_.array, step_);
  return text(blocks_.rows[static_cast<std::size_t>(row)],
              blocks_.columnNear(std::llround(row_rect_->axis(QCPAxis::atBottom)->pixelToCoord(position.x()))));
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
  StepTable table(*trace_);
  table.addSteps(blocks_.rows);
  const auto add = [&](const SensitivityBlocks& blocks, const QString& run) {
    for (std::int64_t column = 0; column < std::ssize(blocks.columns); ++column)
      table.add((mixing ? QStringLiteral("M of step %1%2") : QStringLiteral("log10 |dy/du| of step %1%2"))
                    .arg(blocks.columns[static_cast<std::size_t>(column)])
                    .arg(run),
                blocks.rows, [&blocks, column, mixing](std::int64_t row) {
                  return csvNumber(mixing ? blocks.value(row, column) : blocks.at(row, column));
                });
  };
  add(blocks_, {});
  std::list<SensitivityBlocks> others;
  for (const Run& run : pinned_) {
    others.push_back(sensitivityBlocks(*run.trace, choice()));
    if (others.back().array) add(others.back(), QStringLiteral(" [%1]").arg(run.label));
  }
  return table.csv();
}

RECLAB_PANEL_IS(sensitivity, SensitivityPanel)

}  // namespace reclab
