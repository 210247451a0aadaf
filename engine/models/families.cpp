// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/families.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace reclab {

std::span<const Family> families() {
  static constexpr std::array all{
      Family{"recurrent", "2", "Recurrent networks", "A state that a nonlinear cell carries from step to step, with gates or without."},
      Family{"linear-transformers", "3.1", "Linear transformers",
             "Attention through a feature map: a matrix that keys and values are written into."},
      Family{"low-rank", "3.2", "Alternative low-rank approximations",
             "Values weighted by keys and positions, without products of queries and keys."},
      Family{"modelling-recurrence", "3.3", "Transformers that model recurrence",
             "Softmax attention, and what carries it from one segment to the next."},
      Family{"decaying-attention", "3.4", "Decaying linear attention", "Linear attention whose memory fades, by a fixed rate or by gates."},
      Family{"state-space", "4", "Deep state-space models",
             "Linear recurrences, discretised from continuous time or drawn as such, with nonlinear layers between."},
      Family{"long-convolutions", "4", "Long convolutions", "A filter as long as the sequence, made by a function or by a state."},
      Family{"enhanced", "5", "Enhanced recurrent networks", "Recurrent networks with diagonal or constrained matrices, or other gates."},
      Family{"ode-inspired", "5.1", "ODE-inspired recurrent networks",
             "Steps of a differential equation, on a fixed or an irregular grid of time."},
      Family{"lcsm", "", "Linear-complexity sequence models", "Expand, oscillate, shrink: every linear recurrence by three choices."},
  };
  return all;
}

std::size_t family_place(std::string_view id) {
  return static_cast<std::size_t>(std::ranges::find(families(), id, &Family::id) - families().begin());
}

std::string family_heading(std::string_view id) {
  const std::size_t place = family_place(id);
  if (place < families().size()) {
    const Family& family = families()[place];
    return (family.section.empty() ? std::string() : std::string(family.section) + "  ") + std::string(family.title);
  }
  std::string words(id);
  std::ranges::replace(words, '-', ' ');
  if (!words.empty()) words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
  return words;
}

}  // namespace reclab
