// SPDX-License-Identifier: GPL-3.0-or-later
// What an architecture is put together with that joins its layers itself.
#pragma once

#include <string>

#include "models/network_layer.h"

namespace reclab {

class Network::LayerGraphOf final : public LayerGraph {
 public:
  /// Its layers come after those that the network has. `backward`: all of it runs from the end to the start.
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
