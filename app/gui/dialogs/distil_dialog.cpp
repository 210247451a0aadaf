// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/dialogs/distil_dialog.h"

#include <QDir>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QStackedWidget>
#include <QTableWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "array/error.h"
#include "gui/dialogs/field_editor.h"
#include "gui/look/look.h"
#include "gui/session/files.h"
#include "gui/session/requests.h"
#include "models/registry.h"
#include "plain_text.h"
#include "plot/plot.h"
#include "studies/study.h"
#include "window_text.h"

namespace reclab {
namespace {

struct ModesAt {
  enum Column { modes, l2, above, largest, hankel, below };
};

/// Below this an error is rounding, and a logarithm of it says nothing.
constexpr double leastDrawn = 1e-17;
QString partOf(double part) { return part < leastDrawn ? QStringLiteral("0") : reclab::number(part, 3); }
bool isBound(const ModesRow& row) { return row.above < 1.0; }  // a fit by nothing is off by 1

}  // namespace

DistilDialog::DistilDialog(LibraryPtr library, Setup setup, FileChooser chooser, QWidget* parent, Scheduler* scheduler)
    : RowsDialog(
          {.title = tr("Distill"),
           .heading = tr("Long filters as a few modes"),
           .text = tr("Each long filter of the model is fitted by a sum of exponentials, h<sub>k</sub> ≈ Re Σ r<sub>n</sub> "
                      "p<sub>n</sub><sup>k</sup>, which a recurrence runs with as many numbers of state, however "
                      "much came before. Both poles of a conjugate pair count as modes. Errors are those of the worst channel. The same "
                      "from a terminal: reclab distill."),
           .columns = {{tr("Modes"), tr("Of each channel"), true},
                       {tr("Error"), tr("The norm of the difference of all taps, over that of the filter"), true},
                       {tr("at most"),
                        tr("What balanced truncation leaves: twice the sum of the Hankel singular values beyond the last mode, over the "
                           "norm of the filter; – where that is more than the filter itself, which any fit is under"),
                        true},
                       {tr("Largest tap"), tr("The largest difference of a tap, over the largest tap"), true},
                       {tr("Hankel norm"), tr("Of the difference, over that of the filter"), true},
                       {tr("at least"),
                        tr("The next Hankel singular value over the first: no filter of so many modes comes nearer in the Hankel norm"),
                        true}},
           .stretched = -1,
           .run = tr("Distill"),
           .save = tr("Save the errors"),
           .file = "distilled.csv",
           .size = {860, 720}},
          chooser, parent, scheduler, {}),
      library_(std::move(library)),
      setup_(std::move(setup)),
      chooser_(std::move(chooser)),
      found_(std::make_shared<Found>()) {
  auto* column = static_cast<QVBoxLayout*>(layout());
  auto* choices = new QHBoxLayout;
  choices->setSpacing(8);
  const auto box = [&](const char* key, std::int64_t value) {
    const Field& field = *std::ranges::find(study("distil").fields, key, [](const Field& one) { return one.row.key; });
    auto* words = plainLabel(tr(field.form.label.c_str()), this);
    auto* spin = qobject_cast<QSpinBox*>(fieldEditor(field, this, [] {}));
    spin->setValue(static_cast<int>(value));
    words->setBuddy(spin);
    choices->addWidget(words);
    choices->addWidget(spin);
    return spin;
  };
  const Preset& preset = library_->presets.find(setup_.preset);
  modes_ = box("modes", 16);
  taps_ = box("taps", std::clamp<std::int64_t>(setup_.sequence ? setup_.sequence->sequence.length : preset.task_length, 1024, 1 << 16));
  choices->addStretch();
  column->insertLayout(2, choices);

  plot_ = new Plot(this);
  legend_ = new Legend(plot_);
  QCPAxisRect* rect = plot_->makeRect();
  plot_->plotLayout()->addElement(0, 0, legend_);
  plot_->plotLayout()->addElement(1, 0, rect);
  rect->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new PowerTicker));
  rect->axis(QCPAxis::atBottom)->setTicker(QSharedPointer<QCPAxisTicker>(new NumberTicker));
  rect->axis(QCPAxis::atBottom)->setLabel(tr("modes"));
  for (QCPGraph** graph : {&l2_, &hankel_, &values_, &bound_}) *graph = plot_->addCurve(rect, Qt::black);
  for (QCPGraph* graph : {l2_, hankel_, values_}) graph->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, 5));
  connect(plot_, &Plot::themeChanged, this, &DistilDialog::colour);
  colour();
  auto* before =
      label(tr("Distill fits the long filters of %1. What a fit loses is drawn here against its number of modes, and listed below.")
                .arg(QString::fromStdString(preset.title)),
            "muted", this);
  before->setWordWrap(true);
  before->setAlignment(Qt::AlignCenter);
  before->setMargin(24);
  picture_ = new QStackedWidget(this);
  picture_->addWidget(before);
  picture_->addWidget(plot_);
  column->insertWidget(3, picture_, 4);
  column->setStretchFactor(table(), 5);  // the rows of sixteen modes at once

  open_ = new QPushButton(tr("Open as a model…"), this);
  open_->setAutoDefault(false);
  open_->setEnabled(false);
  open_->setToolTip(tr("Writes its preset and its weights into a folder, and makes it what is looked at"));
  for (int i = column->count() - 1; i >= 0; --i)
    if (auto* buttons = qobject_cast<QHBoxLayout*>(column->itemAt(i)->layout())) {
      buttons->insertWidget(2, open_, 0, Qt::AlignBottom);
      break;
    }
  connect(open_, &QPushButton::clicked, this, &DistilDialog::openModel);
}

void DistilDialog::colour() {
  const Theme& theme = plot_->theme();
  l2_->setPen(QPen(theme.series(0), 2.0));
  hankel_->setPen(QPen(theme.series(1), 2.0));
  values_->setPen(QPen(theme.muted, 1.5));
  bound_->setPen(QPen(theme.series(0), 1.0, Qt::DotLine));
  legend_->clear();
  legend_->add("l2", tr("error"), l2_->pen(), {l2_}, tr("The norm of the difference of all taps, over that of the filter"));
  legend_->add("bound", tr("its bound"), bound_->pen(), {bound_}, tr("Twice the sum of the Hankel singular values beyond the last mode"));
  legend_->add("hankel", tr("Hankel norm of the difference"), hankel_->pen(), {hankel_}, tr("Over that of the filter"));
  legend_->add("values", tr("next Hankel singular value"), values_->pen(), {values_},
               tr("Over the first: the Hankel norm of a difference is at least this"));
  plot_->redraw();
}

void DistilDialog::start() {
  open_->setEnabled(false);
  picture_->setCurrentIndex(0);
  found_ = std::make_shared<Found>();
  RunRequest run = requestFor(setup_, library_->presets.find(setup_.preset), {});
  run.device = "cpu";
  run.dtype = "f64";
  const FieldTexts values{{"modes", std::to_string(modes_->value())}, {"taps", std::to_string(taps_->value())}};
  compute([library = library_, run = std::move(run), values, found = found_](const auto& report, std::stop_token stop) {
    found->distillation =
        study("distil").compute({builtin_registry(), library->presets, run}, values, {report.progress}, stop).template get<Distillation>();
    report.part(found->distillation->rows);
  });
}

void DistilDialog::write(const ModesRow& found) {
  const int row = addRow();
  put(row, ModesAt::modes, QString::number(found.modes));
  put(row, ModesAt::l2, partOf(found.l2));
  if (isBound(found))
    put(row, ModesAt::above, partOf(found.above));
  else
    put(row, ModesAt::above, QString::fromUtf8("–"),
        tr("Twice the sum of the Hankel singular values beyond mode %1 is %2 times the norm of the filter, which bounds nothing.")
            .arg(found.modes)
            .arg(reclab::number(found.above, 3)));
  put(row, ModesAt::largest, partOf(found.largest));
  put(row, ModesAt::hankel, partOf(found.hankel));
  put(row, ModesAt::below, partOf(found.below));
  open_->setEnabled(true);  // rows come when all is found
  picture_->setCurrentIndex(1);
  draw();
}

void DistilDialog::draw() const {
  const auto points = [&](QCPGraph* graph, auto value) {
    QVector<QCPGraphData> drawn;
    for (const ModesRow& row : rows())
      if (const double y = value(row); y > leastDrawn) drawn.append({static_cast<double>(row.modes), std::log10(y)});
    graph->data()->set(drawn, true);
  };
  points(l2_, [](const ModesRow& row) { return row.l2; });
  points(bound_, [](const ModesRow& row) { return isBound(row) ? row.above : 0.0; });
  points(hankel_, [](const ModesRow& row) { return row.hankel; });
  points(values_, [](const ModesRow& row) { return row.below; });
  QCPAxis *x = l2_->keyAxis(), *y = l2_->valueAxis();
  double low = 0.0, high = 0.0;
  for (const QCPGraph* graph : {l2_, bound_, hankel_, values_})
    for (const QCPGraphData& point : *graph->data()) {
      low = std::min(low, point.value);
      high = std::max(high, point.value);
    }
  x->setRange(0.5, rows().empty() ? 16.5 : static_cast<double>(rows().back().modes) + 0.5);
  y->setRange(low - 0.3, high + 0.3);
  plot_->redraw();
}

std::pair<QString, bool> DistilDialog::outcome() const {
  if (!found_->distillation || rows().empty()) return {};
  const Distillation& found = *found_->distillation;
  std::int64_t channels = 0;
  for (const DistilledFilter& filter : found.filters) channels += filter.filter.channels;
  const auto filters = std::ssize(found.filters);
  const QString of = tr("%1 of %2: with %3, %4 of the worst one is lost.")
                         .arg(channels == 1 ? tr("1 channel") : tr("%1 channels").arg(grouped(channels)),
                              filters == 1 ? tr("1 filter") : tr("%1 filters").arg(grouped(filters)),
                              found.modes == 1 ? tr("1 mode") : tr("%1 modes").arg(found.modes), partOf(found.rows.back().l2));
  QStringList said{of};
  if (!std::ranges::all_of(rows(), isBound)) said << tr("– under “at most”: the bound is larger than the filter.");
  if (found.used < found.modes) said << tr("No filter has more than %1 of them, so the model that opens has these.").arg(found.used);
  said << (found.whole ? tr("The whole model can be run with them.") : tr("The first filter can be run with them as a model of its own."));
  return {said.join(u' '), false};
}

void DistilDialog::openModel() {
  const auto found = found_->distillation;
  if (!found) return;
  const QString folder =
      chooser_.folder(this, tr("A folder for the distilled model"), folderNameOf(setup_.preset, QStringLiteral("distilled")));
  if (folder.isEmpty()) return;
  try {
    export_distillation(*found, folder.toStdString());
    Setup after = setup_;
    const std::string& id = found->preset.architecture;
    const Hyper standard = hyper_of(builtin_registry(), library_->presets.find(id));
    after.preset = id;
    after.form = "auto";
    after.set[id].clear();
    after.states.erase(id);
    after.weights[id] = std::filesystem::path(folder.toStdString()) / weights_file(*found);
    Hyper own(builtin_registry().find(id).hyper);
    for (const auto& [key, value] : found->preset.hyper) own.set(key, value, id);
    for (const HyperSpec& spec : own.table())
      if (!spec.initialisation_only && own.text(spec.key) != standard.text(spec.key)) after.setValue(spec.key, own.text(spec.key));
    if (!found->whole) after.sequence = loadChoice(found->preset.own_sequence());
    emit opened(after, QString::fromStdString(found->preset.title));
    accept();
  } catch (const Error& error) {
    say(windowText(error), true);
  }
}

}  // namespace reclab
