// SPDX-License-Identifier: GPL-3.0-or-later
#include "trace/kinds.h"

#include <array>
#include <charconv>

#include "array/demand.h"

namespace reclab {
namespace {

constexpr std::array table{
#define RECLAB_KIND(name, form, stage, axes, unit, text) KindInfo{Kind::name, #name, form, stage, axes, unit, text},
#include "trace/kinds.inc"
#undef RECLAB_KIND
};

}  // namespace

std::span<const KindInfo> kind_table() { return table; }
const KindInfo& info_of(Kind kind) { return table[static_cast<std::size_t>(kind)]; }

std::string key_of(Kind kind) {
  RECLAB_DEMAND(info_of(kind).form == KeyForm::bare);
  return std::string(info_of(kind).name);
}
std::string key_of(Kind kind, std::int64_t layer) {
  RECLAB_DEMAND(info_of(kind).form == KeyForm::layer);
  return prefix_of(kind) + std::to_string(layer);
}
std::string key_of(Kind kind, std::int64_t layer, std::string_view name) {
  RECLAB_DEMAND(info_of(kind).form == KeyForm::named);
  std::string made = prefix_of(kind) + std::to_string(layer);
  made += '/';
  return made += name;
}
std::string key_of(Kind kind, std::string_view name) {
  RECLAB_DEMAND(info_of(kind).form == KeyForm::free);
  return prefix_of(kind) += name;
}

std::string prefix_of(Kind kind) {
  std::string made(info_of(kind).name);
  if (info_of(kind).form != KeyForm::bare) made += '/';
  return made;
}

std::optional<Key> parse_key(std::string_view key) {
  const std::string_view name = key.substr(0, key.find('/'));
  for (const KindInfo& row : table) {
    if (row.name != name) continue;
    Key parsed{row.kind};
    if (row.form == KeyForm::bare) return key == name ? std::optional(parsed) : std::nullopt;
    if (key.size() < name.size() + 2) return {};
    std::string_view rest = key.substr(name.size() + 1);
    if (row.form != KeyForm::free) {
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), parsed.layer);
      if (error != std::errc() || parsed.layer < 0) return {};
      rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
      if (row.form == KeyForm::layer) return rest.empty() ? std::optional(parsed) : std::nullopt;
      if (rest.size() < 2 || rest[0] != '/') return {};
      rest.remove_prefix(1);
    }
    parsed.name = rest;
    return parsed;
  }
  return {};
}

Kinds kinds_of(Stage stage) {
  Kinds all;
  for (const KindInfo& row : table)
    if (row.stage == stage) all.add({row.kind});
  return all;
}

Kinds recordable() { return kinds_of(Stage::always) | kinds_of(Stage::passing) | kinds_of(Stage::late); }

}  // namespace reclab
