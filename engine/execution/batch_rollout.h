// SPDX-License-Identifier: GPL-3.0-or-later
// BatchRollout: a Rollout of a large batch for training. On the CPU the batch is cut into parts of some sequences, each with a rollout of
// its own that one thread runs from end to end: threads meet once a pass and not at every operation, and the arrays of a part stay in one
// processor's caches.
#pragma once

#include <complex>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "execution/rollout.h"

namespace reclab {

/// The parts follow from the sizes of the batch and of the model alone and their gradients are added up in their order, so the bits do not
/// depend on the number of threads.
class BatchRollout {
 public:
  /// The fewest sequences of a part, of a model with so many weights: fewer rows would cost a small cell more in calls than other threads
  /// save, while a large one computes eight as fast as sixteen.
  static constexpr std::int64_t sequences_of_part(std::int64_t weights) { return weights < std::int64_t{1} << 16 ? 16 : 8; }
  /// The model must outlive it; the batch's sequences and losses until the next batch. Parameters' gradients stay on the device, nothing is
  /// recorded.
  BatchRollout(const Model& model, const Batch& batch, Form form, OdeGradient ode = OdeGradient::steps);

  /// As Rollout's. Each part takes sequences that are none longer than the longest it was made for.
  void set_batch(const Batch& batch);
  void reset_states();
  void continue_states();
  /// The states of each part, as Rollout's; all at rest where there are none.
  using States = std::vector<std::map<std::string, std::vector<std::complex<double>>>>;
  void set_initial(const States& states);
  States final_states() const;

  /// The earliest value that is not finite.
  std::optional<Divergence> forward(std::stop_token stop, bool backward_follows = false);
  double loss() const;             ///< of the last forward: the sum over the batch
  double gate_penalty() const;     ///< the same, of Rollout::gate_penalty()
  std::int64_t loss_step() const;  ///< the first step whose loss is not finite
  /// The first gradient on the way back that is not finite.
  std::optional<Divergence> backward(std::stop_token stop);
  /// dL/dtheta of the sum of the losses, in the order of the model's weights, after backward.
  std::span<const DeviceArray> device_gradients() const { return parts_[0]->device_gradients(); }

  std::int64_t parts() const { return std::ssize(parts_); }
  std::int64_t bytes() const;

 private:
  Batch part_of(const Batch& batch, std::int64_t part) const;
  template <class F>
  std::vector<std::optional<Divergence>> each(const F& pass);

  const Model& model_;
  std::int64_t size_, count_;
  std::vector<std::unique_ptr<Rollout>> parts_;
};

}  // namespace reclab
