// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/output/output.h"

#include <QSignalBlocker>
#include <algorithm>
#include <cmath>
#include <limits>

#include "panels/panel_info.h"
#include "plain_text.h"
#include "plot/parts/curves.h"
#include "plot/parts/layout.h"
#include "plot/parts/pinned.h"

namespace reclab {

namespace {

constexpr double pale = 0.4, broad = 3.5;  // of a target's line
constexpr std::int64_t most_points = 200'000,
                       most_grey = 1'000'000;  // of a curve, and of all grey ones together; beyond it they are extremes

}  // namespace

OutputPanel::OutputPanel(QWidget* parent) : Described(parent) {
  scale_ =
      addChoice("scale", false, tr("Outputs that are classes: as probabilities, the softmax of the logits, or as the logits themselves."),
                {tr("probabilities"), tr("logits")});
  which_ = new QLineEdit;
  which_->setObjectName(QStringLiteral("which"));
  which_->setClearButtonEnabled(true);
  which_->setAccessibleName(tr("Outputs in colour"));
  which_->setPlaceholderText(tr("in colour: those that vary most"));
  which_->setToolTip(tr("Which outputs are in colour: numbers from 0, ranges and names, such as 0, 4-6. Empty: those that vary most."));
  controls_->addWidget(which_, 1);
  controls_->addStretch();
  sentence_ = new Paragraph(plot_);
  legend_ = new Legend(plot_);
  rect_ = plot_->makeRect();
  note_ = new Paragraph(plot_);
  note_->setSmall(true);
  stack(plot_, {sentence_, legend_, rect_, note_});
  plot_->addTimeRect(rect_);
  values_ = plot_->addValueAxis(rect_);
  plot_->setHoverHandler([this](const QPointF& position) { return tipAt(position); });
  addActions({values_->lockAction(), values_->resetAction()});
  connect(scale_, &QComboBox::activated, this, [this] { refresh(); });
  connect(which_, &QLineEdit::textEdited, this, [this](const QString& text) {
    if (!trace_) return;
    by_hand_[preset()] = text;
    refresh();
  });
  connect(plot_, &Plot::timeRangeChanged, this, &OutputPanel::fitValues);
  connect(plot_, &Plot::curvesToggled, this, &OutputPanel::fitValues);
  refresh();
}

void OutputPanel::setPinned(const std::vector<Run>& runs) {
  pinned_ = runs;
  pins_.clear();
  for (const Run& run : pinned_) pins_.emplace_back(run.trace);
  refresh();
}

QVariantMap OutputPanel::choices() const { return {{QStringLiteral("logits"), scale_->currentIndex() == 1}}; }

void OutputPanel::setChoices(const QVariantMap& saved) {
  scale_->setCurrentIndex(saved.value(QStringLiteral("logits")).toString() == u"true" ? 1 : 0);
  refresh();
}

double OutputPanel::shown(const OutputData& of, std::int64_t row, std::int64_t channel) const {
  return probabilities() ? of.probability(row, channel) : of.value(row, channel);
}

/// The value at which the target is drawn: with logits, the logit of the target's class.
std::optional<double> OutputPanel::wanted(std::int64_t row, std::int64_t channel) const {
  if (!data_.classes()) return data_.target(row, channel);
  if (data_.targetClass(row) != channel) return std::nullopt;
  return probabilities() ? 1.0 : data_.value(row, channel);
}

/// All of few channels; of many the typed ones or the preset's, else those that vary most.
void OutputPanel::choose() {
  const QString asked = by_hand_.value(preset(), PlotPanel::wanted());
  if (which_->text() != asked) {
    const QSignalBlocker quiet(which_);
    which_->setText(asked);
  }
  chosen_.clear();
  unknown_.clear();
  const std::int64_t count = data_.channels();
  const auto add = [&](std::int64_t channel) {
    if (std::ranges::find(chosen_, channel) == chosen_.end()) chosen_.push_back(channel);
  };
  const auto named = [&](const QString& word) -> std::int64_t {
    bool numeric = false;
    const qlonglong at = word.toLongLong(&numeric);
    if (numeric) return at < count ? at : -1;
    for (std::int64_t j = 0; j < count; ++j)
      if (data_.name(j).compare(word, Qt::CaseInsensitive) == 0) return j;
    return -1;
  };
  for (const QString& part : asked.split(u',', Qt::SkipEmptyParts)) {
    const QString word = part.trimmed();
    if (word.isEmpty()) continue;
    const std::int64_t one = named(word), first = named(word.section(u'-', 0, 0).trimmed()), last = named(word.section(u'-', 1).trimmed());
    if (one >= 0) {
      add(one);
    } else if (word.count(u'-') == 1 && first >= 0 && last >= first) {
      for (std::int64_t j = first; j <= last; ++j) add(j);
    } else {
      unknown_ << word;
    }
  }
  if (!chosen_.empty()) return;
  std::vector<std::int64_t> order = data_.byVariance();
  // One output of each of many runs can be told apart, five of each cannot; best one that all have.
  const auto drawn = [this](const OutputData& pin) { return pin.some() && pin.classes() == data_.classes(); };
  if (std::ranges::count_if(pins_, drawn) > 1) {
    const auto shared = std::ranges::find_if(order, [&](std::int64_t j) {
      return std::ranges::all_of(pins_, [&](const OutputData& pin) { return !drawn(pin) || j < pin.channels(); });
    });
    order = {shared == order.end() ? order.front() : *shared};
  } else if (order.size() > most_in_colour)
    order.resize(5);
  std::ranges::sort(order);
  chosen_ = order;
}

void OutputPanel::rebuild() {
  data_ = OutputData(trace_);
  score_ = data_.score();
  choose();
  scale_->setVisible(data_.classes());
  which_->setVisible(data_.channels() > static_cast<std::int64_t>(most_in_colour));
  control_row_->setVisible(!scale_->isHidden() || !which_->isHidden());
  plot_->clearPlottables();
  legend_->clear();
  rect_->axis(QCPAxis::atLeft)->setLabel(!data_.classes() ? tr("output") : probabilities() ? tr("probability") : tr("logit"));
  sentence_->setText(judged());
  note_->setText(noted(), true);
  drawOthers();
  drawPins();
  drawChosen();
  fitValues();
}

/// The channels without a colour, thin and grey, behind the others.
void OutputPanel::drawOthers() {
  const std::int64_t others = data_.channels() - std::ssize(chosen_);
  if (others <= 0) return;
  const Theme& theme = plot_->theme();
  const QColor ink = mixed(theme.muted, theme.base, 0.35);
  QList<QCPLayerable*> drawn;
  for (std::int64_t j = 0; j < data_.channels(); ++j) {
    if (std::ranges::find(chosen_, j) != chosen_.end()) continue;
    QCPGraph* graph = plot_->addCurve(rect_, ink, 0.7);
    Plot::setQuiet(graph);
    fillCurve(
        graph, data_.steps(), data_.rows(), [&](std::int64_t row) { return shown(data_, row, j); },
        std::clamp<std::int64_t>(most_grey / others, 1000, most_points));
    drawn << graph;
  }
  legend_->add(QStringLiteral("others"), others == 1 ? tr("1 other") : tr("%1 others").arg(grouped(others)), QPen(ink, 0.7), drawn,
               tr("The outputs that are not in colour."));
}

/// The same outputs of pinned runs, thin, in the run's colour; which is which by their dashes.
void OutputPanel::drawPins() {
  auto pin = pins_.begin();
  for (const Run& run : pinned_) {
    const OutputData& other = *pin++;
    if (!other.some() || other.classes() != data_.classes()) {
      addPinWithout(legend_, run, plot_->theme(), !other.some() ? tr("no output") : data_.classes() ? tr("no classes") : tr("classes"));
      continue;
    }
    QList<QCPLayerable*> drawn;
    QStringList names;
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      if (chosen_[i] >= other.channels()) continue;
      QCPGraph* graph = plot_->addCurve(rect_, run.colour, 1.0, curveStyle(static_cast<int>(drawn.size())));
      if (chosen_.size() > 1) Plot::setQuiet(graph);
      fillCurve(graph, other.steps(), other.rows(), [&](std::int64_t row) { return shown(other, row, chosen_[i]); }, most_points);
      drawn << graph;
      names << other.name(chosen_[i]);
    }
    if (drawn.isEmpty())
      addPinWithout(legend_, run, plot_->theme(), tr("none of these outputs"));
    else
      addPin(legend_, run, QPen(run.colour, 1.0), drawn, {},
             drawn.size() > 1 ? tr("The same outputs, by their dashes: %1.").arg(names.join(QStringLiteral(", "))) : QString());
  }
}

/// A broad pale line under the output where it counts at steps one after the other, a ring where it counts alone.
void OutputPanel::drawTarget(std::int64_t channel, const QColor& ink, QList<QCPLayerable*>& drawn) {
  QVector<QCPGraphData> line, alone;
  bool before = false;
  for (std::int64_t row = 0; row < data_.rows(); ++row) {
    const std::optional<double> here = wanted(row, channel);
    const bool next = row + 1 < data_.rows() && !data_.classes() && data_.target(row + 1, channel).has_value();
    const auto step = static_cast<double>(data_.steps()[static_cast<std::size_t>(row)]);
    if (here && !data_.classes() && (before || next))
      line.append({step, *here});
    else if (!line.isEmpty() && !std::isnan(line.back().value))
      line.append({step, no_value});
    if (here && (data_.classes() || (!before && !next))) alone.append({step, *here});
    before = here.has_value();
  }
  const auto add = [&](const QVector<QCPGraphData>& points) {
    QCPGraph* graph = plot_->addCurve(rect_, mixed(ink, plot_->theme().base, pale), broad);
    graph->data()->set(points, true);
    if (chosen_.size() > 1 || data_.classes()) Plot::setQuiet(graph);
    graph->setName(tr("target"));
    drawn << graph;
    return graph;
  };
  if (!line.isEmpty()) add(line);
  if (alone.isEmpty()) return;
  QCPGraph* rings = add(alone);
  rings->setLineStyle(QCPGraph::lsNone);
  rings->setPen(QPen(ink, 1.3));
  rings->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCircle, 7));
  if (!data_.classes()) return;
  rings->setAdaptiveSampling(false);
}

void OutputPanel::drawChosen() {
  const Theme& theme = plot_->theme();
  const bool one = chosen_.size() == 1, constant = score_ && score_->counted > 1 && (!data_.classes() || probabilities());
  QList<QCPLayerable*> targets, constants;
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    const std::int64_t j = chosen_[i];
    const QPen pen = theme.curve(static_cast<int>(i), 1.6);
    const QColor ink = pen.color();
    if (constant) {
      QCPGraph* level = plot_->addCurve(rect_, one ? theme.muted : mixed(ink, theme.base, 0.7), 1.0, Qt::DotLine);
      Plot::setQuiet(level);
      const double value = score_->answer[static_cast<std::size_t>(j)];
      level->addData(static_cast<double>(data_.steps().front()), value);
      level->addData(static_cast<double>(data_.steps()[static_cast<std::size_t>(data_.rows() - 1)]), value);
      constants << level;
    }
    if (data_.hasTarget()) drawTarget(j, one ? theme.text : ink, targets);
    QCPGraph* graph = plot_->addCurve(rect_, ink, pen.widthF(), pen.style());
    fillCurve(graph, data_.steps(), data_.rows(), [&](std::int64_t row) { return shown(data_, row, j); }, most_points);
    if (!one || data_.hasTarget()) graph->setName(data_.name(j));
    legend_->add(QStringLiteral("output/%1").arg(j), data_.name(j), graph->pen(), {graph});
  }
  const QColor ink = one ? theme.text : theme.muted;
  if (!targets.isEmpty())
    legend_->add(QStringLiteral("target"), tr("target"), data_.classes() ? QPen(ink, 1.3) : QPen(mixed(ink, theme.base, pale), broad),
                 targets, tr("What the output should be where that counts, in the colour of the output."));
  if (!constants.isEmpty())
    legend_->add(QStringLiteral("constant"), tr("best constant"), QPen(theme.muted, 1.0, Qt::DotLine), constants,
                 data_.classes() ? tr("How often each class is the target: the best that is the same at every step.")
                                 : tr("The target's mean: the best that is the same at every step."));
}

void OutputPanel::fitValues() {
  if (!data_.some()) return;
  if (probabilities()) {
    values_->fit({-0.04, 1.06});
    plot_->redraw();
    return;
  }
  const std::optional<QCPRange> all = spanOf(rect_, rect_->axis(QCPAxis::atBottom)->range());
  if (!all) return;
  values_->fit(widened(*all, 0.05));
  plot_->redraw();
}

RECLAB_PANEL_IS(output, OutputPanel)

}  // namespace reclab
