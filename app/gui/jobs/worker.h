// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace reclab {

/// One thread that does one job after the other, off the GUI thread. A job gets a token of its own and ends soon after it is stopped.
class Worker {
 public:
  using Job = std::function<void(std::stop_token)>;
  explicit Worker(int niceness = 0);
  ~Worker();  ///< stops the running job, forgets the waiting ones
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void post(Job job);                          ///< after all that wait
  std::size_t replace(Job job);                ///< instead of all that wait, stopping the running one; returns how many waited
  std::size_t stop();                          ///< forgets the waiting ones, stops the running one; returns how many waited
  bool rests(std::chrono::milliseconds most);  ///< whether no job is left, after waiting so long for that at most

 private:
  void loop(std::stop_token end, int niceness);
  std::mutex mutex_;
  std::condition_variable_any wake_, rested_;
  bool runs_ = false;
  std::deque<Job> waiting_;
  std::stop_source current_;
  std::jthread thread_;  // last: it is joined before the members that it uses are gone
};

}  // namespace reclab
