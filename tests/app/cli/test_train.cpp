// SPDX-License-Identifier: GPL-3.0-or-later
// `reclab train` as a script sees it.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "files/npz.h"
#include "files/safetensors.h"
#include "places.h"
#include "reclab.h"
#include "scratch.h"
#include "test.h"

namespace fs = std::filesystem;
using namespace reclab;
using reclab::test::adding;
using reclab::test::contents;
using reclab::test::Process;
using reclab::test::Result;
using reclab::test::train;
using reclab::test::train_refused;
using reclab::test::trained;
using Json = nlohmann::json;

TEST_CASE("train writes weights, history and what it takes to go on; the history is that of the steps") {
  const test::Scratch scratch;
  const Result result =
      trained(adding({"--steps", "20", "--clip", "1", "--optimiser", "adamw", "--weight-decay", "0.01", "--export", scratch / "out"}));
  CHECK(result.output.find("step 20 of 20") != std::string::npos);
  CHECK(result.output.find("baseline") != std::string::npos);
  const Json json = Json::parse(contents(scratch / "out/training.json"));
  CHECK_EQUAL(json.at("steps").get<int>(), 20);
  CHECK_EQUAL(json.at("metric").get<std::string>(), "squared error");
  CHECK(json.at("command").get<std::string>().starts_with("reclab train lstm --task adding --length 20"));
  const NpzFile history(scratch / "out/history.npz"), weights(scratch / "out/weights.npz");
  const auto loss = history.read("loss").real, norm = history.read("gradient_norm").real, clipped = history.read("clipped_norm").real;
  CHECK_EQUAL(loss.size(), 20u);
  for (std::size_t i = 0; i < loss.size(); ++i) CHECK(loss[i] > 0.0 && clipped[i] <= std::min(norm[i], 1.0));
  CHECK((history.read("held_out/step").real == std::vector<double>{0, 5, 10, 15, 20}));
  CHECK_EQUAL(history.read("held_out/metric").real.back(), json.at("last").at("metric").get<double>());
  for (const double change : history.read("change/0/weight_hh").real) CHECK(change > 0.0 && change < 1.0);
  std::string line;
  std::istringstream csv(contents(scratch / "out/history.csv"));
  int lines = 0, judged = 0;
  for (; std::getline(csv, line); ++lines) {
    CHECK_SAYS(std::ranges::count(line, ',') == 6, line);
    judged += !line.ends_with(",");
  }
  CHECK_EQUAL(lines, 22);
  CHECK_EQUAL(judged, 6);  // the header too
  const SafetensorsFile safe(scratch / "out/weights.safetensors");
  CHECK_EQUAL(safe.names().size(), weights.names().size());
  for (const std::string& name : safe.names()) {
    CHECK(safe.read(name).real == weights.read("param/" + name).real);
    CHECK(safe.read(name).shape == weights.read("param/" + name).shape);
  }
}

TEST_CASE("trained weights run, and do what the last judgement says") {
  const test::Scratch scratch;
  trained(adding({"--steps", "5", "--export", scratch / "out"}));
  for (const char* file : {"out/weights.npz", "out/weights.safetensors"}) {
    Process process(
        test::built("bin/reclab"),
        {"run", "lstm", "--set", "width=8", "--task", "adding", "--length", "20", "--weights", scratch / file, "--export", scratch / "run"},
        {});
    CHECK_SAYS(process.wait() == 0, process.error);
    CHECK(NpzFile(scratch / "run/trace.npz").read("param/0/weight_hh").real ==
          NpzFile(scratch / "out/weights.npz").read("param/0/weight_hh").real);
  }
}

TEST_CASE("the same command gives the same bytes, and so does one that was interrupted; its own command line makes it again") {
  const test::Scratch scratch;
  for (const std::string optimiser : {"adam", "rmsprop", "sgd"}) {
    std::vector<std::string> how{"--optimiser", optimiser, "--momentum", "0.5", "--schedule", "constant", "--warm-up", "7"};
    if (optimiser == "sgd") how.insert(how.end(), {"--truncate", "9", "--advance", "4"});
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.end(), how.begin(), how.end());
      return adding(more);
    };
    const fs::path whole = scratch / ("whole-" + optimiser), parts = scratch / ("parts-" + optimiser),
                   again = scratch / ("again-" + optimiser);
    trained(with({"--steps", "20", "--export", whole}));
    trained(with({"--steps", "6", "--export", parts}));
    trained({"--resume", parts, "--steps", "13"});
    trained({"--resume", parts, "--steps", "20"});
    std::vector<std::string> words;
    const Json json = Json::parse(contents(whole / "training.json"));
    for (const Json& word : json.at("arguments")) words.push_back(word);
    words.insert(words.end(), {"--export", again});
    trained(words);
    for (const char* file : {"weights.npz", "optimiser.npz", "weights.safetensors"})
      CHECK_SAYS(contents(whole / file) == contents(parts / file), optimiser + ": " + file);
    CHECK(NpzFile(whole / "history.npz").read("loss").real == NpzFile(parts / "history.npz").read("loss").real);
    for (const char* file : {"weights.npz", "optimiser.npz", "weights.safetensors", "history.npz", "history.csv", "training.json"})
      CHECK_SAYS(contents(whole / file) == contents(again / file), optimiser + ": " + file);
  }
}

TEST_CASE("a file is learned in windows, and a file that has changed is not gone on with") {
  const test::Scratch scratch;
  std::string text = "t,x,y\n";
  for (int t = 0; t < 400; ++t)
    text += std::to_string(t) + "," + std::to_string(std::sin(0.2 * t)) + "," + std::to_string(std::cos(0.2 * t)) + "\n";
  const auto file = scratch.file("waves.csv", text);
  const std::vector<std::string> words{"gru",     "--set", "width=8", "--input", file,   "--window", "25",       "--ahead",      "2",
                                       "--batch", "4",     "--steps", "60",      "--lr", "0.01",     "--export", scratch / "out"};
  const Result result = trained(words);
  CHECK_SAYS(result.output.find("the first 320 steps") != std::string::npos, result.output);
  const Json json = Json::parse(contents(scratch / "out/training.json"));
  CHECK(json.at("last").at("metric").get<double>() < 0.5 * json.at("baseline").at("metric").get<double>());
  trained({"--resume", scratch / "out", "--steps", "61"});
  scratch.file("waves.csv", text + "400,0,1\n");
  train_refused({"--resume", scratch / "out", "--steps", "62"}, "has changed since it was learned from");
}

TEST_CASE("Ctrl-C ends at a whole step with everything kept, and what goes on has the bits of one that was never stopped") {
  const test::Scratch scratch;
  auto words = adding({"--steps", "100000", "--export", scratch / "out"});
  words.insert(words.begin(), "train");
  Process::Options options;
  options.terminal = true;
  Process process(test::built("bin/reclab"), words, options);
  CHECK_SAYS(process.wait_for_error_text("steps/s"), process.error);
  process.send(SIGINT);
  CHECK_EQUAL(process.wait(), 130);
  CHECK_SAYS(process.error.find("stopped after step ") != std::string::npos, process.error);
  const int steps = Json::parse(contents(scratch / "out/training.json")).at("steps");
  CHECK(steps > 0 && steps < 100000);
  trained({"--resume", scratch / "out", "--steps", std::to_string(steps + 3)});
  trained(adding({"--steps", std::to_string(steps + 3), "--export", scratch / "whole"}));
  CHECK(contents(scratch / "out/weights.npz") == contents(scratch / "whole/weights.npz"));
}

TEST_CASE("training that diverges ends with the step, the array and the cure, and keeps what there was") {
  const test::Scratch scratch;
  const Result result = train(adding({"--steps", "50", "--optimiser", "sgd", "--lr", "1e200", "--export", scratch / "out"}));
  CHECK_EQUAL(result.status, 1);
  CHECK_SAYS(result.error.starts_with("reclab: training ended at step ") && result.error.find("non-finite") != std::string::npos &&
                 result.error.find("--clip") != std::string::npos,
             result.error);
  CHECK(fs::exists(scratch / "out/weights.npz"));
}

TEST_CASE("a mistake is one line and status 2, and nothing is written") {
  const test::Scratch scratch;
  train_refused({}, "give a preset, or --resume DIR");
  train_refused({"lstn"}, "lstm");
  train_refused(adding({"--optimiser", "adma"}), "choose sgd, rmsprop, adam, adamw");
  train_refused(adding({"--lr", "much"}), "give a number");
  train_refused(adding({"--batch", "0"}), "--batch");
  train_refused(adding({"--beta2", "1"}), "beta2");
  train_refused(adding({"--truncate", "4", "--advance", "8"}), "choose advance up to truncate");
  train_refused({"elman", "--trained"}, "elman has no trained weights");
  train_refused(adding({"--freeze", "0/weight_hx"}), "0/weight_hh");
  train_refused({"lstm", "--task", "noise"}, "has no target");
  train_refused({"lstm", "--task", "adding", "--window", "3"}, "--window belongs to --input");
  train_refused({"lstm", "--task", "adding", "--form", "scan"}, "no exact scan form");
  train_refused({"lstm", "--input", scratch / "none.csv"}, "none.csv");
  train_refused({"--resume", scratch / "none"}, "training.json");
  scratch.file("training.json", "{}");
  train_refused({"--resume", scratch.path()}, "give the folder of a training");
}

TEST_CASE("a model that has learned to foretell a task's input learns the task from there, with a head that is drawn") {
  const test::Scratch scratch;
  const auto copy = [](const std::vector<std::string>& more) {
    std::vector<std::string> words{"gru", "--set", "width=8", "--task", "copy", "--length", "40", "--batch", "4"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  trained(copy({"--task-set", "target=next-input", "--steps", "3", "--seed", "2", "--export", scratch / "first"}));
  const std::string weights = scratch / "first/weights.npz";
  train_refused(copy({"--steps", "1", "--new-head"}), "weights that are given");
  trained(copy({"--steps", "0", "--seed", "5", "--export", scratch / "drawn"}));
  trained(copy({"--steps", "0", "--seed", "5", "--weights", weights, "--new-head", "--export", scratch / "second"}));
  const NpzFile first(weights), second(scratch / "second/weights.npz"), drawn(scratch / "drawn/weights.npz");
  for (const std::string& name : second.names()) {
    const bool head = name.starts_with("param/head/");
    CHECK_SAYS(second.read(name).real == (head ? drawn : first).read(name).real, name);
    CHECK_SAYS(head || second.read(name).real != drawn.read(name).real, name);
  }
  const std::string command = Json::parse(contents(scratch / "second/training.json")).at("command").get<std::string>();
  CHECK_SAYS(command.find("--weights " + weights + " --new-head") != std::string::npos, command);
  train_refused(copy({"--set", "width=9", "--steps", "1", "--weights", weights, "--new-head"}), "width = 8");
}
