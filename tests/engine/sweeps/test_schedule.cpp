// SPDX-License-Identifier: GPL-3.0-or-later
// The step view of the forms: a schedule that is carried out node by node, each from what it says it needs, makes what the engine makes.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "array/order.h"
#include "models/registry.h"
#include "schedule/schedule.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

using Complex = std::complex<double>;
constexpr std::int64_t lengths[] = {1, 2, 3, 8, 13, 16, 64};

RunRequest request_for(const std::string& architecture, std::int64_t length = 64) {
  RunRequest request;
  request.preset.id = request.preset.architecture = architecture;
  request.sequence = make_task("noise", {.length = length, .seed = 1});
  return request;
}

/// A schedule as a test reads it.
struct Read {
  struct Node {
    std::int64_t round, first, last;
    std::string kind;
    std::int64_t begin, row, work;
    Complex value = NAN, product = NAN;
    std::vector<std::size_t> needs;
  };
  std::vector<Node> nodes;
  double rounds = 0, work = 0, depth = 0;
  std::string drawing, entry;
  std::int64_t steps = 0;

  std::vector<const Node*> all(const std::string& kind) const {
    std::vector<const Node*> found;
    for (const Node& node : nodes)
      if (node.kind == kind) found.push_back(&node);
    return found;
  }
  std::int64_t count(const std::string& kind) const { return std::ssize(all(kind)); }
};

bool has(const Trace& trace, const std::string& form) { return trace.find("schedule/" + form + "/nodes") != nullptr; }

Complex entry(const TraceArray* array, std::size_t i) {
  return !array ? Complex(NAN) : array->is_complex() ? (*array->complex)[i] : Complex((*array->real)[i]);
}

Read read(const Trace& trace, const std::string& form) {
  const std::string at = "schedule/" + form + "/";
  const auto get = [&](const std::string& name) {
    const TraceArray* array = trace.find(at + name);
    CHECK_SAYS(array && array->real, at + name);
    return array;
  };
  Read schedule;
  const TraceArray *rows = get("nodes"), *edges = get("edges"), *kinds = get("kinds"), *rules = get("rules");
  CHECK_EQUAL(kinds->axes[0].labels.size(), rules->axes[0].labels.size());
  for (std::int64_t i = 0; i < rows->shape[0]; ++i) {
    const auto column = [&](std::int64_t j) { return static_cast<std::int64_t>((*rows->real)[static_cast<std::size_t>(7 * i + j)]); };
    schedule.nodes.push_back({column(0),
                              column(1),
                              column(2),
                              kinds->axes[0].labels.at(static_cast<std::size_t>(column(3))),
                              column(4),
                              column(5),
                              column(6),
                              entry(trace.find(at + "value"), static_cast<std::size_t>(i)),
                              entry(trace.find(at + "product"), static_cast<std::size_t>(i)),
                              {}});
  }
  for (std::size_t i = 0; i < edges->real->size(); i += 2)
    schedule.nodes.at(static_cast<std::size_t>((*edges->real)[i + 1])).needs.push_back(static_cast<std::size_t>((*edges->real)[i]));
  schedule.rounds = get("rounds")->real->at(0);
  schedule.work = get("work")->real->at(0);
  schedule.depth = get("depth")->real->at(0);
  schedule.drawing = get("drawing")->axes[0].labels.at(0);
  schedule.entry = trace.find(at + "value") ? trace.find(at + "value")->text : "";
  schedule.steps = static_cast<std::int64_t>(trace.find("schedule/steps")->real->at(0));
  return schedule;
}

void check_order(const Read& schedule, const std::string& what) {
  double rounds = 0, work = 0;
  for (const auto& node : schedule.nodes) {
    CHECK_SAYS(0 <= node.first && node.first <= node.last && node.last < schedule.steps && node.begin <= node.round,
               what + ": " + node.kind);
    for (const std::size_t from : node.needs)
      CHECK_SAYS(schedule.nodes[from].round < node.begin, what + ": a " + node.kind + " of round " + std::to_string(node.begin) +
                                                              " needs a " + schedule.nodes[from].kind + " of round " +
                                                              std::to_string(schedule.nodes[from].round));
    rounds = std::max(rounds, static_cast<double>(node.round));
    work += static_cast<double>(node.work);
    CHECK_SAYS((node.round == 0) == (node.work == 0), what);
  }
  CHECK_SAYS(rounds == schedule.rounds && work == schedule.work && schedule.depth <= rounds && schedule.depth >= (rounds > 0 ? 1 : 0),
             what);
}

/// The states of the entry that the schedule speaks of, from a run of its own.
std::vector<Complex> states_of(RunRequest request, const Read& schedule, std::int64_t steps) {
  const auto name = schedule.entry.find("state/"), comma = schedule.entry.find(", entry ", name);
  CHECK_SAYS(name != std::string::npos && comma != std::string::npos, schedule.entry);
  const std::string key = schedule.entry.substr(name, comma - name);
  const auto at = static_cast<std::size_t>(std::stol(schedule.entry.substr(comma + 8)));
  request.recording.kinds.remove(kinds_of(Stage::late) | Kinds{Kind::gradient});
  request.form = "sequential";
  const auto trace = run(builtin_registry(), request, {}, {}).trace;
  const TraceArray* states = trace->find(key);
  CHECK_SAYS(states, key);
  std::vector<Complex> found;
  for (std::int64_t t = 0; t < steps; ++t) found.push_back(entry(states, static_cast<std::size_t>(t * states->row_size()) + at));
  return found;
}

double largest(const std::vector<Complex>& values) {
  double size = 0.0;
  for (const Complex& x : values) size = std::max(size, std::abs(x));
  return size;
}

/// Carries out the compositions from the elements, in the order of the rounds, and returns what stands at the last node of each step.
std::vector<Complex> composed(const Read& schedule) {
  struct Piece {
    Complex a, b;
    std::int64_t first, last;
  };
  std::vector<Piece> pieces(schedule.nodes.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < schedule.nodes.size(); ++i) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return schedule.nodes[i].round; });
  std::vector<Complex> states(static_cast<std::size_t>(schedule.steps), NAN);
  for (const std::size_t i : order) {
    const auto& node = schedule.nodes[i];
    if (node.round == 0) {
      pieces[i] = {node.product, node.value, node.first, node.last};
    } else {
      CHECK_EQUAL(node.needs.size(), std::size_t(2));
      Piece x = pieces[node.needs[0]], y = pieces[node.needs[1]];
      if (x.first > y.first) std::swap(x, y);
      CHECK_EQUAL(x.last + 1, y.first);  // each step once, in order
      pieces[i] = {y.a * x.a, y.a * x.b + y.b, x.first, y.last};
      CHECK(std::abs(pieces[i].a - node.product) <= 1e-15 &&
            std::abs(pieces[i].b - node.value) <= 1e-12 * std::max(1.0, std::abs(node.value)));
    }
    CHECK(pieces[i].first == node.first && pieces[i].last == node.last);
    if (pieces[i].first == 0) states[static_cast<std::size_t>(node.last)] = pieces[i].b;
  }
  return states;
}

std::int64_t log2_up(std::int64_t n) {
  std::int64_t power = 0;
  while ((std::int64_t{1} << power) < n) ++power;
  return power;
}

}  // namespace

TEST_CASE("a scan carried out node by node makes the states of the sequential form") {
  for (const std::string model : {"lru", "s5", "mamba", "rg-lru", "retnet", "gla", "s4d"})
    for (const std::string form : {"scan", "chunkwise"})
      for (const std::int64_t T : {std::int64_t{3}, std::int64_t{13}, std::int64_t{16}, std::int64_t{64}}) {
        const RunRequest request = request_for(model);
        const auto trace = form_schedule(builtin_registry(), request, T, {});
        const Read schedule = read(*trace, form);
        if (schedule.drawing != "tree") continue;  // a matrix memory's chunks, below
        const auto found = composed(schedule), expected = states_of(request, schedule, T);
        CHECK(largest(expected) > 0.0);
        for (std::size_t t = 0; t < found.size(); ++t)
          CHECK_SAYS(std::abs(found[t] - expected[t]) <= 1e-12 * largest(expected),
                     model + " " + form + " step " + std::to_string(t) + " of " + std::to_string(T));
      }
}

TEST_CASE("work, rounds and depth are those of the textbooks") {
  for (const std::int64_t T : lengths) {
    const auto trace = form_schedule(builtin_registry(), request_for("lru"), T, {});
    const auto n = static_cast<double>(T);
    const Read sequential = read(*trace, "sequential"), scan = read(*trace, "scan"), chunkwise = read(*trace, "chunkwise"),
               convolution = read(*trace, "convolution");
    CHECK(sequential.work == n && sequential.rounds == n && sequential.depth == n);
    // Brent and Kung: 2n - 2 - log2 n compositions in 2 log2 n - 1 rounds for a power of two, the last of which are not all one chain.
    const std::int64_t powers = log2_up(T);
    if ((std::int64_t{1} << powers) == T) {
      CHECK_EQUAL(scan.work, 2.0 * n - 2.0 - static_cast<double>(powers));
      CHECK_EQUAL(scan.rounds, T == 1 ? 0.0 : static_cast<double>(2 * powers - 1));
      if (T > 2) CHECK_EQUAL(scan.depth, static_cast<double>(2 * powers - 2));
    }
    if (T == 13) {  // 6 + 3 + 1 on the way up, 0 + 1 + 2 + 6 - ... on the way down, counted by hand
      CHECK_EQUAL(scan.work, 10.0 + 1.0 + 2.0 + 6.0);
      CHECK_EQUAL(scan.rounds, 6.0);
    }
    // Chunks of L: (L - 1) rounds inside, then one a chunk.
    std::int64_t chunk = 1;
    while (chunk * chunk < T) chunk *= 2;
    const std::int64_t chunks = (T + chunk - 1) / chunk;
    CHECK_EQUAL(chunkwise.work, static_cast<double>(T - chunks + T - std::min(T, chunk)));
    CHECK_EQUAL(chunkwise.rounds, T == 1 ? 0.0 : static_cast<double>(chunk - 1 + chunks - 1));
    CHECK_EQUAL(chunkwise.depth, chunkwise.rounds);
    CHECK_EQUAL(convolution.rounds, static_cast<double>(2 * log2_up(2 * T) + 2));
    CHECK_EQUAL(convolution.depth, convolution.rounds);
    for (const auto* one : {&sequential, &scan, &chunkwise, &convolution}) check_order(*one, "lru " + std::to_string(T));

    const auto pairs = form_schedule(builtin_registry(), request_for("linear-attention"), T, {});
    const Read attention = read(*pairs, "attention"), blocks = read(*pairs, "chunkwise");
    CHECK_EQUAL(attention.work, n * (n + 1.0) / 2.0 + n);
    CHECK(attention.rounds == 2.0 && attention.depth == 2.0);
    CHECK_EQUAL(blocks.rounds, static_cast<double>(chunks + 3));
    CHECK_EQUAL(blocks.count("memory"), chunks);
    CHECK_EQUAL(blocks.count("read"), T - std::min(T, chunk));
  }
}

TEST_CASE("the triangle of a matrix memory, carried out, makes what the engine reads and keeps") {
  for (const std::string model : {"linear-attention", "retnet", "gla", "mlstm", "gateloop"})
    for (const std::int64_t T : {std::int64_t{1}, std::int64_t{13}, std::int64_t{16}, std::int64_t{64}}) {
      const auto trace = form_schedule(builtin_registry(), request_for(model), T, {});
      const Read blocks = read(*trace, "chunkwise");
      CHECK_EQUAL(blocks.drawing, "triangle");
      std::map<std::size_t, Complex> memory;  // by node
      std::vector<Complex> outputs;
      for (std::size_t i = 0; i < blocks.nodes.size(); ++i) {
        const auto& node = blocks.nodes[i];
        if (node.kind == "memory") {
          Complex before = 0.0, decay, added;
          for (const std::size_t from : node.needs)
            if (blocks.nodes[from].kind == "memory")
              before = memory.at(from);
            else
              decay = blocks.nodes[from].product, added = blocks.nodes[from].value;
          memory[i] = decay * before + added;
          CHECK(std::abs(memory[i] - node.value) <= 1e-12);
        } else if (node.kind == "output") {
          std::map<std::int64_t, Complex> scores, values;
          Complex sum = 0.0;
          for (const std::size_t from : node.needs) {
            const auto& need = blocks.nodes[from];
            if (need.kind == "score") scores[need.first] = need.value;
            if (need.kind == "value") values[need.last] = need.value;
            if (need.kind == "read") sum += need.value;
          }
          CHECK_EQUAL(scores.size(), values.size());
          for (const auto& [s, score] : scores) sum += score * values.at(s);
          CHECK(std::abs(sum - node.value) <= 1e-12 * std::max(1.0, std::abs(sum)));
          outputs.push_back(sum);
        }
      }
      CHECK_EQUAL(std::ssize(outputs), T);
      if (!has(*trace, "attention")) continue;
      // The quadratic form's rows are read off the engine: the two agree, and so do its own scores.
      const Read attention = read(*trace, "attention");
      const auto rows = attention.all("output");
      for (std::size_t t = 0; t < outputs.size(); ++t)
        CHECK_SAYS(std::abs(outputs[t] - rows[t]->value) <= 1e-12 * std::max(1.0, std::abs(outputs[t])),
                   model + " step " + std::to_string(t) + ": " + test::show(outputs[t]) + " " + test::show(rows[t]->value));
      for (const auto* row : rows) {
        Complex sum = 0.0;
        std::map<std::int64_t, Complex> scores, values;
        for (const std::size_t from : row->needs)
          (attention.nodes[from].kind == "score" ? scores : values)[attention.nodes[from].first] = attention.nodes[from].value;
        for (const auto& [s, score] : scores) sum += score * values.at(s);
        CHECK(std::abs(sum - row->value) <= 1e-12 * std::max(1.0, std::abs(sum)));
      }
    }
}

TEST_CASE("the memory that chunks of a delta rule carry is the sequential one's") {
  const RunRequest request = request_for("deltanet");
  for (const std::int64_t T : {std::int64_t{2}, std::int64_t{13}, std::int64_t{64}}) {
    const auto trace = form_schedule(builtin_registry(), request, T, {});
    const Read chunks = read(*trace, "chunkwise");
    RunRequest small = request;
    small.recording.kinds.remove(kinds_of(Stage::late) | Kinds{Kind::gradient});
    const auto ran = run(builtin_registry(), small, {}, {}).trace;
    const TraceArray* states = ran->find("state/0/S");
    CHECK(states && states->shape.size() == 4);
    const auto from = chunks.entry.find("entry ("), comma = chunks.entry.find(", ", from);
    const auto i = std::stol(chunks.entry.substr(from + 7)), j = std::stol(chunks.entry.substr(comma + 2));
    for (const auto* memory : chunks.all("memory"))
      CHECK_CLOSE(memory->value.real(),
                  (*states->real)[static_cast<std::size_t>(memory->last * states->row_size() + i * states->shape[3] + j)], 1e-12);
  }
}

TEST_CASE("softmax rows, carried out from their scores, are what the engine reads") {
  for (const std::string model : {"transformer", "griffin"}) {
    const auto trace = form_schedule(builtin_registry(), request_for(model), 16, {});
    const Read attention = read(*trace, "attention"), streaming = read(*trace, model == "griffin" ? "attention" : "sequential");
    for (const auto* row : attention.all("output")) {
      std::map<std::int64_t, double> scores, values;
      for (const std::size_t from : row->needs)
        (attention.nodes[from].kind == "score" ? scores : values)[attention.nodes[from].first] = attention.nodes[from].value.real();
      double most = -INFINITY, whole = 0.0, sum = 0.0;
      for (const auto& [s, score] : scores) most = std::max(most, score);
      for (const auto& [s, score] : scores) {
        whole += std::exp(score - most);
        sum += std::exp(score - most) * values.at(s);
      }
      CHECK_CLOSE(sum / whole, row->value.real(), 1e-12 * std::max(1.0, std::abs(sum / whole)));
    }
    if (model == "transformer") {
      CHECK_EQUAL(streaming.rounds, 16.0);
      CHECK_EQUAL(streaming.depth, 1.0);  // row after row, though no row needs another
    }
  }
}

TEST_CASE("a convolution is the sum that its nodes say, and matrices carried from chunk to chunk make the sequential states") {
  for (const std::string model : {"lru", "s4d", "s4", "hyena"}) {
    const auto trace = form_schedule(builtin_registry(), request_for(model), 16, {});
    const Read schedule = read(*trace, "convolution");
    const auto inputs = schedule.all("input"), taps = schedule.all("tap"), outputs = schedule.all("output");
    CHECK(inputs.size() == 16 && taps.size() == 16 && outputs.size() == 16);
    double size = 0.0;
    for (const auto* one : outputs) size = std::max(size, std::abs(one->value));
    CHECK(size > 0.0);
    for (std::size_t t = 0; t < 16; ++t) {
      Complex sum = 0.0;
      for (std::size_t s = 0; s <= t; ++s) sum += taps[t - s]->value * inputs[s]->value;
      CHECK_SAYS(std::abs(sum - outputs[t]->value) <= 1e-12 * std::max(1.0, size), model);
    }
  }
  // The state is complex, one half of conjugate pairs; the scan's is real, first their real parts, then the imaginary ones.
  for (const std::string model : {"s4"})
    for (const std::int64_t T : lengths) {
      RunRequest request = request_for(model);
      const auto trace = form_schedule(builtin_registry(), request, T, {});
      const Read scan = read(*trace, "scan");
      check_order(scan, model);
      const auto steps = scan.all("step");
      CHECK_EQUAL(std::ssize(steps), T);
      request.recording.kinds.remove(kinds_of(Stage::late) | Kinds{Kind::gradient});
      const auto ran = run(builtin_registry(), request, {}, {}).trace;
      const auto name = scan.entry.find("state/"), comma = scan.entry.find(", entry ", name);
      const TraceArray* states = ran->find(scan.entry.substr(name, comma - name));
      CHECK(states && states->is_complex() && states->shape.size() == 3);
      const auto half = std::stol(scan.entry.substr(comma + 8)), modes = static_cast<long>(states->shape[2]);
      double size = 0.0;
      for (const Complex& z : *states->complex) size = std::max(size, std::abs(z));
      for (const auto* step : steps) {
        const Complex expected =
            (*states->complex)[static_cast<std::size_t>(step->last * states->row_size() + half % modes)];  // of the first channel
        CHECK_SAYS(std::abs(step->value - (half < modes ? expected.real() : expected.imag())) <= 1e-12 * std::max(1.0, size),
                   model + " " + std::to_string(T));
      }
    }
}

TEST_CASE("Newton's error ends at nothing, and each iteration makes one more step from the start exact") {
  for (const std::string model : {"gru", "lstm", "elman"})
    for (const std::int64_t T : {std::int64_t{1}, std::int64_t{13}, std::int64_t{16}, std::int64_t{64}}) {
      RunRequest request = request_for(model);
      const auto trace = form_schedule(builtin_registry(), request, T, {});
      for (const std::string form : {"newton", "quasi-newton", "damped-newton"}) {
        const TraceArray* error = trace->find("schedule/" + form + "/error");
        CHECK_SAYS(error && error->shape[1] == T, model + " " + form);
        const std::int64_t iterations = error->shape[0] - 1;
        const auto at = [&](std::int64_t k, std::int64_t t) { return (*error->real)[static_cast<std::size_t>(k * T + t)]; };
        for (std::int64_t t = 0; t < T; ++t)
          CHECK_SAYS(at(iterations, t) <= -12.0, model + " " + form + ": " + test::show(at(iterations, t)));
        CHECK(at(0, T - 1) > -3.0);  // the guess is none
        if (form == "newton")
          for (std::int64_t k = 1; k <= iterations; ++k)
            for (std::int64_t t = 0; t < std::min(k, T); ++t) CHECK_SAYS(at(k, t) <= -12.0, model + " iteration " + std::to_string(k));
        const Read schedule = read(*trace, form);
        check_order(schedule, model + " " + form);
        CHECK_EQUAL(schedule.count("evaluation"), iterations * T);
        CHECK_EQUAL(schedule.drawing, "iterations");
        if (form == "quasi-newton" && T == 1) CHECK(iterations >= 1);
      }
    }
}

SWEEP_PRESETS("there is a schedule of all forms, in which every node waits for earlier rounds only and all is reached", preset) {
  for (const std::int64_t T : {1, 13, 16}) {
    RunRequest request;
    request.preset = preset;
    request.sequence = make_task(preset.task, preset.task_options());
    request.seed = 1;
    const auto trace = form_schedule(builtin_registry(), request, T, {});
    CHECK_SAYS(trace->info.notes.empty() && !trace->find("schedule/none"), preset.id);
    for (const std::string& form : card(builtin_registry(), preset, request.sequence->width).forms) {
      const std::string what = preset.id + " " + form + " " + std::to_string(T);
      CHECK_SAYS(has(*trace, form), what);
      const Read schedule = read(*trace, form);
      check_order(schedule, what);
      // Every step's input reaches something, and the last round has a node that hangs on a first step unless a window forbids it.
      std::set<std::size_t> used;
      for (const auto& node : schedule.nodes) used.insert(node.needs.begin(), node.needs.end());
      for (std::size_t i = 0; i < schedule.nodes.size(); ++i)
        CHECK_SAYS(schedule.nodes[i].round > 0 || T == 1 || used.contains(i), what + ": a given node is not used");
      CHECK_SAYS(!trace->find("schedule/" + form + "/rounds")->text.empty() && !trace->find("schedule/" + form + "/work")->text.empty(),
                 what);
    }
  }
}

TEST_CASE("a layer that runs backward is drawn from the end") {
  RunRequest request = request_for("lru");
  request.set = {{"direction", "backward"}};
  const Read scan = read(*form_schedule(builtin_registry(), request, 8, {}), "scan");
  const auto whole = std::ranges::find_if(scan.nodes, [](const auto& node) { return node.first == 0 && node.last == 7; });
  CHECK(whole != scan.nodes.end());
  for (const auto& node : scan.nodes)
    if (node.round == 1) CHECK_EQUAL(node.last - node.first, std::int64_t{1});
  for (const auto& node : read(*form_schedule(builtin_registry(), request, 8, {}), "sequential").nodes)
    if (node.round > 0) CHECK(node.last == 7 && node.first == 8 - node.round);
}

TEST_CASE("too many steps are a sentence, a stop is obeyed, a short sequence is taken whole") {
  CHECK_ERROR(form_schedule(builtin_registry(), request_for("lru"), 65, {}), "1 to 64");
  CHECK_ERROR(form_schedule(builtin_registry(), request_for("lru"), 0, {}), "1 to 64");
  CHECK_EQUAL(form_schedule(builtin_registry(), request_for("lru", 10), 16, {})->find("schedule/steps")->real->at(0), 10.0);
  std::stop_source source;
  source.request_stop();
  bool cancelled = false;
  try {
    form_schedule(builtin_registry(), request_for("lru"), 16, source.get_token());
  } catch (const Cancelled&) {
    cancelled = true;
  }
  CHECK(cancelled);
}
