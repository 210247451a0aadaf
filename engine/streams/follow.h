// SPDX-License-Identifier: GPL-3.0-or-later
// A stream that is watched while it learns: pictures of it at a bounded rate, each a copy that nobody changes any more.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

#include "streams/stream.h"

namespace reclab {

/// How fast a stream is gone over at most. Another thread may change it meanwhile.
class StreamPace {
 public:
  /// Steps a second; 0: as fast as it can.
  explicit StreamPace(std::int64_t steps_a_second = 0) : rate_(steps_a_second) {}
  void set(std::int64_t steps_a_second);  ///< who waits goes by the new one at once
  std::int64_t rate() const;
  /// Returns when so many steps of the stream may have been made, counted from the first call on, or at a stop. Time that something else
  /// took is made up for where it is short, and else left.
  void wait(std::int64_t steps, std::stop_token stop);

 private:
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::int64_t rate_;
  std::uint64_t changes_ = 0;
  std::chrono::steady_clock::time_point from_{};  // the time at which from_steps_ had been made
  std::int64_t from_steps_ = -1;                  // -1: nothing was counted yet
};

struct StreamPicture {
  struct Predicted {
    Errors mean{}, windowed{}, faded{};
    double regret = 0.0;         ///< of learners
    std::int64_t diverged = -1;  ///< as StreamRun::Predictor
    std::vector<double> ring;    ///< predictions of the ring's steps [length, outputs]
  };
  std::int64_t steps = 0;
  double pace = 0.0;  ///< steps a second since the picture before
  /// Steps that are in no picture's ring: since the picture before, and since following began.
  std::int64_t left_out = 0, all_left_out = 0;
  Sequence ring;                                  ///< the last steps
  std::vector<std::int64_t> drifts;               ///< those of them at which another regime begins
  std::int64_t all_drifts = 0;                    ///< since the stream began
  std::vector<Predicted> predictors;              ///< in the order of StreamRun::predictors()
  std::size_t best = 0;                           ///< the learner whose weights these are
  Parameters weights;                             ///< after the last of the steps
  std::shared_ptr<const PrequentialCurve> curve;  ///< of all predictors, a tenth of a second old at most
  bool done = false;
};
using StreamPicturePtr = std::shared_ptr<const StreamPicture>;

/// Goes on with a stream until it is done or stopped, and publishes a picture whenever `between` has passed since the last one, and one at
/// the end. The stream's request asks for a ring. Learning does not wait for who draws: steps between two pictures are left out of them
/// where the ring is shorter. It goes no faster than `pace`. Throws the Error of the source, after the last picture.
void follow_stream(StreamRun& stream, std::chrono::duration<double> between, const std::function<void(StreamPicturePtr)>& publish,
                   std::stop_token stop, StreamPace& pace);

}  // namespace reclab
