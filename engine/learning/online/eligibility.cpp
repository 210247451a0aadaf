// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/online/eligibility.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "array/rng.h"
#include "learning/online/kronecker.h"
#include "learning/online/sparse_influence.h"

namespace reclab {
namespace {

constexpr double rounding = 1e-9;
constexpr int rounds = 2;

/// The recurrent weights: of each matrix the columns that are multiplied with an entry of the state.
struct Recurrent {
  struct Column {
    std::size_t column, state;
  };
  std::vector<KroneckerMatrix> matrices{};
  std::vector<std::vector<Column>> columns{};

  /// (Q W)[i, j] at the last product, which shows row i of D; `before`: the state that the step was evaluated at.
  double through(std::span<const double> direct, std::span<const double> before, std::span<const double> weights, std::size_t j) const {
    double sum = 0.0;
    for (std::size_t m = 0; m < matrices.size(); ++m) {
      const auto own = std::ranges::find(columns[m], j, &Column::state);
      if (own == columns[m].end()) continue;
      const Column& shown = *std::ranges::max_element(columns[m], {}, [&](const Column& c) { return std::abs(before[c.state]); });
      if (before[shown.state] == 0.0) continue;
      for (std::size_t r = 0; r < matrices[m].rows; ++r)
        sum += direct[matrices[m].at(r, shown.column)] / before[shown.state] * weights[matrices[m].at(r, own->column)];
    }
    return sum;
  }
};

std::vector<double> flat(const Parameters& parameters) {
  std::vector<double> all;
  for (const Parameters::Entry& entry : parameters.entries()) all.insert(all.end(), entry.values.begin(), entry.values.end());
  return all;
}

struct Local {
  Recurrent recurrent{};
  std::shared_ptr<const SparsePlan> plan{};
  std::vector<std::size_t> read{};                             // the entry of the state that each column of the read-out is multiplied with
  std::vector<double> feedback{};                              // B, [read, outputs]; empty: the weights of the read-out themselves
  std::size_t head = 0;                                        // the first of those
  std::vector<std::pair<std::size_t, std::size_t>> readout{};  // first and end of its weights
  const Model* model = nullptr;
};

class Eligibility final : public SparseInfluence {
 public:
  explicit Eligibility(std::shared_ptr<const Local> local)
      : SparseInfluence(local->plan,
                        [this](const StepMap& step, std::size_t, std::size_t j) {
                          return step.state_adjoint()[j] - local_->recurrent.through(step.weight_adjoint(), before_, weights_, j);
                        }),
        local_(std::move(local)) {}

  void start(const Signs& signs) override {
    SparseInfluence::start(signs);
    ahead_ = false;
    before_.assign(local_->plan->rows.size(), 0.0);
  }
  void credit(StepMap& step, std::span<const double> output_adjoint, bool acts, std::span<double> gradient) override {
    step.pull_back({}, output_adjoint);
    if (acts)
      for (const auto& [first, end] : local_->readout)
        for (std::size_t w = first; w < end; ++w) gradient[w] += step.weight_adjoint()[w];
    go(step, acts);
    ahead_ = true;
    std::vector<double> adjoint(step.states());
    for (std::size_t k = 0; k < local_->read.size(); ++k)
      for (std::size_t o = 0; o < output_adjoint.size(); ++o)
        adjoint[local_->read[k]] += feedback(k, o, output_adjoint.size()) * output_adjoint[o];
    add_product(adjoint, gradient);
  }
  void advance(StepMap& step, bool acts) override {
    if (!std::exchange(ahead_, false)) go(step, acts);
    before_ = step.next();
  }
  void keep(const Keep& keep) override {
    SparseInfluence::keep(keep);
    keep("before", before_);
  }

 private:
  double feedback(std::size_t k, std::size_t output, std::size_t outputs) const {
    return local_->feedback.empty() ? weights_[local_->head + output * local_->read.size() + k] : local_->feedback[k * outputs + output];
  }
  void go(StepMap& step, bool acts) {
    if (!seen_ || *seen_ != local_->model->changes()) {
      seen_ = local_->model->changes();
      weights_ = flat(local_->model->parameters());
    }
    SparseInfluence::advance(step, acts);
  }

  std::shared_ptr<const Local> local_;
  bool ahead_ = false;  // P is that of the step already
  std::optional<std::uint64_t> seen_;
  std::vector<double> before_, weights_;
};

bool near(double a, double b) { return std::abs(a - b) <= rounding * std::abs(b); }

/// One step of a model like this one.
struct Probe {
  Probe(StepMap& step, const Model& model, std::span<const double> state)
      : before(state.begin(), state.end()), next(step.next()), weights(flat(model.parameters())) {
    std::vector<double> unit(step.outputs());
    unit[0] = 1.0;
    step.pull_back({}, unit);
    read = step.weight_adjoint();
    unit.assign(step.states(), 0.0);
    for (std::size_t i = 0; i < unit.size(); ++i) {
      unit[i] = 1.0;
      step.pull_back(unit, {});
      unit[i] = 0.0;
      jacobian.push_back(step.state_adjoint());
      direct.push_back(step.weight_adjoint());
    }
  }
  std::vector<double> before, next, weights;
  std::vector<double> read;  // the derivative of the first output by the weights
  std::vector<std::vector<double>> jacobian{}, direct{};

  /// The vector that a matrix is multiplied with, to a factor.
  std::vector<double> vector_of(const KroneckerMatrix& matrix) const {
    std::vector<double> v(matrix.columns());
    double largest = 0.0;
    for (const std::vector<double>& row : direct)
      for (std::size_t r = 0; r < matrix.rows; ++r)
        for (std::size_t c = 0; c < v.size(); ++c)
          if (const double size = std::abs(row[matrix.at(r, c)]); size > largest) {
            largest = size;
            for (std::size_t k = 0; k < v.size(); ++k) v[k] = row[matrix.at(r, k)];
          }
    return v;
  }
};

/// The columns of a matrix that are multiplied with the entries `read` of the state before the step; none where there are not all of them.
std::vector<Recurrent::Column> recurrent_columns(const KroneckerMatrix& matrix, const std::vector<std::size_t>& read,
                                                 const std::vector<Probe>& probes) {
  std::vector<std::vector<double>> v;
  for (const Probe& probe : probes) v.push_back(probe.vector_of(matrix));
  for (std::size_t first = 0; first < matrix.columns(); ++first) {
    const auto carries = [&](std::size_t column, std::size_t state) {
      for (std::size_t p = 0; p < probes.size(); ++p)
        if (!near(v[p][column] * probes[p].before[read[0]], v[p][first] * probes[p].before[state])) return false;
      return true;
    };
    std::vector<Recurrent::Column> found;
    for (const std::size_t state : read) {
      std::size_t c = 0;
      while (c < matrix.columns() && !carries(c, state)) ++c;
      if (c == matrix.columns()) break;
      found.push_back({c, state});
    }
    if (found.size() == read.size()) return found;
  }
  return {};
}

}  // namespace

OnlineMethod eligibility(const OnlineSetup& setup, Feedback feedback, const std::string& title) {
  const auto refuse = [&](const std::string& why) {
    throw Error(title + " is for one layer of units that are joined by recurrent weights and read by a linear read-out, and " +
                    setup.model.architecture().id + " " + why + ": choose another rule.",
                {.model = setup.model.architecture().id, .parameter = "rule", .value = setup.options.rule});
  };
  const auto local = std::make_shared<Local>();
  local->model = &setup.model;
  const StepMap own(setup.model, setup.inputs, setup.outputs);
  const std::size_t n = own.states();
  for (const Network::StateVar& state : own.network().states())
    if (state.layer != own.network().states().front().layer) refuse("has several layers");

  // The read-out, and the entries of the next state that it reads.
  std::size_t first = 0, width = 0;
  std::size_t& head = local->head;
  for (const Model::Weight& weight : setup.model.weights()) {
    const std::size_t from = std::exchange(first, first + static_cast<std::size_t>(weight.entries()));
    if (!weight.name.starts_with("head/")) continue;
    local->readout.emplace_back(from, first);
    if (weight.name == "head/weight") head = from, width = static_cast<std::size_t>(weight.shape[1]);
  }
  if (setup.outputs == 0)
    throw Error(title + " brings the error back from a read-out that the target asks for, and this loss has no target" +
                    Remedy{": ", "choose ", {"loss", "task"}} + ".",
                {.parameter = "loss", .value = "task"});
  if (width == 0) refuse("has no read-out");
  Recurrent& recurrent = local->recurrent;
  recurrent.matrices = kronecker_matrices(setup);
  std::vector<Probe> probes;
  for (int round = 0; round < rounds; ++round)
    probe_steps(setup, round, [&](StepMap& step, const Model& model, std::span<const double> state) {
      if (!std::ranges::equal(state, step.start())) probes.emplace_back(step, model, state);
    });
  const auto& next = probes.front().next;
  for (std::size_t k = 0; k < width; ++k) {
    std::size_t j = 0;
    while (j < n && !std::ranges::all_of(probes, [&](const Probe& probe) { return near(probe.next[j], probe.read[head + k]); })) ++j;
    if (j == next.size()) refuse("has outputs that are not read from the state alone");
    local->read.push_back(j);
  }
  if (width < 2) refuse("has one unit");

  for (const KroneckerMatrix& matrix : recurrent.matrices) recurrent.columns.push_back(recurrent_columns(matrix, local->read, probes));
  const StepPattern pattern = step_pattern(setup);
  BitMatrix remains(n, n);  // J - Q W
  for (const Probe& probe : probes)
    for (std::size_t i = 0; i < n; ++i)
      for (const std::uint32_t j : pattern.jacobian.listed(i))
        if (!near(recurrent.through(probe.direct[i], probe.before, probe.weights, j), probe.jacobian[i][j])) remains.set(i, j);
  BitMatrix self(n, n);
  for (std::size_t i = 0; i < n; ++i) self.set(i, i);
  const BitMatrix blocks = reached_within({remains, self}, std::numeric_limits<std::int64_t>::max()).within;
  for (std::size_t i = 0; i < n; ++i)
    if (const std::size_t block = blocks.listed(i).size(); block > 2 && 2 * block > n)
      refuse("has units that act on one another otherwise");
  const BitMatrix kept = reached_within({remains, pattern.direct}, std::numeric_limits<std::int64_t>::max()).within;
  local->plan = std::make_shared<const SparsePlan>(pattern, kept, remains);

  if (feedback == Feedback::random) {
    Rng rng = Rng(setup.options.seed).split("feedback");
    const double size = 1.0 / std::sqrt(static_cast<double>(width));
    for (std::size_t k = 0; k < width * static_cast<std::size_t>(setup.outputs); ++k) local->feedback.push_back(rng.uniform(-size, size));
  }
  return {.influence = [local] { return std::make_unique<Eligibility>(local); }, .numbers = local->plan->numbers()};
}

}  // namespace reclab
