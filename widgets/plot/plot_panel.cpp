// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/plot_panel.h"
#include "box_layout.h"
#include "plain_text.h"

#include <QSignalBlocker>
#include <algorithm>

#include "plot/parts/step_text.h"
#include "trace/input_scale.h"
#include "window_text.h"

namespace reclab {

PlotPanel::PlotPanel(QWidget* parent) : Panel(parent), plot_(new Plot) {
  auto* shown = new QWidget;
  auto* column = boxLayout<QVBoxLayout>(shown, 0);
  control_row_ = new QWidget;
  controls_ = boxLayout<QHBoxLayout>(control_row_, 8, {8, 4, 8, 4});
  column->addWidget(control_row_);
  column->addWidget(plot_, 1);
  control_row_->hide();

  auto* empty = new QWidget;
  empty->setBackgroundRole(QPalette::Base);
  empty->setAutoFillBackground(true);
  auto* words = boxLayout<QVBoxLayout>(empty, 8, {24, 16, 24, 16});
  sentence_ = plainLabel();
  sentence_->setWordWrap(true);
  sentence_->setAlignment(Qt::AlignCenter);
  offer_ = new QPushButton;
  offer_->setObjectName(QStringLiteral("offer"));
  offer_->setCursor(Qt::PointingHandCursor);
  offer_->hide();
  words->addStretch();
  words->addWidget(sentence_);
  words->addWidget(offer_, 0, Qt::AlignHCenter);
  words->addStretch();

  pages_ = new QStackedWidget;
  pages_->addWidget(shown);
  pages_->addWidget(empty);
  auto* all = boxLayout<QVBoxLayout>(this);
  all->addWidget(pages_);

  connect(plot_, &Plot::timePicked, this, &Panel::timePicked);
  connect(plot_, &Plot::timeRangePicked, this, &Panel::timeRangePicked);
  connect(plot_, &Plot::themeChanged, this, &PlotPanel::refresh);
}

void PlotPanel::setTrace(std::shared_ptr<const Trace> trace) {
  trace_ = std::move(trace);
  if (trace_ && trace_->info.length > 0) {
    const QSignalBlocker quiet(plot_);  // who hears of the range still has arrays of the trace before
    plot_->setTimeExtent(0, trace_->info.length - 1);
    plot_->setTimeNames(*trace_);
  }
  refresh();
}

void PlotPanel::setPinned(const std::vector<Run>& runs) {
  pinned_ = runs;
  refresh();
}

void PlotPanel::lookAt(const QString& preset, const QString& detail, bool asked) {
  if (detail.isEmpty() && !places().named.isEmpty()) return;
  wanted_[preset] = detail;
  if (asked) dropChoice(preset);
  refresh();
}

QComboBox* PlotPanel::addChoice(const char* name, bool kept, const QString& tip, const QStringList& items) {
  QComboBox* box = makeChoice(name, kept, tip, items);
  controls_->addWidget(box);
  return box;
}

QComboBox* PlotPanel::makeChoice(const char* name, bool kept, const QString& tip, const QStringList& items) {
  auto* box = new QComboBox;
  box->setObjectName(QLatin1String(name));
  if (kept) box->setProperty("choice", name);
  box->setToolTip(safeTip(tip));
  box->setAccessibleName(QString(QChar(*name).toUpper()) + (name + 1));
  box->addItems(items);
  return box;
}

QString PlotPanel::fillLayers(QComboBox* box, const std::vector<const TraceArray*>& arrays, const QString& chosen) {
  const QSignalBlocker quiet(box);
  box->clear();
  for (const TraceArray* array : arrays) {
    const QString layer = QString::fromStdString(array->key).section(u'/', 1);
    box->addItem(layerName(*trace_, layer), layer);
  }
  box->setCurrentIndex(std::max(0, box->findData(chosen)));
  return box->currentData().toString();
}

void PlotPanel::setFormer(std::shared_ptr<const Trace> former) {
  if (former == former_) return;
  const bool was = comparable() != nullptr;
  former_ = std::move(former);
  if (was && !former_ && reason_.isEmpty()) refresh();  // its kept picture goes
}

const Trace* PlotPanel::comparable() const {
  if (!trace_ || !former_ || former_ == trace_) return nullptr;
  const RunInfo &a = trace_->info, &b = former_->info;
  return a.preset == b.preset && a.length == b.length && a.input_sha256 == b.input_sha256 && a.layers == b.layers ? former_.get() : nullptr;
}

void PlotPanel::refresh() {
  reason_ = whyEmpty();
  if (reason_.isEmpty()) {
    rebuild();
    plot_->setCursorStep(step_);
    moveTime();
    plot_->redraw();
  } else {
    forget();
    sentence_->setText(reason_);
  }
  pages_->setCurrentIndex(reason_.isEmpty() ? 0 : 1);
  updateHeadline();
}

void PlotPanel::setTime(std::int64_t step) {
  if (step == step_) return;
  step_ = step;
  plot_->setCursorStep(step);
  if (!reason_.isEmpty() || !trace_) return;
  moveTime();
  updateHeadline();
}

void PlotPanel::updateHeadline() {
  const QString headline = reason_.isEmpty() && trace_ ? makeHeadline() : QString();
  if (headline == headline_) return;
  headline_ = headline;
  emit headlineChanged();
}

QString PlotPanel::figureTitle() const {
  QString text = title();
  if (const QString of = subject(); !of.isEmpty()) text += QStringLiteral(": ") + of;
  if (trace_) text += titleOfRun(*trace_);
  return text;
}

FigureDrawing PlotPanel::drawing(const FigureStyle& style) {
  FigureText text = figureText(figureTitle(), trace_.get());
  if (trace_) text.description += tr(" The cursor is at step %1.").arg(stepText(trace_.get(), step_));
  return plot_->drawing(text, style);
}

static const LayerInfo* layerInfo(const Trace& trace, const QString& number) {
  bool numeric = false;
  const std::size_t at = number.toUInt(&numeric);
  return numeric && at < trace.info.each_layer.size() ? &trace.info.each_layer[at] : nullptr;
}

QString layerName(const Trace& trace, const QString& number) {
  const LayerInfo* info = layerInfo(trace, number);
  return info && !info->name.empty() ? PlotPanel::tr("layer %1 (%2)").arg(number, QString::fromStdString(info->name))
                                     : PlotPanel::tr("layer %1").arg(number);
}

bool runsBackward(const Trace& trace, const QString& number) {
  const LayerInfo* info = layerInfo(trace, number);
  return info && info->reversed;
}

QString notesOn(const Trace& trace, Kinds kinds) {
  QStringList notes;
  for (const auto& [kind, note] : trace.info.note_kinds) {
    QString sentence = windowText(note);
    if (!sentence.endsWith(u'.')) sentence += u'.';
    if (kinds.has(kind) && !notes.contains(sentence)) notes << sentence;
  }
  return notes.join(u' ');
}

QString titleOfRun(const Trace& trace) {
  QStringList run;
  if (!trace.info.title.empty()) run << QString::fromStdString(trace.info.title);
  if (!trace.info.input_name.empty()) run << QString::fromStdString(input_words(trace.info));
  run << PlotPanel::tr("seed %1").arg(trace.info.seed);
  return QStringLiteral(" – ") + run.join(QStringLiteral(", "));
}

QString modelName(const Trace& trace) {
  return trace.info.title.empty() ? PlotPanel::tr("This model") : QString::fromStdString(trace.info.title);
}

QString endedEarly(const Trace& trace, const QString& lacks) {
  if (trace.info.outcome != Outcome::diverged && trace.info.outcome != Outcome::cancelled) return {};
  return PlotPanel::tr("%1, for it ended early: %2").arg(lacks, QString::fromStdString(trace.info.sentence));
}

QString whyAbsent(const Trace& trace, Kind kind) {
  const auto absent = trace.info.absent.find(kind);
  return absent == trace.info.absent.end() ? QString() : QString::fromStdString(absent->second);
}

QString noRunSentence(const Trace* trace, const QString& what) {
  if (!trace) return PlotPanel::tr("Nothing has run yet: choose a model and a sequence, and %1.").arg(what);
  if (trace->info.outcome != Outcome::finished && !trace->info.sentence.empty()) return QString::fromStdString(trace->info.sentence);
  return {};
}

}  // namespace reclab
