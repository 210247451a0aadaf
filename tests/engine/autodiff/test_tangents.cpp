// SPDX-License-Identifier: GPL-3.0-or-later
// The tangent of every array operation, against central differences, its adjoint, and the kernels on the host.
#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "autodiff/ops.h"
#include "host_machine.h"
#include "places.h"
#include "tangents.h"
#include "test.h"

namespace {

using namespace reclab;

using Build = std::function<Var(RandomLeaves&)>;

/// By declaration in ops.h, what each operation is asked.
const std::multimap<std::string, Build>& asked() {
  using L = RandomLeaves;
  const auto unary = [](Var (*f)(Var), double low = -2.0, double high = 2.0) { return [=](L& l) { return f(l.real({3, 4}, low, high)); }; };
  const auto holomorphic = [](Var (*f)(Var), double low = 0.1, double high = 1.5) {
    return [=](L& l) { return f(l.complex({3, 4}, low, high)); };
  };
  /// Of equal shapes, repeated along each side and in the middle, real, complex and both.
  const auto binary = [](Var (*f)(Var, Var), bool of_complex) {
    std::vector<Build> all;
    for (const auto& [x, y] : std::vector<std::pair<Shape, Shape>>{
             {{3, 4}, {3, 4}}, {{3, 4}, {4}}, {{3, 1}, {3, 4}}, {{2, 1, 3}, {2, 4, 1}}, {{1}, {2, 3}}, {{2, 3}, {1}}}) {
      all.push_back([=](L& l) { return f(l.real(x, 0.5, 2.0), l.real(y, 0.5, 2.0)); });
      all.push_back([=](L& l) {
        const Var one = l.real(x, 0.5, 2.0);
        return x == y ? f(one, square(one)) : f(l.real(y, -2.0, -0.5), one);
      });
      if (!of_complex) continue;
      all.push_back([=](L& l) { return f(l.complex(x, 0.5, 2.0), l.complex(y, 0.5, 2.0)); });
      all.push_back([=](L& l) { return f(l.real(x, 0.5, 2.0), l.complex(y, 0.5, 2.0)); });
    }
    return all;
  };
  static const auto table = [&] {
    std::multimap<std::string, Build> made;
    const auto add = [&](const std::string& declaration, std::vector<Build> builds) {
      for (Build& build : builds) made.emplace(declaration, std::move(build));
    };
    add("Var operator+(Var x, Var y)", binary([](Var x, Var y) { return x + y; }, true));
    add("Var operator-(Var x, Var y)", binary([](Var x, Var y) { return x - y; }, true));
    add("Var operator*(Var x, Var y)", binary([](Var x, Var y) { return x * y; }, true));
    add("Var operator/(Var x, Var y)", binary([](Var x, Var y) { return x / y; }, true));
    add("Var maximum(Var x, Var y)", binary(maximum, false));
    add("Var operator+(Var x, double c)", {unary([](Var x) { return x + 2.0; }), holomorphic([](Var x) { return x + 2.0; })});
    add("Var operator+(double c, Var x)", {unary([](Var x) { return 2.0 + x; }), holomorphic([](Var x) { return 2.0 + x; })});
    add("Var operator-(Var x, double c)", {unary([](Var x) { return x - 2.0; }), holomorphic([](Var x) { return x - 2.0; })});
    add("Var operator-(double c, Var x)", {unary([](Var x) { return 2.0 - x; }), holomorphic([](Var x) { return 2.0 - x; })});
    add("Var operator*(Var x, double c)", {unary([](Var x) { return x * 3.0; }), holomorphic([](Var x) { return x * 3.0; })});
    add("Var operator*(double c, Var x)", {unary([](Var x) { return 3.0 * x; }), holomorphic([](Var x) { return 3.0 * x; })});
    add("Var operator/(Var x, double c)", {unary([](Var x) { return x / 3.0; }), holomorphic([](Var x) { return x / 3.0; })});
    add("Var operator-(Var x)", {unary([](Var x) { return -x; }), holomorphic([](Var x) { return -x; })});
    add("Var affine(Var x, double a, double b)",
        {unary([](Var x) { return affine(x, 3.0, 1.0); }), holomorphic([](Var x) { return affine(x, 3.0, 1.0); })});
    add("Var exp(Var x)", {unary(exp), holomorphic(exp)});
    add("Var log(Var x)", {unary(log, 0.2, 3.0)});
    add("Var sqrt(Var x)", {unary(sqrt, 0.2, 3.0)});
    add("Var square(Var x)", {unary(square), holomorphic(square)});
    add("Var reciprocal(Var x)", {unary(reciprocal, 0.5, 2.0), holomorphic(reciprocal, 0.5, 2.0)});
    add("Var sigmoid(Var x)", {unary(sigmoid)});
    add("Var tanh(Var x)", {unary(tanh)});
    add("Var relu(Var x)", {unary(relu)});
    add("Var softplus(Var x)", {unary(softplus)});
    add("Var silu(Var x)", {unary(silu)});
    add("Var gelu(Var x)", {unary(gelu)});
    add("Var gelu_tanh(Var x)", {unary(gelu_tanh)});
    add("Var normal_cdf(Var x)", {unary(normal_cdf)});
    add("Var elu(Var x)", {unary(elu)});
    add("Var abs(Var x)", {unary(abs)});
    add("Var sign(Var x)", {unary(sign)});
    add("Var floor(Var x)", {unary(floor)});
    add("Var sin(Var x)", {unary(sin)});
    add("Var cos(Var x)", {unary(cos)});
    add("Var log_sigmoid(Var x)", {unary(log_sigmoid)});
    add("Var mean_exp(Var x)",
        {unary(mean_exp, -0.4, 0.4), unary(mean_exp, 1.0, 3.0), holomorphic(mean_exp, 0.1, 0.4), holomorphic(mean_exp, 1.0, 3.0)});
    add("Var exp_in_range(Var x)", {unary(exp_in_range)});
    add("Var minimum(Var x, double c)", {unary([](Var x) { return minimum(x, 0.25); })});
    // What is held moves nothing, and what stands beside it does.
    add("Var detach(Var x)", {[](L& l) {
          const Var x = l.real({3, 4}), y = l.real({3, 4});
          return sign(detach(x)) * y;
        }});
    add("Var complex(Var real, Var imag)", {[](L& l) { return complex(l.real({3, 4}), l.real({3, 4})); },
                                            [](L& l) {
                                              const Var x = l.real({3, 4});
                                              return square(complex(x, x));
                                            }});
    add("Var real(Var z)", {holomorphic(real)});
    add("Var imag(Var z)", {holomorphic(imag)});
    add("Var reshape(Var x, Shape shape)", {[](L& l) { return square(reshape(l.real({3, 4}), {2, -1})); }});
    add("Var slice(Var x, int axis, std::int64_t from, std::int64_t to)",
        {[](L& l) { return square(slice(l.real({3, 4}), 0, 1, 3)); }, [](L& l) { return slice(l.real({3, 4}), 1, 1, 3); },
         [](L& l) { return square(slice(l.complex({3, 4}), 0, 1, 3)); },
         [](L& l) { return slice(square(l.complex({3, 4, 2})), 1, 1, 3); }});
    add("Var reversed(Var x)", {unary(reversed), holomorphic(reversed)});
    add("Var last(Var x)",
        {unary([](Var x) { return square(last(square(x))); }), holomorphic([](Var x) { return square(last(square(x))); })});
    add("std::vector<Var> split(Var x, int axis, std::int64_t parts)", {[](L& l) {
          const auto parts = split(l.real({3, 4}), 1, 2);
          return parts[0] * parts[1];
        }});
    const auto joined = [](int axis, bool of_complex) {
      return [=](L& l) {
        const auto leaf = [&](Shape shape) { return of_complex ? l.complex(std::move(shape)) : l.real(std::move(shape)); };
        Shape small{2, 3, 2}, large = small;
        large[static_cast<std::size_t>(axis)] += 2;
        const Var parts[] = {leaf(small), leaf(large), leaf(small)};
        return concat(parts, axis);
      };
    };
    add("Var concat(std::span<const Var> parts, int axis)", {joined(0, false), joined(1, false), joined(2, false), joined(1, true)});
    add("Var transpose(Var x)", {unary(transpose), holomorphic(transpose), [](L& l) { return transpose(l.real({2, 3, 4})); }});
    add("Var permute(Var x, std::span<const int> axes)", {[](L& l) {
          const int axes[] = {2, 0, 3, 1};
          return permute(l.real({2, 3, 4, 2}), axes);
        }});
    for (const int axis : {0, 1, 2}) {
      add("Var sum(Var x, int axis)",
          {[=](L& l) { return sum(l.real({2, 3, 4}), axis); }, [=](L& l) { return sum(l.complex({2, 3, 4}), axis); }});
      add("Var mean(Var x, int axis)",
          {[=](L& l) { return mean(l.real({2, 3, 4}), axis); }, [=](L& l) { return mean(l.complex({2, 3, 4}), axis); }});
      add("Var mean_keep(Var x, int axis)",
          {[=](L& l) { return mean_keep(l.real({2, 3, 4}), axis); }, [=](L& l) { return mean_keep(l.complex({2, 3, 4}), axis); }});
      add("Var cumulative_sum(Var x, int axis)", {[=](L& l) { return cumulative_sum(l.real({2, 3, 4}), axis); },
                                                  [=](L& l) { return cumulative_sum(l.complex({2, 3, 4}), axis); }});
    }
    add("Var matmul(Var a, Var b)",
        {[](L& l) { return matmul(l.real({3, 4}), l.real({4, 2})); }, [](L& l) { return matmul(l.real({2, 3, 4}), l.real({4, 2})); },
         [](L& l) { return matmul(l.real({2, 3, 4}), l.real({2, 4, 5})); },
         [](L& l) {
           const Var a = l.real({3, 3});
           return matmul(a, a);
         }});
    add("Var matmul_transposed(Var a, Var b)", {[](L& l) { return matmul_transposed(l.real({3, 4}), l.real({5, 4})); },
                                                [](L& l) { return matmul_transposed(l.real({2, 3, 4}), l.real({2, 5, 4})); }});
    add("Var linear(Var x, Var weight, Var bias = {})", {[](L& l) { return linear(l.real({3, 2, 4}), l.real({5, 4}), l.real({5})); },
                                                         [](L& l) { return linear(l.real({3, 2, 4}), l.real({5, 4})); }});
    add("Var layer_norm(Var x, Var weight, Var bias, double eps)",
        {[](L& l) { return layer_norm(l.real({3, 4}), l.real({4}), l.real({4}), 1e-5); },
         [](L& l) { return layer_norm(l.real({3, 4}), {}, {}, 1e-5); }});
    add("Var rms_norm(Var x, Var weight, double eps)",
        {[](L& l) { return rms_norm(l.real({3, 4}), l.real({4}), 1e-5); }, [](L& l) { return rms_norm(l.real({3, 4}), {}, 1e-5); }});
    add("Var depthwise(Var x, Var weight)", {[](L& l) { return depthwise(l.real({7, 2, 3}), l.real({3, 4})); }});
    return made;
  }();
  return table;
}

/// What ops.h declares, without the semicolons.
std::set<std::string> declared() {
  std::ifstream header(test::source("engine/autodiff/ops.h"));
  std::set<std::string> found;
  for (std::string line; std::getline(header, line);)
    if ((line.starts_with("Var ") || line.starts_with("std::vector<Var> ")) && line.find(';') != std::string::npos)
      found.insert(line.substr(0, line.find(';')));
  return found;
}

/// A case an operation.
const bool registered = [] {
  for (const std::string& declaration : declared())
    test::cases().push_back({"the tangent of " + declaration, [declaration] {
                               const auto [from, to] = asked().equal_range(declaration);
                               CHECK_SAYS(from != to, declaration + " is asked for nothing: add it to the table");
                               test::HostBackend kernels;
                               int number = 0;
                               for (auto at = from; at != to; ++at)
                                 test::check_tangents(
                                     declaration + ", " + std::to_string(number++),
                                     [&](Graph&, RandomLeaves& leaves) { return std::vector<Var>{at->second(leaves)}; }, kernels);
                             }});
  return true;
}();

}  // namespace

TEST_CASE("all operations that are asked are declared") {
  const std::set<std::string> known = declared();
  CHECK(registered && known.size() > 50);
  for (const auto& [declaration, build] : asked()) CHECK_SAYS(known.count(declaration), declaration + " is not in ops.h");
}

TEST_CASE("a detached array does not move, and no memory is taken for it") {
  Graph graph(DType::f64);
  const Var x = graph.leaf(LeafKind::variable, {3}, DType::f64), still = exp(detach(x)), moves = exp(x) * still;
  graph.allocate(cpu_backend(), false);
  const std::vector<double> values{0.1, 0.2, 0.3}, along{1.0, -1.0, 2.0};
  graph.bind(x, values.data());
  graph.forward();
  graph.push_tangents();
  CHECK(!graph.tangent(x) && !graph.tangent(moves));  // no leaf moves
  graph.bind_tangent(x, along.data());
  graph.push_tangents();
  CHECK(!graph.tangent(still));
  const auto* tangent = static_cast<const double*>(graph.tangent(moves));
  CHECK(tangent);
  for (std::size_t i = 0; i < 3; ++i) CHECK_CLOSE(tangent[i], along[i] * std::exp(2 * values[i]), 1e-14);
  graph.bind_tangent(x, nullptr);
  graph.push_tangents();
  CHECK(!graph.tangent(moves));
}

TEST_CASE("a cell's packed weights move its products") {
  // Inside a graph that encloses it the weight is captured, and put in the backend's own order once.
  for (Backend* backend : {&cpu_backend()}) {
    Graph outer(DType::f64);
    const Var weight = outer.leaf(LeafKind::variable, {5, 4}, DType::f64);
    Graph cell(DType::f64, &outer);
    RandomLeaves leaves(cell, 3);
    const Var x = leaves.real({3, 4}), y = linear(x, weight);
    std::vector<RandomLeaves::Leaf> all = leaves.all();
    CHECK_EQUAL(cell.captures().size(), 1u);
    all.push_back({cell.captures()[0].inner, {}});
    Rng rng(4);
    for (int i = 0; i < 20; ++i) all.back().parts.push_back(rng.normal());
    test::Derivatives derivatives(*backend, cell, all, {y});
    test::check_tangents("linear in a cell", derivatives);
  }
}
