// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/lessons/question_box.h"

#include <QButtonGroup>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QRadioButton>
#include <QStyle>
#include <QVBoxLayout>
#include <utility>

#include "gui/lessons/lesson_player.h"
#include "gui/lessons/lesson_text.h"
#include "gui/look/look.h"
#include "plain_text.h"
#include "plot/theme.h"
#include "window_text.h"

namespace reclab {
namespace {

/// A radio button has one line of plain text: words of an answer without markup, formulas in Unicode.
QString plainOf(const std::string& markdown) {
  QString text;
  for (const ProseSpan& span : prose_of(markdown)) {
    const QString words = QString::fromStdString(span.text);
    text += span.kind == ProseSpan::Kind::formula ? mathText(words) : words;
  }
  return text;
}

}  // namespace

QuestionBox::QuestionBox(const Question& question, LessonPlayer* player, double scale, QWidget* parent)
    : QFrame(parent), question_(question), player_(player), scale_(scale) {
  setObjectName("question");
  setProperty("question", QString::fromStdString(question.id));
  setAttribute(Qt::WA_StyledBackground);
  setFont(lessonFont(scale));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(12, 10, 12, 10);
  column->setSpacing(6);
  const QString kind = question.kind == Question::Kind::act       ? tr("To do")
                       : question.kind == Question::Kind::predict ? tr("Before you look")
                                                                  : tr("Question");
  column->addWidget(label(kind, "section", this));
  text_ = proseLabel(this, scale);
  column->addWidget(text_);
  if (question.kind == Question::Kind::number)
    buildNumber();
  else if (question.kind == Question::Kind::act)
    buildDeed();
  else
    buildChoices();
  words_ = proseLabel(this, scale);
  words_->setObjectName("words");
  words_->hide();
  column->addWidget(words_);
  for (QLabel* one : {text_, words_}) connect(one, &QLabel::linkActivated, this, &QuestionBox::linkWanted);
  refresh();
  built_ = true;
}

void QuestionBox::buildChoices() {
  choices_ = new QButtonGroup(this);
  for (std::size_t i = 0; i < question_.order.size(); ++i) {
    const QString text = plainOf(question_.order[i]);
    auto* row = new QWidget(this);
    auto* line = new QHBoxLayout(row);
    line->setContentsMargins(0, 0, 0, 0);
    line->setSpacing(6);
    auto* button = new QRadioButton(row);
    button->setAccessibleName(text);
    button->setObjectName(QString("answer.%1").arg(i));
    QLabel* words = proseLabel(row, scale_);  // a button has no second line
    words->setText(htmlOf(prose_of(question_.order[i]), palette()));
    words->setTextInteractionFlags(Qt::NoTextInteraction);
    words->setFocusPolicy(Qt::NoFocus);
    words->setBuddy(button);
    words->installEventFilter(this);
    button->setFixedHeight(QFontMetrics(words->font()).lineSpacing());  // its circle is level with the first line
    line->addWidget(button, 0, Qt::AlignTop);
    line->addWidget(words, 1);
    layout()->addWidget(row);
    choices_->addButton(button, static_cast<int>(i));
  }
  connect(choices_, &QButtonGroup::idClicked, this,
          [this](int i) { give(QString::fromStdString(question_.order[static_cast<std::size_t>(i)])); });
}

bool QuestionBox::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::MouseButtonRelease)
    if (const auto* words = qobject_cast<QLabel*>(watched))
      if (auto* button = qobject_cast<QRadioButton*>(words->buddy())) button->click();
  return QFrame::eventFilter(watched, event);
}

void QuestionBox::buildNumber() {
  auto* row = new QHBoxLayout;
  number_ = new QLineEdit(this);
  number_->setObjectName("number");
  number_->setAccessibleName(tr("Your answer"));
  number_->setPlaceholderText(tr("Your answer"));
  number_->setMaximumWidth(static_cast<int>(140 * scale_));
  number_->setFont(lessonFont(scale_));
  row->addWidget(number_);
  if (!question_.unit.empty()) row->addWidget(label(QString::fromStdString(question_.unit), "muted", this));
  auto* check = new QPushButton(tr("Check"), this);
  check->setObjectName("check");
  check->setFont(lessonFont(scale_));
  row->addWidget(check);
  row->addStretch();
  static_cast<QVBoxLayout*>(layout())->addLayout(row);
  const auto answer = [this] {
    if (!number_->text().trimmed().isEmpty()) give(number_->text().trimmed());
  };
  connect(check, &QPushButton::clicked, this, answer);
  connect(number_, &QLineEdit::returnPressed, this, answer);
}

void QuestionBox::buildDeed() {
  if (question_.hint.empty()) return;
  auto* where = new QPushButton(tr("Show me where"), this);
  where->setObjectName("where");
  where->setFont(lessonFont(scale_));
  auto* row = new QHBoxLayout;
  row->addWidget(where);
  row->addStretch();
  static_cast<QVBoxLayout*>(layout())->addLayout(row);
  connect(where, &QPushButton::clicked, this, [this] { emit pointWanted(QString::fromStdString(question_.hint)); });
}

void QuestionBox::give(const QString& answer) {
  refused_.clear();
  try {
    player_->answer(question_, answer);
  } catch (const Error& error) {
    refused_ = windowText(error);
  }
  refresh();
  emit answered();
}

void QuestionBox::say(const QString& mark, const QString& html, bool right) {
  const Theme theme = Theme::of(this);
  const QColor colour = right ? legible(theme.series(2), theme) : theme.text;
  words_->setText(QString("<span style='color:%1'><b>%2</b></span> %3").arg(colour.name(), mark, html));
  words_->setVisible(!mark.isEmpty() || !html.isEmpty());
}

/// For an answer that nobody thought of: from the second try on with the side on which the right one lies.
QString QuestionBox::onceMore(const LessonPlayer::Answered& answered) const {
  if (answered.tries < 2 || answered.side == 0) return tr("Read it off the picture once more.");
  return answered.side > 0 ? tr("Read it off the picture once more: it is more than that.")
                           : tr("Read it off the picture once more: it is less than that.");
}

void QuestionBox::refresh() {
  const auto text = player_->numbered(prose_of(question_.text));
  text_->setText(text ? htmlOf(*text, palette()) : QStringLiteral("…"));
  text_->setProperty("waits", !text);
  if (!refused_.isEmpty()) return say({}, refused_.toHtmlEscaped(), false);
  const auto answered = player_->answered(question_);
  const bool before = player_->isRight(QString::fromStdString(question_.id));
  if (question_.kind == Question::Kind::act) {
    if (answered && answered->words.right) {
      say(QString::fromUtf8("✓ ") + tr("Done."), htmlOf(answered->words.words, palette()), true);
      if (!std::exchange(done_, true) && built_) emit this->answered();
      return;
    }
    if (before) return say(QString::fromUtf8("✓ ") + tr("Done before."), htmlOf(player_->wordsOfDeed(question_), palette()), true);
    // What is wrong is said of what a hand has done.
    return say({},
               player_->touched(question_) && answered && !answered->words.words.empty() ? htmlOf(answered->words.words, palette())
                                                                                         : tr("Not done yet."),
               false);
  }
  if (!answered) return say({}, {}, false);
  if (choices_ != nullptr)
    for (std::size_t i = 0; i < question_.order.size(); ++i)
      choices_->button(static_cast<int>(i))->setChecked(question_.order[i] == answered->given.toStdString());
  if (number_ != nullptr && !number_->hasFocus()) number_->setText(answered->given);
  QString html = htmlOf(answered->words.words, palette());
  if (answered->words.right) return say(QString::fromUtf8("✓ ") + tr("Right."), html, true);
  const bool predicted = question_.kind == Question::Kind::predict;
  if (const auto because = predicted ? player_->numbered(prose_of(question_.because)) : std::nullopt)  // the picture is there by now
    html += ' ' + htmlOf(*because, palette());
  say(predicted ? tr("It is otherwise.") : tr("Not yet."),
      !html.isEmpty()                            ? html
      : question_.kind == Question::Kind::number ? onceMore(*answered)
                                                 : QString(),
      false);
}

}  // namespace reclab
