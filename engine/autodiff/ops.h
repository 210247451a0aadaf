// SPDX-License-Identifier: GPL-3.0-or-later
// The array operations that models are written with. All are recorded in a Graph; shapes broadcast by NumPy's rule; a real operand of
// a complex operation is promoted. Axes may be negative. "Tokenwise" functions act on the last axis and leave all others alone.
#pragma once

#include <span>
#include <vector>

#include "autodiff/graph.h"

namespace reclab {

Var operator+(Var x, Var y);
Var operator-(Var x, Var y);
Var operator*(Var x, Var y);
Var operator/(Var x, Var y);
Var operator+(Var x, double c);
Var operator+(double c, Var x);
Var operator-(Var x, double c);
Var operator-(double c, Var x);
Var operator*(Var x, double c);
Var operator*(double c, Var x);
Var operator/(Var x, double c);
Var operator-(Var x);

Var exp(Var x);
Var log(Var x);
Var sqrt(Var x);
Var square(Var x);
Var reciprocal(Var x);
Var sigmoid(Var x);
Var tanh(Var x);
Var relu(Var x);
Var softplus(Var x);
Var silu(Var x);
Var gelu(Var x);        ///< x Phi(x)
Var gelu_tanh(Var x);   ///< its tanh approximation
Var normal_cdf(Var x);  ///< Phi(x), the normal distribution
Var elu(Var x);
Var abs(Var x);    ///< |x|, slope 0 at 0
Var sign(Var x);   ///< -1, 0 or 1; without slope
Var floor(Var x);  ///< without slope
Var sin(Var x);
Var cos(Var x);
Var log_sigmoid(Var x);
/// (e^x - 1)/x, the mean of e^(sx) over s in [0, 1], without cancellation; 1 at 0. Real or complex.
Var mean_exp(Var x);
/// e^x, the largest that is in range where it would overflow: for exponents of exponentials, whose slope would be 0 times infinity.
Var exp_in_range(Var x);
Var maximum(Var x, Var y);     ///< equal entries share the slope
Var minimum(Var x, double c);  ///< its slope at c is a half
/// The same values, held: no gradient passes.
Var detach(Var x);

Var complex(Var real, Var imag);
Var real(Var z);
Var imag(Var z);

Var reshape(Var x, Shape shape);  ///< one entry may be -1
Var slice(Var x, int axis, std::int64_t from, std::int64_t to);
/// The entries along the first axis, last one first.
Var reversed(Var x);
/// The last entry along the first axis, which disappears: the final state of a trajectory.
Var last(Var x);
std::vector<Var> split(Var x, int axis, std::int64_t parts);
Var concat(std::span<const Var> parts, int axis);
Var transpose(Var x);  ///< swaps the last two axes
/// Axis d of the result is axis axes[d] of x, as in NumPy's transpose.
Var permute(Var x, std::span<const int> axes);
Var sum(Var x, int axis);  ///< the axis disappears
Var mean(Var x, int axis);
/// Keeps a singleton in place of the axis, for broadcasting back.
Var mean_keep(Var x, int axis);

/// A [..., m, k] times B [..., k, n] or B [k, n] shared; real.
Var matmul(Var a, Var b);
/// A [..., m, k] times the transpose of B [..., n, k]; real.
Var matmul_transposed(Var a, Var b);
/// x [..., in] -> x W^T + b, W [out, in], b [out] or none: PyTorch's Linear. b may be any other addend, such as the input's contribution to
/// a cell.
Var linear(Var x, Var weight, Var bias = {});
/// (x - mean) / sqrt(var + eps) * weight + bias over the last axis; weight and bias may be none.
Var layer_norm(Var x, Var weight, Var bias, double eps);
/// x / sqrt(mean(x^2) + eps) * weight over the last axis.
Var rms_norm(Var x, Var weight, double eps);
/// Causal depth-wise convolution: x [T + taps - 1, B, C] (oldest first), weight [C, taps] -> [T, B, C].
Var depthwise(Var x, Var weight);
/// Sums of the entries up to and with each, along an axis.
Var cumulative_sum(Var x, int axis);
/// y = x a + b; the constants are not trained.
Var affine(Var x, double a, double b);

}  // namespace reclab
