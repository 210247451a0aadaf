// SPDX-License-Identifier: GPL-3.0-or-later
// |dy_t/du_s| of a run against closed forms and central differences, over segments, and which rows and columns there are.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "experiment/command/command.h"
#include "experiment/experiment.h"
#include "models/registry.h"
#include "runs.h"
#include "scratch.h"
#include "test.h"

using namespace reclab;
using test::finished;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// On noise; which rows there are is the run's to choose.
RunRequest request_for(const std::string& architecture, std::int64_t length, test::Settings set) {
  RunRequest request = test::request_of(architecture, make_task("noise", {.length = length, .seed = 1}), std::move(set));
  request.every = 0;
  request.recording = recording_of({"sensitivity", "param", "output"});
  return request;
}

struct Recorded {
  explicit Recorded(const Trace& trace) : array(*trace.find("sensitivity")), rows(array.steps.empty() ? trace.steps : array.steps) {
    for (const std::string& label : array.axes[1].labels) columns.push_back(std::stoll(label));
    CHECK_EQUAL(std::ssize(rows), array.shape[0]);
    CHECK_EQUAL(std::ssize(columns), array.shape[1]);
  }
  double at(std::size_t row, std::size_t column) const { return (*array.real)[row * columns.size() + column]; }
  const TraceArray& array;
  std::vector<std::int64_t> rows, columns;
};

bool noted(const Trace& trace, const std::string& text) {
  return std::ranges::any_of(trace.info.note_kinds, [&](const auto& note) {
    return note.first == Kind::sensitivity && note.second.terminal_text().find(text) != std::string::npos;
  });
}

/// The sequence with one number of it changed.
SharedSequence changed(const SharedSequence& sequence, std::int64_t step, std::int64_t channel, double by) {
  Sequence other = *sequence;
  other.input[static_cast<std::size_t>(step * other.width + channel)] += by;
  return other;
}

}  // namespace

TEST_CASE("that of the bare LRU is its kernel, over several segments") {
  // Long enough that the copies side by side do not fit into one segment; complex states are carried from one to the next.
  RunRequest request = request_for("lru", 600, {{"width", "1"}, {"state", "24"}, {"block", "none"}});
  request.every = 1;
  const TracePtr trace = finished(request);
  const Recorded recorded(*trace);
  CHECK(recorded.array.shape == (Shape{600, 600}));
  const auto param = [&](const std::string& name) -> const std::vector<double>& { return *trace->find("param/0/" + name)->real; };
  std::vector<double> kernel(600);
  for (std::size_t k = 0; k < kernel.size(); ++k) {
    for (std::size_t n = 0; n < 24; ++n) {
      const std::complex<double> lambda = std::exp(std::complex<double>(-std::exp(param("nu_log")[n]), std::exp(param("theta_log")[n])));
      const std::complex<double> b(param("B_re")[n], param("B_im")[n]), c(param("C_re")[n], param("C_im")[n]);
      kernel[k] += (c * std::pow(lambda, static_cast<double>(k)) * std::exp(param("gamma_log")[n]) * b).real();
    }
  }
  kernel[0] += param("D")[0];
  double largest = 0.0, worst = 0.0;
  for (const double x : kernel) largest = std::max(largest, std::abs(x));
  for (std::size_t t = 0; t < 600; ++t)
    for (std::size_t s = 0; s < 600; ++s) {
      if (s > t)
        CHECK_EQUAL(recorded.at(t, s), -infinity);
      else
        worst = std::max(worst, std::abs(std::pow(10.0, recorded.at(t, s)) - std::abs(kernel[t - s])) / largest);
    }
  CHECK_SAYS(worst < 1e-12, std::to_string(worst));
}

TEST_CASE("that of an LSTM is how its outputs move when an input is moved, in all channels") {
  RunRequest request = request_for("lstm", 40, {{"width", "5"}});
  const TracePtr trace = finished(request);
  const Recorded recorded(*trace);
  const std::int64_t width = request.sequence->width, outputs = trace->find("output")->shape[1];
  CHECK_EQUAL(outputs, 5);
  const double h = 1e-5;
  double worst = 0.0;
  for (const std::int64_t s : {0, 7, 39}) {
    std::vector<double> squares(40);
    for (std::int64_t i = 0; i < width; ++i) {
      RunRequest up = request, down = request;
      up.sequence = changed(request.sequence, s, i, h);
      down.sequence = changed(request.sequence, s, i, -h);
      const TracePtr above = finished(up), below = finished(down);
      for (std::size_t k = 0; k < static_cast<std::size_t>(40 * outputs); ++k) {
        const double slope = ((*above->find("output")->real)[k] - (*below->find("output")->real)[k]) / (2.0 * h);
        squares[k / static_cast<std::size_t>(outputs)] += slope * slope;
      }
    }
    for (std::size_t t = 0; t < 40; ++t)
      worst = std::max(worst, std::abs(std::pow(10.0, recorded.at(t, static_cast<std::size_t>(s))) - std::sqrt(squares[t])));
  }
  CHECK_SAYS(worst < 1e-9, std::to_string(worst));
}

TEST_CASE("a continued run has what the same steps of the whole one have") {
  const test::Scratch scratch;
  RunRequest request = request_for("gru", 30, {{"width", "4"}});
  const TracePtr whole = finished(request);
  Sequence first = *request.sequence, second = *request.sequence;
  const auto half = static_cast<std::ptrdiff_t>(15 * first.width);
  first.length = second.length = 15;
  first.input.resize(static_cast<std::size_t>(half));
  second.input.erase(second.input.begin(), second.input.begin() + half);
  for (Sequence* part : {&first, &second}) {
    part->time.resize(15);
    part->target.clear();
    part->mask.clear();
  }
  RunRequest before = request, after = request;
  before.sequence = first;
  after.sequence = second;
  after.state = scratch / "state.npz";
  save_state(run(builtin_registry(), before, {}, {}).state, after.state);
  const TracePtr rest = finished(after);
  const Recorded all(*whole), own(*rest);
  for (std::size_t t = 0; t < 15; ++t)
    for (std::size_t s = 0; s <= t; ++s) CHECK(std::abs(own.at(t, s) - all.at(15 + t, 15 + s)) < 1e-9);
}

TEST_CASE("columns and rows that are left out are said") {
  RunRequest request = request_for("lru", 3000, {{"width", "1"}, {"state", "2"}, {"block", "none"}});
  const TracePtr some = finished(request);
  const Recorded recorded(*some);
  CHECK_EQUAL(std::ssize(recorded.columns), 512);
  CHECK_EQUAL(recorded.columns.front(), 0);
  CHECK_EQUAL(recorded.columns.back(), 2999);
  CHECK(noted(*some, "Sensitivities are to the inputs of 512 of the 3000 steps, evenly spaced."));
  request.sequence = make_task("noise", {.length = 5000, .seed = 1});
  const TracePtr fewer = finished(request);
  CHECK_EQUAL(std::ssize(Recorded(*fewer).rows), 4096);
  CHECK(noted(*fewer, "Sensitivities are of the outputs of 4096 of the 5000 steps recorded, evenly spaced."));
}

TEST_CASE("what fades below the range of numbers is told from what is not there") {
  // The recurrent matrix is orthogonal times ρ, so that each step multiplies all sensitivities with ρ.
  for (const auto& [dtype, radius, tolerance] : {std::tuple{"f64", "0.001", 1e-9}, std::tuple{"f32", "0.01", 1e-3}}) {
    RunRequest request = request_for("elman", 300, {{"width", "5"}, {"activation", "identity"}, {"spectral_radius", radius}});
    request.dtype = dtype;
    const TracePtr trace = finished(request);
    const Recorded recorded(*trace);
    CHECK_EQUAL(std::ssize(recorded.columns), 300);
    double worst = 0.0;
    for (std::size_t t = 0; t < 300; ++t)
      for (std::size_t s = 0; s < 300; ++s) {
        if (s > t)
          CHECK_EQUAL(recorded.at(t, s), -infinity);
        else
          worst =
              std::max(worst, std::abs(recorded.at(t, s) - recorded.at(s, s) - static_cast<double>(t - s) * std::log10(std::stod(radius))));
      }
    CHECK_SAYS(worst < tolerance, std::string(dtype) + ": " + std::to_string(worst));
    CHECK(recorded.at(299, 0) < (dtype == std::string("f64") ? -800.0 : -500.0));
  }
}
