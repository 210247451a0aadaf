// SPDX-License-Identifier: GPL-3.0-or-later
// What the columns of a recorded kernel are is said with it: of what the model reads, of an entry of the state, or of several that are
// alike.
#include <string>

#include "experiment/experiment.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

TracePtr recorded(const std::string& architecture, const test::Settings& set) {
  RunRequest request;
  request.preset = test::preset_of(architecture);
  request.set = set;
  request.sequence = make_task("noise", {.length = 24, .seed = 1});
  request.recording.kinds = {Kind::kernel, Kind::response, Kind::time_constant};
  return run(builtin_registry(), request, {}, {}).trace;
}

}  // namespace

TEST_CASE("a kernel of states is told from one of what is read, and channels that are alike are counted") {
  const std::string of_states = "A channel is an entry of the state by itself", alike = "Channels that are alike to the bit are one";
  const std::vector<std::tuple<std::string, test::Settings, bool, bool>> cases{
      {"s4d", {{"width", "4"}}, false, false},
      {"dss", {{"width", "4"}, {"channels", "2"}}, true, false},
      {"lru", {{"width", "4"}, {"state", "6"}}, true, false},
      {"retnet", {{"width", "8"}, {"heads", "2"}}, true, true},
  };
  for (const auto& [architecture, set, states, same] : cases) {
    const TracePtr trace = recorded(architecture, set);
    int seen = 0;
    for (const auto& entry : trace->arrays()) {
      const TraceArray& array = *entry;
      const auto key = parse_key(array.key);
      if (!key || array.key == "response/frequency" ||
          (key->kind != Kind::kernel && key->kind != Kind::response && key->kind != Kind::time_constant))
        continue;
      ++seen;
      CHECK_SAYS((array.text.find(of_states) != std::string::npos) == states, architecture + ", " + array.key + ": " + array.text);
      CHECK_SAYS((array.text.find(alike) != std::string::npos) == same, architecture + ", " + array.key + ": " + array.text);
      const auto& labels = array.axes.back().labels;
      CHECK_SAYS(std::ranges::any_of(labels, [](const std::string& label) { return label.find(" alike)") != std::string::npos; }) == same,
                 architecture + ": " + labels.at(0));
    }
    CHECK_SAYS(seen == 3, architecture + " has " + std::to_string(seen) + " of the three");
  }
}
