// SPDX-License-Identifier: GPL-3.0-or-later
// What a softmax over scores divides by, which it keeps none of: told afterwards, against plain sums of exponentials.
#include <algorithm>
#include <cmath>

#include "array/rng.h"
#include "recurrence/attention/attention.h"
#include "recurrence/mixing/mixing.h"
#include "test.h"

using namespace reclab;

namespace {

constexpr std::int64_t heads = 3, steps = 150, past = 7, d = 4;

std::vector<double> normal(std::int64_t n, std::uint64_t seed, double scale) {
  Rng rng(seed);
  std::vector<double> made(static_cast<std::size_t>(n));
  for (double& x : made) x = scale * rng.normal();
  return made;
}

/// ln Σ_j exp(q_i . k_j [+ pair_ij]) over low_i <= j <= past + i, from the largest exponent.
double expected(const std::vector<double>& q, const std::vector<double>& k, const std::vector<double>& pair, std::int64_t head,
                std::int64_t i, std::int64_t low) {
  std::vector<double> scores;
  for (std::int64_t j = low; j <= past + i; ++j) {
    double score = pair.empty() ? 0.0 : pair[static_cast<std::size_t>(i * (past + steps) + j)];
    for (std::int64_t x = 0; x < d; ++x)
      score += q[static_cast<std::size_t>((head * steps + i) * d + x)] * k[static_cast<std::size_t>((head * (past + steps) + j) * d + x)];
    scores.push_back(score);
  }
  const double most = *std::ranges::max_element(scores);
  double sum = 0.0;
  for (const double score : scores) sum += std::exp(score - most);
  return most + std::log(sum);
}

}  // namespace

TEST_CASE("the logarithm of what a softmax divides by is that of the sum of its exponentials, also where these are beyond any number") {
  for (const double scale : {0.5, 3.0, 60.0})
    for (const std::int64_t window : {std::int64_t{0}, std::int64_t{20}})
      for (const bool streaming : {false, true}) {
        const auto q = normal(heads * steps * d, 1, scale), k = normal(heads * (past + steps) * d, 2, scale),
                   v = normal(heads * (past + steps) * 2, 3, 1.0),
                   pair = window ? std::vector<double>() : normal(steps * (past + steps), 4, scale);
        std::vector<double> low;
        for (std::int64_t i = 0; i < steps; ++i) low.push_back(static_cast<double>(std::max<std::int64_t>(0, past + i - window + 1)));
        Graph graph(DType::f64);
        SoftmaxAttention a;
        a.q = graph.constant({heads, steps, d}, q);
        a.k = graph.constant({heads, past + steps, d}, k);
        a.v = graph.constant({heads, past + steps, 2}, v);
        if (window) a.low = graph.constant({steps}, low);
        if (!window) a.pair = graph.constant({steps, past + steps}, pair);
        a.window = window;
        softmax_attention(a, streaming);
        graph.allocate(cpu_backend(), false);
        graph.forward();
        std::vector<double> found;
        graph.visit([&](const Operation& operation, std::span<const Var>, std::span<const Var>) {
          if (const auto* has = dynamic_cast<const HasNormaliser*>(&operation))
            found = const_cast<HasNormaliser*>(has)->log_normalisers();  // it has scratch memory
        });
        CHECK_EQUAL(std::ssize(found), heads * steps);
        for (std::int64_t head = 0; head < heads; ++head)
          for (std::int64_t i = 0; i < steps; ++i) {
            const double own = found[static_cast<std::size_t>(head * steps + i)],
                         plain = expected(q, k, pair, head, i, window ? static_cast<std::int64_t>(low[static_cast<std::size_t>(i)]) : 0);
            CHECK_SAYS(std::abs(own - plain) <= 1e-12 * std::max(1.0, std::abs(plain)), "head " + std::to_string(head) + " row " +
                                                                                            std::to_string(i) + ": " + std::to_string(own) +
                                                                                            " and not " + std::to_string(plain));
          }
      }
}
