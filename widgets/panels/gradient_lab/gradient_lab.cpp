// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/gradient_lab/gradient_lab.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "panels/panel_info.h"
#include "panels/state_place.h"
#include "plot/pinned.h"

namespace reclab {

namespace {

constexpr double lab_decades = 12.0;  // of the map, below the largest
constexpr int lab_room_beside = 470, lab_room_below = 330, lab_width_beside = 168, lab_most_updates = 60;
constexpr double lab_none = std::numeric_limits<double>::quiet_NaN();
constexpr int gate_factor = 0, slope_factor = 1, matrix_factor = 2, step_factor = 3;

const std::vector<std::int64_t>& labSteps(const Trace& trace, const TraceArray& array) {
  return array.steps.empty() ? trace.steps : array.steps;
}

double labValue(const Trace& trace, const TraceArray* array, std::int64_t step, std::int64_t column) {
  if (!array) return lab_none;
  return (*array->real)[static_cast<std::size_t>(trace.row_of_step(*array, step) * array->row_size() + column)];
}

QString labPower(double log10) {
  return std::isfinite(log10) ? powerAsNumber(log10, 3) : log10 < 0 ? QStringLiteral("0") : GradientLabPanel::tr("not finite");
}

/// |dL/dθ| over all parameters.
double labParameterNorm(const Trace& trace) {
  double norm = 0.0;
  for (const TraceArray* array : trace.matching(key_of(Kind::gradient, std::string(prefix_of(Kind::param)))))
    if (array->real)
      for (const double x : *array->real) norm = std::hypot(norm, x);
  return norm;
}

/// A curve of the run that is shown: a column of one of its arrays.
struct LabCurve {
  Kind kind;
  std::int64_t column;
  QString text, tip;
  QPen pen;
};

/// "0.858 = 0.736 along the gates + 0.122 through the matrix": what each brings to the sum of both, in digits that add up.
QString labSum(double log10_whole, double share) {
  const double exponent = std::floor(log10_whole), whole = std::pow(10.0, log10_whole - exponent);  // from 1 to 10
  const double sum = std::round(100.0 * whole), gate = std::round(100.0 * whole * share), matrix = sum - gate;
  const auto text = [&](double hundredths) {
    return hundredths == 0.0 ? QStringLiteral("0") : labPower(std::log10(std::abs(hundredths)) - 2.0 + exponent);
  };
  const QString through = GradientLabPanel::tr("%1 through the matrix").arg(text(matrix));
  const QString along = GradientLabPanel::tr("%1 along the gates").arg(text(gate));
  if (gate < 0.0) return QStringLiteral("%1 = %2 − %3").arg(text(sum), through, along);
  return QStringLiteral("%1 = %2 %3 %4").arg(text(sum), along, matrix < 0.0 ? QStringLiteral("−") : QStringLiteral("+"), through);
}

/// What one step does to the length of the gradient that passes it, factor by factor.
QString labStep(const Trace& trace, const TraceArray& factors, const TraceArray* shares, std::int64_t step) {
  const double whole = labValue(trace, &factors, step, step_factor), gate = labValue(trace, &factors, step, gate_factor),
               slope = labValue(trace, &factors, step, slope_factor), matrix = labValue(trace, &factors, step, matrix_factor),
               share = labValue(trace, shares, step, 0);
  if (!std::isfinite(whole)) return {};
  const QString first = GradientLabPanel::tr("Step %1 multiplies the gradient's length by ").arg(grouped(step));
  const bool along = std::isfinite(gate), through = std::isfinite(slope + matrix);
  if (!along && !through) return {};
  if (!through) return first + GradientLabPanel::tr("%1, all of it along the gates.").arg(labPower(whole));
  const QString product = GradientLabPanel::tr("slope %1 × matrix %2").arg(labPower(slope), labPower(matrix));
  if (!along) return first + labPower(whole) + QStringLiteral(": ") + product + u'.';
  const QString lengths = GradientLabPanel::tr(
                              "What comes along the gates is a vector of length %1, what comes through the matrix one of "
                              "length %2 = %3")
                              .arg(labPower(gate), product, labPower(slope + matrix));
  if (std::isnan(share)) return first + labPower(whole) + QStringLiteral(". ") + lengths + u'.';
  return first + labSum(whole, share) + QStringLiteral(". ") + lengths +
         GradientLabPanel::tr("; they point in different directions, so each counts by its part along their sum.");
}

QCPItemStraightLine* labLine(Plot* plot, QCPAxisRect* rect, const QString& layer) {
  auto* made = new QCPItemStraightLine(plot);
  made->setLayer(layer);
  made->setSelectable(false);
  made->setClipAxisRect(rect);
  for (QCPItemPosition* point : {made->point1, made->point2}) point->setAxes(rect->axis(QCPAxis::atBottom), rect->axis(QCPAxis::atLeft));
  return made;
}

}  // namespace

GradientLabPanel::GradientLabPanel(QWidget* parent) : PlotPanel(parent) {
  view_ = new QComboBox;
  view_->setObjectName(QStringLiteral("view"));
  view_->addItem(tr("Bounds"), QStringLiteral("bounds"));
  view_->addItem(tr("Factors"), QStringLiteral("factors"));
  view_->addItem(tr("Pairs"), QStringLiteral("pairs"));
  view_->addItem(tr("Alignment"), QStringLiteral("alignment"));
  view_->setItemData(0, tr("|∂s_T/∂s_t|, what it can be at most, and what each factor of a step does"), Qt::ToolTipRole);
  view_->setItemData(1, tr("What matrix, slope and gate do to the gradient at each step; under the bounds where the panel is high"),
                     Qt::ToolTipRole);
  view_->setItemData(2, tr("|∂s_t/∂s_s| for each step and each one before it"), Qt::ToolTipRole);
  view_->setItemData(3, tr("Whether the gradients that arrive at different steps point the same way"), Qt::ToolTipRole);
  layer_ = new QComboBox;
  layer_->setProperty("choice", "layer");
  layer_->setObjectName(QStringLiteral("layer"));
  layer_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  beside_ = new QToolButton;
  beside_->setObjectName(QStringLiteral("beside"));
  beside_->setText(tr("Settings"));
  beside_->setCheckable(true);
  beside_->setChecked(true);
  beside_->setToolTip(tr("The settings of the model, and truncation and clipping, beside the picture"));
  controls_->addWidget(view_);
  controls_->addWidget(layer_);
  controls_->addStretch();
  controls_->addWidget(beside_);

  settings_ = new LabSettings;
  settings_->setObjectName(QStringLiteral("settings"));
  settings_->setFixedWidth(lab_width_beside);
  auto* row = new QHBoxLayout;
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(0);
  auto* column = static_cast<QVBoxLayout*>(plot_->parentWidget()->layout());
  column->removeWidget(plot_);
  row->addWidget(plot_, 1);
  row->addWidget(settings_);
  column->addLayout(row, 1);

  said_ = new Paragraph(plot_);
  said_->setLayer(QStringLiteral("overlay"));  // it moves with the cursor
  legend_ = new Legend(plot_);
  grid_ = new QCPLayoutGrid;
  grid_->setRowSpacing(2);
  grid_->setColumnSpacing(2);
  plot_->plotLayout()->addElement(0, 0, grid_);
  plot_->plotLayout()->addElement(1, 0, legend_);
  plot_->plotLayout()->addElement(2, 0, said_);
  norm_rect_ = plot_->makeRect();
  factor_rect_ = plot_->makeRect();
  map_rect_ = plot_->makeRect();
  bar_ = new ColourBar(plot_);
  grid_->addElement(0, 0, norm_rect_);
  grid_->addElement(1, 0, factor_rect_);
  grid_->addElement(2, 0, map_rect_);
  grid_->addElement(2, 1, bar_);
  auto* sides = new QCPMarginGroup(plot_);
  for (QCPAxisRect* rect : {norm_rect_, factor_rect_, map_rect_}) rect->setMarginGroup(QCP::msLeft | QCP::msRight, sides);
  auto* across = new QCPMarginGroup(plot_);
  bar_->setMarginGroup(QCP::msTop | QCP::msBottom, across);
  map_rect_->setMarginGroup(QCP::msTop | QCP::msBottom, across);
  plot_->addTimeRect(norm_rect_, labPower);
  plot_->addTimeRect(factor_rect_, labPower);
  plot_->addTimeRect(map_rect_);
  for (QCPAxisRect* rect : {norm_rect_, factor_rect_})
    rect->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new PowerTicker));
  norm_rect_->axis(QCPAxis::atBottom)->setTickLabels(false);
  norm_rect_->axis(QCPAxis::atLeft)->setLabel(tr("norm"));
  factor_rect_->axis(QCPAxis::atLeft)->setLabel(tr("factor"));
  for (const QCPAxis::AxisType side : {QCPAxis::atLeft, QCPAxis::atBottom}) map_rect_->axis(side)->grid()->setVisible(false);
  map_rect_->axis(QCPAxis::atLeft)->setLabel(tr("earlier step s"));
  heatmap_ = new Heatmap(map_rect_->axis(QCPAxis::atBottom), map_rect_->axis(QCPAxis::atLeft));
  values_ = plot_->addValueAxis(norm_rect_);
  factor_values_ = plot_->addValueAxis(factor_rect_);
  addActions({values_->lockAction(), values_->resetAction()});
  window_ = new QCPItemRect(plot_);
  window_->setLayer(QStringLiteral("grid"));
  window_->setSelectable(false);
  window_->setClipAxisRect(norm_rect_);
  for (QCPItemPosition* point : {window_->topLeft, window_->bottomRight}) {
    point->setTypeX(QCPItemPosition::ptPlotCoords);
    point->setTypeY(QCPItemPosition::ptAxisRectRatio);
    point->setAxisRect(norm_rect_);
    point->setAxes(norm_rect_->axis(QCPAxis::atBottom), norm_rect_->axis(QCPAxis::atLeft));
  }
  one_ = labLine(plot_, norm_rect_, QStringLiteral("grid"));
  one_->point1->setCoords(0, 0);
  one_->point2->setCoords(1, 0);
  clip_ = labLine(plot_, norm_rect_, QStringLiteral("main"));
  input_ = labLine(plot_, map_rect_, QStringLiteral("overlay"));
  plot_->addCursorMark(input_);

  // The plot takes its time axis from the first rect, which lies under what is shown in its place.
  connect(plot_, &QCustomPlot::afterLayout, this, [this] {
    if (norms_) return;
    const QCPAxisRect* instead = map_ ? map_rect_ : factor_rect_;
    norm_rect_->setMargins(instead->margins());
    norm_rect_->setOuterRect(instead->outerRect());
  });
  connect(view_, &QComboBox::activated, this, [this] {
    by_hand_ = true;
    refresh();
  });
  connect(layer_, &QComboBox::activated, this, &GradientLabPanel::refresh);
  connect(beside_, &QToolButton::toggled, this, &GradientLabPanel::placeSettings);
  connect(settings_, &LabSettings::truncationChanged, this, &GradientLabPanel::refresh);
  connect(settings_, &LabSettings::wanted, this, [this](const QString& key, const QString& value, bool live, int gesture) {
    emit requested(SettingChoice{key.toStdString(), value.toStdString(), live, gesture});
  });
  connect(plot_, &Plot::curvesToggled, this, &GradientLabPanel::refresh);
  plot_->setHoverHandler([this](const QPointF& where) { return tipAt(where); });
  placeSettings();
  refresh();
}

QString GradientLabPanel::hint() const {
  return tr(
      "Why a gradient vanishes or explodes: ∂s_T/∂s_t beside the bound that the recurrent matrix sets, what each factor of a step does, "
      "and |∂s_t/∂s_s| over all pairs, under the sliders of the model.");
}

GradientLabPanel::View GradientLabPanel::view() const { return static_cast<View>(std::max(0, view_->currentIndex())); }

Kinds GradientLabPanel::waitsFor() const {
  if (view() == View::pairs) return {Kind::jacobian_pairs};
  if (view() == View::alignment) return {Kind::alignment};
  return {Kind::jacobian, Kind::jacobian_bound, Kind::jacobian_factor};
}

void GradientLabPanel::lookAt(const QString& preset, const QString& detail, bool asked) {
  wanted_[preset] = detail;
  if (asked) by_hand_ = false;
  refresh();
}

void GradientLabPanel::setPinned(const std::vector<Run>& runs) {
  pinned_ = runs;
  refresh();
}

void GradientLabPanel::setSettings(const std::vector<Setting>& settings) { settings_->setSettings(settings); }

QVariantMap GradientLabPanel::choices() const {
  QVariantMap chosen{{QStringLiteral("settings"), beside_->isChecked()},
                     {QStringLiteral("every"), settings_->every()},
                     {QStringLiteral("back"), settings_->back()},
                     {QStringLiteral("clip"), settings_->clip()}};
  if (by_hand_) chosen.insert(QStringLiteral("view"), view_->currentData());
  return chosen;
}

void GradientLabPanel::setChoices(const QVariantMap& saved) {
  beside_->setChecked(saved.value(QStringLiteral("settings"), true).toString() != u"false");
  settings_->setTruncation(saved.value(QStringLiteral("every")).toInt(), saved.value(QStringLiteral("back")).toInt(),
                           saved.value(QStringLiteral("clip")).toDouble());
  const int view = view_->findData(saved.value(QStringLiteral("view")).toString());
  by_hand_ = view >= 0;
  if (by_hand_) view_->setCurrentIndex(view);
  refresh();
}

void GradientLabPanel::resizeEvent(QResizeEvent* event) {
  PlotPanel::resizeEvent(event);
  placeSettings();
  if (std::exchange(low_, isLow()) != low_) refresh();
}

bool GradientLabPanel::isLow() const { return height() - control_row_->sizeHint().height() < lab_room_below; }

/// A narrow panel keeps its picture.
void GradientLabPanel::placeSettings() {
  beside_->setVisible(width() >= lab_room_beside);
  settings_->setVisible(beside_->isChecked() && width() >= lab_room_beside);
}

const TraceArray* GradientLabPanel::find(const Trace& trace, Kind kind) const {
  const TraceArray* array = trace.find(key_of(kind, std::max(0, layer_->currentData().toInt())));
  return array && array->real && array->has_rows() ? array : nullptr;
}

void GradientLabPanel::fillControls() {
  control_row_->show();
  if (trace_ && !by_hand_) view_->setCurrentIndex(std::max(0, view_->findData(wanted_.value(QString::fromStdString(trace_->info.preset)))));
  const QVariant chosen = layer_->currentData();
  QList<int> layers;
  if (trace_)
    for (const Kind kind : {Kind::jacobian, Kind::jacobian_pairs, Kind::jacobian_bound})
      for (const TraceArray* array : trace_->of(kind))
        if (const auto key = parse_key(array->key); key && !layers.contains(static_cast<int>(key->layer)))
          layers << static_cast<int>(key->layer);
  std::ranges::sort(layers);
  layer_->clear();
  for (const int layer : layers) layer_->addItem(layerName(*trace_, QString::number(layer)), layer);
  layer_->setCurrentIndex(std::max(layer_->count() ? 0 : -1, layer_->findData(chosen)));
  layer_->setVisible(layer_->count() > 1);
}

QString GradientLabPanel::whyEmpty() const {
  if (const QString said = noRunSentence(trace_.get(), tr("what becomes of its gradients appears here")); !trace_) return said;
  for (const Kind kind : {Kind::jacobian, Kind::jacobian_pairs, Kind::jacobian_bound})
    if (trace_->has(kind)) return {};
  for (const Kind kind : {Kind::jacobian, Kind::jacobian_pairs})
    if (const auto absent = trace_->info.absent.find(kind); absent != trace_->info.absent.end())
      return QString::fromStdString(absent->second);
  if (trace_->info.outcome == Outcome::diverged || trace_->info.outcome == Outcome::cancelled)
    return tr("This run has no products of Jacobians, for it ended early: %1").arg(QString::fromStdString(trace_->info.sentence));
  return tr("This run has no products of Jacobians yet: they are made while this panel is in front of others, after states and gradients.");
}

void GradientLabPanel::forget() { map_ = nullptr; }

void GradientLabPanel::arrange() {
  const bool map = map_ != nullptr, alone = view() == View::factors,
             factors = !map && (alone || !low_) && find(*trace_, Kind::jacobian_factor);
  norms_ = !map && !(alone && factors);
  // What is not shown stands in no row, so that it takes no room.
  for (QCPLayoutElement* one : std::initializer_list<QCPLayoutElement*>{norm_rect_, factor_rect_, map_rect_, bar_})
    if (one->layout() == grid_) grid_->take(one);
  grid_->simplify();
  const auto place = [this](QCPAxisRect* rect, bool there, int row, double stretch) {
    rect->setVisible(there);
    for (const QCPAxis::AxisType side : {QCPAxis::atLeft, QCPAxis::atBottom}) rect->axis(side)->setVisible(there);
    if (!there) return rect->setOuterRect(QRect());
    grid_->addElement(row, 0, rect);
    grid_->setRowStretchFactor(row, stretch);
  };
  place(norm_rect_, norms_, 0, 2.0);
  place(factor_rect_, factors, norms_ ? 1 : 0, 1.0);
  place(map_rect_, map, 0, 1.0);
  bar_->setVisible(map);
  if (map)
    grid_->addElement(0, 1, bar_);
  else
    bar_->setOuterRect(QRect());
  norm_rect_->axis(QCPAxis::atBottom)->setTickLabels(!factors);
  if (factors) norm_rect_->axis(QCPAxis::atBottom)->setLabel(QString());
  plot_->setLeastPicture(factors && norms_ ? 270 : 178);
  plot_->setTimeNames(*trace_);
  for (QCPItemStraightLine* item : {clip_, one_}) item->setVisible(norms_);
  window_->setVisible(norms_);
  input_->setVisible(map);
  heatmap_->setVisible(map);
}

QCPGraph* GradientLabPanel::curve(QCPAxisRect* rect, const Trace& trace, const TraceArray& array, std::int64_t column, const QPen& pen) {
  QCPGraph* made = plot_->addCurve(rect, pen.color(), pen.widthF(), pen.style());
  const auto& steps = labSteps(trace, array);
  for (std::size_t row = 0; row < steps.size(); ++row) {
    const double x = (*array.real)[row * static_cast<std::size_t>(array.row_size()) + static_cast<std::size_t>(column)];
    made->addData(static_cast<double>(steps[row]), std::isfinite(x) ? x : lab_none);
  }
  return made;
}

void GradientLabPanel::rebuild() {
  fillControls();
  for (QCPAxisRect* rect : {norm_rect_, factor_rect_})
    for (QCPGraph* graph : rect->graphs()) plot_->removePlottable(graph);
  legend_->clear();
  map_ = nullptr;
  heatmap_->clear();
  const Kind kind = view() == View::pairs ? Kind::jacobian_pairs : Kind::alignment;
  if (isMap()) map_ = find(*trace_, kind);
  arrange();
  if (map_) showMap();
  if (norms_) showBounds();
  if (const TraceArray* factors = find(*trace_, Kind::jacobian_factor); factors && factor_rect_->visible()) showFactors(*factors);
  showTraining();
}

void GradientLabPanel::showBounds() {
  const Theme& theme = plot_->theme();
  const std::vector<LabCurve> entries{{Kind::jacobian, 0, tr("|∂s_T/∂s_t|"),
                                       tr("Measured: the largest singular value of the product of all Jacobians from step t to the end."),
                                       QPen(theme.own.isValid() ? theme.own : theme.text, 1.8)},
                                      {Kind::jacobian_bound, 0, tr("bound by σ max"),
                                       tr("(σ max(W) · max f')^(T − t): what the largest singular value of the recurrent matrix lets it be "
                                          "at most; without one recurrent matrix, the largest of all steps' Jacobians."),
                                       QPen(theme.muted, 1.4, Qt::DashLine)},
                                      {Kind::jacobian_bound, 1, tr("rate of |λ| max"),
                                       tr("(ρ(W) · max f')^(T − t): the rate of the largest eigenvalue. It is no bound: where eigenvectors "
                                          "are not at right angles, the measured curve may rise above it."),
                                       QPen(theme.muted, 1.4, Qt::DotLine)}};
  double low = 0.0, high = 0.0;
  for (const LabCurve& entry : entries) {
    const TraceArray* array = find(*trace_, entry.kind);
    if (!array || array->row_size() <= entry.column) continue;
    QCPGraph* made = curve(norm_rect_, *trace_, *array, entry.column, entry.pen);
    bool found = false;
    const QCPRange range = made->getValueRange(found);
    if (!found) {
      plot_->removePlottable(made);
      continue;
    }
    made->setName(entry.text);
    // A bound may go on far beyond what is measured: the axis is of that, and as much again.
    const double least = entry.kind == Kind::jacobian ? -std::numeric_limits<double>::infinity() : low - (high - low) - 1.0,
                 most = entry.kind == Kind::jacobian ? -least : high + (high - low) + 1.0;
    low = std::min(low, std::max(range.lower, least));
    high = std::max(high, std::min(range.upper, most));
    legend_->add(entry.text, entry.text, entry.pen, {made}, entry.tip);
  }
  for (const TraceArray* array : trace_->matching(prefix_of(Kind::gradient) + prefix_of(Kind::state) +
                                                  std::to_string(std::max(0, layer_->currentData().toInt())) + "/")) {
    if (!array->real || !array->has_rows() || array->row_size() != 1) continue;
    const QString name = QStringLiteral("|∂L/∂s| ") + QString::fromStdString(array->key).section(u'/', 3);
    QCPGraph* made = curve(norm_rect_, *trace_, *array, 0, theme.curve(std::max(0, placeOfState(*trace_, array->key)), 1.0));
    bool found = false;
    if (const QCPRange range = made->getValueRange(found); found) low = std::min(low, range.lower), high = std::max(high, range.upper);
    Plot::setQuiet(made);
    legend_->add(name, name, made->pen(), {made}, tr("The norm of the loss's gradient with respect to this state."));
  }
  for (const Run& run : pinned_) {
    if (!run.trace) continue;
    const TraceArray* array = find(*run.trace, Kind::jacobian);
    if (!array) {
      addPinWithout(legend_, run, theme, tr("no ∂s_T/∂s_t"));
      continue;
    }
    QCPGraph* made = curve(norm_rect_, *run.trace, *array, 0, QPen(run.colour, 1.4));
    bool found = false;
    if (const QCPRange range = made->getValueRange(found); found) low = std::min(low, range.lower), high = std::max(high, range.upper);
    addPin(legend_, run, QPen(run.colour, 1.4), {made}, {}, tr("Its |∂s_T/∂s_t|, as measured."));
  }
  const double pad = std::max(0.5, 0.05 * (high - low));
  values_->fit({low - pad, high + pad});
}

/// What each factor does at each step, in colours that are none of the run's nor of its states, and where they have the picture to
/// themselves what the whole step does in pinned runs.
void GradientLabPanel::showFactors(const TraceArray& factors) {
  const Theme& theme = plot_->theme();
  const std::vector<LabCurve> each{
      {Kind::jacobian_factor, matrix_factor, tr("matrix"),
       tr("What the recurrent matrices do to the length of the gradient that passes step t, after the slopes."),
       QPen(theme.series(6), 1.4)},
      {Kind::jacobian_factor, slope_factor, tr("slope of f"),
       tr("What the activations' slopes do, times the gates on the way to the matrices: below 1 where units are saturated or closed."),
       QPen(theme.series(4), 1.4)},
      {Kind::jacobian_factor, gate_factor, tr("gate"),
       tr("What passes no matrix: what a forget or update gate, a leak or an identity keeps of each unit. Slope × matrix comes beside it, "
          "as vectors add."),
       QPen(theme.series(2), 1.4)},
      {Kind::jacobian_factor, step_factor, tr("step"),
       tr("What the whole step does: the length of what the gate keeps and of what slope and matrix make, added as vectors."),
       QPen(theme.text, 1.4, Qt::DashLine)}};
  double least = 0.0, most = 0.0;
  int seen = 0;
  for (const LabCurve& entry : each) {
    if (entry.column == step_factor && seen < 3) continue;  // what is the gate's alone, or slope times matrix, needs no sum
    QCPGraph* made = curve(factor_rect_, *trace_, factors, entry.column, entry.pen);
    bool found = false;
    const QCPRange range = made->getValueRange(found);
    if (!found) {  // a factor that this model does not have
      plot_->removePlottable(made);
      continue;
    }
    ++seen;
    made->setName(entry.text);
    least = std::min(least, range.lower);
    most = std::max(most, range.upper);
    legend_->add(entry.text, entry.text, entry.pen, {made}, entry.tip);
  }
  for (const Run& run : norms_ ? std::vector<Run>() : pinned_) {
    if (!run.trace) continue;
    const TraceArray* array = find(*run.trace, Kind::jacobian_factor);
    if (!array) {
      addPinWithout(legend_, run, theme, tr("no factors"), notesOn(*run.trace, {Kind::jacobian_factor}));
      continue;
    }
    QCPGraph* made = plot_->addCurve(factor_rect_, run.colour, 1.4);
    const auto& steps = labSteps(*run.trace, *array);
    for (std::size_t row = 0; row < steps.size(); ++row) {
      const double all = (*array->real)[row * static_cast<std::size_t>(array->row_size()) + static_cast<std::size_t>(step_factor)];
      made->addData(static_cast<double>(steps[row]), std::isfinite(all) ? all : lab_none);
      if (std::isfinite(all)) least = std::min(least, all), most = std::max(most, all);
    }
    addPin(legend_, run, made->pen(), {made}, {}, tr("What its whole step does."));
  }
  const double room = std::max(0.02, 0.1 * (most - least));
  factor_values_->fit({least - room, most + room});
}

/// Where truncated backpropagation ends, and where a gradient is cut.
void GradientLabPanel::showTraining() {
  const Theme& theme = plot_->theme();
  for (QCPItemStraightLine* update : updates_) plot_->removeItem(update);
  updates_.clear();
  one_->setPen(QPen(theme.axis, 1, Qt::DashLine));
  input_->setPen(QPen(theme.accent, 1, Qt::DotLine));
  const std::int64_t last = trace_->info.length - 1, back = settings_->back(), every = settings_->every();
  QColor tint = theme.series(0);
  tint.setAlphaF(0.12f);
  window_->setBrush(tint);
  window_->setPen(Qt::NoPen);
  window_->topLeft->setCoords(static_cast<double>(last - back) + 0.5, 0.0);
  window_->bottomRight->setCoords(static_cast<double>(last) + 0.5, 1.0);
  window_->setVisible(norms_ && back > 0 && back <= last);
  if (norms_ && every > 0)
    for (std::int64_t at = last - every; at >= 0 && std::ssize(updates_) < lab_most_updates; at -= every) {
      updates_.push_back(labLine(plot_, norm_rect_, QStringLiteral("grid")));
      updates_.back()->setPen(QPen(theme.muted, 1, Qt::DotLine));
      updates_.back()->point1->setCoords(static_cast<double>(at) + 0.5, 0.0);
      updates_.back()->point2->setCoords(static_cast<double>(at) + 0.5, 1.0);
    }
  clip_->setPen(QPen(theme.series(3), 1.4, Qt::DashDotLine));
  clip_->setVisible(norms_ && settings_->clip() > 0.0);
  if (clip_->visible())
    legend_->add(QStringLiteral("clip"), tr("clip |∂L/∂θ|"), clip_->pen(), {clip_},
                 tr("The norm at which the gradient of all weights, |∂L/∂θ|, is clipped. The curves are of states: none of them is clipped "
                    "where it crosses the line."));
  if (settings_->clip() > 0.0) {
    const double at = std::log10(settings_->clip());
    clip_->point1->setCoords(0, at);
    clip_->point2->setCoords(1, at);
  }
}

void GradientLabPanel::showMap() {
  addPinsWithout(legend_, pinned_, plot_->theme(), tr("not in this view"),
                 tr("The map is of the run that is looked at. Maps of pinned runs are seen side by side (Ctrl+B)."));
  rows_ = labSteps(*trace_, *map_);
  const auto units = std::ssize(rows_);
  if (view() == View::pairs) {
    colours_ = showPowers(*heatmap_, *bar_, *map_->real, units, rows_, lab_decades, tr("|∂s_t/∂s_s|"));
  } else {
    heatmap_->setData(map_->real, units, rows_);
    heatmap_->setScale(-1.0, 1.0);
    bar_->axis()->setTicker(QSharedPointer<QCPAxisTicker>(new NumberTicker));
    bar_->show(*heatmap_, tr("cosine"));
  }
  map_rect_->axis(QCPAxis::atLeft)->setLabel(view() == View::pairs ? tr("step s (changed)") : tr("other step"));
  const QSharedPointer<StepTicker> ticker(new StepTicker);
  if (rows_.size() > 1)
    ticker->setTime(static_cast<double>(rows_.front()),
                    static_cast<double>(rows_.back() - rows_.front()) / static_cast<double>(rows_.size() - 1));
  map_rect_->axis(QCPAxis::atLeft)->setTicker(ticker);
  map_rect_->axis(QCPAxis::atLeft)->setRange(-0.5, static_cast<double>(units) - 0.5);
}

void GradientLabPanel::moveTime() {
  QStringList said;
  const std::int64_t last = trace_->info.length - 1;
  if (map_) {
    const double first = static_cast<double>(rows_.front()),
                 apart = rows_.size() > 1 ? static_cast<double>(rows_.back() - rows_.front()) / static_cast<double>(rows_.size() - 1) : 1.0;
    const double row = (static_cast<double>(step_) - first) / apart;
    input_->point1->setCoords(0, row);
    input_->point2->setCoords(1, row);
    if (view() == View::pairs) {
      const bool backward = runsBackward(*trace_, layer_->currentData().toString());
      said << tr("How many times larger or smaller a change of the state at step s is by step t, in the direction that keeps most of it "
                 "(the "
                 "largest singular value). The diagonal, where t is s, is 1; the %1 column is |%2|.")
                  .arg(backward ? tr("first") : tr("last"), backward ? QStringLiteral("∂s_0/∂s_t") : QStringLiteral("∂s_T/∂s_t"));
      said
          << (backward
                  ? tr("Without colour: s comes before t, where this layer, which runs from the end, has not been yet, or nothing is left.")
                  : tr("Without colour: s comes after t, or nothing is left."));
      said << clippedText(colours_);
    } else {
      said << tr(
          "An error at the last step sends a gradient back to the state of every step. The colour is the cosine between those of two "
          "steps: 1 where they point the same way, 0 where they are at right angles, −1 where they are opposite.");
    }
    said << notesOn(*trace_, {view() == View::pairs ? Kind::jacobian_pairs : Kind::alignment});
  } else {
    const QString layer = layer_->currentData().toString();
    const bool backward = runsBackward(*trace_, layer);
    const auto measured = labValue(*trace_, find(*trace_, Kind::jacobian), step_, 0);
    const TraceArray* bound = find(*trace_, Kind::jacobian_bound);
    const double singular = labValue(*trace_, bound, step_, 0),
                 eigen = bound && bound->row_size() > 1 ? labValue(*trace_, bound, step_, 1) : lab_none;
    const std::int64_t over = backward ? step_ : last - step_;
    const QString product = backward ? QStringLiteral("∂s_0/∂s_t") : QStringLiteral("∂s_T/∂s_t"), end = backward ? tr("start") : tr("end");
    if (over == 0) {
      said << tr("The cursor is at the %1, where %2 is the identity: move it to see what other steps keep.").arg(end, product);
    } else {
      const QString steps = over == 1 ? tr("the one step") : tr("the %1 steps").arg(grouped(over));
      QString first = tr("Over %1 from step %2 to the %3, |%4| is %5").arg(steps, grouped(step_), end, product, labPower(measured));
      const bool same =
          std::abs(singular - eigen) <= 1e-9 * std::max(1.0, std::abs(singular));  // as of a matrix that only turns and stretches
      if (!std::isnan(singular)) first += tr("; the largest singular value lets it be at most %1").arg(labPower(singular));
      if (!std::isnan(eigen))
        first += same ? tr(", and the largest eigenvalue is as large")
                      : tr(", and the rate of the largest eigenvalue, which is no bound, would make it %1").arg(labPower(eigen));
      said << first + '.';
    }
    // A view that this run has not got is said to be so before what stands in its place.
    if (isMap() || (view() == View::factors && !find(*trace_, Kind::jacobian_factor))) {
      const Kind kind = view() == View::pairs ? Kind::jacobian_pairs : view() == View::alignment ? Kind::alignment : Kind::jacobian_factor;
      const auto absent = trace_->info.absent.find(kind);
      const QString noted = notesOn(*trace_, {kind});
      said.prepend(absent != trace_->info.absent.end() ? QString::fromStdString(absent->second)
                   : !noted.isEmpty()                  ? noted
                                                       : tr("This run has none of it yet."));
      said.prepend(view() == View::pairs       ? tr("Without a map of pairs, the bounds.")
                   : view() == View::alignment ? tr("Without a map of alignment, the bounds.")
                                               : tr("Without factors, the bounds."));
    }
    if (const TraceArray* factors = find(*trace_, Kind::jacobian_factor)) {
      said << labStep(*trace_, *factors, find(*trace_, Kind::jacobian_share), step_);
      if (!factor_rect_->visible()) said << tr("The view Factors has them at all steps.");
    } else if (const auto absent = trace_->info.absent.find(Kind::jacobian_factor); absent != trace_->info.absent.end()) {
      said << QString::fromStdString(absent->second);
    }
    if (settings_->back() > 0)
      said << tr("Truncated backpropagation sees the last %1 steps before each change of the weights.").arg(grouped(settings_->back()));
    if (const double norm = labParameterNorm(*trace_); settings_->clip() > 0.0 && norm > 0.0)
      said << (norm > settings_->clip()
                   ? tr("|∂L/∂θ| = %1 is clipped: shortened %2 times.").arg(labPower(std::log10(norm)), number(norm / settings_->clip(), 3))
                   : tr("|∂L/∂θ| = %1 is not clipped.").arg(labPower(std::log10(norm))));
    said << notesOn(*trace_, {Kind::jacobian_bound, Kind::jacobian_factor});
  }
  said.removeAll(QString());
  said.removeDuplicates();
  const QSize before = said_->minimumOuterSizeHint();
  said_->setText(said.join(u' '), true);
  if (said_->minimumOuterSizeHint() != before) plot_->redraw();
  plot_->redrawNow();
}

QString GradientLabPanel::makeHeadline() const {
  const double measured = labValue(*trace_, find(*trace_, Kind::jacobian), step_, 0);
  return std::isnan(measured) ? QString() : tr("|∂s_T/∂s_t| %1").arg(labPower(measured));
}

QString GradientLabPanel::subject() const {
  switch (view()) {
    case View::bounds: return {};
    case View::factors: return tr("factors of each step");
    case View::pairs: return tr("all pairs of steps");
    case View::alignment: return tr("alignment");
  }
  return {};
}

QString GradientLabPanel::tipAt(const QPointF& position) const {
  std::int64_t t = 0, column = 0;
  double value = 0.0;
  if (!map_ || !heatmap_->at(position, &t, &column, &value)) return {};
  const std::int64_t row = trace_->row_of_step(*map_, t), s = rows_[static_cast<std::size_t>(column)];
  value = (*map_->real)[static_cast<std::size_t>(row * std::ssize(rows_) + column)];
  return view() == View::pairs ? tr("state of step %1, changed at step %2: |∂s_t/∂s_s| = %3").arg(grouped(t), grouped(s), labPower(value))
                               : tr("gradients at steps %1 and %2: cosine %3").arg(grouped(t), grouped(s), number(value, 3));
}

QString GradientLabPanel::dataAsCsv() const {
  if (!trace_ || !emptyReason().isEmpty()) return {};
  QByteArray text = "step,time";
  struct Column {
    const Trace* trace;
    const TraceArray* array;
    std::int64_t column;
  };
  std::vector<Column> columns;
  const auto add = [&](const Trace& trace, const TraceArray* array, std::int64_t column, const QString& name) {
    if (!array || column >= array->row_size()) return;
    columns.push_back({&trace, array, column});
    text += ',' + csvCell(name).toUtf8();
  };
  if (map_) {
    for (std::size_t i = 0; i < rows_.size(); ++i)
      add(*trace_, map_, static_cast<std::int64_t>(i),
          (view() == View::pairs ? QStringLiteral("log10 |ds_t/ds_s| of step %1") : QStringLiteral("cosine with step %1")).arg(rows_[i]));
  } else {
    add(*trace_, find(*trace_, Kind::jacobian), 0, QStringLiteral("log10 |ds_T/ds_t|"));
    add(*trace_, find(*trace_, Kind::jacobian_bound), 0, QStringLiteral("log10 bound by singular value"));
    add(*trace_, find(*trace_, Kind::jacobian_bound), 1, QStringLiteral("log10 bound by eigenvalue"));
    const TraceArray* factors = find(*trace_, Kind::jacobian_factor);
    add(*trace_, factors, gate_factor, QStringLiteral("log10 factor of gate"));
    add(*trace_, factors, slope_factor, QStringLiteral("log10 factor of slope"));
    add(*trace_, factors, matrix_factor, QStringLiteral("log10 factor of matrix"));
    add(*trace_, factors, step_factor, QStringLiteral("log10 factor of step"));
    add(*trace_, find(*trace_, Kind::jacobian_share), 0, QStringLiteral("share of gate"));
    add(*trace_, find(*trace_, Kind::jacobian_share), 1, QStringLiteral("share of matrix"));
    for (const Run& run : pinned_)
      if (run.trace) add(*run.trace, find(*run.trace, Kind::jacobian), 0, QStringLiteral("log10 |ds_T/ds_t| [%1]").arg(run.label));
  }
  text += '\n';
  const std::vector<std::int64_t>& steps = map_ ? rows_ : trace_->steps;
  for (const std::int64_t step : steps) {
    const std::int64_t in_trace = trace_->row_of_step(step);
    const bool timed = in_trace >= 0 && trace_->steps[static_cast<std::size_t>(in_trace)] == step;
    text += QByteArray::number(static_cast<qlonglong>(step)) + ',' +
            (timed ? csvNumber(trace_->time[static_cast<std::size_t>(in_trace)]) : QByteArray());
    for (const Column& one : columns) {
      const auto& own = labSteps(*one.trace, *one.array);
      const auto same = std::ranges::lower_bound(own, step);
      text += ',';
      if (same != own.end() && *same == step)
        text += csvNumber((*one.array->real)[static_cast<std::size_t>((same - own.begin()) * one.array->row_size() + one.column)]);
    }
    text += '\n';
  }
  return QString::fromUtf8(text);
}

RECLAB_PANEL_IS(gradient_lab, GradientLabPanel)

}  // namespace reclab
