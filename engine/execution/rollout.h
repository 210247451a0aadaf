// SPDX-License-Identifier: GPL-3.0-or-later
// Rollout: a network run over a whole sequence in segments of time. The state at each segment's start is kept; the backward pass runs
// the segments again from there, last first, so that a long sequence needs the memory of one segment and of the checkpoints.
#pragma once

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
#include "execution/loss.h"
#include "models/network.h"
#include "sequence/sequence.h"
#include "trace/kinds.h"

namespace reclab {

/// Where and when a value first was not finite.
struct Divergence {
  std::int64_t step = -1;
  std::string array;        ///< "state/0/h", "gate/1/forget", "output"; on the way back "gradient/state/0/h"
  std::int64_t other = -1;  ///< where only the end of a segment was seen, the step at its other end; -1: step is the step
  std::int64_t good = -1;   ///< of the first so many steps everything is finite
};
/// "output became non-finite at step 31", "state/0/conv became non-finite between steps 0 and 31".
std::string sentence(const Divergence& bad);

class Rollout {
 public:
  struct Options {
    Form form = Form::sequential;
    DType real = DType::f64;
    std::int64_t segment = 0;  ///< steps; 0: chosen by memory (forms other than sequential take the whole sequence at once)
    bool record = true;
    std::int64_t past = 0;     ///< rows that the growing states given to set_initial have
    std::int64_t batch = 1;    ///< the sequence so many times side by side; the loss is the sum of all
    /// For timing: nothing is done beside the computation. No value is looked at, there is no loss (the gradients are those of ½ Σ |y|²), the
    /// parameters' gradients stay on the device, and arrays that were taken once are kept.
    bool bare = false;
  };
  Rollout(const Architecture& architecture, const Hyper& hyper, const Parameters& parameters, const Sequence& sequence, const Loss& loss,
          Backend& backend, const Options& options);

  /// A network as it stands after the segment of steps [first, first + steps) was run.
  struct Segment {
    Network& network;
    std::int64_t first, steps;
  };
  using Visit = std::function<void(const Segment&)>;

  /// The first network, for its lists of states and gates (those of all segments are alike).
  const Network& network() const { return *whole_; }
  Network& network() { return *whole_; }
  std::int64_t segment_steps() const { return segment_; }
  std::int64_t bytes() const;  ///< of graphs, checkpoints and what is carried
  Cost cost() const;           ///< of the forward pass, by formula

  /// The states of step -1, by "state/<layer>/<name>"; names and shapes must be those of the network (checked by the caller). Of a batch of
  /// one (asserted).
  void set_initial(const std::map<std::string, std::vector<std::complex<double>>>& states);

  /// Runs all segments. Stops at a value that is not finite and says where.
  std::optional<Divergence> forward(const Visit& visit, std::stop_token stop);
  double loss() const { return loss_value_; }
  /// The first step whose loss is not finite, where outputs are.
  std::int64_t loss_step() const { return loss_step_; }
  /// Final states as complex numbers (imaginary part 0 for real ones); a state that the form does not form is absent.
  std::map<std::string, std::vector<std::complex<double>>> final_states() const;

  /// After forward: adjoints of the loss. `visit` sees each segment after its own backward, from last to first, with scale = the power
  /// of two that its gradients are to be multiplied with. Returns the first gradient on the way back that is not finite: of the input and
  /// of parameters in plain units, of states by their norms' logarithms.
  using VisitBackward = std::function<void(const Segment&, int scale)>;
  std::optional<Divergence> backward(const VisitBackward& visit, std::stop_token stop);
  /// dL/dtheta by name, after backward.
  const std::map<std::string, std::vector<double>>& parameter_gradients() const { return gradients_; }

  /// Runs the segments again, last first, forward only: for products of Jacobians.
  void revisit(const Visit& visit, std::stop_token stop);
  /// Runs and visits the first segment alone.
  void visit_first(const Visit& visit, std::stop_token stop);

  static std::string state_key(const Network::StateVar& state) { return key_of(Kind::state, state.layer, state.name); }

 private:
  Network& run_segment(std::int64_t index, std::stop_token stop);
  void bind(Network& network, std::int64_t index);
  std::optional<Divergence> look_at(Network& network, std::int64_t first) const;
  void add_loss(Network& network, std::int64_t first);
  void keep_states(const Network& network, std::size_t index);
  double loss_of(std::int64_t first, std::int64_t steps, std::int64_t width, std::span<const double> output, std::span<double> adjoint) const;
  void add_units(Var like, const void* x, int scale, void* to, int& power) const;
  std::optional<Divergence> look_back(Network& network, std::int64_t first, int scale) const;

  const Sequence& sequence_;
  const Loss& loss_;
  Backend& backend_;
  std::int64_t segment_ = 0, segments_ = 0, batch_ = 1;
  DType real_;
  bool bare_ = false;
  std::unique_ptr<Network> whole_, tail_;
  std::vector<DeviceArray> weights_;     // in the graph's precision, in the order of the network's parameters
  DeviceArray input_;
  std::vector<std::vector<DeviceArray>> checkpoints_;  // [segment][state]
  std::size_t reached_ = 0;              // the last of them that belongs to this forward pass
  std::vector<DeviceArray> carried_;     // adjoints of the next segment's initial states
  std::vector<DeviceArray> totals_;      // the parameters' gradients of a bare rollout
  std::int64_t standing_ = -1;           // the segment whose values the graphs hold
  double loss_value_ = 0.0;
  std::int64_t loss_step_ = -1;
  std::map<std::string, std::vector<double>> gradients_;
};

}  // namespace reclab
