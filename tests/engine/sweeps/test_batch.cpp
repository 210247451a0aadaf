// SPDX-License-Identifier: GPL-3.0-or-later
// Sequences side by side: each gives what it gives alone, in every architecture and form.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "execution/rollout.h"
#include "experiment/experiment.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

SWEEP_ARCHITECTURES("every sequence of a batch gives what it gives alone", architecture) {
  constexpr std::int64_t T = 40, B = 3;
  const Hyper wide(architecture.hyper);
  const Preset own = test::preset_of(architecture.id);
  const Hyper hyper = test::in_full(architecture, wide) ? wide : hyper_of(builtin_registry(), own, test::small_settings(own));
  const Sequence sequence = make_task("noise", {.length = T, .seed = 4});
  NetworkOptions one;
  one.input = sequence.width;
  const Network probe(architecture, hyper, one);
  const Parameters parameters = probe.initialise(1);
  const SequenceLoss loss(LossKind::random, sequence);
  for (const Form form : probe.forms()) {
    const auto outputs = [&](std::int64_t batch, std::map<std::string, std::vector<double>>& gradients, double& total) {
      Rollout rollout(architecture, hyper, parameters, sequence, loss, cpu_backend(), {.form = form, .record = false, .batch = batch});
      std::vector<double> all;
      CHECK(!rollout.forward([&](const Rollout::Segment& s) {
        const auto values = to_double(cpu_backend(), DType::f64, s.network.graph().value(s.network.output()), count(s.network.output().shape()));
        all.insert(all.end(), values.begin(), values.end());
      }, {}));
      rollout.backward({}, {});
      gradients = rollout.parameter_gradients();
      total = rollout.loss();
      return all;
    };
    std::map<std::string, std::vector<double>> gradient, of_batch;
    double loss_value = 0.0, of_all = 0.0;
    const auto alone = outputs(1, gradient, loss_value), beside = outputs(B, of_batch, of_all);
    const std::string what = architecture.id + " " + std::string(to_string(form));
    const std::size_t width = alone.size() / T;
    CHECK_SAYS(beside.size() == B * alone.size(), what);
    double size = 0.0, worst = 0.0;
    for (const double y : alone) size = std::max(size, std::abs(y));
    for (std::size_t t = 0; t < T; ++t)
      for (std::size_t b = 0; b < B; ++b)
        for (std::size_t j = 0; j < width; ++j) worst = std::max(worst, std::abs(beside[(t * B + b) * width + j] - alone[t * width + j]));
    CHECK_SAYS(worst <= 1e-9 * size, what + ": " + test::show(worst));
    CHECK_SAYS(std::abs(of_all - B * loss_value) <= 1e-9 * std::abs(of_all) + 1e-12, what);
    double largest = 0.0, off = 0.0;
    for (const auto& [name, values] : gradient)
      for (std::size_t i = 0; i < values.size(); ++i) {
        largest = std::max(largest, std::abs(values[i]));
        off = std::max(off, std::abs(of_batch.at(name)[i] - B * values[i]));
      }
    CHECK_SAYS(off <= 1e-9 * largest, what + ": gradients " + test::show(off) + " of " + test::show(largest));
  }
}
