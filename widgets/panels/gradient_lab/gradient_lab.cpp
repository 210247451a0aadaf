// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/gradient_lab/gradient_lab.h"

#include <algorithm>
#include <utility>

#include "box_layout.h"
#include "panels/panel_info.h"
#include "plot/parts/curves.h"
#include "plot/type_scale.h"

namespace reclab {

constexpr int lab_room_beside = 470, lab_room_below = 330, lab_width_beside = 168;

GradientLabPanel::GradientLabPanel(QWidget* parent) : Described(parent), map_picture_(plot_) {
  view_ = addChoice("view", false);
  view_->addItem(tr("Bounds"), QStringLiteral("bounds"));
  view_->addItem(tr("Factors"), QStringLiteral("factors"));
  view_->addItem(tr("Pairs"), QStringLiteral("pairs"));
  view_->addItem(tr("Alignment"), QStringLiteral("alignment"));
  view_->setItemData(0, tr("|∂s_T/∂s_t|, what it can be at most, and what each factor of a step does"), Qt::ToolTipRole);
  view_->setItemData(1, tr("What matrix, slope and gate do to the gradient at each step; under the bounds where the panel is high"),
                     Qt::ToolTipRole);
  view_->setItemData(2, tr("|∂s_t/∂s_s| for each step and each one before it"), Qt::ToolTipRole);
  view_->setItemData(3, tr("Whether the gradients that arrive at different steps point the same way"), Qt::ToolTipRole);
  layer_ = addChoice("layer", true);
  layer_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  beside_ = new QToolButton;
  beside_->setObjectName(QStringLiteral("beside"));
  beside_->setText(tr("Settings"));
  beside_->setCheckable(true);
  beside_->setChecked(true);
  beside_->setToolTip(tr("The settings of the model, and truncation and clipping, beside the picture"));
  controls_->addStretch();
  controls_->addWidget(beside_);

  settings_ = new LabSettings;
  settings_->setObjectName(QStringLiteral("settings"));
  auto* row = boxLayout<QHBoxLayout>(nullptr, 0);
  auto* column = static_cast<QVBoxLayout*>(plot_->parentWidget()->layout());
  column->removeWidget(plot_);
  row->addWidget(plot_, 1);
  row->addWidget(settings_);
  column->addLayout(row, 1);

  said_ = new CursorText(plot_);
  legend_ = new Legend(plot_);
  grid_ = closeGrid();
  stack(plot_, {grid_, legend_, said_});
  norm_rect_ = plot_->makeRect();
  factor_rect_ = plot_->makeRect();
  showCells(grid_, {}, {{norm_rect_, 0}, {factor_rect_, 1}, {map_picture_.rect, 2}, {map_picture_.bar, 2, 1}});
  lineUp({norm_rect_, factor_rect_, map_picture_.rect}, QCP::msLeft | QCP::msRight);
  plot_->addTimeRect(norm_rect_, powerText);
  plot_->addTimeRect(factor_rect_, powerText);
  plot_->addTimeRect(map_picture_.rect);
  for (QCPAxisRect* rect : {norm_rect_, factor_rect_})
    rect->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new PowerTicker));
  norm_rect_->axis(QCPAxis::atBottom)->setTickLabels(false);
  norm_rect_->axis(QCPAxis::atLeft)->setLabel(tr("norm"));
  factor_rect_->axis(QCPAxis::atLeft)->setLabel(tr("factor"));
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
  one_ = new StraightLine(norm_rect_, QStringLiteral("grid"));
  one_->setLevel(0.0);
  clip_ = new StraightLine(norm_rect_, QStringLiteral("main"));
  input_ = new StraightLine(map_picture_.rect, QStringLiteral("overlay"));
  plot_->addCursorMark(input_);

  // The plot takes its time axis from the first rect, which lies under the picture shown in its place.
  connect(plot_, &QCustomPlot::afterLayout, this, [this] {
    if (norms_) return;
    const QCPAxisRect* instead = map_ ? map_picture_.rect : factor_rect_;
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
  connect(plot_, &Plot::themeChanged, this, &GradientLabPanel::placeSettings);
  plot_->setHoverHandler([this](const QPointF& where) { return tipAt(where); });
  placeSettings();
  refresh();
}

GradientLabPanel::View GradientLabPanel::view() const { return static_cast<View>(std::max(0, view_->currentIndex())); }

Kinds GradientLabPanel::waitsFor() const {
  if (view() == View::pairs) return {Kind::jacobian_pairs};
  if (view() == View::alignment) return {Kind::alignment};
  return {Kind::jacobian, Kind::jacobian_bound, Kind::jacobian_factor};
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
  const bool hasRoom = width() >= lab_room_beside * typeScale();
  beside_->setVisible(hasRoom);
  settings_->setFixedWidth(qRound(lab_width_beside * typeScale()));
  settings_->setVisible(beside_->isChecked() && hasRoom);
}

const TraceArray* GradientLabPanel::find(const Trace& trace, Kind kind) const {
  const TraceArray* array = trace.find(key_of(kind, std::max(0, layer_->currentData().toInt())));
  return array && array->real && array->has_rows() ? array : nullptr;
}

void GradientLabPanel::fillControls() {
  control_row_->show();
  if (trace_ && !by_hand_) view_->setCurrentIndex(std::max(0, view_->findData(wanted())));
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

void GradientLabPanel::forget() { map_ = nullptr; }

void GradientLabPanel::arrange() {
  const bool map = map_ != nullptr, alone = view() == View::factors,
             factors = !map && (alone || !low_) && find(*trace_, Kind::jacobian_factor);
  norms_ = !map && !(alone && factors);
  std::vector<PictureCell> shown;
  if (norms_) shown.push_back({norm_rect_, 0, 0, 2.0});
  if (factors) shown.push_back({factor_rect_, norms_ ? 1 : 0});
  if (map) shown.insert(shown.end(), {{map_picture_.rect}, {map_picture_.bar, 0, 1}});
  const std::initializer_list<QCPLayoutElement*> all{norm_rect_, factor_rect_, map_picture_.rect, map_picture_.bar};
  showCells(grid_, all, shown);
  for (QCPLayoutElement* one : all)
    if (!one->visible()) one->setOuterRect(QRect());
  norm_rect_->axis(QCPAxis::atBottom)->setTickLabels(!factors);
  if (factors) norm_rect_->axis(QCPAxis::atBottom)->setLabel(QString());
  plot_->setLeastPicture(factors && norms_ ? 270 : 178);
  plot_->setTimeNames(*trace_);
  for (StraightLine* item : {clip_, one_}) item->setVisible(norms_);
  window_->setVisible(norms_);
  input_->setVisible(map);
  map_picture_.heatmap->setVisible(map);
}

void GradientLabPanel::rebuild() {
  fillControls();
  for (QCPAxisRect* rect : {norm_rect_, factor_rect_})
    for (QCPGraph* graph : rect->graphs()) plot_->removePlottable(graph);
  legend_->clear();
  map_ = nullptr;
  map_picture_.heatmap->clear();
  const Kind kind = view() == View::pairs ? Kind::jacobian_pairs : Kind::alignment;
  if (isMap()) map_ = find(*trace_, kind);
  arrange();
  if (map_) showMap();
  if (norms_) showBounds();
  if (const TraceArray* factors = find(*trace_, Kind::jacobian_factor); factors && factor_rect_->visible()) showFactors(*factors);
  showTraining();
}

void GradientLabPanel::moveTime() {
  if (map_) {
    const double first = static_cast<double>(rows_.front()),
                 apart = rows_.size() > 1 ? static_cast<double>(rows_.back() - rows_.front()) / static_cast<double>(rows_.size() - 1) : 1.0;
    input_->setLevel((static_cast<double>(step_) - first) / apart);
  }
  QStringList said = map_ ? saidOfMap() : saidOfBounds();
  said.removeAll(QString());
  said.removeDuplicates();
  said_->say(said.join(u' '));
}

QString GradientLabPanel::dataAsCsv() const {
  if (!trace_ || !emptyReason().isEmpty()) return {};
  StepTable table(*trace_);
  table.addSteps(map_ ? rows_ : trace_->steps);
  const auto add = [&](Kind kind, std::int64_t column, const char* name) {
    table.add(QString::fromUtf8(name), *trace_, find(*trace_, kind), column);
  };
  if (map_) {
    for (std::size_t i = 0; i < rows_.size(); ++i)
      table.add(
          (view() == View::pairs ? QStringLiteral("log10 |ds_t/ds_s| of step %1") : QStringLiteral("cosine with step %1")).arg(rows_[i]),
          *trace_, map_, static_cast<std::int64_t>(i));
    return table.csv();
  }
  add(Kind::jacobian, 0, "log10 |ds_T/ds_t|");
  add(Kind::jacobian_bound, 0, "log10 bound by singular value");
  add(Kind::jacobian_bound, 1, "log10 bound by eigenvalue");
  add(Kind::jacobian_factor, gate_factor, "log10 factor of gate");
  add(Kind::jacobian_factor, slope_factor, "log10 factor of slope");
  add(Kind::jacobian_factor, matrix_factor, "log10 factor of matrix");
  add(Kind::jacobian_factor, step_factor, "log10 factor of step");
  add(Kind::jacobian_share, 0, "share of gate");
  add(Kind::jacobian_share, 1, "share of matrix");
  for (const Run& run : pinned_)
    table.add(QStringLiteral("log10 |ds_T/ds_t| [%1]").arg(run.label), *run.trace, find(*run.trace, Kind::jacobian));
  return table.csv();
}

RECLAB_PANEL_IS(gradient_lab, GradientLabPanel)

}  // namespace reclab
