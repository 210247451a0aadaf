// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/timing/timing.h"

#include <QAction>
#include <QClipboard>
#include <QGuiApplication>
#include <QScopedValueRollback>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "panels/panel_info.h"
#include "panels/timing/timing_names.h"
#include "plot/parts/layout.h"
#include "window_text.h"

namespace reclab {

namespace {

QString signedNumber(double value) { return (value > 0 ? QStringLiteral("+") : QString()) + number(value, 2); }

}  // namespace

TimingPanel::TimingPanel(QWidget* parent) : Described(parent) {
  legend_ = new Legend(plot_);
  rect_ = plot_->makeRect();
  said_ = new Paragraph(plot_);
  caption_ = new Paragraph(plot_);
  caption_->setSmall(true);
  stack(plot_, {legend_, rect_, said_, caption_});
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
  choices_->restore(saved);
  changed_ = false;
  wanted_ = View::time;
  for (const TimingViewText& view : view_texts)
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

/// Offers the forms of the run's model.
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

QPointF TimingPanel::pixelOf(const QString& form, double length) const {
  for (const Point& point : points_)
    if (point.tip.isEmpty() && timings_.forms[point.form].name == form && timings_.forms[point.form].length[point.row] == length)
      return {rect_->axis(QCPAxis::atBottom)->coordToPixel(point.x), rect_->axis(QCPAxis::atLeft)->coordToPixel(point.y)};
  return {};
}

void TimingPanel::copyCommand() { QGuiApplication::clipboard()->setText(QString::fromStdString(timings_.info.command)); }

void TimingPanel::showCaption() {
  if (state_.running) return caption_->setText(doing() + tr(", %1 %").arg(std::lround(100 * state_.fraction)), true);
  if (!state_.waits.isEmpty()) return caption_->setText(state_.waits, true);
  // One line of it, with as much as it holds; resting the pointer on it tells the rest.
  QString text = circumstances(timings_.info);
  // Times hold for other seeds and values too, but Newton's iterations depend on them.
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

QString TimingPanel::dataAsCsv() const {
  if (!trace_) return {};
  const QByteArray own = timingsAsCsv(timingsOf(*trace_));
  // With pinned runs, whose each line is stands in a column after the others.
  const auto timed = [](const Run& run) { return !timingsOf(*run.trace).forms.empty(); };
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
