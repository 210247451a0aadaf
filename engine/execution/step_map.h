// SPDX-License-Identifier: GPL-3.0-or-later
// One step of a model as a function: (state, input) -> (next state, output), with the products of its Jacobian with vectors from both
// sides. Fixed points, exponents and learning rules that go forward in time stand on it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "array/device_array.h"
#include "execution/model.h"
#include "models/network.h"

namespace reclab {

/// Vectors are float64, for a model of any precision; computations have the model's precision and are done on its backend. A state is one
/// vector: the arrays of parts() one after another, a complex entry as its real and its imaginary part. An adjoint of a complex entry is
/// dL/dRe + i dL/dIm. Changes of the model's weights are seen by the next evaluate().
class StepMap {
 public:
  enum class Of : std::uint8_t {
    model,      ///< the whole model
    first_step  ///< a model in its first step: states that grow with the sequence are empty before it, and no part of the state
  };
  /// The model must outlive it. `inputs`: the width of the input; `outputs`: of the linear head, 0 for none. Throws Error for a model whose
  /// state grows with the sequence, or that has a layer that runs from the end of the sequence to its start, but for Of::first_step, which
  /// has no products of its Jacobian.
  StepMap(const Model& model, std::int64_t inputs, std::int64_t outputs, Of of = Of::model);

  /// One array of the state.
  struct Part {
    std::string name;  ///< "state/0/h"
    std::size_t first, entries;
  };
  const std::vector<Part>& parts() const { return parts_; }
  DType real() const { return model_.real(); }
  std::size_t states() const { return next_.size(); }
  std::size_t inputs() const { return input_adjoint_.size(); }
  std::size_t outputs() const { return output_.size(); }
  std::size_t weights() const { return weight_adjoint_.size(); }
  /// Whether the model is given elapsed times where steps are unequal; here all steps are equal.
  bool knows_time() const { return network_.knows_time(); }
  /// The states that the model starts with.
  std::vector<double> start() const;
  /// The network of one step; parts() are its states, in their order.
  const Network& network() const { return network_; }
  /// An array of the network as it is after the last evaluate().
  std::vector<double> value(Var var) const;

  void evaluate(std::span<const double> state, std::span<const double> input);
  /// The state and the input of the last evaluate().
  const std::vector<double>& at_state() const { return at_state_; }
  const std::vector<double>& at_input() const { return at_input_; }
  const std::vector<double>& next() const { return next_; }
  const std::vector<double>& output() const { return output_; }

  /// The vector-Jacobian products at the last evaluate(): those of `next_adjoint` and `output_adjoint`, either of which may be empty for 0.
  void pull_back(std::span<const double> next_adjoint, std::span<const double> output_adjoint);
  const std::vector<double>& state_adjoint() const { return state_adjoint_; }
  const std::vector<double>& input_adjoint() const { return input_adjoint_; }
  /// The adjoint of all weights, one after another in the order of Model::weights().
  const std::vector<double>& weight_adjoint() const { return weight_adjoint_; }

  /// The Jacobian-vector products at the last evaluate(): how next state and output move where state and input move so; either may be empty
  /// for 0, not both.
  void push_forward(std::span<const double> state_move, std::span<const double> input_move);
  const std::vector<double>& next_move() const { return next_move_; }
  const std::vector<double>& output_move() const { return output_move_; }

 private:
  static std::size_t doubles_of(Var var);
  void upload(DeviceArray& to, DType type, std::span<const double> values);
  /// The values in doubles, times 2^exponent; zeros where `from` is null.
  void download(const void* from, Var like, int exponent, std::span<double> to) const;
  std::span<const double> part(std::span<const double> state, std::size_t i) const;

  const Model& model_;
  Of of_;
  Backend& backend_;
  Network network_;
  std::vector<Part> parts_;
  DeviceArray input_, input_move_, output_adjoint_;
  std::vector<DeviceArray> state_, next_adjoint_, state_move_;
  std::vector<double> at_state_, at_input_, next_, output_, state_adjoint_, input_adjoint_, weight_adjoint_, next_move_, output_move_;
};

}  // namespace reclab
