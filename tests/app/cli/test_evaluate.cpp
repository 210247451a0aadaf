// SPDX-License-Identifier: GPL-3.0-or-later
// `reclab evaluate` as a script sees it.
#include <nlohmann/json.hpp>

#include "experiment/command/typed_run.h"
#include "files/npz.h"
#include "reclab.h"
#include "scratch.h"
#include "test.h"

using namespace reclab;
using namespace reclab::test;
using Json = nlohmann::json;

namespace {
void refused(const std::vector<std::string>& arguments, const std::string& text) {
  const Result result = reclab_says(arguments);
  CHECK_SAYS(result.status == 2 && result.output.empty() && std::ranges::count(result.error, '\n') == 1, result.error + result.output);
  CHECK_SAYS(result.error.find(text) != std::string::npos, result.error + " does not say " + text);
}
}  // namespace

TEST_CASE("evaluate prints a table, its JSON repeats by its own command, and the export has all of it") {
  const Scratch scratch;
  const std::string folder = (scratch / "out").string();
  const std::vector<std::string> words{"evaluate", "lstm", "--trained", "--lengths",     "60,20",  "--sequences", "12",
                                       "--seeds",  "1,2",  "--with",    "gru --trained", "--json", "--export",    folder};
  const std::string said = good(words);
  const Json json = Json::parse(said);
  CHECK_EQUAL(json["models"].size(), 2U);
  CHECK_EQUAL(json["metric"], "squared error");
  CHECK_EQUAL(json["rows"][1]["sequences"], 24);
  const double loss = json["rows"][1]["loss"];
  CHECK(json["rows"][1]["model"] == "lstm" && json["rows"][1]["length"] == 20 && json["rows"][1]["loss_low"] < loss &&
        loss < json["rows"][1]["loss_high"]);
  CHECK(json["rows"][0]["model"] == "best constant" && json["rows"][0]["loss_low"].is_null());
  std::vector<std::string> again = shell_words(json["command"].get<std::string>());
  CHECK_EQUAL(again.front(), "reclab");
  again.erase(again.begin());
  again.emplace_back("--json");
  CHECK_SAYS(Json::parse(good(again)) == json, json["command"].dump());

  const Json manifest = Json::parse(contents(std::filesystem::path(folder) / "manifest.json"));
  CHECK_EQUAL(manifest["evaluation"]["models"].size(), 2U);
  CHECK_EQUAL(manifest["command"], json["command"]);
  const std::string csv = contents(std::filesystem::path(folder) / "evaluation.csv");
  CHECK_EQUAL(static_cast<std::size_t>(std::ranges::count(csv, '\n')), json["rows"].size() + 1);
  CHECK(std::filesystem::exists(std::filesystem::path(folder) / "trace.npz"));

  const std::string table = flat(good({"evaluate", "mamba", "--trained", "--sequences", "10"}));
  for (const char* text : {"By length", "By position, of 50 steps", "By delay", "By class", "best constant", "Wilson"})
    CHECK_SAYS(table.find(text) != std::string::npos, table);
}

TEST_CASE("evaluate of a file tells the error by horizon") {
  const Scratch scratch;
  std::string text = "v\n";
  for (int t = 0; t < 300; ++t) text += std::to_string((t * 7) % 11) + "\n";
  const std::string file = scratch.file("v.csv", text).string();
  const std::string table = flat(good({"evaluate", "gru", "--input", file, "--lengths", "15", "--horizon", "3"}));
  for (const char* part : {"By horizon, of 15 steps", "last value", "linear predictor", "windows of one series"})
    CHECK_SAYS(table.find(part) != std::string::npos, table);
  const Json json = Json::parse(good({"evaluate", "gru", "--input", file, "--lengths", "15", "--horizon", "0", "--ahead", "2", "--json"}));
  for (const Json& row : json["rows"]) CHECK(row["by"] != "horizon");
}

TEST_CASE("capacity needs no model, and its table, JSON and CSV say the same") {
  const Scratch scratch;
  const std::string file = (scratch / "capacity.csv").string();
  const Json json = Json::parse(good({"capacity", "--key", "6", "--maps", "relu,dpfp-2", "--draws", "3", "--json", "--export", file}));
  CHECK_EQUAL(json["knees"].size(), 2U);
  CHECK_EQUAL(json["knees"][1]["high"], 24);
  CHECK_EQUAL(static_cast<std::size_t>(std::ranges::count(contents(file), '\n')), json["rows"].size() + 1);
  const std::string table = flat(good({"capacity", "--key", "6", "--maps", "relu,dpfp-2", "--draws", "3"}));
  CHECK_SAYS(table.find("delta rule") != std::string::npos && table.find("dpfp-2") != std::string::npos, table);
  refused({"capacity", "--maps", "relo"}, "relu");
  refused({"capacity", "--key", "0"}, "--key");
}

TEST_CASE("evaluate refuses with a line") {
  const Scratch scratch;
  const std::string file = scratch.file("v.csv", "v\n1\n2\n3\n").string();
  refused({"evaluate", "lstm", "--task", "copy", "--lengths", "3"}, "10 symbols");
  refused({"evaluate", "lstm", "--task", "copy", "--lengths", "x"}, "--lengths");
  refused({"evaluate", "lstm", "--task", "copy", "--sequences", "0"}, "--sequences");
  refused({"evaluate", "lstm", "--task", "copy", "--confidence", "1"}, "--confidence");
  refused({"evaluate", "lstm", "--task", "copy", "--ahead", "2"}, "--ahead belongs to --input");
  refused({"evaluate", "lstm", "--input", file, "--seeds", "1"}, "--seeds belongs to --task");
  refused({"evaluate", "lstm", "--task", "copy", "--with", "lstm --lenth 3"}, "lenth");
  refused({"evaluate", "lstm", "--task", "noise"}, "has no target");
  refused({"evaluate", "lstm", "--weights", file + ".npz", "--task", "copy"}, "v.csv.npz");
}
