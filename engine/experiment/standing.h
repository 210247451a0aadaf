// SPDX-License-Identifier: GPL-3.0-or-later
// StandingModel: a model with its rollouts, which stand from one run to the next. A run of the same structure gives them its weights, its
// sequence and its initial state; nothing is built and no memory is taken.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "execution/rollout.h"
#include "experiment/prepared.h"

namespace reclab {

class StandingModel {
 public:
  /// The most bytes of arrays that are kept for the next run: larger ones are freed when the run is over.
  static constexpr std::int64_t most_bytes = std::int64_t{256} << 20;

  /// The structure of the last run, for the next one; null where nothing stands. Its sequence may be gone.
  const Structure* structure() const { return structure_.get(); }
  /// A rollout with the run's weights over the batch's one sequence, from the state that the model starts with; its results have the bits
  /// of one that was just made. It is valid until the next call or end_run(); the batch's sequence and loss must live as long.
  Rollout& rollout(const Prepared& run, const Batch& batch, const Rollout::Options& options);
  /// The next call is of another run, whose weights are others.
  void end_run();

 private:
  struct Standing {
    NetworkOptions options;  // of all steps
    LossForm loss;
    std::unique_ptr<Rollout> rollout;
    bool used;  // by this run
  };
  void clear();
  std::int64_t bytes() const;

  std::shared_ptr<const Architecture> architecture_;  // the model's
  std::unique_ptr<Structure> structure_;
  std::unique_ptr<Model> model_;
  bool has_weights_ = false;  // of this run
  std::vector<Standing> rollouts_;
};

}  // namespace reclab
