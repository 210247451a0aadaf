// SPDX-License-Identifier: GPL-3.0-or-later
// What the cards say, measured in the presets' own runs.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "array/error.h"
#include "experiment/experiment.h"
#include "experiment/training/training.h"
#include "models/network.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

namespace fs = std::filesystem;
using namespace reclab;

namespace {

RunResult run_of(RunRequest request) {
  return run(builtin_registry(), request, [](double, std::string_view) {}, {});
}

// ---- what a claim's measure may be: a name, then what it is of. ARRAY is a key of the trace, "@first:last" behind it takes those steps
// alone; entries of complex arrays count with their modulus. The array "elapsed" is the time since the step before. "with KEY=VALUE" at the
// end measures a run with another hyper-parameter. A new claim needs a new measure only where none of these says it.

struct Subject {
  const Preset& preset;
  const Trace& trace;
};

/// An array as rows of entries.
struct Rows {
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
Rows elapsed_of(const Trace& trace) {
  CHECK(trace.time.size() > 1);
  Rows result;
  result.rows = trace.time.size();
  for (std::size_t row = 0; row < result.rows; ++row) {
    const std::size_t to = std::max<std::size_t>(row, 1);
    result.values.push_back(trace.time[to] - trace.time[to - 1]);
    result.steps.push_back(static_cast<double>(trace.steps[row]));
  }
  return result;
}

Rows rows_of(const Subject& subject, const std::string& text) {
  if (text == "elapsed") return elapsed_of(subject.trace);
  const std::string key = text.substr(0, text.find('@'));
  const TraceArray* array = subject.trace.find(key);
  CHECK_SAYS(array, subject.preset.id + " records no " + key);
  double first = 0.0, last = std::numeric_limits<double>::infinity();
  if (key != text) {
    const std::string range = text.substr(key.size() + 1);
    const std::size_t colon = range.find(':');
    CHECK_SAYS(colon != std::string::npos, text);
    first = std::stod(range.substr(0, colon));
    if (colon + 1 < range.size()) last = std::stod(range.substr(colon + 1));
  }
  Rows result;
  const auto rows = static_cast<std::size_t>(array->shape.empty() ? 1 : array->shape[0]);
  result.width = static_cast<std::size_t>(array->size()) / rows;
  const auto& steps = array->steps.empty() ? subject.trace.steps : array->steps;
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
  CHECK_SAYS(result.rows > 0, text + " has no such steps");
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
  CHECK(xs.size() > 2);
  const double mx = mean_of(xs), my = mean_of(ys);
  double over = 0.0, under = 0.0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    over += (xs[i] - mx) * (ys[i] - my);
    under += (xs[i] - mx) * (xs[i] - mx);
  }
  return over / under;
}
double norm_of(const Rows& x, std::size_t row) {
  double sum = 0.0;
  for (std::size_t i = 0; i < x.width; ++i) sum += x.at(row, i) * x.at(row, i);
  return std::sqrt(sum);
}
template <class F>
double over_entries(const Rows& x, F&& of) {
  std::vector<double> each;
  for (std::size_t i = 0; i < x.width; ++i) each.push_back(of(x.over_time(i)));
  return mean_of(each);
}
double share_of(const Rows& x, double value) {
  return static_cast<double>(std::ranges::count_if(x.values, [&](double v) { return v == value || std::abs(v - value) < 1e-9; })) /
         static_cast<double>(x.values.size());
}
/// Work of one forward pass by formula, at a length of our choosing.
double flops_of(const Subject& subject, const std::string& form, std::int64_t steps) {
  const auto architecture = architecture_of(builtin_registry(), subject.preset);
  NetworkOptions options;
  options.steps = steps;
  options.input = static_cast<std::int64_t>(subject.trace.input_names.size());
  options.record = false;
  bool found = false;
  for (const Form candidate : all_forms)
    if (to_string(candidate) == form) {
      options.form = candidate;
      found = true;
    }
  CHECK_SAYS(found, "no form " + form);
  return Network(*architecture, hyper_of(builtin_registry(), subject.preset), options).graph().cost().flops;
}

using Arguments = std::vector<std::string>;

/// What a trained preset does on sequences of its task that it has not learned from: its metric, or that over the baseline's.
double held_out(const Subject& subject, const Arguments& arguments, bool of_baseline) {
  TrainingRequest request;
  request.run.preset = subject.preset;
  use_trained(request.run);
  request.from.task = subject.preset.task;
  request.from.make = subject.preset.task_options();
  request.from.make.seed = 0x6a09e667;  // of no command
  if (!arguments.empty()) request.from.make.length = std::stol(arguments[0]);
  Training training(builtin_registry(), request);
  const double metric = training.trainer().evaluate().metric;
  return of_baseline ? metric / training.trainer().baseline().metric : metric;
}

using Measure = std::function<double(const Subject&, const Arguments&)>;

const std::map<std::string, Measure>& measures() {
  static const std::map<std::string, Measure> table{
      // [LENGTH]: of a trained preset, the task's metric (Trainer::metric) on 128 fresh sequences, as long as the preset's or so long; and
      // that over what the best
      // constant output has there
      {"held_out", [](const Subject& s, const Arguments& a) { return held_out(s, a, false); }},
      {"of_baseline", [](const Subject& s, const Arguments& a) { return held_out(s, a, true); }},
      // ARRAY: of all entries of all its steps
      {"min", [](const Subject& s, const Arguments& a) { return std::ranges::min(rows_of(s, a.at(0)).values); }},
      {"max", [](const Subject& s, const Arguments& a) { return std::ranges::max(rows_of(s, a.at(0)).values); }},
      {"mean", [](const Subject& s, const Arguments& a) { return mean_of(rows_of(s, a.at(0)).values); }},
      {"median",
       [](const Subject& s, const Arguments& a) {
         std::vector<double> values = rows_of(s, a.at(0)).values;
         std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
         return values[values.size() / 2];
       }},
      // ARRAY: the mean of the real parts
      {"real",
       [](const Subject& s, const Arguments& a) {
         const Rows x = rows_of(s, a.at(0));
         double sum = 0.0;
         for (const std::complex<double>& z : x.complex) sum += z.real();
         CHECK(!x.complex.empty());
         return sum / static_cast<double>(x.complex.size());
       }},
      // ARRAY VALUE: which share of the entries is that value; -inf is the logarithm of 0
      {"share", [](const Subject& s, const Arguments& a) { return share_of(rows_of(s, a.at(0)), std::stod(a.at(1))); }},
      // ARRAY: the share of entries that are not real
      {"pairs",
       [](const Subject& s, const Arguments& a) {
         const Rows x = rows_of(s, a.at(0));
         return static_cast<double>(
                    std::ranges::count_if(x.complex, [](const std::complex<double>& z) { return std::abs(z.imag()) > 1e-6; })) /
                static_cast<double>(x.values.size());
       }},
      // ARRAY, along a ring from the entry that is largest in the first row: how far the place of the largest entry on its way up moves a
      // step
      {"speed",
       [](const Subject& s, const Arguments& a) {
         const Rows x = rows_of(s, a.at(0)), whole = rows_of(s, a.at(0).substr(0, a.at(0).find('@')));
         const auto place = [](const Rows& rows, std::size_t row, std::size_t from, std::size_t count) {
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
      // ARRAY: the largest angle of its entries, and the largest change of an entry's angle over time
      {"angle",
       [](const Subject& s, const Arguments& a) {
         double most = 0.0;
         for (const auto& z : rows_of(s, a.at(0)).complex) most = std::max(most, std::abs(std::arg(z)));
         return most;
       }},
      {"turned",
       [](const Subject& s, const Arguments& a) {
         const Rows x = rows_of(s, a.at(0));
         double most = 0.0;
         for (std::size_t i = x.width; i < x.complex.size(); ++i)
           most = std::max(most, std::abs(std::arg(x.complex[i] / x.complex[i % x.width])));
         return most;
       }},
      // ARRAY STEP: the largest angle between an entry of that row and of the first
      {"again",
       [](const Subject& s, const Arguments& a) {
         const Rows x = rows_of(s, a.at(0));
         const std::size_t row = std::stoul(a.at(1)) * x.width;
         double most = 0.0;
         for (std::size_t i = 0; i < x.width; ++i) most = std::max(most, std::abs(std::arg(x.complex.at(row + i) / x.complex[i])));
         return most;
       }},
      // ARRAY: how many different values there are
      {"distinct",
       [](const Subject& s, const Arguments& a) {
         std::vector<double> values = rows_of(s, a.at(0)).values;
         std::ranges::sort(values);
         double count = 1.0;
         for (std::size_t i = 1; i < values.size(); ++i) count += values[i] - values[i - 1] > 1e-9;
         return count;
       }},
      // ARRAY: over time, the mean of all entries' deviation, turning points, and steps at which they change; the least step from one to
      // the next
      {"deviation", [](const Subject& s, const Arguments& a) { return over_entries(rows_of(s, a.at(0)), deviation_of); }},
      {"turns",
       [](const Subject& s, const Arguments& a) {
         return over_entries(rows_of(s, a.at(0)), [](const std::vector<double>& x) {
           double count = 0.0;
           for (std::size_t t = 2; t < x.size(); ++t) count += (x[t] - x[t - 1]) * (x[t - 1] - x[t - 2]) < 0.0;
           return count;
         });
       }},
      {"changes",
       [](const Subject& s, const Arguments& a) {
         return over_entries(rows_of(s, a.at(0)), [](const std::vector<double>& x) {
           double count = 0.0;
           for (std::size_t t = 1; t < x.size(); ++t) count += x[t] != x[t - 1];
           return count;
         });
       }},
      {"growth",
       [](const Subject& s, const Arguments& a) {
         const Rows x = rows_of(s, a.at(0));
         double least = std::numeric_limits<double>::infinity();
         for (std::size_t i = x.width; i < x.values.size(); ++i) least = std::min(least, x.values[i] - x.values[i - x.width]);
         return least;
       }},
      // ARRAY: the share of entries that end below nine tenths of the most that they were
      {"fallen",
       [](const Subject& s, const Arguments& a) {
         return over_entries(rows_of(s, a.at(0)),
                             [](const std::vector<double>& x) { return x.back() < 0.9 * std::ranges::max(x) ? 1.0 : 0.0; });
       }},
      // ARRAY: the mean of all entries' number of steps until they stay within a hundredth of their way about where they end
      {"lasts",
       [](const Subject& s, const Arguments& a) {
         return over_entries(rows_of(s, a.at(0)), [](const std::vector<double>& x) {
           const auto [low, high] = std::ranges::minmax(x);
           std::size_t steps = x.size();
           while (steps > 0 && std::abs(x[steps - 1] - x.back()) <= 0.01 * (high - low)) --steps;
           return static_cast<double>(steps);
         });
       }},
      // ARRAY: the least step from one entry to the next of the same row
      {"rise",
       [](const Subject& s, const Arguments& a) {
         const Rows x = rows_of(s, a.at(0));
         double least = std::numeric_limits<double>::infinity();
         for (std::size_t row = 0; row < x.rows; ++row)
           for (std::size_t i = 1; i < x.width; ++i) least = std::min(least, x.at(row, i) - x.at(row, i - 1));
         return least;
       }},
      // ARRAY: the largest way that an entry goes over time
      {"swing",
       [](const Subject& s, const Arguments& a) {
         const Rows x = rows_of(s, a.at(0));
         double most = 0.0;
         for (std::size_t i = 0; i < x.width; ++i) {
           const auto [low, high] = std::ranges::minmax(x.over_time(i));
           most = std::max(most, high - low);
         }
         return most;
       }},
      // ARRAY OTHER: their correlation over time, the mean of all entries; of one entry with each where the other has one alone
      {"correlation",
       [](const Subject& s, const Arguments& a) {
         const Rows x = rows_of(s, a.at(0)), y = rows_of(s, a.at(1));
         CHECK_EQUAL(x.rows, y.rows);
         CHECK(x.width == y.width || y.width == 1 || x.width % y.width == 0 || y.width % x.width == 0);
         double sum = 0.0, count = 0.0;
         const std::size_t width = std::max(x.width, y.width);
         for (std::size_t i = 0; i < width; ++i) {
           const auto p = x.over_time(i * x.width / width), q = y.over_time(i * y.width / width);
           const double dp = deviation_of(p), dq = deviation_of(q);
           if (dp == 0.0 || dq == 0.0) continue;
           sum += slope_of(p, q) * dp / dq;
           ++count;
         }
         CHECK(count > 0.0);
         return sum / count;
       }},
      // ARRAY OTHER: the mean over all entries of how strongly, up or down, each goes with the other's first entry over time
      {"follows",
       [](const Subject& s, const Arguments& a) {
         const Rows x = rows_of(s, a.at(0)), y = rows_of(s, a.at(1));
         CHECK_EQUAL(x.rows, y.rows);
         const auto other = y.over_time(0);
         return over_entries(x, [&](const std::vector<double>& each) {
           const double own = deviation_of(each);
           return own == 0.0 ? 0.0 : std::abs(slope_of(each, other)) * own / deviation_of(other);
         });
       }},
      // ARRAY OTHER: the correlation over time of how far a row is from the one before with the other's first entry
      {"moves",
       [](const Subject& s, const Arguments& a) {
         const Rows x = rows_of(s, a.at(0)), y = rows_of(s, a.at(1));
         CHECK_EQUAL(x.rows, y.rows);
         std::vector<double> far, other;
         for (std::size_t row = 1; row < x.rows; ++row) {
           double sum = 0.0;
           for (std::size_t i = 0; i < x.width; ++i) sum += (x.at(row, i) - x.at(row - 1, i)) * (x.at(row, i) - x.at(row - 1, i));
           far.push_back(std::sqrt(sum));
           other.push_back(y.at(row, 0));
         }
         return slope_of(far, other) * deviation_of(far) / deviation_of(other);
       }},
      // SPECTRUM OTHER: the correlation over time of the largest modulus with the other's first entry
      {"leading",
       [](const Subject& s, const Arguments& a) {
         const Rows x = rows_of(s, a.at(0)), y = rows_of(s, a.at(1));
         CHECK_EQUAL(x.rows, y.rows);
         std::vector<double> largest;
         for (std::size_t row = 0; row < x.rows; ++row)
           largest.push_back(*std::max_element(x.values.begin() + static_cast<std::ptrdiff_t>(row * x.width),
                                               x.values.begin() + static_cast<std::ptrdiff_t>((row + 1) * x.width)));
         const auto other = y.over_time(0);
         return slope_of(largest, other) * deviation_of(largest) / deviation_of(other);
       }},
      // ARRAY of log10: what a step back in time multiplies it by, fitted to the first entry of each row; and in how many steps it falls to
      // a millionth
      {"factor",
       [](const Subject& s, const Arguments& a) {
         const Rows x = rows_of(s, a.at(0));
         return std::pow(10.0, -slope_of(x.steps, x.over_time(0)));
       }},
      {"millionth",
       [](const Subject& s, const Arguments& a) {
         const Rows x = rows_of(s, a.at(0));
         return 6.0 / slope_of(x.steps, x.over_time(0));
       }},
      // ARRAY of log10: its exponent as a power of the time that has passed
      {"power",
       [](const Subject& s, const Arguments& a) {
         const Rows x = rows_of(s, a.at(0));
         std::vector<double> logarithms;
         for (const double step : x.steps) logarithms.push_back(std::log10(step + 1.0));
         return slope_of(logarithms, x.over_time(0));
       }},
      // ARRAY STEP: the norm of that row, as a share of the largest
      {"left",
       [](const Subject& s, const Arguments& a) {
         const Rows x = rows_of(s, a.at(0));
         double most = 0.0;
         for (std::size_t row = 0; row < x.rows; ++row) most = std::max(most, norm_of(x, row));
         return norm_of(x, static_cast<std::size_t>(std::stoul(a.at(1)))) / most;
       }},
      // STATE SPECTRUM: by how much the state's next row is not its eigenvalue times this one, as a share of the largest entry
      {"driven",
       [](const Subject& s, const Arguments& a) {
         const Rows x = rows_of(s, a.at(0)), lambda = rows_of(s, a.at(1));
         CHECK(lambda.rows == 1 && lambda.width == x.width && !x.complex.empty());
         double most = 0.0;
         for (std::size_t i = x.width; i < x.complex.size(); ++i)
           most = std::max(most, std::abs(x.complex[i] - lambda.complex[i % x.width] * x.complex[i - x.width]));
         return most / std::ranges::max(x.values);
       }},
      // FORM STEPS: by which power of the length its work grows, by formula, from there to twice as many steps
      {"work",
       [](const Subject& s, const Arguments& a) {
         const std::int64_t steps = std::stoll(a.at(1));
         return std::log2(flops_of(s, a.at(0), 2 * steps) / flops_of(s, a.at(0), steps));
       }},
      // FORM...: how many of these forms are exact
      {"forms",
       [](const Subject& s, const Arguments& a) {
         const auto& forms = s.trace.info.forms;
         return static_cast<double>(
             std::ranges::count_if(a, [&](const std::string& form) { return std::ranges::find(forms, form) != forms.end(); }));
       }},
  };
  return table;
}

/// The preset's own run, with what its claims need.
TracePtr own_run(const Preset& preset, const std::vector<std::pair<std::string, std::string>>& set = {}) {
  RunRequest request;
  request.preset = preset;
  if (preset.is_trained) use_trained(request);
  request.set = set;
  request.sequence = make_task(preset.task, preset.task_options());
  request.every = 1;
  const auto uses = [&](const std::string& key) {
    return std::ranges::any_of(preset.claims, [&](const Claim& claim) { return claim.measure.find(key) != std::string::npos; });
  };
  if (!uses("spectrum/") && std::ranges::none_of(preset.look_at, [](const std::string& place) { return place.starts_with("spectrum"); }))
    request.recording.kinds.remove({Kind::spectrum});
  if (!uses("jacobian")) request.recording.kinds.remove(kinds_of(Stage::late).remove({Kind::spectrum}));
  return run_of(request).trace;
}

double measured(const Preset& preset, const Trace& own, const Claim& claim) {
  std::stringstream words{claim.measure};
  std::string name;
  words >> name;
  Arguments arguments;
  TracePtr other;
  for (std::string word; words >> word;) {
    if (word != "with") {
      arguments.push_back(word);
      continue;
    }
    words >> word;
    const std::size_t equals = word.find('=');
    CHECK_SAYS(equals != std::string::npos, claim.measure);
    other = own_run(preset, {{word.substr(0, equals), word.substr(equals + 1)}});
  }
  const auto found = measures().find(name);
  if (found == measures().end()) throw Error("there is no measure \"" + name + "\"; see tests/engine/test_cards.cpp");
  return found->second({preset, other ? *other : own}, arguments);
}

/// Where the sentence that says what to look at begins and ends: the second of three.
std::pair<std::size_t, std::size_t> second_sentence(const std::string& idea) {
  const std::size_t first = idea.find(". "), second = idea.find(". ", first + 2);
  return {first, second};
}

/// Runs a preset as it stands and measures what it claims; returns what is not so. `table` gets a row a claim.
std::vector<std::string> complaints_of(const Preset& preset, std::string& table) {
  std::vector<std::string> complaints;
  const auto [from, to] = second_sentence(preset.idea);
  if (std::ranges::none_of(preset.claims, [&, from = from, to = to](const Claim& claim) {
        const std::size_t at = preset.idea.find(claim.text);
        return at >= from && at < to;
      }))
    complaints.push_back(preset.id + ": its card says what to look at; say in its \"claims\" what is to be seen there");
  const TracePtr trace = own_run(preset);
  if (trace->info.outcome != Outcome::finished) return {preset.id + ": " + trace->info.sentence};
  const auto has_none = [](const std::string& spectrum) { return spectrum.starts_with("none"); };
  if (const std::string said = card(builtin_registry(), preset).spectrum;
      has_none(said) != std::ranges::all_of(trace->info.spectra, has_none, &SpectrumInfo::of))
    complaints.push_back(preset.id + ": the card says of the spectrum \"" + said + "\", its run does not");
  for (const Claim& claim : preset.claims) {
    const double number = measured(preset, *trace, claim);
    char row[200];
    std::snprintf(row, sizeof row, " | %.4g to %.4g | %.4g\n", claim.low, claim.high, number);
    table += preset.id + " | " + claim.text + " | " + claim.measure + row;
    if (!(number >= claim.low && number <= claim.high))
      complaints.push_back(preset.id + " claims \"" + claim.text + "\": " + claim.measure + " is " + test::show(number) + ", not from " +
                           test::show(claim.low) + " to " + test::show(claim.high));
  }
  // What look_at names is there.
  for (const std::string& place : preset.look_at) {
    const std::size_t colon = place.rfind(':');
    const std::string panel = place.substr(0, place.find(':')), name = colon == std::string::npos ? "" : place.substr(colon + 1);
    const std::string prefix = panel == "gating"         ? "gate/"
                               : panel == "gradients"    ? "gradient/state/"
                               : name == "past"          ? "basis/"
                               : panel == "trajectories" ? "state/"
                               : panel == "spectrum"     ? "spectrum/"
                                                         : "";
    static const std::set<std::string> views{"", "3-D", "map", "lines", "past", "continuous"};
    const auto arrays = trace->matching(prefix);
    if (!prefix.empty() && std::ranges::none_of(arrays, [&](const TraceArray* array) {
          const std::string rest = array->key.substr(prefix.size());
          return views.contains(name) || rest == name || rest.substr(rest.find('/') + 1) == name;
        }))
      complaints.push_back(preset.id + " looks at " + place + ", of which its run has nothing");
  }
  return complaints;
}

}  // namespace

TEST_CASE("input_scale multiplies what a model sees, and nothing else") {
  for (const char* id : {"elman", "s4d"}) {
    RunRequest request;
    request.preset = test::shipped().find(id);
    request.sequence = make_task("noise", {.length = 20});
    request.recording.kinds.remove(kinds_of(Stage::late));
    RunRequest scaled = request, louder = request;
    scaled.set = {{"input_scale", "4"}};
    for (double& value : louder.sequence.own().input) value *= 4.0;
    const auto by_setting = run_of(scaled).trace, by_hand = run_of(louder).trace, plain = run_of(request).trace;
    CHECK(*by_setting->find("output")->real == *by_hand->find("output")->real);
    CHECK(*by_setting->find("input")->real == *plain->find("input")->real);
    CHECK(*by_setting->find("output")->real != *plain->find("output")->real);
    // Towards the input as it is, the slope is four times that towards the louder one.
    const auto &slope = *by_setting->find("gradient/input")->real, &louder_slope = *by_hand->find("gradient/input")->real;
    for (std::size_t i = 0; i < slope.size(); ++i) CHECK_EQUAL(slope[i], 4.0 * louder_slope[i]);
  }
}

TEST_CASE("without the encoder's bias zeros stay zeros, and every other weight is as it was") {
  RunRequest request;
  request.preset = test::shipped().find("lru");
  request.sequence = make_task("impulse", {.length = 30});
  request.recording.kinds.remove(kinds_of(Stage::late));
  request.set = {{"encoder_bias", "true"}};
  RunRequest bare = request;
  bare.set = {{"encoder_bias", "false"}};
  const auto with = run_of(request).trace, without = run_of(bare).trace;
  CHECK(with->find("param/encoder/bias") && !without->find("param/encoder/bias"));
  CHECK_EQUAL(with->matching("param/").size(), without->matching("param/").size() + 1);
  for (const TraceArray* array : without->matching("param/")) CHECK_SAYS(*array->real == *with->find(array->key)->real, array->key);
  // After the impulse the state moves by its own eigenvalues alone.
  const auto& state = *without->find("state/0/h")->complex;
  const auto &nu = *without->find("param/0/nu_log")->real, &theta = *without->find("param/0/theta_log")->real;
  const std::size_t n = nu.size();
  for (std::size_t i = 0; i < n; ++i) {
    const std::complex<double> lambda = std::exp(std::complex<double>(-std::exp(nu[i]), std::exp(theta[i])));
    CHECK_CLOSE(std::abs(state[29 * n + i] - std::pow(lambda, 29) * state[i]), 0.0, 1e-12);
  }
  // Elman's network takes an input of any width, so it has no encoder.
  RunRequest none = request;
  none.preset = test::shipped().find("elman");
  CHECK_ERROR(run_of(none), "encoder_bias");
}

SWEEP_PRESETS("it shows what its card says", preset) {
  std::string table, all;
  for (const std::string& complaint : complaints_of(preset, table)) all += "\n  " + complaint;
  std::printf("%s", table.c_str());
  CHECK_SAYS(all.empty(), all);
}

SWEEP_PRESETS("its trained weights do what its card says of them", preset) {
  if (!preset.trained) return;
  std::string table, all;
  const Preset trained = as_trained(preset);
  for (const std::string& complaint : complaints_of(trained, table)) all += "\n  " + complaint;
  if (std::ranges::none_of(trained.claims,
                           [](const Claim& claim) { return claim.measure == "held_out" || claim.measure == "of_baseline"; }))
    all += "\n  " + preset.id + ": say in its trained claims what it does on what is held out";
  std::printf("%s", table.c_str());
  CHECK_SAYS(all.empty(), all);
}

TEST_CASE("a claim that is not true is found, and so is a card without one") {
  Preset preset = test::shipped().find("lstm");
  std::string table;
  preset.claims = {{"the forget gate over time", "mean gate/0/forget", 0.0, 0.1}};
  CHECK(complaints_of(preset, table).size() == 1);
  CHECK_SAYS(complaints_of(preset, table).front().find("mean gate/0/forget is 0.7") != std::string::npos,
             complaints_of(preset, table).front());
  preset.claims = {{"the forget gate over time", "mean gate/0/forget", 0.5, 1.0}};
  CHECK(complaints_of(preset, table).empty());
  preset.look_at = {"gating:remember"};
  CHECK_EQUAL(complaints_of(preset, table).size(), 1u);
  preset.look_at = {"spectrum"};
  preset.claims.front().text = preset.idea.substr(0, 20);  // about what it changed, not about what to look at
  CHECK_EQUAL(complaints_of(preset, table).size(), 1u);
  preset.claims = {{"the forget gate over time", "beauty gate/0/forget", 0.0, 0.1}};
  CHECK_ERROR(complaints_of(preset, table), "no measure \"beauty\"");
}

namespace {

struct Ends {
  int heads = 0, encoders = 0;
};
/// The card lists every array that a file of weights must hold, and when those before and after the layers are there. Returns how many are.
Ends check_card(const Preset& preset) {
  Ends ends;
  RunRequest request;
  request.preset = preset;
  request.sequence = make_task(preset.task, preset.task_options());
  request.recording = {};
  request.recording.only = {"param/"};
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  const Card own = card(builtin_registry(), preset, request.sequence->width);
  const bool tied = std::ranges::any_of(
      own.hyper, [](const HyperSpec& row) { return row.key == "read_out" && row.standard == HyperValue(std::string("tied")); });
  std::size_t needed = 0;
  for (const auto& parameter : own.parameters) {
    const bool head = parameter.name.starts_with("head/"), encoder = parameter.name.starts_with("encoder");
    CHECK_EQUAL(parameter.when.empty(), !head && !encoder);
    ends.heads += head || (tied && encoder);  // which is the head too
    ends.encoders += encoder;
    const TraceArray* found = trace->find("param/" + parameter.name);
    if (head && request.sequence->target_kind == TargetKind::none) {
      CHECK(!found);
      CHECK_SAYS(parameter.when.find("the sequence has a target") != std::string::npos, parameter.when);
      continue;
    }
    CHECK_SAYS(found, preset.id + ": " + parameter.name);
    CHECK_EQUAL(to_string(found->shape), to_string(parameter.shape));
    ++needed;
  }
  CHECK_EQUAL(needed, trace->matching("param/").size());
  return ends;
}
constexpr const char* card_lists =
    "the card lists every array that a file of weights must hold, and when those before and after the layers are there";

}  // namespace

SWEEP_PRESETS(card_lists, preset) { CHECK(check_card(preset).heads > 0); }
SWEEP_ARCHITECTURES(std::string(card_lists) + ", with its defaults, in both directions too", architecture) {
  Preset preset = test::preset_of(architecture.id);
  CHECK(check_card(preset).heads > 0);
  preset.hyper = {{"direction", std::string("both")}};
  check_card(preset);
}
TEST_CASE(std::string(card_lists) + ", for stacks, and a linear encoder is among them") {
  for (const Preset& preset : test::mixed_stacks()) CHECK(check_card(preset).encoders > 0);
}
