// SPDX-License-Identifier: GPL-3.0-or-later
#include "sweeps/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "array/error.h"
#include "array/rng.h"
#include "experiment/command/command.h"
#include "files/files.h"
#include "files/json.h"
#include "measures/measure.h"
#include "parameters/nearest.h"

namespace reclab {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::int64_t most_cells = 10'000'000;

/// One object of the plan: its keys are asked for, and others are refused.
class PlanObject {
 public:
  PlanObject(const Json& json, std::string file, std::string place) : json_(json), file_(std::move(file)), place_(std::move(place)) {
    if (!json.is_object()) mistake({}, "has to be an object in braces, not " + json.dump() + ".");
  }
  [[noreturn]] void mistake(const std::string& key, const std::string& sentence) const {
    const std::string place = key.empty() ? place_ : place_.empty() ? key : place_ + "." + key;
    throw Error(file_ + ": " + (place.empty() ? "the plan" : printable(place)) + " " + sentence, {.file = file_, .place = place});
  }
  const Json* find(const std::string& key) {
    asked_.push_back(key);
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  const Json& need(const std::string& key, const std::string& example) {
    const Json* value = find(key);
    if (!value) mistake(key, "is missing; write " + example + ".");
    return *value;
  }
  double number(const std::string& key, const std::string& example) {
    const Json& value = need(key, example);
    if (!value.is_number()) mistake(key, "is " + value.dump() + ", which is no number; write " + example + ".");
    return value.get<double>();
  }
  std::int64_t count(const std::string& key, const std::string& example, std::int64_t low) {
    const Json& value = need(key, example);
    if (!value.is_number_integer() || value < low || value > most_cells)
      mistake(key, "is " + value.dump() + "; it is an integer from " + std::to_string(low) + " to " + std::to_string(most_cells) + ".");
    return value.get<std::int64_t>();
  }
  void nothing_else() const {
    for (const auto& [key, value] : json_.items())
      if (std::ranges::find(asked_, key) == asked_.end())
        mistake(key, "is no key here; did you mean " + nearest_names(key, asked_, 1) + "? Leave it out otherwise.");
  }

 private:
  const Json& json_;
  std::string file_, place_;
  std::vector<std::string> asked_;
};

HyperValue value_of_json(const Json& json, const PlanObject& object, const std::string& key) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) return json.dump();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string() && !json.get_ref<const std::string&>().empty()) return json.get<std::string>();
  object.mistake(key, "has " + json.dump() + "; values are numbers, true, false, and texts in quotes.");
}

std::vector<HyperValue> values_of_list(const Json& json, const PlanObject& object, const std::string& key) {
  if (!json.is_array() || json.empty()) object.mistake(key, "is " + json.dump() + "; write a list of values, [1, 2, 3].");
  std::vector<HyperValue> values;
  for (const Json& one : json) values.push_back(value_of_json(one, object, key));
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::find(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(i), values[i]) !=
        values.begin() + static_cast<std::ptrdiff_t>(i))
      object.mistake(key, "has " + as_text(values[i]) + " twice; leave one of them out.");
  return values;
}

/// from, to, scale and whole: the value at a share of the range, from 0 to 1.
class PlanRange {
 public:
  explicit PlanRange(PlanObject& object) {
    from_ = object.number("from", "\"from\": 1");
    to_ = object.number("to", "\"to\": 100");
    if (!(from_ < to_)) object.mistake("to", "has to be more than \"from\".");
    if (const Json* scale = object.find("scale")) {
      if (*scale != "log" && *scale != "linear") object.mistake("scale", "is " + scale->dump() + "; it is \"linear\" or \"log\".");
      log_ = *scale == "log";
    }
    if (log_ && from_ <= 0.0) object.mistake("from", "has to be more than 0 on a scale that is \"log\".");
    if (const Json* whole = object.find("whole")) {
      if (!whole->is_boolean()) object.mistake("whole", "is " + whole->dump() + "; it is true or false.");
      whole_ = whole->get<bool>();
    }
    if (whole_ && (from_ != std::floor(from_) || to_ != std::floor(to_) || std::max(-from_, to_) > 1e15))
      object.mistake("whole", "is true, and so \"from\" and \"to\" have to be integers.");
  }
  HyperValue spaced(double share) const { return share <= 0.0 ? rounded(from_) : share >= 1.0 ? rounded(to_) : rounded(at(share)); }
  /// Of a draw from [0, 1); an integer as likely as the others where the scale is linear.
  HyperValue drawn(double share) const {
    if (!whole_) return rounded(at(share));
    const double low = log_ ? std::max(from_ - 0.5, 0.5) : from_, high = log_ ? to_ + 0.5 : to_ + 1.0;
    const double value = log_ ? std::floor(low * std::pow(high / low, share) + 0.5) : std::floor(low + (high - low) * share);
    return static_cast<std::int64_t>(std::clamp(value, from_, to_));
  }

 private:
  double at(double share) const { return log_ ? from_ * std::pow(to_ / from_, share) : from_ + (to_ - from_) * share; }
  HyperValue rounded(double value) const {
    if (whole_) return static_cast<std::int64_t>(std::llround(value));
    return value;
  }
  double from_ = 0.0, to_ = 1.0;
  bool log_ = false, whole_ = false;
};

SweepAxis axis_of(const std::string& name, const Json& json, PlanObject& axes, const std::string& file) {
  SweepAxis axis{.name = name, .values = {}};
  if (json.is_array()) {
    axis.values = values_of_list(json, axes, name);
    return axis;
  }
  if (!json.is_object())
    axes.mistake(name, "is " + json.dump() + R"(; write a list, [1, 2], or a range, {"from": 1, "to": 100, "count": 5}.)");
  PlanObject object(json, file, "axes." + name);
  axis.drawn = object.find("random") != nullptr;
  if (!axis.drawn) {
    const PlanRange range(object);
    const std::int64_t count = object.count("count", "\"count\": 5", 2);
    for (std::int64_t i = 0; i < count; ++i) {
      axis.values.push_back(range.spaced(static_cast<double>(i) / static_cast<double>(count - 1)));
      if (i > 0 && axis.values[static_cast<std::size_t>(i)] == axis.values[static_cast<std::size_t>(i - 1)])
        object.mistake("count", "is " + std::to_string(count) + ", and the range has fewer integers so far apart; give less.");
    }
    object.nothing_else();
    return axis;
  }
  const std::int64_t count = object.count("random", "\"random\": 20", 1);
  const std::int64_t seed = object.find("seed") ? object.count("seed", "\"seed\": 1", 0) : 1;
  Rng rng = Rng(static_cast<std::uint64_t>(seed)).split(name);  // draws of one axis stay when another is added, or more are asked for
  if (const Json* of = object.find("of")) {
    const std::vector<HyperValue> all = values_of_list(*of, object, "of");
    for (std::int64_t i = 0; i < count; ++i)
      axis.values.push_back(all[static_cast<std::size_t>(rng.integer(static_cast<std::int64_t>(all.size())))]);
  } else {
    const PlanRange range(object);
    for (std::int64_t i = 0; i < count; ++i) axis.values.push_back(range.drawn(rng.uniform()));
  }
  object.nothing_else();
  return axis;
}

/// The line with one more option, or another value of it.
TypedRun with_value(TypedRun run, const std::string& name, const HyperValue& value) {
  const std::string text = as_text(value);
  if (name == "preset") {
    run.id = text;
    return run;
  }
  const std::size_t dot = name.find('.');
  const std::string option = name.substr(0, dot), flag = flag_of(option);
  if (dot != std::string::npos) {
    if (option != "set" && option != "task-set")
      throw Error("\"" + printable(name) + "\" has a dot, and only set.KEY and task-set.KEY have one.", {.parameter = name});
    return with_options(std::move(run), std::vector{flag, name.substr(dot + 1) + "=" + text});
  }
  run.given.erase(flag);
  if (const auto* flagged = std::get_if<bool>(&value)) return *flagged ? with_options(std::move(run), std::vector{flag}) : run;
  return with_options(std::move(run), std::vector{flag, text});
}

void check_measure(const std::string& measure, bool trains) {
  std::vector<std::string> known;
  for (const auto& [one, text] : training_measures())
    if (trains) known.push_back(one);
  for (const MeasureInfo& one : measures()) known.push_back(one.name);
  const Measuring checked = [&](const std::string& name) {
    const std::string first = name.substr(0, name.find(' '));
    if (std::ranges::find(known, first) == known.end())
      throw Error("there is no measure \"" + printable(first) + "\"; did you mean " + nearest_names(first, known, 1) + "?", {});
    return 1.0;
  };
  const bool is_name = std::ranges::all_of(measure.substr(0, measure.find(' ')), [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
  is_name ? checked(measure) : value_of(measure, checked);
}

}  // namespace

const std::vector<std::pair<std::string, std::string>>& training_measures() {
  static const std::vector<std::pair<std::string, std::string>> all{
      {"loss", "Of a training the loss of what is held out, after the last step."},
      {"metric", "The task's metric of what is held out, after the last step."},
      {"baseline", "The loss of the best constant output there."},
      {"baseline_metric", "Its metric."},
      {"batch_loss", "The loss of the last batch, before the step that learned from it."},
      {"bits", "What the outputs say of the classes of a held-out sequence, in bits beyond how often each class is there."},
      {"steps", "The steps of the training."}};
  return all;
}

double value_of(const std::string& measure, const Measuring& measuring) {
  const bool own = std::ranges::any_of(training_measures(), [&](const auto& one) { return one.first == measure; });
  return own ? measuring(measure) : evaluate(measure, measuring);
}

std::int64_t SweepPlan::cells() const {
  std::int64_t product = 1;
  bool drawn = false;
  for (const SweepAxis& axis : axes) {
    if (!std::exchange(drawn, drawn || axis.drawn) || !axis.drawn) product *= static_cast<std::int64_t>(axis.values.size());
    if (product > most_cells) break;
  }
  return product;
}

std::vector<HyperValue> SweepPlan::values(std::int64_t cell) const {
  std::vector<HyperValue> all(axes.size());
  std::optional<std::int64_t> draw;
  for (std::size_t i = axes.size(); i-- > 0;) {
    const SweepAxis& axis = axes[i];
    const auto count = static_cast<std::int64_t>(axis.values.size());
    std::int64_t at = 0;
    if (axis.drawn && draw) {
      at = *draw;
    } else {
      at = cell % count;
      cell /= count;
      if (axis.drawn) draw = at;
    }
    all[i] = axis.values[static_cast<std::size_t>(at)];
  }
  return all;
}

TypedRun SweepPlan::line(std::int64_t cell) const {
  TypedRun run = base;
  const std::vector<HyperValue> at = values(cell);
  for (std::size_t i = 0; i < axes.size(); ++i) run = with_value(std::move(run), axes[i].name, at[i]);
  return run;
}

SweepPlan sweep_plan(std::string_view json, const std::string& file) {
  const Json root = json_of_text<Json>(json, file);
  SweepPlan plan;
  plan.json = json;
  PlanObject object(root, file, {});
  const std::string example = R"("base": "reclab train lstm --task adding --steps 50")";
  const Json& base = object.need("base", example);
  if (!base.is_string()) object.mistake("base", "is " + base.dump() + "; write " + example + ".");
  try {
    plan.base = typed_run(base.get<std::string>());
  } catch (const Error& error) {
    object.mistake("base", std::string(": ") + error.what());
  }
  const Json& axes = object.need("axes", R"("axes": {"seed": [1, 2, 3]})");
  PlanObject of_axes(axes, file, "axes");
  const SweepAxis* drawn = nullptr;
  for (const auto& [name, value] : axes.items()) {
    plan.axes.push_back(axis_of(name, value, of_axes, file));
    try {
      for (const HyperValue& one : plan.axes.back().values) {
        with_value(plan.base, name, one);
        if (plan.axes.back().values.size() > 1000) break;  // each is looked at again with its cells
      }
    } catch (const Error& error) {
      of_axes.mistake(name, std::string("cannot vary: ") + error.what());
    }
  }
  for (const SweepAxis& axis : plan.axes) {
    if (axis.drawn && drawn && axis.values.size() != drawn->values.size())
      of_axes.mistake(axis.name + ".random", "is " + std::to_string(axis.values.size()) + ", and that of " + drawn->name + " is " +
                                                 std::to_string(drawn->values.size()) +
                                                 "; random axes are drawn together, so give all the same.");
    if (axis.drawn && !drawn) drawn = &axis;
  }
  if (plan.cells() > most_cells) of_axes.mistake({}, "make more than " + std::to_string(most_cells) + " cells; give fewer values.");
  if (const Json* measured = object.find("measure")) {
    if (!measured->is_array() || measured->empty()) object.mistake("measure", R"(is a list of names; write ["loss"].)");
    for (const Json& one : *measured) {
      if (!one.is_string()) object.mistake("measure", "has " + one.dump() + R"(, which is no name; write ["loss"].)");
      plan.measures.push_back(one.get<std::string>());
      try {
        check_measure(plan.measures.back(), plan.base.trains);
      } catch (const Error& error) {
        object.mistake("measure", std::string(": ") + error.what());
      }
      if (std::ranges::count(plan.measures, plan.measures.back()) > 1)
        object.mistake("measure", "has " + one.dump() + " twice; leave one of them out.");
    }
  } else {
    plan.measures = {"loss"};
  }
  if (const Json* keep = object.find("keep")) {
    if (*keep != "training" || !plan.base.trains)
      object.mistake("keep", R"(is )" + keep->dump() + R"(; it is "training", of a base that trains, or left out.)");
    plan.keeps_trainings = true;
  }
  object.nothing_else();
  return plan;
}

}  // namespace reclab
