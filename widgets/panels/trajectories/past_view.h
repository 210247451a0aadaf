// SPDX-License-Identifier: GPL-3.0-or-later
// A signal's past as a state holds it: the signal over time, and over it the reconstruction from the state at the cursor.
#pragma once

#include <QComboBox>
#include <QString>
#include <QWidget>
#include <cstdint>
#include <memory>
#include <vector>

#include "plot/plot.h"
#include "trace/trace.h"

namespace reclab {

/// A view of the trajectory panel. It needs of a trace state/, signal/, basis/ and reconstruction/<layer>/<state>.
class PastView : public Plot {
  Q_OBJECT
 public:
  explicit PastView(QWidget* parent = nullptr);

  /// The state to show, or the first of the layer's that has a past where `name` is empty.
  void setState(std::shared_ptr<const Trace> trace, const QString& layer, const QString& name);
  void setStep(std::int64_t step);
  QString emptyReason() const { return reason_; }
  /// The number that matters at the cursor, long for the picture and short for the header line.
  QString sentence() const { return said_->text(); }
  QString headline() const { return headline_; }
  QString dataAsCsv() const;
  QString stateName() const { return name_; }
  /// A box for the panel's row; visible when there is more than one copy.
  QComboBox* copyChoice() const { return copy_; }
  bool severalCopies() const { return copies_ > 1; }
  QCPGraph* signalCurve() const { return signal_; }
  QCPGraph* readCurve() const { return read_; }

 signals:
  void headlineChanged();

 private:
  void rebuild();   ///< the parts that stand still: the signal and the errors
  void moveTime();  ///< the parts that move with the cursor
  void fitValues();
  void say(std::int64_t row, double error);
  QString tipAt(const QPointF& at) const;
  double valueAt(const TraceArray* array, std::int64_t row) const;
  double stepOf(std::int64_t row, std::size_t place) const;  ///< a place of the window on the time axis
  std::vector<double> readBack(std::int64_t row) const;      ///< at each place

  std::shared_ptr<const Trace> trace_;
  QString layer_, wanted_, name_, reason_, headline_;
  const TraceArray *stateArray_ = nullptr, *signalArray_ = nullptr, *basis_ = nullptr, *place_ = nullptr, *error_ = nullptr,
                   *window_ = nullptr;  // of trace_
  std::int64_t copies_ = 0, order_ = 0, step_ = 0;
  bool finite_ = true;  ///< the window is so many steps, not the whole past

  QComboBox* copy_;
  CursorText* said_;
  Legend* legend_;
  QCPAxisRect *above_, *below_;
  QCPGraph *signal_ = nullptr, *read_ = nullptr, *errors_ = nullptr, *oldest_ = nullptr;
};

}  // namespace reclab
