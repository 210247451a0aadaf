// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of a table of results.
#pragma once

#include <QList>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gui/results/result_choice.h"
#include "plot/parts/layout.h"
#include "plot/plot.h"

namespace reclab {

class Strands;

class ResultPicture : public Plot {
  Q_OBJECT
 public:
  static constexpr int mostPictures = 12;  ///< of a picture each
  explicit ResultPicture(QWidget* parent = nullptr);

  /// `about`: a text over the picture; `runs`: as an atlas has them.
  void setResults(const ResultTablePtr& table, const ResultChoice& choice, const QString& about = {},
                  const std::map<std::string, int>& runs = {});
  void clearResults();
  bool isEmpty() const { return !table_; }
  const ResultSummary& summary() const { return summary_; }
  bool averages() const;    ///< some of its numbers are means of several rows
  QString csv() const;      ///< the numbers of the picture
  QString subject() const;  ///< "loss over seq-length, a curve each for preset"
  QString caption() const { return caption_->text(); }
  /// The rows under a position, in its pixels.
  std::vector<std::int64_t> rowsAt(const QPointF& position) const;
  QString tipAt(const QPointF& position) const;
  /// The last place of a group of the summary; null where it is not drawn. Of parallel coordinates a row's end.
  QPointF placeOf(std::size_t group) const;

 signals:
  void rowsPicked(const std::vector<std::int64_t>& rows, QPoint where);  ///< where: on the screen

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct Mark {
    const QCPAxisRect* rect;
    double x, y;
    std::size_t group;
  };
  struct Cell {
    QCPAxisRect* rect;
    QCPTextElement* title;
  };
  void rebuild();
  void place(int pictures, bool with_bar, bool with_titles);
  void drawMap();
  void drawCurves();
  void drawRanking();
  void drawPoints();
  void drawParallel();
  QPen penOf(std::size_t level, std::size_t levels) const;        ///< of a level of the axis of curves and colours
  double drawn(double value) const;                               ///< its logarithm where that is asked for
  static QSharedPointer<QCPAxisTicker> valueTicker(bool powers);  ///< of an axis of values, or of their logarithms
  std::vector<std::uint32_t> apartLevels() const;
  QString nameOf(const std::string& axis, std::size_t level) const;  ///< "task = copy"
  std::optional<std::size_t> groupAt(const QPointF& position) const;
  QString tipOf(std::size_t group) const;
  QString meanOver() const;
  QString intervals(const QString& drawn_as) const;
  std::size_t placeIn(const std::string& axis) const;  ///< of the summary's axes

  ResultTablePtr table_;
  QString about_, over_;  ///< over_: the axes over which means are taken, in words; empty where none is of several rows
  std::map<std::string, int> runs_;
  ResultChoice choice_;
  SummaryPlan plan_;
  ResultSummary summary_, against_;  ///< against_: of the measure at the bottom of points, with the same groups
  std::vector<Mark> marks_;
  std::vector<std::int64_t> strandRows_;  ///< of the table, of each line
  Strands* strands_ = nullptr;
  Paragraph *caption_, *note_;
  Legend* legend_;
  QCPLayoutGrid *outer_, *grid_;
  ColourBar* bar_;
  std::vector<Cell> cells_;
  QPointF pressed_;
};

}  // namespace reclab
