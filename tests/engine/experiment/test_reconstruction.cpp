// SPDX-License-Identifier: GPL-3.0-or-later
// What the states of HiPPO-LegS and of the LMU say of their signals' pasts, against theory: least squares, the projection's integrals and
// the transfer function of the delay line, all computed here and on their own.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <stop_token>

#include "experiment/experiment.h"
#include "files/files.h"
#include "files/npz.h"
#include "models/network.h"
#include "models/registry.h"
#include "runs.h"
#include "scratch.h"
#include "test.h"

using namespace reclab;
using test::Settings;
using test::values_of;

namespace {

constexpr double pi = std::numbers::pi;

Sequence sequence_of(std::int64_t width, std::vector<double> values) {
  Sequence made;
  made.name = "made";
  made.width = width;
  made.length = static_cast<std::int64_t>(values.size()) / width;
  made.input = std::move(values);
  for (std::int64_t j = 0; j < width; ++j) made.names.push_back("x" + std::to_string(j));
  for (std::int64_t t = 0; t < made.length; ++t) made.time.push_back(static_cast<double>(t));
  return made;
}

/// Sines whose shortest period is that many steps.
Sequence band_limited(std::int64_t length, double shortest) {
  std::vector<double> values;
  for (std::int64_t t = 0; t < length; ++t) {
    const double a = 2.0 * pi * static_cast<double>(t) / shortest;
    values.push_back(std::sin(a + 0.3) + 0.7 * std::cos(0.61 * a) + 0.5 * std::sin(0.23 * a + 1.0));
  }
  return sequence_of(1, std::move(values));
}

RunRequest request_for(const std::string& architecture, Sequence sequence, Settings set) {
  RunRequest request;
  request.preset.id = request.preset.architecture = architecture;
  request.sequence = std::move(sequence);
  request.set = std::move(set);
  request.recording.kinds.remove(kinds_of(Stage::late) | Kinds{Kind::gate, Kind::gradient});
  return request;
}
TracePtr run_quietly(const RunRequest& request) { return run(builtin_registry(), request, {}, {}).trace; }

/// The bare delay line, whose signal is the input itself: an encoder of ones on the diagonal.
RunRequest bare_lmu(const test::Scratch& folder, Sequence sequence, std::int64_t order, Settings set) {
  const std::int64_t M = sequence.width;
  std::vector<double> identity(static_cast<std::size_t>(M * M), 0.0);
  for (std::int64_t i = 0; i < M; ++i) identity[static_cast<std::size_t>(i * M + i)] = 1.0;
  RunRequest request = request_for("lmu", std::move(sequence), std::move(set));
  for (const auto& [key, value] : Settings{{"hidden", "none"}, {"memory_to_memory", "false"}, {"input_to_hidden", "false"}})
    request.set.emplace_back(key, value);
  request.set.emplace_back("order", std::to_string(order));
  request.set.emplace_back("memory", std::to_string(M));
  request.weights = folder / "identity.npz";
  AtomicFile file(request.weights);
  NpzWriter writer(file);
  writer.add("0/input_encoders", {M, M}, std::span<const double>(identity));
  writer.finish();
  file.commit();
  return request;
}

std::vector<double> legendre_at(double x, std::int64_t orders) {
  std::vector<double> p{1.0, x};
  for (std::int64_t n = 2; n <= orders; ++n) {
    const double k = static_cast<double>(n);
    p.push_back(((2.0 * k - 1.0) * x * p[p.size() - 1] - (k - 1.0) * p[p.size() - 2]) / k);
  }
  return p;
}

/// Relative rms error of the best polynomial with so many coefficients through all values, evenly spaced, by Gram-Schmidt.
double best_fit_error(const std::vector<double>& values, std::int64_t coefficients) {
  const std::size_t n = values.size();
  std::vector<std::vector<double>> basis;
  std::vector<double> left = values;
  for (std::int64_t k = 0; k < coefficients; ++k) {
    std::vector<double> next(n);
    for (std::size_t i = 0; i < n; ++i)
      next[i] = legendre_at(2.0 * (static_cast<double>(i) + 0.5) / static_cast<double>(n) - 1.0, coefficients)[static_cast<std::size_t>(k)];
    for (int twice = 0; twice < 2; ++twice)
      for (const auto& other : basis) {
        double along = 0.0;
        for (std::size_t i = 0; i < n; ++i) along += next[i] * other[i];
        for (std::size_t i = 0; i < n; ++i) next[i] -= along * other[i];
      }
    double norm = 0.0, along = 0.0;
    for (const double x : next) norm += x * x;
    for (double& x : next) x /= std::sqrt(norm);
    for (std::size_t i = 0; i < n; ++i) along += next[i] * left[i];
    for (std::size_t i = 0; i < n; ++i) left[i] -= along * next[i];
    basis.push_back(std::move(next));
  }
  double rest = 0.0, whole = 0.0;
  for (std::size_t i = 0; i < n; ++i) rest += left[i] * left[i], whole += values[i] * values[i];
  return std::sqrt(rest / whole);
}

/// The relative rms error over time and window of the continuous delay line of a window's length 1 on exp(i w t), in its steady state.
double delay_line_error(std::int64_t order, double w) {
  using Complex = std::complex<double>;
  const auto q = static_cast<std::size_t>(order);
  std::vector<std::vector<Complex>> rows(q, std::vector<Complex>(q + 1));  // (iw - A) m = B
  for (std::size_t i = 0; i < q; ++i) {
    const double scale = 2.0 * static_cast<double>(i) + 1.0;
    for (std::size_t j = 0; j < q; ++j) rows[i][j] = -scale * (i < j ? -1.0 : (i - j) % 2 == 0 ? -1.0 : 1.0);
    rows[i][i] += Complex(0.0, w);
    rows[i][q] = i % 2 == 0 ? scale : -scale;
  }
  for (std::size_t k = 0; k < q; ++k) {
    const auto pivot = std::max_element(rows.begin() + static_cast<std::ptrdiff_t>(k), rows.end(),
                                        [k](const auto& a, const auto& b) { return std::abs(a[k]) < std::abs(b[k]); });
    std::swap(rows[k], *pivot);
    for (std::size_t i = 0; i < q; ++i) {
      if (i == k) continue;
      const Complex factor = rows[i][k] / rows[k][k];
      for (std::size_t j = k; j <= q; ++j) rows[i][j] -= factor * rows[k][j];
    }
  }
  double wrong = 0.0;
  const int places = 1000;
  for (int p = 0; p < places; ++p) {
    const double age = (p + 0.5) / places;
    const std::vector<double> P = legendre_at(2.0 * age - 1.0, order);
    Complex guess = 0.0;
    for (std::size_t i = 0; i < q; ++i) guess += P[i] * rows[i][q] / rows[i][i];
    wrong += std::norm(guess - std::exp(Complex(0.0, -w * age)));
  }
  return std::sqrt(wrong / places);
}

}  // namespace

TEST_CASE("HiPPO-LegS holds the best polynomial fit of its whole past") {
  const Sequence sequence = band_limited(1200, 300.0);
  for (const std::string rule : {"zoh", "bilinear"}) {
    double last = 2.0;
    for (const std::int64_t order : {4, 8, 16, 32, 64}) {
      const TracePtr trace = run_quietly(request_for(
          "hippo-legs", sequence, {{"input", "direct"}, {"order", std::to_string(order)}, {"discretisation", rule}, {"l_max", "2000"}}));
      const std::vector<double>& error = values_of(*trace, "reconstruction/0/c/error");
      for (const std::int64_t step : {599, 1199}) {
        const std::vector<double> seen(sequence.input.begin(), sequence.input.begin() + step + 1);
        const double best = best_fit_error(seen, order), found = error[static_cast<std::size_t>(step)];
        // The signal is held through each step, which the rules follow to O(1/T); the error is of 128 of the steps.
        const double held = (rule == "zoh" ? 0.1 : 1.0) / static_cast<double>(step + 1);
        CHECK_SAYS(found >= 0.95 * best, rule + " order " + std::to_string(order) + ": below the least squares by more than sampling");
        CHECK_SAYS(found <= 1.02 * best + held,
                   rule + " order " + std::to_string(order) + ": " + test::show(found) + " against " + test::show(best));
      }
      CHECK(error.back() < last || last < (rule == "zoh" ? 1e-4 : 1e-3));
      last = error.back();
    }
    CHECK(last < 1e-3);
  }
}

TEST_CASE("by the exact rule HiPPO-LegS's coefficients are the integrals of the signal held through each step") {
  const std::int64_t order = 12, T = 300;
  for (const std::int64_t start : {0, 1, 7}) {
    Sequence sequence = make_task("noise", {.length = T, .seed = 3});
    const TracePtr trace = run_quietly(request_for("hippo-legs", sequence,
                                                   {{"input", "direct"},
                                                    {"order", std::to_string(order)},
                                                    {"discretisation", "zoh"},
                                                    {"init_t", std::to_string(start)},
                                                    {"l_max", "400"}}));
    const std::vector<double>& state = values_of(*trace, "state/0/c");
    const double window = values_of(*trace, "reconstruction/0/c/window").back();
    CHECK_CLOSE(window, static_cast<double>(T + start), 1e-12);
    // The antiderivative of P_n is (P_{n+1} - P_{n-1}) / (2n+1), of P_0 it is P_1.
    std::vector<double> expected(static_cast<std::size_t>(order), 0.0);
    for (std::int64_t s = 0; s < T; ++s) {
      const auto from = legendre_at(2.0 * static_cast<double>(s + start) / window - 1.0, order + 1),
                 to = legendre_at(2.0 * static_cast<double>(s + start + 1) / window - 1.0, order + 1);
      for (std::size_t n = 0; n < expected.size(); ++n) {
        const auto whole = [n](const std::vector<double>& P) {
          return (P[n + 1] - (n ? P[n - 1] : 0.0)) / (2.0 * static_cast<double>(n) + 1.0);
        };
        expected[n] +=
            0.5 * std::sqrt(2.0 * static_cast<double>(n) + 1.0) * sequence.input[static_cast<std::size_t>(s)] * (whole(to) - whole(from));
      }
    }
    for (std::int64_t n = 0; n < order; ++n)
      CHECK_CLOSE(state[static_cast<std::size_t>((T - 1) * order + n)], expected[static_cast<std::size_t>(n)], 1e-9);
  }
}

TEST_CASE("the delay line's error falls with its order as its transfer function says, once the order exceeds the half waves") {
  const test::Scratch folder;
  const double theta = 400.0, period = 100.0;  // eight half waves in the window
  std::vector<double> values;
  for (int t = 0; t < 2000; ++t) values.push_back(std::sin(2.0 * pi * t / period));
  double last = 1.0;
  for (const std::int64_t order : {4, 8, 12, 16, 24, 32, 64}) {
    const TracePtr trace = run_quietly(bare_lmu(folder, sequence_of(1, values), order, {{"theta", "400"}}));
    const std::vector<double>& error = values_of(*trace, "reconstruction/0/m/error");
    double squares = 0.0;
    for (int t = 1600; t < 2000; ++t) squares += error[static_cast<std::size_t>(t)] * error[static_cast<std::size_t>(t)] / 400.0;
    const double found = std::sqrt(squares), expected = delay_line_error(order, 2.0 * pi * theta / period);
    // The rms over one whole number of periods; the signal is held through each step, which costs its share of a period.
    CHECK_SAYS(std::abs(found - expected) <= 0.02 * expected + 2e-3,
               "order " + std::to_string(order) + ": " + test::show(found) + " against " + test::show(expected));
    if (order > 8) CHECK_SAYS(found < last || found < 2e-3, "order " + std::to_string(order));
    if (order <= 8) CHECK(found > 0.2);
    last = found;
  }
  CHECK(last < 2e-3);
}

TEST_CASE("the error in the trace is what basis and state give, whatever the order, the window and the copies") {
  const test::Scratch folder;
  Sequence two = make_task("noise", {.length = 90, .seed = 2});
  const Sequence smooth = band_limited(90, 30.0);
  std::vector<double> columns;
  for (std::size_t t = 0; t < 90; ++t) columns.insert(columns.end(), {smooth.input[t], two.input[t]});
  for (const bool legs : {false, true}) {
    const RunRequest request =
        legs ? request_for("hippo-legs", sequence_of(2, columns), {{"input", "direct"}, {"order", "9"}, {"discretisation", "zoh"}})
             : bare_lmu(folder, sequence_of(2, columns), 9, {{"theta", "40.5"}});
    const TracePtr trace = run_quietly(request);
    const std::string name = legs ? "0/c" : "0/m";
    CHECK(values_of(*trace, "signal/" + name) == columns);
    const TraceArray* basis = trace->find("basis/" + name);
    CHECK(basis && (basis->shape == Shape{201, 9}));
    CHECK_EQUAL(basis->axes[1].name, "Legendre coefficient");
    const auto &place = values_of(*trace, "basis/" + name + "/place"), &state = values_of(*trace, "state/" + name),
               &error = values_of(*trace, "reconstruction/" + name + "/error"),
               &window = values_of(*trace, "reconstruction/" + name + "/window");
    CHECK_EQUAL(trace->find("basis/" + name + "/place")->unit, legs ? "share of the past" : "steps ago");
    CHECK_CLOSE(place.front(), legs ? 0.0 : 40.5, 1e-12);
    CHECK_CLOSE(place.back(), legs ? 1.0 : 0.0, 1e-12);
    for (const std::size_t t : {std::size_t{5}, std::size_t{30}, std::size_t{89}})
      for (std::size_t copy = 0; copy < 2; ++copy) {
        double wrong = 0.0, whole = 0.0;
        for (std::size_t age = 0; static_cast<double>(age) + 0.5 <= window[t]; ++age) {
          // The polynomial through the 101 places, at a step's middle: the nine coefficients by Lagrange's formula through nine of them.
          const double x = 1.0 - (static_cast<double>(age) + 0.5) / window[t];
          double guess = 0.0;
          const auto share = [&](std::size_t k) { return legs ? place[k * 200 / 8] : 1.0 - place[k * 200 / 8] / 40.5; };
          for (std::size_t i = 0; i < 9; ++i) {
            double weight = 1.0;
            for (std::size_t j = 0; j < 9; ++j)
              if (j != i) weight *= (x - share(j)) / (share(i) - share(j));
            for (std::size_t k = 0; k < 9; ++k) guess += weight * (*basis->real)[i * 200 / 8 * 9 + k] * state[(t * 2 + copy) * 9 + k];
          }
          const double was = age <= t ? columns[(t - age) * 2 + copy] : 0.0;
          wrong += (guess - was) * (guess - was);
          whole += was * was;
        }
        CHECK_CLOSE(error[t * 2 + copy], std::sqrt(wrong / whole), 1e-9);
      }
  }
}

TEST_CASE("every variant says what its memory was written with") {
  // The same memory alone, fed with the signal that the trace tells, has the same states.
  const test::Scratch folder;
  const Sequence noise = make_task("noise", {.length = 70, .seed = 5});
  for (const std::string hidden : {"rnn", "none"})
    for (const std::string from_h : {"true", "false"})
      for (const std::string from_m : {"true", "false"}) {
        RunRequest request = request_for("lmu", noise,
                                         {{"hidden", hidden},
                                          {"hidden_to_memory", from_h},
                                          {"memory_to_memory", from_m},
                                          {"memory_bias", "true"},
                                          {"width", "6"},
                                          {"order", "5"},
                                          {"memory", "3"},
                                          {"theta", "20"},
                                          {"layers", "2"}});
        Parameters parameters;
        const TracePtr drawn = run_quietly(request);
        for (const TraceArray* array : drawn->matching("param/")) {  // encoders that start at 0 get values
          parameters.entries().push_back({array->key, "", array->shape, *array->real});
          for (std::size_t i = 0; i < parameters.entries().back().values.size(); ++i)
            parameters.entries().back().values[i] += 0.05 * std::sin(static_cast<double>(i) + 1.0);
        }
        request.weights = folder / "weights.npz";
        AtomicFile file(request.weights);
        NpzWriter writer(file);
        for (const auto& entry : parameters.entries()) writer.add(entry.name, entry.shape, std::span<const double>(entry.values));
        writer.finish();
        file.commit();
        const TracePtr trace = run_quietly(request);
        for (const std::string layer : {"0/", "1/"}) {
          const TracePtr alone =
              run_quietly(bare_lmu(folder, sequence_of(3, values_of(*trace, "signal/" + layer + "m")), 5, {{"theta", "20"}}));
          const auto &a = values_of(*trace, "state/" + layer + "m"), &b = values_of(*alone, "state/0/m");
          CHECK_EQUAL(a.size(), b.size());
          for (std::size_t i = 0; i < a.size(); ++i) CHECK_CLOSE(a[i], b[i], 1e-11);
        }
      }
  for (const std::string ux : {"true", "false"})
    for (const std::string gate : {"sigmoid", "none"}) {
      const TracePtr trace =
          run_quietly(request_for("hippo-legs", noise, {{"ux", ux}, {"gate", gate}, {"width", "6"}, {"order", "5"}, {"memory", "3"}}));
      const TracePtr alone =
          run_quietly(request_for("hippo-legs", sequence_of(3, values_of(*trace, "signal/0/c")), {{"input", "direct"}, {"order", "5"}}));
      const auto &a = values_of(*trace, "state/0/c"), &b = values_of(*alone, "state/0/c");
      CHECK_EQUAL(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i) CHECK_CLOSE(a[i], b[i], 1e-11);
      CHECK(values_of(*trace, "signal/0/c") != values_of(*trace, "output"));
    }
}

TEST_CASE("forms, thinned rows and --record give the same errors") {
  const test::Scratch folder;
  for (const bool legs : {false, true}) {
    RunRequest request = legs ? request_for("hippo-legs", band_limited(500, 60.0), {{"width", "4"}, {"order", "8"}, {"memory", "2"}})
                              : bare_lmu(folder, band_limited(500, 60.0), 10, {{"theta", "80"}});
    const std::string name = legs ? "0/c" : "0/m";
    const TracePtr whole = run_quietly(request);
    const auto& error = values_of(*whole, "reconstruction/" + name + "/error");
    const std::size_t copies = legs ? 2 : 1;
    CHECK_EQUAL(error.size(), 500 * copies);
    request.every = 7;
    request.recording.only = {"reconstruction", "basis"};
    const TracePtr thin = run_quietly(request);
    CHECK(!thin->find("state/" + name) && !thin->find("signal/" + name) && thin->find("basis/" + name + "/place"));
    const auto& few = values_of(*thin, "reconstruction/" + name + "/error");
    CHECK_EQUAL(few.size(), thin->steps.size() * copies);
    for (std::size_t row = 0; row < thin->steps.size(); ++row)
      for (std::size_t j = 0; j < copies; ++j)
        CHECK_EQUAL(few[row * copies + j], error[static_cast<std::size_t>(thin->steps[row]) * copies + j]);
    request.every = 1;
    for (const std::string& form : card(builtin_registry(), request.preset).forms) {
      request.form = form;
      try {
        const TracePtr other = run_quietly(request);
        const auto& same = values_of(*other, "reconstruction/" + name + "/error");
        CHECK_EQUAL(same.size(), error.size());
        for (std::size_t i = 0; i < error.size(); ++i) CHECK_SAYS(std::abs(same[i] - error[i]) <= 1e-7 * (1.0 + error[i]), form);
      } catch (const Error& refused) {  // of the card's forms those of this variant
        CHECK_SAYS(std::string(refused.what()).find("has no exact") != std::string::npos, refused.what());
      }
    }
    request.recording.only = {"state"};
    request.form = "sequential";
    const TracePtr states = run_quietly(request);
    CHECK(states->find("state/" + name) && states->matching("reconstruction/").empty() && states->matching("basis/").empty());
  }
}

TEST_CASE("where the past is not known nothing is claimed") {
  const test::Scratch folder;
  // Beyond l_max the coefficients are no fit of the past.
  RunRequest request =
      request_for("hippo-legs", band_limited(120, 40.0), {{"input", "direct"}, {"order", "6"}, {"init_t", "2"}, {"l_max", "52"}});
  TracePtr trace = run_quietly(request);
  const auto &error = values_of(*trace, "reconstruction/0/c/error"), &window = values_of(*trace, "reconstruction/0/c/window");
  for (std::size_t t = 0; t < 120; ++t) {
    CHECK_EQUAL(std::isnan(error[t]), t > 50);
    CHECK_EQUAL(std::isnan(window[t]), t > 50);
  }
  const auto said = [&](const std::string& words) {
    return std::any_of(trace->info.notes.begin(), trace->info.notes.end(),
                       [&](const Sentence& note) { return note.terminal_text().find(words) != std::string::npos; });
  };
  CHECK(said("l_max = 52"));

  // A continued run does not know what its state was written with.
  RunResult first = run(builtin_registry(), request, {}, {});
  save_state(first.state, folder / "state.npz");
  request.state = folder / "state.npz";
  trace = run_quietly(request);
  for (const double e : values_of(*trace, "reconstruction/0/c/error")) CHECK(std::isnan(e));
  CHECK(said("begins with a state"));
  RunRequest line = bare_lmu(folder, band_limited(120, 40.0), 6, {{"theta", "30"}});
  first = run(builtin_registry(), line, {}, {});
  save_state(first.state, folder / "line.npz");
  line.state = folder / "line.npz";
  trace = run_quietly(line);
  for (std::size_t t = 0; t < 120; ++t) CHECK_EQUAL(std::isnan(values_of(*trace, "reconstruction/0/m/error")[t]), t < 29);

  // A signal that is 0 throughout the window has no relative error.
  Sequence impulse = make_task("impulse", {.length = 100, .seed = 1});
  trace = run_quietly(bare_lmu(folder, impulse, 6, {{"theta", "30"}}));
  const auto at = static_cast<std::size_t>(std::max_element(impulse.input.begin(), impulse.input.end()) - impulse.input.begin());
  for (std::size_t t = 0; t < 100; ++t) CHECK_EQUAL(std::isnan(values_of(*trace, "reconstruction/0/m/error")[t]), t < at || t >= at + 30);
}

TEST_CASE("a run that ends early keeps as many errors as rows") {
  const test::Scratch folder;
  const auto consistent = [](const Trace& trace, const std::string& name) {
    const auto rows = static_cast<std::int64_t>(trace.steps.size());
    for (const std::string& key :
         {"signal/" + name, "reconstruction/" + name + "/error", "reconstruction/" + name + "/window", "state/" + name}) {
      const TraceArray* array = trace.find(key);
      CHECK_SAYS(array && array->shape[0] == rows && std::ssize(*array->real) == array->size(), key);
    }
    CHECK(trace.find("basis/" + name) && trace.find("basis/" + name + "/place"));
  };
  // Euler's step of a delay line is unstable when the window is short for the order.
  TracePtr trace = run_quietly(bare_lmu(folder, band_limited(4000, 40.0), 32, {{"theta", "20"}, {"discretisation", "euler"}}));
  CHECK(trace->info.outcome == Outcome::diverged);
  CHECK(!trace->steps.empty() && trace->steps.size() < 4000);
  consistent(*trace, "0/m");

  std::stop_source stop;
  const RunRequest request = bare_lmu(folder, band_limited(200'000, 40.0), 16, {{"theta", "100"}});
  trace = run(
              builtin_registry(), request,
              [&](double fraction, std::string_view) {
                if (fraction > 0.1) stop.request_stop();
              },
              stop.get_token())
              .trace;
  CHECK(trace->info.outcome == Outcome::cancelled);
  CHECK(!trace->steps.empty() && trace->steps.back() < 199'999);
  consistent(*trace, "0/m");
  CHECK(!std::isnan(values_of(*trace, "reconstruction/0/m/error").back()));
}
