// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/dialogs/table_dialog.h"

#include <QApplication>
#include <QDir>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QTableWidget>
#include <QVBoxLayout>

#include "gui/look/look.h"
#include "plain_text.h"

namespace reclab {

TableDialog::TableDialog(Face face, FileChooser chooser, QWidget* parent)
    : QDialog(parent), face_(std::move(face)), chooser_(std::move(chooser)) {
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(face_.title);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(24, 24, 24, 16);
  column->setSpacing(12);
  column->addWidget(label(face_.heading, "title", this));
  auto* text = plainLabel({}, this);
  text->setTextFormat(Qt::RichText);
  text->setText(face_.text);
  text->setWordWrap(true);
  column->addWidget(text);

  table_ = new QTableWidget(0, static_cast<int>(face_.columns.size()), this);
  for (int i = 0; i < table_->columnCount(); ++i) {
    const Column& one = face_.columns[static_cast<std::size_t>(i)];
    auto* item = new QTableWidgetItem(one.title);
    item->setToolTip(safeTip(one.tip));
    item->setTextAlignment((one.number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    table_->setHorizontalHeaderItem(i, item);
  }
  const bool alike = face_.stretched < 0;
  table_->horizontalHeader()->setSectionResizeMode(alike ? QHeaderView::Stretch : QHeaderView::ResizeToContents);
  if (!alike) table_->horizontalHeader()->setSectionResizeMode(face_.stretched, QHeaderView::Stretch);
  table_->verticalHeader()->hide();
  if (face_.wraps)
    table_->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  else
    table_->verticalHeader()->setDefaultSectionSize(26);
  table_->setShowGrid(false);
  table_->setFrameShape(QFrame::NoFrame);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setWordWrap(face_.wraps);
  column->addWidget(table_, 1);

  bar_ = new QProgressBar(this);
  bar_->setRange(0, 1000);
  bar_->setTextVisible(false);
  bar_->setVisible(false);
  column->addWidget(bar_);
  auto* row = new QHBoxLayout;
  row->setSpacing(8);
  words_ = plainLabel({}, this);
  words_->setTextFormat(Qt::PlainText);
  words_->setWordWrap(true);
  row->addWidget(words_, 1);
  run_ = new QPushButton(face_.run, this);
  save_ = new QPushButton(tr("Save as CSV…"), this);
  save_->setEnabled(false);
  auto* shut = new QPushButton(tr("Close"), this);
  for (QPushButton* button : {run_, save_, shut}) {
    button->setAutoDefault(false);
    row->addWidget(button, 0, Qt::AlignBottom);
  }
  column->addLayout(row);
  connect(run_, &QPushButton::clicked, this, [this] {
    if (running())
      stop();
    else
      start();
  });
  connect(save_, &QPushButton::clicked, this, &TableDialog::save);
  connect(shut, &QPushButton::clicked, this, &QDialog::reject);
  resize(face_.size);
}

void TableDialog::began() {
  table_->setRowCount(0);
  save_->setEnabled(false);
  run_->setText(tr("Stop"));
  bar_->setValue(0);
  bar_->setVisible(true);
}

void TableDialog::progressed(double fraction, const QString& stage) {
  bar_->setValue(qRound(1000.0 * fraction));
  say(stage);
}

void TableDialog::ended(const QString& sentence, bool bad) {
  run_->setText(face_.run);
  bar_->setVisible(false);
  save_->setEnabled(table_->rowCount() > 0);
  say(sentence, bad);
}

int TableDialog::addRow() {
  const int row = table_->rowCount();
  table_->insertRow(row);
  return row;
}

QTableWidgetItem* TableDialog::put(int row, int column, const QString& text, const QString& tip) {
  auto* item = new QTableWidgetItem(text);
  const bool number = face_.columns[static_cast<std::size_t>(column)].number;
  item->setTextAlignment((number ? Qt::AlignRight : Qt::AlignLeft) | (face_.wraps ? Qt::AlignTop : Qt::AlignVCenter));
  if (number) item->setFont(numberFont());
  item->setToolTip(safeTip(tip));
  table_->setItem(row, column, item);
  return item;
}

void TableDialog::save() {
  const QString path = chooser_.save(this, face_.save, face_.file, tr("Tables (*.csv)"));
  if (path.isEmpty()) return;
  const QString problem = writeText(path, QString::fromStdString(csv()));
  say(problem.isEmpty() ? tr("The table is in %1.").arg(QDir::toNativeSeparators(path)) : problem, !problem.isEmpty());
}

void TableDialog::say(const QString& sentence, bool bad) {
  words_->setText(sentence);
  QPalette colours = QApplication::palette();
  if (bad) colours.setColor(QPalette::WindowText, colours.color(QPalette::BrightText));
  words_->setPalette(colours);
}

QString TableDialog::words() const { return words_->text(); }

}  // namespace reclab
