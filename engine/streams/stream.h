// SPDX-License-Identifier: GPL-3.0-or-later
// One pass over a sequence without an end: a model predicts each target, is compared with it, learns from it, and goes on, and is never
// begun anew. Beside it stand the last value, least squares that are updated, and the same model trained beforehand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "experiment/prepared.h"
#include "experiment/training/plan.h"
#include "learning/optimiser.h"
#include "streams/prequential.h"
#include "streams/ridge_online.h"
#include "streams/ring.h"
#include "streams/rules/stream_rule.h"
#include "streams/source.h"

namespace reclab {

/// Of the training plan's options those that a stream has (stream_fields()).
struct StreamRequest : TrainingPlan {
  /// The model, its settings, seed of the weights, weights to begin from, device and precision. Its sequence is not read.
  RunRequest run;
  SourceChoice source;
  std::int64_t length = 10'000;  ///< steps; 0: until the source ends
  /// Learners side by side, one of each rate, truncation and number of steps between two changes; where a list is empty, those of
  /// `options`.
  std::vector<double> rates;
  std::vector<std::int64_t> truncations, advances;
  bool reset = false;
  PrequentialOptions errors;
  std::int64_t past = 8;  ///< steps whose inputs the ridge reads
  double ridge = 1e-6, forget = 0.99;
  std::int64_t offline = 0;  ///< the first steps that one more model is trained on beforehand; 0: none is
  std::int64_t offline_batches = 500;
  std::int64_t ring = 0;  ///< last steps that are kept with all predictions; 0: none are
  std::int64_t pace = 0;  ///< steps a second at most, which changes no number; 0: as fast as it can
};
/// In the order of the command line. The seed of the weights is that of the source too.
const std::vector<PlanField<StreamRequest>>& stream_fields();

class StreamRun {
 public:
  /// `state`: where it goes on; null: from the beginning. Throws Error for a request that there is no stream of, and Cancelled.
  StreamRun(const Registry& registry, const StreamRequest& request, StreamState* state = nullptr, std::stop_token stop = {});
  ~StreamRun();
  StreamRun(const StreamRun&) = delete;
  StreamRun& operator=(const StreamRun&) = delete;

  /// Goes over the next block. Steps that were read before a stop, or before an Error of the source, are still learned from.
  void advance(std::stop_token stop = {});
  /// All steps are made, or the source has ended.
  bool done() const { return ended_ || (request_.length > 0 && steps_ >= request_.length); }
  std::int64_t steps() const { return steps_; }

  /// A predictor of which errors are kept: the learners, in the order of rates, truncations and advances, the offline model, and the
  /// baselines.
  struct Predictor {
    std::string name;  ///< as in an export: "model", "rate=0.01,truncate=20", "offline", "last", "ridge", "fading-ridge"
    std::string text;  ///< in words
    bool learns = false;
    std::int64_t diverged = -1;  ///< the step at which it became non-finite; -1: it did not
  };
  const std::vector<Predictor>& predictors() const { return predictors_; }
  const std::vector<Prequential>& errors() const { return errors_; }
  const PrequentialCurve& curve() const { return curve_; }
  const DriftLog& drifts() const { return *drifts_; }
  const std::optional<StreamRing>& ring() const { return ring_; }  ///< where the request asks for one
  const StreamForm& form() const { return source_->form(); }
  std::string note() const { return source_->note(); }  ///< what of the source was lost, a sentence; empty: nothing
  const StreamRequest& request() const { return request_; }
  void set_pace(std::int64_t pace) { request_.pace = pace; }  ///< of the request, for whom it is written
  const std::string& title() const { return title_; }
  /// The learner whose sum of the first measure is least, and what that of a learner is above it.
  std::size_t best() const;
  double regret(std::size_t learner) const { return errors_[learner].total()[0] - errors_[best()].total()[0]; }
  Parameters weights(std::size_t learner) const;
  std::int64_t bytes() const;
  void keep(StreamState& state);

 private:
  struct Learner;
  struct Pace {
    double rate;
    std::int64_t truncate, advance;
  };
  std::unique_ptr<Learner> learner(const Prepared& prepared, const Pace& pace, bool learns) const;
  std::vector<Pace> paces() const;
  void name_learner(const Pace& pace);
  void train_offline(Learner& learner, std::stop_token stop) const;
  void predict(std::size_t predictor, Learner& learner);
  void compare();

  StreamRequest request_;
  std::string title_;
  std::unique_ptr<StreamSource> source_;
  std::shared_ptr<const Architecture> architecture_;
  std::vector<std::unique_ptr<Learner>> learners_;  // the offline one last
  std::vector<OnlineRidge> ridges_;
  std::vector<double> last_;  // the last target
  std::vector<Predictor> predictors_;
  std::vector<Prequential> errors_;
  PrequentialCurve curve_{0};
  std::optional<DriftLog> drifts_;
  std::optional<StreamRing> ring_;
  StreamBlock block_;
  std::int64_t block_steps_ = 1, steps_ = 0;
  bool ended_ = false;
  std::vector<std::vector<double>> predictions_;  // [predictor], of the block
};

/// The words behind `reclab stream` that ask for this, and the line.
std::vector<std::string> arguments_of(const StreamRequest& request);
std::string command_of(const StreamRequest& request);

/// Writes the folder, all of it at once: stream.npz with the errors, state.npz to go on from, weights.npz and weights.safetensors of the
/// best learner, ring.npz with the last steps where they are kept, a sequence like any other, and stream.json with the command, the
/// summary, and size and SHA-256 of the others. Throws Error.
void export_stream(StreamRun& stream, const std::filesystem::path& folder);
/// Throws Error where export_stream would: everything is written beside the folder, and taken away again.
void check_stream_export(StreamRun& stream, const std::filesystem::path& folder);
/// Whether a folder has the export of a stream; it is none where it is absent or empty. Throws Error where it holds other files of those
/// names.
bool holds_stream(const std::filesystem::path& folder);
/// The words behind `reclab stream` that a folder was made with. Throws Error for a folder that is none of a stream.
std::vector<std::string> stream_arguments_in(const std::filesystem::path& folder);
/// The stream of the request that a folder was made with, from where the folder stands: it goes on with the same bits. Throws Error.
std::unique_ptr<StreamRun> resume_stream(const Registry& registry, const StreamRequest& request, const std::filesystem::path& folder);

}  // namespace reclab
