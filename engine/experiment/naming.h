// SPDX-License-Identifier: GPL-3.0-or-later
// Which entry of a file of weights is which parameter of a model, by names and shapes alone: our own names, those of the architecture's
// reference implementation (Architecture::reference), ours without the number of the only layer, and each of them below a prefix that wrappers
// put in front ("model.rnn.").
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/network.h"

namespace reclab {

/// The shapes of a file's arrays by name.
using FileShapes = std::map<std::string, Shape, std::less<>>;

struct NameMatch {
  std::vector<std::string> entries;  ///< for each of the network's parameters the file's entry; empty: there is none, or not all of its rows
  std::map<std::size_t, std::vector<std::string>> rows{};  ///< of a parameter whose rows have entries of their own: all of them, in order
  std::set<std::size_t> transposed{};  ///< parameters whose entry is [columns, rows]
  std::vector<std::string> unknown;  ///< entries of the file that are no parameter
  std::size_t unused = 0;            ///< how many entries are of no use to this network and may be there all the same
  std::string problem{};             ///< not empty: two entries claim to be one parameter; the sentence names both and the cure
};
NameMatch match_names(const Network& network, const FileShapes& file);

/// The shape that the file's entries of parameter i make, as the network has it: of an entry that is transposed or of rows that have entries of their own.
Shape shape_in_file(const NameMatch& match, std::size_t i, const FileShapes& file);

/// By how much a file does not fit a network: 0 where every parameter has an entry of its shape and none is left; each missing or unknown
/// entry and each axis of another length count.
int misfit(const Network& network, const FileShapes& file);

/// What a file of weights was made for.
struct FittedSizes {
  std::vector<std::pair<std::string, std::string>> settings;  ///< to be put after the given hyper-parameters
  std::int64_t input = 0, head = 0;                           ///< columns that the weights read and outputs of their head
  bool found = false;                                         ///< with these everything fits
};
/// Looks for hyper-parameters under which the file fits, beginning from the given ones, and for the widths of input and head.
FittedSizes fit_to_file(const Architecture& architecture, const Hyper& hyper, std::int64_t input, std::int64_t head, const FileShapes& file);

}  // namespace reclab
