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

/// Replaces all values of `parameters` by the file's, keys with or without "param/". Throws Error naming the entry that is missing, extra
/// or of another shape; then nothing is replaced. `input_width` is that of the sequence, for the cure.
void load_weights(const std::filesystem::path& file, Parameters& parameters, std::int64_t input_width);

/// Reads "state/<layer>/<name>" arrays for every state of the network, keys with or without "state/", as complex numbers. A complex state
/// may be given as real numbers with a last axis of re and im. Throws Error as above.
std::map<std::string, std::vector<std::complex<double>>> load_state(const std::filesystem::path& file, const Network& network);

}  // namespace reclab
