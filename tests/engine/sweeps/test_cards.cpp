// SPDX-License-Identifier: GPL-3.0-or-later
// What the cards say, measured in the presets' own runs.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "array/error.h"
#include "experiment/experiment.h"
#include "measures/measure.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

namespace fs = std::filesystem;
using namespace reclab;

namespace {

RunResult run_of(RunRequest request) {
  return run(builtin_registry(), request, [](double, std::string_view) {}, {});
}

/// The preset's own run, with what its claims need.
MeasuredRun own_run(const Preset& preset) {
  RunRequest request;
  request.preset = preset;
  if (preset.is_trained) use_trained(request);
  request.sequence = make_task(preset.task, preset.task_options());
  std::vector<std::string> measured;
  for (const Claim& claim : preset.claims) measured.push_back(claim.measure);
  for (const std::string& place : preset.look_at)
    if (place.starts_with("spectrum")) measured.push_back(key_of(Kind::spectrum, 0));
  request = recording_for(request, measured);
  return {.request = request, .trace = run_of(request).trace};
}

/// Where the sentence that says what to look at begins and ends: the second of three.
std::pair<std::size_t, std::size_t> second_sentence(const std::string& idea) {
  const std::size_t first = idea.find(". "), second = idea.find(". ", first + 2);
  return {first, second};
}

/// Runs a preset as it stands and measures what it claims; returns what is not so. `table` gets a row a claim.
std::vector<std::string> complaints_of(const Preset& preset, std::string& table) {
  std::vector<std::string> complaints;
  const auto [from, to] = second_sentence(preset.idea);
  if (std::ranges::none_of(preset.claims, [&, from = from, to = to](const Claim& claim) {
        const std::size_t at = preset.idea.find(claim.text);
        return at >= from && at < to;
      }))
    complaints.push_back(preset.id + ": its card says what to look at; say in its \"claims\" what is to be seen there");
  const MeasuredRun own = own_run(preset);
  const TracePtr& trace = own.trace;
  if (trace->info.outcome != Outcome::finished) return {preset.id + ": " + trace->info.sentence};
  const auto has_none = [](const std::string& spectrum) { return spectrum.starts_with("none"); };
  if (const std::string said = card(builtin_registry(), preset).spectrum;
      has_none(said) != std::ranges::all_of(trace->info.spectra, has_none, &SpectrumInfo::of))
    complaints.push_back(preset.id + ": the card says of the spectrum \"" + said + "\", its run does not");
  for (const Claim& claim : preset.claims) {
    const double number = measure(own, claim.measure);
    char row[200];
    std::snprintf(row, sizeof row, " | %.4g to %.4g | %.4g\n", claim.low, claim.high, number);
    table += preset.id + " | " + claim.text + " | " + claim.measure + row;
    if (!(number >= claim.low && number <= claim.high))
      complaints.push_back(preset.id + " claims \"" + claim.text + "\": " + claim.measure + " is " + test::show(number) + ", not from " +
                           test::show(claim.low) + " to " + test::show(claim.high));
  }
  // What look_at names is there.
  for (const std::string& place : preset.look_at) {
    const std::size_t colon = place.rfind(':');
    const std::string panel = place.substr(0, place.find(':')), name = colon == std::string::npos ? "" : place.substr(colon + 1);
    const std::string prefix = panel == "gating"         ? "gate/"
                               : panel == "gradients"    ? "gradient/state/"
                               : name == "past"          ? "basis/"
                               : panel == "trajectories" ? "state/"
                               : panel == "spectrum"     ? "spectrum/"
                                                         : "";
    static const std::set<std::string> views{"", "3-D", "map", "lines", "past", "continuous"};
    const auto arrays = trace->matching(prefix);
    if (!prefix.empty() && std::ranges::none_of(arrays, [&](const TraceArray* array) {
          const std::string rest = array->key.substr(prefix.size());
          return views.contains(name) || rest == name || rest.substr(rest.find('/') + 1) == name;
        }))
      complaints.push_back(preset.id + " looks at " + place + ", of which its run has nothing");
  }
  return complaints;
}

}  // namespace

TEST_CASE("input_scale multiplies what a model sees, and nothing else") {
  for (const char* id : {"elman", "s4d"}) {
    RunRequest request;
    request.preset = test::shipped().find(id);
    request.sequence = make_task("noise", {.length = 20});
    request.recording.kinds.remove(kinds_of(Stage::late));
    RunRequest scaled = request, louder = request;
    scaled.set = {{"input_scale", "4"}};
    for (double& value : louder.sequence.own().input) value *= 4.0;
    const auto by_setting = run_of(scaled).trace, by_hand = run_of(louder).trace, plain = run_of(request).trace;
    CHECK(*by_setting->find("output")->real == *by_hand->find("output")->real);
    CHECK(*by_setting->find("input")->real == *plain->find("input")->real);
    CHECK(*by_setting->find("output")->real != *plain->find("output")->real);
    // Towards the input as it is, the slope is four times that towards the louder one.
    const auto &slope = *by_setting->find("gradient/input")->real, &louder_slope = *by_hand->find("gradient/input")->real;
    for (std::size_t i = 0; i < slope.size(); ++i) CHECK_EQUAL(slope[i], 4.0 * louder_slope[i]);
  }
}

TEST_CASE("without the encoder's bias zeros stay zeros, and every other weight is as it was") {
  RunRequest request;
  request.preset = test::shipped().find("lru");
  request.sequence = make_task("impulse", {.length = 30});
  request.recording.kinds.remove(kinds_of(Stage::late));
  request.set = {{"encoder_bias", "true"}};
  RunRequest bare = request;
  bare.set = {{"encoder_bias", "false"}};
  const auto with = run_of(request).trace, without = run_of(bare).trace;
  CHECK(with->find("param/encoder/bias") && !without->find("param/encoder/bias"));
  CHECK_EQUAL(with->matching("param/").size(), without->matching("param/").size() + 1);
  for (const TraceArray* array : without->matching("param/")) CHECK_SAYS(*array->real == *with->find(array->key)->real, array->key);
  // After the impulse the state moves by its own eigenvalues alone.
  const auto& state = *without->find("state/0/h")->complex;
  const auto &nu = *without->find("param/0/nu_log")->real, &theta = *without->find("param/0/theta_log")->real;
  const std::size_t n = nu.size();
  for (std::size_t i = 0; i < n; ++i) {
    const std::complex<double> lambda = std::exp(std::complex<double>(-std::exp(nu[i]), std::exp(theta[i])));
    CHECK_CLOSE(std::abs(state[29 * n + i] - std::pow(lambda, 29) * state[i]), 0.0, 1e-12);
  }
  // Elman's network takes an input of any width, so it has no encoder.
  RunRequest none = request;
  none.preset = test::shipped().find("elman");
  CHECK_ERROR(run_of(none), "encoder_bias");
}

SWEEP_PRESETS("it shows what its card says", preset) {
  std::string table, all;
  for (const std::string& complaint : complaints_of(preset, table)) all += "\n  " + complaint;
  std::printf("%s", table.c_str());
  CHECK_SAYS(all.empty(), all);
}

SWEEP_PRESETS("its trained weights do what its card says of them", preset) {
  if (!preset.trained) return;
  std::string table, all;
  const Preset trained = as_trained(preset);
  for (const std::string& complaint : complaints_of(trained, table)) all += "\n  " + complaint;
  if (std::ranges::none_of(trained.claims,
                           [](const Claim& claim) { return claim.measure == "held_out" || claim.measure == "of_baseline"; }))
    all += "\n  " + preset.id + ": say in its trained claims what it does on what is held out";
  std::printf("%s", table.c_str());
  CHECK_SAYS(all.empty(), all);
}

TEST_CASE("a claim that is not true is found, and so is a card without one") {
  Preset preset = test::shipped().find("lstm");
  std::string table;
  preset.claims = {{"the forget gate over time", "mean gate/0/forget", 0.0, 0.1}};
  CHECK(complaints_of(preset, table).size() == 1);
  CHECK_SAYS(complaints_of(preset, table).front().find("mean gate/0/forget is 0.7") != std::string::npos,
             complaints_of(preset, table).front());
  preset.claims = {{"the forget gate over time", "mean gate/0/forget", 0.5, 1.0}};
  CHECK(complaints_of(preset, table).empty());
  preset.look_at = {"gating:remember"};
  CHECK_EQUAL(complaints_of(preset, table).size(), 1u);
  preset.look_at = {"spectrum"};
  preset.claims.front().text = preset.idea.substr(0, 20);  // about what it changed, not about what to look at
  CHECK_EQUAL(complaints_of(preset, table).size(), 1u);
  preset.claims = {{"the forget gate over time", "beauty gate/0/forget", 0.0, 0.1}};
  CHECK_ERROR(complaints_of(preset, table), "no measure \"beauty\"");
}

namespace {

struct Ends {
  int heads = 0, encoders = 0;
};
/// The card lists every array that a file of weights must hold, and when those before and after the layers are there. Returns how many are.
Ends check_card(const Preset& preset) {
  Ends ends;
  RunRequest request;
  request.preset = preset;
  request.sequence = make_task(preset.task, preset.task_options());
  request.recording = {};
  request.recording.only = {"param/"};
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  const Card own = card(builtin_registry(), preset, request.sequence->width);
  const bool tied = std::ranges::any_of(
      own.hyper, [](const HyperSpec& row) { return row.key == "read_out" && row.standard == HyperValue(std::string("tied")); });
  std::size_t needed = 0;
  for (const auto& parameter : own.parameters) {
    const bool head = parameter.name.starts_with("head/"), encoder = parameter.name.starts_with("encoder");
    CHECK_EQUAL(parameter.when.empty(), !head && !encoder);
    ends.heads += head || (tied && encoder);  // which is the head too
    ends.encoders += encoder;
    const TraceArray* found = trace->find("param/" + parameter.name);
    if (head && request.sequence->target_kind == TargetKind::none) {
      CHECK(!found);
      CHECK_SAYS(parameter.when.find("the sequence has a target") != std::string::npos, parameter.when);
      continue;
    }
    CHECK_SAYS(found, preset.id + ": " + parameter.name);
    CHECK_EQUAL(to_string(found->shape), to_string(parameter.shape));
    ++needed;
  }
  CHECK_EQUAL(needed, trace->matching("param/").size());
  return ends;
}
constexpr const char* card_lists =
    "the card lists every array that a file of weights must hold, and when those before and after the layers are there";

}  // namespace

SWEEP_PRESETS(card_lists, preset) { CHECK(check_card(preset).heads > 0); }
SWEEP_ARCHITECTURES(std::string(card_lists) + ", with its defaults, in both directions too", architecture) {
  Preset preset = test::preset_of(architecture.id);
  CHECK(check_card(preset).heads > 0);
  preset.hyper = {{"direction", std::string("both")}};
  check_card(preset);
}
TEST_CASE(std::string(card_lists) + ", for stacks, and a linear encoder is among them") {
  for (const Preset& preset : test::mixed_stacks()) CHECK(check_card(preset).encoders > 0);
}
