// SPDX-License-Identifier: GPL-3.0-or-later
// The folders of the files that tests read and of the programs that they start. One file alone knows them, so that the others compile to
// the same in every checkout.
#pragma once

#include <string>

namespace reclab::test {

/// The checkout, or a path in it, as in source("presets").
std::string source(const std::string& path = {});
/// The folder of the build, or a path in it, as in built("bin/reclab").
std::string built(const std::string& path = {});

}  // namespace reclab::test
