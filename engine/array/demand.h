// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace reclab {

/// Says on standard error what did not hold, and ends the program.
[[noreturn]] void demand_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace reclab

/// What our own code is to keep, looked at in every build: a mistake of the user's is an Error. For what is cheap beside the work that
/// depends on it; it is no part of the innermost loops.
#define RECLAB_DEMAND(...) \
  (static_cast<bool>(__VA_ARGS__) ? static_cast<void>(0) : ::reclab::demand_failed(#__VA_ARGS__, __FILE__, __LINE__))
