// SPDX-License-Identifier: GPL-3.0-or-later
// SaShiMi: without stages it is its stack of S4 blocks; with them each rate moves at its own steps alone, nothing is read before it is
// there, and a long sequence takes no more memory than a short one.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "array/rng.h"
#include "execution/rollout.h"
#include "experiment/experiment.h"
#include "experiment/weights/naming.h"
#include "models/registry.h"
#include "test.h"

using namespace reclab;

namespace {

using States = std::map<std::string, std::vector<std::complex<double>>>;
using Settings = std::vector<std::pair<std::string, std::string>>;

Hyper hyper_of(const Architecture& architecture, const Settings& settings) {
  Hyper hyper(architecture.hyper);
  for (const auto& [key, value] : settings) hyper.set_text(key, value, architecture.id);
  return hyper;
}

Sequence noise(std::int64_t length, std::int64_t width, std::uint64_t seed) {
  Sequence sequence = make_task("noise", {.length = length, .seed = seed});
  sequence.width = width;
  sequence.input.clear();
  Rng rng(seed);
  for (std::int64_t i = 0; i < length * width; ++i) sequence.input.push_back(rng.normal());
  return sequence;
}

/// Weights other than those that a model starts with.
Parameters drawn(const Network& network) {
  Parameters parameters = network.initialise(3);
  Rng rng(5);
  for (auto& entry : parameters.entries())
    for (double& value : entry.values) value += 0.1 * rng.normal();
  return parameters;
}

std::vector<double> outputs(Rollout& rollout) {
  std::vector<double> all;
  CHECK(!rollout.forward(
      [&](const Rollout::Segment& s) {
        const auto some =
            to_double(cpu_backend(), DType::f64, s.network.graph().value(s.network.output()), count(s.network.output().shape()));
        all.insert(all.end(), some.begin(), some.end());
      },
      {}));
  return all;
}

}  // namespace

TEST_CASE("SaShiMi with one stage and no pooling is its stack of S4 blocks") {
  constexpr std::int64_t T = 120, H = 3;
  const Sequence x = noise(T, H, 4);
  const Architecture &whole = builtin_registry().find("sashimi"), &blocks = builtin_registry().find("s4");
  for (const bool bidirectional : {false, true})
    for (const char* prenorm : {"true", "false"}) {
      const Settings shared{{"width", "3"}, {"state", "8"}, {"prenorm", prenorm}, {"bidirectional", bidirectional ? "true" : "false"}};
      Settings alone = shared, together = shared;
      alone.emplace_back("n_layers", "2");
      together.emplace_back("layers", "2");
      for (const char* key : {"pool1", "pool2", "ff"}) alone.emplace_back(key, "0");
      const Hyper of_whole = hyper_of(whole, alone), of_blocks = hyper_of(blocks, together);
      const Network network(whole, of_whole, {.input = H}), stack(blocks, of_blocks, {.input = H});
      Parameters parameters = drawn(network), same = stack.initialise(1);
      for (auto& entry : same.entries()) {
        const auto* found = parameters.find(entry.name);
        CHECK_SAYS(found && found->shape == entry.shape, entry.name);
        entry.values = found->values;
      }
      CHECK_EQUAL(parameters.entries().size(), same.entries().size() + 2);
      const std::vector<double>&weight = parameters.find("final/norm.weight")->values, &bias = parameters.find("final/norm.bias")->values;
      const SequenceLoss loss(LossKind::mean, x);
      const Model a(whole, of_whole, parameters, cpu_backend(), DType::f64), b(blocks, of_blocks, same, cpu_backend(), DType::f64);
      for (const Form form : network.forms()) {
        Rollout one(a, Batch(x, loss), {.form = form}), other(b, Batch(x, loss), {.form = form});
        const std::vector<double> y = outputs(one), z = outputs(other);
        double worst = 0.0, moved = 0.0;
        for (std::size_t t = 0; t < T; ++t) {
          // What the stack was given is added, and the sum normed.
          double sum[H], mean = 0.0, square = 0.0;
          for (std::size_t h = 0; h < H; ++h) mean += (sum[h] = z[t * H + h] + x.input[t * H + h]) / static_cast<double>(H);
          for (std::size_t h = 0; h < H; ++h) square += (sum[h] - mean) * (sum[h] - mean) / static_cast<double>(H);
          for (std::size_t h = 0; h < H; ++h) {
            const double expected = (sum[h] - mean) / std::sqrt(square + 1e-5) * weight[h] + bias[h];
            worst = std::max(worst, std::abs(y[t * H + h] - expected));
            moved = std::max(moved, std::abs(z[t * H + h] - x.input[t * H + h]));
          }
        }
        CHECK_SAYS(worst <= 1e-12 && moved > 0.1, std::string(to_string(form)) + ": " + test::show(worst));
      }
    }
}

TEST_CASE("each rate moves at its own steps, and ds_t/ds_{t-1} is the finite difference of the step wherever it begins") {
  const Architecture& architecture = builtin_registry().find("sashimi");
  const Hyper hyper = hyper_of(architecture, {{"width", "2"}, {"state", "4"}, {"pool1", "2"}, {"pool2", "3"}});
  const Network recording(architecture, hyper, {.input = 1});
  const Model model(architecture, hyper, drawn(recording), cpu_backend(), DType::f64);
  const Sequence first = noise(14, 1, 8), one = noise(1, 1, 9);
  const SequenceLoss loss_of_first(LossKind::last, first), loss(LossKind::last, one);
  Rollout warm(model, Batch(first, loss_of_first), {}), step(model, Batch(one, loss), {});
  outputs(warm);
  States start = warm.final_states();
  int moved = 0, still = 0;
  for (std::int64_t t = 14; t < 26; ++t) {
    const auto after = [&](const States& from, const Rollout::Visit& visit = {}) {
      step.set_initial(from);
      CHECK(!step.forward(visit, {}));
      return step.final_states();
    };
    std::map<std::string, std::pair<std::vector<double>, std::int64_t>> said;  // by state, the blocks and their size
    const States next = after(start, [&](const Rollout::Segment& s) {
      for (const auto& state : s.network.states()) {
        if (!state.memory) continue;
        const Transition of = state.memory->transition();
        const std::int64_t every = s.network.layers()[static_cast<std::size_t>(state.layer)].stride;
        CHECK_EQUAL(of.every, every);
        CHECK_EQUAL(state.memory->next_move(0), every - 1 - t % every);
        std::vector<double> blocks(static_cast<std::size_t>(of.entries()));
        state.memory->jacobian(0, blocks);
        said[Rollout::state_key(state)] = {blocks, of.size};
      }
    });
    CHECK_EQUAL(said.size(), 3);
    for (const auto& [key, own] : said) {
      const auto& [blocks, size] = own;
      (next.at(key) == start.at(key) ? still : moved) += 1;
      const std::size_t n = start.at(key).size() * 2, N = static_cast<std::size_t>(size);  // real and imaginary parts in turn
      for (std::size_t j = 0; j < n; ++j) {
        States up = start, down = start;
        const std::complex<double> h = j % 2 ? std::complex<double>(0.0, 1e-6) : std::complex<double>(1e-6, 0.0);
        up[key][j / 2] += h;
        down[key][j / 2] -= h;
        const States above = after(up), below = after(down);
        for (std::size_t i = 0; i < n; ++i) {
          const std::complex<double> slope = (above.at(key)[i / 2] - below.at(key)[i / 2]) / 2e-6;
          const double expected = i / N == j / N ? blocks[i / N * N * N + i % N * N + j % N] : 0.0;
          CHECK_CLOSE(i % 2 ? slope.imag() : slope.real(), expected, 1e-8);
        }
      }
    }
    start = next;
  }
  CHECK_EQUAL(moved, 12 + 6 + 2);
  CHECK_EQUAL(still, 6 + 10);
}

TEST_CASE("no output of SaShiMi sees an input of a later step, and what waits in a window is seen in the end") {
  const Architecture& architecture = builtin_registry().find("sashimi");
  for (const char* unet : {"false", "true"}) {
    const Hyper hyper = hyper_of(architecture, {{"width", "4"}, {"state", "4"}, {"pool1", "3"}, {"pool2", "2"}, {"unet", unet}});
    const Model model(architecture, hyper, drawn(Network(architecture, hyper, {.input = 1})), cpu_backend(), DType::f64);
    const Sequence x = noise(40, 1, 8);
    const SequenceLoss loss(LossKind::last, x);
    Rollout whole(model, Batch(x, loss), {});
    const std::vector<double> y = outputs(whole);
    for (std::size_t t = 0; t < 40; ++t) {
      Sequence changed = x;
      changed.input[t] += 1.0;
      Rollout other(model, Batch(changed, loss), {});
      const std::vector<double> z = outputs(other);
      const auto differs = static_cast<std::size_t>(std::ranges::mismatch(y, z).in1 - y.begin()) / 4;
      CHECK_EQUAL(differs, t);
    }
  }
}

TEST_CASE("what SaShiMi computes in takes no more memory for a million steps") {
  const Architecture& architecture = builtin_registry().find("sashimi");
  const Hyper hyper = hyper_of(architecture, {{"width", "8"}});
  const Network recording(architecture, hyper, {.input = 1});
  CHECK(!recording.needs_one_segment());
  const Model model(architecture, hyper, recording.initialise(1), cpu_backend(), DType::f64);
  const auto bytes = [&](std::int64_t length) {
    const Sequence x = noise(length, 1, 8);
    const SequenceLoss loss(LossKind::last, x);
    const Rollout rollout(model, Batch(x, loss), {.record = false});
    CHECK(rollout.segment_steps() <= 256);
    return rollout.bytes() - length * 8;
  };
  CHECK(bytes(1000000) <= 2 * bytes(2000));  // two graphs: of a whole segment, and of what is left at the end
}

TEST_CASE("a file of the reference's SaShiMi is read by its own names") {
  const Architecture& architecture = builtin_registry().find("sashimi");
  const Hyper hyper = hyper_of(architecture, {{"width", "6"}, {"n_layers", "2"}, {"state", "8"}, {"pool1", "2"}, {"pool2", "4"}});
  const Network network(architecture, hyper, {.input = 6});
  FileShapes file;
  const auto maps = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    file["model." + name + ".weight"] = {out, in, 1};
    file["model." + name + ".bias"] = {out};
  };
  const auto blocks = [&](const std::string& path, std::int64_t first, std::int64_t H) {
    for (std::int64_t i = first; i < first + 4; ++i) {
      const std::string block = "model." + path + std::to_string(i);
      file[block + ".norm.weight"] = file[block + ".norm.bias"] = {H};
      if ((i - first) % 2) {
        maps(path + std::to_string(i) + ".layer.ff.0.0", 2 * H, H);
        maps(path + std::to_string(i) + ".layer.ff.2", H, 2 * H);
        continue;
      }
      const std::string kernel = block + ".layer.layer.kernel.";
      file[kernel + "inv_dt"] = {H, 1};
      file[kernel + "A_real"] = file[kernel + "A_imag"] = {H, 4};
      file[kernel + "B"] = file[kernel + "C"] = file[kernel + "P"] = {1, H, 4, 2};
      file[kernel + "l_kernel"] = {};
      file[block + ".layer.layer.D"] = {1, H};
      file[block + ".layer.output_linear.0.weight"] = {2 * H, H};
      file[block + ".layer.output_linear.0.bias"] = {2 * H};
    }
  };
  maps("d_layers.0.linear", 12, 6 * 2);
  maps("d_layers.1.linear", 24, 12 * 4);
  blocks("c_layers.", 0, 24);
  maps("u_layers.0.0.linear", 12 * 4, 24);
  blocks("u_layers.0.", 1, 12);
  maps("u_layers.1.0.linear", 6 * 2, 12);
  blocks("u_layers.1.", 1, 6);
  file["model.norm.weight"] = file["model.norm.bias"] = {6};
  const NameMatch match = match_names(network, file);
  CHECK_EQUAL(match.problem, "");
  CHECK_EQUAL(match.unused, 6);
  CHECK(match.unknown.empty());
  std::map<std::string, std::string> found;
  for (std::size_t i = 0; i < match.entries.size(); ++i) {
    CHECK_SAYS(!match.entries[i].empty() && file.at(match.entries[i]) == network.parameters()[i].var.shape(),
               network.parameters()[i].name + " is " + match.entries[i]);
    found[network.parameters()[i].name] = match.entries[i];
  }
  CHECK_EQUAL(found.at("0/linear.weight"), "model.d_layers.0.linear.weight");
  CHECK_EQUAL(found.at("3/ff.0.bias"), "model.c_layers.1.layer.ff.0.0.bias");
  CHECK_EQUAL(found.at("7/A_imag"), "model.u_layers.0.1.layer.layer.kernel.A_imag");
  CHECK_EQUAL(found.at("14/D"), "model.u_layers.1.3.layer.layer.D");
  CHECK_EQUAL(found.at("final/norm.bias"), "model.norm.bias");
  CHECK_EQUAL(misfit(network, FileIndex(file)), 0);
}
