// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QScrollArea>
#include <vector>

#include "panel.h"

class QDoubleSpinBox;
class QSpinBox;
class QVBoxLayout;

namespace reclab {

/// The column beside the picture of the gradient lab: the settings of the model, and those of training that are drawn on the same axes.
class LabSettings : public QScrollArea {
  Q_OBJECT
 public:
  explicit LabSettings(QWidget* parent = nullptr);
  /// Sets one slider or list each; one that is being held keeps its place.
  void setSettings(const std::vector<Panel::Setting>& settings);

  /// Truncated backpropagation goes back over so many steps after every so many; 0: over all of them.
  int every() const;
  int back() const;
  double clip() const;  ///< 0: none
  void setTruncation(int every, int back, double clip);

 signals:
  void wanted(const QString& key, const QString& value, bool live, int gesture);
  void truncationChanged();

 private:
  struct Editor {
    Panel::Setting setting;
    QWidget* cell = nullptr;
    std::function<void(const Panel::Setting&)> show;
  };
  Editor number(const Panel::Setting& setting);
  Editor choice(const Panel::Setting& setting);
  std::vector<Editor> editors_;
  QWidget* cells_;
  QVBoxLayout* rows_;
  QSpinBox *every_, *back_;
  QDoubleSpinBox* clip_;
  int gesture_ = 0;
  bool showing_ = false;
};

}  // namespace reclab
