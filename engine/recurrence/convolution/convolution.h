// SPDX-License-Identifier: GPL-3.0-or-later
// Causal convolutions of whole sequences, channel by channel.
#pragma once

#include "recurrence/layer.h"

namespace reclab {

/// y[t, b, c] = sum_{j <= t} kernel[c, j] u[t - j, b, c] by FFT: kernel [C, T] and u [T, B, C] of one type, real or complex.
Var convolve(Var kernel, Var u);
/// The last `steps` rows of the same, as the sum itself over the taps that there are: kernel [C, taps] and u [T, B, C] real; any number of
/// taps.
Var convolve_directly(Var kernel, Var u, std::int64_t steps);

/// A convolution in a layer, y_t[c] = sum_{j < taps} kernel[c, j] u_{t-j}[c]: kernel [channels, taps], u [steps, batch, channels]. All
/// earlier inputs are the growing buffer `name`, and the sequence is then run as one segment. Forms: sequential (the sum itself),
/// convolution (by FFT).
Var convolution(Layer& layer, const std::string& name, Var kernel, Var u, const std::string& text);
/// The same with the last taps - 1 inputs as the buffer `name`, of a fixed length: a sequence may be run in segments. kernel [copies *
/// channels, taps], u [steps, batch, channels]: every copy reads the same inputs; [steps, batch, copies * channels].
Var finite_convolution(Layer& layer, const std::string& name, Var kernel, Var u, const std::string& text);

}  // namespace reclab
