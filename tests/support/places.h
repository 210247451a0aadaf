// SPDX-License-Identifier: GPL-3.0-or-later
// Where the tests find what they read and the programs that they start. One file alone knows it, so that the others compile to the same in
// every checkout.
#pragma once

#include <string>

namespace reclab::test {

/// The checkout, or a path in it, as in source("presets").
std::string source(const std::string& path = {});
/// The folder of the build, or a path in it, as in built("bin/reclab").
std::string built(const std::string& path = {});

}  // namespace reclab::test
