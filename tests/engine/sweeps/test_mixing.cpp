// SPDX-License-Identifier: GPL-3.0-or-later
// The mixing matrices of every model that has some: what is read at each step is the sum of what was written, weighted by them, and nothing
// else.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/mixing.h"
#include "execution/rollout.h"
#include "experiment/command/command.h"
#include "sweep.h"

using namespace reclab;

namespace {

using Numbers = std::vector<std::complex<double>>;
constexpr std::int64_t length = 40;

/// The largest |y_t - Σ_s M[t, s] v_s| over the largest |y|; `ahead`: the largest weight of a step that comes later in the layer's own
/// direction.
double error_of(Network& network, const Mixing& mixing, Var output, double* ahead, double* off_one) {
  std::vector<std::int64_t> all(length);
  std::iota(all.begin(), all.end(), 0);
  const Numbers weights = mixing_columns(network, mixing, output, all, {}), written = written_of(network, mixing),
                read = read_of(network, mixing, output);
  // A read of a group has an entry for each of what is written, or where they are joined one that is made of all of them.
  const std::int64_t reads = mixing.groups * mixing.reads, entries = std::ssize(written) / (length * mixing.groups),
                     joined = mixing.joined ? entries : 1, made_of = entries / joined;
  CHECK_EQUAL(std::ssize(read), length * reads * made_of);
  CHECK_EQUAL(std::ssize(weights), length * length * mixing_weights(network, mixing));
  const bool real = !is_complex(output.dtype());
  double worst = 0.0, unit = 0.0;
  for (std::int64_t t = 0; t < length; ++t)
    for (std::int64_t g = 0; g < reads; ++g) {
      const std::int64_t group = g / mixing.reads;
      const auto weight = [&](std::int64_t s, std::int64_t entry) {
        return weights[static_cast<std::size_t>((s * length + t) * reads * joined + (group * joined + entry % joined) * mixing.reads +
                                                g % mixing.reads)];
      };
      double sum = 0.0;
      for (std::int64_t s = 0; s < length; ++s)
        for (std::int64_t entry = 0; entry < joined; ++entry) {
          sum += weight(s, entry).real();
          if (s > t) *ahead = std::max(*ahead, std::abs(weight(s, entry)));
        }
      *off_one = std::max(*off_one, std::abs(sum - 1.0));
      for (std::int64_t d = 0; d < made_of; ++d) {
        std::complex<double> made = 0.0;
        for (std::int64_t s = 0; s < length; ++s)
          for (std::int64_t entry = 0; entry < joined; ++entry)
            made +=
                weight(s, entry) * written[static_cast<std::size_t>((s * mixing.groups + group) * entries + (mixing.joined ? entry : d))];
        const std::complex<double> own = read[static_cast<std::size_t>((t * reads + g) * made_of + d)];
        worst = std::max(worst, std::abs((real ? made.real() : made) - own));
        unit = std::max(unit, std::abs(own));
      }
    }
  CHECK(unit > 0.0);
  return worst / unit;
}

/// The memories of a model that have mixing matrices, each of them held to what it reads.
std::vector<Network::MixingVar> check_columns(const Architecture& architecture, const Hyper& hyper, const Sequence& sequence,
                                              const std::string& id) {
  const Network shapes(architecture, hyper, {.input = sequence.width});
  const Model model(architecture, hyper, shapes.initialise(7), cpu_backend(), DType::f64);
  const SequenceLoss loss(LossKind::last, sequence);
  Rollout rollout(model, Batch(sequence, loss), {.segment = length});
  std::vector<Network::MixingVar> seen;
  CHECK_SAYS(!rollout.forward(
                 [&](const Rollout::Segment& segment) {
                   CHECK_EQUAL(segment.steps, length);
                   for (const Network::MixingVar& own : segment.network.mixings()) {
                     seen.push_back(own);
                     const std::string name = id + " " + std::to_string(own.layer) + "/" + own.mixing.name;
                     double ahead = 0.0, off_one = 0.0, unused = 0.0;
                     const double error = error_of(segment.network, own.mixing, own.mixing.output, &ahead, &off_one);
                     CHECK_SAYS(error < 1e-9, name + ": " + std::to_string(error));
                     CHECK_SAYS(ahead == 0.0, name + " reads what comes later");
                     if (own.mixing.is_share)
                       CHECK_SAYS(off_one < 1e-12, name + ": shares that sum to one but for " + std::to_string(off_one));
                     if (!own.mixing.unnormalised) continue;
                     const double plain = error_of(segment.network, own.mixing, own.mixing.unnormalised, &ahead, &unused);
                     CHECK_SAYS(plain < 1e-9, name + " without its normaliser: " + std::to_string(plain));
                   }
                 },
                 {}),
             id);
  CHECK_EQUAL(seen.size(), rollout.network().mixings().size());
  return seen;
}

/// The primitives by themselves, in each of their own choices.
const bool registered = [] {
  for (const Preset& preset : test::primitive_presets())
    test::cases().push_back({"what is read is what was written times the mixing matrix: " + preset.id,
                             [preset] {
                               const Hyper hyper = hyper_of(primitives(), preset);
                               check_columns(primitives().find(preset.architecture), hyper,
                                             primitive_input(preset.architecture, hyper, length, 1), preset.id);
                             },
                             {}});
  return true;
}();

}  // namespace

TEST_CASE("there are primitives with mixing matrices") { CHECK(registered && !primitive_names().empty()); }

SWEEP_PRESETS("what is read is what was written times the mixing matrix", preset) {
  const test::Settings set = preset.stack.empty() ? test::small_settings(preset) : test::Settings{};
  const Hyper hyper = hyper_of(builtin_registry(), preset, set);
  const Sequence sequence = make_task("noise", {.length = length, .seed = 3});
  const auto mixings = check_columns(*architecture_of(builtin_registry(), preset), hyper, sequence, preset.id);

  // A run says the same, or why there is nothing.
  RunRequest request;
  request.preset = preset;
  request.set = set;
  request.sequence = sequence;
  request.recording = recording_of({"mixing", "mixing_unnormalised"});
  request.recording.only = {"mixing", "mixing_unnormalised"};
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, preset.id + ": " + trace->info.sentence);
  CHECK_EQUAL(trace->of(Kind::mixing).size(), mixings.size());
  CHECK_EQUAL(trace->info.absent.contains(Kind::mixing), mixings.empty());
  CHECK_EQUAL(trace->has(Kind::mixing_unnormalised), !trace->info.absent.contains(Kind::mixing_unnormalised));

  // Shares are what a softmax makes of its exponentials.
  for (const Network::MixingVar& own : mixings) {
    if (!own.mixing.normaliser) continue;
    const TraceArray *shares = trace->find(key_of(Kind::mixing, own.layer, own.mixing.name)),
                     *plain = trace->find(key_of(Kind::mixing_unnormalised, own.layer, own.mixing.name));
    CHECK_SAYS(shares && plain && shares->shape == plain->shape, preset.id);
    const std::int64_t columns = shares->shape[1], groups = shares->shape[2];
    for (std::int64_t row = 0; row < shares->shape[0]; ++row)
      for (std::int64_t group = 0; group < groups; ++group) {
        const auto at = [&](const TraceArray& array, std::int64_t column) {
          return (*array.real)[static_cast<std::size_t>((row * columns + column) * groups + group)];
        };
        double sum = 0.0;
        for (std::int64_t column = 0; column < columns; ++column) sum += at(*plain, column);
        CHECK_SAYS(std::isfinite(sum) && sum > 0.0, preset.id);
        for (std::int64_t column = 0; column < columns; ++column)
          CHECK_SAYS(std::abs(at(*plain, column) / sum - at(*shares, column)) < 1e-12, preset.id + " " + plain->key);
      }
  }
}
