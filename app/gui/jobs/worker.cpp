// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/jobs/worker.h"

#include <utility>

#ifdef __linux__
#include <sys/resource.h>
#endif

namespace reclab {

Worker::Worker(int niceness) : thread_([this, niceness](std::stop_token end) { loop(std::move(end), niceness); }) {}

Worker::~Worker() {
  thread_.request_stop();
  stop();
}

void Worker::post(Job job) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(job));
  wake_.notify_one();
}

std::size_t Worker::replace(Job job) {
  const std::lock_guard lock(mutex_);
  const std::size_t forgotten = waiting_.size();
  waiting_.clear();
  current_.request_stop();
  waiting_.push_back(std::move(job));
  wake_.notify_one();
  return forgotten;
}

std::size_t Worker::stop() {
  const std::lock_guard lock(mutex_);
  const std::size_t forgotten = waiting_.size();
  waiting_.clear();
  current_.request_stop();
  return forgotten;
}

bool Worker::rests(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return rested_.wait_for(lock, most, [this] { return !runs_ && waiting_.empty(); });
}

void Worker::loop(std::stop_token end, int niceness) {
#ifdef __linux__
  if (niceness > 0) setpriority(PRIO_PROCESS, 0, niceness);  // of this thread alone: Linux counts threads as processes here
#else
  static_cast<void>(niceness);
#endif
  for (;;) {
    Job job;
    std::stop_token stop;
    {
      std::unique_lock lock(mutex_);
      if (!wake_.wait(lock, end, [this] { return !waiting_.empty(); }) || end.stop_requested()) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
      current_ = std::stop_source();
      stop = current_.get_token();
      runs_ = true;
    }
    job(std::move(stop));
    const std::lock_guard lock(mutex_);
    runs_ = false;
    rested_.notify_all();
  }
}

}  // namespace reclab
