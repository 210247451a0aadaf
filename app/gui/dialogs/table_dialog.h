// SPDX-License-Identifier: GPL-3.0-or-later
// A dialog of rows that are computed one after the other while one looks on: a table, Run or Stop, Save as CSV, Close.
#pragma once

#include <QDialog>
#include <string>
#include <utility>
#include <vector>

#include "gui/jobs/job.h"
#include "gui/session/files.h"
#include "gui/session/sentences.h"

class QLabel;
class QProgressBar;
class QPushButton;
class QTableWidget;
class QTableWidgetItem;

namespace reclab {

class TableDialog : public QDialog {
  Q_OBJECT
 public:
  virtual bool running() const = 0;
  QTableWidget* table() const { return table_; }
  QPushButton* runButton() const { return run_; }
  QPushButton* saveButton() const { return save_; }
  QString words() const;  ///< the text under the table

 protected:
  struct Column {
    QString title, tip = {};
    bool number = false;  ///< stands at the right, in digits of one width
  };
  struct Face {
    QString title, heading, text;  ///< of the window; above the table, large; below that, in rich text
    std::vector<Column> columns;   ///< the last of text takes the room that is left: `stretched`; all alike where that is none
    int stretched = 0;
    bool wraps = false;  ///< a cell may have several lines
    QString run;         ///< the button's word
    QString save, file;  ///< the title of the dialog of files, and the name that it offers
    QSize size;
  };
  TableDialog(Face face, FileChooser chooser, QWidget* parent);

  virtual void start() = 0;
  virtual void stop() = 0;
  virtual std::string csv() const = 0;

  void began();  ///< the table is empty, and the button says Stop
  void progressed(double fraction, const QString& stage);
  void ended(const QString& sentence, bool bad);
  void say(const QString& sentence, bool bad = false);
  int addRow();  ///< an empty one at the end
  QTableWidgetItem* put(int row, int column, const QString& text, const QString& tip = {});

 private:
  void save();

  Face face_;
  FileChooser chooser_;
  QTableWidget* table_;
  QLabel* words_;
  QProgressBar* bar_;
  QPushButton *run_, *save_;
};

/// One whose rows are of this type.
template <class Row>
class RowsDialog : public TableDialog {
 public:
  const std::vector<Row>& rows() const { return rows_; }
  bool running() const override { return job_.running() || job_.waiting(); }

 protected:
  struct Nothing {};
  using RowsJob = Job<Nothing, std::vector<Row>>;

  /// `scheduler`: with whose jobs it takes turns; null: with none.
  RowsDialog(Face face, FileChooser chooser, QWidget* parent, Scheduler* scheduler, const JobBase::Kind& kind)
      : TableDialog(std::move(face), std::move(chooser), parent),
        job_(scheduler ? *scheduler : own_, kind,
             {.progressed = [this](const Nothing&, double fraction, const QString& stage) { progressed(fraction, stage); },
              .part = [this](const Nothing&, const std::vector<Row>& found) { add(found); },
              .ended =
                  [this](const Nothing&, const Ending& ending) {
                    const QString why = ending.how == Ending::How::stopped ? tr("Stopped") : ending.sentence;
                    const auto [sentence, bad] = outcome();
                    ended((why.isEmpty() ? sentence : why + (why.endsWith('.') ? " " : ". ") + sentence).trimmed(), bad);
                  },
              .preempted = [this] {  // it begins anew, and so do its rows
                rows_.clear();
                began();
              }}) {}

  virtual void write(const Row& row) = 0;                ///< adds it to the table
  virtual std::pair<QString, bool> outcome() const = 0;  ///< of the rows that there are, a sentence, and whether it is bad
  /// `work` reports each row as a part.
  template <class Work>
  void compute(Work work) {
    rows_.clear();
    began();
    job_.start({}, [work = std::move(work)](const auto& report, std::stop_token stop) mutable {
      work(report, stop);
      return std::vector<Row>();
    });
  }
  void add(const std::vector<Row>& found) {
    for (const Row& row : found) {
      rows_.push_back(row);
      write(row);
    }
  }
  void stop() override { job_.stop(); }
  std::string csv() const override { return to_csv(rows_); }

 private:
  std::vector<Row> rows_;
  Scheduler own_{sentenceOf};
  RowsJob job_;
};

}  // namespace reclab
