// SPDX-License-Identifier: GPL-3.0-or-later
// Results of sweeps and other tables: their window, the form of a new sweep, and the runs that are opened from them.
#pragma once

#include <QObject>
#include <QStringList>

namespace reclab {

class ResultsWindow;
class SweepForm;
class WindowFrame;

class ResultsFeature : public QObject {
  Q_OBJECT
 public:
  explicit ResultsFeature(WindowFrame* frame);
  ResultsWindow* window() const { return window_; }  ///< null until it was asked for
  SweepForm* form() const { return form_; }          ///< null where none is open
  /// Opens the folder of a sweep. False where it is none.
  bool open(const QString& path);

 signals:
  void trainingWanted(QString folder);  ///< of an exported training

 private:
  void show(const QString& place);
  void makeSweep();
  void openCell(const QStringList& words, const QString& folder);
  WindowFrame* frame_;
  ResultsWindow* window_ = nullptr;
  SweepForm* form_ = nullptr;
};

}  // namespace reclab
