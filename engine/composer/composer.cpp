// SPDX-License-Identifier: GPL-3.0-or-later
#include "composer/composer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>

#include "array/error.h"
#include "experiment/command/command.h"
#include "models/parts/composition/codes.h"
#include "models/registry.h"

namespace reclab {
namespace {

using Picture = Composition::Picture;
constexpr std::int64_t keys = 4, values = 5;  // of the memory on a tile

/// Numbers without a pattern, from 0.25 to 1.
double scattered(std::int64_t i) { return 0.25 + 0.75 * std::fmod(0.618034 * static_cast<double>(7 * i + 3), 1.0); }

template <class Value>
Picture matrix(Value value) {
  Picture made{keys, values, {}};
  for (std::int64_t key = 0; key < keys; ++key)
    for (std::int64_t column = 0; column < values; ++column) made.values.push_back(value(key, column));
  return made;
}
template <class Value>
Picture curve(double from, double to, Value value) {
  constexpr std::int64_t points = 49;
  Picture made{1, points, {}};
  for (std::int64_t i = 0; i < points; ++i)
    made.values.push_back(value(from + (to - from) * static_cast<double>(i) / static_cast<double>(points - 1)));
  return made;
}

Picture part(bool dependent) {
  if (!dependent) return matrix([](auto key, auto column) { return scattered(values * key + column); });
  Picture column{keys, 1, {}};
  for (std::int64_t key = 0; key < keys; ++key) column.values.push_back(scattered(key));
  return column;
}

Picture oscillation(int number) {
  const auto by_key = [](std::int64_t key) { return scattered(key); };
  const auto by_value = [](std::int64_t column) { return scattered(column + 11); };
  switch (number) {
    case 0: return part(false);
    case 1: return matrix([&](auto key, auto column) { return by_key(key) * by_value(column); });
    case 2:
    case 5: return matrix([&](auto, auto column) { return by_value(column); });
    case 3:
    case 4: return matrix([&](auto key, auto) { return by_key(key); });
    case 6: return matrix([&](auto key, auto column) { return by_key(key) * scattered(values * key + column); });
    case 7: return matrix([&](auto key, auto column) { return by_value(column) * scattered(values * key + column); });
    case 8:
    case 9: return matrix([&](auto key, auto column) { return std::sqrt(by_key(key) * by_value(column)); });
    case 11: return curve(0.0, 9.5, [](double x) { return std::cos(x); });
    default: return matrix([](auto, auto) { return 1.0; });
  }
}

Picture activation(int number) {
  const auto of = [number](double x) {
    const double sigmoid = 1.0 / (1.0 + std::exp(-x)), elu = x > 0.0 ? x : std::expm1(x);
    switch (number) {
      case 1: return std::max(x, 0.0);
      case 2: return sigmoid;
      case 3: return 1.0 + elu;
      case 4: return x * sigmoid;
      case 5: return elu;
      case 6: return std::pow(std::max(x, 0.0), 2.0);
      case 7: return x * x;
      default: return x;
    }
  };
  return curve(-2.0, 2.0, of);
}

/// Short enough for a tile: g_t and h_t are gates by key and by value, z_t is a projection before its sigmoid.
constexpr std::array<std::string_view, 12> oscillation_signs{"A",          "g_t h_tᵀ",   "1 h_tᵀ", "g_t 1ᵀ", "a 1ᵀ", "1 bᵀ",
                                                             "z_t 1ᵀ ⊙ A", "1 z_tᵀ ⊙ A", "a z_tᵀ", "z_t bᵀ", "1",    "eⁱᶿ 1ᵀ"};

Composition::Choice tile(std::string_view row, const LcsmChoice& choice) {
  Composition::Choice made{.value = std::string(choice.name),
                           .sign = {},
                           .equation = std::string(choice.symbols),
                           .text = std::string(choice.text),
                           .dependent = choice.dependent,
                           .picture = {}};
  if (row == "oscillation") {
    made.sign = oscillation_signs[static_cast<std::size_t>(choice.number)];
    made.picture = oscillation(choice.number);
  } else if (row == "activation") {
    made.sign = choice.symbols;
    made.picture = activation(choice.number);
  } else {
    made.sign = choice.dependent ? (row == "expand" ? "e_t" : "s_t") : made.equation;
    made.picture = part(choice.dependent);
  }
  return made;
}

void put_rows(Composition& made, const Hyper& hyper) {
  for (const LcsmRow& row : lcsm_rows()) {
    Composition::Row tiles{std::string(row.key), std::string(row.title), std::string(row.text), {}, 0};
    for (const LcsmChoice& choice : row.choices) {
      if (choice.name == hyper.choice(row.key)) tiles.chosen = tiles.choices.size();
      tiles.choices.push_back(tile(row.key, choice));
    }
    made.rows.push_back(std::move(tiles));
  }
}

void put_numbers(Composition& made, const Hyper& hyper, const LcsmCode& code) {
  for (const HyperSpec& spec : hyper.table()) {
    if (spec.key != "tau") continue;
    const LcsmChoice& chosen = lcsm_rows()[1].choices[static_cast<std::size_t>(code.oscillation)];
    const bool used = chosen.symbols.find("τ") != std::string_view::npos;
    made.numbers.push_back({spec.key, spec.symbol, spec.text, hyper.real(spec.key), spec.low, spec.high,
                            used ? "" : "The oscillation \"" + std::string(chosen.name) + "\" has no " + spec.symbol + "."});
  }
}

/// "transnormerllm": of a title, and of an id that is written with minus signs.
std::string letters_of(std::string_view name) {
  std::string letters;
  for (const char one : name)
    if (std::isalnum(static_cast<unsigned char>(one))) letters += static_cast<char>(std::tolower(static_cast<unsigned char>(one)));
  return letters;
}

/// The preset of a model: that of its name, or else that of its architecture. Empty where there is neither.
std::string preset_of(std::string_view title, std::string_view architecture, const PresetLibrary& presets) {
  const auto& all = presets.presets();
  auto found = std::ranges::find(all, letters_of(title), [](const Preset& one) { return letters_of(one.id); });
  if (found == all.end()) found = std::ranges::find(all, architecture, &Preset::id);
  return found == all.end() ? std::string() : found->id;
}

/// The factors of every step of a run, which are the eigenvalues of its transition.
void put_factors(Composition& made, const Trace& trace) {
  made.command = trace.info.command;
  made.input = trace.info.input_name;
  made.seed = trace.info.seed;
  made.steps = trace.info.length;
  const TraceArray* spectrum = trace.find(key_of(Kind::spectrum, std::int64_t{0}));
  if (trace.info.outcome != Outcome::finished) {
    made.problem = trace.info.sentence;
  } else if (spectrum == nullptr || !spectrum->complex) {
    made.problem = "A run of this model has no eigenvalues.";
  } else {
    made.rows_of_factors = spectrum->shape[0];
    made.entries = spectrum->row_size();
    made.factors = *spectrum->complex;
  }
}

}  // namespace

CompositionPtr compose(const Registry& registry, const PresetLibrary& presets,
                       const std::vector<std::pair<std::string, std::string>>& settings_of, std::stop_token stop) {
  RunRequest request;
  request.preset = presets.find("lcsm");
  auto made = std::make_shared<Composition>();
  made->preset = request.preset.id;
  made->architecture = request.preset.architecture;

  const Hyper hyper = hyper_of(registry, request.preset, settings_of);
  const LcsmCode code = lcsm_code(hyper);
  made->code = to_string(code);
  made->equations = equation(code);
  put_rows(*made, hyper);
  put_numbers(*made, hyper, code);
  const NamedModel nearest = named(code, registry);
  made->nearest = {{nearest.title, preset_of(nearest.title, nearest.id, presets)}, {}, nearest.exact, nearest.differs};
  for (const std::string& other : nearest.also) made->nearest.also.push_back({other, preset_of(other, {}, presets)});
  for (const LcsmForm& form : exact_forms(code)) made->forms.push_back({std::string(to_string(form.form)), form.cost, form.depth});

  // Settings that a code does not name, as in the equations.
  made->others = {{"parameterisation", "linear"}, {"transition", "entries"}, {"use_tau", "true"}, {"o_learned", "true"}};
  made->settings = settings(code);
  for (const Composition::Number& number : made->numbers) made->settings.emplace_back(number.key, hyper.text(number.key));
  made->settings.insert(made->settings.end(), made->others.begin(), made->others.end());

  // The small run's command line names only settings that differ from the preset.
  Hyper said = hyper_of(registry, request.preset);
  for (const auto& [key, value] : made->settings)
    if (said.text(key) != value) request.set.emplace_back(key, value);
  request.sequence = make_task(request.preset.task, request.preset.task_options());
  request.recording.kinds = {Kind::spectrum};
  try {
    const TracePtr trace = run(registry, request, {}, stop).trace;
    if (trace->info.outcome == Outcome::cancelled) throw Cancelled();
    put_factors(*made, *trace);
    request.recording = {};  // the line makes a whole run, not its spectrum alone
    made->command = command_of(request, "cpu");
  } catch (const Error& error) {
    made->problem = error.sentence();
  }
  return made;
}

}  // namespace reclab
