// SPDX-License-Identifier: GPL-3.0-or-later
#include "streams/follow.h"

#include <algorithm>
#include <exception>

#include "array/demand.h"
#include "array/error.h"

namespace reclab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds curve_every{100}, made_up_for{250};

std::shared_ptr<StreamPicture> picture_of(const StreamRun& stream) {
  auto picture = std::make_shared<StreamPicture>();
  picture->steps = stream.steps();
  picture->ring = stream.ring()->sequence();
  picture->drifts = stream.ring()->drifts();
  picture->all_drifts = stream.drifts().drifts();
  for (std::size_t p = 0; p < stream.predictors().size(); ++p) {
    const Prequential& errors = stream.errors()[p];
    const StreamRun::Predictor& predictor = stream.predictors()[p];
    picture->predictors.push_back({.mean = errors.mean(),
                                   .windowed = errors.windowed(),
                                   .faded = errors.faded(),
                                   .regret = predictor.learns ? stream.regret(p) : 0.0,
                                   .diverged = predictor.diverged,
                                   .ring = stream.ring()->predictions(p)});
  }
  picture->best = stream.best();
  picture->weights = stream.weights(picture->best);
  picture->done = stream.done();
  return picture;
}

}  // namespace

void StreamPace::set(std::int64_t steps_a_second) {
  const std::lock_guard lock(mutex_);
  if (steps_a_second == rate_) return;
  rate_ = steps_a_second;
  from_steps_ = -1;
  ++changes_;
  changed_.notify_all();
}

std::int64_t StreamPace::rate() const {
  const std::lock_guard lock(mutex_);
  return rate_;
}

void StreamPace::wait(std::int64_t steps, std::stop_token stop) {
  std::unique_lock lock(mutex_);
  if (rate_ <= 0) return;
  const auto now = Clock::now();
  const auto due = [&] {
    const std::chrono::duration<double> since(static_cast<double>(steps - from_steps_) / static_cast<double>(rate_));
    return from_ + std::chrono::duration_cast<Clock::duration>(since);
  };
  if (from_steps_ < 0 || now - due() > made_up_for) {
    from_ = now;
    from_steps_ = steps;
    return;
  }
  changed_.wait_until(lock, stop, due(), [this, before = changes_] { return changes_ != before; });
}

void follow_stream(StreamRun& stream, std::chrono::duration<double> between, const std::function<void(StreamPicturePtr)>& publish,
                   std::stop_token stop, StreamPace& pace) {
  RECLAB_DEMAND(stream.ring().has_value());
  std::int64_t pictured = stream.steps(), left_out = 0;
  auto last = Clock::now(), curve_of = last - curve_every;
  std::shared_ptr<const PrequentialCurve> curve;
  const auto show = [&](bool last_one) {
    const auto now = Clock::now();
    auto picture = picture_of(stream);
    if (now - curve_of >= curve_every || last_one) {  // it is large, and moves little
      curve = std::make_shared<const PrequentialCurve>(stream.curve());
      curve_of = now;
    }
    picture->curve = curve;
    const double seconds = std::chrono::duration<double>(now - last).count();
    picture->pace = seconds > 0.0 ? static_cast<double>(stream.steps() - pictured) / seconds : 0.0;
    picture->left_out = std::max<std::int64_t>(0, stream.ring()->first() - pictured);
    picture->all_left_out = left_out += picture->left_out;
    pictured = stream.steps();
    last = now;
    publish(std::move(picture));
  };
  std::exception_ptr failed;
  try {
    while (!stream.done() && !stop.stop_requested()) {
      stream.advance(stop);
      if (Clock::now() - last >= between && !stream.done()) show(false);
      if (!stream.done()) pace.wait(stream.steps(), stop);
    }
  } catch (const Error&) {
    failed = std::current_exception();
  }
  if (stream.steps() > 0) show(true);
  if (failed) std::rethrow_exception(failed);
}

}  // namespace reclab
