// SPDX-License-Identifier: GPL-3.0-or-later
// Plans of sweeps: their cells, the names of these, and the sentence for each mistake.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "array/error.h"
#include "models/registry.h"
#include "scratch.h"
#include "sweeps/cells.h"
#include "sweeps/plan.h"
#include "test.h"

using namespace reclab;
using reclab::test::Scratch;

namespace {

const std::string base = R"("base": "reclab train lstm --task adding --length 20 --steps 5")";

SweepPlan plan_of(const std::string& axes, const std::string& more = {}) {
  return sweep_plan("{" + base + R"(, "axes": {)" + axes + "}" + more + "}", "plan.json");
}
std::vector<std::string> texts(const SweepAxis& axis) {
  std::vector<std::string> all;
  for (const HyperValue& value : axis.values) all.push_back(as_text(value));
  return all;
}
const PresetLibrary& presets() {
  static const PresetLibrary all(builtin_registry(), preset_folders());
  return all;
}
std::string name_of(const std::string& line) { return CellNames(presets()).cell(typed_run(line)).name; }

}  // namespace

TEST_CASE("the grid of all axes, the last fastest, as lines of the command") {
  const SweepPlan plan = plan_of(R"("seed": [1, 2, 3, 4], "set.width": [4, 8])");
  CHECK_EQUAL(plan.cells(), 8);
  CHECK(plan.measures == std::vector<std::string>{"loss"});
  CHECK_EQUAL(as_text(plan.values(5)[0]) + " " + as_text(plan.values(5)[1]), std::string("3 8"));
  const TypedRun line = plan.line(5);
  CHECK_EQUAL(line.given.at("--seed"), std::string("3"));
  CHECK_EQUAL(line.given.at("--set"), std::string("width=8"));
  CHECK_EQUAL(line.given.at("--steps"), std::string("5"));
  CHECK_EQUAL(plan_of(R"("preset": ["gru"], "steps": [7])").line(0).id, std::string("gru"));
  CHECK_EQUAL(plan_of(R"("preset": ["gru"], "steps": [7])").line(0).given.at("--steps"), std::string("7"));
}

TEST_CASE("ranges are linear, logarithmic or of integers, with both ends") {
  CHECK(texts(plan_of(R"("lr": {"from": 0, "to": 1, "count": 5})").axes[0]) == std::vector<std::string>({"0", "0.25", "0.5", "0.75", "1"}));
  const SweepAxis log = plan_of(R"("lr": {"from": 0.001, "to": 0.1, "count": 3, "scale": "log"})").axes[0];
  CHECK_EQUAL(std::get<double>(log.values[0]), 0.001);
  CHECK_CLOSE(std::get<double>(log.values[1]), 0.01, 1e-15);
  CHECK_EQUAL(std::get<double>(log.values[2]), 0.1);
  CHECK(texts(plan_of(R"("set.width": {"from": 4, "to": 64, "count": 5, "scale": "log", "whole": true})").axes[0]) ==
        std::vector<std::string>({"4", "8", "16", "32", "64"}));
}

TEST_CASE("draws depend on the seed and the name of the axis alone, and those of several axes go together") {
  const std::string range = R"({"from": 0.001, "to": 0.1, "scale": "log", "random": )";
  const SweepPlan few = plan_of("\"lr\": " + range + "4}"),
                  many =
                      plan_of(R"("seed": [1, 2], "lr": )" + range + R"(9}, "set.width": {"from": 2, "to": 5, "whole": true, "random": 9})");
  CHECK_EQUAL(few.cells(), 4);
  CHECK_EQUAL(many.cells(), 18);
  for (std::size_t i = 0; i < 4; ++i) CHECK(few.axes[0].values[i] == many.axes[1].values[i]);
  std::set<std::int64_t> widths;
  for (std::int64_t cell = 0; cell < 18; ++cell) {
    const std::vector<HyperValue> at = many.values(cell);
    CHECK_EQUAL(std::get<std::int64_t>(at[0]), cell < 9 ? 1 : 2);
    CHECK(at[1] == many.axes[1].values[static_cast<std::size_t>(cell % 9)]);
    CHECK(at[2] == many.axes[2].values[static_cast<std::size_t>(cell % 9)]);
    widths.insert(std::get<std::int64_t>(at[2]));
    const double rate = std::get<double>(at[1]);
    CHECK(rate >= 0.001 && rate < 0.1);
  }
  CHECK(*widths.begin() >= 2 && *widths.rbegin() <= 5);
  CHECK(plan_of("\"lr\": " + range + "4, \"seed\": 2}").axes[0].values != few.axes[0].values);
  const SweepAxis integers = plan_of(R"("set.width": {"from": 1, "to": 4, "whole": true, "scale": "log", "random": 4000})").axes[0];
  // Between the halves around an integer on the scale: of 1 to 4 each has log((k + 1/2) / (k - 1/2)) / log 9.
  for (std::int64_t k = 1; k <= 4; ++k) {
    const double expected = std::log((static_cast<double>(k) + 0.5) / (static_cast<double>(k) - 0.5)) / std::log(9.0);
    CHECK_CLOSE(static_cast<double>(std::ranges::count(integers.values, HyperValue(k))) / 4000.0, expected, 0.03);
  }
  const SweepAxis chosen = plan_of(R"("preset": {"of": ["gru", "lstm"], "random": 50})").axes[0];
  CHECK(std::ranges::count(chosen.values, HyperValue(std::string("gru"))) > 10);
}

TEST_CASE("each mistake is a sentence with place and cure") {
  const auto refused = [](const std::string& json, const std::string& text) { CHECK_ERROR(sweep_plan(json, "plan.json"), text); };
  refused("{", "plan.json: line 1, column 2 is not valid JSON");
  refused("[]", "plan.json: the plan has to be an object");
  refused("{}", "base is missing; write \"base\": \"reclab train");
  refused(R"({"base": "reclab bake"})", "base : \"reclab bake\" is no line");
  refused(R"({"base": "reclab train lstm --stpes 5"})", "did you mean --steps?");
  refused("{" + base + "}", "axes is missing");
  const auto axes = [&](const std::string& text, const std::string& sentence) { CHECK_ERROR(plan_of(text), sentence); };
  axes(R"("sed": [1])", "axes.sed cannot vary: --sed is no option of such a line; did you mean --set?");
  axes(R"("set": [1])", "axes.set cannot vary");
  axes(R"("lr.width": [1])", "only set.KEY and task-set.KEY");
  axes(R"("seed": [])", "axes.seed is []; write a list of values");
  axes(R"("seed": [1, 2, 1])", "has 1 twice");
  axes(R"("seed": [1, {}])", "values are numbers, true, false, and texts");
  axes(R"("seed": ["a"])", "axes.seed cannot vary: --seed");
  axes(R"("lr": 3)", "write a list, [1, 2], or a range");
  axes(R"("lr": {"from": 0, "to": 1, "count": 3, "scale": "log"})", "axes.lr.from has to be more than 0");
  axes(R"("lr": {"from": 2, "to": 1, "count": 3})", "axes.lr.to has to be more than \"from\"");
  axes(R"("lr": {"from": 0, "to": 1})", "axes.lr.count is missing");
  axes(R"("lr": {"from": 0, "to": 1, "cuont": 3, "count": 2})", "axes.lr.cuont is no key here; did you mean count?");
  axes(R"("set.width": {"from": 1, "to": 3, "count": 9, "whole": true})", "fewer integers");
  axes(R"("lr": {"from": 0, "to": 1, "random": 3}, "seed": {"from": 0, "to": 9, "whole": true, "random": 4})", "drawn together");
  axes(R"("seed": {"from": 1, "to": 4000, "count": 4000, "whole": true}, "lr": {"from": 0, "to": 1, "count": 4000})",
       "more than 10000000 cells");
  CHECK_ERROR(plan_of(R"("seed": [1])", R"(, "measure": ["lost"])"), "there is no measure \"lost\"; did you mean loss?");
  CHECK_ERROR(plan_of(R"("seed": [1])", R"(, "measure": ["[loss"])"), "lacks a ]");
  CHECK_ERROR(plan_of(R"("seed": [1])", R"(, "measures": ["loss"])"), "measures is no key here; did you mean measure?");
  CHECK_ERROR(plan_of(R"("seed": [1])", R"(, "keep": "all")"), "keep is \"all\"; it is \"training\"");
}

TEST_CASE("a name is of the line that is asked for, however it is written, and of its files") {
  const std::string line = "reclab train lstm --task adding --length 20 --steps 5";
  const std::string name = name_of(line);
  CHECK_EQUAL(name.size(), 16u);
  CHECK_EQUAL(name_of("reclab train lstm --steps 5 --length 20 --task adding --seed 1"), name);
  CHECK(name_of(line + " --seed 2") != name);
  CHECK(name_of(line + " --set width=5") != name);
  CHECK_EQUAL(name_of(line + " --set width=5 --set layers=2"), name_of(line + " --set layers=2 --set width=7 --set width=5"));
  const Hyper own = hyper_of(builtin_registry(), presets().find("lstm"));
  CHECK_EQUAL(name_of(line + " --set width=" + own.text("width")), name);
  CHECK(name_of("reclab run lstm") != name_of("reclab run gru"));

  const Scratch scratch;
  const std::string file = scratch.file("a.csv", "x\n1\n2\n3\n4\n").string();
  const std::string before = name_of("reclab run lstm --input " + file);
  scratch.file("a.csv", "x\n1\n2\n3\n5\n");
  CHECK(name_of("reclab run lstm --input " + file) != before);
}

TEST_CASE("cells are written and read back, and a cell that cannot be is named") {
  const Scratch scratch;
  const SweepPlan plan = plan_of(R"("seed": [1, 2, 3], "set.width": [4, 8])");
  SweepFolder::write(scratch / "sweep", plan, presets());
  const SweepFolder folder(scratch / "sweep");
  CHECK_EQUAL(folder.size(), 6);
  std::set<std::string> names;
  CellReader reader(folder);
  while (const auto cell = reader.next()) {
    names.insert(cell->name);
    CHECK_EQUAL(CellNames(presets()).cell(typed_run(cell->words)).name, cell->name);
    CHECK_EQUAL(folder.cell(cell->index).name, cell->name);
    CHECK(!folder.result(*cell));
  }
  CHECK_EQUAL(names.size(), 6u);
  CHECK_ERROR(folder.cell(6), "numbers 0 to 5");
  CHECK_ERROR(SweepFolder::write(scratch / "bad", plan_of(R"("set.width": [4, 0])"), presets()), "cell 1 (set.width 0) cannot be");
  CHECK(!std::filesystem::exists(scratch / "bad"));
  scratch.file("notes.txt", "mine");
  CHECK_ERROR(SweepFolder::write(scratch.path(), plan, presets()), "has files that are of no sweep");
}
