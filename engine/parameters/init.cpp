// SPDX-License-Identifier: GPL-3.0-or-later
#include "parameters/init.h"

#include <cmath>
#include <vector>

#include "array/demand.h"
#include "array/stop.h"

namespace reclab::init {

Init each(std::function<double(Rng&, std::int64_t)> value) {
  return [value = std::move(value)](InitContext& c) {
    for (std::size_t i = 0; i < c.values.size(); ++i) {
      if (i % 65536 == 0) check_stop();
      c.values[i] = value(c.rng, static_cast<std::int64_t>(i));
    }
  };
}

Init constant(double value) {
  return each([value](Rng&, std::int64_t) { return value; });
}
Init uniform(double low, double high) {
  return each([=](Rng& rng, std::int64_t) { return rng.uniform(low, high); });
}
Init normal(double deviation) {
  return each([=](Rng& rng, std::int64_t) { return deviation * rng.normal(); });
}

Init truncated_normal(double deviation) {
  constexpr double shrinkage = 0.87962566103423978;  // deviation of N(0, 1) cut at +-2
  return each([=](Rng& rng, std::int64_t) {
    double x = rng.normal();
    while (std::abs(x) > 2.0) x = rng.normal();
    return deviation / shrinkage * x;
  });
}

Init orthogonal(double scale) {
  return [scale](InitContext& c) {
    RECLAB_DEMAND(c.shape.size() == 2);
    const auto rows = static_cast<std::size_t>(c.shape[0]), columns = static_cast<std::size_t>(c.shape[1]);
    const std::size_t few = std::min(rows, columns), many = std::max(rows, columns);
    std::vector<double> q(few * many);  // `few` vectors of length `many`, made orthonormal one after the other
    for (std::size_t i = 0; i < few; ++i) {
      double* v = q.data() + i * many;
      double length = 0.0;
      while (length < 1e-6) {
        for (std::size_t k = 0; k < many; ++k) v[k] = c.rng.normal();
        for (int pass = 0; pass < 2; ++pass)  // twice is enough (Kahan)
          for (std::size_t j = 0; j < i; ++j) {
            if (j % 64 == 0) check_stop();
            const double* u = q.data() + j * many;
            double dot = 0.0;
            for (std::size_t k = 0; k < many; ++k) dot += u[k] * v[k];
            for (std::size_t k = 0; k < many; ++k) v[k] -= dot * u[k];
          }
        length = 0.0;
        for (std::size_t k = 0; k < many; ++k) length += v[k] * v[k];
        length = std::sqrt(length);
      }
      for (std::size_t k = 0; k < many; ++k) v[k] /= length;
    }
    for (std::size_t r = 0; r < rows; ++r, check_stop())
      for (std::size_t k = 0; k < columns; ++k) c.values[r * columns + k] = scale * (rows <= columns ? q[r * many + k] : q[k * many + r]);
  };
}

}  // namespace reclab::init
