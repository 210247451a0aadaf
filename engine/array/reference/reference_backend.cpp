// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/reference/reference_backend.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace reclab {
namespace reference {

void* ReferenceBackend::allocate(std::size_t bytes) {
  void* memory = std::malloc(std::max<std::size_t>(bytes, 1));
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace reference

Backend& reference_backend() {
  static reference::ReferenceBackend backend;
  return backend;
}

}  // namespace reclab
