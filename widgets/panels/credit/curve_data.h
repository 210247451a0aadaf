// SPDX-License-Identifier: GPL-3.0-or-later
// The loss curves of learning rules, read from a trace.
#pragma once

#include <QString>
#include <QStringList>
#include <cstdint>
#include <vector>

#include "trace/trace.h"

namespace reclab {

struct CurveData {
  struct Rule {
    QString id;
    std::vector<double> loss;          ///< of each batch, before the weights changed; NaN from where the training ended on
    std::int64_t made = 0;             ///< steps of training
    double before = 0.0, after = 0.0;  ///< of held-out sequences; NaN where it did not come so far
    QString problem;                   ///< why it ended before all steps, a sentence; empty where it did not
  };
  std::vector<Rule> rules;
  QString command, none;  ///< the reclab line that repeats them; why there are none, a sentence
  std::int64_t steps = 0, batch = 0, order = 0, terms = 0;
  double rate = 0.0;

  CurveData() = default;
  explicit CurveData(const Trace& trace);
  QStringList ids() const;
};

}  // namespace reclab
