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
#include <stop_token>
#include <string>
#include <vector>

#include "learning/loss.h"
#include "models/network.h"
#include "sequence/sequence.h"

namespace reclab {

/// Where and when a value first was not finite.
struct Divergence {
  std::int64_t step = -1;
  std::string array;  ///< "state/0/h", "gate/1/forget", "output"
};

class Rollout {
 public:
  struct Options {
    Form form = Form::sequential;
    DType real = DType::f64;
    std::int64_t segment = 0;  ///< steps; 0: chosen by memory (forms other than sequential take the whole sequence at once)
    bool record = true;
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
  std::int64_t segment_steps() const { return segment_; }
  std::int64_t bytes() const;  ///< of graphs and checkpoints

  /// The states of step -1, by "state/<layer>/<name>"; names and shapes must be those of the network (checked by the caller).
  void set_initial(const std::map<std::string, std::vector<std::complex<double>>>& states);

  /// Runs all segments. Stops at a value that is not finite and says where.
  std::optional<Divergence> forward(const Visit& visit, std::stop_token stop);
  double loss() const { return loss_value_; }
  /// Final states as complex numbers (imaginary part 0 for real ones); a state that the form does not form is absent.
  std::map<std::string, std::vector<std::complex<double>>> final_states() const;

  /// After forward: adjoints of the loss. `visit` sees each segment after its own backward, from last to first, with scale = the power
  /// of two that its gradients are to be multiplied with.
  using VisitBackward = std::function<void(const Segment&, int scale)>;
  void backward(const VisitBackward& visit, std::stop_token stop);
  /// dL/dtheta by name, after backward.
  const std::map<std::string, std::vector<double>>& parameter_gradients() const { return gradients_; }

  /// Runs the segments again, last first, forward only: for products of Jacobians.
  void revisit(const Visit& visit, std::stop_token stop);
  /// Runs and visits the first segment alone.
  void visit_first(const Visit& visit, std::stop_token stop);

  static std::string state_key(const Network::StateVar& state) { return "state/" + std::to_string(state.layer) + "/" + state.name; }

 private:
  using Bytes = std::vector<char>;
  Network& run_segment(std::int64_t index, std::stop_token stop);
  void bind(Network& network, std::int64_t index);

  const Sequence& sequence_;
  const Loss& loss_;
  Backend& backend_;
  std::int64_t segment_ = 0, segments_ = 0;
  DType real_;
  std::unique_ptr<Network> whole_, tail_;
  std::vector<Bytes> weights_;           // in the graph's precision, in the order of the network's parameters
  Bytes input_;
  std::vector<std::vector<Bytes>> checkpoints_;  // [segment][state]
  std::int64_t standing_ = -1;           // the segment whose values the graphs hold
  double loss_value_ = 0.0;
  std::map<std::string, std::vector<double>> gradients_;
};

/// Converts n entries of a graph's array to doubles, or to complex doubles.
std::vector<double> to_double(DType type, const void* from, std::int64_t n);
std::vector<std::complex<double>> to_complex(DType type, const void* from, std::int64_t n);

}  // namespace reclab
