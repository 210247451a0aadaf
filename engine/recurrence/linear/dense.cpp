// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/demand.h"
#include "recurrence/linear/linear.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "array/device_array.h"
#include "array/error.h"
#include "array/host.h"
#include "autodiff/ops.h"
#include "recurrence/chunks.h"
#include "recurrence/convolution/convolution.h"
#include "recurrence/evaluation_order.h"
#include "recurrence/linear/carried.h"
#include "recurrence/linear/drawing.h"
#include "recurrence/linear/krylov.h"
#include "recurrence/linear_system.h"
#include "recurrence/mixing/mixing.h"

namespace reclab {
namespace {

/// log2 sqrt(4^x + 4^y).
double log2_hypot(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return x + y;
  const double high = std::max(x, y), low = std::min(x, y);
  return std::isfinite(high) && std::isfinite(low) ? high + 0.5 * std::log2(1.0 + std::exp2(2.0 * (low - high))) : high;
}

struct DenseDims {
  std::int64_t groups = 1;  ///< that have matrices of their own
  std::int64_t steps = 0, rows = 0, n = 0;
  bool varying = false;  ///< a matrix a step; then there is one group
  std::int64_t copies = 1;
};

/// x_t = x_{t-1} M_t + b_t for rows x: M = A^T. Sequences are [groups, steps, rows, n], matrices [groups or steps, n, n].
class DenseRecurrence final : public Memory, public HasEvaluationOrder, public HasLinearSystem {
 public:
  DenseRecurrence(DType type, bool chunked, const DenseDims& dims) : type_(type), chunked_(chunked), d_(dims) {
    while (chunk_ * chunk_ < d_.steps) chunk_ *= 2;
    chunks_ = (d_.steps + chunk_ - 1) / chunk_;
  }

  bool carries() const override { return d_.groups == 1 || d_.rows == 1; }
  /// Copies that share a matrix are columns of one block.
  Transition transition() const override {
    return d_.groups > 1 ? Transition::blocks(d_.copies, d_.n, 1, d_.varying) : Transition::blocks(1, d_.n, d_.copies, d_.varying);
  }
  void jacobian(std::int64_t t, std::span<double> matrices) override {
    const auto n = static_cast<std::size_t>(d_.n), square = n * n, blocks = matrices.size() / square;
    const auto all = to_double(*backend_, type_, matrix_at(matrices_, 0, t), std::ssize(matrices));
    for (std::size_t c = 0; c < blocks; ++c)
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) matrices[c * square + i * n + j] = all[c * square + j * n + i];
  }

  void forward(const ForwardCall& c) override {
    Backend& b = c.backend;
    backend_ = &b;
    matrices_ = c.in[0];
    for (std::int64_t g = 0; g < d_.groups; ++g) {
      const void* drive = group(c.in[1], g);
      const void* initial = at(c.in[2], static_cast<std::size_t>(g) * row());
      void* x = group(c.out[0], g);
      b.copy(x, drive, static_cast<std::size_t>(d_.steps) * row());
      if (chunked_ && chunks_ > 1) {
        forward_chunks(b, g, drive, initial, x, c.stop);
        continue;
      }
      times(b, initial, 0, matrix_at(matrices_, g, 0), 0, false, x, 0, 1);
      for (std::int64_t t = 1; t < d_.steps; ++t) {
        if (t % 256 == 0 && c.stop.stop_requested()) throw Cancelled();
        times(b, step(x, t - 1), 0, matrix_at(matrices_, g, t), 0, false, step(x, t), 0, 1);
      }
    }
  }

  void backward(const BackwardCall& c) override {
    Backend& b = c.backend;
    const auto steps = static_cast<std::size_t>(d_.steps);
    const void* carried = carried_.empty() ? nullptr : carried_[0];
    RECLAB_DEMAND(!carried || d_.groups == 1 || d_.rows == 1);
    const std::int64_t n = d_.rows * d_.n;
    char* lambda = entries(lambda_, b, d_.steps * of_row());
    char* first = entries(first_, b, d_.groups * of_row());  // the initial states' adjoints, times 2^powers
    std::vector<int> powers;
    log2_norms_.assign(1, std::vector<double>(steps, -std::numeric_limits<double>::infinity()));
    if (records_backpropagated_) log2_backpropagated_ = log2_norms_;
    for (std::int64_t g = 0; g < d_.groups; ++g) {
      const void* fresh = group(c.grad_out[0], g);
      const void* matrices = back(b, matrix_at(c.in[0], g, 0));
      char* start = first + static_cast<std::size_t>(g) * row();
      b.zero(start, row());
      const void* later = carried ? at(carried, static_cast<std::size_t>(g) * row()) : nullptr;
      std::vector<double> norms(steps), passed(records_backpropagated_ ? steps : 0);
      /// Step by step, as a mantissa and a power of two, which is returned; into plain numbers where asked.
      const auto follow = [&](bool plain) {
        char* now = entries(now_, b, of_row());
        Carried adjoint(b, type_, n);
        adjoint.power = later ? exponent_ : 0;
        if (later) b.copy(start, later, row());
        for (std::int64_t t = d_.steps - 1; t >= 0; --t) {
          if (t % 256 == 0 && c.stop.stop_requested()) throw Cancelled();
          b.copy(now, start, row());
          norms[static_cast<std::size_t>(t)] = adjoint.add(step(fresh, t), now);
          if (plain) b.add_scaled(type_, n, adjoint.power, now, step(lambda, t), false);
          b.zero(start, row());
          times(b, now, 0, at(matrices, d_.varying ? static_cast<std::size_t>(t) * square() : 0), 0, d_.varying, start, 0, 1);
          if (records_backpropagated_) passed[static_cast<std::size_t>(t)] = b.log2_norm(type_, n, start, adjoint.power);
        }
        return adjoint.power;
      };
      int power = 0;
      if (chunked_ && chunks_ > 1) {
        backward_chunks(b, matrices, fresh, later, lambda, c.stop);
        times(b, lambda, 0, matrices, 0, d_.varying, start, 0, 1);
        for (std::size_t t = 0; t < steps; ++t) norms[t] = b.log2_norm(type_, n, lambda + t * row(), 0);
        if (records_backpropagated_) {
          char* before = entries(now_, b, of_row());
          for (std::size_t t = 0; t < steps; ++t) {
            b.zero(before, row());
            times(b, lambda + t * row(), 0, at(matrices, d_.varying ? t * square() : 0), 0, d_.varying, before, 0, 1);
            passed[t] = b.log2_norm(type_, n, before, 0);
          }
        }
        if (std::any_of(norms.begin(), norms.end(),
                        [](double x) { return std::isinf(x); })) {  // plain numbers ended: norms are followed further
          b.zero(start, row());
          power = follow(false);
        }
      } else {
        power = follow(true);
      }
      powers.push_back(power);
      for (std::size_t t = 0; t < steps; ++t) log2_norms_[0][t] = log2_hypot(log2_norms_[0][t], norms[t]);
      for (std::size_t t = 0; t < passed.size(); ++t) log2_backpropagated_[0][t] = log2_hypot(log2_backpropagated_[0][t], passed[t]);
      if (c.grad_in[1]) b.add_scaled(type_, d_.steps * n, 0, lambda, group(c.grad_in[1], g), true);
      if (c.grad_in[0]) {
        void* to = at(c.grad_in[0], static_cast<std::size_t>(g) * square());
        add_products(b, at(c.in[2], static_cast<std::size_t>(g) * row()), lambda, to, 1);
        if (d_.steps > 1) add_products(b, group(c.out[0], g), lambda + row(), d_.varying ? at(to, square()) : to, d_.steps - 1);
      }
    }
    exponent_ = *std::max_element(powers.begin(), powers.end());
    if (c.grad_in[2])
      for (std::size_t g = 0; g < powers.size(); ++g)
        b.add_scaled(type_, n, powers[g] - exponent_, first + g * row(), at(c.grad_in[2], g * row()), true);
  }

  void tangent(const TangentCall& c) override {  // the same recurrence, driven by db_t + x_{t-1} dM_t too
    Backend& b = c.backend;
    const void *dm = c.tangent_in[0], *db = c.tangent_in[1], *start = c.tangent_in[2];
    const std::size_t sequence = static_cast<std::size_t>(d_.groups * d_.steps) * row(),
                      starts = static_cast<std::size_t>(d_.groups) * row();
    void* drive = c.temporary(0, type_, d_.groups * d_.steps * of_row());
    if (db)
      b.copy(drive, db, sequence);
    else
      b.zero(drive, sequence);
    for (std::int64_t g = 0; dm && g < d_.groups; ++g) {
      char* to = group(drive, g);
      times(b, at(c.in[2], static_cast<std::size_t>(g) * row()), 0, matrix_at(dm, g, 0), 0, false, to, 0, 1);
      if (d_.steps > 1)
        times(b, group(c.out[0], g), of_row(), matrix_at(dm, g, d_.varying ? 1 : 0), of_matrix(), false, step(to, 1), of_row(),
              d_.steps - 1);
    }
    if (!start) {
      void* still = c.temporary(1, type_, d_.groups * of_row());
      b.zero(still, starts);
      start = still;
    }
    const void* in[] = {c.in[0], drive, start};
    forward({b, in, c.tangent_out, c.stop});
  }

  Cost cost() const override {
    const double n = static_cast<double>(d_.n), all = static_cast<double>(d_.groups * d_.steps * d_.rows),
                 size = static_cast<double>(bytes_of(type_));
    const double matrices = static_cast<double>(d_.varying ? d_.steps : d_.groups), passes = chunked_ ? 2.0 : 1.0;
    const double products = !chunked_    ? 0.0
                            : d_.varying ? static_cast<double>(d_.steps)
                                         : static_cast<double>(d_.groups) * std::log2(static_cast<double>(chunk_));
    return {2.0 * n * n * (passes * all + n * products), passes * size * (2.0 * all * n + matrices * n * n)};
  }
  EvaluationOrder evaluation_order() const override {
    if (!chunked_) return {.draw = drawing::steps, .steps = d_.steps};
    return {.form = Form::scan, .draw = drawing::matrices, .steps = d_.steps, .chunk = chunk_, .groups = d_.groups};
  }

 private:
  DType type_;
  bool chunked_;
  DenseDims d_;
  std::int64_t chunk_ = 1, chunks_ = 1;
  Backend* backend_ = nullptr;
  const void* matrices_ = nullptr;
  DeviceArray lambda_, first_, now_, starts_, products_, others_, turned_;

  char* entries(DeviceArray& array, Backend& b, std::int64_t n) const { return static_cast<char*>(array.resize(b, type_, n)); }
  std::size_t row() const { return static_cast<std::size_t>(d_.rows * d_.n) * bytes_of(type_); }
  std::size_t square() const { return static_cast<std::size_t>(d_.n * d_.n) * bytes_of(type_); }
  const char* group(const void* sequence, std::int64_t g) const { return step(sequence, g * d_.steps); }
  char* group(void* sequence, std::int64_t g) const { return step(sequence, g * d_.steps); }
  const char* step(const void* sequence, std::int64_t t) const { return at(sequence, static_cast<std::size_t>(t) * row()); }
  char* step(void* sequence, std::int64_t t) const { return at(sequence, static_cast<std::size_t>(t) * row()); }
  const void* matrix_at(const void* matrices, std::int64_t g, std::int64_t t) const {
    return at(matrices, static_cast<std::size_t>(d_.varying ? t : g) * square());
  }

  /// The matrices of the adjoint: a time-invariant matrix is transposed once, then read along its rows.
  const void* back(Backend& b, const void* matrices) {
    if (d_.varying) return matrices;
    Strided transposed;
    transposed.rank = 2;
    transposed.size[0] = transposed.size[1] = transposed.stride[1] = d_.n;
    transposed.stride[0] = 1;
    transposed.elements = d_.n * d_.n;
    char* to = entries(turned_, b, d_.n * d_.n);
    b.gather(type_, transposed, matrices, to, false);
    return to;
  }

  /// y += x M or x M^T, `count` times, strides in entries.
  void times(Backend& b, const void* x, std::int64_t stride_x, const void* m, std::int64_t stride_m, bool transposed, void* y,
             std::int64_t stride_y, std::int64_t count) const {
    b.matmul(type_, {count, d_.rows, d_.n, d_.n, false, transposed, stride_x, stride_m, stride_y}, x, m, y, true);
  }
  /// The matrices' adjoint over some steps in a row: to += before^T lambda.
  void add_products(Backend& b, const void* before, const void* lambda, void* to, std::int64_t steps) const {
    const std::int64_t n = d_.n;
    if (d_.varying)
      b.matmul(type_, {steps, n, n, d_.rows, true, false, d_.rows * n, d_.rows * n, n * n}, before, lambda, to, true);
    else
      b.matmul(type_, {1, n, n, steps * d_.rows, true, false, 0, 0, 0}, before, lambda, to, true);
  }

  std::int64_t of_row() const { return d_.rows * d_.n; }
  std::int64_t of_matrix() const { return d_.varying ? d_.n * d_.n : 0; }
  /// The number of chunks with a step i.
  std::int64_t with_step(std::int64_t i) const { return (chunks_ - 1) * chunk_ + i < d_.steps ? chunks_ : chunks_ - 1; }

  /// The products of the matrices of each chunk but the last, one after another, or one for all of them. In the order of rows: first matrix
  /// first.
  const void* products(Backend& b, const void* matrices) {
    const std::int64_t n = d_.n, full = d_.varying ? chunks_ - 1 : 1;
    char* now = entries(products_, b, full * n * n);
    char* next = entries(others_, b, full * n * n);
    if (!d_.varying) {
      b.copy(now, matrices, square());
      for (std::int64_t power = 1; power < chunk_; power *= 2) {
        b.matmul(type_, {1, n, n, n, false, false, 0, 0, 0}, now, now, next, false);
        std::swap(now, next);
      }
      return now;
    }
    for (std::int64_t c = 0; c < full; ++c)
      b.copy(now + static_cast<std::size_t>(c) * square(), at(matrices, static_cast<std::size_t>(c * chunk_) * square()), square());
    for (std::int64_t i = 1; i < chunk_; ++i) {
      b.matmul(type_, {full, n, n, n, false, false, n * n, chunk_ * n * n, n * n}, now,
               at(matrices, static_cast<std::size_t>(i) * square()), next, false);
      std::swap(now, next);
    }
    return now;
  }
  /// x_i += x_{i-1} M_i in all chunks at once.
  void advance(Backend& b, const void* matrices, void* x, const std::stop_token& stop) const {
    for (std::int64_t i = 1; i < chunk_; ++i) {
      if (stop.stop_requested()) throw Cancelled();
      times(b, step(x, i - 1), chunk_ * of_row(), at(matrices, of_matrix() ? static_cast<std::size_t>(i) * square() : 0),
            chunk_ * of_matrix(), false, step(x, i), chunk_ * of_row(), with_step(i));
    }
  }
  /// Within each chunk, x_i += x_{i+1} M_{i+1}^T, with the matrices of back().
  void retreat(Backend& b, const void* matrices, void* x, const std::stop_token& stop) const {
    for (std::int64_t i = chunk_ - 2; i >= 0; --i) {
      if (stop.stop_requested()) throw Cancelled();
      times(b, step(x, i + 1), chunk_ * of_row(), at(matrices, of_matrix() ? static_cast<std::size_t>(i + 1) * square() : 0),
            chunk_ * of_matrix(), d_.varying, step(x, i), chunk_ * of_row(), with_step(i + 1));
    }
  }

  void forward_chunks(Backend& b, std::int64_t g, const void* drive, const void* initial, void* x, const std::stop_token& stop) {
    const void* matrices = matrix_at(matrices_, g, 0);
    const auto product = static_cast<const char*>(products(b, matrices));
    char* starts = entries(starts_, b, chunks_ * of_row());
    advance(b, matrices, x, stop);
    b.copy(starts, initial, row());
    for (std::int64_t c = 0; c + 1 < chunks_; ++c) {
      b.copy(step(starts, c + 1), step(x, (c + 1) * chunk_ - 1), row());
      times(b, step(starts, c), 0, product + (d_.varying ? static_cast<std::size_t>(c) * square() : 0), 0, false, step(starts, c + 1), 0,
            1);
    }
    b.copy(x, drive, static_cast<std::size_t>(d_.steps) * row());
    times(b, starts, of_row(), matrices, chunk_ * of_matrix(), false, x, chunk_ * of_row(), chunks_);
    advance(b, matrices, x, stop);
  }
  void backward_chunks(Backend& b, const void* matrices, const void* fresh, const void* later, void* lambda, const std::stop_token& stop) {
    const auto begin = [&] {
      b.copy(lambda, fresh, static_cast<std::size_t>(d_.steps) * row());
      if (later) b.add_scaled(type_, of_row(), exponent_, later, step(lambda, d_.steps - 1), true);
    };
    const auto product = static_cast<const char*>(products(b, matrices));
    char* ends = entries(starts_, b, chunks_ * of_row());  // the adjoints that enter a chunk from the next one
    begin();
    retreat(b, matrices, lambda, stop);
    b.zero(ends, static_cast<std::size_t>(chunks_) * row());
    times(b, step(lambda, chunk_), chunk_ * of_row(), at(matrices, of_matrix() ? static_cast<std::size_t>(chunk_) * square() : 0),
          chunk_ * of_matrix(), d_.varying, ends, of_row(), chunks_ - 1);
    for (std::int64_t c = chunks_ - 2; c > 0; --c)
      times(b, step(ends, c), 0, product + (d_.varying ? static_cast<std::size_t>(c) * square() : 0), 0, d_.varying, step(ends, c - 1), 0,
            1);
    begin();
    for (std::int64_t c = 0; c + 1 < chunks_; ++c)
      b.add_scaled(type_, of_row(), 0, step(ends, c), step(lambda, (c + 1) * chunk_ - 1), true);
    retreat(b, matrices, lambda, stop);
  }
};

}  // namespace

MemoryVars dense(Graph& graph, Form form, Var A, Var b) {
  return dense_from(graph, form, A, b, graph.leaf(LeafKind::variable, Shape(b.shape().begin() + 1, b.shape().end()), b.dtype()));
}

MemoryVars dense_from(Graph& graph, Form form, Var A, Var b, Var initial) {
  const std::int64_t steps = b.dim(0), batch = b.dim(1), copies = b.dim(2), n = b.dim(3);
  const std::size_t rank = A.shape().size();
  RECLAB_DEMAND(A.dim(-1) == n && A.dim(-2) == n &&
                (rank == 2 || (rank == 3 && A.dim(0) == copies) || (rank == 4 && A.dim(0) == steps && A.dim(1) == 1)));
  const bool apart = rank == 3 && copies > 1;
  const DenseDims dims{apart ? copies : 1, steps, apart ? batch : batch * copies, n, rank == 4, copies};
  // Copies with matrices of their own come first.
  const int sequence_axes[] = {2, 0, 1, 3}, state_axes[] = {1, 0, 2}, back_axes[] = {1, 2, 0, 3};
  const Var drive = apart ? permute(b, sequence_axes) : b, start = apart ? permute(initial, state_axes) : initial;
  auto operation = std::make_unique<DenseRecurrence>(b.dtype(), form == Form::scan, dims);
  MemoryVars vars;
  vars.memory = operation.get();
  vars.initial = {initial};
  const Var made = graph.apply(std::move(operation), {transpose(A), drive, start}, {{drive.shape(), b.dtype()}})[0];
  vars.trajectories = {apart ? permute(made, back_axes) : made};
  vars.finals = {last(vars.trajectories[0])};
  if (rank != 4) describe(vars.memory, {.structure = LinearSystem::Structure::matrix, .input = b, .output = vars.trajectories[0], .a = A});
  return vars;
}

MemoryVars dense_driven(Graph& graph, Form form, Var A, Var B, Var u) {
  const std::int64_t steps = u.dim(0), batch = u.dim(1), copies = u.dim(2), n = B.dim(0);
  MemoryVars vars;
  if (form != Form::convolution) {
    vars = dense(graph, form, A, chunks::with_axis(u, -1) * B);
    describe(vars.memory, {.structure = LinearSystem::Structure::matrix, .input = u, .output = vars.trajectories[0], .a = A, .b = B});
    return vars;
  }
  vars.initial = {graph.leaf(LeafKind::variable, {batch, copies, n}, u.dtype())};
  const auto [memory, own] = dense_witness(A, copies);
  vars.memory = memory;
  const Var columns[] = {reshape(B, {n, 1}), matmul(own, transpose(reshape(vars.initial[0], {batch * copies, n})))};
  const std::int64_t each = 1 + batch * copies, whole = power_of_two_from(steps);
  const Var responses = reshape(krylov(own, concat(columns, -1), whole).columns, {n, whole, each});
  const Var wanted = slice(responses, 1, 0, steps);
  // Every entry of every copy is a channel of its own.
  const Var kernel = reshape(reshape(slice(wanted, -1, 0, 1), {1, n, steps}) + chunks::zeros(graph, {copies, 1, 1}), {copies * n, steps});
  const Var input = reshape(chunks::with_axis(u, -1) + chunks::zeros(graph, {n}), {steps, batch, copies * n});
  const int time_first[] = {1, 2, 0};
  vars.trajectories = {reshape(convolve(kernel, input), {steps, batch, copies, n}) +
                       reshape(permute(slice(wanted, -1, 1, each), time_first), {steps, batch, copies, n})};
  vars.finals = {last(vars.trajectories[0])};
  return vars;
}

Var linear(Layer& layer, const StateSpec& state, Var A, Var b, Var driven) {
  layer.declare_forms({Form::scan});
  const MemoryVars vars = dense(layer.graph(), layer.form(), A, b);
  layer.declare({state}, vars);
  declare_mixing(layer, {.name = state.name,
                         .value = driven ? driven : b,
                         .output = vars.trajectories[0],
                         .groups = b.dim(2),
                         .reads = b.dim(3),
                         .group = "copy",
                         .joined = !driven});
  return vars.trajectories[0];
}

Var linear_driven(Layer& layer, const StateSpec& state, Var A, Var B, Var u) {
  layer.declare_forms({Form::scan, Form::convolution});
  const MemoryVars vars = dense_driven(layer.graph(), layer.form(), A, B, u);
  layer.declare({state}, vars);
  if (vars.trajectories[0])
    declare_mixing(
        layer,
        {.name = state.name, .value = u, .output = vars.trajectories[0], .groups = u.dim(2), .reads = state.shape.back(), .group = "copy"});
  return vars.trajectories[0];
}

}  // namespace reclab
