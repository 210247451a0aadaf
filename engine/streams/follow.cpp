// SPDX-License-Identifier: GPL-3.0-or-later
#include "streams/follow.h"

#include <algorithm>
#include <exception>

#include "array/demand.h"
#include "array/error.h"

namespace reclab {
namespace {

using Clock = std::chrono::steady_clock;

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
  picture->curve = std::make_shared<const PrequentialCurve>(stream.curve());
  picture->done = stream.done();
  return picture;
}

}  // namespace

void follow_stream(StreamRun& stream, std::chrono::duration<double> between, const std::function<void(StreamPicturePtr)>& publish,
                   std::stop_token stop) {
  RECLAB_DEMAND(stream.ring().has_value());
  std::int64_t pictured = stream.steps(), left_out = 0;
  auto last = Clock::now();
  const auto show = [&] {
    const auto now = Clock::now();
    auto picture = picture_of(stream);
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
      if (Clock::now() - last >= between && !stream.done()) show();
    }
  } catch (const Error&) {
    failed = std::current_exception();
  }
  if (stream.steps() > 0) show();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace reclab
