// SPDX-License-Identifier: GPL-3.0-or-later
// Jobs without a window: who waits for whom, that a newer one replaces an older one, that none is lost that is to be done, and that nothing
// stale is heard. What the jobs compute here is held at gates of the test, so that nothing depends on how fast the machine is.
#include <QTest>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "array/error.h"
#include "array/stop.h"
#include "gui/jobs/exclusion_rules.h"
#include "gui/jobs/job.h"
#include "gui/session/work/run.h"
#include "gui/session/work/study.h"
#include "gui/session/work/timing.h"

using namespace reclab;

namespace {

constexpr int patience = 20'000;

/// What a thread waits at until the test opens it, or it is stopped.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    wake_.notify_all();
  }
  void pass(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, stop, [this] { return open_; });
    if (!open_) throw Cancelled();
  }
  /// Deaf to a stop, as a computation is between two looks at its token.
  void passDeaf() {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, std::chrono::milliseconds(patience), [this] { return open_; });  // a test that fails does not open it
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  bool open_ = false;
};

QString words(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return QString::fromUtf8(error.what());
  }
}

struct Number {
  int number = 0;
  bool operator==(const Number&) const = default;
};

/// A job that writes down what is heard of it.
struct Heard {
  QStringList all;
  Job<Number, int> job;
  Heard(Scheduler& scheduler, const JobBase::Kind& kind = {})
      : job(scheduler, kind,
            {.began = [this](const Number& key) { all << QString("began %1").arg(key.number); },
             .part = [this](const Number& key, int part) { all << QString("part %1 of %2").arg(part).arg(key.number); },
             .finished = [this](const Number& key, int result) { all << QString("result %1 of %2").arg(result).arg(key.number); },
             .ended =
                 [this](const Number& key, const Ending& ending) {
                   const QString how = ending.how == Ending::How::finished  ? "finished"
                                       : ending.how == Ending::How::stopped ? "stopped"
                                                                            : "failed: " + ending.sentence;
                   all << QString("%1 %2").arg(key.number).arg(how);
                 },
             .preempted = [this] { all << "gave way"; }}) {}
  void start(int number, const std::shared_ptr<Gate>& gate) {
    job.start({number}, [number, gate](const Report<int>&, std::stop_token stop) {
      gate->pass(stop);
      return 10 * number;
    });
  }
};

std::shared_ptr<Gate> closed() { return std::make_shared<Gate>(); }
std::shared_ptr<Gate> open() {
  auto gate = std::make_shared<Gate>();
  gate->open();
  return gate;
}

using State = ExclusionRules::State;
constexpr State waits{.waits = true}, computes{.computes = true}, stopping{.stopping = true}, moreExpected{.moreExpected = true}, idle{};

}  // namespace

class TestJobs : public QObject {
  Q_OBJECT

 private slots:
  // The rule alone.

  void nothingIsMeasuredBesideSomethingElse() {
    ExclusionRules turns;
    const auto run = turns.add({}), timing = turns.add({.measures = true}), another = turns.add({.measures = true});
    QVERIFY(turns.mayBegin(run) && turns.mayBegin(timing));
    for (const State& state : {waits, computes, stopping, moreExpected}) {
      turns.set(run, state);
      QVERIFY2(!turns.mayBegin(timing), "whatever the run is at");
    }
    turns.set(run, idle);
    QVERIFY(turns.mayBegin(timing));
    // A run does not wait for a timing: that one stops.
    turns.set(timing, computes);
    QVERIFY(turns.mayBegin(run));
    QCOMPARE(turns.preemptedBy(run), std::vector{timing});
    QVERIFY(turns.preemptedBy(timing).empty());
    // Two measurements wait for each other, and neither stops the other.
    QVERIFY(!turns.mayBegin(another) && turns.preemptedBy(another).empty());
    turns.set(timing, stopping);
    QVERIFY(!turns.mayBegin(another));
    turns.set(timing, waits);
    QVERIFY(turns.mayBegin(another));  // two that wait do not wait for each other
  }

  void whatGivesWayToOneDoesNotGiveWayToAll() {
    ExclusionRules turns;
    const auto run = turns.add({}), written = turns.add({}), pinned = turns.add({.yieldsTo = {run}}),
               timing = turns.add({.measures = true});
    turns.set(pinned, computes);
    QCOMPARE(turns.preemptedBy(run), std::vector{pinned});
    QVERIFY(turns.preemptedBy(written).empty());
    turns.set(written, computes);
    turns.set(pinned, waits);
    QVERIFY(turns.mayBegin(pinned));
    turns.set(run, moreExpected);
    QVERIFY(!turns.mayBegin(pinned));
    // What waits comes before what gives way to it.
    turns.set(run, idle);
    turns.set(written, idle);
    turns.set(timing, waits);
    QVERIFY(turns.mayBegin(pinned) && !turns.mayBegin(timing));
  }

  // Jobs at a scheduler.

  void aNewerOneReplacesAnOlderOneAndWhatIsStaleIsNotHeard() {
    Scheduler scheduler(words);
    Heard heard(scheduler);
    const auto gate = closed();
    heard.job.start({1}, [gate](const Report<int>& report, std::stop_token) {
      report.part(5);
      gate->passDeaf();  // it does not hear that it was replaced
      report.part(6);
      return 10;
    });
    QTRY_COMPARE_WITH_TIMEOUT(heard.all, (QStringList{"began 1", "part 5 of 1"}), patience);
    QVERIFY(heard.job.isAt({1}) && !heard.job.isAt({2}));
    heard.start(2, open());
    QVERIFY(heard.job.isAt({2}) && !heard.job.isAt({1}));
    gate->open();
    QTRY_VERIFY_WITH_TIMEOUT(!heard.job.running(), patience);
    QCOMPARE(heard.all, (QStringList{"began 1", "part 5 of 1", "began 2", "result 20 of 2", "2 finished"}));
    QVERIFY(!heard.job.isAt({2}));  // it is no more
    // Nor what was dropped.
    const auto second = closed();
    heard.job.start({3}, [second](const Report<int>& report, std::stop_token) {
      report.part(6);
      second->passDeaf();
      report.part(7);
      return 30;
    });
    QTRY_VERIFY_WITH_TIMEOUT(heard.all.contains("part 6 of 3"), patience);
    heard.job.drop();
    QVERIFY(!heard.job.running() && !heard.job.isAt({3}));
    second->open();
    heard.start(4, open());
    QTRY_COMPARE_WITH_TIMEOUT(heard.all.back(), QString("4 finished"), patience);
    QVERIFY2(!heard.all.contains("part 7 of 3") && !heard.all.contains("3 finished"), qPrintable(heard.all.join(", ")));
  }

  void aStopIsHeardOnceAndNothingAfterIt() {
    Scheduler scheduler(words);
    Heard heard(scheduler);
    const auto gate = closed();
    heard.job.start({1}, [gate](const Report<int>& report, std::stop_token stop) {
      report.part(4);
      gate->passDeaf();
      report.part(5);
      if (stop.stop_requested()) throw Cancelled();
      return 10;
    });
    QTRY_VERIFY_WITH_TIMEOUT(heard.all.contains("part 4 of 1"), patience);
    heard.job.stop();
    QVERIFY(heard.job.running());  // until its thread has heard it
    gate->open();
    QTRY_VERIFY_WITH_TIMEOUT(!heard.job.running(), patience);
    QCOMPARE(heard.all, (QStringList{"began 1", "part 4 of 1", "1 stopped"}));
    heard.all.clear();
    // One that had not begun says so too.
    const auto holds = closed();
    heard.job.start({2}, [holds](const Report<int>& report, std::stop_token) {
      report.part(6);
      holds->passDeaf();
      return 20;
    });
    QTRY_VERIFY_WITH_TIMEOUT(heard.all.contains("part 6 of 2"), patience);
    heard.start(3, open());
    heard.job.stop();
    QVERIFY(heard.job.running());
    QTRY_VERIFY_WITH_TIMEOUT(!heard.job.running(), patience);
    holds->open();
    QCOMPARE(heard.all, (QStringList{"began 2", "part 6 of 2", "began 3", "3 stopped"}));
    // What is asked for after a stop is not stopped by it.
    heard.start(4, open());
    QTRY_VERIFY_WITH_TIMEOUT(!heard.job.running(), patience);
    QCOMPARE(heard.all.mid(4), (QStringList{"began 4", "result 40 of 4", "4 finished"}));
  }

  void whatFailsSaysWhy() {
    Scheduler scheduler(words);
    Heard heard(scheduler);
    heard.job.start({1}, [](const Report<int>&, std::stop_token) -> int { throw std::runtime_error("no disk"); });
    QTRY_COMPARE_WITH_TIMEOUT(heard.all, (QStringList{"began 1", "1 failed: no disk"}), patience);
  }

  void whatAComputationCallsHearsTheStopToo() {
    Scheduler scheduler(words);
    Heard heard(scheduler);
    heard.job.start({1}, [](const Report<int>& report, std::stop_token) {
      report.part(5);
      const auto began = std::chrono::steady_clock::now();
      while (std::chrono::steady_clock::now() - began < std::chrono::milliseconds(patience / 2)) check_stop();
      return 10;
    });
    QTRY_VERIFY_WITH_TIMEOUT(heard.all.contains("part 5 of 1"), patience);
    heard.job.stop();
    QTRY_COMPARE_WITH_TIMEOUT(heard.all, (QStringList{"began 1", "part 5 of 1", "1 stopped"}), patience);
  }

  void noneOfAllIsLost() {
    Scheduler scheduler(words);
    Heard exports(scheduler, {.order = JobBase::Order::all});
    Heard run(scheduler);
    const auto gate = closed();
    exports.start(1, gate);
    exports.start(2, open());
    run.start(7, open());  // beside them
    QTRY_VERIFY_WITH_TIMEOUT(!run.job.running(), patience);
    gate->open();
    QTRY_COMPARE_WITH_TIMEOUT(exports.all.size(), qsizetype{6}, patience);
    QCOMPARE(exports.all.filter("finished"), (QStringList{"1 finished", "2 finished"}));
    QVERIFY(!exports.job.running());
    // A stop ends those that wait too, each with its own end.
    exports.all.clear();
    exports.start(3, closed());
    exports.start(4, closed());
    exports.start(5, closed());
    exports.job.stop();
    QTRY_VERIFY_WITH_TIMEOUT(!exports.job.running(), patience);
    QStringList ends = exports.all.filter("stopped");
    ends.sort();
    QCOMPARE(ends, (QStringList{"3 stopped", "4 stopped", "5 stopped"}));
    QCOMPARE(exports.all.size(), qsizetype{6});
  }

  void aTimingGivesWayAndBeginsAnew() {
    Scheduler scheduler(words);
    Heard run(scheduler), timing(scheduler, {.measures = true});
    int beside = 0;
    const auto look = [&] { beside += timing.job.running() && run.job.running(); };
    connect(&scheduler, &Scheduler::changed, this, look);
    timing.start(1, closed());
    QVERIFY(timing.job.running());
    const auto gate = closed();
    run.start(2, gate);
    QVERIFY(run.job.running() && !timing.job.running() && timing.job.waiting());
    QVERIFY(timing.job.isAt({1}));
    // Another run in its place, and one that is expected: it waits on.
    run.start(3, open());
    run.job.expectMore(true);
    QTRY_VERIFY_WITH_TIMEOUT(!run.job.running(), patience);
    QVERIFY(!timing.job.running());
    run.start(4, open());
    run.job.expectMore(false);
    QTRY_VERIFY_WITH_TIMEOUT(!run.job.running() && timing.job.running(), patience);
    gate->open();
    QCOMPARE(timing.all, (QStringList{"began 1", "gave way", "began 1"}));
    QCOMPARE(beside, 0);
    timing.job.drop();
  }

  void whatIsDroppedAndWaitedForDoesNothingMore() {
    Scheduler scheduler(words);
    Heard heard(scheduler);
    const auto gate = closed();
    const auto written = std::make_shared<std::atomic<bool>>(false);
    heard.job.start({1}, [gate, written](const Report<int>& report, std::stop_token) {
      report.part(5);
      gate->passDeaf();
      *written = true;
      return 10;
    });
    QTRY_VERIFY_WITH_TIMEOUT(heard.all.contains("part 5 of 1"), patience);
    std::jthread opens([gate] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      gate->open();
    });
    heard.job.dropAndWait();
    QVERIFY(*written);
    heard.start(2, open());  // it can be used again
    QTRY_COMPARE_WITH_TIMEOUT(heard.all, (QStringList{"began 1", "part 5 of 1", "began 2", "result 20 of 2", "2 finished"}), patience);
  }

  void itsThreadIsWaitedForNoLongerThanIsAllowed() {
    using namespace std::chrono_literals;
    Scheduler scheduler(words);
    Heard heard(scheduler);
    QVERIFY(heard.job.returnsWithin(0ms));  // it has none yet
    const auto gate = closed();
    heard.start(1, gate);
    QVERIFY(!heard.job.returnsWithin(0ms) && !heard.job.returnsWithin(20ms));
    gate->open();
    QVERIFY(heard.job.returnsWithin(std::chrono::milliseconds(patience)));
    QVERIFY(heard.job.running());  // what it tells is heard later, as always
    QCOMPARE(heard.all, QStringList{"began 1"});
    QTRY_VERIFY_WITH_TIMEOUT(!heard.job.running(), patience);
    QCOMPARE(heard.all, (QStringList{"began 1", "result 10 of 1", "1 finished"}));
    // One that is stopped returns too, whether it had begun or not.
    heard.all.clear();
    heard.start(2, closed());
    heard.job.stop();
    QVERIFY(heard.job.returnsWithin(std::chrono::milliseconds(patience)));
    QTRY_COMPARE_WITH_TIMEOUT(heard.all, (QStringList{"began 2", "2 stopped"}), patience);
  }

  void aTimingBeginsWhenTheThreadOfTheOtherIsDone() {
    Scheduler scheduler(words);
    Heard layout(scheduler), timing(scheduler, {.measures = true});
    const auto gate = closed();
    layout.job.start({1}, [gate](const Report<int>& report, std::stop_token) {
      report.part(5);
      gate->passDeaf();
      return 10;
    });
    QTRY_VERIFY_WITH_TIMEOUT(layout.all.contains("part 5 of 1"), patience);
    layout.job.drop();  // nobody wants it, but it computes until it has heard that
    timing.start(2, open());
    QVERIFY(timing.job.waiting() && timing.all.isEmpty());
    QTest::qWait(50);
    QVERIFY(timing.job.waiting());
    gate->open();
    QTRY_COMPARE_WITH_TIMEOUT(timing.all, (QStringList{"began 2", "result 20 of 2", "2 finished"}), patience);
  }

  void whatWaitsIsReplacedToo() {
    Scheduler scheduler(words);
    Heard run(scheduler), timing(scheduler, {.measures = true});
    const auto gate = closed();
    run.start(1, gate);
    timing.start(2, open());
    timing.start(3, open());
    QVERIFY(timing.job.isAt({3}) && !timing.job.isAt({2}));
    gate->open();
    QTRY_COMPARE_WITH_TIMEOUT(timing.all, (QStringList{"began 3", "result 30 of 3", "3 finished"}), patience);
    // Stopped while it waits it ends without having begun; dropped it is not heard of.
    const auto second = closed();
    run.start(4, second);
    timing.all.clear();
    timing.start(5, open());
    timing.job.stop();
    QTRY_COMPARE_WITH_TIMEOUT(timing.all, QStringList{"5 stopped"}, patience);
    timing.start(6, open());
    timing.job.drop();
    second->open();
    QTRY_VERIFY_WITH_TIMEOUT(!run.job.running(), patience);
    QTest::qWait(50);
    QCOMPARE(timing.all, QStringList{"5 stopped"});
  }

  void whatBeginsAnewIsAskedForAnew() {
    Scheduler scheduler(words);
    Heard run(scheduler), timing(scheduler, {.measures = true});
    const auto gate = closed();
    int number = 0;
    timing.job.startInTurn([&]() -> std::optional<Job<Number, int>::Work> {
      if (number == 0) return std::nullopt;  // there is nothing to time yet
      return std::pair(Number{number}, [number, gate](const Report<int>&, std::stop_token stop) {
        gate->pass(stop);
        return number;
      });
    });
    QVERIFY(timing.job.waiting());
    number = 1;
    run.start(9, open());
    QTRY_VERIFY_WITH_TIMEOUT(timing.job.running(), patience);
    number = 2;
    run.start(9, open());
    gate->open();
    QTRY_COMPARE_WITH_TIMEOUT(timing.all.last(), QString("2 finished"), patience);
    QCOMPARE(timing.all, (QStringList{"began 1", "gave way", "began 2", "result 2 of 2", "2 finished"}));
  }

  void aJobThatIsGoneHoldsNobodyUp() {
    Scheduler scheduler(words);
    Heard timing(scheduler, {.measures = true});
    auto check = std::make_unique<Heard>(scheduler);
    check->start(1, closed());
    timing.start(2, open());
    QVERIFY(timing.job.waiting());
    check.reset();
    QTRY_VERIFY_WITH_TIMEOUT(timing.all.contains("2 finished"), patience);
  }

  void aJobOutlivesItsDesk() {
    auto scheduler = std::make_unique<Scheduler>(words);
    Heard heard(*scheduler);
    heard.start(1, closed());
    scheduler.reset();
    heard.job.stop();
    QTRY_COMPARE_WITH_TIMEOUT(heard.all, (QStringList{"began 1", "1 stopped"}), patience);
  }

  // Keys are values.

  void keysAreEqualWhereNothingThatTheyAreOfDiffers() {
    Setup setup;
    setup.preset = "elman";
    setup.sequence = loadChoice({});
    setup.setValue("width", "8");
    const auto key = [](const Setup& of) { return timingKeyOf(of, nullptr, "cpu"); };
    const auto changed = [&](const std::function<void(Setup&)>& how) {
      Setup after = setup;
      how(after);
      return after;
    };
    const Setup seeded = changed([](Setup& s) { s.seed = 2; }), wide = changed([](Setup& s) { s.setValue("width", "9"); }),
                single = changed([](Setup& s) { s.dtype = "f32"; }), again = changed([](Setup& s) { s.sequence = loadChoice({}); }),
                summed = changed([](Setup& s) { s.loss = LossKind::mean; }),
                other = changed([](Setup& s) { s.set["gru"] = {{"width", "1"}}; }),
                drawn = changed([](Setup& s) { s.setValue("recurrent_init", "orthogonal"); });
    QVERIFY(key(setup) == key(seeded) && key(setup) == key(again) && key(setup) == key(drawn) && key(setup) == key(other));
    QVERIFY(key(setup) != key(wide) && key(setup) != key(single));
    Setup automatic = changed([](Setup& s) { s.device = "auto"; });
    QVERIFY(timingKeyOf(automatic, nullptr, "cpu") != timingKeyOf(automatic, nullptr, "cuda"));
    automatic.device = "cpu";
    QVERIFY(timingKeyOf(automatic, nullptr, "cpu") == timingKeyOf(automatic, nullptr, "cuda"));
    // "1" and "2" are not "12": values, not their texts one after the other.
    Setup one = setup, two = setup;
    one.set["elman"] = {{"a", "1 b=2"}};
    two.set["elman"] = {{"a", "1"}, {"b", "2"}};
    QVERIFY(key(one) != key(two));
    const auto study_key = [](const Setup& of, const char* steps) { return StudyKey(study("schedule"), of, {{"steps", steps}}); };
    QVERIFY(study_key(one, "16") != study_key(two, "16"));
    QVERIFY(StudyKey(study("compose"), one, {}) == StudyKey(study("compose"), two, {}));  // of a model of its own

    const StudyKey laid = study_key(setup, "16");
    QVERIFY(laid == study_key(summed, "16") && laid == study_key(other, "16"));
    QVERIFY(StudyKey(study("forms"), setup, {}) == StudyKey(study("forms"), other, {}) &&
            StudyKey(study("forms"), setup, {}) != StudyKey(study("forms"), summed, {}));  // its gradients may be of another head
    const Setup taught = changed([](Setup& s) { s.learned["elman"] = std::make_shared<const LearnedWeights>(); });
    QVERIFY(laid != study_key(taught, "16"));  // the values and errors of its pieces are of these weights
    QVERIFY(laid != study_key(setup, "17") && laid != study_key(seeded, "16") && laid != study_key(again, "16") &&
            laid != study_key(wide, "16"));

    const auto run = [](const Setup& of, bool live) { return RunKey{std::make_shared<const Setup>(of), {}, live}; };
    QVERIFY(run(setup, true) == run(other, true));
    QVERIFY(run(setup, true) != run(setup, false) && !(run(setup, true) == run(summed, true)));
    // All that is to be recorded.
    const auto recorded = [&](const RecordingOptions& recording) { return RunKey{std::make_shared<const Setup>(setup), recording, false}; };
    RecordingOptions rows, only, more;
    rows.dense_rows = 7;
    only.only = {"state/0"};
    more.singular_values = 2;
    QVERIFY(recorded({}) == recorded({}));
    for (const RecordingOptions& recording : {rows, only, more}) QVERIFY(!(recorded({}) == recorded(recording)));
    // Weights that were learned.
    const auto learn = [](Setup& s) { s.learned["elman"] = std::make_shared<const LearnedWeights>(); };
    QVERIFY(laid != study_key(changed(learn), "16") && !(run(setup, true) == run(changed(learn), true)));
  }
};

QTEST_GUILESS_MAIN(TestJobs)

#include "test_jobs.moc"
