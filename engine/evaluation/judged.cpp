// SPDX-License-Identifier: GPL-3.0-or-later
#include "evaluation/judged.h"

#include <algorithm>
#include <utility>

#include "array/cpu/processor/threads.h"
#include "array/error.h"
#include "array/stop.h"
#include "execution/elapsed_times.h"
#include "execution/rollout.h"

namespace reclab {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{512} << 20;  // of all sequences that are there at once

/// Of a sequence as it stands in memory while it is run: input and what is copied of it, target, mask, time.
std::int64_t bytes_of_sequence(std::int64_t length, std::int64_t width) { return length * (20 * width + 48); }

/// Sequences side by side, which one thread runs from end to end.
class Lane {
 public:
  Lane(const JudgedModel& judged, const JudgedRun& run) : judged_(judged), run_(run) {}

  /// Runs the sequences [first, first + own), filled up to `size` by the last.
  void run(std::int64_t first, std::int64_t own, std::int64_t size, std::stop_token stop) {
    std::deque<Sequence> sequences;
    std::deque<std::unique_ptr<SequenceLoss>> losses;
    std::vector<Example> examples;
    for (std::int64_t i = 0; i < size; ++i) {
      if (i < own) sequences.push_back(run_.at(first + i));
      losses.push_back(run_.loss_of(sequences.back()));
      examples.push_back({&sequences.back(), losses.back().get()});
    }
    const Batch batch(std::move(examples));
    const bool uneven = ElapsedTimes::uneven(batch);
    if (rollout_ && uneven == uneven_) {
      rollout_->set_batch(batch);
    } else {
      rollout_.reset();
      rollout_ = std::make_unique<Rollout>(
          *judged_.model, batch,
          Rollout::Options{.form = judged_.form, .record = false, .gradients = GradientsOn::device, .forward_only = true});
      uneven_ = uneven;
    }
    // Those before stay until the rollout no longer refers to them.
    sequences_ = std::move(sequences);
    losses_ = std::move(losses);
    if (const auto bad = rollout_->forward({}, std::move(stop)))
      throw Error(sentence(*bad) + " of a sequence that " + judged_.about.name + " is judged by.", {.model = judged_.about.name});
    first_ = first;
    own_ = own;
  }
  void tell() const {
    for (std::int64_t i = 0; i < own_; ++i)
      run_.done(first_ + i, sequences_[static_cast<std::size_t>(i)], *losses_[static_cast<std::size_t>(i)]);
  }

 private:
  const JudgedModel& judged_;
  const JudgedRun& run_;
  std::deque<Sequence> sequences_;
  std::deque<std::unique_ptr<SequenceLoss>> losses_;
  std::unique_ptr<Rollout> rollout_;
  bool uneven_ = false;
  std::int64_t first_ = 0, own_ = 0;
};

}  // namespace

void run_judged(const JudgedModel& judged, const JudgedRun& run, std::int64_t batch, std::stop_token stop) {
  const std::int64_t each = bytes_of_sequence(run.length, judged.prepared->shape_network->options().input),
                     most = std::max<std::int64_t>(1, most_bytes / each),
                     size = std::clamp<std::int64_t>(std::min(batch, most), 1, run.count), batches = (run.count + size - 1) / size;
  const bool cpu = judged.model->backend().device() == Device::cpu;
  const std::int64_t at_once = cpu ? std::clamp<std::int64_t>(most / size, 1, std::min<std::int64_t>(batches, cpu::thread_count())) : 1;
  std::vector<std::unique_ptr<Lane>> lanes;
  for (std::int64_t i = 0; i < at_once; ++i) lanes.push_back(std::make_unique<Lane>(judged, run));
  for (std::int64_t from = 0; from < batches; from += at_once) {
    check_stop();
    const std::int64_t some = std::min(at_once, batches - from);
    const auto one = [&](std::int64_t i) {
      const std::int64_t first = (from + i) * size;
      lanes[static_cast<std::size_t>(i)]->run(first, std::min(size, run.count - first), size, stop);
    };
    if (some == 1)
      one(0);  // all threads are its own
    else
      cpu::parallel(some, one);
    for (std::int64_t i = 0; i < some; ++i) lanes[static_cast<std::size_t>(i)]->tell();
    if (run.progress) run.progress(std::min(run.count, (from + some) * size));
  }
}

}  // namespace reclab
