// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/outer/drawing.h"

#include <algorithm>
#include <optional>

namespace reclab::drawing {

void blocks(Plan& plan, const Drawn& f) {
  const std::int64_t T = f.order.steps, chunk = drawn_chunk(f.order.chunk, T), chunks = (T + chunk - 1) / chunk;
  const InputRows q(f.in[0]), k(f.in[1]), v(f.in[2]);
  const std::int64_t n = q.width, entry = k.most_active(T), column = v.most_active(T);
  std::optional<InputRows> log_decay, value_decay, phase;
  if (f.in.size() > 3) log_decay.emplace(f.in[3]);
  if (f.in.size() > 4) value_decay.emplace(f.in[4]);
  if (f.in.size() > 5) phase.emplace(f.in[5]);
  const std::int64_t own = f.order.read == ReadOrder::after ? 1 : 0;  // whether a step reads its own write
  const bool invariant = log_decay && f.in[3].shape().size() < 4;
  const bool value_invariant = value_decay && f.in[4].shape().size() < 4;
  const bool angles = phase && !is_complex(f.in[5].dtype());
  const auto entry_of = [](const InputRows& rows, std::int64_t t, std::int64_t i) {
    return rows.values[static_cast<std::size_t>(t * rows.stride + i)];
  };
  /// The product of the factors of steps first to last, for key i in the drawn column.
  const auto decay = [&](std::int64_t first, std::int64_t last, std::int64_t i) {
    double sum = 0.0;
    for (std::int64_t t = first; log_decay && t <= last; ++t) sum += (*log_decay)(invariant ? 0 : t, log_decay->width > 1 ? i : 0);
    for (std::int64_t t = first; value_decay && t <= last; ++t) sum += (*value_decay)(value_invariant ? 0 : t, column);
    Complex product = std::exp(sum);
    for (std::int64_t t = first; phase && t <= last; ++t) {
      const Complex turn = entry_of(*phase, t, phase->width > 1 ? i : 0);
      product *= angles ? std::polar(1.0, turn.real()) : turn;
    }
    return product;
  };
  plan.drawing = "triangle";
  const std::string decayed = phase ? "decayed and turned" : "decayed";
  const int given = plan.kind("value", Place::lane, "this step's query, key and value, computed for all steps at once"),
            wrote = plan.kind("written", Place::lane,
                              "what a chunk adds to the memory: its keys times its values, and what it leaves of what was there"),
            memory =
                plan.kind("memory", Place::lane, "the memory after a chunk: the one before, " + decayed + ", and what the chunk wrote"),
            score = plan.kind("score", Place::cell,
                              "the query of the row's step times the key of the column's, " + decayed + " over the steps between"),
            read = plan.kind("read", Place::bar, "the query times the memory before the chunk: it stands for all steps under the bar"),
            output =
                plan.kind("output", Place::end, "what the step reads: its scores times their values, and what it read from the memory");
  std::vector<int> element, memories{-1}, writes;
  std::vector<std::vector<Complex>> held(
      1, std::vector<Complex>(static_cast<std::size_t>(n), 0.0));  // that column of the memory before each chunk
  for (std::int64_t t = 0; t < T; ++t) element.push_back(plan.add(given, 0, t, t, {}, v(t, column)));
  const auto el = [&](std::int64_t t) { return element[static_cast<std::size_t>(t)]; };
  for (std::int64_t c = 0; c < chunks; ++c) {
    const std::int64_t first = c * chunk, last = std::min(T, first + chunk) - 1;
    auto next = held.back();
    std::vector<Complex> added(next.size(), 0.0);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t s = first; s <= last; ++s)
        added[static_cast<std::size_t>(i)] += decay(s + 1, last, i) * entry_of(k, s, i) * v(s, column);
      next[static_cast<std::size_t>(i)] = decay(first, last, i) * next[static_cast<std::size_t>(i)] + added[static_cast<std::size_t>(i)];
    }
    held.push_back(next);
    std::vector<int> needs;
    for (std::int64_t s = first; s <= last; ++s) needs.push_back(el(s));
    writes.push_back(plan.add(wrote, 1, first, last, needs, added[static_cast<std::size_t>(entry)], decay(first, last, entry)));
  }
  for (std::int64_t c = 0; c < chunks; ++c) {
    std::vector<int> needs{writes[static_cast<std::size_t>(c)]};
    if (c) needs.push_back(memories.back());
    memories.push_back(plan.add(memory, 2 + c, 0, std::min(T, (c + 1) * chunk) - 1, needs,
                                held[static_cast<std::size_t>(c + 1)][static_cast<std::size_t>(entry)]));
  }
  for (std::int64_t t = 0; t < T; ++t) {
    const std::int64_t c = t / chunk, first = c * chunk;
    std::vector<int> needs;
    double sum = 0.0;
    for (std::int64_t s = first; s < t + own; ++s) {
      double weight = 0.0;
      for (std::int64_t i = 0; i < n; ++i) weight += (entry_of(q, t, i) * entry_of(k, s, i) * decay(s + 1, t - 1 + own, i)).real();
      std::vector<int> pair{el(s)};
      if (s != t) pair.push_back(el(t));
      needs.push_back(plan.add(score, 1, s, t, pair, weight));
      needs.push_back(el(s));
      sum += weight * v(s, column);
    }
    if (c) {
      double seen = 0.0;
      for (std::int64_t i = 0; i < n; ++i)
        seen += (entry_of(q, t, i) * decay(first, t - 1 + own, i) * held[static_cast<std::size_t>(c)][static_cast<std::size_t>(i)]).real();
      const int node = plan.add(read, chunks + 2, 0, first - 1, {memories[static_cast<std::size_t>(c)], el(t)}, seen);
      plan[node].row = t;
      needs.push_back(node);
      sum += seen;
    }
    if (needs.empty()) needs.push_back(el(t));
    const int node = plan.add(output, chunks + 3, 0, t, needs, sum);
    plan[node].row = t;
  }
  plan.why =
      "Inside a chunk every step looks at every earlier one, all pairs at once; what came before the chunk is one memory, which alone goes "
      "from chunk to chunk." +
      chunks_said("chunks", f.order.chunk, chunk);
  plan.unit = "pieces";
  plan.entry = "Of the first head: a value, a score, entry (" + std::to_string(entry) + ", " + std::to_string(column) +
               ") of the memory, or column " + std::to_string(column) + " of what is read.";
}

}  // namespace reclab::drawing
