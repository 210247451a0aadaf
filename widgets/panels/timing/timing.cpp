// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/timing/timing.h"

#include <QAction>
#include <QClipboard>
#include <QGuiApplication>
#include <QScopedValueRollback>
#include <QStyle>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "panels/panel_info.h"
#include "panels/timing/timing_names.h"
#include "plain_text.h"
#include "window_text.h"

namespace reclab {

namespace {

struct ViewText {
  TimingPanel::View view;
  const char *name, *text, *tip;
};
constexpr ViewText view_texts[] = {
    {TimingPanel::View::time, "time", QT_TRANSLATE_NOOP("reclab::TimingPanel", "time"),
     QT_TRANSLATE_NOOP("reclab::TimingPanel", "Time against length; the slope is the exponent")},
    {TimingPanel::View::throughput, "throughput", QT_TRANSLATE_NOOP("reclab::TimingPanel", "throughput"),
     QT_TRANSLATE_NOOP("reclab::TimingPanel", "Steps of all sequences of the batch a second, against length")},
    {TimingPanel::View::memory, "memory", QT_TRANSLATE_NOOP("reclab::TimingPanel", "memory"),
     QT_TRANSLATE_NOOP("reclab::TimingPanel", "Bytes that the arrays of a form take, against length")},
    {TimingPanel::View::roofline, "roofline", QT_TRANSLATE_NOOP("reclab::TimingPanel", "roofline"),
     QT_TRANSLATE_NOOP("reclab::TimingPanel", "Operations a second against operations a byte, under what this machine can do at most")},
    {TimingPanel::View::error, "error", QT_TRANSLATE_NOOP("reclab::TimingPanel", "error"),
     QT_TRANSLATE_NOOP("reclab::TimingPanel", "What each form differs from the sequential one in float64, against its time")},
    {TimingPanel::View::newton, "newton", QT_TRANSLATE_NOOP("reclab::TimingPanel", "Newton"),
     QT_TRANSLATE_NOOP("reclab::TimingPanel", "How many iterations Newton's forms take, against length")},
};

constexpr int controls_gap = 8;

QString signedNumber(double value) { return (value > 0 ? QStringLiteral("+") : QString()) + number(value, 2); }

}  // namespace

TimingPanel::TimingPanel(QWidget* parent) : PlotPanel(parent) {
  legend_ = new Legend(plot_);
  rect_ = plot_->makeRect();
  said_ = new Paragraph(plot_);
  caption_ = new Paragraph(plot_);
  caption_->setSmall(true);
  QCPLayoutGrid* grid = plot_->plotLayout();
  grid->addElement(0, 0, legend_);
  grid->addElement(1, 0, rect_);
  grid->addElement(2, 0, said_);
  grid->addElement(3, 0, caption_);
  names_ = new PointNames(plot_);
  for (const auto side : {QCPAxis::atBottom, QCPAxis::atLeft}) rect_->axis(side)->setScaleType(QCPAxis::stLogarithmic);
  makeControls();
  offer_->setText(tr("Time the forms"));
  offer_->setToolTip(tr("Run every exact form of this model at rising lengths; this takes some seconds."));
  connect(offer_, &QPushButton::clicked, this, [this] { ask(StudyChoice::Act::compute); });
  copy_command_ = new QAction(tr("Copy the reclab line that repeats the timing"), this);
  connect(copy_command_, &QAction::triggered, this, &TimingPanel::copyCommand);
  addAction(copy_command_);
  plot_->setResetHandler([this] { refresh(); });
  plot_->setHoverHandler([this](const QPointF& at) { return tipAt(at); });
  refresh();
}

QString TimingPanel::hint() const {
  return tr(
      "How long each execution form of this model takes here, against the length of the sequence: its slope is the exponent. Also what "
      "memory "
      "it takes, how near it comes to what this machine can do at most, how exact it is, and how Newton's forms converge.");
}

void TimingPanel::makeControls() {
  segments_ = new QWidget;
  auto* row = new QHBoxLayout(segments_);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(4);
  auto* group = new QButtonGroup(this);
  view_box_ = new QComboBox;
  view_box_->setObjectName(QStringLiteral("timingView"));
  view_box_->setToolTip(tr("What is drawn of the timing"));
  for (const ViewText& view : view_texts) {
    auto* button = new QToolButton;
    button->setObjectName(QStringLiteral("timingView.") + QLatin1String(view.name));
    button->setText(tr(view.text));
    button->setToolTip(safeTip(tr(view.tip)));
    button->setCheckable(true);
    button->setAutoRaise(true);
    button->setFocusPolicy(Qt::TabFocus);
    group->addButton(button);
    row->addWidget(button);
    segment_.push_back(button);
    connect(button, &QToolButton::clicked, this, [this, view] { setView(view.view); });
  }
  connect(view_box_, &QComboBox::activated, this, [this](int index) { setView(static_cast<View>(view_box_->itemData(index).toInt())); });

  pass_box_ = new QComboBox;
  pass_box_->setObjectName(QStringLiteral("timingPass"));
  pass_box_->setToolTip(tr("The time of which passes: of both together, of one, or of each by itself (forward solid, backward dashed)"));
  pass_box_->addItem(tr("both"), static_cast<int>(Pass::sum));
  pass_box_->addItem(tr("forward"), static_cast<int>(Pass::forward));
  pass_box_->addItem(tr("backward"), static_cast<int>(Pass::backward));
  pass_box_->addItem(tr("apart"), static_cast<int>(Pass::apart));
  connect(pass_box_, &QComboBox::activated, this, [this](int index) { setPass(static_cast<Pass>(pass_box_->itemData(index).toInt())); });

  pass_row_ = new QWidget;
  auto* pass = new QHBoxLayout(pass_row_);
  pass->setContentsMargins(0, 0, 0, 0);
  pass_label_ = plainLabel(tr("passes shown"));
  pass_label_->setProperty("role", "muted");
  pass_label_->hide();
  pass->addWidget(pass_label_);
  pass->addWidget(pass_box_);

  more_ = new QToolButton;
  more_->setObjectName(QStringLiteral("timingChoices"));
  more_->setText(tr("Choices…"));
  more_->setToolTip(tr("Which forms, lengths, batch, width, device, precision and passes are timed"));
  more_->setAutoRaise(true);
  time_ = new QPushButton;
  time_->setObjectName(QStringLiteral("timingStart"));
  connect(time_, &QPushButton::clicked, this, [this] { ask(state_.running ? StudyChoice::Act::stop : StudyChoice::Act::compute); });
  controls_->addWidget(segments_);
  controls_->addWidget(view_box_);
  controls_->addWidget(pass_row_);
  controls_->addStretch();
  controls_->addWidget(more_);
  controls_->addWidget(time_);

  choices_ = new TimingChoices;
  popup_ = new Popup(this);
  connect(more_, &QToolButton::clicked, this, [this] { popup_->openUnder(more_); });
  strip_ = new QWidget;
  auto* strip = new QHBoxLayout(strip_);
  strip->setContentsMargins(0, 0, 0, 0);
  strip->addWidget(choices_);
  connect(choices_, &TimingChoices::changed, this, [this] {
    changed_ = true;
    showButtons();
    ask(StudyChoice::Act::choose);
  });

  bar_ = new QProgressBar;
  bar_->setRange(0, 1000);
  bar_->setTextVisible(false);
  bar_->setFixedHeight(3);
  QSizePolicy kept = bar_->sizePolicy();
  kept.setRetainSizeWhenHidden(true);  // so that the plot does not jump
  bar_->setSizePolicy(kept);
  bar_->hide();

  // Above the plot and above the sentence alike. They never ask for more width than there is.
  for (QWidget* one : {control_row_, strip_}) {
    one->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    one->setMinimumWidth(0);
  }
  auto* all = static_cast<QVBoxLayout*>(layout());
  all->setSpacing(0);
  all->insertWidget(0, control_row_);
  all->insertWidget(1, strip_);
  all->insertWidget(2, bar_);
}

/// As much in the row as there is room for: segments, then a box in their place, then the passes go into the sheet, then words are short.
void TimingPanel::arrange() {
  const bool row = width() >= choices_->rowWidth() && height() >= 320, passes = pass_box_->isVisibleTo(pass_row_),
             views = view_box_->count() > 0;
  const auto wanted = [](const QWidget* one) { return one->sizeHint().width() + controls_gap; };
  int level = 0;
  for (;; ++level) {
    more_->setText(level < 3 ? tr("Choices…") : QStringLiteral("…"));
    time_->setText(state_.running ? tr("Stop") : level < 2 ? tr("Time the forms") : tr("Time"));
    if (level == 3) break;
    const bool sheet = !row || (passes && level == 2);
    const int taken = (!views ? 0 : wanted(level == 0 ? segments_ : static_cast<QWidget*>(view_box_))) +
                      (passes && level < 2 ? wanted(pass_box_) : 0) + (sheet ? wanted(more_) : 0) + wanted(time_);
    if (taken + controls_gap <= width()) break;
  }
  segments_->setVisible(views && level == 0);
  view_box_->setVisible(views && level > 0);
  QWidget *home = row ? strip_ : static_cast<QWidget*>(popup_), *pass_home = level < 2 ? control_row_ : static_cast<QWidget*>(popup_);
  if (choices_->parentWidget() != home) {
    popup_->hide();
    home->layout()->addWidget(choices_);
    choices_->setColumn(!row);
    choices_->show();
  }
  if (pass_row_->parentWidget() != pass_home) {
    popup_->hide();
    if (level < 2)
      controls_->insertWidget(2, pass_row_);
    else
      static_cast<QVBoxLayout*>(popup_->layout())->insertWidget(0, pass_row_);
    pass_label_->setVisible(level >= 2);
  }
  pass_row_->setVisible(passes);
  strip_->setVisible(trace_ && row);
  more_->setVisible(!row || (passes && level >= 2));
  control_row_->setVisible(trace_ != nullptr);
}

void TimingPanel::resizeEvent(QResizeEvent* event) {
  PlotPanel::resizeEvent(event);
  arrange();
  // The legend and the caption are as long as there is room for.
  if (emptyReason().isEmpty()) QMetaObject::invokeMethod(this, [this] { refresh(); }, Qt::QueuedConnection);
}

QVariantMap TimingPanel::choices() const {
  QVariantMap saved = choices_->saved();
  saved["view"] = QLatin1String(view_texts[static_cast<int>(wanted_)].name);
  saved["pass"] = static_cast<int>(pass_);
  return saved;
}

void TimingPanel::setChoices(const QVariantMap& saved) {
  if (saved.isEmpty()) return;
  choices_->restore(saved);
  changed_ = false;
  for (const ViewText& view : view_texts)
    if (saved.value("view").toString() == QLatin1String(view.name)) wanted_ = view.view;
  const int pass = saved.value("pass").toInt();
  if (pass_box_->findData(pass) >= 0) setPass(static_cast<Pass>(pass));
  refresh();
}

QString TimingPanel::whyEmpty() const {
  const QString said = noRunSentence(trace_.get(), tr("its forms can be timed here"));
  const bool none = !trace_ || timingsOf(*trace_).forms.empty();
  offer_->setVisible(trace_ && none && !state_.running);
  if (!trace_) return said;
  if (!none) return {};
  if (state_.running) return doing() + u'…';
  if (!state_.waits.isEmpty()) return state_.waits;
  return tr(
      "Press “Time the forms” to see how long each execution form of this model takes on this machine. "
      "It also begins by itself when nothing runs and no hand moves for a while.");
}

void TimingPanel::forget() {
  timings_ = {};
  points_.clear();
  noteRun();
}

/// What can be chosen is what the run's model has.
void TimingPanel::noteRun() {
  if (trace_) {
    QStringList forms;
    for (const std::string& form : trace_->info.forms) forms << QString::fromStdString(form);
    if (forms.isEmpty())
      for (const TimedForm& form : timings_.forms) forms << form.name;
    const QScopedValueRollback<bool> as_it_was(changed_);
    choices_->setRun(trace_->info, forms);
  }
  copy_command_->setEnabled(QString::fromStdString(timings_.info.command).startsWith(u"reclab bench"));
  showViews();
  showButtons();
}

bool TimingPanel::has(View view) const {
  const auto any = [&](const auto& known) { return std::any_of(timings_.forms.begin(), timings_.forms.end(), known); };
  const auto known = [](double value) { return std::isfinite(value); };
  const auto some = [&](const std::vector<double>& column) { return std::any_of(column.begin(), column.end(), known); };
  switch (view) {
    case View::time:
    case View::throughput: return !timings_.forms.empty();
    case View::memory: return any([](const TimedForm& form) { return form.memory.known(); });
    case View::roofline:
      return any([&](const TimedForm& form) {
        for (std::size_t i = 0; i < form.length.size(); ++i)
          if (known(form.rate(i)) && known(form.intensity(i))) return true;
        return false;
      });
    case View::error: return any([&](const TimedForm& form) { return some(form.output_error); });
    case View::newton: return any([&](const TimedForm& form) { return some(form.iterations); });
  }
  return false;
}

TimingPanel::View TimingPanel::view() const { return has(wanted_) ? wanted_ : View::time; }

void TimingPanel::setView(View view) {
  wanted_ = view;
  refresh();
}

void TimingPanel::setPass(Pass pass) {
  pass_ = pass;
  pass_box_->setCurrentIndex(pass_box_->findData(static_cast<int>(pass)));
  refresh();
}

bool TimingPanel::apart() const {
  return pass_ == Pass::apart && std::any_of(timings_.forms.begin(), timings_.forms.end(),
                                             [](const TimedForm& form) { return form.forward.known() && form.backward.known(); });
}

const Measured& TimingPanel::passOf(const TimedForm& form) const {
  if (pass_ == Pass::forward && form.forward.known()) return form.forward;
  if (pass_ == Pass::backward && form.backward.known()) return form.backward;
  return form.seconds;
}

void TimingPanel::setPinned(const std::vector<Run>& runs) {
  pinned_ = runs;
  refresh();
}

void TimingPanel::showViews() {
  QList<int> offered, present;
  for (const ViewText& view : view_texts)
    if (has(view.view)) offered << static_cast<int>(view.view);
  for (int i = 0; i < view_box_->count(); ++i) present << view_box_->itemData(i).toInt();
  if (offered != present) {
    view_box_->clear();
    for (const int view : offered) {
      view_box_->addItem(tr(view_texts[view].text), view);
      view_box_->setItemData(view_box_->count() - 1, safeTip(tr(view_texts[view].tip)), Qt::ToolTipRole);
    }
  }
  view_box_->setCurrentIndex(view_box_->findData(static_cast<int>(view())));
  view_box_->setEnabled(!offered.isEmpty());
  for (std::size_t i = 0; i < segment_.size(); ++i) {
    segment_[i]->setVisible(offered.contains(static_cast<int>(i)) || (offered.isEmpty() && i == 0));
    segment_[i]->setEnabled(!offered.isEmpty());
    segment_[i]->setChecked(static_cast<View>(i) == view());
  }
  const bool timed = view() == View::time || view() == View::throughput;
  pass_box_->setVisible(
      timed && std::any_of(timings_.forms.begin(), timings_.forms.end(), [](const TimedForm& form) { return form.backward.known(); }));
}

void TimingPanel::showButtons() {
  time_->setToolTip(safeTip(state_.running ? tr("Stop the timing; what has been timed stays")
                                           : tr("Time the forms that are chosen, at the lengths that are chosen")));
  time_->setVisible(!offer_->isVisibleTo(this));
  const bool stands_out = changed_ && !state_.running;
  if (time_->property("primary").toBool() != stands_out) {
    time_->setProperty("primary", stands_out);  // what is shown is not what is chosen
    time_->style()->unpolish(time_);
    time_->style()->polish(time_);
  }
  bar_->setVisible(state_.running);
  arrange();
}

void TimingPanel::ask(StudyChoice::Act act) { emit requested(StudyChoice{"time", {choice().begin(), choice().end()}, act}); }

void TimingPanel::setStudyState(const std::string& study, const StudyState& state) {
  if (study != "time") return;
  const bool toggled = std::exchange(state_, state).running != state.running;
  if (toggled && state.running) changed_ = false;
  bar_->setValue(static_cast<int>(std::lround(1000 * state_.fraction)));
  if (!emptyReason().isEmpty()) return refresh();
  if (toggled) showButtons();
  showCaption();
  plot_->redraw();
}

QString TimingPanel::doing() const {
  return state_.stage.isEmpty() ? tr("The forms are being timed") : state_.stage.left(1).toUpper() + state_.stage.mid(1);
}

void TimingPanel::showCaption() {
  if (state_.running) return caption_->setText(doing() + tr(", %1 %").arg(std::lround(100 * state_.fraction)), true);
  if (!state_.waits.isEmpty()) return caption_->setText(state_.waits, true);
  // One line of it, with as much as it holds; resting the pointer on it tells the rest.
  QString text = circumstances(timings_.info);
  // What was measured holds for other seeds and numbers too, but Newton's iterations are those of the ones it was measured with.
  if (trace_ && trace_->timed && (trace_->timed->hyper != trace_->info.hyper || trace_->timed->seed != trace_->info.seed)) {
    QStringList with;
    for (std::size_t i = 0; i < trace_->timed->hyper.size() && i < trace_->info.hyper.size(); ++i)
      if (const auto& [key, value] = trace_->timed->hyper[i]; value != trace_->info.hyper[i].second && key != "width")
        with << QString::fromStdString(key + " = " + value);
    if (!with.isEmpty()) text += tr(", measured with %1").arg(with.join(QStringLiteral(", ")));
  }
  const QFontMetrics metrics(plot_->theme().small, plot_);
  const auto append = [&](const QString& more) {
    if (metrics.horizontalAdvance(text + more) < plot_->width() - 24) text += more;
  };
  if (std::isfinite(timings_.noise)) append(tr("; this machine's noise: ±%1").arg(percentage(timings_.noise)));
  const std::size_t notes = timings_.info.notes.size();
  const QString more = notes == 0   ? QString()
                       : notes == 1 ? tr("; one note, rest the pointer here")
                                    : tr("; %1 notes, rest the pointer here").arg(notes);
  caption_->setText(text, true, metrics.horizontalAdvance(text + more) < plot_->width() - 24 ? more : QString());
}

QString TimingPanel::subject() const {
  const View shown = view();
  return shown == View::time ? QString() : tr(view_texts[static_cast<int>(shown)].text);
}

QString TimingPanel::makeHeadline() const {
  std::vector<std::pair<const TimedForm*, Measured>> curves;
  const View shown = view();
  switch (shown) {
    case View::time:
    case View::throughput:
      for (const TimedForm& form : timings_.forms) curves.emplace_back(&form, passOf(form));
      return leader(curves, tr("%1 overtakes %2 at T = %3"), tr("%1 is fastest at T = %2"));
    case View::memory:
      for (const TimedForm& form : timings_.forms) curves.emplace_back(&form, form.memory);
      return leader(curves, tr("%1 takes less memory than %2 from T = %3"), tr("%1 takes the least memory at T = %2"));
    case View::roofline: {
      double most = 0;
      QString text;
      for (const TimedForm& form : timings_.forms)
        for (std::size_t i = 0; i < form.length.size(); ++i) {
          const double rate = form.rate(i);
          if (!(rate > most)) continue;
          most = rate;
          text = tr("%1 does %2 at T = %3").arg(form.name, scaled(rate, tr("flop/s")), grouped(std::llround(form.length[i])));
          if (timings_.flops > 0) text += tr(", %1 of this machine's").arg(percentage(rate / timings_.flops));
        }
      return text;
    }
    case View::error: {
      double worst = -1;
      QString text;
      for (const TimedForm& form : timings_.forms)
        if (const std::ptrdiff_t row = TimedForm::last(form.output_error); row >= 0) {
          const auto i = static_cast<std::size_t>(row);
          const double error = std::fmax(form.output_error[i], form.gradient_error[i]);
          if (!(error > worst)) continue;
          worst = error;
          text = tr("largest error %1, %2 at T = %3").arg(number(error, 2), form.name, grouped(std::llround(form.length[i])));
        }
      return text;
    }
    case View::newton: break;
  }
  if (!std::isnan(timings_.lyapunov)) return tr("λ₁ = %1 a step").arg(signedNumber(timings_.lyapunov));
  for (const TimedForm& form : timings_.forms)
    if (const std::ptrdiff_t row = TimedForm::last(form.iterations); row >= 0)
      return tr("%1: %2 iterations at T = %3")
          .arg(form.name, grouped(std::llround(form.iterations[static_cast<std::size_t>(row)])),
               grouped(std::llround(form.length[static_cast<std::size_t>(row)])));
  return {};
}

QString TimingPanel::tipAt(const QPointF& position) const {
  if (!trace_) return {};
  if (caption_->outerRect().contains(position.toPoint())) {
    QStringList lines{tr("What was timed, and where: %1.").arg(circumstances(timings_.info))};
    if (std::isfinite(timings_.noise))
      lines << tr("Noise: the 90 % band of the median of one fixed computation, repeated all through the timing, is ±%1 of it.")
                   .arg(percentage(timings_.noise));
    if (std::isfinite(timings_.between))
      lines << tr("From one run to another that median differs too: by ±%1 nine times out of ten, as far as the last timings on this "
                  "machine tell. Both, and what the repeats of a point varied by, are in the bands of the medians.")
                   .arg(percentage(timings_.between));
    for (const Sentence& note : timings_.info.notes) lines << windowText(note);
    return lines.join(u'\n');
  }
  if (!said_->text().isEmpty() && said_->outerRect().contains(position.toPoint()))
    return tr(
        "The largest Lyapunov exponent of the model on this sequence: by so much a step, in natural logarithms, nearby states part (above "
        "0) or "
        "meet (below 0). Newton's iteration over all steps at once converges fast where they meet (arXiv 2508.16817).");
  if (!rect_->rect().contains(position.toPoint())) return {};
  const Point* nearest = nullptr;
  double least = 10.0 * 10.0;
  for (const Point& point : points_) {
    if (!point.graph->visible()) continue;
    const QPointF away =
        QPointF(rect_->axis(QCPAxis::atBottom)->coordToPixel(point.x), rect_->axis(QCPAxis::atLeft)->coordToPixel(point.y)) - position;
    if (const double distance = QPointF::dotProduct(away, away); distance < least) {
      least = distance;
      nearest = &point;
    }
  }
  if (nearest == nullptr) return {};
  if (!nearest->tip.isEmpty()) return nearest->tip;
  return described(timings_, timings_.forms[nearest->form], nearest->row);
}

QPointF TimingPanel::pixelOf(const QString& form, double length) const {
  for (const Point& point : points_)
    if (point.tip.isEmpty() && timings_.forms[point.form].name == form && timings_.forms[point.form].length[point.row] == length)
      return {rect_->axis(QCPAxis::atBottom)->coordToPixel(point.x), rect_->axis(QCPAxis::atLeft)->coordToPixel(point.y)};
  return {};
}

void TimingPanel::copyCommand() { QGuiApplication::clipboard()->setText(QString::fromStdString(timings_.info.command)); }

QString TimingPanel::dataAsCsv() const {
  if (!trace_) return {};
  const QByteArray own = timingsAsCsv(timingsOf(*trace_));
  // With pinned runs, whose each line is stands in a column after the others.
  const auto timed = [](const Run& run) { return run.trace && !timingsOf(*run.trace).forms.empty(); };
  if (std::none_of(pinned_.begin(), pinned_.end(), timed)) return QString::fromUtf8(own);
  QStringList lines;
  const auto add = [&](const QByteArray& csv, const QString& run) {
    const QStringList its = QString::fromUtf8(csv).split(u'\n', Qt::SkipEmptyParts);
    if (lines.isEmpty()) lines << its.front() + QStringLiteral(",run");
    for (const QString& line : its.mid(1)) lines << line + u',' + csvCell(run);
  };
  add(own, tr("shown"));
  for (const Run& run : pinned_)
    if (timed(run)) add(timingsAsCsv(timingsOf(*run.trace)), run.label);
  return lines.join(u'\n') + u'\n';
}

RECLAB_PANEL_IS(timing, TimingPanel)

}  // namespace reclab
