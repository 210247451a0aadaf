// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/scrubber.h"

#include <QAction>
#include <QComboBox>
#include <QFontMetrics>
#include <QHBoxLayout>
#include <QLabel>
#include <QLocale>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "gui/look/look.h"
#include "plain_text.h"
#include "plot/theme.h"
#include "trace/stream_steps.h"

namespace reclab {

constexpr double secondsToCross = 20.0;  ///< the visible range, at speed 1
constexpr int wordsWidth = 220;

Scrubber::Scrubber(TimeLink* time, QWidget* parent) : QToolBar(tr("Time"), parent), time_(time) {
  setObjectName("scrubber");
  setMovable(false);
  setFloatable(false);
  setContextMenuPolicy(Qt::PreventContextMenu);
  setIconSize({16, 16});

  back_ = addAction(icon("step-back"), tr("One step back"));
  play_ = addAction(icon("play"), tr("Play"));
  forward_ = addAction(icon("step-forward"), tr("One step forward"));
  back_->setShortcuts({QKeySequence(Qt::Key_Left)});
  forward_->setShortcuts({QKeySequence(Qt::Key_Right)});
  play_->setShortcut(QKeySequence(Qt::Key_Space));
  back_->setToolTip(tr("One step back (left arrow)"));
  forward_->setToolTip(tr("One step forward (right arrow)"));
  play_->setToolTip(tr("Play or pause (space)"));

  speed_ = new QComboBox(this);
  for (const auto& [text, value] : {std::pair{"⅛×", 0.125}, {"¼×", 0.25}, {"½×", 0.5}, {"1×", 1.0}, {"2×", 2.0}, {"4×", 4.0}})
    speed_->addItem(QString::fromUtf8(text), value);
  speed_->setCurrentIndex(3);
  speed_->setToolTip(tr("Speed: at 1× the cursor crosses the visible range in 20 seconds"));
  speed_->setAccessibleName(tr("Speed"));
  addWidget(speed_);

  auto* words = new QWidget(this);
  auto* column = new QVBoxLayout(words);
  column->setContentsMargins(8, 0, 4, 0);
  column->setSpacing(0);
  words_ = words;
  where_ = plainLabel({}, words);
  where_->setFont(uiFont());
  what_ = new ElidedLabel({}, words);
  when_ = new ElidedLabel({}, words);
  for (ElidedLabel* one : {what_, when_}) {
    one->setProperty("role", "muted");
    one->setFont(numberFont());
  }
  column->addStretch();
  column->addWidget(where_);
  column->addWidget(what_);
  column->addWidget(when_);
  column->addStretch();
  addWidget(words);

  strip_ = new TimeStrip(this);
  strip_->setFixedHeight(56);
  strip_->setAccessibleName(tr("Time"));
  addWidget(strip_);
  for (QToolButton* button : findChildren<QToolButton*>()) button->setFocusPolicy(Qt::TabFocus);  // a tool bar takes the keyboard from them

  tick_.setInterval(33);
  connect(&tick_, &QTimer::timeout, this, &Scrubber::advance);
  connect(play_, &QAction::triggered, this, [this] { setPlaying(!playing()); });
  connect(back_, &QAction::triggered, this, [this] { time_->setStep(time_->step() - 1); });
  connect(forward_, &QAction::triggered, this, [this] { time_->setStep(time_->step() + 1); });
  connect(strip_, &TimeStrip::stepPicked, this, [this](std::int64_t step) {
    position_ = static_cast<double>(step);
    time_->setStep(step);
  });
  connect(strip_, &TimeStrip::rangePicked, time_, &TimeLink::setRange);
  connect(time_, &TimeLink::stepChanged, this, &Scrubber::tell);
  connect(time_, &TimeLink::rangeChanged, strip_, &TimeStrip::setRange);
  tell();
}

void Scrubber::setSequence(const LoadedSequencePtr& sequence, bool quiet) {
  sequence_ = sequence;
  strip_->setSequence(sequence);
  if (!quiet) tell();
}

void Scrubber::setInputScale(const QString& scale) {
  strip_->setInputScale(scale);
  tell();
}

void Scrubber::setPlaying(bool on) {
  on = on && sequence_ && time_->length() > 1;
  play_->setIcon(icon(on ? "pause" : "play"));
  play_->setText(on ? tr("Pause") : tr("Play"));
  play_->setToolTip(tr("Play or pause (space)"));
  if (on == playing()) return;
  position_ = static_cast<double>(time_->step());
  if (position_ >= static_cast<double>(time_->last()) || position_ < static_cast<double>(time_->first()))
    position_ = static_cast<double>(time_->first());
  since_.start();
  if (on)
    tick_.start();
  else
    tick_.stop();
}

void Scrubber::advance() {
  const double seconds = std::min(0.2, static_cast<double>(since_.restart()) / 1000.0);
  const auto first = static_cast<double>(time_->first()), last = static_cast<double>(time_->last());
  position_ += seconds / secondsToCross * (last - first) * speed_->currentData().toDouble();
  if (position_ > last || position_ < first) position_ = first;
  time_->setStep(std::llround(std::floor(position_)));
}

void Scrubber::tell() {
  strip_->setStep(time_->step());
  const QLocale locale = QLocale::c();
  const bool ofStream = sequence_ && sequence_->sequence.time_name == stream_steps && time_->step() < sequence_->sequence.length;
  if (ofStream)
    where_->setText(
        tr("step %1 of the stream").arg(grouped(std::llround(sequence_->sequence.time[static_cast<std::size_t>(time_->step())]))));
  else
    where_->setText(tr("step %1 of %2").arg(grouped(time_->step()), grouped(time_->length())));  // from 0, as on every axis
  QString what, when;
  if (sequence_) {
    const Sequence& sequence = sequence_->sequence;
    const auto row = static_cast<std::size_t>(std::min(time_->step(), sequence.length - 1)),
               width = static_cast<std::size_t>(sequence.width);
    const auto nameOf = [&](std::size_t channel) {
      return channel < sequence.names.size() ? QString::fromStdString(sequence.names[channel]) : tr("input");
    };
    if (sequence_->overview.symbols > 0) {  // the one that is there
      std::size_t on = 0;
      while (on + 1 < width && sequence.input[row * width + on] == 0.0) ++on;
      what = nameOf(on);
    } else {
      const double value = sequence.input[row * width];
      what = tr("%1 = %2").arg(nameOf(0), locale.toString(value, 'g', 4));
      // The model reads standardised values; the file's have the unit that a reader knows.
      if (sequence.standardised && !sequence.mean.empty() && !sequence.deviation.empty())
        what =
            tr("%1 = %2 (standardised %3)")
                .arg(nameOf(0), locale.toString(value * sequence.deviation[0] + sequence.mean[0], 'g', 5), locale.toString(value, 'g', 3));
    }
    if (!strip_->inputScale().isEmpty()) what += tr(" × %1").arg(strip_->inputScale());
    if (sequence.target_kind == TargetKind::regress && sequence.target_width > 0 && row < sequence.mask.size() && sequence.mask[row] > 0.0)
      when = tr("target %1").arg(locale.toString(sequence.target[row * static_cast<std::size_t>(sequence.target_width)], 'g', 4));
    if (sequence.time_name != "step" && !ofStream) {
      const QString time = tr("%1 %2").arg(QString::fromStdString(sequence.time_name), locale.toString(sequence.time[row], 'g', 7));
      when = when.isEmpty() ? time : time + QStringLiteral(",  ") + when;
    }
  }
  const auto put = [](ElidedLabel* one, const QString& text) {
    one->setText(text);
    one->setToolTip(safeTip(text));
    one->setVisible(!text.isEmpty());
  };
  put(what_, what);
  put(when_, when);
  // One width, for all texts and sequences, so that the time line beside it stands still; longer texts end in dots.
  const int widest =
      QFontMetrics(where_->font()).horizontalAdvance(tr("step %1 of %1").arg(grouped(std::max<std::int64_t>(999'999, time_->length()))));
  words_->setFixedWidth(std::max(wordsWidth, widest + 16));
}

}  // namespace reclab
