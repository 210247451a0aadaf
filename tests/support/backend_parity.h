// SPDX-License-Identifier: GPL-3.0-or-later
// One suite of cases that holds a Backend to the reference: every operation, in every type and variant that there is. A family's cases are
// in parity/<family>.h.
#pragma once

#include <utility>

#include "array/error.h"
#include "parity/attention.h"
#include "parity/convolution.h"
#include "parity/diagonal.h"
#include "parity/elementwise.h"
#include "parity/gated.h"
#include "parity/gather.h"
#include "parity/loss.h"
#include "parity/outer.h"
#include "parity/product.h"
#include "parity/reduce.h"
#include "parity/selective.h"

namespace reclab::test {

/// A stop that was asked for ends every long operation before it does anything.
inline void stop_parity(Backend& other) {
  std::stop_source source;
  source.request_stop();
  void* memory = other.allocate(4096);
  other.zero(memory, 4096);
  int heard = 0;
  const auto call = [&](auto&& f) {
    try {
      f();
    } catch (const Cancelled&) {
      ++heard;
    }
  };
  const DiagonalDims d{4, 2, 0};
  const OuterDims o{4, 1, 2, 2};
  for (const bool tree : {false, true}) {
    call([&] {
      other.diagonal(DType::f64, d, tree ? ScanMethod::tree : ScanMethod::steps, memory, memory, nullptr, memory, source.get_token());
    });
    call([&] {
      other.diagonal_adjoint(DType::f64, d, tree ? ScanMethod::tree : ScanMethod::steps, memory, memory, nullptr, memory, nullptr, nullptr,
                             true, memory, true, nullptr, nullptr, nullptr, source.get_token());
    });
    call([&] { other.outer(DType::f64, o, tree, memory, memory, memory, nullptr, memory, nullptr, memory, source.get_token()); });
    call([&] {
      other.outer_adjoint(DType::f64, o, tree, memory, memory, memory, nullptr, memory, nullptr, memory, memory, memory, nullptr, nullptr,
                          source.get_token());
    });
  }
  for (const ScanMethod method : {ScanMethod::chunks, ScanMethod::steps}) {
    const GatedDims gated{4, 1, 2, 2, 1, method};
    call([&] { other.gated(DType::f64, gated, memory, memory, memory, memory, nullptr, memory, nullptr, source.get_token()); });
    call([&] {
      other.gated_adjoint(DType::f64, gated, memory, memory, memory, memory, nullptr, memory, nullptr, memory, memory, memory, nullptr,
                          nullptr, nullptr, source.get_token());
    });
  }
  const SelectiveDims selective{4, 1, 2, 2};
  call([&] {
    other.selective(DType::f64, selective, memory, memory, memory, memory, memory, nullptr, memory, nullptr, nullptr, source.get_token());
  });
  call([&] {
    other.selective_adjoint(DType::f64, selective, memory, memory, memory, memory, memory, nullptr, memory, nullptr, nullptr, memory,
                            memory, memory, memory, memory, nullptr, nullptr, nullptr, source.get_token());
  });
  other.release(memory);
  CHECK_EQUAL(heard, 14);
}

inline std::vector<ParityCase> parity_cases() {
  std::vector<ParityCase> all{{"a stop is heard", stop_parity}};
  for (auto family :
       {elementwise_parity_cases, reduce_parity_cases, gather_parity_cases, product_parity_cases, diagonal_parity_cases, outer_parity_cases,
        gated_parity_cases, selective_parity_cases, attention_parity_cases, convolution_parity_cases, loss_parity_cases})
    for (ParityCase& one : family()) all.push_back(std::move(one));
  return all;
}

}  // namespace reclab::test
