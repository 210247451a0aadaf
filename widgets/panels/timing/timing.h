// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QButtonGroup>
#include <QProgressBar>
#include <QToolButton>
#include <functional>

#include "panels/described.h"
#include "panels/timing/timing_choices.h"
#include "panels/timing/timing_data.h"
#include "plot/plot_panel.h"

namespace reclab {

class PointNames;

/// A laboratory for the execution forms: the time, memory, distance to the machine's roof and error of each, against the length.
class TimingPanel : public Described<TimingPanel, PlotPanel> {
  Q_OBJECT
 public:
  enum class View { time, throughput, memory, roofline, error, newton };
  /// Forward and backward together, one of them, or both apart.
  enum class Pass { sum, forward, backward, apart };

  explicit TimingPanel(QWidget* parent = nullptr);
  static PanelAbout describe() {
    return {.id = QStringLiteral("timing"),
            .title = tr("Timing"),
            .hint = tr("How long each execution form of this model takes here, against the length of the sequence: its slope is the "
                       "exponent. Also what memory it takes, how near it comes to what this machine can do at most, how exact it is, and "
                       "how Newton's forms converge."),
            .needs = {Kind::timing}};
  }
  QVariantMap choices() const override;
  void setChoices(const QVariantMap& saved) override;
  QString dataAsCsv() const override;

  /// A view without data is kept in mind and shown once there are; until then it is the time.
  void setView(View view);
  View view() const;
  void setPass(Pass pass);
  void setStudyState(const std::string& study, const StudyState& state) override;
  void setNoCuda(const QString& why) override { choices_->setNoCuda(why); }
  const TimingChoices::Values& choice() const { return choices_->choice(); }
  /// The text under the plot: the circumstances of the timing, or its progress.
  QString caption() const { return caption_->text(); }
  QString sentence() const { return said_->text(); }
  /// The tooltip at a position of the plot.
  QString tipAt(const QPointF& position) const;
  /// The last place of a form at a length, in the plot's pixels; null when it is not there.
  QPointF pixelOf(const QString& form, double length) const;

 protected:
  QString whyEmpty() const override;
  void rebuild() override;
  void forget() override;
  QString makeHeadline() const override;
  QString subject() const override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void ask(StudyChoice::Act act);
  struct Point {
    QCPGraph* graph;
    double x, y;
    std::size_t form, row;
    QString tip;  ///< of a pinned run; the others have theirs from form and row
  };
  using Quantity = std::function<Measured(const TimedForm&, const Measured& seconds)>;

  void makeControls();
  void arrange();
  void noteRun();
  bool has(View view) const;
  bool apart() const;
  const Measured& passOf(const TimedForm& form) const;
  void showViews();
  void showCaption();
  QString doing() const;
  void showButtons();
  void prepare(const QString& x, const QString& y, QSharedPointer<QCPAxisTicker> xTicks, QSharedPointer<QCPAxisTicker> yTicks);
  void addPoint(QCPGraph* graph, double x, double y, std::size_t form, std::size_t row, const QString& tip = {});
  void reach(double x, double y);
  QList<QCPLayerable*> addMeasured(std::size_t index, const Measured& values, Qt::PenStyle style);
  void drawAgainstLength(const Quantity& quantity);
  void drawRoofline();
  void drawError();
  void drawNewton();
  void copyCommand();

  Timings timings_;
  View wanted_ = View::time;
  Pass pass_ = Pass::sum;
  bool changed_ = false;
  StudyState state_;
  std::vector<Point> points_;
  double least_x_ = 0, most_x_ = 0, least_y_ = 0, most_y_ = 0;  ///< the ranges of the drawn points

  QCPAxisRect* rect_;
  Paragraph *said_, *caption_;
  PointNames* names_;
  QWidget *segments_, *strip_;
  std::vector<QToolButton*> segment_;
  QComboBox *view_box_, *pass_box_;
  QWidget* pass_row_;
  QLabel* pass_label_;
  QToolButton* more_;
  Popup* popup_;
  QPushButton* time_;
  QProgressBar* bar_;
  TimingChoices* choices_;
  QAction* copy_command_;
};

}  // namespace reclab
