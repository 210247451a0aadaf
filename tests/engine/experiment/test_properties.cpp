// SPDX-License-Identifier: GPL-3.0-or-later
// Properties follow from what a model does; here they are compared with what its paper says.
#include <algorithm>
#include <map>

#include "experiment/properties.h"
#include "models/registry.h"
#include "places.h"
#include "test.h"

using namespace reclab;

namespace {

const PresetLibrary& library() {
  static const PresetLibrary all(builtin_registry(), {test::source("presets")});
  return all;
}

std::string text(const Properties& properties) {
  std::string all;
  for (const std::string& word : words_of(properties)) all += (all.empty() ? "" : " ") + word;
  return all;
}

std::string of(const std::string& id, const HyperValues& set = {}) {
  Preset preset = library().find(id);
  for (const auto& [key, value] : set) {
    std::erase_if(preset.hyper, [&, name = key](const auto& one) { return one.first == name; });
    preset.hyper.emplace_back(key, value);
  }
  return text(properties_of(builtin_registry(), preset));
}

}  // namespace

TEST_CASE("a model's properties are those that its paper gives it") {
  const std::map<std::string, std::string> known{
      {"elman", "nonlinear"},
      {"lstm", "nonlinear gated"},
      {"bidirectional-lstm", "nonlinear gated"},
      {"gru", "nonlinear gated"},
      {"slstm", "nonlinear gated"},
      {"mlstm", "linear gated diagonal"},
      {"ltc", "nonlinear gated"},
      {"cornn", "nonlinear"},
      {"transformer", "nonlinear growing"},
      {"transformer-xl", "nonlinear"},
      {"recurrent-memory-transformer", "nonlinear"},
      {"linear-attention", "linear time-invariant diagonal"},
      {"deltanet", "linear gated"},
      {"rwkv-4", "linear time-invariant diagonal"},
      {"retnet", "linear time-invariant diagonal"},
      {"gla", "linear gated diagonal"},
      {"lmu", "nonlinear"},               // the hidden state writes to the memory
      {"hippo-legs", "nonlinear gated"},  // likewise, through a gate
      {"s4", "linear time-invariant complex"},
      {"s4d", "linear time-invariant diagonal complex"},
      {"s5", "linear time-invariant diagonal complex"},
      {"lru", "linear time-invariant diagonal complex"},
      {"mamba", "linear gated diagonal"},
      {"mamba-attention", "nonlinear gated growing"},
      {"rg-lru", "linear gated diagonal"},
      {"griffin", "nonlinear gated"},
      {"hyena", "linear time-invariant growing"},
      {"unicornn", "nonlinear"},
      {"lem", "nonlinear gated"},
      {"lipschitz-rnn", "nonlinear"},
      {"noisy-rnn", "nonlinear"},  // its noise is drawn, not decided
      {"antisymmetric-rnn", "nonlinear"},
      {"exp-rnn", "nonlinear"},
      {"unitary-rnn", "nonlinear complex"},
      {"qrnn", "linear gated diagonal"},
      {"gilr", "linear gated diagonal"},
      {"sru", "nonlinear gated diagonal"},  // with v
      {"hgru", "linear gated diagonal complex"},
      {"on-lstm", "nonlinear gated"},
      {"xlstm", "nonlinear gated"},
  };
  for (const auto& [id, words] : known) CHECK_EQUAL(id + ": " + of(id), id + ": " + words);
}

TEST_CASE("properties follow settings") {
  CHECK_EQUAL(of("elman", {{"activation", std::string("relu")}}), std::string("nonlinear"));
  CHECK_EQUAL(of("elman", {{"activation", std::string("identity")}}), std::string("linear time-invariant"));
}

TEST_CASE("every preset has properties, the same each time, and one that is linear has an exact form that needs it") {
  for (const Preset& preset : library().presets()) {
    const Properties properties = properties_of(builtin_registry(), preset);
    CHECK_SAYS(properties == properties_of(builtin_registry(), preset), preset.id);
    CHECK_SAYS(!properties.time_invariant || properties.linear, preset.id);
    const std::vector<std::string> forms = card(builtin_registry(), preset).forms;
    // A scan over steps, or over chunks of them, is exact where steps are linear alone; attention between such layers has its own form.
    const auto offers = [&](const char* form) { return std::ranges::find(forms, form) != forms.end(); };
    if ((offers("scan") || offers("chunkwise")) && !offers("attention")) CHECK_SAYS(properties.linear, preset.id + ": " + text(properties));
  }
}

TEST_CASE("each property has a word and a sentence of its own") {
  for (const PropertyInfo& info : property_infos()) {
    CHECK(!info.id.empty() && !info.word.empty() && info.text.ends_with('.'));
    Properties one;
    one.*info.field = true;
    CHECK_EQUAL(text(one), info.id == "linear" ? std::string("linear") : "nonlinear " + std::string(info.word));
  }
}

TEST_CASE("what a step costs is by formula, without encoder and head, and what grows is counted as it stands at the end") {
  const StepCost elman = step_cost(builtin_registry(), library().find("elman"), 1, 10);
  Preset preset = library().find("elman");
  const std::int64_t width = hyper_of(builtin_registry(), preset).integer("width");
  CHECK_EQUAL(elman.state, width);
  CHECK_EQUAL(elman.parameters, width * (1 + width + 2));
  CHECK(elman.flops >= 2.0 * static_cast<double>(width * width) && elman.flops < 4.0 * static_cast<double>(width * (width + 8)));
  const StepCost some = step_cost(builtin_registry(), library().find("transformer"), 1, 10),
                 more = step_cost(builtin_registry(), library().find("transformer"), 1, 20);
  CHECK_EQUAL(more.state, 2 * some.state);
  CHECK_EQUAL(more.parameters, some.parameters);
  CHECK(more.flops > some.flops);
  const StepCost complex = step_cost(builtin_registry(), library().find("lru"), 1, 10);
  CHECK_EQUAL(complex.state, 2 * hyper_of(builtin_registry(), library().find("lru")).integer("state") *
                                 hyper_of(builtin_registry(), library().find("lru")).integer("layers"));
}

TEST_CASE("a setting that draws no weight beside the others is told, with the choices under which it would") {
  const Preset& preset = library().find("elman");
  const auto idle = [&](const std::vector<std::pair<std::string, std::string>>& set) {
    std::map<std::string, std::string> found;
    for (const IdleSetting& one : idle_settings(*architecture_of(builtin_registry(), preset), hyper_of(builtin_registry(), preset, set), 1))
      found.emplace(one.key, one.why);
    return found;
  };
  const auto orthogonal = idle({{"recurrent_init", "orthogonal"}});
  CHECK(!orthogonal.contains("spectral_radius") && !orthogonal.contains("recurrent_init"));
  CHECK(orthogonal.contains("angle_min") && orthogonal.contains("angle_max") && orthogonal.contains("input_deviation"));
  CHECK_EQUAL(orthogonal.at("input_deviation"),
              "It has no effect with input_init = uniform: no weight that is drawn depends on it. It has one with input_init = normal.");
  CHECK_SAYS(orthogonal.at("angle_min").ends_with("It has one with recurrent_init = rotations."), orthogonal.at("angle_min"));
  const auto uniform = idle({{"recurrent_init", "uniform"}, {"input_init", "normal"}});
  CHECK(uniform.contains("spectral_radius") && !uniform.contains("input_deviation"));
  CHECK_SAYS(uniform.at("spectral_radius").find("It has no effect with recurrent_init = uniform") == 0 &&
                 uniform.at("spectral_radius").find("orthogonal, ") != std::string::npos,
             uniform.at("spectral_radius"));
  const auto rotations = idle({{"recurrent_init", "rotations"}});
  CHECK(!rotations.contains("angle_min") && !rotations.contains("angle_max"));
}

TEST_CASE("of every preset it can be told which settings are idle") {
  for (const Preset& preset : library().presets()) {
    const Hyper hyper = hyper_of(builtin_registry(), preset);
    const auto architecture = architecture_of(builtin_registry(), preset);
    for (const IdleSetting& one : idle_settings(*architecture, hyper, 1)) {
      const auto row = std::ranges::find(hyper.table(), one.key, &HyperSpec::key);
      CHECK_SAYS(row != hyper.table().end() && row->initialisation_only && one.why.ends_with('.'), preset.id + ": " + one.key);
    }
  }
}
