// SPDX-License-Identifier: GPL-3.0-or-later
// Stands in for the CUDA backend in a build without a CUDA compiler.
#include "array/backend.h"

namespace reclab {

Backend* cuda_backend(std::string* why_not) {
  if (why_not) *why_not = "this build has no CUDA backend: install the CUDA Toolkit and build again";
  return nullptr;
}

}  // namespace reclab
