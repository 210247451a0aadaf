// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/power_colours.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reclab {
namespace {

/// Powers of ten of values from which a whole number was taken, so that all of them are below 0 and have colours of one map.
class ShiftedPowers : public PowerTicker {
 public:
  explicit ShiftedPowers(double shift) : shift_(shift) {}

 protected:
  QString getTickLabel(double tick, const QLocale& locale, QChar format, int precision) override {
    return PowerTicker::getTickLabel(tick + shift_, locale, format, precision);
  }

 private:
  double shift_;
};

}  // namespace

QString powerText(double log10) {
  return std::isfinite(log10) ? powerAsNumber(log10, 3) : log10 < 0 ? QStringLiteral("0") : QObject::tr("not finite");
}

PowerColours showPowers(Heatmap& heatmap, ColourBar& bar, const std::vector<double>& logarithms, std::int64_t units,
                        const std::vector<std::int64_t>& steps, double decades, const QString& label) {
  double high = -std::numeric_limits<double>::infinity(), low = -high;
  for (const double x : logarithms)
    if (std::isfinite(x)) high = std::max(high, x), low = std::min(low, x);
  if (!std::isfinite(high)) high = low = 0.0;
  // Where values grow beyond that many decades, those near 1, from which they grew, are to be told from them.
  const double floor = std::min(std::max(low, std::min(high - decades, 0.0)), high - 1.0), shift = std::ceil(high);
  auto shown = std::make_shared<std::vector<double>>(logarithms);
  for (double& x : *shown) x -= shift;
  heatmap.setData(std::move(shown), units, steps);
  heatmap.setScale(floor - shift, high - shift);
  bar.axis()->setTicker(QSharedPointer<QCPAxisTicker>(new ShiftedPowers(shift)));
  bar.show(heatmap, label);
  return {floor, high, low};
}

QString clippedText(const PowerColours& colours) {
  if (!(colours.least < colours.low - 1e-9)) return {};
  return QObject::tr("Colours go down to %1; smaller values, down to %2, have the lowest one.")
      .arg(powerAsNumber(colours.low, 2), powerAsNumber(colours.least, 2));
}

}  // namespace reclab
