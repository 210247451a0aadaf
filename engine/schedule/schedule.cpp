// SPDX-License-Identifier: GPL-3.0-or-later
#include "schedule/schedule.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "array/order.h"
#include "array/stop.h"
#include "execution/rollout.h"
#include "experiment/weights.h"
#include "models/registry.h"
#include "recurrence/course.h"

namespace reclab {
namespace {

using Complex = std::complex<double>;
constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr double least_error = -17.0;  // log10 of what is drawn as no error

/// The pieces of work of one form.
class Plan {
 public:
  struct Node {
    std::int64_t round, first, last;
    int kind;
    std::int64_t begin, row, work;
    Complex value, product;
  };
  std::string drawing = "tree", why, unit, entry;
  std::vector<std::vector<double>> errors;

  int kind(std::string name, Place place, std::string rule) {
    kinds_.push_back({std::move(name), place, std::move(rule)});
    return static_cast<int>(std::ssize(kinds_)) - 1;
  }
  /// A node of one round; returns its number.
  int add(int kind, std::int64_t round, std::int64_t first, std::int64_t last, const std::vector<int>& needs = {}, Complex value = none,
          Complex product = none) {
    const int number = static_cast<int>(std::ssize(nodes_));
    for (const int from : needs) {
      assert(nodes_[static_cast<std::size_t>(from)].round < round);
      edges_.push_back({from, number});
    }
    nodes_.push_back({round, first, last, kind, round, last, round > 0 ? 1 : 0, value, product});
    return number;
  }
  Node& operator[](int number) { return nodes_[static_cast<std::size_t>(number)]; }

  void put(Trace& trace, const std::string& form, std::int64_t steps, bool backward) const {
    const std::string prefix = "schedule/" + form + "/";
    const auto of = [&](const char* name, Shape shape, std::vector<Axis> axes, std::string text) {
      TraceArray array;
      array.key = prefix + name;
      array.shape = std::move(shape);
      array.axes = std::move(axes);
      array.text = std::move(text);
      return array;
    };
    const auto real = [&](TraceArray array, std::vector<double> values) {
      array.real = std::make_shared<const std::vector<double>>(std::move(values));
      trace.put(std::move(array));
    };
    const auto n = static_cast<std::int64_t>(nodes_.size()), k = static_cast<std::int64_t>(kinds_.size());
    std::vector<double> rows, ends, places, counts(kinds_.size(), 0.0), depths(nodes_.size(), 0.0);
    double rounds = 0.0, work = 0.0, depth = 0.0;
    for (const Node& node : nodes_) {
      const auto first = backward ? steps - 1 - node.last : node.first, last = backward ? steps - 1 - node.first : node.last;
      for (const auto x : {node.round, first, last, std::int64_t{node.kind}, node.begin, backward ? steps - 1 - node.row : node.row, node.work})
        rows.push_back(static_cast<double>(x));
      ++counts[static_cast<std::size_t>(node.kind)];
      rounds = std::max(rounds, static_cast<double>(node.round));
      work += static_cast<double>(node.work);
    }
    // Nodes come after what they need.
    std::size_t edge = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (; edge < edges_.size() && edges_[edge].second == static_cast<int>(i); ++edge)
        depths[i] = std::max(depths[i], depths[static_cast<std::size_t>(edges_[edge].first)]);
      if (nodes_[i].round > 0) depths[i] += static_cast<double>(nodes_[i].round - nodes_[i].begin + 1);
      depth = std::max(depth, depths[i]);
    }
    for (const auto& [from, to] : edges_) ends.insert(ends.end(), {static_cast<double>(from), static_cast<double>(to)});
    std::vector<std::string> names, rules;
    for (const Kind& one : kinds_) {
      names.push_back(one.name);
      rules.push_back(one.rule);
      places.push_back(static_cast<double>(one.place));
    }
    real(of("nodes", {n, 7}, {{"node", "", {}}, {"column", "", {"round", "first", "last", "kind", "begin", "row", "work"}}},
            "The pieces of work: the round each can run in (0: given), the steps it covers, its kind, the round it begins in, its row, and its share of the work."),
         std::move(rows));
    real(of("edges", {std::ssize(edges_), 2}, {{"edge", "", {}}, {"column", "", {"from", "to"}}}, "Which node needs which."), std::move(ends));
    real(of("kinds", {k}, {{"kind", "", std::move(names)}}, "How each kind of node is drawn."), std::move(places));
    real(of("rules", {k}, {{"kind", "", std::move(rules)}}, "What each kind of node computes, and how many there are."), std::move(counts));
    real(of("rounds", {1}, {{"rounds", "", {}}}, why), {rounds});
    real(of("work", {1}, {{"work", "", {}}}, unit), {work});
    real(of("depth", {1}, {{"rounds", "", {}}}, "The longest chain of rounds that wait for each other."), {depth});
    real(of("drawing", {1}, {{"drawing", "", {drawing}}}, "How the form is drawn."), {0.0});
    const auto made = [&](const char* name, Complex Node::*member, const std::string& text) {
      const auto given = [&](const Node& node) { return !std::isnan((node.*member).real()); };
      if (std::ranges::none_of(nodes_, given)) return;
      TraceArray array = of(name, {n}, {{"node", "", {}}}, text);
      if (std::ranges::any_of(nodes_, [&](const Node& node) { return given(node) && (node.*member).imag() != 0.0; })) {
        std::vector<Complex> values;
        for (const Node& node : nodes_) values.push_back(node.*member);
        array.complex = std::make_shared<const std::vector<Complex>>(std::move(values));
        trace.put(std::move(array));
      } else {
        std::vector<double> values;
        for (const Node& node : nodes_) values.push_back((node.*member).real());
        real(std::move(array), std::move(values));
      }
    };
    made("value", &Node::value, entry);
    made("product", &Node::product, "The product of the factors of the steps that the node covers, of the same entry.");
    if (errors.empty()) return;
    TraceArray table = of("error", {std::ssize(errors), steps}, {{"iteration", "", {}}, {"time", "", {}}},
                          "log10 of the largest |s_t - its value step by step| relative to the largest state; -17 where that is nothing. Iteration 0 is the guess.");
    table.unit = "log10";
    std::vector<double> all;
    for (auto row : errors) {
      if (backward) std::ranges::reverse(row);
      all.insert(all.end(), row.begin(), row.end());
    }
    real(std::move(table), std::move(all));
  }

 private:
  struct Kind {
    std::string name;
    Place place;
    std::string rule;
  };
  std::vector<Kind> kinds_;
  std::vector<Node> nodes_;
  std::vector<std::pair<int, int>> edges_;
};

/// The operation of a form that is drawn, in a network that has run.
struct Found {
  Course course;
  std::vector<Var> in, out;
  Memory* memory = nullptr;  ///< null: what is read from a cache
  Var trajectory;            ///< of its first state, where there is one
  bool backward = false;
  std::string state;         ///< "state/0/h"
};

std::optional<Found> find(Network& network, Form form) {
  std::optional<Found> found;
  const Memory* memory = nullptr;
  network.graph().visit([&](const Operation& operation, std::span<const Var> in, std::span<const Var> out) {
    const auto* over_time = dynamic_cast<const OverTime*>(&operation);
    if (found || !over_time) return;
    Course course = over_time->course();
    if (course.steps == 0 || course.form != form) return;
    if (course.in.empty()) course.in.assign(in.begin(), in.end());
    found.emplace();
    found->in = course.in;
    found->out.assign(out.begin(), out.end());
    found->course = std::move(course);
    memory = dynamic_cast<const Memory*>(&operation);
  });
  if (!found) return found;
  for (const auto& state : network.states())
    if (memory && state.memory == memory && !found->memory) {
      found->memory = state.memory;
      found->trajectory = state.trajectory;
      found->state = Rollout::state_key(state);
      found->backward = state.backward;
    }
  // Of what is no memory the layer is not known; all run one way, or the first does.
  if (!found->memory && !network.layers().empty()) found->backward = network.layers().front().backward;
  return found;
}

std::vector<Complex> values_of(Var var) {
  return to_complex(var.graph->backend(), var.dtype(), var.graph->value(var), count(var.shape()));
}

/// The entry of each row that moves most.
std::int64_t liveliest(const std::vector<Complex>& values, std::int64_t width) {
  std::vector<double> squares(static_cast<std::size_t>(width), 0.0);
  for (std::size_t i = 0; i < values.size(); ++i) squares[i % static_cast<std::size_t>(width)] += std::norm(values[i]);
  return std::max_element(squares.begin(), squares.end()) - squares.begin();
}

/// Chunks that a short sequence has several of, where the engine's own would hold it all.
std::int64_t drawn_chunk(std::int64_t own, std::int64_t steps) {
  std::int64_t chunk = 1;
  while (chunk * chunk < steps) chunk *= 2;
  return std::min(own, chunk);
}
std::string chunks_said(const std::string& what, std::int64_t own, std::int64_t drawn) {
  if (own == drawn) return " The " + what + " are " + std::to_string(drawn) + " steps long.";
  return " The engine's " + what + " are " + std::to_string(own) + " steps long; these are " + std::to_string(drawn) + ", so that there are several.";
}
std::string of_entry(const std::string& what, const Found& found, std::int64_t entry) {
  return what + (found.state.empty() ? "" : ", of " + found.state) + ", entry " + std::to_string(entry) + ".";
}

const std::string why_sequential = "Each step needs the state that the one before it left, so there are as many rounds as steps, however many processors there are.";

void steps(Plan& plan, const Found& f) {
  const std::int64_t T = f.course.steps;
  const bool states = static_cast<bool>(f.trajectory);
  const auto made = states ? values_of(f.trajectory) : std::vector<Complex>();
  const std::int64_t width = states ? std::ssize(made) / T : 1, entry = states ? liveliest(made, width) : 0;
  const int given = plan.kind("input", Place::point, "what the layer computed for this step alone; all steps at once"),
            stepped = plan.kind("step", Place::point, "the next state, from the state before and this step's input");
  int before = -1;
  for (std::int64_t t = 0; t < T; ++t) {
    std::vector<int> needs{plan.add(given, 0, t, t)};
    if (before >= 0) needs.push_back(before);
    before = plan.add(stepped, t + 1, 0, t, needs, states ? made[static_cast<std::size_t>(t * width + entry)] : Complex(none));
  }
  plan.why = why_sequential;
  plan.unit = "steps";
  plan.entry = of_entry("The state after the step", f, entry);
}

/// s_t = a_t s_{t-1} + b_t, of one entry.
struct Factors {
  std::vector<Complex> a, b;
  Complex initial;
  std::int64_t entry = 0;

  explicit Factors(const Found& f) {
    const std::int64_t T = f.course.steps;
    const auto factors = values_of(f.in[0]), drive = values_of(f.in[1]), start = values_of(f.in[2]), states = values_of(f.out[0]);
    const std::int64_t width = std::ssize(states) / T, period = std::ssize(factors);
    entry = liveliest(states, width);
    for (std::int64_t t = 0; t < T; ++t) {
      a.push_back(factors[static_cast<std::size_t>(period == T * width && f.in[0].shape() == f.in[1].shape() ? t * width + entry : entry % period)]);
      b.push_back(drive[static_cast<std::size_t>(t * width + entry)]);
    }
    initial = start[static_cast<std::size_t>(entry)];
  }
};

void diagonal(Plan& plan, const Found& f) {
  const Factors x(f);
  const int given = plan.kind("element", Place::point, "the factor a and the drive b of this step, computed for all steps at once"),
            stepped = plan.kind("step", Place::point, "s = a s' + b, from the state s' before and this step's a and b");
  int before = -1;
  Complex state = x.initial;
  for (std::size_t t = 0; t < x.a.size(); ++t) {
    const auto step = static_cast<std::int64_t>(t);
    std::vector<int> needs{plan.add(given, 0, step, step, {}, x.b[t], x.a[t])};
    if (before >= 0) needs.push_back(before);
    state = x.a[t] * state + x.b[t];
    before = plan.add(stepped, step + 1, 0, step, needs, state);
  }
  plan.why = why_sequential;
  plan.unit = "steps";
  plan.entry = of_entry("The state after the step, or the drive b", f, x.entry);
}

/// Places that elements are composed in.
class Places {
 public:
  Places(Plan& plan, const Factors& x, int given, int composed) : plan_(plan), composed_(composed) {
    for (std::size_t t = 0; t < x.a.size(); ++t) {
      const auto step = static_cast<std::int64_t>(t);
      // The initial state enters with the first element.
      now_.push_back(plan.add(given, 0, step, step, {}, t ? x.b[t] : x.b[t] + x.a[t] * x.initial, x.a[t]));
    }
  }
  void compose(std::int64_t earlier, std::int64_t later, std::int64_t round) {
    const Plan::Node first = plan_[at(earlier)], second = plan_[at(later)];
    assert(first.last + 1 == second.first);
    at(later) = plan_.add(composed_, round, first.first, second.last, {at(earlier), at(later)}, second.product * first.value + second.value,
                          second.product * first.product);
  }

 private:
  int& at(std::int64_t t) { return now_[static_cast<std::size_t>(t)]; }
  Plan& plan_;
  int composed_;
  std::vector<int> now_;
};

const std::string composition = "two neighbours become one: s → a₂(a₁ s + b₁) + b₂ has the factor a = a₂a₁ and the drive b = a₂b₁ + b₂";

void scan(Plan& plan, const Found& f) {
  const Factors x(f);
  const int given = plan.kind("element", Place::point, "the factor a and the drive b of this step, computed for all steps at once"),
            composed = plan.kind("composition", Place::point, composition);
  Places places(plan, x, given, composed);
  std::int64_t round = 0;
  bool fresh = false;
  // A round without a pair is none.
  order::tree(f.course.steps, [&] { fresh = true; }, [&](std::int64_t earlier, std::int64_t later) {
    round += std::exchange(fresh, false) ? 1 : 0;
    places.compose(earlier, later, round);
  });
  plan.why = "A step s → a s + b after another is again such a step, and it does not matter which pair is put together first: so neighbours are "
             "composed side by side, and then what they became. Where a node reaches back to the first step, its b is the state.";
  plan.unit = "compositions";
  plan.entry = of_entry("The drive b that the composed steps add", f, x.entry);
}

void chunkwise_scan(Plan& plan, const Found& f) {
  const std::int64_t chunk = drawn_chunk(f.course.chunk, f.course.steps);
  const Factors x(f);
  const int given = plan.kind("element", Place::point, "the factor a and the drive b of this step, computed for all steps at once"),
            composed = plan.kind("composition", Place::point, composition);
  Places places(plan, x, given, composed);
  order::chunks(f.course.steps, chunk, [&](std::int64_t t) { places.compose(t - 1, t, t % chunk); },
                [&](std::int64_t last, std::int64_t t) { places.compose(last, t, chunk - 1 + (last + 1) / chunk); });
  plan.why = "All chunks run side by side as if each began from nothing; then the last state of each is carried into the next, whose steps take it in all at once." +
             chunks_said("chunks", f.course.chunk, chunk);
  plan.unit = "compositions";
  plan.entry = of_entry("The drive b that the composed steps add", f, x.entry);
}

void matrices(Plan& plan, const Found& f) {
  const std::int64_t T = f.course.steps, chunk = std::max<std::int64_t>(1, f.course.chunk), chunks = (T + chunk - 1) / chunk;
  const auto M = values_of(f.in[0]), drive = values_of(f.in[1]), initial = values_of(f.in[2]);
  const std::int64_t n = f.in[0].dim(-1), row = std::ssize(drive) / (f.course.groups * T), square = n * n;
  const bool varying = f.in[0].shape().size() == 4;
  // Of the first sequence: rows x, x_t = x_{t-1} M_t + b_t.
  using Row = std::vector<Complex>;
  const auto b = [&](std::int64_t t) { return Row(drive.begin() + t * row, drive.begin() + t * row + n); };
  const auto times = [&](const Row& x, const Complex* m) {
    Row y(static_cast<std::size_t>(n), 0.0);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) y[static_cast<std::size_t>(j)] += x[static_cast<std::size_t>(i)] * m[i * n + j];
    return y;
  };
  const auto plus = [](Row x, const Row& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
    return x;
  };
  const auto at = [&](std::int64_t t) { return M.data() + (varying ? t * square : 0); };
  const auto states = values_of(f.out[0]);
  Row own;
  for (std::int64_t t = 0; t < T; ++t) own.insert(own.end(), states.begin() + t * row, states.begin() + t * row + n);
  const std::int64_t entry = liveliest(own, n);
  const auto shown = [&](const Row& x) { return x[static_cast<std::size_t>(entry)]; };

  const int given = plan.kind("element", Place::point, "the matrix A and the drive b of this step, computed for all steps at once"),
            alone = plan.kind("from zero", Place::point, "s = A s' + b inside a chunk that begins from zero"),
            product = plan.kind("product", Place::point, "the matrices of a chunk multiplied"),
            carried = plan.kind("carry", Place::point, "the state before the next chunk: the chunk's product times the state before it, and what it made from zero"),
            stepped = plan.kind("step", Place::point, "s = A s' + b again, now from where the chunk really starts");
  std::vector<int> element;
  for (std::int64_t t = 0; t < T; ++t) element.push_back(plan.add(given, 0, t, t, {}, shown(b(t))));
  const auto el = [&](std::int64_t t) { return element[static_cast<std::size_t>(t)]; };
  std::int64_t round = 0;
  std::vector<int> starts;  // by chunk, the node that makes the state before it; -1: the initial state
  std::vector<Row> start_rows;
  starts.push_back(-1);
  start_rows.emplace_back(initial.begin(), initial.begin() + n);
  if (chunks > 1) {
    std::vector<int> whole(static_cast<std::size_t>(chunks), -1), multiplied(static_cast<std::size_t>(chunks), -1);
    std::vector<Row> ends;
    // The engine squares a matrix that is the same at every step, once for all chunks.
    std::int64_t products = 0;
    int power = -1;
    if (!varying)
      for (std::int64_t have = 1; have < chunk; have *= 2) {
        power = plan.add(product, ++products, 0, 2 * have - 1, {power < 0 ? el(0) : power});
      }
    for (std::int64_t c = 0; c < chunks; ++c) {
      Row x = b(c * chunk);
      int node = el(c * chunk);
      for (std::int64_t i = 1; i < chunk && c * chunk + i < T; ++i) {
        const std::int64_t t = c * chunk + i;
        x = plus(times(x, at(t)), b(t));
        node = plan.add(alone, i, c * chunk, t, {node, el(t)}, shown(x));
      }
      whole[static_cast<std::size_t>(c)] = node;
      ends.push_back(x);
      if (c + 1 == chunks) continue;
      multiplied[static_cast<std::size_t>(c)] = power < 0 ? el(c * chunk) : power;
      if (varying) {
        int m = el(c * chunk);
        for (std::int64_t i = 1; i < chunk; ++i) m = plan.add(product, i, c * chunk, c * chunk + i, {m, el(c * chunk + i)});
        multiplied[static_cast<std::size_t>(c)] = m;
        products = std::max(products, chunk - 1);
      }
    }
    round = std::max(products, chunk - 1);
    for (std::int64_t c = 0; c + 1 < chunks; ++c) {
      Row x = start_rows.back();
      for (std::int64_t i = 0; i < chunk; ++i) x = times(x, at(c * chunk + i));
      start_rows.push_back(plus(x, ends[static_cast<std::size_t>(c)]));
      std::vector<int> needs{whole[static_cast<std::size_t>(c)], multiplied[static_cast<std::size_t>(c)]};
      if (starts.back() >= 0) needs.push_back(starts.back());
      starts.push_back(plan.add(carried, ++round, 0, (c + 1) * chunk - 1, needs, shown(start_rows.back())));
    }
  }
  for (std::int64_t c = 0; c < chunks; ++c) {
    Row x = start_rows[static_cast<std::size_t>(c)];
    int node = starts[static_cast<std::size_t>(c)];
    for (std::int64_t i = 0; i < chunk && c * chunk + i < T; ++i) {
      const std::int64_t t = c * chunk + i;
      x = plus(times(x, at(t)), b(t));
      std::vector<int> needs{el(t)};
      if (node >= 0) needs.push_back(node);
      node = plan.add(stepped, round + 1 + i, 0, t, needs, shown(x));
    }
  }
  plan.why = "All chunks run side by side from zero while their matrices are multiplied; one after another they then learn where they really start, and all run "
             "again from there." + chunks_said("chunks", chunk, chunk);
  plan.unit = "matrix products";
  plan.entry = of_entry("The state", f, entry);
}

/// Rows of a matrix memory's inputs, of its first head.
struct Rows {
  std::vector<Complex> values;
  std::int64_t stride, width;
  explicit Rows(Var var) : values(values_of(var)), stride(var.shape().size() == 4 ? var.dim(2) * var.dim(3) : var.dim(-1)), width(var.dim(-1)) {}
  double operator()(std::int64_t t, std::int64_t i) const { return values[static_cast<std::size_t>(t * stride + i)].real(); }
  std::int64_t liveliest(std::int64_t steps) const {
    std::vector<double> squares(static_cast<std::size_t>(width), 0.0);
    for (std::int64_t t = 0; t < steps; ++t)
      for (std::int64_t i = 0; i < width; ++i) squares[static_cast<std::size_t>(i)] += std::pow((*this)(t, i), 2.0);
    return std::max_element(squares.begin(), squares.end()) - squares.begin();
  }
};

void blocks(Plan& plan, const Found& f) {
  const std::int64_t T = f.course.steps, chunk = drawn_chunk(f.course.chunk, T), chunks = (T + chunk - 1) / chunk;
  const Rows q(f.in[0]), k(f.in[1]), v(f.in[2]);
  const std::int64_t n = q.width, entry = k.liveliest(T), column = v.liveliest(T);
  std::optional<Rows> log_decay;
  if (f.in.size() > 3) log_decay.emplace(f.in[3]);
  const bool invariant = log_decay && f.in[3].shape().size() < 4;
  /// The decay of the steps first to last together.
  const auto decay = [&](std::int64_t first, std::int64_t last, std::int64_t i) {
    double sum = 0.0;
    for (std::int64_t t = first; log_decay && t <= last; ++t) sum += (*log_decay)(invariant ? 0 : t, log_decay->width > 1 ? i : 0);
    return std::exp(sum);
  };
  plan.drawing = "triangle";
  const int given = plan.kind("value", Place::lane, "this step's query, key and value, computed for all steps at once"),
            wrote = plan.kind("written", Place::lane, "what a chunk adds to the memory: its keys times its values, and what it leaves of what was there"),
            memory = plan.kind("memory", Place::lane, "the memory after a chunk: the one before, decayed, and what the chunk wrote"),
            score = plan.kind("score", Place::cell, "the query of the row's step times the key of the column's, decayed over the steps between"),
            read = plan.kind("read", Place::bar, "the query times the memory before the chunk: it stands for all steps under the bar"),
            output = plan.kind("output", Place::end, "what the step reads: its scores times their values, and what it read from the memory");
  std::vector<int> element, memories{-1}, writes;
  std::vector<std::vector<double>> held(1, std::vector<double>(static_cast<std::size_t>(n), 0.0));  // that column of the memory before each chunk
  for (std::int64_t t = 0; t < T; ++t) element.push_back(plan.add(given, 0, t, t, {}, v(t, column)));
  const auto el = [&](std::int64_t t) { return element[static_cast<std::size_t>(t)]; };
  for (std::int64_t c = 0; c < chunks; ++c) {
    const std::int64_t first = c * chunk, last = std::min(T, first + chunk) - 1;
    auto next = held.back();
    std::vector<double> added(next.size(), 0.0);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t s = first; s <= last; ++s) added[static_cast<std::size_t>(i)] += decay(s + 1, last, i) * k(s, i) * v(s, column);
      next[static_cast<std::size_t>(i)] = decay(first, last, i) * next[static_cast<std::size_t>(i)] + added[static_cast<std::size_t>(i)];
    }
    held.push_back(next);
    std::vector<int> needs;
    for (std::int64_t s = first; s <= last; ++s) needs.push_back(el(s));
    writes.push_back(plan.add(wrote, 1, first, last, needs, added[static_cast<std::size_t>(entry)], decay(first, last, entry)));
  }
  for (std::int64_t c = 0; c < chunks; ++c) {
    std::vector<int> needs{writes[static_cast<std::size_t>(c)]};
    if (c) needs.push_back(memories.back());
    memories.push_back(plan.add(memory, 2 + c, 0, std::min(T, (c + 1) * chunk) - 1, needs, held[static_cast<std::size_t>(c + 1)][static_cast<std::size_t>(entry)]));
  }
  for (std::int64_t t = 0; t < T; ++t) {
    const std::int64_t c = t / chunk, first = c * chunk;
    std::vector<int> needs;
    double sum = 0.0;
    for (std::int64_t s = first; s <= t; ++s) {
      double weight = 0.0;
      for (std::int64_t i = 0; i < n; ++i) weight += q(t, i) * k(s, i) * decay(s + 1, t, i);
      std::vector<int> pair{el(s)};
      if (s != t) pair.push_back(el(t));
      needs.push_back(plan.add(score, 1, s, t, pair, weight));
      needs.push_back(el(s));
      sum += weight * v(s, column);
    }
    if (c) {
      double seen = 0.0;
      for (std::int64_t i = 0; i < n; ++i) seen += q(t, i) * decay(first, t, i) * held[static_cast<std::size_t>(c)][static_cast<std::size_t>(i)];
      const int node = plan.add(read, chunks + 2, 0, first - 1, {memories[static_cast<std::size_t>(c)], el(t)}, seen);
      plan[node].row = t;
      needs.push_back(node);
      sum += seen;
    }
    const int node = plan.add(output, chunks + 3, 0, t, needs, sum);
    plan[node].row = t;
  }
  plan.why = "Inside a chunk every step looks at every earlier one, all pairs at once; what came before the chunk is one memory, which alone goes from chunk to chunk." +
             chunks_said("chunks", f.course.chunk, chunk);
  plan.unit = "pieces";
  plan.entry = "Of the first head: a value, a score, entry (" + std::to_string(entry) + ", " + std::to_string(column) + ") of the memory, or column " +
               std::to_string(column) + " of what is read.";
}

void rewrites(Plan& plan, const Found& f) {
  const std::int64_t T = f.course.steps, chunk = drawn_chunk(f.course.chunk, T), chunks = (T + chunk - 1) / chunk;
  const Rows q(f.in[0]), k(f.in[1]), v(f.in[2]), beta(f.in[3]);
  const std::int64_t n = q.width, entry = k.liveliest(T), column = v.liveliest(T);
  const auto dot = [n](const Rows& x, std::int64_t t, const Rows& y, std::int64_t s) {
    double sum = 0.0;
    for (std::int64_t i = 0; i < n; ++i) sum += x(t, i) * y(s, i);
    return sum;
  };
  plan.drawing = "triangle";
  const int given = plan.kind("value", Place::lane, "this step's query, key, value and share, computed for all steps at once"),
            solve = plan.kind("untangled", Place::lane, "what the steps of a chunk write when each writes over what the ones before it wrote: a triangular system, solved row by row"),
            memory = plan.kind("memory", Place::lane, "the memory after a chunk: the one before, and what the chunk's untangled steps write into it"),
            score = plan.kind("score", Place::cell, "the row's key times the column's, and the row's query times the column's key"),
            read = plan.kind("read", Place::bar, "the query times the memory before the chunk: it stands for all steps under the bar"),
            output = plan.kind("output", Place::end, "what the step reads: its scores times what the chunk's steps wrote, and what it read from the memory");
  std::vector<int> element, memories{-1}, solved;
  std::vector<std::vector<int>> scores(static_cast<std::size_t>(T));
  for (std::int64_t t = 0; t < T; ++t) element.push_back(plan.add(given, 0, t, t, {}, v(t, column)));
  const auto el = [&](std::int64_t t) { return element[static_cast<std::size_t>(t)]; };
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t s = t / chunk * chunk; s <= t; ++s) {
      std::vector<int> pair{el(s)};
      if (s != t) pair.push_back(el(t));
      scores[static_cast<std::size_t>(t)].push_back(plan.add(score, 1, s, t, pair, dot(q, t, k, s)));
    }
  const std::int64_t rows = std::max<std::int64_t>(1, std::min(chunk, T) - 1);  // rounds of the triangular system
  for (std::int64_t c = 0; c < chunks; ++c) {
    const std::int64_t first = c * chunk, last = std::min(T, first + chunk) - 1;
    std::vector<int> needs;
    for (std::int64_t t = first; t <= last; ++t) {
      needs.push_back(el(t));
      for (const int one : scores[static_cast<std::size_t>(t)]) needs.push_back(one);
    }
    solved.push_back(plan.add(solve, 1 + rows, first, last, needs));
    plan[solved.back()].begin = 2;
    plan[solved.back()].work = last - first + 1;
  }
  std::vector<double> held(static_cast<std::size_t>(n), 0.0);
  for (std::int64_t c = 0; c < chunks; ++c) {
    const std::int64_t first = c * chunk, last = std::min(T, first + chunk) - 1;
    std::vector<double> wrote, before = held;
    for (std::int64_t t = first; t <= last; ++t) {  // what each step writes: its share of what is missing
      double recalled = 0.0;
      for (std::int64_t i = 0; i < n; ++i) recalled += k(t, i) * before[static_cast<std::size_t>(i)];
      for (std::int64_t s = first; s < t; ++s) recalled += dot(k, t, k, s) * wrote[static_cast<std::size_t>(s - first)];
      wrote.push_back(beta(t, 0) * (v(t, column) - recalled));
    }
    for (std::int64_t t = first; t <= last; ++t)
      for (std::int64_t i = 0; i < n; ++i) held[static_cast<std::size_t>(i)] += k(t, i) * wrote[static_cast<std::size_t>(t - first)];
    std::vector<int> needs{solved[static_cast<std::size_t>(c)]};
    if (c) needs.push_back(memories.back());
    memories.push_back(plan.add(memory, 2 + rows + c, 0, last, needs, held[static_cast<std::size_t>(entry)]));
    for (std::int64_t t = first; t <= last; ++t) {
      double seen = 0.0, sum = 0.0;
      for (std::int64_t i = 0; i < n; ++i) seen += q(t, i) * before[static_cast<std::size_t>(i)];
      for (std::int64_t s = first; s <= t; ++s) sum += dot(q, t, k, s) * wrote[static_cast<std::size_t>(s - first)];
      std::vector<int> own = scores[static_cast<std::size_t>(t)];
      own.push_back(solved[static_cast<std::size_t>(c)]);
      if (c) {
        const int from = memories[static_cast<std::size_t>(c)];
        const int node = plan.add(read, 2 + rows + chunks, 0, first - 1, {from, el(t)}, seen);
        plan[node].row = t;
        own.insert(own.end(), {node, from});
      }
      const int node = plan.add(output, 3 + rows + chunks, 0, t, own, seen + sum);
      plan[node].row = t;
    }
  }
  plan.why = "Inside a chunk a triangular system says what each step really writes, all chunks at once; what came before the chunk is one memory, which alone goes "
             "from chunk to chunk." + chunks_said("chunks", f.course.chunk, chunk);
  plan.unit = "pieces";
  plan.entry = "Of the first head: a value, a query times a key, entry (" + std::to_string(entry) + ", " + std::to_string(column) + ") of the memory, or column " +
               std::to_string(column) + " of what is read.";
}

/// Each step reads what came before: all at once, or one step after another.
void pairs(Plan& plan, const Found& f) {
  const Course& course = f.course;
  const std::int64_t T = course.steps;
  const bool at_once = course.way == Course::Way::pairs, direct = course.way == Course::Way::rows && course.weights == Course::Weights::other && f.in.size() == 2;
  const auto out = values_of(f.out[0]);
  const std::int64_t width = f.out[0].shape().size() == 3 && !direct ? f.out[0].dim(2) : std::ssize(out) / T;  // of one step, of one head where heads come first
  std::optional<Rows> q, k, v;
  std::vector<Complex> low, extra[4];
  if (!direct) {
    q.emplace(f.in[0]);
    k.emplace(f.in[1]);
    v.emplace(f.in[2]);
    if (course.bounded) low = values_of(f.in[3]);
    if (course.weights == Course::Weights::decayed)
      for (std::size_t i = 0; i < 4; ++i) extra[i] = values_of(f.in[3 + i]);
  }
  const std::int64_t column = v ? v->liveliest(course.past + T) : liveliest(out, width);
  const bool softmax = course.weights == Course::Weights::softmax || (course.weights == Course::Weights::other && !direct);
  plan.drawing = "triangle";
  const int given = plan.kind(direct ? "input" : "value", Place::lane, direct ? "the input of this step" : "this step's query, key and value, computed for all steps at once");
  const std::string weighed = softmax ? "the softmax of its scores, and the mean of their values that it weighs" : "the sum of the values, each times its score";
  const int score = at_once ? plan.kind("score", Place::cell, "the query of the row's step times the key of the column's" + std::string(course.weights == Course::Weights::decayed ? ", decayed over the steps between" : "")) : -1,
            output = plan.kind(at_once ? "output" : "row", Place::end,
                               at_once ? weighed : direct ? "the kernel's taps times the inputs so far, summed" : "its scores with all rows that the cache holds, then " + weighed);
  std::vector<int> element;
  for (std::int64_t t = 0; t < T; ++t) element.push_back(plan.add(given, 0, t, t, {}, v ? Complex((*v)(course.past + t, column)) : Complex(none)));
  for (std::int64_t t = 0; t < T; ++t) {
    std::int64_t first = low.empty() ? 0 : std::max<std::int64_t>(0, static_cast<std::int64_t>(low[static_cast<std::size_t>(t)].real()) - course.past);
    if (course.window) first = std::max(first, t - course.window + 1);
    std::vector<int> needs;
    for (std::int64_t s = first; s <= t; ++s) {
      needs.push_back(element[static_cast<std::size_t>(s)]);
      if (!at_once) continue;
      double weight = 0.0;
      for (std::int64_t i = 0; i < q->width; ++i) weight += (*q)(t, i) * (*k)(course.past + s, i);
      if (course.weights == Course::Weights::decayed)
        weight *= std::exp((extra[0][static_cast<std::size_t>(t)] + extra[1][static_cast<std::size_t>(s)] + (extra[2][static_cast<std::size_t>(t)] + extra[3][static_cast<std::size_t>(s)])).real());
      if (course.weights == Course::Weights::other) weight = none;
      std::vector<int> pair{element[static_cast<std::size_t>(s)]};
      if (s != t) pair.push_back(element[static_cast<std::size_t>(t)]);
      needs.push_back(plan.add(score, 1, s, t, pair, weight));
    }
    plan.add(output, at_once ? 2 : t + 1, first, t, needs, out[static_cast<std::size_t>(t * width + column)]);
  }
  plan.why = at_once ? "No step waits for another: each reads what came before by itself, so all scores are made at once, and then all rows. That takes work for every pair of steps."
                     : std::string("Row after row, as when a sequence is made step by step: each reads what came before and is then kept itself.") +
                           (direct ? "" : " No row needs the result of another, so where all inputs are known they can be made at once: that is the form attention.");
  plan.unit = at_once ? "scores and rows" : "rows";
  plan.entry = std::string(direct ? "" : "Of the first head: ") + (at_once ? "a value, a score, or column " : "a value, or column ") + std::to_string(column) + " of what is read.";
}

void transforms(Plan& plan, const Found& f) {
  const std::int64_t T = f.course.steps;
  std::int64_t size = 1, rounds = 0;
  for (; size < 2 * T; size *= 2) ++rounds;
  const auto kernel = values_of(f.in[0]), input = values_of(f.in[1]), out = values_of(f.out[0]);
  const std::int64_t channels = f.in[0].dim(0), width = std::ssize(out) / T, channel = liveliest(out, width) % channels;
  const int given = plan.kind("input", Place::point, "the input of this step"),
            tap = plan.kind("tap", Place::point, "the kernel this many steps later, made from the parameters alone"),
            there = plan.kind("transform", Place::box, "the Fourier transform of the inputs, and of the kernel: log2(2T) rounds of butterflies over 2T numbers, the second half zeros"),
            product = plan.kind("product", Place::box, "frequency by frequency, the two transforms multiplied"),
            back = plan.kind("inverse", Place::box, "back to time: log2(2T) rounds of butterflies"),
            output = plan.kind("output", Place::point, "the convolution at this step, scaled");
  std::vector<int> inputs, taps;
  for (std::int64_t t = 0; t < T; ++t) inputs.push_back(plan.add(given, 0, t, t, {}, input[static_cast<std::size_t>(t * width + channel)]));
  for (std::int64_t t = 0; t < T; ++t) {
    taps.push_back(plan.add(tap, 0, t, t, {}, kernel[static_cast<std::size_t>(channel * T + t)]));
    plan[taps.back()].row = -1;
  }
  const auto box = [&](int kind, std::int64_t begin, std::int64_t end, const std::vector<int>& needs, std::int64_t work) {
    const int node = plan.add(kind, end, 0, T - 1, needs);
    plan[node].begin = begin;
    plan[node].work = work;
    return node;
  };
  const std::int64_t butterflies = size / 2 * rounds;
  const int first = box(there, 1, rounds, inputs, butterflies), second = box(there, 1, rounds, taps, butterflies);
  plan[second].row = -1;
  const int met = box(product, rounds + 1, rounds + 1, {first, second}, size / 2 + 1);
  const int inverse = box(back, rounds + 2, 2 * rounds + 1, {met}, butterflies);
  for (std::int64_t t = 0; t < T; ++t) plan.add(output, 2 * rounds + 2, t, t, {inverse}, out[static_cast<std::size_t>(t * width + channel)]);
  plan.why = "The same kernel meets the input at every step, so their transforms are multiplied frequency by frequency, all at once; a transform of " + std::to_string(size) +
             " numbers takes log2 " + std::to_string(size) + " = " + std::to_string(rounds) + " rounds. No state is carried from step to step.";
  plan.unit = "butterflies, products and scalings";
  plan.entry = "Of channel " + std::to_string(channel) + ": the input, the kernel, or the output.";
}

void segments(Plan& plan, const Found& f) {
  const std::int64_t T = f.course.steps;
  const int given = plan.kind("input", Place::point, "what the layer computed for this step alone; all steps at once"),
            segment = plan.kind("segment", Place::box, "attention among the steps of a segment and the memory before it, all at once; it makes the memory after it");
  std::vector<int> element;
  for (std::int64_t t = 0; t < T; ++t) element.push_back(plan.add(given, 0, t, t));
  int before = -1;
  std::int64_t round = 0;
  for (std::int64_t first = -f.course.past; first < T; first += f.course.chunk) {
    const std::int64_t from = std::max<std::int64_t>(0, first), last = std::min(T, first + f.course.chunk) - 1;
    std::vector<int> needs(element.begin() + from, element.begin() + last + 1);
    if (before >= 0) needs.push_back(before);
    before = plan.add(segment, ++round, from, last, needs);
  }
  plan.why = "Segments of " + std::to_string(f.course.chunk) + " steps go one after another, since each begins from the memory that the one before it left; inside a segment all steps run at once.";
  plan.unit = "segments";
  plan.entry = "";
}

/// What a Newton form was seen to do.
struct Watched {
  std::vector<bool> diagonal;                              // by iteration; the first is the guess
  std::vector<std::vector<std::vector<double>>> states;    // [iteration][state][steps * size]
};

void iterations(Plan& plan, const Found& f, const Watched& watched, const std::vector<std::vector<Complex>>& truth) {
  const std::int64_t T = f.course.steps, stretch = drawn_chunk(f.course.chunk, T), whole = T / stretch * stretch;
  plan.drawing = "iterations";
  const std::int64_t width = std::ssize(truth[0]) / T, entry = liveliest(truth[0], width);
  const int guess = plan.kind("guess", Place::point, "zero, before the first iteration"),
            linear = plan.kind("evaluation", Place::point, "the step's function and its slope at the guess of the state before: a straight line in its place; all steps at once"),
            composed = plan.kind("composition", Place::point, "two neighbouring straight lines become one, as in a scan");
  std::vector<int> now;
  const auto at = [&](std::int64_t t) -> int& { return now[static_cast<std::size_t>(t)]; };
  std::int64_t round = 0;
  for (std::size_t i = 0; i < watched.states.size(); ++i) {
    const auto& states = watched.states[i];
    plan.errors.emplace_back();
    for (std::int64_t t = 0; t < T; ++t) {
      double worst = 0.0;
      for (std::size_t s = 0; s < states.size(); ++s) {
        double largest = 0.0;
        for (const Complex& x : truth[s]) largest = std::max(largest, std::abs(x));
        const std::int64_t size = std::ssize(states[s]) / T;
        for (std::int64_t j = t * size; j < (t + 1) * size; ++j) {
          const double error = std::abs(states[s][static_cast<std::size_t>(j)] - truth[s][static_cast<std::size_t>(j)].real());
          worst = std::max(worst, largest > 0.0 ? error / largest : error);
        }
      }
      plan.errors.back().push_back(std::isfinite(worst) ? std::max(least_error, std::log10(worst)) : none);
    }
    const auto value = [&](std::int64_t t) { return states[0][static_cast<std::size_t>(t * width + entry)]; };
    const auto row = static_cast<std::int64_t>(i);
    if (i == 0) {
      for (std::int64_t t = 0; t < T; ++t) {
        now.push_back(plan.add(guess, 0, t, t, {}, value(t)));
        plan[now.back()].row = 0;
      }
      continue;
    }
    std::vector<int> lines;
    for (std::int64_t t = 0; t < T; ++t) {
      std::vector<int> needs{at(t)};
      if (t) needs.push_back(at(t - 1));
      lines.push_back(plan.add(linear, round + 1, t, t, needs));
      plan[lines.back()].row = row;
    }
    now = lines;
    std::int64_t base = round + 1;
    round = base;
    const auto compose = [&](std::int64_t earlier, std::int64_t later, std::int64_t when) {
      const auto first = plan[at(earlier)].first;
      at(later) = plan.add(composed, when, first, later, {at(earlier), at(later)});
      plan[at(later)].row = row;
      round = std::max(round, when);
    };
    if (watched.diagonal[i]) {
      bool fresh = false;
      order::tree(T, [&] { fresh = true; }, [&](std::int64_t earlier, std::int64_t later) { compose(earlier, later, std::exchange(fresh, false) ? round + 1 : round); });
    } else {
      order::chunks(whole, stretch, [&](std::int64_t t) { compose(t - 1, t, base + t % stretch); },
                    [&](std::int64_t last, std::int64_t t) { compose(last, t, base + stretch - 1 + (last + 1) / stretch); });
      for (std::int64_t t = std::max<std::int64_t>(whole, 1); t < T; ++t) compose(t - 1, t, round + 1);  // what no stretch holds
    }
    for (std::int64_t t = 0; t < T; ++t) plan[at(t)].value = value(t);
  }
  const bool quasi = f.course.form == Form::quasi_newton;
  const std::string count = std::to_string(std::ssize(watched.states) - 1) + (watched.states.size() == 2 ? " iteration" : " iterations");
  plan.why = "Every iteration puts a straight line in each step's place, all steps at once, and solves them by a scan: " + count + " over the whole sequence " +
             "instead of " + std::to_string(T) + " steps in a row. " +
             (quasi ? "The slopes are the Jacobian's diagonal alone." + std::string() : f.course.form == Form::newton ? "At least one more step from the start is exact after each." : "An iteration that would be worse is halved.") +
             (quasi ? "" : chunks_said("stretches", f.course.chunk, stretch));
  plan.unit = "evaluations and compositions";
  plan.entry = of_entry("The state that the iteration gives the step", f, entry);
}

Sequence cut(const Sequence& whole, std::int64_t steps) {
  Sequence sequence = whole;
  sequence.length = std::min(steps, whole.length);
  sequence.input.resize(static_cast<std::size_t>(sequence.length * sequence.width));
  sequence.time.resize(static_cast<std::size_t>(sequence.length));
  sequence.target_kind = TargetKind::none;
  sequence.target.clear();
  sequence.mask.clear();
  return sequence;
}

}  // namespace

TracePtr form_schedule(const Registry& registry, const RunRequest& request, std::int64_t steps_wanted, std::stop_token stop) {
  if (steps_wanted < 1 || steps_wanted > most_schedule_steps)
    throw Error("A step view of " + std::to_string(steps_wanted) + " steps cannot be drawn: choose 1 to " + std::to_string(most_schedule_steps) + ".",
                {.parameter = "steps", .value = std::to_string(steps_wanted), .range = "1 to " + std::to_string(most_schedule_steps)});
  const StopScope scope(stop);
  const auto architecture = architecture_of(registry, request.preset);
  const Hyper hyper = hyper_of(registry, request.preset, request.set);
  const Sequence sequence = cut(request.sequence, steps_wanted);
  const std::int64_t T = sequence.length;
  // The head, which no memory sees, is there so that weights fit.
  const bool task = request.sequence.target_kind != TargetKind::none && request.loss != LossKind::last && request.loss != LossKind::mean;
  const SequenceLoss loss(LossKind::random, sequence, task ? SequenceLoss(LossKind::task, request.sequence).outputs() : 0);
  NetworkOptions one;
  one.input = sequence.width;
  one.head = loss.outputs();
  const Network probe(*architecture, hyper, one);
  Parameters parameters = probe.initialise(request.seed);
  if (!request.weights.empty()) load_weights(request.weights, parameters, probe, *architecture, hyper);

  Trace trace;
  trace.info.version = RECLAB_VERSION;
  trace.info.preset = request.preset.id;
  trace.info.title = request.preset.title;
  trace.info.architecture = architecture->id;
  trace.info.family = architecture->family;
  trace.info.seed = request.seed;
  trace.info.device = "cpu";
  trace.info.dtype = "float64";
  trace.info.length = T;

  std::unique_ptr<Rollout> sequential;
  bool any = false;
  for (const Form form : probe.forms()) {
    if (stop.stop_requested()) throw Cancelled();
    auto rollout = std::make_unique<Rollout>(*architecture, hyper, parameters, sequence, loss, cpu_backend(), Rollout::Options{form, DType::f64, T, true, 0});
    Network& network = rollout->network();
    auto found = find(network, form);
    if (!found) continue;
    Watched watched;
    if (found->course.way == Course::Way::iterations && found->memory)
      found->memory->watch([&](int, bool diagonal, const std::vector<std::vector<double>>& states) {
        watched.diagonal.push_back(diagonal);
        watched.states.push_back(states);
      });
    if (const auto bad = rollout->forward({}, stop)) {
      trace.info.notes.push_back("The " + std::string(to_string(form)) + " form cannot be drawn: " + sentence(*bad) + ".");
      continue;
    }
    Plan plan;
    using Way = Course::Way;
    switch (found->course.way) {
      case Way::steps: steps(plan, *found); break;
      case Way::diagonal: diagonal(plan, *found); break;
      case Way::tree: scan(plan, *found); break;
      case Way::chunks: chunkwise_scan(plan, *found); break;
      case Way::matrices: matrices(plan, *found); break;
      case Way::blocks: blocks(plan, *found); break;
      case Way::rewrites: rewrites(plan, *found); break;
      case Way::pairs:
      case Way::rows: pairs(plan, *found); break;
      case Way::transforms: transforms(plan, *found); break;
      case Way::segments: segments(plan, *found); break;
      case Way::iterations: {
        // The same memory of the sequential run: what the iteration is after.
        std::vector<std::vector<Complex>> truth;
        for (std::size_t i = 0; sequential && i < network.states().size(); ++i)
          if (network.states()[i].memory == found->memory) truth.push_back(values_of(sequential->network().states()[i].trajectory));
        if (truth.empty() || watched.states.empty()) continue;
        iterations(plan, *found, watched, truth);
        if (const NewtonReport* report = found->memory->newton(); report && !report->converged)
          plan.why += " Here it did not converge" + (report->reason.empty() ? "" : ", for " + report->reason) + ": a run takes the steps one after another instead.";
        break;
      }
    }
    plan.put(trace, std::string(to_string(form)), T, found->backward);
    any = true;
    if (form == Form::sequential) sequential = std::move(rollout);
  }
  const auto single = [&](const std::string& key, Shape shape, std::vector<double> values, const std::string& text) {
    TraceArray array;
    array.key = key;
    array.shape = std::move(shape);
    array.axes = {{"steps", "", {}}};
    array.text = text;
    array.real = std::make_shared<const std::vector<double>>(std::move(values));
    trace.put(std::move(array));
  };
  single("schedule/steps", {1}, {static_cast<double>(T)}, "The first " + std::to_string(T) + (T == 1 ? " step" : " steps") +
         " of the sequence, from the model's own initial state, on the CPU in float64: what the first memory does that a form runs.");
  if (!any) {
    std::string why = "No form of this model can be drawn.";
    for (const std::string& note : trace.info.notes) why += " " + note;
    single("schedule/none", {0}, {}, why);
  }
  return std::make_shared<const Trace>(trace);
}

}  // namespace reclab
