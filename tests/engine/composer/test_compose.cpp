// SPDX-License-Identifier: GPL-3.0-or-later
// What the composer says of every code: its words are those of the code, and its small run has the factors of its memory.
#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "composer/composer.h"
#include "models/parts/composition/codes.h"
#include "models/registry.h"
#include "places.h"
#include "test.h"

using namespace reclab;

namespace {

const PresetLibrary& presets() {
  static const PresetLibrary library(builtin_registry(), {test::source("presets")});
  return library;
}

}  // namespace

TEST_CASE("every expand, oscillation and shrink is run, and said as the code says it") {
  for (int e = 0; e < 2; ++e)
    for (int o = 0; o < 12; ++o)
      for (int s = 0; s < 2; ++s) {
        const LcsmCode code{e, o, s, (e + o + s) % 8};
        const CompositionPtr made = compose(builtin_registry(), presets(), settings(code), {});
        CHECK_EQUAL(made->code, to_string(code));
        CHECK_SAYS(made->problem.empty(), made->code + ": " + made->problem.terminal_text());
        CHECK(made->equations == equation(code) && made->forms.size() == exact_forms(code).size() &&
              made->nearest.model.title == named(code, builtin_registry()).title);
        CHECK_EQUAL(static_cast<std::int64_t>(made->factors.size()), made->rows_of_factors * made->entries);
        CHECK(made->entries > 0 && (made->rows_of_factors == 1 || made->rows_of_factors == made->steps));
        // A rotation keeps everything and turns, ones keep everything, all others forget.
        for (const auto& factor : made->factors) {
          CHECK_SAYS(std::abs(factor) <= 1.0 + 1e-12, made->code);
          if (o >= 10) CHECK_SAYS(std::abs(std::abs(factor) - 1.0) < 1e-12, made->code);
          if (o != 11) CHECK_SAYS(factor.imag() == 0.0 && factor.real() >= 0.0, made->code);
        }
        if (o < 10) CHECK_SAYS(std::ranges::any_of(made->factors, [](const auto& factor) { return std::abs(factor) < 0.999; }), made->code);
        CHECK_EQUAL(made->numbers.size(), std::size_t{1});
        CHECK_EQUAL(made->numbers[0].unused.empty(), o < 10);
        for (std::size_t row = 0; row < made->rows.size(); ++row)
          CHECK_EQUAL(made->rows[row].choices.size(), lcsm_rows()[row].choices.size());
      }
}

TEST_CASE("a larger tau forgets more slowly, and is on the command line") {
  const auto slowest = [](const char* tau) {
    const CompositionPtr made = compose(builtin_registry(), presets(), {{"oscillation", "key-gates"}, {"tau", tau}}, {});
    CHECK_SAYS(made->command.find(std::string("--set tau=") + tau) != std::string::npos &&
                   made->command.find("--set oscillation=key-gates") != std::string::npos,
               made->command);
    double sum = 0.0;
    for (const auto& factor : made->factors) sum += factor.real();
    return sum / static_cast<double>(made->factors.size());
  };
  CHECK(slowest("1") < slowest("8") && slowest("8") < slowest("64"));
}

TEST_CASE("a named model has the preset that shows it, where there is one") {
  const auto nearest = [](const char* code) { return compose(builtin_registry(), presets(), settings(lcsm_code(code)), {})->nearest; };
  const Composition::Named gla = nearest("1-3-1-0"), retnet = nearest("1-4-1-0"), dur = nearest("1-1-1-0"), cosformer = nearest("1-11-1-1"),
                           hgrn = nearest("1-2-1-2");
  CHECK(gla.model.title == "GLA" && gla.model.preset == "gla" && gla.also.at(0).preset == "gateloop");
  CHECK(retnet.model.preset == "retnet" && retnet.also.at(0).preset == "transnormer-llm");
  CHECK(dur.model.preset == "dur" && dur.also.at(0).preset == "gfw");
  CHECK(cosformer.model.preset == "cosformer" && hgrn.model.preset == "hgrn" && hgrn.also.at(0).preset.empty());
}

TEST_CASE("a setting that there is not is refused") {
  for (const auto& [key, value] : {std::pair<std::string, std::string>{"oscillation", "plaid"}, {"tau", "-1"}, {"tartan", "1"}})
    CHECK_ERROR(compose(builtin_registry(), presets(), {{key, value}}, {}), key);
}
