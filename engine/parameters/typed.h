// SPDX-License-Identifier: GPL-3.0-or-later
// Values as they are typed on a command line. Every Error names the option.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "parameters/field.h"

namespace reclab {

/// A mistake in an option, one sentence behind its name.
[[noreturn]] void usage_error(const std::string& option, const std::string& sentence);
/// An integer; empty text gives nothing.
std::optional<std::int64_t> integer(const std::string& option, const std::string& text, std::int64_t low, std::int64_t high);
/// A number from 0 on.
double positive(const std::string& option, const std::string& text);
/// A value of a field, checked.
HyperValue typed_value(const Field& field, const std::string& text);

}  // namespace reclab
