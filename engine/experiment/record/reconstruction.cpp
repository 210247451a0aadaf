// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/record/reconstruction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "array/demand.h"
#include "array/error.h"

namespace reclab {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();
/// Past steps that an error is taken from: at most so many, and fewer (but not below the least) where the whole run would take more
/// multiplications than a second or two has.
constexpr std::int64_t most_places = 128, least_places = 32;
constexpr double most_work = 2e9;

}  // namespace

Reconstruction::Reconstruction(const Network& network, std::size_t number, std::int64_t rows, bool continued)
    : Reconstruction(network, network.histories()[number], rows, continued) {
  past_number_ = number;
}

Reconstruction::Reconstruction(const Network& network, const Network::HistoryVar& past, std::int64_t rows, bool continued)
    : name_(std::to_string(past.layer) + "/" + past.state),
      basis_(past.basis),
      unknown_(note(past, std::numeric_limits<std::int64_t>::max(), continued)),
      continued_(continued) {
  for (std::size_t i = 0; i < network.states().size(); ++i) {
    const auto& state = network.states()[i];
    if (state.layer != past.layer || state.name != past.state) continue;
    RECLAB_DEMAND(state.shape.size() == 2 && state.trajectory);
    state_number_ = i;
    copies_ = state.shape[0];
    order_ = state.shape[1];
  }
  RECLAB_DEMAND(past.signal.dim(-1) == copies_);
  const double each = static_cast<double>(rows) * static_cast<double>(copies_ * order_);
  most_ = std::clamp(static_cast<std::int64_t>(most_work / std::max(each, 1.0)), least_places, most_places);
}

void Reconstruction::measure(const Parameters& parameters) {
  if (basis_.inverse_window.empty()) return;
  const std::string key = name_.substr(0, name_.find('/') + 1) + basis_.inverse_window;
  for (const auto& entry : parameters.entries()) {
    if (entry.name != key) continue;
    if (entry.values[0] > 0.0) {
      basis_.window = 1.0 / entry.values[0];
    } else {
      basis_.last = -1;
      unknown_ = "The memory of state/" + name_ + " has no window, since " + key + " is not above 0.";
    }
  }
}

double Reconstruction::window(std::int64_t step) const {
  if (step > basis_.last) return none;
  if (basis_.window > 0.0) return basis_.window;
  return continued_ ? none : std::max(1.0, basis_.first + static_cast<double>(step));
}

void Reconstruction::add(const Rollout::Segment& segment, const std::function<bool(std::int64_t)>& recorded, const std::stop_token& stop) {
  const Graph& graph = segment.network.graph();
  const Var signal = segment.network.histories()[past_number_].signal, state = segment.network.states()[state_number_].trajectory;
  const auto values = to_double(graph.backend(), signal.dtype(), graph.value(signal), segment.steps * copies_);
  past_.insert(past_.end(), values.begin(), values.end());
  for (std::int64_t t = 0; t < segment.steps; ++t) {
    if (!recorded(segment.first + t)) continue;
    if (stop.stop_requested()) throw Cancelled();
    kept_.insert(kept_.end(), values.begin() + t * copies_, values.begin() + (t + 1) * copies_);
    compare(segment.first + t, to_double(graph.backend(), state.dtype(), graph.value(state), copies_ * order_, t * copies_ * order_));
  }
}

void Reconstruction::compare(std::int64_t step, const std::vector<double>& state) {
  const double reach = window(step);
  reach_.push_back(reach);
  // Steps whose middle lies in the window.
  const std::int64_t steps = std::isnan(reach) ? 0 : static_cast<std::int64_t>(std::floor(reach + 0.5));
  if (!steps || (continued_ && steps > step + 1)) {
    error_.insert(error_.end(), static_cast<std::size_t>(copies_), none);
    return;
  }
  const std::int64_t count = std::min(steps, most_);
  if (basis_.window <= 0.0 || ages_.empty()) {
    ages_.clear();
    places_.clear();
    for (std::int64_t i = 0; i < count; ++i) {
      ages_.push_back((2 * i + 1) * steps / (2 * count));  // the middle of each of `count` parts
      places_.push_back(1.0 - (static_cast<double>(ages_.back()) + 0.5) / reach);
    }
    values_.resize(static_cast<std::size_t>(order_ * count));
    basis_.values(places_, values_);
  }
  const auto n = static_cast<std::size_t>(count);
  for (std::int64_t copy = 0; copy < copies_; ++copy) {
    guess_.assign(n, 0.0);
    for (std::int64_t k = 0; k < order_; ++k) {
      const double coefficient = state[static_cast<std::size_t>(copy * order_ + k)];
      const double* row = values_.data() + static_cast<std::size_t>(k) * n;
      for (std::size_t i = 0; i < n; ++i) guess_[i] += coefficient * row[i];
    }
    double wrong = 0.0, whole = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t at = step - ages_[i];
      const double was = at >= 0 ? past_[static_cast<std::size_t>(at * copies_ + copy)] : 0.0;
      wrong += (guess_[i] - was) * (guess_[i] - was);
      whole += was * was;
    }
    error_.push_back(whole > 0.0 ? std::sqrt(wrong / whole) : wrong == 0.0 ? 0.0 : none);
  }
}

void Reconstruction::put(Trace& trace, std::int64_t rows, const std::function<bool(std::string_view)>& wants) const {
  const auto array = [&](std::string name, Shape shape, std::vector<Axis> axes, std::string unit, std::string text,
                         std::vector<double> values) {
    if (!wants(name)) return;
    TraceArray made;
    made.key = std::move(name);
    made.shape = std::move(shape);
    made.axes = std::move(axes);
    made.unit = std::move(unit);
    made.text = std::move(text);
    values.resize(static_cast<std::size_t>(count(made.shape)));
    made.real = std::make_shared<const std::vector<double>>(std::move(values));
    trace.put(std::move(made));
  };
  const bool finite = basis_.window > 0.0;
  const auto key = [this](Kind kind, const std::string& part = {}) { return prefix_of(kind) + name_ + part; };
  const std::string state = key(Kind::state), basis = key(Kind::basis);
  array(key(Kind::signal), {rows, copies_}, {{"time", "", {}}, {"copy", "", {}}}, "",
        "What " + state + " was written with, whose past it holds." + (continued_ ? "" : " It was 0 before the first step."), kept_);

  const std::int64_t points = std::clamp<std::int64_t>(4 * order_ + 1, 201, 1025);
  std::vector<double> places, seen;
  for (std::int64_t i = 0; i < points; ++i) {
    const double angle = std::numbers::pi * static_cast<double>(i) / static_cast<double>(points - 1);
    places.push_back(0.5 - 0.5 * std::cos(angle));  // close at the ends, where polynomials turn fastest
    seen.push_back(finite ? basis_.window * (1.0 - places.back()) : places.back());
  }
  std::vector<double> values(static_cast<std::size_t>(points * order_)), transposed(values.size());
  basis_.values(places, values);
  for (std::int64_t i = 0; i < points; ++i)
    for (std::int64_t k = 0; k < order_; ++k)
      transposed[static_cast<std::size_t>(i * order_ + k)] = values[static_cast<std::size_t>(k * points + i)];
  const std::string unit = finite ? "steps ago" : "share of the past";
  array(basis, {points, order_}, {{"place", unit, {}}, {basis_.coefficient, "", {}}}, "",
        "The functions whose coefficients " + state +
            " holds, from the oldest end of the window to now: the signal there is about the sum of "
            "basis times state.",
        std::move(transposed));
  array(basis + "/place", {points}, {{"place", "", {}}}, unit,
        finite ? "Where " + basis + " is given, in steps before the end of the present step, whose middle is half a step ago."
               : "Where " + basis + " is given: 0 the beginning, 1 the end of the present step.",
        std::move(seen));

  array(key(Kind::reconstruction, "/error"), {rows, copies_}, {{"time", "", {}}, {"copy", "", {}}}, "",
        "Root of the mean square of reconstruction less signal, over that of the signal, over the steps of the window (at most " +
            std::to_string(most_) +
            " of them, evenly); NaN where the signal is 0 throughout the window and its reconstruction is not, or where it is not known.",
        error_);
  const bool known = std::none_of(reach_.begin(), reach_.begin() + rows, [](double reach) { return std::isnan(reach); });
  array(key(Kind::reconstruction, "/window"), {rows}, {{"time", "", {}}}, "steps",
        "How far back the state reaches." + (known ? std::string() : " NaN where this is not known. " + unknown_), reach_);
}

std::string Reconstruction::note(const Network::HistoryVar& past, std::int64_t length, bool continued) {
  if (continued && past.basis.window <= 0.0)
    return "The past of state/" + std::to_string(past.layer) + "/" + past.state +
           " is not compared with its signal: this run begins with a state, and what came before is not known.";
  return length - 1 > past.basis.last ? past.basis.beyond : std::string();
}

}  // namespace reclab
