// SPDX-License-Identifier: GPL-3.0-or-later
// The matrix memory in all that it can be, in all its forms: outputs, last states, adjoints and tangents are those of a plain loop.
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "array/rng.h"
#include "plain_outer.h"
#include "recurrence/outer/outer.h"
#include "recurrence/primitive.h"
#include "tangents.h"
#include "test.h"

using namespace reclab;

namespace {

constexpr std::int64_t batch = 2, heads = 2, key = 3, value = 2;

enum class Decay { none, by_head, by_key, constant_head, constant_key };
enum class Turn { none, varies, constant, number };  // number: given as e^{i theta}

struct Variant {
  Decay decay = Decay::none;
  ReadOrder read = ReadOrder::after;
  bool bonus = false, bonus_varies = false;
  Turn value_decay = Turn::none, phase = Turn::none;
  bool complex_keys = false;

  std::string name() const {
    std::string text = decay == Decay::none            ? "no decay"
                       : decay == Decay::by_head       ? "decay by head"
                       : decay == Decay::by_key        ? "decay by key"
                       : decay == Decay::constant_head ? "constant decay by head"
                                                       : "constant decay by key";
    if (read == ReadOrder::before) text += ", read before";
    if (bonus) text += bonus_varies ? ", bonus a step" : ", bonus";
    if (value_decay != Turn::none) text += value_decay == Turn::varies ? ", decay by value" : ", constant decay by value";
    if (phase != Turn::none)
      text += phase == Turn::varies ? ", phases" : phase == Turn::constant ? ", constant phases" : ", phases as numbers";
    if (complex_keys) text += " of complex keys";
    return text;
  }
  bool decays() const { return decay != Decay::none || value_decay != Turn::none; }
  bool has_key_decay() const { return decay == Decay::by_key || decay == Decay::constant_key; }
  std::vector<Form> forms() const {
    std::vector<Form> all{Form::sequential, Form::chunkwise};
    if (decays() || phase != Turn::none) all.push_back(Form::scan);
    if (!has_key_decay() && value_decay == Turn::none) all.push_back(Form::attention);
    return all;
  }
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const Decay decay : {Decay::none, Decay::by_head, Decay::by_key, Decay::constant_head, Decay::constant_key})
    for (const int reading : {0, 1, 2, 3}) {
      Variant kind;
      kind.decay = decay;
      kind.read = reading ? ReadOrder::before : ReadOrder::after;
      kind.bonus = reading > 1;
      kind.bonus_varies = reading == 3;
      for (const Turn value_decay : {Turn::none, Turn::varies, Turn::constant})
        for (const Turn phase : {Turn::none, Turn::varies, Turn::constant, Turn::number})
          for (const bool complex : {false, true}) {
            // Each with each but where three are of a kind that two have met: decays by both that stand still, bonuses that vary.
            if ((complex && phase == Turn::none) || (reading == 3 && (value_decay == Turn::constant || phase == Turn::constant))) continue;
            kind.value_decay = value_decay;
            kind.phase = phase;
            kind.complex_keys = complex;
            all.push_back(kind);
          }
    }
  return all;
}

/// A graph of the memory, and the plain loop over the same numbers.
struct Case {
  Variant kind;
  std::int64_t steps;
  Graph graph{DType::f64};
  std::optional<test::Derivatives> derivatives;
  std::vector<Var> leaves;  // in the order of derivatives' leaves
  std::optional<std::size_t> q, k, v, q_imag, k_imag, key_decay, value_decay, phase, bonus, initial;

  Case(const Variant& of, Form form, std::int64_t T, bool record, double strength) : kind(of), steps(T) {
    RandomLeaves x(graph, 5);
    std::size_t made = 0;
    const auto add = [&](std::optional<std::size_t>& at, Shape shape, double low = -1.0, double high = 1.0) {
      at = made++;
      return x.real(std::move(shape), low, high);
    };
    OuterInputs in;
    in.q = add(q, {T, batch, heads, key});
    in.k = add(k, {T, batch, heads, key});
    in.v = add(v, {T, batch, heads, value});
    if (kind.complex_keys) {
      in.q = complex(in.q, add(q_imag, {T, batch, heads, key}));
      in.k = complex(in.k, add(k_imag, {T, batch, heads, key}));
    }
    const std::int64_t factors = kind.has_key_decay() ? key : 1;
    if (kind.decay == Decay::by_head || kind.decay == Decay::by_key)
      in.key_decay = add(key_decay, {T, batch, heads, factors}, -strength, 0.0);
    if (kind.decay == Decay::constant_head || kind.decay == Decay::constant_key)
      in.key_decay = add(key_decay, {heads, factors}, -strength, 0.0);
    if (kind.bonus) in.bonus = kind.bonus_varies ? add(bonus, {T, batch, heads, key}) : add(bonus, {heads, key});
    if (kind.value_decay != Turn::none)
      in.value_decay =
          add(value_decay, kind.value_decay == Turn::varies ? Shape{T, batch, heads, value} : Shape{heads, value}, -strength, 0.0);
    if (kind.phase != Turn::none)
      in.phase = add(phase, kind.phase == Turn::constant ? Shape{heads, key} : Shape{T, batch, heads, key}, -2.0, 2.0);
    if (kind.phase == Turn::number) in.phase = complex(cos(in.phase), sin(in.phase));
    in.read = kind.read;
    const OuterVars vars = outer(graph, form, in, record);
    x.initial(vars);
    initial = made++;
    // What a final state is read by comes as what is carried in, so it is no output here.
    derivatives.emplace(cpu_backend(), graph, x.all(), std::vector<Var>{vars.output});
  }

  /// The plain loop, the leaves moving along; an empty direction stands still.
  test::PlainOuter plain(const test::Derivatives::Directions& along) const {
    const auto entry = [this, &along](std::size_t leaf, std::int64_t at) {
      const auto i = static_cast<std::size_t>(at);
      return test::Dual{derivatives->leaves()[leaf].parts[i], along[leaf].empty() ? 0.0 : along[leaf][i]};
    };
    const std::int64_t all = batch * heads;
    const auto sequence = [=](std::size_t leaf, std::int64_t width) {
      return [=](std::int64_t t, std::int64_t h, std::int64_t i) { return entry(leaf, (t * all + h) * width + (width > 1 ? i : 0)); };
    };
    const auto constant = [=](std::size_t leaf, std::int64_t width) {
      return [=](std::int64_t, std::int64_t h, std::int64_t i) { return entry(leaf, h % heads * width + (width > 1 ? i : 0)); };
    };
    test::PlainOuter loop{
        .steps = steps, .heads = all, .key = key, .value = value, .q = sequence(*q, key), .k = sequence(*k, key), .v = sequence(*v, value)};
    if (key_decay) {
      const std::int64_t factors = kind.has_key_decay() ? key : 1;
      loop.key_decay = kind.decay == Decay::by_head || kind.decay == Decay::by_key ? test::PlainOuter::Entry(sequence(*key_decay, factors))
                                                                                   : constant(*key_decay, factors);
    }
    if (bonus) loop.bonus = kind.bonus_varies ? test::PlainOuter::Entry(sequence(*bonus, key)) : constant(*bonus, key);
    loop.before = kind.read == ReadOrder::before;
    if (q_imag) {
      loop.q_imag = sequence(*q_imag, key);
      loop.k_imag = sequence(*k_imag, key);
    }
    if (value_decay)
      loop.value_decay =
          kind.value_decay == Turn::varies ? test::PlainOuter::Entry(sequence(*value_decay, value)) : constant(*value_decay, value);
    if (phase) loop.phase = kind.phase == Turn::constant ? test::PlainOuter::Entry(constant(*phase, key)) : sequence(*phase, key);
    const std::int64_t parts = phase ? 2 : 1;
    loop.initial = [=, at = *initial](std::int64_t h, std::int64_t i, std::int64_t j) {
      return entry(at, ((h * key + i) * value + j) * parts);
    };
    if (phase)
      loop.initial_imag = [=, at = *initial](std::int64_t h, std::int64_t i, std::int64_t j) {
        return entry(at, ((h * key + i) * value + j) * 2 + 1);
      };
    return loop;
  }
};

test::Parts values_of(const std::vector<test::Dual>& all) {
  test::Parts values;
  for (const test::Dual& x : all) values.push_back(x.value);
  return values;
}
test::Parts moves_of(const std::vector<test::Dual>& all) {
  test::Parts moves;
  for (const test::Dual& x : all) moves.push_back(x.moved);
  return moves;
}
double dot(const test::Parts& x, const test::Parts& y) {
  double sum = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

void agrees(const Variant& kind, Form form, std::int64_t T, bool record, double strength) {
  Case one(kind, form, T, record, strength);
  const std::string what = kind.name() + ", " + std::string(to_string(form)) + (record ? ", recorded" : "") + ", " + std::to_string(T) +
                           " steps, decays to " + test::show(strength);
  test::Derivatives& graph = *one.derivatives;
  const test::Derivatives::Directions still(graph.leaves().size());
  const test::Parts made = graph.values(still, 0.0), plain = values_of(one.plain(still).run().output);
  const double size = std::max(1.0, test::largest(plain));
  CHECK_SAYS(test::largest_gap(made, plain) <= 1e-12 * size, what + ": outputs differ by " + test::show(test::largest_gap(made, plain)));
  Rng rng(9);
  test::Parts u;
  for (std::size_t i = 0; i < made.size(); ++i) u.push_back(rng.uniform(-1.0, 1.0));
  const test::Derivatives::Directions adjoints = graph.adjoints(u), all = graph.random_directions(3);
  for (std::size_t leaf = 0; leaf < all.size(); ++leaf) {
    test::Derivatives::Directions along(all.size());
    along[leaf] = all[leaf];
    const test::Parts moved = moves_of(one.plain(along).run().output), tangents = graph.tangents(along);
    const double unit = std::max(1.0, test::largest(moved));
    CHECK_SAYS(test::largest_gap(tangents, moved) <= 1e-12 * unit,
               what + ": the tangents of leaf " + std::to_string(leaf) + " differ by " + test::show(test::largest_gap(tangents, moved)));
    const double expected = dot(u, moved), found = dot(adjoints[leaf], along[leaf]);
    CHECK_SAYS(std::abs(expected - found) <= 1e-12 * unit * static_cast<double>(T),
               what + ": the adjoint of leaf " + std::to_string(leaf) + " gives " + test::show(found) + ", not " + test::show(expected));
  }
}

}  // namespace

TEST_CASE("a matrix memory of every kind and in every form is that of a plain loop, with its adjoints and tangents") {
  for (const Variant& kind : variants())
    for (const Form form : kind.forms())
      for (const std::int64_t T : {1, 17, 60})
        for (const bool record : {false, true}) {
          if (record && (form != Form::sequential || kind.value_decay != Turn::none || kind.phase != Turn::none))
            continue;  // these keep all states in any case
          agrees(kind, form, T, record, 0.3);
        }
}

TEST_CASE("a matrix memory whose decays leave the range is that of a plain loop") {
  for (const Variant& kind : variants())
    for (const Form form : kind.forms())
      for (const double strength : {1e-9, 40.0, 900.0})
        if (kind.decays()) agrees(kind, form, 60, form == Form::sequential, strength);
}

namespace {

/// The adjoints of q, k, v, the decays and the phases of 4,096 steps, then that of a number that all phases are multiplied with.
std::vector<test::Parts> adjoints_in(DType type, Form form, const Variant& kind) {
  constexpr std::int64_t steps = 4096;
  Graph graph(type);
  RandomLeaves x(graph, 5);
  const Shape by_key{steps, 1, heads, key}, by_value{steps, 1, heads, value};
  OuterInputs in{.q = x.real(by_key), .k = x.real(by_key), .v = x.real(by_value)};
  if (kind.decay == Decay::by_head || kind.decay == Decay::by_key)
    in.key_decay = x.real({steps, 1, heads, kind.decay == Decay::by_key ? key : 1}, -0.7, 0.0);
  if (kind.value_decay == Turn::varies) in.value_decay = x.real(by_value, -0.7, 0.0);
  in.phase = x.real(by_key, -0.2, 2.0) * x.real({key}, 1.0, 1.0);
  if (kind.phase == Turn::number) in.phase = complex(cos(in.phase), sin(in.phase));
  in.read = kind.read;
  const OuterVars vars = outer(graph, form, in, false);
  x.initial(vars);
  Backend& backend = cpu_backend();
  graph.allocate(backend, true);
  std::vector<DeviceArray> held;
  for (const RandomLeaves::Leaf& leaf : x.all()) {
    held.emplace_back(backend, narrowed(type, leaf.parts));
    graph.bind(leaf.var, held.back().data());
  }
  graph.forward();
  Rng rng(9);
  std::vector<double> u;
  for (std::int64_t i = 0; i < count(vars.output.shape()); ++i) u.push_back(rng.uniform(-1.0, 1.0));
  graph.clear_gradients();
  const std::vector<char> bytes = narrowed(type, u);
  backend.upload(graph.gradient(vars.output), bytes.data(), bytes.size());
  graph.backward();
  std::vector<test::Parts> all;
  for (std::size_t i = 0; i + 1 < x.all().size(); ++i)
    all.push_back(to_double(backend, type, graph.gradient(x.all()[i].var), count(x.all()[i].var.shape())));
  return all;
}

}  // namespace

TEST_CASE("the adjoints of phases of every step are good to the precision of float32 over thousands of steps, in every form") {
  for (const Turn value_decay : {Turn::none, Turn::varies})
    for (const Turn phase : {Turn::varies, Turn::number})
      for (const ReadOrder read : {ReadOrder::after, ReadOrder::before}) {
        const Variant kind{.decay = Decay::by_head, .read = read, .value_decay = value_decay, .phase = phase};
        for (const Form form : kind.forms()) {
          const auto narrow = adjoints_in(DType::f32, form, kind), wide = adjoints_in(DType::f64, form, kind);
          for (std::size_t leaf = 0; leaf < wide.size(); ++leaf) {
            const double gap = test::largest_gap(narrow[leaf], wide[leaf]) / test::largest(wide[leaf]);
            CHECK_SAYS(gap <= 2e-5, kind.name() + ", " + std::string(to_string(form)) + ": the adjoint of leaf " + std::to_string(leaf) +
                                        " is off by " + test::show(gap));
          }
        }
      }
}
