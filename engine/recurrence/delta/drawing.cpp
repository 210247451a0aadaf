// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/delta/drawing.h"

#include <algorithm>
#include <optional>

namespace reclab::drawing {
namespace {

void rewriting(Plan& plan, const Drawn& f, bool read_before) {
  const std::int64_t T = f.order.steps, chunk = f.order.form == Form::attention ? T : drawn_chunk(f.order.chunk, T),
                     chunks = (T + chunk - 1) / chunk;
  const auto rows = [&](std::size_t input) { return f.in[input] ? std::optional<InputRows>(f.in[input]) : std::nullopt; };
  const InputRows q(f.in[0]), k(f.in[1]), v(f.in[2]);
  const auto beta = rows(3), other = rows(4), log_decay = rows(5);
  const InputRows& recall = other ? *other : k;
  const std::int64_t n = q.width, entry = k.most_active(T), column = v.most_active(T);
  /// The share of the memory's row i that is left after the steps first to last.
  const auto kept = [&](std::int64_t first, std::int64_t last, std::int64_t i) {
    double sum = 0.0;
    for (std::int64_t t = first; log_decay && t <= last; ++t) sum += (*log_decay)(t, log_decay->width > 1 ? i : 0);
    return std::exp(sum);
  };
  const auto dot = [&](const InputRows& x, std::int64_t t, const InputRows& y, std::int64_t s, std::int64_t last) {
    double sum = 0.0;
    for (std::int64_t i = 0; i < n; ++i) sum += x(t, i) * y(s, i) * kept(s + 1, last, i);
    return sum;
  };
  const auto seen_last = [read_before](std::int64_t t) { return read_before ? t - 1 : t; };  // the last step in the memory that step t
                                                                                             // reads
  plan.drawing = "triangle";
  const int
      given = plan.kind("value", Place::lane, "this step's query, key, value and share, computed for all steps at once"),
      solve = plan.kind(
          "untangled", Place::lane,
          "what the steps of a chunk write when each writes over what the ones before it wrote: a triangular system, solved row by row"),
      memory =
          plan.kind("memory", Place::lane, "the memory after a chunk: the one before, and what the chunk's untangled steps write into it"),
      score = plan.kind("score", Place::cell, "the row's key times the column's, and the row's query times the column's key"),
      read = plan.kind("read", Place::bar, "the query times the memory before the chunk: it stands for all steps under the bar"),
      output = plan.kind("output", Place::end,
                         "what the step reads: its scores times what the chunk's steps wrote, and what it read from the memory");
  std::vector<int> element, memories{-1}, solved;
  std::vector<std::vector<int>> scores(static_cast<std::size_t>(T));
  for (std::int64_t t = 0; t < T; ++t) element.push_back(plan.add(given, 0, t, t, {}, v(t, column)));
  const auto el = [&](std::int64_t t) { return element[static_cast<std::size_t>(t)]; };
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t s = t / chunk * chunk; s <= seen_last(t); ++s) {
      std::vector<int> pair{el(s)};
      if (s != t) pair.push_back(el(t));
      scores[static_cast<std::size_t>(t)].push_back(plan.add(score, 1, s, t, pair, dot(q, t, k, s, seen_last(t))));
    }
  const std::int64_t solving = std::max<std::int64_t>(1, std::min(chunk, T) - 1);  // rounds of the triangular system
  for (std::int64_t c = 0; c < chunks; ++c) {
    const std::int64_t first = c * chunk, last = std::min(T, first + chunk) - 1;
    std::vector<int> needs;
    for (std::int64_t t = first; t <= last; ++t) {
      needs.push_back(el(t));
      for (const int one : scores[static_cast<std::size_t>(t)]) needs.push_back(one);
    }
    solved.push_back(plan.add(solve, 1 + solving, first, last, needs));
    plan[solved.back()].begin = 2;
    plan[solved.back()].work = last - first + 1;
  }
  std::vector<double> held(static_cast<std::size_t>(n), 0.0);
  for (std::int64_t c = 0; c < chunks; ++c) {
    const std::int64_t first = c * chunk, last = std::min(T, first + chunk) - 1;
    std::vector<double> wrote, before = held;
    for (std::int64_t t = first; t <= last; ++t) {  // the write of each step: its share of the error
      double recalled = 0.0;
      for (std::int64_t i = 0; i < n; ++i) recalled += recall(t, i) * before[static_cast<std::size_t>(i)] * kept(first, t, i);
      for (std::int64_t s = first; s < t; ++s) recalled += dot(recall, t, k, s, t) * wrote[static_cast<std::size_t>(s - first)];
      wrote.push_back((beta ? (*beta)(t, 0) : 1.0) * (v(t, column) - recalled));
    }
    for (std::int64_t i = 0; i < n; ++i) held[static_cast<std::size_t>(i)] *= kept(first, last, i);
    for (std::int64_t t = first; t <= last; ++t)
      for (std::int64_t i = 0; i < n; ++i)
        held[static_cast<std::size_t>(i)] += k(t, i) * wrote[static_cast<std::size_t>(t - first)] * kept(t + 1, last, i);
    std::vector<int> needs{solved[static_cast<std::size_t>(c)]};
    if (c) needs.push_back(memories.back());
    memories.push_back(plan.add(memory, 2 + solving + c, 0, last, needs, held[static_cast<std::size_t>(entry)]));
    for (std::int64_t t = first; t <= last; ++t) {
      double seen = 0.0, sum = 0.0;
      for (std::int64_t i = 0; i < n; ++i) seen += q(t, i) * before[static_cast<std::size_t>(i)] * kept(first, seen_last(t), i);
      for (std::int64_t s = first; s <= seen_last(t); ++s)
        sum += dot(q, t, k, s, seen_last(t)) * wrote[static_cast<std::size_t>(s - first)];
      std::vector<int> own = scores[static_cast<std::size_t>(t)];
      own.push_back(solved[static_cast<std::size_t>(c)]);
      if (c) {
        const int from = memories[static_cast<std::size_t>(c)];
        const int node = plan.add(read, 2 + solving + chunks, 0, first - 1, {from, el(t)}, seen);
        plan[node].row = t;
        own.insert(own.end(), {node, from});
      }
      const int node = plan.add(output, 3 + solving + chunks, 0, t, own, seen + sum);
      plan[node].row = t;
    }
  }
  plan.why =
      f.order.form == Form::attention
          ? std::string(
                "One triangular system says what each step really writes; every step reads that of those before it, all pairs at once.")
          : "Inside a chunk a triangular system says what each step really writes, all chunks at once; what came before the chunk is one "
            "memory, which alone goes "
            "from chunk to chunk." +
                chunks_said("chunks", f.order.chunk, chunk);
  plan.unit = "pieces";
  plan.entry = "Of the first head: a value, a query times a key, entry (" + std::to_string(entry) + ", " + std::to_string(column) +
               ") of the memory, or column " + std::to_string(column) + " of what is read.";
}

}  // namespace

void rewrites(Plan& plan, const Drawn& f) { rewriting(plan, f, false); }
void rewrites_read_before(Plan& plan, const Drawn& f) { rewriting(plan, f, true); }

}  // namespace reclab::drawing
