// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/step/adjoint_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <typeindex>

#include "array/host.h"
#include "autodiff/ops.h"

namespace reclab {
namespace {

constexpr std::size_t most_probed = 16;  // units

/// Whether it is an operation of linear(), matmul() or sum(): a cell's product with a matrix, also written as a sum over weighted units.
bool mixes(const Operation& operation) {
  static const std::set<std::type_index> kinds = [] {
    Graph outer(DType::f64), cell(DType::f64, &outer, true);
    const Var weight = outer.leaf(LeafKind::variable, {2, 2}, DType::f64), x = cell.leaf(LeafKind::variable, {2, 2}, DType::f64);
    linear(x, weight);
    matmul(x, x);
    matmul_transposed(x, x);
    sum(x, 0);
    std::set<std::type_index> found;
    cell.visit([&](const Operation& one, std::span<const Var> in, std::span<const Var>) {
      if (std::ranges::any_of(in, [&](Var input) { return input.id == x.id; })) found.insert(typeid(one));
    });
    return found;
  }();
  return kinds.contains(typeid(operation));
}

}  // namespace

AdjointParts::AdjointParts(CellGraph& cell) : cell_(cell) {
  std::vector<Var> moved = cell.states;
  Graph& graph = *cell.graph;
  graph.visit([&](const Operation& operation, std::span<const Var> in, std::span<const Var> out) {
    const auto moves = [&](Var input) { return std::ranges::any_of(moved, [&](Var other) { return graph.is_same_memory(input, other); }); };
    if (!operation.passes_gradient() || std::ranges::none_of(in, moves)) return;
    moved.insert(moved.end(), out.begin(), out.end());
    if (!mixes(operation)) return;
    // Only the last input can be the addend, and it has the shape of the result.
    const bool adds = in.size() > 2 && moves(in.back()) && in.back().shape() == out[0].shape();
    if (adds && std::ranges::none_of(in.first(in.size() - 1), moves)) return;
    for (const Var made : out) mixed_.push_back({made, adds ? in.back() : Var{}});
  });
}

std::vector<double> AdjointParts::gradient(Var var) const {
  const void* found = cell_.graph->gradient(var);
  return found ? to_double(cell_.graph->backend(), var.dtype(), found, count(var.shape()))
               : std::vector<double>(static_cast<std::size_t>(count(var.shape())));
}

std::vector<double> AdjointParts::at_states() const {
  std::vector<double> all;
  for (const Var state : cell_.states) {
    const auto own = gradient(state);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

void AdjointParts::pass(std::span<const double> x, const std::vector<std::vector<double>>& at_mixed) {
  Graph& graph = *cell_.graph;
  graph.clear_gradients();
  const auto add = [&](Var var, std::span<const double> entries) {
    void* to = graph.gradient(var);
    if (!to) return;
    std::vector<double> sum = gradient(var);  // a state may be handed on as it is, or twice
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += entries[i];
    const auto bytes = narrowed(var.dtype(), sum);
    graph.backend().upload(to, bytes.data(), bytes.size());
  };
  std::size_t offset = 0;
  for (const Var next : cell_.next) {
    const auto n = static_cast<std::size_t>(count(next.shape()));
    if (!x.empty()) add(next, x.subspan(offset, n));
    offset += n;
  }
  for (std::size_t i = 0; i < mixed_.size(); ++i)
    if (!at_mixed[i].empty()) {
      add(mixed_[i].made, at_mixed[i]);
      if (!mixed_[i].added) continue;
      std::vector<double> opposite = at_mixed[i];
      for (double& entry : opposite) entry = -entry;
      add(mixed_[i].added, opposite);
    }
  graph.backward({}, Graph::Part::varying);
}

PassedBack AdjointParts::parts_of(std::span<const double> x) {
  // The adjoint at a matrix that reaches it through no other: each later matrix gets the opposite of its own adjoint, which cancels it. So,
  // in the end, at the states.
  std::vector<std::vector<double>> opposite(mixed_.size()), direct(mixed_.size());
  PassedBack parts;
  for (std::size_t i = mixed_.size(); i-- > 0;) {
    pass(x, opposite);
    direct[i] = gradient(mixed_[i].made);
    opposite[i] = direct[i];
    for (double& entry : opposite[i]) entry = -entry;
  }
  pass(x, opposite);
  parts.kept = at_states();
  pass({}, direct);
  parts.returned = at_states();
  for (const std::vector<double>& own : direct) parts.sloped.insert(parts.sloped.end(), own.begin(), own.end());
  // Cancelled adjoints leave the rounding of the products and sums on the way.
  const double rounding =
      cell_.graph->real() == DType::f64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const double rounded = 64.0 * rounding * length_of(parts.returned);
  for (double& entry : parts.kept)
    if (std::abs(entry) <= rounded) entry = 0.0;
  return parts;
}

bool AdjointParts::keeps_units_apart() {
  const std::size_t n = at_states().size();
  for (std::size_t probe = 0; probe < std::min(n, most_probed); ++probe) {
    std::vector<double> unit(n);
    unit[probe * n / std::min(n, most_probed)] = 1.0;
    const PassedBack parts = parts_of(unit);
    if (std::ranges::count_if(parts.kept, [](double entry) { return entry != 0.0; }) > std::ssize(cell_.states)) return false;
  }
  return true;
}

std::optional<PassedBack> AdjointParts::pass_back(std::span<const double> x) {
  if (!apart_) apart_ = keeps_units_apart();
  return *apart_ ? std::optional(parts_of(x)) : std::nullopt;
}

}  // namespace reclab
