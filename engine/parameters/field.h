// SPDX-License-Identifier: GPL-3.0-or-later
// The fields of a computation, as data. Each is the row that hyper-parameters have, and how it is said: from it come an option of the
// command line with its help, the words that repeat it, its value in a file, and its row in a form.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parameters/hyper.h"

namespace reclab {

/// The editor of an option in a window; without a label it has none.
struct FormRow {
  std::string label, tip;
  double low = 0.0, high = 0.0;      ///< of a number
  std::vector<std::string> choices;  ///< labels of the row's choices
};

struct Field {
  /// Its syntax on a command line: as one value, as a list between commas, as a list of names with an option each, or as whole texts,
  /// commas and all, with an option each. The value of a list is a text, its names, or the integers of the row, between commas; a comma
  /// inside a name stands behind a backslash.
  enum class Says : std::uint8_t { one, list, names, texts };

  /// The sequences that it is for.
  enum class Of : std::uint8_t { any, file, task };

  HyperSpec row;           ///< `key`: its name in files that are kept, "weight_decay"; `text`: of --help; a choice of no choices is a text
  bool above_low = false;  ///< `low` itself is out of range
  std::optional<std::string> usual{};  ///< in brackets behind the help; empty: nothing is; none: the default
  FormRow form{};
  std::string flag{};      ///< "--weight-decay"; empty: the command line does not have it
  std::string argument{};  ///< the name of its value in --help, "X"
  Says says = Says::one;
  Of of = Of::any;
  std::string why{};    ///< the reason why it is for no other sequences: "a file is as long as it is"
  bool always = false;  ///< in the line that repeats it where it has its default too
  bool output = false;  ///< the place of the result, and no part of the computation
  /// The texts, or names of a list, that are good, "yes or no", where this one is not; empty where it is. Beside the row's own range.
  std::function<std::string(std::string_view)> wanted{};
};

/// "--weight-decay" of "weight_decay".
std::string flag_of(std::string key);
/// The value of a text from a file or a person, checked against the row. Throws Error.
HyperValue value_of(const Field& field, std::string_view text);
/// The words of a command line that set this value; none for a default that need not be said.
std::vector<std::string> words_of(const Field& field, const HyperValue& value);

/// A whole number from 0 on, as `wanted` of a field and as its value; 0 of a text that is none.
std::string wanted_seed(std::string_view text);
std::uint64_t seed_of(std::string_view text);
/// Whether it is one of these, as `wanted` of a field.
std::function<std::string(std::string_view)> wanted_one_of(std::vector<std::string> choices);
/// Whether the texts of a list, "key=value", have a key, as `wanted` of a field; `example`: one. And such a text as a pair.
std::function<std::string(std::string_view)> wanted_pair(std::string example);
std::pair<std::string, std::string> pair_of(std::string_view text);
std::vector<std::string> names_of_pairs(const std::vector<std::pair<std::string, std::string>>& pairs);

/// The names of a list as an option takes it, "a,b", and back. Before a comma a backslash makes it part of the name, and two are one.
std::vector<std::string> names_of_list(std::string_view list);
std::string list_of_names(const std::vector<std::string>& names);

/// Values by their keys, as text, the same for a file, a command line and a window.
using FieldTexts = std::vector<std::pair<std::string, std::string>>;

/// A field of a struct, and where in it the value lies.
template <class Plan>
struct PlanField : Field {
  std::function<HyperValue(const Plan&)> get{};
  std::function<void(Plan&, const HyperValue&)> set{};
  std::function<bool(const Plan&)> applies{};  ///< whether it does anything, beside the others; empty: it always does
};

/// A field whose value is the member of(plan), a HyperValue of the type T. Its default is that of the struct.
template <class Plan, class T, class Of>
PlanField<Plan> plan_field(std::string flag, std::string argument, HyperSpec row, Of of) {
  PlanField<Plan> made;
  made.row = std::move(row);
  made.flag = std::move(flag);
  made.argument = std::move(argument);
  made.get = [of](const Plan& plan) { return HyperValue(T(of(plan))); };
  made.set = [of](Plan& plan, const HyperValue& value) { of(plan) = std::get<T>(value); };
  made.row.standard = made.get(Plan());
  return made;
}

template <class Plan, class Of>
PlanField<Plan> count_field(std::string flag, std::string argument, std::string key, std::int64_t low, std::int64_t high, std::string text,
                            Of of) {
  return plan_field<Plan, std::int64_t>(std::move(flag), std::move(argument),
                                        hyper_integer(std::move(key), {}, low, low, high, std::move(text)), of);
}

/// A field whose value is a text: `get` gives it, empty where nothing need be said; `set` takes it, `wanted` having found it good.
template <class Plan, class Get, class Set>
PlanField<Plan> text_field(std::string flag, std::string argument, std::string key, std::string text, Get get, Set set) {
  PlanField<Plan> made;
  made.row = hyper_choice(std::move(key), {}, {}, std::move(text));
  made.flag = std::move(flag);
  made.argument = std::move(argument);
  made.usual = "";
  made.get = [get](const Plan& plan) { return HyperValue(std::string(get(plan))); };
  made.set = [set](Plan& plan, const HyperValue& value) { set(plan, std::get<std::string>(value)); };
  return made;
}

/// A field whose value is a list; `get` and `set` take it as names.
template <class Plan, class Get, class Set>
PlanField<Plan> list_field(std::string flag, std::string key, Field::Says says, std::string text, Get get, Set set) {
  PlanField<Plan> made;
  made.row = hyper_choice(std::move(key), {}, {}, std::move(text));
  made.flag = std::move(flag);
  made.argument = says == Field::Says::texts ? "KEY=VALUE" : "A,B";
  made.says = says;
  made.get = [get](const Plan& plan) { return HyperValue(list_of_names(get(plan))); };
  made.set = [set](Plan& plan, const HyperValue& value) { set(plan, names_of_list(std::get<std::string>(value))); };
  made.row.standard = made.get(Plan());
  return made;
}

/// A field of a struct as one of a struct that derives from it.
template <class Plan, class Base>
PlanField<Plan> of_derived(const PlanField<Base>& field) {
  PlanField<Plan> made{static_cast<const Field&>(field)};
  made.get = field.get;
  made.set = field.set;
  if (field.applies) made.applies = field.applies;
  return made;
}

/// The plan of these values; fields that are not among them have their defaults, and keys of no field are left alone. Throws Error for a
/// value.
template <class Plan>
Plan plan_of(const std::vector<PlanField<Plan>>& fields, const FieldTexts& values) {
  Plan plan;
  for (const auto& [key, text] : values)
    for (const PlanField<Plan>& field : fields)
      if (field.row.key == key) field.set(plan, value_of(field, text));
  return plan;
}

}  // namespace reclab
