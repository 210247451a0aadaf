// SPDX-License-Identifier: GPL-3.0-or-later
// The names of the arrays in S5 and minimal-LRU, which share a stack of flax modules: an encoder, layers of a sequence map `seq` with a
// norm and dense maps out1 and out2, and a decoder; below encoder, or with the collections of flax in front, batch_stats beside params. And
// the mean over time that their classifiers read.
#pragma once

#include <string>
#include <vector>

#include "models/architecture.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::parts {

/// `norm`: the name of a layer's norm, "norm".
inline std::vector<ReferenceName> flax_stack_reference(const std::string& norm) {
  std::vector<ReferenceName> rows;
  for (const auto& [params, stats] : {std::pair<std::string, std::string>{"", ""}, {"params.encoder.", "batch_stats.encoder."}}) {
    const std::string layer = params + "layers_{n}.", of_norm = layer + norm + ".", of_stats = stats + "layers_{n}." + norm + ".";
    for (const char* dense : {"out1", "out2"}) {
      rows.push_back({layer + dense + ".kernel", std::string(dense) + ".weight", true});
      rows.push_back({layer + dense + ".bias", std::string(dense) + ".bias"});
    }
    rows.push_back({of_norm + "scale", "norm.weight"});
    rows.push_back({of_norm + "bias", "norm.bias"});
    rows.push_back({of_stats + "mean", "norm.running_mean"});
    rows.push_back({of_stats + "var", "norm.running_var"});
    rows.push_back({params + "encoder.kernel", "encoder/weight", true});
    rows.push_back({params + "encoder.bias", "encoder/bias"});
    rows.push_back({layer + "seq.*", "*"});
  }
  for (const char* decoder : {"decoder.", "params.decoder."}) {
    rows.push_back({std::string(decoder) + "kernel", "head/weight", true});
    rows.push_back({std::string(decoder) + "bias", "head/bias"});
  }
  rows.push_back({"decoder.*", ""});
  return rows;
}

/// The mean over time of the outputs, after the last of the stack's layers: at each step that of the steps so far.
inline Var mean_over_time(Layer& l, Var x) {
  if (l.index() + 1 != l.hyper.integer("layers")) return x;
  const std::int64_t d = x.dim(-1);
  const Var before = l.position(), weight = reciprocal(before + 1.0),
            ones = x.graph->constant({d}, std::vector<double>(static_cast<std::size_t>(d), 1.0));
  return diagonal(
      l, {.name = "mean", .shape = {d}, .text = "The mean of the stack's outputs so far, which the head reads.", .auxiliary = true},
      before * weight * ones, x * weight);
}

}  // namespace reclab::parts
