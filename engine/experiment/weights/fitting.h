// SPDX-License-Identifier: GPL-3.0-or-later
// The sizes that a file of weights was made for: hyper-parameters under which every parameter has an entry of its shape and none is left.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiment/weights/file_index.h"
#include "models/architecture.h"

namespace reclab {

using SizeSettings = std::vector<std::pair<std::string, std::string>>;

struct FittedSizes {
  SizeSettings settings;               ///< to be put after the given hyper-parameters
  std::int64_t input = 0, head = 0;    ///< columns that the weights read and outputs of their head
  bool found = false;                  ///< with these everything fits
  std::vector<SizeSettings> others{};  ///< other settings under which it fits as well: the shapes alone leave a choice
};
/// Looks for hyper-parameters under which the file fits, beginning from the given ones, and for the widths of input and head. If several
/// fit, it takes those that depart least from the given ones. `kept`: hyper-parameters that stay as they are. The given ones need not go
/// together.
FittedSizes fit_to_file(const Architecture& architecture, const Hyper& hyper, std::int64_t input, std::int64_t head, const FileIndex& file,
                        const std::set<std::string>& kept = {});

/// Outputs of the head that the file has behind a network with these hyper-parameters; 0: it has none, or does not fit.
std::int64_t head_in_file(const Architecture& architecture, const Hyper& hyper, std::int64_t input, const FileIndex& file);

/// A part of a file that is a model of this architecture by itself.
struct WeightsPart {
  std::string name;  ///< the prefix of its entries, without the dot, slash or underline that ends it
  std::size_t entries;
  FittedSizes sizes;
};
/// The parts of a file that holds more, those with most entries first; none where the whole file is one.
std::vector<WeightsPart> parts_that_fit(const Architecture& architecture, const Hyper& hyper, std::int64_t input, const FileIndex& file);
/// The entries of the part of that name, without the prefix; none: there is no such part.
FileShapes part_of(const FileIndex& file, const std::string& name, std::string* prefix = nullptr);

}  // namespace reclab
