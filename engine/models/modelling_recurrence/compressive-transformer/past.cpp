// SPDX-License-Identifier: GPL-3.0-or-later
// The rows of the past that there are, and their distances.
#include <utility>

#include "models/modelling_recurrence/compressive-transformer/parameters.h"

namespace reclab::architectures::compressive {
namespace {

/// The number of rows of C after so many steps.
Var rows_compressed(const Sizes& s, Var passed) {
  const double n_m = static_cast<double>(s.n_m), n_cm = static_cast<double>(s.n_cm), c = static_cast<double>(s.c);
  return minimum(relu(passed - n_m) / c, n_cm);
}

/// y[.., i, j] = x[.., i, j + n - 1 - i] for the first `columns` of each row, 0 where there is no such entry.
Var skewed(Var x, std::int64_t n, std::int64_t columns) {
  const std::int64_t B = x.dim(0), H = x.dim(1), rows = x.dim(2), L = x.dim(3);
  const Var nothing = affine(slice(x, -1, 0, 1), 0.0, 0.0);
  const Var wide[] = {x, nothing};
  const Var flat = reshape(concat(wide, -1), {B, H, rows * (L + 1)});
  std::vector<Var> parts{flat};
  for (std::int64_t missing = n - 1 + rows * L - rows * (L + 1); missing > 0; --missing)
    parts.push_back(affine(slice(flat, -1, 0, 1), 0.0, 0.0));
  return slice(reshape(slice(parts.size() == 1 ? flat : concat(parts, -1), -1, n - 1, n - 1 + rows * L), {B, H, rows, L}), -1, 0, columns);
}

}  // namespace

Past past_of(const Sizes& s, Var start, std::int64_t rows) {
  const std::int64_t M = s.M(), K = M + rows, L = M + s.n;
  const double n_m = static_cast<double>(s.n_m), all = static_cast<double>(M);
  Graph& graph = *start.graph;
  Past past;
  past.start = start;
  past.missing = all - (s.empty ? minimum(start, n_m) + rows_compressed(s, start) : affine(start, 0.0, all));
  std::vector<double> causal, columns, distance;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < K; ++j) causal.push_back(j <= M + i ? 0.0 : unseen);
  for (std::int64_t j = 0; j < K; ++j) columns.push_back(static_cast<double>(j));
  for (std::int64_t p = 0; p < L; ++p)
    for (std::int64_t q = 0; q < L; ++q) distance.push_back(static_cast<double>(q - p));
  past.future = graph.constant({rows, K}, std::move(causal));
  const Var column = graph.constant({K}, std::move(columns));
  past.no_memory = sign(relu(all - 0.5 - column));
  if (!s.empty) return past;
  past.not_yet = sign(relu(past.missing - 0.5 - column));
  past.moved = relu(1.0 - abs(graph.constant({L, L}, std::move(distance)) - past.missing));
  return past;
}

Var place_scores(const Sizes& s, const Past& past, Var positions, Var q) {
  const std::int64_t B = q.dim(0), H = s.heads, rows = q.dim(2), L = s.M() + s.n;
  const int heads_first[] = {1, 0, 2, 3};
  const Var by_head = matmul_transposed(reshape(permute(q, heads_first), {H, B * rows, s.D}), positions);
  Var places = permute(reshape(by_head, {H, B, rows, L}), heads_first);
  if (past.moved) places = matmul(places, past.moved);
  return skewed(places, s.n, s.M() + rows);
}

Var compressed_rows(const Sizes& s, const Past& past) {
  std::vector<double> from_the_end;
  for (std::int64_t r = 0; r < s.n_cm; ++r) from_the_end.push_back(static_cast<double>(s.n_cm - r) - 0.5);
  const Var there = rows_compressed(s, past.start + static_cast<double>(s.n));
  return sign(relu(there - past.start.graph->constant({s.n_cm, 1}, std::move(from_the_end))));
}

Var most_used(const Sizes& s, Var old, Var usage) {
  const std::int64_t B = old.dim(0), rows = s.n / s.c;
  std::vector<double> numbers, older;
  for (std::int64_t i = 0; i < s.n; ++i)
    for (std::int64_t j = 0; j < s.n; ++j) older.push_back(j < i ? 0.5 : 0.0);
  for (std::int64_t r = 0; r < rows; ++r) numbers.push_back(static_cast<double>(r));
  const Var own = reshape(detach(usage), {B, s.n, 1}), others = reshape(detach(usage), {B, 1, s.n});
  const Var before = sign(relu(sign(others - own) + old.graph->constant({s.n, s.n}, std::move(older))));  // row j goes before row i
  const Var rank = sum(before, 2), kept = sign(relu(static_cast<double>(rows) - 0.5 - rank));
  const Var place = reshape(cumulative_sum(kept, 1) - 1.0, {B, 1, s.n});
  const Var chosen = reshape(kept, {B, 1, s.n}) * (1.0 - sign(abs(place - old.graph->constant({rows, 1}, std::move(numbers)))));
  return matmul(chosen, old);
}

}  // namespace reclab::architectures::compressive
