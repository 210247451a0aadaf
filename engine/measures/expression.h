// SPDX-License-Identifier: GPL-3.0-or-later
// Arithmetic over measures: "log10([left gradient/state/0/h 0])", "0.9^100", or a measure alone; and conditions, "[span output] < 0.3".
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reclab {

/// Gives a measure's number; may throw.
using Measuring = std::function<double(const std::string& measure)>;

/// + - * / ^ and brackets, numbers, pi, measures in square brackets, and log10, log2, ln, exp, sqrt, abs, cos, sin, round of one
/// argument. A text that begins with the name of a measure is that measure. Throws Error for anything else.
double evaluate(std::string_view expression, const Measuring& measuring);

/// A text without the blanks at its ends, and all of it as a number, nothing where it is none.
std::string_view trimmed(std::string_view text);
std::optional<double> number_in(std::string_view text);

/// Whether all parts between " and " are true: each two expressions with <, <=, > or >= between them. Throws Error.
bool holds(std::string_view condition, const Measuring& measuring);

}  // namespace reclab
