// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/trainer.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <complex>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "array/stop.h"
#include "models/registry.h"
#include "one_processor.h"
#include "test.h"

using namespace reclab;

namespace {

/// A model that learns a task, and its trainer.
struct Learner {
  const Architecture& architecture;
  Hyper hyper;
  std::unique_ptr<Examples> examples;
  std::unique_ptr<Model> model;
  std::unique_ptr<Trainer> trainer;

  explicit Learner(const TrainingOptions& options, const std::string& id = "lstm", std::int64_t length = 20,
                   const std::string& task = "adding")
      : architecture(builtin_registry().find(id)), hyper(architecture.hyper), examples(task_examples(task, {.length = length, .seed = 3})) {
    hyper.set_text("width", "8", id);
    const Sequence one = examples->training(0, 0);
    const SequenceLoss loss(LossKind::task, one);
    model = std::make_unique<Model>(architecture, hyper,
                                    Network(architecture, hyper, {.input = one.width, .head = loss.outputs()}).initialise(1), cpu_backend(),
                                    DType::f64);
    trainer = std::make_unique<Trainer>(*model, *examples, options);
  }
  std::vector<double> numbers() const {
    std::vector<double> all;
    const Parameters weights = model->parameters();
    for (const auto& entry : weights.entries()) all.insert(all.end(), entry.values.begin(), entry.values.end());
    return all;
  }
  /// Everything that training so many steps makes.
  std::vector<double> after(int steps) {
    std::vector<double> all;
    for (int i = 0; i < steps; ++i) {
      const TrainingStep step = trainer->step();
      all.insert(all.end(), {step.loss, step.norm, step.clipped});
    }
    const Evaluation judged = trainer->evaluate();
    all.insert(all.end(), {judged.loss, judged.metric});
    const auto weights = numbers();
    all.insert(all.end(), weights.begin(), weights.end());
    return all;
  }
};

TrainingOptions small(std::int64_t batch = 6) {
  TrainingOptions options;
  options.batch = batch;
  options.rate.rate = 0.01;
  options.held_out = 12;
  return options;
}

std::vector<double> trained() { return Learner(small(32), "lstm", 50).after(6); }

}  // namespace

TEST_CASE("a judgement is of what is held out, by the task's metric, beside the best constant output") {
  Learner adding(small());
  const Evaluation before = adding.trainer->evaluate();
  double loss = 0.0, mean = 0.0, squares = 0.0;
  for (std::int64_t i = 0; i < 12; ++i) {
    const Sequence sequence = adding.examples->held_out(i);
    const SequenceLoss own(LossKind::task, sequence);
    Rollout rollout(*adding.model, Batch(sequence, own), {.record = false});
    CHECK(!rollout.forward({}, {}));
    loss += rollout.loss() / 12.0;
    mean += sequence.target.back() / 12.0;
    squares += sequence.target.back() * sequence.target.back() / 12.0;
  }
  CHECK_CLOSE(before.loss, loss, 1e-12);
  CHECK_EQUAL(adding.trainer->metric(), "squared error");
  CHECK_CLOSE(before.metric, 2.0 * before.loss, 1e-12);
  CHECK_CLOSE(adding.trainer->baseline().metric, squares - mean * mean, 1e-12);
  CHECK_CLOSE(adding.trainer->baseline().loss, (squares - mean * mean) / 2.0, 1e-12);
  CHECK_EQUAL(adding.trainer->held_out(), 12);

  Learner copy(small(), "gru", 30, "copy");
  CHECK_EQUAL(copy.trainer->metric(), "accuracy");
  const Evaluation judged = copy.trainer->evaluate();
  CHECK(judged.metric >= 0.0 && judged.metric <= 1.0);
  CHECK(copy.trainer->baseline().metric > 0.0 && copy.trainer->baseline().metric < 0.5);
  CHECK_SAYS(std::abs(copy.trainer->baseline().loss - std::log(8.0)) < 0.1, test::show(copy.trainer->baseline().loss));
}

namespace {

/// A target that is a sum of inputs of now and three steps ago, and, with `square`, of a product that no linear predictor finds.
class Filtered final : public Examples {
 public:
  explicit Filtered(double square) : square_(square) {}
  Sequence training(std::int64_t step, std::int64_t index) const override { return make(1 + 1000 * step + index); }
  Sequence held_out(std::int64_t index) const override { return make(-1 - index); }
  std::int64_t held_out_count() const override { return 0; }
  std::int64_t length() const override { return 50; }
  std::string text() const override { return "filtered"; }

 private:
  Sequence make(std::int64_t number) const {
    TaskOptions options{.length = 50, .seed = static_cast<std::uint64_t>(number)};
    Sequence sequence = make_task("noise", options);
    sequence.target_kind = TargetKind::regress;
    sequence.target_width = 1;
    for (std::size_t t = 0; t < 50; ++t) {
      const auto at = [&](std::size_t back) { return t < back ? 0.0 : sequence.input[t - back]; };
      sequence.target.push_back(0.5 + 0.75 * at(0) - 0.25 * at(3) + square_ * at(1) * at(2));
    }
    sequence.mask.assign(50, 1.0);
    return sequence;
  }
  double square_;
};

}  // namespace

TEST_CASE("beside a series' best constant stands a linear predictor, which finds what is linear and nothing else") {
  for (const double square : {0.0, 1.0}) {
    const Filtered examples(square);
    std::deque<Sequence> held;
    for (std::int64_t i = 0; i < 40; ++i) held.push_back(examples.held_out(i));
    const auto linear = linear_predictor(examples, held);
    CHECK(linear.has_value());
    if (square == 0.0) CHECK_SAYS(linear->metric < 1e-12, test::show(linear->metric));
    if (square == 1.0) CHECK_SAYS(linear->metric > 0.8 && linear->metric < 1.2, test::show(linear->metric));  // the product's variance is 1
    CHECK_EQUAL(linear->loss, linear->metric / 2.0);
    CHECK(best_constant(held).metric > 0.5);
  }
  // There is none for a target at one step alone, and for classes.
  CHECK(!Learner(small()).trainer->linear_predictor());
  CHECK(!Learner(small(), "lstm", 20, "parity").trainer->linear_predictor());
}

TEST_CASE("a batch's gradient is the mean of those of its sequences") {
  TrainingOptions options = small(6);
  options.optimiser.rule = "sgd";
  Learner together(options), start(options);
  together.trainer->step();
  const auto before = start.numbers(), after = together.numbers();
  std::vector<double> mean(before.size());
  for (std::int64_t b = 0; b < 6; ++b) {
    const Sequence sequence = start.examples->training(0, b);
    const SequenceLoss loss(LossKind::task, sequence);
    Rollout rollout(*start.model, Batch(sequence, loss), {.record = false});
    CHECK(!rollout.forward({}, {}));
    CHECK(!rollout.backward({}, {}));
    std::size_t at = 0;
    for (const auto& weight : start.model->weights())
      for (const double g : rollout.parameter_gradients().at(weight.name)) mean[at++] += g / 6.0;
  }
  for (std::size_t i = 0; i < mean.size(); ++i) CHECK_CLOSE((before[i] - after[i]) / options.rate.rate, mean[i], 1e-12);
}

TEST_CASE("clipping shortens the gradient to its norm, or cuts its entries") {
  TrainingOptions options = small();
  options.clip_norm = 0.05;
  Learner by_norm(options);
  const TrainingStep step = by_norm.trainer->step();
  CHECK(step.norm > 0.05);
  CHECK_CLOSE(step.clipped, 0.05 * step.norm / (step.norm + 1e-6), 1e-12);
  options.clip_norm = 1e3;
  Learner not_clipped(options);
  const TrainingStep free = not_clipped.trainer->step();
  CHECK_EQUAL(free.clipped, free.norm);
  CHECK_EQUAL(free.norm, step.norm);
  options.clip_norm = 0.0;
  options.clip_value = 0.003;
  options.optimiser.rule = "sgd";
  Learner by_value(options);
  const auto before = by_value.numbers();
  const TrainingStep cut = by_value.trainer->step();
  CHECK(cut.clipped < cut.norm);
  double largest = 0.0;
  const auto after = by_value.numbers();
  for (std::size_t i = 0; i < before.size(); ++i) largest = std::max(largest, std::abs(after[i] - before[i]) / options.rate.rate);
  CHECK_CLOSE(largest, 0.003, 1e-12);
}

TEST_CASE("frozen weights keep their bits, and take no part in the norm") {
  TrainingOptions options = small();
  options.frozen = {"0/weight_*", "head/bias"};
  Learner some(options);
  const Parameters before = some.model->parameters();
  some.trainer->watch_changes(true);
  for (int i = 0; i < 3; ++i) some.trainer->step();
  const Parameters after = some.model->parameters();
  for (std::size_t i = 0; i < before.entries().size(); ++i) {
    const std::string& name = before.entries()[i].name;
    const bool frozen = name.starts_with("0/weight_") || name == "head/bias";
    CHECK_SAYS((before.entries()[i].values == after.entries()[i].values) == frozen, name);
    CHECK_SAYS(std::isnan(some.trainer->changes()[i]) == frozen, name);
  }
  options.frozen = {"nothing"};
  CHECK_ERROR(Learner(options).trainer, "freeze = nothing is the name of no weights");
  options.frozen = {"*"};
  CHECK_ERROR(Learner(options).trainer, "leaves no weights");
}

TEST_CASE("changes are told in units of the weights") {
  TrainingOptions options = small();
  options.optimiser.rule = "sgd";
  Learner learner(options);
  const Parameters before = learner.model->parameters();
  learner.trainer->watch_changes(true);
  learner.trainer->step();
  const Parameters after = learner.model->parameters();
  for (std::size_t w = 0; w < before.entries().size(); ++w) {
    double change = 0.0, weight = 0.0;
    for (std::size_t i = 0; i < before.entries()[w].values.size(); ++i) {
      const double x = before.entries()[w].values[i], y = after.entries()[w].values[i];
      change += (y - x) * (y - x);
      weight += x * x;
    }
    CHECK_CLOSE(learner.trainer->changes()[w], std::sqrt(change / weight), 1e-12);
  }
}

TEST_CASE("truncated backpropagation of all steps is backpropagation, to the bit; of fewer it is not, and carries the state") {
  TrainingOptions options = small();
  const auto expected = Learner(options).after(4);
  for (const std::int64_t k : {20, 21, 1000}) {
    options.truncate = k;
    CHECK(Learner(options).after(4) == expected);
  }
  options.truncate = 7;
  Learner cut(options);
  CHECK(cut.after(4) != expected);
  // The target counts at the last step alone, so the weights change once a step.
  CHECK_EQUAL(cut.trainer->optimiser().steps(), 4);
  // Without changes of the weights the loss of all parts is that of the whole: the state is carried.
  CHECK_CLOSE(Learner(options).trainer->step().loss, expected[0], 1e-13);
}

namespace {

/// The steps [from, to) of a sequence, of which the target counts from step `counted` on, and its loss as a part of the whole one's.
Sequence part(const Sequence& whole, std::int64_t from, std::int64_t to, std::int64_t counted) {
  Sequence cut = whole;
  cut.length = to - from;
  const auto rows = [&](std::vector<double>& all, std::int64_t width) {
    all = std::vector<double>(all.begin() + from * width, all.begin() + to * width);
  };
  rows(cut.input, whole.width);
  rows(cut.time, 1);
  rows(cut.target, whole.target_width);
  rows(cut.mask, 1);
  for (std::int64_t t = from; t < std::min(counted, to); ++t) cut.mask[static_cast<std::size_t>(t - from)] = 0.0;
  return cut;
}

/// One batch of one sequence by BPTT(k2; k1) and plain descent, each part a rollout of its own.
double plain_truncated(Model& model, const Sequence& whole, std::int64_t k2, std::int64_t k1, double rate) {
  std::map<std::string, std::vector<std::complex<double>>> state;
  std::int64_t at = 0;  // the step that the state stands before
  double sum = 0.0, loss = 0.0;
  for (const double m : whole.mask) sum += m;
  for (std::int64_t learned = 0; learned < whole.length; learned += k1) {
    const std::int64_t end = std::min(learned + k1, whole.length), next = std::max<std::int64_t>(0, learned + 2 * k1 - k2);
    const Sequence now = part(whole, at, end, learned);
    const SequenceLoss task(LossKind::task, now);
    Rollout rollout(model, Batch(now, task), {.record = false});
    rollout.set_initial(state);
    CHECK(!rollout.forward({}, {}));
    CHECK(!rollout.backward({}, {}));
    double counted = 0.0;
    for (const double m : now.mask) counted += m;
    loss += rollout.loss() * counted / sum;
    if (next > at && end < whole.length) {
      const Sequence between = part(whole, at, next, next);
      const SequenceLoss none(LossKind::task, between);
      Rollout carrier(model, Batch(between, none), {.record = false});
      carrier.set_initial(state);
      CHECK(!carrier.forward({}, {}));
      state = carrier.final_states();
      at = next;
    }
    const Parameters before = model.parameters();
    for (const auto& entry : before.entries()) {
      std::vector<double> values = entry.values;
      const auto& gradient = rollout.parameter_gradients().at(entry.name);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] -= rate * gradient[i] * counted / sum;
      model.set(entry.name, values);
    }
  }
  return loss;
}

}  // namespace

TEST_CASE("truncated backpropagation that goes further back than the weights change is a plain loop over its parts") {
  TrainingOptions options = small(1);
  options.optimiser.rule = "sgd";
  options.rate.rate = 0.5;
  options.held_out = 1;
  std::vector<std::vector<double>> seen;
  for (const auto& [k2, k1] : std::vector<std::pair<std::int64_t, std::int64_t>>{{7, 3}, {6, 2}, {5, 1}, {19, 6}, {4, 4}, {0, 4}}) {
    options.truncate = k2;
    options.advance = k1;
    Learner trained(options, "lstm", 20, "parity"), plain(options, "lstm", 20, "parity");
    for (int step = 0; step < 2; ++step) {
      const double loss = plain_truncated(*plain.model, plain.examples->training(step, 0), k2 > 0 ? k2 : 20, k1, options.rate.rate);
      CHECK_CLOSE(trained.trainer->step().loss, loss, 1e-12);
    }
    const auto expected = plain.numbers(), actual = trained.numbers();
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK_CLOSE(actual[i], expected[i], 1e-11);
    CHECK_EQUAL(trained.trainer->optimiser().steps(), 2 * ((20 + k1 - 1) / k1));
    for (const auto& other : seen) CHECK(other != actual);
    seen.push_back(actual);
  }
}

TEST_CASE("weights that change as often as the gradient is cut are truncated backpropagation as it is without saying so, to the bit") {
  TrainingOptions options = small();
  for (const std::int64_t k : {7, 20, 33}) {
    options.truncate = k;
    options.advance = 0;
    const auto expected = Learner(options).after(3);
    options.advance = k;
    CHECK(Learner(options).after(3) == expected);
  }
  options.truncate = 4;
  options.advance = 5;
  CHECK_ERROR(Learner(options).trainer, "advance = 5 is more steps than truncate = 4");
}

TEST_CASE("a step that is stopped is one that was never begun, whenever the stop comes") {
  for (const std::int64_t truncate : {0, 40}) {
    TrainingOptions options = small();
    options.truncate = truncate;
    Learner never(options, "lstm", 400, "parity"), often(options, "lstm", 400, "parity");
    const Parameters start = often.model->parameters();
    const auto memory = often.trainer->optimiser().memory();
    const auto first = never.numbers();
    never.trainer->step();
    const auto second = never.numbers();
    CHECK((never.trainer->optimiser().steps() > 1) == (truncate > 0));
    int left = 0;
    for (int i = 0; i < 100; ++i) {
      std::stop_source source;
      const StopScope outer(source.get_token());
      std::atomic<bool> runs = false;
      std::jthread stopper([&] {
        runs = true;
        const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(30 * i);
        while (std::chrono::steady_clock::now() < until) {
        }
        source.request_stop();
      });
      while (!runs) std::this_thread::yield();
      bool stopped = false;
      try {
        often.trainer->step(source.get_token());
      } catch (const Cancelled&) {
        stopped = true;
      }
      stopper.join();
      const StopScope inner{std::stop_token()};
      CHECK_SAYS(often.numbers() == (stopped ? first : second), std::to_string(i) + (stopped ? ": stopped" : ": whole"));
      if (stopped) CHECK(often.trainer->optimiser().steps() == 0 && often.trainer->optimiser().memory() == memory);
      if (!stopped) {
        often.trainer->restore(0, 0, memory);
        for (const auto& entry : start.entries()) often.model->set(entry.name, entry.values);
      }
      left += stopped;
    }
    CHECK(left > 0);
  }
}

TEST_CASE("a step can be undone, and what follows has the bits of one that was never made") {
  for (const char* rule : {"adam", "sgd"}) {
    for (const std::int64_t truncate : {0, 7}) {
      TrainingOptions options = small();
      options.optimiser.rule = rule;
      options.truncate = truncate;
      options.frozen = {"head/bias"};
      Learner straight(options, "lstm", 20, "parity"), undone(options, "lstm", 20, "parity");
      straight.trainer->step();
      undone.trainer->step();
      undone.trainer->step({}, true);
      const auto after = undone.numbers();
      undone.trainer->undo();
      CHECK_EQUAL(undone.trainer->steps(), 1);
      CHECK(undone.numbers() == straight.numbers() && undone.numbers() != after);
      CHECK(undone.trainer->optimiser().memory() == straight.trainer->optimiser().memory());
      CHECK_EQUAL(undone.trainer->optimiser().steps(), straight.trainer->optimiser().steps());
      CHECK(undone.after(2) == straight.after(2));
    }
  }
}

TEST_CASE("truncated training that diverges in a later part leaves weights and optimiser as they were before the step") {
  // Each entry changes by the rate, or by ten times that, whatever its gradient: the first part changes the weights, and sums of what the
  // second multiplies with them are too large.
  for (const auto& [rule, rate] : {std::pair("adam", 1.7e308), std::pair("rmsprop", 1.7e307)}) {
    TrainingOptions options = small();
    options.optimiser.rule = rule;
    options.rate.rate = rate;
    Learner(options, "elman", 20, "parity").trainer->step();  // one part diverges nowhere
    options.truncate = 5;
    Learner learner(options, "elman", 20, "parity");
    const auto before = learner.numbers();
    const auto memory = learner.trainer->optimiser().memory();
    CHECK_ERROR(learner.trainer->step(), "non-finite");
    CHECK(learner.trainer->whole());
    CHECK(learner.numbers() == before && learner.trainer->optimiser().memory() == memory);
    CHECK_EQUAL(learner.trainer->optimiser().steps(), 0);
    CHECK_EQUAL(learner.trainer->steps(), 0);
  }
}

TEST_CASE("a star in a name stands for any letters, none too, and many of them take no time") {
  const auto frozen = [](const std::string& pattern) {
    TrainingOptions options = small();
    options.frozen = {pattern};
    Learner learner(options);
    learner.trainer->watch_changes(true);
    learner.trainer->step();
    std::vector<std::string> names;
    for (std::size_t i = 0; i < learner.model->weights().size(); ++i)
      if (std::isnan(learner.trainer->changes()[i])) names.push_back(learner.model->weights()[i].name);
    return names;
  };
  using Names = std::vector<std::string>;
  CHECK((frozen("0/weight_hh") == Names{"0/weight_hh"}));
  CHECK((frozen("*hh") == Names{"0/weight_hh"} || frozen("*hh") == Names{"0/weight_hh", "0/bias_hh"}));
  CHECK(frozen("0/*eight*_*hh*") == frozen("0/weight_hh"));
  CHECK(frozen("h**d/b*") == Names{"head/bias"});
  CHECK(frozen("*****************************************************/weight_hh") == frozen("0/weight_hh"));
  TrainingOptions options = small();
  for (const std::string pattern :
       {"************************************************************z", "0/weight_h", "weight_hh", "*0/weight_hhh*", "0/weight_hh*x"}) {
    options.frozen = {pattern};
    CHECK_ERROR(Learner(options).trainer, "is the name of no weights");
  }
}

TEST_CASE("a step that is not to be stopped is whole, whatever its thread is asked for") {
  TrainingOptions options = small();
  options.truncate = 7;
  Learner straight(options), asked(options);
  straight.after(2);
  std::stop_source source;
  source.request_stop();
  for (int i = 0; i < 2; ++i) {
    const StopScope outer(source.get_token());
    asked.trainer->step();
    asked.trainer->evaluate();
  }
  CHECK(asked.after(0) == straight.after(0));
}

TEST_CASE("a model whose state grows is refused where it cannot be truncated") {
  TrainingOptions options = small();
  options.truncate = 5;
  CHECK_ERROR(Learner(options, "transformer").trainer->step(), "cannot be continued");
  options.advance = 2;
  CHECK_ERROR(Learner(options, "transformer", 20, "parity").trainer->step(), "cannot be continued");
}

TEST_CASE("one thread and several train the same weights to the bit") {
  const std::vector<double> here = trained();
  for (const int threads : {1, 3, 64}) CHECK_SAYS(test::on_threads(threads, "writes what was trained") == here, std::to_string(threads));
}

TEST_CASE("writes what was trained") { test::write_numbers(trained); }

TEST_CASE("what is judged in parts at the same time has the same bits every time") {
  TrainingOptions options = small(64);
  options.held_out = 64;
  Learner learner(options);
  const Evaluation first = learner.trainer->evaluate();
  double metric = 0.0;  // in the order of the sequences
  for (std::int64_t i = 0; i < 64; ++i) {
    const Sequence sequence = learner.examples->held_out(i);
    const SequenceLoss own(LossKind::task, sequence);
    Rollout rollout(*learner.model, Batch(sequence, own), {.record = false});
    CHECK(!rollout.forward({}, {}));
    const auto output =
        to_double(learner.model->backend(), DType::f64, rollout.network().graph().value(rollout.network().output()), sequence.length);
    metric += std::pow(output.back() - sequence.target.back(), 2);
  }
  CHECK_EQUAL(first.metric, metric / 64.0);
  for (int again = 0; again < 300; ++again) {
    const Evaluation judged = learner.trainer->evaluate();
    CHECK_EQUAL(judged.metric, first.metric);
    CHECK_EQUAL(judged.loss, first.loss);
  }
}

TEST_CASE("training that diverges says at which step and in which array, and changes nothing more") {
  TrainingOptions options = small();
  options.optimiser.rule = "sgd";
  options.rate.rate = 1e200;
  Learner learner(options);
  std::vector<double> before;
  std::string said;
  try {
    for (int i = 0; i < 100; ++i) {
      before = learner.numbers();
      learner.trainer->step();
    }
  } catch (const TrainingDiverged& diverged) {
    said = diverged.what();
    CHECK_EQUAL(diverged.step, learner.trainer->steps() + 1);
    CHECK(!diverged.array.empty());
  }
  CHECK_SAYS(said.find("--lr") != std::string::npos && said.find("non-finite") != std::string::npos, said);
  CHECK(learner.numbers() == before);
}

TEST_CASE("an LSTM learns to add") {
  Learner learner(small(16));
  for (int i = 0; i < 400; ++i) learner.trainer->step();
  const Evaluation after = learner.trainer->evaluate();
  CHECK_SAYS(after.metric < 0.5 * learner.trainer->baseline().metric,
             test::show(after.metric) + ", baseline " + test::show(learner.trainer->baseline().metric));
}
