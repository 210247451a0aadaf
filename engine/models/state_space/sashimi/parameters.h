// SPDX-License-Identifier: GPL-3.0-or-later
// The card of SaShiMi, the tables of its layers, and the maps and norms whose names and shapes are those of the standalone code or of the
// full one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/architecture.h"

namespace reclab::architectures {

Architecture sashimi_card();

namespace sashimi_parts {

/// W x + b over channels.
Var mapped(Layer& l, const std::string& name, Var x, std::int64_t out, const std::string& role);
/// The map of a pooling stage, and the layers that may follow it.
Var of_stage(Layer& l, Var x, std::int64_t out, const std::string& role);
/// The norm of a block.
Var normed(Layer& l, Var x);

/// Whether the systems of its S4 blocks are those of S4D.
bool is_diagonal(const Hyper& h);
/// The pooling factors, the first one's first.
std::vector<std::int64_t> pools(const Hyper& h);

/// S4 and S4D as they are, without a block.
const Architecture& s4_system();
const Architecture& s4d_system();
/// Rows of its table: those that its layers have too, and those of S4's own layer that are asked for here, with those that S4D's has beside
/// them.
std::vector<HyperSpec> common_rows();
std::vector<HyperSpec> system_rows();
/// The layers that SaShiMi is put together from, without their functions.
Architecture s4_block_card();
Architecture s4d_block_card();
Architecture feed_forward_card();
Architecture stage_card(const char* id);

/// The values of one of these layers, from all that its table shares with the whole.
Hyper hyper_of(const Hyper& h, const std::vector<HyperSpec>& table, const std::vector<std::pair<const char*, HyperValue>>& own);
/// The values of an S4 block at a rate whose steps are `stride` of the sequence.
Hyper hyper_of_s4(const Hyper& h, std::int64_t width, std::int64_t stride);

}  // namespace sashimi_parts
}  // namespace reclab::architectures
