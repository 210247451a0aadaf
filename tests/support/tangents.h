// SPDX-License-Identifier: GPL-3.0-or-later
// Checks the derivatives of a graph against each other and against its values: its tangents to central differences, and to its adjoints by
// <u, J v> = <J^T u, v>.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "array/device_array.h"
#include "array/host.h"
#include "autodiff/graph.h"
#include "recurrence/primitive.h"
#include "test.h"

namespace reclab::test {

using Parts = std::vector<double>;  // of complex numbers both

inline double norm(const Parts& x) {
  double sum = 0.0;
  for (const double each : x) sum += each * each;
  return std::sqrt(sum);
}
inline double largest(const Parts& x) {
  double most = 0.0;
  for (const double each : x) most = std::isfinite(each) ? std::max(most, std::abs(each)) : std::numeric_limits<double>::infinity();
  return most;
}
inline double largest_gap(const Parts& x, const Parts& y) {
  CHECK_EQUAL(x.size(), y.size());
  Parts gap(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) gap[i] = x[i] - y[i];
  return largest(gap);
}

/// A graph of double precision, its leaves and its outputs, on a backend.
class Derivatives {
 public:
  using Leaf = RandomLeaves::Leaf;
  using Directions = std::vector<Parts>;  // one a leaf; empty: it stands still

  Derivatives(Backend& backend, Graph& graph, std::vector<Leaf> leaves, std::vector<Var> outputs)
      : backend_(backend), graph_(graph), leaves_(std::move(leaves)), outputs_(std::move(outputs)) {
    graph_.allocate(backend_, true);
    for (const Leaf& leaf : leaves_) {
      held_.emplace_back(backend_, narrowed(DType::f64, leaf.parts));
      graph_.bind(leaf.var, held_.back().data());
    }
  }

  const std::vector<Leaf>& leaves() const { return leaves_; }

  /// Each leaf in a random direction, all of them together of length 1.
  Directions random_directions(std::uint64_t seed) const {
    Rng rng(seed);
    Directions along;
    double sum = 0.0;
    for (const Leaf& leaf : leaves_) {
      Parts& one = along.emplace_back();
      for (std::size_t i = 0; i < leaf.parts.size(); ++i) one.push_back(rng.normal());
      sum += norm(one) * norm(one);
    }
    for (Parts& one : along)
      for (double& x : one) x /= std::sqrt(sum);
    return along;
  }

  /// The values where the leaves have gone so far.
  Parts values(const Directions& along, double by) {
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      Parts at = leaves_[i].parts;
      for (std::size_t j = 0; j < along[i].size(); ++j) at[j] += by * along[i][j];
      backend_.upload(held_[i].data(), at.data(), at.size() * sizeof(double));
    }
    graph_.forward();
    return read([&](Var var) { return graph_.value(var); });
  }
  /// J v at the values last computed.
  Parts tangents(const Directions& along) {
    std::vector<DeviceArray> moved;
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      if (!along[i].empty()) moved.emplace_back(backend_, narrowed(DType::f64, along[i]));
      graph_.bind_tangent(leaves_[i].var, along[i].empty() ? nullptr : moved.back().data());
    }
    graph_.push_tangents();
    return read([&](Var var) { return graph_.tangent(var); });
  }
  /// J^T u, by a pass backward.
  Directions adjoints(const Parts& u) {
    graph_.clear_gradients();
    std::size_t at = 0;
    for (const Var var : outputs_) {
      const auto n = static_cast<std::size_t>(parts_of(var));
      const DeviceArray seed(backend_, narrowed(DType::f64, std::span(u).subspan(at, n)));
      if (void* gradient = graph_.gradient(var)) backend_.add_scaled(DType::f64, parts_of(var), 0, seed.data(), gradient, true);
      backend_.finish();
      at += n;
    }
    graph_.backward();
    Directions made;
    for (const Leaf& leaf : leaves_) {
      made.push_back(to_double(backend_, DType::f64, graph_.gradient(leaf.var), parts_of(leaf.var)));
      if (leaf.memory)
        for (double& x : made.back()) x = std::ldexp(x, leaf.memory->exponent());
    }
    return made;
  }

 private:
  static std::int64_t parts_of(Var var) { return count(var.shape()) * (is_complex(var.dtype()) ? 2 : 1); }
  template <class F>
  Parts read(const F& where) const {
    Parts all;
    for (const Var var : outputs_) {
      const void* from = where(var);
      const Parts one = from ? to_double(backend_, DType::f64, from, parts_of(var)) : Parts(static_cast<std::size_t>(parts_of(var)), 0.0);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  Backend& backend_;
  Graph& graph_;
  std::vector<Leaf> leaves_;
  std::vector<Var> outputs_;
  std::vector<DeviceArray> held_;
};

struct Checks {
  double noise = 20.0;      ///< of the values, in units of the last place of the largest
  bool differences = true;  ///< not where a graph detaches a value: there it gives no derivative of its values
  bool adjoint =
      true;  ///< not where some of the outputs are read by the next segment alone, whose adjoints come by Memory::set_final_adjoint
};

inline void check_tangents(const std::string& what, Derivatives& graph, const Checks& checks = {}) {
  const Derivatives::Directions along = graph.random_directions(5);
  const double size = largest(graph.values(along, 0.0));
  const Parts moved = graph.tangents(along);
  const double scale = largest(moved);
  CHECK_SAYS(std::isfinite(size) && std::isfinite(scale), what + " is not finite");

  if (checks.adjoint) {
    Parts u(moved.size());
    Rng rng(9);
    for (double& x : u) x = rng.normal();
    const Derivatives::Directions back = graph.adjoints(u);
    double forward = 0.0, backward = 0.0, of_back = 0.0;
    for (std::size_t i = 0; i < u.size(); ++i) forward += u[i] * moved[i];
    for (std::size_t i = 0; i < back.size(); ++i) {
      for (std::size_t j = 0; j < back[i].size(); ++j) backward += back[i][j] * along[i][j];
      of_back = std::hypot(of_back, norm(back[i]));
    }
    const double whole = std::max(norm(u) * norm(moved), of_back);
    CHECK_SAYS(std::abs(forward - backward) <= 1e-12 * whole,
               what + ": <u, J v> is " + show(forward) + ", <J^T u, v> " + show(backward) + ", of size " + show(whole));
  }

  // Leaf by leaf, the others standing still.
  Parts sum(moved.size(), 0.0);
  for (std::size_t i = 0; i < along.size(); ++i) {
    Derivatives::Directions one(along.size());
    one[i] = along[i];
    const Parts alone = graph.tangents(one);
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += alone[j];
  }
  CHECK_SAYS(largest_gap(sum, moved) <= 1e-11 * scale,
             what + ": the tangents of its leaves do not add up, by " + show(largest_gap(sum, moved)) + " of " + show(scale));

  if (!checks.differences) return;
  // (f(x + h v) - f(x - h v)) / 2h at h and h/2, combined so that the error falls with the fourth power of h. A step may cross a kink of
  // relu, |x| or max: a shorter one does not, though it has more noise.
  double gap = 0.0, allowed = 0.0;
  for (double h = 4e-4; h > 4e-7; h /= 8) {
    const auto central = [&](double by) {
      Parts high = graph.values(along, by);
      const Parts low = graph.values(along, -by);
      for (std::size_t i = 0; i < high.size(); ++i) high[i] = (high[i] - low[i]) / (2 * by);
      return high;
    };
    Parts slope = central(h / 2);
    const Parts coarse = central(h);
    for (std::size_t i = 0; i < slope.size(); ++i) slope[i] = (4.0 * slope[i] - coarse[i]) / 3.0;
    gap = largest_gap(slope, moved);
    allowed = 1e-6 * scale + checks.noise * std::numeric_limits<double>::epsilon() * size / h;
    if (gap <= allowed) break;
  }
  CHECK_SAYS(gap <= allowed, what + ": its tangent is off the central difference by " + show(gap) + " of " + show(scale));
}

using BuildLeaves = std::function<std::vector<Var>(Graph& graph, RandomLeaves& leaves)>;

/// Checks the tangents of a graph of random leaves, on the CPU; on another backend it has the same tangents.
inline void check_tangents(const std::string& what, const BuildLeaves& build, Backend& other, const Checks& checks = {}) {
  const auto with = [&](Backend& backend, const auto& body) {
    Graph graph(DType::f64);
    RandomLeaves leaves(graph, 7);
    const std::vector<Var> outputs = build(graph, leaves);
    Derivatives derivatives(backend, graph, leaves.all(), outputs);
    return body(derivatives);
  };
  const auto moved = [](Derivatives& graph) {
    const Derivatives::Directions along = graph.random_directions(5);
    graph.values(along, 0.0);
    return graph.tangents(along);
  };
  with(cpu_backend(), [&](Derivatives& graph) { check_tangents(what, graph, checks); });
  const Parts own = with(cpu_backend(), moved), others = with(other, moved);
  CHECK_SAYS(largest_gap(own, others) <= 1e-12 * largest(own),
             what + ": the tangent of " + other.name() + " is off by " + show(largest_gap(own, others)) + " of " + show(largest(own)));
}

}  // namespace reclab::test
