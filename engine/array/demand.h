// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace reclab {

/// Prints the condition that did not hold on standard error, and ends the program.
[[noreturn]] void demand_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace reclab

/// A condition on our own code, checked in every build; a mistake of the user's is an Error. It must be cheap beside the work that depends
/// on it, and stay out of the innermost loops.
#define RECLAB_DEMAND(...) \
  (static_cast<bool>(__VA_ARGS__) ? static_cast<void>(0) : ::reclab::demand_failed(#__VA_ARGS__, __FILE__, __LINE__))
