// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QCheckBox>
#include <QGridLayout>
#include <QProgressBar>
#include <QSpinBox>
#include <QToolButton>
#include <array>
#include <memory>

#include "panels/credit/credit_data.h"
#include "panels/credit/curve_data.h"
#include "panels/credit/rule_map.h"
#include "panels/described.h"
#include "plot/parts/layout.h"
#include "plot/plot_panel.h"
#include "plot/value_axis.h"
#include "popup.h"

namespace reclab {

/// The gradients of online learning rules beside the true one: step by step, by delay, by parameter, their bias and deviation, what they
/// cost; their loss curves, each training the same model; and a map of the rules there are.
class CreditPanel : public Described<CreditPanel, PlotPanel> {
  Q_OBJECT
 public:
  explicit CreditPanel(QWidget* parent = nullptr);
  static PanelAbout describe() {
    return {.id = QStringLiteral("credit"),
            .title = tr("Credit"),
            .hint = tr("How near the gradients of learning rules come to the true one: the angle and the ratio of norms at every step, by "
                       "delay and by parameter, their bias, their noise and their cost; and the losses of the same model trained by each."),
            .needs = {Kind::credit, Kind::rule_curve},
            .places = {.views = views(), .named = {}}};
  }
  void setStudyState(const std::string& study, const StudyState& state) override;
  void setResult(const std::string& study, const StudyResult& result, const QString& problem) override;
  QVariantMap choices() const override;
  void setChoices(const QVariantMap& saved) override;
  QString dataAsCsv() const override;

  enum class View : std::uint8_t { steps, delays, parameters, noise, cost, training, rules };
  View view() const;
  static const QStringList& views();  ///< their names, in their order
  const CreditData& data() const { return data_; }
  QString said() const { return said_->text(); }
  RuleMap* map() const { return map_; }
  QCPAxisRect* upperRect() const { return upper_; }
  QCPAxisRect* lowerRect() const { return lower_; }
  QCPAxisRect* costRect() const { return cost_; }
  const CurveData& curves() const { return curves_; }
  QCPAxisRect* trainingRect() const { return training_; }
  const Heatmap* delayMap() const { return delays_picture_.heatmap; }
  const Heatmap* parameterMap() const { return weights_picture_.heatmap; }
  QString tipAt(const QPointF& position) const;
  /// The rules that a comparison would have: those that are chosen and take this model.
  QStringList asked() const;
  /// The same of a training by rules.
  QStringList trainedRules() const;

 protected:
  QString whyEmpty() const override;
  void rebuild() override;
  void forget() override;
  void moveTime() override;
  QString makeHeadline() const override;
  QString subject() const override;
  void dropChoice(const QString&) override { by_hand_ = false; }
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void makeControls();
  void fillRules();
  void showControls();
  void arrangeControls();
  void askRules();
  void ask(StudyChoice::Act act);
  std::vector<std::pair<std::string, std::string>> values() const;
  bool outOfDate() const;  ///< the credit that is shown is of other choices
  const StudyState& state() const { return view() == View::training ? training_state_ : state_; }  ///< of the study of the view

  static QStringList usuallyTrained() { return {QStringLiteral("bptt"), QStringLiteral("uoro"), QStringLiteral("snap")}; }
  void makeTrainingSheet();
  std::array<QComboBox*, 8> sheetBoxes() const;
  void fillTrainedRules();
  std::vector<std::pair<std::string, std::string>> trainingValues() const;
  bool curvesOutOfDate() const;
  QString whyNoCurves() const;
  void showTraining();
  QString saidOfTraining() const;
  QString trainingAsCsv() const;
  QString tipOfTraining(const QPointF& position) const;
  QString doing() const;
  QString nameOf(const QString& rule) const;
  const RuleTable::Rule* factsOf(const QString& rule) const;
  QString chosenRule() const;  ///< of the box, where the view is of one rule
  bool showsRatios() const;    ///< in the maps, in place of angles
  QPen penOf(std::size_t rule) const;

  bool isLow() const;  ///< too low for two pictures above each other
  void arrange();
  void showSteps();
  void showDelays();
  /// [rows, columns] of a map, of angles in degrees or of ratios.
  void fillMap(const MapPicture& picture, std::vector<double> values, std::int64_t rows, const std::vector<std::int64_t>& columns);
  void showParameters();
  void showCost();
  void placeNames();  ///< of the points of the costs, when the plot has been laid out
  void showMap();
  void drawTimes(QCPAxisRect* rect, const std::function<double(const CreditData::Rule&, std::size_t)>& value, bool legend);
  QString saidOfSteps() const;
  QString saidOfDelays() const;
  QString saidOfNoise() const;
  QString saidOfParameters() const;
  QString saidOfCost() const;
  QString cardOf(const RuleTable::Rule& rule) const;
  static QString costByEquations(const RuleTable::Rule& rule);

  QComboBox *view_, *rule_, *measure_, *repeats_, *delays_, *order_, *terms_, *train_steps_, *train_rate_, *train_batch_;
  QSpinBox* signs_;
  QToolButton* more_;
  QPushButton* compare_;
  QProgressBar* bar_;
  Popup *popup_, *training_popup_;
  QGridLayout* trained_list_;
  std::vector<QCheckBox*> trained_boxes_;
  QVBoxLayout* rule_list_;
  std::vector<QCheckBox*> rule_boxes_;
  QAction* copy_command_;

  QCPLayoutGrid* grid_;
  QCPAxisRect *upper_, *lower_, *cost_, *training_;
  MapPicture delays_picture_, weights_picture_;
  RuleMap* map_;
  ValueAxis *upper_values_, *lower_values_;
  StraightLine *right_angle_, *one_;
  std::vector<QCPItemText*> names_;  ///< beside the points of the costs
  CursorText* said_;

  CreditData data_;  // of trace_
  CurveData curves_;
  std::shared_ptr<const RuleTable> table_;
  StudyState state_, training_state_;
  QString problem_, asked_of_;  ///< why there is no table of rules; the run that it was asked for
  QStringList chosen_{QStringLiteral("uoro"), QStringLiteral("snap")};
  QStringList trained_ = usuallyTrained();
  QString of_rule_;
  QString clipped_;       ///< a sentence on values with the lowest colour of the map that is shown; empty where there are none
  bool by_hand_ = false;  ///< the view was chosen here
  bool of_one_ = false;   ///< the view is of one rule, of those in the box
  bool low_ = false;      ///< the plot was too low for two pictures when it was laid out last
};

}  // namespace reclab
