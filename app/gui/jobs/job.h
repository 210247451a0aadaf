// SPDX-License-Identifier: GPL-3.0-or-later
// A job: one kind of work that is computed off the GUI thread, for a key that is a value. A newer one replaces an older one (or all are
// done, one after the other), it waits until the scheduler starts it, and nothing is heard of stale results.
#pragma once

#include <QObject>
#include <QPointer>
#include <QString>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

#include "gui/jobs/scheduler.h"
#include "gui/jobs/worker.h"

namespace reclab {

/// The end of a job that was not replaced, dropped or displaced.
struct Ending {
  enum class How { finished, failed, stopped };
  How how = How::finished;
  QString sentence = {};  ///< why it failed
};

/// The part that all jobs share, independent of the computation. It is used in the GUI thread alone.
class JobBase {
 public:
  enum class Order { newest, all };  ///< a newer one replaces an older one; or all are done, in their order
  struct Kind {
    Order order = Order::newest;
    int niceness = 0;
    bool measures = false;                      ///< nothing computes beside it, see ExclusionRules::Policy
    std::vector<const JobBase*> yieldsTo = {};  ///< see ExclusionRules::Policy
  };

  JobBase(Scheduler& scheduler, const Kind& kind);
  JobBase(const JobBase&) = delete;
  JobBase& operator=(const JobBase&) = delete;

  bool waiting() const { return !waiting_.empty(); }  ///< for its turn
  bool running() const { return !open_.empty(); }     ///< it computes, and its result is wanted
  /// Asks the running computation to end, of which nothing more is heard but its end; waiting ones end without beginning.
  void stop();
  /// Drops running and waiting computations, of which nothing more is heard.
  void drop();
  /// Drops them, and returns when its thread has returned: what it writes is written then.
  void dropAndWait();
  /// Waits so long at most for its thread to return, and says whether it has. What it tells comes later, as always.
  bool returnsWithin(std::chrono::milliseconds most) { return !worker_ || worker_->rests(most); }
  /// More of it is about to follow: jobs that give way to it keep waiting.
  void expectMore(bool more);

 protected:
  ~JobBase();
  using Message = std::function<void()>;
  using Tell = std::function<void(Message)>;
  struct Task {
    std::function<Message(const Tell&, std::stop_token)>
        compute;  ///< in the job's thread; the returned message is run in the GUI thread, at its end
    std::function<void(const Ending&)> ended;
  };
  /// Called when its turn has come, again when it gave way and begins anew. Nothing where there is nothing to compute yet.
  using Prepare = std::function<std::optional<Task>()>;
  void want(Prepare prepare, std::function<void()> began);
  std::function<void()> preempted_;
  /// Tells the fraction and the stage at most 30 times a second.
  static std::function<void(double, std::string_view)> throttled(std::function<void(double, QString)> tell);

 private:
  friend class Scheduler;
  struct Wanted {
    Prepare prepare;
    std::function<void()> began;
  };
  struct Open {
    std::uint64_t number;
    Wanted wanted;  ///< to begin anew
    std::function<void(const Ending&)> ended;
  };
  ExclusionRules::State state() const { return {waiting(), running(), !handed_.empty(), moreExpected_}; }
  void begin();    // the scheduler: it is its turn
  void preempt();  // the scheduler: another comes first
  void forget(std::size_t count);
  void hear(std::uint64_t number, const Message& message) const;
  void returned(std::uint64_t number, const Message& finished, const Ending& ending);
  void end(std::uint64_t number, const Ending& ending);
  void endSoon(std::uint64_t number);
  std::vector<Open>::iterator open(std::uint64_t number);
  void update() {
    if (scheduler_) scheduler_->update(*this);
  }

  QPointer<Scheduler> scheduler_;
  ExclusionRules::Id id_ = 0;
  Order order_;
  int niceness_;
  std::deque<Wanted> waiting_;
  std::vector<Open> open_;                ///< handed to the thread, and heard
  std::deque<std::uint64_t> handed_;      ///< to the thread, which has not returned them
  std::uint64_t number_ = 0, quiet_ = 0;  ///< of the newest, and of the newest that was stopped
  bool moreExpected_ = false;
  QObject context_;                 // messages of the thread go through it, so they end with the job
  std::unique_ptr<Worker> worker_;  // last: joined before the receivers of its messages are gone
};

/// The callbacks of a computation for its progress; called in its thread.
template <class Result>
struct Report {
  std::function<void(double fraction, std::string_view stage)> progress;
  std::function<void(Result)> part;  ///< takes the part of the result that is there already
};

template <class Key, class Result>
class Job final : public JobBase {
 public:
  /// Throws Cancelled when it is stopped.
  using Compute = std::function<Result(const Report<Result>&, std::stop_token)>;
  using Work = std::pair<Key, Compute>;
  /// The callbacks in the GUI thread, for the newest computation and never for stale ones.
  struct Hears {
    std::function<void(const Key&)> began = {};
    std::function<void(const Key&, double fraction, const QString& stage)> progressed = {};
    std::function<void(const Key&, const Result&)> part = {}, finished = {};  ///< while it is still running()
    std::function<void(const Key&, const Ending&)> ended = {};                ///< when it is no more
    std::function<void()> preempted = {};                                     ///< it stopped and waits, to begin anew
  };

  Job(Scheduler& scheduler, const Kind& kind, Hears hears) : JobBase(scheduler, kind), hears_(std::move(hears)) {
    preempted_ = hears_.preempted;
  }

  void start(Key key, Compute compute) {
    key_ = key;
    startInTurn([work = Work(std::move(key), std::move(compute))] { return std::optional<Work>(work); });
  }
  /// Starts a computation that `prepare` returns when its turn has come, and again when it begins anew.
  void startInTurn(std::function<std::optional<Work>()> prepare) {
    want([this, prepare = std::move(prepare)] { return task(prepare()); },
         [this] {
           if (hears_.began) hears_.began(*key_);
         });
  }
  /// Whether it computes this key, or waits for a turn to compute it.
  bool isAt(const Key& key) const { return (running() || waiting()) && key_ && *key_ == key; }

 private:
  std::optional<Task> task(std::optional<Work> work) {
    if (!work) return std::nullopt;
    key_ = work->first;
    auto key = std::make_shared<const Key>(std::move(work->first));
    auto compute = [this, key, compute = std::move(work->second)](const Tell& tell, std::stop_token stop) -> Message {
      Report<Result> report;
      report.progress = throttled([this, key, tell](double fraction, const QString& stage) {
        tell([this, key, fraction, stage] {
          if (hears_.progressed) hears_.progressed(*key, fraction, stage);
        });
      });
      report.part = [this, key, tell](Result part) {
        tell([this, key, part = std::make_shared<const Result>(std::move(part))] {
          if (hears_.part) hears_.part(*key, *part);
        });
      };
      return [this, key, result = std::make_shared<const Result>(compute(report, std::move(stop)))] {
        if (hears_.finished) hears_.finished(*key, *result);
      };
    };
    return Task{std::move(compute), [this, key](const Ending& ending) {
                  if (hears_.ended) hears_.ended(*key, ending);
                }};
  }
  Hears hears_;
  std::optional<Key> key_;  ///< of the newest
};

}  // namespace reclab
