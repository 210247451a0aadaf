// SPDX-License-Identifier: GPL-3.0-or-later
// The results of a form, and their distance from another form's.
#pragma once

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "experiment/prepared.h"

namespace reclab {

/// One pass of a form: outputs, and gradients of a loss.
struct FormResult {
  std::vector<double> output, input_gradient;
  std::map<std::string, std::vector<double>> gradients;
  Cost cost;              ///< of the forward pass, by formula
  double seconds = 0.0;   ///< wall
  int iterations = -1;    ///< of a Newton form, the most of all layers; -1 in every other form
  bool converged = true;  ///< false: a Newton form did not, and the sequential form was run instead
  std::string note;       ///< a Newton form's own words
  std::optional<Divergence> bad, bad_gradient;
};
/// The arguments of result_of.
struct FormCase {
  const Architecture& architecture;
  const Hyper& hyper;
  const Parameters& parameters;
  const Sequence& sequence;
  const Loss& loss;
  Backend& backend;
};
FormResult result_of(const FormCase& of, Form form, DType real, bool backward, std::stop_token stop);
/// Adds the course of a Newton form in a network that has run; leaves the report of any other form as it is.
void tell_newton(const Network& network, Form form, FormResult& result);

/// Largest |difference| over the largest |value| of the reference, of the outputs and, the worst over the input and all parameters, of the
/// gradients; NaN where a value is not finite. A gradient that nearly cancels is measured by 1e-4 of the largest of all, since it has the
/// rounding errors of the terms that cancelled.
struct FormErrors {
  double output = 0.0, gradient = 0.0;
};
FormErrors errors_of(const FormResult& result, const FormResult& reference);

}  // namespace reclab
