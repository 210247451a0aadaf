// SPDX-License-Identifier: GPL-3.0-or-later
// The table of what a trace can hold: keys are made, taken apart, and those of every run are in it.
#include "trace/kinds.h"

#include <set>

#include "experiment/command/command.h"
#include "experiment/experiment.h"
#include "models/registry.h"
#include "places.h"
#include "test.h"

using namespace reclab;

TEST_CASE("a key that is made is taken apart into what it was made of") {
  const auto comes_back = [](const std::string& key, Kind kind, std::int64_t layer, const std::string& name) {
    const auto parsed = parse_key(key);
    CHECK_SAYS(parsed && parsed->kind == kind && parsed->layer == layer && parsed->name == name, key);
    CHECK_SAYS(key.starts_with(prefix_of(kind)), key);
  };
  for (const KindInfo& row : kind_table()) switch (row.form) {
      case KeyForm::bare: comes_back(key_of(row.kind), row.kind, -1, ""); break;
      case KeyForm::layer: comes_back(key_of(row.kind, 12), row.kind, 12, ""); break;
      case KeyForm::named: comes_back(key_of(row.kind, 3, "h/error"), row.kind, 3, "h/error"); break;
      case KeyForm::free: comes_back(key_of(row.kind, "0/W_in"), row.kind, -1, "0/W_in"); break;
    }
  CHECK_EQUAL(key_of(Kind::gate, 0, "forget"), std::string("gate/0/forget"));
  CHECK_EQUAL(key_of(Kind::gradient, key_of(Kind::state, 1, "c")), std::string("gradient/state/1/c"));
}

TEST_CASE("what is no key of the table is none") {
  for (const char* wrong : {"", "inputs", "input/0", "gate", "gate/", "gate/0", "gate/0/", "gate/x/forget", "gate/-1/forget", "spectrum/",
                            "spectrum/0/h", "spectrum/99999999999999999999", "param", "param/", "jacobian_", "step/spectrum/0"})
    CHECK_SAYS(!parse_key(wrong), wrong);
}

TEST_CASE("names and prefixes tell kinds apart") {
  std::set<std::string> prefixes;
  for (const KindInfo& row : kind_table()) {
    CHECK_SAYS(prefixes.insert(prefix_of(row.kind)).second && !row.text.empty(), std::string(row.name));
    for (const KindInfo& other : kind_table())
      CHECK_SAYS(row.kind == other.kind || !prefix_of(other.kind).starts_with(prefix_of(row.kind)),
                 std::string(row.name) + " and " + std::string(other.name));
  }
}

TEST_CASE("sets of kinds") {
  Kinds some{Kind::gate, Kind::spectrum};
  CHECK(some.has(Kind::gate) && !some.has(Kind::state) && some.has_any({Kind::state, Kind::gate}) &&
        !some.has_all({Kind::state, Kind::gate}));
  CHECK(some.add({Kind::state}).remove({Kind::gate}) == (Kinds{Kind::state, Kind::spectrum}));
  CHECK(recordable().has_all(kinds_of(Stage::late)) && !recordable().has_any(kinds_of(Stage::asked)) && Kinds().empty());
}

TEST_CASE("every array of every preset's run is of a kind of the table, and a record of that kind alone has it") {
  const PresetLibrary library(builtin_registry(), {test::source("presets")});
  Kinds seen;
  for (const auto& preset : library.presets()) {
    RunRequest request;
    request.preset = preset;
    request.sequence = make_task(preset.task, {.length = 30, .seed = 1});
    request.set = {};
    const auto whole = run(builtin_registry(), request, {}, {}).trace;
    Kinds own;
    for (const auto& array : whole->arrays()) {
      const auto parsed = parse_key(array->key);
      CHECK_SAYS(parsed && recordable().has(parsed->kind), preset.id + " " + array->key);
      own.add({parsed->kind});
    }
    seen.add(own);
    for (const KindInfo& row : kind_table()) {  // some are made only where they are chosen
      if (seen.has(row.kind) || row.kind == Kind::newton || !recordable().has(row.kind)) continue;
      request.recording = recording_of({prefix_of(row.kind)});
      if (run(builtin_registry(), request, {}, {}).trace->has(row.kind)) seen.add({row.kind});
    }
    if (preset.id != "lmu") continue;  // one that has pasts, too
    for (const KindInfo& row : kind_table()) {
      if (!own.has(row.kind)) continue;
      request.recording = recording_of({prefix_of(row.kind)});
      const auto alone = run(builtin_registry(), request, {}, {}).trace;
      CHECK_EQUAL(alone->arrays().size(), whole->of(row.kind).size());
      CHECK_EQUAL(alone->of(row.kind).size(), whole->of(row.kind).size());
    }
  }
  for (const KindInfo& row : kind_table())
    if (recordable().has(row.kind) && row.kind != Kind::newton)
      CHECK_SAYS(seen.has(row.kind), "no preset has any " + std::string(row.name));
}
