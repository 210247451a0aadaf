// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QComboBox>
#include <QWidget>

#include "gui/session/kept/stream_files.h"
#include "plot/plot.h"
#include "plot/value_axis.h"

namespace reclab {

/// The errors of all predictors of a stream as curves over its steps, with their names: the mean error of the last ones, or the regret of
/// the learners.
class StreamCurvesView : public QWidget {
  Q_OBJECT
 public:
  explicit StreamCurvesView(QWidget* parent = nullptr);
  /// Hidden where there are no curves.
  void show(const StreamNumbers& numbers);
  /// The line of a predictor, here and in the table: a colour for each learner, and grey for those that do not learn.
  static QPen penOf(const Theme& theme, const std::vector<StreamRow>& rows, std::size_t row);
  Plot* plot() const { return plot_; }
  Legend* legend() const { return legend_; }
  QComboBox* choice() const { return what_; }

 signals:
  void chosen();

 private:
  enum What { errors, regret };
  void draw();
  bool drawsRegret() const;
  StreamNumbers numbers_;
  QComboBox* what_;
  Plot* plot_;
  Legend* legend_;
  QCPAxisRect* rect_;
  ValueAxis* values_;
};

}  // namespace reclab
