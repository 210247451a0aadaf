// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "panels/described.h"
#include "plot/plot_panel.h"
#include "plot/value_axis.h"
#include "trace/learning.h"

namespace reclab {

class StraightLine;

/// The course of trainings, step by step: loss or metric beside that of the best constant, and below it the gradient's norm before and
/// after clipping, the change of each weight, or the rate. A click looks at the weights of that step.
class LearningPanel : public Described<LearningPanel, PlotPanel> {
  Q_OBJECT
 public:
  explicit LearningPanel(QWidget* parent = nullptr);
  static PanelAbout describe() {
    // It needs nothing of a run.
    return {.id = QStringLiteral("learning"),
            .title = tr("Learning"),
            .hint = tr("How training goes, step by step: the loss falls below what the best constant has, or it does not. Click on a curve "
                       "to look at the weights that its run had at that step."),
            .needs = {Kind::input}};
  }
  bool isOfRun() const override { return false; }
  QString fileModel(const QString& model) const override;
  void setLearning(std::shared_ptr<const Learning> learning);
  void setResult(const std::string& study, const StudyResult& result, const QString& problem) override;
  void setPinned(const std::vector<Run>&) override {}
  void holdAxes(bool) override {}
  QVariantMap choices() const override;
  void setChoices(const QVariantMap& saved) override;
  FigureDrawing drawing(const FigureStyle& style) override;
  QString dataAsCsv() const override;

  enum class Lower : std::uint8_t { norms, changes, rate };
  QString verdict() const { return sentence_->text(); }
  QString note() const { return note_->text(); }
  QCPAxisRect* upper() const { return upper_; }
  QCPAxisRect* lower() const { return lower_; }
  QString tipAt(const QPointF& position) const;

 protected:
  QString whyEmpty() const override;
  void rebuild() override;
  QString subject() const override;
  QString makeHeadline() const override;

 private:
  static constexpr std::size_t most_named_weights = 8;
  bool showsMetric() const { return what_->currentIndex() == 1; }
  bool logarithmic() const;
  QString judged() const;
  QString noted() const;
  QString nameOf(const LearningCurve& curve) const;
  const LearningCurve& ofTheLine() const;
  void nameUpper();
  std::uint64_t trainingAt(const QPointF& position) const;
  void drawTraining(const LearningCurve& curve, const QPen& pen, bool current);
  void drawChanges(const LearningCurve& curve);
  void drawMark();
  void fitAxes();
  void pick(const QPointF& position, bool moving);
  std::shared_ptr<const Learning> learning_;
  Paragraph* sentence_;
  QCPAxisRect *upper_, *lower_;
  StraightLine *upper_mark_, *lower_mark_, *clip_;
  ValueAxis *upper_values_, *lower_values_;
  Paragraph* note_;
  QComboBox *what_, *below_;
  std::uint64_t picked_ = 0;  ///< the training on whose curve the mouse was pressed
};

}  // namespace reclab
