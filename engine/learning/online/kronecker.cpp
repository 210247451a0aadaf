// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/online/kronecker.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "array/error.h"
#include "learning/structure/step_pattern.h"

namespace reclab {
namespace {

constexpr double rounding = 1e-9;
constexpr double most_entries = 1 << 24;  // of D, which is kept at all steps that are looked at
constexpr int rounds = 2;

using Rows = std::vector<std::vector<double>>;  // D, row after row of the state

/// Whether D is v (x) Q for these weights: as a matrix of rows (state, row) and columns it has rank 1, or is 0.
bool is_product(const Rows& direct, const KroneckerMatrix& of) {
  double largest = 0.0;
  std::size_t s = 0, r = 0, c = 0;
  for (std::size_t i = 0; i < direct.size(); ++i)
    for (std::size_t k = 0; k < of.rows; ++k)
      for (std::size_t j = 0; j < of.columns(); ++j)
        if (const double size = std::abs(direct[i][of.at(k, j)]); size > largest) largest = size, s = i, r = k, c = j;
  if (largest == 0.0) return true;
  for (std::size_t j = 0; j < of.columns(); ++j) {
    const double share = direct[s][of.at(r, j)] / direct[s][of.at(r, c)];
    for (std::size_t i = 0; i < direct.size(); ++i)
      for (std::size_t k = 0; k < of.rows; ++k)
        if (std::abs(direct[i][of.at(k, j)] - share * direct[i][of.at(k, c)]) > rounding * largest) return false;
  }
  return true;
}

KroneckerMatrix matrix_of(std::size_t first, std::size_t rows, std::size_t columns, bool transposed) {
  KroneckerMatrix made{.rows = transposed ? columns : rows};
  const std::size_t entries = transposed ? rows : columns;
  for (std::size_t j = 0; j < entries; ++j) {
    made.first.push_back(first + (transposed ? j * columns : j));
    made.stride.push_back(transposed ? 1 : columns);
  }
  return made;
}

KroneckerMatrix joined(KroneckerMatrix a, const KroneckerMatrix& b) {
  a.first.insert(a.first.end(), b.first.begin(), b.first.end());
  a.stride.insert(a.stride.end(), b.stride.begin(), b.stride.end());
  return a;
}

}  // namespace

std::vector<KroneckerMatrix> kronecker_matrices(const OnlineSetup& setup) {
  std::vector<Rows> probes;
  const auto see = [&](StepMap& step, const Model&, std::span<const double>) {
    Rows& rows = probes.emplace_back(step.states());
    std::vector<double> unit(step.states());
    for (std::size_t i = 0; i < unit.size(); ++i) {
      unit[i] = 1.0;
      step.pull_back(unit, {});
      unit[i] = 0.0;
      rows[i] = step.weight_adjoint();
    }
  };
  {
    const StepMap step(setup.model, setup.inputs, setup.outputs);
    if (static_cast<double>(step.states()) * static_cast<double>(step.weights()) > most_entries)
      throw Error(setup.model.architecture().id + " has " + std::to_string(step.states()) + " entries of the state and " +
                      std::to_string(step.weights()) +
                      " weights, which is too much to look for Kronecker products in its step: choose a narrower model.",
                  {.model = setup.model.architecture().id, .parameter = "rule"});
  }
  for (int round = 0; round < rounds; ++round) probe_steps(setup, round, see);
  const auto everywhere = [&](const KroneckerMatrix& matrix) {
    return std::ranges::all_of(probes, [&](const Rows& direct) { return is_product(direct, matrix); });
  };
  std::vector<KroneckerMatrix> found;
  std::size_t first = 0;
  for (const Model::Weight& weight : setup.model.weights()) {
    const auto entries = static_cast<std::size_t>(weight.entries());
    const std::size_t from = std::exchange(first, first + entries);
    const bool acts = std::ranges::any_of(probes, [&](const Rows& direct) {
      return std::ranges::any_of(direct, [&](const std::vector<double>& row) {
        return std::any_of(row.begin() + static_cast<std::ptrdiff_t>(from), row.begin() + static_cast<std::ptrdiff_t>(from + entries),
                           [](double x) { return x != 0.0; });
      });
    });
    if (!acts) continue;
    const bool matrix = weight.shape.size() == 2 && weight.shape[0] > 1 && weight.shape[1] > 1;
    const std::size_t rows = matrix ? static_cast<std::size_t>(weight.shape[0]) : entries;
    KroneckerMatrix made = matrix_of(from, rows, entries / rows, false);
    if (matrix && !everywhere(made)) made = matrix_of(from, rows, entries / rows, true);
    if (weight.shape.size() > 2 || !everywhere(made))
      throw Error(setup.model.architecture().id + " has weights " + weight.name +
                      " that do not act as a matrix on one vector within a step, so its derivative by them is no Kronecker product: choose "
                      "another rule.",
                  {.model = setup.model.architecture().id, .parameter = "rule"});
    const auto same = std::ranges::find_if(
        found, [&](const KroneckerMatrix& other) { return other.rows == made.rows && everywhere(joined(other, made)); });
    if (same != found.end())
      *same = joined(*same, made);
    else
      found.push_back(std::move(made));
  }
  return found;
}

}  // namespace reclab
