// SPDX-License-Identifier: GPL-3.0-or-later
// The stepped recurrence: a cell, built once as a graph of its own, run for every time step. The backward pass keeps only the states
// and runs the cell again at each step before its adjoint, or all that the
// cell's steps made, where that is little. The adjoint of the state is carried as a mantissa and a power of two, so that
// its norm is known far beyond the range of the number format. A Newton form makes the same trajectory in another way, forward only.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <set>

#include "array/cpu/processor/threads.h"
#include "array/demand.h"
#include "array/device_array.h"
#include "array/error.h"
#include "autodiff/fresh.h"
#include "autodiff/ops.h"
#include "recurrence/evaluation_order.h"
#include "recurrence/step/adjoint_parts.h"
#include "recurrence/step/drawing.h"
#include "recurrence/step/newton.h"
#include "recurrence/step/step.h"

namespace reclab {
namespace {

constexpr int rescale_at = 32;      // binary orders that the mantissa may drift before it is brought back
constexpr std::int64_t block = 64;  // steps that a device records at once, and between two looks at the stop token
constexpr std::int64_t ahead = 4;   // blocks that may wait on the device: a cancelled run ends when they have
constexpr std::size_t most_recordings = 8;
constexpr std::int64_t most_kept = std::int64_t{512}
                                   << 20;  // bytes that the steps' own arrays may take, so that none is run again on the way back

class Step final : public Memory, public HasEvaluationOrder, public TellsApart, public OverwritesGradient {
 public:
  Step(Graph& outer, Form form, std::int64_t steps, std::int64_t batch, std::vector<StateShape> states, std::vector<Shape> tokens,
       CellFunction function)
      : outer_(outer),
        steps_(steps),
        batch_(batch),
        state_shapes_(std::move(states)),
        token_shapes_(std::move(tokens)),
        function_(std::move(function)) {
    newton_ = is_newton(form);
    report_.form = form;
    for (const auto& state : state_shapes_) width_ += count(state.shape);
    rows_ = width_;
  }

  CellGraph build(std::int64_t batch, bool frozen) {
    CellGraph built;
    built.graph = std::make_unique<Graph>(outer_.real(), &outer_, frozen);
    const auto with_batch = [&](const Shape& shape) {
      Shape full{batch};
      full.insert(full.end(), shape.begin(), shape.end());
      return full;
    };
    for (const auto& shape : token_shapes_) {
      built.tokens.push_back(built.graph->leaf(frozen ? LeafKind::constant : LeafKind::variable, with_batch(shape), outer_.real()));
    }
    for (const auto& state : state_shapes_)
      built.states.push_back(built.graph->leaf(LeafKind::variable, with_batch(state.shape), outer_.real()));
    Cell cell;
    built.next = function_(cell, built.tokens, built.states);
    RECLAB_DEMAND(built.next.size() >= state_shapes_.size());
    for (std::size_t i = state_shapes_.size(); i < built.next.size(); ++i) built.reads.push_back(built.graph->adopt(built.next[i]));
    built.next.resize(state_shapes_.size());
    for (std::size_t i = 0; i < built.next.size(); ++i) {
      built.next[i] = built.graph->adopt(built.next[i]);
      RECLAB_DEMAND(built.next[i].shape() == with_batch(state_shapes_[i].shape));
    }
    built.gates = std::move(cell.gates());
    return built;
  }
  CellGraph& cell() { return cell_; }
  void set_cell(CellGraph built) {
    cell_ = std::move(built);
    // An output of the step is written where it belongs; one that is an output twice, or a part of an array, is copied there.
    std::set<int> taken;
    for_outputs([&](std::size_t, Var made) { placed_.push_back(taken.insert(made.id).second && cell_.graph->let_be_placed(made)); });
  }

  void let_see(Sees sees) {
    sees_ = sees;
    const Shape& shape = state_shapes_[0].shape;
    if (sees == Sees::own_column) {
      RECLAB_DEMAND(state_shapes_.size() == 1 && shape.size() == 3);
      rows_ = shape[1];
    } else if (sees == Sees::own_entry) {
      RECLAB_DEMAND(std::ranges::all_of(state_shapes_, [&](const StateShape& state) { return state.shape == shape; }));
      rows_ = std::ssize(state_shapes_);
    }
  }
  Transition transition() const override {
    if (sees_ == Sees::all) return Transition::blocks(1, width_, 1, true);
    if (sees_ == Sees::own_entry)
      return diagonal() ? Transition::diagonal(width_, true) : Transition::blocks(width_ / rows_, rows_, 1, true);
    const Shape& shape = state_shapes_[0].shape;
    return rank_ ? Transition::low_rank(shape[0], shape[1], shape[2], rank_, true) : Transition::blocks(shape[0], shape[1], shape[2], true);
  }
  void let_be_low_rank(std::int64_t rank,
                       std::function<void(std::int64_t, std::span<double>, std::span<double>, std::span<double>)> parts) {
    RECLAB_DEMAND(sees_ == Sees::own_column);
    rank_ = rank;
    parts_ = std::move(parts);
  }
  void low_rank(std::int64_t t, std::span<double> scale, std::span<double> u, std::span<double> v) override { parts_(t, scale, u, v); }
  void factors(std::int64_t t, std::span<std::complex<double>> factors) override {
    RECLAB_DEMAND(diagonal());
    std::vector<double> entries(factors.size());
    jacobian(t, entries);
    std::copy(entries.begin(), entries.end(), factors.begin());
  }
  const NewtonReport* newton() const override { return newton_ ? &report_ : nullptr; }
  void watch(NewtonWatch watch) override { watch_ = std::move(watch); }
  EvaluationOrder evaluation_order() const override {
    if (newton_) return {.form = report_.form, .draw = drawing::iterations, .steps = steps_, .chunk = newton_stretch};
    return {.draw = drawing::steps, .steps = steps_};
  }

  void forward(const ForwardCall& c) override {
    prepare(c.backend);
    remember(c.in, c.out);
    kept_ = false;
    if (newton_) {
      report_ = run_newton(report_.form, c, steps_, batch_, [&](std::int64_t rows) { return build(rows, true); }, diagonal(), watch_);
      if (report_.converged) return;
    }
    bind_captures(*cell_.graph);
    cell_.graph->forward(c.stop, Graph::Part::invariant);
    ++forwards_;
    // A device that records runs nothing step by step.
    const bool keeps =
        c.backward_follows && c.backend.device() == Device::cpu && cell_.graph->is_pure() && steps_ * cell_.graph->run_bytes() <= most_kept;
    if (keeps) cell_.graph->keep_runs(steps_);
    // Where runs are kept, what a step makes has a place of its own for each.
    by_units_ = unit_phases_ > 0 && !keeps;
    if (by_units_) cell_.graph->prepare_units();
    for (std::int64_t t = 0; t < steps_; t += block) {
      if (c.stop.stop_requested()) throw Cancelled();
      const std::int64_t end = std::min(steps_, t + block);
      if (Recording* recording = recorded(end - t)) {
        if (t % (ahead * block) == 0) c.backend.finish();
        run_recorded(*recording, t, end - t);
      } else {
        run_steps(in_, out_, t, end, keeps);
      }
    }
    kept_ = keeps;
    cell_.graph->select_run(-1);
  }

  void backward(const BackwardCall& c) override { backward(c, std::vector<char>(c.grad_in.size())); }
  bool writes(std::size_t input) const override { return input < token_shapes_.size(); }
  void backward(const BackwardCall& c, std::span<const char> written) override {
    Backend& b = c.backend;
    const DType type = outer_.real();
    const std::size_t tokens = token_shapes_.size(), states = state_shapes_.size();
    Graph& graph = *cell_.graph;
    log2_norms_.assign(states, std::vector<double>(static_cast<std::size_t>(steps_)));
    bind_captures(graph);
    graph.forward({}, Graph::Part::invariant);
    graph.clear_gradients();
    int power = carried_.empty() ? 0 : exponent_;  // that of the last backward is no part of this one
    for (std::size_t i = 0; i < states; ++i) {
      if (i < carried_.size() && carried_[i])
        b.copy(lambda_[i].data(), carried_[i], bytes(cell_.states[i].shape()));
      else
        b.zero(lambda_[i].data(), bytes(cell_.states[i].shape()));
    }
    const auto largest = [&](auto&& pointer_of) {
      int exponent = no_exponent;
      for (std::size_t i = 0; i < states; ++i)
        exponent = std::max(exponent, b.exponent(type, count(cell_.states[i].shape()), pointer_of(i)));
      return exponent;
    };
    const auto flush = [&] {  // parameters' adjoints so far, out of the units of 2^power
      graph.backward({}, Graph::Part::invariant);
      const auto& captures = graph.captures();
      for (std::size_t i = 0; i < captures.size(); ++i) {
        void* to = c.grad_in[tokens + states + i];
        if (to && graph.gradient(captures[i].inner))
          b.add_scaled(type, count(captures[i].inner.shape()), power, graph.gradient(captures[i].inner), to, true);
      }
      graph.clear_gradients(Graph::Part::invariant);
    };
    // Most runs ask nothing of the gates.
    const auto gate_at = [&](std::size_t i, std::int64_t t) { return row(c.grad_out[states + i], cell_.gates[i].inner.shape(), t); };
    std::vector<std::size_t> gates;
    for (std::size_t i = 0; i < cell_.gates.size(); ++i)
      if (c.grad_out[states + i] && graph.wants_gradient(cell_.gates[i].inner) &&
          b.exponent(type, steps_ * count(cell_.gates[i].inner.shape()), gate_at(i, 0)) != no_exponent)
        gates.push_back(i);
    for (std::int64_t t = steps_ - 1; t >= 0; --t) {
      if (t % block == 0 && c.stop.stop_requested()) throw Cancelled();
      const auto fresh_at = [&](std::size_t i) { return row(c.grad_out[i], cell_.states[i].shape(), t); };
      const auto read_at = [&](std::size_t i) { return row(c.grad_out[states + cell_.gates.size() + i], cell_.reads[i].shape(), t); };
      const int own = largest([&](std::size_t i) { return lambda_[i].data(); }), fresh = largest(fresh_at);
      int read = no_exponent;
      for (std::size_t i = 0; i < cell_.reads.size(); ++i)
        read = std::max(read, b.exponent(type, count(cell_.reads[i].shape()), read_at(i)));
      int gated = no_exponent;
      for (const std::size_t i : gates) gated = std::max(gated, b.exponent(type, count(cell_.gates[i].inner.shape()), gate_at(i, t)));
      const int standing = own == no_exponent ? own : own + power;
      const int common = std::max({standing, fresh, read, gated});
      const bool finite = own != infinite_exponent && fresh != infinite_exponent && read != infinite_exponent && gated != infinite_exponent;
      if (finite && common != no_exponent && std::abs(common - power) > rescale_at) {
        flush();
        for (std::size_t i = 0; i < states; ++i)
          b.add_scaled(type, count(cell_.states[i].shape()), power - common, lambda_[i].data(), lambda_[i].data(), false);
        power = common;
      }
      bind_step(in_, out_, t);
      if (kept_)
        graph.select_run(t);
      else
        graph.forward({}, Graph::Part::varying);
      graph.clear_gradients(Graph::Part::varying);
      for (std::size_t i = 0; i < states; ++i) {
        const std::int64_t n = count(cell_.states[i].shape());
        if (fresh != no_exponent) b.add_scaled(type, n, -power, fresh_at(i), lambda_[i].data(), true);
        log2_norms_[i][static_cast<std::size_t>(t)] = b.log2_norm(type, n, lambda_[i].data(), power);
        if (void* next = graph.gradient(cell_.next[i])) b.add_scaled(type, n, 0, lambda_[i].data(), next, true);
      }
      if (read != no_exponent)
        for (std::size_t i = 0; i < cell_.reads.size(); ++i)
          b.add_scaled(type, count(cell_.reads[i].shape()), -power, read_at(i), graph.gradient(cell_.reads[i]), true);
      if (gated != no_exponent)
        for (const std::size_t i : gates) {
          const Var gate = cell_.gates[i].inner;
          b.add_scaled(type, count(gate.shape()), -power, gate_at(i, t), graph.gradient(gate), true);
        }
      graph.backward({}, Graph::Part::varying);
      for (std::size_t i = 0; i < states; ++i) b.copy(lambda_[i].data(), graph.gradient(cell_.states[i]), bytes(cell_.states[i].shape()));
      for (std::size_t i = 0; i < tokens; ++i)
        if (c.grad_in[i]) {
          const Shape& shape = cell_.tokens[i].shape();
          b.add_scaled(type, count(shape), power, graph.gradient(cell_.tokens[i]), row(c.grad_in[i], shape, t), !written[i]);
        }
    }
    graph.select_run(-1);
    flush();
    for (std::size_t i = 0; i < states; ++i)
      if (c.grad_in[tokens + i]) b.add_scaled(type, count(cell_.states[i].shape()), 0, lambda_[i].data(), c.grad_in[tokens + i], true);
    exponent_ = power;
  }

  void tangent(const TangentCall& c) override {
    Backend& b = c.backend;
    const std::size_t tokens = token_shapes_.size(), states = state_shapes_.size();
    Graph& graph = *cell_.graph;
    bind_captures(graph);
    const auto& captures = graph.captures();
    for (std::size_t i = 0; i < captures.size(); ++i) graph.bind_tangent(captures[i].inner, c.tangent_in[tokens + states + i]);
    graph.forward(c.stop, Graph::Part::invariant);
    graph.push_tangents(c.stop, Graph::Part::invariant);
    for (std::int64_t t = 0; t < steps_; ++t) {
      if (t % block == 0 && c.stop.stop_requested()) throw Cancelled();
      bind_step(in_, out_, t);
      for (std::size_t i = 0; i < tokens; ++i)
        graph.bind_tangent(cell_.tokens[i], c.tangent_in[i] ? row(c.tangent_in[i], cell_.tokens[i].shape(), t) : nullptr);
      for (std::size_t i = 0; i < states; ++i)
        graph.bind_tangent(cell_.states[i], t ? row(c.tangent_out[i], cell_.states[i].shape(), t - 1) : c.tangent_in[tokens + i]);
      graph.forward({}, Graph::Part::varying);
      graph.push_tangents({}, Graph::Part::varying);
      for_outputs([&](std::size_t i, Var made) {
        void* to = row(c.tangent_out[i], made.shape(), t);
        if (const void* tangent = graph.tangent(made))
          b.copy(to, tangent, bytes(made.shape()));
        else
          b.zero(to, bytes(made.shape()));
      });
    }
  }

  void jacobian(std::int64_t t, std::span<double> matrix) override {
    Backend& b = *backend_;
    const DType type = outer_.real();
    const std::size_t item = bytes_of(type);
    const std::size_t states = state_shapes_.size();
    if (!tile_.graph) {  // the same cell for as many copies of one step as a block has rows: one backward pass gives them all
      tile_ = build(rows_, true);
      tile_.graph->allocate(b, true);
      for (const Var v : tile_.tokens) take(tiles_, v.shape());
      for (const Var v : tile_.states) take(tiles_, v.shape());
      std::size_t at = 0;
      for (const Var v : tile_.tokens) tile_.graph->bind(v, tiles_[at++].data());
      for (const Var v : tile_.states) tile_.graph->bind(v, tiles_[at++].data());
    }
    bind_captures(*tile_.graph);
    std::size_t at = 0;
    const auto repeat = [&](Var v, const void* from) {  // the first sequence of the batch
      const std::size_t size = bytes(v.shape()) / static_cast<std::size_t>(rows_);
      for (std::int64_t r = 0; r < rows_; ++r)
        b.copy(static_cast<char*>(tiles_[at].data()) + static_cast<std::size_t>(r) * size, from, size);
      ++at;
    };
    for (std::size_t i = 0; i < tile_.tokens.size(); ++i) repeat(tile_.tokens[i], row(in_[i], cell_.tokens[i].shape(), t));
    for (std::size_t i = 0; i < states; ++i) repeat(tile_.states[i], state_before(in_, out_, i, t));
    tile_.graph->forward();
    tile_.graph->clear_gradients();
    // Rows of blocks that do not see each other are asked for together, in one column each.
    const Transition own = transition();
    const bool by_columns = sees_ == Sees::own_column, by_entries = sees_ == Sees::own_entry;
    const auto entry = [&](std::int64_t which, std::int64_t i) { return (which * own.size + i) * own.repeats; };
    std::int64_t offset = 0;
    const double one = 1.0;
    const float one_narrow = 1.0f;
    for (std::size_t k = 0; k < states; ++k) {
      const std::int64_t n = count(state_shapes_[k].shape);
      auto* seed = static_cast<char*>(tile_.graph->gradient(tile_.next[k]));
      const auto set = [&](std::int64_t row, std::int64_t i) {
        b.upload(seed + static_cast<std::size_t>(row * n + i) * item, type == DType::f64 ? static_cast<const void*>(&one) : &one_narrow,
                 item);
      };
      if (seed && by_entries)
        for (std::int64_t i = 0; i < n; ++i) set(static_cast<std::int64_t>(k), i);
      else if (seed && by_columns)
        for (std::int64_t which = 0; which < own.count; ++which)
          for (std::int64_t r = 0; r < rows_; ++r) set(r, entry(which, r));
      else
        for (std::int64_t i = 0; seed && i < n; ++i) set(offset + i, i);
      offset += n;
    }
    tile_.graph->backward({}, Graph::Part::varying);
    offset = 0;
    std::vector<double> wide;
    std::vector<float> narrow;
    for (std::size_t k = 0; k < states; ++k) {
      const std::int64_t n = count(state_shapes_[k].shape);
      wide.resize(static_cast<std::size_t>(rows_ * n));
      if (type == DType::f64) {
        b.download(wide.data(), tile_.graph->gradient(tile_.states[k]), wide.size() * sizeof(double));
      } else {
        narrow.resize(wide.size());
        b.download(narrow.data(), tile_.graph->gradient(tile_.states[k]), narrow.size() * sizeof(float));
        std::copy(narrow.begin(), narrow.end(), wide.begin());
      }
      if (by_entries) {
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t r = 0; r < rows_; ++r)
            matrix[static_cast<std::size_t>((i * rows_ + r) * rows_) + k] = wide[static_cast<std::size_t>(r * n + i)];
        continue;
      }
      if (by_columns) {
        for (std::int64_t which = 0; which < own.count; ++which)
          for (std::int64_t r = 0; r < rows_; ++r)
            for (std::int64_t i = 0; i < rows_; ++i)
              matrix[static_cast<std::size_t>((which * rows_ + r) * rows_ + i)] = wide[static_cast<std::size_t>(r * n + entry(which, i))];
        continue;
      }
      for (std::int64_t r = 0; r < width_; ++r)
        for (std::int64_t i = 0; i < n; ++i)
          matrix[static_cast<std::size_t>(r * width_ + offset + i)] = wide[static_cast<std::size_t>(r * n + i)];
      offset += n;
    }
  }

  std::optional<PassedBack> pass_back(std::int64_t t, std::span<const double> x) override {
    if (!single_.graph) {
      single_ = build(1, true);
      single_.graph->allocate(*backend_, true);
      parts_of_ = std::make_unique<AdjointParts>(single_);
    }
    bind_captures(*single_.graph);
    // The first sequence of the batch is at the beginning of each row.
    for (std::size_t i = 0; i < single_.tokens.size(); ++i) single_.graph->bind(single_.tokens[i], row(in_[i], cell_.tokens[i].shape(), t));
    for (std::size_t i = 0; i < single_.states.size(); ++i) single_.graph->bind(single_.states[i], state_before(in_, out_, i, t));
    single_.graph->forward();
    return parts_of_->pass_back(x);
  }

  Cost cost() const override {
    const Cost one = cell_.graph->cost();
    const double steps = static_cast<double>(steps_);
    Cost total{one.flops * steps, one.bytes * steps, one.launches * steps};
    if (newton_ && report_.evaluations) {  // a row of the Jacobian costs two evaluations, a product of two of them 2 n^3
      const double n = static_cast<double>(width_), jacobians = report_.jacobians, rows = diagonal() ? 1.0 : n;
      const double times = report_.evaluations + (1.0 + 2.0 * rows) * jacobians;
      const double dense = diagonal()                           ? 0.0
                           : report_.form == Form::quasi_newton ? 1.0
                                                                : jacobians;  // diagonals are scanned for next to nothing
      const double rest = report_.converged ? 0.0 : 1.0, matrices = dense * steps * static_cast<double>(batch_) * n * n;
      total = {total.flops * (times + rest) + matrices * 2.0 * n,
               total.bytes * (times + rest) + matrices * 3.0 * static_cast<double>(bytes_of(outer_.real())), total.launches};
    }
    return total;
  }

 private:
  Graph& outer_;
  std::int64_t steps_, batch_, width_ = 0, rows_ = 0;
  Sees sees_ = Sees::all;
  std::int64_t rank_ = 0;
  std::function<void(std::int64_t, std::span<double>, std::span<double>, std::span<double>)> parts_;  // of a transition of low rank
  std::vector<StateShape> state_shapes_;
  std::vector<Shape> token_shapes_;
  CellFunction function_;
  CellGraph cell_, tile_, single_;
  std::size_t unit_phases_ = 0;  ///< in which a step can be run by units; 0: it cannot
  bool by_units_ = false;        ///< whether the steps of this forward() are
  std::vector<char> placed_;     ///< of the outputs: whether the cell writes them where they belong
  std::unique_ptr<AdjointParts> parts_of_;
  bool newton_ = false;
  NewtonReport report_;
  NewtonWatch watch_;
  bool kept_ = false;  ///< whether the cell's graph holds the run of each step of the last forward()
  Backend* backend_ = nullptr;
  std::vector<DeviceArray> lambda_, tiles_;
  std::vector<const void*> in_;
  std::vector<void*> out_;

  /// A block of steps that the device has recorded, on memory of its own: inputs and states are copied in and results out, so that one
  /// recording serves all blocks of all segments, and another the rest at each segment's end. They are good for the captured arrays that
  /// they were recorded with.
  struct Recorded {
    std::int64_t steps;
    std::vector<const void*> captured;
    std::unique_ptr<Recording> recording;
  };
  std::vector<DeviceArray> staged_in_, staged_out_;  // tokens [block, ...] and states before the block; outputs [block, ...]
  std::vector<Recorded> recordings_;                 // the last used first; they go before the memory that they were made on
  std::int64_t forwards_ = 0;
  bool records_ = true;

  bool diagonal() const { return sees_ == Sees::own_entry && state_shapes_.size() == 1; }
  std::size_t bytes(const Shape& shape) const { return static_cast<std::size_t>(count(shape)) * bytes_of(outer_.real()); }
  template <class P>
  P* row(P* base, const Shape& shape, std::int64_t t) const {
    using Byte = std::conditional_t<std::is_const_v<P>, const char, char>;
    return static_cast<Byte*>(base) + static_cast<std::size_t>(t) * bytes(shape);
  }
  const void* state_before(std::span<const void* const> in, std::span<void* const> out, std::size_t i, std::int64_t t) const {
    return t == 0 ? in[token_shapes_.size() + i] : row(static_cast<const void*>(out[i]), cell_.states[i].shape(), t - 1);
  }
  void take(std::vector<DeviceArray>& list, const Shape& shape, std::int64_t times = 1) {
    list.emplace_back(*backend_, outer_.real(), times * count(shape));
  }
  void prepare(Backend& backend) {
    if (backend_) return;
    backend_ = &backend;
    cell_.graph->allocate(backend, true);
    for (const Var state : cell_.states) take(lambda_, state.shape());
    if (batch_ == 1 && backend.device() == Device::cpu) unit_phases_ = cell_.graph->plan_units(count(state_shapes_[0].shape));
  }
  /// In how many parts a phase of a step is worth being computed.
  int parts_of(std::size_t phase) const {
    constexpr std::int64_t worth_a_thread = std::int64_t{1} << 14;  // multiply-adds: fewer take less time than a meeting
    const std::int64_t worth = cell_.graph->unit_work(phase) / worth_a_thread;
    return static_cast<int>(std::clamp<std::int64_t>(std::min(worth, unit_groups()), 1, cpu::thread_count()));
  }
  /// Of 32 units, or all as one.
  std::int64_t unit_groups() const {
    constexpr std::int64_t together = 32;
    const std::int64_t units = count(state_shapes_[0].shape);
    return units % together == 0 ? units / together : 1;
  }
  /// Steps of which threads make the units' vectors in parts, with a meeting before each phase.
  void run_units(std::span<const void* const> in, std::span<void* const> out, std::int64_t from, std::int64_t to) {
    Graph& graph = *cell_.graph;
    const std::int64_t units = count(state_shapes_[0].shape), groups = unit_groups();
    const auto all_placed = std::ranges::all_of(placed_, [](auto placed) { return static_cast<bool>(placed); });
    std::vector<int> parts;
    for (std::size_t phase = 0; phase < unit_phases_; ++phase) parts.push_back(parts_of(phase));
    const auto go = [&](cpu::Team* team, int member, std::int64_t first, std::int64_t last) {
      const auto meet = [&] {
        if (team) team->meet(member);
      };
      for (std::int64_t t = first; t < last; ++t) {
        if (t > first) graph.advance_units(member);
        for (std::size_t phase = 0; phase < parts.size(); ++phase) {
          if (phase > 0 || t > first) meet();
          const std::int64_t all = team ? std::min(parts[phase], team->size()) : 1;
          if (member < all)
            graph.run_units(member, phase, groups * member / all * units / groups, groups * (member + 1) / all * units / groups);
        }
        if (all_placed) continue;
        meet();
        if (member > 0) continue;
        bind_step(in, out, t);  // an output may be another one, or a part of it, which has its place
        copy_outputs(out, t);
      }
    };
    // The arrays of the steps lie equally far apart, but the state before the first is not among the trajectory's.
    for (std::int64_t next; from < to; from = next) {
      next = from == 0 ? 1 : to;
      const int most = next - from > 1 ? *std::ranges::max_element(parts) : 1;
      bind_step(in, out, from);
      graph.begin_units(most);
      if (next - from > 1) {
        bind_step(in, out, from + 1);
        graph.step_units();
      }
      if (most == 1)
        go(nullptr, 0, from, next);
      else
        cpu::team(most, [&](cpu::Team& team, int member) { go(&team, member, from, next); });
      bind_step(in, out, next - 1);
    }
  }

  /// Calls f(number, shape) for each output, the shape of one step.
  template <class F>
  void for_outputs(F&& f) const {
    std::size_t at = 0;
    for (const Var next : cell_.next) f(at++, next);
    for (const CellGate& gate : cell_.gates) f(at++, gate.inner);
    for (const Var read : cell_.reads) f(at++, read);
  }
  void run_steps(std::span<const void* const> in, std::span<void* const> out, std::int64_t from, std::int64_t to, bool keeps = false) {
    if (by_units_) return run_units(in, out, from, to);
    for (std::int64_t t = from; t < to; ++t) {
      bind_step(in, out, t);
      if (keeps) cell_.graph->select_run(t);
      cell_.graph->forward({}, Graph::Part::varying);
      copy_outputs(out, t);
    }
  }
  /// Those that the cell has not put in their places itself.
  void copy_outputs(std::span<void* const> out, std::int64_t t) {
    for_outputs([&](std::size_t i, Var made) {
      if (!placed_[i]) backend_->copy(row(out[i], made.shape(), t), cell_.graph->value(made), bytes(made.shape()));
    });
  }

  /// The recording of so many steps for the arrays that are captured now; null where steps are better run one by one.
  Recording* recorded(std::int64_t steps) {
    if (!records_ || (forwards_ < 2 && (steps < block || steps_ < 2 * block))) return nullptr;  // a single run is not worth a recording
    const std::span captured = std::span(in_).subspan(token_shapes_.size() + state_shapes_.size());
    const auto found = std::ranges::find_if(
        recordings_, [&](const Recorded& one) { return one.steps == steps && std::ranges::equal(one.captured, captured); });
    if (found != recordings_.end()) {
      std::rotate(recordings_.begin(), found, found + 1);
      return recordings_.front().recording.get();
    }
    if (staged_in_.empty()) {
      // Asked first with nothing to do: most devices record nothing, and then no memory is taken.
      records_ = backend_->record([] {}) != nullptr;
      if (!records_) return nullptr;
      for (const Var token : cell_.tokens) take(staged_in_, token.shape(), block);
      for (const Var state : cell_.states) take(staged_in_, state.shape());
      for_outputs([&](std::size_t, Var made) { take(staged_out_, made.shape(), block); });
    }
    std::vector<const void*> in;
    std::vector<void*> out;
    for (const DeviceArray& array : staged_in_) in.push_back(array.data());
    for (const DeviceArray& array : staged_out_) out.push_back(array.data());
    Recorded made{steps, {captured.begin(), captured.end()}, backend_->record([&] { run_steps(in, out, 0, steps); })};
    records_ = made.recording != nullptr;
    if (!records_) return nullptr;
    if (recordings_.size() == most_recordings) recordings_.pop_back();
    recordings_.insert(recordings_.begin(), std::move(made));
    return recordings_.front().recording.get();
  }
  void run_recorded(Recording& recording, std::int64_t t, std::int64_t steps) {
    for (std::size_t i = 0; i < cell_.tokens.size(); ++i) {
      const Shape& shape = cell_.tokens[i].shape();
      backend_->copy(staged_in_[i].data(), row(in_[i], shape, t), steps * bytes(shape));
    }
    for (std::size_t i = 0; i < cell_.states.size(); ++i)
      backend_->copy(staged_in_[cell_.tokens.size() + i].data(), state_before(in_, out_, i, t), bytes(cell_.states[i].shape()));
    recording.replay();
    for_outputs([&](std::size_t i, Var made) {
      backend_->copy(row(out_[i], made.shape(), t), staged_out_[i].data(), steps * bytes(made.shape()));
    });
  }
  void remember(std::span<const void* const> in, std::span<void* const> out) {
    in_.assign(in.begin(), in.end());
    out_.assign(out.begin(), out.end());
  }
  void bind_captures(Graph& graph) {
    const auto& captures = graph.captures();
    for (std::size_t i = 0; i < captures.size(); ++i) graph.bind(captures[i].inner, in_[token_shapes_.size() + state_shapes_.size() + i]);
  }
  void bind_step(std::span<const void* const> in, std::span<void* const> out, std::int64_t t) {
    for (std::size_t i = 0; i < cell_.tokens.size(); ++i) cell_.graph->bind(cell_.tokens[i], row(in[i], cell_.tokens[i].shape(), t));
    for (std::size_t i = 0; i < cell_.states.size(); ++i) cell_.graph->bind(cell_.states[i], state_before(in, out, i, t));
    for_outputs([&](std::size_t i, Var made) {
      if (placed_[i]) cell_.graph->place(made, row(out[i], made.shape(), t));
    });
  }
};

}  // namespace

StepVars step(Graph& graph, std::int64_t batch, const std::vector<StateShape>& states, const std::vector<Var>& tokens,
              const CellFunction& function, const std::vector<Var>& initial, Form form, Sees sees) {
  RECLAB_DEMAND(!tokens.empty());
  const std::int64_t steps = tokens[0].dim(0);
  std::vector<Shape> token_shapes;
  for (const Var token : tokens) {
    RECLAB_DEMAND(token.dim(0) == steps && token.dim(1) == batch);
    token_shapes.emplace_back(token.shape().begin() + 2, token.shape().end());
  }
  auto operation = std::make_unique<Step>(graph, form, steps, batch, states, token_shapes, function);
  operation->set_cell(operation->build(batch, false));
  Step* memory = operation.get();
  memory->let_see(sees);

  StepVars vars;
  vars.memory = memory;
  std::vector<Var> inputs = tokens;
  std::vector<std::pair<Shape, DType>> outputs;
  const auto over_time = [&](const Shape& shape) {
    Shape full{steps};
    full.insert(full.end(), shape.begin(), shape.end());
    return full;
  };
  for (const Var state : memory->cell().states) {
    vars.initial.push_back(initial.empty() ? graph.leaf(LeafKind::variable, state.shape(), graph.real()) : initial[vars.initial.size()]);
    inputs.push_back(vars.initial.back());
    outputs.emplace_back(over_time(state.shape()), graph.real());
  }
  for (const auto& capture : memory->cell().graph->captures()) inputs.push_back(capture.outer);
  for (const auto& gate : memory->cell().gates) outputs.emplace_back(over_time(gate.inner.shape()), graph.real());
  for (const Var read : memory->cell().reads) outputs.emplace_back(over_time(read.shape()), graph.real());
  const auto made = graph.apply(std::move(operation), inputs, std::move(outputs));
  for (std::size_t i = 0; i < states.size(); ++i) {
    vars.trajectories.push_back(made[i]);
    vars.finals.push_back(last(made[i]));
  }
  vars.gates = memory->cell().gates;
  for (std::size_t i = 0; i < vars.gates.size(); ++i) vars.gates[i].trajectory = made[states.size() + i];
  vars.reads.assign(made.begin() + static_cast<std::ptrdiff_t>(states.size() + vars.gates.size()), made.end());
  return vars;
}

void let_be_low_rank(const StepVars& vars, std::int64_t rank,
                     std::function<void(std::int64_t t, std::span<double> scale, std::span<double> u, std::span<double> v)> parts) {
  static_cast<Step*>(vars.memory)->let_be_low_rank(rank, std::move(parts));
}

Stepped step_and_read(Layer& layer, const std::vector<StateSpec>& states, const std::vector<Var>& tokens, const CellFunction& cell,
                      Sees sees) {
  std::vector<StateShape> shapes;
  for (const auto& state : states) shapes.push_back({state.name, state.shape});
  const bool auxiliary = std::any_of(states.begin(), states.end(), [](const StateSpec& state) { return state.auxiliary; });
  if (!auxiliary) layer.declare_forms({Form::newton, Form::quasi_newton, Form::damped_newton});
  // Gates that nobody looks at are not written out step by step.
  const CellFunction without_gates = [cell](Cell& own, std::span<const Var> of_step, std::span<const Var> before) {
    auto made = cell(own, of_step, before);
    own.gates().clear();
    return made;
  };
  const StepVars vars = step(layer.graph(), layer.batch(), shapes, tokens, layer.records() ? cell : without_gates, {},
                             auxiliary ? Form::sequential : layer.form(), sees);
  layer.declare(states, vars);
  for (const auto& g : vars.gates) layer.gate(g.name, g.trajectory, g.low, g.high, g.text);
  return {vars.trajectories, vars.reads};
}

std::vector<Var> step(Layer& layer, const std::vector<StateSpec>& states, const std::vector<Var>& tokens, const CellFunction& cell,
                      Sees sees) {
  return step_and_read(layer, states, tokens, cell, sees).states;
}

}  // namespace reclab
