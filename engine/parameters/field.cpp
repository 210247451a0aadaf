// SPDX-License-Identifier: GPL-3.0-or-later
#include "parameters/field.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "array/error.h"

namespace reclab {

std::string flag_of(std::string key) {
  std::ranges::replace(key, '_', '-');
  return "--" + key;
}

HyperValue value_of(const Field& field, std::string_view text) {
  if (field.wanted && field.says == Field::Says::one)
    if (const std::string wanted = field.wanted(text); !wanted.empty())
      throw Error(field.row.key + " = " + std::string(text) + " cannot be: give " + wanted + ".",
                  {.parameter = field.row.key, .value = std::string(text)});
  Field one = field;
  if (std::exchange(one.says, Field::Says::one) != Field::Says::one) {
    if (one.row.kind == HyperKind::integer || one.wanted)
      for (const std::string& name : names_of_list(text)) value_of(one, name);
    return std::string(text);
  }
  HyperSpec& row = one.row;
  switch (row.kind) {  // the default may be out of range, a value that cannot be chosen
    case HyperKind::flag: row.standard = false; break;
    case HyperKind::integer: row.standard = static_cast<std::int64_t>(row.low); break;
    case HyperKind::real: row.standard = row.low; break;
    case HyperKind::choice: row.standard = row.choices.empty() ? std::string() : row.choices.front(); break;
  }
  Hyper read({row});
  read.set_text(row.key, text, "the field");
  return read.value(row.key);
}

std::vector<std::string> words_of(const Field& field, const HyperValue& value) {
  if (!field.always && value == field.row.standard) return {};
  if (field.row.kind == HyperKind::flag) return {field.flag};
  std::vector<std::string> words;
  const auto say = [&](const std::string& text) {
    // A value that begins with a minus would be taken for an option of its own.
    if (text.starts_with('-')) {
      words.push_back(field.flag + "=" + text);
    } else {
      words.push_back(field.flag);
      words.push_back(text);
    }
  };
  if (field.says == Field::Says::names || field.says == Field::Says::texts)
    for (const std::string& name : names_of_list(std::get<std::string>(value)))
      say(field.says == Field::Says::texts ? name : list_of_names({name}));
  else
    say(as_text(value));
  return words;
}

std::string wanted_seed(std::string_view text) {
  std::uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec == std::errc() && end.ptr == text.data() + text.size()) return {};
  return "an integer from 0 to " + std::to_string(std::numeric_limits<std::uint64_t>::max());
}

std::uint64_t seed_of(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::function<std::string(std::string_view)> wanted_one_of(std::vector<std::string> choices) {
  return [choices = std::move(choices)](std::string_view text) {
    std::string known;
    if (std::ranges::find(choices, text) != choices.end()) return known;
    for (const std::string& choice : choices) known += (known.empty() ? "" : " or ") + choice;
    return known;
  };
}

std::function<std::string(std::string_view)> wanted_pair(std::string example) {
  return [example = std::move(example)](std::string_view text) {
    const std::size_t equals = text.find('=');
    return equals == std::string_view::npos || equals == 0 ? "key=value, as in " + example : std::string();
  };
}

std::pair<std::string, std::string> pair_of(std::string_view text) {
  const std::size_t equals = text.find('=');
  return {std::string(text.substr(0, equals)), equals == std::string_view::npos ? std::string() : std::string(text.substr(equals + 1))};
}

std::vector<std::string> names_of_pairs(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<std::string> names;
  for (const auto& [key, value] : pairs) names.push_back(key + "=" + value);
  return names;
}

std::vector<std::string> names_of_list(std::string_view list) {
  std::vector<std::string> names(1);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::size_t run = std::min(list.find_first_not_of('\\', i), list.size()) - i;
    if (run > 0 && i + run < list.size() && list[i + run] == ',') {
      names.back().append(run / 2, '\\');
      if (run % 2 == 1)
        names.back() += ',';
      else
        names.emplace_back();
      i += run;
    } else if (list[i] == ',') {
      names.emplace_back();
    } else {
      names.back() += list[i];
    }
  }
  std::erase_if(names, [](const std::string& name) { return name.empty(); });
  return names;
}

std::string list_of_names(const std::vector<std::string>& names) {
  std::string list;
  std::size_t run = 0;  // of backslashes, at the end of the list
  const auto comma = [&](bool in_name) {
    list.append(run + in_name, '\\');
    list += ',';
    run = 0;
  };
  for (const std::string& name : names) {
    if (&name != &names.front()) comma(false);
    for (const char c : name) {
      if (c == ',') {
        comma(true);
        continue;
      }
      run = c == '\\' ? run + 1 : 0;
      list += c;
    }
  }
  return list;
}

}  // namespace reclab
