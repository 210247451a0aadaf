// SPDX-License-Identifier: GPL-3.0-or-later
// The delta rule with everything that it may be given, against the loop that one can check by hand: reads, memories, transitions; its
// adjoint and tangent against each other and central differences.
#include <cmath>
#include <memory>
#include <optional>

#include "recurrence/delta/delta.h"
#include "recurrence/plan.h"
#include "tangents.h"
#include "test.h"

using namespace reclab;

namespace {

constexpr std::int64_t batch = 2, heads = 2, key = 3, value = 2;

struct Case {
  bool shared, other;
  std::int64_t factors;  // of the decay; 0: none
  bool invariant, read_before;
  std::int64_t batch = 2;
  std::string name() const {
    return std::string(shared ? "beta" : "no beta") + (other ? ", another key recalled" : "") +
           (factors == 0   ? ""
            : factors == 1 ? ", decay by head"
                           : ", decay by key") +
           (invariant ? ", constant" : "") + (read_before ? ", read before" : "");
  }
  std::vector<Form> forms() const {
    std::vector<Form> all{Form::sequential, Form::chunkwise};
    if (factors < 2) all.push_back(Form::attention);
    return all;
  }
};
std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const bool shared : {true, false})
    for (const bool other : {false, true})
      for (const std::int64_t factors : {std::int64_t{0}, std::int64_t{1}, key})
        for (const bool invariant : {false, true})
          for (const bool read_before : {false, true})
            if (factors || !invariant) all.push_back({shared, other, factors, invariant, read_before});
  return all;
}

struct Made {
  DeltaInputs in;
  OuterVars vars;
};
Made build(const Case& of, Form form, Graph& graph, RandomLeaves& leaves, std::int64_t steps) {
  Made made;
  made.in = {.q = leaves.real({steps, of.batch, heads, key}),
             .k = leaves.real({steps, of.batch, heads, key}, -0.8, 0.8),
             .v = leaves.real({steps, of.batch, heads, value}),
             .beta = of.shared ? leaves.real({steps, of.batch, heads, 1}, 0.1, 1.5) : Var{},
             .recall = of.other ? leaves.real({steps, of.batch, heads, key}, -0.8, 0.8) : Var{},
             .log_decay = of.factors == 0 ? Var{}
                          : of.invariant  ? leaves.real({heads, of.factors}, -0.4, -0.1)
                                          : leaves.real({steps, of.batch, heads, of.factors}, -1.0, -0.1),
             .read_before = of.read_before};
  made.vars = delta(graph, form, made.in);
  leaves.initial(made.vars);
  return made;
}

using Numbers = std::vector<double>;

/// What the leaves hold, in the order that they were asked for, with a place for each index.
struct Given {
  Numbers q, k, v, beta, recall, decay, start;
};

/// The loop: memories after each step and reads, [steps, batch, heads, ...].
struct Plain {
  Numbers reads, memories;
};
Plain plain(const Case& of, const Given& in, std::int64_t steps) {
  Plain made;
  made.reads.resize(static_cast<std::size_t>(steps * of.batch * heads * value));
  made.memories.resize(static_cast<std::size_t>(steps * of.batch * heads * key * value));
  for (std::int64_t b = 0; b < of.batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h) {
      double S[key][value];
      for (std::int64_t i = 0; i < key; ++i)
        for (std::int64_t j = 0; j < value; ++j) S[i][j] = in.start[static_cast<std::size_t>(((b * heads + h) * key + i) * value + j)];
      for (std::int64_t t = 0; t < steps; ++t) {
        const std::int64_t row = (t * of.batch + b) * heads + h;
        const auto at = [&](const Numbers& x, std::int64_t width, std::int64_t i) { return x[static_cast<std::size_t>(row * width + i)]; };
        const auto read = [&] {
          for (std::int64_t j = 0; j < value; ++j) {
            double sum = 0.0;
            for (std::int64_t i = 0; i < key; ++i) sum += at(in.q, key, i) * S[i][j];
            made.reads[static_cast<std::size_t>(row * value + j)] = sum;
          }
        };
        if (of.read_before) read();
        for (std::int64_t i = 0; i < key && of.factors; ++i)
          for (std::int64_t j = 0; j < value; ++j) {
            const std::int64_t factor = of.factors == 1 ? 0 : i;
            S[i][j] *=
                std::exp(of.invariant ? in.decay[static_cast<std::size_t>(h * of.factors + factor)] : at(in.decay, of.factors, factor));
          }
        for (std::int64_t j = 0; j < value; ++j) {
          double recalled = 0.0;
          for (std::int64_t i = 0; i < key; ++i) recalled += (of.other ? at(in.recall, key, i) : at(in.k, key, i)) * S[i][j];
          const double written = (of.shared ? at(in.beta, 1, 0) : 1.0) * (at(in.v, value, j) - recalled);
          for (std::int64_t i = 0; i < key; ++i) S[i][j] += at(in.k, key, i) * written;
        }
        if (!of.read_before) read();
        for (std::int64_t i = 0; i < key; ++i)
          for (std::int64_t j = 0; j < value; ++j) made.memories[static_cast<std::size_t>((row * key + i) * value + j)] = S[i][j];
      }
    }
  return made;
}

/// What a built form computes from its leaves.
struct Ran {
  Graph graph{DType::f64};
  RandomLeaves leaves{graph, 7};
  Made made;
  std::optional<test::Derivatives> derivatives;
  Given given;
};
std::unique_ptr<Ran> run(const Case& of, Form form, std::int64_t steps) {
  auto ran = std::make_unique<Ran>();
  ran->made = build(of, form, ran->graph, ran->leaves, steps);
  std::vector<Var> outputs{ran->made.vars.output, ran->made.vars.finals[0]};
  if (ran->made.vars.trajectories[0]) outputs.push_back(ran->made.vars.trajectories[0]);
  ran->derivatives.emplace(cpu_backend(), ran->graph, ran->leaves.all(), outputs);
  ran->derivatives->values(ran->derivatives->random_directions(1), 0.0);
  for (const auto& [var, numbers] : {std::pair{ran->made.in.q, &ran->given.q},
                                     {ran->made.in.k, &ran->given.k},
                                     {ran->made.in.v, &ran->given.v},
                                     {ran->made.in.beta, &ran->given.beta},
                                     {ran->made.in.recall, &ran->given.recall},
                                     {ran->made.in.log_decay, &ran->given.decay},
                                     {ran->made.vars.initial[0], &ran->given.start}})
    if (var) *numbers = to_double(cpu_backend(), DType::f64, ran->graph.value(var), count(var.shape()));
  return ran;
}
Numbers numbers(const Ran& ran, Var var) { return to_double(cpu_backend(), DType::f64, ran.graph.value(var), count(var.shape())); }

}  // namespace

TEST_CASE("every delta rule, in every form, reads and holds what the loop does") {
  CHECK_EQUAL(all_cases().size(), std::size_t{40});
  double worst = 0.0;
  for (const Case& of : all_cases())
    for (const Form form : of.forms())
      for (const std::int64_t steps : {1, 16, 33, 70}) {
        const auto ran = run(of, form, steps);
        const Plain expected = plain(of, ran->given, steps);
        const std::string what = of.name() + ", " + std::string(to_string(form)) + ", " + std::to_string(steps) + " steps";
        const auto compare = [&](const Numbers& found, std::span<const double> right, const char* name) {
          CHECK_EQUAL(found.size(), right.size());
          const double gap = test::largest_gap(found, {right.begin(), right.end()}) / test::largest({right.begin(), right.end()});
          worst = std::max(worst, gap);
          CHECK_SAYS(gap <= 1e-13, what + ": " + name + " off by " + test::show(gap));
        };
        const std::size_t n = static_cast<std::size_t>(of.batch * heads * key * value);
        compare(numbers(*ran, ran->made.vars.output), expected.reads, "reads");
        compare(numbers(*ran, ran->made.vars.finals[0]), std::span(expected.memories).last(n), "the last memory");
        if (form == Form::sequential) compare(numbers(*ran, ran->made.vars.trajectories[0]), expected.memories, "memories");
      }
  std::printf("worst %.2g of the largest\n", worst);
}

TEST_CASE("every delta rule, in every form, has the adjoint and the tangent of what it computes") {
  for (const Case& of : all_cases())
    for (const Form form : of.forms()) {
      const auto ran = run(of, form, 35);
      test::check_tangents(of.name() + ", " + std::string(to_string(form)), *ran->derivatives, {.noise = 100.0});
    }
}

TEST_CASE("a delta rule's transition is (I - beta k r^T) G, alike for all columns of its values") {
  for (const Case& of : all_cases()) {
    const auto ran = run(of, Form::sequential, 5);
    Memory& memory = *ran->made.vars.memory;
    const Transition how = memory.transition();
    CHECK_SAYS(how.kind == (of.factors > 1 ? Transition::Kind::blocks : Transition::Kind::low_rank), of.name());
    CHECK(how.count == heads && how.size == key && how.repeats == value && how.varies);
    for (const std::int64_t t : {0, 4}) {
      Numbers matrices(static_cast<std::size_t>(how.entries())), scale(heads, 1.0), left(heads * key, 0.0), right(heads * key, 0.0);
      memory.jacobian(t, matrices);
      if (how.kind == Transition::Kind::low_rank) memory.low_rank(t, scale, left, right);
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t i = 0; i < key; ++i)
          for (std::int64_t j = 0; j < key; ++j) {
            const std::int64_t row = t * of.batch * heads + h;
            const auto at = [&](const Numbers& x, std::int64_t width, std::int64_t n) {
              return x[static_cast<std::size_t>(row * width + n)];
            };
            const double r = of.other ? at(ran->given.recall, key, j) : at(ran->given.k, key, j);
            const std::int64_t factor = of.factors > 1 ? j : 0;
            const double keep = of.factors == 0
                                    ? 1.0
                                    : std::exp(of.invariant ? ran->given.decay[static_cast<std::size_t>(h * of.factors + factor)]
                                                            : at(ran->given.decay, of.factors, factor));
            const double expected =
                ((i == j ? 1.0 : 0.0) - (of.shared ? at(ran->given.beta, 1, 0) : 1.0) * at(ran->given.k, key, i) * r) * keep;
            CHECK_CLOSE(matrices[static_cast<std::size_t>((h * key + i) * key + j)], expected, 1e-14);
            if (how.kind != Transition::Kind::low_rank) continue;
            const double told = (i == j ? scale[static_cast<std::size_t>(h)] : 0.0) +
                                left[static_cast<std::size_t>(h * key + i)] * right[static_cast<std::size_t>(h * key + j)];
            CHECK_CLOSE(told, expected, 1e-14);
          }
    }
  }
}

TEST_CASE("the pieces of work of every delta rule, carried out, are its reads and memories") {
  constexpr std::int64_t steps = 21;
  for (Case of : all_cases()) {
    of.batch = 1;  // what is drawn
    for (const Form form : of.forms()) {
      if (form == Form::sequential) continue;
      const auto ran = run(of, form, steps);
      for (std::size_t i = 0; i < ran->given.start.size(); ++i) ran->given.start[i] = 0.0;  // a drawing begins at rest
      const Plain expected = plain(of, ran->given, steps);
      Drawn drawn;
      drawn.order = dynamic_cast<const HasEvaluationOrder&>(*ran->made.vars.memory).evaluation_order();
      drawn.in = drawn.order.in;
      Plan plan;
      drawn.order.draw(plan, drawn);
      const auto from = plan.entry.find("entry ("), comma = plan.entry.find(", ", from);
      const std::int64_t i = std::stol(plan.entry.substr(from + 7)), j = std::stol(plan.entry.substr(comma + 2));
      std::int64_t reads = 0, memories = 0;
      for (const Plan::Node& node : plan.nodes()) {
        const std::string& kind = plan.kinds()[static_cast<std::size_t>(node.kind)].name;
        if (kind == "output") {
          CHECK_CLOSE(node.value.real(), expected.reads[static_cast<std::size_t>(node.row * heads * value + j)], 1e-13);
          ++reads;
        } else if (kind == "memory") {
          CHECK_CLOSE(node.value.real(), expected.memories[static_cast<std::size_t>((node.last * heads * key + i) * value + j)], 1e-13);
          ++memories;
        }
      }
      CHECK_EQUAL(reads, steps);
      CHECK_EQUAL(memories, form == Form::attention ? 1 : 3);
    }
  }
}

TEST_CASE("after a whole correction the memory answers the key with the value, whatever it has lost before") {
  // beta |k|^2 = 1: what the order of decay and correction is for.
  for (const std::int64_t factors : {std::int64_t{1}, key}) {
    Graph graph(DType::f64);
    RandomLeaves leaves(graph, 3);
    const std::int64_t steps = 9;
    const Var k = leaves.real({steps, batch, heads, key}), v = leaves.real({steps, batch, heads, value}),
              squares = mean_keep(square(k), -1) * static_cast<double>(key);
    const OuterVars vars =
        delta(graph, Form::chunkwise,
              {.q = k, .k = k, .v = v, .beta = reciprocal(squares), .log_decay = leaves.real({steps, batch, heads, factors}, -2.0, 0.0)});
    leaves.initial(vars);
    test::Derivatives ran(cpu_backend(), graph, leaves.all(), {vars.output, v});
    const Numbers both = ran.values(ran.random_directions(1), 0.0);
    for (std::size_t i = 0; i < both.size() / 2; ++i) CHECK_CLOSE(both[i], both[both.size() / 2 + i], 1e-13);
  }
}

TEST_CASE("the first memory's adjoint is that of the first chunk's reads, however little of it reaches the last one") {
  const std::int64_t steps = 128;
  Numbers of_form[2];
  for (const Form form : {Form::sequential, Form::chunkwise}) {
    Graph graph(DType::f64);
    RandomLeaves leaves(graph, 3);
    const OuterVars vars = delta(graph, form,
                                 {.q = leaves.real({steps, batch, heads, key}),
                                  .k = leaves.real({steps, batch, heads, key}, -0.5, 0.5),
                                  .v = leaves.real({steps, batch, heads, value}),
                                  .beta = leaves.real({steps, batch, heads, 1}, 0.1, 0.9),
                                  .log_decay = leaves.real({heads, 1}, -1.0, -0.9)});
    leaves.initial(vars);
    test::Derivatives ran(cpu_backend(), graph, leaves.all(), {vars.output});
    ran.values(ran.random_directions(1), 0.0);
    Numbers u(static_cast<std::size_t>(count(vars.output.shape())), 0.0);
    const std::size_t row = static_cast<std::size_t>(batch * heads * value);
    for (const std::size_t t : {std::size_t{2}, static_cast<std::size_t>(steps - 1)})
      std::fill_n(u.begin() + static_cast<std::ptrdiff_t>(t * row), row, 1.0);
    of_form[form == Form::chunkwise] = ran.adjoints(u).back();
  }
  CHECK(test::largest(of_form[0]) > 1e-3);
  CHECK_SAYS(test::largest_gap(of_form[0], of_form[1]) <= 1e-13 * test::largest(of_form[0]),
             test::show(test::largest_gap(of_form[0], of_form[1])));
}

TEST_CASE("each entry of a key may correct itself alone, by a share of any sign and size") {
  const std::int64_t steps = 70;
  Numbers first;
  for (const Form form : {Form::sequential, Form::scan, Form::chunkwise}) {
    Graph graph(DType::f64);
    RandomLeaves leaves(graph, 3);
    const Var q = leaves.real({steps, batch, heads, key}), k = leaves.real({steps, batch, heads, key}, -0.2, 1.5),
              v = leaves.real({steps, batch, heads, value});
    const OuterVars vars = delta_by_entry(graph, form, q, k, v);
    leaves.initial(vars);
    test::Derivatives ran(cpu_backend(), graph, leaves.all(), {vars.output, vars.finals[0]});
    ran.values(ran.random_directions(1), 0.0);
    const auto held = [&](Var var) { return to_double(cpu_backend(), DType::f64, graph.value(var), count(var.shape())); };
    const Numbers Q = held(q), K = held(k), V = held(v), reads = held(vars.output), last = held(vars.finals[0]);
    Numbers S = held(vars.initial[0]), expected;
    for (std::int64_t t = 0; t < steps; ++t)
      for (std::int64_t n = 0; n < batch * heads; ++n)
        for (std::int64_t j = 0; j < value; ++j) {
          double sum = 0.0;
          for (std::int64_t i = 0; i < key; ++i) {
            const auto place = static_cast<std::size_t>((t * batch * heads + n) * key + i);
            double& s = S[static_cast<std::size_t>((n * key + i) * value + j)];
            s += K[place] * (V[static_cast<std::size_t>((t * batch * heads + n) * value + j)] - s);
            sum += Q[place] * s;
          }
          expected.push_back(sum);
        }
    CHECK(test::largest_gap(reads, expected) <= 1e-13 * test::largest(expected));
    CHECK(test::largest_gap(last, S) <= 1e-13 * test::largest(S));
    test::check_tangents("by entry, " + std::string(to_string(form)), ran, {.noise = 100.0});
  }
}
