// SPDX-License-Identifier: GPL-3.0-or-later
// How many pairs fast weights hold, and what becomes of one that is written again (I. Schlag et al., ICML 2021, sections 4.1, 4.2 and 6.1);
// names of the authors' files.
#include <cmath>
#include <cstdio>
#include <map>
#include <numbers>

#include "array/host.h"
#include "array/rng.h"
#include "experiment/experiment.h"
#include "experiment/weights/naming.h"
#include "models/parts/features.h"
#include "models/registry.h"
#include "recurrence/delta/delta.h"
#include "recurrence/outer/outer.h"
#include "test.h"

using namespace reclab;

namespace {

using Numbers = std::vector<double>;

/// Rows of so many entries.
struct Rows {
  std::int64_t count, width;
  Numbers entries;
  Rows(std::int64_t rows, std::int64_t columns) : count(rows), width(columns), entries(static_cast<std::size_t>(rows * columns), 0.0) {}
  double& at(std::int64_t row, std::int64_t column) { return entries[static_cast<std::size_t>(row * width + column)]; }
  double at(std::int64_t row, std::int64_t column) const { return entries[static_cast<std::size_t>(row * width + column)]; }
};
Rows unit(std::int64_t n) {
  Rows made(n, n);
  for (std::int64_t i = 0; i < n; ++i) made.at(i, i) = 1.0;
  return made;
}
/// n vectors of d entries, orthonormal while there is room; beyond it the rows of a basis of which d columns are left: no others have
/// products that are nearer to the identity.
Rows best_keys(std::int64_t n, std::int64_t d) {
  Rows made(n, d);
  const auto size = static_cast<double>(n);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < std::min(n, d); ++j)
      made.at(i, j) =
          std::sqrt((j ? 2.0 : 1.0) / size) * std::cos(std::numbers::pi * (static_cast<double>(i) + 0.5) * static_cast<double>(j) / size);
  return made;
}
Rows random_keys(std::int64_t n, std::int64_t d, Rng& rng) {
  Rows made(n, d);
  for (std::int64_t i = 0; i < n; ++i) {
    double squares = 0.0;
    for (std::int64_t j = 0; j < d; ++j) squares += std::pow(made.at(i, j) = rng.normal(), 2.0);
    for (std::int64_t j = 0; j < d; ++j) made.at(i, j) /= std::sqrt(squares);
  }
  return made;
}

/// The memory after all pairs, [key, value], written one after another.
Rows written(const Rows& keys, const Rows& values, bool corrected) {
  Graph graph(DType::f64);
  const Var k = graph.constant({keys.count, 1, 1, keys.width}, keys.entries),
            v = graph.constant({values.count, 1, 1, values.width}, values.entries);
  const OuterVars vars =
      corrected ? delta(graph, Form::sequential, {.q = k, .k = k, .v = v}) : outer(graph, Form::sequential, {k, k, v}, true);
  graph.allocate(cpu_backend(), false);
  const Numbers zeros(static_cast<std::size_t>(keys.width * values.width), 0.0);
  graph.bind(vars.initial[0], zeros.data());
  graph.forward();
  Rows made(keys.width, values.width);
  made.entries = to_double(cpu_backend(), DType::f64, graph.value(vars.finals[0]), keys.width * values.width);
  return made;
}
/// The mean over the queries of |S^T q - wanted|^2 / 2: the loss that the authors draw.
double error_of(const Rows& memory, const Rows& queries, const Rows& wanted) {
  double sum = 0.0;
  for (std::int64_t q = 0; q < queries.count; ++q)
    for (std::int64_t j = 0; j < wanted.width; ++j) {
      double read = 0.0;
      for (std::int64_t i = 0; i < queries.width; ++i) read += queries.at(q, i) * memory.at(i, j);
      sum += 0.5 * std::pow(read - wanted.at(q, j), 2.0);
    }
  return sum / static_cast<double>(queries.count);
}

}  // namespace

TEST_CASE("a sum of outer products holds as many pairs as keys have dimensions and not one more") {
  constexpr std::int64_t d = 8;
  Rng rng(1);
  std::printf("pairs  best keys  random keys, least of 200\n");
  for (const std::int64_t pairs : {1, 2, 4, 8, 9, 10, 12, 16, 24}) {
    const Rows values = unit(pairs), keys = best_keys(pairs, d);
    const double error = error_of(written(keys, values, false), keys, values);
    // The reads are a product of two matrices of rank d, and no such matrix is nearer to the identity (Eckart and Young).
    const double bound = pairs > d ? 0.5 * static_cast<double>(pairs - d) / static_cast<double>(pairs) : 0.0;
    CHECK_CLOSE(error, bound, 1e-12);
    double least = 1e300;
    for (int draw = 0; draw < 200; ++draw) {
      const Rows drawn = random_keys(pairs, d, rng);
      least = std::min(least, error_of(written(drawn, values, false), drawn, values));
    }
    CHECK(least >= bound - 1e-12);
    std::printf("%5d  %9.4f  %11.4f\n", static_cast<int>(pairs), error, least);
  }
}

TEST_CASE("the delta rule overwrites a pair that is written again, a sum keeps what was there") {
  constexpr std::int64_t d = 8, width = 8;
  std::printf("keys  sum     delta rule   after three writes a key in the mean\n");
  for (const std::int64_t n : {2, 4, 6, 8, 9, 12, 16}) {
    Rng rng(static_cast<std::uint64_t>(n));
    Rows keys = best_keys(n, d);
    for (std::int64_t i = 0; i < n; ++i) {  // of length 1: a whole correction
      double squares = 0.0;
      for (std::int64_t j = 0; j < d; ++j) squares += keys.at(i, j) * keys.at(i, j);
      for (std::int64_t j = 0; j < d; ++j) keys.at(i, j) /= std::sqrt(squares);
    }
    Rows key_of(3 * n, d), values(3 * n, width), last(n, width);
    for (std::int64_t t = 0; t < 3 * n; ++t) {  // each once, then with replacement
      const std::int64_t which = t < n ? t : static_cast<std::int64_t>(rng.uniform(0.0, static_cast<double>(n))) % n;
      for (std::int64_t j = 0; j < d; ++j) key_of.at(t, j) = keys.at(which, j);
      for (std::int64_t j = 0; j < width; ++j) last.at(which, j) = values.at(t, j) = rng.normal() / std::sqrt(static_cast<double>(width));
    }
    const double sum = error_of(written(key_of, values, false), keys, last),
                 corrected = error_of(written(key_of, values, true), keys, last);
    std::printf("%4d  %6.3f  %.3g\n", static_cast<int>(n), sum, corrected);
    CHECK_SAYS(sum > 0.5, test::show(sum));  // about two others lie on top of each, of length 1 each
    if (n <= d)
      CHECK_SAYS(corrected < 1e-28, test::show(corrected));
    else
      CHECK_SAYS(corrected > 1e-3 && corrected < sum / 2, test::show(corrected));
  }
}

TEST_CASE("DPFP makes room for 2 nu d keys that are orthogonal, where there was room for d") {
  constexpr std::int64_t d = 4;
  for (const std::int64_t nu : {1, 2, 3}) {
    const std::int64_t n = 2 * d, pairs = nu * n;
    Rows raw(pairs, d);  // two entries of [relu(z); relu(-z)] that are j apart: one product is not 0
    for (std::int64_t j = 1; j <= nu; ++j)
      for (std::int64_t a = 0; a < n; ++a)
        for (const std::int64_t place : {a, (a - j + n) % n}) raw.at((j - 1) * n + a, place % d) = place < d ? 1.0 : -1.0;
    Graph graph(DType::f64);
    const Var made = parts::dpfp(graph.constant({pairs, d}, raw.entries), nu);
    graph.allocate(cpu_backend(), false);
    graph.forward();
    Rows keys(pairs, 2 * nu * d);
    CHECK_EQUAL(made.dim(-1), keys.width);
    keys.entries = to_double(cpu_backend(), DType::f64, graph.value(made), pairs * keys.width);
    const double with = error_of(written(keys, unit(pairs), false), keys, unit(pairs)),
                 without = error_of(written(raw, unit(pairs), false), raw, unit(pairs));
    std::printf("nu %d: %d pairs, error %.3g, of the keys themselves %.3g\n", static_cast<int>(nu), static_cast<int>(pairs), with, without);
    CHECK(with == 0.0);
    CHECK(without >= 0.5 * static_cast<double>(pairs - d) / static_cast<double>(pairs));
  }
}

TEST_CASE("the authors' files have names of their own, two layers for each of ours") {
  struct Theirs {
    const char* model;
    std::vector<std::pair<std::string, std::string>> set;
    std::vector<std::pair<const char*, const char*>> names;  // after the number of the layer; of ours, of theirs
    std::vector<std::pair<const char*, const char*>> second;
  };
  const std::vector<std::pair<const char*, const char*>> fed{
      {"pos_ff.CoreNet.0.weight", "ff_layers.0.weight"}, {"pos_ff.CoreNet.0.bias", "ff_layers.0.bias"},
      {"pos_ff.CoreNet.3.weight", "ff_layers.3.weight"}, {"pos_ff.CoreNet.3.bias", "ff_layers.3.bias"},
      {"pos_ff.layer_norm.weight", "layer_norm.weight"}, {"pos_ff.layer_norm.bias", "layer_norm.bias"}};
  const std::vector<Theirs> all{{"srwm",
                                 {{"width", "8"}, {"heads", "2"}},
                                 {{"W_y", "W_y"},
                                  {"W_q", "W_q"},
                                  {"W_k", "W_k"},
                                  {"w_b", "w_b"},
                                  {"out_linear.weight", "out_linear.weight"},
                                  {"layer_norm.weight", "layer_norm.weight"},
                                  {"layer_norm.bias", "layer_norm.bias"}},
                                 {{"ff.ff_layers.0.weight", "ff_layers.0.weight"},
                                  {"ff.ff_layers.0.bias", "ff_layers.0.bias"},
                                  {"ff.ff_layers.3.weight", "ff_layers.3.weight"},
                                  {"ff.ff_layers.3.bias", "ff_layers.3.bias"},
                                  {"ff.layer_norm.weight", "layer_norm.weight"},
                                  {"ff.layer_norm.bias", "layer_norm.bias"}}},
                                {"recurrent-deltanet",
                                 {{"width", "8"}, {"heads", "2"}, {"prenorm", "yes"}},
                                 {{"dec_attn.slow_net.weight", "slow_net.weight"},
                                  {"dec_attn.R_q", "R_q"},
                                  {"dec_attn.R_k", "R_k"},
                                  {"dec_attn.R_v", "R_v"},
                                  {"dec_attn.r_b", "r_b"},
                                  {"dec_attn.o_net.weight", "out_linear.weight"},
                                  {"dec_attn.layer_norm.weight", "layer_norm.weight"},
                                  {"dec_attn.layer_norm.bias", "layer_norm.bias"}},
                                 fed},
                                {"deltanet",
                                 {{"width", "8"}, {"heads", "2"}, {"prenorm", "yes"}, {"feature_map", "elu"}},
                                 {{"dec_attn.qkvb_net.weight", "slow_net.weight"},
                                  {"dec_attn.o_net.weight", "out_linear.weight"},
                                  {"dec_attn.layer_norm.weight", "layer_norm.weight"},
                                  {"dec_attn.layer_norm.bias", "layer_norm.bias"}},
                                 fed},
                                {"deltanet",
                                 {{"width", "8"}, {"heads", "2"}, {"prenorm", "yes"}, {"feature_map", "elu"}, {"update", "sum"}},
                                 {{"dec_attn.qkv_net.weight", "slow_net.weight"},
                                  {"dec_attn.o_net.weight", "out_linear.weight"},
                                  {"dec_attn.layer_norm.weight", "layer_norm.weight"},
                                  {"dec_attn.layer_norm.bias", "layer_norm.bias"}},
                                 fed}};
  for (const Theirs& one : all) {
    Preset preset;
    preset.id = preset.architecture = one.model;
    auto set = one.set;
    set.emplace_back("layers", "2");
    const Network network(*architecture_of(builtin_registry(), preset), hyper_of(builtin_registry(), preset, set), {.input = 8});
    FileShapes file;
    std::map<std::string, std::string> expected;
    for (int layer = 0; layer < 2; ++layer)
      for (int part = 0; part < 2; ++part)
        for (const auto& [ours, theirs] : part ? one.second : one.names)
          expected[std::to_string(layer) + "/" + ours] = "layers." + std::to_string(2 * layer + part) + "." + theirs;
    CHECK_EQUAL(expected.size(), network.parameters().size());
    for (const auto& parameter : network.parameters()) {
      CHECK_SAYS(expected.count(parameter.name), parameter.name);
      file[expected.at(parameter.name)] = parameter.var.shape();
    }
    const NameMatch found = match_names(network, file);
    CHECK_SAYS(found.problem.empty() && found.unknown.empty(), found.problem);
    for (std::size_t i = 0; i < found.entries.size(); ++i) CHECK_EQUAL(found.entries[i], expected.at(network.parameters()[i].name));
  }
}
