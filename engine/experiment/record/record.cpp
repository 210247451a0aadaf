// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/record/record.h"

#include <algorithm>
#include <cmath>

#include "experiment/record/analysis.h"

namespace reclab {
namespace {

/// The limit for all rows of a dense analysis, above which fewer are computed; seconds.
constexpr double analysis_seconds = 10.0;
/// The cost of a cell that is run forward and back for as many copies as it has states: an operation of one copy, a call, and an entry of a
/// call's result; seconds.
constexpr double cell_operation = 1e-10, cell_call = 6e-7, cell_entry = 2e-10;

}  // namespace

bool Record::names(std::string_view key) const {
  if (request.recording.only.empty()) return true;
  return std::any_of(request.recording.only.begin(), request.recording.only.end(),
                     [&](const std::string& only) { return key.starts_with(only) || std::string_view(only).starts_with(key); });
}

bool Record::wants(std::string_view key) const {
  const auto parsed = parse_key(key);
  return parsed && request.recording.kinds.has(parsed->kind) && names(key);
}

void Record::note(Kinds kinds, const Sentence& sentence) {
  trace.info.notes.push_back(sentence);
  for (const KindInfo& row : kind_table())
    if (kinds.has(row.kind)) trace.info.note_kinds.emplace_back(row.kind, sentence);
}

void Record::mark_unavailable(Kinds kinds, const std::string& sentence) {
  for (const KindInfo& row : kind_table())
    if (kinds.has(row.kind)) trace.info.absent[row.kind] = sentence;
}

void Record::note_out_of_range(const std::string& key, std::int64_t step) {
  note({parse_key(key)->kind}, key + " is not finite, first at step " + std::to_string(step) + ": a transition has entries out of range.");
}

std::vector<std::int64_t> Record::rows_within_budget(const std::string& key, const std::vector<std::int64_t>& steps, double seconds_row) {
  const double all = seconds_row * static_cast<double>(steps.size());
  if (request.every > 0 || all <= analysis_seconds) return steps;
  auto some = thinned(steps, std::max<std::int64_t>(1, static_cast<std::int64_t>(analysis_seconds / seconds_row)));
  note({parse_key(key)->kind},
       key + " has " + plural(std::ssize(some), "row") + " of the " + std::to_string(steps.size()) + " recorded, which would take about " +
           duration_text(all) + Remedy{"; ", "", {"every", std::to_string(every)}, " makes them all"} + ". Every other array is complete.");
  return some;
}

bool Record::carries(std::size_t layer) const {
  const auto has = [&](const Network::StateVar& state) { return state.memory || state.trajectory; };
  const auto& states = shape_network().states();
  return std::ranges::none_of(states, has) ||
         std::ranges::any_of(states, [&](const Network::StateVar& state) { return state.layer == static_cast<int>(layer) && has(state); });
}

bool Record::all_invariant() const {
  return std::none_of(trace.info.spectra.begin(), trace.info.spectra.end(), [](const SpectrumInfo& info) { return info.per_step; });
}

bool Record::any_transition() const {
  for (std::size_t layer = 0; layer < layers(); ++layer)
    if (transition(layer).kind != Transition::Kind::none) return true;
  return false;
}

Transition Record::transition(std::size_t layer) const { return transition_of(shape_network().memories(static_cast<int>(layer))); }

TraceArray timed(std::string key, Shape shape, std::vector<Axis> axes, std::string unit, std::string text) {
  TraceArray array;
  array.key = std::move(key);
  array.shape = std::move(shape);
  array.shape.insert(array.shape.begin(), 0);
  array.axes = std::move(axes);
  array.axes.insert(array.axes.begin(), Axis{"time", "", {}});
  array.unit = std::move(unit);
  array.text = std::move(text);
  return array;
}

std::vector<Axis> axes_of(const Shape& shape, const std::string& one) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < shape.size(); ++i) axes.push_back({shape.size() == 1 ? one : one + " axis " + std::to_string(i + 1), "", {}});
  return axes;
}

std::vector<std::int64_t> thinned(const std::vector<std::int64_t>& steps, std::int64_t most) {
  const auto n = static_cast<std::int64_t>(steps.size());
  if (most <= 0 || n <= most) return steps;
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < most; ++i) chosen.push_back(steps[static_cast<std::size_t>(most == 1 ? n - 1 : i * (n - 1) / (most - 1))]);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

std::string duration_text(double seconds) {
  return seconds < 120.0 ? std::to_string(static_cast<long>(std::ceil(seconds))) + " s"
                         : std::to_string(static_cast<long>(std::ceil(seconds / 60.0))) + " minutes";
}

Transition transition_of(const std::vector<Memory*>& memories) {
  Transition all = Transition::diagonal(0, false);
  bool none = true, diagonal = true;
  for (const Memory* memory : memories) {
    Transition own = memory->transition();
    none = none && own.kind == Transition::Kind::none;
    diagonal = diagonal && !own.in_blocks();
    all.count += own.width();
    all.varies = all.varies || own.varies;
    if (memories.size() == 1) return own;
  }
  if (memories.empty())
    return Transition::none(
        "what it carries is a record of the past, which grows, and no state of a fixed size that a step maps to the next");
  if (none) return Transition::none("it has no memory with a transition");
  return diagonal ? all : Transition::none("its memories have transitions of several kinds");
}

void factors_at(const std::vector<Memory*>& memories, std::int64_t t, std::span<std::complex<double>> factors) {
  std::size_t at = 0;
  for (Memory* m : memories) {
    const auto n = static_cast<std::size_t>(m->transition().width());
    if (n) m->factors(t, factors.subspan(at, n));
    at += n;
  }
}

double jacobian_seconds(const Memory& memory, std::int64_t steps) {
  const Cost cost = memory.cost();
  const Transition own = memory.transition();
  return 3.0 *
         (cost.flops * static_cast<double>(own.size) * cell_operation +
          cost.launches * (cell_call + static_cast<double>(own.entries()) * cell_entry)) /
         static_cast<double>(steps);
}

std::int64_t last_of(const std::vector<std::int64_t>& steps, const Rollout::Segment& segment) {
  const auto end = std::lower_bound(steps.begin(), steps.end(), segment.first + segment.steps);
  return end == steps.begin() ? segment.first : std::max(segment.first, end[-1]);
}

std::vector<std::unique_ptr<Analysis>> analyses_of(Record& record) {
  std::vector<std::unique_ptr<Analysis>> all;
  for (const AnalysisMaker make : analysis_makers()) all.push_back(make(record));
  std::ranges::stable_sort(all, {}, [](const auto& analysis) { return analysis->kinds().first(); });
  return all;
}

}  // namespace reclab
