// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/primitive.h"

#include <cmath>

#include "recurrence/attention/attention.h"
#include "recurrence/segments/segments.h"

namespace reclab::primitives_by_name {
namespace {

using namespace primitive;

/// Tokens [batch, n, d] attend to the memory [batch, rows, d] and to themselves; the memory goes half of the way to its read of a full
/// segment.
SegmentResult attend(Var m, Var tokens, std::int64_t length) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(tokens.dim(2)));
  const Var parts[] = {m, tokens};
  SoftmaxAttention a;
  a.q = tokens * scale;
  a.k = a.v = concat(parts, 1);
  SegmentResult result{softmax_attention(a, false), {}};
  if (tokens.dim(1) == length) result.memory = {0.5 * m + 0.5 * matmul(softmax_rows(matmul_transposed(m, tokens) * scale), tokens)};
  return result;
}

/// The reads and the last memories: the trajectories are for the record alone and pass no gradient.
std::vector<Var> reads_and_memories(RandomLeaves& leaves, SegmentVars vars, const std::vector<Var>& begin) {
  vars.initial = begin;
  leaves.initial(vars);
  std::vector<Var> outputs{vars.reads};
  outputs.insert(outputs.end(), vars.finals.begin(), vars.finals.end());
  return outputs;
}

std::vector<ExtremePrimitive> extremes() {
  Extremes add;
  for (const double size : {1e3, 1e-12}) {
    add("segments, size " + text(size), {Form::sequential}, {normal("x", {203, 1, 4}, size, 1), normal("m", {1, 2, 4}, size, 2)},
        [](Bench& bench, Form) {
          return segments(
                     bench.graph, 1, {{"m", {2, 4}}}, {bench["m"]}, bench["x"], 0, 8,
                     [](Cell&, std::span<const Var> m, Var tokens) { return attend(m[0], tokens, 8); }, true)
              .reads;
        });
  }
  return add.found;
}

}  // namespace

Primitive segments();  // in the table that the build writes
Primitive segments() {
  constexpr std::int64_t batch = CheckedPrimitive::batch;
  using Argument = TimedPrimitive::Argument;
  Primitive p;
  p.timed.title = "Recurrence over segments";
  p.timed.equations = {"y_t = Σ_j softmax_j(x_t · z_j/√d) z_j,  z = [m; x_{t₀} .. x_t], for each segment of n steps",
                       "m ← m/2 + softmax(m Xᵀ/√d) X/2, when the segment is full"};
  p.timed.hyper = {width(32), hyper_integer("memory", "M", 4, 1, 1024, "Rows of the memory.", "rows"),
                   hyper_integer("segment", "n", 16, 1, 65536, "Steps of a segment.", "steps")};
  p.timed.spectrum = "none: the memory changes once a segment";
  p.timed.arguments = [](const Hyper& h) { return std::vector<Argument>{{h.integer("width")}}; };
  p.timed.layer = [](Layer& l, Var x) {
    const Shape shape{l.hyper.integer("memory"), l.hyper.integer("width")};
    const std::int64_t length = l.hyper.integer("segment");
    const Var first = l.parameter("memory", shape, init::normal(1.0), "The memory at the start.");
    return reclab::segments(l, {{"m", shape, "The memory."}}, {first}, x, length,
                            [=](Cell&, std::span<const Var> m, Var tokens) { return attend(m[0], tokens, length); });
  };

  p.check("segments", {Form::sequential}, [](Form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Var in = x.real({T, batch, 4}), begin = graph.leaf(LeafKind::variable, {batch, 2, 4}, graph.real());
    return reads_and_memories(x,
                              reclab::segments(
                                  graph, batch, {{"m", {2, 4}}}, {begin}, in, 0, 5,
                                  [](Cell&, std::span<const Var> m, Var tokens) { return attend(m[0], tokens, 5); }, false),
                              {begin});
  });
  p.check("segments, two memories, within a segment", {Form::sequential}, [](Form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const std::int64_t unread = T > 2 ? 2 : 0;
    const Var in = x.real({T, batch, 3});
    const std::vector<Var> begin{graph.leaf(LeafKind::variable, {batch, 3}, graph.real()),
                                 graph.leaf(LeafKind::variable, {batch, 1, 3}, graph.real())};
    const auto segment = [](Cell&, std::span<const Var> m, Var tokens) {
      SegmentResult result{tanh(tokens + m[1]) * reshape(m[0], {batch, 1, 3}), {}};
      if (tokens.dim(1) == 4) result.memory = {sum(result.reads, 1) + 0.5 * m[0], tanh(m[1] + reshape(m[0], {batch, 1, 3}))};
      return result;
    };
    return reads_and_memories(x, reclab::segments(graph, batch, {{"a", {3}}, {"b", {1, 3}}}, begin, in, unread, 4, segment, false), begin);
  });

  p.check("segments, contexts", {Form::sequential}, [](Form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const std::int64_t unread = T > 2 ? 2 : 0;
    const Var in = x.real({T, batch, 3}), begin = graph.leaf(LeafKind::variable, {batch, 2, 3}, graph.real());
    const SegmentContext context{[](Var tokens) { return tanh(slice(tokens, 1, 2, 4)); },
                                 [](Var m, Var tokens) { return attend(m, tokens, 0).reads; }};
    return reads_and_memories(x, reclab::segment_contexts(graph, batch, begin, in, unread, 4, context, false), {begin});
  });

  p.extremes = extremes;
  return p;
}

}  // namespace reclab::primitives_by_name
