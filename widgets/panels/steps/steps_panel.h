// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QComboBox>
#include <QSlider>
#include <QTimer>
#include <QToolButton>

#include "panels/described.h"
#include "panels/steps/schedule_view.h"
#include "plot/plot_panel.h"

namespace reclab {

/// The reason why a form is parallel: for a short sequence, its pieces of work, their dependencies, and round by round those that can run
/// side by side.
class StepsPanel : public Described<StepsPanel, PlotPanel> {
  Q_OBJECT
 public:
  explicit StepsPanel(QWidget* parent = nullptr);
  static PanelAbout describe() {
    return {.id = QStringLiteral("steps"),
            .title = tr("Parallel form"),
            .hint = tr("Why a form is parallel: the pieces of work it falls into for the first few steps, which of them wait for which, "
                       "and what runs side by side, round by round."),
            .needs = {Kind::schedule},
            .places = {.views = {}, .named = tr("a form"), .example = "scan"}};
  }
  void setPinned(const std::vector<Run>& runs) override;
  /// The form that a hand chose, also of a model that does not have it; its box is filled only once the forms are laid out.
  QVariantMap choices() const override;
  void setChoices(const QVariantMap& saved) override;
  QString dataAsCsv() const override;
  ScheduleView* view() const { return view_; }
  QString words() const { return said_->text() + u' ' + why_->text(); }
  bool playing() const { return clock_.isActive(); }

 protected:
  QString whyEmpty() const override;
  void rebuild() override;
  void forget() override;
  void dropChoice(const QString&) override { chosen_.clear(); }
  void moveTime() override;
  QString makeHeadline() const override;
  QString subject() const override;
  bool eventFilter(QObject* watched, QEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  int length() const { return steps_->currentData().toInt(); }  ///< the steps that are chosen
  bool outOfDate() const;                                       ///< the trace has no schedule, or one of another length than is chosen
  void ask();
  void choose(const QString& form);
  void setPosition(int position);
  void setPlaying(bool on);
  void advance();
  void say();
  void point(const QPointF& at);  ///< the mouse is there
  QString worded(const StepSchedule& schedule, bool in_full = false) const;
  QString whole(const StepSchedule& schedule) const;
  void arrange();

  QComboBox *forms_, *steps_, *speed_;
  QToolButton *back_, *play_, *forward_;
  QSlider* round_;
  QWidget *choices_, *playing_row_;
  QBoxLayout* rows_;
  ScheduleView* view_;
  Paragraph *said_, *why_;
  QTimer clock_;
  QString chosen_, form_;  ///< by hand, empty for none; and in the picture
  bool pinned_ = false;    ///< there are runs that this panel does not show, which it says
  int held_ = -1;          ///< the node whose cone a click keeps
  std::optional<StepSchedule> stepByStep_;
};

}  // namespace reclab
