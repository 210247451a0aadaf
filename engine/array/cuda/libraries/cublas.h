// SPDX-License-Identifier: GPL-3.0-or-later
// cuBLAS, where the machine has it. It is looked for when the program runs and never linked, so that programs start on machines without it;
// its functions have the types that the toolkit's header gives them, so only a library of the header's major version is taken.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <string>

#include "array/cuda/product.h"

#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#include <dlfcn.h>

#include <mutex>
#include <type_traits>

namespace reclab {

class Cublas {
 public:
  /// Null where there is none that works; then `why_not` says why.
  static std::unique_ptr<Cublas> open(cudaStream_t stream, std::string& why_not) {
    const std::string file = "libcublas.so." + std::to_string(CUBLAS_VER_MAJOR);
    std::unique_ptr<Cublas> cublas(new Cublas);
    // Never closed: its registrations with the driver stay until the process ends.
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char* words = dlerror();
      why_not = words ? words : file + " was not found";
      return nullptr;
    }
    // The header's macros map some names to others (cublasCreate to cublasCreate_v2); the text asked for is the mapped one.
#define RECLAB_TEXT_OF(name) #name
#define RECLAB_TEXT(name) RECLAB_TEXT_OF(name)
#define RECLAB_TAKE(member, name) take(library, RECLAB_TEXT(name), cublas->member)
    const bool complete = RECLAB_TAKE(create_, cublasCreate) && RECLAB_TAKE(destroy_, cublasDestroy) &&
                          RECLAB_TAKE(version_, cublasGetVersion) && RECLAB_TAKE(set_stream_, cublasSetStream) &&
                          RECLAB_TAKE(set_math_mode_, cublasSetMathMode) && RECLAB_TAKE(status_name_, cublasGetStatusName) &&
                          RECLAB_TAKE(multiply_f32_, cublasSgemmStridedBatched) && RECLAB_TAKE(multiply_f64_, cublasDgemmStridedBatched);
#undef RECLAB_TAKE
#undef RECLAB_TEXT
#undef RECLAB_TEXT_OF
    if (!complete) {
      why_not = file + " lacks a function of its own header";
      return nullptr;
    }
    cublasStatus_t status = cublas->create_(&cublas->handle_);
    if (status != CUBLAS_STATUS_SUCCESS) cublas->handle_ = nullptr;
    if (status == CUBLAS_STATUS_SUCCESS) status = cublas->set_stream_(cublas->handle_, stream);
    // Sums and factors keep all bits of their type: no TF32, no emulation.
    if (status == CUBLAS_STATUS_SUCCESS) status = cublas->set_math_mode_(cublas->handle_, CUBLAS_DEFAULT_MATH);
    int version = 0;
    if (status == CUBLAS_STATUS_SUCCESS) status = cublas->version_(cublas->handle_, &version);
    if (status != CUBLAS_STATUS_SUCCESS) {
      why_not = file + " could not be started (" + cublas->words_of(status) + ")";
      return nullptr;
    }
    cublas->name_ = "cuBLAS " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100);
    return cublas;
  }
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;
  ~Cublas() {
    if (handle_) destroy_(handle_);
  }
  const std::string& name() const { return name_; }

  struct Outcome {
    std::string failure;  ///< empty: it was asked for
    bool no_memory = false;
  };
  template <class T>
  Outcome multiply(const kernel::ColumnProduct<T>& p) {
    const auto turn = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    const T one(1);
    const auto call = [&](auto* function) {
      // A product may be several kernels that share the handle's workspace: those of two threads must not mix.
      const std::lock_guard lock(mutex_);
      return function(handle_, turn(p.transpose_a), turn(p.transpose_b), p.m, p.n, p.k, &one, p.a, p.lda, p.stride_a, p.b, p.ldb,
                      p.stride_b, &p.beta, p.c, p.ldc, p.stride_c, p.batch);
    };
    cublasStatus_t status;
    if constexpr (std::is_same_v<T, float>)
      status = call(multiply_f32_);
    else
      status = call(multiply_f64_);
    if (status == CUBLAS_STATUS_SUCCESS) return {};
    return {words_of(status), status == CUBLAS_STATUS_ALLOC_FAILED};
  }

 private:
  Cublas() = default;
  template <class F>
  static bool take(void* library, const char* name, F*& function) {
    function = reinterpret_cast<F*>(dlsym(library, name));
    return function != nullptr;
  }
  std::string words_of(cublasStatus_t status) const { return status_name_(status); }

  decltype(&cublasCreate) create_ = nullptr;
  decltype(&cublasDestroy) destroy_ = nullptr;
  decltype(&cublasGetVersion) version_ = nullptr;
  decltype(&cublasSetStream) set_stream_ = nullptr;
  decltype(&cublasSetMathMode) set_math_mode_ = nullptr;
  decltype(&cublasGetStatusName) status_name_ = nullptr;
  decltype(&cublasSgemmStridedBatched) multiply_f32_ = nullptr;
  decltype(&cublasDgemmStridedBatched) multiply_f64_ = nullptr;
  cublasHandle_t handle_ = nullptr;
  std::string name_;
  std::mutex mutex_;
};

}  // namespace reclab

#else  // a toolkit without cuBLAS

namespace reclab {

class Cublas {
 public:
  static std::unique_ptr<Cublas> open(cudaStream_t, std::string& why_not) {
    why_not = "this build's CUDA Toolkit has no cuBLAS";
    return nullptr;
  }
  const std::string& name() const { return name_; }
  struct Outcome {
    std::string failure;
    bool no_memory = false;
  };
  template <class T>
  Outcome multiply(const kernel::ColumnProduct<T>&) {
    return {"this build's CUDA Toolkit has no cuBLAS"};
  }

 private:
  std::string name_;
};

}  // namespace reclab

#endif
