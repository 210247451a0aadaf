// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/layers/state_space.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "array/error.h"

namespace reclab::parts {

Var NormedBlock::read(Var x) const { return scale && prenorm ? layer_norm(x, scale, shift, 1e-5) : x; }
Var NormedBlock::around(Var x, Var y) const {
  if (!scale) return y;
  return prenorm ? x + y : layer_norm(x + y, scale, shift, 1e-5);
}
NormedBlock normed_block(Layer& l) {
  const std::int64_t H = l.hyper.integer("width");
  NormedBlock block{.prenorm = l.hyper.flag("prenorm")};
  if (l.hyper.choice("block") != "residual") return block;
  block.scale = l.parameter("norm.weight", {H}, init::constant(1.0), "Scale of the layer norm; starts at 1.");
  block.shift = l.parameter("norm.bias", {H}, init::constant(0.0), "Shift of the layer norm; starts at 0.");
  return block;
}

Var complex_modes(Var v, std::int64_t rows, std::int64_t modes) {
  return complex(reshape(slice(v, -1, 0, 1), {rows, modes}), reshape(slice(v, -1, 1, 2), {rows, modes}));
}
Var for_channels(Var v, std::int64_t channels) {
  const std::vector<Var> copies(static_cast<std::size_t>(channels / v.dim(0)), v);
  return copies.size() == 1 ? v : concat(copies, 0);
}
Var in_band(Var turns, double limit) { return detach(relu(sign(0.5 * limit - turns))); }

double frequency_at_start(const std::string& kind, double n, double N) {
  const double pi = std::numbers::pi;
  if (kind == "inv") return N / pi * (N / (2.0 * n + 1.0) - 1.0);
  if (kind == "inv2") return N / pi * (N / (n + 1.0) - 1.0);
  if (kind == "quad") return (2.0 * n + 1.0) * (2.0 * n + 1.0) / pi;
  return pi * n;
}

Var skip(Var D, Var u) {
  const std::int64_t H = u.dim(-1), reads = count(D.shape()) / H;
  if (reads == 1) return reshape(D, {H}) * u;
  std::vector<Var> parts;
  for (std::int64_t i = 0; i < reads; ++i) parts.push_back(reshape(slice(D, 0, i, i + 1), {H}) * u);
  return concat(parts, -1);
}

Var gated_output(Layer& l, Var y, const GatedOutput& how) {
  const std::int64_t H = l.hyper.integer("width"), columns = y.dim(-1);
  const double k = 1.0 / std::sqrt(static_cast<double>(columns));
  const std::string starts = columns == H ? "starts uniform in ±1/√H." : "starts uniform in ±1/√(channels H).";
  const Var W = l.parameter("output_linear.weight", how.one_tap ? Shape{2 * H, H, 1} : Shape{2 * H, columns}, init::uniform(-k, k),
                            "W of the GLU: " + how.rows + "; " + starts);
  const Var b = l.parameter("output_linear.bias", {2 * H}, init::uniform(-k, k), "Its bias; " + starts);
  const auto v = split(linear(gelu(y), reshape(W, {2 * H, columns}), b), -1, 2);
  return v[0] * l.gate("glu", sigmoid(v[1]), 0.0, 1.0, "The GLU after the " + how.system + ": how much of each channel passes.");
}

void check_time_steps(const Hyper& h, const std::string& model) {
  if (h.real("dt_min") > h.real("dt_max"))
    throw Error(model + ": dt_min = " + h.text("dt_min") + " is above dt_max = " + h.text("dt_max") + ": choose dt_min at most dt_max.",
                {.model = model, .parameter = "dt_min", .value = h.text("dt_min"), .range = "at most dt_max"});
}
void check_reads(const Hyper& h, const std::string& model) {
  if (h.integer("channels") > 1 && h.choice("output") == "none" && (h.choice("block") == "residual" || h.integer("layers") > 1))
    throw Error(model + ": output = none leaves channels = " + h.text("channels") +
                    " reads a channel, which no residual and no next layer takes: choose output=glu, or block=none and layers=1.",
                {.model = model, .parameter = "channels", .value = h.text("channels"), .range = "1 with output = none"});
}

}  // namespace reclab::parts
