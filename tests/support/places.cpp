// SPDX-License-Identifier: GPL-3.0-or-later
#include "places.h"

namespace reclab::test {

std::string source(const std::string& path) { return path.empty() ? RECLAB_SOURCE_DIR : RECLAB_SOURCE_DIR "/" + path; }
std::string built(const std::string& path) { return path.empty() ? RECLAB_BINARY_DIR : RECLAB_BINARY_DIR "/" + path; }

}  // namespace reclab::test
