// SPDX-License-Identifier: GPL-3.0-or-later
// The texts of the gradient lab: on the step at the cursor, under the pointer, and where there is nothing to draw.
#include <algorithm>
#include <cmath>

#include "panels/gradient_lab/gradient_lab.h"
#include "plot/parts/curves.h"
#include "plot/parts/step_text.h"

namespace reclab {

namespace {

double labValue(const Trace& trace, const TraceArray* array, std::int64_t step, std::int64_t column) {
  return array ? entryOf(*array, trace.row_of_step(*array, step), column) : no_value;
}

/// |dL/dθ| over all parameters.
double labParameterNorm(const Trace& trace) {
  double norm = 0.0;
  for (const TraceArray* array : trace.matching(key_of(Kind::gradient, std::string(prefix_of(Kind::param)))))
    if (array->real)
      for (const double x : *array->real) norm = std::hypot(norm, x);
  return norm;
}

/// "0.858 = 0.736 along the gates + 0.122 through the matrix": the terms of the sum of both, in digits that add up.
QString labSum(double log10_whole, double share) {
  const double exponent = std::floor(log10_whole), whole = std::pow(10.0, log10_whole - exponent);  // from 1 to 10
  const double sum = std::round(100.0 * whole), gate = std::round(100.0 * whole * share), matrix = sum - gate;
  const auto text = [&](double hundredths) {
    return hundredths == 0.0 ? QStringLiteral("0") : powerText(std::log10(std::abs(hundredths)) - 2.0 + exponent);
  };
  const QString through = GradientLabPanel::tr("%1 through the matrix").arg(text(matrix));
  const QString along = GradientLabPanel::tr("%1 along the gates").arg(text(gate));
  if (gate < 0.0) return QStringLiteral("%1 = %2 − %3").arg(text(sum), through, along);
  return QStringLiteral("%1 = %2 %3 %4").arg(text(sum), along, matrix < 0.0 ? QStringLiteral("−") : QStringLiteral("+"), through);
}

/// The change of the gradient's length in one step, factor by factor.
QString labStep(const Trace& trace, const TraceArray& factors, const TraceArray* shares, std::int64_t step) {
  const double whole = labValue(trace, &factors, step, GradientLabPanel::step_factor),
               gate = labValue(trace, &factors, step, GradientLabPanel::gate_factor),
               slope = labValue(trace, &factors, step, GradientLabPanel::slope_factor),
               matrix = labValue(trace, &factors, step, GradientLabPanel::matrix_factor), share = labValue(trace, shares, step, 0);
  if (!std::isfinite(whole)) return {};
  const QString first = GradientLabPanel::tr("Step %1 multiplies the gradient's length by ").arg(stepText(&trace, step));
  const bool along = std::isfinite(gate), through = std::isfinite(slope + matrix);
  if (!along && !through) return {};
  if (!through) return first + GradientLabPanel::tr("%1, all of it along the gates.").arg(powerText(whole));
  const QString product = GradientLabPanel::tr("slope %1 × matrix %2").arg(powerText(slope), powerText(matrix));
  if (!along) return first + powerText(whole) + QStringLiteral(": ") + product + u'.';
  const QString lengths = GradientLabPanel::tr(
                              "What comes along the gates is a vector of length %1, what comes through the matrix one of "
                              "length %2 = %3")
                              .arg(powerText(gate), product, powerText(slope + matrix));
  if (std::isnan(share)) return first + powerText(whole) + QStringLiteral(". ") + lengths + u'.';
  return first + labSum(whole, share) + QStringLiteral(". ") + lengths +
         GradientLabPanel::tr("; they point in different directions, so each counts by its part along their sum.");
}

}  // namespace

QString GradientLabPanel::whyEmpty() const {
  if (const QString said = noRunSentence(trace_.get(), tr("what becomes of its gradients appears here")); !trace_) return said;
  for (const Kind kind : {Kind::jacobian, Kind::jacobian_pairs, Kind::jacobian_bound})
    if (trace_->has(kind)) return {};
  for (const Kind kind : {Kind::jacobian, Kind::jacobian_pairs})
    if (const QString why = whyAbsent(*trace_, kind); !why.isEmpty()) return why;
  if (const QString said = endedEarly(*trace_, tr("This run has no products of Jacobians")); !said.isEmpty()) return said;
  return tr("This run has no products of Jacobians yet: they are made while this panel is in front of others, after states and gradients.");
}

QStringList GradientLabPanel::saidOfMap() const {
  QStringList said;
  if (view() == View::pairs) {
    const bool backward = runsBackward(*trace_, layer_->currentData().toString());
    said << tr("How many times larger or smaller a change of the state at step s is by step t, in the direction that keeps most of it "
               "(the "
               "largest singular value). The diagonal, where t is s, is 1; the %1 column is |%2|.")
                .arg(backward ? tr("first") : tr("last"), backward ? QStringLiteral("∂s_0/∂s_t") : QStringLiteral("∂s_T/∂s_t"));
    said << (backward
                 ? tr("Without colour: s comes before t, where this layer, which runs from the end, has not been yet, or nothing is left.")
                 : tr("Without colour: s comes after t, or nothing is left."));
    said << clippedText(colours_);
  } else {
    said << tr(
        "An error at the last step sends a gradient back to the state of every step. The colour is the cosine between those of two "
        "steps: 1 where they point the same way, 0 where they are at right angles, −1 where they are opposite.");
  }
  said << notesOn(*trace_, {view() == View::pairs ? Kind::jacobian_pairs : Kind::alignment});
  return said;
}

QStringList GradientLabPanel::saidOfBounds() const {
  QStringList said;
  const std::int64_t last = trace_->info.length - 1;
  const QString layer = layer_->currentData().toString();
  const bool backward = runsBackward(*trace_, layer);
  const auto measured = labValue(*trace_, find(*trace_, Kind::jacobian), step_, 0);
  const TraceArray* bound = find(*trace_, Kind::jacobian_bound);
  const double singular = labValue(*trace_, bound, step_, 0),
               eigen = bound && bound->row_size() > 1 ? labValue(*trace_, bound, step_, 1) : no_value;
  const std::int64_t over = backward ? step_ : last - step_;
  const QString product = backward ? QStringLiteral("∂s_0/∂s_t") : QStringLiteral("∂s_T/∂s_t"), end = backward ? tr("start") : tr("end");
  if (over == 0) {
    said << tr("The cursor is at the %1, where %2 is the identity: move it to see what other steps keep.").arg(end, product);
  } else {
    const QString steps = over == 1 ? tr("the one step") : tr("the %1 steps").arg(grouped(over));
    QString first =
        tr("Over %1 from step %2 to the %3, |%4| is %5").arg(steps, stepText(trace_.get(), step_), end, product, powerText(measured));
    const bool same =
        std::abs(singular - eigen) <= 1e-9 * std::max(1.0, std::abs(singular));  // as of a matrix that only turns and stretches
    if (!std::isnan(singular)) first += tr("; the largest singular value lets it be at most %1").arg(powerText(singular));
    if (!std::isnan(eigen))
      first += same ? tr(", and the largest eigenvalue is as large")
                    : tr(", and the largest eigenvalue at each step, no bound from above, would make it %1").arg(powerText(eigen));
    said << first + '.';
  }
  // A view that this run lacks is named before the text on its substitute.
  if (isMap() || (view() == View::factors && !find(*trace_, Kind::jacobian_factor))) {
    const Kind kind = view() == View::pairs ? Kind::jacobian_pairs : view() == View::alignment ? Kind::alignment : Kind::jacobian_factor;
    const QString absent = whyAbsent(*trace_, kind), noted = notesOn(*trace_, {kind});
    said.prepend(!absent.isEmpty() ? absent : !noted.isEmpty() ? noted : tr("This run has none of it yet."));
    said.prepend(view() == View::pairs       ? tr("Without a map of pairs, the bounds.")
                 : view() == View::alignment ? tr("Without a map of alignment, the bounds.")
                                             : tr("Without factors, the bounds."));
  }
  if (const TraceArray* factors = find(*trace_, Kind::jacobian_factor)) {
    said << labStep(*trace_, *factors, find(*trace_, Kind::jacobian_share), step_);
    if (!factor_rect_->visible()) said << tr("The view Factors has them at all steps.");
  } else {
    said << whyAbsent(*trace_, Kind::jacobian_factor);
  }
  if (settings_->back() > 0)
    said << tr("Truncated backpropagation sees the last %1 steps before each change of the weights.").arg(grouped(settings_->back()));
  if (const double norm = labParameterNorm(*trace_); settings_->clip() > 0.0 && norm > 0.0)
    said << (norm > settings_->clip()
                 ? tr("|∂L/∂θ| = %1 is clipped: shortened %2 times.").arg(powerText(std::log10(norm)), number(norm / settings_->clip(), 3))
                 : tr("|∂L/∂θ| = %1 is not clipped.").arg(powerText(std::log10(norm))));
  said << notesOn(*trace_, {Kind::jacobian_bound, Kind::jacobian_factor});
  return said;
}

QString GradientLabPanel::makeHeadline() const {
  const double measured = labValue(*trace_, find(*trace_, Kind::jacobian), step_, 0);
  return std::isnan(measured) ? QString() : tr("|∂s_T/∂s_t| %1").arg(powerText(measured));
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
  const auto entry = map_ ? map_picture_.heatmap->at(position) : std::nullopt;
  if (!entry) return {};
  const std::int64_t t = entry->step, s = rows_[static_cast<std::size_t>(entry->unit)];
  const double value = entryOf(*map_, trace_->row_of_step(*map_, t), entry->unit);
  return view() == View::pairs
             ? tr("state of step %1, changed at step %2: |∂s_t/∂s_s| = %3")
                   .arg(stepText(trace_.get(), t), stepText(trace_.get(), s), powerText(value))
             : tr("gradients at steps %1 and %2: cosine %3").arg(stepText(trace_.get(), t), stepText(trace_.get(), s), number(value, 3));
}

}  // namespace reclab
