// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/lessons/lesson_view.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/lessons/lesson_player.h"
#include "gui/lessons/lesson_text.h"
#include "gui/lessons/question_box.h"
#include "gui/look/look.h"
#include "plain_text.h"

namespace reclab {

LessonView::LessonView(LessonPlayer* player, QWidget* parent) : QWidget(parent), player_(player) {
  setObjectName("paper");
  setAttribute(Qt::WA_StyledBackground);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  head_ = new QWidget(this);
  auto* top = new QHBoxLayout(head_);
  top->setContentsMargins(12, 6, 8, 6);
  title_ = plainLabel({}, head_);
  title_->setWordWrap(true);
  place_ = label({}, "muted", head_);
  all_ = new QToolButton(head_);
  all_->setText(tr("All lessons"));
  all_->setToolTip(tr("Close this lesson; the panels are as they were before it"));
  top->addWidget(title_, 1);
  top->addWidget(place_);
  top->addWidget(all_);
  column->addWidget(head_);
  auto* rule = new QFrame(this);
  rule->setObjectName("rule");
  column->addWidget(rule);
  scroll_ = new QScrollArea(this);
  scroll_->setWidgetResizable(true);
  scroll_->setFrameShape(QFrame::NoFrame);
  scroll_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  column->addWidget(scroll_, 1);
  foot_ = new QWidget(this);
  auto* rows = new QVBoxLayout(foot_);
  rows->setContentsMargins(12, 6, 12, 8);
  auto* bottom = new QHBoxLayout;
  back_ = new QPushButton(tr("Back"), foot_);
  next_ = new QPushButton(tr("Next"), foot_);
  again_ = new QPushButton(tr("Back to this step"), foot_);
  again_->setToolTip(tr("Model, sequence, pinned runs and panels as this step sets them"));
  back_->setObjectName("lesson.back");
  next_->setObjectName("lesson.next");
  again_->setObjectName("lesson.again");
  rows->addWidget(again_, 0, Qt::AlignHCenter);  // three beside each other are too wide
  rows->addLayout(bottom);
  bottom->addWidget(back_);
  bottom->addStretch();
  bottom->addWidget(next_);
  column->addWidget(foot_);
  connect(all_, &QToolButton::clicked, player_, &LessonPlayer::close);
  connect(back_, &QPushButton::clicked, this, [this] { player_->go(player_->step() - 1); });
  connect(next_, &QPushButton::clicked, this, [this] {
    if (player_->step() + 1 < player_->lesson()->steps.size())
      player_->go(player_->step() + 1);
    else
      player_->close();
  });
  connect(again_, &QPushButton::clicked, player_, &LessonPlayer::setUpAgain);
  connect(player_, &LessonPlayer::opened, this, [this] {
    rebuild();
    scroll_->verticalScrollBar()->setValue(0);
  });
  connect(player_, &LessonPlayer::blocksChanged, this, &LessonView::rebuild);
  connect(player_, &LessonPlayer::numbersCame, this, &LessonView::refresh);
  connect(player_, &LessonPlayer::judged, this, &LessonView::refresh);
}

void LessonView::setScale(double scale) {
  scale_ = scale;
  head_->setVisible(scale == 1.0);
  rebuild();
}

bool LessonView::scrollOn(int by) {
  constexpr int rest = 24;  ///< the room under the last block
  QScrollBar* bar = scroll_->verticalScrollBar();
  if ((by > 0 ? bar->maximum() - bar->value() : bar->value()) <= rest) return false;
  bar->setValue(bar->value() + by * bar->pageStep() * 4 / 5);
  return true;
}

void LessonView::showWandered(bool wandered) {
  if (!wandered && again_->hasFocus()) next_->setFocus(Qt::OtherFocusReason);  // else it goes to some button of the window
  again_->setVisible(wandered);
}

void LessonView::seeWords(const QString& question) {
  for (const QuestionBox* one : questions())
    if (one->question().id == question.toStdString() && one->words()->isVisibleTo(one)) {
      scroll_->widget()->layout()->activate();
      scroll_->ensureWidgetVisible(one->words(), 0, 16);
    }
}

QList<QuestionBox*> LessonView::questions() const {
  return scroll_->widget() ? scroll_->widget()->findChildren<QuestionBox*>() : QList<QuestionBox*>();
}

void LessonView::rebuild() {
  const int at = scroll_->verticalScrollBar()->value();
  prose_.clear();
  const Lesson* lesson = player_->lesson();
  title_->setFont(lessonFont(scale_ * 1.15, QFont::DemiBold));
  title_->setText(lesson ? QString::fromStdString(lesson->title) : tr("Lessons"));
  place_->setVisible(lesson != nullptr);
  all_->setVisible(lesson != nullptr);
  foot_->setVisible(lesson != nullptr);
  if (lesson != nullptr) {
    place_->setText(tr("%1 of %2").arg(player_->step() + 1).arg(lesson->steps.size()));
    back_->setEnabled(player_->step() > 0);
    next_->setText(player_->step() + 1 < lesson->steps.size() ? tr("Next") : tr("End of the lesson"));
    showWandered(player_->wandered());
  }
  if (QWidget* before = scroll_->takeWidget()) {  // a button on it may be what is being answered
    before->hide();
    before->deleteLater();
  }
  auto* page = new QWidget;
  page->setObjectName("paper");
  auto* column = new QVBoxLayout(page);
  column->setContentsMargins(14, 4, 14, 14);
  if (lesson != nullptr)
    fillStep(page, column);
  else
    fillList(page, column);
  column->addStretch();
  scroll_->setWidget(page);
  scroll_->widget()->show();
  scroll_->verticalScrollBar()->setValue(at);
  refresh();
}

void LessonView::refresh() {
  for (const auto& [words, prose] : prose_)
    if (const auto with = player_->numbered(prose)) {
      words->setText(htmlOf(*with, palette()));
      words->setProperty("waits", false);
    }
  for (QuestionBox* one : questions()) one->refresh();
}

QLabel* LessonView::addProse(QWidget* page, const Prose& words) {
  QLabel* made = proseLabel(page, scale_);
  Prose waiting = words;  // until the numbers are there
  for (ProseSpan& span : waiting)
    if (span.kind == ProseSpan::Kind::number) span.text = "…";
  made->setText(htmlOf(waiting, palette()));
  made->setProperty("waits", true);
  connect(made, &QLabel::linkActivated, this, &LessonView::linkWanted);
  page->layout()->addWidget(made);
  prose_.emplace_back(made, words);
  return made;
}

QPushButton* LessonView::addTitle(QWidget* page, QVBoxLayout* column, const Lesson& lesson) {
  auto* open = new QPushButton(buttonText(QString::fromStdString(lesson.title)), page);
  open->setFlat(true);
  open->setStyleSheet(QStringLiteral("text-align: left"));
  open->setFont(lessonFont(scale_, QFont::DemiBold));
  connect(open, &QPushButton::clicked, player_, [this, id = QString::fromStdString(lesson.id)] { player_->open(id); });
  column->addWidget(open);
  return open;
}

void LessonView::fillStep(QWidget* page, QVBoxLayout* column) {
  column->setSpacing(10);
  const LessonStep& step = player_->lesson()->steps[player_->step()];
  QLabel* heading = plainLabel(QString::fromStdString(step.title), page);
  heading->setFont(lessonFont(scale_ * 1.25, QFont::DemiBold));
  heading->setWordWrap(true);
  column->addWidget(heading);
  const std::size_t shown = player_->shownBlocks();
  for (std::size_t i = 0; i < shown; ++i) {
    if (const auto* words = std::get_if<ProseBlock>(&step.blocks[i])) {
      Prose prose = words->words;
      if (words->kind == ProseBlock::Kind::item) prose.insert(prose.begin(), {ProseSpan::Kind::text, "•\u2002"});
      QLabel* made = addProse(page, prose);
      if (words->kind == ProseBlock::Kind::formula) made->setAlignment(Qt::AlignHCenter);
      if (words->kind == ProseBlock::Kind::heading) made->setFont(lessonFont(scale_, QFont::DemiBold));
    }
    if (const auto* question = std::get_if<Question>(&step.blocks[i])) {
      auto* box = new QuestionBox(*question, player_, scale_, page);
      connect(box, &QuestionBox::pointWanted, this, &LessonView::pointWanted);
      connect(box, &QuestionBox::linkWanted, this, &LessonView::linkWanted);
      // Behind the layout of what has come with the answer.
      connect(box, &QuestionBox::answered, this, [this, id = QString::fromStdString(question->id)] { seeWords(id); }, Qt::QueuedConnection);
      column->addWidget(box);
    }
  }
  if (shown < step.blocks.size()) return column->addWidget(label(tr("The picture comes with your answer."), "muted", page));
  if (const Lesson* following = player_->following(); following != nullptr && &step == &player_->lesson()->steps.back()) {
    column->addSpacing(8);
    column->addWidget(label(tr("The next lesson:"), "muted", page));
    addTitle(page, column, *following)->setObjectName("lesson.following");
  }
}

void LessonView::fillList(QWidget* page, QVBoxLayout* column) {
  column->setSpacing(4);
  for (const Lesson& lesson : player_->lessons().lessons) {
    addTitle(page, column, lesson)->setObjectName("lesson." + QString::fromStdString(lesson.id));
    const int right = player_->right(lesson), all = static_cast<int>(questions_of(lesson).size());
    QString facts = tr("%1 minutes").arg(lesson.minutes);
    if (right > 0) facts += right == all ? tr(" · done") : tr(" · %1 of %2 questions").arg(right).arg(all);
    QLabel* about = label((lesson.about.empty() ? QString() : QString::fromStdString(lesson.about) + "\n") + facts, "muted", page);
    about->setWordWrap(true);
    about->setIndent(8);
    column->addWidget(about);
    column->addSpacing(4);
  }
  if (player_->lessons().lessons.empty()) column->addWidget(label(tr("There are no lessons here."), "muted", page));
  column->addSpacing(12);
  auto* name = new QLineEdit(QString::fromStdString(player_->answers().name), page);
  name->setPlaceholderText(tr("Your name, for your teacher"));
  name->setAccessibleName(tr("Your name"));
  name->setObjectName("lesson.name");
  connect(name, &QLineEdit::editingFinished, player_, [this, name] { player_->setName(name->text()); });
  column->addWidget(name);
  auto* save = new QPushButton(tr("Save my answers…"), page);
  save->setObjectName("lesson.save");
  save->setEnabled(player_->hasAnswers());
  save->setToolTip(safeTip(save->isEnabled() ? tr("A file that a teacher collects: reclab lesson grade judges it")
                                             : tr("No question has been answered yet.")));
  connect(save, &QPushButton::clicked, this, &LessonView::saveWanted);
  column->addWidget(save);
}

}  // namespace reclab
