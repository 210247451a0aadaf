// SPDX-License-Identifier: GPL-3.0-or-later
// Weights and states of the user's own, from NPZ and safetensors files, by the names and shapes on the card.
#pragma once

#include <complex>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "models/network.h"

namespace reclab {

/// Loads all parameters of `network` from a file. Entries may have our names, with or without "param/", or those of the reference
/// implementation, below any prefix (naming.h). Throws Error naming the entry that is missing, extra, of another shape, double or not
/// finite. A file that fits other hyper-parameters of the same architecture is a MisfitError that has them. `file` may name a part of one,
/// "FILE:PART". `free_head`: no target says how wide the network's head is to be.
Parameters load_weights(const std::filesystem::path& file, const Network& network, const Architecture& architecture, const Hyper& hyper,
                        bool free_head = false);
/// Outputs of the head that a file of weights has behind a model with these hyper-parameters; 0: none.
std::int64_t head_of_weights(const std::filesystem::path& file, const Architecture& architecture, const Hyper& hyper, std::int64_t input);

/// The state that a run begins from.
struct InitialState {
  std::map<std::string, std::vector<std::complex<double>>> values;  ///< by key, for Rollout::set_initial
  std::int64_t cached_steps = 0;  ///< steps that have passed, for Rollout::Options; 0 where no state tells
};
/// Reads "state/<layer>/<name>" arrays for every state of the network, keys with or without "state/", as complex numbers. A complex state
/// may be given as real numbers with a last axis of re and im. Throws Error, as above, also for entries that are not finite, for a position
/// that is no number of steps, and for caches that do not hold as many rows as steps have passed.
InitialState load_state(const std::filesystem::path& file, const Network& network);

}  // namespace reclab
