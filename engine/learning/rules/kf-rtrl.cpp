// SPDX-License-Identifier: GPL-3.0-or-later
// Kronecker-factored RTRL (A. Mujika, F. Meier, A. Steger, NeurIPS 2018, algorithm 1): where weights act as a matrix on a vector v, a step
// adds D = v (x) Q to their P, which is kept as one such product u (x) A: J P = u (x) J A has the form already, and one product stands in
// place of the two. Weights that are one column have A alone, without a random sign.
#include <algorithm>
#include <cmath>

#include "learning/online/influence.h"
#include "learning/online/kronecker.h"

namespace reclab::rules_by_name {
namespace {

using Matrices = std::vector<KroneckerMatrix>;

class Factored final : public Influence {
 public:
  Factored(std::shared_ptr<const Matrices> matrices, std::size_t states) : matrices_(std::move(matrices)), states_(states) {
    for (const KroneckerMatrix& matrix : *matrices_) {
      Factors& made = factors_.emplace_back();
      made.u.resize(matrix.columns());
      for (std::vector<double>* array : {&made.A, &made.moved, &made.Q}) array->resize(states * matrix.rows);
    }
  }

  void start(const Signs& signs) override {
    draw_ = signs;
    for (Factors& factors : factors_) {
      std::ranges::fill(factors.u, 0.0);
      std::ranges::fill(factors.A, 0.0);
    }
  }

  void advance(StepMap& step, bool acts) override {
    std::vector<double> adjoint(states_);
    if (acts) {
      // v is any row of a mean of D over the states that is not 0, to a factor: of the weights of the mean none is another's multiple.
      for (std::size_t i = 0; i < states_; ++i) adjoint[i] = 1.0 + std::fmod(static_cast<double>(i + 1) * 0.6180339887498949, 1.0);
      step.pull_back(adjoint, {});
      for (std::size_t m = 0; m < factors_.size(); ++m) find_vector((*matrices_)[m], step.weight_adjoint(), factors_[m]);
      std::ranges::fill(adjoint, 0.0);
    }
    for (std::size_t i = 0; i < states_; ++i) {
      adjoint[i] = 1.0;
      step.pull_back(adjoint, {});
      adjoint[i] = 0.0;
      for (std::size_t m = 0; m < factors_.size(); ++m) {
        const std::size_t rows = (*matrices_)[m].rows;
        Factors& own = factors_[m];
        const auto row = std::span(own.moved).subspan(i * rows, rows);
        std::ranges::fill(row, 0.0);
        for (std::size_t j = 0; j < states_; ++j)
          if (const double entry = step.state_adjoint()[j]; entry != 0.0)
            add_scaled(row, entry, std::span<const double>(own.A).subspan(j * rows, rows));
        if (!acts) continue;
        for (std::size_t r = 0; r < rows; ++r)
          own.Q[i * rows + r] = own.pivot < own.v.size() ? step.weight_adjoint()[(*matrices_)[m].at(r, own.pivot)] : 0.0;
      }
    }
    const double c0 = acts ? draw_() : 1.0, c1 = acts ? draw_() : 1.0;
    for (Factors& own : factors_) {
      std::swap(own.A, own.moved);
      if (!acts || own.pivot >= own.v.size()) continue;
      if (own.u.size() == 1) {
        own.u[0] = 1.0;
        add_scaled(own.A, 1.0, own.Q);
      } else {
        join_products(c0, own.u, own.A, c1, own.v, own.Q);
      }
    }
  }
  void keep(const Keep& keep) override {
    for (std::size_t m = 0; m < factors_.size(); ++m) {
      keep("u/" + std::to_string(m), factors_[m].u);
      keep("A/" + std::to_string(m), factors_[m].A);
    }
  }

 private:
  struct Factors {
    std::vector<double> u{}, A{}, moved{}, Q{};  // A and Q are [state, rows]
    std::vector<double> v{};                     // of this step, 1 at the pivot; the pivot is v.size() where D is 0
    std::size_t pivot = 0;
  };

  static void find_vector(const KroneckerMatrix& matrix, std::span<const double> mean, Factors& own) {
    own.v.assign(matrix.columns(), 0.0);
    own.pivot = own.v.size();
    double largest = 0.0;
    std::size_t row = 0;
    for (std::size_t r = 0; r < matrix.rows; ++r)
      for (std::size_t c = 0; c < matrix.columns(); ++c)
        if (const double size = std::abs(mean[matrix.at(r, c)]); size > largest) largest = size, row = r, own.pivot = c;
    if (largest == 0.0) return;
    for (std::size_t c = 0; c < matrix.columns(); ++c) own.v[c] = mean[matrix.at(row, c)] / mean[matrix.at(row, own.pivot)];
  }

  void add_product(std::span<const double> adjoint, std::span<double> gradient) const override {
    for (std::size_t m = 0; m < factors_.size(); ++m) {
      const KroneckerMatrix& matrix = (*matrices_)[m];
      const Factors& own = factors_[m];
      for (std::size_t r = 0; r < matrix.rows; ++r) {
        double share = 0.0;
        for (std::size_t i = 0; i < states_; ++i) share += adjoint[i] * own.A[i * matrix.rows + r];
        for (std::size_t c = 0; c < matrix.columns(); ++c) gradient[matrix.at(r, c)] += share * own.u[c];
      }
    }
  }

  std::shared_ptr<const Matrices> matrices_;
  std::size_t states_;
  std::vector<Factors> factors_;
  Signs draw_;
};

OnlineMethod method(const OnlineSetup& setup) {
  const std::size_t states = StepMap(setup.model, setup.inputs, setup.outputs).states();
  const auto matrices = std::make_shared<const Matrices>(kronecker_matrices(setup));
  OnlineMethod made{.influence = [=] { return std::make_unique<Factored>(matrices, states); }};
  for (const KroneckerMatrix& matrix : *matrices) made.numbers += static_cast<double>(2 * matrix.columns() + 3 * states * matrix.rows);
  made.exact = std::ranges::all_of(*matrices, [](const KroneckerMatrix& matrix) { return matrix.columns() == 1; });
  return made;
}

}  // namespace

LearningRuleInfo kf_rtrl() {
  return {.title = "Kronecker-factored RTRL",
          .year = 2018,
          .name = "KF-RTRL",
          .gradient = GradientKind::unbiased,
          .memory = "d_s² for a full matrix",
          .time = "d_s³ for a full matrix",
          .memory_power = 2,
          .time_power = 3,
          .source =
              "A. Mujika, F. Meier, A. Steger, Approximating real-time recurrent learning with random Kronecker factors, NeurIPS 2018, "
              "algorithm 1",
          .idea =
              "The influence of the weights is held as one Kronecker product, and two are joined to one at each step by signs that are "
              "drawn. Its mean over the signs is the true gradient, with less noise than one of rank one has.",
          .online = method};
}

}  // namespace reclab::rules_by_name
