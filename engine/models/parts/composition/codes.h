// SPDX-License-Identifier: GPL-3.0-or-later
// The codes of linear-complexity sequence models: a recurrence that is linear in its memory, chosen by how it expands, oscillates and
// shrinks.
//   m_t = o_t * m_{t-1} + e_t i_t^T in R^{k x d},   y_t = m_t^T s_t
// Z. Qin et al., Unlocking the secrets of linear complexity sequence model from a unified perspective, 2024: sections 2.2 to 2.5, tables 1
// to 3.
#pragma once

#include <compare>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/registry.h"
#include "parameters/hyper.h"
#include "recurrence/memory.h"

namespace reclab {

/// e-o-s-a: each number is a choice of the row of its name.
struct LcsmCode {
  int expand = 1, oscillation = 3, shrink = 1, activation = 0;
  auto operator<=>(const LcsmCode&) const = default;
};

/// One choice of a row.
struct LcsmChoice {
  int number;
  std::string_view name;     ///< its name for --set and presets: "dependent"
  std::string_view symbols;  ///< its part of the equations
  std::string_view text;     ///< one sentence
  bool dependent;            ///< on the data
};
struct LcsmRow {
  std::string_view key, title, text;  ///< "expand", "Expand", one sentence
  std::span<const LcsmChoice> choices;
};
/// Expand, oscillation, shrink, activation: 2, 12, 2 and 8 choices.
std::span<const LcsmRow> lcsm_rows();

std::string to_string(const LcsmCode& code);  ///< "1-9-1-0"
/// The code that a text names. Throws Error that says which part of it is wrong.
LcsmCode lcsm_code(std::string_view text);
std::vector<LcsmCode> all_lcsm_codes();  ///< 384, in order

/// The hyper-parameters of the architecture `lcsm` that say a code, and the code that they say.
std::vector<std::pair<std::string, std::string>> settings(const LcsmCode& code);
LcsmCode lcsm_code(const Hyper& hyper);

/// The equations of this code alone, line by line.
std::vector<std::string> equation(const LcsmCode& code);

/// The memory that a code is computed with, which decides its exact forms.
enum class LcsmMemory {
  outer,    ///< the written matrix, the factors of the memory and its queries are outer products or constant along an axis
  matrix,   ///< one of them is a k x d matrix of its own, and one depends on the data: entry by entry
  channels  ///< nothing depends on the data: a bank of systems, and a convolution
};
LcsmMemory lcsm_memory(const LcsmCode& code);

struct LcsmForm {
  Form form;
  std::string cost;   ///< operations, as an order in the steps T, the sizes k and d of the memory, and the steps c of a chunk: "O(T k d)"
  std::string depth;  ///< the longest chain of dependent operations: "T steps"
};
/// The forms that give the same numbers, the sequential one first: those that the architecture offers.
std::vector<LcsmForm> exact_forms(const LcsmCode& code);

/// A row of table 1 of the paper, seen from a code.
struct NamedModel {
  std::string title;                ///< "GLA"
  std::vector<std::string> also{};  ///< the other models of the same row or code
  std::string id{};                 ///< of the architecture here; empty: none
  LcsmCode code;                    ///< of that row, with the activation that the model itself has
  /// Whether expand, oscillation and shrink of that row are those of the code for some values of its parameters. The table does not say
  /// activations.
  bool exact = false;
  int distance = 0;     ///< 0 where all four choices are the same
  std::string differs;  ///< one sentence on that model's differences
};
/// The row that a code is, or is nearest to; of several that are as near the first one in the table. The distance of two codes is a sum:
///   5 if expand differs in depending on the data, and 5 for shrink;
///   2 for each of these that is true of one oscillation alone: its factors differ by key dimension, by value dimension, depend on the data
///   by key dimension, by value dimension; 3 if one forgets and the other does not; 4 if one turns and the other does not; 1 if the
///   oscillations are different all the same, as a matrix and an outer product are;  1 if the activations differ.
/// So a model's dependence on its data decides first, then the factors of its memory, and its activation last.
NamedModel named(const LcsmCode& code, const Registry& registry);
int distance(const LcsmCode& a, const LcsmCode& b);
/// All rows of the table.
std::vector<NamedModel> lcsm_table(const Registry& registry);

}  // namespace reclab
