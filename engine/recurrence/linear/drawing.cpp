// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/linear/drawing.h"

#include <algorithm>

namespace reclab::drawing {

void matrices(Plan& plan, const Drawn& f) {
  const std::int64_t T = f.order.steps, chunk = std::max<std::int64_t>(1, f.order.chunk), chunks = (T + chunk - 1) / chunk;
  const auto M = values_of(f.in[0]), drive = values_of(f.in[1]), initial = values_of(f.in[2]);
  const std::int64_t n = f.in[0].dim(-1), row = std::ssize(drive) / (f.order.groups * T), square = n * n;
  const bool varying = f.in[0].shape().size() == 4;
  // Of the first sequence: rows x, x_t = x_{t-1} M_t + b_t.
  using Row = std::vector<Complex>;
  const auto b = [&](std::int64_t t) { return Row(drive.begin() + t * row, drive.begin() + t * row + n); };
  const auto times = [&](const Row& x, const Complex* m) {
    Row y(static_cast<std::size_t>(n), 0.0);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) y[static_cast<std::size_t>(j)] += x[static_cast<std::size_t>(i)] * m[i * n + j];
    return y;
  };
  const auto plus = [](Row x, const Row& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
    return x;
  };
  const auto at = [&](std::int64_t t) { return M.data() + (varying ? t * square : 0); };
  const auto states = values_of(f.out[0]);
  Row own;
  for (std::int64_t t = 0; t < T; ++t) own.insert(own.end(), states.begin() + t * row, states.begin() + t * row + n);
  const std::int64_t entry = most_active(own, n);
  const auto shown = [&](const Row& x) { return x[static_cast<std::size_t>(entry)]; };

  const int given = plan.kind("element", Place::point, "the matrix A and the drive b of this step, computed for all steps at once"),
            alone = plan.kind("from zero", Place::point, "s = A s' + b inside a chunk that begins from zero"),
            product = plan.kind("product", Place::point, "the matrices of a chunk multiplied"),
            carried =
                plan.kind("carry", Place::point,
                          "the state before the next chunk: the chunk's product times the state before it, and what it made from zero"),
            stepped = plan.kind("step", Place::point, "s = A s' + b again, now from where the chunk really starts");
  std::vector<int> element;
  for (std::int64_t t = 0; t < T; ++t) element.push_back(plan.add(given, 0, t, t, {}, shown(b(t))));
  const auto el = [&](std::int64_t t) { return element[static_cast<std::size_t>(t)]; };
  std::int64_t round = 0;
  std::vector<int> starts;  // by chunk, the node that makes the state before it; -1: the initial state
  std::vector<Row> start_rows;
  starts.push_back(-1);
  start_rows.emplace_back(initial.begin(), initial.begin() + n);
  if (chunks > 1) {
    std::vector<int> whole(static_cast<std::size_t>(chunks), -1), multiplied(static_cast<std::size_t>(chunks), -1);
    std::vector<Row> ends;
    // The engine squares a matrix that is the same at every step, once for all chunks.
    std::int64_t products = 0;
    int power = -1;
    if (!varying)
      for (std::int64_t have = 1; have < chunk; have *= 2) {
        power = plan.add(product, ++products, 0, 2 * have - 1, {power < 0 ? el(0) : power});
      }
    for (std::int64_t c = 0; c < chunks; ++c) {
      Row x = b(c * chunk);
      int node = el(c * chunk);
      for (std::int64_t i = 1; i < chunk && c * chunk + i < T; ++i) {
        const std::int64_t t = c * chunk + i;
        x = plus(times(x, at(t)), b(t));
        node = plan.add(alone, i, c * chunk, t, {node, el(t)}, shown(x));
      }
      whole[static_cast<std::size_t>(c)] = node;
      ends.push_back(x);
      if (c + 1 == chunks) continue;
      multiplied[static_cast<std::size_t>(c)] = power < 0 ? el(c * chunk) : power;
      if (varying) {
        int m = el(c * chunk);
        for (std::int64_t i = 1; i < chunk; ++i) m = plan.add(product, i, c * chunk, c * chunk + i, {m, el(c * chunk + i)});
        multiplied[static_cast<std::size_t>(c)] = m;
        products = std::max(products, chunk - 1);
      }
    }
    round = std::max(products, chunk - 1);
    for (std::int64_t c = 0; c + 1 < chunks; ++c) {
      Row x = start_rows.back();
      for (std::int64_t i = 0; i < chunk; ++i) x = times(x, at(c * chunk + i));
      start_rows.push_back(plus(x, ends[static_cast<std::size_t>(c)]));
      std::vector<int> needs{whole[static_cast<std::size_t>(c)], multiplied[static_cast<std::size_t>(c)]};
      if (starts.back() >= 0) needs.push_back(starts.back());
      starts.push_back(plan.add(carried, ++round, 0, (c + 1) * chunk - 1, needs, shown(start_rows.back())));
    }
  }
  for (std::int64_t c = 0; c < chunks; ++c) {
    Row x = start_rows[static_cast<std::size_t>(c)];
    int node = starts[static_cast<std::size_t>(c)];
    for (std::int64_t i = 0; i < chunk && c * chunk + i < T; ++i) {
      const std::int64_t t = c * chunk + i;
      x = plus(times(x, at(t)), b(t));
      std::vector<int> needs{el(t)};
      if (node >= 0) needs.push_back(node);
      node = plan.add(stepped, round + 1 + i, 0, t, needs, shown(x));
    }
  }
  plan.why =
      "All chunks run side by side from zero while their matrices are multiplied; one after another they then learn where they really "
      "start, and all run "
      "again from there." +
      chunks_said("chunks", chunk, chunk);
  plan.unit = "matrix products";
  plan.entry = of_entry("The state", f, entry);
}

}  // namespace reclab::drawing
