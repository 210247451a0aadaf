// SPDX-License-Identifier: GPL-3.0-or-later
// A map of learning rules: from left to right those with the exact gradient, stochastic, sparse and local ones; above those that go forward
// with the influence of the weights, below those whose adjoint comes back from later steps.
#pragma once

#include <memory>

#include "plot/plot.h"
#include "trace/rule_table.h"

namespace reclab {

class RuleMap : public QCPLayoutElement {
  Q_OBJECT
 public:
  explicit RuleMap(Plot* plot);
  void setTable(std::shared_ptr<const RuleTable> table) { table_ = std::move(table); }
  void setChosen(const QString& id) { chosen_ = id; }
  enum Column : std::uint8_t { exact, stochastic, sparse, local };
  static constexpr int columns = 4;
  static Column columnOf(const RuleTable::Rule& rule);
  /// "d² numbers, d³ a step" of the powers of d_s.
  static QString costOf(const RuleTable::Rule& rule);
  static QString columnName(Column column);

  /// The rule under a position in the plot's pixels; null where there is none.
  const RuleTable::Rule* ruleAt(const QPointF& position) const;
  QRectF placeOf(const QString& id) const;

 protected:
  void draw(QCPPainter* painter) override;

 private:
  struct Tile {
    const RuleTable::Rule* rule;
    QRectF box;
  };
  std::vector<Tile> tiles() const;
  /// The most tiles that a cell of a row has.
  int deepest(bool past) const;
  double headHeight() const;
  const Theme& theme() const { return static_cast<const Plot*>(mParentPlot)->theme(); }

  std::shared_ptr<const RuleTable> table_;
  QString chosen_;
};

}  // namespace reclab
