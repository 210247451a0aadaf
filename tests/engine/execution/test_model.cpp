// SPDX-License-Identifier: GPL-3.0-or-later
// Weights that outlive a run, and what batches refuse.
#include <cmath>
#include <limits>
#include <vector>

#include "array/error.h"
#include "execution/rollout.h"
#include "learning/losses.h"
#include "models/registry.h"
#include "test.h"

using namespace reclab;

namespace {

const Architecture& elman() { return builtin_registry().find("elman"); }
Hyper small() {
  Hyper hyper(elman().hyper);
  hyper.set_text("width", "3", "elman");
  return hyper;
}
Parameters start(std::int64_t input = 1) { return Network(elman(), small(), {.input = input}).initialise(1); }

std::vector<double> outputs(Rollout& rollout, DType real = DType::f64) {
  std::vector<double> all;
  CHECK(!rollout.forward(
      [&](const Rollout::Segment& s) {
        const auto values = to_double(cpu_backend(), real, s.network.graph().value(s.network.output()), count(s.network.output().shape()));
        all.insert(all.end(), values.begin(), values.end());
      },
      {}));
  return all;
}

}  // namespace

TEST_CASE("weights are read back as they were given, and set by name") {
  for (const DType real : {DType::f64, DType::f32}) {
    const Parameters given = start();
    Model model(elman(), small(), given, cpu_backend(), real);
    const Parameters read = model.parameters();
    CHECK_EQUAL(read.entries().size(), given.entries().size());
    for (std::size_t e = 0; e < given.entries().size(); ++e) {
      CHECK_EQUAL(read.entries()[e].name, given.entries()[e].name);
      CHECK_EQUAL(read.entries()[e].text, given.entries()[e].text);
      CHECK(read.entries()[e].shape == given.entries()[e].shape);
      for (std::size_t i = 0; i < given.entries()[e].values.size(); ++i) {
        const double x = given.entries()[e].values[i];
        CHECK_EQUAL(read.entries()[e].values[i], real == DType::f64 ? x : static_cast<double>(static_cast<float>(x)));
      }
    }
    CHECK_EQUAL(model.changes(), 0u);
    const std::string name = given.entries()[1].name;
    std::vector<double> other(given.entries()[1].values.size(), 0.25);
    model.set(name, other);
    CHECK_EQUAL(model.changes(), 1u);
    CHECK(model.parameters().find(name)->values == other);
    CHECK(model.parameters().entries()[0].values == read.entries()[0].values);

    CHECK_ERROR(model.set("0/weight", other), "choose ");
    CHECK_ERROR(model.set(name, std::vector<double>(other.size() + 1)), "one for each entry");
    std::vector<double> bad = other;
    bad.front() = 0.5;
    bad.back() = real == DType::f32 ? 1e300 : std::numeric_limits<double>::quiet_NaN();
    CHECK_ERROR(model.set(name, bad), "not finite");
    CHECK(model.parameters().find(name)->values == other);  // nothing of what was refused
    Parameters broken = given;
    broken.entries()[0].values[0] = std::numeric_limits<double>::infinity();
    CHECK_ERROR(Model(elman(), small(), broken, cpu_backend(), real), "not finite");
  }
}

TEST_CASE("every rollout of a model sees its weights change") {
  Model model(elman(), small(), start(), cpu_backend(), DType::f64);
  const Sequence sequence = make_task("noise", {.length = 12, .seed = 1}), longer = make_task("noise", {.length = 30, .seed = 2});
  const SequenceLoss loss(LossKind::mean, sequence), loss_longer(LossKind::mean, longer);
  Rollout one(model, Batch(sequence, loss), {}), other(model, Batch(longer, loss_longer), {.segment = 7});
  const auto before_one = outputs(one), before_other = outputs(other);
  const void* const at = model.weights()[0].values.data();
  model.update([&](std::size_t i, const Model::Weight& weight) {
    CHECK(&weight == &model.weights()[i]);
    cpu_backend().add_scaled(DType::f64, weight.entries(), -1, weight.values.data(), weight.values.data(), true);  // w += w/2
  });
  CHECK(model.weights()[0].values.data() == at);
  const Model fresh(elman(), small(), model.parameters(), cpu_backend(), DType::f64);
  Rollout fresh_one(fresh, Batch(sequence, loss), {}), fresh_other(fresh, Batch(longer, loss_longer), {.segment = 7});
  CHECK(outputs(one) != before_one);
  CHECK(outputs(other) != before_other);
  CHECK(outputs(one) == outputs(fresh_one));
  CHECK(outputs(other) == outputs(fresh_other));
}

TEST_CASE("the loss of a batch is the sum of its sequences' own") {
  const Model model(elman(), small(), start(), cpu_backend(), DType::f64);
  const Sequence a = make_task("noise", {.length = 12, .seed = 1}), b = make_task("noise", {.length = 9, .seed = 2});
  const SequenceLoss of_a(LossKind::mean, a), of_b(LossKind::last, b);
  Rollout together(model, Batch({{&a, &of_a}, {&b, &of_b}}), {}), first(model, Batch(a, of_a), {}), second(model, Batch(b, of_b), {});
  for (Rollout* rollout : {&together, &first, &second}) CHECK(!rollout->forward({}, {}));
  CHECK_EQUAL(together.losses().size(), 2u);
  CHECK_CLOSE(together.losses()[0], first.loss(), 1e-15);
  CHECK_CLOSE(together.losses()[1], second.loss(), 1e-15);
  CHECK_EQUAL(together.loss(), together.losses()[0] + together.losses()[1]);
  CHECK(second.loss() > 1e-6);
}

TEST_CASE("a batch refuses what does not fit together") {
  const Model model(elman(), small(), start(), cpu_backend(), DType::f64);
  const Sequence noise = make_task("noise", {.length = 12, .seed = 1}), adding = make_task("adding", {.length = 12, .seed = 1}),
                 sine = make_task("sine", {.length = 12, .seed = 1}), brief = make_task("noise", {.length = 8, .seed = 1}),
                 lasting = make_task("noise", {.length = 13, .seed = 1});
  const SequenceLoss of_noise(LossKind::mean, noise), of_adding(LossKind::mean, adding), of_sine(LossKind::task, sine),
      of_brief(LossKind::mean, brief), of_lasting(LossKind::mean, lasting), of_other_kind(LossKind::random, noise);
  CHECK_ERROR(Batch({{&noise, &of_noise}, {&adding, &of_adding}}), "have the same columns");
  CHECK_ERROR(Batch({{&noise, &of_noise}, {&sine, &of_sine}}), "targets of the same width");
  CHECK_ERROR(Batch({{&noise, &of_noise}, {&noise, &of_other_kind}}), "targets of the same kind");
  Rollout rollout(model, Batch(noise, of_noise), {});
  CHECK_ERROR(rollout.set_batch(Batch(noise, of_noise, 2)), "number of sequences of 2");
  CHECK_ERROR(rollout.set_batch(Batch(adding, of_adding)), "number of columns of 2");
  CHECK_ERROR(rollout.set_batch(Batch(sine, of_sine)), "number of outputs of 1");
  CHECK_ERROR(rollout.set_batch(Batch(lasting, of_lasting)), "a length of 13");
  CHECK_ERROR(rollout.set_batch(Batch(noise, of_other_kind)), "a loss of another kind");
  rollout.set_batch(Batch(brief, of_brief));
  auto own = outputs(rollout);
  Rollout fresh(model, Batch(brief, of_brief), {});
  const auto alone = outputs(fresh);
  own.resize(alone.size());
  CHECK(own == alone);
  CHECK_EQUAL(rollout.loss(), fresh.loss());
}
