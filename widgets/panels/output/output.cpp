// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/output/output.h"

#include <QSignalBlocker>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "panels/panel_info.h"
#include "plain_text.h"
#include "plot/pinned.h"

namespace reclab {

namespace {

constexpr double gap_value = std::numeric_limits<double>::quiet_NaN();
constexpr double pale = 0.4, broad = 3.5;  // of a target's line
constexpr std::size_t most_in_colour = 7;  // as many as one tells apart
constexpr std::int64_t most_points = 200'000,
                       most_grey = 1'000'000;  // of a curve, and of all grey ones together; beyond it they are extremes

QString percent(double share) { return QStringLiteral("%1 %").arg(number(100.0 * share)); }

/// A curve of `rows` values; of more than `most`, the extremes of neighbouring ones. What is not finite is a gap.
template <class Value>
void fill(QCPGraph* graph, const std::vector<std::int64_t>& steps, std::int64_t rows, std::int64_t most, const Value& value) {
  QVector<QCPGraphData> points;
  const auto add = [&](std::int64_t row, double v) {
    points.append({static_cast<double>(steps[static_cast<std::size_t>(row)]), std::isfinite(v) ? v : gap_value});
  };
  const std::int64_t together = std::max<std::int64_t>(1, (2 * rows + most - 1) / most);
  for (std::int64_t first = 0; first < rows; first += together) {
    std::int64_t least = first, largest = first;
    double low = value(first), high = low;
    for (std::int64_t row = first + 1; row < std::min(rows, first + together); ++row) {
      const double v = value(row);
      if (!(v >= low)) low = v, least = row;
      if (!(v <= high)) high = v, largest = row;
    }
    add(std::min(least, largest), least < largest ? low : high);
    if (least != largest) add(std::max(least, largest), least < largest ? high : low);
  }
  graph->data()->set(points, true);
}

}  // namespace

OutputPanel::OutputPanel(QWidget* parent) : PlotPanel(parent) {
  scale_ = new QComboBox;
  scale_->setObjectName(QStringLiteral("scale"));
  scale_->addItems({tr("probabilities"), tr("logits")});
  scale_->setToolTip(tr("Outputs that are classes: as probabilities, the softmax of the logits, or as the logits themselves."));
  which_ = new QLineEdit;
  which_->setObjectName(QStringLiteral("which"));
  which_->setClearButtonEnabled(true);
  which_->setPlaceholderText(tr("in colour: those that vary most"));
  which_->setToolTip(tr("Which outputs are in colour: numbers from 0, ranges and names, such as 0, 4-6. Empty: those that vary most."));
  controls_->addWidget(scale_);
  controls_->addWidget(which_, 1);
  controls_->addStretch();
  sentence_ = new Paragraph(plot_);
  legend_ = new Legend(plot_);
  rect_ = plot_->makeRect();
  note_ = new Paragraph(plot_);
  note_->setSmall(true);
  plot_->plotLayout()->addElement(0, 0, sentence_);
  plot_->plotLayout()->addElement(1, 0, legend_);
  plot_->plotLayout()->addElement(2, 0, rect_);
  plot_->plotLayout()->addElement(3, 0, note_);
  plot_->addTimeRect(rect_);
  values_ = plot_->addValueAxis(rect_);
  plot_->setHoverHandler([this](const QPointF& position) { return tipAt(position); });
  addActions({values_->lockAction(), values_->resetAction()});
  connect(scale_, &QComboBox::activated, this, [this] { refresh(); });
  connect(which_, &QLineEdit::textEdited, this, [this](const QString& text) {
    if (!trace_) return;
    by_hand_[QString::fromStdString(trace_->info.preset)] = text;
    refresh();
  });
  connect(plot_, &Plot::timeRangeChanged, this, &OutputPanel::fitValues);
  connect(plot_, &Plot::curvesToggled, this, &OutputPanel::fitValues);
  refresh();
}

QString OutputPanel::hint() const {
  return tr(
      "What the model returns at every step, beside the target where the sequence brings one, and beside the best constant, which needs no "
      "memory at all.");
}

QString OutputPanel::subject() const { return data_.classes() ? scale_->currentText() : QString(); }

QString OutputPanel::whyEmpty() const {
  if (const QString said = noRunSentence(trace_.get(), tr("what the model returns appears here")); !trace_) return said;
  const OutputData recorded(trace_);
  if (recorded.anyFinite()) return {};
  if (recorded.some())
    return tr("The output is not finite from its first step on, so there is nothing to draw: lower the weights or the input.");
  if (trace_->info.outcome != Outcome::finished)
    return tr("This run has no output, for it ended early: %1").arg(QString::fromStdString(trace_->info.sentence));
  return tr("The output of this run was not recorded. Press Run.");
}

void OutputPanel::setPinned(const std::vector<Run>& runs) {
  pinned_ = runs;
  pins_.clear();
  for (const Run& run : pinned_)
    if (run.trace) pins_.emplace_back(run.trace);
  refresh();
}

void OutputPanel::lookAt(const QString& preset, const QString& detail, bool asked) {
  if (detail.isEmpty()) return;
  wanted_[preset] = detail;
  if (asked) by_hand_.remove(preset);
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

/// Where the target is drawn: of logits, at the logit that is to be the largest.
std::optional<double> OutputPanel::wanted(std::int64_t row, std::int64_t channel) const {
  if (!data_.classes()) return data_.target(row, channel);
  if (data_.targetClass(row) != channel) return std::nullopt;
  return probabilities() ? 1.0 : data_.value(row, channel);
}

/// All of few; of many what was typed or the preset names, else those that vary most.
void OutputPanel::choose() {
  const QString preset = QString::fromStdString(trace_->info.preset), asked = by_hand_.value(preset, wanted_.value(preset));
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

/// What the task asks, and how far the output is from it.
QString OutputPanel::judged() const {
  if (!score_) {
    if (data_.hasTarget()) return tr("The target counts at none of the recorded steps.");
    return data_.channels() == 1 ? tr("One output, and no target to compare it with.")
                                 : tr("%1 outputs, and no target to compare them with.").arg(grouped(data_.channels()));
  }
  const QString steps =
      score_->counted == 1 ? tr("At the one step that counts") : tr("Over the %1 steps that count").arg(grouped(score_->counted));
  // One target says nothing of how well a constant does.
  const bool compared = score_->counted > 1;
  if (data_.classes()) {
    QString text = score_->counted == 1
                       ? tr("At the one step that counts the output is %1").arg(score_->right > 0 ? tr("right") : tr("wrong"))
                       : tr("%1 the output is right at %2").arg(steps, percent(score_->right));
    text += tr(", its cross-entropy %1 nats").arg(number(score_->loss));
    if (compared)
      text += tr("; the best constant is right at %1, and has %2").arg(percent(score_->most_frequent), number(score_->constant));
    return text + u'.';
  }
  QString text = tr("%1 half the squared error is %2").arg(steps, number(score_->loss));
  if (compared) text += tr("; that of the best constant, the target's mean, is %1").arg(number(score_->constant));
  return text + u'.';
}

QString OutputPanel::noted() const {
  QStringList said;
  if (!unknown_.isEmpty())
    said << tr("There is no output %1: they are numbered from 0 to %2.")
                .arg(unknown_.join(QStringLiteral(", ")), grouped(data_.channels() - 1));
  if (chosen_.size() > most_in_colour) said << tr("Seven have a colour of their own, beyond them colours repeat.");
  if (data_.classes() && data_.hasTarget())
    said << (probabilities() ? tr("A ring at 1 is the class that the output should be.")
                             : tr("A ring is on the logit that should be the largest."));
  if (score_ && trace_->info.every > 1)
    said << tr("Of every %1 steps one was recorded, and counted here.").arg(grouped(trace_->info.every));
  said << notesOn(*trace_, {Kind::output, Kind::target});
  said.removeAll(QString());
  return said.join(u' ');
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

/// All that are not in colour, thin and grey, behind the others.
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
    fill(graph, data_.steps(), data_.rows(), std::clamp<std::int64_t>(most_grey / others, 1000, most_points),
         [&](std::int64_t row) { return shown(data_, row, j); });
    drawn << graph;
  }
  legend_->add(QStringLiteral("others"), others == 1 ? tr("1 other") : tr("%1 others").arg(grouped(others)), QPen(ink, 0.7), drawn,
               tr("The outputs that are not in colour."));
}

/// The same outputs of pinned runs, thin, in the run's colour; which is which by their dashes.
void OutputPanel::drawPins() {
  auto pin = pins_.begin();
  for (const Run& run : pinned_) {
    if (!run.trace) continue;
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
      fill(graph, other.steps(), other.rows(), most_points, [&](std::int64_t row) { return shown(other, row, chosen_[i]); });
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
      line.append({step, gap_value});
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
    fill(graph, data_.steps(), data_.rows(), most_points, [&](std::int64_t row) { return shown(data_, row, j); });
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
  const QCPRange visible = rect_->axis(QCPAxis::atBottom)->range();
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const QCPGraph* graph : rect_->graphs()) {
    bool found = false;
    const QCPRange range = graph->realVisibility() ? graph->getValueRange(found, QCP::sdBoth, visible) : QCPRange();
    if (!found || !std::isfinite(range.lower) || !std::isfinite(range.upper)) continue;
    low = std::min(low, range.lower);
    high = std::max(high, range.upper);
  }
  if (!(low <= high)) return;
  const double room = high > low ? 0.05 * (high - low) : std::max(1e-3, 0.05 * std::abs(high));
  values_->fit({low - room, high + room});
  plot_->redraw();
}

QString OutputPanel::makeHeadline() const {
  if (score_)
    return data_.classes() ? tr("%1 right").arg(percent(score_->right))
                           : tr("RMSE %1").arg(number(std::sqrt(2.0 * score_->loss / static_cast<double>(data_.channels()))));
  const std::int64_t row = std::min(data_.rowOf(step_), data_.rows() - 1);
  if (data_.channels() == 1) return QStringLiteral("%1 = %2").arg(data_.name(0), number(data_.value(row, 0)));
  double squares = 0.0;
  for (std::int64_t j = 0; j < data_.channels(); ++j) squares += data_.value(row, j) * data_.value(row, j);
  return tr("|y| = %1").arg(number(std::sqrt(squares)));
}

QString OutputPanel::tipAt(const QPointF& position) const {
  if (!data_.some() || !rect_->rect().contains(position.toPoint())) return {};
  const QCPAxis* values = rect_->axis(QCPAxis::atLeft);
  const std::int64_t row =
      std::min(data_.rowOf(std::llround(rect_->axis(QCPAxis::atBottom)->pixelToCoord(position.x()))), data_.rows() - 1);
  // The nearest curve, and of equally near ones that in colour.
  std::int64_t nearest = -1;
  double least = 12.0;
  for (std::int64_t j = 0; j < data_.channels(); ++j) {
    const bool coloured = std::ranges::find(chosen_, j) != chosen_.end();
    const double away = std::abs(values->coordToPixel(shown(data_, row, j)) - position.y()) + (coloured ? 0.0 : 1.0);
    if (away < least) least = away, nearest = j;
  }
  if (nearest < 0) return {};
  const std::int64_t step = data_.steps()[static_cast<std::size_t>(row)];
  QStringList said;
  const double value = data_.value(row, nearest);
  if (data_.classes())
    said << tr("%1 at step %2: probability %3, logit %4")
                .arg(data_.name(nearest).toHtmlEscaped(), grouped(step), number(data_.probability(row, nearest), 4), number(value, 4));
  else
    said << tr("%1 at step %2: %3").arg(data_.name(nearest).toHtmlEscaped(), grouped(step), number(value, 4));
  if (const auto target = data_.target(row, nearest))
    said << (data_.classes() ? tr("target: %1").arg(data_.name(data_.targetClass(row)).toHtmlEscaped())
                             : tr("target %1, error %2").arg(number(*target, 4), number(value - *target, 3)));
  else if (data_.hasTarget())
    said << tr("No target counts here.");
  auto pin = pins_.begin();
  for (const Run& run : pinned_) {
    if (!run.trace) continue;
    const OutputData& other = *pin++;
    if (!other.some() || nearest >= other.channels() || other.classes() != data_.classes()) continue;
    const std::int64_t its = other.rowOf(step);
    if (other.steps()[static_cast<std::size_t>(its)] == step)
      said << tr("%1: %2").arg(run.label.toHtmlEscaped(), number(shown(other, its, nearest), 4));
  }
  return htmlTip(said.join(QStringLiteral("<br>")));
}

QString OutputPanel::dataAsCsv() const {
  if (!trace_ || !data_.some()) return {};
  // One line a recorded step; pinned runs that were recorded at others leave cells empty between theirs.
  const QString key = probabilities() ? QStringLiteral("probability") : QString::fromStdString(key_of(Kind::output));
  QStringList header{QStringLiteral("step"), QStringLiteral("time")};
  for (std::int64_t j = 0; j < data_.channels(); ++j) header << QStringLiteral("%1/%2").arg(key).arg(j);
  const std::int64_t targets = !data_.hasTarget() ? 0 : data_.classes() ? 1 : data_.channels();
  for (std::int64_t j = 0; j < targets; ++j) header << QStringLiteral("target/%1").arg(j);
  if (targets > 0) header << QStringLiteral("mask");
  std::vector<std::int64_t> all(data_.steps().begin(), data_.steps().begin() + data_.rows());
  std::vector<std::pair<const OutputData*, std::vector<std::int64_t>>> others;
  auto pin = pins_.begin();
  for (const Run& run : pinned_) {
    if (!run.trace) continue;
    const OutputData& other = *pin++;
    if (!other.some() || other.classes() != data_.classes()) continue;
    others.emplace_back(&other, std::vector<std::int64_t>());
    for (const std::int64_t j : chosen_)
      if (j < other.channels()) {
        others.back().second.push_back(j);
        header << csvCell(QStringLiteral("%1/%2 [%3]").arg(key).arg(j).arg(run.label));
      }
    std::vector<std::int64_t> both;
    std::ranges::set_union(all, other.steps(), std::back_inserter(both));
    all = std::move(both);
  }
  const auto at = [](const OutputData& of, std::int64_t step) {
    const auto end = of.steps().begin() + of.rows(), found = std::lower_bound(of.steps().begin(), end, step);
    return found != end && *found == step ? found - of.steps().begin() : -1;
  };
  QByteArray text = header.join(u',').toUtf8() + '\n';
  for (const std::int64_t step : all) {
    const auto row = at(data_, step);
    text += QByteArray::number(static_cast<qlonglong>(step)) + ',' +
            (row >= 0 && row < std::ssize(trace_->time) ? csvNumber(trace_->time[static_cast<std::size_t>(row)]) : QByteArray());
    for (std::int64_t j = 0; j < data_.channels(); ++j) text += ',' + (row >= 0 ? csvNumber(shown(data_, row, j)) : QByteArray());
    for (std::int64_t j = 0; j < targets; ++j) {
      const bool counts = row >= 0 && data_.weight(row) != 0.0;
      text += ',' + (!counts           ? QByteArray()
                     : data_.classes() ? QByteArray::number(static_cast<qlonglong>(data_.targetClass(row)))
                                       : csvNumber(*data_.target(row, j)));
    }
    if (targets > 0) text += ',' + (row >= 0 ? csvNumber(data_.weight(row)) : QByteArray());
    for (const auto& [other, channels] : others) {
      const auto its = at(*other, step);
      for (const std::int64_t j : channels) text += ',' + (its >= 0 ? csvNumber(shown(*other, its, j)) : QByteArray());
    }
    text += '\n';
  }
  return QString::fromUtf8(text);
}

RECLAB_PANEL_IS(output, OutputPanel)

}  // namespace reclab
