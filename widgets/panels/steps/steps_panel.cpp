// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/steps/steps_panel.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QSignalBlocker>
#include <algorithm>
#include <cmath>

#include "box_layout.h"
#include "panels/panel_info.h"
#include "panels/steps/glyph_button.h"
#include "plot/parts/layout.h"

namespace reclab {

namespace {

constexpr int round_ms = 900;  // at 1×
constexpr int narrow = 520;    // pixels, below which the controls take two rows

QString counted(double n) { return grouped(std::llround(n)); }

}  // namespace

StepsPanel::StepsPanel(QWidget* parent) : Described(parent) {
  forms_ = makeChoice("form", false, tr("Which exact form of this model is drawn"));
  forms_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  steps_ = makeChoice("steps", true, tr("How many steps of the sequence are drawn"));
  for (const int steps : {8, 16, 32, 64}) steps_->addItem(tr("%1 steps").arg(steps), steps);
  steps_->setCurrentIndex(1);
  using Glyph = GlyphButton::Glyph;
  back_ = new GlyphButton(Glyph::back, QStringLiteral("back"), tr("One round back (left arrow)"));
  play_ = new GlyphButton(Glyph::play, QStringLiteral("play"), tr("Play round by round, or pause (space)"));
  forward_ = new GlyphButton(Glyph::forward, QStringLiteral("forward"), tr("One round forward (right arrow)"));
  round_ = new QSlider(Qt::Horizontal);
  round_->setObjectName(QStringLiteral("round"));
  round_->setMinimumWidth(50);
  round_->setFocusPolicy(Qt::ClickFocus);
  round_->setToolTip(tr("The round under way"));
  round_->setAccessibleName(tr("Round"));
  speed_ = makeChoice("speed", true, tr("Speed: at 1× about a round a second"));
  for (const auto& [text, value] : {std::pair{"½×", 0.5}, {"1×", 1.0}, {"2×", 2.0}, {"4×", 4.0}})
    speed_->addItem(QString::fromUtf8(text), value);
  speed_->setCurrentIndex(1);

  // Two groups, in one row where there is room.
  const auto row = [](std::initializer_list<QWidget*> widgets) {
    auto* group = new QWidget;
    auto* line = boxLayout<QHBoxLayout>(group, 4);
    for (QWidget* one : widgets) line->addWidget(one, qobject_cast<QSlider*>(one) ? 1 : 0);
    return group;
  };
  choices_ = row({forms_, steps_});
  playing_row_ = row({back_, play_, forward_, round_, speed_});
  auto* both = new QWidget;
  rows_ = new QBoxLayout(QBoxLayout::LeftToRight, both);
  rows_->setContentsMargins(0, 0, 0, 0);
  rows_->setSpacing(4);
  rows_->addWidget(choices_, 0, Qt::AlignLeft);
  rows_->addWidget(playing_row_, 1);
  controls_->addWidget(both, 1);

  said_ = new Paragraph(plot_);
  why_ = new Paragraph(plot_);
  view_ = new ScheduleView(plot_);
  plot_->setFigureShape(0.75);
  stack(plot_, {said_, why_, view_});
  plot_->plotLayout()->setRowSpacing(0);
  plot_->setFocusPolicy(Qt::StrongFocus);
  plot_->installEventFilter(this);
  plot_->setHoverHandler([this](const QPointF& at) {
    point(at);
    if (view_->schedule() && (said_->outerRect() | why_->outerRect()).contains(at.toPoint())) return whole(*view_->schedule());
    return view_->tipAt(at);
  });

  connect(forms_, &QComboBox::activated, this, [this](int index) { choose(forms_->itemData(index).toString()); });
  connect(steps_, &QComboBox::activated, this, [this] {
    setPlaying(false);
    refresh();
  });
  connect(back_, &QToolButton::clicked, this, [this] { setPosition(view_->position() - 1); });
  connect(forward_, &QToolButton::clicked, this, [this] { setPosition(view_->position() + 1); });
  connect(play_, &QToolButton::clicked, this, [this] { setPlaying(!playing()); });
  connect(round_, &QSlider::valueChanged, this, [this](int position) { setPosition(position); });
  connect(speed_, &QComboBox::activated, this,
          [this] { clock_.setInterval(static_cast<int>(round_ms / speed_->currentData().toDouble())); });
  connect(&clock_, &QTimer::timeout, this, &StepsPanel::advance);
  clock_.setInterval(round_ms);
  refresh();
}

void StepsPanel::setPinned(const std::vector<Run>& runs) {
  if (runs.empty() == !pinned_) return;
  pinned_ = !runs.empty();
  refresh();
}

bool StepsPanel::outOfDate() const {
  const TraceArray* steps = trace_->find(key_of(Kind::schedule, "steps"));
  return !steps || !steps->real ||
         static_cast<std::int64_t>(steps->real->at(0)) != std::min<std::int64_t>(length(), std::max<std::int64_t>(1, trace_->info.length));
}

QString StepsPanel::whyEmpty() const {
  if (const QString said = noRunSentence(trace_.get(), tr("its forms are drawn here")); !said.isEmpty()) return said;
  if (const TraceArray* none = trace_->find(key_of(Kind::schedule, "none"))) return QString::fromStdString(none->text);
  if (!trace_->find(key_of(Kind::schedule, "steps"))) return tr("The forms of this model are being laid out.");
  return {};
}

void StepsPanel::forget() {
  setPlaying(false);
  view_->setSchedule({});
  stepByStep_.reset();
  held_ = -1;
  ask();
}

void StepsPanel::ask() {
  if (isVisible() && trace_ && trace_->info.outcome == Outcome::finished && !trace_->find(key_of(Kind::schedule, "none")) && outOfDate())
    emit requested(StudyChoice{"schedule", {{"steps", std::to_string(length())}}});
}

void StepsPanel::rebuild() {
  const std::vector<QString> forms = outOfDate() ? std::vector<QString>() : StepSchedule::forms(*trace_);
  control_row_->show();
  held_ = -1;
  if (forms.empty()) {  // of another length than is chosen: on its way
    view_->setSchedule({});
    view_->setNote(tr("%1 steps are being laid out.").arg(length()));
    said_->setText({});
    why_->setText({});
    ask();
    return;
  }
  const QSignalBlocker quiet(forms_);
  forms_->clear();
  for (const QString& form : forms) forms_->addItem(form, form);
  stepByStep_ = StepSchedule::read(*trace_, QStringLiteral("sequential"));
  // The form that was chosen, or that the preset or a step of a lesson names; else the first that is not step by step.
  form_ = forms[forms.size() > 1 ? 1 : 0];
  for (const QString& form : {wanted(), chosen_})
    if (std::ranges::find(forms, form) != forms.end()) form_ = form;
  forms_->setCurrentIndex(forms_->findData(form_));
  const bool same = view_->schedule() && view_->schedule()->form == form_;
  const int before = view_->position(), most_before = round_->maximum();
  view_->setSchedule(StepSchedule::read(*trace_, form_));
  const int most = view_->schedule() ? view_->schedule()->positions() : 0;
  {
    const QSignalBlocker still(round_);
    round_->setRange(0, most);
  }
  setPosition(same && most == most_before ? before : most);
  moveTime();
}

QVariantMap StepsPanel::choices() const { return chosen_.isEmpty() ? QVariantMap() : QVariantMap{{"form", chosen_}}; }

void StepsPanel::setChoices(const QVariantMap& saved) { choose(saved["form"].toString()); }

void StepsPanel::choose(const QString& form) {
  setPlaying(false);
  chosen_ = form;
  refresh();
}

void StepsPanel::moveTime() {
  view_->setStep(step_);
  plot_->redraw();
}

void StepsPanel::setPosition(int position) {
  position = std::clamp(position, 0, round_->maximum());
  view_->setPosition(position);
  const QSignalBlocker still(round_);
  round_->setValue(position);
  back_->setEnabled(position > 0);
  forward_->setEnabled(position < round_->maximum());
  say();
  plot_->redraw();
}

void StepsPanel::setPlaying(bool on) {
  static_cast<GlyphButton*>(play_)->setPause(on);
  if (on == playing()) return;
  if (!on) return clock_.stop();
  if (!view_->schedule()) return static_cast<GlyphButton*>(play_)->setPause(false);
  if (view_->position() == round_->maximum()) setPosition(0);
  clock_.start();
}

void StepsPanel::advance() {
  if (plot_->visibleRegion().isEmpty()) return setPlaying(false);  // behind another tab
  setPosition(view_->position() + 1);
  if (view_->position() == round_->maximum()) setPlaying(false);
}

void StepsPanel::point(const QPointF& at) {
  if (!view_->schedule() || view_->schedule()->drawing == StepSchedule::Drawing::iterations) return;
  const int node = view_->nodeAt(at), shown = node >= 0 ? node : held_;
  if (shown == view_->chosen()) return;
  view_->setChosen(shown);
  plot_->redraw();
}

bool StepsPanel::eventFilter(QObject* watched, QEvent* event) {
  if (watched != plot_) return PlotPanel::eventFilter(watched, event);
  const auto key_of = [&] { return static_cast<QKeyEvent*>(event)->key(); };
  const auto mine = [](int key) { return key == Qt::Key_Space || key == Qt::Key_Left || key == Qt::Key_Right; };
  switch (event->type()) {
    case QEvent::ShortcutOverride:  // before the window's own play and step keys
      if (mine(key_of()) && static_cast<QKeyEvent*>(event)->modifiers() == Qt::NoModifier) event->accept();
      return event->isAccepted();
    case QEvent::KeyPress:
      if (!mine(key_of())) break;
      if (key_of() == Qt::Key_Space)
        setPlaying(!playing());
      else
        setPosition(view_->position() + (key_of() == Qt::Key_Left ? -1 : 1));
      return true;
    case QEvent::MouseButtonPress:
      if (static_cast<QMouseEvent*>(event)->button() != Qt::LeftButton || !view_->schedule()) break;
      held_ = view_->nodeAt(static_cast<QMouseEvent*>(event)->position());
      if (held_ >= 0) emit timePicked(view_->schedule()->nodes[static_cast<std::size_t>(held_)].last);
      if (view_->schedule()->drawing == StepSchedule::Drawing::iterations) held_ = -1;
      view_->setChosen(held_);
      plot_->redraw();
      break;
    case QEvent::Leave:
      view_->setChosen(held_);
      plot_->redraw();
      break;
    default: break;
  }
  return PlotPanel::eventFilter(watched, event);
}

void StepsPanel::showEvent(QShowEvent* event) {
  PlotPanel::showEvent(event);
  ask();
}

void StepsPanel::hideEvent(QHideEvent* event) {
  setPlaying(false);
  PlotPanel::hideEvent(event);
}

void StepsPanel::resizeEvent(QResizeEvent* event) {
  PlotPanel::resizeEvent(event);
  arrange();
}

void StepsPanel::arrange() { rows_->setDirection(width() < narrow ? QBoxLayout::TopToBottom : QBoxLayout::LeftToRight); }

/// "scan: 26 compositions in 7 rounds; step by step: 16 in 16"
QString StepsPanel::worded(const StepSchedule& schedule, bool in_full) const {
  QString text = tr("%1: %2 %3 in %4 rounds").arg(schedule.form, counted(schedule.work), schedule.unit, counted(schedule.rounds));
  if (schedule.drawing == StepSchedule::Drawing::iterations)
    text = tr("%1: %2 iterations, %3 rounds").arg(schedule.form, counted(schedule.iterations()), counted(schedule.rounds));
  if (stepByStep_ && schedule.form != stepByStep_->form)
    text +=
        (in_full ? tr("; step by step: %1 %3 in %2 rounds").arg(counted(stepByStep_->work), counted(stepByStep_->rounds), stepByStep_->unit)
                 : tr("; step by step: %1 in %2").arg(counted(stepByStep_->work), counted(stepByStep_->rounds)));
  return text;
}

QString StepsPanel::makeHeadline() const { return view_->schedule() ? worded(*view_->schedule()) : QString(); }

QString StepsPanel::subject() const {
  return view_->schedule() ? tr("%1 of %2 steps").arg(form_).arg(view_->schedule()->steps) : QString();
}

/// Why the form is parallel, and where that is no gain.
QString StepsPanel::whole(const StepSchedule& schedule) const {
  const bool gain = !stepByStep_ || schedule.form == stepByStep_->form || schedule.rounds < stepByStep_->rounds || schedule.steps == 1;
  return gain ? schedule.why
              : schedule.why + u' ' +
                    tr("So short a sequence gains nothing by it; a long one can, since its rounds are fewer than its steps.");
}

void StepsPanel::say() {
  if (!view_->schedule()) return;
  const StepSchedule& schedule = *view_->schedule();
  const int position = view_->position();
  QString text = worded(schedule, true);
  text[0] = text[0].toUpper();
  text += u'.';
  if (schedule.drawing == StepSchedule::Drawing::iterations) {
    const int right = schedule.exactAfter(position);
    const QString so_far = position == 0 ? tr("At the guess") : tr("After iteration %1 of %2").arg(position).arg(schedule.iterations());
    text += u' ' + (right == schedule.steps ? tr("%1 all %2 steps are right.").arg(so_far).arg(right)
                                            : tr("%1 the first %2 of %3 steps are right.").arg(so_far).arg(right).arg(schedule.steps));
  } else if (position > 0) {
    int count = 0;
    for (const auto& node : schedule.nodes) count += node.round > 0 && node.begin <= position && position <= node.round ? 1 : 0;
    text += u' ' + (count == 1 ? tr("Round %1 of %2: one piece, alone.").arg(position).arg(schedule.rounds)
                               : tr("Round %1 of %2: %3 pieces side by side.").arg(position).arg(schedule.rounds).arg(count));
  } else {
    text += u' ' + tr("Before the first round: what is given.");
  }
  said_->setText(text);
  why_->setText(pinned_ ? whole(schedule) + u' ' + tr("Pinned runs are not here: this is how one run is computed.") : whole(schedule),
                true);
}

QString StepsPanel::dataAsCsv() const {
  if (!trace_) return {};
  QByteArray text = "form,node,kind,round,begin,first,last,row,work,value,value_imaginary,product,product_imaginary,error_log10,needs\n";
  for (const QString& form : StepSchedule::forms(*trace_)) {
    const auto schedule = StepSchedule::read(*trace_, form);
    if (!schedule) continue;
    for (std::size_t i = 0; i < schedule->nodes.size(); ++i) {
      const auto& node = schedule->nodes[i];
      const auto parts = [](const std::complex<double>& z) {
        return csvNumber(z.real()) + ',' + (std::isnan(z.real()) ? QByteArray() : csvNumber(z.imag()));
      };
      QByteArray needs;
      for (const int from : node.needs) needs += (needs.isEmpty() ? "" : " ") + QByteArray::number(from);
      text += csvCell(form).toUtf8() + ',' + QByteArray::number(static_cast<qulonglong>(i)) + ',' +
              csvCell(schedule->kinds[static_cast<std::size_t>(node.kind)].name).toUtf8();
      for (const int x : {node.round, node.begin, node.first, node.last, node.row}) text += ',' + QByteArray::number(x);
      // The state that an iteration gives to a step has an error.
      const bool has_error = !schedule->error.empty() && !std::isnan(node.value.real());
      const double error = has_error ? schedule->error[static_cast<std::size_t>(node.row * schedule->steps + node.last)] : std::nan("");
      text +=
          ',' + csvNumber(node.work) + ',' + parts(node.value) + ',' + parts(node.product) + ',' + csvNumber(error) + ',' + needs + '\n';
    }
  }
  return QString::fromUtf8(text);
}

RECLAB_PANEL_IS(steps, StepsPanel)

}  // namespace reclab
