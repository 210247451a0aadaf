// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <qcustomplot.h>

#include "plot/theme.h"

namespace reclab {

/// Ticks at whole steps, or, when time is an even grid of something else, at round times.
class StepTicker : public QCPAxisTicker {
 public:
  /// The time of step s is origin + s * spacing.
  void setTime(double origin, double spacing) { origin_ = origin, spacing_ = spacing, whole_ = counted_ = origin == 0.0 && spacing == 1.0; }
  /// Steps are counted from a number on.
  void setFirst(double number) { origin_ = number, spacing_ = 1.0, whole_ = counted_ = true; }
  /// Steps before the last one.
  void setLag(double last) { origin_ = last, spacing_ = -1.0, whole_ = true, counted_ = false; }
  void generate(const QCPRange& range, const QLocale& locale, QChar formatChar, int precision, QVector<double>& ticks,
                QVector<double>* subTicks, QVector<QString>* tickLabels) override;

 protected:
  double getTickStep(const QCPRange& range) override;
  int getSubTickCount(double) override { return 0; }

 private:
  double origin_ = 0.0, spacing_ = 1.0;
  bool whole_ = true;    ///< ticks are whole steps
  bool counted_ = true;  ///< and written as they are everywhere else
};

/// Ticks at round numbers, written as number() writes them.
class NumberTicker : public QCPAxisTicker {
 protected:
  int getSubTickCount(double) override { return 0; }
  QString getTickLabel(double tick, const QLocale&, QChar, int) override { return number(tick, 6); }
};

/// Ticks of an axis that holds log10 of something: whole powers of ten ("10⁻⁴⁰⁰"), or round numbers when few powers are in sight.
class PowerTicker : public QCPAxisTicker {
 protected:
  double getTickStep(const QCPRange& range) override;
  QVector<double> createTickVector(double step, const QCPRange& range) override;
  int getSubTickCount(double) override { return 0; }
  QString getTickLabel(double tick, const QLocale&, QChar, int) override;
};

}  // namespace reclab
