// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/status_line.h"

#include <QDir>
#include <QEvent>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <utility>

#include "gui/look/look.h"
#include "gui/session/sentences.h"
#include "plain_text.h"
#include "plot/parts/learned_text.h"
#include "plot/theme.h"

namespace reclab {
namespace {

QString memory(std::int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (size < 1024.0 * 1024.0) return QObject::tr("%1 KiB").arg(size / 1024.0, 0, 'f', 0);
  if (size < 1024.0 * 1024.0 * 1024.0)
    return QObject::tr("%1 MiB").arg(size / (1024.0 * 1024.0), 0, 'f', size < 10.0 * 1024.0 * 1024.0 ? 1 : 0);
  return QObject::tr("%1 GiB").arg(size / (1024.0 * 1024.0 * 1024.0), 0, 'f', 2);
}

}  // namespace

StatusLine::StatusLine(QWidget* parent) : QStatusBar(parent) {
  setSizeGripEnabled(false);
  auto* line = new QWidget(this);
  auto* row = new QHBoxLayout(line);
  row->setContentsMargins(8, 2, 8, 2);
  row->setSpacing(16);
  const auto add = [&](const QString& tip) {
    auto* made = label({}, "muted", line);
    made->setFont(numberFont());
    made->setToolTip(safeTip(tip));
    made->setVisible(false);
    row->addWidget(made);
    return made;
  };
  what_ = add(tr("The device, form and precision that really ran"));
  time_ = add(tr("Wall time of the forward and the backward pass"));
  memory_ = add(tr("Memory that the arrays of the run took, with what was recorded"));
  loss_ = add({});
  weights_ = add({});
  state_ = add({});
  dot_ = plainLabel({}, line);
  dot_->setFixedSize(8, 8);
  row->addWidget(dot_);
  words_ = plainLabel({}, line);
  words_->setFont(smallFont());
  words_->setTextFormat(Qt::PlainText);
  words_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  words_->installEventFilter(this);
  row->addWidget(words_, 1);
  bar_ = new QProgressBar(line);
  bar_->setRange(0, 1000);
  bar_->setTextVisible(false);
  bar_->setFixedWidth(140);
  bar_->setVisible(false);
  row->addWidget(bar_);
  addWidget(line, 1);
  patience_.setSingleShot(true);
  patience_.setInterval(200);
  connect(&patience_, &QTimer::timeout, this, [this] {
    bar_->setVisible(true);
    say(tr("Running…"), Tone::busy);
  });
}

void StatusLine::setRun(const TracePtr& trace) {
  for (QLabel* one : {what_, time_, memory_, loss_, weights_}) one->setVisible(trace != nullptr);
  state_->setVisible(trace && !trace->info.state.empty());
  if (!trace) return;
  const RunInfo& run = trace->info;
  QString what = QString::fromStdString(run.device == "cpu"    ? "CPU"
                                        : run.device == "cuda" ? "CUDA"
                                                               : run.device) +
                 ", " + QString::fromStdString(run.form) + ", " + QString::fromStdString(run.dtype);
  if (run.every > 1) what += tr(", one step of %1").arg(run.every);
  what_->setText(what);
  time_->setText(secondsInWords(run.seconds));
  memory_->setText(memory(run.bytes));
  loss_->setText(tr("L %1 on this sequence").arg(number(run.loss_value, 4)));
  loss_->setToolTip(
      safeTip(tr("The loss that gradients are of, on the sequence that is shown and no other: %1").arg(QString::fromStdString(run.loss))));
  // A file by its name, and in full where the pointer rests.
  const auto showFile = [](QLabel* where, const QString& text, const std::string& file, const QString& tip) {
    const QString path = QString::fromStdString(file);
    where->setText(text.arg(where->fontMetrics().elidedText(QFileInfo(path).fileName(), Qt::ElideMiddle, 160)));
    where->setToolTip(safeTip(tip.arg(QDir::toNativeSeparators(path))));
  };
  if (run.learned) {
    weights_->setText(stepsLearned(run.learned->from, run.learned->steps));
    weights_->setToolTip(safeTip(tr("The weights were learned from %1").arg(QString::fromStdString(run.learned->from))));
  } else if (run.weights.empty()) {
    weights_->setText(tr("seed %1").arg(run.seed));
    weights_->setToolTip(tr("What the weights were drawn from"));
  } else {
    showFile(weights_, tr("weights %1"), run.weights, tr("The weights were read from %1"));
  }
  if (!run.state.empty()) showFile(state_, tr("begun from %1"), run.state, tr("The state before the first step was read from %1"));
}

QString StatusLine::facts() const {
  QStringList texts;
  for (const QLabel* one : {what_, time_, memory_, loss_, weights_, state_})
    if (!one->isHidden()) texts << one->text();
  return texts.join(" | ");
}

void StatusLine::say(const QString& sentence, Tone tone) {
  sentence_ = sentence;
  const QColor colour = tone == Tone::warning ? palette().color(QPalette::BrightText)
                        : tone == Tone::busy  ? palette().color(QPalette::Highlight)
                                              : QColor();
  dot_->setStyleSheet(colour.isValid() ? QString("background:%1; border-radius:4px").arg(colour.name()) : QString());
  elide();
}

void StatusLine::elide() {
  words_->setText(words_->fontMetrics().elidedText(sentence_, Qt::ElideRight, std::max(words_->width(), 60)));
  words_->setToolTip(safeTip(sentence_));
}

bool StatusLine::eventFilter(QObject* watched, QEvent* event) {
  if (watched == words_ && event->type() == QEvent::Resize) elide();
  return QStatusBar::eventFilter(watched, event);
}

void StatusLine::setProgress(double fraction, const QString& stage) {
  if (!bar_->isVisible()) return;
  bar_->setValue(qRound(1000.0 * fraction));
  if (!stage.isEmpty()) say(tr("Running: %1, %2 %").arg(stage).arg(qRound(100.0 * fraction)), Tone::busy);
}

void StatusLine::setRunning(bool running) {
  if (running) {
    if (!bar_->isVisible()) patience_.start();
    bar_->setValue(0);
  } else {
    patience_.stop();
    bar_->setVisible(false);
  }
}

Banner::Banner(QWidget* parent) : QFrame(parent) {
  setObjectName("banner");
  setAttribute(Qt::WA_StyledBackground);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(12, 6, 8, 6);
  row->setSpacing(10);
  auto* sign = plainLabel({}, this);
  sign->setPixmap(icon("warning", QPalette::BrightText).pixmap(16, 16));
  sign->setFixedWidth(16);
  row->addWidget(sign, 0, Qt::AlignTop);
  words_ = plainLabel({}, this);
  words_->setWordWrap(true);
  words_->setTextFormat(Qt::PlainText);
  words_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  row->addWidget(words_, 1);
  for (std::size_t i = 0; i < most; ++i) {
    auto* button = new QPushButton(this);
    button->setObjectName(QStringLiteral("offer.%1").arg(i));
    button->setFocusPolicy(Qt::TabFocus);
    button->setVisible(false);
    row->addWidget(button, 0, Qt::AlignTop);
    connect(button, &QPushButton::clicked, this, [this, i] {
      if (i >= actions_.size()) return;
      const auto action = std::exchange(actions_, {})[i];
      action();
    });
    buttons_.push_back(button);
  }
  auto* shut = new QToolButton(this);
  shut->setIcon(icon("close", QPalette::Dark));
  shut->setIconSize({14, 14});
  shut->setToolTip(tr("Close"));
  row->addWidget(shut, 0, Qt::AlignTop);
  connect(shut, &QToolButton::clicked, this, &QWidget::hide);
  hide();
}

void Banner::offer(const QString& what, std::function<void()> action) {
  const QString text = buttonText(what);
  for (std::size_t i = 0; i < actions_.size(); ++i)
    if (buttons_[i]->text() == text) return void(actions_[i] = std::move(action));  // offered already, beside the same sentence
  if (actions_.size() == most) return;
  QPushButton* button = buttons_[actions_.size()];
  actions_.push_back(std::move(action));
  button->setText(text);
  button->setVisible(true);
}

QStringList Banner::offers() const {
  QStringList texts;
  for (std::size_t i = 0; i < actions_.size(); ++i) texts << buttons_[i]->text().replace("&&", "&");
  return texts;
}

void Banner::show(const QString& sentence) {
  if (isVisible() && words_->text() == sentence) return;  // said twice, as by a run and a training: the buttons beside it stay
  actions_.clear();
  for (QPushButton* button : buttons_) button->setVisible(false);
  words_->setText(sentence);
  setVisible(true);
}

QString Banner::sentence() const { return isHidden() ? QString() : words_->text(); }

}  // namespace reclab
