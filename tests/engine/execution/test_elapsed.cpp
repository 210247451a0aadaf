// SPDX-License-Identifier: GPL-3.0-or-later
// A column of time with unequal steps: what of it reaches a model that knows time, in batches, in both directions, and where a run is cut.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "execution/rollout.h"
#include "experiment/experiment.h"
#include "learning/losses.h"
#include "models/registry.h"
#include "runs.h"
#include "scratch.h"
#include "sequence/elapsed.h"
#include "test.h"

using namespace reclab;
using test::Settings;
using test::values_of;

namespace {

/// Noise of two columns at the given times.
Sequence at_times(const std::vector<double>& times, std::uint64_t seed = 5) {
  const Sequence noise = make_task("noise", {.length = static_cast<std::int64_t>(times.size()) * 2, .seed = seed});
  Sequence made;
  made.name = made.source = "noise at times";
  made.length = static_cast<std::int64_t>(times.size());
  made.width = 2;
  made.input.assign(noise.input.begin(), noise.input.begin() + made.length * 2);
  made.time = times;
  made.time_name = "t";
  made.names = {"a", "b"};
  made.mean = {0.0, 0.0};
  made.deviation = {1.0, 1.0};
  return made;
}

RunRequest request_for(const std::string& architecture, Sequence sequence, Settings set = {}) {
  RunRequest request;
  request.preset.id = request.preset.title = request.preset.architecture = architecture;
  request.set = std::move(set);
  request.set.emplace_back("width", "8");
  request.sequence = std::move(sequence);
  request.every = 1;
  request.recording.kinds.remove(kinds_of(Stage::late));
  return request;
}

RunResult finished(const RunRequest& request) {
  RunResult result = run(builtin_registry(), request, {}, {});
  CHECK_SAYS(result.trace->info.outcome == Outcome::finished, result.trace->info.sentence);
  return result;
}
bool noted(const Trace& trace, const std::string& words) {
  return std::ranges::any_of(trace.info.notes, [&](const Sentence& note) { return note.terminal_text().find(words) != std::string::npos; });
}

const std::vector<double> unequal{0.0, 1.25, 3.125, 3.4375, 7.5, 8.75, 10.3125, 11.5625, 16.25, 17.5, 19.375, 19.6875};

/// The architectures that know time.
std::vector<std::string> timed() {
  std::vector<std::string> ids;
  for (const Architecture& architecture : builtin_registry().all())
    if (architecture.knows_time) ids.push_back(architecture.id);
  return ids;
}

std::vector<double> outputs(Rollout& rollout) {
  std::vector<double> all;
  CHECK(!rollout.forward(
      [&](const Rollout::Segment& s) {
        const auto values =
            to_double(cpu_backend(), DType::f64, s.network.graph().value(s.network.output()), count(s.network.output().shape()));
        all.insert(all.end(), values.begin(), values.end());
      },
      {}));
  return all;
}

}  // namespace

TEST_CASE("elapsed times are in units of the median step, or of the unit that is asked for") {
  CHECK_EQUAL(typical_step(unequal), 1.25);
  CHECK(uneven(unequal));
  const auto times = elapsed(unequal, 0.0, {}, false);
  CHECK_EQUAL(times[0], 1.0);
  CHECK_EQUAL(times[1], 1.0);
  CHECK_EQUAL(times[4], 3.25);
  const auto plain = elapsed(unequal, 0.5, {}, false);
  CHECK_EQUAL(plain[0], 1.0);
  CHECK_EQUAL(plain[4], 8.125);
  // Run backward: the time to the step after; nothing comes after the last.
  const auto back = elapsed(unequal, 1.0, {}, true);
  CHECK_EQUAL(back[0], 1.0);
  CHECK_EQUAL(back[1], 0.3125);
  CHECK_EQUAL(back[11], 1.25);
  // A continued run: after the clock's last step, in the clock's unit; a clock that stands later says nothing of the time between.
  CHECK_EQUAL(elapsed(unequal, 0.0, TimeMark{-4.0, 2.0}, false)[0], 2.0);
  CHECK_EQUAL(elapsed(unequal, 0.0, TimeMark{3.0, 2.0}, false)[0], 1.0);
  CHECK_EQUAL(elapsed(unequal, 0.5, TimeMark{-4.0, 2.0}, false)[0], 8.0);
  // The first step's own, where nothing tells it.
  CHECK_EQUAL(elapsed(unequal, 0.0, {}, false, 2.5)[0], 2.5);
  CHECK_EQUAL(elapsed(unequal, 0.0, {}, false, 2.5)[1], 1.0);
  CHECK_EQUAL(elapsed(unequal, 1.0, {}, true, 2.5)[0], 2.5);
  CHECK_EQUAL(elapsed(unequal, 0.0, TimeMark{-4.0, 2.0}, false, 2.5)[0], 2.0);
}

TEST_CASE("the first elapsed time is the one that is set, as if a clock had stood so far back") {
  const test::Scratch folder;
  for (const std::string& id : timed()) {
    const auto with = [&](std::vector<double> times, Settings own) {
      if (id == "continuous-fast-weights") own.emplace_back("initial", "no");  // else its first step takes no time
      return request_for(id, at_times(times), own);
    };
    const RunRequest plain = with(unequal, {{"time_unit", "1"}}), set = with(unequal, {{"time_unit", "1"}, {"first_elapsed", "2.5"}});
    const auto own = finished(set).trace;
    const bool still = id == "ode-rnn";  // at rest its equation moves nothing, since biases start at 0
    CHECK_SAYS((values_of(*own, "output") == values_of(*finished(plain).trace, "output")) == still, id);
    auto rest = finished(plain).state;  // at rest, with a clock
    for (auto& [key, array] : rest) {
      CHECK_SAYS(array.real != nullptr, id + " " + key);
      array.real = std::make_shared<const std::vector<double>>(key.ends_with("/clock") ? std::vector<double>{-2.5, 1.0}
                                                                                       : std::vector<double>(array.real->size(), 0.0));
    }
    RunRequest clocked = plain;
    clocked.state = folder / (id + ".npz");
    save_state(rest, clocked.state);
    CHECK_SAYS(values_of(*own, "output") == values_of(*finished(clocked).trace, "output"), id);
    // Equal steps too are given it.
    std::vector<double> steps;
    for (std::size_t t = 0; t < unequal.size(); ++t) steps.push_back(static_cast<double>(t));
    CHECK_SAYS((values_of(*finished(with(steps, {{"first_elapsed", "2.5"}})).trace, "output") ==
                values_of(*finished(with(steps, {})).trace, "output")) == still,
               id);
  }
}

TEST_CASE("a grid is even in any unit and however few digits its times are written with") {
  std::vector<double> months, hours;
  for (int i = 0; i < 400; ++i) {
    months.push_back(std::round((1749.0 + i / 12.0) * 1e4) / 1e4);
    hours.push_back(1e9 + 3600.0 * i);
  }
  CHECK(!uneven(months));
  CHECK(!uneven(hours));
  hours.erase(hours.begin() + 50);  // one that is missing
  CHECK(uneven(hours));
}

TEST_CASE("unequal times change what a model that knows time does, and equal ones in whatever unit not a bit") {
  std::vector<double> steps, quarters;
  for (std::size_t t = 0; t < unequal.size(); ++t) {
    steps.push_back(static_cast<double>(t));
    quarters.push_back(100.0 + 0.25 * static_cast<double>(t));
  }
  CHECK(timed().size() >= 2);
  for (const std::string& id : timed()) {
    const auto plain = finished(request_for(id, at_times(steps))).trace, even = finished(request_for(id, at_times(quarters))).trace;
    const auto told = finished(request_for(id, at_times(unequal))).trace;
    CHECK_SAYS(values_of(*plain, "output") == values_of(*even, "output"), id);
    CHECK_SAYS(values_of(*plain, "output") != values_of(*told, "output"), id);
    CHECK_SAYS(values_of(*plain, "output")[0] == values_of(*told, "output")[0], id);  // the first step is one unit long
    CHECK_SAYS(noted(*told, "the model is given the elapsed times; the median step is 1.25") && !noted(*even, "elapsed"), id);
    // In another unit of the time column they are the same.
    std::vector<double> minutes;
    for (const double t : unequal) minutes.push_back(64.0 * t);
    CHECK_SAYS(values_of(*finished(request_for(id, at_times(minutes))).trace, "output") == values_of(*told, "output"), id);
    // With a unit of one's own even times are elapsed times too.
    CHECK_SAYS(
        values_of(*finished(request_for(id, at_times(quarters), {{"time_unit", "0.25"}})).trace, "output") == values_of(*plain, "output") ||
            std::abs(values_of(*finished(request_for(id, at_times(quarters), {{"time_unit", "0.25"}})).trace, "output").back() -
                     values_of(*plain, "output").back()) < 1e-12,
        id);
    CHECK_SAYS(
        values_of(*finished(request_for(id, at_times(quarters), {{"time_unit", "1"}})).trace, "output") != values_of(*plain, "output"), id);
  }
}

TEST_CASE("a model that knows no time says so, and runs as without") {
  std::vector<double> steps;
  for (std::size_t t = 0; t < unequal.size(); ++t) steps.push_back(static_cast<double>(t));
  const auto told = finished(request_for("gru", at_times(unequal))).trace, plain = finished(request_for("gru", at_times(steps))).trace;
  CHECK(noted(*told, "The steps of the time column \"t\" are unequal, which gru does not use"));
  CHECK(plain->info.notes.empty());
  CHECK(values_of(*told, "output") == values_of(*plain, "output"));
}

TEST_CASE("a run that is cut and continued is the whole one to the bit: its state has a clock") {
  const test::Scratch folder;
  for (const std::string& id : timed())
    for (const char* dtype : {"f64", "f32"}) {
      // Times whose differences float32 would lose.
      std::vector<double> late;
      for (const double t : unequal) late.push_back(1.7e9 + t);
      RunRequest whole = request_for(id, at_times(late), {{"time_unit", "1"}});
      whole.dtype = dtype;
      const auto all = finished(whole).trace;
      for (const std::size_t cut : {std::size_t{1}, std::size_t{4}, std::size_t{10}}) {
        RunRequest first = whole, second = whole;
        const auto part = [&](RunRequest& request, std::size_t from, std::size_t to) {
          Sequence& sequence = request.sequence.own();
          sequence.length = static_cast<std::int64_t>(to - from);
          sequence.time.assign(late.begin() + static_cast<std::ptrdiff_t>(from), late.begin() + static_cast<std::ptrdiff_t>(to));
          sequence.input.assign(whole.sequence->input.begin() + static_cast<std::ptrdiff_t>(2 * from),
                                whole.sequence->input.begin() + static_cast<std::ptrdiff_t>(2 * to));
        };
        part(first, 0, cut);
        part(second, cut, late.size());
        const RunResult begun = finished(first);
        CHECK_SAYS((*begun.state.at("state/0/clock").real)[0] == late[cut - 1], id);
        second.state = folder / (id + dtype + std::to_string(cut) + ".npz");
        save_state(begun.state, second.state);
        const auto rest = finished(second).trace;
        const auto &full = values_of(*all, "output"), &end = values_of(*rest, "output");
        CHECK_SAYS(std::equal(end.begin(), end.end(), full.begin() + static_cast<std::ptrdiff_t>(full.size() - end.size())),
                   id + " cut at " + std::to_string(cut) + " in " + dtype);
      }
    }
}

TEST_CASE("parts that are given the unit that the whole run tells are the whole run to the bit") {
  const test::Scratch folder;
  std::vector<double> odd = unequal;
  for (double& t : odd) t /= 3.0;  // a median of more than six digits
  for (const std::string& id : timed()) {
    const RunRequest whole = request_for(id, at_times(odd));
    const auto all = finished(whole).trace;
    const auto told = std::ranges::find_if(
        all->info.notes, [](const Sentence& note) { return note.terminal_text().find("with time_unit=") != std::string::npos; });
    CHECK_SAYS(told != all->info.notes.end(), id);
    const std::string text = told->terminal_text();
    const std::size_t from = text.find("time_unit=") + 10;
    const std::string unit = text.substr(from, text.find(' ', from) - from);
    const auto& full = values_of(*all, "output");
    for (const std::size_t cut : {std::size_t{2}, std::size_t{7}}) {
      const auto part = [&](std::size_t first, std::size_t last) {
        RunRequest request = whole;
        Sequence& sequence = request.sequence.own();
        sequence.length = static_cast<std::int64_t>(last - first);
        sequence.time.assign(odd.begin() + static_cast<std::ptrdiff_t>(first), odd.begin() + static_cast<std::ptrdiff_t>(last));
        sequence.input.assign(whole.sequence->input.begin() + static_cast<std::ptrdiff_t>(2 * first),
                              whole.sequence->input.begin() + static_cast<std::ptrdiff_t>(2 * last));
        request.set.emplace_back("time_unit", unit);
        return request;
      };
      RunRequest second = part(cut, odd.size());
      second.state = folder / (id + std::to_string(cut) + ".npz");
      save_state(finished(part(0, cut)).state, second.state);
      const auto rest = finished(second).trace;
      const auto& end = values_of(*rest, "output");
      CHECK_SAYS(std::equal(end.begin(), end.end(), full.begin() + static_cast<std::ptrdiff_t>(full.size() - end.size())),
                 id + " cut at " + std::to_string(cut));
    }
  }
}

TEST_CASE("the state of equal steps continues unequal ones, and the other way round") {
  const test::Scratch folder;
  std::vector<double> steps;
  for (std::size_t t = 0; t < unequal.size(); ++t) steps.push_back(static_cast<double>(t));
  const RunRequest even = request_for("ltc", at_times(steps)), odd = request_for("ltc", at_times(unequal));
  const RunResult after_even = finished(even), after_odd = finished(odd);
  CHECK(!after_even.state.contains("state/0/clock") && after_odd.state.contains("state/0/clock"));
  CHECK_EQUAL((*after_odd.state.at("state/0/clock").real)[1], 1.25);
  save_state(after_even.state, folder / "even.npz");
  save_state(after_odd.state, folder / "odd.npz");
  for (const RunRequest* request : {&even, &odd})
    for (const char* file : {"even.npz", "odd.npz"}) {
      RunRequest next = *request;
      next.state = folder / file;
      finished(next);
    }
}

TEST_CASE("a layer that runs backward sees the time to the step after") {
  for (const std::string& id : timed()) {
    std::vector<double> mirrored;
    for (std::size_t t = unequal.size(); t-- > 0;) mirrored.push_back(20.0 - unequal[t]);
    Sequence turned = at_times(mirrored);
    const Sequence plain = at_times(unequal);
    for (std::size_t t = 0; t < unequal.size(); ++t)
      for (std::size_t j = 0; j < 2; ++j) turned.input[t * 2 + j] = plain.input[(unequal.size() - 1 - t) * 2 + j];
    const auto forward = finished(request_for(id, turned)).trace,
               backward = finished(request_for(id, plain, {{"direction", "backward"}})).trace;
    const auto &a = values_of(*forward, "output"), &b = values_of(*backward, "output");
    const std::size_t width = a.size() / unequal.size();
    for (std::size_t t = 0; t < unequal.size(); ++t)
      for (std::size_t j = 0; j < width; ++j) CHECK_SAYS(a[t * width + j] == b[(unequal.size() - 1 - t) * width + j], id);
  }
}

TEST_CASE("sequences side by side have times of their own, and a batch continues where the last one ended") {
  const Architecture& architecture = builtin_registry().find("ltc");
  Hyper hyper(architecture.hyper);
  hyper.set_text("width", "5", "ltc");
  hyper.set_text("time_unit", "1", "ltc");
  std::vector<double> other;
  for (const double t : unequal) other.push_back(3.0 + t * t / 7.0);
  const Sequence one = at_times(unequal, 5), two = at_times({other.begin(), other.begin() + 9}, 6);
  const SequenceLoss loss_one(LossKind::mean, one), loss_two(LossKind::mean, two);
  const Model model(architecture, hyper, Network(architecture, hyper, {.input = 2}).initialise(1), cpu_backend(), DType::f64);
  Rollout alone_one(model, Batch(one, loss_one), {}), alone_two(model, Batch(two, loss_two), {}),
      together(model, Batch({{&one, &loss_one}, {&two, &loss_two}}), {.segment = 5});
  const auto a = outputs(alone_one), b = outputs(alone_two), both = outputs(together);
  for (std::size_t t = 0; t < unequal.size(); ++t)
    for (std::size_t j = 0; j < 5; ++j) {
      CHECK(std::abs(both[(2 * t) * 5 + j] - a[t * 5 + j]) <= 1e-14);
      if (t < 9) CHECK(std::abs(both[(2 * t + 1) * 5 + j] - b[t * 5 + j]) <= 1e-14);
    }

  // Halves of a sequence, one after the other in one rollout.
  Sequence first = one, second = one;
  first.length = second.length = 6;
  first.input.resize(12);
  first.time.resize(6);
  second.input.erase(second.input.begin(), second.input.begin() + 12);
  second.time.erase(second.time.begin(), second.time.begin() + 6);
  for (const bool batch_first : {false, true}) {
    Rollout halves(model, Batch(first, loss_one), {});
    outputs(halves);
    if (batch_first) halves.set_batch(Batch(second, loss_one));
    halves.continue_states();
    if (!batch_first) halves.set_batch(Batch(second, loss_one));
    const auto rest = outputs(halves);
    CHECK(std::equal(rest.begin(), rest.end(), a.begin() + 30));
  }
}

TEST_CASE("a rollout made for equal steps refuses unequal ones, for a model that knows time alone") {
  std::vector<double> steps;
  for (std::size_t t = 0; t < unequal.size(); ++t) steps.push_back(static_cast<double>(t));
  const Sequence even = at_times(steps), odd = at_times(unequal);
  const SequenceLoss loss(LossKind::mean, even);
  for (const char* id : {"ltc", "gru"}) {
    const Architecture& architecture = builtin_registry().find(id);
    const Hyper hyper(architecture.hyper);
    const Model model(architecture, hyper, Network(architecture, hyper, {.input = 2}).initialise(1), cpu_backend(), DType::f64);
    Rollout rollout(model, Batch(even, loss), {});
    std::string said;
    try {
      rollout.set_batch(Batch(odd, loss));
    } catch (const Error& error) {
      said = error.what();
    }
    CHECK_EQUAL(said.empty(), !architecture.knows_time);
  }
}
