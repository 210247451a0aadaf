// SPDX-License-Identifier: GPL-3.0-or-later
// The sizes that a file of weights was made for, where several go together: what the search finds, which of several it takes, and what it
// says of the others.
#include <chrono>
#include <ctime>
#include <map>
#include <string>

#include "experiment/experiment.h"
#include "experiment/weights/fitting.h"
#include "models/network.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;
using test::Settings;

namespace {

struct Case {
  std::string architecture;
  Settings made;
};

Hyper values_of(const std::string& architecture, const Settings& set) {
  return hyper_of(builtin_registry(), test::preset_of(architecture), set);
}

/// The shapes that a model of these settings saves, under our names.
FileShapes saved(const std::string& architecture, const Settings& set, std::int64_t input = 2) {
  const Network network(builtin_registry().find(architecture), values_of(architecture, set), {.input = input});
  FileShapes shapes;
  for (const auto& parameter : network.parameters()) shapes[parameter.name] = parameter.var.shape();
  return shapes;
}

std::string text_of(const Settings& settings) {
  std::string text;
  for (const auto& [key, value] : settings) text += (text.empty() ? "" : " ") + key + "=" + value;
  return text.empty() ? "as they are" : text;
}

FittedSizes fit(const std::string& architecture, const FileShapes& shapes, const Settings& given = {}) {
  std::set<std::string> kept;
  for (const auto& [key, value] : given) kept.insert(key);
  return fit_to_file(builtin_registry().find(architecture), values_of(architecture, given), 2, 0, FileIndex(shapes), kept);
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

TEST_CASE("sizes that go together are found from the shapes, and none is called another model") {
  const std::vector<Case> cases{
      {"xlstm", {{"width", "32"}, {"layers", "4"}, {"mlstm_inner", "48"}}},
      {"xlstm", {{"layers", "3"}, {"width", "16"}}},
      {"gau", {{"width", "24"}, {"max_positions", "40"}}},
      {"flash", {{"width", "24"}, {"max_positions", "40"}}},
      {"mega", {{"width", "24"}, {"chunk", "9"}, {"zdim", "8"}, {"hdim", "48"}}},
      {"tnn", {{"width", "24"}, {"expand", "2"}, {"layers", "2"}}},
      {"tnn", {{"width", "32"}, {"expand", "1.5"}}},
      {"mamba-2", {{"width", "24"}, {"state", "6"}, {"d_ssm", "32"}, {"head", "8"}}},
      {"mamba-2", {{"width", "32"}, {"state", "3"}, {"groups", "2"}, {"head", "8"}, {"layers", "2"}}},
      {"sashimi", {{"width", "8"}, {"pool1", "2"}, {"pool2", "3"}, {"n_layers", "2"}}},
      {"sashimi", {{"width", "8"}, {"pool1", "2"}, {"pool2", "0"}}},
      {"sashimi", {{"width", "8"}, {"pool1", "2"}, {"pool2", "2"}, {"pool3", "2"}, {"expand", "3"}}},
  };
  for (const auto& [architecture, made] : cases) {
    const FileShapes shapes = saved(architecture, made);
    const double start = processor_seconds();
    const FittedSizes found = fit(architecture, shapes);
    const double took = processor_seconds() - start;
    const std::string what = architecture + ", " + text_of(made);
    CHECK_SAYS(found.found, what + ": not found in " + test::show(took) + " s");
    CHECK_SAYS(saved(architecture, found.settings) == shapes, what + ": " + text_of(found.settings) + " has other shapes");
    CHECK_SAYS(found.settings.size() <= made.size(), what + ": " + text_of(found.settings) + " departs further");
    for (const SizeSettings& other : found.others)
      CHECK_SAYS(saved(architecture, other) == shapes, what + ": " + text_of(other) + " has other shapes");
  }
}

TEST_CASE("where shapes leave a choice, that which departs least is taken and the others are named") {
  const std::vector<std::tuple<std::string, Settings, Settings>> cases{
      {"qrnn", {{"width", "8"}, {"pooling", "f"}}, {{"width", "4"}, {"pooling", "ifo"}}},
      {"mamba-2", {{"width", "32"}, {"state", "6"}, {"head", "8"}}, {{"width", "32"}, {"state", "3"}, {"head", "8"}, {"groups", "2"}}},
  };
  for (const auto& [architecture, taken, other] : cases) {
    const FileShapes shapes = saved(architecture, taken);
    CHECK(saved(architecture, other) == shapes);
    const FittedSizes found = fit(architecture, shapes);
    CHECK_SAYS(found.found && found.settings == taken, architecture + ": " + text_of(found.settings));
    CHECK_SAYS(std::ranges::find(found.others, other) != found.others.end(),
               architecture + ": " + (found.others.empty() ? "no other" : text_of(found.others[0])));
    // What is given stays, and with it there is no choice.
    const FittedSizes given = fit(architecture, shapes, {other.back()});
    Settings whole = given.settings;
    whole.push_back(other.back());
    CHECK_SAYS(given.found && saved(architecture, whole) == shapes && given.others.empty(), architecture + ": " + text_of(given.settings));
  }
}

TEST_CASE("a file without the name of any parameter is not searched, and one of many names not for long") {
  FileShapes empty, cells, dots;
  for (int i = 0; i < 40000; ++i) {
    empty["e" + std::to_string(i)] = {0};
    cells["x" + std::to_string(i) + ".weight_ih"] = {1};
  }
  std::string dotted;
  for (int i = 0; i < 200; ++i) dotted += ".a";
  for (int i = 0; i < 500; ++i) dots["n" + std::to_string(i) + dotted] = {1};
  for (const auto* file : {&empty, &cells, &dots})
    for (const char* model : {"elman", "mamba", "transformer"}) {
      const double start = processor_seconds();
      CHECK(!fit(model, *file).found);
      CHECK(parts_that_fit(builtin_registry().find(model), values_of(model, {}), 2, FileIndex(*file)).empty());
      CHECK_SAYS(processor_seconds() - start < 8.0, std::string(model) + ": " + test::show(processor_seconds() - start) + " s");
    }
}

TEST_CASE("many parts that have a model's names and do not fit it are given up together") {
  const auto parts = [](int n) {
    FileShapes file;
    for (int part = 0; part < n; ++part)
      for (const auto& [name, shape] : saved("transformer", {{"width", "8"}}))
        file["net" + std::to_string(part) + "/" + name] = Shape(shape.size() + 1, 7);
    return file;
  };
  const auto seconds = [&](int n) {
    const FileIndex file(parts(n));
    const double start = processor_seconds();
    CHECK(parts_that_fit(builtin_registry().find("transformer"), values_of("transformer", {}), 2, file).empty());
    return processor_seconds() - start;
  };
  const double one = seconds(1), six = seconds(6);
  CHECK_SAYS(one > 0.02 && six < 3.0 * one, "a part takes " + test::show(one) + " s, 6 take " + test::show(six) + " s");
}
