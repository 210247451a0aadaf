// SPDX-License-Identifier: GPL-3.0-or-later
// What a memory says that its transition is made of is what a step does: blocks that see no other block and act alike on every column.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "algebra/eigen.h"
#include "execution/rollout.h"
#include "experiment/experiment.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

using States = std::map<std::string, std::vector<std::complex<double>>>;

Sequence part_of(const Sequence& whole, std::int64_t first, std::int64_t steps) {
  Sequence part = whole;
  part.length = steps;
  part.input.assign(whole.input.begin() + first * whole.width, whole.input.begin() + (first + steps) * whole.width);
  part.time.assign(whole.time.begin() + first, whole.time.begin() + first + steps);
  return part;
}

/// A state as real numbers: the two parts of a complex entry one after the other.
struct Entry {
  std::string key;
  std::size_t at;
  bool imaginary;
};

struct OneStep {
  std::vector<Entry> entries;  ///< of one memory, in the order of their declaration
  std::vector<double> matrices;
  Transition of;
};

/// scale I + u v^T is each block, and its eigenvalues those that come of it.
void check_low_rank(Memory& memory, std::span<const double> matrices) {
  const Transition of = memory.transition();
  const auto n = static_cast<std::size_t>(of.size), rank = static_cast<std::size_t>(of.rank);
  std::vector<double> scale(static_cast<std::size_t>(of.count)), u(scale.size() * n * rank), v(u.size());
  memory.low_rank(0, scale, u, v);
  for (std::size_t block = 0; block < scale.size(); ++block) {
    const auto U = std::span<const double>(u).subspan(block * n * rank, n * rank),
               V = std::span<const double>(v).subspan(block * n * rank, n * rank);
    const auto matrix = matrices.subspan(block * n * n, n * n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        double entry = i == j ? scale[block] : 0.0;
        for (std::size_t r = 0; r < rank; ++r) entry += U[i * rank + r] * V[j * rank + r];
        CHECK_CLOSE(matrix[i * n + j], entry, 1e-14);
      }
    const auto found = low_rank_eigenvalues(scale[block], U, V, of.size, of.rank), expected = eigenvalues(matrix, of.size);
    for (std::size_t i = 0; i < n; ++i) CHECK_SAYS(std::abs(found[i] - expected[i]) < 1e-12, std::to_string(i));
  }
}

}  // namespace

SWEEP_ARCHITECTURES("the blocks of every memory are the finite differences of its step, in every column, and nothing is beside them",
                    architecture) {
  const Sequence sequence = make_task("noise", {.length = 9, .seed = 3});
  Hyper hyper(architecture.hyper);
  for (const char* window : {"window", "attention_window"})  // attention that sees a few steps has no cache that grows
    if (hyper.has(window) && hyper.integer(window) == 0) hyper.set(window, std::int64_t{4}, architecture.id);
  const Sequence before = part_of(sequence, 0, 8), last = part_of(sequence, 8, 1);
  const SequenceLoss loss_before(LossKind::last, before), loss_last(LossKind::last, last);
  NetworkOptions one;
  one.input = sequence.width;
  const Network shapes(architecture, hyper, one);
  if (std::ranges::any_of(shapes.states(), [](const Network::StateVar& state) { return state.growing; }))
    throw test::Skip("a layer with a cache has no transition");
  const Parameters parameters = shapes.initialise(1);
  const Model model(architecture, hyper, parameters, cpu_backend(), DType::f64);
  Rollout warm(model, Batch(before, loss_before), {});
  CHECK(!warm.forward({}, {}));
  const States start = warm.final_states();
  Rollout step(model, Batch(last, loss_last), {});
  const auto after = [&](const States& from, const Rollout::Visit& visit = {}) {
    step.set_initial(from);
    CHECK(!step.forward(visit, {}));
    return step.final_states();
  };
  std::vector<OneStep> found;
  after(start, [&](const Rollout::Segment& segment) {
    for (Memory* memory : segment.network.memories(0)) {
      OneStep own;
      own.of = memory->transition();
      if (!own.of.in_blocks()) continue;
      own.matrices.resize(static_cast<std::size_t>(own.of.entries()));
      memory->jacobian(0, own.matrices);
      if (own.of.kind == Transition::Kind::low_rank) check_low_rank(*memory, own.matrices);
      for (const auto& state : segment.network.states()) {
        if (state.memory != memory) continue;
        const std::string key = Rollout::state_key(state);
        for (std::size_t i = 0; i < start.at(key).size(); ++i)
          for (int imaginary = 0; imaginary <= (is_complex(state.initial.dtype()) ? 1 : 0); ++imaginary)
            own.entries.push_back({key, i, imaginary == 1});
      }
      found.push_back(std::move(own));
    }
  });
  if (found.empty()) throw test::Skip("no memory of it has blocks");
  for (const OneStep& own : found) {
    const std::string what = architecture.id + ", " + std::to_string(own.of.count) + " blocks of " + std::to_string(own.of.size) + " for " +
                             std::to_string(own.of.repeats) + " columns";
    const std::int64_t n = std::ssize(own.entries);
    CHECK_SAYS(n == own.of.width(), what + ": " + std::to_string(n) + " entries");
    // Columns lie beside each other within a block, or each of them has its rows together, or a block has an entry of each state.
    enum Layout { beside, together, across };
    double worst[3] = {0.0, 0.0, 0.0}, largest = 0.0;
    for (std::int64_t j = 0; j < n; j += std::max<std::int64_t>(1, n / 37)) {
      const Entry& moved = own.entries[static_cast<std::size_t>(j)];
      const double h = 1e-6 * std::max(1.0, std::abs(start.at(moved.key)[moved.at]));
      const std::complex<double> by = moved.imaginary ? std::complex<double>(0.0, h) : std::complex<double>(h, 0.0);
      States up = start, down = start;
      up[moved.key][moved.at] += by;
      down[moved.key][moved.at] -= by;
      const States above = after(up), below = after(down);
      for (std::int64_t i = 0; i < n; ++i) {
        const Entry& seen = own.entries[static_cast<std::size_t>(i)];
        const std::complex<double> change = (above.at(seen.key)[seen.at] - below.at(seen.key)[seen.at]) / (2.0 * h);
        const double measured = seen.imaginary ? change.imag() : change.real();
        largest = std::max(largest, std::abs(measured));
        for (const Layout layout : {beside, together, across}) {
          const auto place = [&](std::int64_t at) {  // block, row, column
            const std::int64_t block = at / (own.of.size * own.of.repeats), inside = at % (own.of.size * own.of.repeats);
            if (layout == across) return std::array{at % own.of.count, at / own.of.count, std::int64_t{0}};
            return layout == together ? std::array{block, inside % own.of.size, inside / own.of.size}
                                      : std::array{block, inside / own.of.repeats, inside % own.of.repeats};
          };
          const auto [block, row, column] = place(i);
          const auto [other_block, other_row, other_column] = place(j);
          if (row >= own.of.size || other_row >= own.of.size) {  // not laid out so
            worst[layout] = std::numeric_limits<double>::infinity();
            continue;
          }
          const double said = block == other_block && column == other_column
                                  ? own.matrices[static_cast<std::size_t>((block * own.of.size + row) * own.of.size + other_row)]
                                  : 0.0;
          worst[layout] = std::max(worst[layout], std::abs(said - measured));
        }
      }
    }
    CHECK_SAYS(std::min({worst[beside], worst[together], worst[across]}) < 1e-6 * std::max(1.0, largest),
               what + ": " + test::show(worst[beside]) + ", " + test::show(worst[together]) + ", " + test::show(worst[across]));
  }
}

TEST_CASE("there are architectures whose memories have blocks, and one whose blocks act on several columns") {
  int in_blocks = 0;
  bool in_columns = false;
  for (const auto& architecture : builtin_registry().all()) {
    const Network network(architecture, Hyper(architecture.hyper), {});
    bool blocks = false;
    for (const Memory* memory : network.memories(0)) {
      const Transition own = memory->transition();
      blocks = blocks || own.in_blocks();
      in_columns = in_columns || (own.in_blocks() && own.repeats > 1);
    }
    in_blocks += blocks;
  }
  CHECK_SAYS(in_blocks >= 8 && in_columns, std::to_string(in_blocks));
}

TEST_CASE("a delta rule's step is I - beta k k^T: of each head's eigenvalues all but one are 1, for every column of the values") {
  RunRequest request;
  request.preset.id = request.preset.architecture = "deltanet";
  request.set = {{"width", "16"}, {"heads", "2"}};
  request.sequence = make_task("noise", {.length = 12, .seed = 1});
  request.every = 1;
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  const TraceArray* spectrum = trace->find("spectrum/0");
  const TraceArray* memory = trace->find("state/0/S");
  CHECK(spectrum && memory && spectrum->row_size() == memory->row_size());
  const std::int64_t heads = memory->shape[1], values = memory->shape[3], n = spectrum->row_size();
  for (std::int64_t t = 0; t < trace->info.length; ++t) {
    std::int64_t others = 0;
    for (std::int64_t i = 0; i < n; ++i) others += std::abs((*spectrum->complex)[static_cast<std::size_t>(t * n + i)] - 1.0) > 0.0;
    CHECK_SAYS(others <= heads * values, "step " + std::to_string(t) + ": " + std::to_string(others));
  }
}
