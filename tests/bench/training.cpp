// SPDX-License-Identifier: GPL-3.0-or-later
// One step of training at the sizes of the lab: forward, backward and Adam, of a batch of 32 sequences of 100 steps.
#include <cmath>

#include "array/rng.h"
#include "learner.h"
#include "rows.h"

namespace reclab::bench {

OneBatch::OneBatch(std::int64_t size) {
  Rng rng(1);
  for (std::int64_t b = 0; b < size; ++b) {
    Sequence& sequence = sequences_.emplace_back();
    sequence.name = "batch";
    sequence.length = steps;
    sequence.width = width;
    sequence.names = {"a", "b"};
    sequence.target_kind = TargetKind::regress;
    sequence.target_width = 1;
    for (std::int64_t t = 0; t < steps; ++t) {
      sequence.time.push_back(static_cast<double>(t));
      const double x = static_cast<float>(rng.normal()), y = static_cast<float>(rng.normal());
      sequence.input.insert(sequence.input.end(), {x, y});
      sequence.target.push_back(static_cast<float>(0.5 * x - 0.3 * y));
      sequence.mask.push_back(1.0);
    }
  }
}

Sequence OneBatch::training(std::int64_t /*step*/, std::int64_t index) const {
  return sequences_[static_cast<std::size_t>(index % std::ssize(sequences_))];
}

Learner::Learner(const std::string& id, const std::vector<std::pair<std::string, std::string>>& set, const std::string& form, DType real,
                 const OneBatch& examples)
    : architecture(builtin_registry().find(id)), hyper(architecture.hyper) {
  for (const auto& [key, value] : set) hyper.set_text(key, value, id);
  start = Network(architecture, hyper, {.input = OneBatch::width, .head = 1, .real = real}).initialise(1);
  for (auto& entry : start.entries())
    for (double& value : entry.values) value = static_cast<float>(value);
  model = std::make_unique<Model>(architecture, hyper, start, cpu_backend(), real);
  TrainingOptions options;
  options.batch = examples.held_out_count();
  options.held_out = examples.held_out_count();
  options.form = form_from(form);
  options.rate.rate = 1e-4;
  trainer = std::make_unique<Trainer>(*model, examples, options);
  first = trainer->step().loss;
}

Row training(const std::string& name) {
  struct Case {
    std::string part, id, form;
    std::vector<std::pair<std::string, std::string>> set;
  };
  const std::vector<Case> cases{
      {"lstm H64", "lstm", "sequential", {{"width", "64"}}},
      {"gru H64", "gru", "sequential", {{"width", "64"}}},
      {"elman H64", "elman", "sequential", {{"width", "64"}}},
      {"mamba D32 N16", "mamba", "sequential", {{"width", "32"}, {"state", "16"}}},
      {"mamba D32 N16, scan", "mamba", "scan", {{"width", "32"}, {"state", "16"}}},
      {"transformer d64", "transformer", "attention", {{"width", "64"}, {"heads", "4"}, {"feed_forward", "256"}}}};
  constexpr std::int64_t batch = 32, steps = OneBatch::steps, width = OneBatch::width;
  struct Data {
    OneBatch examples{batch};
    std::vector<std::unique_ptr<Learner>> single;
    std::vector<double> exact;
    std::vector<std::string> names;
  };
  auto data = std::make_shared<Data>();
  Row row;
  row.name = name;
  row.text = "a step of training, forward, backward and Adam, float32, B" + std::to_string(batch) + " T" + std::to_string(steps);
  for (const Case& one : cases) {
    data->single.push_back(std::make_unique<Learner>(one.id, one.set, one.form, DType::f32, data->examples));
    data->exact.push_back(Learner(one.id, one.set, one.form, DType::f64, data->examples).first);
    data->names.push_back(one.part);
    Trainer& trainer = *data->single.back()->trainer;
    Part part;
    part.name = one.part;
    if (one.form == "scan") part.beside = one.id + " D32 N16";
    part.run = [&trainer] { trainer.step(); };
    row.parts.push_back(std::move(part));
  }
  Data& d = *data;
  row.error = [&d] {
    double worst = 0.0;
    for (std::size_t i = 0; i < d.exact.size(); ++i)
      worst = std::max(worst, std::abs(d.single[i]->first - d.exact[i]) / std::abs(d.exact[i]));
    return worst;
  };
  row.save = [&d](NpzWriter& file) {
    std::vector<double> x, y;
    for (std::int64_t b = 0; b < batch; ++b) {
      const Sequence one = d.examples.training(0, b);
      x.insert(x.end(), one.input.begin(), one.input.end());
      y.insert(y.end(), one.target.begin(), one.target.end());
    }
    file.add("x", {batch, steps, width}, std::span<const double>(x));
    file.add("y", {batch, steps, 1}, std::span<const double>(y));
    for (std::size_t i = 0; i < d.names.size(); ++i) {
      file.add("loss/" + d.names[i], {1}, std::span<const double>(&d.exact[i], 1));
      for (const auto& entry : d.single[i]->start.entries())
        file.add(d.names[i] + ":" + entry.name, entry.shape, std::span<const double>(entry.values));
    }
  };
  row.kept = data;
  return row;
}

}  // namespace reclab::bench
