// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "array/error.h"
#include "experiment/experiment.h"
#include "models/registry.h"
#include "places.h"
#include "test.h"

namespace fs = std::filesystem;
using namespace reclab;

namespace {

const fs::path shipped = test::source("presets");

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "reclab-presets-XXXXXX").string();
    CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string preset_text(const std::string& id, const std::string& more = "") {
  return "{\"schema\": 1, \"id\": \"" + id +
         "\", \"architecture\": \"lstm\", \"title\": \"Mine\", \"family\": \"gated\", \"idea\": \"An idea.\",\n"
         "\"source\": {\"authors\": \"A\", \"year\": 1997, \"title\": \"T\"}" +
         more + "}";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  CHECK_SAYS(at != std::string::npos, from);
  return text.replace(at, from.size(), to);
}

std::string stacked(const std::string& parts) { return replaced(preset_text("mine"), "\"architecture\": \"lstm\"", "\"stack\": " + parts); }

std::string many_parts(int count) {
  std::string parts = "[";
  for (int i = 0; i < count; ++i) parts += (i ? ", " : "") + std::string("{\"architecture\": \"elman\"}");
  return parts + "]";
}

std::string all_of(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += "\n  " + sentence;
  return text;
}

}  // namespace

TEST_CASE("every preset of this house loads, and is where it says it is") {
  const PresetLibrary library(builtin_registry(), {shipped});
  CHECK_SAYS(library.problems().empty(), all_of(library.problems()));
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(shipped)) files += entry.path().extension() == ".json";
  CHECK_EQUAL(library.presets().size(), files);
  for (const Preset& preset : library.presets()) {
    CHECK_EQUAL(preset.file.stem().string(), preset.id);
    CHECK_EQUAL(preset.file.parent_path().filename().string(), preset.family);
    // A setting that is a model of its own, as a start that a later paper brought, stands where the survey has it.
    if (preset.id == preset.architecture) CHECK_EQUAL(architecture_of(builtin_registry(), preset)->family, preset.family);
    std::size_t sentences = 0;
    for (std::size_t i = 0; i < preset.idea.size(); ++i)
      sentences += preset.idea[i] == '.' && (i + 1 == preset.idea.size() || preset.idea[i + 1] == ' ');
    CHECK_SAYS(sentences == 3, preset.id + ": the idea has " + std::to_string(sentences) + " sentences");
    if (preset.trained)
      CHECK_SAYS(std::ranges::count(preset.trained->idea + " ", '.') >= 3 && preset.trained->idea.ends_with('.'),
                 preset.id + ": the trained one's idea is of three sentences");
    CHECK_SAYS(!preset.look_at.empty(), preset.id);
    const Card shown = card(builtin_registry(), preset);
    CHECK_EQUAL(shown.id, preset.id);
    CHECK_EQUAL(shown.idea, preset.idea);
    CHECK_SAYS(!shown.parameters.empty() && !shown.states.empty() && !shown.equations.empty(), preset.id);
    CHECK_SAYS(!shown.forms.empty() && shown.forms.front() == "sequential", preset.id);
    for (const std::string& place : preset.look_at) {
      const std::size_t colon = place.rfind(':');
      if (colon == std::string::npos || place == "trajectories:3-D" || place == "trajectories:map" || place == "trajectories:lines" ||
          place == "trajectories:past" || place == "spectrum:continuous" || place == "sensitivity:mixing")
        continue;
      const auto bare = [](const std::string& name) { return name.substr(name.find('/') + 1); };  // without the layer's number, if any
      const std::string name = bare(place.substr(colon + 1));
      const bool there =
          place.starts_with("gating:")
              ? std::ranges::any_of(shown.gates, [&](const GateInfo& gate) { return bare(gate.name) == name; })
              : std::ranges::any_of(shown.states, [&](const StateInfo& state) { return bare(state.name) == name && state.recorded; });
      CHECK_SAYS(there, preset.id + " looks at " + place + ", which is not on its card");
    }
  }
}

/// The models of the survey: what a shipped preset may descend from before its parent is one.
const std::set<std::string> of_the_survey{"jordan",
                                          "elman",
                                          "linear-rnn",
                                          "bidirectional-elman",
                                          "bidirectional-lstm",
                                          "echo-state",
                                          "ctrnn",
                                          "irnn",
                                          "indrnn",
                                          "limit-cycle-rnn",
                                          "lstm",
                                          "lstm-chrono",
                                          "gru",
                                          "li-gru",
                                          "ur-lstm",
                                          "on-lstm",
                                          "qrnn",
                                          "sru",
                                          "gilr",
                                          "ls-lstm",
                                          "hgru",
                                          "hgrn",
                                          "slstm",
                                          "mlstm",
                                          "xlstm",
                                          "unitary-rnn",
                                          "exp-rnn",
                                          "nnrnn",
                                          "antisymmetric-rnn",
                                          "incremental-rnn",
                                          "lipschitz-rnn",
                                          "noisy-rnn",
                                          "tarnn",
                                          "cornn",
                                          "unicornn",
                                          "lem",
                                          "neural-wave-machine",
                                          "neural-ode",
                                          "ode-rnn",
                                          "ltc",
                                          "cfc",
                                          "continuous-fast-weights",
                                          "transformer",
                                          "transformer-xl",
                                          "compressive-transformer",
                                          "memformer",
                                          "recurrent-memory-transformer",
                                          "block-recurrent",
                                          "block-state-transformer",
                                          "temporal-latent-bottleneck",
                                          "token-turing-machine",
                                          "recurrent-attention-network",
                                          "infini-attention",
                                          "r-transformer",
                                          "arn",
                                          "recurrent-position-encoding",
                                          "rsa",
                                          "linear-attention",
                                          "performer",
                                          "rfa",
                                          "fwp",
                                          "deltanet",
                                          "recurrent-deltanet",
                                          "srwm",
                                          "mao-fast-weights",
                                          "ecoformer",
                                          "cosformer",
                                          "lrpe",
                                          "transnormer",
                                          "transnormer-llm",
                                          "aft-full",
                                          "aft-simple",
                                          "aft-local",
                                          "rwkv-4",
                                          "rwkv-5",
                                          "rwkv-6",
                                          "retnet",
                                          "gateloop",
                                          "gla",
                                          "relit",
                                          "arelit",
                                          "gau",
                                          "flash",
                                          "mega",
                                          "lmu",
                                          "hippo-legt",
                                          "hippo-legs",
                                          "hippo-lagt",
                                          "hippo-rnn",
                                          "lssl",
                                          "s4",
                                          "sashimi",
                                          "dss",
                                          "s4d",
                                          "s5",
                                          "dlr",
                                          "liquid-s4",
                                          "gss",
                                          "h3",
                                          "sgconv",
                                          "hyena",
                                          "laughing-hyena",
                                          "tnn",
                                          "lru",
                                          "mamba",
                                          "mamba-2",
                                          "rg-lru",
                                          "hawk",
                                          "griffin",
                                          "lcsm",
                                          "lcsm-m1",
                                          "lcsm-m2",
                                          "lcsm-m3"};

TEST_CASE("what shipped presets descend from is a preset or will be one, and is not younger") {
  const PresetLibrary library(builtin_registry(), {shipped});
  const std::set<std::string> first_of_their_line{"jordan", "transformer"};
  std::size_t links = 0;
  for (const Preset& preset : library.presets()) {
    CHECK_SAYS(preset.descends_from.empty() == first_of_their_line.contains(preset.id),
               preset.id + " says what it descends from, or begins a line");
    for (const Descent& descent : preset.descends_from) {
      const std::string link = preset.id + " from " + descent.id;
      const auto parent = std::ranges::find(library.presets(), descent.id, &Preset::id);
      links += parent != library.presets().end();
      CHECK_SAYS(parent != library.presets().end() || of_the_survey.contains(descent.id),
                 link + ", which is no preset and no model of the survey");
      if (parent != library.presets().end())
        CHECK_SAYS(parent->source.year <= preset.source.year,
                   link + ": " + std::to_string(parent->source.year) + " is after " + std::to_string(preset.source.year));
      // A clause to be read beside an arrow.
      CHECK_SAYS(!descent.changed.ends_with('.') && descent.changed.size() <= 120,
                 link + ": \"" + descent.changed + "\" is no short clause");
    }
  }
  CHECK_SAYS(links >= 20, std::to_string(links) + " links between presets");
}

TEST_CASE("no two presets show the same thing") {
  const PresetLibrary library(builtin_registry(), {shipped});
  // What is asked: of which sequence, where to look and what is measured there.
  std::map<std::string, std::string> asked;
  // What is answered: the outputs for one sequence.
  std::map<std::vector<double>, std::string> answered;
  RunRequest request;
  request.sequence = make_task("noise", {.length = 40, .seed = 1});
  request.recording.only = {"output"};
  request.recording.kinds = {Kind::output};
  for (const Preset& preset : library.presets()) {
    std::string question = make_task(preset.task, preset.task_options()).source;
    for (const std::string& place : preset.look_at) question += ", " + place;
    std::vector<std::string> measures;
    for (const Claim& claim : preset.claims) measures.push_back(claim.measure);
    std::ranges::sort(measures);
    for (const std::string& measure : measures) question += ", " + measure;
    const auto [same, fresh] = asked.emplace(question, preset.id);
    CHECK_SAYS(fresh, preset.id + " and " + same->second + " ask: " + question);
    request.preset = preset;
    const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
    const TraceArray* output = trace->find("output");
    CHECK_SAYS(output != nullptr && output->real, preset.id + ": " + trace->info.sentence);
    std::vector<double> rounded;  // what a picture could tell apart
    for (const double y : *output->real) rounded.push_back(std::round(y * 1e6));
    const auto [alike, other] = answered.emplace(std::move(rounded), preset.id);
    CHECK_SAYS(other, preset.id + " computes what " + alike->second + " does");
  }
}

TEST_CASE("every architecture has a preset") {
  const PresetLibrary library(builtin_registry(), {shipped});
  for (const Architecture& architecture : builtin_registry().all())
    CHECK_SAYS(std::ranges::find(library.presets(), architecture.id, &Preset::architecture) != library.presets().end(), architecture.id);
}

TEST_CASE("what a preset says is what is read") {
  Folder folder;
  folder.write(
      "deep/er/mine.json",
      preset_text("mine",
                  ",\"hyper\": {\"forget_bias\": 2, \"width\": 8.0},"
                  "\"sequence\": {\"task\": \"adding\", \"length\": 77, \"seed\": 9, \"parameters\": {\"markers\": 3.0}}, \"look_at\": "
                  "[\"gating:forget\", \"spectrum\", \"trajectories:lines:c\", \"trajectories:past\", \"gradients:0/c\"],"
                  "\"claims\": [{\"text\": \"An idea\", \"measure\": \"mean gate/0/forget\", \"range\": [-0.5, 1]}],"
                  "\"descends_from\": [{\"id\": \"elman\", \"changed\": \"gates\"}, {\"id\": \"nowhere-yet\", \"changed\": \"a name\"}]"));
  folder.write("notes.txt", "not a preset");
  const PresetLibrary library(builtin_registry(), {folder.path()});
  CHECK_SAYS(library.problems().empty(), all_of(library.problems()));
  const Preset& preset = library.find("mine");
  CHECK_EQUAL(preset.title, std::string("Mine"));
  CHECK_EQUAL(preset.task, std::string("adding"));
  CHECK_EQUAL(preset.task_length, 77);
  CHECK_EQUAL(preset.task_seed, std::uint64_t{9});
  CHECK(preset.task_set == (TaskSettings{{"markers", "3"}}) &&
        preset.task_options() == (TaskOptions{.length = 77, .seed = 9, .set = {{"markers", "3"}}}));
  CHECK_EQUAL(preset.source.year, 1997);
  CHECK_EQUAL(preset.look_at.size(), std::size_t{5});
  CHECK_EQUAL(preset.look_at.front(), std::string("gating:forget"));
  CHECK_EQUAL(preset.claims.size(), std::size_t{1});
  CHECK_EQUAL(preset.claims.front().measure, std::string("mean gate/0/forget"));
  CHECK_EQUAL(preset.claims.front().low, -0.5);
  CHECK_EQUAL(preset.claims.front().high, 1.0);
  CHECK_EQUAL(preset.descends_from.size(), std::size_t{2});
  CHECK_EQUAL(preset.descends_from[0].id, std::string("elman"));
  CHECK_EQUAL(preset.descends_from[0].changed, std::string("gates"));
  CHECK_EQUAL(preset.descends_from[1].id, std::string("nowhere-yet"));  // presets that are not there may be named
  CHECK_EQUAL(preset.hyper.front().first, std::string("forget_bias"));  // the order of the file
  const Hyper hyper = hyper_of(builtin_registry(), preset);
  CHECK_EQUAL(hyper.integer("width"), 8);
  CHECK_EQUAL(hyper.real("forget_bias"), 2.0);
}

TEST_CASE("each mistake is one sentence that names the file and the key, and hides no other preset") {
  const std::string good = preset_text("mine");
  struct Mistake {
    std::string text, says;
  };
  const std::vector<Mistake> mistakes{
      {"", "line 1, column 1 is not valid JSON"},
      {"{\"schema\": 1,\n  oops}", "line 2, column 3 is not valid JSON"},
      {good.substr(0, 60), "is not valid JSON"},
      {"{\"schema\": \"" + std::string(65'000, 'x') + "\" oops}", "x...); correct it there."},
      {"[1, 2]", "the preset must be an object in braces, not a list"},
      {std::string("\x89PNG\r\n\x1a\n\0\0", 10), "is not valid JSON"},
      {replaced(good, "\"schema\": 1", "\"schema\": 2"), "schema must be 1, the number of the format that the file is written in, not 2."},
      {replaced(good, "\"schema\": 1, ", ""), "schema is missing"},
      {replaced(good, "\"title\": \"Mine\"", "\"title\": 5"), "title must be the name for people in quotes, not 5"},
      {replaced(good, "\"title\": \"Mine\"", "\"title\": \"\""), "title must be"},
      {replaced(good, "\"title\"", "\"titel\""), "title is missing"},
      {replaced(good, "\"idea\"", "\"title\": \"Again\", \"idea\""), "title is given twice"},
      {replaced(good, "\"id\": \"mine\"", "\"id\": \"My Preset\""), "id must be of lower-case letters"},
      {replaced(good, "\"lstm\"", "\"lstn\""), "architecture: "},
      {replaced(good, "\"year\": 1997", "\"year\": \"1997\""), "source.year must be"},
      {replaced(good, "\"authors\": \"A\", ", ""), "source.authors is missing"},
      {replaced(good, "\"title\": \"T\"", "\"title\": \"T\", \"journal\": \"J\""), "source.journal is not a key of a preset"},
      {preset_text("mine", ",\"stack\": []"), "stack and architecture are both given"},
      {stacked("[]"), "stack must be a list of 1 to 64 architectures with their hyper-parameters, not an empty list."},
      {stacked(many_parts(65)), "stack must be a list of 1 to 64 architectures with their hyper-parameters, not of 65."},
      {preset_text("mine", ",\"hyper\": {\"wi\\u0000dth\": null}"), "has a control character in \"wi\\x00dth\""},
      {stacked("[\"gru\"]"), "stack[0] must be an object"},
      {stacked("[{\"architecture\": \"gru\"}, {\"architecture\": \"gruu\"}]"), "stack[1].architecture: there is no architecture \"gruu\""},
      {stacked("[{\"architecture\": \"gru\", \"hyper\": {\"widht\": 3}}]"), "stack[0].hyper.widht: gru has no hyper-parameter"},
      {stacked("[{\"architecture\": \"transformer\", \"hyper\": {\"heads\": 5}}]"), "stack[0].hyper.heads: transformer"},
      {stacked("[{\"architecture\": \"gru\", \"layers\": 3}]"), "stack[0].layers is not a key"},
      {stacked("[{\"architecture\": \"gru\"}], \"hyper\": {}"), "hyper belongs into the parts of the stack"},
      {preset_text("mine", ",\"hypr\": {}"), "hypr is not a key of a preset; did you mean hyper?"},
      {preset_text("mine", ",\"hyper\": []"), "hyper must be an object"},
      {preset_text("mine", ",\"hyper\": {\"widht\": 3}"), "hyper.widht: mine has no hyper-parameter"},
      {preset_text("mine", ",\"hyper\": {\"width\": 0}"), "hyper.width: mine: width = 0"},
      {preset_text("mine", ",\"hyper\": {\"width\": null}"), "hyper.width must be a number"},
      {preset_text("mine", ",\"hyper\": {\"width\": 18446744073709551615}"), "hyper.width"},
      {preset_text("mine", ",\"hyper\": {\"forget_bias\": 1e999}"), "too large"},
      {preset_text("mine", ",\"sequence\": {\"task\": \"ading\"}"), "sequence.task names no task: \"ading\""},
      {preset_text("mine", ",\"sequence\": {\"task\": \"adding\", \"length\": 0}"), "sequence.length must be"},
      {preset_text("mine", ",\"sequence\": {\"task\": \"adding\", \"seed\": -1}"), "sequence.seed must be"},
      {preset_text("mine", ",\"sequence\": {\"task\": \"adding\", \"steps\": 5}"), "sequence.steps is not a key of a preset"},
      {preset_text("mine", ",\"sequence\": {\"task\": \"copy\", \"parameters\": 3}"), "sequence.parameters must be an object"},
      {preset_text("mine", ",\"sequence\": {\"task\": \"copy\", \"parameters\": {\"dely\": 3}}"),
       "sequence.parameters.dely: the task copy has no parameter \"dely\"; it has delay, "},
      {preset_text("mine", ",\"sequence\": {\"task\": \"copy\", \"parameters\": {\"delay\": -3}}"),
       "sequence.parameters.delay: the task copy: delay = -3 is not possible; give an integer from 0"},
      {preset_text("mine", ",\"look_at\": \"gating\""), "look_at must be a list"},
      {preset_text("mine", ",\"look_at\": [1]"), "look_at must hold names"},
      {preset_text("mine", ",\"look_at\": [\"\"]"), "look_at must hold names"},
      {preset_text("mine", ",\"claims\": {}"), "claims must be a list"},
      {preset_text("mine", ",\"claims\": [1]"), "claims[0] must be an object"},
      {preset_text("mine", ",\"claims\": [{\"text\": \"An idea\", \"measure\": \"mean output\"}]"), "claims[0].range is missing"},
      {preset_text("mine", ",\"claims\": [{\"text\": \"Another\", \"measure\": \"mean output\", \"range\": [0, 1]}]"),
       "claims[0].text must be words that stand in the idea"},
      {preset_text("mine", ",\"claims\": [{\"text\": \"An idea\", \"measure\": \"mean output\", \"range\": [1, 0]}]"),
       "claims[0].range must be a list of the least and the largest"},
      {R"({"schema": 1, "id": "mine", "architecture": "elman", "title": "T", "family": "gated", "idea": "An idea.", "source": {"authors": "A", "year": 1997, "title": "T", "url": "file:///tmp/x.desktop"}})",
       "source.url must be an address on the web that begins with https:// or http://, not \"file:///tmp/x.desktop\"."},
      {preset_text("mine", ",\"descends_from\": \"elman\""),
       "descends_from must be a list of objects with id and changed, not the text \"elman\"."},
      {preset_text("mine", ",\"descends_from\": []"), "descends_from must be a list of objects with id and changed, not an empty list."},
      {preset_text("mine", ",\"descends_from\": [\"elman\"]"), "descends_from[0] must be an object"},
      {preset_text("mine", ",\"descends_from\": [{\"changed\": \"gates\"}]"), "descends_from[0].id is missing"},
      {preset_text("mine", ",\"descends_from\": [{\"id\": \"El Man\", \"changed\": \"gates\"}]"),
       "descends_from[0].id must be the id of a preset"},
      {preset_text("mine", ",\"descends_from\": [{\"id\": \"mine\", \"changed\": \"gates\"}]"), "descends_from[0].id is the preset itself"},
      {preset_text("mine", ",\"descends_from\": [{\"id\": \"elman\"}]"), "descends_from[0].changed is missing"},
      {preset_text("mine", ",\"descends_from\": [{\"id\": \"elman\", \"changed\": \"\"}]"),
       "descends_from[0].changed must be what it changed, a clause in quotes, not"},
      {preset_text("mine", ",\"descends_from\": [{\"id\": \"elman\", \"changed\": \"a\"}, {\"id\": \"elman\", \"changed\": \"b\"}]"),
       "descends_from[1].id \"elman\" is given twice"},
      {preset_text("mine", ",\"descends_from\": [{\"id\": \"elman\", \"change\": \"gates\"}]"), "descends_from[0].changed is missing"},
      {preset_text("mine", ",\"descends_from\": [{\"id\": \"elman\", \"changed\": \"gates\", \"year\": 1990}]"),
       "descends_from[0].year is not a key of a preset"},
  };
  for (const Mistake& mistake : mistakes) {
    Folder folder;
    folder.write("wrong.json", mistake.text);
    folder.write("other.json", preset_text("other"));
    const PresetLibrary library(builtin_registry(), {folder.path()});
    CHECK_SAYS(library.problems().size() == 1, mistake.says + all_of(library.problems()));
    const std::string& problem = library.problems().front();
    CHECK_SAYS(problem.starts_with((folder.path() / "wrong.json").string() + ": "), problem);
    CHECK_SAYS(problem.find(mistake.says) != std::string::npos, problem + "  does not say  " + mistake.says);
    CHECK_SAYS(problem.find('\n') == std::string::npos && (problem.ends_with(".") || problem.ends_with("?")), problem);
    CHECK_EQUAL(library.presets().size(), std::size_t{1});
    CHECK_EQUAL(library.find("other").id, std::string("other"));
    // Who asks for the preset that could not be read hears why.
    CHECK_ERROR(library.find("wrong"), mistake.says);
  }
}

namespace {

/// A preset with trained weights, of which `more` goes before the rest.
std::string trained_text(const std::string& more = "", const std::string& weights = "mine.safetensors",
                         const std::string& command = "reclab train mine --steps 9") {
  return preset_text("mine", ",\"hyper\": {\"width\": 8, \"forget_bias\": 2}, \"trained\": {" + more + "\"weights\": \"" + weights +
                                 "\", \"command\": \"" + command + "\", \"idea\": \"It has learned.\"}");
}

}  // namespace

TEST_CASE("what a preset says of its trained weights is what is read, and what it runs as") {
  Folder folder;
  folder.write("mine.safetensors", "weights");
  // Words between quotes are one command still.
  folder.write("quoted.json",
               replaced(trained_text("", "mine.safetensors", "reclab train quoted --input 'my file'\\\\''s.csv' --set width=4"), "\"mine\"",
                        "\"quoted\""));
  folder.write("mine.json", trained_text("\"hyper\": {\"width\": 4, \"layers\": 2}, \"sequence\": {\"task\": \"adding\", \"length\": 30, "
                                         "\"seed\": 4, \"parameters\": {\"markers\": 3}},"
                                         "\"claims\": [{\"text\": \"has learned\", \"measure\": \"of_baseline\", \"range\": [0, 0.1]}],"));
  folder.write("plain.json", preset_text("plain"));
  const PresetLibrary library(builtin_registry(), {folder.path()});
  CHECK_SAYS(library.problems().empty(), all_of(library.problems()));
  const Preset &drawn = library.find("mine"), trained = as_trained(drawn);
  CHECK(!drawn.is_trained && trained.is_trained && drawn.claims.empty());
  CHECK_EQUAL(trained.trained->weights, folder.path() / "mine.safetensors");
  CHECK_EQUAL(trained.trained->command, std::string("reclab train mine --steps 9"));
  CHECK_EQUAL(trained.idea, std::string("It has learned."));
  CHECK_EQUAL(trained.claims.at(0).measure, std::string("of_baseline"));
  CHECK(trained.task_options() == (TaskOptions{.length = 30, .seed = 4, .set = {{"markers", "3"}}}));
  CHECK_EQUAL(drawn.task, std::string("noise"));
  const Hyper hyper = hyper_of(builtin_registry(), trained);
  CHECK_EQUAL(hyper.integer("width"), 4);
  CHECK_EQUAL(hyper.integer("layers"), 2);
  CHECK_EQUAL(hyper.real("forget_bias"), 2.0);  // where the training changed nothing
  CHECK_EQUAL(hyper_of(builtin_registry(), drawn).integer("width"), 8);
  RunRequest request;
  request.preset = drawn;
  use_trained(request);
  CHECK(request.preset.is_trained && request.weights == folder.path() / "mine.safetensors");
  request.preset = library.find("plain");
  CHECK_ERROR(use_trained(request), "plain has no trained weights");
}

TEST_CASE("a mistake in what is trained is one sentence that names the file and the key") {
  struct Mistake {
    std::string text, says;
  };
  const std::vector<Mistake> mistakes{
      {preset_text("mine", ",\"trained\": \"mine.safetensors\""), "trained must be an object"},
      {preset_text("mine", ",\"trained\": {}"), "trained.weights is missing"},
      {trained_text("", "other.safetensors"), "trained.weights names other.safetensors, which cannot be read beside it"},
      {trained_text("", "../mine.safetensors"), "trained.weights must be the name of a .safetensors file in the preset's own folder"},
      {trained_text("", "mine.npz"), "trained.weights must be the name of a .safetensors file"},
      {trained_text("", "large.safetensors"), "trained.weights names large.safetensors of 200001 bytes, and 200000 is the most"},
      {trained_text("", "mine.safetensors", "reclab train minette"), "trained.command must begin with \"reclab train mine\""},
      {trained_text("", "mine.safetensors", "reclab train mine --steps 9; rm -rf x"), "trained.command must be one command"},
      {trained_text("", "mine.safetensors", "reclab train mine --steps $(rm x)"), "trained.command must be one command"},
      {trained_text("", "mine.safetensors", "reclab train mine --input 'a"), "trained.command must be one command"},
      {trained_text("", "mine.safetensors", "reclab train mine\\nrm x"), "trained.command must begin with"},
      {trained_text("", "mine.safetensors", "reclab train mine --input a\\nrm x"), "trained.command must be one command"},
      {replaced(trained_text(), "It has learned.", "It has \\u001b]0;learned."), "has a control character in \"It has \\x1b]0;learned.\""},
      {replaced(trained_text(), "It has learned.", "It has \\u0000learned."), "has a control character in \"It has \\x00learned.\""},
      {replaced(trained_text(), ", \"idea\": \"It has learned.\"", ""), "trained.idea is missing"},
      {trained_text("\"claims\": [{\"text\": \"Another\", \"measure\": \"held_out\", \"range\": [0, 1]}],"),
       "trained.claims[0].text must be words that stand in the idea"},
      {trained_text("\"hyper\": {\"widht\": 3},"), "trained.hyper.widht: mine has no hyper-parameter"},
      {trained_text("\"hyper\": {\"width\": 0},"), "trained.hyper.width: mine: width = 0"},
      {trained_text("\"sequence\": {\"task\": \"ading\"},"), "trained.sequence.task names no task"},
      {trained_text("\"steps\": 9,"), "trained.steps is not a key of a preset"},
  };
  for (const Mistake& mistake : mistakes) {
    Folder folder;
    folder.write("mine.safetensors", "weights");
    folder.write("large.safetensors", std::string(TrainedPreset::largest + 1, 'x'));
    folder.write("wrong.json", mistake.text);
    const PresetLibrary library(builtin_registry(), {folder.path()});
    CHECK_SAYS(library.problems().size() == 1, mistake.says + all_of(library.problems()));
    const std::string& problem = library.problems().front();
    CHECK_SAYS(problem.starts_with((folder.path() / "wrong.json").string() + ": ") && problem.find(mistake.says) != std::string::npos,
               problem + "  does not say  " + mistake.says);
    CHECK_SAYS(problem.find('\n') == std::string::npos && (problem.ends_with(".") || problem.ends_with("?")), problem);
  }
}

TEST_CASE("the weights of a preset lie in its own folder, links followed") {
  Folder other, folder;
  other.write("mine.safetensors", "weights");
  folder.write("mine.json", trained_text());
  fs::create_symlink(other.path() / "mine.safetensors", folder.path() / "mine.safetensors");
  const PresetLibrary out(builtin_registry(), {folder.path()});
  CHECK_SAYS(all_of(out.problems()).find("a link that leads out of the preset's folder") != std::string::npos, all_of(out.problems()));
  // A preset that is itself a link, as an installation may have them, has its weights where it lies.
  Folder links;
  other.write("mine.json", trained_text());
  for (const char* name : {"mine.json", "mine.safetensors"}) fs::create_symlink(other.path() / name, links.path() / name);
  const PresetLibrary linked(builtin_registry(), {links.path()});
  CHECK_SAYS(linked.problems().empty(), all_of(linked.problems()));
}

TEST_CASE("a stack of as many parts as are allowed is read") {
  Folder folder;
  folder.write("stack.json", stacked(many_parts(64)));
  const PresetLibrary library(builtin_registry(), {folder.path()});
  CHECK_SAYS(library.problems().empty(), all_of(library.problems()));
  CHECK_EQUAL(library.presets().at(0).stack.size(), std::size_t{64});
}

TEST_CASE("what cannot be resolved or looked into is a problem of its own and hides nothing else") {
  Folder folder;
  folder.write("mine.json", preset_text("mine"));
  folder.write("deep/er/other.json", preset_text("other"));
  std::filesystem::create_symlink("loop.json", folder.path() / "loop.json");
  std::filesystem::create_symlink("nowhere", folder.path() / "gone.json");
  CHECK(::mkfifo((folder.path() / "pipe.json").c_str(), 0600) == 0);
  const PresetLibrary library(builtin_registry(), {folder.path()});
  CHECK_EQUAL(library.presets().size(), std::size_t{2});
  CHECK_EQUAL(library.find("mine").id, std::string("mine"));
  CHECK_SAYS(library.problems().size() == 3, all_of(library.problems()));
  for (const char* says : {"loop.json cannot be read", "there is no file", "pipe.json is a pipe"})
    CHECK_SAYS(all_of(library.problems()).find(says) != std::string::npos, all_of(library.problems()));
  // Who asks for one that is not there hears that it may be in what could not be read.
  CHECK_ERROR(library.find("hidden"), "`reclab list` shows all. But not everything could be read: ");
}

TEST_CASE("a preset of very many keys is refused soon") {
  Folder folder;
  std::string hyper = ",\"hyper\": {";
  for (int i = 0; i < 100'000; ++i) hyper += (i ? ", \"k" : "\"k") + std::to_string(i) + "\": 1";
  folder.write("many.json", preset_text("mine", hyper + "}"));
  const auto start = std::chrono::steady_clock::now();
  const PresetLibrary library(builtin_registry(), {folder.path()});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  CHECK_SAYS(library.problems().size() == 1 && library.problems()[0].find("hyper.k0: mine has no hyper-parameter") != std::string::npos,
             all_of(library.problems()));
  CHECK_SAYS(seconds < 10.0, std::to_string(seconds));
}

TEST_CASE("an id is there once, and a file that is reached twice is one file") {
  Folder folder;
  folder.write("a/mine.json", preset_text("mine"));
  folder.write("b/mine.json", preset_text("mine"));
  const PresetLibrary twice(builtin_registry(), {folder.path() / "a", folder.path() / "b"});
  CHECK_EQUAL(twice.presets().size(), std::size_t{1});
  CHECK_EQUAL(twice.problems().size(), std::size_t{1});
  CHECK(twice.problems()[0].find("is taken by " + (folder.path() / "a/mine.json").string()) != std::string::npos);
  const PresetLibrary same(builtin_registry(), {folder.path() / "a", folder.path() / "a/../a"});
  CHECK_EQUAL(same.presets().size(), std::size_t{1});
  CHECK_SAYS(same.problems().empty(), all_of(same.problems()));
}

TEST_CASE("an unknown preset names the nearest, and a missing folder is said") {
  const PresetLibrary library(builtin_registry(), {shipped});
  CHECK_ERROR(library.find("lsmt"), "there is no preset \"lsmt\"; the nearest are lstm");
  CHECK_ERROR(library.find(""), "there is no preset");
  const PresetLibrary none(builtin_registry(), {"/nonexistent/presets"});
  CHECK_EQUAL(none.problems().size(), std::size_t{1});
  CHECK(none.problems()[0].find("/nonexistent/presets: the folder of presets cannot be read") == 0);
  CHECK_ERROR(none.find("lstm"), "RECLAB_PRESETS");
}

TEST_CASE("presets are looked for where the user says, in the source and in the user's data folder") {
  Folder folder;
  folder.write("data/recurrence-lab/presets/mine.json", preset_text("mine"));
  const std::string named = (folder.path() / "named").string(), data = (folder.path() / "data").string();
  setenv("RECLAB_PRESETS", (named + "::" + shipped.string()).c_str(), 1);
  setenv("XDG_DATA_HOME", data.c_str(), 1);
  const auto folders = preset_folders();
  CHECK_EQUAL(folders.front().string(), named);
  CHECK(std::ranges::find(folders, shipped) != folders.end());
  CHECK_EQUAL(folders.back().string(), data + "/recurrence-lab/presets");
  unsetenv("RECLAB_PRESETS");
  const PresetLibrary library(builtin_registry(), preset_folders());
  CHECK_EQUAL(library.find("mine").id, std::string("mine"));
  CHECK_EQUAL(library.find("lstm").id, std::string("lstm"));
}
