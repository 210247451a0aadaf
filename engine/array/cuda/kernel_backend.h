// SPDX-License-Identifier: GPL-3.0-or-later
// A Backend made of the kernels: it chooses the launches, their sizes and their order. Machine knows how to launch; it has
//   allocate, release, zero, upload, download, copy, finish, device, name   as Backend has them, and
//   each(n, f)      f(i) for all i < n, in any order
//   blocks(n, f)    f(block, i, shared) for all i < n
// and runs one launch after the other. Its optional members are in recorder.h, health() where the device can be lost, and
//   product(p)      whether a library makes this ColumnProduct (product.h); it may leave it to our kernels
//   has_transforms(), transforms(t)   whether a library makes Fourier transforms, and has it make these RealTransforms (convolution.h)
//   group_bytes     the bytes that the spectra of a convolution take at a time, at most
// A family's kernels and their launches are in the file of its name; families.h has them all.
#pragma once

#include <algorithm>
#include <climits>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "array/cuda/kernels.h"
#include "array/cuda/recorder.h"
#include "array/demand.h"
#include "array/error.h"

namespace reclab::kernel {

// Kernels that families launch for each other.
template <class T>
struct Line;
template <class T>
struct Gemm;
template <class P>
struct Matrices;
template <class T>
struct OuterPass;
template <class T>
struct Gates;
template <class T>
struct GatedRows;
template <class T>
struct GatedSteps;
struct Magnitude;
struct Layout;
struct Sequences;
struct SpectrumLayout;
template <class T>
struct Coefficient;

/// Transforms of one length; the roots of unity stay on the device.
struct Fourier {
  Index size = 0;
  const Wave* roots = nullptr;
};

template <class Machine>
class KernelBackend final : public Backend {
 public:
  template <class... Arguments>
  explicit KernelBackend(Arguments&&... arguments) : machine_(std::forward<Arguments>(arguments)...) {}
  ~KernelBackend() override {
    for (const auto& [steps, fourier] : roots_) release(const_cast<Wave*>(fourier.roots));
  }
  Machine& machine() { return machine_.machine(); }

  Device device() const override { return Device::cuda; }
  std::string name() const override { return machine_.name(); }
  std::string lost() const override {
    if constexpr (requires { machine_.machine().health(); })
      return machine_.machine().health().words();
    else
      return {};
  }
  void* allocate(std::size_t bytes) override { return machine_.allocate(std::max<std::size_t>(bytes, 1)); }
  void release(void* memory) noexcept override {
    if (memory) machine_.release(memory);
  }
  void zero(void* memory, std::size_t bytes) override {
    if (bytes) machine_.zero(memory, bytes);
  }
  void upload(void* to, const void* from, std::size_t bytes) override {
    if (bytes) machine_.upload(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    if (bytes) machine_.download(to, from, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes) machine_.copy(to, from, bytes);
  }
  void finish() override { machine_.finish(); }
  std::unique_ptr<Recording> record(const std::function<void()>& work) override { return machine_.record(work); }

#include "array/operations.inc"
  std::size_t spectrum_size(DType type, Index steps, Index channels) override;
  void spectrum(DType type, Index steps, Index channels, const void* kernel, void* spectrum) override;
  void convolve_with(DType type, Index steps, Index batch, Index channels, const void* kernel, const void* spectrum, const void* u,
                     void* y) override;
  void convolve_adjoint_with(DType type, Index steps, Index batch, Index channels, const void* kernel, const void* spectrum, const void* u,
                             const void* gy, void* gkernel, void* gu) override;

 private:
  static constexpr Index stretch = 4096;  // steps of a loop over time between two looks at the stop token

  /// Memory for the length of a call; none for no entries.
  template <class T>
  struct Scratch {
    Recorder<Machine>& machine;
    T* data;
    Scratch(Recorder<Machine>& on, Index n)
        : machine(on), data(n ? static_cast<T*>(on.allocate(static_cast<std::size_t>(n) * sizeof(T))) : nullptr) {}
    ~Scratch() {
      if (data) machine.release(data);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
  };

  template <class T>
  static const T* as(const void* p) {
    return static_cast<const T*>(p);
  }
  template <class T>
  static T* as(void* p) {
    return static_cast<T*>(p);
  }
  template <class F>
  static void with_type(DType type, F&& f) {
    switch (type) {
      case DType::f32: f(float{}); break;
      case DType::f64: f(double{}); break;
      case DType::c64: f(Complex<float>(0.0f)); break;
      case DType::c128: f(Complex<double>(0.0)); break;
    }
  }
  template <class F>
  static void with_real(DType type, F&& f) {
    RECLAB_DEMAND(!is_complex(type));
    if (type == DType::f32)
      f(float{});
    else
      f(double{});
  }
  static int unit_of(int exponent) { return exponent == no_exponent || exponent == infinite_exponent ? 0 : exponent; }
  /// Launches run ahead of the device: waiting now and then keeps a cancelled run from going on behind our back.
  void poll(const std::stop_token& stop, Index step) {
    if (step) machine_.finish();
    if (stop.stop_requested()) throw Cancelled();
  }

  // Reduce
  template <class Term, class T>
  void reduce(const Term& term, Index outputs, Index length, T* out, double scale, bool accumulate);
  template <class T>
  std::vector<Magnitude> magnitudes_of(const T* x, const int* exponents, Index n, Index span);
  std::vector<Magnitude> magnitudes(DType type, Index n, const void* x);

  // Product
  template <class T>
  void gemm(Gemm<T> g);
  template <class A, class B, class T>
  void multiply(const Matrices<A>& a, const Matrices<B>& b, const Matrices<T>& c, bool accumulate);

  // Diagonal
  template <class T>
  void run_line(const Line<T>& line, bool scan, T* out, const std::stop_token& stop);

  // Outer
  template <class T>
  void start_memory(const T* from, double* memory, Index n);
  template <class T>
  void start_transposed(const OuterDims& d, const T* from, double* memory);
  template <class T>
  void pass(OuterPass<T> f, const std::stop_token& stop);

  // Gated
  template <class T>
  void gated_memories(const Gates<T>& g, const GatedRows<T>& rows, const T* v, const T* initial, double* memory, T* starts,
                      const std::stop_token& stop);
  template <class T>
  void gated_steps(GatedSteps<T> f, const std::stop_token& stop);
  template <class T>
  int gated_steps_adjoint(const Gates<T>& g, const T* q, const T* k, const T* v, const T* initial, const T* go, const T* gfinal, int unit,
                          T* gq, T* gk, T* gv, T* ga, T* ginitial, bool in_units, const T* first_q, const T* first_go,
                          const std::stop_token& stop);
  template <class T>
  void step_earlier(const T* x, Index steps, Index rows, T* to);
  int common_unit(const double* x, const int* exponents, Index n);

  // Convolution
  /// Enough to keep a large device busy to the last transform, and little beside the memory of a small one.
  static constexpr Index group_bytes() {
    if constexpr (requires { Machine::group_bytes; })
      return Machine::group_bytes;
    else
      return Index{512} << 20;
  }
  static Index group_of(Index channels, Index bytes_each);
  bool by_library(DType type, Index steps) const;
  template <class T>
  void transform_kernels(const SpectrumLayout& spectra, Index steps, Index channels, const T* kernel, Coefficient<T>* to);
  template <class T>
  void transform_sequences(const SpectrumLayout& spectra, const Sequences& of, const T* from, Coefficient<T>* to);
  template <class T>
  void sequences_back(const SpectrumLayout& spectra, const Sequences& of, Coefficient<T>* from, T* to, bool add);
  template <class T>
  void convolve_real(Index steps, Index batch, Index channels, const T* kernel, const Coefficient<T>* spectrum, const T* u, T* y);
  template <class T>
  void convolve_real_adjoint(Index steps, Index batch, Index channels, const T* kernel, const Coefficient<T>* spectrum, const T* u,
                             const T* gy, T* gkernel, T* gu);
  Fourier fourier_of(Index steps);
  void transform(const Fourier& fourier, Wave* x, Index count, bool back);
  template <class T>
  void load(const Fourier& fourier, const T* from, const Layout& layout, Index steps, Index count, Wave* to);
  template <class T>
  void store(const Fourier& fourier, Wave* from, const Layout& layout, Index steps, Index count, T* to, bool add);

  Recorder<Machine> machine_;
  std::mutex roots_lock_;
  std::map<Index, Fourier> roots_;
};

}  // namespace reclab::kernel
