// SPDX-License-Identifier: GPL-3.0-or-later
// `reclab distill` as a script sees it: a table, JSON, and a folder whose model opens like any other.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "files/npz.h"
#include "reclab.h"
#include "scratch.h"
#include "test.h"

namespace fs = std::filesystem;
using namespace reclab;
using reclab::test::good;
using reclab::test::Process;
using reclab::test::reclab_says;
using reclab::test::Result;
using Json = nlohmann::json;

TEST_CASE("errors and singular values are a table and JSON, and the export opens like any other model") {
  const test::Scratch folder;
  const std::string out = (folder / "out").string();
  const std::vector<std::string> model{"distill", "hyena",          "--set",   "width=4", "--set",  "l_max=100",
                                       "--set",   "filter_order=6", "--modes", "6",       "--taps", "100"};
  std::vector<std::string> as_json = model, to_folder = model;
  as_json.emplace_back("--json");
  to_folder.insert(to_folder.end(), {"--export", out});

  const Json json = Json::parse(good(as_json));
  CHECK(json.at("id") == "hyena" && json.at("modes") == 6 && json.at("taps") == 100 && json.at("whole") == true &&
        json.at("model") == "hyena-in-6-modes");
  CHECK_EQUAL(json.at("errors").size(), std::size_t{5});
  double before = 1.0;
  for (const Json& row : json.at("errors")) {
    for (const char* key : {"modes", "l2", "largest", "hankel", "hankel_bound", "l2_bound"}) CHECK_SAYS(row.at(key).is_number(), key);
    CHECK(row.at("l2").get<double>() <= before && row.at("l2").get<double>() <= row.at("l2_bound").get<double>());
    before = row.at("l2");
  }
  CHECK(json.at("singular_values").size() > 6 && json.at("singular_values").at(0) == 1.0);
  const Json& channels = json.at("filters").at(0).at("channels");
  CHECK_EQUAL(channels.size(), std::size_t{4});
  for (const Json& channel : channels) {
    int modes = 0;  // one of a pair stands for both
    for (const Json& mode : channel.at("modes")) modes += mode.at("pole").at(1) == 0.0 ? 1 : 2;
    CHECK_SAYS(modes >= 3 && modes <= 6 && channel.at("direct").is_number(), std::to_string(modes));
  }

  const std::string said = good(to_folder);
  for (const char* text :
       {"1 long filter, 4 channels, fitted over 100 steps", "at most", "at least", "the model with its filters as modes"})
    CHECK_SAYS(said.find(text) != std::string::npos, said);
  for (const char* name : {"hyena-in-6-modes.json", "hyena-in-6-modes.npz", "errors.csv", "singular_values.csv"})
    CHECK_SAYS(fs::exists(fs::path(out) / name), name);
  const NpzFile weights(fs::path(out) / "hyena-in-6-modes.npz");
  const NpyArray poles = weights.read("param/0/filter_fn.poles");
  CHECK_EQUAL(poles.shape.size(), std::size_t{4});

  const Process::Options own{.environment = {{"RECLAB_PRESETS", out}}};
  const Json all = Json::parse(good({"list", "--json"}, own));
  CHECK(std::ranges::any_of(all, [](const Json& entry) { return entry.at("id") == "hyena-in-6-modes"; }));
  CHECK(good({"run", "hyena-in-6-modes", "--weights", out + "/hyena-in-6-modes.npz", "--export", (folder / "run").string()}, own)
            .find("trace.npz") != std::string::npos);
  CHECK(fs::exists(folder / "run" / "trace.npz"));
}

TEST_CASE("two models in one folder keep their weights") {
  const test::Scratch folder;
  const std::string out = (folder / "small models").string();
  for (const char* modes : {"4", "6"}) {
    const std::string said = good({"distill", "sgconv", "--modes", modes, "--taps", "64", "--export", out});
    CHECK_SAYS(said.find("RECLAB_PRESETS='" + out + "' reclab run sgconv-in-" + modes + "-modes --weights '" + out + "/sgconv-in-" + modes +
                         "-modes.npz'") != std::string::npos,
               said);
  }
  const Process::Options own{.environment = {{"RECLAB_PRESETS", out}}};
  for (const std::string id : {"sgconv-in-4-modes", "sgconv-in-6-modes"})
    good({"run", id, "--length", "32", "--weights", out + "/" + id + ".npz"}, own);
}

TEST_CASE("mistakes are one sentence, and leave nothing behind") {
  const test::Scratch folder;
  const auto refused = [&](const std::vector<std::string>& more, const std::string& text) {
    std::vector<std::string> arguments{"distill"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Result result = reclab_says(arguments);
    CHECK_SAYS(result.status == 2 && result.output.empty() && std::ranges::count(result.error, '\n') == 1, result.error);
    CHECK_SAYS(result.error.find(text) != std::string::npos, result.error);
  };
  refused({"lstm", "--export", (folder / "out").string()}, "lstm has no long filter");
  refused({"hyena", "--modes", "0"}, "--modes is \"0\"; give an integer from 1 to 256.");
  refused({"hyena", "--taps", "x"}, "--taps is \"x\"");
  refused({"hyen"}, "there is no preset \"hyen\"");
  CHECK(!fs::exists(folder / "out"));
}
