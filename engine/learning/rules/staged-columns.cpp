// SPDX-License-Identifier: GPL-3.0-or-later
// Columns that are learned in stages (K. Javed, H. Shah, R. S. Sutton, M. White, JMLR 24, 2023, section 4): each stage of so many steps of
// training trains the columns of one layer, by the influence of their own weights, and the read-out of all columns so far. Then they stay
// as they are, and the next layer, which sees them, is trained; until its turn its columns are not read.
#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "array/host.h"
#include "learning/losses.h"
#include "learning/online/sparse_influence.h"
#include "learning/structure/step_layers.h"

namespace reclab::rules_by_name {
LearningRuleInfo staged_columns();
namespace {

constexpr const char* title = "Columnar-constructive learning in stages";

class StagedColumns final : public LearningRule {
 public:
  explicit StagedColumns(const LearningSetup& setup)
      : model_(setup.model), options_(setup.options), length_(setup.length), examples_{setup.examples.front()} {
    if (options_.stage_steps < 1)
      throw Error("stage_steps is out of range: choose 1 or more.",
                  {.parameter = "stage_steps", .value = std::to_string(options_.stage_steps), .range = "1 or more"});
    const OnlineSetup online{model_, options_, examples_.front().width, SequenceLoss(LossKind::task, examples_.front()).outputs()};
    read_out_ = linear_read_out(online, title, "staged-columns");
    layers_ = step_layers(online);
    std::set<int> read;
    for (const std::size_t entry : read_out_.read) read.insert(layers_.of_state[entry]);
    const std::set<int> all(layers_.of_state.begin(), layers_.of_state.end());
    if (read != all)
      throw Error(std::string(title) + " has a read-out that sees the columns of every stage, and that of " + model_.architecture().id +
                      " sees those of the last alone: choose one layer, or another rule.",
                  {.model = model_.architecture().id, .parameter = "rule", .value = "staged-columns"});
    pattern_ = step_pattern(online);
    require_blocks(layers_, pattern_, online, "staged-columns");
    stages_.assign(read.begin(), read.end());
    std::size_t at = 0;
    for (const Model::Weight& weight : model_.weights()) {
      const auto entries = static_cast<std::size_t>(weight.entries());
      of_weight_.push_back(*std::min_element(layers_.of_weight.begin() + static_cast<std::ptrdiff_t>(at),
                                             layers_.of_weight.begin() + static_cast<std::ptrdiff_t>(at + entries)));
      at += entries;
      gradients_.emplace_back(model_.backend(), model_.real(), weight.entries());
      kept_.emplace_back(model_.backend(), model_.real(), weight.entries());
    }
    enter(0);
  }

  void begin(const std::deque<Sequence>& batch, std::int64_t number) override {
    enter(static_cast<std::size_t>(std::min<std::int64_t>((number - 1) / options_.stage_steps, std::ssize(stages_) - 1)));
    if (number == 1) read_no_later();
    for (std::size_t i = 0; i < kept_.size(); ++i)
      if (!learns(i)) model_.backend().copy(kept_[i].data(), model_.weights()[i].values.data(), kept_[i].bytes());
    rule_->begin(batch, number);
  }
  bool left() const override { return rule_->left(); }

  Part learn(std::stop_token stop) override {
    const Part part = rule_->learn(std::move(stop));
    if (!part.counts) return part;
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      const DeviceArray& whole = rule_->gradients()[i];
      if (!learns(i)) continue;  // they are 0 since the stage began
      model_.backend().copy(gradients_[i].data(), whole.data(), whole.bytes());
      if (i != read_out_.weight) continue;
      std::vector<double> values = to_double(model_.backend(), model_.real(), whole.data(), whole.entries());
      clear_later(values);
      const auto narrow = narrowed(model_.real(), values);
      model_.backend().upload(gradients_[i].data(), narrow.data(), narrow.size());
    }
    return part;
  }
  std::span<const DeviceArray> gradients() const override { return gradients_; }

  /// An optimiser moves weights also without a gradient.
  void changed() override {
    rule_->changed();
    model_.update([&](std::size_t i, const Model::Weight& weight) {
      if (!learns(i)) model_.backend().copy(weight.values.data(), kept_[i].data(), kept_[i].bytes());
    });
  }

  bool exact() const override { return stages_.size() == 1 && rule_->exact(); }
  std::int64_t parts() const override { return rule_->parts(); }
  std::int64_t bytes() const override {
    std::size_t total = 0;
    for (const auto* arrays : {&gradients_, &kept_})
      for (const DeviceArray& array : *arrays) total += array.bytes();
    return static_cast<std::int64_t>(total) + rule_->bytes();
  }

 private:
  bool learns(std::size_t weight) const { return of_weight_[weight] == StepLayers::none || of_weight_[weight] == stages_[stage_]; }

  void enter(std::size_t stage) {
    if (rule_ && stage == stage_) return;
    stage_ = stage;
    for (const DeviceArray& array : gradients_) model_.backend().zero(array.data(), array.bytes());
    rule_ = online_rule(staged_columns(), {model_, options_, length_, examples_}, [this](const OnlineSetup&) { return method(); });
  }
  /// What the weights of the stage reach in their own layer.
  OnlineMethod method() const {
    const StepPattern own = layers_.within(pattern_, stages_[stage_]);
    const BitMatrix kept = reached_within(own, std::numeric_limits<std::int64_t>::max()).within;
    const auto plan = std::make_shared<const SparsePlan>(pattern_, kept, own.jacobian);
    return {.influence = [plan] { return std::make_unique<SparseInfluence>(plan); },
            .numbers = plan->numbers(),
            .exact = kept == reached_within(pattern_, std::numeric_limits<std::int64_t>::max()).within};
  }

  /// Of the read-out the columns of later stages become 0.
  void clear_later(std::vector<double>& of_read_out) const {
    const std::size_t columns = read_out_.read.size();
    for (std::size_t i = 0; i < of_read_out.size(); ++i)
      if (layers_.of_state[read_out_.read[i % columns]] > stages_[stage_]) of_read_out[i] = 0.0;
  }
  void read_no_later() {
    const Model::Weight& weight = model_.weights()[read_out_.weight];
    std::vector<double> values = to_double(model_.backend(), model_.real(), weight.values.data(), weight.entries());
    clear_later(values);
    model_.set(weight.name, values);
  }

  Model& model_;
  TrainingOptions options_;
  std::int64_t length_;
  std::deque<Sequence> examples_;  // one like those that it learns from
  StepLayers layers_;
  StepPattern pattern_;
  LinearReadOut read_out_;
  std::vector<int> stages_;     // their layers, in the order of training
  std::vector<int> of_weight_;  // of each of the model's
  std::size_t stage_ = 0;
  std::unique_ptr<LearningRule> rule_;         // of the stage
  std::vector<DeviceArray> gradients_, kept_;  // kept_: weights that stay, as they were before the batch
};

}  // namespace

LearningRuleInfo staged_columns() {
  return {.title = title,
          .year = 2023,
          .name = "staged columns",
          .gradient = GradientKind::biased,
          .local = true,
          .sparse = true,
          .memory = "|θ| of one stage",
          .time = "|θ| of one stage beside a few products of the step's Jacobian",
          .memory_power = 2,
          .time_power = 2,
          .source = "K. Javed, H. Shah, R. S. Sutton, M. White, JMLR 24, 2023, section 4",
          .idea =
              "The columns of the first layer learn, then stay as they are, and the next layer learns, which sees what they found; the "
              "read-out "
              "learns all the time. Each stage has its true gradient at the cost of its own weights, and no stage can change what "
              "those before it have found.",
          .make = [](const LearningSetup& setup) -> std::unique_ptr<LearningRule> { return std::make_unique<StagedColumns>(setup); }};
}

}  // namespace reclab::rules_by_name
