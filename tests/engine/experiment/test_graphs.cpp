// SPDX-License-Identifier: GPL-3.0-or-later
// How often a run builds the graph of its model, and how often it draws weights: for a wide stack that is what a move of a slider waits
// for.
#include "experiment/experiment.h"
#include "experiment/standing.h"
#include "experiment/training/learned.h"
#include "models/registry.h"
#include "recurrence/diagonal/diagonal.h"
#include "scratch.h"
#include "test.h"

using namespace reclab;

namespace {

int built = 0, drawn = 0;

const Registry& registry() {
  static const Registry all = [] {
    Architecture own;
    own.title = "a layer of the test's";
    own.hyper = {initialisation_only(hyper_real("start", "", 0.5, 0.0, 1.0, "What the weight starts with."))};
    own.layer = [](Layer& l, Var x) {
      ++built;
      const Var decay = l.parameter(
          "decay", {1},
          [start = l.hyper.real("start")](InitContext& weight) {
            ++drawn;
            weight.values[0] = start;
          },
          "The decay.");
      return diagonal(l, {"s", {1}, "s"}, decay, x);
    };
    Registry made;
    made.add("own", "test", own);
    return made;
  }();
  return all;
}

RunRequest request_of(std::int64_t length, const std::string& form = "sequential") {
  RunRequest request;
  request.preset.id = request.preset.architecture = "own";
  request.sequence = make_task("noise", {.length = length, .seed = 1});
  request.form = form;
  return request;
}

TracePtr counted(const RunRequest& request, StandingModel* standing = nullptr) {
  built = drawn = 0;
  const TracePtr trace = run(registry(), request, {}, {}, {}, standing).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, trace->info.sentence);
  return trace;
}
int graphs_of_run(std::int64_t length, const std::string& form) {
  counted(request_of(length, form));
  return built;
}

LearnedPtr learned(double decay) {
  auto weights = std::make_shared<LearnedWeights>();
  weights->training = 1;
  weights->values.entries().push_back({"0/decay", "", {1}, {decay}});
  return weights;
}

}  // namespace

TEST_CASE("a run that is one segment builds one graph, a longer one another for each length of a segment") {
  CHECK_EQUAL(graphs_of_run(20, "auto"), 1);
  CHECK_EQUAL(graphs_of_run(500, "sequential"), 1);
  CHECK_EQUAL(graphs_of_run(4096, "sequential"), 2);  // its first steps, and all
  CHECK_EQUAL(graphs_of_run(5000, "sequential"), 3);  // its first steps, 4096 and what is left over
  // Another form has a graph of its own, beside the one that tells names and shapes.
  CHECK_EQUAL(graphs_of_run(500, "scan"), 2);
}

TEST_CASE("where a model stands a checkpoint of it builds no graph, takes no memory and draws no weight") {
  for (const std::int64_t length : {20, 5000}) {
    StandingModel standing;
    RunRequest request = request_of(length);
    request.learned = learned(0.9);
    counted(request, &standing);
    CHECK_EQUAL(built, length == 20 ? 1 : 3);
    for (const double decay : {0.8, 0.7}) {
      const std::int64_t arrays = cpu_backend().account().arrays();
      request.learned = learned(decay);
      const TracePtr trace = counted(request, &standing);
      CHECK_EQUAL(built, 0);
      CHECK_EQUAL(drawn, 0);
      CHECK_EQUAL(cpu_backend().account().arrays(), arrays);
      CHECK_EQUAL((*trace->find("param/0/decay")->real)[0], decay);
      CHECK(*trace->find("output")->real == *counted(request)->find("output")->real);
    }
  }
}

TEST_CASE("a model stands while what its weights are drawn by moves") {
  StandingModel standing;
  RunRequest request = request_of(5000);
  counted(request, &standing);
  const std::int64_t arrays = cpu_backend().account().arrays();
  request.set = {{"start", "0.25"}};
  const TracePtr trace = counted(request, &standing);
  CHECK_EQUAL(built, 1);  // which has the other start
  CHECK_EQUAL(drawn, 1);
  CHECK_EQUAL(cpu_backend().account().arrays(), arrays);
  CHECK_EQUAL((*trace->find("param/0/decay")->real)[0], 0.25);
  CHECK(*trace->find("output")->real == *counted(request)->find("output")->real);
}

TEST_CASE("weights that are given are not drawn before") {
  const test::Scratch scratch;
  RunRequest request = request_of(20);
  save_weights(*counted(request), scratch / "weights.npz");
  CHECK_EQUAL(drawn, 1);
  request.weights = scratch / "weights.npz";
  counted(request);
  CHECK_EQUAL(drawn, 0);
  request.learned = learned(0.75);
  counted(request);
  CHECK_EQUAL(drawn, 0);
  request.learned = nullptr;
  check_files(registry(), request);
  CHECK_EQUAL(drawn, 0);
}
