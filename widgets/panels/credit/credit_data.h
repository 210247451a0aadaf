// SPDX-License-Identifier: GPL-3.0-or-later
// The data of the credit panel: the gradients of learning rules beside the true ones, read from a trace.
#pragma once

#include <QString>
#include <QStringList>
#include <cstdint>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace reclab {

/// The angle of a cosine in degrees, 0 to 180; NaN where there is none.
double angleOf(double cosine);

struct CreditData {
  /// Values by step, or by delay; NaN where the true gradient is 0.
  using Values = std::vector<double>;
  struct Rule {
    QString id;
    bool exact = false;        ///< its gradient is the true one for this model
    std::int64_t repeats = 1;  ///< with other signs
    double bytes = 0.0, seconds = 0.0;
    double angle_of_sum = 0.0;        ///< degrees, of the gradient of the whole loss
    Values angle, ratio;              ///< degrees, and |estimate| / |truth|, of each step's loss by all weights
    Values bias, deviation;           ///< over the norm of the true gradient
    Values delay_angle, delay_ratio;  ///< of weights that act so many steps before the loss
    struct Weight {
      QString name;
      Values angle, ratio;  ///< as those of all weights, of one parameter
    };
    std::vector<Weight> weights;
  };
  std::vector<Rule> rules;
  std::vector<std::int64_t> steps;
  QString command, none;  ///< the reclab line that repeats it; why there is no credit, a sentence
  std::int64_t repeats = 0, signs = 0, delays = 0, order = 0, terms = 0;

  CreditData() = default;
  explicit CreditData(const Trace& trace);
  const Rule* find(const QString& id) const;
  QStringList ids() const;
  /// Whether the loss of the step has a gradient.
  bool counts(std::int64_t step) const;
  /// The nearest step whose loss has one, -1 where none has.
  std::int64_t nearestCounted(std::int64_t step) const;
};

}  // namespace reclab
