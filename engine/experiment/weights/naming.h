// SPDX-License-Identifier: GPL-3.0-or-later
// The match of a weights file's entries with a model's parameters, by names and shapes alone: our own names, those of the architecture's
// reference implementation (Architecture::reference), ours without the number of the only layer, and each of them below a prefix that
// wrappers put in front ("model.rnn.").
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiment/weights/file_index.h"
#include "models/network.h"

namespace reclab {

class Registry;
struct Preset;

struct NameMatch {
  std::vector<std::string>
      entries;  ///< for each of the network's parameters the file's entry; empty: there is none, or not all of its rows
  std::map<std::size_t, std::vector<std::string>> rows{};  ///< of a parameter whose rows have entries of their own: all of them, in order
  std::set<std::size_t> transposed{};                      ///< parameters whose entry is [columns, rows]
  std::vector<std::string> unknown;                        ///< entries of the file that are no parameter, where they are asked for
  std::size_t left = 0;                                    ///< how many these are
  std::size_t unused = 0;                                  ///< how many entries are of no use to this network and may be there all the same
  std::string problem{};              ///< not empty: two entries claim to be one parameter; the sentence names both and the cure
  std::vector<std::string> rivals{};  ///< where that is so of all entries: the prefixes below which they have the names of this model alike
  std::int64_t looked_up = 0;         ///< how many entries were looked at
};
NameMatch match_names(const Network& network, const FileIndex& file, bool list = true);
NameMatch match_names(const Network& network, const FileShapes& file);
/// The names that the reference implementation may have for a parameter, and whether it is transposed there; {i} in one stands for the
/// number of a row that has an entry of its own.
std::vector<std::pair<std::string, bool>> reference_names(const Network& network, const std::string& parameter);
/// Those of each parameter of a preset's card (experiment.h), by the parameter's name.
using ReferenceNames = std::map<std::string, std::vector<std::pair<std::string, bool>>>;
ReferenceNames reference_names(const Registry& registry, const Preset& preset, std::int64_t input_width);
/// All names that a file may have for the parameters of this network's layers.
std::vector<std::string> names_in_files(const Network& network);

/// The shape that the file's entries of parameter i make, as the network has it: of an entry that is transposed or of rows that have
/// entries of their own; the wanted one where only axes of length 1 are more or fewer.
Shape shape_in_file(const NameMatch& match, std::size_t i, const FileIndex& file, const Shape& wanted);

/// The distance of a file from a network's weights: 0 where every parameter has an entry of its shape and none is left; each missing or
/// unknown entry and each axis of another length count.
int misfit(const Network& network, const FileIndex& file);
int misfit(const Network& network, const NameMatch& match, const FileIndex& file);

}  // namespace reclab
