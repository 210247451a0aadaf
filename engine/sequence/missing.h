// SPDX-License-Identifier: GPL-3.0-or-later
// Missing cells of a table, which are NaN in it until here. Inside the floor only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sequence/text/table.h"

namespace reclab {

/// Treats the missing cells of the inputs as asked for, and fills in the table's account of them; those of its target columns stay NaN.
/// Columns without any number are taken out where no columns were chosen. Throws Error where nothing is left, or a chosen column has no
/// number.
void treat_missing(Table& table, const std::string& file, const LoadOptions& options);

/// Holds the last value at the rows [rows, width] of a target where one is missing (NaN), or the first where there is none before, and
/// takes the mask away there. Returns how many rows these are. Throws Error for a column without any number, by its name.
std::int64_t hold_targets(std::vector<double>& target, std::int64_t width, std::vector<double>& mask, const std::vector<std::string>& names,
                          const std::string& file);

/// The last of the remedies for a missing cell, and the choices that would be right, for ErrorPlace::range.
Remedy missing_cure();
extern const char* const missing_cures;

}  // namespace reclab
