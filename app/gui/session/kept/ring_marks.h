// SPDX-License-Identifier: GPL-3.0-or-later
// The places where streams were left, as a file in them tells: no more of the window than files need that a session names.
#pragma once

#include <QString>
#include <filesystem>
#include <vector>

#include "plot/parts/step_mark.h"

namespace reclab {

/// The window's part of a place, behind the path of its folder.
QString windowsPartOfPlace();
/// The folder of the place whose ring or weights a file is; empty where it is another file.
QString placeOf(const std::filesystem::path& file);
/// The steps of a ring at which another regime begins, as its place has them; none of another file.
std::vector<StepMark> marksOfRing(const std::filesystem::path& file);

}  // namespace reclab
