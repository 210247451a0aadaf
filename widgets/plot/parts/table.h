// SPDX-License-Identifier: GPL-3.0-or-later
// The data behind a picture as comma-separated values.
#pragma once

#include <QByteArray>
#include <QString>
#include <cstdint>
#include <functional>
#include <vector>

#include "trace/trace.h"

namespace reclab {

/// One cell of a CSV: quoted when it has to be.
QString csvCell(const QString& text);
/// A number that reads back to the same value; empty for NaN.
QByteArray csvNumber(double value);
inline QByteArray csvNumber(std::int64_t value) { return QByteArray::number(static_cast<qlonglong>(value)); }

/// A line a step: the step, its time, and columns of arrays that may have been recorded at other steps, with empty cells between those.
class StepTable {
 public:
  /// `named`: the column of time has the name that the sequence gives it, and is left out where times are counted in steps.
  explicit StepTable(const Trace& times, bool named = false);
  /// There is a line for each of these steps, in rising order.
  void addSteps(const std::vector<std::int64_t>& steps);
  /// `steps` are those of the rows and stay alive until csv() is called.
  void add(const QString& name, const std::vector<std::int64_t>& steps, std::function<QByteArray(std::int64_t row)> cell);
  /// A column of an array, if it has that.
  void add(const QString& name, const Trace& trace, const TraceArray* array, std::int64_t column = 0);
  QString csv() const;

 private:
  struct Column {
    QString name;
    const std::vector<std::int64_t>* steps;
    std::function<QByteArray(std::int64_t row)> cell;
  };
  const Trace& times_;
  QString time_;  ///< the name of its column; empty: there is none
  std::vector<std::int64_t> lines_;
  std::vector<Column> columns_;
};

}  // namespace reclab
