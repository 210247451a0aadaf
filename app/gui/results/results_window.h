// SPDX-License-Identifier: GPL-3.0-or-later
// Tables of results in a window of its own: a sweep's folder as it stands, or a CSV table; its picture, and the sweep's progress.
#pragma once

#include <QJsonObject>
#include <QTimer>
#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "gui/jobs/worker.h"
#include "gui/results/atlases.h"
#include "gui/results/result_choice.h"
#include "gui/results/sweep_runner.h"
#include "gui/session/files.h"

class QCheckBox;
class QComboBox;
class QFormLayout;
class QLabel;
class QProgressBar;
class QPushButton;
class QSpinBox;
class QStackedWidget;
class QToolButton;

namespace reclab {

class ElidedLabel;
class ResultPicture;

class ResultsWindow : public QWidget {
  Q_OBJECT
 public:
  ResultsWindow(const FileChooser* chooser, QWidget* parent);
  ~ResultsWindow() override;

  /// Reads a table, or the folder of a sweep, in a thread of its own.
  void open(const QString& place);
  void open(const Atlas& atlas);
  const std::vector<Atlas>& atlases() const { return atlases_; }
  QString place() const { return place_; }
  bool reading() const { return reading_; }
  const ResultTablePtr& table() const { return table_; }
  const ResultChoice& choice() const { return choice_; }
  void setChoice(const ResultChoice& choice);
  ResultPicture* picture() const { return picture_; }
  SweepRunner* runner() { return &runner_; }
  QPushButton* runButton() const { return run_; }
  QString state() const;     ///< of the sweep, in words
  QString sentence() const;  ///< where there is no picture, or something went wrong
  QString command() const { return command_; }

 signals:
  void newWanted();
  /// A row is to be looked at: its line, and the folder of its training where that is kept.
  void cellWanted(const reclab::TypedRun& run, QString folder);
  void said(QString sentence, bool bad);

 protected:
  void closeEvent(QCloseEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  struct Came {
    QString place, problem;
    bool is_sweep = false;
    ResultTablePtr table;
    std::optional<SweepStatus> status;
    std::int64_t cells = 0;
    bool same = false;     ///< as many cells are in each state as when the table was read that is shown
    double seconds = 0.0;  ///< that reading took
  };
  QWidget* makeControls();
  QWidget* makeSweep();
  bool opensRuns() const { return isSweep_ || (atlas_ && !atlas_->plans.empty()); }
  void read();
  void take(const Came& came);
  void fillControls();
  void fillOnly();
  void chosen();
  void draw();
  void tellSweep();
  void saveFigure();
  void saveTable();
  void openRow(std::int64_t row);
  void offerRows(const std::vector<std::int64_t>& rows, QPoint where);
  QString handOver(const QString& target) const;
  void note(const QString& sentence, bool bad);

  const FileChooser* chooser_;
  QString place_, command_;
  std::vector<Atlas> atlases_;
  std::optional<Atlas> atlas_;  ///< that is shown
  std::string from_;            ///< the first measure of a table, that was chosen by hand; empty: those that are known as such
  bool reading_ = false, filling_ = false, isSweep_ = false;
  std::uint64_t asked_ = 0;  ///< a number for each place that was asked for
  ResultTablePtr table_;
  ResultChoice choice_;
  std::optional<ResultChoice> begins_;  ///< the picture that a table begins with when it has been read; else the usual one
  std::optional<SweepStatus> status_;
  std::int64_t cells_ = 0;
  QTimer watch_;
  ElidedLabel *file_, *line_;
  QComboBox *view_, *measure_, *against_, *across_, *upright_, *apart_, *confidence_;
  QCheckBox *logarithmic_, *falling_;
  QLabel *uprightName_, *sentence_, *state_, *hint_;
  QFormLayout* form_;
  QWidget *controls_, *only_, *sweep_;
  QFormLayout* onlyForm_;
  std::vector<std::pair<std::string, QComboBox*>> onlyBoxes_;
  QStackedWidget* pages_;
  ResultPicture* picture_;
  QProgressBar* bar_;
  QPushButton* run_;
  QSpinBox* jobs_;
  QToolButton *save_, *copy_, *hand_;
  SweepRunner runner_;
  Worker worker_;  // last: it is joined before what its messages use is gone
};

}  // namespace reclab
