// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/timing/timing_data.h"

#include <QCoreApplication>
#include <QStringList>
#include <algorithm>
#include <array>
#include <cmath>

#include "plot/parts/table.h"
#include "plot/plot.h"
#include "plot/theme.h"
#include "trace/crossing.h"

namespace reclab {

namespace {

QString trTiming(const char* text) { return QCoreApplication::translate("reclab::TimingPanel", text); }

bool anyKnown(const std::vector<double>& values) {
  return std::any_of(values.begin(), values.end(), [](double v) { return !std::isnan(v); });
}

/// "3.1 ms (90 % band 3.0 ms to 3.3 ms)"
QString withBand(const QString& value, double low, double high, QString (*write)(double)) {
  return std::isnan(low) || std::isnan(high) ? value : trTiming("%1 (90 % band %2 to %3)").arg(value, write(low), write(high));
}

QString errorInWords(double error) { return error == 0 ? trTiming("none") : number(error, 2); }

}  // namespace

bool Measured::known() const { return anyKnown(value); }

double TimedForm::rate(std::size_t row) const {
  // A timing that took the forward pass alone has it as its only time.
  const double spent = forward.known() ? forward.value[row] : backward.known() ? unknown : seconds.value[row];
  return flops[row] / spent;
}

std::ptrdiff_t TimedForm::last(const std::vector<double>& column) {
  const auto found = std::find_if(column.rbegin(), column.rend(), [](double v) { return !std::isnan(v); });
  return column.rend() - found - 1;
}

double Timings::roof(double intensity, double bandwidth) const { return std::min(flops, intensity * bandwidth); }

Timings timingsOf(const Trace& trace) {
  Timings found;
  found.info = trace.timed ? *trace.timed : trace.info;
  const auto single = [&](const std::string& key) {
    const TraceArray* array = trace.find(key);
    return array && array->real && !array->real->empty() ? array->real->front() : unknown;
  };
  found.triad = single(key_of(Kind::timing, "roof/triad"));
  found.cached = single(key_of(Kind::timing, "roof/cached"));
  found.flops = single(key_of(Kind::timing, "roof/flops"));
  found.lyapunov = single(key_of(Kind::timing, "lyapunov"));
  found.noise = single(key_of(Kind::timing, "noise"));
  found.between = single(key_of(Kind::timing, "between"));
  for (const TraceArray* array : trace.of(Kind::timing)) {
    const QString key = QString::fromStdString(array->key);
    if (!key.endsWith(u"/length") || !array->real) continue;
    const std::string at = array->key.substr(0, array->key.size() - 6);
    TimedForm form;
    form.name = key.section(u'/', 1, -2);
    form.length = *array->real;
    const auto column = [&](const std::string& name) {
      const TraceArray* there = trace.find(at + name);
      std::vector<double> values = there && there->real ? *there->real : std::vector<double>();
      values.resize(form.length.size(), unknown);
      return values;
    };
    const auto fit = [&](const std::string& name) {
      return Exponent{single(at + name), single(at + name + "_low"), single(at + name + "_high")};
    };
    form.low = column("low");
    form.high = column("high");
    form.low90 = column("low90");
    form.high90 = column("high90");
    const bool bands = anyKnown(form.low90) && anyKnown(form.high90);
    form.seconds = {column("seconds"), bands ? form.low90 : form.low, bands ? form.high90 : form.high, fit("exponent")};
    form.forward = {column("forward"), column("forward_low90"), column("forward_high90"), fit("forward_exponent")};
    form.backward = {column("backward"), column("backward_low90"), column("backward_high90"), fit("backward_exponent")};
    const std::vector<double> none(form.length.size(), unknown);
    form.memory = {column("memory"), none, none, fit("memory_exponent")};
    form.flops = column("flops");
    form.bytes = column("bytes");
    form.output_error = column("output_error");
    form.gradient_error = column("gradient_error");
    form.iterations = column("iterations");
    form.converged = column("converged");
    if (!form.seconds.known()) continue;
    const auto& all = found.info.forms;
    const auto place = std::find(all.begin(), all.end(), form.name.toStdString());
    form.place = static_cast<int>(place == all.end() ? found.forms.size() : static_cast<std::size_t>(place - all.begin()));
    found.forms.push_back(std::move(form));
  }
  return found;
}

Measured throughputOf(const TimedForm& form, const Measured& seconds, double batch) {
  Measured all;
  for (std::size_t i = 0; i < form.length.size(); ++i) {
    const double steps = form.length[i] * batch;
    all.value.push_back(steps / seconds.value[i]);
    all.low.push_back(steps / seconds.high[i]);
    all.high.push_back(steps / seconds.low[i]);
  }
  all.fit = {1 - seconds.fit.value, 1 - seconds.fit.high, 1 - seconds.fit.low};
  return all;
}

QString leader(const std::vector<std::pair<const TimedForm*, Measured>>& curves, const QString& overtakes, const QString& best) {
  std::vector<Curve> all;
  for (const auto& [form, values] : curves) all.push_back({form->name.toStdString(), form->length, values.value, values.low, values.high});
  const auto found = reclab::leader(all);
  if (!found) return {};
  const QString name = QString::fromStdString(found->best), length = grouped(std::llround(found->length));
  return found->overtaken.empty() ? best.arg(name, length) : overtakes.arg(name, QString::fromStdString(found->overtaken), length);
}

QString duration(double seconds) {
  if (seconds < 1e-3) return QStringLiteral("%1 µs").arg(number(seconds * 1e6));
  if (seconds < 1.0) return QStringLiteral("%1 ms").arg(number(seconds * 1e3));
  return QStringLiteral("%1 s").arg(number(seconds));
}

QString storage(double bytes) {
  static constexpr std::array names = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t i = 0;
  while (bytes >= 1024 && i + 1 < names.size()) bytes /= 1024, ++i;
  return number(bytes) + u' ' + QLatin1String(names[i]);
}

QString scaled(double value, const QString& unit) {
  static constexpr std::array prefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t i = 0;
  while (value >= 1000 && i + 1 < prefixes.size()) value /= 1000, ++i;
  return (number(value) + u' ' + QLatin1String(prefixes[i]) + unit).trimmed();
}

QString percentage(double share) { return QStringLiteral("%1 %").arg(number(100 * share, 2)); }

QString described(const Timings& timings, const TimedForm& form, std::size_t row) {
  QStringList lines{trTiming("%1 at T = %2").arg(form.name, grouped(std::llround(form.length[row])))};
  if (timings.info.batch > 1) lines[0] += trTiming(", batch %1").arg(timings.info.batch);
  const bool bands = !std::isnan(form.low90[row]) && !std::isnan(form.high90[row]),
             quartiles = !std::isnan(form.low[row]) && !std::isnan(form.high[row]);
  const bool both = form.backward.known() || !form.forward.known();
  QString text = (both ? trTiming("forward and backward: %1") : trTiming("forward: %1")).arg(duration(form.seconds.value[row]));
  if (bands) text = withBand(text, form.low90[row], form.high90[row], duration);
  if (quartiles)
    text += (bands ? trTiming(", quartiles %1 to %2") : trTiming(" (quartiles %1 to %2)"))
                .arg(duration(form.low[row]), duration(form.high[row]));
  lines << text;
  const auto part = [&](const QString& name, const Measured& of) {
    if (both && !std::isnan(of.value[row])) lines << name.arg(withBand(duration(of.value[row]), of.low[row], of.high[row], duration));
  };
  part(trTiming("forward: %1"), form.forward);
  part(trTiming("backward: %1"), form.backward);
  lines << trTiming("throughput: %1").arg(scaled(form.length[row] * timings.batch() / form.seconds.value[row], {}) + trTiming(" steps/s"));
  if (!std::isnan(form.memory.value[row])) lines << trTiming("memory of its arrays: %1").arg(storage(form.memory.value[row]));
  if (!std::isnan(form.flops[row]) && !std::isnan(form.bytes[row])) {
    lines << trTiming("forward, by formula: %1 over %2, that is %3 a byte")
                 .arg(scaled(form.flops[row], trTiming("flop")), storage(form.bytes[row]), scaled(form.intensity(row), trTiming("flop")));
    if (const double rate = form.rate(row); std::isfinite(rate)) {
      QString done = trTiming("so it does %1").arg(scaled(rate, trTiming("flop/s")));
      const double roof = timings.roof(form.intensity(row), timings.triad);
      if (roof > 0)
        done += rate <= roof ? trTiming(", %1 of what memory and arithmetic here allow at most").arg(percentage(rate / roof))
                             : trTiming(", more than memory could bring data for: it works in the caches");
      lines << done;
    }
  }
  if (!std::isnan(form.output_error[row])) {
    QString error = trTiming("error of outputs: %1").arg(errorInWords(form.output_error[row]));
    if (!std::isnan(form.gradient_error[row])) error += trTiming(", of gradients: %1").arg(errorInWords(form.gradient_error[row]));
    lines << error + trTiming(" (relative to the sequential form in float64)");
  }
  if (!std::isnan(form.iterations[row]) && form.iterations[row] >= 0)
    lines << (form.converged[row] == 0 ? trTiming("Newton's iteration did not converge in %1 steps, so the sequential form was run instead")
                                       : trTiming("Newton's iteration converged in %1 steps"))
                 .arg(grouped(std::llround(form.iterations[row])));
  return lines.join(u'\n');
}

QString circumstances(const RunInfo& info) {
  const QString device = QString::fromStdString(info.device);
  QStringList words{device == u"cpu" || device == u"cuda" ? device.toUpper() : device, QString::fromStdString(info.dtype),
                    trTiming("batch %1").arg(info.batch)};
  for (const auto& [key, value] : info.hyper)
    if (key == "width") words << trTiming("width %1").arg(QString::fromStdString(value));
  words << trTiming("seed %1").arg(info.seed);
  words.removeAll(QString());
  return words.join(QStringLiteral(", "));
}

QByteArray timingsAsCsv(const Timings& timings) {
  QByteArray text =
      "form,length,seconds,low,high,exponent,low90,high90,forward,forward_low90,forward_high90,backward,backward_low90,backward_high90,"
      "memory,flops,bytes,output_error,gradient_error,iterations,converged,exponent_low,exponent_high,forward_exponent,forward_exponent_"
      "low,"
      "forward_exponent_high,backward_exponent,backward_exponent_low,backward_exponent_high,memory_exponent,memory_exponent_low,"
      "memory_exponent_high,roof_triad,roof_cached,roof_flops,lyapunov,noise,batch,seed,device,dtype,between\n";
  for (const TimedForm& form : timings.forms)
    for (std::size_t i = 0; i < form.length.size(); ++i) {
      text += csvCell(form.name).toUtf8();
      for (const double value : {form.length[i],        form.seconds.value[i],  form.low[i],
                                 form.high[i],          form.seconds.fit.value, form.low90[i],
                                 form.high90[i],        form.forward.value[i],  form.forward.low[i],
                                 form.forward.high[i],  form.backward.value[i], form.backward.low[i],
                                 form.backward.high[i], form.memory.value[i],   form.flops[i],
                                 form.bytes[i],         form.output_error[i],   form.gradient_error[i],
                                 form.iterations[i],    form.converged[i]})
        text += ',' + csvNumber(value);
      text += ',' + csvNumber(form.seconds.fit.low) + ',' + csvNumber(form.seconds.fit.high);
      for (const Exponent& fit : {form.forward.fit, form.backward.fit, form.memory.fit})
        text += ',' + csvNumber(fit.value) + ',' + csvNumber(fit.low) + ',' + csvNumber(fit.high);
      for (const double value : {timings.triad, timings.cached, timings.flops, timings.lyapunov, timings.noise, timings.batch()})
        text += ',' + csvNumber(value);
      text += ',' + QByteArray::number(static_cast<qulonglong>(timings.info.seed)) + ',' +
              csvCell(QString::fromStdString(timings.info.device)).toUtf8() + ',' +
              csvCell(QString::fromStdString(timings.info.dtype)).toUtf8() + ',' + csvNumber(timings.between) + '\n';
    }
  return text;
}

}  // namespace reclab
