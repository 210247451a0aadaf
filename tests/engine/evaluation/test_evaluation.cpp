// SPDX-License-Identifier: GPL-3.0-or-later
// Evaluations against a plain computation: single runs one after the other, their outputs, and means and baselines by hand.
#include "evaluation/evaluation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "execution/rollout.h"
#include "experiment/prepared.h"
#include "files/files.h"
#include "models/registry.h"
#include "one_processor.h"
#include "scratch.h"
#include "test.h"

using namespace reclab;
using namespace reclab::test;

namespace {

const PresetLibrary& presets() {
  static const PresetLibrary all(builtin_registry(), preset_folders());
  return all;
}
RunRequest request_of(const std::string& id, const std::string& task, const TaskOptions& options) {
  RunRequest request;
  request.preset = presets().find(id);
  request.sequence = make_task(task, options);
  return request;
}
EvaluationTable evaluated(const RunRequest& request, const EvaluationPlan& plan) {
  return evaluate(builtin_registry(), presets(), request, plan, {}, {});
}
const EvaluationRow& row(const EvaluationTable& table, const std::string& model, std::int64_t length, ScoredBy by = ScoredBy::length,
                         std::int64_t from = -1) {
  const auto found = std::ranges::find_if(table.rows, [&](const EvaluationRow& one) {
    return one.model == model && one.length == length && one.by == by && (from < 0 || one.from == from);
  });
  CHECK_SAYS(found != table.rows.end(), model + " " + std::string(to_string(by)) + " " + std::to_string(from));
  return *found;
}
std::vector<double> numbers(const EvaluationTable& table) {
  std::vector<double> all;
  for (const EvaluationRow& one : table.rows)
    for (const double x : {static_cast<double>(one.from), static_cast<double>(one.to), static_cast<double>(one.sequences), one.loss.mean,
                           one.loss.low, one.loss.high, one.metric.mean, one.metric.low, one.metric.high})
      all.push_back(std::isnan(x) ? -1.0 : x);
  return all;
}

/// The outputs of a run of its own, [steps, width].
std::vector<double> outputs_of(RunRequest request, const Sequence& sequence) {
  request.sequence = sequence;
  request.loss = LossKind::task;
  request.recording.kinds = {Kind::output};
  request.every = 1;
  return *run(builtin_registry(), request, {}, {}).trace->find("output")->real;
}

struct Plain {
  std::map<std::int64_t, std::vector<double>> loss, metric;  // by part, a value a sequence
  void add(std::int64_t part, double l, double m) {
    loss[part].push_back(l);
    metric[part].push_back(m);
  }
};
double mean_of(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}
void check_row(const EvaluationRow& found, const std::vector<double>& loss, const std::vector<double>& metric) {
  CHECK_EQUAL(found.sequences, std::ssize(loss));
  CHECK_CLOSE(found.loss.mean, mean_of(loss), 1e-12 * std::max(1.0, std::abs(mean_of(loss))));
  CHECK_CLOSE(found.metric.mean, mean_of(metric), 1e-12 * std::max(1.0, std::abs(mean_of(metric))));
  if (loss.size() < 2) return;
  double squares = 0.0;
  for (const double value : loss) squares += std::pow(value - mean_of(loss), 2);
  const auto n = static_cast<double>(loss.size());
  const double half = student_t(0.95, std::ssize(loss) - 1) * std::sqrt(squares / (n - 1.0) / n);
  CHECK_CLOSE(found.loss.high - found.loss.mean, half, 1e-11);
  CHECK_CLOSE(found.loss.mean - found.loss.low, half, 1e-11);
}

/// The least squares of two targets on the last 32 steps of two inputs, by elimination.
std::function<std::vector<double>(const std::vector<double>&)> least_squares(const Examples& examples) {
  constexpr std::size_t past = 32, n = 2 * past + 1;
  std::vector<std::vector<double>> a(n, std::vector<double>(n + 2, 0.0));
  std::int64_t rows = 0;
  for (std::int64_t i = 0; rows < 8192; ++i) {
    const Sequence one = examples.training(0, i);
    for (std::int64_t t = 0; t < one.length; ++t, ++rows) {
      std::vector<double> z(n, 0.0);
      z[0] = 1.0;
      for (std::int64_t k = 0; k < 32 && k <= t; ++k)
        for (std::int64_t j = 0; j < 2; ++j)
          z[static_cast<std::size_t>(1 + 2 * (31 - k) + j)] = one.input[static_cast<std::size_t>(2 * (t - k) + j)];
      for (std::size_t r = 0; r < n; ++r) {
        for (std::size_t c = 0; c < n; ++c) a[r][c] += z[r] * z[c];
        for (std::size_t j = 0; j < 2; ++j) a[r][n + j] += z[r] * one.target[static_cast<std::size_t>(2 * t) + j];
      }
    }
  }
  for (std::size_t r = 0; r < n; ++r) a[r][r] += 1e-10 * static_cast<double>(rows);
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t other = 0; other < n; ++other) {
      if (other == r) continue;
      const double factor = a[other][r] / a[r][r];
      for (std::size_t c = r; c < n + 2; ++c) a[other][c] -= factor * a[r][c];
    }
  return [a](const std::vector<double>& z) {
    std::vector<double> y{a[0][n] / a[0][0], a[0][n + 1] / a[0][0]};
    for (std::size_t r = 1; r < n; ++r)
      for (std::size_t j = 0; j < 2; ++j) y[j] += a[r][n + j] / a[r][r] * z[r - 1];
    return y;
  };
}

}  // namespace

TEST_CASE("losses and accuracies by length, position, delay and class are those of single runs") {
  const TaskOptions options{.length = 40, .seed = 5, .set = {{"pairs", "4"}, {"keys", "6"}, {"values", "3"}}};
  const RunRequest request = request_of("gru", "mqar", options);
  EvaluationPlan plan{.lengths = {40, 24}, .sequences = 9, .seeds = {3, 7}};
  const EvaluationTable table = evaluated(request, plan);
  CHECK_EQUAL(table.metric, "accuracy");
  CHECK(table.missing.empty());
  for (const std::int64_t length : {24, 40}) {
    Plain whole, position, delay, classes;
    std::vector<double> often(3, 0.0);
    for (const std::uint64_t seed : plan.seeds)
      for (std::int64_t i = 0; i < plan.sequences; ++i) {
        TaskOptions own = options;
        own.length = length;
        own.seed = seed;
        const Sequence sequence = evaluation_sequence("mqar", own, i);
        const auto y = outputs_of(request, sequence);
        const std::size_t width = y.size() / static_cast<std::size_t>(length);
        Plain mine;
        std::int64_t place = 0;
        for (std::size_t t = 0; t < static_cast<std::size_t>(length); ++t) {
          if (sequence.mask[t] == 0.0) continue;
          const auto wanted = static_cast<std::size_t>(sequence.target[t]);
          double sum = 0.0;
          for (std::size_t j = 0; j < width; ++j) sum += std::exp(y[t * width + j]);
          const double loss = std::log(sum) - y[t * width + wanted];
          bool right = true;
          for (std::size_t j = 0; j < width; ++j) right = right && y[t * width + j] <= y[t * width + wanted];
          // The last step before this one that shows the key of this one, and its value a step later.
          std::size_t key = 0, shown = 0;
          while (sequence.input[t * static_cast<std::size_t>(sequence.width) + key] == 0.0) ++key;
          while (sequence.input[shown * static_cast<std::size_t>(sequence.width) + key] == 0.0) ++shown;
          std::int64_t first = 1;
          while (2 * first <= static_cast<std::int64_t>(t - shown - 1)) first *= 2;
          mine.add(0, loss, right ? 1.0 : 0.0);
          mine.add(10 + ++place, loss, right ? 1.0 : 0.0);
          mine.add(1000 + first, loss, right ? 1.0 : 0.0);
          mine.add(2000 + static_cast<std::int64_t>(wanted), loss, right ? 1.0 : 0.0);
          often[wanted] += 1.0;
        }
        for (const auto& [part, losses] : mine.loss) {
          Plain& to = part == 0 ? whole : part < 1000 ? position : part < 2000 ? delay : classes;
          to.add(part % 1000 - (part > 0 && part < 1000 ? 10 : 0), mean_of(losses), mean_of(mine.metric.at(part)));
        }
      }
    check_row(row(table, "gru", length), whole.loss.at(0), whole.metric.at(0));
    for (const auto& [by, parts] : {std::pair(ScoredBy::position, &position), {ScoredBy::delay, &delay}, {ScoredBy::classes, &classes}}) {
      CHECK_EQUAL(std::ranges::count_if(table.rows, [&](const EvaluationRow& one) { return one.by == by && one.length == length; }),
                  std::ssize(parts->loss));
      for (const auto& [part, losses] : parts->loss) check_row(row(table, "gru", length, by, part), losses, parts->metric.at(part));
    }
    double all = 0.0, entropy = 0.0;
    for (const double count : often) all += count;
    for (const double count : often) entropy -= count / all * std::log(count / all);
    CHECK_CLOSE(row(table, "best constant", length).loss.mean, entropy, 1e-12);
    CHECK_CLOSE(row(table, "best constant", length).metric.mean, std::ranges::max(often) / all, 1e-12);
  }
}

TEST_CASE("squared errors are those of single runs, and several models are judged on the same sequences") {
  const RunRequest request = request_of("lstm", "adding", {.length = 30});
  const EvaluationTable table = evaluated(request, {.sequences = 7, .others = {"elman --set width=5", "lstm --seed 2"}});
  CHECK_EQUAL(table.metric, "squared error");
  const std::vector<std::string> names{"lstm", "elman", "lstm-2"};
  CHECK_EQUAL(table.models.size(), names.size());
  RunRequest other = request, again = request;
  other.preset = presets().find("elman");
  other.set = {{"width", "5"}};
  again.seed = 2;
  const RunRequest* requests[] = {&request, &other, &again};
  for (std::size_t m = 0; m < names.size(); ++m) {
    CHECK_EQUAL(table.models[m].name, names[m]);
    std::vector<double> losses, errors;
    for (std::int64_t i = 0; i < 7; ++i) {
      const Sequence sequence = evaluation_sequence("adding", {.length = 30}, i);
      const double error = outputs_of(*requests[m], sequence).back() - sequence.target.back();
      losses.push_back(error * error / 2.0);
      errors.push_back(error * error);
    }
    check_row(row(table, names[m], 30), losses, errors);
  }
}

TEST_CASE("results do not depend on how many sequences are side by side, nor on the number of threads") {
  const RunRequest request = request_of("mamba", "selective-copy", {.length = 40});
  const auto of = [&](std::int64_t batch) {
    return numbers(evaluated(request, {.lengths = {40, 70}, .sequences = 37, .others = {"transformer", "lstm"}, .batch = batch}));
  };
  const auto whole = of(16);
  for (const std::int64_t batch : {1, 3, 37, 1000}) CHECK_SAYS(of(batch) == whole, std::to_string(batch));
  for (const int threads : {1, 3, 64}) CHECK_SAYS(on_threads(threads, "numbers of an evaluation") == whole, std::to_string(threads));
}
TEST_CASE("numbers of an evaluation") {
  write_numbers([] {
    return numbers(evaluated(request_of("mamba", "selective-copy", {.length = 40}),
                             {.lengths = {40, 70}, .sequences = 37, .others = {"transformer", "lstm"}}));
  });
}

TEST_CASE("a long sequence in segments has the bits of the whole, and takes the memory of its input and one segment") {
  const auto judge = [](std::int64_t length, std::int64_t segment, bool forward_only) {
    RunRequest request = request_of("lru", "delay", {.length = length});
    request.loss = LossKind::task;
    const Prepared prepared(builtin_registry(), request);
    const Model model(prepared.architecture, prepared.hyper, prepared.parameters, prepared.backend, prepared.real);
    Rollout rollout(model, Batch(request.sequence, prepared.loss), {.segment = segment, .record = false, .forward_only = forward_only});
    CHECK(!rollout.forward({}, {}));
    return std::tuple(rollout.loss(), rollout.final_states(), rollout.bytes());
  };
  constexpr std::int64_t length = 9001;
  const auto [loss, states, bytes] = judge(length, length, false);
  for (const std::int64_t segment : {1000, 4096, 9000}) {
    const auto [own, last, taken] = judge(length, segment, true);
    // The segments' losses are added one after the other.
    CHECK_CLOSE(own, loss, 1e-12 * std::abs(loss));
    CHECK(last == states);
  }
  const auto growth = [&](bool forward_only) {
    return std::get<2>(judge(64'000, 100, forward_only)) - std::get<2>(judge(32'000, 100, forward_only));
  };
  CHECK_EQUAL(growth(true), 32'000 * static_cast<std::int64_t>(sizeof(double)));  // one input channel
  CHECK(growth(false) > growth(true));

  const RunRequest request = request_of("lru", "delay", {.length = 20'000});
  const EvaluationTable table = evaluated(request, {.sequences = 1});
  TaskOptions own{.length = 20'000};
  const Sequence sequence = evaluation_sequence("delay", own, 0);
  const auto y = outputs_of(request, sequence);
  double sum = 0.0, counted = 0.0;
  for (std::size_t t = 0; t < y.size(); ++t) {
    sum += sequence.mask[t] * std::pow(y[t] - sequence.target[t], 2);
    counted += sequence.mask[t];
  }
  CHECK_CLOSE(row(table, "lru", 20'000).metric.mean, sum / counted, 1e-9);
  const auto positions = std::ranges::count(table.rows, ScoredBy::position, &EvaluationRow::by);
  CHECK_EQUAL(positions, 2 * most_positions);  // of the model and of the linear predictor
}

TEST_CASE("no sequence that weights are judged by is one that a training draws or holds out") {
  std::set<std::string> learned;
  for (const std::uint64_t seed : {1, 2}) {
    const auto examples = task_examples("adding", {.length = 10, .seed = seed});
    for (std::int64_t step = 0; step < 30; ++step)
      for (std::int64_t i = 0; i < 8; ++i) learned.insert(examples->training(step, i).sha256);
    for (std::int64_t i = 0; i < 100; ++i) learned.insert(examples->held_out(i).sha256);
  }
  CHECK_EQUAL(learned.size(), 680U);
  for (const std::uint64_t seed : {1, 2})
    for (std::int64_t i = 0; i < 200; ++i)
      CHECK(learned.insert(evaluation_sequence("adding", {.length = 10, .seed = seed}, i).sha256).second);
}

TEST_CASE("a task that knows when its target was shown showed it then") {
  std::set<std::string> known;
  for (const TaskInfo& task : tasks()) {
    const Sequence sequence = make_task(task.name, {.length = task.default_length, .seed = 4});
    if (sequence.shown.empty()) continue;
    known.insert(task.name);
    for (std::size_t t = 0; t < sequence.mask.size(); ++t) {
      CHECK_EQUAL(sequence.shown[t] >= 0, sequence.mask[t] != 0.0);
      if (sequence.shown[t] < 0) continue;
      CHECK(sequence.shown[t] <= static_cast<std::int64_t>(t));
      const auto at = static_cast<std::size_t>(sequence.shown[t] * sequence.width);
      if (sequence.target_kind == TargetKind::regress) {
        CHECK_EQUAL(sequence.input[at], sequence.target[t]);
        continue;
      }
      const std::string wanted = " " + std::to_string(static_cast<int>(sequence.target[t]));
      bool there = false;
      for (std::size_t j = 0; j < static_cast<std::size_t>(sequence.width); ++j)
        there = there || (sequence.input[at + j] == 1.0 && sequence.names[j].ends_with(wanted));
      CHECK_SAYS(there, task.name + " step " + std::to_string(t));
    }
  }
  CHECK(known == (std::set<std::string>{"associative-recall", "copy", "delay", "induction-heads", "mqar", "phone-book", "reverse",
                                        "rewritten-recall", "selective-copy"}));
}

TEST_CASE("a file is judged by its held-out windows, and by horizon, beside the last value and a linear predictor") {
  const Scratch scratch;
  std::string text = "v,w\n";
  constexpr int T = 400;
  Rng noise(1);
  for (int t = 0; t < T; ++t)
    text +=
        std::to_string(std::sin(0.3 * t) + 0.1 * noise.normal()) + "," + std::to_string(std::cos(0.11 * t) + 0.1 * noise.normal()) + "\n";
  LoadOptions load;
  load.standardise = false;
  RunRequest request;
  request.preset = presets().find("gru");
  request.sequence = load_sequence(scratch.file("waves.csv", text), load);
  const std::vector<double> x = request.sequence->input;
  EvaluationPlan plan{.lengths = {20}, .sequences = 50};
  plan.horizon = 4;
  const EvaluationTable table = evaluated(request, plan);
  CHECK_EQUAL(table.missing.size(), 0U);
  constexpr std::size_t learned = 320, L = 20;
  // 80 steps are held out: three windows of 20 and the step ahead of each, and of 23 as many.
  std::vector<double> last;
  for (std::size_t i = 0; i < 3; ++i) {
    double sum = 0.0;
    for (std::size_t t = learned + i * L; t < learned + (i + 1) * L; ++t)
      for (std::size_t j = 0; j < 2; ++j) sum += std::pow(x[2 * t + j] - x[2 * t + 2 + j], 2) / L;
    last.push_back(sum);
  }
  CHECK_EQUAL(row(table, "last value", 20).sequences, 3);
  CHECK_CLOSE(row(table, "last value", 20).metric.mean, mean_of(last), 1e-12);
  CHECK_CLOSE(row(table, "last value", 20).loss.mean, mean_of(last) / 2.0, 1e-12);
  for (std::size_t h = 1; h <= 4; ++h) {
    std::vector<double> held, errors, told;
    WindowOptions windows{.length = L, .ahead = static_cast<std::int64_t>(h), .standardise = false};
    const auto predict = least_squares(*window_examples(std::make_shared<const Sequence>(request.sequence), windows));
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t from = learned + i * 23;
      Sequence given;
      given.width = given.target_width = 2;
      given.target_kind = TargetKind::regress;
      given.names = {"v", "w"};
      std::vector<double> past(64, 0.0);
      std::copy_n(x.begin() + static_cast<std::ptrdiff_t>(2 * from), 2 * L, past.end() - 2 * L);
      const auto foretold = predict(past);
      given.input.assign(x.begin() + static_cast<std::ptrdiff_t>(2 * from), x.begin() + static_cast<std::ptrdiff_t>(2 * (from + L)));
      std::vector<double> y;
      for (std::size_t k = 0; k < h; ++k) {
        given.length = std::ssize(given.input) / 2;
        given.time.clear();
        for (std::int64_t t = 0; t < given.length; ++t) given.time.push_back(static_cast<double>(t));
        given.target.assign(given.input.size(), 0.0);
        given.mask.assign(given.time.size(), 1.0);
        y = outputs_of(request, given);
        y.erase(y.begin(), y.end() - 2);
        given.input.insert(given.input.end(), y.begin(), y.end());
      }
      const std::size_t truth = 2 * (from + L - 1 + h), seen = 2 * (from + L - 1);
      told.push_back(std::pow(foretold[0] - x[truth], 2) + std::pow(foretold[1] - x[truth + 1], 2));
      errors.push_back(std::pow(y[0] - x[truth], 2) + std::pow(y[1] - x[truth + 1], 2));
      held.push_back(std::pow(x[seen] - x[truth], 2) + std::pow(x[seen + 1] - x[truth + 1], 2));
    }
    const auto own = static_cast<std::int64_t>(h);
    CHECK_CLOSE(row(table, "gru", 20, ScoredBy::horizon, own).metric.mean, mean_of(errors), 1e-12);
    CHECK_CLOSE(row(table, "last value", 20, ScoredBy::horizon, own).metric.mean, mean_of(held), 1e-12);
    CHECK_CLOSE(row(table, "linear predictor", 20, ScoredBy::horizon, own).metric.mean, mean_of(told), 1e-8);
    CHECK(mean_of(told) < 0.5 * mean_of(held));
  }
}

TEST_CASE("a model that cannot be run at a length says why, and the others go on") {
  const RunRequest request = request_of("elman", "delay", {.length = 20, .set = {{"delay", "3"}}});
  // In its parallel form it takes all steps at once.
  const EvaluationTable table =
      evaluated(request, {.lengths = {20, 20'000}, .sequences = 1, .others = {"mamba --form scan --set width=64 --set state=64"}});
  CHECK(std::isfinite(row(table, "elman", 20'000).loss.mean) && std::isfinite(row(table, "mamba", 20).loss.mean));
  CHECK_EQUAL(table.missing.size(), 1U);
  CHECK(table.missing[0].model == "mamba" && table.missing[0].length == 20'000);
  CHECK_SAYS(table.missing[0].why.terminal_text().find("shorten the sequence") != std::string::npos, table.missing[0].why.terminal_text());
  const Trace trace = trace_of(table);
  CHECK(std::isnan(trace.find("evaluation/mamba/length/loss")->real->at(1)) && !trace.info.notes.empty());
}

TEST_CASE("a request that no model can be judged by is refused with a sentence") {
  const RunRequest good = request_of("elman", "adding", {.length = 20});
  CHECK_ERROR(evaluated(request_of("elman", "noise", {.length = 20}), {}), "has no target, so there is nothing to judge by");
  CHECK_ERROR(evaluated(good, {.others = {"elmn"}}), "elman");
  CHECK_ERROR(evaluated(good, {.others = {"elman --task copy"}}), "leave out its task");
  CHECK_ERROR(evaluated(good, {.others = {"lstm --form convolution"}}), "convolution");
  CHECK_ERROR(evaluated(request_of("elman", "copy", {.length = 50}), {.lengths = {50, 5}}), "10 symbols");
  RunRequest state = good;
  state.state = "state.npz";
  CHECK_ERROR(evaluated(state, {}), "begins from rest");
  const Scratch scratch;
  RunRequest file = good;
  file.sequence = load_sequence(scratch.file("few.csv", "v\n1\n2\n4\n3\n5\n1\n2\n7\n3\n1\n"));
  CHECK_ERROR(evaluated(file, {.lengths = {9}}), "choose a shorter window");
  std::stop_source stopped;
  stopped.request_stop();
  bool cancelled = false;
  try {
    evaluate(builtin_registry(), presets(), good, {}, {}, stopped.get_token());
  } catch (const Cancelled&) {
    cancelled = true;
  }
  CHECK(cancelled);
}

TEST_CASE("the trace and the CSV of an evaluation have every row of its table") {
  const RunRequest request = request_of("gru", "copy", {.length = 30, .set = {{"symbols", "4"}, {"alphabet", "3"}}});
  const EvaluationTable table = evaluated(request, {.lengths = {12, 30}, .sequences = 5, .others = {"lstm"}});
  const Trace trace = trace_of(table);
  CHECK(*trace.find("evaluation/length")->real == (std::vector<double>{12.0, 30.0}));
  std::map<std::tuple<std::string, std::int64_t, ScoredBy>, std::size_t> parts;
  for (const EvaluationRow& one : table.rows) {
    const std::size_t part = parts[{one.model, one.length, one.by}]++;
    const std::string key = "evaluation/" + one.model + "/" + std::string(to_string(one.by)) + "/";
    const auto at = [&](const std::string& name) {
      const TraceArray* array = trace.find(key + name);
      CHECK_SAYS(array && array->shape.size() == 2, key + name);
      return array->real->at(static_cast<std::size_t>((one.length == 30 ? array->shape[1] : 0)) + part);
    };
    CHECK(at("loss") == one.loss.mean && at("metric") == one.metric.mean && at("from") == static_cast<double>(one.from) &&
          at("sequences") == static_cast<double>(one.sequences));
    if (!std::isnan(one.loss.low)) CHECK(at("loss_low") == one.loss.low && at("metric_high") == one.metric.high);
  }
  const std::string csv = csv_of(table);
  CHECK_EQUAL(static_cast<std::size_t>(std::ranges::count(csv, '\n')), table.rows.size() + 1);
}
