// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/mixing.h"

#include "array/demand.h"
#include "array/device_array.h"
#include "array/host.h"

namespace reclab {
namespace {

/// The layout of the entries: steps first, or groups first.
struct MixedEntries {
  std::int64_t steps, groups, entries;
  bool rows_first;
  std::int64_t operator()(std::int64_t t, std::int64_t group, std::int64_t entry) const {
    return (rows_first ? t * groups + group : group * steps + t) * entries + entry;
  }
  std::int64_t count() const { return steps * groups * entries; }
};

MixedEntries entries_of(const Network& network, const Mixing& mixing, Var of, std::int64_t groups) {
  const std::int64_t steps = network.options().steps;
  RECLAB_DEMAND(network.options().batch == 1 && count(of.shape()) % (steps * groups) == 0);
  return {steps, groups, count(of.shape()) / (steps * groups), mixing.rows_first};
}

std::vector<std::complex<double>> numbers(Backend& backend, Var of, const void* data) {
  if (is_complex(of.dtype())) return to_complex(backend, of.dtype(), data, count(of.shape()));
  const std::vector<double> plain = to_double(backend, of.dtype(), data, count(of.shape()));
  return {plain.begin(), plain.end()};
}

std::vector<std::complex<double>> in_order(Network& network, Var of, const MixedEntries& at) {
  const auto values = numbers(network.graph().backend(), of, network.graph().value(of));
  if (at.rows_first) return values;
  std::vector<std::complex<double>> made;
  for (std::int64_t t = 0; t < at.steps; ++t)
    for (std::int64_t group = 0; group < at.groups; ++group)
      for (std::int64_t entry = 0; entry < at.entries; ++entry) made.push_back(values[static_cast<std::size_t>(at(t, group, entry))]);
  return made;
}

}  // namespace

std::int64_t mixing_weights(const Network& network, const Mixing& mixing) {
  return mixing.groups * mixing.reads * (mixing.joined ? entries_of(network, mixing, mixing.value, mixing.groups).entries : 1);
}

std::vector<std::complex<double>> mixing_columns(Network& network, const Mixing& mixing, Var output, std::span<const std::int64_t> columns,
                                                 std::stop_token stop) {
  Graph& graph = network.graph();
  Backend& backend = graph.backend();
  const MixedEntries from = entries_of(network, mixing, mixing.value, mixing.groups),
                     to = entries_of(network, mixing, output, mixing.groups * mixing.reads);
  const bool pairs = is_complex(mixing.value.dtype());
  const DType real = real_of(mixing.value.dtype());
  const std::int64_t parts = pairs ? 2 : 1, pushes = mixing.joined ? from.entries : 1;
  const auto own = static_cast<std::size_t>(mixing_weights(network, mixing));
  std::vector<std::complex<double>> weights(columns.size() * static_cast<std::size_t>(to.steps) * own);
  DeviceArray moves;
  for (std::size_t column = 0; column < columns.size(); ++column)
    for (std::int64_t push = 0; push < pushes; ++push) {
      std::vector<double> seed(static_cast<std::size_t>(from.count() * parts));
      for (std::int64_t group = 0; group < from.groups; ++group)
        for (std::int64_t entry = 0; entry < from.entries; ++entry)
          if (!mixing.joined || entry == push) seed[static_cast<std::size_t>(parts * from(columns[column], group, entry))] = 1.0;
      const auto values = narrowed(real, seed);
      backend.upload(moves.resize(backend, real, std::ssize(seed)), values.data(), values.size());
      const Var asked[] = {output};
      graph.push_tangents(mixing.value, moves.data(), asked, stop);
      const void* moved = graph.tangent(output);
      const auto made =
          moved ? numbers(backend, output, moved) : std::vector<std::complex<double>>(static_cast<std::size_t>(count(output.shape())));
      for (std::int64_t t = 0; t < to.steps; ++t)
        for (std::int64_t group = 0; group < to.groups; ++group) {
          const std::int64_t at = (group / mixing.reads * pushes + push) * mixing.reads + group % mixing.reads;
          weights[(column * static_cast<std::size_t>(to.steps) + static_cast<std::size_t>(t)) * own + static_cast<std::size_t>(at)] =
              made[static_cast<std::size_t>(to(t, group, 0))];
        }
    }
  return weights;
}

std::vector<std::complex<double>> written_of(Network& network, const Mixing& mixing) {
  return in_order(network, mixing.value, entries_of(network, mixing, mixing.value, mixing.groups));
}

std::vector<std::complex<double>> read_of(Network& network, const Mixing& mixing, Var output) {
  return in_order(network, output, entries_of(network, mixing, output, mixing.groups * mixing.reads));
}

}  // namespace reclab
