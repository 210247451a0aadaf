// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/dialogs/device_dialog.h"

#include <QApplication>
#include <QDialogButtonBox>
#include <QDir>
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

#include "array/backend.h"
#include "gui/session/words.h"
#include "gui/window/look.h"
#include "models/registry.h"

namespace reclab {
namespace {

enum Column { what, form, precision, forward, gradients, allowed, verdict, cpu, cuda, columns };

QString number(double error) { return std::isfinite(error) ? QString::number(error, 'e', 1) : QString("–"); }
QString spent(double seconds) { return seconds <= 0.0 ? QString("–") : roughSecondsInWords(seconds); }

}  // namespace

DeviceDialog::DeviceDialog(LibraryPtr library, FileChooser chooser, QWidget* parent, Desk* desk)
    : QDialog(parent),
      library_(std::move(library)),
      chooser_(std::move(chooser)),
      job_(desk ? *desk : own_, {},
           {.progressed = [this](const Nothing&, double fraction, const QString& stage) {
              bar_->setValue(qRound(1000.0 * fraction));
              say(stage);
            },
            .part = [this](const Nothing&, const std::vector<DeviceReport>& lines) {
              for (const DeviceReport& line : lines) add(line);
            },
            .ended = [this](const Nothing&, const Ending& ending) { ended(ending.how == Ending::How::stopped ? tr("Stopped") : ending.sentence); }}) {
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(tr("Check the device"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(24, 24, 24, 16);
  column->setSpacing(12);
  std::string why;
  const Backend* device = cuda_backend(&why);
  column->addWidget(label(device ? QString::fromStdString(device->name()) : tr("There is no CUDA device to check"), "title", this));
  auto* text = new QLabel(device ? tr("Every primitive and every model, in every exact form and both precisions, is run on the CPU and on the device: outputs, states, gates and gradients. "
                                      "Errors are relative to the largest entry of the array that differs most; they may be as large as those between two exact forms. "
                                      "It takes a few minutes. The same from a terminal: reclab check-device.")
                                 : tr("%1. Everything runs on the CPU, and nothing is missing but speed. To use an NVIDIA device, install its driver, see that nvidia-smi "
                                      "lists it, and start the program again; a build without the CUDA Toolkit has to be built again with it.")
                                       .arg(QString::fromStdString(why).replace(0, 1, QString::fromStdString(why).left(1).toUpper())),
                          this);
  text->setWordWrap(true);
  column->addWidget(text);

  table_ = new QTableWidget(0, columns, this);
  table_->setHorizontalHeaderLabels({tr("Primitive or model"), tr("Form"), tr("Precision"), tr("Forward"), tr("Gradients"), tr("Allowed"), tr("Verdict"), tr("CPU"), tr("CUDA")});
  const std::pair<int, QString> tips[] = {{forward, tr("The largest error of outputs, states and gates, relative to the largest entry of its array")},
                                          {gradients, tr("The largest error of gradients; norms that are recorded as logarithms are compared as norms")},
                                          {allowed, tr("What may lie between two exact forms: 1e-9 in float64, 1e-3 in float32")},
                                          {cpu, tr("Wall time on the CPU, once, not a benchmark")},
                                          {cuda, tr("Wall time on the device, once, its start included")}};
  for (const auto& [at, tip] : tips) table_->horizontalHeaderItem(at)->setToolTip(tip);
  for (int i = 0; i < columns; ++i)
    table_->horizontalHeaderItem(i)->setTextAlignment((i >= forward && i <= allowed) || i >= cpu ? Qt::AlignRight | Qt::AlignVCenter : Qt::AlignLeft | Qt::AlignVCenter);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setSectionResizeMode(verdict, QHeaderView::Stretch);
  table_->verticalHeader()->hide();
  table_->verticalHeader()->setDefaultSectionSize(26);
  table_->setShowGrid(false);
  table_->setFrameShape(QFrame::NoFrame);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setWordWrap(false);
  table_->setVisible(device != nullptr);
  column->addWidget(table_, 1);

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
  run_ = new QPushButton(tr("Run"), this);
  run_->setEnabled(device != nullptr);
  save_ = new QPushButton(tr("Save as CSV…"), this);
  save_->setEnabled(false);
  auto* shut = new QPushButton(tr("Close"), this);
  for (QPushButton* button : {run_, save_, shut}) {
    button->setAutoDefault(false);
    row->addWidget(button, 0, Qt::AlignBottom);
  }
  if (device) {
    run_->setDefault(true);
    say(tr("Run compares both, line by line; Stop ends it, with the lines that are there."));
  }
  column->addLayout(row);
  connect(run_, &QPushButton::clicked, this, [this] {
    if (running())
      job_.stop();
    else
      start();
  });
  connect(save_, &QPushButton::clicked, this, &DeviceDialog::save);
  connect(shut, &QPushButton::clicked, this, &QDialog::reject);
  resize(device ? QSize(980, 640) : QSize(560, 200));
}

void DeviceDialog::start() {
  reports_.clear();
  table_->setRowCount(0);
  save_->setEnabled(false);
  run_->setText(tr("Stop"));
  bar_->setValue(0);
  bar_->setVisible(true);
  job_.start({}, [library = library_, check = check_](const auto& report, std::stop_token stop) mutable {
    check.found = [&](const DeviceReport& line) { report.part({line}); };
    check_device(builtin_registry(), library->presets, report.progress, stop, check);
    return std::vector<DeviceReport>();
  });
}

void DeviceDialog::add(const DeviceReport& report) {
  reports_.push_back(report);
  const int row = table_->rowCount();
  table_->insertRow(row);
  const auto put = [&](int at, const QString& text, const QString& tip = {}) {
    auto* item = new QTableWidgetItem(text);
    const bool right = (at >= forward && at <= allowed) || at >= cpu;
    item->setTextAlignment((right ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    if (right) item->setFont(numberFont());
    item->setToolTip(tip);
    table_->setItem(row, at, item);
    return item;
  };
  put(what, QString::fromStdString(report.id), report.primitive ? tr("A memory by itself, on random inputs") : tr("A model on its own task"));
  put(form, QString::fromStdString(report.form));
  put(precision, report.dtype == "f64" ? "float64" : "float32");
  put(forward, number(report.forward_error), QString::fromStdString(report.forward_array));
  put(gradients, number(report.gradient_error), QString::fromStdString(report.gradient_array));
  put(allowed, QString::number(report.allowed(), 'e', 0));
  const QString said = QString::fromStdString(report.verdict());
  QTableWidgetItem* word = put(verdict, said, said);
  if (!report.agrees()) {
    QFont bold = word->font();
    bold.setBold(true);
    word->setFont(bold);
    word->setForeground(palette().color(QPalette::BrightText));
  }
  put(cpu, spent(report.cpu_seconds));
  put(cuda, spent(report.cuda_seconds));
  table_->scrollToBottom();
}

void DeviceDialog::ended(const QString& sentence) {
  run_->setText(tr("Run"));
  bar_->setVisible(false);
  save_->setEnabled(!reports_.empty());
  const auto agree = std::count_if(reports_.begin(), reports_.end(), [](const DeviceReport& report) { return report.agrees(); });
  const bool all = agree == std::ssize(reports_);
  QString text = reports_.empty() ? QString() : all ? tr("All %1 lines agree.").arg(reports_.size()) : tr("%1 of %2 lines do not agree.").arg(std::ssize(reports_) - agree).arg(reports_.size());
  if (!sentence.isEmpty()) text = sentence + (sentence.endsWith('.') ? " " : ". ") + text;
  say(text.trimmed(), !all);
}

void DeviceDialog::save() {
  const QString path = chooser_.save(this, tr("Save the comparison"), "device-check.csv", tr("Tables (*.csv)"));
  if (path.isEmpty()) return;
  const QString problem = writeText(path, QString::fromStdString(to_csv(reports_)));
  say(problem.isEmpty() ? tr("The table is in %1.").arg(QDir::toNativeSeparators(path)) : problem, !problem.isEmpty());
}

void DeviceDialog::say(const QString& sentence, bool bad) {
  words_->setText(sentence);
  QPalette colours = QApplication::palette();
  if (bad) colours.setColor(QPalette::WindowText, colours.color(QPalette::BrightText));
  words_->setPalette(colours);
}

QString DeviceDialog::words() const { return words_->text(); }

}  // namespace reclab
