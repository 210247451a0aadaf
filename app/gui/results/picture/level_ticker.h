// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <qcustomplot.h>

#include <QStringList>
#include <vector>

namespace reclab {

/// Ticks at named places of an axis, as many as have room beside each other.
class LevelTicker : public QCPAxisTicker {
 public:
  LevelTicker(QCPAxis* axis, std::vector<double> places, QStringList names)
      : axis_(axis), places_(std::move(places)), names_(std::move(names)) {}
  static constexpr int longest = 28;  ///< characters of a name that are written

 protected:
  QVector<double> createTickVector(double step, const QCPRange& range) override;
  int getSubTickCount(double) override { return 0; }
  QString getTickLabel(double tick, const QLocale&, QChar, int) override;

 private:
  QString written(std::size_t i) const;
  QPointer<QCPAxis> axis_;
  std::vector<double> places_;
  QStringList names_;
};

}  // namespace reclab
