// SPDX-License-Identifier: GPL-3.0-or-later
#include "trace/kinds.h"

#include <array>
#include <cassert>
#include <charconv>

namespace reclab {
namespace {

constexpr std::array table{
    KindInfo{Kind::input, "input", KeyForm::bare, Stage::always, "time, channel", "", "What the network reads."},
    KindInfo{Kind::output, "output", KeyForm::bare, Stage::always, "time, channel", "", "What the network returns."},
    KindInfo{Kind::target, "target", KeyForm::bare, Stage::always, "time, channel", "", "What the output should be where the mask is 1."},
    KindInfo{Kind::mask, "mask", KeyForm::bare, Stage::always, "time", "", "1 where the target counts."},
    KindInfo{Kind::state, "state", KeyForm::named, Stage::passing, "time, the state's own", "", "A state after each step."},
    KindInfo{Kind::gate, "gate", KeyForm::named, Stage::passing, "time, the gate's own", "", "A gate of each step."},
    KindInfo{Kind::signal, "signal", KeyForm::named, Stage::passing, "time, copy", "", "What a state that holds a past was written with."},
    KindInfo{Kind::basis, "basis", KeyForm::named, Stage::passing, "place, coefficient", "", "The functions whose coefficients such a state holds, and where they are given."},
    KindInfo{Kind::reconstruction, "reconstruction", KeyForm::named, Stage::passing, "time, copy", "",
             "How far what such a state says of the past is from what it was, and how far back it reaches."},
    KindInfo{Kind::newton, "newton", KeyForm::named, Stage::always, "iteration", "log10", "The residual of a Newton form, iteration by iteration."},
    KindInfo{Kind::param, "param", KeyForm::free, Stage::always, "the parameter's own", "", "The parameters, as weights that another run can be given."},
    KindInfo{Kind::gradient, "gradient", KeyForm::free, Stage::passing, "time; the parameter's own", "log10 of norms",
             "dL/ds_t as norms through time, dL/dx_t, and dL/dθ."},
    KindInfo{Kind::spectrum, "spectrum", KeyForm::layer, Stage::late, "time, eigenvalue", "", "The eigenvalues of a layer's transition."},
    KindInfo{Kind::jacobian, "jacobian", KeyForm::layer, Stage::late, "time, rank", "log10", "The largest singular values of ds_T/ds_t of a layer."},
    KindInfo{Kind::jacobian_min, "jacobian_min", KeyForm::layer, Stage::late, "time", "log10", "The smallest singular value of ds_T/ds_t of a layer."},
    KindInfo{Kind::timing, "timing", KeyForm::free, Stage::asked, "length", "", "What the forms of the model take at several lengths."},
    KindInfo{Kind::schedule, "schedule", KeyForm::free, Stage::asked, "", "", "Which piece of work of a form waits for which."},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i].kind != static_cast<Kind>(i)) return false;
  return true;
}
static_assert(in_order() && static_cast<std::size_t>(Kind::schedule) + 1 == table.size(), "a row for each kind, in the order of the enumeration");

}  // namespace

std::span<const KindInfo> kind_table() { return table; }
const KindInfo& info_of(Kind kind) { return table[static_cast<std::size_t>(kind)]; }

std::string key_of(Kind kind) {
  assert(info_of(kind).form == KeyForm::bare);
  return std::string(info_of(kind).name);
}
std::string key_of(Kind kind, std::int64_t layer) {
  assert(info_of(kind).form == KeyForm::layer);
  return prefix_of(kind) + std::to_string(layer);
}
std::string key_of(Kind kind, std::int64_t layer, std::string_view name) {
  assert(info_of(kind).form == KeyForm::named);
  std::string made = prefix_of(kind) + std::to_string(layer);
  made += '/';
  return made += name;
}
std::string key_of(Kind kind, std::string_view name) {
  assert(info_of(kind).form == KeyForm::free);
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
