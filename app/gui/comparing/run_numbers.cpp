// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/comparing/run_numbers.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace reclab {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

double weightsOf(const Trace& trace) {
  double count = 0.0;
  for (const TraceArray* array : trace.of(Kind::param)) count += static_cast<double>(array->size());
  return count;
}

double largestEigenvalue(const Trace& trace) {
  double largest = none;
  for (const TraceArray* array : trace.of(Kind::spectrum))
    if (array->complex)
      for (const auto& value : *array->complex)
        if (std::isfinite(value.real()) && std::isfinite(value.imag())) largest = std::fmax(largest, std::abs(value));
  return largest;
}

/// log10 of |dL/ds_first| / |dL/ds_last|, the norm over all states of the last layer, at the first and the last step where it is not zero.
double gradientRatio(const Trace& trace) {
  const std::vector<const TraceArray*> arrays = trace.matching("gradient/state/");
  if (arrays.empty()) return none;
  const auto layer = [](const TraceArray* array) { return array->key.substr(0, array->key.rfind('/')); };
  std::vector<double> log10;
  for (const TraceArray* array : arrays) {
    if (layer(array) != layer(arrays.back()) || !array->real) continue;
    log10.resize(std::max(log10.size(), array->real->size()), -std::numeric_limits<double>::infinity());
    for (std::size_t i = 0; i < array->real->size(); ++i) {
      const double a = std::max(log10[i], (*array->real)[i]), b = std::min(log10[i], (*array->real)[i]);
      log10[i] = std::isfinite(b) ? a + 0.5 * std::log10(1.0 + std::pow(10.0, 2.0 * (b - a))) : a;
    }
  }
  const auto finite = [](double value) { return std::isfinite(value); };
  const auto first = std::find_if(log10.begin(), log10.end(), finite);
  const auto last = std::find_if(log10.rbegin(), log10.rend(), finite);
  return first == log10.end() ? none : *first - *last;
}

double largestExponent(const Trace& trace) {
  double largest = none;
  for (const TraceArray* array : trace.of(Kind::lyapunov))
    if (array->real && array->has_rows())
      for (auto value = array->real->end() - array->row_size(); value != array->real->end(); ++value)
        if (std::isfinite(*value)) largest = std::fmax(largest, *value);
  return largest;
}

}  // namespace

std::vector<RunNumber> numbersOf(const Trace* trace) {
  const auto of = [&](auto number) { return trace != nullptr ? number(*trace) : none; };
  return {{QObject::tr("value of the loss"), QObject::tr("Of this input, with the loss that the gradients are of"),
           of([](const Trace& t) { return t.info.loss_value; })},
          {QObject::tr("number of weights"), QObject::tr("How many numbers the model learns"), of(weightsOf)},
          {QObject::tr("largest |λ|"),
           QObject::tr("Of the eigenvalues of all recorded steps and all layers; empty where no panel in sight needs them"),
           of(largestEigenvalue)},
          {QObject::tr("log₁₀ |dL/ds| first over last step"),
           QObject::tr("Decades that the gradient gains on its way back: below 0 it vanishes, above 0 it grows. Of all states of the last "
                       "layer together"),
           of(gradientRatio)},
          {QObject::tr("largest Lyapunov exponent"),
           QObject::tr("A step, in the mean over the run: above 0 nearby states part; empty where the Lyapunov panel is closed"),
           of(largestExponent)},
          {QObject::tr("seconds"), QObject::tr("Forward and backward on this machine"), of([](const Trace& t) { return t.info.seconds; })}};
}

}  // namespace reclab
