// SPDX-License-Identifier: GPL-3.0-or-later
// Directions and stacks: what a network of several parts computes is what its parts compute by themselves.
#include <algorithm>
#include <cmath>

#include "experiment/experiment.h"
#include "files/files.h"
#include "files/npz.h"
#include "models/registry.h"
#include "runs.h"
#include "scratch.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;
using test::finished;

namespace {

constexpr std::int64_t steps = 70;

Sequence sequence_of(std::int64_t width) {
  Sequence one = make_task("noise", {.length = steps * width, .seed = 3});
  Sequence sequence = make_task("noise", {.length = steps, .seed = 3});
  sequence.width = width;
  sequence.input.assign(one.input.begin(), one.input.begin() + steps * width);
  sequence.names.assign(static_cast<std::size_t>(width), "x");
  return sequence;
}

/// Rows last first.
std::vector<double> turned(const std::vector<double>& rows, std::int64_t width) {
  std::vector<double> result;
  for (std::int64_t t = static_cast<std::int64_t>(rows.size()) / width - 1; t >= 0; --t)
    result.insert(result.end(), rows.begin() + t * width, rows.begin() + (t + 1) * width);
  return result;
}

std::vector<double> numbers(const TraceArray* array) {
  CHECK(array);
  if (array->real) return *array->real;
  std::vector<double> parts;
  for (const auto& z : *array->complex) parts.insert(parts.end(), {z.real(), z.imag()});
  return parts;
}

/// Of the smallest size that is possible.
RunRequest request_for(const std::string& architecture, Sequence sequence) {
  RunRequest request;
  request.preset.id = request.preset.architecture = architecture;
  for (const char* width : {"4", "8", "16"}) {
    if (architecture.empty()) break;
    request.set.clear();
    for (const HyperSpec& row : builtin_registry().find(architecture).hyper) {
      if (row.key == "width" || row.key == "state" || row.key == "order") request.set.emplace_back(row.key, width);
      if (row.key == "layers" || row.key == "heads") request.set.emplace_back(row.key, "2");
    }
    try {
      hyper_of(builtin_registry(), request.preset, request.set);
      break;
    } catch (const Error&) {
    }
  }
  request.sequence = std::move(sequence);
  request.loss = LossKind::mean;
  request.every = 1;
  return request;
}

/// The weights whose names begin with `from`, saved with `to` in its place.
void add_weights(NpzWriter& file, const Trace& trace, const std::string& from, const std::string& to) {
  for (const TraceArray* array : trace.matching("param/" + from))
    file.add("param/" + to + array->key.substr(6 + from.size()), array->shape, std::span<const double>(*array->real));
}

void same(const TraceArray* a, const std::vector<double>& b, const std::string& what) {
  const auto x = numbers(a);
  CHECK_SAYS(x.size() == b.size(), what);
  double largest = 0.0, difference = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == b[i]) continue;  // also minus infinity
    largest = std::max(largest, std::abs(b[i]));
    difference = std::max(difference, std::abs(x[i] - b[i]));
  }
  CHECK_SAYS(difference <= 1e-12 * std::max(largest, 1e-6), what + " differs by " + test::show(difference) + " of " + test::show(largest));
}

}  // namespace

SWEEP_ARCHITECTURES("run backward it is the same model on the sequence from its end", architecture) {
  RunRequest ahead = request_for(architecture.id, sequence_of(2)), back = ahead;
  ahead.sequence.own().input = turned(ahead.sequence->input, 2);
  back.set.emplace_back("direction", "backward");
  const auto a = finished(ahead), b = finished(back);
  const std::string kind = a->info.each_layer.front().name;  // of a model whose layers are not alike
  CHECK_EQUAL(b->info.each_layer.front().name, kind + (kind.empty() ? "" : " ") + "backward");
  std::size_t compared = 0;
  for (const auto& array : a->arrays()) {
    const std::string& key = array->key;
    if (key == "input" || key.starts_with("param/") || key == "time") continue;
    if (key.starts_with("signal/") || key.starts_with("basis/") || key.starts_with("reconstruction/"))
      continue;  // of what was, which this one does not hold
    const std::string what = architecture.id + ": " + key;
    const bool timed = !array->shape.empty() && array->shape[0] == steps && !key.starts_with("gradient/param/") &&
                       !key.starts_with("newton/") && !key.starts_with("kernel/");
    auto values = numbers(array.get());
    if (array->unit == "log10" && key.starts_with("gradient/")) {
      // Of a stabiliser, whose gradient cancels, there is rounding alone.
      const auto largest = [](const Trace& trace) {
        double most = -1e300;
        for (const TraceArray* other : trace.matching("gradient/state/")) most = std::max(most, *std::ranges::max_element(*other->real));
        return most;
      };
      const auto cancels = [&](const Trace& trace) { return *std::ranges::max_element(*trace.find(key)->real) < largest(trace) - 6.0; };
      CHECK_SAYS(cancels(*a) == cancels(*b), what);
      if (cancels(*a)) continue;
    }
    same(b->find(key), timed ? turned(values, static_cast<std::int64_t>(values.size()) / steps) : values, what);
    ++compared;
  }
  CHECK(compared > 5);
}

SWEEP_ARCHITECTURES("both directions stand side by side, each with weights of its own", architecture) {
  test::Scratch scratch;
  RunRequest both = request_for(architecture.id, sequence_of(2)), ahead = both, back = both;
  both.set.emplace_back("direction", "both");
  back.set.emplace_back("direction", "backward");
  const auto all = finished(both);
  const auto layers = all->info.layers / 2;
  const auto path = scratch.path() / (architecture.id + ".npz");
  const auto alone = [&](RunRequest& request, std::int64_t first, const std::string& final_name) {
    AtomicFile file(path);
    NpzWriter weights(file);
    add_weights(weights, *all, "encoder/", "encoder/");
    for (std::int64_t i = 0; i < layers; ++i) add_weights(weights, *all, std::to_string(first + i) + "/", std::to_string(i) + "/");
    add_weights(weights, *all, final_name, "final/");
    weights.finish();
    file.commit();
    request.weights = path;
    return finished(request);
  };
  const auto a = alone(ahead, 0, "final/"), b = alone(back, layers, "final_backward/");
  const auto left = numbers(a->find("output")), right = numbers(b->find("output"));
  const std::size_t width = left.size() / steps;
  std::vector<double> side_by_side;
  for (std::size_t t = 0; t < steps; ++t) {
    side_by_side.insert(side_by_side.end(), left.begin() + static_cast<std::ptrdiff_t>(t * width),
                        left.begin() + static_cast<std::ptrdiff_t>((t + 1) * width));
    side_by_side.insert(side_by_side.end(), right.begin() + static_cast<std::ptrdiff_t>(t * width),
                        right.begin() + static_cast<std::ptrdiff_t>((t + 1) * width));
  }
  same(all->find("output"), side_by_side, architecture.id + ": output");
  for (const auto& [part, first] : {std::pair(a, std::int64_t{0}), std::pair(b, layers)})
    for (const std::string kind : {"state/", "gate/", "spectrum/", "jacobian/"})
      for (const TraceArray* array : part->matching(kind)) {
        const std::string rest = array->key.substr(kind.size());
        const auto slash = rest.find('/');
        const std::string key =
            kind + std::to_string(std::stoll(rest.substr(0, slash)) + first) + (slash == std::string::npos ? "" : rest.substr(slash));
        same(all->find(key), numbers(array), architecture.id + ": " + key);
      }
}

SWEEP_ARCHITECTURES("both directions by layer: of one layer they are both, of two the second reads both outputs of the first",
                    architecture) {
  RunRequest both = request_for(architecture.id, sequence_of(2)), by_layer = both;
  both.set.emplace_back("direction", "both");
  by_layer.set.emplace_back("direction", "both_by_layer");
  const bool stacks = std::ranges::find(architecture.hyper, "layers", &HyperSpec::key) != architecture.hyper.end();
  for (RunRequest* request : {&both, &by_layer})
    if (stacks) request->set.emplace_back("layers", "1");
  const auto a = finished(both), b = finished(by_layer);
  for (const auto& array : a->arrays()) {
    CHECK_SAYS(b->find(array->key), architecture.id + ": " + array->key);
    CHECK_SAYS(numbers(array.get()) == numbers(b->find(array->key)), architecture.id + ": " + array->key);
  }
  if (!stacks) return;
  by_layer.set.emplace_back("layers", "2");
  const auto two = finished(by_layer);
  CHECK_EQUAL(two->info.layers, 2 * a->info.layers);
  for (int layer = 0; layer < 4; ++layer) CHECK_EQUAL(two->info.each_layer[static_cast<std::size_t>(layer)].reversed, layer % 2 == 1);
  // What the next step holds reaches the first output through a layer that runs backward.
  RunRequest other = by_layer;
  other.sequence.own().input[2] += 0.5;
  const auto changed = finished(other);
  const auto before = numbers(two->find("output")), after = numbers(changed->find("output"));
  CHECK_SAYS(!std::equal(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(before.size()) / steps, after.begin()),
             architecture.id);
}

TEST_CASE("a stack of unlike layers is its parts, one fed with the other's output") {
  test::Scratch scratch;
  RunRequest request = request_for("", sequence_of(3));
  request.preset.id = "mine";
  request.preset.architecture = "gru + lru + transformer";
  request.preset.stack = {{"gru", {{"width", std::int64_t{6}}, {"layers", std::int64_t{2}}}},
                          {"lru", {{"width", std::int64_t{6}}, {"state", std::int64_t{4}}, {"direction", std::string("both")}}},
                          {"transformer", {{"width", std::int64_t{8}}, {"heads", std::int64_t{2}}}}};
  const auto all = finished(request);
  CHECK_EQUAL(all->info.layers, 5);
  const std::vector<std::string> names{"gru", "gru", "lru", "lru backward", "transformer"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    CHECK_EQUAL(all->info.each_layer[i].name, names[i]);
    CHECK_EQUAL(all->info.each_layer[i].reversed, i == 3);
  }
  CHECK(all->find("param/encoder2/weight")->shape == Shape({8, 12}));  // 2 x 6 outputs below, a width of 8 above

  Sequence sequence = request.sequence;
  std::int64_t first = 0;
  for (std::size_t part = 0; part < request.preset.stack.size(); ++part) {
    const auto& [id, values] = request.preset.stack[part];
    RunRequest alone = request_for(id, sequence);
    alone.preset.hyper = values;
    alone.set.clear();
    AtomicFile file(scratch.path() / "part.npz");
    NpzWriter weights(file);
    const std::string number = std::to_string(part);
    add_weights(weights, *all, "encoder" + number + "/", "encoder/");
    add_weights(weights, *all, "final" + number + "/", "final/");
    add_weights(weights, *all, "final" + number + "_backward/", "final_backward/");
    const std::int64_t layers = id == "transformer" ? 1 : 2;
    for (std::int64_t i = 0; i < layers; ++i) add_weights(weights, *all, std::to_string(first + i) + "/", std::to_string(i) + "/");
    weights.finish();
    file.commit();
    alone.weights = scratch.path() / "part.npz";
    const auto trace = finished(alone);
    for (const TraceArray* array : trace->matching("state/"))
      same(all->find("state/" + std::to_string(first + std::stoll(array->key.substr(6))) + array->key.substr(array->key.find('/', 6))),
           numbers(array), id + ": " + array->key);
    sequence.input = numbers(trace->find("output"));
    sequence.width = trace->find("output")->shape[1];
    sequence.names.assign(static_cast<std::size_t>(sequence.width), "x");
    first += layers;
  }
  same(all->find("output"), sequence.input, "output");
}

TEST_CASE("the hyper-parameters of a stack are those of its parts, and a mistake names the part") {
  Preset preset;
  preset.id = "mine";
  preset.architecture = "gru + transformer";
  preset.stack = {{"gru", {}}, {"transformer", {{"width", std::int64_t{8}}, {"heads", std::int64_t{2}}}}};
  const Hyper hyper = hyper_of(builtin_registry(), preset, {{"0.width", "5"}, {"1.heads", "4"}});
  CHECK_EQUAL(hyper.integer("0.width"), 5);
  CHECK_EQUAL(hyper.integer("1.width"), 8);
  CHECK_EQUAL(hyper.integer("1.heads"), 4);
  CHECK_ERROR(hyper_of(builtin_registry(), preset, {{"width", "5"}}), "mine has no hyper-parameter \"width\"; it has 0.width, 1.width");
  CHECK_ERROR(hyper_of(builtin_registry(), preset, {{"1.heads", "3"}}), "part 1, transformer");
  const Card shown = card(builtin_registry(), preset, 2);
  CHECK(std::ranges::find(shown.states, "0/h", &StateInfo::name) != shown.states.end());
  CHECK(std::ranges::find(shown.parameters, "1/self_attn.out_proj.weight", &ParameterInfo::name) != shown.parameters.end());
}
