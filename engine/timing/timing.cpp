// SPDX-License-Identifier: GPL-3.0-or-later
#include "timing/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "analysis/scaling.h"
#include "array/rng.h"
#include "array/stop.h"
#include "experiment/command/command.h"
#include "experiment/compare.h"
#include "experiment/device.h"
#include "experiment/prepared.h"
#include "timing/pace.h"
#include "timing/roof.h"

namespace reclab {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Repeated or cut.
Sequence of_length(const Sequence& whole, std::int64_t length) {
  Sequence sequence = whole;
  sequence.length = length;
  const auto fill = [&](std::vector<double> Sequence::* part, std::int64_t width) {
    const std::vector<double>& from = whole.*part;
    std::vector<double>& to = sequence.*part;
    to.resize(from.empty() ? 0 : static_cast<std::size_t>(length * width));
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[i % from.size()];
  };
  fill(&Sequence::input, whole.width);
  fill(&Sequence::target, whole.target_width);
  fill(&Sequence::mask, 1);
  sequence.time.resize(static_cast<std::size_t>(length));
  for (std::size_t t = 0; t < sequence.time.size(); ++t) sequence.time[t] = static_cast<double>(t);
  return sequence;
}

/// "16,384"
std::string grouped(std::int64_t n) {
  std::string text = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, seconds < 9.5 ? "%.1f s" : "%.0f s", seconds);
  return text;
}

/// A computation that never changes, repeated all through a timing: its variation is the machine's. It does the work of forms, about half
/// of its time each: a product of matrices on all threads, and products of a row and a small matrix after each other, as in the steps of a
/// recurrence. They are slowed unlike: a process on the same core slows many small operations more than a large one.
class Yardstick {
 public:
  explicit Yardstick(Backend& backend) : backend_(backend), a_(backend, bytes), b_(backend, bytes), c_(backend, bytes) {
    Rng rng(1);
    std::vector<float> values(n * n);
    for (auto& x : values) x = static_cast<float>(rng.normal());
    for (const DeviceArray* array : {&a_, &b_, &c_}) backend.upload(array->data(), values.data(), bytes);
    for (int i = 0; i < 20; ++i) run();
  }
  void add() {
    const auto start = Clock::now();
    run();
    visit_.push_back(since(start));
  }
  /// Its median during the visit that ends.
  double end_visit() {
    medians_.push_back(median(std::exchange(visit_, {})));
    return medians_.back();
  }
  /// Its median in a moment's repeats that count for nothing else.
  double now() {
    for (int i = 0; i < 30; ++i) add();
    return median(std::exchange(visit_, {}));
  }
  bool known() const { return !medians_.empty(); }
  double pace() const { return median(medians_); }
  /// Half of the band of a visit's median, relative to the median of all.
  double noise() const {
    if (medians_.size() < 2) return 0.0;
    return 0.5 * (quantile(medians_, 0.95) - quantile(medians_, 0.05)) / median(medians_);
  }

 private:
  void run() {
    MatMul product;
    product.m = product.n = product.k = n;
    backend_.matmul(DType::f32, product, a_.data(), b_.data(), c_.data(), false);
    product.m = 1;
    product.n = product.k = row;
    for (int i = 0; i < steps; ++i) {
      backend_.matmul(DType::f32, product, a_.data(), b_.data(), c_.data(), false);
      backend_.add_scaled(DType::f32, row, -1, c_.data(), c_.data(), false);
    }
    backend_.finish();
  }
  static constexpr std::int64_t n = 160, row = 32;
  static constexpr int steps = 100;
  static constexpr std::size_t bytes = n * n * sizeof(float);
  Backend& backend_;
  DeviceArray a_, b_, c_;
  std::vector<double> visit_, medians_;
};

class Timing {
 public:
  Timing(const Registry& registry, const RunRequest& request, const TimingRequest& timing, const Progress& progress, std::stop_token stop,
         const Publish& publish)
      : registry_(registry),
        request_(request),
        timing_(timing),
        prepared_(registry, request),
        progress_(progress),
        stop_(std::move(stop)),
        publish_(publish) {
    NetworkOptions options;
    options.input = request.sequence->width;
    parameters_ = Network(prepared_.architecture, prepared_.hyper, options).undrawn();
    for (auto& entry : parameters_.entries()) {
      const auto* given = prepared_.parameters.find(entry.name);
      RECLAB_DEMAND(given);
      entry.values = given->values;
    }
    prepared_.describe(request, trace_.info);
    trace_.info.batch = timing.batch;
    trace_.info.command = command_of(request, timing, trace_.info.device);
    if (timing.batch < 1)
      throw Error("A batch of " + std::to_string(timing.batch) + " sequences cannot be timed: give at least 1.",
                  {.parameter = "batch", .value = std::to_string(timing.batch), .range = "1 or more"});
    for (const std::int64_t length : timing.lengths)
      if (length < 1)
        throw Error("A length of " + std::to_string(length) + " steps cannot be timed: give at least 1.",
                    {.parameter = "lengths", .value = std::to_string(length), .range = "1 or more"});
    if (timing.forms.empty()) {
      for (const Form form : prepared_.shape_network->forms()) series_.push_back({form});
    } else {
      for (const std::string& name : timing.forms) {
        require_form(*prepared_.shape_network, form_from(name), request.preset.id);
        series_.push_back({form_from(name)});
      }
    }
    const auto timed = [&](Form form) { return std::ranges::any_of(series_, [form](const Series& one) { return one.form == form; }); };
    if (timed(Form::scan) && timed(Form::chunkwise) && scans_are_one(prepared_, request))
      note("On CUDA the scan and the chunkwise form of this model are one kernel: what their times differ by is noise.");
    const std::set<std::int64_t> rising(timing.lengths.begin(), timing.lengths.end());
    lengths_.assign(rising.begin(), rising.end());
  }

  TracePtr operator()() {
    std::optional<Yardstick> kept;  // points timed before a stop are published with its noise too
    try {
      Yardstick& yardstick = kept.emplace(prepared_.backend);
      yardstick_ = &yardstick;
      earlier_ = paces_of_machine(pace_file(), prepared_.backend.name());
      if (prepared_.backend.device() == Device::cpu) find_roof(yardstick.now());
      const auto start = Clock::now();
      for (int visit = 0; visit < visits || (visit < most_visits && since(start) < long_enough); ++visit) {
        for (const std::int64_t length : lengths_) {
          at(length, visit);
          put();
          if (publish_) publish_(std::make_shared<const Trace>(trace_));
        }
        if (visit > 0) planned_ = std::clamp(std::ceil(long_enough * (visit + 1) / since(start)), double{visits}, double{most_visits});
      }
      std::string problem;
      if (yardstick.known()) keep_pace(pace_file(), prepared_.backend.name(), yardstick.pace(), &problem);
      if (!problem.empty()) note("The pace of this machine was not kept for the bands of the next timings: " + problem);
      if (roof_ && above_roof()) {
        roof_ = raised(*roof_, roof_file(), stop_, nullptr, yardstick.pace());
        put_roof();
      }
      report("the growth of the states");
      if (const auto exponent = largest_lyapunov(registry_, request_, stop_))
        add(key_of(Kind::timing, "lyapunov"), {*exponent}, "1/step",
            "Largest Lyapunov exponent: the mean growth of a small perturbation of the state, natural logarithm a step; above 0 it grows, "
            "below it is forgotten.");
    } catch (const Cancelled&) {
      if (yardstick_) put();
      trace_.info.outcome = Outcome::cancelled;
      trace_.info.sentence = "timing was cancelled";
    }
    yardstick_ = nullptr;
    return std::make_shared<const Trace>(trace_);
  }

  void note(const Sentence& sentence) {
    if (std::ranges::find(trace_.info.notes, sentence) == trace_.info.notes.end()) trace_.info.notes.push_back(sentence);
  }

 private:
  struct Point {
    std::int64_t length = 0;
    Visits forward, backward, both;
    std::vector<double> pace{};  // seconds of the yardstick at each visit
    double memory = 0.0, flops = 0.0, bytes = 0.0, output_error = not_a_number, gradient_error = not_a_number;
    int iterations = -1;
    bool converged = true;
  };
  struct Series {
    Form form;
    std::vector<Point> points{};
    bool ended = false;  // longer ones take too long or do not fit
  };
  struct Turn {
    Series* series;
    Point* point;
    std::unique_ptr<Rollout> rollout;
    std::vector<double> forward{}, backward{}, both{};
    double spent = 0.0;
    int passes = 1;  // of one repeat, so that it is long against the clock and the wake-up of threads
  };

  const Registry& registry_;
  const RunRequest& request_;
  const TimingRequest& timing_;
  Prepared prepared_;
  const Progress& progress_;
  std::stop_token stop_;
  const Publish& publish_;
  Parameters parameters_;
  std::optional<Model> model_;
  std::vector<Series> series_;
  std::vector<std::int64_t> lengths_;
  Yardstick* yardstick_ = nullptr;
  std::vector<double> earlier_;  // paces of the last timings
  std::optional<Roof> roof_;
  Trace trace_;
  double done_ = 0.0, planned_ = most_visits;  // series at lengths; visits
  mutable double reported_ = 0.0;

  void report(const std::string& what) const {
    const double total = planned_ * static_cast<double>(lengths_.size() * series_.size());
    reported_ = std::max(reported_, total > 0.0 ? std::min(1.0, done_ / total) : 1.0);  // it never goes back
    if (progress_) progress_(reported_, what);
  }
  std::string named(const Series& series, std::int64_t length) const {
    return "The " + std::string(to_string(series.form)) + " form at length " + grouped(length);
  }

  void find_roof(double pace) {
    report("what this machine can do at most");
    std::string problem;
    roof_ = roof_of_machine(roof_file(), stop_, &problem, pace);
    if (!problem.empty()) note("The roof of this machine was not kept for the next time: " + problem);
    put_roof();
  }
  double most_flops() const { return prepared_.real == DType::f64 ? roof_->flops64 : roof_->flops; }
  void put_roof() {
    add(key_of(Kind::timing, "roof/triad"), {roof_->triad_bytes}, "B/s",
        "What memory can give and take at most: a = b + s c over arrays far beyond the caches, all threads.");
    add(key_of(Kind::timing, "roof/cached"), {roof_->cached_bytes}, "B/s",
        "What can be read from the caches at most: half a megabyte a thread again and again.");
    add(key_of(Kind::timing, "roof/flops"), {most_flops()}, "1/s",
        "Multiply-adds of this precision at most, each counted as two, all threads.");
  }
  /// Whether a form did more than the roof allows, which then was measured while something else ran.
  bool above_roof() const {
    for (const Series& series : series_)
      for (const Point& point : series.points)
        for (const auto& visit : point.forward)
          if (!visit.empty() && point.flops / median(visit) > most_flops()) return true;
    return false;
  }

  /// One pass; seconds of the way there and of the way back.
  std::pair<double, double> pass(Rollout& rollout) const {
    const auto start = Clock::now();
    rollout.forward({}, stop_, timing_.backward);
    prepared_.backend.finish();
    const double there = since(start);
    if (!timing_.backward) return {there, 0.0};
    const auto turn = Clock::now();
    rollout.backward({}, stop_);
    prepared_.backend.finish();
    return {there, since(turn)};
  }

  /// The expected seconds of a pass, by the form's own exponent; 0 if unknown.
  double expected(const Series& series, std::int64_t length) const {
    if (series.points.empty()) return 0.0;
    const auto seconds = [](const Point& point) { return quantile(point.both.front(), 0.5); };
    const Point& last = series.points.back();
    double p = 1.0;
    if (series.points.size() > 1) {
      const Point& before = series.points[series.points.size() - 2];
      p = std::clamp(
          std::log(seconds(last) / seconds(before)) / std::log(static_cast<double>(last.length) / static_cast<double>(before.length)), 0.5,
          3.5);
    }
    return seconds(last) * std::pow(static_cast<double>(length) / static_cast<double>(last.length), p);
  }

  std::unique_ptr<Rollout> rollout_of(const Series& series, const Sequence& sequence, const Loss& loss) {
    if (!model_) model_.emplace(prepared_.architecture, prepared_.hyper, parameters_, prepared_.backend, prepared_.real);
    return std::make_unique<Rollout>(*model_, Batch(sequence, loss, timing_.batch),
                                     Rollout::Options{.form = series.form, .record = false, .timing_only = true});
  }

  /// All forms at one length, turn by turn.
  void at(std::int64_t length, int visit) {
    const bool first = visit == 0;
    const Sequence sequence = of_length(request_.sequence, length);
    const SequenceLoss loss(LossKind::mean, sequence);
    std::vector<Series*> waiting;
    for (Series& series : series_) {
      done_ += 1.0;
      if (first && !series.ended) {
        if (const double seconds = expected(series, length); seconds > longest_pass) {
          note(named(series, length) + " was left out: one pass would take about " + seconds_text(seconds) +
               " by its own growth, more than " + seconds_text(longest_pass) + ".");
          series.ended = true;
        }
        if (!series.ended) waiting.push_back(&series);
      } else if (const Point* point = point_of(series, length);
                 !first && point && (visit < visits_of_slow || point->both[0][0] < slow_pass)) {
        waiting.push_back(&series);
      }
    }
    for (std::size_t next = 0; next < waiting.size();) {
      std::vector<Turn> turns;
      std::int64_t bytes = 0;
      for (; next < waiting.size() && (turns.empty() || bytes < bytes_together); ++next) {
        Series& series = *waiting[next];
        report("timing " + std::string(to_string(series.form)) + " at length " + grouped(length));
        try {
          Point fresh;
          fresh.length = length;
          auto rollout = rollout_of(series, sequence, loss);
          bytes += rollout->bytes();
          if (first) series.points.push_back(std::move(fresh));
          turns.push_back({&series, point_of(series, length), std::move(rollout)});
        } catch (const Error& error) {
          if (!prepared_.backend.lost().empty()) throw;
          note(named(series, length) + " was left out: " + error.sentence());
          series.ended = true;
        }
      }
      take(turns, first);
      if (first) compare(turns, sequence);
    }
  }

  Point* point_of(Series& series, std::int64_t length) const {
    const auto found = std::ranges::find(series.points, length, &Point::length);
    return found == series.points.end() ? nullptr : &*found;
  }

  void take(std::vector<Turn>& turns, bool first) {
    for (Turn& turn : turns) warm(turn, first);
    std::erase_if(turns, [&](Turn& turn) {
      if (turn.rollout) return false;
      turn.series->points.pop_back();
      turn.series->ended = true;
      return true;
    });
    for (int round = 0; round < most_repeats; ++round) {
      bool any = false;
      for (int i = 0; i < 3; ++i) yardstick_->add();
      for (Turn& turn : turns) {
        if (round > 0 && turn.spent >= visit_seconds) continue;
        any = true;
        double there = 0.0, back = 0.0;
        for (int i = 0; i < turn.passes; ++i) {
          const auto one = pass(*turn.rollout);
          there += one.first / turn.passes;
          back += one.second / turn.passes;
        }
        turn.forward.push_back(there);
        turn.backward.push_back(back);
        turn.both.push_back(there + back);
        turn.spent += turn.passes * (there + back);
      }
      if (!any) break;
    }
    const double pace = yardstick_->end_visit();
    for (Turn& turn : turns) {
      turn.point->pace.push_back(pace);
      turn.point->forward.push_back(std::move(turn.forward));
      turn.point->backward.push_back(std::move(turn.backward));
      turn.point->both.push_back(std::move(turn.both));
    }
  }

  /// Passes that are not counted: they take pages and make plans. Of a form that diverges nothing is left.
  void warm(Turn& turn, bool first) {
    if (!first && turn.point->both[0][0] > cold_pass) return;
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3 && (i == 0 || least < least_repeat); ++i) {
      const auto [there, back] = pass(*turn.rollout);
      least = std::min(least, there + back);
    }
    turn.passes = static_cast<int>(std::clamp(std::ceil(least_repeat / least), 1.0, 1000.0));
    if (!first) return;
    const Network& network = turn.rollout->network();
    const auto output =
        to_double(prepared_.backend, prepared_.real, network.graph().value(network.output()), count(network.output().shape()));
    if (!std::ranges::all_of(output, [](double y) { return std::isfinite(y); })) {
      note(named(*turn.series, turn.point->length) + " was left out: its output is not finite.");
      turn.rollout.reset();
      return;
    }
    FormResult newton;
    tell_newton(network, turn.series->form, newton);
    turn.point->iterations = newton.iterations;
    turn.point->converged = newton.converged;
    if (!newton.converged) note(named(*turn.series, turn.point->length) + ": " + newton.note);
    const Cost cost = turn.rollout->cost();
    turn.point->memory = static_cast<double>(turn.rollout->bytes());
    turn.point->flops = cost.flops;
    turn.point->bytes = cost.bytes;
  }

  /// The errors of all forms against the sequential one in float64, of one sequence, by a loss that no normalisation makes constant.
  FormResult reference_;
  std::int64_t reference_length_ = 0;
  void compare(std::vector<Turn>& turns, const Sequence& sequence) {
    if (sequence.length > longest_compared) {
      note("Errors were computed up to length " + grouped(longest_compared) + " only.");
      return;
    }
    const SequenceLoss loss(LossKind::random, sequence);
    FormCase of{prepared_.architecture, prepared_.hyper, parameters_, sequence, loss, cpu_backend()};
    for (Turn& turn : turns) {
      turn.rollout.reset();  // its memory is wanted
      report("errors of " + std::string(to_string(turn.series->form)) + " at length " + grouped(sequence.length));
      if (reference_length_ != sequence.length) {
        reference_ = result_of(of, Form::sequential, DType::f64, timing_.backward, stop_);
        reference_length_ = sequence.length;
      }
      if (reference_.bad) {
        note("Errors at length " + grouped(sequence.length) + " were left out: in the sequential form in float64 " +
             sentence(*reference_.bad) + ".");
        return;
      }
      const FormCase here{of.architecture, of.hyper, of.parameters, sequence, loss, prepared_.backend};
      const FormResult result = result_of(here, turn.series->form, prepared_.real, timing_.backward, stop_);
      if (result.bad) {
        note(named(*turn.series, sequence.length) + ": " + sentence(*result.bad) + ".");
        continue;
      }
      if (result.bad_gradient) note(named(*turn.series, sequence.length) + ": " + adjoint_sentence(*result.bad_gradient) + ".");
      const FormErrors errors = errors_of(result, reference_);
      turn.point->output_error = errors.output;
      if (timing_.backward) turn.point->gradient_error = errors.gradient;
    }
  }

  void add(const std::string& key, const std::vector<double>& values, const std::string& unit, const std::string& text) {
    TraceArray array;
    array.key = key;
    array.shape = {static_cast<std::int64_t>(values.size())};
    array.axes = {{"length", "steps", {}}};
    array.unit = unit;
    array.text = text;
    put_real(trace_, std::move(array), values);
  }

  double follows() const {
    PaceFit fit;
    for (const Series& series : series_)
      for (const Point& point : series.points) fit.add(point.both, point.pace);
    return fit.power();
  }
  /// The times of a point as they would be at the yardstick's own pace.
  Visits steadied(const Point& point, const Visits& times, double power) const {
    Visits steady = times;
    for (std::size_t v = 0; v < steady.size(); ++v)
      for (double& seconds : steady[v]) seconds *= std::pow(yardstick_->pace() / point.pace[v], power);
    return steady;
  }

  void put() {
    const double noise = yardstick_->noise(), power = follows();
    std::vector<double> paces = earlier_;
    if (yardstick_->known()) paces.push_back(yardstick_->pace());
    const double between = between_runs(paces), unseen = std::hypot(noise, between);
    add(key_of(Kind::timing, "noise"), {noise}, "",
        "The machine's noise: half width of the 90 % band of a fixed computation that was repeated all through the timing, of its median "
        "at each visit, relative to the median of all.");
    add(key_of(Kind::timing, "between"), {between}, "",
        "How the machine differs from run to run: half width of the 90 % band of that computation's median over a whole timing, by the "
        "last timings on this machine.");
    for (const Series& series : series_) {
      std::vector<const Point*> points;
      for (const Point& point : series.points)
        if (!point.both.empty()) points.push_back(&point);
      if (points.empty()) continue;
      const std::string prefix = key_of(Kind::timing, std::string(to_string(series.form)) + "/");
      const auto column = [&](const std::string& name, const std::string& unit, const std::string& text, const auto& value) {
        std::vector<double> values;
        for (const Point* point : points) values.push_back(value(*point));
        add(prefix + name, values, unit, text);
        return values;
      };
      const auto length =
          column("length", "steps", "Length of the sequence.", [](const Point& p) { return static_cast<double>(p.length); });
      const auto grows = [&](const std::string& name, const std::vector<Banded>& costs, const std::string& of) {
        const std::size_t from = longer_half(costs.size());
        const Banded p = exponent(std::span(length).subspan(from), std::span(costs).subspan(from));
        if (std::isnan(p.value)) return;
        const std::string over = " of " + of + " against log length over the longer half of the lengths.";
        add(prefix + name, {p.value}, "", "Slope" + over);
        add(prefix + name + "_low", {p.low}, "", "Lower end of the 90 % band of the slope" + over);
        add(prefix + name + "_high", {p.high}, "", "Upper end of the 90 % band of the slope" + over);
      };
      const auto times = [&](const std::string& name, Visits Point::* of, const std::string& what, const std::string& low,
                             const std::string& high, const std::string& exponent_name) {
        std::vector<Banded> bands, steady;
        for (const Point* point : points) {
          bands.push_back(median_band(point->*of, unseen));
          // For exponents: variation from run to run moves all lengths alike.
          steady.push_back(median_band(steadied(*point, point->*of, power), noise));
        }
        std::size_t i = 0;
        column(name, "s", "Median wall time of " + what + ".", [&](const Point&) { return bands[i++].value; });
        i = 0;
        column(low, "s", "Lower end of the 90 % band: where the median of another run of this timing is expected.",
               [&](const Point&) { return bands[i++].low; });
        i = 0;
        column(high, "s", "Upper end of the 90 % band: where the median of another run of this timing is expected.",
               [&](const Point&) { return bands[i++].high; });
        grows(exponent_name, steady, "log time (what follows the machine's pace from visit to visit taken out) of " + what);
      };
      const std::string whole = timing_.backward ? "the forward and the backward pass" : "the forward pass";
      times("seconds", &Point::both, whole, "low90", "high90", "exponent");
      const auto quartile = [&](double q) {
        return [q](const Point& p) {
          std::vector<double> all;
          for (const auto& visit : p.both) all.insert(all.end(), visit.begin(), visit.end());
          return quantile(std::move(all), q);
        };
      };
      column("low", "s", "Lower quartile.", quartile(0.25));
      column("high", "s", "Upper quartile.", quartile(0.75));
      times("forward", &Point::forward, "the forward pass", "forward_low90", "forward_high90", "forward_exponent");
      if (timing_.backward)
        times("backward", &Point::backward, "the backward pass", "backward_low90", "backward_high90", "backward_exponent");
      const auto memory = column("memory", "B", "Memory of the arrays: values, gradients, weights and the states kept on the way.",
                                 [](const Point& p) { return p.memory; });
      std::vector<Banded> exact;
      for (const double bytes : memory) exact.push_back({bytes, bytes, bytes});
      grows("memory_exponent", exact, "log memory");
      column("flops", "", "Floating-point operations of the forward pass, by formula.", [](const Point& p) { return p.flops; });
      column("bytes", "B", "Bytes that the forward pass reads and writes, by formula.", [](const Point& p) { return p.bytes; });
      column("output_error", "",
             "Largest difference of the outputs from the sequential form in float64, relative to the largest output; not a number where it "
             "was not computed.",
             [](const Point& p) { return p.output_error; });
      if (timing_.backward)
        column("gradient_error", "",
               "Largest difference of the gradients from the sequential form in float64, relative; not a number where it was not computed.",
               [](const Point& p) { return p.gradient_error; });
      if (!is_newton(series.form)) continue;
      column("iterations", "", "Iterations over the whole sequence, the most of all layers; -1: none was needed.",
             [](const Point& p) { return static_cast<double>(p.iterations); });
      column("converged", "", "1 where the iteration converged, 0 where the sequential form was run instead.",
             [](const Point& p) { return p.converged ? 1.0 : 0.0; });
    }
  }
};

}  // namespace

const std::vector<PlanField<TimingRequest>>& timing_fields() {
  using Fields = std::vector<PlanField<TimingRequest>>;
  static const Fields all = [] {
    auto forms = list_field<TimingRequest>(
        flag_of("forms"), "forms", Field::Says::list, "Only these", [](const TimingRequest& timing) { return timing.forms; },
        [](TimingRequest& timing, std::vector<std::string> names) { timing.forms = std::move(names); });
    auto lengths = list_field<TimingRequest>(
        flag_of("lengths"), "lengths", Field::Says::list, "Lengths to time",
        [](const TimingRequest& timing) {
          std::vector<std::string> texts;
          for (const std::int64_t length : timing.lengths) texts.push_back(std::to_string(length));
          return texts;
        },
        [](TimingRequest& timing, const std::vector<std::string>& texts) {
          timing.lengths.clear();
          for (const std::string& text : texts) timing.lengths.push_back(std::stoll(text));
          std::ranges::sort(timing.lengths);
        });
    lengths.row.kind = HyperKind::integer;
    lengths.row.low = 1;
    lengths.row.high = std::int64_t{1} << 40;
    lengths.usual = "64,128,...,4096";
    lengths.always = true;
    auto batch = count_field<TimingRequest>(flag_of("batch"), "B", "batch", 1, 1 << 20, "Sequences side by side",
                                            [](auto& timing) -> auto& { return timing.batch; });
    PlanField<TimingRequest> forward;
    forward.row = hyper_flag("forward_only", false, "The forward pass alone");
    forward.flag = flag_of("forward_only");
    forward.get = [](const TimingRequest& timing) { return HyperValue(!timing.backward); };
    forward.set = [](TimingRequest& timing, const HyperValue& value) { timing.backward = !std::get<bool>(value); };
    return Fields{std::move(forms), std::move(lengths), std::move(batch), std::move(forward)};
  }();
  return all;
}

std::string command_of(const RunRequest& request, const TimingRequest& timing, const std::string& device) {
  CommandLine line;
  line.model(request, device, {"form", "loss", "every", "record"});
  for (const auto& field : timing_fields()) line.field(field, field.get(timing));
  return line.text("reclab bench");
}

TracePtr time_forms(const Registry& registry, const RunRequest& request, const TimingRequest& timing, const Progress& progress,
                    std::stop_token stop, const Publish& publish) {
  const StopScope scope(stop);
  const std::string where = "during the timing";
  return or_on_cpu(request, "timing", where, [&](const RunRequest& asked, const std::string& said) {
    Timing made(registry, asked, timing, progress, stop, publish);
    if (!said.empty()) made.note(said);
    return made();
  });
}

std::optional<double> largest_lyapunov(const Registry& registry, const RunRequest& request, std::stop_token stop) {
  constexpr double affordable = 2e9;  // flops of the products, about
  const StopScope scope(stop);
  double cubes = 1.0;
  const Structure structure(registry, request);
  bool any = false;
  for (int layer = 0; layer < static_cast<int>(structure.shape_network->layers().size()); ++layer)
    for (const Memory* memory : structure.shape_network->memories(layer)) {
      const Transition own = memory->transition();
      any = any || own.kind != Transition::Kind::none;
      if (own.in_blocks()) cubes += static_cast<double>(own.entries()) * static_cast<double>(own.size);
    }
  if (!any) return std::nullopt;
  RunRequest small = request;
  small.form = "sequential";
  small.device = "cpu";
  small.dtype = "f64";
  small.state.clear();
  small.every = 1;
  small.recording = recording_of({prefix_of(Kind::jacobian)});
  small.recording.singular_values = 1;
  const std::int64_t length = std::clamp(static_cast<std::int64_t>(affordable / (8.0 * cubes)), std::int64_t{32}, std::int64_t{1024});
  small.sequence = of_length(request.sequence, length);
  const TracePtr trace = run(registry, small, {}, stop).trace;
  if (stop.stop_requested()) throw Cancelled();
  std::optional<double> largest;
  for (const TraceArray* array : trace->of(Kind::jacobian)) {
    const auto layer = static_cast<std::size_t>(parse_key(array->key)->layer);
    std::vector<double> logs = *array->real;  // of ds_T/ds_t, shortest product last
    if (trace->info.each_layer[layer].reversed) std::ranges::reverse(logs);
    // Row t is ds_T/ds_t. In the first quarter of the steps the state still comes from where it began; in the last one the product, which
    // grows from T on, turns to the direction that grows most.
    const std::size_t quarter = logs.size() / 4, from = quarter, to = logs.size() - 1 - quarter;
    if (from >= to || std::isnan(logs[from])) continue;
    const double growth =
        std::isfinite(logs[from]) ? std::log(10.0) * (logs[from] - logs[to]) / static_cast<double>(to - from) : logs[from];
    largest = std::max(growth, largest.value_or(growth));
  }
  return largest;
}

}  // namespace reclab
