// SPDX-License-Identifier: GPL-3.0-or-later
// The cells of a sweep computed on this machine, by `reclab sweep run` in a process of its own: one that ends leaves whole cells and
// checkpoints, from which the next goes on.
#pragma once

#include <QObject>
#include <QProcess>
#include <QString>

namespace reclab {

class SweepRunner : public QObject {
  Q_OBJECT
 public:
  explicit SweepRunner(QObject* parent = nullptr);
  ~SweepRunner() override;  ///< as pause(), and waits for the checkpoints

  /// The program reclab, beside this one or on the path; empty where there is none.
  static QString program();
  static int processors();

  void run(const QString& folder, int jobs);
  void pause();  ///< its cells are left with checkpoints
  bool running() const { return process_.state() != QProcess::NotRunning; }
  bool pausing() const { return running() && pausing_; }
  QString folder() const { return folder_; }  ///< that it computes, or computed last

 signals:
  void changed();
  /// It ended. `sentence`: what was to be said of it; empty where all cells are done or it was paused.
  void ended(QString sentence);

 private:
  void finished(int code, QProcess::ExitStatus status);
  QProcess process_;
  QString folder_;
  bool pausing_ = false;
};

}  // namespace reclab
