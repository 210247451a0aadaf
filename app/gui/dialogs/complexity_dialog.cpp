// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/dialogs/complexity_dialog.h"

#include <QApplication>
#include <QDir>
#include <QFile>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QTableWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <utility>

#include "array/error.h"
#include "gui/window/look.h"
#include "models/registry.h"

namespace reclab {
namespace {

struct At {
  enum Column { model, form, time, timeStated, timeMeasured, memory, memoryStated, memoryMeasured, verdict, columns };
};
bool isNumber(int at) { return at == At::timeStated || at == At::timeMeasured || at == At::memoryStated || at == At::memoryMeasured; }

QString exponentText(double exponent) { return std::isfinite(exponent) ? QString::number(exponent, 'f', 2) : QString::fromUtf8("–"); }
QString banded(const Banded& band) { return QString::fromUtf8("%1 (%2–%3)").arg(exponentText(band.value), exponentText(band.low), exponentText(band.high)); }

/// The rows of the presets that there are, all or those that are named.
std::vector<StatedComplexity> rowsOf(const Library& library, const std::vector<std::string>& presets) {
  std::vector<StatedComplexity> rows;
  for (const StatedComplexity& row : stated_complexities()) {
    const bool wanted = presets.empty() || std::ranges::find(presets, row.preset) != presets.end();
    if (wanted && std::ranges::find(library.presets.presets(), row.preset, &Preset::id) != library.presets.presets().end()) rows.push_back(row);
  }
  return rows;
}

}  // namespace

ComplexityDialog::ComplexityDialog(LibraryPtr library, FileChooser chooser, QWidget* parent, Desk* desk)
    : QDialog(parent),
      library_(std::move(library)),
      chooser_(std::move(chooser)),
      job_(desk ? *desk : own_, {.measures = true},
           {.progressed = [this](const Nothing&, double fraction, const QString& stage) {
              bar_->setValue(qRound(1000.0 * fraction));
              say(stage);
            },
            .part = [this](const Nothing&, const std::vector<ComplexityRow>& found) {
              for (const ComplexityRow& row : found) show(row);
            },
            .ended = [this](const Nothing&, const Ending& ending) { ended(ending.how == Ending::How::stopped ? tr("Stopped") : ending.sentence); }}) {
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(tr("Tables of complexities"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(24, 24, 24, 16);
  column->setSpacing(12);
  column->addWidget(label(tr("What the survey states, and what is measured"), "title", this));
  auto* text = new QLabel(tr("Tables 2 and 3 of the survey say how time and memory grow with the length L of a sequence and the number d of its features. Beside them stand the exponents p of L<sup>p</sup> that the "
                             "forward pass of a preset has here, from 512 to 16,384 steps, with the band in which another measurement is expected nine times out of ten. A double click opens the model. "
                             "The same from a terminal: reclab complexities."),
                          this);
  text->setWordWrap(true);
  column->addWidget(text);

  table_ = new QTableWidget(0, At::columns, this);
  table_->setHorizontalHeaderLabels({tr("Model"), tr("Form"), tr("Time"), tr("as L^"), tr("measured"), tr("Memory"), tr("as L^"), tr("measured"), tr("Verdict")});
  const std::pair<int, QString> tips[] = {{At::form, tr("The exact form that is timed")},
                                          {At::time, tr("As the survey states it")},
                                          {At::timeStated, tr("The exponent that the stated expression has over the same lengths: L log L is 1.13")},
                                          {At::timeMeasured, tr("Of the forward pass, with its 90 % band")},
                                          {At::memory, tr("As the survey states it")},
                                          {At::memoryStated, tr("The exponent that the stated expression has over the same lengths")},
                                          {At::memoryMeasured, tr("Of all arrays of the pass")},
                                          {At::verdict, tr("As stated: within 0.15 of the stated exponent")}};
  for (const auto& [at, tip] : tips) table_->horizontalHeaderItem(at)->setToolTip(tip);
  for (int i = 0; i < At::columns; ++i) table_->horizontalHeaderItem(i)->setTextAlignment((isNumber(i) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setSectionResizeMode(At::verdict, QHeaderView::Stretch);
  table_->verticalHeader()->hide();
  table_->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->setShowGrid(false);
  table_->setFrameShape(QFrame::NoFrame);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setWordWrap(true);
  column->addWidget(table_, 1);
  connect(table_, &QTableWidget::cellActivated, this, [this](int row) { emit picked(QString::fromStdString(rows_[static_cast<std::size_t>(row)].preset)); });

  bar_ = new QProgressBar(this);
  bar_->setRange(0, 1000);
  bar_->setTextVisible(false);
  bar_->setVisible(false);
  column->addWidget(bar_);
  auto* row = new QHBoxLayout;
  row->setSpacing(8);
  words_ = new QLabel(this);
  words_->setTextFormat(Qt::PlainText);
  words_->setWordWrap(true);
  row->addWidget(words_, 1);
  measure_ = new QPushButton(tr("Measure here"), this);
  save_ = new QPushButton(tr("Save as CSV…"), this);
  auto* shut = new QPushButton(tr("Close"), this);
  for (QPushButton* button : {measure_, save_, shut}) {
    button->setAutoDefault(false);
    row->addWidget(button, 0, Qt::AlignBottom);
  }
  column->addLayout(row);
  connect(measure_, &QPushButton::clicked, this, [this] {
    if (running())
      job_.stop();
    else
      start();
  });
  connect(save_, &QPushButton::clicked, this, &ComplexityDialog::save);
  connect(shut, &QPushButton::clicked, this, &QDialog::reject);
  resize(1180, 660);

  QFile shipped(dataFile("complexities.json"));
  try {
    if (shipped.open(QIODevice::ReadOnly))
      for (const ComplexityRow& one : complexities_from_json(shipped.readAll().toStdString(), shipped.fileName().toStdString())) show(one);
    say(rows_.empty() ? tr("Nothing is measured yet.") : tr("Measured where the program was made. Measure here takes some minutes, in which nothing else is computed."));
  } catch (const Error& error) {
    say(QString::fromStdString(error.what()), true);
  }
  save_->setEnabled(!rows_.empty());
}

void ComplexityDialog::setMeasured(std::vector<std::string> presets, std::vector<std::int64_t> lengths) {
  presets_ = std::move(presets);
  lengths_ = std::move(lengths);
}

void ComplexityDialog::start() {
  clear();
  save_->setEnabled(false);
  measure_->setText(tr("Stop"));
  bar_->setValue(0);
  bar_->setVisible(true);
  job_.start({}, [library = library_, wanted = rowsOf(*library_, presets_), lengths = lengths_](const auto& report, std::stop_token stop) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Progress part = [&, i](double fraction, std::string_view stage) {
        report.progress((static_cast<double>(i) + fraction) / static_cast<double>(wanted.size()), std::string(wanted[i].model) + ", " + std::string(stage));
      };
      if (const auto row = measure_complexity(builtin_registry(), library->presets, wanted[i], lengths, part, stop)) report.part({*row});
    }
    return std::vector<ComplexityRow>();
  });
}

void ComplexityDialog::clear() {
  rows_.clear();
  table_->setRowCount(0);
}

void ComplexityDialog::show(const ComplexityRow& measured) {
  rows_.push_back(measured);
  const int row = table_->rowCount();
  table_->insertRow(row);
  const auto put = [&](int at, const QString& text, bool differs = false) {
    auto* item = new QTableWidgetItem(text);
    item->setTextAlignment((isNumber(at) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignTop);
    QFont font = isNumber(at) ? numberFont() : item->font();
    font.setBold(differs);
    item->setFont(font);
    table_->setItem(row, at, item);
    return item;
  };
  put(At::model, QString::fromStdString(measured.model))->setToolTip(QString::fromStdString(measured.preset));
  put(At::form, QString::fromStdString(measured.form));
  put(At::time, QString::fromStdString(measured.stated_time));
  put(At::timeStated, exponentText(measured.stated_time_exponent));
  put(At::timeMeasured, banded(measured.time), !agrees(measured.stated_time_exponent, measured.time));
  put(At::memory, QString::fromStdString(measured.stated_space));
  put(At::memoryStated, exponentText(measured.stated_space_exponent));
  put(At::memoryMeasured, exponentText(measured.space.value), !agrees(measured.stated_space_exponent, measured.space));
  put(At::verdict, QString::fromStdString(verdict_of(measured)));
}

void ComplexityDialog::ended(const QString& sentence) {
  measure_->setText(tr("Measure here"));
  bar_->setVisible(false);
  save_->setEnabled(!rows_.empty());
  const auto as = std::ranges::count_if(rows_, [](const ComplexityRow& row) { return agrees(row.stated_time_exponent, row.time); });
  QString text = rows_.empty() ? QString() : tr("The time of %1 of %2 models grows as stated.").arg(as).arg(std::ssize(rows_));
  if (!sentence.isEmpty()) text = sentence + (sentence.endsWith('.') ? " " : ". ") + text;
  say(text.trimmed());
}

void ComplexityDialog::save() {
  const QString path = chooser_.save(this, tr("Save the table"), "complexities.csv", tr("Tables (*.csv)"));
  if (path.isEmpty()) return;
  const QString problem = writeText(path, QString::fromStdString(to_csv(rows_)));
  say(problem.isEmpty() ? tr("The table is in %1.").arg(QDir::toNativeSeparators(path)) : problem, !problem.isEmpty());
}

void ComplexityDialog::say(const QString& sentence, bool bad) {
  words_->setText(sentence);
  QPalette colours = QApplication::palette();
  if (bad) colours.setColor(QPalette::WindowText, colours.color(QPalette::BrightText));
  words_->setPalette(colours);
}

QString ComplexityDialog::words() const { return words_->text(); }

}  // namespace reclab
