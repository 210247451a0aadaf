// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QScrollArea>
#include <map>
#include <string>

#include "gui/setup.h"

class QFormLayout;
class QPushButton;
class QSlider;
class QSpinBox;
class QVBoxLayout;

namespace reclab {

/// Where a slider's position 0..1000 is on a hyper-parameter's range, and back.
double valueAt(const HyperSpec& spec, int position);
int positionOf(const HyperSpec& spec, double value);

/// One editor for each row of an architecture's table, and the seed. A slider speaks while it moves.
class InspectorView : public QScrollArea {
  Q_OBJECT
 public:
  explicit InspectorView(QWidget* parent = nullptr);
  void setModel(const ModelPtr& model);
  void setSeed(std::uint64_t seed);
  QSlider* slider(const QString& key) const;
  QSpinBox* seedBox() const { return seed_; }

 signals:
  /// gesture: the same number from the moment a slider is taken until it is let go, so that undo takes them back as one.
  void edited(QString key, QString text, bool live, int gesture);
  void seedEdited(quint64 seed, int gesture);
  void resetWanted();

 private:
  struct Editor {
    QWidget* label = nullptr;
    std::function<void(const HyperValue&)> show;
    std::function<bool()> held = [] { return false; };
  };
  void build();
  QWidget* numberEditor(const HyperSpec& spec, Editor& editor);
  QWidget* flagEditor(const HyperSpec& spec, Editor& editor);
  QWidget* choiceEditor(const HyperSpec& spec, Editor& editor);
  ModelPtr model_;
  std::map<std::string, Editor> editors_;
  std::map<QString, QSlider*> sliders_;
  QVBoxLayout* rows_ = nullptr;
  QPushButton* reset_ = nullptr;
  QSpinBox* seed_ = nullptr;
  int gesture_ = 0;
  bool moved_ = false;    ///< the slider that is held
  bool showing_ = false;  ///< values are being shown, not edited
};

}  // namespace reclab
