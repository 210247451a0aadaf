// SPDX-License-Identifier: GPL-3.0-or-later
// Results of sweeps and other tables: their window, the form of a new sweep, and the runs that are opened from them.
#pragma once

#include <QObject>
#include <QString>
#include <QTemporaryDir>
#include <map>
#include <memory>
#include <string>

namespace reclab {

class EvaluateForm;
class ResultsWindow;
class SweepForm;
class WindowFrame;
struct EvaluationTable;
struct TypedRun;

class ResultsFeature : public QObject {
  Q_OBJECT
 public:
  explicit ResultsFeature(WindowFrame* frame);
  ResultsWindow* window() const { return window_; }         ///< null until it was asked for
  SweepForm* form() const { return form_; }                 ///< null where none is open
  EvaluateForm* evaluation() const { return evaluation_; }  ///< the same
  /// Opens the folder of a sweep. False where it is none.
  bool open(const QString& path);

 signals:
  void trainingWanted(QString folder);  ///< of an exported training

 private:
  void show(const QString& place);
  void makeSweep();
  void evaluate();
  void showEvaluation(const std::shared_ptr<const EvaluationTable>& table, const QString& title, const std::map<std::string, int>& runs);
  void openCell(const TypedRun& run, const QString& folder);
  WindowFrame* frame_;
  ResultsWindow* window_ = nullptr;
  SweepForm* form_ = nullptr;
  EvaluateForm* evaluation_ = nullptr;
  QTemporaryDir evaluations_;  ///< tables as files, for as long as the window is there
  int number_ = 0;             ///< of the newest of them
};

}  // namespace reclab
