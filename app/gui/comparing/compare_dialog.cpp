// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/comparing/compare_dialog.h"

#include <QCheckBox>
#include <QDir>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QSet>
#include <QTableWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "gui/comparing/run_numbers.h"
#include "gui/look/look.h"
#include "plain_text.h"
#include "plot/parts/table.h"
#include "plot/plot.h"

namespace reclab {
namespace {

QIcon dotOf(const QColor& colour) {
  QPixmap drawn(24, 24);
  drawn.fill(Qt::transparent);
  QPainter painter(&drawn);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(Qt::NoPen);
  painter.setBrush(colour);
  painter.drawEllipse(3, 3, 18, 18);
  return drawn;
}

const Facet* facetOf(const Facets& facets, const QString& key) {
  const auto found = std::ranges::find(facets, key, &Facet::key);
  return found == facets.end() ? nullptr : &*found;
}

}  // namespace

CompareDialog::CompareDialog(const Pins* pins, FileChooser chooser, QWidget* parent)
    : QDialog(parent), pins_(pins), chooser_(std::move(chooser)) {
  setAttribute(Qt::WA_DeleteOnClose);
  setObjectName("compare");
  setWindowTitle(tr("What differs"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(24, 20, 24, 16);
  column->setSpacing(12);
  input_ = label({}, "muted", this);
  input_->setWordWrap(true);
  column->addWidget(input_);
  table_ = new QTableWidget(this);
  table_->setShowGrid(false);
  table_->setFrameShape(QFrame::NoFrame);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->verticalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table_->verticalHeader()->setDefaultSectionSize(26);
  column->addWidget(table_, 1);
  auto* row = new QHBoxLayout;
  row->setSpacing(8);
  all_ = new QCheckBox(tr("All settings, those that are alike too"), this);
  row->addWidget(all_);
  words_ = plainLabel({}, this);
  words_->setWordWrap(true);
  row->addWidget(words_, 1);
  auto* save = new QPushButton(tr("Save as CSV…"), this);
  save->setObjectName("saveCsv");
  auto* shut = new QPushButton(tr("Close"), this);
  for (QPushButton* button : {save, shut}) {
    button->setAutoDefault(false);
    row->addWidget(button);
  }
  column->addLayout(row);
  connect(all_, &QCheckBox::toggled, this, &CompareDialog::refresh);
  connect(save, &QPushButton::clicked, this, &CompareDialog::save);
  connect(shut, &QPushButton::clicked, this, &QDialog::reject);
  connect(pins_, &Pins::changed, this, &CompareDialog::refresh);
  connect(pins_, &Pins::followed, this, &CompareDialog::refresh);
  refresh();
  const int width = table_->verticalHeader()->sizeHint().width() + table_->horizontalHeader()->length() + 80;
  resize(
      QSize(std::max(560, width), 180 + 26 * table_->rowCount()).boundedTo(parent != nullptr ? parent->size() * 0.95 : QSize(1200, 800)));
}

void CompareDialog::refresh() {
  const std::vector<Pins::Column> runs = pins_->columns();
  table_->clear();
  table_->setColumnCount(static_cast<int>(runs.size()));
  table_->setRowCount(0);
  for (int i = 0; i < table_->columnCount(); ++i) {
    const Pins::Column& run = runs[static_cast<std::size_t>(i)];
    table_->setHorizontalHeaderItem(i, new QTableWidgetItem(dotOf(run.colour), run.name));
  }
  const auto add = [this](const QString& words, const QString& tip, const QStringList& cells, bool numbers) {
    const int row = table_->rowCount();
    table_->insertRow(row);
    auto* head = new QTableWidgetItem(words);
    head->setToolTip(safeTip(tip));
    table_->setVerticalHeaderItem(row, head);
    for (int i = 0; i < table_->columnCount(); ++i) {
      auto* item = new QTableWidgetItem(cells[i].isEmpty() ? QStringLiteral("–") : cells[i]);
      item->setToolTip(safeTip(cells[i]));
      if (numbers) item->setFont(numberFont());
      table_->setItem(row, i, item);
    }
  };
  // Results first, since unlike models have many settings.
  const auto names = numbersOf(nullptr);
  std::vector<std::vector<RunNumber>> numbers;
  for (const Pins::Column& run : runs) numbers.push_back(numbersOf(run.trace.get()));
  for (std::size_t i = 0; i < names.size(); ++i) {
    QStringList cells;
    for (const auto& one : numbers) cells << (std::isfinite(one[i].value) ? number(one[i].value, 4) : QString());
    add(names[i].words, names[i].tip, cells, true);
  }
  // The settings of all, in the order of the first that has them.
  QList<const Facet*> rows;
  for (const Pins::Column& run : runs)
    for (const Facet& one : run.facets)
      if (std::ranges::none_of(rows, [&](const Facet* row) { return row->key == one.key; })) rows << &one;
  for (const Facet* row : rows) {
    QStringList cells;
    QSet<QString> distinct;
    for (const Pins::Column& run : runs) {
      const Facet* found = facetOf(run.facets, row->key);
      cells << (found != nullptr ? found->value : QString());
      if (!run.facets.empty()) distinct.insert(cells.back());  // one without has not run yet
    }
    if (all_->isChecked() || distinct.size() > 1) add(row->words, {}, cells, false);
  }
  const TracePtr& shown = runs.front().trace;
  input_->setText(shown ? tr("All on %1, %2 steps. Runs are named by what differs; the first is the one that is looked at.")
                              .arg(QString::fromStdString(shown->info.input_name), grouped(shown->info.length))
                        : tr("Nothing has run yet."));
}

QString CompareDialog::csv() const {
  QString text = QStringLiteral("what");
  for (int i = 0; i < table_->columnCount(); ++i) text += ',' + csvCell(table_->horizontalHeaderItem(i)->text());
  text += '\n';
  // Numbers with all of their digits.
  const auto names = numbersOf(nullptr);
  std::vector<std::vector<RunNumber>> numbers;
  for (const Pins::Column& run : pins_->columns()) numbers.push_back(numbersOf(run.trace.get()));
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += csvCell(names[i].words);
    for (const auto& one : numbers) text += ',' + QString::fromLatin1(csvNumber(one[i].value));
    text += '\n';
  }
  for (int row = static_cast<int>(names.size()); row < table_->rowCount(); ++row) {
    text += csvCell(table_->verticalHeaderItem(row)->text());
    for (int i = 0; i < table_->columnCount(); ++i)
      text += ',' + (table_->item(row, i)->toolTip().isEmpty() ? QString() : csvCell(table_->item(row, i)->text()));
    text += '\n';
  }
  return text;
}

void CompareDialog::save() {
  const QString path = chooser_.save(this, tr("Save the table of what differs"), QStringLiteral("comparison.csv"), tr("Tables (*.csv)"));
  if (path.isEmpty()) return;
  const QString problem = writeText(path, csv());
  words_->setText(problem.isEmpty() ? tr("The table is in %1.").arg(QDir::toNativeSeparators(path)) : problem);
}

}  // namespace reclab
