// SPDX-License-Identifier: GPL-3.0-or-later
// A hundred steps of training against PyTorch's (tests/oracle/training.py): same weights, batches and optimiser, so the same losses and
// weights.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "files/npz.h"
#include "learning/trainer.h"
#include "models/registry.h"
#include "places.h"
#include "test.h"

using namespace reclab;

namespace {

constexpr std::int64_t steps = 100, batch = 3, length = 8, width = 2;

/// The batches that PyTorch was trained on; after the last of them they begin anew.
class GivenExamples final : public Examples {
 public:
  explicit GivenExamples(const NpzFile& file) : input_(file.read("input").real), target_(file.read("target").real) {}
  Sequence training(std::int64_t step, std::int64_t index) const override {
    Sequence sequence;
    sequence.name = "given";
    sequence.length = ::length;
    sequence.width = width;
    sequence.names = {"a", "b"};
    const auto rows = [&](const std::vector<double>& all, std::int64_t columns) {
      const auto from = all.begin() + (step * batch + index) % (steps * batch) * ::length * columns;
      return std::vector<double>(from, from + ::length * columns);
    };
    sequence.input = rows(input_, width);
    for (std::int64_t t = 0; t < ::length; ++t) sequence.time.push_back(static_cast<double>(t));
    sequence.target_kind = TargetKind::regress;
    sequence.target_width = 1;
    sequence.target = rows(target_, 1);
    sequence.mask.assign(::length, 1.0);
    return sequence;
  }
  Sequence held_out(std::int64_t index) const override { return training(0, index); }
  std::int64_t held_out_count() const override { return batch; }
  std::int64_t length() const override { return ::length; }
  std::string text() const override { return "given"; }

 private:
  std::vector<double> input_, target_;
};

std::map<std::string, TrainingOptions> variants() {
  std::map<std::string, TrainingOptions> all;
  const auto add = [&](const std::string& name, double rate, OptimiserOptions optimiser) {
    TrainingOptions& o = all[name];
    o.optimiser = optimiser;
    o.rate.rate = rate;
    o.batch = batch;
  };
  add("sgd", 0.05, {"sgd"});
  add("sgd-momentum", 0.02, {"sgd", {{"momentum", 0.9}, {"weight_decay", 0.01}}});
  add("sgd-nesterov", 0.02, {"sgd", {{"momentum", 0.9}, {"nesterov", true}}});
  add("rmsprop", 0.003, {"rmsprop"});
  add("rmsprop-momentum", 0.002, {"rmsprop", {{"momentum", 0.5}, {"smoothing", 0.95}, {"epsilon", 1e-6}, {"weight_decay", 0.01}}});
  add("adam", 0.01, {"adam"});
  add("adam-decay", 0.01, {"adam", {{"beta1", 0.8}, {"beta2", 0.99}, {"epsilon", 1e-6}, {"weight_decay", 0.02}}});
  add("adamw", 0.01, {"adamw", {{"weight_decay", 0.1}}});
  add("clip-norm", 0.3, {"sgd"});
  all["clip-norm"].clip_norm = 0.1;
  add("clip-value", 0.3, {"sgd"});
  all["clip-value"].clip_value = 0.02;
  add("cosine", 0.02, {"adam"});
  all["cosine"].rate = {.rate = 0.02, .shape = RateSchedule::Shape::cosine, .warm_up = 10, .steps = steps, .least = 0.001};
  return all;
}

/// The model of a golden file, with the weights that it starts with.
std::unique_ptr<Model> learner(const std::string& id, const NpzFile& file) {
  const Architecture& architecture = builtin_registry().find(id);
  Hyper hyper(architecture.hyper);
  hyper.set_text("width", "4", id);
  if (id == "transformer") {
    hyper.set_text("heads", "2", id);
    hyper.set_text("feed_forward", "8", id);
  }
  Parameters parameters = Network(architecture, hyper, {.input = width, .head = 1}).initialise(1);
  std::size_t there = 0;
  for (const std::string& name : file.names()) there += name.starts_with("param/");
  CHECK_EQUAL(parameters.entries().size(), there);
  for (auto& entry : parameters.entries()) {
    const NpyArray given = file.read("param/" + entry.name);
    CHECK(given.shape == entry.shape);
    entry.values = given.real;
  }
  return std::make_unique<Model>(architecture, hyper, parameters, cpu_backend(), DType::f64);
}

void trains_as_torch(const std::string& id) {
  const NpzFile file(std::filesystem::path(test::source("tests/oracle/training")) / (id + ".npz"));
  const GivenExamples examples(file);
  const auto all = variants();
  std::size_t compared = 0;
  for (const std::string& name : file.names()) {
    if (!name.starts_with("loss/")) continue;
    const std::string variant = name.substr(5);
    CHECK_SAYS(all.contains(variant), variant);
    const auto model = learner(id, file);
    Trainer trainer(*model, examples, all.at(variant));
    const auto losses = file.read(name).real;
    CHECK_EQUAL(std::ssize(losses), steps);
    for (const double expected : losses) {
      const double actual = trainer.step().loss;
      CHECK_SAYS(std::abs(actual - expected) <= 1e-9 * std::abs(expected),
                 variant + ", step " + std::to_string(trainer.steps()) + ": " + test::show(actual) + " for " + test::show(expected));
    }
    const Parameters after = model->parameters();
    for (const auto& entry : after.entries()) {
      const auto expected = file.read("after/" + variant + "/" + entry.name).real;
      for (std::size_t i = 0; i < expected.size(); ++i)
        if (!std::isnan(expected[i])) CHECK_CLOSE(entry.values[i], expected[i], 1e-9);  // NaN: of no effect
    }
    ++compared;
  }
  CHECK_EQUAL(compared, all.size());
}

}  // namespace

TEST_CASE("an Elman network trains as torch.nn.RNN does, with each optimiser") { trains_as_torch("elman"); }
TEST_CASE("an LSTM trains as torch.nn.LSTM does, with each optimiser") { trains_as_torch("lstm"); }
TEST_CASE("a GRU trains as torch.nn.GRU does, with each optimiser") { trains_as_torch("gru"); }
TEST_CASE("a transformer trains as torch.nn.TransformerEncoderLayer does, with each optimiser") { trains_as_torch("transformer"); }

TEST_CASE("a schedule rises, falls as half a cosine and stays where it ends, or falls as one over the square root of the step") {
  const RateSchedule schedule{.rate = 1.0, .shape = RateSchedule::Shape::cosine, .warm_up = 4, .steps = 14, .least = 0.2};
  CHECK_EQUAL(schedule.at(0), 0.25);
  CHECK_EQUAL(schedule.at(3), 1.0);
  CHECK_EQUAL(schedule.at(4), 1.0);
  CHECK_CLOSE(schedule.at(9), 0.6, 1e-15);
  CHECK_EQUAL(schedule.at(14), 0.2);
  CHECK_EQUAL(schedule.at(1000), 0.2);
  const RateSchedule root{.rate = 0.5, .shape = RateSchedule::Shape::inverse_sqrt, .warm_up = 4};
  CHECK_EQUAL(root.at(0), 0.125);
  CHECK_EQUAL(root.at(3), 0.5);
  CHECK_EQUAL(root.at(15), 0.25);
  CHECK_CLOSE(root.at(399), 0.05, 1e-16);
  CHECK_EQUAL((RateSchedule{.rate = 0.5, .shape = RateSchedule::Shape::inverse_sqrt}).at(0), 0.5);
  CHECK_EQUAL((RateSchedule{.rate = 0.5, .shape = RateSchedule::Shape::inverse_sqrt}).at(3), 0.25);
  for (const auto shape : {RateSchedule::Shape::constant, RateSchedule::Shape::cosine, RateSchedule::Shape::inverse_sqrt})
    CHECK(schedule_shape(to_string(shape)) == shape);
  CHECK_ERROR(schedule_shape("root"), "choose constant, cosine, inverse-sqrt");
}

TEST_CASE("an optimiser that cannot be is refused by name") {
  const auto refused = [](const std::string& key, const HyperValue& value) { check({"adam", {{key, value}}}); };
  CHECK_ERROR(refused("beta1", 1.0), "beta1 = 1 is out of range: choose from 0 to below 1.");
  CHECK_ERROR(refused("epsilon", 0.0), "epsilon = 0 is out of range: choose a number above 0.");
  CHECK_ERROR(refused("weight_decay", -1.0), "weight-decay = -1 is out of range: choose 0 or more.");
  CHECK_ERROR(refused("nesterov", true), "nesterov");
  CHECK_ERROR((check({"sgd", {{"momentum", 1.5}}}), 0), "momentum");
  CHECK_ERROR(optimiser_rule("adma"), "choose sgd, rmsprop, adam, adamw");
}

TEST_CASE("an option that several optimisers have is the same in all of them, and the options equal whatever sets them") {
  for (const OptimiserRule& rule : optimiser_rules())
    for (const Field& field : rule.fields) {
      const auto& all = optimiser_fields();
      const auto one = std::ranges::find(all, field.row.key, [](const Field& other) { return other.row.key; });
      CHECK_SAYS(one->row.standard == field.row.standard && one->row.low == field.row.low && one->row.high == field.row.high &&
                     one->row.text == field.row.text && one->above_low == field.above_low && one->form.label == field.form.label,
                 rule.id + " " + field.row.key);
    }
  OptimiserOptions options;
  options.set("beta1", 0.5);
  CHECK(!(options == OptimiserOptions()));
  options.set("beta1", 0.9);
  CHECK(options == OptimiserOptions());
}
