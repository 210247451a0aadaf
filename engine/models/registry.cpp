// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/registry.h"

#include <algorithm>

#include "array/error.h"
#include "parameters/nearest.h"

namespace reclab {

void Registry::add(std::string id, std::string family, Architecture architecture) {
  std::replace(family.begin(), family.end(), '_', '-');
  architecture.id = std::move(id);
  architecture.family = std::move(family);
  architecture.hyper.push_back(hyper_choice("direction", "forward", {"forward", "backward", "both", "both_by_layer"},
                                            "From the first step to the last, from the last to the first, or both by layers of their own: outputs side by side after the last layer, or, as in PyTorch, after each (both_by_layer)."));
  architecture.hyper.push_back(hyper_real("input_scale", "", 1.0, 1e-3, 1e3, "The input is multiplied by it: larger moves gates further.", true));
  if (architecture.input_width)
    architecture.hyper.push_back(hyper_flag("encoder_bias", true,
                                            "Whether the linear encoder in front, where the input is not as wide as the model, has a bias; without one, zeros stay zeros."));
  all_.push_back(std::move(architecture));
}

const Architecture& Registry::find(std::string_view id) const {
  std::vector<std::string> known;
  for (const auto& architecture : all_) {
    if (architecture.id == id) return architecture;
    known.push_back(architecture.id);
  }
  throw Error("there is no architecture \"" + std::string(id) + "\"; the nearest are " + nearest_names(id, known) + ".",
              {.model = std::string(id), .range = nearest_names(id, known)});
}

}  // namespace reclab
