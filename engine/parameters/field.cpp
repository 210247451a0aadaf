// SPDX-License-Identifier: GPL-3.0-or-later
#include "parameters/field.h"

#include <algorithm>
#include <utility>

namespace reclab {

std::string flag_of(std::string key) {
  std::ranges::replace(key, '_', '-');
  return "--" + key;
}

HyperValue value_of(const Field& field, std::string_view text) {
  Field one = field;
  if (std::exchange(one.says, Field::Says::one) != Field::Says::one) {
    if (one.row.kind == HyperKind::integer)
      for (const std::string& name : names_of_list(text)) value_of(one, name);
    return std::string(text);
  }
  HyperSpec& row = one.row;
  switch (row.kind) {  // the default may be out of range: what nobody can choose
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
  if (field.says == Field::Says::names)
    for (const std::string& name : names_of_list(std::get<std::string>(value))) say(list_of_names({name}));
  else
    say(as_text(value));
  return words;
}

std::vector<std::string> names_of_list(std::string_view list) {
  std::vector<std::string> names(1);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '\\' && i + 1 < list.size() && list[i + 1] == ',')
      names.back() += list[++i];
    else if (list[i] == ',')
      names.emplace_back();
    else
      names.back() += list[i];
  }
  std::erase_if(names, [](const std::string& name) { return name.empty(); });
  return names;
}

std::string list_of_names(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) {
    if (!list.empty()) list += ',';
    for (const char c : name) list += c == ',' ? std::string("\\,") : std::string(1, c);
  }
  return list;
}

}  // namespace reclab
