// SPDX-License-Identifier: GPL-3.0-or-later
// What a step sends back of a gradient, told apart into what its gates keep and what comes back through its matrices: for every model, the
// two are the whole, the first is of single units, a run's lengths and shares add up to dL/ds_t, and ds_T/ds_t is below its bound.
#include <algorithm>
#include <cmath>
#include <limits>

#include "array/host.h"
#include "execution/rollout.h"
#include "experiment/command/command.h"
#include "recurrence/mixing/passed_back.h"
#include "sweep.h"

using namespace reclab;

namespace {

constexpr std::int64_t length = 24;

double norm_of(std::span<const double> x) {
  double norm = 0.0;
  for (const double entry : x) norm = std::hypot(norm, entry);
  return norm;
}

/// kept + returned = (ds_t/ds_{t-1})^T x of a few directions, and what is kept of a unit is of that unit.
void check_sum(Memory& memory, TellsApart& tells, std::int64_t t, std::int64_t states, const std::string& name) {
  const auto n = static_cast<std::size_t>(memory.transition().size);
  std::vector<double> J(n * n);
  memory.jacobian(t, J);
  for (std::size_t unit = 0; unit <= n; ++unit) {  // n: all of them
    std::vector<double> x(n), whole(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = unit == n ? std::sin(static_cast<double>(3 * i + 1)) : unit == i ? 1.0 : 0.0;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) whole[j] += J[i * n + j] * x[i];
    const auto parts = tells.pass_back(t, x);
    if (!parts) return;
    CHECK_EQUAL(parts->kept.size(), n);
    CHECK_EQUAL(parts->returned.size(), n);
    double rest = 0.0;
    for (std::size_t j = 0; j < n; ++j) rest = std::max(rest, std::abs(parts->kept[j] + parts->returned[j] - whole[j]));
    CHECK_SAYS(rest <= 1e-9 * norm_of(whole), name + ": " + std::to_string(rest) + " of " + std::to_string(norm_of(whole)));
    if (unit < n)
      CHECK_SAYS(std::ranges::count_if(parts->kept, [](double entry) { return entry != 0.0; }) <= states, name + " keeps other units");
  }
}

struct LayerSeen {
  bool told = false;      ///< some memory of it tells what a step sends back apart
  bool last_only = true;  ///< a loss of the last step reaches its earlier states through the later ones alone
};

std::vector<LayerSeen> layers_of(const Architecture& architecture, const Hyper& hyper, const Sequence& sequence, const std::string& id) {
  const Network shapes(architecture, hyper, {.input = sequence.width});
  const Model model(architecture, hyper, shapes.initialise(7), cpu_backend(), DType::f64);
  const SequenceLoss loss(LossKind::last, sequence);
  Rollout rollout(model, Batch(sequence, loss), {.segment = length});
  std::vector<LayerSeen> seen(shapes.layers().size());
  CHECK(!rollout.forward(
      [&](const Rollout::Segment& segment) {
        for (std::size_t layer = 0; layer < seen.size(); ++layer) {
          const auto memories = segment.network.memories(static_cast<int>(layer));
          const Transition of = memories.size() == 1 ? memories[0]->transition() : Transition();
          auto* tells = of.in_blocks() && of.count == 1 && of.repeats == 1 ? dynamic_cast<TellsApart*>(memories[0]) : nullptr;
          if (!tells) continue;
          const auto states =
              std::ranges::count_if(segment.network.states(), [&](const Network::StateVar& state) { return state.memory == memories[0]; });
          for (const std::int64_t t : {std::int64_t{0}, length / 2, length - 1})
            check_sum(*memories[0], *tells, t, states, id + " layer " + std::to_string(layer));
          seen[layer].told = tells->pass_back(0, std::vector<double>(static_cast<std::size_t>(of.size))).has_value();
        }
      },
      {}));
  CHECK(!rollout.backward(
      [&](const Rollout::Segment& segment, int) {
        Graph& graph = segment.network.graph();
        const auto is_zero = [&](Var var, std::int64_t rows) {
          const void* gradient = graph.gradient(var);
          const auto values = gradient ? to_double(cpu_backend(), real_of(var.dtype()), gradient,
                                                   count(var.shape()) / length * rows * (is_complex(var.dtype()) ? 2 : 1))
                                       : std::vector<double>();
          return std::ranges::all_of(values, [](double entry) { return entry == 0.0; });
        };
        for (const Network::StateVar& state : segment.network.states()) {
          if (state.layer < 0 || !state.memory) continue;
          LayerSeen& own = seen[static_cast<std::size_t>(state.layer)];
          // What runs from the end to the start reads the last step first; a stabiliser changes the units of the states beside it.
          if (!state.trajectory || state.auxiliary || segment.network.layers()[static_cast<std::size_t>(state.layer)].reversed)
            own.last_only = false;
          else
            own.last_only = own.last_only && is_zero(state.trajectory, length - 1);
          // What is read inside the operation of the memory may be of the step before.
          graph.visit([&](const Operation& operation, std::span<const Var>, std::span<const Var> out) {
            if (dynamic_cast<const Memory*>(&operation) != state.memory) return;
            for (const Var var : out) {
              const bool is_state = std::ranges::any_of(segment.network.states(), [&](const Network::StateVar& other) {
                return other.trajectory && graph.is_same_memory(other.trajectory, var);
              });
              own.last_only = own.last_only && (is_state || is_zero(var, length));
            }
          });
        }
      },
      {}));
  return seen;
}

struct Row {
  double gate, slope, matrix, step, share_of_gate, share_of_matrix;
};

}  // namespace

SWEEP_PRESETS(
    "what a step sends back is what its gates keep and what returns through its matrices, and both are dL/ds_t, below their bound",
    preset) {
  test::Settings set = preset.stack.empty() ? test::small_settings(preset) : test::Settings{};
  // Of one layer all that arrives from the last step comes through its own states.
  for (auto& [key, value] : set)
    if (key == "layers" && test::possible(preset, {{"layers", "1"}})) value = "1";
  const Sequence sequence = make_task("noise", {.length = length, .seed = 3});
  const auto layers =
      layers_of(*architecture_of(builtin_registry(), preset), hyper_of(builtin_registry(), preset, set), sequence, preset.id);

  RunRequest request;
  request.preset = preset;
  request.set = set;
  request.sequence = sequence;
  request.loss = LossKind::last;
  request.recording = recording_of({"jacobian_factor", "jacobian_share", "jacobian_bound", "jacobian", "gradient/state"});
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, preset.id + ": " + trace->info.sentence);
  CHECK_EQUAL(trace->of(Kind::jacobian_factor).size(), trace->of(Kind::jacobian_share).size());
  CHECK_EQUAL(trace->info.absent.contains(Kind::jacobian_factor), trace->info.absent.contains(Kind::jacobian_share));
  const auto near = [&](double own, double expected, const std::string& what) {
    CHECK_SAYS(std::abs(own - expected) <= 1e-9 * std::max(1.0, std::abs(expected)),
               preset.id + " " + what + ": " + std::to_string(own) + " and not " + std::to_string(expected));
  };
  for (std::int64_t layer = 0; layer < std::ssize(layers); ++layer) {
    const LayerSeen& seen = layers[static_cast<std::size_t>(layer)];
    const TraceArray *lengths = trace->find(key_of(Kind::jacobian_factor, layer)),
                     *shares = trace->find(key_of(Kind::jacobian_share, layer));
    if (const TraceArray *measured = trace->find(key_of(Kind::jacobian, layer)), *bound = trace->find(key_of(Kind::jacobian_bound, layer));
        measured && bound)
      for (std::int64_t t = 0; t < length; ++t) {
        const double own = (*measured->real)[static_cast<std::size_t>(t * measured->row_size())],
                     most = (*bound->real)[static_cast<std::size_t>(2 * t)], radius = (*bound->real)[static_cast<std::size_t>(2 * t + 1)];
        CHECK_SAYS(own <= most + 1e-9 * std::max(1.0, std::abs(most)), preset.id + " layer " + std::to_string(layer) + " step " +
                                                                           std::to_string(t) + ": " + std::to_string(own) +
                                                                           " above its bound " + std::to_string(most));
        CHECK_SAYS(!(radius > most + 1e-9 * std::max(1.0, std::abs(most))), preset.id + ": an eigenvalue above the singular value");
      }
    const auto norms = trace->matching("gradient/state/" + std::to_string(layer) + "/");
    if (!lengths) {
      const auto says = [&](const Sentence& note) {
        return note.terminal_text().find("layer " + std::to_string(layer)) != std::string::npos;
      };
      CHECK_SAYS(!seen.told || std::ranges::any_of(trace->info.notes, says),
                 preset.id + " has no factors of layer " + std::to_string(layer) + " and does not say why");
      continue;
    }
    CHECK(lengths->row_size() == 4 && shares->row_size() == 2);
    std::int64_t compared = 0;
    for (std::int64_t t = 0; t < length; ++t) {
      const double *l = lengths->real->data() + 4 * t, *s = shares->real->data() + 2 * t;
      const Row own{
          std::pow(10.0, l[0]), std::pow(10.0, l[1]), std::isnan(l[2]) ? 0.0 : std::pow(10.0, l[2]), std::pow(10.0, l[3]), s[0], s[1]};
      if (!(own.step > 0.0)) continue;  // nothing passes
      const std::string where = "layer " + std::to_string(layer) + " step " + std::to_string(t);
      const double returned = own.slope * own.matrix;
      near(own.share_of_gate + own.share_of_matrix, 1.0, where + ", shares");
      // Of a sum a + b of two vectors, the projections of which are told: (a - b) (a + b).
      near((own.share_of_gate - own.share_of_matrix) * own.step * own.step, own.gate * own.gate - returned * returned, where + ", lengths");
      if (!seen.last_only || t == 0 || norms.empty()) continue;
      double before = 0.0, after = 0.0, unit = -std::numeric_limits<double>::infinity();
      for (const TraceArray* norm : norms) unit = std::max(unit, (*norm->real)[static_cast<std::size_t>(t)]);
      for (const TraceArray* norm : norms) {
        before = std::hypot(before, std::pow(10.0, (*norm->real)[static_cast<std::size_t>(t - 1)] - unit));
        after = std::hypot(after, std::pow(10.0, (*norm->real)[static_cast<std::size_t>(t)] - unit));
      }
      near(own.step, before / after, where + ", |dL/ds|");
      ++compared;
    }
    CHECK_SAYS(compared > 0 || !seen.last_only || norms.empty(), preset.id + " layer " + std::to_string(layer) + " was not compared");
  }
}
