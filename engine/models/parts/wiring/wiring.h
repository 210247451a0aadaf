// SPDX-License-Identifier: GPL-3.0-or-later
// Wirings, which tell the neurons that have a synapse: those of ncps, for LTC and CfC, and the LSTM cell that may stand in front of both.
// M. Lechner, R. Hasani, A. Amini, T. A. Henzinger, D. Rus, R. Grosu, Neural circuit policies enabling auditable autonomy, Nature Machine
// Intelligence 2 (2020).
#pragma once

#include <string>
#include <vector>

#include "models/architecture.h"
#include "recurrence/step/step.h"

namespace reclab::parts {

/// The rows wiring, command, sensory_fanout, inter_fanout, command_synapses, motor_fanin, sparsity and wiring_seed; the model's own are
/// width and motor. by_layer: a layer of neurons has arrays of its own, so that their numbers tell on shapes.
std::vector<HyperSpec> wiring_hyper(bool by_layer);
/// Throws Error for numbers of neurons and synapses that do not go together.
void check_wiring(const Hyper& hyper, const std::string& model);
bool is_wired(const Hyper& hyper);
/// Neurons that are read out: motor, or where that is 0 all, and of an NCP a quarter of the width.
std::int64_t motors_of(const Hyper& hyper);

struct Wiring {
  std::vector<std::vector<std::int64_t>> layers;  ///< the neurons of each: inter, command, motor, or all in one
  std::vector<int> synapses;                      ///< [H, H], from and to: 1 or -1, 0: none
  std::vector<int> sensory;                       ///< [inputs, H]
};
/// ncp and auto_ncp are drawn as ncps draws them, of the same seed.
Wiring wiring_of(const Hyper& hyper, std::int64_t inputs);
/// Inits from such numbers: their values, or 1 where there is a synapse and else 0.
Init signs_of(std::vector<int> synapses);
Init mask_of(std::vector<int> synapses);

/// ncps' mixed memory: an LSTM cell whose output takes the place of the state that the model's own cell reads.
class MixedMemory {
 public:
  MixedMemory(Layer& l, Var x, std::int64_t width);
  Var token() const { return token_; }  ///< its map of x, for the cell
  struct Out {
    Var h, c;
  };
  Out operator()(Cell& cell, Var token, Var h, Var c) const;

 private:
  Var token_, recurrent_;
};

}  // namespace reclab::parts
