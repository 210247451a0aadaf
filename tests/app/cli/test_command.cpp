// SPDX-License-Identifier: GPL-3.0-or-later
// The command line in a manifest repeats the run: a shell and reclab make an equal request of it, and running it gives the same bits.
#include <unistd.h>

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "experiment/command/command.h"
#include "experiment/command/run_fields.h"
#include "files/npz.h"
#include "models/registry.h"
#include "options.h"
#include "places.h"
#include "process.h"
#include "scratch.h"
#include "test.h"
#include "timing/timing.h"

using namespace reclab;
using reclab::test::bytes_of_file;
using reclab::test::Process;
using reclab::test::Scratch;

namespace {

/// The words that a shell makes of a line.
std::vector<std::string> words_of(const std::string& line) {
  Process shell("/bin/sh", {"-c", "printf '%s\\0' " + line}, {});
  CHECK_EQUAL(shell.wait(), 0);
  CHECK_SAYS(shell.error.empty(), shell.error);
  std::vector<std::string> words;
  for (std::size_t at = 0; at < shell.output.size();) {
    const std::size_t end = shell.output.find('\0', at);
    words.push_back(shell.output.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::vector<std::string> arguments_of(const std::string& line, const std::string& command) {
  const auto words = words_of(line);
  CHECK_SAYS(words.size() > 2 && words[0] == "reclab" && words[1] == command, line);
  return {words.begin() + 2, words.end()};
}

const PresetLibrary& presets() {
  static const PresetLibrary all(builtin_registry(), {test::source("presets")});
  return all;
}

/// What of two requests is not alike; empty where all is.
std::string difference(const RunRequest& a, const RunRequest& b) {
  const auto loads = [](const Sequence& s) { return s.task.empty() ? s.load : LoadOptions{}; };
  if (a.preset.id != b.preset.id) return "preset";
  if (a.preset.is_trained != b.preset.is_trained) return "trained";
  if (a.set != b.set) return "set";
  if (a.seed != b.seed) return "seed";
  if (a.form != b.form) return "form";
  if (a.dtype != b.dtype) return "dtype";
  if (a.every != b.every) return "every";
  if (a.loss != b.loss) return "loss";
  if (a.weights != b.weights) return "weights";
  if (a.state != b.state) return "state";
  if (a.recording.only != b.recording.only) return "record";
  if (a.recording.kinds != b.recording.kinds) return "recording";
  const Sequence &s = a.sequence, &t = b.sequence;
  if (s.source != t.source || s.task != t.task || s.sha256 != t.sha256 || s.standardised != t.standardised)
    return "where the sequence comes from";
  if (!(loads(s) == loads(t))) return "how the file was read";
  if (!s.task.empty() && !(s.made == t.made)) return "how the task was made";
  if (s.input != t.input || s.target != t.target || s.mask != t.mask || s.time != t.time || s.names != t.names ||
      s.target_names != t.target_names)
    return "the sequence";
  return {};
}

RunRequest again(const RunRequest& request) {
  return cli::request_of(cli::run_options(arguments_of(command_of(request, "cpu"), "run")), presets());
}

void check_repeats(const RunRequest& request) {
  const std::string wrong = difference(request, again(request));
  CHECK_SAYS(wrong.empty(), command_of(request, "cpu") + ": " + wrong);
}

const std::vector<std::string> odd_names{
    "plain",      "two words", "it's", "a,b", "-v", "--seed 7",          "ends in \\", "\\,", "[z]",     "{}",       "a=b",
    "$HOME `ls`", "#1",        "~",    "!",   "%d", "\xc3\xbcn\xc3\xaf", "\"q\"",      "*",   "a;b|c&d", "tab\there"};

}  // namespace

TEST_CASE("names of a list: commas part them, and one behind a backslash does not") {
  using Names = std::vector<std::string>;
  CHECK(names_of_list("a,b") == (Names{"a", "b"}));
  CHECK(names_of_list("a\\,b,c") == (Names{"a,b", "c"}));
  CHECK(names_of_list("a\\b,c\\") == (Names{"a\\b", "c\\"}));
  CHECK(names_of_list("\\\\,") == (Names{"\\"}));
  CHECK(names_of_list("\\\\\\,") == (Names{"\\,"}));
  CHECK(names_of_list(list_of_names(odd_names)) == odd_names);
  CHECK(names_of_list(",a,,").size() == 1);
}

TEST_CASE("every word comes through a shell") {
  for (const std::string& name : odd_names) CHECK_EQUAL(words_of(shell_word(name)).at(0), name);
  CHECK_EQUAL(words_of(shell_word("two\nlines")).at(0), "two\nlines");
  CHECK_EQUAL(words_of(shell_word("")).at(0), "");
}

TEST_CASE("the command of a request on a task makes an equal request") {
  RunRequest request;
  request.preset = presets().find("lstm");
  request.sequence = make_task("adding", {.length = 30, .seed = 4});
  request.seed = 4;
  check_repeats(request);
  request.seed = 7;  // another than the task's
  check_repeats(request);
  CHECK_EQUAL(command_of(request, "cpu"), "reclab run lstm --task adding --length 30 --task-seed 4 --seed 7");
  request.sequence = make_task("copy", {.length = 90, .seed = 7, .set = {{"symbols", "4"}, {"delay", "40"}}});
  check_repeats(request);
  CHECK_EQUAL(command_of(request, "cpu"), "reclab run lstm --task copy --length 90 --task-set delay=40 --task-set symbols=4 --seed 7");
  request.sequence = make_task("noise", {.length = 30, .seed = 7, .set = {{"correlation", "-0.30000000000000004"}}});
  check_repeats(request);
  request.seed = ~std::uint64_t{0};
  request.sequence = make_task("noise", {.length = 30, .seed = ~std::uint64_t{0} - 1, .standardise = true});
  request.set = {{"width", "8"}, {"forget_bias", "-1.5"}, {"direction", "both"}};
  request.form = "newton";
  request.dtype = "f32";
  request.every = 3;
  request.loss = LossKind::mean;
  request.weights = "some where/it's.npz";
  request.state = "-state.npz";
  request.recording = recording_of({"output", "state/0", "jacobian"});
  check_repeats(request);
  request.recording = recording_of({"all"});
  check_repeats(request);
  for (const LossKind loss : {LossKind::last, LossKind::automatic}) {
    request.loss = loss;
    check_repeats(request);
  }
}

TEST_CASE("the command of a request with trained weights makes an equal request") {
  RunRequest request;
  request.preset = presets().find("lstm");
  use_trained(request);
  request.sequence = make_task("adding", {.length = 30, .seed = 1});
  check_repeats(request);
  CHECK_EQUAL(command_of(request, "cpu"), "reclab run lstm --task adding --length 30 --trained --seed 1");
  CHECK(hyper_of(builtin_registry(), request.preset).text("width") == hyper_of(builtin_registry(), again(request).preset).text("width"));
  request.set = {{"forget_bias", "3"}};
  request.weights = "mine.npz";  // others than those that the preset brings
  check_repeats(request);
}

TEST_CASE("trained weights come with a command that asks for their model and their task") {
  std::size_t found = 0;
  for (const Preset& preset : presets().presets()) {
    if (!preset.trained) continue;
    ++found;
    const TrainingRequest request = cli::training_request_of(cli::train_options(arguments_of(preset.trained->command, "train")), presets());
    const Preset trained = as_trained(preset);
    CHECK_EQUAL(request.run.preset.id, preset.id);
    const Hyper asked = hyper_of(builtin_registry(), request.run.preset, request.run.set), said = hyper_of(builtin_registry(), trained);
    for (const HyperSpec& row : said.table())
      CHECK_SAYS(asked.text(row.key) == said.text(row.key),
                 preset.id + ": " + row.key + " is " + asked.text(row.key) + " in the command, " + said.text(row.key) + " in the preset");
    CHECK_SAYS(!request.from.is_file() &&
                   make_task(request.from.task, request.from.make).names == make_task(trained.task, trained.task_options()).names &&
                   request.from.task == trained.task,
               preset.id);
    CHECK_SAYS(settings_of(task_parameters(request.from.task, request.from.make.set)) ==
                       settings_of(task_parameters(trained.task, trained.task_set)) &&
                   request.from.make.length == trained.task_length,
               preset.id);
  }
  CHECK(found >= 2);
}

TEST_CASE("the claims of the literature are commands that can be given") {
  const auto claims = nlohmann::json::parse(bytes_of_file(test::source("tests/bench/claims/claims.json")));
  for (const auto& claim : claims) {
    CHECK(!claim.at("claim").get<std::string>().empty() && !claim.at("source").get<std::string>().empty());
    for (const auto& [name, words] : claim.at("runs").items()) {
      const TrainingRequest request =
          cli::training_request_of(cli::train_options(arguments_of("reclab train " + words.get<std::string>(), "train")), presets());
      hyper_of(builtin_registry(), request.run.preset, request.run.set);
      CHECK_SAYS(request.from.make.seed == 1 && request.run.seed == 1 && request.steps > 0, name);
      make_task(request.from.task, request.from.make);
    }
    for (const auto& condition : claim.at("holds")) CHECK_SAYS(claim.at("runs").contains(condition.at(0)), condition.dump());
  }
  CHECK(claims.size() >= 6);
}

TEST_CASE("the command of a request on a file makes an equal request, whatever file and columns are called") {
  const Scratch scratch;
  for (const std::string& name : odd_names) {
    RunRequest request;
    request.preset = presets().find("gru");
    std::string header = "\"";
    for (const char c : name) header += c == '"' ? std::string("\"\"") : std::string(1, c);
    header += "\"";
    const auto file = scratch.file(name + ".csv", header + ",y,z,when\n1,2,3,4\n2,3,1,5\n4,1,2,6\n");
    LoadOptions load;
    load.columns = {name, "y"};
    load.time = "when";
    request.sequence = load_sequence(file, load);
    check_repeats(request);
    load.columns = {"y"};
    load.target = {name, "3"};
    load.time = "none";
    load.standardise = false;
    request.sequence = load_sequence(file, load);
    request.loss = LossKind::task;
    check_repeats(request);
    for (const Missing missing : {Missing::leave_out, Missing::hold, Missing::interpolate, Missing::mask}) {
      load.missing = missing;
      request.sequence = load_sequence(scratch.file("gaps " + name + ".csv", header + ",y,z,when\n1,2,3,4\n2,,1,5\n4,1,NA,6\n"), load);
      check_repeats(request);
    }
    load = {};
    load.time = name;
    load.target = {"next"};
    request.sequence = load_sequence(file, load);
    check_repeats(request);
  }
  // One that looks like a task is a file all the same.
  const auto folder = std::filesystem::current_path();
  std::filesystem::current_path(scratch.path());
  RunRequest request;
  request.preset = presets().find("gru");
  scratch.file("task adding --length 9 --seed 2", "1\n2\n3\n");
  request.sequence = load_sequence("task adding --length 9 --seed 2");
  check_repeats(request);
  scratch.file("-x.csv", "1\n2\n3\n");
  request.sequence = load_sequence("-x.csv");
  check_repeats(request);
  std::filesystem::current_path(folder);
}

TEST_CASE("what a panel asks for is recorded again, by kinds") {
  RunRequest request;
  request.preset = presets().find("gru");
  request.sequence = make_task("noise", {.length = 12, .seed = 1});
  request.recording.kinds.remove({Kind::gate, Kind::jacobian, Kind::jacobian_min});
  const RunRequest repeated = again(request);
  CHECK(repeated.recording.kinds == request.recording.kinds);
  const auto keys = [](const RunRequest& of) {
    std::vector<std::string> found;
    const auto result = run(builtin_registry(), of, {}, {});
    for (const auto& array : result.trace->arrays()) found.push_back(array->key);
    return found;
  };
  CHECK(keys(request) == keys(repeated));
}

TEST_CASE("the command of a timing makes an equal one") {
  const Scratch scratch;
  RunRequest request;
  request.preset = presets().find("gru");
  LoadOptions load;
  load.target = {"a b"};
  load.standardise = false;
  request.sequence = load_sequence(scratch.file("it's.csv", "x,a b\n1,2\n2,3\n"), load);
  request.set = {{"width", "8"}};
  request.seed = 3;
  request.weights = "my weights.npz";
  request.state = "my state.npz";
  TimingRequest timing{.forms = {"sequential", "newton"}, .lengths = {16, 64}, .batch = 2, .backward = false};
  const cli::StudyOptions options = cli::study_options("time", arguments_of(command_of(request, timing, "cpu"), "bench"));
  CHECK_EQUAL(options.id, "gru");
  std::map<std::string, std::string> given{{"--input", request.sequence->source},
                                           {"--target", "a b"},
                                           {"--standardise", "no"},
                                           {"--set", "width=8"},
                                           {"--seed", "3"},
                                           {"--weights", "my weights.npz"},
                                           {"--state", "my state.npz"},
                                           {"--forms", "sequential,newton"},
                                           {"--lengths", "16,64"},
                                           {"--batch", "2"},
                                           {"--forward-only", "true"}};
  for (const auto& [flag, text] : options.given) given.try_emplace(flag);  // nothing was said of the others
  CHECK(options.given == given);
}

namespace {
/// Another value than a plan has, as text.
template <class Plan>
std::string another(const PlanField<Plan>& field, const Plan& plan) {
  std::vector<std::string> texts = field.row.choices;
  texts.insert(texts.end(), {"7", "delay=9", "no", "yes", "state", "x y"});
  for (const std::string& text : texts) {
    if (field.wanted && !field.wanted(text).empty()) continue;
    Plan other = plan;
    field.set(other, value_of(field, text));
    if (field.get(other) != field.get(plan)) return text;
  }
  test::fail(__FILE__, __LINE__, "there is no other value of " + field.flag);
}
}  // namespace

TEST_CASE("each value of a run and of its sequence is in its line where it is none of its own accord, and is read back") {
  const auto of_line = [](const CommandLine& line) { return cli::run_options(arguments_of(line.text("reclab run"), "run")); };
  for (const PlanField<SequenceChoice>& field : sequence_fields()) {
    SequenceChoice choice;
    if (field.of == Field::Of::file) choice.file = "a file.csv";
    const HyperValue usual = field.get(choice);
    field.set(choice, value_of(field, another(field, choice)));
    CommandLine line;
    line.word("lstm");
    line.sequence(choice, 1);
    const SequenceChoice again = sequence_of(of_line(line).given, presets().find("lstm"), 1);
    CHECK_SAYS(again == choice, field.flag + ": " + line.text("reclab run"));
    CHECK_SAYS(field.get(again) == field.get(choice) && field.get(choice) != usual, field.flag);
  }
  for (const PlanField<RunRequest>& field : run_fields()) {
    if (field.row.kind == HyperKind::flag) continue;  // of presets that bring trained weights: below
    RunRequest request;
    request.preset = presets().find("lstm");
    const HyperValue usual = field.get(request);
    field.set(request, value_of(field, another(field, request)));
    CHECK_SAYS(field.get(request) != usual, field.flag);
    CommandLine line;
    line.word("lstm");
    line.fields(run_fields(), request);
    cli::RunOptions options = of_line(line);
    options.sizes = "weights";  // of no preset's settings is it asked whether they are there
    const RunRequest again = cli::model_request_of(options, request.preset, builtin_registry());
    CHECK_SAYS(field.get(again) == field.get(request), field.flag + ": " + line.text("reclab run"));
  }
}

TEST_CASE("running the manifest's command gives the same bits") {
  const Scratch scratch;
  const std::string reclab = test::built("bin/reclab");
  const auto run_to = [&](std::vector<std::string> arguments, const std::string& folder) {
    arguments.insert(arguments.begin(), "run");
    arguments.insert(arguments.end(), {"--export", (scratch / folder).string()});
    Process process(reclab, arguments, {});
    CHECK_SAYS(process.wait() == 0, process.error);
    return nlohmann::json::parse(bytes_of_file(scratch / (folder + "/manifest.json"))).at("command").get<std::string>();
  };
  const std::string file =
      scratch.file("its, 'own' file.csv", "t,in one,\"b,c\",y\n0,1,2,9\n1,4,1,8\n2,2,2,5\n3,1,7,6\n4,0,3,1\n5,2,2,2\n").string();
  run_to({"gru", "--input", file, "--columns", "in one", "--target", "next", "--set", "width=6"}, "first");
  const std::vector<std::vector<std::string>> lines{
      {"lstm", "--length", "20", "--set", "width=6"},  // the preset's own task and its seed
      {"lstm", "--task", "adding", "--length", "20", "--set", "width=6", "--seed", "2", "--task-seed", "5", "--every", "3", "--loss",
       "mean"},
      {"gru", "--input", file, "--columns", "in one", "--columns", "b\\,c", "--time", "none", "--target", "y", "--standardise", "no",
       "--set", "width=6", "--record", "output,state,target"},
      {"gru", "--input", file, "--columns", "in one", "--target", "next", "--set", "width=6", "--weights",
       (scratch / "first/trace.npz").string(), "--state", (scratch / "first/state.npz").string(), "--seed", "9"},
      {"mamba", "--task", "copy", "--length", "30", "--form", "auto", "--dtype", "f32", "--standardise", "yes", "--loss", "last"},
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string command = run_to(lines[i], "a");
    CHECK_EQUAL(command.substr(0, 11), "reclab run ");
    const std::string line = reclab + command.substr(6) + " --export " + shell_word((scratch / "b").string());
    Process shell("/bin/sh", {"-c", line}, {});
    CHECK_SAYS(shell.wait() == 0, line + ": " + shell.error);
    for (const char* name : {"trace.npz", "state.npz"})
      CHECK_SAYS(bytes_of_file(scratch / ("a/" + std::string(name))) == bytes_of_file(scratch / ("b/" + std::string(name))),
                 command + ": " + name);
    CHECK_EQUAL(nlohmann::json::parse(bytes_of_file(scratch / "b/manifest.json")).at("command").get<std::string>(), command);
  }
}

/// Another value than the usual one, that any of its kind may have.
void set_another(const TrainingField& field, TrainingPlan& plan) {
  if (field.says == Field::Says::names) return field.set(plan, list_of_names({"0/weight_hh, and so *"}));
  switch (field.row.kind) {
    case HyperKind::flag: return field.set(plan, !std::get<bool>(field.row.standard));
    case HyperKind::integer: return field.set(plan, std::get<std::int64_t>(field.row.standard) + 3);
    case HyperKind::real: return field.set(plan, 0.0625);
    case HyperKind::choice: break;
  }
  for (const std::string& name : field.row.choices)
    if (HyperValue(name) != field.row.standard) return field.set(plan, name);
}

TEST_CASE("every option of a training is in the line that repeats it where it is not the usual one, and is read back from there") {
  std::set<std::string> flags, keys;
  for (const TrainingField& field : training_fields()) {
    CHECK_SAYS(flags.insert(field.flag).second && keys.insert(field.row.key).second, field.flag);
    TrainingRequest request;
    request.run.preset = presets().find("lstm");
    if (field.of == Field::Of::file)
      request.from.file = "a file.csv";
    else
      request.from.task = "adding";
    const auto said = [&] { return std::ranges::count(reclab::arguments_of(request), field.flag) > 0; };
    CHECK_EQUAL(said(), field.always);
    if (field.flag == "--nesterov") {
      request.options.optimiser.rule = "sgd";
      request.options.optimiser.set("momentum", 0.5);
    }
    set_another(field, request);
    CHECK_SAYS(said(), field.flag);
    const TrainingRequest again = cli::training_request_of(cli::train_options(arguments_of(command_of(request), "train")), presets());
    CHECK_SAYS(static_cast<const TrainingPlan&>(again) == request, field.flag);
    TrainingRequest usual;
    CHECK_SAYS(!(static_cast<const TrainingPlan&>(again) == usual), field.flag);
    // In a form each value has a name, and the usual value a place.
    if (field.form.label.empty()) continue;
    CHECK_EQUAL(field.form.choices.size(), field.row.choices.size());
    if (const auto* whole = std::get_if<std::int64_t>(&field.row.standard))
      CHECK(field.form.low <= double(*whole) && double(*whole) <= field.form.high);
    if (const auto* real = std::get_if<double>(&field.row.standard)) CHECK(field.form.low <= *real && *real <= field.form.high);
  }
  CHECK(flags.size() > 20);
}
