// SPDX-License-Identifier: GPL-3.0-or-later
// An influence of which some entries are kept and the others are held at 0: SnAp (J. Menick and others, ICLR 2021), and RTRL where the
// transition falls into blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "learning/online/influence.h"
#include "learning/structure/step_pattern.h"

namespace reclab {

/// Which entries are kept, and which products of the step's Jacobian show the entries of J and D that are needed: a product with the sum of
/// several unit vectors shows those of several rows where they share no column.
class SparsePlan {
 public:
  /// `kept`: of P. `jacobian`: entries of J that are used; others of the pattern count as 0.
  SparsePlan(const StepPattern& pattern, const BitMatrix& kept, const BitMatrix& jacobian);

  struct Row {
    std::vector<std::uint32_t> kept;  ///< weights, ascending
    std::size_t first = 0;            ///< of them in the array of all rows
    std::vector<std::uint32_t> from;  ///< rows of P[t-1] that it is made of, ascending
  };
  std::vector<Row> rows;
  std::vector<std::vector<std::uint32_t>> groups;  ///< of rows that one product shows
  std::size_t weights = 0, entries = 0;            ///< entries: of P that are kept
  double numbers() const { return 2.0 * static_cast<double>(entries) + static_cast<double>(weights); }
};

class SparseInfluence : public Influence {
 public:
  /// An entry of the Jacobian in place of J[i, j] at the last product, which shows row i; empty: it is used as it is.
  using Entry = std::function<double(const StepMap& step, std::size_t i, std::size_t j)>;
  explicit SparseInfluence(std::shared_ptr<const SparsePlan> plan, Entry entry = {}) : plan_(std::move(plan)), entry_(std::move(entry)) {}

  void start(const Signs&) override;
  void advance(StepMap& step, bool acts) override;
  void keep(const Keep& keep) override;

 protected:
  void add_product(std::span<const double> adjoint, std::span<double> gradient) const override;

 private:
  std::shared_ptr<const SparsePlan> plan_;
  Entry entry_;
  bool rest_ = true;  // P is 0
  std::vector<double> influence_, moved_, row_;
};

}  // namespace reclab
