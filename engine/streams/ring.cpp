// SPDX-License-Identifier: GPL-3.0-or-later
#include "streams/ring.h"

#include <numeric>

#include "files/files.h"
#include "trace/stream_steps.h"

namespace reclab {

StreamRing::StreamRing(const StreamForm& form, std::int64_t room, std::size_t predictors)
    : form_(form),
      room_(room),
      input_(static_cast<std::size_t>(room * form.width())),
      target_(static_cast<std::size_t>(room * form.target_width)),
      counts_(static_cast<std::size_t>(room)),
      regimes_(static_cast<std::size_t>(room)),
      predictions_(predictors, std::vector<double>(static_cast<std::size_t>(room * form.outputs()))) {}

void StreamRing::add(const StreamBlock& block, const std::vector<std::vector<double>>& predictions) {
  for (std::int64_t t = std::max<std::int64_t>(0, block.steps - room_); t < block.steps; ++t) {
    const std::int64_t at = (steps_ + t) % room_;
    const auto put = [&](std::vector<double>& rows, const std::vector<double>& from) {
      const std::int64_t width = std::ssize(rows) / room_;
      std::copy_n(from.begin() + t * width, width, rows.begin() + at * width);
    };
    put(input_, block.input);
    put(target_, block.target);
    counts_[static_cast<std::size_t>(at)] = block.counts[static_cast<std::size_t>(t)] ? 1 : 0;
    regimes_[static_cast<std::size_t>(at)] = block.regimes[static_cast<std::size_t>(t)];
    for (std::size_t p = 0; p < predictions_.size(); ++p) put(predictions_[p], predictions[p]);
  }
  steps_ += block.steps;
}

template <class T>
std::vector<T> StreamRing::in_order(const std::vector<T>& rows) const {
  const std::int64_t width = std::ssize(rows) / room_;
  const auto end = rows.begin() + length() * width, begin = rows.begin() + first() % room_ * width;
  std::vector<T> ordered(begin, end);
  ordered.insert(ordered.end(), rows.begin(), begin);
  return ordered;
}

Sequence StreamRing::sequence() const {
  Sequence sequence;
  sequence.name = "the last " + std::to_string(length()) + " steps of the stream";
  sequence.length = length();
  sequence.width = form_.width();
  sequence.names = form_.names;
  sequence.mean.assign(form_.names.size(), 0.0);
  sequence.deviation.assign(form_.names.size(), 1.0);
  sequence.input = in_order(input_);
  sequence.time_name = stream_steps;
  sequence.time.resize(static_cast<std::size_t>(length()));
  std::iota(sequence.time.begin(), sequence.time.end(), static_cast<double>(first()));
  sequence.target_kind = form_.target_kind;
  sequence.target_width = form_.target_width;
  sequence.classes = form_.classes;
  sequence.target = in_order(target_);
  const auto counts = in_order(counts_);
  sequence.mask.assign(counts.begin(), counts.end());
  Sha256 hash;
  hash.update(sequence.input.data(), sequence.input.size() * sizeof(double));
  hash.update(sequence.target.data(), sequence.target.size() * sizeof(double));
  sequence.sha256 = hash.hex();
  return sequence;
}

std::vector<double> StreamRing::predictions(std::size_t predictor) const { return in_order(predictions_[predictor]); }

std::vector<std::int64_t> StreamRing::regimes() const { return in_order(regimes_); }

std::vector<std::int64_t> StreamRing::drifts() const {
  const auto all = regimes();
  std::vector<std::int64_t> found;
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i] != all[i - 1]) found.push_back(first() + static_cast<std::int64_t>(i));
  return found;
}

void StreamRing::keep(StreamState& state) {
  state.whole("steps", steps_);
  state.same("input", input_);
  state.same("target", target_);
  state.whole("counts", counts_, 0, 1);
  state.whole("regimes", regimes_, -1, std::max<std::int64_t>(0, std::ssize(form_.concepts) - 1));
  if (std::ssize(counts_) != room_ || std::ssize(regimes_) != room_) state.refuse("counts", "has another number of steps");
  for (std::size_t p = 0; p < predictions_.size(); ++p) state.same("prediction/" + std::to_string(p), predictions_[p]);
}

}  // namespace reclab
