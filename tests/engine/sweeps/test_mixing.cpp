// SPDX-License-Identifier: GPL-3.0-or-later
// The mixing matrices of every model that has some: what is read at each step is the sum of what was written, weighted by them, and nothing else.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/mixing.h"
#include "execution/rollout.h"
#include "experiment/command.h"
#include "sweep.h"

using namespace reclab;

namespace {

using Numbers = std::vector<std::complex<double>>;
constexpr std::int64_t length = 40;

/// The largest |y_t - Σ_s M[t, s] v_s| over the largest |y|; `what` of the largest weight of a step that comes later in the layer's own direction.
double error_of(Network& network, const Mixing& mixing, Var output, double* ahead, double* off_one) {
  std::vector<std::int64_t> all(length);
  std::iota(all.begin(), all.end(), 0);
  const Numbers weights = mixing_columns(network, mixing, output, all, {}), written = written_of(network, mixing), read = read_of(network, mixing, output);
  const std::int64_t reads = mixing.groups * mixing.reads, entries = std::ssize(written) / (length * mixing.groups);
  CHECK_EQUAL(std::ssize(read), length * reads * entries);
  const bool real = !is_complex(output.dtype());
  double worst = 0.0, unit = 0.0;
  for (std::int64_t t = 0; t < length; ++t)
    for (std::int64_t g = 0; g < reads; ++g) {
      double sum = 0.0;
      for (std::int64_t s = 0; s < length; ++s) {
        const std::complex<double> weight = weights[static_cast<std::size_t>((s * length + t) * reads + g)];
        sum += weight.real();
        if (s > t) *ahead = std::max(*ahead, std::abs(weight));
      }
      *off_one = std::max(*off_one, std::abs(sum - 1.0));
      for (std::int64_t d = 0; d < entries; ++d) {
        std::complex<double> made = 0.0;
        for (std::int64_t s = 0; s < length; ++s)
          made += weights[static_cast<std::size_t>((s * length + t) * reads + g)] * written[static_cast<std::size_t>((s * mixing.groups + g / mixing.reads) * entries + d)];
        const std::complex<double> own = read[static_cast<std::size_t>((t * reads + g) * entries + d)];
        worst = std::max(worst, std::abs((real ? made.real() : made) - own));
        unit = std::max(unit, std::abs(own));
      }
    }
  CHECK(unit > 0.0);
  return worst / unit;
}

}  // namespace

SWEEP_PRESETS("what is read is what was written times the mixing matrix", preset) {
  const test::Settings set = preset.stack.empty() ? test::small_settings(preset) : test::Settings{};
  const Hyper hyper = hyper_of(builtin_registry(), preset, set);
  const auto architecture = architecture_of(builtin_registry(), preset);
  const Sequence sequence = make_task("noise", {.length = length, .seed = 3});
  const Network shapes(*architecture, hyper, {.input = sequence.width});
  Parameters parameters = shapes.initialise(7);
  const Model model(*architecture, hyper, parameters, cpu_backend(), DType::f64);
  const SequenceLoss loss(LossKind::last, sequence);
  Rollout rollout(model, Batch(sequence, loss), {.segment = length});
  std::size_t seen = 0;
  CHECK_SAYS(!rollout.forward(
                 [&](const Rollout::Segment& segment) {
                   CHECK_EQUAL(segment.steps, length);
                   for (const Network::MixingVar& own : segment.network.mixings()) {
                     ++seen;
                     const std::string name = preset.id + " " + std::to_string(own.layer) + "/" + own.mixing.name;
                     double ahead = 0.0, off_one = 0.0, unused = 0.0;
                     const double error = error_of(segment.network, own.mixing, own.mixing.output, &ahead, &off_one);
                     CHECK_SAYS(error < 1e-9, name + ": " + std::to_string(error));
                     CHECK_SAYS(ahead == 0.0, name + " reads what comes later");
                     if (own.mixing.is_share) CHECK_SAYS(off_one < 1e-12, name + ": shares that sum to one but for " + std::to_string(off_one));
                     if (!own.mixing.unnormalised) continue;
                     const double plain = error_of(segment.network, own.mixing, own.mixing.unnormalised, &ahead, &unused);
                     CHECK_SAYS(plain < 1e-9, name + " without its normaliser: " + std::to_string(plain));
                   }
                 },
                 {}),
             preset.id);
  CHECK_EQUAL(seen, rollout.network().mixings().size());

  // A run says the same, or why there is nothing.
  RunRequest request;
  request.preset = preset;
  request.set = set;
  request.sequence = sequence;
  request.probe = probe_of({"mixing", "mixing_unnormalised"});
  request.probe.only = {"mixing", "mixing_unnormalised"};
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, preset.id + ": " + trace->info.sentence);
  CHECK_EQUAL(trace->of(Kind::mixing).size(), seen);
  CHECK_EQUAL(trace->info.absent.contains(Kind::mixing), seen == 0);
  CHECK_EQUAL(trace->has(Kind::mixing_unnormalised), !trace->info.absent.contains(Kind::mixing_unnormalised));
}
