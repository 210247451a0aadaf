// SPDX-License-Identifier: GPL-3.0-or-later
// Weights that a training has come to: which of them are kept, and what a run or another training makes of them.
#include <algorithm>
#include <cmath>
#include <memory>

#include "experiment/training/training.h"
#include "runs.h"
#include "schedule/schedule.h"
#include "scratch.h"
#include "test.h"

using namespace reclab;

namespace {

LearnedPtr weights_at(std::int64_t step, std::size_t entries = 128) {
  auto made = std::make_shared<LearnedWeights>();
  made->step = step;
  made->values.entries().push_back({"w", "", {static_cast<std::int64_t>(entries)}, std::vector<double>(entries, 1.0)});
  return made;
}

TrainingRequest small(std::int64_t steps) {
  TrainingRequest request;
  request.run.preset.id = request.run.preset.title = request.run.preset.architecture = "gru";
  request.run.set = {{"width", "6"}};
  request.from.task = "adding";
  request.from.make.length = 12;
  request.options.batch = 4;
  request.options.held_out = 8;
  request.options.rate.rate = 0.01;
  request.options.rate.shape = RateSchedule::Shape::cosine;
  request.steps = steps;
  return request;
}

void train(Training& training) {
  while (!training.done()) training.advance();
}

bool same(const Parameters& a, const Parameters& b) {
  if (a.entries().size() != b.entries().size()) return false;
  for (std::size_t i = 0; i < a.entries().size(); ++i)
    if (a.entries()[i].name != b.entries()[i].name || a.entries()[i].values != b.entries()[i].values) return false;
  return true;
}

RunRequest run_of(const TrainingRequest& trained) {
  RunRequest request = trained.run;
  request.sequence = load_sequence(trained.from);
  return request;
}

}  // namespace

TEST_CASE("of many weights those are kept that there is room for, evenly, with the first and the newest") {
  const std::int64_t limit = 40 * 1024;  // forty of those of 128 entries
  Checkpoints kept(limit);
  for (std::int64_t step = 0; step <= 100'000; ++step) {
    if (kept.wants(step) || step % 77 == 0) kept.add(weights_at(step));
    if (step % 997 != 0) continue;
    CHECK(kept.bytes() <= limit && std::ssize(kept.all()) <= Checkpoints::most);
    CHECK(kept.all().front()->step == 0);
  }
  kept.add(weights_at(100'001));
  CHECK(kept.all().front()->step == 0 && kept.all().back()->step == 100'001);
  CHECK(std::ssize(kept.all()) >= 20);  // thinning leaves no less than half
  for (std::size_t i = 1; i + 1 < kept.all().size(); ++i) CHECK(kept.all()[i]->step == kept.all()[i - 1]->step + kept.every());
  CHECK(kept.nearest(-5)->step == 0 && kept.nearest(1'000'000)->step == 100'001);
  CHECK(kept.nearest(kept.every() + 1)->step == kept.every());
}

TEST_CASE("small weights are kept by number") {
  Checkpoints kept(std::int64_t{1} << 40);
  for (std::int64_t step = 0; step < 5000; ++step)
    if (kept.wants(step)) kept.add(weights_at(step, 1));
  CHECK(std::ssize(kept.all()) <= Checkpoints::most && std::ssize(kept.all()) > Checkpoints::most / 4);
}

TEST_CASE("a training that ends before its last step has made the first steps of the whole one") {
  Training whole(builtin_registry(), small(9));
  LearnedPtr on_the_way;
  while (!whole.done()) {
    whole.advance();
    if (whole.trainer().steps() == 5) on_the_way = whole.learned(1);
  }
  TrainingRequest part = small(9);
  part.until = 5;
  Training ended(builtin_registry(), part);
  train(ended);
  CHECK(ended.trainer().steps() == 5 && ended.evaluations().back().step == 5);
  CHECK(same(ended.model().parameters(), on_the_way->values));
  CHECK(!same(whole.model().parameters(), on_the_way->values));
  CHECK_SAYS(on_the_way->command.find("--until 5") != std::string::npos && on_the_way->command.ends_with(" --export " + on_the_way->folder),
             on_the_way->command);
  CHECK(on_the_way->command.find("--steps 9") != std::string::npos);
}

TEST_CASE("a training that goes on from a folder draws no weights, and its further steps are those of the whole one") {
  int drawn = 0;
  Architecture own;
  own.title = "a layer of the test's";
  own.layer = [&drawn](Layer& l, Var x) {
    const Init draw = [&drawn](InitContext& c) {
      ++drawn;
      for (double& value : c.values) value = c.rng.normal();
    };
    return linear(x, l.parameter("weight", {3, x.dim(-1)}, draw, "A matrix."));
  };
  Registry registry;
  registry.add("own", "test", own);
  TrainingRequest request = small(9);
  request.run.preset.id = request.run.preset.architecture = "own";
  request.run.set.clear();
  Training whole(registry, request);
  CHECK_EQUAL(drawn, 1);
  train(whole);
  request.until = 4;
  Training part(registry, request);
  train(part);
  const test::Scratch scratch;
  export_training(part, scratch / "out");
  request.until = 0;
  request.run.weights = scratch / "none.npz";  // weights that are replaced are not read either
  drawn = 0;
  const auto again = resume(registry, request, scratch / "out");
  CHECK(drawn == 0 && again->trainer().steps() == 4 && same(again->model().parameters(), part.model().parameters()));
  train(*again);
  CHECK(drawn == 0 && same(again->model().parameters(), whole.model().parameters()));
  for (std::size_t i = 0; i < 9; ++i) CHECK_EQUAL(again->history()[i].loss, whole.history()[i].loss);
  CHECK_EQUAL(again->evaluations().back().loss, whole.evaluations().back().loss);
}

TEST_CASE("a run of learned weights is a run of the file that they are written to") {
  const TrainingRequest request = small(4);
  Training training(builtin_registry(), request);
  train(training);
  const test::Scratch scratch;
  export_training(training, scratch / "out");
  RunRequest learned = run_of(request), read = learned;
  learned.learned = training.learned(3);
  read.weights = scratch / "out/weights.safetensors";
  const TracePtr a = test::finished(learned), b = test::finished(read);
  for (const auto& array : a->arrays()) {
    if (!array->real) continue;
    const TraceArray* other = b->find(array->key);
    CHECK_SAYS(other && other->real && *other->real == *array->real, array->key);
  }
  CHECK(a->info.learned && a->info.learned->steps == 4 && a->info.learned->training == 3 && !b->info.learned);
  const std::string& command = a->info.command;
  CHECK_SAYS(command.starts_with("reclab train gru ") && command.find(" && reclab run gru ") != std::string::npos, command);
  CHECK_SAYS(command.find("--weights gru-3-after-4/weights.safetensors") != std::string::npos, command);
}

TEST_CASE("a fork begins from the weights it is given, and says where they come from") {
  Training training(builtin_registry(), small(4));
  train(training);
  TrainingRequest request = small(3);
  request.run.learned = training.learned(1);
  request.options.rate.rate = 0.002;
  Training fork(builtin_registry(), request);
  fork.begin();
  CHECK(same(fork.model().parameters(), training.model().parameters()));
  CHECK(fork.evaluations().front().loss == training.evaluations().back().loss);
  CHECK_SAYS(command_of(request).starts_with("reclab train gru ") &&
                 command_of(request).find("--weights gru-1-after-4/weights.safetensors") != std::string::npos,
             command_of(request));
}

TEST_CASE("learned weights that do not fit are refused in a sentence") {
  const TrainingRequest request = small(1);
  Training training(builtin_registry(), request);
  train(training);
  RunRequest wider = run_of(request);
  wider.learned = training.learned(1);
  wider.set = {{"width", "7"}};
  CHECK_ERROR(run(builtin_registry(), wider, {}, {}), "do not fit these settings");
  // Named is the model, as it is called in lists and titles, and not what it is built by.
  wider.preset.title = "Gated thing";
  CHECK_ERROR(run(builtin_registry(), wider, {}, {}), "The learned weights of Gated thing do not fit");
  CHECK_ERROR(run(builtin_registry(), wider, {}, {}), "] where the model has [");
}

TEST_CASE("the step view of the forms is of the weights that were learned") {
  TrainingRequest request = small(20);
  request.run.preset.id = request.run.preset.title = request.run.preset.architecture = "elman";
  Training training(builtin_registry(), request);
  train(training);
  RunRequest run = run_of(request);
  const TracePtr drawn = form_schedule(builtin_registry(), run, 8, {});
  run.learned = training.learned(1);
  const TracePtr learned = form_schedule(builtin_registry(), run, 8, {});
  const test::Scratch folder;
  export_training(training, folder / "trained");
  run.learned.reset();
  run.weights = folder / "trained/weights.npz";
  const TracePtr read = form_schedule(builtin_registry(), run, 8, {});
  const std::string value = "schedule/sequential/value", error = "schedule/newton/error";
  const auto same_values = [](const TraceArray& a, const TraceArray& b) {
    return std::ranges::equal(*a.real, *b.real, [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
  };
  for (const std::string& key : {value, error}) {
    CHECK_SAYS(learned->find(key) && drawn->find(key) && read->find(key), key);
    CHECK_SAYS(!same_values(*learned->find(key), *drawn->find(key)), key);
    CHECK_SAYS(same_values(*learned->find(key), *read->find(key)), key);
  }
}
