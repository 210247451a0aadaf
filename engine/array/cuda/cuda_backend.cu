// SPDX-License-Identifier: GPL-3.0-or-later
// The CUDA backend: launches kernels on the first CUDA device and allocates its memory. One stream, so that work is done in the order
// of the calls from all threads. The launches that a thread records go to a stream of its own that never runs, so that other threads can
// go on meanwhile.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "array/cuda/families.h"
#include "array/cuda/health.h"
#include "array/cuda/libraries/cublas.h"
#include "array/cuda/libraries/cufft.h"
#include "array/pool.h"

namespace reclab {
namespace {

using kernel::Index;
constexpr int threads = 256;  // a block's; the kernels with phases count on it
constexpr Index few = 1 << 16;

std::string words_of(cudaError_t status) { return std::string(cudaGetErrorName(status)) + ": " + cudaGetErrorString(status); }
void check(cudaError_t status, const char* doing) {  // before there is a machine
  if (status == cudaSuccess) return;
  cudaGetLastError();
  kernel::Health().failed(doing, words_of(status));
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
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) f(i);
}
template <class F>
__global__ void __launch_bounds__(threads) run_blocks(F f, Index n) {
  __shared__ typename F::Shared shared;
  DeviceBlock block;
  for (Index i = blockIdx.x; i < n; i += gridDim.x) f(block, i, shared);
}

/// The code for products, and for Fourier transforms of real sequences. by_size: a library, where there is one, for those sizes at which
/// it is faster. The variables RECLAB_CUDA_PRODUCTS and RECLAB_CUDA_TRANSFORMS choose the library or our own kernels for all sizes, so that
/// both can be compared.
enum class Choice { by_size, own, library };
Choice choice_of(const char* variable, const std::string& library) {
  const char* words = std::getenv(variable);
  const std::string chosen = words ? words : "";
  if (chosen.empty()) return Choice::by_size;
  if (chosen == "own") return Choice::own;
  if (chosen == library) return Choice::library;
  throw Error(std::string(variable) + " is \"" + chosen + "\": it may be own or " + library);
}
/// Below this many multiplications either takes about as long as its launch.
constexpr double worth_cublas = 1 << 22;

class CudaMachine {
 public:
  CudaMachine(std::string name, bool pools)
      : name_(std::move(name)),
        pools_(pools),
        pool_([this](std::size_t bytes) { return plain_memory(bytes); }, [this](void* memory) { free_plain(memory); }) {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "start a stream of work");
    if (pools_) {  // keep released memory for the next array
      std::uint64_t keep = ~std::uint64_t{0};
      check(cudaDeviceGetDefaultMemPool(&device_pool_, 0), "open its memory");
      check(cudaMemPoolSetAttribute(device_pool_, cudaMemPoolAttrReleaseThreshold, &keep), "set up its memory");
    }
    const Choice products = choice_of("RECLAB_CUDA_PRODUCTS", "cublas"), transforms = choice_of("RECLAB_CUDA_TRANSFORMS", "cufft");
    std::string why_not;
    if (products != Choice::own) cublas_ = Cublas::open(stream_, why_not);
    if (products == Choice::library && !cublas_) throw Error("RECLAB_CUDA_PRODUCTS is cublas, which is not there: " + why_not);
    if (products == Choice::by_size) worth_cublas_ = worth_cublas;
    if (transforms != Choice::own) cufft_ = Cufft::open(stream_, why_not);
    if (transforms == Choice::library && !cufft_) throw Error("RECLAB_CUDA_TRANSFORMS is cufft, which is not there: " + why_not);
    if (cublas_) name_ += " with " + cublas_->name();
    if (cufft_) name_ += (cublas_ ? " and " : " with ") + cufft_->name();
  }
  CudaMachine(const CudaMachine&) = delete;
  CudaMachine& operator=(const CudaMachine&) = delete;
  const std::string& name() const { return name_; }
  const kernel::Health& health() const { return health_; }

  void* allocate(std::size_t bytes) {
    health_.require();
    void* memory = pools_ ? device_memory(bytes) : pool_.allocate(bytes);
    if (!memory) health_.out_of_memory(bytes, words_of(cudaErrorMemoryAllocation));
    return memory;
  }
  void release(void* memory) noexcept {
    if (health_.lost()) return;
    if (pools_)
      cudaFreeAsync(memory, stream_);  // a failure here is reported by the next call, which fails too
    else
      pool_.release(memory);
  }
  void zero(void* memory, std::size_t bytes) {
    health_.require();
    done(cudaMemsetAsync(memory, 0, bytes, stream()), "clear memory");
  }
  void upload(void* to, const void* from, std::size_t bytes) {
    health_.require();
    done(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "read from the computer's memory");
    done(cudaStreamSynchronize(stream_), "finish its work");  // the caller may change `from` now
  }
  void download(void* to, const void* from, std::size_t bytes) {
    health_.require();
    done(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "write to the computer's memory");
    finish();
  }
  void copy(void* to, const void* from, std::size_t bytes) {
    health_.require();
    done(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream()), "copy memory");
  }
  void finish() {
    health_.require();
    done(cudaStreamSynchronize(stream_), "finish its work");
  }

  template <class F>
  void each(Index n, const F& f) {
    if (n <= 0) return;
    health_.require();
    // Few threads are spread over many multiprocessors.
    const int block = n <= few ? 64 : threads;
    run_each<<<grid((n + block - 1) / block), static_cast<unsigned>(block), 0, stream()>>>(f, n);
    done(cudaGetLastError(), "start a kernel");
  }
  template <class F>
  void blocks(Index n, const F& f) {
    if (n <= 0) return;
    health_.require();
    run_blocks<<<grid(n), threads, 0, stream()>>>(f, n);
    done(cudaGetLastError(), "start a kernel");
  }

  /// Whether cuBLAS makes this product; else it is left to our own kernel.
  template <class T>
  bool product(const kernel::ColumnProduct<T>& product) {
    if (!cublas_ || product.multiplications() < worth_cublas_) return false;
    health_.require();
    const Cublas::Outcome outcome = cublas_->multiply(product);
    if (!outcome.failure.empty()) failed(outcome.failure, outcome.no_memory, "multiply matrices");
    return true;
  }

  bool has_transforms() const { return cufft_ != nullptr; }
  template <class T>
  void transforms(const kernel::RealTransforms<T>& transforms) {
    health_.require();
    Cufft::Outcome outcome = transform(transforms);
    if (outcome.no_memory && pools_) {  // a plan's tables are not from the pool
      trim_pool();
      outcome = transform(transforms);
    }
    if (!outcome.failure.empty()) failed(outcome.failure, outcome.no_memory, "make Fourier transforms");
  }

  class Recorded {
   public:
    Recorded(const kernel::Health& health, cudaGraphExec_t graph) : health_(&health), graph_(graph) {}
    Recorded(Recorded&& other) noexcept : health_(other.health_), graph_(std::exchange(other.graph_, nullptr)) {}
    ~Recorded() {
      if (graph_ && !health_->lost()) cudaGraphExecDestroy(graph_);
    }
    cudaGraphExec_t graph() const { return graph_; }

   private:
    const kernel::Health* health_;
    cudaGraphExec_t graph_;
  };
  void begin_recording() {
    health_.require();
    cudaStream_t made = nullptr;
    done(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "start a stream of work");
    // Relaxed: memory is asked for meanwhile, from the stream that runs.
    const cudaError_t status = cudaStreamBeginCapture(made, cudaStreamCaptureModeRelaxed);
    if (status != cudaSuccess) cudaStreamDestroy(made);
    done(status, "record its work");
    recording_ = made;
  }
  Recorded end_recording() {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    cudaError_t status = end_capture(&graph);
    if (status == cudaSuccess) status = cudaGraphInstantiateWithFlags(&ready, graph, 0);
    if (graph) cudaGraphDestroy(graph);
    done(status, "record its work");
    return Recorded(health_, ready);
  }
  void abandon_recording() noexcept {
    cudaGraph_t graph = nullptr;
    if (health_.lost()) {
      recording_ = nullptr;
      return;
    }
    end_capture(&graph);
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
  }
  void replay(const Recorded& recorded) {
    health_.require();
    done(cudaGraphLaunch(recorded.graph(), stream_), "repeat its work");
  }

 private:
  static unsigned grid(Index blocks) { return static_cast<unsigned>(std::min<Index>(blocks, 1 << 20)); }
  cudaStream_t stream() const { return recording_ ? recording_ : stream_; }

  /// Throws for an error. An error of one call is forgotten; one that stays when it should be is the device's end.
  void done(cudaError_t status, const char* doing) {
    if (status == cudaSuccess) return;
    cudaGetLastError();
    failed(words_of(status), status == cudaErrorMemoryAllocation, doing);
  }
  [[noreturn]] void failed(const std::string& words, bool no_memory, const char* doing) {
    const cudaError_t now = cudaStreamQuery(stream_);
    if (now != cudaSuccess && now != cudaErrorNotReady) {
      cudaGetLastError();
      health_.lose(words);
    }
    if (no_memory)
      throw DeviceError(DeviceError::Kind::memory, words,
                        "The CUDA device has not enough free memory to " + std::string(doing) + " (" + words + "): choose device cpu.");
    health_.failed(doing, words);
  }
  cudaError_t end_capture(cudaGraph_t* graph) noexcept {
    const cudaStream_t made = std::exchange(recording_, nullptr);
    const cudaError_t status = cudaStreamEndCapture(made, graph);
    cudaStreamDestroy(made);
    return status;
  }

  template <class T>
  Cufft::Outcome transform(const kernel::RealTransforms<T>& transforms) {
    void* work_area = nullptr;
    const Cufft::Outcome outcome = cufft_->transform(transforms, [&](std::size_t bytes) { return work_area = allocate(bytes); });
    if (work_area) release(work_area);
    return outcome;
  }

  void trim_pool() {
    done(cudaStreamSynchronize(stream_), "finish its work");
    done(cudaMemPoolTrimTo(device_pool_, 0), "give memory back");
  }
  /// From the device's own pool; null when there is not enough, even after its unused memory was returned.
  void* device_memory(std::size_t bytes) {
    void* memory = nullptr;
    cudaError_t status = cudaMallocAsync(&memory, bytes, stream_);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      trim_pool();
      status = cudaMallocAsync(&memory, bytes, stream_);
    }
    return had(status) ? memory : nullptr;
  }
  void* plain_memory(std::size_t bytes) {
    void* memory = nullptr;
    return had(cudaMalloc(&memory, bytes)) ? memory : nullptr;
  }
  bool had(cudaError_t status) {
    if (status != cudaErrorMemoryAllocation) {
      done(status, "allocate memory");
      return true;
    }
    cudaGetLastError();
    return false;
  }
  void free_plain(void* memory) noexcept {
    if (!health_.lost()) cudaFree(memory);
  }

  static inline thread_local cudaStream_t recording_ = nullptr;
  std::string name_;
  bool pools_;
  cudaStream_t stream_ = nullptr;
  cudaMemPool_t device_pool_ = nullptr;
  kernel::Health health_;
  MemoryPool pool_;  // where the device has none
  std::unique_ptr<Cublas> cublas_;
  double worth_cublas_ = 0.0;
  std::unique_ptr<Cufft> cufft_;
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
    if (has_driver && status != cudaSuccess && status != cudaErrorNoDevice)
      found.why_not += " (" + std::string(cudaGetErrorString(status)) + ")";
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
  const std::string lost = found.backend ? found.backend->lost() : "";
  if (why_not && !found.backend) *why_not = found.why_not;
  if (why_not && !lost.empty()) *why_not = "the CUDA device was lost (" + lost + "); start the program again to use it";
  return lost.empty() ? found.backend.get() : nullptr;
}

}  // namespace reclab
