// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/linear/krylov.h"

#include <algorithm>

#include "array/demand.h"
#include "array/host.h"
#include "autodiff/ops.h"

namespace reclab {
namespace {

/// Knows the transition of a recurrence that is run without its steps: passes M on.
class DenseWitness final : public Memory {
 public:
  DenseWitness(DType type, std::int64_t matrices, std::int64_t n, std::int64_t copies)
      : type_(type), matrices_(matrices), n_(n), copies_(copies) {}
  bool carries() const override { return false; }
  Transition transition() const override { return Transition::blocks(matrices_, n_, copies_ / matrices_, false); }
  void jacobian(std::int64_t, std::span<double> matrices) override {
    const auto all = to_double(*backend_, type_, data_, std::ssize(matrices));
    std::copy(all.begin(), all.end(), matrices.begin());
  }
  void forward(const ForwardCall& c) override {
    backend_ = &c.backend;
    data_ = c.in[0];
    c.backend.add_scaled(type_, matrices_ * n_ * n_, 0, c.in[0], c.out[0], false);
  }
  void backward(const BackwardCall& c) override {
    RECLAB_DEMAND((carried_.empty() || !carried_[0]) && "a convolution covers the whole sequence");
    log2_norms_.clear();
    exponent_ = 0;
    if (c.grad_in[0]) c.backend.add_scaled(type_, matrices_ * n_ * n_, 0, c.grad_out[0], c.grad_in[0], true);
  }
  void tangent(const TangentCall& c) override {
    c.backend.add_scaled(type_, matrices_ * n_ * n_, 0, c.tangent_in[0], c.tangent_out[0], false);
  }
  Cost cost() const override { return {}; }

 private:
  DType type_;
  std::int64_t matrices_, n_, copies_;
  Backend* backend_ = nullptr;
  const void* data_ = nullptr;
};

}  // namespace

std::pair<Memory*, Var> dense_witness(Var A, std::int64_t copies) {
  const std::int64_t n = A.dim(-1);
  auto operation = std::make_unique<DenseWitness>(A.dtype(), count(A.shape()) / (n * n), n, copies);
  Memory* memory = operation.get();
  return {memory, A.graph->apply(std::move(operation), {A}, {{A.shape(), A.dtype()}})[0]};
}

Krylov krylov(Var A, Var X, std::int64_t m) {
  for (std::int64_t have = 1; have < m; have *= 2) {
    const Var parts[] = {X, matmul(A, X)};
    X = concat(parts, -1);
    A = matmul(A, A);
  }
  return {X, A};
}

std::int64_t power_of_two_from(std::int64_t least) {
  std::int64_t m = 1;
  while (m < least) m *= 2;
  return m;
}

}  // namespace reclab
