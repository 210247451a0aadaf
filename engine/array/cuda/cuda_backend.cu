// SPDX-License-Identifier: GPL-3.0-or-later
// The CUDA backend: how kernels are launched on the first CUDA device, and how its memory is had. One stream, so that work is done in the
// order it was asked for, whichever thread asks.
#include <cuda_runtime.h>

#include <algorithm>
#include <memory>
#include <string>

#include "array/cuda/kernel_backend.h"

namespace reclab {
namespace {

using kernel::Index;
constexpr int threads = 256;  // a block's; the kernels with phases count on it

[[noreturn]] void fail(cudaError_t status, const std::string& doing) {
  cudaGetLastError();  // an error that can be forgotten is
  throw Error("The CUDA device could not " + doing + " (" + cudaGetErrorString(status) + "): choose device cpu.", {.parameter = "device", .value = "cuda", .range = "cpu"});
}
void check(cudaError_t status, const char* doing) {
  if (status != cudaSuccess) fail(status, doing);
}

/// On the device a thread is one thread of the block and a phase ends at a barrier.
struct DeviceBlock {
  template <class L>
  struct Local {
    L value;
    __device__ L& operator[](int) { return value; }
  };
  template <class F>
  __device__ void phase(const F& f) {
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
  }
};

template <class F>
__global__ void __launch_bounds__(threads) run_each(F f, Index n) {
  const Index step = static_cast<Index>(gridDim.x) * threads;
  for (Index i = static_cast<Index>(blockIdx.x) * threads + threadIdx.x; i < n; i += step) f(i);
}
template <class F>
__global__ void __launch_bounds__(threads) run_blocks(F f, Index n) {
  __shared__ typename F::Shared shared;
  DeviceBlock block;
  for (Index i = blockIdx.x; i < n; i += gridDim.x) f(block, i, shared);
}

class CudaMachine {
 public:
  CudaMachine(std::string name, bool pools) : name_(std::move(name)), pools_(pools) {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "start a stream of work");
    if (pools_) {  // keep what was released for the next array
      cudaMemPool_t pool = nullptr;
      std::uint64_t keep = ~std::uint64_t{0};
      check(cudaDeviceGetDefaultMemPool(&pool, 0), "open its memory");
      check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), "set up its memory");
    }
  }
  const std::string& name() const { return name_; }

  void* allocate(std::size_t bytes) {
    void* memory = nullptr;
    const cudaError_t status = pools_ ? cudaMallocAsync(&memory, bytes, stream_) : cudaMalloc(&memory, bytes);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw Error("The CUDA device has not enough free memory for an array of " + std::to_string((bytes >> 20) + 1) +
                      " MiB: shorten the sequence, make the model smaller or choose device cpu.",
                  {.parameter = "device", .value = "cuda", .range = "cpu"});
    }
    if (status != cudaSuccess) fail(status, "allocate memory");
    return memory;
  }
  void release(void* memory) noexcept {
    if (pools_)
      cudaFreeAsync(memory, stream_);
    else
      cudaFree(memory);
  }
  void zero(void* memory, std::size_t bytes) { check(cudaMemsetAsync(memory, 0, bytes, stream_), "clear memory"); }
  void upload(void* to, const void* from, std::size_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "read from the computer's memory");
    check(cudaStreamSynchronize(stream_), "finish its work");  // the caller may change `from` now
  }
  void download(void* to, const void* from, std::size_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "write to the computer's memory");
    finish();
  }
  void copy(void* to, const void* from, std::size_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "copy memory");
  }
  void finish() { check(cudaStreamSynchronize(stream_), "finish its work"); }

  template <class F>
  void each(Index n, const F& f) {
    if (n <= 0) return;
    run_each<<<grid((n + threads - 1) / threads), threads, 0, stream_>>>(f, n);
    check(cudaGetLastError(), "start a kernel");
  }
  template <class F>
  void blocks(Index n, const F& f) {
    if (n <= 0) return;
    run_blocks<<<grid(n), threads, 0, stream_>>>(f, n);
    check(cudaGetLastError(), "start a kernel");
  }

 private:
  static unsigned grid(Index blocks) { return static_cast<unsigned>(std::min<Index>(blocks, 1 << 20)); }
  std::string name_;
  bool pools_;
  cudaStream_t stream_ = nullptr;
};

using CudaBackend = kernel::KernelBackend<CudaMachine>;

struct Found {
  std::unique_ptr<CudaBackend> backend;
  std::string why_not;
};
Found look() {
  Found found;
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    cudaGetLastError();
    int driver = 0;
    const bool has_driver = cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0;
    found.why_not = "no CUDA device";
    if (has_driver && status != cudaSuccess && status != cudaErrorNoDevice) found.why_not += " (" + std::string(cudaGetErrorString(status)) + ")";
    return found;
  }
  try {
    cudaDeviceProp properties{};
    int pools = 0;
    check(cudaGetDeviceProperties(&properties, 0), "be asked what it is");
    check(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, 0), "be asked what it can do");
    cudaFuncAttributes attributes{};
    // Too old a device shows here, before any work.
    check(cudaFuncGetAttributes(&attributes, run_each<kernel::Join<float>>), "run this build's kernels");
    found.backend = std::make_unique<CudaBackend>("CUDA, " + std::string(properties.name), pools != 0);
  } catch (const Error& error) {
    found.why_not = error.what();
  }
  return found;
}

}  // namespace

Backend* cuda_backend(std::string* why_not) {
  static Found& found = *new Found(look());  // outlives the driver's own end of the process
  if (!found.backend && why_not) *why_not = found.why_not;
  return found.backend.get();
}

}  // namespace reclab
