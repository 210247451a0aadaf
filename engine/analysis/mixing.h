// SPDX-License-Identifier: GPL-3.0-or-later
// The weights that a memory gives to the steps before, from the memory itself.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "models/network.h"

namespace reclab {

/// Weights M[t, s, group, read] of the steps s that were asked for, [columns, steps, groups * reads]; joined M[t, s, group, entry, read],
/// [columns, steps, groups * entries * reads].
///
/// Since the memory is linear in the values that are written and starts at 0, column s is its tangent in the direction in which the value
/// of step s alone moves, all of it by one (joined: an entry after the other), at the values of the network's last forward: a network of
/// one sequence and of all its steps, whose row t is that of the layer. `output`: Mixing::output or Mixing::unnormalised.
std::vector<std::complex<double>> mixing_columns(Network& network, const Mixing& mixing, Var output, std::span<const std::int64_t> columns,
                                                 std::stop_token stop);

/// The number of weights of a step s in a row.
std::int64_t mixing_weights(const Network& network, const Mixing& mixing);

/// The values written and the reads at each step, [steps, groups, entries] and [steps, groups, reads, entries], joined [steps, groups,
/// reads], of the last forward.
std::vector<std::complex<double>> written_of(Network& network, const Mixing& mixing);
std::vector<std::complex<double>> read_of(Network& network, const Mixing& mixing, Var output);

}  // namespace reclab
