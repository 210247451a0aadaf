// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/wiring/wiring.h"

#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "models/parts/parts.h"
#include "parameters/numpy_random.h"

namespace reclab::parts {

std::vector<HyperSpec> wiring_hyper(bool by_layer) {
  const auto counts = [](HyperSpec row) { return initialisation_only(std::move(row)); };
  HyperSpec command = hyper_integer("command", "", 4, 1, 1024,
                                    "ncp: command neurons; what motor and command neurons leave of the width are inter neurons.", "units");
  return {
      hyper_choice("wiring", "none", {"none", "full", "random", "ncp", "auto_ncp"},
                   "Which synapses there are, as a mask beside the weights: no mask; all; as many as sparsity leaves, at random; a neural "
                   "circuit policy of inter, command and motor neurons; or one whose numbers follow from width, motor and sparsity."),
      by_layer ? command : counts(command),
      counts(hyper_integer("sensory_fanout", "", 2, 1, 1024, "ncp: synapses from each input to inter neurons.")),
      counts(hyper_integer("inter_fanout", "", 2, 1, 1024, "ncp: synapses from each inter neuron to command neurons.")),
      counts(hyper_integer("command_synapses", "", 3, 0, 65536, "ncp: synapses between command neurons.")),
      counts(hyper_integer("motor_fanin", "", 2, 1, 1024, "ncp: synapses to each motor neuron from command neurons.")),
      counts(hyper_real("sparsity", "", 0.5, 0.0, 0.99, "random and auto_ncp: the share of synapses that are left out.")),
      counts(hyper_integer("wiring_seed", "", 22222, 0, 2147483647, "Seed of the synapses, whose masks and signs are parameters."))};
}

bool is_wired(const Hyper& h) { return h.choice("wiring") != "none"; }

std::int64_t motors_of(const Hyper& h) {
  const std::int64_t H = h.integer("width"), M = h.integer("motor");
  const bool ncp = h.choice("wiring") == "ncp" || h.choice("wiring") == "auto_ncp";
  return M ? M : ncp ? std::max<std::int64_t>(1, H / 4) : H;
}

namespace {

struct Counts {
  std::int64_t inter, command, motor, sensory_fanout, inter_fanout, command_synapses, motor_fanin;
};
Counts counts_of(const Hyper& h) {
  const std::int64_t H = h.integer("width"), M = motors_of(h), rest = H - M;
  if (h.choice("wiring") == "ncp")
    return {rest - h.integer("command"),   h.integer("command"),    M, h.integer("sensory_fanout"), h.integer("inter_fanout"),
            h.integer("command_synapses"), h.integer("motor_fanin")};
  const double density = 1.0 - h.real("sparsity");
  const auto share = [](double of) { return std::max<std::int64_t>(static_cast<std::int64_t>(of), 1); };
  const std::int64_t command = share(0.4 * static_cast<double>(rest)), inter = rest - command;
  const auto of = [&](std::int64_t n) { return static_cast<double>(n) * density; };
  return {inter, command, M, share(of(inter)), share(of(command)), share(of(command) * 2.0), share(of(command))};
}

}  // namespace

void check_wiring(const Hyper& h, const std::string& model) {
  const std::string& wiring = h.choice("wiring");
  const auto refuse = [&](const std::string& key, const std::string& why, const std::string& range) {
    throw Error(model + ": " + key + " = " + h.text(key) + " " + why + ".",
                {.model = model, .parameter = key, .value = h.text(key), .range = range});
  };
  const std::int64_t H = h.integer("width"), M = motors_of(h);
  if (M > H)
    refuse("motor", "is more than the width = " + h.text("width") + ": choose at most so many, or 0 for all", "0.." + h.text("width"));
  if (wiring != "ncp" && wiring != "auto_ncp") return;
  if (M >= H - 2)
    refuse("motor", "does not leave inter and command neurons of the width = " + h.text("width") + ": choose 1 to width − 3",
           "1.." + std::to_string(std::max<std::int64_t>(1, H - 3)));
  const Counts n = counts_of(h);
  if (n.inter < 1)
    refuse("command", "leaves no inter neuron of the width = " + h.text("width") + ": choose fewer", "1.." + std::to_string(H - M - 1));
  if (n.sensory_fanout > n.inter)
    refuse("sensory_fanout", "is more than there are inter neurons, " + std::to_string(n.inter) + ": choose at most so many",
           "1.." + std::to_string(n.inter));
  if (n.inter_fanout > n.command)
    refuse("inter_fanout", "is more than there are command neurons, " + std::to_string(n.command) + ": choose at most so many",
           "1.." + std::to_string(n.command));
  if (n.motor_fanin > n.command)
    refuse("motor_fanin", "is more than there are command neurons, " + std::to_string(n.command) + ": choose at most so many",
           "1.." + std::to_string(n.command));
}

Wiring wiring_of(const Hyper& h, std::int64_t inputs) {
  const std::int64_t H = h.integer("width");
  const std::string& kind = h.choice("wiring");
  Wiring wiring;
  wiring.synapses.assign(static_cast<std::size_t>(H * H), 0);
  wiring.sensory.assign(static_cast<std::size_t>(inputs * H), 0);
  NumpyRandom draws(static_cast<std::uint32_t>(h.integer("wiring_seed")));
  const auto set = [H](std::vector<int>& all, std::int64_t from, std::int64_t to, int sign) {
    all[static_cast<std::size_t>(from * H + to)] = sign;
  };
  const auto range = [](std::int64_t from, std::int64_t to) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = from; i < to; ++i) all.push_back(i);
    return all;
  };
  if (kind == "full" || kind == "random") {
    const double kept = kind == "full" ? 1.0 : 1.0 - h.real("sparsity");
    for (std::vector<int>* all : {&wiring.synapses, &wiring.sensory}) {
      const auto n = std::ssize(*all);
      const auto size = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(n) * kept));
      for (const std::int64_t at : kind == "full" ? range(0, n) : draws.choose(n, size))
        (*all)[static_cast<std::size_t>(at)] = draws.below(3) == 0 ? -1 : 1;
    }
    wiring.layers = {range(0, H)};
    return wiring;
  }
  // NCP of ncps: neurons are numbered motor, command, inter; every choice is followed by the draw of a sign.
  const Counts n = counts_of(h);
  const auto motor = range(0, n.motor), command = range(n.motor, n.motor + n.command), inter = range(n.motor + n.command, H),
             sensory = range(0, inputs);
  const auto sign = [&] { return draws.below(2) == 0 ? -1 : 1; };
  // Each of `from` gets `fanout` synapses to `to`, and each of `to` without any, as many as the others have on average.
  const auto connect = [&](std::vector<int>& all, const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to,
                           std::int64_t fanout, bool towards) {
    std::vector<std::int64_t> left = to;
    const auto join = [&](std::int64_t a, std::int64_t b) { towards ? set(all, b, a, sign()) : set(all, a, b, sign()); };
    for (const std::int64_t a : from)
      for (const std::int64_t at : draws.choose(std::ssize(to), fanout)) {
        std::erase(left, to[static_cast<std::size_t>(at)]);
        join(a, to[static_cast<std::size_t>(at)]);
      }
    const std::int64_t mean = std::clamp<std::int64_t>(std::ssize(from) * fanout / std::ssize(to), 1, std::ssize(from));
    for (const std::int64_t b : left)
      for (const std::int64_t at : draws.choose(std::ssize(from), mean)) join(from[static_cast<std::size_t>(at)], b);
  };
  connect(wiring.sensory, sensory, inter, n.sensory_fanout, false);
  connect(wiring.synapses, inter, command, n.inter_fanout, false);
  for (std::int64_t i = 0; i < n.command_synapses; ++i) {
    const std::int64_t from = command[static_cast<std::size_t>(draws.below(n.command))],
                       to = command[static_cast<std::size_t>(draws.below(n.command))];
    set(wiring.synapses, from, to, sign());
  }
  connect(wiring.synapses, motor, command, n.motor_fanin, true);
  wiring.layers = {inter, command, motor};
  return wiring;
}

Init signs_of(std::vector<int> synapses) {
  return init::each([all = std::move(synapses)](Rng&, std::int64_t i) { return static_cast<double>(all[static_cast<std::size_t>(i)]); });
}
Init mask_of(std::vector<int> synapses) {
  return init::each([all = std::move(synapses)](Rng&, std::int64_t i) { return all[static_cast<std::size_t>(i)] ? 1.0 : 0.0; });
}

MixedMemory::MixedMemory(Layer& l, Var x, std::int64_t H) {
  const std::int64_t in = x.dim(-1);
  const Var W = l.parameter("lstm.input_map.weight", {4 * H, in}, xavier_uniform(in, 4 * H),
                            "W_in, rows candidate, input, forget, output; starts uniform in ±√(6/(in + 4H)).");
  const Var b = l.parameter("lstm.input_map.bias", {4 * H}, init::uniform(-0.1, 0.1), "b_in; starts uniform in ±0.1.");
  recurrent_ = l.parameter("lstm.recurrent_map.weight", {4 * H, H}, init::orthogonal(1.0), "W_rec, rows as in W_in; starts orthogonal.");
  token_ = reclab::linear(x, W, b);
}

MixedMemory::Out MixedMemory::operator()(Cell& cell, Var token, Var h, Var c) const {
  const auto z = split(reclab::linear(h, recurrent_, token), -1, 4);
  const Var in = cell.gate("input", sigmoid(z[1]), 0.0, 1.0, "σ(i) of the LSTM: how much of the candidate is written."),
            forget = cell.gate("forget", sigmoid(z[2] + 1.0), 0.0, 1.0, "σ(f + 1) of the LSTM: how much of its cell is kept.");
  const Var out = cell.gate("output", sigmoid(z[3]), 0.0, 1.0, "σ(o) of the LSTM: how much of its cell is shown.");
  const Var next = c * forget + tanh(z[0]) * in;
  return {tanh(next) * out, next};
}

}  // namespace reclab::parts
