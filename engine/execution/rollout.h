// SPDX-License-Identifier: GPL-3.0-or-later
// Rollout: a model run over a whole sequence, or over a batch of them side by side, in segments of time. The state at each segment's start
// is kept; the backward pass runs the segments again from there, last first, so that a long sequence needs the memory of one segment and of
// the checkpoints.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "array/device_array.h"
#include "array/host.h"
#include "autodiff/loss.h"
#include "execution/batch.h"
#include "execution/elapsed_times.h"
#include "execution/model.h"
#include "models/network.h"
#include "trace/kinds.h"

namespace reclab {

/// The place and time of the first value that is not finite.
struct Divergence {
  std::int64_t step = -1;
  std::string array;        ///< "state/0/h", "gate/1/forget", "output"; on the way back "gradient/state/0/h"
  std::int64_t other = -1;  ///< where only the end of a segment was seen, the step at its other end; -1: step is the step
  std::int64_t good = -1;   ///< of the first so many steps everything is finite
};
/// "output became non-finite at step 31", "state/0/conv became non-finite between steps 0 and 31".
std::string sentence(const Divergence& bad);

/// The memory in which the gradients of the parameters are added up, segment after segment.
enum class GradientsOn : std::uint8_t {
  host,   ///< in float64: parameter_gradients()
  device  ///< in the model's precision, where they lie: device_gradients(), for an optimiser; the input has no gradient
};

class Rollout {
 public:
  struct Options {
    Form form = Form::sequential;
    std::int64_t segment = 0;  ///< steps; 0: chosen by memory (forms other than sequential take the whole sequence at once)
    bool record = true;
    std::int64_t cached_steps = 0;  ///< rows that the growing states given to set_initial have
    /// For timing: nothing is done beside the computation. No value is checked, there is no loss (the gradients are those of ½ Σ |y|²), and
    /// the parameters' gradients stay on the device.
    bool timing_only = false;
    GradientsOn gradients = GradientsOn::host;
    /// Nothing goes back: of the states at the segments' starts the first and the last alone are kept, so that a sequence of any
    /// length takes the memory of its input and of one segment. No backward and no revisit may follow.
    bool forward_only = false;
    OdeGradient ode = OdeGradient::steps;  ///< of layers whose step solves a differential equation
    /// The model's network of sampled_steps(length) steps, where there is one already. If it is one of these options and nobody runs it,
    /// the memory of a step is read off it, and if it is of all steps and they are one segment, the rollout runs it; otherwise networks are
    /// built.
    std::shared_ptr<Network> network = {};
  };
  /// The model must outlive the rollout; the batch's sequences and losses until the next batch. Several rollouts of one model have arrays
  /// of their own and share the model's weights. A change of the weights is seen by the next forward.
  Rollout(const Model& model, const Batch& batch, const Options& options);

  /// The next sequences, for the next forward: as many as before, as wide, and none longer than the longest that the rollout was made for
  /// (a shorter one is followed by zeros, see Batch). Nothing is built and no memory is taken. Throws Error for others. Initial states
  /// stay.
  void set_batch(const Batch& batch);

  /// A network as it stands after the segment of steps [first, first + steps) was run.
  struct Segment {
    Network& network;
    std::int64_t first, steps;
  };
  using Visit = std::function<void(const Segment&)>;

  /// The first network, for its lists of states and gates (those of all segments are alike).
  const Network& network() const { return *full_; }
  Network& network() { return *full_; }
  std::int64_t segment_steps() const { return segment_; }
  std::int64_t bytes() const;  ///< of graphs, checkpoints and carried adjoints
  Cost cost() const;           ///< of the forward pass, by formula

  /// The states of step -1, by "state/<layer>/<name>", those of a batch side by side as final_states() has them; names and sizes must be
  /// those of the network (checked by the caller).
  void set_initial(const std::map<std::string, std::vector<std::complex<double>>>& states);
  /// Sets the states of step -1 to the model's own start.
  void reset_states();
  /// Continues after a forward to the end: its final states are those of step -1 of the next one, without leaving the device. No gradient
  /// passes from there back, which is truncated backpropagation through time. The padding after a shorter sequence of a batch has changed
  /// its states. Throws Error where the model has a layer that runs backward, keeps every step that has passed, or runs in a form that does
  /// not make its final state.
  void continue_states();

  /// Runs all segments. Stops at a value that is not finite and says where. If `backward_follows`, the last one keeps the arrays that
  /// backward() reads.
  std::optional<Divergence> forward(const Visit& visit, std::stop_token stop, bool backward_follows = false);
  double loss() const { return loss_value_; }                    ///< of the last forward: the sum over the batch
  double gate_penalty() const { return gate_penalty_; }          ///< the same, of what the losses add for gates (Loss::gate_weight)
  const std::vector<double>& losses() const { return losses_; }  ///< of each sequence
  /// The first step whose loss is not finite, where outputs are.
  std::int64_t loss_step() const { return loss_step_; }
  /// Final states as complex numbers (imaginary part 0 for real ones); a state that the form does not form is absent.
  std::map<std::string, std::vector<std::complex<double>>> final_states() const;

  /// The adjoints of the loss, after forward with the same weights (asserted). `visit` sees each segment after its own backward, from last
  /// to first, with scale = the power of two that its gradients are to be multiplied with. Returns the first gradient on the way back that
  /// is not finite: of the input and of parameters in plain units, of states by their norms' logarithms.
  using VisitBackward = std::function<void(const Segment&, int scale)>;
  std::optional<Divergence> backward(const VisitBackward& visit, std::stop_token stop);
  /// dL/dtheta by name, after backward; empty with GradientsOn::device.
  const std::map<std::string, std::vector<double>>& parameter_gradients() const { return gradients_; }
  /// dL/ds of the state before the first step, named and laid out as final_states(), after backward; absent where no gradient passes to it.
  std::map<std::string, std::vector<std::complex<double>>> initial_gradients() const;
  /// dL/dtheta in the order of the model's weights, after backward with GradientsOn::device, until the next.
  std::span<const DeviceArray> device_gradients() const { return totals_; }

  /// Runs the segments again, forward only: for products of Jacobians, which some make from the end and some from the start.
  enum class Order : std::uint8_t { last_first, first_first };
  void revisit(const Visit& visit, std::stop_token stop, Order order = Order::last_first);
  /// Runs and visits the first segment alone.
  void visit_first(const Visit& visit, std::stop_token stop);

  static std::string state_key(const Network::StateVar& state) { return key_of(Kind::state, state.layer, state.name); }

 private:
  Network& run_segment(std::int64_t index, std::stop_token stop, bool backward_follows = false);
  void bind(Network& network, std::int64_t index);
  std::optional<Divergence> first_divergence(Network& network, std::int64_t first) const;
  void add_losses(Network& network, std::int64_t first);
  void keep_states(const Network& network, std::size_t index);
  void upload_input();
  void set_clocks(std::span<const double> values);
  void require_equal_lengths(const Batch& batch) const;
  LossNode& loss_of(const Network& network) { return &network == full_.get() ? full_loss_ : tail_loss_; }
  Var gates_of(const Network& network) const { return &network == full_.get() ? full_gates_ : tail_gates_; }
  /// The checkpoint of the state at the start of a segment.
  std::size_t slot(std::size_t segment) const { return forward_only_ ? std::min<std::size_t>(segment, 1) : segment; }
  std::vector<double> outputs_of(const std::vector<double>& all, std::int64_t b, std::int64_t steps, std::int64_t width) const;
  void upload_losses(const Network& network, std::int64_t index);
  void add_units(Var like, const void* x, int scale, void* to, int& power) const;
  std::optional<Divergence> look_back(Network& network, std::int64_t first, int scale) const;
  std::optional<Divergence> look_at_sums(const Network& network, std::int64_t first) const;

  const Model& model_;
  Batch batch_;
  Backend& backend_;
  std::int64_t segment_ = 0, segments_ = 0;
  DType real_;
  std::int64_t length_;
  bool timing_only_, on_device_, forward_only_;
  std::shared_ptr<Network> full_, tail_;
  LossNode full_loss_, tail_loss_;
  Var full_gates_, tail_gates_;  // the penalty of the gates [steps, batch]; none where the losses have none
  ElapsedTimes elapsed_;
  DeviceArray input_;                                  // [steps, batch, width] of all steps
  DeviceArray loss_weights_, targets_, gate_weights_;  // [steps, batch, ...] of a segment,
  std::int64_t losses_of_segment_ = -1;                // the segment of loss_weights_ and targets_
  std::vector<std::vector<DeviceArray>> checkpoints_;  // [slot][state]
  std::size_t last_checkpoint_ = 0;                    // the last of them that belongs to this forward pass
  std::vector<DeviceArray> carried_;                   // adjoints of the next segment's initial states,
  std::vector<std::optional<int>> carried_units_;      // in units of 2^this; none where this pass has written none
  std::vector<DeviceArray> totals_;                    // the parameters' gradients, where they stay on the device
  std::int64_t evaluated_segment_ = -1;                // the segment whose values the graphs hold
  std::uint64_t weights_seen_;                         // Model::changes() at the last forward
  double loss_value_ = 0.0, gate_penalty_ = 0.0;
  std::vector<double> losses_;
  std::int64_t loss_step_ = -1;
  std::map<std::string, std::vector<double>> gradients_;
};

}  // namespace reclab
