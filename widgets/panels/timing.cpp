// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/timing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace reclab {

namespace {

/// "0.8 µs", "12 ms", "3.4 s"
QString duration(double seconds) {
  if (seconds < 1e-3) return QStringLiteral("%1 µs").arg(number(seconds * 1e6));
  if (seconds < 1.0) return QStringLiteral("%1 ms").arg(number(seconds * 1e3));
  return QStringLiteral("%1 s").arg(number(seconds));
}

/// Ticks of a logarithmic axis at whole powers of ten, or at 2, 5 and 10 when it spans few of them.
class LogTicker : public QCPAxisTickerLog {
 public:
  explicit LogTicker(bool time) : time_(time) {}

 protected:
  QVector<double> createTickVector(double, const QCPRange& range) override {
    QVector<double> ticks;
    if (range.lower <= 0) return ticks;
    const int first = static_cast<int>(std::floor(std::log10(range.lower))), last = static_cast<int>(std::ceil(std::log10(range.upper)));
    const double decades = std::log10(range.upper / range.lower);
    const int every = std::max(1, static_cast<int>(std::ceil(decades / 7.0)));
    for (int power = first; power <= last; ++power) {
      if (decades < 1.6) {
        for (const double mantissa : {1.0, 2.0, 5.0}) ticks.append(mantissa * std::pow(10.0, power));
      } else if (power % every == 0) {
        ticks.append(std::pow(10.0, power));
      }
    }
    return ticks;
  }
  QString getTickLabel(double tick, const QLocale&, QChar, int) override {
    return time_ ? duration(tick) : tick < 1e6 ? grouped(std::llround(tick)) : powerOfTen(std::log10(tick));
  }
  int getSubTickCount(double) override { return 0; }

 private:
  bool time_;
};

}  // namespace

TimingPanel::TimingPanel(QWidget* parent) : PlotPanel(parent) {
  legend_ = new Legend(plot_);
  rect_ = plot_->makeRect();
  plot_->plotLayout()->addElement(0, 0, legend_);
  plot_->plotLayout()->addElement(1, 0, rect_);
  QCPAxis *length = rect_->axis(QCPAxis::atBottom), *seconds = rect_->axis(QCPAxis::atLeft);
  length->setScaleType(QCPAxis::stLogarithmic);
  seconds->setScaleType(QCPAxis::stLogarithmic);
  length->setTicker(QSharedPointer<QCPAxisTicker>(new LogTicker(false)));
  seconds->setTicker(QSharedPointer<QCPAxisTicker>(new LogTicker(true)));
  length->setLabel(tr("length T (steps)"));
  seconds->setLabel(tr("time of one run"));
  offer_->setText(tr("Time the forms"));
  offer_->setToolTip(tr("Run every exact form of this model at rising lengths; this takes some seconds."));
  connect(offer_, &QPushButton::clicked, this, [this] { emit detailWanted(QStringLiteral("timing")); });
  plot_->setResetHandler([this] { refresh(); });
  plot_->setHoverHandler([this](const QPointF& at) { return tipAt(at); });
  refresh();
}

QString TimingPanel::hint() const {
  return tr("How long each execution form of this model takes here, against the length of the sequence: its slope is the exponent.");
}

QString TimingPanel::whyEmpty() const {
  offer_->setVisible(trace_ != nullptr);
  if (const QString said = noRunSentence(trace_.get(), tr("its forms can be timed here")); !trace_) return said;
  if (!forms(*trace_).empty()) return {};
  return tr("The forms of this model have not been timed on this machine yet.");
}

std::vector<TimingPanel::Form> TimingPanel::forms(const Trace& trace) {
  std::vector<Form> found;
  for (const TraceArray* array : trace.matching("timing/")) {
    const QString key = QString::fromStdString(array->key);
    if (!key.endsWith(u"/length") || !array->real) continue;
    const std::string at = array->key.substr(0, array->key.size() - 6);
    const auto values = [&](const char* name) {
      const TraceArray* there = trace.find(at + name);
      return there && there->real ? *there->real : std::vector<double>();
    };
    Form form{
        key.section(u'/', 1, -2), *array->real, values("seconds"), values("low"), values("high"), std::numeric_limits<double>::quiet_NaN()};
    if (const std::vector<double> exponent = values("exponent"); !exponent.empty()) form.exponent = exponent[0];
    const std::size_t count = std::min(form.length.size(), form.seconds.size());
    form.length.resize(count);
    form.seconds.resize(count);
    if (form.low.size() < count || form.high.size() < count) form.low = form.high = form.seconds;
    form.low.resize(count);
    form.high.resize(count);
    if (count > 0) found.push_back(std::move(form));
  }
  return found;
}

void TimingPanel::rebuild() {
  plot_->clearPlottables();
  legend_->clear();
  const Theme& theme = plot_->theme();
  double shortest = std::numeric_limits<double>::infinity(), longest = 0, fastest = shortest, slowest = 0;
  int colour = 0;
  for (const Form& form : forms(*trace_)) {
    const QColor ink = theme.series(colour++);
    QCPGraph* low = plot_->addCurve(rect_, ink);
    QCPGraph* high = plot_->addCurve(rect_, ink);
    QCPGraph* median = plot_->addCurve(rect_, ink, 1.8);
    QColor shade = ink;
    shade.setAlphaF(theme.dark ? 0.28f : 0.20f);
    low->setPen(Qt::NoPen);
    high->setPen(Qt::NoPen);
    low->setBrush(shade);
    low->setChannelFillGraph(high);
    for (std::size_t i = 0; i < form.length.size(); ++i) {
      if (!(form.seconds[i] > 0) || !(form.length[i] > 0)) continue;
      low->addData(form.length[i], form.low[i]);
      high->addData(form.length[i], form.high[i]);
      median->addData(form.length[i], form.seconds[i]);
      shortest = std::min(shortest, form.length[i]);
      longest = std::max(longest, form.length[i]);
      fastest = std::min(fastest, form.low[i] > 0 ? form.low[i] : form.seconds[i]);
      slowest = std::max(slowest, form.high[i]);
    }
    median->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(theme.base, 1), QBrush(ink), 8));
    QString text = form.name;
    if (std::isfinite(form.exponent)) text += QStringLiteral("  ∝ T^%1").arg(QString::number(form.exponent, 'f', 2));
    legend_->add(form.name, text, QPen(ink, 2), {low, high, median});
  }
  if (longest > 0) {
    rect_->axis(QCPAxis::atBottom)->setRange(shortest / 1.3, longest * 1.3);
    rect_->axis(QCPAxis::atLeft)->setRange(fastest / 1.6, slowest * 1.6);
  }
  plot_->redraw();
}

/// Where `later` overtakes `earlier` for good: between the last length at which it is slower and the next, on the straight lines of the plot;
/// 0 where no length before or none after shows it beyond the quartiles.
double TimingPanel::overtakes(const Form& later, const Form& earlier) {
  bool before = false, after = false;
  double at = 0, last_length = 0, last_lead = 0;
  for (std::size_t i = 0; i < later.length.size(); ++i) {
    const auto same = std::find(earlier.length.begin(), earlier.length.end(), later.length[i]);
    if (same == earlier.length.end()) continue;
    const auto j = static_cast<std::size_t>(same - earlier.length.begin());
    const double lead = std::log(earlier.seconds[j] / later.seconds[i]);
    if (lead <= 0) {
      before = before || earlier.high[j] < later.low[i];
      at = 0;
      after = false;
    } else {
      after = after || later.high[i] < earlier.low[j];
      if (at == 0 && last_length > 0) at = last_length * std::pow(later.length[i] / last_length, -last_lead / (lead - last_lead));
    }
    last_length = later.length[i];
    last_lead = lead;
  }
  return before && after ? at : 0.0;
}

QString TimingPanel::makeHeadline() const {
  const std::vector<Form> all = forms(*trace_);
  std::map<double, const Form*> best;  // at each length
  for (const Form& form : all)
    for (std::size_t i = 0; i < form.length.size(); ++i) {
      const Form*& there = best.try_emplace(form.length[i], &form).first->second;
      const auto at = static_cast<std::size_t>(std::find(there->length.begin(), there->length.end(), form.length[i]) - there->length.begin());
      if (form.seconds[i] < there->seconds[at]) there = &form;
    }
  if (best.empty()) return {};
  const Form* winner = best.rbegin()->second;
  const auto other = std::find_if(best.rbegin(), best.rend(), [&](const auto& entry) { return entry.second != winner; });
  if (other != best.rend())
    if (const double at = overtakes(*winner, *other->second); at > 0)
      return tr("%1 overtakes %2 at T = %3").arg(winner->name, other->second->name, grouped(std::llround(at)));
  return tr("%1 is fastest at T = %2").arg(winner->name, grouped(std::llround(best.rbegin()->first)));
}

QString TimingPanel::tipAt(const QPointF& position) const {
  if (!trace_ || !rect_->rect().contains(position.toPoint())) return {};
  double nearest = 10.0 * 10.0;
  QString text;
  for (const Form& form : forms(*trace_)) {
    for (std::size_t i = 0; i < form.length.size(); ++i) {
      const QPointF away = QPointF(rect_->axis(QCPAxis::atBottom)->coordToPixel(form.length[i]),
                                   rect_->axis(QCPAxis::atLeft)->coordToPixel(form.seconds[i])) -
                           position;
      if (QPointF::dotProduct(away, away) >= nearest) continue;
      nearest = QPointF::dotProduct(away, away);
      text = tr("%1 at T = %2: %3 (quartiles %4 to %5)")
                 .arg(form.name, grouped(std::llround(form.length[i])), duration(form.seconds[i]), duration(form.low[i]),
                      duration(form.high[i]));
    }
  }
  return text;
}

QString TimingPanel::dataAsCsv() const {
  if (!trace_) return {};
  QByteArray text = "form,length,seconds,low,high,exponent\n";
  for (const Form& form : forms(*trace_))
    for (std::size_t i = 0; i < form.length.size(); ++i)
      text += csvCell(form.name).toUtf8() + ',' + csvNumber(form.length[i]) + ',' + csvNumber(form.seconds[i]) + ',' +
              csvNumber(form.low[i]) + ',' + csvNumber(form.high[i]) + ',' + csvNumber(form.exponent) + '\n';
  return QString::fromUtf8(text);
}

}  // namespace reclab
