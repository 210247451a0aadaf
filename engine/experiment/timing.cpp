// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "experiment/prepared.h"

namespace reclab {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

TracePtr time_forms(const Registry& registry, const RunRequest& request, const TimingRequest& timing, const Progress& progress,
                    std::stop_token stop, const Publish& publish) {
  const Prepared prepared(registry, request);
  Trace trace;
  prepared.describe(request, trace.info);
  trace.info.batch = timing.batch;
  struct Series {
    std::vector<double> length, seconds, low, high;
  };
  const auto forms = prepared.probe->forms();
  std::vector<Series> series(forms.size());
  const auto put = [&] {
    for (std::size_t f = 0; f < forms.size(); ++f) {
      const Series& s = series[f];
      if (s.length.empty()) continue;
      const std::string prefix = "timing/" + std::string(to_string(forms[f])) + "/";
      const auto add = [&](const std::string& name, const std::vector<double>& values, const std::string& unit, const std::string& text) {
        TraceArray array;
        array.key = prefix + name;
        array.shape = {static_cast<std::int64_t>(values.size())};
        array.axes = {{"length", "steps", {}}};
        array.unit = unit;
        array.text = text;
        put_real(trace, std::move(array), values);
      };
      add("length", s.length, "steps", "Length of the sequence.");
      add("seconds", s.seconds, "s", "Median wall time of forward and backward.");
      add("low", s.low, "s", "Lower quartile.");
      add("high", s.high, "s", "Upper quartile.");
      // Slope of log time against log length over the longer half, where the constant costs no longer count.
      const std::size_t n = s.length.size(), from = n > 3 ? n / 2 - (n % 2 == 0 ? 1 : 0) : 0;
      if (n - from >= 2 && s.length.back() > s.length[from]) {
        double mx = 0, my = 0, sxx = 0, sxy = 0;
        const double m = static_cast<double>(n - from);
        for (std::size_t i = from; i < n; ++i) {
          mx += std::log(s.length[i]) / m;
          my += std::log(s.seconds[i]) / m;
        }
        for (std::size_t i = from; i < n; ++i) {
          sxx += (std::log(s.length[i]) - mx) * (std::log(s.length[i]) - mx);
          sxy += (std::log(s.length[i]) - mx) * (std::log(s.seconds[i]) - my);
        }
        add("exponent", {sxy / sxx}, "", "Slope of log time against log length over the longer half of the lengths.");
      }
    }
  };
  try {
    const double total = static_cast<double>(timing.lengths.size() * forms.size());
    double done = 0.0;
    for (const std::int64_t length : timing.lengths) {
      for (std::size_t f = 0; f < forms.size(); ++f) {
        Sequence sequence = request.sequence;  // repeated or cut to the length
        sequence.length = length;
        sequence.input.resize(static_cast<std::size_t>(length * sequence.width));
        for (std::size_t i = 0; i < sequence.input.size(); ++i) sequence.input[i] = request.sequence.input[i % request.sequence.input.size()];
        sequence.target_kind = TargetKind::none;
        const Loss loss(Loss::Kind::mean, sequence);
        NetworkOptions options;
        options.input = sequence.width;
        Parameters parameters = Network(prepared.architecture, prepared.hyper, options).initialise(request.seed);
        Rollout rollout(prepared.architecture, prepared.hyper, parameters, sequence, loss, prepared.backend, {forms[f], prepared.real, 0, false});
        std::vector<double> times;
        const std::string of_form = "The " + std::string(to_string(forms[f])) + " form at length " + std::to_string(length) + ": ";
        bool told = false;
        const auto begin = Clock::now();
        for (int repeat = 0; repeat < 7 && (repeat < 3 || since(begin) < 0.5); ++repeat) {
          const auto start = Clock::now();
          if (const auto bad = rollout.forward({}, stop)) {
            trace.info.notes.push_back(of_form + sentence(*bad) + ", so it was not timed.");
            break;
          }
          const auto bad = rollout.backward({}, stop);
          if (bad && !std::exchange(told, true)) trace.info.notes.push_back(of_form + way_back(*bad) + ".");
          if (repeat) times.push_back(since(start));  // the first one warms caches and plans
          if (since(begin) > 4.0 && !times.empty()) break;
        }
        if (times.empty()) continue;
        std::sort(times.begin(), times.end());
        Series& s = series[f];
        s.length.push_back(static_cast<double>(length));
        s.seconds.push_back(times[times.size() / 2]);
        s.low.push_back(times[times.size() / 4]);
        s.high.push_back(times[times.size() - 1 - times.size() / 4]);
        if (progress) progress(++done / total, "timing " + std::string(to_string(forms[f])) + " at length " + std::to_string(length));
      }
      put();
      if (publish) publish(std::make_shared<const Trace>(trace));
    }
  } catch (const Cancelled&) {
    put();
    trace.info.outcome = Outcome::cancelled;
    trace.info.sentence = "timing was cancelled";
  }
  return std::make_shared<const Trace>(trace);
}

}  // namespace reclab
