// SPDX-License-Identifier: GPL-3.0-or-later
// The kinds of arrays that a trace can hold, from the one table of them, kinds.inc. Keys are made and taken apart here and nowhere else.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reclab {

enum class Kind : std::uint8_t {
#define RECLAB_KIND(name, form, stage, axes, unit, text) name,
#include "trace/kinds.inc"
#undef RECLAB_KIND
};

/// The part of a key after the name of its kind.
enum class KeyForm : std::uint8_t {
  bare,   ///< nothing: "input"
  layer,  ///< the number of a layer: "spectrum/0"
  named,  ///< that and a name: "gate/0/forget"
  free    ///< a name: "param/head/weight", "gradient/state/0/h"
};

/// The stage of a run that makes arrays of the kind.
enum class Stage : std::uint8_t {
  always,   ///< with every run, and at no cost worth asking
  passing,  ///< recorded where it is wanted, as the sequence passes
  late,     ///< computed where it is wanted, after the first results are published
  asked     ///< no part of a run: computed beside it, when asked for
};

struct KindInfo {
  Kind kind;
  std::string_view name;  ///< the start of its keys, and the name that --record takes
  KeyForm form;
  Stage stage;
  std::string_view axes, unit;  ///< of the arrays; "" where it counts nothing
  std::string_view text;        ///< one sentence on it
};

/// All kinds, in the order in which a run records them.
std::span<const KindInfo> kind_table();
const KindInfo& info_of(Kind kind);

/// "input", "spectrum/0", "gate/0/forget", "param/head/weight": the one of these that fits the kind's form (asserted).
std::string key_of(Kind kind);
std::string key_of(Kind kind, std::int64_t layer);
std::string key_of(Kind kind, std::int64_t layer, std::string_view name);
std::string key_of(Kind kind, std::string_view name);
/// The prefix that all keys of a kind have, and those of no other: "input", "gate/".
std::string prefix_of(Kind kind);

/// A key taken apart.
struct Key {
  Kind kind;
  std::int64_t layer = -1;  ///< -1: of none
  std::string name{};       ///< the rest of the key
};
std::optional<Key> parse_key(std::string_view key);

/// A set of kinds.
class Kinds {
 public:
  constexpr Kinds() = default;
  constexpr Kinds(std::initializer_list<Kind> kinds) {
    for (const Kind kind : kinds) bits_ |= bit(kind);
  }
  constexpr bool has(Kind kind) const { return (bits_ & bit(kind)) != 0; }
  constexpr bool has_all(Kinds others) const { return (others.bits_ & ~bits_) == 0; }
  constexpr bool has_any(Kinds others) const { return (others.bits_ & bits_) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr Kinds& add(Kinds others) { return bits_ |= others.bits_, *this; }
  constexpr Kinds& remove(Kinds others) { return bits_ &= ~others.bits_, *this; }
  constexpr Kind first() const { return static_cast<Kind>(std::countr_zero(bits_)); }  ///< in the table's order; of one that is not empty
  constexpr bool operator==(const Kinds&) const = default;
  friend constexpr Kinds operator|(Kinds a, Kinds b) { return a.add(b); }

 private:
  static constexpr std::uint64_t bit(Kind kind) { return std::uint64_t{1} << static_cast<unsigned>(kind); }
  std::uint64_t bits_ = 0;
};
Kinds kinds_of(Stage stage);
/// The kinds that a run can record: all but those computed beside it.
Kinds recordable();

}  // namespace reclab
