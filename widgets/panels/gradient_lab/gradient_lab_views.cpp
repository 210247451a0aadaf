// SPDX-License-Identifier: GPL-3.0-or-later
// The pictures of the gradient lab: bounds, factors, maps, and gradients over training.
#include <algorithm>
#include <cmath>

#include "panels/gradient_lab/gradient_lab.h"
#include "panels/state_place.h"
#include "plot/parts/curves.h"
#include "plot/parts/pinned.h"

namespace reclab {

namespace {

constexpr double lab_decades = 12.0;  // of the map, below the largest
constexpr int lab_most_updates = 60;

/// A curve of the run that is shown: a column of one of its arrays.
struct LabCurve {
  Kind kind;
  std::int64_t column;
  QString text, tip;
  QPen pen;
};

}  // namespace

QCPGraph* GradientLabPanel::curve(QCPAxisRect* rect, const Trace& trace, const TraceArray& array, std::int64_t column, const QPen& pen) {
  QCPGraph* made = plot_->addCurve(rect, pen.color(), pen.widthF(), pen.style());
  fillCurve(made, trace, array, column);
  return made;
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
  QCPRange all(0.0, 0.0);
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
    // A bound may go far beyond the measured range: the axis has that range, and as much again on both sides.
    const QCPRange limit = entry.kind == Kind::jacobian ? range : QCPRange(all.lower - all.size() - 1.0, all.upper + all.size() + 1.0);
    all = {std::min(all.lower, std::max(range.lower, limit.lower)), std::max(all.upper, std::min(range.upper, limit.upper))};
    legend_->add(entry.text, entry.text, entry.pen, {made}, entry.tip);
  }
  for (const TraceArray* array : trace_->matching(prefix_of(Kind::gradient) + prefix_of(Kind::state) +
                                                  std::to_string(std::max(0, layer_->currentData().toInt())) + "/")) {
    if (!array->real || !array->has_rows() || array->row_size() != 1) continue;
    const QString name = QStringLiteral("|∂L/∂s| ") + QString::fromStdString(array->key).section(u'/', 3);
    QCPGraph* made = curve(norm_rect_, *trace_, *array, 0, theme.curve(std::max(0, placeOfState(*trace_, array->key)), 1.0));
    expandTo(all, made);
    Plot::setQuiet(made);
    legend_->add(name, name, made->pen(), {made}, tr("The norm of the loss's gradient with respect to this state."));
  }
  for (const Run& run : pinned_) {
    const TraceArray* array = find(*run.trace, Kind::jacobian);
    if (!array) {
      addPinWithout(legend_, run, theme, tr("no ∂s_T/∂s_t"));
      continue;
    }
    QCPGraph* made = curve(norm_rect_, *run.trace, *array, 0, QPen(run.colour, 1.4));
    expandTo(all, made);
    addPin(legend_, run, QPen(run.colour, 1.4), {made}, {}, tr("Its |∂s_T/∂s_t|, as measured."));
  }
  values_->fit(padded(all, 0.05, 0.5));
}

/// The effect of each factor at each step, in colours that neither the run nor its states have, and in a picture of their own the effect of
/// the whole step in pinned runs.
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
  QCPRange all(0.0, 0.0);
  int seen = 0;
  for (const LabCurve& entry : each) {
    if (entry.column == step_factor && seen < 3) continue;  // gates alone, or slope times matrix, need no sum
    QCPGraph* made = curve(factor_rect_, *trace_, factors, entry.column, entry.pen);
    if (!expandTo(all, made)) {  // a factor that this model does not have
      plot_->removePlottable(made);
      continue;
    }
    ++seen;
    made->setName(entry.text);
    legend_->add(entry.text, entry.text, entry.pen, {made}, entry.tip);
  }
  for (const Run& run : norms_ ? std::vector<Run>() : pinned_) {
    const TraceArray* array = find(*run.trace, Kind::jacobian_factor);
    if (!array) {
      addPinWithout(legend_, run, theme, tr("no factors"), notesOn(*run.trace, {Kind::jacobian_factor}));
      continue;
    }
    QCPGraph* made = curve(factor_rect_, *run.trace, *array, step_factor, QPen(run.colour, 1.4));
    expandTo(all, made);
    addPin(legend_, run, made->pen(), {made}, {}, tr("What its whole step does."));
  }
  factor_values_->fit(padded(all, 0.1, 0.02));
}

/// Where truncated backpropagation ends, and where a gradient is cut.
void GradientLabPanel::showTraining() {
  const Theme& theme = plot_->theme();
  for (StraightLine* update : updates_) plot_->removeItem(update);
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
      updates_.push_back(new StraightLine(norm_rect_, QStringLiteral("grid")));
      updates_.back()->setPen(QPen(theme.muted, 1, Qt::DotLine));
      updates_.back()->setUpright(static_cast<double>(at) + 0.5);
    }
  clip_->setPen(QPen(theme.series(3), 1.4, Qt::DashDotLine));
  clip_->setVisible(norms_ && settings_->clip() > 0.0);
  if (clip_->visible())
    legend_->add(QStringLiteral("clip"), tr("clip |∂L/∂θ|"), clip_->pen(), {clip_},
                 tr("The norm at which the gradient of all weights, |∂L/∂θ|, is clipped. The curves are of states: none of them is clipped "
                    "where it crosses the line."));
  if (settings_->clip() > 0.0) clip_->setLevel(std::log10(settings_->clip()));
}

void GradientLabPanel::showMap() {
  addPinsWithout(legend_, pinned_, plot_->theme(), tr("not in this view"),
                 tr("The map is of the run that is looked at. Maps of pinned runs are seen side by side (Ctrl+B)."));
  rows_ = stepsOf(*trace_, *map_);
  const auto units = std::ssize(rows_);
  if (view() == View::pairs) {
    colours_ = showPowers(*map_picture_.heatmap, *map_picture_.bar, *map_->real, units, rows_, lab_decades, tr("|∂s_t/∂s_s|"));
  } else {
    map_picture_.heatmap->setData(map_->real, units, rows_);
    map_picture_.heatmap->setScale(-1.0, 1.0);
    map_picture_.bar->axis()->setTicker(QSharedPointer<QCPAxisTicker>(new NumberTicker));
    map_picture_.bar->show(*map_picture_.heatmap, tr("cosine"));
  }
  map_picture_.rect->axis(QCPAxis::atLeft)->setLabel(view() == View::pairs ? tr("step s (changed)") : tr("other step"));
  map_picture_.setUnits(rows_);
}

}  // namespace reclab
