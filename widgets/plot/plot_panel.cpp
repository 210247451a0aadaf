// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/plot_panel.h"
#include "plain_text.h"

#include <QVBoxLayout>
#include <algorithm>

#include "trace/input_scale.h"
#include "window_text.h"

namespace reclab {

PlotPanel::PlotPanel(QWidget* parent) : Panel(parent), plot_(new Plot) {
  auto* shown = new QWidget;
  auto* column = new QVBoxLayout(shown);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  control_row_ = new QWidget;
  controls_ = new QHBoxLayout(control_row_);
  controls_->setContentsMargins(8, 4, 8, 4);
  controls_->setSpacing(8);
  column->addWidget(control_row_);
  column->addWidget(plot_, 1);
  control_row_->hide();

  auto* empty = new QWidget;
  empty->setBackgroundRole(QPalette::Base);
  empty->setAutoFillBackground(true);
  auto* words = new QVBoxLayout(empty);
  words->setContentsMargins(24, 16, 24, 16);
  words->setSpacing(8);
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
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->addWidget(pages_);

  connect(plot_, &Plot::timePicked, this, &Panel::timePicked);
  connect(plot_, &Plot::timeRangePicked, this, &Panel::timeRangePicked);
  connect(plot_, &Plot::themeChanged, this, &PlotPanel::refresh);
}

void PlotPanel::setTrace(std::shared_ptr<const Trace> trace) {
  trace_ = std::move(trace);
  if (trace_ && trace_->info.length > 0) {
    plot_->setTimeExtent(0, trace_->info.length - 1);
    plot_->setTimeNames(*trace_);
  }
  refresh();
}

void PlotPanel::setFormer(std::shared_ptr<const Trace> former) {
  if (former == former_) return;
  const bool was = comparable() != nullptr;
  former_ = std::move(former);
  if (was && !former_ && reason_.isEmpty()) refresh();  // what was kept of it goes
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
  if (trace_) {
    QStringList run;
    if (!trace_->info.title.empty()) run << QString::fromStdString(trace_->info.title);
    if (!trace_->info.input_name.empty()) run << QString::fromStdString(input_words(trace_->info));
    run << tr("seed %1").arg(trace_->info.seed);
    text += QStringLiteral(" – ") + run.join(QStringLiteral(", "));
  }
  return text;
}

FigureDrawing PlotPanel::drawing(const FigureStyle& style) {
  FigureText text = figureText(figureTitle(), trace_.get());
  if (trace_) text.description += tr(" The cursor is at step %1.").arg(grouped(step_));
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

QString noRunSentence(const Trace* trace, const QString& what) {
  if (!trace) return PlotPanel::tr("Nothing has run yet: choose a model and a sequence, and %1.").arg(what);
  if (trace->info.outcome != Outcome::finished && !trace->info.sentence.empty()) return QString::fromStdString(trace->info.sentence);
  return {};
}

}  // namespace reclab
