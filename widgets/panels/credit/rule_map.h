// SPDX-License-Identifier: GPL-3.0-or-later
// A map of learning rules: from left to right those with the exact gradient, stochastic ones, sparse ones, local ones, and those that are
// biased otherwise; above those that go forward with the influence of the weights, below those whose adjoint comes back from later steps.
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
  enum Column : std::uint8_t { exact, stochastic, sparse, local, biased };
  static constexpr int columns = 5;
  static Column columnOf(const RuleTable::Rule& rule);
  /// "dₛ² numbers, K dₛ³ a step": the leading terms of the numbers kept and of the operations of a step, for a full recurrent matrix.
  /// `brief`: "dₛ², K dₛ³".
  static QString costOf(const RuleTable::Rule& rule, bool brief = false);
  static QString columnName(Column column);

  /// The rule under a position in the plot's pixels; null where there is none.
  const RuleTable::Rule* ruleAt(const QPointF& position) const;
  QRectF placeOf(const QString& id) const;
  /// Of a rule's name, no higher than its tile where that can be read.
  QFont nameFont(const QRectF& tile) const;

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
