// SPDX-License-Identifier: GPL-3.0-or-later
// The choices of a timing: forms, lengths, batch, width, device, precision and passes, in a row or, where there is little room, under each
// other.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QToolButton>
#include <QVariantMap>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "popup.h"
#include "trace/trace.h"

namespace reclab {

class TimingChoices : public QWidget {
  Q_OBJECT
 public:
  explicit TimingChoices(QWidget* parent = nullptr);
  /// Values by the fields of the study: "forms" (empty: all) and "lengths", between commas, "batch", "width", "device" and "dtype" (empty:
  /// as the run), "forward_only".
  using Values = std::map<std::string, std::string>;
  static Values usual();
  /// What is timed. Forms and width that were chosen for another model than the run's, and a device that is not there, are left out.
  const Values& choice() const { return choice_; }
  /// Sets the run, which decides what there is to choose from. What was chosen stays: forms and width are in force again with a run of the
  /// model that they were chosen for.
  void setRun(const RunInfo& info, const QStringList& forms);
  void setNoCuda(const QString& why);
  void setColumn(bool column);
  int rowWidth() const;  ///< the width of all choices in a row
  /// What was chosen by hand, whichever run there is, so that a panel that is out of sight keeps it while runs come and go.
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
  void take(Values kept);
  Values inForce() const;  ///< of what was chosen, with this run
  void choose(const std::string& key, const QString& value);
  QStringList list(const char* key) const { return QString::fromStdString(choice_.at(key)).split(u',', Qt::SkipEmptyParts); }
  QComboBox* combo(const std::string& key, const QString& name, const QString& label, const QString& tip,
                   const std::vector<std::pair<QString, QString>>& offered = {});

  Values kept_ = usual();                            ///< as chosen by hand
  Values choice_ = usual();                          ///< of these, those in force
  Values own_{{"device", "cpu"}, {"dtype", "f64"}};  ///< of the run
  QString model_;                                    ///< of the run
  QString of_;                                       ///< the model that forms and width were chosen for; "" where neither was
  QString why_no_cuda_;
  bool cuda_ = true;  ///< whether the run's machine has a device; unknown without a run
  QStringList forms_;
  std::vector<Field> fields_;
  QToolButton* form_button_;
  Popup* form_popup_;
  QWidget* form_list_;
  std::vector<QCheckBox*> form_boxes_;
  QWidget* lengths_;
  QComboBox *from_, *to_;
  std::map<std::string, QComboBox*> boxes_;  ///< by their keys
  bool column_ = false;
};

}  // namespace reclab
