// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/online/sparse_influence.h"

#include <algorithm>

#include "array/demand.h"

namespace reclab {

SparsePlan::SparsePlan(const StepPattern& pattern, const BitMatrix& kept, const BitMatrix& jacobian)
    : rows(kept.rows()), weights(kept.columns()) {
  const std::size_t n = rows.size();
  // Columns of J, then of D: those that a row has, and those of it that are read.
  BitMatrix has(n, n + weights), read(n, n + weights);
  for (std::size_t i = 0; i < n; ++i) {
    Row& row = rows[i];
    row.kept = kept.listed(i);
    row.first = entries;
    entries += row.kept.size();
    for (const std::uint32_t j : pattern.jacobian.listed(i)) has.set(i, j);
    for (const std::uint32_t w : pattern.direct.listed(i)) has.set(i, n + w);
    for (const std::uint32_t w : row.kept) read.set(i, n + w);
    for (const std::uint32_t j : jacobian.listed(i))
      if (meet(kept.row(i), kept.row(j))) {
        row.from.push_back(j);
        read.set(i, j);
      }
  }
  BitMatrix group_has(n, n + weights), group_read(n, n + weights);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (rows[i].kept.empty()) continue;
    std::size_t g = 0;
    while (g < groups.size() && (meet(group_has.row(g), read.row(i)) || meet(group_read.row(g), has.row(i)))) ++g;
    if (g == groups.size()) groups.emplace_back();
    groups[g].push_back(i);
    unite(group_has.row(g), has.row(i));
    unite(group_read.row(g), read.row(i));
  }
}

void SparseInfluence::start(const Signs&) {
  rest_ = true;
  for (std::vector<double>* array : {&influence_, &moved_}) array->resize(plan_->entries);
  row_.assign(plan_->weights, 0.0);
}

void SparseInfluence::advance(StepMap& step, bool acts) {
  std::vector<double> units(plan_->rows.size());
  for (const std::vector<std::uint32_t>& group : plan_->groups) {
    for (const std::uint32_t i : group) units[i] = 1.0;
    step.pull_back(units, {});
    for (const std::uint32_t i : group) {
      units[i] = 0.0;
      const SparsePlan::Row& row = plan_->rows[i];
      for (const std::uint32_t w : row.kept) row_[w] = acts ? step.weight_adjoint()[w] : 0.0;  // others are not read
      if (!rest_)
        for (const std::uint32_t j : row.from) {
          const double entry = entry_ ? entry_(step, i, j) : step.state_adjoint()[j];
          if (entry == 0.0) continue;
          const SparsePlan::Row& other = plan_->rows[j];
          for (std::size_t k = 0; k < other.kept.size(); ++k) row_[other.kept[k]] += entry * influence_[other.first + k];
        }
      for (std::size_t k = 0; k < row.kept.size(); ++k) moved_[row.first + k] = row_[row.kept[k]];
    }
  }
  std::swap(influence_, moved_);
  rest_ = false;
}

void SparseInfluence::keep(const Keep& keep) {
  std::vector<double> begun{rest_ ? 0.0 : 1.0};
  keep("begun", begun);
  keep("P", influence_);
  rest_ = begun[0] == 0.0;
}

void SparseInfluence::add_product(std::span<const double> adjoint, std::span<double> gradient) const {
  if (rest_) return;
  for (std::size_t i = 0; i < adjoint.size(); ++i) {
    const SparsePlan::Row& row = plan_->rows[i];
    for (std::size_t k = 0; k < row.kept.size(); ++k) gradient[row.kept[k]] += adjoint[i] * influence_[row.first + k];
  }
}

}  // namespace reclab
