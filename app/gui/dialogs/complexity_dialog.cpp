// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/dialogs/complexity_dialog.h"

#include <QFile>
#include <QPushButton>
#include <QTableWidget>
#include <algorithm>
#include <cmath>
#include <utility>

#include "models/registry.h"
#include "window_text.h"

namespace reclab {
namespace {

struct At {
  enum Column { model, form, time, timeStated, timeMeasured, memory, memoryStated, memoryMeasured, verdict };
};

QString exponentText(double exponent) { return std::isfinite(exponent) ? QString::number(exponent, 'f', 2) : QString::fromUtf8("–"); }
QString banded(const Banded& band) {
  return QString::fromUtf8("%1 (%2–%3)").arg(exponentText(band.value), exponentText(band.low), exponentText(band.high));
}

/// The rows of the presets that there are, all or those that are named.
std::vector<StatedComplexity> rowsOf(const Library& library, const std::vector<std::string>& presets) {
  std::vector<StatedComplexity> rows;
  for (const StatedComplexity& row : stated_complexities()) {
    const bool wanted = presets.empty() || std::ranges::find(presets, row.preset) != presets.end();
    if (wanted && std::ranges::find(library.presets.presets(), row.preset, &Preset::id) != library.presets.presets().end())
      rows.push_back(row);
  }
  return rows;
}

}  // namespace

ComplexityDialog::ComplexityDialog(LibraryPtr library, FileChooser chooser, QWidget* parent, Scheduler* scheduler)
    : RowsDialog(
          {.title = tr("Tables of complexities"),
           .heading = tr("What the survey states, and what is measured"),
           .text = tr("Tables 2 and 3 of the survey of Tiezzi et al. (2024, arXiv 2406.09062) say how time and memory grow with the length "
                      "L of a sequence and the number d of its features. Beside them stand the exponents p of L<sup>p</sup> that the "
                      "forward pass of a preset has here, from 512 to 16,384 steps, with the band in which another measurement is expected "
                      "nine times out of ten. A double click opens the model. "
                      "The same from a terminal: reclab complexities."),
           .columns = {{tr("Model")},
                       {tr("Form"), tr("The exact form that is timed")},
                       {tr("Time"), tr("As the survey states it")},
                       {tr("as L^"), tr("The exponent that the stated expression has over the same lengths: L log L is 1.13"), true},
                       {tr("measured"), tr("Of the forward pass, with its 90 % band"), true},
                       {tr("Memory"), tr("As the survey states it")},
                       {tr("as L^"), tr("The exponent that the stated expression has over the same lengths"), true},
                       {tr("measured"), tr("Of all arrays of the pass"), true},
                       {tr("Verdict"), tr("As stated: within 0.15 of the stated exponent")}},
           .stretched = At::verdict,
           .wraps = true,
           .run = tr("Measure here"),
           .save = tr("Save the table"),
           .file = "complexities.csv",
           .size = {1180, 660}},
          std::move(chooser), parent, scheduler, {.measures = true}),
      library_(std::move(library)) {
  connect(table(), &QTableWidget::cellActivated, this,
          [this](int row) { emit picked(QString::fromStdString(rows()[static_cast<std::size_t>(row)].preset)); });
  QFile shipped(dataFile("complexities.json"));
  try {
    if (shipped.open(QIODevice::ReadOnly)) add(complexities_from_json(shipped.readAll().toStdString(), shipped.fileName().toStdString()));
    say(rows().empty() ? tr("Nothing is measured yet.")
                       : tr("Measured where the program was made. Measure here takes some minutes, in which nothing else is computed."));
  } catch (const Error& error) {
    say(windowText(error), true);
  }
  saveButton()->setEnabled(!rows().empty());
}

void ComplexityDialog::setMeasured(std::vector<std::string> presets, std::vector<std::int64_t> lengths) {
  presets_ = std::move(presets);
  lengths_ = std::move(lengths);
}

void ComplexityDialog::start() {
  compute([library = library_, wanted = rowsOf(*library_, presets_), lengths = lengths_](const auto& report, std::stop_token stop) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Progress part = [&, i](double fraction, std::string_view stage) {
        report.progress((static_cast<double>(i) + fraction) / static_cast<double>(wanted.size()),
                        std::string(wanted[i].model) + ", " + std::string(stage));
      };
      if (const auto row = measure_complexity(builtin_registry(), library->presets, wanted[i], lengths, part, stop)) report.part({*row});
    }
  });
}

void ComplexityDialog::write(const ComplexityRow& measured) {
  const int row = addRow();
  const auto putExponent = [&](int at, const QString& text, bool differs) {
    QTableWidgetItem* item = put(row, at, text);
    QFont font = item->font();
    font.setBold(differs);
    item->setFont(font);
  };
  put(row, At::model, QString::fromStdString(measured.model), QString::fromStdString(measured.preset));
  put(row, At::form, QString::fromStdString(measured.form));
  put(row, At::time, QString::fromStdString(measured.stated_time));
  put(row, At::timeStated, exponentText(measured.stated_time_exponent));
  putExponent(At::timeMeasured, banded(measured.time), !agrees(measured.stated_time_exponent, measured.time));
  put(row, At::memory, QString::fromStdString(measured.stated_space));
  put(row, At::memoryStated, exponentText(measured.stated_space_exponent));
  putExponent(At::memoryMeasured, exponentText(measured.space.value), !agrees(measured.stated_space_exponent, measured.space));
  put(row, At::verdict, QString::fromStdString(verdict_of(measured)));
}

std::pair<QString, bool> ComplexityDialog::outcome() const {
  const auto as = std::ranges::count_if(rows(), [](const ComplexityRow& row) { return agrees(row.stated_time_exponent, row.time); });
  return {rows().empty() ? QString() : tr("The time of %1 of %2 models grows as stated.").arg(as).arg(std::ssize(rows())), false};
}

}  // namespace reclab
