// SPDX-License-Identifier: GPL-3.0-or-later
// What to time: forms, lengths, batch, width, device, precision and passes, in a row or, where there is little room, under each other.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QFrame>
#include <QLabel>
#include <QToolButton>
#include <QVariantMap>
#include <vector>

#include "timing_choice.h"
#include "trace/trace.h"

namespace reclab {

/// A sheet that opens under a button and closes on a click beside it.
class Popup : public QFrame {
  Q_OBJECT
 public:
  explicit Popup(QWidget* parent);
  void openUnder(const QWidget* button);
};

class TimingChoices : public QWidget {
  Q_OBJECT
 public:
  explicit TimingChoices(QWidget* parent = nullptr);
  const TimingChoice& choice() const { return choice_; }
  /// What can be chosen for this run. Another model begins with all of its forms and its own width.
  void setRun(const RunInfo& info, const QStringList& forms);
  void setNoCuda(const QString& why);
  void setColumn(bool column);
  int rowWidth() const;  ///< what it takes in a row
  QVariantMap saved() const;
  void restore(const QVariantMap& saved);

 signals:
  void changed();

 private:
  struct Field {
    QLabel* label;
    QWidget* editor;
    bool shown = true, plain = false;  ///< plain: in a row it needs no label
  };
  void arrange();
  void showChoice();  ///< in the editors
  void chooseForms();
  void chooseLengths(bool from);
  void take(TimingChoice choice);
  QComboBox* combo(const QString& name, const QString& label, const QString& tip);

  TimingChoice choice_;
  QString model_, why_no_cuda_;
  QStringList forms_;
  std::string device_ = "cpu", dtype_ = "float64";  ///< of the run
  std::vector<Field> fields_;
  QToolButton* form_button_;
  Popup* form_popup_;
  QWidget* form_list_;
  std::vector<QCheckBox*> form_boxes_;
  QWidget* lengths_;
  QComboBox *from_, *to_, *batch_, *width_, *device_box_, *dtype_box_, *passes_;
  bool column_ = false;
};

}  // namespace reclab
