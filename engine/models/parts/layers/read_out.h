// SPDX-License-Identifier: GPL-3.0-or-later
// The rows of the hyper-parameter table by which the network's head (models/network.cpp) is that of a language model, whose tokens are
// one-hot columns of the input and whose embedding is the encoder.
#pragma once

#include <vector>

#include "parameters/hyper.h"

namespace reclab::parts {

inline HyperSpec read_out_row() {
  return hyper_choice("read_out", "linear", {"linear", "no-bias", "tied"},
                      "What makes the target's columns of the output: a linear map, one without a bias, or the matrix of the encoder "
                      "transposed, the tied embedding of a language model.");
}
inline HyperSpec soft_cap_row() {
  return hyper_real("soft_cap", "", 0.0, 0.0, 1e6,
                    "The head's outputs y become c tanh(y/c) with this c, so that none is larger; 0: they stay as they are.");
}
inline HyperSpec scale_embedding_row() {
  return hyper_flag("scale_embedding", false,
                    "Whether what the encoder makes of the input is multiplied by √width, as a language model does whose embedding is also "
                    "its read-out. Without an encoder it has no effect.");
}

}  // namespace reclab::parts
