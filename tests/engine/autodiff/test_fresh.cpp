// SPDX-License-Identifier: GPL-3.0-or-later
// Gradients that are written where nothing was added yet: whatever lay in their memory, of however many readers an array has, they are the
// sum of what each reader gives.
#include <cstddef>
#include <limits>
#include <vector>

#include "autodiff/ops.h"
#include "test.h"

using namespace reclab;

namespace {

const std::vector<double> x_values{0.5, -1.25, 2.0, 0.75, -0.5, 1.5}, w_values{1.0, -2.0, 0.25, 0.5, -0.75, 3.0, 1.25, -1.0, 2.0};

struct Made {
  Graph graph{DType::f64};
  Var x, w, unread, y;

  explicit Made(Var (*function)(Var x, Var w)) {
    x = graph.leaf(LeafKind::variable, {2, 3}, DType::f64);
    w = graph.leaf(LeafKind::variable, {3, 3}, DType::f64);
    unread = graph.leaf(LeafKind::variable, {4}, DType::f64);
    y = function(x, w);
    graph.allocate(cpu_backend(), true);
    graph.bind(x, x_values.data());
    graph.bind(w, w_values.data());
    for (const Var var : {x, w, unread, y}) fill(var, std::numeric_limits<double>::quiet_NaN());
    graph.forward();
  }
  void fill(Var var, double value) const {
    auto* to = static_cast<double*>(graph.gradient(var));
    for (std::int64_t i = 0; i < count(var.shape()); ++i) to[i] = value;
  }
  std::vector<double> gradient(Var var) const {
    const auto* from = static_cast<const double*>(graph.gradient(var));
    return {from, from + count(var.shape())};
  }
  /// dL/dx where dL/dy is `seed` everywhere.
  std::vector<double> back(double seed) {
    graph.clear_gradients();
    fill(y, seed);
    graph.backward();
    return gradient(x);
  }
};

/// The gradient of the sum of y by central differences.
std::vector<double> differences(Var (*function)(Var x, Var w)) {
  std::vector<double> found;
  for (std::size_t i = 0; i < x_values.size(); ++i) {
    double sums[2] = {};
    for (const int side : {0, 1}) {
      Made made(function);
      std::vector<double> moved = x_values;
      moved[i] += side ? 1e-6 : -1e-6;
      made.graph.bind(made.x, moved.data());
      made.graph.forward();
      const auto* y = static_cast<const double*>(made.graph.value(made.y));
      for (std::int64_t k = 0; k < count(made.y.shape()); ++k) sums[side] += y[k];
    }
    found.push_back((sums[1] - sums[0]) / 2e-6);
  }
  return found;
}

Var same_twice(Var x, Var) { return x + x; }
Var squared(Var x, Var) { return x * x; }
Var two_readers(Var x, Var w) { return matmul(x, w) * x - x; }
Var alias_and_whole(Var x, Var) { return reshape(x, {6}) * reshape(affine(x, 2.0, 1.0), {6}); }
Var rows(Var x, Var) { return slice(x, 0, 0, 1) * slice(x, 0, 1, 2); }
Var columns(Var x, Var) { return slice(x, 1, 0, 2) - slice(x, 1, 1, 3); }
Var turned(Var x, Var w) { return matmul(transpose(x), x) * w; }
Var repeated(Var x, Var w) { return x * slice(w, 0, 0, 1) + mean_keep(x, 1); }
Var some_entries(Var x, Var) { return tanh(slice(x, 0, 1, 2)); }

constexpr Var (*functions[])(Var, Var) = {same_twice, squared, two_readers, alias_and_whole, rows, columns, turned, repeated, some_entries};

}  // namespace

TEST_CASE("a gradient is the sum of what its readers give, whatever lay in its memory") {
  for (const auto function : functions) {
    Made made(function);
    const auto found = made.back(1.0), expected = differences(function);
    for (std::size_t i = 0; i < found.size(); ++i) CHECK_CLOSE(found[i], expected[i], 1e-7);
  }
}

TEST_CASE("a second pass starts from nothing") {
  for (const auto function : functions) {
    Made made(function);
    const auto first = made.back(1.0);
    made.back(-3.0);
    CHECK(made.back(1.0) == first);
  }
}

TEST_CASE("a gradient that nothing is added to is zero") {
  Made made(squared);
  made.back(1.0);
  CHECK(made.gradient(made.unread) == std::vector<double>(4));
  CHECK(made.gradient(made.w) == std::vector<double>(9));
}
