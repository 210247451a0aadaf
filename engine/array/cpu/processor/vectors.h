// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>

namespace reclab::cpu {

/// The width of the registers of the processor that this is compiled for: wider vectors would be taken apart in memory.
#if defined(__AVX512F__)
inline constexpr std::size_t vector_bytes = 64;
inline constexpr int vector_registers = 32;
#elif defined(__AVX__)
inline constexpr std::size_t vector_bytes = 32;
inline constexpr int vector_registers = 16;
#else
inline constexpr std::size_t vector_bytes = 16;
inline constexpr int vector_registers = 16;
#endif

}  // namespace reclab::cpu
