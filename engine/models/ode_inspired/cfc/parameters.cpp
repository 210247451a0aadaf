// SPDX-License-Identifier: GPL-3.0-or-later
// Names, shapes and starts of CfC's parameters, as ncps' torch CfC has them.
#include "models/ode_inspired/cfc/parameters.h"

#include "models/parts/parts.h"

namespace reclab::architectures {
namespace {

CfcJoined joined(Layer& l, const std::string& name, Var x, std::int64_t H, std::int64_t out, const std::string& role) {
  const std::int64_t in = x.dim(-1);
  const Var W = l.parameter(name + ".weight", {out, in + H}, parts::xavier_uniform(in + H, out),
                            role + ", columns x, h; starts uniform in ±√(6/(in + out)) (Xavier).");
  const Var b =
      l.parameter(name + ".bias", {out}, parts::torch_uniform(in + H), "The bias of " + name + "; starts uniform in ±1/√(in + H).");
  return {linear(x, slice(W, 1, 0, in), b), slice(W, 1, in, in + H)};
}

CfcPlain plain(Layer& l, const std::string& name, std::int64_t in, std::int64_t out, const std::string& role) {
  const Var W =
      l.parameter(name + ".weight", {out, in}, parts::xavier_uniform(in, out), role + "; starts uniform in ±√(6/(in + out)) (Xavier).");
  return {W, l.parameter(name + ".bias", {out}, parts::torch_uniform(in), "The bias of " + name + "; starts uniform in ±1/√in.")};
}

}  // namespace

CfcParameters cfc_parameters(Layer& l, Var x) {
  const Hyper& h = l.hyper;
  const std::int64_t H = h.integer("width"), depth = h.integer("backbone_layers"), units = h.integer("backbone_units");
  const bool pure = h.choice("mode") == "pure";
  std::vector<std::string> names{"ff1"}, roles{"W_1, the first end"};
  if (!pure) {
    names.insert(names.end(), {"ff2", "time_a", "time_b"});
    roles.insert(roles.end(), {"W_2, the second end", "A, how fast the gate moves in time", "B, where the gate stands at Δ = 0"});
  }
  CfcParameters p;
  if (depth) {
    p.of_both.push_back(joined(l, "rnn_cell.backbone.0", x, H, units, "The backbone's first layer"));
    for (std::int64_t i = 1; i < depth; ++i)
      p.inner.push_back(plain(l, "rnn_cell.backbone." + std::to_string(2 * i), units, units, "A layer of the backbone"));
    for (std::size_t i = 0; i < names.size(); ++i) p.heads.push_back(plain(l, "rnn_cell." + names[i], units, H, roles[i]));
  } else {
    for (std::size_t i = 0; i < names.size(); ++i) p.of_both.push_back(joined(l, "rnn_cell." + names[i], x, H, H, roles[i]));
  }
  if (!pure) return p;
  p.leak = abs(l.parameter("rnn_cell.w_tau", {1, H}, init::constant(0.0), "w_τ, the inverse time constant; starts at 0."));
  p.A = l.parameter("rnn_cell.A", {1, H}, init::constant(1.0), "A, where the state is drawn to; starts at 1.");
  return p;
}

CfcBeside::CfcBeside(Layer& l, Var x, std::vector<Var>& tokens) : width_(l.hyper.integer("width")), elapsed_at_(tokens.size()) {
  if (const Var elapsed = l.elapsed()) {
    timed_ = true;
    tokens.push_back(elapsed);
  }
  lstm_at_ = tokens.size();
  if (l.hyper.flag("mixed_memory")) tokens.push_back(memory_.emplace(l, x, width_).token());
}
std::vector<StateSpec> CfcBeside::states(const std::string& text_of_h) const {
  std::vector<StateSpec> states{{"h", {width_}, text_of_h}};
  if (memory_) states.push_back({"c", {width_}, "The cell of the LSTM in front."});
  return states;
}
parts::MixedMemory::Out CfcBeside::read(Cell& cell, std::span<const Var> token, std::span<const Var> before) const {
  if (!memory_) return {before[0], {}};
  return (*memory_)(cell, token[lstm_at_], before[0], before[1]);
}

Var cfc_gate(Cell& cell, const std::string& mode, Var value) {
  if (mode == "pure") return cell.gate("decay", value, 0.0, 1.0, "exp(−Δ_t (|w_τ| + |f|)): what is left of the distance to A.");
  return cell.gate("time", value, 0.0, 1.0, "s: from the first end, 0, to the second, 1.");
}

Var cfc_projected(Layer& l, Var h) {
  const std::int64_t P = l.hyper.integer("projection");
  return P ? parts::linear(l, "fc", h, P, "W_fc, the projection of what is read out") : h;
}

}  // namespace reclab::architectures
