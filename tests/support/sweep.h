// SPDX-License-Identifier: GPL-3.0-or-later
// Sweeps over the models that there are: a case a preset or architecture, of its family, so a new model is tested without a line. Files of
// tests/engine/sweeps have them, and ctest a case a family (tests/CMakeLists.txt).
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <typeindex>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/training/rule_use.h"
#include "models/network.h"
#include "models/registry.h"
#include "places.h"
#include "recurrence/evaluation_order.h"
#include "test.h"
#include "timing/primitives.h"

namespace reclab::test {

inline const PresetLibrary& shipped() {
  static const PresetLibrary library(builtin_registry(), {source("presets")});
  return library;
}

inline Preset preset_of(const std::string& architecture) {
  Preset preset;
  preset.id = preset.title = preset.architecture = architecture;
  return preset;
}

/// Memories of both kinds above one another.
inline std::vector<Preset> mixed_stacks() {
  std::vector<Preset> both;
  Preset stack = preset_of("transformer over segments");
  stack.stack = {{"recurrent-memory-transformer", {{"width", std::int64_t{8}}, {"heads", std::int64_t{2}}, {"segment", std::int64_t{4}}}},
                 {"transformer", {{"width", std::int64_t{8}}, {"heads", std::int64_t{2}}}}};
  both.push_back(stack);
  stack.id = "segments over a transformer";
  std::swap(stack.stack[0], stack.stack[1]);
  both.push_back(stack);
  return both;
}

using Settings = std::vector<std::pair<std::string, std::string>>;

inline bool possible(const Preset& preset, const Settings& set) {
  try {
    hyper_of(builtin_registry(), preset, set);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// A preset made small, as far as it can be.
inline Settings small_settings(const Preset& preset) { return reclab::small_settings(builtin_registry(), preset); }

/// The number of sweeps over each model: RECLAB_SWEEP_COPIES, to measure how long the sweeps would take with so many times as many models.
inline int copies() {
  const char* text = std::getenv("RECLAB_SWEEP_COPIES");
  return text ? std::max(1, std::atoi(text)) : 1;
}

/// Where RECLAB_MEASURE is set, a program prints the largest errors of each architecture as it ends: "measured: lstm outputs 1.1e-15
/// states 2.0e-16".
class Measured {
 public:
  ~Measured() {
    for (const auto& [id, errors] : worst_) {
      std::printf("measured: %s", id.c_str());
      for (const auto& [what, error] : errors) std::printf(" %s %.1e", what.c_str(), error);
      std::printf("\n");
    }
  }
  void add(const std::string& id, const std::string& what, double error) {
    double& worst = worst_[id][what];
    if (!(error <= worst)) worst = error;  // NaN too
  }

 private:
  std::map<std::string, std::map<std::string, double>> worst_;
};
inline void measured(const std::string& id, const std::string& what, double error) {
  static Measured all;
  static const bool wanted = std::getenv("RECLAB_MEASURE") != nullptr;
  if (wanted) all.add(id, what, error);
}

/// A case a model, named "<sweep>: <model>".
inline void add_case(const std::string& family, const std::string& sweep, const std::string& model, const std::function<void()>& body) {
  for (int copy = 0; copy < copies(); ++copy) cases().push_back({sweep + ": " + model + (copy ? " again" : ""), body, family});
}

inline bool sweep_presets(const std::string& name, void (*body)(const Preset&)) {
  for (const Preset& preset : shipped().presets()) add_case(preset.family, name, preset.id, [&preset, body] { body(preset); });
  return true;
}
inline bool sweep_architectures(const std::string& name, void (*body)(const Architecture&)) {
  for (const Architecture& architecture : builtin_registry().all())
    add_case(architecture.family, name, architecture.id, [&architecture, body] { body(architecture); });
  return true;
}

/// Every primitive, with each of its own choices.
inline std::vector<Preset> primitive_presets() {
  std::vector<Preset> all;
  for (const std::string& id : primitive_names()) {
    all.push_back(primitive_preset(id));
    for (const HyperSpec& row : primitives().find(id).hyper) {
      if (row.key == "direction") continue;  // the network's, round any architecture
      for (const std::string& choice : row.choices)
        if (row.standard != HyperValue(choice)) {
          all.push_back(primitive_preset(id));
          all.back().id += " " + row.key + "=" + choice;
          all.back().hyper.emplace_back(row.key, choice);
        }
    }
  }
  return all;
}

/// The operations by which a model goes over time, in all its forms: their types, the evaluation order of each, and whether in complex
/// numbers.
using OverTimes = std::set<std::tuple<std::type_index, std::uintptr_t, bool>>;
inline OverTimes over_time(const Architecture& architecture, const Hyper& hyper, std::int64_t input) {
  OverTimes kinds;
  const Network one(architecture, hyper, {.input = input});
  for (const Form form : one.forms()) {
    Network network(architecture, hyper, {.input = input, .form = form});
    network.graph().visit([&](const Operation& operation, std::span<const Var>, std::span<const Var> out) {
      const auto* goes = dynamic_cast<const HasEvaluationOrder*>(&operation);
      if (goes)
        kinds.insert({typeid(operation), reinterpret_cast<std::uintptr_t>(goes->evaluation_order().draw),
                      !out.empty() && is_complex(out[0].dtype())});
    });
  }
  return kinds;
}
/// The operations of the primitives, whose sweep over forms and lengths is never shortened (tests/engine/sweeps/test_forms.cpp).
inline const OverTimes& over_time_of_primitives() {
  static const OverTimes all = [] {
    OverTimes kinds;
    for (const Preset& preset : primitive_presets()) {
      const Hyper hyper = hyper_of(primitives(), preset);
      kinds.merge(over_time(primitives().find(preset.architecture), hyper, primitive_input(preset.architecture, hyper, 4, 1).width));
    }
    return kinds;
  }();
  return all;
}
/// Whether a long sweep takes all its lengths and settings for this model: with --thorough, and where it goes over time with something that
/// no primitive has. For a model that is composed of primitives alone, the short sweep shows that it is composed rightly.
inline bool in_full(const Architecture& architecture, const Hyper& hyper) {
  if (thorough()) return true;
  return !std::ranges::includes(over_time_of_primitives(), over_time(architecture, hyper, 1));
}
inline bool in_full(const Preset& preset) {
  return in_full(*architecture_of(builtin_registry(), preset), hyper_of(builtin_registry(), preset));
}

}  // namespace reclab::test

/// SWEEP_PRESETS("name of the case", preset) { ... }, SWEEP_ARCHITECTURES("name of the case", architecture) { ... }
#define SWEEP_PRESETS(name, preset)                                            \
  static void RECLAB_JOIN(sweep_body_, __LINE__)(const ::reclab::Preset&);     \
  [[maybe_unused]] static const bool RECLAB_JOIN(swept_, __LINE__) =           \
      ::reclab::test::sweep_presets(name, RECLAB_JOIN(sweep_body_, __LINE__)); \
  static void RECLAB_JOIN(sweep_body_, __LINE__)([[maybe_unused]] const ::reclab::Preset& preset)
#define SWEEP_ARCHITECTURES(name, architecture)                                      \
  static void RECLAB_JOIN(sweep_body_, __LINE__)(const ::reclab::Architecture&);     \
  [[maybe_unused]] static const bool RECLAB_JOIN(swept_, __LINE__) =                 \
      ::reclab::test::sweep_architectures(name, RECLAB_JOIN(sweep_body_, __LINE__)); \
  static void RECLAB_JOIN(sweep_body_, __LINE__)([[maybe_unused]] const ::reclab::Architecture& architecture)
