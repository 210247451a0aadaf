// SPDX-License-Identifier: GPL-3.0-or-later
// Missing cells of a file on the command line: every subcommand that reads one is told what becomes of them, says what was done, and its
// command does it again.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiment/command/command.h"
#include "experiment/training/training.h"
#include "files/npz.h"
#include "models/registry.h"
#include "options.h"
#include "places.h"
#include "reclab.h"
#include "scratch.h"
#include "test.h"

using namespace reclab;
using reclab::test::bytes_of_file;
using reclab::test::flat;
using reclab::test::good;
using reclab::test::reclab_says;
using reclab::test::Result;
using reclab::test::Scratch;
using Json = nlohmann::json;
using Numbers = std::vector<double>;

namespace {

void refused(const std::vector<std::string>& arguments, std::initializer_list<const char*> parts) {
  const Result result = reclab_says(arguments);
  CHECK_SAYS(result.status == 2 && result.output.empty() && std::ranges::count(result.error, '\n') == 1,
             std::to_string(result.status) + ": " + result.error);
  for (const char* part : parts) CHECK_SAYS(result.error.find(part) != std::string::npos, result.error + " does not say " + part);
}
const PresetLibrary& presets() {
  static const PresetLibrary all(builtin_registry(), {test::source("presets")});
  return all;
}
/// The command line after "reclab run", whose words have nothing that a shell would change.
std::vector<std::string> words_after(const std::string& line, const std::string& start) {
  CHECK_SAYS(line.starts_with(start + " "), line);
  std::vector<std::string> words{""};
  for (const char c : line.substr(start.size() + 1)) {
    if (c == ' ')
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

const char* const gaps = "a,b\n1,10\n2,NA\n,30\n4,40\n5,50\n7,\n";
const std::vector<std::string> choices{"leave-out", "hold", "interpolate", "mask"};

}  // namespace

TEST_CASE("a run says what it did with missing cells, and its command does it again") {
  const Scratch scratch;
  const std::string file = scratch.file("gaps.csv", gaps);
  refused({"run", "elman", "--input", file},
          {"gaps.csv: line 3, column 2 (b) is 'NA'", "--missing", "leave-out, hold, interpolate or mask"});
  for (const std::string& choice : choices) {
    const std::string out = scratch / choice;
    const std::string said = flat(good({"run", "elman", "--set", "width=4", "--input", file, "--standardise", "no", "--missing", choice}));
    CHECK_SAYS(said.find(choice == "leave-out" ? "3 rows were left out" : "3 of the 12 cells of the input were missing, in a and b") !=
                   std::string::npos,
               said);
    good({"run", "elman", "--set", "width=4", "--input", file, "--standardise", "no", "--missing", choice, "--export", out});
    const Json manifest = Json::parse(bytes_of_file(out + "/manifest.json"));
    const Json& missing = manifest.at("input").at("missing");
    CHECK_EQUAL(missing.at("treated").get<std::string>(), choice);
    CHECK_EQUAL(missing.at("cells").get<int>(), 3);
    CHECK(missing.at("columns") == Json({"a", "b"}));
    CHECK_EQUAL(missing.at("rows_left_out").get<int>(), choice == "leave-out" ? 3 : 0);
    const NpzFile trace(out + "/trace.npz");
    const Numbers input = trace.read("input").real;
    if (choice == "leave-out") CHECK(input == (Numbers{1, 10, 4, 40, 5, 50}) && trace.read("time").real == (Numbers{0, 3, 4}));
    if (choice == "hold") CHECK(input == (Numbers{1, 10, 2, 10, 2, 30, 4, 40, 5, 50, 7, 50}));
    if (choice == "interpolate") CHECK(input == (Numbers{1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 7, 50}));
    if (choice == "mask") CHECK(input == (Numbers{1, 10, 1, 1, 2, 10, 1, 0, 2, 30, 0, 1, 4, 40, 1, 1, 5, 50, 1, 1, 7, 50, 1, 0}));
    // The command that the manifest has.
    std::vector<std::string> words = words_after(manifest.at("command").get<std::string>(), "reclab");
    words.insert(words.end(), {"--export", out + "-again"});
    good(words);
    const NpzFile again(out + "-again/trace.npz");
    for (const char* key : {"input", "output", "time", "state/0/h", "gradient/input"})
      CHECK_SAYS(again.read(key).real == trace.read(key).real, choice + ": " + key);
  }
  // Where nothing was missing there is nothing to say.
  const std::string whole = scratch.file("whole.csv", "a,b\n1,2\n2,4\n3,1\n");
  CHECK(good({"run", "elman", "--set", "width=4", "--input", whole, "--missing", "hold"}).find("missing") == std::string::npos);
  good({"run", "elman", "--set", "width=4", "--input", whole, "--export", scratch / "whole"});
  CHECK(!Json::parse(bytes_of_file(scratch / "whole/manifest.json")).at("input").contains("missing"));
}

TEST_CASE("every subcommand that reads a file takes the option, and a task has none") {
  const Scratch scratch;
  const std::string file = scratch.file("gaps.csv", gaps);
  for (const char* command : {"run", "forms", "bench", "train", "distill"}) {
    CHECK_SAYS(flat(good({command, "--help"})).find("--missing") != std::string::npos, command);
    CHECK_SAYS(flat(good({command, "--help"})).find("refuse, leave-out, hold, interpolate or mask") != std::string::npos, command);
  }
  CHECK_EQUAL(Json::parse(good({"forms", "elman", "--set", "width=4", "--input", file, "--missing", "leave-out", "--json"}))
                  .at("length")
                  .get<int>(),
              3);
  good({"bench", "elman", "--set", "width=4", "--input", file, "--missing", "hold", "--lengths", "8", "--forms", "sequential", "--json"});
  refused({"forms", "elman", "--input", file, "--json"}, {"gaps.csv", "--missing"});
  refused({"run", "elman", "--task", "adding", "--missing", "hold"}, {"--missing", "belongs to --input"});
  refused({"train", "elman", "--task", "adding", "--missing", "hold", "--export", scratch / "out"}, {"--missing", "--input"});
  refused({"run", "elman", "--input", file, "--missing", "drop"}, {"--missing", "\"drop\"", "leave-out or hold or interpolate or mask"});
  const std::string timed = scratch.file("timed.csv", "time,a\n1,5\n,6\n3,7\n");
  refused({"run", "elman", "--input", timed, "--missing", "hold"},
          {"line 3, column 1 (time) is a time that is missing", "--missing leave-out"});
  good({"run", "elman", "--set", "width=4", "--input", timed, "--missing", "leave-out"});
}

TEST_CASE("a training on a file with missing cells repeats, and goes on as one that was never interrupted") {
  const Scratch scratch;
  std::string text = "a,b\n";
  for (int t = 0; t < 120; ++t)
    text += (t % 7 == 3 ? std::string("NA") : std::to_string(t % 11)) + "," + (t % 13 == 5 ? std::string() : std::to_string(t % 5)) + "\n";
  const std::string file = scratch.file("gaps.csv", text);
  for (const std::string& choice : {std::string("leave-out"), std::string("mask")}) {
    const std::string out = scratch / choice;
    const std::vector<std::string> words{"train",    "gru", "--set",   "width=6", "--input",       file, "--missing", choice,
                                         "--window", "10",  "--batch", "2",       "--judge-every", "4"};
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.begin(), words.begin(), words.end());
      return more;
    };
    refused({"train", "gru", "--input", file, "--window", "10", "--steps", "8", "--export", out},
            {"gaps.csv: line 5, column 1 (a)", "--missing"});
    good(with({"--steps", "8", "--export", out}));
    const Json json = Json::parse(bytes_of_file(out + "/training.json"));
    CHECK_SAYS(json.at("command").get<std::string>().find("--missing " + choice) != std::string::npos, json.at("command").dump());
    CHECK_SAYS(
        json.at("learns_from").get<std::string>().find(choice == "mask" ? "26 of 240 cells missing, held and marked" : " rows left out") !=
            std::string::npos,
        json.at("learns_from").dump());
    const TrainingRequest request =
        cli::training_request_of(cli::train_options(json.at("arguments").get<std::vector<std::string>>()), presets());
    CHECK(request.from.load.missing == *missing_choice(choice));
    good(with({"--steps", "5", "--export", out + "-cut"}));
    good({"train", "--resume", out + "-cut", "--steps", "8"});
    CHECK(NpzFile(out + "-cut/weights.npz").read("param/0/weight_ih").real == NpzFile(out + "/weights.npz").read("param/0/weight_ih").real);
  }
}
