// SPDX-License-Identifier: GPL-3.0-or-later
// The families that models are shown under: the sections of "State-Space Modeling in Long Sequence Processing: A Survey on Recurrence in
// the Transformer Era" (Tiezzi et al. 2024), in its order. A family is the folder of a model and of its preset; other presets may name
// others.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace reclab {

struct Family {
  std::string_view id;       ///< "linear-transformers"
  std::string_view section;  ///< of the survey, "3.1"; empty: none of its own
  std::string_view title;    ///< "Linear transformers"
  std::string_view text;     ///< one sentence
};

std::span<const Family> families();
/// The place of a family in that order; an unknown one comes after all of them.
std::size_t family_place(std::string_view id);
/// "3.1  Linear transformers"; of a family that is not among them its id in words, "My models".
std::string family_heading(std::string_view id);

}  // namespace reclab
