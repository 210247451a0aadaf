// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/dialogs/device_dialog.h"

#include <QPushButton>
#include <QTableWidget>
#include <algorithm>
#include <cmath>
#include <utility>

#include "array/backend.h"
#include "models/registry.h"
#include "window_text.h"

namespace reclab {
namespace {

enum Column { what, form, precision, forward, gradients, allowed, verdict, cpu, cuda };

QString relative(double error) { return std::isfinite(error) ? QString::number(error, 'e', 1) : QString("–"); }
QString spent(double seconds) { return seconds <= 0.0 ? QString("–") : roughSecondsInWords(seconds); }

}  // namespace

TableDialog::Face DeviceDialog::face() {
  std::string why;
  const Backend* device = cuda_backend(&why);
  return {
      .title = tr("Check the device"),
      .heading = device ? QString::fromStdString(device->name()) : tr("There is no CUDA device to check"),
      .text = device ? tr("Every primitive and every model, in every exact form and both precisions, is run on the CPU and on the device: "
                          "outputs, states, gates and gradients. "
                          "Errors are relative to the largest entry of the array that differs most; they may be as large as those between "
                          "two exact forms. "
                          "It takes a few minutes. The same from a terminal: reclab check-device.")
                     : tr("%1. Everything runs on the CPU, and nothing is missing but speed. To use an NVIDIA device, install its driver, "
                          "see that nvidia-smi "
                          "lists it, and start the program again; a build without the CUDA Toolkit has to be built again with it.")
                           .arg(QString::fromStdString(why).replace(0, 1, QString::fromStdString(why).left(1).toUpper())),
      .columns = {{tr("Primitive or model")},
                  {tr("Form")},
                  {tr("Precision")},
                  {tr("Forward"), tr("The largest error of outputs, states and gates, relative to the largest entry of its array"), true},
                  {tr("Gradients"), tr("The largest error of gradients; norms that are recorded as logarithms are compared as norms"),
                   true},
                  {tr("Allowed"), tr("What may lie between two exact forms: 1e-9 in float64, 1e-3 in float32"), true},
                  {tr("Verdict")},
                  {tr("CPU"), tr("Wall time on the CPU, once, not a benchmark"), true},
                  {tr("CUDA"), tr("Wall time on the device, once, its start included"), true}},
      .stretched = verdict,
      .run = tr("Run"),
      .save = tr("Save the comparison"),
      .file = "device-check.csv",
      .size = device ? QSize(980, 640) : QSize(560, 200)};
}

DeviceDialog::DeviceDialog(LibraryPtr library, FileChooser chooser, QWidget* parent, Scheduler* scheduler)
    : RowsDialog(face(), std::move(chooser), parent, scheduler, {}), library_(std::move(library)) {
  const bool device = cuda_backend(nullptr) != nullptr;
  table()->setVisible(device);
  runButton()->setEnabled(device);
  if (device) {
    runButton()->setDefault(true);
    say(tr("Run compares both, line by line; Stop ends it, with the lines that are there."));
  }
}

void DeviceDialog::start() {
  compute([library = library_, check = check_](const auto& report, std::stop_token stop) mutable {
    check.found = [&](const DeviceReport& line) { report.part({line}); };
    check_device(builtin_registry(), library->presets, report.progress, stop, check);
  });
}

void DeviceDialog::write(const DeviceReport& report) {
  const int row = addRow();
  put(row, what, QString::fromStdString(report.id),
      report.primitive ? tr("A memory by itself, on random inputs") : tr("A model on its own task"));
  put(row, form, QString::fromStdString(report.form));
  put(row, precision, report.dtype == "f64" ? "float64" : "float32");
  put(row, forward, relative(report.forward_error), QString::fromStdString(report.forward_array));
  put(row, gradients, relative(report.gradient_error), QString::fromStdString(report.gradient_array));
  put(row, allowed, QString::number(report.allowed(), 'e', 0));
  const QString said = windowText(report.verdict());
  QTableWidgetItem* word = put(row, verdict, said, said);
  if (!report.agrees()) {
    QFont bold = word->font();
    bold.setBold(true);
    word->setFont(bold);
    word->setForeground(palette().color(QPalette::BrightText));
  }
  put(row, cpu, spent(report.cpu_seconds));
  put(row, cuda, spent(report.cuda_seconds));
  table()->scrollToBottom();
}

std::pair<QString, bool> DeviceDialog::outcome() const {
  const auto agree = std::ranges::count_if(rows(), [](const DeviceReport& report) { return report.agrees(); });
  const auto all = std::ssize(rows());
  if (all == 0) return {QString(), false};
  return {agree == all ? tr("All %1 lines agree.").arg(all) : tr("%1 of %2 lines do not agree.").arg(all - agree).arg(all), agree != all};
}

}  // namespace reclab
