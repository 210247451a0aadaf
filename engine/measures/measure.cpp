// SPDX-License-Identifier: GPL-3.0-or-later
#include "measures/measure.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <limits>
#include <sstream>
#include <utility>

#include "array/error.h"
#include "experiment/training/training.h"
#include "measures/expression.h"
#include "models/network.h"
#include "models/registry.h"
#include "parameters/nearest.h"

namespace reclab {
namespace {

void need(bool good, const std::string& why) {
  if (!good) throw Error(why, {});
}

double number_of(const std::string& text) {
  const std::optional<double> value = number_in(text);
  need(value.has_value(), "\"" + text + "\" is no number");
  return *value;
}
std::int64_t whole_of(const std::string& text) {
  const double value = number_of(text);
  need(value >= 0.0 && value <= 1e9 && value == std::floor(value), "\"" + text + "\" is no whole number from 0 on");
  return static_cast<std::int64_t>(value);
}

/// An array as rows of entries.
struct ArrayRows {
  std::size_t rows = 0, width = 1;
  std::vector<double> values;
  std::vector<std::complex<double>> complex;  ///< empty for a real array
  std::vector<double> steps;
  double at(std::size_t row, std::size_t entry) const { return values[row * width + entry]; }
  std::vector<double> over_time(std::size_t entry) const {
    std::vector<double> course;
    for (std::size_t row = 0; row < rows; ++row) course.push_back(at(row, entry));
    return course;
  }
};

/// The time from each recorded step to the one before, in the unit of the time column; before the first as before the second.
ArrayRows elapsed_of(const Trace& trace) {
  need(trace.time.size() > 1, "one step has no time before it");
  ArrayRows result;
  result.rows = trace.time.size();
  for (std::size_t row = 0; row < result.rows; ++row) {
    const std::size_t to = std::max<std::size_t>(row, 1);
    result.values.push_back(trace.time[to] - trace.time[to - 1]);
    result.steps.push_back(static_cast<double>(trace.steps[row]));
  }
  return result;
}

ArrayRows rows_of(const MeasuredRun& run, const std::string& text) {
  if (text == "elapsed") return elapsed_of(*run.trace);
  const std::string key = text.substr(0, text.find('@'));
  const TraceArray* array = run.trace->find(key);
  need(array != nullptr, "a run of " + run.request.preset.id + " records no " + key);
  double first = 0.0, last = std::numeric_limits<double>::infinity();
  if (key != text) {
    const std::string range = text.substr(key.size() + 1);
    const std::size_t colon = range.find(':');
    need(colon != std::string::npos, text + " names no steps");
    first = number_of(range.substr(0, colon));
    if (colon + 1 < range.size()) last = number_of(range.substr(colon + 1));
  }
  ArrayRows result;
  const auto rows = static_cast<std::size_t>(array->shape.empty() ? 1 : array->shape[0]);
  result.width = static_cast<std::size_t>(array->size()) / rows;
  const auto& steps = array->steps.empty() ? run.trace->steps : array->steps;
  for (std::size_t row = 0; row < rows; ++row) {
    const double step = static_cast<double>(steps.size() == rows ? steps[row] : static_cast<std::int64_t>(row));
    if (step < first || step > last) continue;
    ++result.rows;
    result.steps.push_back(step);
    for (std::size_t i = row * result.width; i < (row + 1) * result.width; ++i) {
      if (array->complex) result.complex.push_back((*array->complex)[i]);
      result.values.push_back(array->complex ? std::abs((*array->complex)[i]) : (*array->real)[i]);
    }
  }
  need(result.rows > 0, text + " has no such steps");
  return result;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}
double deviation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double sum = 0.0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}
/// Least squares of y over x where both are finite.
double slope_of(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<double> xs, ys;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::isfinite(x[i]) && std::isfinite(y[i])) {
      xs.push_back(x[i]);
      ys.push_back(y[i]);
    }
  need(xs.size() > 2, "there are less than three finite values");
  const double mx = mean_of(xs), my = mean_of(ys);
  double over = 0.0, under = 0.0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    over += (xs[i] - mx) * (ys[i] - my);
    under += (xs[i] - mx) * (xs[i] - mx);
  }
  return over / under;
}
double norm_of(const ArrayRows& x, std::size_t row) {
  double sum = 0.0;
  for (std::size_t i = 0; i < x.width; ++i) sum += x.at(row, i) * x.at(row, i);
  return std::sqrt(sum);
}
template <class F>
double over_entries(const ArrayRows& x, F&& of) {
  std::vector<double> each;
  for (std::size_t i = 0; i < x.width; ++i) each.push_back(of(x.over_time(i)));
  return mean_of(each);
}
double share_of(const ArrayRows& x, double value) {
  return static_cast<double>(std::ranges::count_if(x.values, [&](double v) { return v == value || std::abs(v - value) < 1e-9; })) /
         static_cast<double>(x.values.size());
}
std::size_t row_of(const ArrayRows& x, const std::string& text) {
  const auto row = static_cast<std::size_t>(whole_of(text));
  need(row < x.rows, "there is no row " + text);
  return row;
}
std::vector<double> finite_of(const ArrayRows& x) {
  std::vector<double> values;
  for (const double value : x.values)
    if (std::isfinite(value)) values.push_back(value);
  need(!values.empty(), "no entry of it is finite");
  return values;
}

/// Work of one forward pass by formula.
double flops_of(const MeasuredRun& run, const std::string& form, std::int64_t steps) {
  const auto architecture = architecture_of(builtin_registry(), run.request.preset);
  need(steps > 0, "a pass has steps");
  NetworkOptions options;
  options.steps = steps;
  options.input = static_cast<std::int64_t>(run.trace->input_names.size());
  options.record = false;
  const auto* found = std::ranges::find(all_forms, form, [](Form one) { return to_string(one); });
  need(found != std::ranges::end(all_forms), "there is no form " + form);
  options.form = *found;
  return Network(*architecture, hyper_of(builtin_registry(), run.request.preset, run.request.set), options).graph().cost().flops;
}

using Arguments = std::vector<std::string>;

/// The metric of the run's weights on sequences of its task that they were not trained on, those by which a training with the run's seed is
/// judged; or that over the baseline's.
double held_out(const MeasuredRun& run, const Arguments& arguments, bool of_baseline, std::stop_token stop) {
  TrainingRequest request;
  request.run = run.request;
  if (request.run.form == "auto") request.run.form = "sequential";
  request.from = choice_of(*run.request.sequence);
  need(!request.from.is_file(), "a file has no other sequences of its kind");
  if (!arguments.empty()) request.from.make.length = whole_of(arguments[0]);
  Training training(builtin_registry(), request);
  const double metric = training.trainer().evaluate(stop).metric;
  return of_baseline ? metric / training.trainer().baseline().metric : metric;
}

struct MeasureRow {
  MeasureInfo info;
  std::function<double(const MeasuredRun&, const Arguments&)> of;  ///< empty: of held-out sequences
};

const std::vector<MeasureRow>& table() {
  static const std::vector<MeasureRow> all{
      {{"held_out", "[LENGTH]",
        "The task's metric on the 128 held-out sequences of a training with the run's seed, as long as the run's or so long."},
       {}},
      {{"of_baseline", "[LENGTH]", "That over what the best constant output has there."}, {}},
      {{"min", "ARRAY", "The least of all entries."},
       [](const MeasuredRun& s, const Arguments& a) { return std::ranges::min(rows_of(s, a.at(0)).values); }},
      {{"max", "ARRAY", "The largest of all entries."},
       [](const MeasuredRun& s, const Arguments& a) { return std::ranges::max(rows_of(s, a.at(0)).values); }},
      {{"mean", "ARRAY", "The mean of all entries."},
       [](const MeasuredRun& s, const Arguments& a) { return mean_of(rows_of(s, a.at(0)).values); }},
      {{"median", "ARRAY", "The median of all entries."},
       [](const MeasuredRun& s, const Arguments& a) {
         std::vector<double> values = rows_of(s, a.at(0)).values;
         std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
         return values[values.size() / 2];
       }},
      {{"real", "ARRAY", "The mean of the real parts."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0));
         double sum = 0.0;
         for (const std::complex<double>& z : x.complex) sum += z.real();
         need(!x.complex.empty(), "the array is real");
         return sum / static_cast<double>(x.complex.size());
       }},
      {{"share", "ARRAY VALUE", "The share of the entries that are that value; -inf is the logarithm of 0."},
       [](const MeasuredRun& s, const Arguments& a) { return share_of(rows_of(s, a.at(0)), number_of(a.at(1))); }},
      {{"pairs", "ARRAY", "The share of the entries that are not real."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0));
         return static_cast<double>(
                    std::ranges::count_if(x.complex, [](const std::complex<double>& z) { return std::abs(z.imag()) > 1e-6; })) /
                static_cast<double>(x.values.size());
       }},
      {{"speed", "ARRAY",
        "Along a ring from the entry that is largest in the first row: how far the largest entry on its way up moves a step."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0)), whole = rows_of(s, a.at(0).substr(0, a.at(0).find('@')));
         const auto place = [](const ArrayRows& rows, std::size_t row, std::size_t from, std::size_t count) {
           std::size_t best = 0;
           for (std::size_t i = 0; i < count; ++i)
             if (std::abs(rows.at(row, (from + i) % rows.width)) > std::abs(rows.at(row, (from + best) % rows.width))) best = i;
           return best;
         };
         const std::size_t start = place(whole, 0, 0, whole.width);
         std::vector<double> places;
         for (std::size_t row = 0; row < x.rows; ++row) places.push_back(static_cast<double>(place(x, row, start, x.width / 2)));
         return slope_of(x.steps, places);
       }},
      {{"angle", "ARRAY", "The largest angle of its entries."},
       [](const MeasuredRun& s, const Arguments& a) {
         double most = 0.0;
         for (const auto& z : rows_of(s, a.at(0)).complex) most = std::max(most, std::abs(std::arg(z)));
         return most;
       }},
      {{"turned", "ARRAY", "The largest change of an entry's angle over time."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0));
         double most = 0.0;
         for (std::size_t i = x.width; i < x.complex.size(); ++i)
           most = std::max(most, std::abs(std::arg(x.complex[i] / x.complex[i % x.width])));
         return most;
       }},
      {{"again", "ARRAY STEP", "The largest angle between an entry of that row and of the first."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0));
         const std::size_t row = row_of(x, a.at(1)) * x.width;
         double most = 0.0;
         for (std::size_t i = 0; i < x.width; ++i) most = std::max(most, std::abs(std::arg(x.complex.at(row + i) / x.complex[i])));
         return most;
       }},
      {{"distinct", "ARRAY", "How many different values there are."},
       [](const MeasuredRun& s, const Arguments& a) {
         std::vector<double> values = rows_of(s, a.at(0)).values;
         std::ranges::sort(values);
         double count = 1.0;
         for (std::size_t i = 1; i < values.size(); ++i) count += values[i] - values[i - 1] > 1e-9;
         return count;
       }},
      {{"deviation", "ARRAY", "The standard deviation over time, the mean of all entries."},
       [](const MeasuredRun& s, const Arguments& a) { return over_entries(rows_of(s, a.at(0)), deviation_of); }},
      {{"turns", "ARRAY", "The number of turning points over time, the mean of all entries."},
       [](const MeasuredRun& s, const Arguments& a) {
         return over_entries(rows_of(s, a.at(0)), [](const std::vector<double>& x) {
           double count = 0.0;
           for (std::size_t t = 2; t < x.size(); ++t) count += (x[t] - x[t - 1]) * (x[t - 1] - x[t - 2]) < 0.0;
           return count;
         });
       }},
      {{"changes", "ARRAY", "The number of steps at which an entry changes, the mean of all entries."},
       [](const MeasuredRun& s, const Arguments& a) {
         return over_entries(rows_of(s, a.at(0)), [](const std::vector<double>& x) {
           double count = 0.0;
           for (std::size_t t = 1; t < x.size(); ++t) count += x[t] != x[t - 1];
           return count;
         });
       }},
      {{"growth", "ARRAY", "The least change of an entry from one step to the next."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0));
         double least = std::numeric_limits<double>::infinity();
         for (std::size_t i = x.width; i < x.values.size(); ++i) least = std::min(least, x.values[i] - x.values[i - x.width]);
         return least;
       }},
      {{"fallen", "ARRAY", "The share of the entries that end below nine tenths of the most that they were."},
       [](const MeasuredRun& s, const Arguments& a) {
         return over_entries(rows_of(s, a.at(0)),
                             [](const std::vector<double>& x) { return x.back() < 0.9 * std::ranges::max(x) ? 1.0 : 0.0; });
       }},
      {{"lasts", "ARRAY",
        "The number of steps until an entry stays within a hundredth of its way about where it ends, the mean of all entries."},
       [](const MeasuredRun& s, const Arguments& a) {
         return over_entries(rows_of(s, a.at(0)), [](const std::vector<double>& x) {
           const auto [low, high] = std::ranges::minmax(x);
           std::size_t steps = x.size();
           while (steps > 0 && std::abs(x[steps - 1] - x.back()) <= 0.01 * (high - low)) --steps;
           return static_cast<double>(steps);
         });
       }},
      {{"rise", "ARRAY", "The least difference from one entry to the next of the same row."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0));
         double least = std::numeric_limits<double>::infinity();
         for (std::size_t row = 0; row < x.rows; ++row)
           for (std::size_t i = 1; i < x.width; ++i) least = std::min(least, x.at(row, i) - x.at(row, i - 1));
         return least;
       }},
      {{"swing", "ARRAY", "The largest range of an entry over time."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0));
         double most = 0.0;
         for (std::size_t i = 0; i < x.width; ++i) {
           const auto [low, high] = std::ranges::minmax(x.over_time(i));
           most = std::max(most, high - low);
         }
         return most;
       }},
      {{"correlation", "ARRAY OTHER",
        "Their correlation over time, the mean of all entries; of one entry with each where the other has one alone."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0)), y = rows_of(s, a.at(1));
         need(x.rows == y.rows, "the two arrays have not as many rows");
         need(x.width % y.width == 0 || y.width % x.width == 0, "the two arrays' widths do not go together");
         double sum = 0.0, count = 0.0;
         const std::size_t width = std::max(x.width, y.width);
         for (std::size_t i = 0; i < width; ++i) {
           const auto p = x.over_time(i * x.width / width), q = y.over_time(i * y.width / width);
           const double dp = deviation_of(p), dq = deviation_of(q);
           if (dp == 0.0 || dq == 0.0) continue;
           sum += slope_of(p, q) * dp / dq;
           ++count;
         }
         need(count > 0.0, "nothing of it moves");
         return sum / count;
       }},
      {{"follows", "ARRAY OTHER", "The mean of all entries' correlations, without their signs, with the other's first entry over time."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0)), y = rows_of(s, a.at(1));
         need(x.rows == y.rows, "the two arrays have not as many rows");
         const auto other = y.over_time(0);
         return over_entries(x, [&](const std::vector<double>& each) {
           const double own = deviation_of(each);
           return own == 0.0 ? 0.0 : std::abs(slope_of(each, other)) * own / deviation_of(other);
         });
       }},
      {{"moves", "ARRAY OTHER", "The correlation over time of the distance of a row to the one before with the other's first entry."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0)), y = rows_of(s, a.at(1));
         need(x.rows == y.rows, "the two arrays have not as many rows");
         std::vector<double> far, other;
         for (std::size_t row = 1; row < x.rows; ++row) {
           double sum = 0.0;
           for (std::size_t i = 0; i < x.width; ++i) sum += (x.at(row, i) - x.at(row - 1, i)) * (x.at(row, i) - x.at(row - 1, i));
           far.push_back(std::sqrt(sum));
           other.push_back(y.at(row, 0));
         }
         return slope_of(far, other) * deviation_of(far) / deviation_of(other);
       }},
      {{"leading", "SPECTRUM OTHER", "The correlation over time of the largest modulus with the other's first entry."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0)), y = rows_of(s, a.at(1));
         need(x.rows == y.rows, "the two arrays have not as many rows");
         std::vector<double> largest;
         for (std::size_t row = 0; row < x.rows; ++row)
           largest.push_back(*std::max_element(x.values.begin() + static_cast<std::ptrdiff_t>(row * x.width),
                                               x.values.begin() + static_cast<std::ptrdiff_t>((row + 1) * x.width)));
         const auto other = y.over_time(0);
         return slope_of(largest, other) * deviation_of(largest) / deviation_of(other);
       }},
      {{"factor", "ARRAY", "Of log10: what a step back in time multiplies it by, fitted to the first entry of each row."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0));
         return std::pow(10.0, -slope_of(x.steps, x.over_time(0)));
       }},
      {{"millionth", "ARRAY", "Of log10: in how many steps back it falls to a millionth, by that fit."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0));
         return 6.0 / slope_of(x.steps, x.over_time(0));
       }},
      {{"power", "ARRAY", "Of log10: its exponent as a power of the time that has passed."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0));
         std::vector<double> logarithms;
         for (const double step : x.steps) logarithms.push_back(std::log10(step + 1.0));
         return slope_of(logarithms, x.over_time(0));
       }},
      {{"left", "ARRAY STEP", "The norm of that row, as a share of the largest."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0));
         double most = 0.0;
         for (std::size_t row = 0; row < x.rows; ++row) most = std::max(most, norm_of(x, row));
         return norm_of(x, row_of(x, a.at(1))) / most;
       }},
      {{"driven", "STATE SPECTRUM",
        "By how much the state's next row is not its eigenvalue times this one, as a share of the largest entry."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0)), lambda = rows_of(s, a.at(1));
         need(lambda.rows == 1 && lambda.width == x.width && !x.complex.empty(), "state and spectrum do not go together");
         double most = 0.0;
         for (std::size_t i = x.width; i < x.complex.size(); ++i)
           most = std::max(most, std::abs(x.complex[i] - lambda.complex[i % x.width] * x.complex[i - x.width]));
         return most / std::ranges::max(x.values);
       }},
      {{"work", "FORM STEPS", "By which power of the length its work grows, by formula, from there to twice as many steps."},
       [](const MeasuredRun& s, const Arguments& a) {
         const std::int64_t steps = whole_of(a.at(1));
         return std::log2(flops_of(s, a.at(0), 2 * steps) / flops_of(s, a.at(0), steps));
       }},
      {{"forms", "FORM...", "How many of these forms are exact."},
       [](const MeasuredRun& s, const Arguments& a) {
         const auto& forms = s.trace->info.forms;
         return static_cast<double>(
             std::ranges::count_if(a, [&](const std::string& form) { return std::ranges::find(forms, form) != forms.end(); }));
       }},
      {{"span", "ARRAY", "How far the largest of all finite entries is above the least."},
       [](const MeasuredRun& s, const Arguments& a) {
         const std::vector<double> values = finite_of(rows_of(s, a.at(0)));
         const auto [low, high] = std::ranges::minmax(values);
         return high - low;
       }},
      {{"at", "ARRAY STEP [ENTRY]", "The value at that step, of the first entry or of the one with that number, from 0."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0) + "@" + a.at(1) + ":" + a.at(1));
         const std::int64_t entry = a.size() > 2 ? whole_of(a[2]) : 0;
         need(entry < static_cast<std::int64_t>(x.width), a[0] + " has no entry " + a.back());
         return x.at(0, static_cast<std::size_t>(entry));
       }},
      {{"norm", "ARRAY STEP", "The length of that row as a vector."},
       [](const MeasuredRun& s, const Arguments& a) { return norm_of(rows_of(s, a.at(0) + "@" + a.at(1) + ":" + a.at(1)), 0); }},
      {{"steps_until", "ARRAY DECADES",
        "Of log10: how many steps before the last finite one its first entry is so many decades above or, with a minus, below."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0));
         const double by = number_of(a.at(1));
         std::size_t from = x.rows;
         while (from > 0 && !std::isfinite(x.at(from - 1, 0))) --from;
         need(from > 0, "no step of it is finite");
         for (std::size_t row = from; row-- > 0;) {
           const double moved = x.at(row, 0) - x.at(from - 1, 0);
           if (by < 0.0 ? moved <= by : moved >= by) return x.steps[from - 1] - x.steps[row];
         }
         throw Error("it never comes so far", {});
       }},
      {{"step_of_max", "ARRAY", "The step at which the first entry is largest."},
       [](const MeasuredRun& s, const Arguments& a) {
         const ArrayRows x = rows_of(s, a.at(0));
         const std::vector<double> course = x.over_time(0);
         return x.steps[static_cast<std::size_t>(std::ranges::max_element(course) - course.begin())];
       }},
      {{"entries", "ARRAY", "How many entries a row has."},
       [](const MeasuredRun& s, const Arguments& a) { return static_cast<double>(rows_of(s, a.at(0)).width); }},
      {{"setting", "KEY", "A hyper-parameter of the model."},
       [](const MeasuredRun& s, const Arguments& a) {
         const Hyper hyper = hyper_of(builtin_registry(), s.request.preset, s.request.set);
         need(std::ranges::any_of(hyper.table(), [&](const HyperSpec& row) { return row.key == a.at(0); }),
              "there is no setting " + a.at(0));
         const std::string text = hyper.text(a.at(0));
         return text == "true" ? 1.0 : text == "false" ? 0.0 : number_of(text);
       }},
      {{"is", "PRESET", "1 where the model is that of this preset, else 0."},
       [](const MeasuredRun& s, const Arguments& a) { return s.request.preset.id == a.at(0) ? 1.0 : 0.0; }},
      {{"length", "", "Steps of the sequence."},
       [](const MeasuredRun& s, const Arguments&) { return static_cast<double>(s.trace->info.length); }},
      {{"loss", "", "The loss of the run."}, [](const MeasuredRun& s, const Arguments&) { return s.trace->info.loss_value; }},
      {{"trained_steps", "", "How many steps of training the weights have."},
       [](const MeasuredRun& s, const Arguments&) { return s.request.learned ? static_cast<double>(s.request.learned->step) : 0.0; }},
      {{"view", "NAME", "Of the window: pins, cursor (its step), or shown/PANEL, 1 where that panel is in sight."},
       [](const MeasuredRun& s, const Arguments& a) {
         const auto found = s.view.find(a.at(0));
         return found == s.view.end() ? 0.0 : found->second;
       }},
      {{"parameters", "", "How many weights the model has."},
       [](const MeasuredRun& s, const Arguments&) {
         double sum = 0.0;
         for (const TraceArray* array : s.trace->of(Kind::param)) sum += static_cast<double>(array->size());
         return sum;
       }},
      {{"state_bits", "",
        "The bits of all numbers that the model carries on from the last step, 64 or 32 of a real one by its precision: no sequence "
        "model recalls more (Jelassi and others, 2024)."},
       [](const MeasuredRun& s, const Arguments&) {
         double numbers = 0.0;
         for (const auto& [name, array] : s.state) numbers += static_cast<double>(array.size()) * (array.is_complex() ? 2.0 : 1.0);
         return numbers * (s.trace->info.dtype == "float32" ? 32.0 : 64.0);
       }},
      {{"flops", "FORM STEPS", "The floating-point operations of a forward pass of so many steps in that form, by formula."},
       [](const MeasuredRun& s, const Arguments& a) { return flops_of(s, a.at(0), whole_of(a.at(1))); }},
  };
  return all;
}

std::vector<std::string> words_of_text(const std::string& text) {
  std::stringstream stream{text};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace

const std::vector<MeasureInfo>& measures() {
  static const std::vector<MeasureInfo> all = [] {
    std::vector<MeasureInfo> infos;
    for (const MeasureRow& one : table()) infos.push_back(one.info);
    return infos;
  }();
  return all;
}

bool is_measure(const std::string& name) { return std::ranges::find(measures(), name, &MeasureInfo::name) != measures().end(); }

Kinds kinds_named(const std::string& text) {
  Kinds kinds;
  std::string word;
  for (const char c : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '/') {
      word += c;
      continue;
    }
    if (const auto key = parse_key(word)) kinds.add({key->kind});
    word.clear();
  }
  return kinds;
}

RunRequest recording_for(RunRequest request, const std::vector<std::string>& measured) {
  Kinds named;
  for (const std::string& text : measured) named.add(kinds_named(text));
  request.every = 1;
  request.recording.kinds.remove(kinds_of(Stage::late).remove(named));
  return request;
}

MeasuredRun run_measured(const RunRequest& request, const std::vector<std::string>& measured, std::stop_token stop) {
  MeasuredRun made{.request = recording_for(request, measured)};
  RunResult result = run(builtin_registry(), made.request, [](double, std::string_view) {}, stop);
  made.trace = std::move(result.trace);
  made.state = std::move(result.state);
  if (made.trace->info.outcome == Outcome::cancelled) throw Cancelled();
  if (made.trace->info.outcome != Outcome::finished) throw Error(made.trace->info.sentence, {});
  return made;
}

double measure(const MeasuredRun& run, const std::string& text, std::stop_token stop) {
  std::vector<std::string> words = words_of_text(text);
  need(!words.empty(), "a measure has a name");
  std::vector<std::pair<std::string, std::string>> others;
  Arguments arguments;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] != "with") {
      arguments.push_back(words[i]);
      continue;
    }
    const std::size_t equals = ++i < words.size() ? words[i].find('=') : std::string::npos;
    need(equals != std::string::npos, "\"" + text + "\" has no KEY=VALUE behind \"with\"");
    others.emplace_back(words[i].substr(0, equals), words[i].substr(equals + 1));
  }
  const auto found = std::ranges::find_if(table(), [&](const MeasureRow& one) { return one.info.name == words[0]; });
  if (found == table().end()) {
    std::vector<std::string> names;
    for (const MeasureInfo& one : measures()) names.push_back(one.name);
    throw Error("there is no measure \"" + words[0] + "\"; did you mean " + nearest_names(words[0], names, 1) + "?",
                {.parameter = words[0]});
  }
  MeasuredRun other;
  if (!others.empty()) {
    other.request = run.request;
    other.request.set.insert(other.request.set.end(), others.begin(), others.end());
    other = run_measured(other.request, {text}, stop);
  }
  const MeasuredRun& of = others.empty() ? run : other;
  try {
    return found->of ? found->of(of, arguments) : held_out(of, arguments, words[0] == "of_baseline", stop);
  } catch (const Error& error) {
    const bool stops = std::string_view(error.what()).ends_with('.');
    throw Error("\"" + text + "\" cannot be measured: " + error.sentence() + (stops ? "" : "."), error.where());
  } catch (const std::out_of_range&) {
    throw Error("\"" + text + "\" says too little; it is written \"" + found->info.name + " " + found->info.arguments + "\".", {});
  }
}

}  // namespace reclab
