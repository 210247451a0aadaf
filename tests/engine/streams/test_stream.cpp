// SPDX-License-Identifier: GPL-3.0-or-later
// One pass over a stream: the gradients against the rules that train on whole sequences, the baselines against the survey's figures, going
// on from a kept state, and memory that stays as it is.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <numbers>
#include <string>
#include <thread>
#include <vector>

#include "array/error.h"
#include "learning/learning_rule.h"
#include "models/registry.h"
#include "streams/follow.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

StreamRequest request_of(const std::string& id, const std::string& source, const test::Settings& set = {{"width", "6"}}) {
  StreamRequest request;
  request.run.preset = test::preset_of(id);
  request.run.set.assign(set.begin(), set.end());
  request.source = source_choice(source);
  request.source.seed = 5;
  request.run.seed = 5;
  request.options.optimiser = {"sgd", {}};
  request.options.rate.rate = 0.05;
  return request;
}

std::unique_ptr<StreamRun> made(const StreamRequest& request) { return std::make_unique<StreamRun>(builtin_registry(), request); }

std::vector<double> numbers(const Parameters& weights) {
  std::vector<double> all;
  for (const auto& entry : weights.entries()) all.insert(all.end(), entry.values.begin(), entry.values.end());
  return all;
}

/// The steps of the request's source as one sequence.
Sequence whole_of(const StreamRequest& request) {
  const auto source = open_source(request.source);
  Sequence sequence;
  sequence.name = "all";
  sequence.length = request.length;
  sequence.width = source->form().width();
  sequence.names = source->form().names;
  sequence.target_kind = source->form().target_kind;
  sequence.target_width = source->form().target_width;
  sequence.classes = source->form().classes;
  StreamStep step;
  for (std::int64_t t = 0; t < request.length; ++t) {
    CHECK(source->next(step, {}) == StreamSource::Next::step);
    sequence.input.insert(sequence.input.end(), step.input.begin(), step.input.end());
    sequence.target.insert(sequence.target.end(), step.target.begin(), step.target.end());
    sequence.mask.push_back(step.counts);
    sequence.time.push_back(static_cast<double>(t));
  }
  return sequence;
}

/// The weights that the rule of that name comes to on the sequence as a whole, where each change is of the mean over `advance` steps.
std::vector<double> by_rule(const StreamRequest& request, const Parameters& begun) {
  StreamRequest other = request;
  other.length = 1;
  RunRequest run = request.run;
  const std::deque<Sequence> all{whole_of(request)};
  run.sequence = all[0];
  run.loss = LossKind::task;
  const Prepared prepared(builtin_registry(), run);
  Model model(prepared.architecture, prepared.hyper, begun, cpu_backend(), DType::f64);
  TrainingOptions options = request.options;
  options.batch = 1;
  const auto rule = make_learning_rule({model, options, request.length, all});
  rule->begin(all, 1);
  const double rate = options.rate.rate * static_cast<double>(request.length) / static_cast<double>(options.advance);
  while (rule->left()) {
    rule->learn({});
    model.add(-rate, rule->gradients());
  }
  return numbers(model.parameters());
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK_EQUAL(a.size(), b.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

StreamState::Arrays state_of(StreamRun& stream) {
  StreamState state;
  stream.keep(state);
  return state.arrays();
}

/// NaN equals itself here.
void check_same_bits(const StreamState::Arrays& found, const StreamState::Arrays& wanted, const std::string& of) {
  CHECK_EQUAL(found.size(), wanted.size());
  for (const auto& [name, values] : wanted) {
    const auto& others = found.at(name);
    CHECK_SAYS(values.size() == others.size() && std::memcmp(values.data(), others.data(), values.size() * sizeof(double)) == 0,
               of + ": " + name);
  }
}

/// Whether a stream that goes on from the arrays ends as another one did.
void check_continued(const StreamRequest& request, const StreamState::Arrays& kept, const StreamState::Arrays& end) {
  StreamState state(kept, "state.npz");
  StreamRun continued(builtin_registry(), request, &state);
  while (!continued.done()) continued.advance();
  check_same_bits(state_of(continued), end, request.run.preset.id + " on " + request.source.id);
}

void run(StreamRun& stream) {
  while (!stream.done()) stream.advance();
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t whole = 0, resident = 0;
  file >> whole >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

TEST_CASE("a stream learns what the same rule learns from its steps as one sequence") {
  const struct {
    std::string rule;
    std::int64_t truncate, advance;
  } cases[] = {{"bptt", 12, 12}, {"bptt", 12, 4}, {"bptt", 12, 1}, {"bptt", 1, 1}, {"rtrl", 0, 1}, {"rtrl", 0, 6}, {"snap", 0, 1}};
  for (const std::string id : {"elman", "lstm"})
    for (const auto& one : cases) {
      StreamRequest request = request_of(id, "recurring");
      request.source.set = {{"hold", "30"}};
      request.length = 96;
      request.options.rule = one.rule;
      request.options.truncate = one.truncate;
      request.options.advance = one.advance;
      const auto stream = made(request);
      const Parameters begun = stream->weights(0);
      run(*stream);
      const auto learned = numbers(stream->weights(0));
      CHECK(largest_difference(learned, numbers(begun)) > 1e-3);
      CHECK_CLOSE(largest_difference(learned, by_rule(request, begun)), 0.0, 1e-12);
    }
}

TEST_CASE("a window that begins at rest has the outputs of the model on its steps alone") {
  StreamRequest request = request_of("lstm", "recurring");
  request.length = 40;
  request.options.truncate = 8;
  request.options.advance = 1;
  request.options.rate.rate = 0.0;
  const auto carried = made(request);
  request.reset = true;
  const auto reset = made(request);
  run(*carried);
  run(*reset);
  CHECK(carried->errors()[0].mean()[0] != reset->errors()[0].mean()[0]);
  // With weights that stay, a carried window of any length is the whole past; one of 40 steps begins at rest as well.
  request.options.truncate = 40;
  const auto longest = made(request);
  run(*longest);
  CHECK_CLOSE(longest->errors()[0].mean()[0], carried->errors()[0].mean()[0], 1e-13);
}

TEST_CASE("on the survey's Synth the last value has the errors of its Table 1, and least squares none") {
  StreamRequest request = request_of("elman", "sine", {{"width", "2"}});
  request.length = 36'000;
  request.errors.burn_in = 9'000;
  request.options.truncate = 100;
  const auto stream = made(request);
  run(*stream);
  const auto& names = stream->predictors();
  CHECK_EQUAL(names[1].name, "last");
  const Errors last = stream->errors()[1].mean(), ridge = stream->errors()[2].mean();
  // sqrt(2) (sin(a + d) - sin a): its square has the mean 2 (1 - cos d); printed are 3.0e-6 and 1.6e-3.
  const double step = 2.0 * std::numbers::pi / 3600.0;
  CHECK_CLOSE(last[0], 2.0 * (1.0 - std::cos(step)), 1e-15);
  CHECK_CLOSE(last[0], 3.05e-6, 0.005e-6);
  CHECK_CLOSE(last[1], 1.57e-3, 0.005e-3);
  CHECK(ridge[0] < 1e-12);
}

TEST_CASE("on S-Abrupt the last value has the survey's errors, to the noise of 4500 steps") {
  StreamRequest request = request_of("elman", "s-abrupt", {{"width", "2"}});
  request.length = 6'000;
  request.errors.burn_in = 1'500;
  const auto stream = made(request);
  run(*stream);
  // The mean of 2 / (1 + phi) over the regimes of the last three quarters is 1.436, that of the absolute value 0.954; printed: 1.430,
  // 0.951.
  CHECK_CLOSE(stream->errors()[1].mean()[0], 1.436, 0.09);
  CHECK_CLOSE(stream->errors()[1].mean()[1], 0.954, 0.03);
  CHECK_EQUAL(stream->drifts().drifts(), 6);
}

TEST_CASE("a stream goes on from a kept state with the same bits") {
  std::vector<StreamRequest> requests;
  const auto add = [&](const std::string& id, const std::string& source, const std::string& rule, std::int64_t truncate,
                       std::int64_t advance) -> StreamRequest& {
    requests.push_back(request_of(id, source));
    StreamRequest& request = requests.back();
    request.length = 600;
    request.options.rule = rule;
    request.options.truncate = truncate;
    request.options.advance = advance;
    request.options.optimiser = {"adam", {}};
    request.options.rate.rate = 0.01;
    return request;
  };
  add("lstm", "s-abrupt", "bptt", 20, 20).source.set = {{"hold", "70"}};
  add("lstm", "lorenz", "bptt", 20, 4).source.standardise = 100;
  for (const LearningRuleInfo& rule : learning_rules())
    if (rule.online && rule.id != "forward-errors") {
      StreamRequest& request = add(rule.id == "diagonal-rtrl" ? "indrnn" : "elman", "s-gradual", rule.id, 0, 1);
      request.run.set = {{"width", "4"}};
    }
  add("s4d", "sine", "bptt", 10, 10).run.set = {};
  add("gru", "task:copy", "bptt", 8, 1);
  StreamRequest& several = add("gru", "recurring", "bptt", 0, 0);
  several.rates = {0.1, 1e200, 0.001};
  several.advances = {1, 2};
  several.truncations = {4, 12};
  several.ring = 50;
  several.offline = 300;
  several.offline_batches = 3;
  add("lstm", "recurring", "bptt", 10, 10).run.dtype = "f32";
  for (const StreamRequest& request : requests) {
    const auto whole = made(request);
    std::vector<StreamState::Arrays> kept;
    while (!whole->done()) {
      if (whole->steps() % 120 == 0) kept.push_back(state_of(*whole));
      whole->advance();
    }
    CHECK(kept.size() >= 5);
    const auto end = state_of(*whole);
    for (const auto& arrays : kept) check_continued(request, arrays, end);
  }
}

SWEEP_ARCHITECTURES("a stream carries the whole state of a model over its windows, and goes on with the same bits", architecture) {
  StreamRequest request = request_of(architecture.id, "recurring", test::small_settings(test::preset_of(architecture.id)));
  request.length = 24;
  request.options.truncate = 24;
  request.options.rate.rate = 0.0;
  std::unique_ptr<StreamRun> whole;
  try {
    whole = made(request);
  } catch (const Error& error) {
    const std::string why = error.what();
    if (why.find("grows with the sequence") == std::string::npos && why.find("fitted to a whole target") == std::string::npos) throw;
    return;
  }
  run(*whole);
  for (const std::int64_t advance : {2, 6}) {
    request.options.truncate = 6;
    request.options.advance = advance;
    request.options.rate.rate = 0.0;
    const auto windows = made(request);  // weights that stay see what one window over all steps does
    run(*windows);
    CHECK_CLOSE(windows->errors()[0].mean()[0], whole->errors()[0].mean()[0], 1e-10 * (1.0 + whole->errors()[0].mean()[0]));
    request.options.rate.rate = 1e-3;
    const auto learns = made(request);
    while (learns->steps() < 12) learns->advance();
    const auto kept = state_of(*learns);
    run(*learns);
    check_continued(request, kept, state_of(*learns));
  }
}

TEST_CASE("the ring has the source's last steps, and the predictions whose errors were counted") {
  for (const std::int64_t room : {7, 40, 100, 1000}) {
    StreamRequest request = request_of("lstm", "recurring");
    request.source.set = {{"hold", "30"}};
    request.length = 250;
    request.options.truncate = 40;  // longer than the first ring, so that a part of a block is kept
    request.errors.window = room;
    request.ring = room;
    const auto stream = made(request);
    run(*stream);
    const StreamRing& ring = *stream->ring();
    const std::int64_t length = std::min<std::int64_t>(room, 250), first = 250 - length;
    CHECK_EQUAL(ring.length(), length);
    CHECK_EQUAL(ring.first(), first);
    const Sequence last = ring.sequence(), whole = whole_of(request);
    CHECK(last.input == std::vector<double>(whole.input.begin() + first * whole.width, whole.input.end()));
    CHECK(last.target == std::vector<double>(whole.target.begin() + first * whole.target_width, whole.target.end()));
    CHECK(last.time == std::vector<double>(whole.time.begin() + first, whole.time.end()));
    std::vector<std::int64_t> drifts;  // the target of step t is the row t + 1
    for (std::int64_t t = first + 1; t < 250; ++t)
      if ((t + 1) % 30 == 0) drifts.push_back(t);
    CHECK(ring.drifts() == drifts);
    for (std::size_t p = 0; p < stream->predictors().size(); ++p) {
      const auto predictions = ring.predictions(p);
      CHECK_EQUAL(std::ssize(predictions), length * stream->form().outputs());
      double squared = 0.0;
      for (std::size_t i = 0; i < predictions.size(); ++i)
        squared += std::pow(predictions[i] - last.target[i], 2) / static_cast<double>(predictions.size());
      CHECK_CLOSE(squared, stream->errors()[p].windowed()[0], 1e-12 * (1.0 + squared));
    }
  }
}

TEST_CASE(
    "a run of the model on the ring has the outputs that the stream's predictions were, where the weights stay and it has all steps") {
  StreamRequest request = request_of("lstm", "recurring");
  request.length = request.ring = 60;
  request.options.truncate = 20;
  request.options.rate.rate = 0.0;
  const auto stream = made(request);
  run(*stream);
  RunRequest again = request.run;
  again.sequence = stream->ring()->sequence();
  const RunResult result = reclab::run(builtin_registry(), again, {}, {});
  const TraceArray* found = result.trace->find("output");
  CHECK(found);
  const std::vector<double>& output = *found->real;
  const auto predictions = stream->ring()->predictions(0);
  CHECK_EQUAL(output.size(), predictions.size());
  for (std::size_t i = 0; i < output.size(); ++i) CHECK_CLOSE(output[i], predictions[i], 1e-13);
}

TEST_CASE("a stream that is followed shows pictures no faster than asked, and says which steps are in none") {
  StreamRequest request = request_of("lstm", "recurring", {{"width", "32"}});
  request.source.set = {{"hold", "3000"}};
  request.length = 20'000;
  request.ring = 100;
  request.options.truncate = 20;
  request.options.optimiser = {"adam", {}};
  request.options.rate.rate = 0.001;
  const auto alone = made(request);
  const auto alone_begun = std::chrono::steady_clock::now();
  run(*alone);
  const std::chrono::duration<double> unwatched = std::chrono::steady_clock::now() - alone_begun;
  const auto followed = made(request);
  std::vector<StreamPicturePtr> pictures;
  const auto begun = std::chrono::steady_clock::now();
  StreamPace pace;
  follow_stream(
      *followed, std::chrono::duration<double>(1.0 / 30.0), [&](StreamPicturePtr picture) { pictures.push_back(picture); }, {}, pace);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun;
  CHECK(std::ssize(pictures) <= static_cast<std::int64_t>(30.0 * seconds.count()) + 1);
  CHECK(pictures.back()->done && pictures.back()->steps == 20'000);
  std::int64_t before = 0, shown = 0, left_out = 0;
  for (const StreamPicturePtr& picture : pictures) {
    CHECK(picture->steps > before);
    CHECK_EQUAL(picture->ring.length, std::min<std::int64_t>(100, picture->steps));
    CHECK_EQUAL(picture->ring.time.back(), static_cast<double>(picture->steps - 1));
    shown += std::min(picture->ring.length, picture->steps - before);
    left_out += picture->left_out;
    CHECK_EQUAL(picture->all_left_out, left_out);
    CHECK_EQUAL(shown + left_out, picture->steps);
    before = picture->steps;
  }
  // What is watched learns the same.
  CHECK(numbers(pictures.back()->weights) == numbers(alone->weights(0)));
  CHECK(numbers(followed->weights(0)) == numbers(alone->weights(0)));
  CHECK_EQUAL(pictures.back()->predictors[0].faded[0], alone->errors()[0].faded()[0]);
  CHECK_EQUAL(pictures.back()->curve->rows(), alone->curve().rows());
  CHECK_EQUAL(pictures.back()->all_drifts, 6);
  if (std::getenv("RECLAB_MEASURE"))
    std::cout << "lstm of width 32: " << 20'000.0 / unwatched.count() << " steps/s alone, " << 20'000.0 / seconds.count() << " with "
              << static_cast<double>(pictures.size()) / seconds.count() << " pictures/s; " << left_out << " steps in no picture\n";
}

TEST_CASE("what is followed can be paused and goes on, with the bits of what never was") {
  StreamRequest request = request_of("elman", "s-abrupt");
  request.length = 4'000;
  request.ring = 50;
  const auto whole = made(request), paused = made(request);
  run(*whole);
  int pauses = 0;
  while (!paused->done()) {
    std::stop_source stop;
    StreamPace pace;
    const std::int64_t before = paused->steps();
    follow_stream(
        *paused, std::chrono::duration<double>(0.0),
        [&](const StreamPicturePtr& picture) {
          if (picture->steps >= before + 400) stop.request_stop();
        },
        stop.get_token(), pace);
    ++pauses;
  }
  CHECK(pauses >= 5);
  check_same_bits(state_of(*paused), state_of(*whole), "paused");
}

TEST_CASE("a stream goes no faster than its pace, which changes no number and may be changed while it goes on") {
  using Clock = std::chrono::steady_clock;
  StreamRequest request = request_of("elman", "s-abrupt");
  request.length = 600;
  request.ring = 50;
  const auto free = made(request), paced = made(request);
  run(*free);
  StreamPace pace(1000);
  const auto begun = Clock::now();
  auto faster_at = begun;
  // 400 steps at 1,000 a second, and the rest at once.
  follow_stream(
      *paced, std::chrono::duration<double>(0.0),
      [&](const StreamPicturePtr& picture) {
        if (picture->steps < 400 || pace.rate() == 0) return;
        faster_at = Clock::now();
        pace.set(0);
      },
      {}, pace);
  const std::chrono::duration<double> slow = faster_at - begun;
  // The first block is made at once, and what is behind by less than a quarter of a second is made up for.
  CHECK_SAYS(slow.count() >= 0.36, std::to_string(slow.count()));
  check_same_bits(state_of(*paced), state_of(*free), "paced");
  // A stop ends the waiting, and so does another pace.
  StreamPace slowest(1);
  slowest.wait(0, {});
  std::stop_source stop;
  std::jthread stops([&] { stop.request_stop(); });
  slowest.wait(1'000'000, stop.get_token());
  std::jthread sets([&] { slowest.set(0); });
  slowest.wait(1'000'000, {});
  CHECK_EQUAL(slowest.rate(), 0);
}

TEST_CASE("learners side by side learn what each learns alone") {
  StreamRequest request = request_of("gru", "recurring");
  request.length = 120;
  request.rates = {0.05, 0.01};
  request.truncations = {6, 12};
  request.advances = {1, 3, 6};
  const auto together = made(request);
  run(*together);
  std::size_t at = 0;
  double least = std::numeric_limits<double>::infinity();
  for (const double rate : request.rates)
    for (const std::int64_t truncate : request.truncations)
      for (const std::int64_t advance : request.advances) {
        StreamRequest one = request;
        one.rates.clear();
        one.truncations = one.advances = {};
        one.options.rate.rate = rate;
        one.options.truncate = truncate;
        one.options.advance = advance;
        const auto alone = made(one);
        run(*alone);
        CHECK_SAYS(numbers(alone->weights(0)) == numbers(together->weights(at)), together->predictors()[at].name);
        CHECK_EQUAL(alone->errors()[0].total()[0], together->errors()[at].total()[0]);
        CHECK_EQUAL(together->predictors()[at].name,
                    "rate=" + as_text(rate) + ",truncate=" + std::to_string(truncate) + ",advance=" + std::to_string(advance));
        least = std::min(least, alone->errors()[0].total()[0]);
        ++at;
      }
  for (std::size_t i = 0; i < at; ++i) CHECK_EQUAL(together->regret(i), together->errors()[i].total()[0] - least);
}

TEST_CASE("a state that does not fit is refused with the array's name") {
  StreamRequest request = request_of("lstm", "sine");
  request.ring = 9;
  const auto stream = made(request);
  for (int i = 0; i < 3; ++i) stream->advance();
  const auto good = state_of(*stream);
  const auto refused = [&](StreamState::Arrays arrays, const std::string& name) {
    StreamState state(std::move(arrays), "state.npz");
    try {
      StreamRun again(builtin_registry(), request, &state);
    } catch (const Error& error) {
      CHECK_SAYS(std::string(error.what()).find(name) != std::string::npos, error.what());
      return;
    }
    test::fail(__FILE__, __LINE__, name + " was taken");
  };
  for (const auto& [name, values] : good) {
    auto arrays = good;
    arrays.erase(name);
    refused(arrays, name);
    arrays = good;
    arrays[name].resize(values.size() + 3);
    refused(arrays, "state.npz");
  }
  auto arrays = good;
  arrays["steps"] = {-1.0};
  refused(arrays, "steps");
}

TEST_CASE("a learner that becomes non-finite ends alone, and its errors are none") {
  StreamRequest request = request_of("elman", "recurring");
  request.rates = {1e200, 0.01};
  request.length = 400;
  const auto stream = made(request);
  run(*stream);
  CHECK_EQUAL(stream->steps(), 400);
  CHECK(stream->predictors()[0].diverged >= 0 && stream->predictors()[1].diverged < 0);
  CHECK(std::isnan(stream->errors()[0].mean()[0]) && std::isfinite(stream->errors()[1].mean()[0]));
  CHECK_EQUAL(stream->best(), 1u);
}

TEST_CASE("what cannot be streamed is refused in a sentence") {
  const auto refused = [](const StreamRequest& request, const std::string& text) {
    try {
      made(request);
    } catch (const Error& error) {
      CHECK_SAYS(std::string(error.what()).find(text) != std::string::npos, error.what());
      return;
    }
    test::fail(__FILE__, __LINE__, "taken: " + text);
  };
  refused(request_of("transformer", "sine", {}), "grows with the sequence");
  refused(request_of("lstm", "sine", {{"direction", "both"}}), "from the end of the sequence");
  StreamRequest request = request_of("lstm", "sine");
  request.options.truncate = 4;
  request.options.advance = 5;
  refused(request, "choose advance up to truncate");
  request = request_of("lstm", "sine");
  request.options.rule = "rtrl";
  request.options.truncate = 4;
  refused(request, "nothing to truncate");
  request = request_of("lstm", "sine");
  request.options.rule = "forward-errors";
  request.options.truncate = 0;
  refused(request, "goes over a sequence twice");
  request = request_of("lstm", "sine");
  request.truncations = {9973, 9967};
  refused(request, "divide each other");
}

TEST_CASE("memory stays as it is, however long a stream is") {
  StreamRequest request = request_of("elman", "recurring", {{"width", "2"}});
  request.options.truncate = 100;
  request.length = test::thorough() ? 20'000'000 : 1'000'000;
  const auto stream = made(request);
  std::int64_t begun = 0;
  while (!stream->done()) {
    stream->advance();
    if (stream->steps() == request.length / 10) begun = resident_bytes();
  }
  CHECK_SAYS(resident_bytes() - begun <= 1 << 20, std::to_string(resident_bytes() - begun) + " bytes more");
}

TEST_CASE("the model that was trained beforehand stays wrong after a drift that a learner follows") {
  StreamRequest request = request_of("lstm", "recurring", {{"width", "8"}});
  request.source.set = {{"hold", "4000"}};
  request.length = 8'000;
  request.options.optimiser = {"adam", {}};
  request.options.rate.rate = 0.01;
  request.options.truncate = 10;
  request.offline = 3'000;
  const auto stream = made(request);
  run(*stream);
  CHECK_EQUAL(stream->predictors()[1].name, "offline");
  const double online = stream->errors()[0].windowed()[0], offline = stream->errors()[1].windowed()[0];
  CHECK_SAYS(online < 1.5 && offline > 4.0, std::to_string(online) + " and " + std::to_string(offline));
}
