// SPDX-License-Identifier: GPL-3.0-or-later
// Runs of models in continuous time say so, with the rule by which they take steps, and the eigenvalues are those of the equation.
#include <algorithm>
#include <cmath>

#include "experiment/experiment.h"
#include "models/registry.h"
#include "test.h"
#include "trace/discretisation.h"

using namespace reclab;
using Complex = std::complex<double>;

namespace {

TracePtr run_of(const std::string& architecture, TaskSettings set, std::int64_t length = 12) {
  RunRequest request;
  request.preset.id = request.preset.architecture = architecture;
  request.set = std::move(set);
  request.sequence = make_task("noise", {.length = length, .seed = 1});
  return run(builtin_registry(), request, {}, {}).trace;
}

Discretisation rule_of(const SpectrumInfo& info) {
  for (const Discretisation& rule : discretisations(info.share))
    if (rule.name == info.rule) return rule;
  return {};
}
double parameter(const Trace& trace, const std::string& name, std::int64_t i) {
  return (*trace.find("param/0/" + name)->real)[static_cast<std::size_t>(i)];
}

}  // namespace

TEST_CASE("a diagonal system's eigenvalues are those of its parameters, also where the step hides turns") {
  for (const std::string rule : {"zoh", "bilinear"}) {
    const auto trace = run_of("s4d", {{"width", "3"}, {"state", "8"}, {"discretisation", rule}, {"dt_min", "0.5"}, {"dt_max", "0.9"}});
    const SpectrumInfo& info = trace->info.spectra[0];
    CHECK(info.continuous && !info.per_step);
    CHECK_EQUAL(info.rule, rule == "zoh" ? "exponential" : "bilinear");
    const auto& spectrum = *trace->find("spectrum/0")->complex;
    const TraceArray* flow = trace->find("flow/0");
    CHECK((flow != nullptr) == (rule == "zoh"));
    bool turned = false;
    for (std::int64_t i = 0; i < 12; ++i) {
      const double dt = std::exp(parameter(*trace, "log_dt", i / 4));
      const Complex w = dt * Complex(-std::exp(parameter(*trace, "log_A_real", i)), parameter(*trace, "A_imag", i)),
                    z = spectrum[static_cast<std::size_t>(i)];
      CHECK(std::abs(discrete(rule_of(info), w) - z) < 1e-14);
      CHECK(std::abs((flow ? (*flow->complex)[static_cast<std::size_t>(i)] : continuous(rule_of(info), z)) - w) <
            1e-13 * std::abs(w) + 1e-15);
      turned = turned || w.imag() > 3.2;
    }
    CHECK(turned);
  }
}

TEST_CASE("the eigenvalues of LegS are -1, -2, ... -N, whatever the share of the new state in a step") {
  for (const auto& [share, rule] : {std::pair{"0", "forward"}, {"0.5", "bilinear"}, {"1", "backward"}, {"0.7", "generalised"}}) {
    const auto trace = run_of("lssl", {{"width", "2"}, {"order", "4"}, {"gbt_alpha", share}});
    const SpectrumInfo& info = trace->info.spectra[0];
    CHECK_EQUAL(info.rule, rule);
    for (std::int64_t channel = 0; channel < 2; ++channel) {
      const double dt = std::exp(parameter(*trace, "log_dt", channel));
      std::vector<double> found;
      for (std::int64_t i = 0; i < 4; ++i) {
        const Complex w = continuous(rule_of(info), (*trace->find("spectrum/0")->complex)[static_cast<std::size_t>(4 * channel + i)]) / dt;
        CHECK(std::abs(w.imag()) < 1e-8);
        found.push_back(w.real());
      }
      std::ranges::sort(found);
      for (std::size_t i = 0; i < 4; ++i) CHECK_CLOSE(found[i], static_cast<double>(i) - 4.0, 1e-8);
    }
  }
}

TEST_CASE("what the continuous part of a normal plus low-rank matrix loses is its trace") {
  // Of S4's A all N eigenvalues sum to the trace: 2 Σ (Re Λ − |P|²).
  const auto trace = run_of("s4", {{"width", "1"}, {"state", "8"}});
  const SpectrumInfo& info = trace->info.spectra[0];
  CHECK(info.continuous && info.rule == "bilinear");
  Complex sum = 0.0;
  for (const Complex z : *trace->find("spectrum/0")->complex) sum += continuous(rule_of(info), z);
  double expected = 0.0;
  for (std::int64_t i = 0; i < 4; ++i)
    expected += 2.0 * (-std::exp(parameter(*trace, "A_real", i)) - std::pow(parameter(*trace, "P", 2 * i), 2) -
                       std::pow(parameter(*trace, "P", 2 * i + 1), 2));
  const double dt = std::exp(parameter(*trace, "inv_dt", 0));
  CHECK(std::abs(sum / dt - expected) < 1e-9 * std::abs(expected));
}

TEST_CASE("an Euler step of a nonlinear equation is one, several are not, and a model that is discrete from the start is none") {
  const auto one = run_of("ctrnn", {{"width", "4"}, {"unfolds", "1"}, {"feedback", "no"}, {"delta_t", "0.1"}, {"time_constant", "2"}});
  CHECK(one->info.spectra[0].continuous && one->info.spectra[0].rule == "forward");
  // Without feedback it leaks by 1/τ, over a step of Δt.
  for (const Complex z : *one->find("spectrum/0")->complex) CHECK(std::abs(continuous({"forward", 0.0}, z) + 0.1 / 2.0) < 1e-15);
  CHECK(!run_of("ctrnn", {{"width", "4"}, {"unfolds", "6"}})->info.spectra[0].continuous);
  for (const char* id : {"lru", "lstm", "elman"}) CHECK(!run_of(id, {{"width", "4"}})->info.spectra[0].continuous);
}

TEST_CASE("a transition that an input takes part in is no step of one rule") {
  CHECK(run_of("liquid-s4", {{"width", "2"}, {"state", "4"}, {"order", "2"}})->info.spectra[0].continuous);
  CHECK(!run_of("liquid-s4", {{"width", "2"}, {"state", "4"}, {"order", "0"}})->info.spectra[0].continuous);
}
