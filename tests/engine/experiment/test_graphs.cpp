// SPDX-License-Identifier: GPL-3.0-or-later
// How often a run builds the graph of its model: for a wide stack that is what a move of a slider waits for.
#include "experiment/experiment.h"
#include "models/registry.h"
#include "recurrence/diagonal/diagonal.h"
#include "test.h"

using namespace reclab;

namespace {

int built = 0;

int graphs_of_run(std::int64_t length, const std::string& form) {
  Architecture own;
  own.title = "a layer of the test's";
  own.layer = [](Layer& l, Var x) {
    ++built;
    return diagonal(l, {"s", {1}, "s"}, reshape(affine(slice(x, 0, 0, 1), 0.0, 0.5), {1}), x);
  };
  Registry registry;
  registry.add("own", "test", own);
  RunRequest request;
  request.preset.id = request.preset.architecture = "own";
  request.sequence = make_task("noise", {.length = length, .seed = 1});
  request.form = form;
  built = 0;
  const TracePtr trace = run(registry, request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, trace->info.sentence);
  return built;
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
