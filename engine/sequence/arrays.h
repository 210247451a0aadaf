// SPDX-License-Identifier: GPL-3.0-or-later
// Helpers that formats share whose files hold arrays of numbers and no text. Inside the floor only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "files/npy.h"
#include "sequence/text/table.h"

namespace reclab {

/// Refuses infinities in a row-major array, and NaN where missing cells are refused, with their place. `what`: " of target", for the
/// sentence.
void check_finite(const std::vector<double>& data, std::int64_t width, const std::string& file, const std::string& what, Missing missing);
/// Refuses a time that does not increase, and one that is missing where its row is not to be left out.
void check_increasing(const std::vector<double>& time, const std::string& file, Missing missing);
/// Refuses a shape that is not [T] or [T, d] of real numbers, by a header alone.
void check_table(const Shape& shape, bool complex, const std::string& file);
/// [T] or [T, d] of real numbers as a table, before columns are chosen.
Table table_of(NpyArray array, const std::string& file, Missing missing);
/// Takes the chosen columns of a table of all there are, and the time if a column is to be it.
void choose_columns(Table& table, const std::string& file, const LoadOptions& options);

}  // namespace reclab
