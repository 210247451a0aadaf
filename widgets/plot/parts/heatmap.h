// SPDX-License-Identifier: GPL-3.0-or-later
// An array of units over time as colours, thinned to the pixels there are.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plot/plot.h"

namespace reclab {

/// The values of an array as real numbers: itself, or the moduli of complex entries.
std::shared_ptr<const std::vector<double>> realValues(const TraceArray& array);

/// Values [rows, units], row-major, over the steps of the rows. Keys are steps, values are units (unit j covers j - 0.5 to j + 0.5). Values
/// that share a pixel are averaged; NaN is left out. If there are very many rows (100,000 x 256), setData() keeps a coarse copy, made from
/// two rows in each of its bins, for the whole view; a closer view reads the rows themselves.
class Heatmap : public QCPAbstractPlottable {
  Q_OBJECT
 public:
  Heatmap(QCPAxis* keyAxis, QCPAxis* valueAxis);
  void setData(std::shared_ptr<const std::vector<double>> values, std::int64_t units, const std::vector<std::int64_t>& steps);
  void clear();
  /// The range that colours stand for. If low < 0 < high, the diverging map is used and the range made symmetric.
  void setScale(double low, double high);
  double low() const { return low_; }
  double high() const { return high_; }
  bool isDiverging() const { return low_ < 0.0 && high_ > 0.0; }
  /// The range of the data (of the rows that the coarse copy is made from), NaN left out; 0 and 0 when there is none.
  double dataLow() const { return data_low_; }
  double dataHigh() const { return data_high_; }
  std::int64_t units() const { return units_; }
  struct Entry {
    std::int64_t step = 0, unit = 0;
    double value = 0.0;
  };
  /// The entry under a position in the plot's pixels; nothing outside.
  std::optional<Entry> at(const QPointF& position) const;
  const ColourMap& colours() const;

  double selectTest(const QPointF&, bool, QVariant* = nullptr) const override { return -1; }
  QCPRange getKeyRange(bool& found, QCP::SignDomain) const override;
  QCPRange getValueRange(bool& found, QCP::SignDomain, const QCPRange&) const override;

 protected:
  void draw(QCPPainter* painter) override;
  void drawLegendIcon(QCPPainter*, const QRectF&) const override {}

 private:
  std::int64_t rowOf(double step) const;
  QImage rendered(const QCPRange& keys, const QCPRange& range, QSize size) const;

  std::shared_ptr<const std::vector<double>> values_;
  std::vector<std::int64_t> steps_;
  std::int64_t units_ = 0;
  std::vector<float> coarse_;  // one row for every coarse_rows_, when there are very many
  std::int64_t coarse_rows_ = 0;
  double low_ = 0.0, high_ = 1.0, data_low_ = 0.0, data_high_ = 0.0;
  // The picture drawn last, and the range and size that it was drawn for.
  QImage image_;
  QCPRange image_keys_, image_values_;
  QSize image_size_;
  const ColourMap* image_map_ = nullptr;
};

/// The bar with the values of a heatmap's colours.
class ColourBar : public QCPColorScale {
  Q_OBJECT
 public:
  explicit ColourBar(Plot* plot);
  void show(const Heatmap& heatmap, const QString& label);
};

}  // namespace reclab
