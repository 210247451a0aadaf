// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/convolution/drawing.h"

namespace reclab::drawing {

void transforms(Plan& plan, const Drawn& f) {
  const std::int64_t T = f.order.steps, before = f.order.cached_steps, all = before + T;
  std::int64_t size = 1, rounds = 0;
  for (; size < 2 * all; size *= 2) ++rounds;
  const auto kernel = values_of(f.in[0]), input = values_of(f.in[1]), out = values_of(f.out[0]);
  const std::int64_t channels = f.in[0].dim(0), width = std::ssize(out) / all, channel = most_active(out, width) % channels;
  const int
      given = plan.kind("input", Place::point, "the input of this step"),
      tap = plan.kind("tap", Place::point, "the kernel this many steps later, made from the parameters alone"),
      there = plan.kind(
          "transform", Place::box,
          "the Fourier transform of the inputs, and of the kernel: log2(2T) rounds of butterflies over 2T numbers, the second half zeros"),
      product = plan.kind("product", Place::box, "frequency by frequency, the two transforms multiplied"),
      back = plan.kind("inverse", Place::box, "back to time: log2(2T) rounds of butterflies"),
      output = plan.kind("output", Place::point, "the convolution at this step, scaled");
  std::vector<int> inputs, taps;
  for (std::int64_t t = 0; t < T; ++t)
    inputs.push_back(plan.add(given, 0, t, t, {}, input[static_cast<std::size_t>((before + t) * width + channel)]));
  for (std::int64_t t = 0; t < T; ++t) {
    taps.push_back(plan.add(tap, 0, t, t, {}, kernel[static_cast<std::size_t>(channel * all + t)]));
    plan[taps.back()].row = -1;
  }
  const auto box = [&](int kind, std::int64_t begin, std::int64_t end, const std::vector<int>& needs, std::int64_t work) {
    const int node = plan.add(kind, end, 0, T - 1, needs);
    plan[node].begin = begin;
    plan[node].work = work;
    return node;
  };
  const std::int64_t butterflies = size / 2 * rounds;
  const int first = box(there, 1, rounds, inputs, butterflies), second = box(there, 1, rounds, taps, butterflies);
  plan[second].row = -1;
  const int met = box(product, rounds + 1, rounds + 1, {first, second}, size / 2 + 1);
  const int inverse = box(back, rounds + 2, 2 * rounds + 1, {met}, butterflies);
  for (std::int64_t t = 0; t < T; ++t)
    plan.add(output, 2 * rounds + 2, t, t, {inverse}, out[static_cast<std::size_t>((before + t) * width + channel)]);
  plan.why =
      "The same kernel meets the input at every step, so their transforms are multiplied frequency by frequency, all at once; a transform "
      "of " +
      std::to_string(size) + " numbers takes log2 " + std::to_string(size) + " = " + std::to_string(rounds) +
      " rounds. No state is carried from step to step.";
  plan.unit = "butterflies, products and scalings";
  plan.entry = "Of channel " + std::to_string(channel) + ": the input, the kernel, or the output.";
}

}  // namespace reclab::drawing
