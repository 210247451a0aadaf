// SPDX-License-Identifier: GPL-3.0-or-later
// The sensitivity of each step's output to each step's input: the Frobenius norms of the blocks dy_t/du_s of the Jacobian of all outputs by
// all inputs.
//
// By forward mode: a direction in which the input of one step alone moves gives its column for all t at once. The copies of a batch, which
// are all the sequence of the run, are moved in as many directions; the moves at the end of a segment are the start of the next one.
// Segments are short, and between them each direction gets a power of two of its own, so that a move which fades or grows beyond the range
// of numbers differs from none.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "array/demand.h"
#include "experiment/record/analysis.h"
#include "experiment/weights/weights.h"

namespace reclab {
namespace {

/// Columns that a picture can show, entries of the array, copies side by side, and the memory that they may take beside the run.
constexpr std::int64_t most_columns = 512, most_entries = std::int64_t{1} << 21, most_copies = 32;
constexpr double most_bytes = 256.0 * 1048576.0;
/// Seconds that it may take unless it was asked for by name, and those of a floating-point operation and of a call of the backend, of the
/// slower kind.
constexpr double most_seconds = 5.0, an_operation = 2e-10, a_call = 5e-7;
constexpr double tangent_share = 2.0;                       // relative to a pass forward: a product has a term for each factor
constexpr std::int64_t double_steps = 32, float_steps = 8;  // of a segment: over so many the precision bears nine decades a step, and four
constexpr int apart = 24;  // of a direction's largest entry from 1, as powers of two, beyond which it gets another unit
constexpr double infinity = std::numeric_limits<double>::infinity();

/// log10 of the root of the sum of two squares, of which the logarithms are given.
double log10_hypot(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a < b) std::swap(a, b);
  return std::isinf(a) || b == -infinity ? a : a + 0.5 * std::log10(1.0 + std::pow(10.0, 2.0 * (b - a)));
}

class Sensitivity final : public Analysis {
 public:
  using Analysis::Analysis;
  Kinds kinds() const override { return {Kind::sensitivity}; }

  /// Keeps a copy of the parameters, which move into the trace when the recording ends.
  void plan() override {
    if (wanted()) parameters_ = record_.prepared.parameters;
  }

  bool revisit(Rollout& run) override {
    if (!wanted()) return false;
    record_.where = "in the sensitivities";
    const RunRequest& request = record_.request;
    Prepared& prepared = record_.prepared;
    const Model model(prepared.architecture, prepared.hyper, parameters_, prepared.backend, prepared.real);
    width_ = request.sequence->width;
    copies_ = std::clamp(static_cast<std::int64_t>(most_bytes / (2.0 * static_cast<double>(run.bytes()))), std::int64_t{1},
                         std::min(most_copies, record_.length() * width_));
    InitialState initial;
    if (!request.state.empty()) {
      initial = load_state(request.state, record_.shape_network());
      copies_ = 1;  // the state is that of one
    }
    Rollout::Options options;
    options.cached_steps = initial.cached_steps;
    if (!record_.shape_network().needs_one_segment())
      options.segment = std::min(prepared.real == DType::f32 ? float_steps : double_steps, record_.length());
    Rollout rollout(model, Batch(request.sequence, prepared.loss, copies_), options);
    rollout.set_initial(initial.values);
    choose(rollout.cost());
    blocks_ = std::vector<Block>(static_cast<std::size_t>((directions() + copies_ - 1) / copies_));
    powers_.assign(static_cast<std::size_t>(directions()), 0);
    norms_.assign(rows_.size() * columns_.size(), -infinity);
    if (const auto bad = rollout.forward([&](const Rollout::Segment& segment) { push(segment); }, record_.stop)) {
      record_.note(kinds(), "Sensitivities were left out: beside the run, " + sentence(*bad) + ".");
      return false;
    }
    put();
    return true;
  }

 private:
  struct Block {
    std::vector<DeviceArray> states;  // how each moves where the next segment begins; empty: it stands still
  };
  /// Only where it was chosen: as wide as the sequence is long, it is no part of everything that there is.
  bool wanted() const {
    const RecordingOptions& recording = record_.request.recording;
    return record_.wants(Kind::sensitivity) && (!recording.only.empty() || !recording.kinds.has_all(recordable()));
  }

  Parameters parameters_;
  std::int64_t width_ = 1, copies_ = 1;
  std::vector<std::int64_t> rows_, columns_;  // steps
  std::vector<Block> blocks_;                 // of as many directions as there are copies
  std::vector<int> powers_;                   // by direction: the unit of its tangents, as a power of two
  std::vector<double> norms_;                 // [rows, columns], log10
  DeviceArray seed_;

  std::int64_t directions() const { return std::ssize(columns_) * width_; }

  /// The columns that are worth their time, evenly over the steps, and the rows.
  void choose(const Cost& cost) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(record_.length()));
    std::iota(all.begin(), all.end(), 0);
    const double pass = cost.flops * an_operation + cost.launches * a_call, block = tangent_share * pass;
    const auto seconds = [&](std::int64_t columns) {
      return pass + block * std::ceil(static_cast<double>(columns * width_) / static_cast<double>(copies_));
    };
    std::int64_t n = record_.length();
    if (record_.request.every <= 0) {
      n = std::min(n, most_columns);
      if (record_.request.recording.only.empty() && seconds(n) > most_seconds)
        n = std::clamp(static_cast<std::int64_t>((most_seconds - pass) / block) * copies_ / width_, std::int64_t{1}, n);
    }
    columns_ = thinned(all, n);
    rows_ = record_.request.every > 0 ? record_.trace.steps : thinned(record_.trace.steps, std::max<std::int64_t>(2, most_entries / n));
    if (n < record_.length()) {
      const std::int64_t wanted = std::min(most_columns, record_.length());
      record_.note(kinds(), "Sensitivities are to the inputs of " + std::to_string(n) + " of the " + std::to_string(all.size()) +
                                " steps, evenly spaced" +
                                (n < wanted ? "; those to " + std::to_string(wanted) + " would take about " + duration_text(seconds(wanted))
                                            : std::string()) +
                                ".");
    }
    if (rows_.size() < record_.trace.steps.size())
      record_.note(kinds(), "Sensitivities are of the outputs of " + std::to_string(rows_.size()) + " of the " +
                                std::to_string(record_.trace.steps.size()) + " steps recorded, evenly spaced.");
  }

  void push(const Rollout::Segment& segment) {
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      record_.check();
      push(segment, static_cast<std::int64_t>(b) * copies_, blocks_[b]);
      record_.report(0.9 + 0.1 *
                               (static_cast<double>(segment.first) +
                                static_cast<double>(segment.steps) * static_cast<double>(b + 1) / static_cast<double>(blocks_.size())) /
                               static_cast<double>(record_.length()),
                     "sensitivities");
    }
  }

  /// The directions from one on, one in each copy: through the segment.
  void push(const Rollout::Segment& segment, std::int64_t from, Block& block) {
    Network& network = segment.network;
    Graph& graph = network.graph();
    Backend& backend = record_.prepared.backend;
    const DType real = record_.prepared.real;
    const std::int64_t entries = segment.steps * copies_ * width_, here = std::min(copies_, directions() - from);
    std::vector<double> seed;
    for (std::int64_t copy = 0; copy < here; ++copy) {
      const std::int64_t step = columns_[static_cast<std::size_t>((from + copy) / width_)] - segment.first;
      if (step < 0 || step >= segment.steps) continue;
      seed.resize(static_cast<std::size_t>(entries));
      seed[static_cast<std::size_t>((step * copies_ + copy) * width_ + (from + copy) % width_)] = 1.0;
    }
    const auto& states = network.states();
    const bool moved = std::ranges::any_of(block.states, [](const DeviceArray& state) { return static_cast<bool>(state); });
    if (seed.empty() && !moved) return;
    if (!seed.empty()) {
      const auto values = narrowed(real, seed);
      backend.upload(seed_.resize(backend, real, entries), values.data(), values.size());
    }
    graph.bind_tangent(network.input(), seed.empty() ? nullptr : seed_.data());
    block.states.resize(states.size());
    const auto bind_states = [&](bool moving) {
      for (std::size_t i = 0; i < states.size(); ++i) {
        const void* tangent = moving && block.states[i] ? block.states[i].data() : nullptr;
        graph.bind_tangent(states[i].initial, tangent);
        if (states[i].unscaled_initial) graph.bind_tangent(states[i].unscaled_initial, tangent);
      }
    };
    bind_states(true);
    graph.push_tangents(record_.stop);
    add_output(segment, from, here);
    // The next segment's states begin where this one's end, and nothing of a graph is kept moving.
    std::vector<DeviceArray> left(states.size());
    for (std::size_t i = 0; i < states.size(); ++i) {
      const Var last = states[i].final_state;
      const void* tangent = last ? graph.tangent(last) : nullptr;
      if (!tangent || count(last.shape()) == 0 || count(last.shape()) != count(states[i].initial.shape())) continue;
      left[i].resize(backend, last.dtype(), count(last.shape()));
      backend.copy(left[i].data(), tangent, left[i].bytes());
    }
    graph.bind_tangent(network.input(), nullptr);
    bind_states(false);
    block.states = std::move(left);
    rescale(network, from, here, block);
  }

  /// Each direction in units of which its largest entry is near 1.
  void rescale(const Network& network, std::int64_t from, std::int64_t here, Block& block) {
    Backend& backend = record_.prepared.backend;
    const auto& states = network.states();
    struct Moved {
      DType real;
      std::vector<double> values;
      std::int64_t rows, entries;  // [rows, copies, entries]
    };
    std::vector<Moved> all(states.size());
    std::vector<double> largest(static_cast<std::size_t>(here), 0.0);
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (!block.states[i]) continue;
      const Var initial = states[i].initial;
      const std::int64_t parts = is_complex(initial.dtype()) ? 2 : 1, n = count(initial.shape()) * parts;
      Moved& own = all[i];
      own = {real_of(initial.dtype()), to_double(backend, real_of(initial.dtype()), block.states[i].data(), n),
             states[i].memory ? 1 : initial.dim(0), 0};
      own.entries = n / (own.rows * copies_);
      RECLAB_DEMAND(initial.dim(states[i].memory ? 0 : 1) == copies_ && "a state of a batch has its sequences side by side");
      visit(own.rows, own.entries, here, [&](std::int64_t copy, std::size_t at) {
        largest[static_cast<std::size_t>(copy)] = std::max(largest[static_cast<std::size_t>(copy)], std::abs(own.values[at]));
      });
    }
    std::vector<int> by(static_cast<std::size_t>(here), 0);
    for (std::size_t copy = 0; copy < by.size(); ++copy) {
      const double x = largest[copy];
      if (const int exponent = x > 0.0 && std::isfinite(x) ? std::ilogb(x) : 0; std::abs(exponent) > apart) by[copy] = exponent;
      powers_[static_cast<std::size_t>(from) + copy] += by[copy];
    }
    if (std::ranges::all_of(by, [](int power) { return power == 0; })) return;
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (!block.states[i]) continue;
      Moved& own = all[i];
      visit(own.rows, own.entries, here,
            [&](std::int64_t copy, std::size_t at) { own.values[at] = std::ldexp(own.values[at], -by[static_cast<std::size_t>(copy)]); });
      const auto values = narrowed(own.real, own.values);
      backend.upload(block.states[i].data(), values.data(), values.size());
    }
  }

  /// The entries of an array [rows, copies, entries] that belong to the first so many copies.
  template <class F>
  void visit(std::int64_t rows, std::int64_t entries, std::int64_t here, const F& f) const {
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t copy = 0; copy < here; ++copy)
        for (std::int64_t entry = 0; entry < entries; ++entry) f(copy, static_cast<std::size_t>((row * copies_ + copy) * entries + entry));
  }

  void add_output(const Rollout::Segment& segment, std::int64_t from, std::int64_t here) {
    const Var output = segment.network.output();
    const void* tangent = segment.network.graph().tangent(output);
    if (!tangent) return;
    const std::int64_t channels = output.dim(-1);
    const auto moved = to_double(record_.prepared.backend, record_.prepared.real, tangent, segment.steps * copies_ * channels);
    for (auto row = std::ranges::lower_bound(rows_, segment.first); row != rows_.end() && *row < segment.first + segment.steps; ++row)
      for (std::int64_t copy = 0; copy < here; ++copy) {
        double& norm = norms_[static_cast<std::size_t>((row - rows_.begin()) * std::ssize(columns_) + (from + copy) / width_)];
        double own = 0.0;
        for (std::int64_t j = 0; j < channels; ++j)  // without squares, which would leave the range first
          own = std::hypot(own, moved[static_cast<std::size_t>(((*row - segment.first) * copies_ + copy) * channels + j)]);
        norm = log10_hypot(norm, std::log10(own) + powers_[static_cast<std::size_t>(from + copy)] * std::numbers::ln2 / std::numbers::ln10);
      }
  }

  void put() {
    TraceArray array = timed(key_of(Kind::sensitivity), {std::ssize(columns_)}, {{"input step", "", {}}}, "log10",
                             "log10 of |dy_t/du_s|, the Frobenius norm over the channels of the output of step t and of the input of step "
                             "s: −∞ where the one does not depend on the other.");
    for (const std::int64_t step : columns_) array.axes.back().labels.push_back(std::to_string(step));
    array.shape[0] = std::ssize(rows_);
    if (rows_ != record_.trace.steps) array.steps = rows_;
    // A model that takes all steps at once has no segments between which a unit could change.
    const bool narrow = record_.prepared.real == DType::f32;
    const double least = narrow ? std::log10(std::numeric_limits<float>::min()) : std::log10(std::numeric_limits<double>::min());
    if (record_.shape_network().needs_one_segment() &&
        std::ranges::any_of(norms_, [&](double x) { return std::isfinite(x) && x < 0.9 * least; }))
      record_.note(kinds(), std::string("This model takes all steps at once, and what is smaller than ") + (narrow ? "10⁻³⁸" : "10⁻³⁰⁸") +
                                " counts as 0 here: without colour may also mean that small.");
    record_.note_not_finite(array.key, rows_, std::ssize(norms_),
                            [&](std::size_t i) { return !std::isnan(norms_[i]) && norms_[i] != std::numeric_limits<double>::infinity(); });
    put_real(record_.trace, std::move(array), std::move(norms_));
  }
};

}  // namespace

namespace analyses {
std::unique_ptr<Analysis> sensitivity(Record& record) { return std::make_unique<Sensitivity>(record); }
}  // namespace analyses
}  // namespace reclab
