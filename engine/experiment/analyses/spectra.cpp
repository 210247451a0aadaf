// SPDX-License-Identifier: GPL-3.0-or-later
// The eigenvalues of each layer's transition: at the focus first, then at every recorded step.
#include <algorithm>
#include <cmath>
#include <thread>

#include "algebra/eigen.h"
#include "experiment/record/analysis.h"

namespace reclab {
namespace {

/// Seconds of an operation of eigenvalue_work() on one core of the slower kind, and of the eigenvalues of one step at most, divided by
/// (size)^3.
constexpr double eigenvalue_operation = 1.5e-10, eigenvalue_cost = 4e-9;

/// Puts the eigenvalues of one block where they stand among all of a step's: once for every column that it acts on.
void put_block(const Transition& of, std::int64_t block, const std::vector<std::complex<double>>& values,
               std::span<std::complex<double>> all) {
  for (std::int64_t column = 0; column < of.repeats; ++column)
    std::copy(values.begin(), values.end(), all.begin() + (block * of.repeats + column) * of.size);
}

/// Of all blocks of a step.
void low_rank_spectrum(Memory& memory, std::int64_t t, std::span<std::complex<double>> all) {
  const Transition of = memory.transition();
  const std::int64_t each = of.size * of.rank;
  std::vector<double> scale(static_cast<std::size_t>(of.count)), u(static_cast<std::size_t>(of.count * each)), v(u.size());
  memory.low_rank(t, scale, u, v);
  for (std::int64_t block = 0; block < of.count; ++block) {
    const auto from = static_cast<std::size_t>(block * each), n = static_cast<std::size_t>(each);
    put_block(of, block,
              low_rank_eigenvalues(scale[static_cast<std::size_t>(block)], std::span(u).subspan(from, n), std::span(v).subspan(from, n),
                                   of.size, of.rank),
              all);
  }
}

class Spectra final : public Analysis {
 public:
  using Analysis::Analysis;
  Kinds kinds() const override { return {Kind::spectrum}; }

  bool of_states() const override { return record_.request.recording.kinds.has(Kind::spectrum) || record_.request.recording.focus >= 0; }
  void plan() override {
    if (!record_.any_transition())
      record_.mark_unavailable(
          {Kind::spectrum}, "No step of this model computes its state from the state before, so there is no matrix to have eigenvalues.");
    note_without_transition();
  }

  double bytes_a_row() const override {
    double bytes = 0.0;
    for (std::size_t layer = 0; layer < record_.layers(); ++layer) {
      const Transition own = record_.transition(layer);
      const bool dense = own.kind == Transition::Kind::blocks;
      if (record_.per_step(layer) && record_.request.recording.kinds.has(Kind::spectrum) &&
          !(dense && record_.request.recording.dense_rows))
        bytes += 16.0 * static_cast<double>(own.width());
    }
    return bytes;
  }

  /// The transition at the focus, while the segment that holds it stands.
  void forward(const Rollout::Segment& segment) override {
    const std::int64_t step = focus();
    if (step < segment.first || step >= segment.first + segment.steps) return;
    at_focus_.clear();
    for (std::size_t layer = 0; layer < record_.layers(); ++layer) {
      const auto memories = segment.network.memories(static_cast<int>(layer));
      AtFocus own{layer, transition_of(memories), {}, {}};
      if (own.of.kind == Transition::Kind::none || !record_.names(key_of(Kind::spectrum, layer))) continue;
      if (own.of.kind != Transition::Kind::blocks) {
        own.values.resize(static_cast<std::size_t>(own.of.width()));
        values_at(memories, own.of, memories[0]->next_move(record_.own_step(segment, layer, step)), own.values);
      } else {
        own.jacobians.resize(static_cast<std::size_t>(own.of.entries()));
        memories[0]->jacobian(memories[0]->next_move(record_.own_step(segment, layer, step)), own.jacobians);
      }
      at_focus_.push_back(std::move(own));
    }
  }

  double seconds_at_focus() const override {
    double seconds = 0.0;
    for (const AtFocus& own : at_focus_)
      seconds += own.jacobians.empty() ? 1e-9 : eigenvalue_cost * static_cast<double>(own.of.entries()) * static_cast<double>(own.of.size);
    return seconds;
  }

  void at_focus() override {
    for (AtFocus& own : at_focus_) {
      const std::int64_t square = own.of.size * own.of.size;
      if (!own.jacobians.empty()) {
        own.values.resize(static_cast<std::size_t>(own.of.width()));
        eigenvalues_of_many(
            own.of.count, own.of.size,
            [&](std::int64_t i, std::span<double> matrix) { std::copy_n(own.jacobians.begin() + i * square, square, matrix.begin()); },
            [&](std::int64_t i, const std::vector<std::complex<double>>& values) { put_block(own.of, i, values, own.values); },
            record_.stop);
        record_.check();
      }
      TraceArray array = of_layer(own.layer, 1, own.of.width());
      if (record_.per_step(own.layer)) array.steps = {focus()};
      put(std::move(array), {focus()}, std::move(own.values), !wanted());  // else they are noted with those of all steps
    }
    at_focus_.clear();
  }

  bool revisit(Rollout& rollout) override {
    if (!wanted()) return false;
    record_.where = "in the spectra";
    std::vector<LayerSpectrum> found(record_.layers());
    for (std::size_t layer = 0; layer < found.size(); ++layer) {
      auto& own = found[layer];
      if (record_.wants(key_of(Kind::spectrum, layer))) own.of = record_.transition(layer);
      if (own.of.kind == Transition::Kind::none) continue;
      const bool dense = own.of.kind == Transition::Kind::blocks;
      if (!record_.per_step(layer))
        own.steps = {0};
      else
        own.steps = dense ? thinned(record_.trace.steps, record_.request.recording.dense_rows) : record_.trace.steps;
      own.known = !dense || !record_.per_step(layer) || record_.request.recording.dense_rows > 0 || record_.request.every > 0;
      own.values.resize(own.steps.size() * static_cast<std::size_t>(own.of.width()));
    }
    const auto visit = [&](const Rollout::Segment& segment) {
      for (std::size_t layer = 0; layer < found.size(); ++layer)
        if (found[layer].of.kind != Transition::Kind::none) visit_layer(segment, layer, found[layer]);
      record_.report(0.7 + 0.15 * static_cast<double>(record_.length() - segment.first) / static_cast<double>(record_.length()), "spectra");
    };
    if (record_.all_invariant())
      rollout.visit_first(visit, record_.stop);
    else
      rollout.revisit(visit, record_.stop);
    for (std::size_t layer = 0; layer < found.size(); ++layer) {
      auto& own = found[layer];
      if (own.of.kind == Transition::Kind::none) continue;
      TraceArray array = of_layer(layer, static_cast<std::int64_t>(own.steps.size()), own.of.width());
      if (record_.per_step(layer) && own.steps != record_.trace.steps) array.steps = own.steps;
      put(std::move(array), own.steps, std::move(own.values), true);
    }
    return true;
  }

 private:
  struct AtFocus {
    std::size_t layer;
    Transition of;
    std::vector<double> jacobians;             // of one in blocks
    std::vector<std::complex<double>> values;  // of any other
  };
  struct LayerSpectrum {
    std::vector<std::int64_t> steps;
    std::vector<std::complex<double>> values;
    Transition of;
    bool known = true;  // which steps there will be; of per-step Jacobians in blocks when the first was seen
  };
  std::vector<AtFocus> at_focus_;

  bool wanted() const { return record_.wants(Kind::spectrum); }
  /// The step that is wanted first, within the sequence; -1: none.
  std::int64_t focus() const { return std::min(record_.request.recording.focus, record_.length() - 1); }

  /// Once for all layers whose memory is none that a step maps to the next.
  void note_without_transition() {
    const RecordingOptions& recording = record_.request.recording;
    if (!recording.kinds.has_any({Kind::spectrum, Kind::jacobian, Kind::jacobian_min}) && recording.focus < 0) return;
    std::int64_t without = 0;
    std::string names;
    for (std::size_t layer = 0; layer < record_.layers(); ++layer) {
      if (record_.transition(layer).kind != Transition::Kind::none || !record_.carries(layer)) continue;
      names += (without++ ? ", " : "") + std::to_string(layer);
    }
    if (!without) return;
    const bool all = without == record_.trace.info.layers;
    record_.note({Kind::spectrum, Kind::jacobian}, std::string("There are no eigenvalues and no singular values of ds_T/ds_t") +
                                                       (all ? "" : " of " + std::string(without == 1 ? "layer " : "layers ") + names) +
                                                       ": what is carried from step to step is a record of the past, or changes once a "
                                                       "segment, and no step maps it to the next as a state of fixed size.");
  }

  TraceArray of_layer(std::size_t layer, std::int64_t rows, std::int64_t n) const {
    TraceArray array;
    array.key = key_of(Kind::spectrum, layer);
    array.shape = {rows, n};
    array.axes = {{"time", "", {}}, {"eigenvalue", "", {}}};
    array.text = record_.trace.info.spectra[layer].of;
    return array;
  }

  void put(TraceArray array, const std::vector<std::int64_t>& steps, std::vector<std::complex<double>> values, bool noted) {
    if (noted)
      record_.note_not_finite(array.key, steps, std::ssize(values),
                              [&](std::size_t i) { return std::isfinite(values[i].real()) && std::isfinite(values[i].imag()); });
    array.complex = std::make_shared<const std::vector<std::complex<double>>>(std::move(values));
    record_.trace.put(std::move(array));
  }

  /// The eigenvalues without iteration: of a diagonal transition, or of one of low rank.
  static void values_at(const std::vector<Memory*>& memories, const Transition& of, std::int64_t t,
                        std::span<std::complex<double>> values) {
    if (of.kind == Transition::Kind::diagonal)
      factors_at(memories, t, values);
    else
      low_rank_spectrum(*memories[0], t, values);
  }

  /// The step in the segment whose transition stands for `step`: itself, or of one that is the same at all steps at which the state moves
  /// the first of these.
  std::int64_t shown_step(const Rollout::Segment& segment, std::size_t layer, const Memory& memory, std::int64_t step) const {
    const std::int64_t own = record_.own_step(segment, layer, step);
    return record_.per_step(layer) ? own : memory.next_move(own);
  }

  void visit_layer(const Rollout::Segment& segment, std::size_t layer, LayerSpectrum& own) {
    const auto n = static_cast<std::size_t>(own.of.width());
    const auto memories = segment.network.memories(static_cast<int>(layer));
    if (!std::exchange(own.known, true)) {
      const double cores = std::max(1u, std::thread::hardware_concurrency());
      const double work = over_blocks(*memories[0], record_.own_step(segment, layer, last_of(own.steps, segment)), eigenvalue_work);
      own.steps = record_.rows_within_budget(key_of(Kind::spectrum, layer), own.steps,
                                             work * eigenvalue_operation / cores + jacobian_seconds(*memories[0], segment.steps));
      own.values.resize(own.steps.size() * n);
    }
    const auto begin = std::lower_bound(own.steps.begin(), own.steps.end(), segment.first);
    const auto end = std::lower_bound(begin, own.steps.end(), segment.first + segment.steps);
    const auto from = static_cast<std::size_t>(begin - own.steps.begin());
    const std::span<std::complex<double>> values(own.values);
    if (own.of.kind != Transition::Kind::blocks) {
      for (auto step = begin; step != end; ++step) {
        record_.check();
        values_at(memories, own.of, shown_step(segment, layer, *memories[0], *step),
                  values.subspan(static_cast<std::size_t>(step - own.steps.begin()) * n, n));
      }
      return;
    }
    const auto blocks = static_cast<std::size_t>(own.of.count), size = static_cast<std::size_t>(own.of.size), square = size * size;
    // As many steps at a time as keep all cores busy, but no more than 64 MiB of matrices.
    const auto fit = static_cast<std::ptrdiff_t>((std::size_t{8} << 20) / std::max<std::size_t>(1, blocks * square));
    const std::ptrdiff_t together = std::clamp<std::ptrdiff_t>(fit, std::max(1u, std::thread::hardware_concurrency()), 64);
    std::vector<double> jacobians;
    for (auto at = begin; at < end; at += std::min(together, end - at)) {
      const auto some = static_cast<std::size_t>(std::min(together, end - at));
      jacobians.resize(some * blocks * square);
      for (std::size_t i = 0; i < some; ++i) {
        record_.check();
        memories[0]->jacobian(shown_step(segment, layer, *memories[0], at[static_cast<std::ptrdiff_t>(i)]),
                              std::span(jacobians).subspan(i * blocks * square, blocks * square));
      }
      const std::size_t row = from + static_cast<std::size_t>(at - begin);
      eigenvalues_of_many(
          static_cast<std::int64_t>(some * blocks), static_cast<std::int64_t>(size),
          [&](std::int64_t i, std::span<double> matrix) {
            const auto source = std::span<const double>(jacobians).subspan(static_cast<std::size_t>(i) * square, square);
            std::copy(source.begin(), source.end(), matrix.begin());
          },
          [&](std::int64_t i, const std::vector<std::complex<double>>& eigenvalues) {
            put_block(own.of, i % own.of.count, eigenvalues, values.subspan((row + static_cast<std::size_t>(i) / blocks) * n, n));
          },
          record_.stop);
      record_.check();
    }
  }
};

}  // namespace

namespace analyses {
std::unique_ptr<Analysis> spectra(Record& record) { return std::make_unique<Spectra>(record); }
}  // namespace analyses
}  // namespace reclab
