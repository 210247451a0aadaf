// SPDX-License-Identifier: GPL-3.0-or-later
// Names, shapes and starts of LSSL's parameters, as state-spaces/s4 has them (modules/lssl.py).
#include "models/state_space/lssl/parameters.h"

#include <cmath>
#include <string>

#include "models/parts/layers/modal_filter.h"
#include "models/parts/parts.h"

namespace reclab::architectures {
namespace {

Var step_of(Layer& l) {
  const std::int64_t H = l.hyper.integer("width");
  const double low = std::log(l.hyper.real("dt_min")), high = std::log(l.hyper.real("dt_max"));
  const bool evenly = l.hyper.choice("dt_init") == "uniform";
  const Init start = init::each([=](Rng& rng, std::int64_t i) {
    if (!evenly) return rng.uniform(low, high);
    return H > 1 ? low + (high - low) * static_cast<double>(i) / static_cast<double>(H - 1) : low;
  });
  const std::string starts = evenly ? "evenly from log dt_min to log dt_max." : "uniform between log dt_min and log dt_max.";
  return l.parameter("log_dt", {H}, start, "log Δ a channel; starts " + starts);
}

/// W, columns channel by channel; with a weight norm its rows are a length times a direction.
Var output_map(Layer& l) {
  const std::int64_t H = l.hyper.integer("width"), columns = H * l.hyper.integer("channels");
  const double k = 1.0 / std::sqrt(static_cast<double>(columns));
  const std::string name = "output_linear.weight", starts = ", columns channel by channel; starts uniform in ±1/√(H M).";
  if (!l.hyper.flag("weight_norm")) return l.parameter(name, {H, columns}, init::uniform(-k, k), "W" + starts);
  const Var v = l.parameter(name + "_v", {H, columns}, init::uniform(-k, k), "Directions of W's rows" + starts);
  const Var g =
      l.parameter(name + "_g", {H, 1}, parts::row_norms(name + "_v", columns), "Lengths of W's rows; starts as those of weight_v.");
  return v * (g / reshape(sqrt(sum(square(v), -1)), {H, 1}));
}

}  // namespace

LsslParameters lssl_parameters(Layer& l) {
  const std::int64_t H = l.hyper.integer("width"), N = l.hyper.integer("order") ? l.hyper.integer("order") : H,
                     M = l.hyper.integer("channels");
  const bool modal = parts::has_modal_filter(l.hyper);
  const std::string& start = l.hyper.choice("init");
  LsslParameters p;
  if (!modal) {
    const LsslTransition flow = lssl_transition(l, N, l.hyper.choice("learn") == "2" ? Shape{H} : Shape{});
    p.A = flow.A;
    p.B = reshape(flow.B, {-1, N, 1});
    const auto [of_C, starts] = start == "constant"  ? std::pair{init::constant(1.0), "at 1."}
                                : start == "uniform" ? std::pair{init::uniform(0.0, 1.732), "uniform between 0 and 1.732."}
                                                     : std::pair{init::normal(1.0), "normal."};
    p.C = l.parameter("C", {H, M, N}, of_C, std::string("The reads C; starts ") + starts);
  }
  p.D = l.parameter("D", {H, M}, start == "constant" ? init::constant(1.0) : init::normal(1.0),
                    std::string("The skips D; starts ") + (start == "constant" ? "at 1." : "normal."));
  if (!modal) p.dt = reshape(exp_in_range(step_of(l)), {H, 1, 1});
  return p;
}

LsslOutput lssl_output(Layer& l) {
  const std::int64_t H = l.hyper.integer("width"), M = l.hyper.integer("channels");
  LsslOutput out;
  if (l.hyper.flag("bias")) out.E = l.parameter("E", {H, M}, init::constant(0.0), "The reads' biases E; starts at 0.");
  if (!l.hyper.flag("ff")) return out;
  const double k = 1.0 / std::sqrt(static_cast<double>(H * M));
  out.b = l.parameter("output_linear.bias", {H}, init::uniform(-k, k), "Bias of W; starts uniform in ±1/√(H M).");
  out.W = output_map(l);
  return out;
}

}  // namespace reclab::architectures
