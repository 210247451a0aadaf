// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/streams/stream_view.h"

#include <QDir>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QStringList>
#include <QTableWidget>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "gui/look/look.h"
#include "gui/streams/stream_curves.h"
#include "gui/streams/stream_settings.h"
#include "plain_text.h"
#include "plot/theme.h"

namespace reclab {
namespace {

constexpr int mostPredictors = 8;  ///< of the table without scrolling

enum StreamColumn { ofPredictor, ofMean, ofWindowed, ofRegret, streamColumns };

QString cellOf(double value) { return std::isnan(value) ? QString() : number(value, 4); }

}  // namespace

StreamView::StreamView(const FileChooser* chooser, QWidget* parent) : QWidget(parent) {
  setObjectName("paper");
  setAttribute(Qt::WA_StyledBackground);
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setFocusPolicy(Qt::NoFocus);
  all->addWidget(scroll);
  auto* page = new QWidget(scroll);
  page->setObjectName("paper");
  page->setAttribute(Qt::WA_StyledBackground);
  scroll->setWidget(page);
  auto* column = new QVBoxLayout(page);
  column->setContentsMargins(8, 8, 8, 8);
  column->setSpacing(8);

  auto* buttons = new QHBoxLayout;
  buttons->setSpacing(4);
  const auto button = [&](const QString& name, const QString& iconName, const QString& text, const QString& tip,
                          void (StreamView::*wanted)()) {
    auto* made = new ElidedButton(icon(iconName), text, page);
    made->setObjectName("stream." + name);
    made->setToolTip(safeTip(tip));
    connect(made, &QPushButton::clicked, this, wanted);
    buttons->addWidget(made, 1);
    return made;
  };
  start_ = button("start", "play", tr("Start"), tr("Begin a stream of this source: the model learns from each step once, as it comes"),
                  &StreamView::startWanted);
  pause_ = button("pause", "pause", tr("Pause"), {}, &StreamView::pauseWanted);
  stop_ = button("stop", "stop", tr("Stop"), tr("End the stream and close its source; what it learned is kept, and Go on opens it again"),
                 &StreamView::stopWanted);
  column->addLayout(buttons);

  state_ = plainLabel({}, page);
  state_->setWordWrap(true);
  leftOut_ = label({}, "muted", page);
  leftOut_->setFont(smallFont());
  leftOut_->setWordWrap(true);
  column->addWidget(state_);
  column->addWidget(leftOut_);

  table_ = new QTableWidget(0, streamColumns, page);
  table_->setObjectName("stream.predictors");
  table_->setAccessibleName(tr("Predictors"));
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setSelectionMode(QAbstractItemView::NoSelection);
  table_->setShowGrid(false);
  table_->verticalHeader()->hide();
  table_->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setSectionResizeMode(ofPredictor, QHeaderView::Stretch);
  table_->horizontalHeader()->setHighlightSections(false);
  table_->setFont(numberFont());
  table_->hide();
  column->addWidget(table_);

  curves_ = new StreamCurvesView(page);
  column->addWidget(curves_);

  auto* line = new QHBoxLayout;
  line->setSpacing(4);
  line_ = new ElidedLabel({}, page);
  line_->setFont(monoFont());
  line_->setProperty("role", "muted");
  const auto tool = [&](const QString& name, const QString& iconName, const QString& tip, void (StreamView::*wanted)()) {
    auto* made = new QToolButton(page);
    made->setObjectName("stream." + name);
    made->setIcon(icon(iconName));
    made->setText(tip);
    made->setToolTip(safeTip(tip));
    made->setFocusPolicy(Qt::TabFocus);
    connect(made, &QToolButton::clicked, this, wanted);
    return made;
  };
  copy_ = tool("copy", "copy", tr("Copy the command line of this stream"), &StreamView::copyWanted);
  export_ = tool("export", "export", tr("Export the stream into a folder"), &StreamView::exportWanted);
  kept_ = tool("kept", "restore", tr("Streams that are kept: look at one again, or remove it"), &StreamView::keptWanted);
  line->addWidget(line_, 1);
  line->addWidget(copy_);
  line->addWidget(export_);
  line->addWidget(kept_);
  column->addLayout(line);

  settings_ = new StreamSettings(chooser, page);
  column->addWidget(settings_);
  column->addStretch();
  show({}, {});
}

QString StreamView::state() const { return state_->text(); }
QString StreamView::leftOut() const { return leftOut_->text(); }

void StreamView::setCommand(const QString& command) {
  command_ = command;
  line_->setText(command);
  line_->setToolTip(safeTip(command));
  copy_->setEnabled(!command.isEmpty());
}

void StreamView::show(const Streaming& now, const QString& title) {
  const bool there = !now.folder.isEmpty();
  start_->setEnabled(!now.running);
  pause_->setIcon(icon(now.running ? "pause" : "right"));
  pause_->setText(now.running ? tr("Pause") : tr("Go on"));
  pause_->setToolTip(safeTip(now.running ? tr("Let it stand after this step, kept; its last steps can be looked at like any sequence")
                                         : tr("Go on with the stream that stands, from where it was left")));
  pause_->setEnabled(now.running || (there && !now.numbers.done && now.problem.isEmpty()));
  stop_->setEnabled(now.running);
  export_->setEnabled(there);
  QString words;
  const QString steps = grouped(now.numbers.steps);
  if (!now.problem.isEmpty())
    words = now.problem;
  else if (now.waits)
    words = tr("waits until the training stands");
  else if (now.running && now.numbers.steps == 0)
    words = tr("waits for the first steps");
  else if (now.running)
    words = tr("%1: step %2, %3 steps and %4 pictures a second")
                .arg(title, steps, grouped(std::llround(now.pace)), grouped(std::llround(now.pictures)));
  else if (there)
    words = (now.numbers.done ? tr("%1: at its end, step %2") : tr("%1: stands at step %2")).arg(title, steps);
  else
    words = tr("No stream yet. The model learns from each step of the source once, and all panels show the last steps.");
  if (now.numbers.drifts > 0) words += tr("; %1 drifts so far").arg(grouped(now.numbers.drifts));
  state_->setText(words);
  QStringList left;
  if (now.numbers.leftOut > 0 && there) left << tr("%1 of %2 steps were in no picture.").arg(grouped(now.numbers.leftOut), steps);
  if (const std::int64_t pictures = now.made - now.drawn; now.running && pictures > 1)
    left << tr("%1 of %2 pictures were left out, since newer ones came before they could be drawn.")
                .arg(grouped(pictures), grouped(now.made));
  // Of a short while nothing can be said.
  if (now.running && now.limit > 0 && now.drawn > 30 && now.pace < 0.9 * static_cast<double>(now.limit))
    left << tr("The model does not reach the %1 steps a second that it may have.").arg(grouped(now.limit));
  if (!now.numbers.note.empty()) left << QString::fromStdString(now.numbers.note);
  leftOut_->setText(left.join(' '));
  leftOut_->setVisible(!left.isEmpty());
  const StreamNumbers numbers = there ? now.numbers : StreamNumbers();
  showRows(numbers);
  curves_->show(numbers);
}

void StreamView::showRows(const StreamNumbers& numbers) {
  table_->setVisible(!numbers.rows.empty());
  if (numbers.rows.empty()) return table_->setRowCount(0);
  const QString measure = QString::fromStdString(numbers.measures[0]);
  table_->setHorizontalHeaderLabels({tr("predictor"), tr("mean"), tr("last ones"), tr("regret")});
  table_->setColumnHidden(ofRegret, std::ranges::count_if(numbers.rows, &StreamRow::learns) < 2);  // of one alone it is 0
  const QStringList tips{
      tr("The learners, and beside them those that learn nothing or by least squares"),
      tr("The mean error of all steps after the burn-in: %1, each predicted before anything is learned from it").arg(measure),
      tr("The mean error of the last %1 steps: %2").arg(grouped(numbers.window), measure),
      tr("Of a learner: the sum of its errors, less that of the learner for which it is least")};
  const Theme theme = Theme::of(this);
  const int rows = static_cast<int>(numbers.rows.size());
  const bool others = table_->rowCount() != rows;
  table_->setRowCount(rows);
  for (int column = 0; column < streamColumns; ++column) {
    table_->horizontalHeaderItem(column)->setToolTip(safeTip(tips[column]));
    for (int row = 0; row < rows; ++row) {
      const StreamRow& one = numbers.rows[static_cast<std::size_t>(row)];
      QString text, tip;
      switch (column) {
        case ofPredictor:
          text = QString::fromStdString(one.name);
          tip = QString::fromStdString(one.text);
          break;
        case ofMean:
          text = one.diverged >= 0 ? tr("diverged") : cellOf(one.mean[0]);
          if (one.diverged >= 0) tip = tr("Not finite from step %1 on").arg(grouped(one.diverged));
          break;
        case ofWindowed: text = one.diverged >= 0 ? QString() : cellOf(one.windowed[0]); break;
        default: text = cellOf(one.regret);
      }
      QTableWidgetItem* item = table_->item(row, column);
      if (item == nullptr) {
        item = new QTableWidgetItem;
        item->setTextAlignment(Qt::AlignVCenter | (column == ofPredictor ? Qt::AlignLeft : Qt::AlignRight));
        table_->setItem(row, column, item);
      }
      if (column == ofPredictor)
        item->setForeground(legible(StreamCurvesView::penOf(theme, numbers.rows, static_cast<std::size_t>(row)).color(), theme));
      if (item->text() != text) item->setText(text);
      item->setToolTip(safeTip(tip));
    }
  }
  if (!others) return;
  int height = table_->horizontalHeader()->sizeHint().height() + 2 * table_->frameWidth();
  for (int row = 0; row < std::min(rows, mostPredictors); ++row) height += table_->rowHeight(row);
  table_->setFixedHeight(height);
}

}  // namespace reclab
