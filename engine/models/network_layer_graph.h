// SPDX-License-Identifier: GPL-3.0-or-later
// The LayerGraph that a network builds an architecture's `body` with.
#pragma once

#include <string>

#include "models/network_layer.h"

namespace reclab {

class Network::LayerGraphOf final : public LayerGraph {
 public:
  /// The layers of the graph come after those that the network has. `backward`: all of it runs from the end to the start.
  LayerGraphOf(Network& network, const Architecture& architecture, const Hyper& values, bool backward);
  Var layer(const LayerKind& kind, std::int64_t stride, const std::string& path, Var x) override;

 private:
  Network& network_;
  bool backward_;
  int first_;
  Rate rate_;  ///< of the sequence, with the phase of all rates

  int add(const LayerKind& kind, std::int64_t stride, const std::string& path, bool backward);
};

}  // namespace reclab
