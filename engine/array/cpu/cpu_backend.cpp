// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/cpu/cpu_backend.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "array/demand.h"

namespace reclab {
namespace cpu {

void* CpuBackend::allocate(std::size_t bytes) {
  constexpr std::size_t page = std::size_t{2} << 20;
  const std::size_t unit = bytes >= 2 * page ? page : 64;
  void* memory = std::aligned_alloc(unit, (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit);
  if (!memory)
    throw Error("There is not enough memory for an array of " +
                (bytes >> 20 ? std::to_string(bytes >> 20) + " MiB" : std::to_string(bytes) + " bytes") +
                ": shorten the sequence or make the model smaller.");
#ifdef MADV_HUGEPAGE
  if (unit == page) madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: without large pages it is slower and right
#endif
  return memory;
}

}  // namespace cpu

Backend& cpu_backend() {
  static cpu::CpuBackend backend;
  return backend;
}

Broadcast broadcast(const Shape& x, const Shape& y, Shape& result) {
  const std::size_t rank = std::max(x.size(), y.size());
  result.assign(rank, 1);
  std::vector<std::int64_t> sx(rank, 0), sy(rank, 0);
  std::int64_t run_x = 1, run_y = 1;
  for (std::size_t i = rank; i-- > 0;) {
    const std::size_t back = rank - i;
    const std::int64_t nx = back <= x.size() ? x[x.size() - back] : 1, ny = back <= y.size() ? y[y.size() - back] : 1;
    RECLAB_DEMAND(nx == ny || nx == 1 || ny == 1);
    result[i] = std::max(nx, ny);
    if (nx == 0 || ny == 0) result[i] = 0;
    sx[i] = nx == 1 ? 0 : run_x;
    sy[i] = ny == 1 ? 0 : run_y;
    run_x *= nx;
    run_y *= ny;
  }
  Broadcast merged;
  merged.elements = count(result);
  for (std::size_t i = 0; i < rank; ++i) {
    if (result[i] == 1) continue;
    const int last = merged.rank - 1;
    if (merged.rank && merged.stride_x[last] == sx[i] * result[i] && merged.stride_y[last] == sy[i] * result[i]) {
      merged.size[last] *= result[i];
      merged.stride_x[last] = sx[i];
      merged.stride_y[last] = sy[i];
    } else {
      RECLAB_DEMAND(merged.rank < 6);
      merged.size[merged.rank] = result[i];
      merged.stride_x[merged.rank] = sx[i];
      merged.stride_y[merged.rank] = sy[i];
      ++merged.rank;
    }
  }
  return merged;
}

}  // namespace reclab
