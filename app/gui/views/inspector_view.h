// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QScrollArea>
#include <map>
#include <string>

#include "gui/session/setup.h"
#include "panel.h"

class QComboBox;
class QFormLayout;
class QLabel;
class QPushButton;
class QSlider;
class QToolButton;
class QVBoxLayout;

namespace reclab {

class WholeBox;

/// A parameter's tooltip: its text, its range and its key, in rich text.
QString tipOf(const HyperSpec& spec);
/// The value at a slider's position 0..1000 on a hyper-parameter's range, and back.
double valueAt(const HyperSpec& spec, int position);
int positionOf(const HyperSpec& spec, double value);
/// The value so many of its steps further, for the arrow keys on the slider and in its box.
double steppedBy(const HyperSpec& spec, double value, int steps);

/// Why settings that draw weights do nothing beside these, which come from a file or a training; empty where `weights` is: they are drawn
/// from the seed.
QString whyNotDrawn(const QString& weights);
/// Why a setting has no effect on the weights that there are, a sentence; empty where it has.
QString whyIdle(const HyperSpec& spec, const ModelPtr& model, const QString& weights);
/// The settings of a model that are no sizes: real numbers and choices, in their order; `weights` as in whyNotDrawn().
std::vector<Panel::Setting> settings_beside(const ModelPtr& model, const QString& weights);

/// One editor for each row of an architecture's table, and the seed. A slider speaks while it moves.
class InspectorView : public QScrollArea {
  Q_OBJECT
 public:
  explicit InspectorView(QWidget* parent = nullptr);
  void setModel(const ModelPtr& model);
  void setSeed(std::uint64_t seed);
  /// Three sliders, those that move a run at once first, and the rest a click away.
  void setFew(bool few);
  /// Disables the settings that weights are drawn from, where they were read from a file; empty: they are drawn.
  void setWeights(const QString& file);
  /// Whether the preset brings trained weights, and whether the setup has them or drawn ones.
  void setTrained(bool there, bool trained, bool drawn);
  /// Shows the loss that the gradients are of: the choice, whether the sequence has a target, and its value in the run that is shown.
  void setLoss(const std::string& choice, bool hasTarget);
  void setLossValue(const RunInfo& run);
  QSlider* slider(const QString& key) const;
  void takeKeyboard();  ///< to the first slider in sight
  WholeBox* seedBox() const { return seed_; }
  QComboBox* lossBox() const { return loss_; }
  QString lossText() const;

 signals:
  /// gesture: the same number from the moment a slider is taken until it is let go, so that undo takes them back as one.
  void edited(QString key, QString text, bool live, int gesture);
  void seedEdited(quint64 seed, int gesture);
  void lossEdited(QString loss);
  void resetWanted();
  void trainedWanted(bool trained);  ///< the weights that came with the preset, or as they are drawn

 private:
  struct Editor {
    QWidget *label = nullptr, *cell = nullptr;
    QString tip;  ///< of the cell, when it can be edited
    std::function<void(const HyperValue&)> show;
    std::function<bool()> held = [] { return false; };
  };
  void build();
  void showWeights();
  void showTrained();
  void showLoss();
  void showFew();
  QWidget* numberEditor(const HyperSpec& spec, Editor& editor);
  QWidget* flagEditor(const HyperSpec& spec, Editor& editor);
  QWidget* choiceEditor(const HyperSpec& spec, Editor& editor);
  ModelPtr model_;
  std::map<std::string, Editor> editors_;
  std::map<QString, QSlider*> sliders_;
  QVBoxLayout* rows_ = nullptr;
  QPushButton *reset_ = nullptr, *all_ = nullptr;
  QList<QWidget*> more_;  ///< hidden where there are few
  bool few_ = false;
  WholeBox* seed_ = nullptr;
  QLabel *seedLabel_ = nullptr, *lossText_ = nullptr, *weightsText_ = nullptr;
  QToolButton* dice_ = nullptr;
  QComboBox* loss_ = nullptr;
  QWidget* trainedRow_ = nullptr;
  QPushButton *drawn_ = nullptr, *trained_ = nullptr;
  bool hasTrained_ = false, isTrained_ = false, isDrawn_ = false;
  QString weights_, lossShown_;  ///< the file they come from
  std::string lossChoice_ = "auto";
  bool hasTarget_ = false;
  int gesture_ = 0;
  bool moved_ = false;    ///< the slider that is held
  bool showing_ = false;  ///< values are being shown, not edited
};

}  // namespace reclab
