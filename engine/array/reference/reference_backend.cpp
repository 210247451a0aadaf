// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/reference/reference_backend.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace reclab {
namespace reference {

void* ReferenceBackend::allocate(std::size_t bytes) {
  void* memory = std::malloc(std::max<std::size_t>(bytes, 1));
  if (!memory) throw std::bad_alloc();
  return memory;
}
void ReferenceBackend::release(void* memory) noexcept { std::free(memory); }
void ReferenceBackend::zero(void* memory, std::size_t bytes) { std::memset(memory, 0, bytes); }
void ReferenceBackend::upload(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void ReferenceBackend::download(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void ReferenceBackend::copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

}  // namespace reference

Backend& reference_backend() {
  static reference::ReferenceBackend backend;
  return backend;
}

}  // namespace reclab
