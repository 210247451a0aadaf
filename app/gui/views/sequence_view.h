// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <functional>
#include <map>
#include <string>

#include "gui/session/setup.h"

class QCheckBox;
class QComboBox;
class QFormLayout;
class QLabel;
class QMenu;
class QPushButton;
class QSpinBox;
class QStackedWidget;
class QToolButton;

namespace reclab {

class SeriesView;
class WholeBox;

/// The model's input: a file and how it is read, or a task; with a plot of it.
class SequenceView : public QWidget {
  Q_OBJECT
 public:
  explicit SequenceView(QWidget* parent = nullptr);
  void setLibrary(const LibraryPtr& library);
  /// Shows a sequence that is loaded; its editors say how it was loaded.
  void setSequence(const LoadedSequencePtr& sequence);
  /// Another one that was read in the same way, as the last steps of a stream are.
  void setNext(const LoadedSequencePtr& sequence);
  /// Sets the factor that the present model multiplies the input with before it reads it; empty: there is none.
  void setInputScale(const QString& scale);
  /// The task that the present model likes to be shown on.
  void setModelTask(const Preset& preset);
  bool wantsStandardised() const;  ///< for the next file
  QComboBox* taskBox() const { return task_; }
  QSpinBox* lengthBox() const { return length_; }
  WholeBox* seedBox() const { return seed_; }
  /// The editor of a parameter of the task that is shown; null where it has none of that key.
  QWidget* parameterEditor(const std::string& key) const;
  QComboBox* targetBox() const { return target_; }
  QComboBox* missingBox() const { return missing_; }
  QCheckBox* standardiseBox() const { return standardise_; }
  QToolButton* columnsButton() const { return columns_; }

 signals:
  void openWanted();
  void chosen(reclab::SequenceChoice choice);

 private:
  void buildColumns();
  void buildTargets();
  /// Shows the treatment of missing cells, where there are any.
  void showMissing();
  enum class TaskField { all, length, seed };
  void chooseTask(TaskField edited);
  /// A row for each parameter of a task, with its values.
  void showParameters(const std::string& task, const TaskSettings& set);
  QWidget* editorOf(const HyperSpec& spec, const std::string& task);
  void chooseParameter(const std::string& task, const std::string& key, const std::string& text);
  LibraryPtr library_;
  LoadedSequencePtr shown_;
  SequenceChoice modelTask_;
  QString lastFile_;
  Missing lastMissing_ = Missing::refuse;  ///< the treatment of its missing cells
  QPushButton *fileTab_, *taskTab_, *modelsOwn_;
  QStackedWidget* pages_;
  QLabel *name_, *facts_;
  QPushButton* open_;
  QToolButton* columns_;
  QMenu* columnsMenu_;
  QComboBox *time_, *target_, *missing_, *task_;
  QFormLayout* taskForm_;
  std::string parametersOf_;  ///< the task whose parameters have rows
  struct ParameterEditor {
    QWidget* widget;
    std::function<void(const HyperValue&)> show;
  };
  std::map<std::string, ParameterEditor> parameters_;
  QCheckBox* standardise_;
  QSpinBox* length_;
  WholeBox* seed_;
  SeriesView* preview_;
  void tellFacts();
  bool showing_ = false;
};

}  // namespace reclab
