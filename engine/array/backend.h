// SPDX-License-Identifier: GPL-3.0-or-later
// Backend: the array operations that every model is made of, on one kind of device. Pointers are to dense row-major arrays in that device's
// memory; a call may return before the work is done (finish() waits). Adjoints accumulate: they add to their arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "array/account.h"
#include "array/shape.h"

namespace reclab {

enum class Device : std::uint8_t { cpu, cuda };

enum class Unary : std::uint8_t {
  affine,
  exp,
  log,
  sqrt,
  square,
  reciprocal,
  sigmoid,
  tanh,
  relu,
  softplus,
  silu,
  gelu,
  gelu_tanh,
  normal_cdf,
  elu,
  abs,
  sign,
  sin,
  cos,
  log_sigmoid,
  floor,
  mean_exp
};
enum class Binary : std::uint8_t { add, subtract, multiply, divide, maximum };

/// The results of Backend::exponent for zeros, and for numbers that are not finite.
inline constexpr int no_exponent = -(1 << 30), infinite_exponent = 1 << 30;  // out of reach of any adjoint's power

/// Up to six dimensions of a broadcast elementwise operation, adjacent ones merged; a stride of 0 repeats the operand.
struct Broadcast {
  int rank = 0;
  std::int64_t size[6] = {};
  std::int64_t stride_x[6] = {};
  std::int64_t stride_y[6] = {};
  std::int64_t elements = 1;
};
/// The broadcast of two shapes by NumPy's rule; asserts that they fit. `result` gets the common shape.
Broadcast broadcast(const Shape& x, const Shape& y, Shape& result);
/// The broadcast of [rows, n] and one row [n].
inline Broadcast broadcast_row(std::int64_t rows, std::int64_t n) {
  return {.rank = 2, .size = {rows, n}, .stride_x = {n, 1}, .stride_y = {0, 1}, .elements = rows * n};
}

/// A box inside a strided array, up to six dimensions: element (i...) lies at offset + sum i_d stride_d.
struct Strided {
  int rank = 0;
  std::int64_t size[6] = {};
  std::int64_t stride[6] = {};
  std::int64_t offset = 0;
  std::int64_t elements = 1;
};

/// C[b] (m x n) = op(A[b]) op(B[b]), op transposes where asked; a batch stride of 0 shares the matrix.
struct MatMul {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
};

/// s_t = a_t * s_{t-1} + b_t for `width` independent entries over `steps` steps.
struct DiagonalDims {
  std::int64_t steps = 0, width = 0;
  std::int64_t period = 0;  ///< time-invariant a: its size (divides width, repeated); 0: a is [steps, width]
};

/// The evaluation order of a recurrence: step by step, as a tree, or in chunks that are joined by their last states.
enum class ScanMethod : std::uint8_t { steps, tree, chunks };

/// Whether a step reads a memory as it is after the step's own update, or as it was before.
enum class ReadOrder : std::uint8_t { after, before };

/// S_t = S_{t-1} + k_t v_t^T, o_t = S_t^T q_t (read before: S_{t-1}^T q_t) for `heads` independent memories (batch included), over `steps`
/// steps.
struct OuterDims {
  std::int64_t steps = 0, heads = 0, key = 0, value = 0;
  ReadOrder read = ReadOrder::after;
};

/// Entries [from, to) of a vector and as many, `apart` further on, of each of `times` parts of it. Both bounds are multiples of 32, or `to`
/// is the last entry of a part. `backwards`: the last are made first, so that a call after one that was not begins with the part of a
/// matrix that the processor's caches hold.
struct EntryRanges {
  std::int64_t from = 0, to = 0, times = 1, apart = 0;
  bool backwards = false;
};

/// S_t = exp(a_t) * S_{t-1} + k_t v_t^T, o_t = S_t^T q_t (read before: S_{t-1}^T q_t), a_t <= 0 for each key dimension or one for all,
/// [steps, heads, decays].
struct GatedDims {
  std::int64_t steps = 0, heads = 0, key = 0, value = 0;
  std::int64_t decays = 1;                 ///< a head: 1, or as many as key dimensions
  ScanMethod method = ScanMethod::chunks;  ///< or steps, with decays alone
  ReadOrder read = ReadOrder::after;
};

/// h_t[c, n] = exp(dt_t[c] a[c, n]) h_{t-1}[c, n] + dt_t[c] x_t[c] b_t[n], y_t[c] = sum_n h_t[c, n] c_t[n] (A. Gu, T. Dao, Mamba, 2023):
/// dt, x and y are [steps, batch, channels], b and c [steps, batch, states], a [channels, states], h_t [batch, channels, states].
struct SelectiveDims {
  std::int64_t steps = 0, batch = 1, channels = 0, states = 0;
};

/// y[r, c] = sum_j w[c, j] x[r + j, c]: causal depth-wise convolution; x has taps - 1 rows more than y, oldest first.
/// Rows are (time, batch) pairs with `batch` innermost.
struct DepthwiseDims {
  std::int64_t steps = 0, batch = 1, channels = 0, taps = 0;
};

/// The term of a loss for a row y of outputs and its target: half the square of y - target, - log softmax(y)[target], or target . y.
enum class LossTerm : std::uint8_t { squared_error, cross_entropy, product };

/// Rows of `width` outputs, [steps, batch, width].
struct LossDims {
  std::int64_t steps = 0, batch = 1, width = 0;
};

/// Work that a device has recorded and does again as a whole, for less than it takes to be asked for call by call.
class Recording {
 public:
  Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  virtual ~Recording() = default;
  virtual void replay() = 0;  ///< may return before the work is done
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Device device() const = 0;
  virtual std::string name() const = 0;
  /// Why nothing can be done with the device any more, in its own words; empty: it can be used.
  virtual std::string lost() const { return {}; }

  virtual void* allocate(std::size_t bytes) = 0;  ///< throws Error when there is not enough memory
  virtual void release(void* memory) noexcept = 0;
  virtual void zero(void* memory, std::size_t bytes) = 0;
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;    ///< host to device
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;  ///< device to host, waits
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;      ///< within the device
  virtual void finish() = 0;
  /// The account of this backend's memory: arrays and the kernels' scratch.
  MemoryAccount& account() { return account_; }
  /// The calls that `work` makes on this thread, kept for replay() with the pointers and numbers that they are made with, and not done.
  /// Null where the device gains nothing by it, or one of the calls waits.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& work) {
    static_cast<void>(work);
    return nullptr;
  }

  /// y = 2^power x, or y += 2^power x.
  virtual void add_scaled(DType type, std::int64_t n, int power, const void* x, void* y, bool accumulate) = 0;
  /// log2 of the 2-norm of 2^power x, without underflow; -infinity for zeros. Waits.
  virtual double log2_norm(DType type, std::int64_t n, const void* x, int power) = 0;
  /// The power of two just above the largest entry; no_exponent when all are zero, infinite_exponent when one is not finite. Waits.
  virtual int exponent(DType type, std::int64_t n, const void* x) = 0;

  virtual void unary(Unary op, DType type, std::int64_t n, const void* x, void* y, double p, double q) = 0;
  virtual void unary_adjoint(Unary op, DType type, std::int64_t n, const void* x, const void* y, const void* gy, void* gx, double p,
                             double q) = 0;
  virtual void binary(Binary op, DType type, const Broadcast& shape, const void* x, const void* y, void* z) = 0;
  /// gx or gy may be null.
  virtual void binary_adjoint(Binary op, DType type, const Broadcast& shape, const void* x, const void* y, const void* gz, void* gx,
                              void* gy) = 0;
  /// z [rows, n] += y, one row for all or, with by_rows, [rows, n].
  void add_to_rows(DType type, std::int64_t rows, std::int64_t n, const void* y, bool by_rows, void* z) {
    if (by_rows)
      add_scaled(type, rows * n, 0, y, z, true);
    else
      binary(Binary::add, type, broadcast_row(rows, n), z, y, z);
  }
  /// dense = strided, and strided += dense (or dense += strided with accumulate).
  virtual void gather(DType type, const Strided& shape, const void* strided, void* dense, bool accumulate) = 0;
  virtual void scatter(DType type, const Strided& shape, const void* dense, void* strided, bool accumulate) = 0;
  /// y[o, i] = scale * sum_j x[o, j, i]; and its adjoint gx[o, j, i] += scale * gy[o, i].
  virtual void sum(DType type, std::int64_t outer, std::int64_t n, std::int64_t inner, double scale, const void* x, void* y) = 0;
  virtual void sum_adjoint(DType type, std::int64_t outer, std::int64_t n, std::int64_t inner, double scale, const void* gy, void* gx) = 0;
  /// y[o, j, i] = (or +=) the sum of x[o, l, i] over l <= j; reverse: over l >= j.
  virtual void cumulative_sum(DType type, std::int64_t outer, std::int64_t n, std::int64_t inner, bool reverse, const void* x, void* y,
                              bool accumulate) = 0;
  /// y = r (x - m) weight + bias by rows of n entries, with m the mean of the row, or 0 unless `centred`, and r = 1/sqrt(mean (x - m)^2 +
  /// eps); weight and bias are of n entries, or null. The sums are in double precision.
  virtual void norm(DType type, std::int64_t rows, std::int64_t n, bool centred, double eps, const void* x, const void* weight,
                    const void* bias, void* y) = 0;
  /// gx = (or += with `accumulate`) r (g - mean g - z mean (g z)), with z = r (x - m) and g = gy weight, without mean g unless `centred`;
  /// gweight += sum gy z and gbias += sum gy over the rows. Any of the results may be null.
  virtual void norm_adjoint(DType type, std::int64_t rows, std::int64_t n, bool centred, double eps, const void* x, const void* weight,
                            const void* gy, void* gx, bool accumulate, void* gweight, void* gbias) = 0;
  virtual void matmul(DType type, const MatMul& shape, const void* a, const void* b, void* c, bool accumulate) = 0;
  /// One product with bias [n] added to each row: the same bits as matmul() and an addition after it.
  virtual void matmul_biased(DType type, const MatMul& shape, const void* a, const void* b, const void* bias, void* c) {
    matmul(type, shape, a, b, c, false);
    add_to_rows(type, shape.m, shape.n, bias, false, c);
  }
  /// A matrix op(b) (k x n), op transposes where asked, that many products are made with: pack() writes it in the order in which this
  /// backend reads it fastest, or nothing where that is the order it has. `packed` has k times n entries, n up to the next multiple of 32.
  virtual void pack(DType, std::int64_t /*k*/, std::int64_t /*n*/, bool /*transpose*/, const void* /*b*/, void* /*packed*/) {}
  /// c (m x n) = a (m x k) op(b), the same bits as matmul(); and `added` (null: nothing), one row for all or, with by_rows, [m, n], the
  /// same bits as an addition after it.
  virtual void matmul_packed(DType type, std::int64_t m, std::int64_t n, std::int64_t k, bool transpose, const void* a, const void* b,
                             const void* /*packed*/, const void* added, bool by_rows, void* c, bool accumulate) {
    matmul(type, {1, m, n, k, false, transpose}, a, b, c, accumulate);
    if (added) add_to_rows(type, m, n, added, by_rows, c);
  }
  /// Some entries of that for one row and a b [n, k] that is transposed: the same bits. Several threads may call it at once.
  virtual void row_times_packed(DType type, std::int64_t /*n*/, std::int64_t k, const void* a, const void* b, const void* /*packed*/,
                                const void* added, void* c, const EntryRanges& entries) {
    const auto entry = [&](auto* array, std::int64_t i) {
      using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(array)>>, const char, char>;
      return static_cast<Byte*>(array) + static_cast<std::size_t>(i) * bytes_of(type);
    };
    for (std::int64_t i = 0; i < entries.times; ++i) {
      const std::int64_t from = entries.from + i * entries.apart, n = entries.to - entries.from;
      matmul(type, {1, 1, n, k, false, true}, a, entry(b, from * k), entry(c, from), false);
      if (added) add_to_rows(type, 1, n, entry(added, from), false, entry(c, from));
    }
  }

  /// complex from two real arrays, and its adjoint: greal += Re g, gimag += Im g (either may be null).
  virtual void join(DType complex, std::int64_t n, const void* real, const void* imag, void* z) = 0;
  virtual void join_adjoint(DType complex, std::int64_t n, const void* gz, void* greal, void* gimag) = 0;
  /// part 0: Re z, 1: Im z; adjoint: gz += g or i g (the gradient of a real loss is dL/dRe + i dL/dIm).
  virtual void part(DType complex, int which, std::int64_t n, const void* z, void* y) = 0;
  virtual void part_adjoint(DType complex, int which, std::int64_t n, const void* gy, void* gz) = 0;

  virtual void depthwise(DType type, const DepthwiseDims& dims, const void* x, const void* w, void* y) = 0;
  virtual void depthwise_adjoint(DType type, const DepthwiseDims& dims, const void* x, const void* w, const void* gy, void* gx,
                                 void* gw) = 0;

  /// s [steps, width] from a, b and initial [width] (null: zero).
  virtual void diagonal(DType type, const DiagonalDims& dims, ScanMethod method, const void* a, const void* b, const void* initial, void* s,
                        std::stop_token stop) = 0;
  /// lambda_t = g_t + conj(a_{t+1}) lambda_{t+1} with lambda_T+1 = 0 apart from `carried` = conj(a) lambda of the following segment
  /// (already multiplied, may be null). Results are gb = lambda, ga = lambda conj(s_{t-1}) and ginitial = conj(a_0) lambda_0; any may be
  /// null. They are added to what is there, but ga and gb are written where add_ga and add_gb are false.
  /// log2_norm [steps] (host memory, may be null) gets log2 |lambda_t|_2. lambda is renormalised by powers of two as it goes; `exponent` is
  /// the power that `carried` comes with and that conj(a_0) lambda_0 leaves with (in ginitial's units).
  virtual void diagonal_adjoint(DType type, const DiagonalDims& dims, ScanMethod method, const void* a, const void* s, const void* initial,
                                const void* g, const void* carried, void* ga, bool add_ga, void* gb, bool add_gb, void* ginitial,
                                double* log2_norm, int* exponent, std::stop_token stop) = 0;

  /// s_t = f(x_t + u s_{t-1}) of real numbers, step by step: u of the size of a period, x and s [steps, width], initial [width] (null:
  /// zero); affine is the identity. The derivative ds_t/ds_{t-1} is f'(x_t + u s_{t-1}) u, so the adjoint is diagonal_adjoint.
  virtual void independent(Unary f, DType type, const DiagonalDims& dims, const void* u, const void* x, const void* initial, void* s,
                           std::stop_token stop) = 0;

  /// o [steps, heads, value]; states (may be null) [steps, heads, key, value]; final [heads, key, value].
  virtual void outer(DType type, const OuterDims& dims, bool attention, const void* q, const void* k, const void* v, const void* initial,
                     void* o, void* states, void* final_state, std::stop_token stop) = 0;
  virtual void outer_adjoint(DType type, const OuterDims& dims, bool attention, const void* q, const void* k, const void* v,
                             const void* initial, const void* go, const void* carried, void* gq, void* gk, void* gv, void* ginitial,
                             double* log2_norm, std::stop_token stop) = 0;

  /// The memory with decays, of which no state is kept, a chunk of steps at a time or step by step. o [steps, heads, value]; initial (null:
  /// zero) and final_state (may be null) [heads, key, value]; log_decay null: none. A decay of 0 is one whose logarithm is far below, or
  /// -infinity.
  virtual void gated(DType type, const GatedDims& dims, const void* q, const void* k, const void* v, const void* log_decay,
                     const void* initial, void* o, void* final_state, std::stop_token stop) = 0;
  /// gfinal (may be null): the adjoint of the final memory. Any of the results may be null. `exponent` (null: 0) is the power that gfinal
  /// comes with and that ginitial leaves with.
  virtual void gated_adjoint(DType type, const GatedDims& dims, const void* q, const void* k, const void* v, const void* log_decay,
                             const void* initial, const void* go, const void* gfinal, void* gq, void* gk, void* gv, void* glog_decay,
                             void* ginitial, int* exponent, std::stop_token stop) = 0;

  /// initial null: zero; states (all of them, [steps, batch, channels, states]) and final_state may be null.
  virtual void selective(DType type, const SelectiveDims& dims, const void* dt, const void* a, const void* x, const void* b, const void* c,
                         const void* initial, void* y, void* states, void* final_state, std::stop_token stop) = 0;
  /// gstates (of all states) and carried may be null, and any result; carried, ginitial, log2_norm [steps] and exponent are as
  /// diagonal_adjoint's.
  virtual void selective_adjoint(DType type, const SelectiveDims& dims, const void* dt, const void* a, const void* x, const void* b,
                                 const void* c, const void* initial, const void* gy, const void* gstates, const void* carried, void* gdt,
                                 void* ga, void* gx, void* gb, void* gc, void* ginitial, double* log2_norm, int* exponent,
                                 std::stop_token stop) = 0;

  /// x = (I + strictly lower part of a)^-1, [batch, n, n].
  virtual void invert_unit_lower(DType type, std::int64_t batch, std::int64_t n, const void* a, void* x) = 0;

  // Blocks of attention scores [batch, rows, columns]; row i stands at column first + i and sees no later one.
  /// In place: softmax over the columns from low_i (null: 0) to first + i; 0 elsewhere.
  virtual void softmax(DType type, std::int64_t batch, std::int64_t rows, std::int64_t columns, std::int64_t first, const void* low,
                       void* scores) = 0;
  /// g = p (g - sum_j p_j g_j) by rows.
  virtual void softmax_adjoint(DType type, std::int64_t rows, std::int64_t columns, const void* p, void* g) = 0;
  /// scores[i, j] += far[i, first + i - j] where that distance is within far's [batch, rows, distances].
  virtual void by_distance(DType type, std::int64_t batch, std::int64_t rows, std::int64_t columns, std::int64_t distances,
                           std::int64_t first, const void* far, void* scores) = 0;
  /// gfar = the adjoint of that, all of it written.
  virtual void by_distance_adjoint(DType type, std::int64_t batch, std::int64_t rows, std::int64_t columns, std::int64_t distances,
                                   std::int64_t first, const void* gscores, void* gfar) = 0;
  /// Sets to 0 the entries before column bound_i (from: keep those from the bound on) or from it on (not from).
  virtual void keep_columns(DType type, std::int64_t batch, std::int64_t rows, std::int64_t columns, const void* bound, bool from,
                            void* scores) = 0;
  /// scores[i, j] *= exp(row[first + i] + column[j] + (row_low[first + i] + column_low[j])) for j <= first + i, 0 elsewhere; all four
  /// [batch, steps], the low ones the rounding errors of the others.
  virtual void weigh(DType type, std::int64_t batch, std::int64_t steps, std::int64_t first, std::int64_t rows, std::int64_t columns,
                     const void* row, const void* column, const void* row_low, const void* column_low, void* scores) = 0;
  /// p being the weighted scores: grow += sum_j p g, gcolumn += sum_i p g (either may be null), then g becomes the adjoint of the scores.
  virtual void weigh_adjoint(DType type, std::int64_t batch, std::int64_t steps, std::int64_t first, std::int64_t rows,
                             std::int64_t columns, const void* row, const void* column, const void* row_low, const void* column_low,
                             const void* p, void* g, void* grow, void* gcolumn) = 0;

  /// kernel [channels, steps] = sum_n w[c, n] a[c, n]^k, complex; and its adjoint.
  virtual void vandermonde(DType complex, std::int64_t channels, std::int64_t modes, std::int64_t steps, const void* w, const void* a,
                           void* kernel) = 0;
  virtual void vandermonde_adjoint(DType complex, std::int64_t channels, std::int64_t modes, std::int64_t steps, const void* w,
                                   const void* a, const void* gkernel, void* gw, void* ga) = 0;
  /// y[t, b, c] = sum_{j <= t} kernel[c, j] u[t - j, b, c] by FFT; and its adjoint.
  virtual void convolve(DType type, std::int64_t steps, std::int64_t batch, std::int64_t channels, const void* kernel, const void* u,
                        void* y) = 0;
  virtual void convolve_adjoint(DType type, std::int64_t steps, std::int64_t batch, std::int64_t channels, const void* kernel,
                                const void* u, const void* gy, void* gkernel, void* gu) = 0;
  /// The same for a kernel that many convolutions are made with: spectrum() transforms it once, into memory of spectrum_size() bytes; none
  /// where a backend transforms it at every call.
  virtual std::size_t spectrum_size(DType, std::int64_t /*steps*/, std::int64_t /*channels*/) { return 0; }
  virtual void spectrum(DType, std::int64_t /*steps*/, std::int64_t /*channels*/, const void* /*kernel*/, void* /*spectrum*/) {}
  virtual void convolve_with(DType type, std::int64_t steps, std::int64_t batch, std::int64_t channels, const void* kernel,
                             const void* /*spectrum*/, const void* u, void* y) {
    convolve(type, steps, batch, channels, kernel, u, y);
  }
  virtual void convolve_adjoint_with(DType type, std::int64_t steps, std::int64_t batch, std::int64_t channels, const void* kernel,
                                     const void* /*spectrum*/, const void* u, const void* gy, void* gkernel, void* gu) {
    convolve_adjoint(type, steps, batch, channels, kernel, u, gy, gkernel, gu);
  }

  /// value [batch] = sum_t weight[t, b] term(y[t, b], target[t, b]), and gy = its derivative by y, all of it written. Real numbers alone;
  /// value, weight [steps, batch] and target are float64 for every type of y and gy, and so is the arithmetic. target is [steps, batch,
  /// width], for a cross-entropy the number of a class [steps, batch]; null, for a squared error: 0. A row of weight 0 is not read.
  virtual void loss(DType type, LossTerm term, const LossDims& dims, const void* y, const void* target, const void* weight, void* value,
                    void* gy) = 0;

  // The bytes of scratch that operations take while they run, at most: with execution/planning_backend.h, a plan of memory counts them. 0:
  // none that grows with the model.
  virtual std::size_t cumulative_sum_scratch(DType, std::int64_t /*inner*/) const { return 0; }
  virtual std::size_t norm_scratch(std::int64_t /*rows*/, std::int64_t /*n*/) const { return 0; }  ///< of the adjoint
  virtual std::size_t matmul_scratch(DType, const MatMul&) const { return 0; }
  virtual std::size_t diagonal_scratch(DType, const DiagonalDims&, ScanMethod, bool /*adjoint*/) const { return 0; }
  virtual std::size_t outer_scratch(DType, const OuterDims&, bool /*attention*/, bool /*adjoint*/) const { return 0; }
  virtual std::size_t gated_scratch(DType, const GatedDims&, bool /*adjoint*/) const { return 0; }
  virtual std::size_t selective_scratch(DType, const SelectiveDims&, bool /*adjoint*/) const { return 0; }
  virtual std::size_t vandermonde_scratch(std::int64_t /*modes*/) const { return 0; }
  virtual std::size_t convolve_scratch(DType, std::int64_t /*steps*/, bool /*adjoint*/) const { return 0; }

 private:
  MemoryAccount account_;
};

/// The CPU: always there.
Backend& cpu_backend();
/// Null when this build or this machine has no CUDA device, or it was lost; `why_not` then says so in a sentence.
Backend* cuda_backend(std::string* why_not = nullptr);

}  // namespace reclab
