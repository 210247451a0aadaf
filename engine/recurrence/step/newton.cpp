// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/step/newton.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "array/device_array.h"
#include "array/error.h"

namespace reclab {
namespace {

constexpr std::int64_t block_bytes = std::int64_t{64} << 20;     // limit for the steps evaluated at once,
constexpr std::int64_t cpu_block_bytes = std::int64_t{4} << 20;  // and on the CPU, to stay in the cache
constexpr std::int64_t most_bytes = std::int64_t{1} << 30;       // limit for the Jacobians of one stretch
constexpr std::int64_t stretch = newton_stretch;
constexpr int most_halvings = 12, remembered = 4;

/// Columns from `from` on of a matrix that is `wide` columns wide.
Strided columns_of(std::int64_t rows, std::int64_t columns, std::int64_t wide, std::int64_t from) {
  Strided shape;
  shape.rank = 2;
  shape.size[0] = rows;
  shape.size[1] = columns;
  shape.stride[0] = wide;
  shape.stride[1] = 1;
  shape.offset = from;
  shape.elements = rows * columns;
  return shape;
}

class Solver {
 public:
  Solver(Form form, const ForwardCall& call, std::int64_t steps, std::int64_t batch, const std::function<CellGraph(std::int64_t)>& build,
         bool diagonal, const NewtonWatch& watch)
      : form_(form), c_(call), b_(call.backend), T_(steps), B_(batch), all_diagonal_(diagonal), watch_(watch) {
    report_.form = form;
    CellGraph one = build(B_);
    type_ = one.graph->real();
    for (const Var state : one.states) {
      sizes_.push_back(count(state.shape()) / B_);
      n_ += sizes_.back();
    }
    const auto item = static_cast<std::int64_t>(bytes_of(type_));
    const std::int64_t matrices = all_diagonal_ ? 0 : 2 * B_ * n_ * n_ * item;
    if (std::min(T_, stretch) * matrices > most_bytes) {
      report_.reason = "a state of " + std::to_string(n_) + " entries has Jacobians too large to be multiplied";
      return;
    }
    const std::int64_t together = b_.device() == Device::cpu ? cpu_block_bytes : block_bytes;
    block_ = std::clamp(together / (one.graph->planned_bytes(true) + matrices), std::min(T_, stretch), T_);
    if (block_ < T_) block_ -= block_ % stretch;
    cell_ = build(block_ * B_);
    cell_.graph->allocate(b_, true);
    const auto& captures = cell_.graph->captures();
    for (std::size_t i = 0; i < captures.size(); ++i)
      cell_.graph->bind(captures[i].inner, c_.in[cell_.tokens.size() + cell_.states.size() + i]);

    for (std::size_t k = 0; k < sizes_.size(); ++k) {
      const std::int64_t row = B_ * sizes_[k];
      guess_.emplace_back(b_, type_, (T_ + 1) * row);
      b_.zero(guess_[k].data(), guess_[k].bytes());
      b_.copy(guess_[k].data(), c_.in[cell_.tokens.size() + k], static_cast<std::size_t>(row * item));
      residual_.emplace_back(b_, type_, T_ * row);
      move_.emplace_back(b_, type_, T_ * row);
      if (form_ == Form::damped_newton) base_.emplace_back(b_, type_, T_ * row);
    }
    error_ = DeviceArray(b_, type_, T_ * B_ * n_);
    if (!all_diagonal_) {
      jacobian_ = DeviceArray(b_, type_, block_ * B_ * n_ * n_);
      product_ = DeviceArray(b_, type_, block_ * B_ * n_ * n_);
    }
    if (all_diagonal_ || form_ == Form::quasi_newton) {
      diagonal_ = DeviceArray(b_, type_, T_ * B_ * n_);
      column_ = DeviceArray(b_, type_, block_ * B_);
    }
    const std::int64_t ones = block_ * B_ * (all_diagonal_ ? n_ : 1);
    ones_ = DeviceArray(b_, type_, ones);
    const std::vector<double> wide(static_cast<std::size_t>(ones), 1.0);
    const std::vector<float> narrow(wide.size(), 1.0f);
    b_.upload(ones_.data(), type_ == DType::f64 ? static_cast<const void*>(wide.data()) : narrow.data(), ones_.bytes());
  }

  NewtonReport operator()() {
    if (!report_.reason.empty()) return report_;
    const bool quasi = form_ == Form::quasi_newton, narrow = type_ == DType::f32;
    const double small = narrow ? 1e-6 : 1e-12, near = narrow ? 1e-4 : 1e-10;
    const int limit = quasi ? 500 : 100, patience = quasi ? 100 : 40;
    double residual = evaluate(), best = residual;
    report_.residuals.push_back(residual);
    show(false);
    int best_at = 0, renew_at = 1;
    while (residual != 0.0) {
      const int iteration = report_.iterations() + 1;
      if (!std::isfinite(residual)) return left("the next guess is not finite");
      if (iteration > limit) return left("");
      if (iteration - best_at > patience) return left("it no longer fell");
      const bool diagonal = all_diagonal_ || (quasi && residual > small);
      if (diagonal) {
        if (all_diagonal_ || iteration >= renew_at) {
          renew_diagonal();
          renew_at = 2 * iteration;
        }
        DiagonalDims dims;
        dims.steps = T_;
        dims.width = B_ * n_;
        b_.diagonal(type_, dims, ScanMethod::tree, diagonal_.data(), packed_residual(), nullptr, error_.data(), c_.stop);
      } else {
        packed_residual();
        solve();
      }
      const double distance = unpack_error();
      if (!std::isfinite(distance)) return left("the next guess is not finite");
      const auto& so_far = report_.residuals;
      residual = move(*std::max_element(so_far.end() - std::min<std::ptrdiff_t>(remembered, std::ssize(so_far)), so_far.end()), small);
      report_.residuals.push_back(residual);
      show(diagonal);
      if (residual < 0.5 * best) {
        best = residual;
        best_at = iteration;
      }
      if ((all_diagonal_ || !diagonal) && distance <= near && residual <= small) break;
    }
    evaluate(true);
    report_.converged = true;
    return report_;
  }

 private:
  Form form_;
  const ForwardCall& c_;
  Backend& b_;
  DType type_ = DType::f64;
  std::int64_t T_, B_, n_ = 0, block_ = 0;
  bool all_diagonal_;
  std::vector<std::int64_t> sizes_;  // of each state, for one sequence of the batch
  CellGraph cell_;
  std::vector<DeviceArray> guess_;            // of each state: [T + 1, B, size], the initial state first
  std::vector<DeviceArray> residual_, move_;  // of each state: r and e [T, B, size]
  std::vector<DeviceArray> base_;             // the guess that a damped step starts from, without the initial state
  DeviceArray error_;                         // r, then e, all states side by side: [T, B, n]
  DeviceArray jacobian_;                      // [block, B, n, n]
  DeviceArray product_;                       // of the Jacobians of a stretch up to each step: [stretch, stretches, B, n, n]
  DeviceArray diagonal_;                      // [T, B, n]
  DeviceArray column_;                        // [block, B]
  DeviceArray ones_;                          // the same; [block, B, n] where all of the Jacobian is its diagonal
  std::vector<double> largest_;               // entry of each state's trajectory
  NewtonReport report_;
  const NewtonWatch& watch_;

  void show(bool diagonal) const {
    if (!watch_) return;
    std::vector<std::vector<double>> states;
    for (std::size_t k = 0; k < sizes_.size(); ++k) {
      const std::int64_t row = B_ * sizes_[k], n = T_ * row;
      std::vector<char> host(static_cast<std::size_t>(n) * bytes_of(type_));
      b_.download(host.data(), guess_[k].at(row), host.size());
      states.emplace_back();
      for (std::int64_t i = 0; i < n; ++i)
        states.back().push_back(type_ == DType::f64 ? reinterpret_cast<const double*>(host.data())[i]
                                                    : reinterpret_cast<const float*>(host.data())[i]);
    }
    watch_(report_.iterations(), diagonal, states);
  }

  NewtonReport left(std::string why) {
    report_.reason = std::move(why);
    return report_;
  }

  double largest(const void* data, std::int64_t n) const {
    std::vector<char> host(static_cast<std::size_t>(n) * bytes_of(type_));
    b_.download(host.data(), data, host.size());
    const auto look = [&](const auto* x) {
      double most = 0.0;
      for (std::int64_t i = 0; i < n; ++i) {
        const double size = std::abs(static_cast<double>(x[i]));
        if (!(size <= most)) most = std::isfinite(size) ? size : std::numeric_limits<double>::infinity();
      }
      return most;
    };
    return type_ == DType::f64 ? look(reinterpret_cast<const double*>(host.data())) : look(reinterpret_cast<const float*>(host.data()));
  }

  /// Calls f(first, from) for blocks of steps; the last one is moved back to be whole, and counts from step `from`.
  template <class F>
  void in_blocks(F&& f) {
    for (std::int64_t from = 0; from < T_; from += block_) {
      if (c_.stop.stop_requested()) throw Cancelled();
      f(std::min(from, T_ - block_), from);
    }
  }
  template <class P>
  P* row(P* base, std::int64_t entries, std::int64_t t) const {
    using Byte = std::conditional_t<std::is_const_v<P>, const char, char>;
    return static_cast<Byte*>(base) + static_cast<std::size_t>(t * B_ * entries) * bytes_of(type_);
  }

  void run_block(std::int64_t first) {
    for (std::size_t i = 0; i < cell_.tokens.size(); ++i)
      cell_.graph->bind(cell_.tokens[i], row(c_.in[i], count(cell_.tokens[i].shape()) / (block_ * B_), first));
    for (std::size_t k = 0; k < sizes_.size(); ++k) cell_.graph->bind(cell_.states[k], guess_[k].at(first * B_ * sizes_[k]));
    cell_.graph->forward(c_.stop);
  }

  /// f at all steps into the outputs; returns the residual. `all`: the gates and the reads too.
  double evaluate(bool all = false) {
    ++report_.evaluations;
    in_blocks([&](std::int64_t first, std::int64_t) {
      run_block(first);
      for (std::size_t k = 0; k < sizes_.size(); ++k) copy_out(c_.out[k], cell_.next[k], first);
      if (!all) return;
      std::size_t at = sizes_.size();
      for (const CellGate& gate : cell_.gates) copy_out(c_.out[at++], gate.inner, first);
      for (const Var read : cell_.reads) copy_out(c_.out[at++], read, first);
    });
    if (all) return 0.0;
    double worst = 0.0;
    largest_.assign(sizes_.size(), 0.0);
    for (std::size_t k = 0; k < sizes_.size(); ++k) {
      const std::int64_t n = T_ * B_ * sizes_[k];
      Shape shape;
      b_.binary(Binary::subtract, type_, broadcast({n}, {n}, shape), c_.out[k], guess_[k].at(B_ * sizes_[k]), residual_[k].data());
      largest_[k] = std::max(largest(c_.out[k], n), largest(guess_[k].at(B_ * sizes_[k]), n));
      const double residual = largest(residual_[k].data(), n);
      if (residual > 0.0) worst = std::max(worst, largest_[k] > 0.0 ? residual / largest_[k] : residual);
      if (!std::isfinite(largest_[k])) worst = std::numeric_limits<double>::infinity();  // infinity / infinity is lost above
    }
    return worst;
  }
  void copy_out(void* to, Var from, std::int64_t first) {
    const std::int64_t entries = count(from.shape());
    const std::size_t bytes = static_cast<std::size_t>(entries) * bytes_of(type_);
    const void* value = cell_.graph->value(from);
    if (from.dim(0) == block_ * B_) {
      b_.copy(row(to, entries / (block_ * B_), first), value, bytes);
    } else {  // the same at every step
      for (std::int64_t t = 0; t < block_; ++t) b_.copy(static_cast<char*>(to) + static_cast<std::size_t>(first + t) * bytes, value, bytes);
    }
  }

  /// The residuals, all states side by side, where e will be.
  const void* packed_residual() {
    std::int64_t from = 0;
    for (std::size_t k = 0; k < sizes_.size(); ++k) {
      b_.scatter(type_, columns_of(T_ * B_, sizes_[k], n_, from), residual_[k].data(), error_.data(), false);
      from += sizes_[k];
    }
    return error_.data();
  }
  /// And e back, state by state; returns its size relative to the states'.
  double unpack_error() {
    std::int64_t from = 0;
    double worst = 0.0;
    for (std::size_t k = 0; k < sizes_.size(); ++k) {
      b_.gather(type_, columns_of(T_ * B_, sizes_[k], n_, from), error_.data(), move_[k].data(), false);
      from += sizes_[k];
      const double size = largest(move_[k].data(), T_ * B_ * sizes_[k]);
      worst = std::max(worst, largest_[k] > 0.0 ? size / largest_[k] : size);
    }
    return worst;
  }
  /// Takes the step, damped where the form says so; returns the new residual.
  double move(double before, double small) {
    for (std::size_t k = 0; k < base_.size(); ++k) b_.copy(base_[k].data(), guess_[k].at(B_ * sizes_[k]), base_[k].bytes());
    for (int halvings = 0;; ++halvings) {
      for (std::size_t k = 0; k < sizes_.size(); ++k) {
        if (halvings) b_.copy(guess_[k].at(B_ * sizes_[k]), base_[k].data(), base_[k].bytes());
        b_.add_scaled(type_, T_ * B_ * sizes_[k], -halvings, move_[k].data(), guess_[k].at(B_ * sizes_[k]), true);
      }
      const double after = evaluate();
      if (form_ != Form::damped_newton || after < before || after <= small || halvings == most_halvings) return after;
    }
  }

  /// Rows of the Jacobians of the block that starts at `first`, one after the other: take(i) finds d next_i / d states as their gradients.
  template <class F>
  void rows_of_jacobian(std::int64_t first, F&& take) {
    run_block(first);
    std::int64_t i = 0;
    for (std::size_t k = 0; k < sizes_.size(); ++k)
      for (std::int64_t j = 0; j < sizes_[k]; ++j, ++i) {
        if (c_.stop.stop_requested()) throw Cancelled();
        cell_.graph->clear_gradients(Graph::Part::varying);
        void* seed = cell_.graph->gradient(cell_.next[k]);
        if (seed) {
          b_.scatter(type_, columns_of(block_ * B_, 1, sizes_[k], j), ones_.data(), seed, false);
          cell_.graph->backward({}, Graph::Part::varying);
        }
        take(i);
      }
  }

  void renew_diagonal() {
    ++report_.jacobians;
    in_blocks([&](std::int64_t first, std::int64_t) {
      if (all_diagonal_) return whole_diagonal(first);
      std::size_t k = 0;
      std::int64_t offset = 0;
      rows_of_jacobian(first, [&](std::int64_t i) {
        if (i - offset == sizes_[k]) offset += sizes_[k++];
        b_.gather(type_, columns_of(block_ * B_, 1, sizes_[k], i - offset), cell_.graph->gradient(cell_.states[k]), column_.data(), false);
        b_.scatter(type_, columns_of(block_ * B_, 1, n_, i), column_.data(), diagonal_.at(first * B_ * n_), false);
      });
    });
  }

  /// No entry sees another: their slopes are asked for together.
  void whole_diagonal(std::int64_t first) {
    run_block(first);
    cell_.graph->clear_gradients(Graph::Part::varying);
    if (void* seed = cell_.graph->gradient(cell_.next[0])) {
      b_.copy(seed, ones_.data(), ones_.bytes());
      cell_.graph->backward({}, Graph::Part::varying);
    }
    b_.copy(diagonal_.at(first * B_ * n_), cell_.graph->gradient(cell_.states[0]), ones_.bytes());
  }

  /// e_t = r_t + J_t e_{t-1}, in place of r.
  void solve() {
    ++report_.jacobians;
    in_blocks([&](std::int64_t first, std::int64_t from) {
      rows_of_jacobian(first, [&](std::int64_t i) {
        std::int64_t offset = 0;
        for (std::size_t k = 0; k < sizes_.size(); ++k) {
          const void* gradient = cell_.graph->gradient(cell_.states[k]);
          b_.scatter(type_, columns_of(block_ * B_, sizes_[k], n_ * n_, i * n_ + offset), gradient, jacobian_.data(), false);
          offset += sizes_[k];
        }
      });
      solve_block(from, std::min(block_, T_ - from), (from - first) * B_ * n_ * n_);
    });
  }
  /// `length` steps from `from` on, their Jacobians from entry `matrices` on. Each stretch of steps is solved from zero while the products
  /// of its Jacobians are made, all stretches side by side; then each takes up the last e of the one before.
  void solve_block(std::int64_t from, std::int64_t length, std::int64_t matrices) {
    const std::int64_t stretches = length / stretch, square = n_ * n_, rows = B_ * n_;
    const auto e = [&](std::int64_t t) { return error_.at(t * rows); };
    const auto J = [&](std::int64_t t) { return jacobian_.at(matrices + t * B_ * square); };
    const auto P = [&](std::int64_t j, std::int64_t s) { return product_.at((j * stretches + s) * B_ * square); };
    const auto item = static_cast<std::int64_t>(bytes_of(type_));
    const auto shift = [&](void* base, std::int64_t entries) { return static_cast<char*>(base) + entries * item; };
    MatMul vector{1, n_, 1, n_}, matrix{stretches, n_, n_, n_};
    if (stretches) {
      b_.gather(type_, columns_of(stretches, B_ * square, stretch * B_ * square, 0), J(0), P(0, 0), false);
      vector.batch = stretches;
      vector.stride_a = matrix.stride_a = stretch * B_ * square;
      vector.stride_b = vector.stride_c = stretch * rows;
      matrix.stride_b = matrix.stride_c = B_ * square;
      for (std::int64_t j = 1; j < stretch; ++j)
        for (std::int64_t s = 0; s < B_; ++s) {
          b_.matmul(type_, vector, shift(J(j), s * square), shift(e(from + j - 1), s * n_), shift(e(from + j), s * n_), true);
          b_.matmul(type_, matrix, shift(J(j), s * square), shift(P(j - 1, 0), s * square), shift(P(j, 0), s * square), false);
        }
      MatMul join{stretch, n_, 1, n_};
      join.stride_a = stretches * B_ * square;
      join.stride_c = rows;
      for (std::int64_t t = from, s = 0; s < stretches; ++s, t += stretch)
        for (std::int64_t i = 0; t > 0 && i < B_; ++i)
          b_.matmul(type_, join, shift(P(0, s), i * square), shift(e(t - 1), i * n_), shift(e(t), i * n_), true);
    }
    vector.batch = B_;
    vector.stride_a = square;
    vector.stride_b = vector.stride_c = n_;
    for (std::int64_t t = stretches * stretch; t < length; ++t)
      if (from + t > 0) b_.matmul(type_, vector, J(t), e(from + t - 1), e(from + t), true);
  }
};

}  // namespace

NewtonReport run_newton(Form form, const ForwardCall& call, std::int64_t steps, std::int64_t batch,
                        const std::function<CellGraph(std::int64_t)>& build, bool diagonal, const NewtonWatch& watch) {
  return Solver(form, call, steps, batch, build, diagonal, watch)();
}

}  // namespace reclab
