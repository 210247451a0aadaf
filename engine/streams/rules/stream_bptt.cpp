// SPDX-License-Identifier: GPL-3.0-or-later
// BPTT(k2; k1) (R. J. Williams, J. Peng, Neural Computation 2(4), 1990) without an end: after every k1 steps the gradient of their loss
// goes back over k2. Where k1 < k2 windows overlap, and the state where one begins is the one that the weights before the change came to.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "array/error.h"
#include "execution/batch_rollout.h"
#include "execution/step_map.h"
#include "learning/learning_rule.h"
#include "streams/rules/stream_rule.h"

namespace reclab {
namespace {

/// The mean over the steps of a window that count, of which the first are not among those.
class WindowLoss final : public Loss {
 public:
  explicit WindowLoss(const StreamForm& form) : form_(form) {}
  void set(const StreamBlock* block, std::int64_t from, std::int64_t steps, std::int64_t passed) {
    block_ = block;
    from_ = from;
    steps_ = steps;
    passed_ = passed;
    counted_ = std::count(block->counts.begin() + from, block->counts.begin() + from + steps, true);
    seen_.clear();
  }
  bool counts() const { return counted_ > 0; }
  const std::vector<double>& outputs_seen() const { return seen_; }

  std::int64_t outputs() const override { return form_.outputs(); }
  LossForm form() const override {
    return {form_.target_kind == TargetKind::classify ? LossTerm::cross_entropy : LossTerm::squared_error, true};
  }
  void rows(std::int64_t first, std::span<double> weights, std::span<double> targets) const override {
    const std::int64_t width = form_.target_width;
    for (std::int64_t i = 0; i < std::ssize(weights); ++i) {
      const std::int64_t t = first + i - passed_;
      if (t < 0 || t >= steps_ || !block_->counts[static_cast<std::size_t>(from_ + t)]) continue;
      weights[static_cast<std::size_t>(i)] = 1.0 / static_cast<double>(counted_);
      std::copy_n(block_->target.begin() + (from_ + t) * width, width, targets.begin() + i * width);
    }
  }
  bool sees_outputs() const override { return true; }
  void see(std::int64_t, std::int64_t, std::int64_t, std::span<const double> output) const override {
    seen_.insert(seen_.end(), output.begin(), output.end());
  }

 private:
  const StreamForm& form_;
  const StreamBlock* block_ = nullptr;
  std::int64_t from_ = 0, steps_ = 0, passed_ = 0, counted_ = 0;
  mutable std::vector<double> seen_;
};

class StreamBptt final : public StreamRule {
 public:
  explicit StreamBptt(const StreamRuleSetup& setup)
      : model_(setup.model),
        form_(setup.form),
        truncate_(setup.options.truncate),
        advance_(setup.options.advance),
        reset_(setup.reset),
        loss_(form_) {
    const StepMap step(model_, form_.width(), form_.outputs());
    for (const StepMap::Part& part : step.parts()) sizes_[part.name] = part.entries;
    loss_.set(&none_, 0, 0, 0);
    rollout_ = made(truncate_);
  }

  bool take(const StreamBlock& block, std::int64_t from, std::int64_t steps, std::span<double> outputs, bool learn) override {
    const std::int64_t width = form_.width(), passed = std::ssize(past_) / width;
    const bool apart = advance_ == truncate_;  // windows do not overlap
    window_.input = past_;
    window_.input.insert(window_.input.end(), block.input.begin() + from * width, block.input.begin() + (from + steps) * width);
    window_.length = passed + steps;
    window_.time.resize(static_cast<std::size_t>(window_.length));
    std::iota(window_.time.begin(), window_.time.end(), 0.0);
    window_.mask.assign(static_cast<std::size_t>(window_.length), 1.0);
    loss_.set(&block, from, steps, passed);
    learn = learn && loss_.counts();
    // Padding would change the final state, which the next window begins with.
    std::unique_ptr<BatchRollout> shorter;
    if (apart && steps < truncate_) shorter = made(steps);
    BatchRollout& rollout = shorter ? *shorter : *rollout_;
    rollout.set_batch(batch());
    if (running_ && !shorter && !reset_) {
      rollout.continue_states();
    } else {
      if (running_ && !reset_) carried_ = rollout_->final_states();
      rollout.reset_states();
      if (!reset_ && !carried_.empty()) rollout.set_initial(carried_);
    }
    run(rollout, learn);
    std::copy(loss_.outputs_seen().begin() + passed * form_.outputs(), loss_.outputs_seen().begin() + window_.length * form_.outputs(),
              outputs.begin());
    if (learn)
      if (const auto bad = rollout.backward({}))
        throw TrainingDiverged(block.first + from, sentence(*bad) + " on the way back", bad->array);
    gradients_.clear();
    if (shorter && learn)  // they outlive the rollout
      for (const DeviceArray& one : shorter->device_gradients()) {
        gradients_.emplace_back(model_.backend(), model_.real(), one.entries());
        model_.backend().copy(gradients_.back().data(), one.data(), one.bytes());
      }
    if (apart) {
      running_ = !shorter;
      if (shorter) carried_ = shorter->final_states();
      return learn;
    }
    past_ = window_.input;
    const std::int64_t dropped = std::max<std::int64_t>(0, window_.length - (truncate_ - advance_));
    if (dropped > 0 && !reset_) carry(dropped);
    past_.erase(past_.begin(), past_.begin() + dropped * width);
    return learn;
  }

  std::span<const DeviceArray> gradients() const override {
    return gradients_.empty() ? rollout_->device_gradients() : std::span<const DeviceArray>(gradients_);
  }

  void keep(StreamState& state) override {
    if (running_ && !state.reads()) carried_ = rollout_->final_states();
    state.any("past", past_);
    if (std::ssize(past_) % form_.width() != 0 || std::ssize(past_) > (truncate_ - advance_) * form_.width())
      state.refuse("past", "has another number of steps");
    std::int64_t has = !carried_.empty();
    state.whole("has_state", has, 0, 1);
    if (!has) return;
    if (state.reads()) carried_.assign(1, {});
    for (const auto& [name, entries] : sizes_) {
      std::vector<double> parts;
      for (const auto& z : carried_[0][name]) parts.insert(parts.end(), {z.real(), z.imag()});
      state.any(name, parts);
      if (!state.reads()) continue;
      if (parts.size() != entries && parts.size() != 2 * entries) state.refuse(name, "is of another size");
      auto& values = carried_[0][name];
      for (std::size_t i = 0; i + 1 < parts.size(); i += 2) values.emplace_back(parts[i], parts[i + 1]);
    }
    running_ = running_ && !state.reads();
  }

  std::int64_t bytes() const override {
    std::int64_t total = rollout_->bytes();
    for (const auto& [steps, carrier] : carriers_) total += carrier->bytes();
    return total;
  }

 private:
  Batch batch() { return Batch(window_, loss_); }

  std::unique_ptr<BatchRollout> made(std::int64_t steps) {
    Sequence longest;
    longest.name = "stream";
    longest.length = steps;
    longest.width = form_.width();
    longest.names = form_.names;
    longest.input.assign(static_cast<std::size_t>(steps * longest.width), 0.0);
    longest.time.resize(static_cast<std::size_t>(steps));
    std::iota(longest.time.begin(), longest.time.end(), 0.0);
    longest.mask.assign(static_cast<std::size_t>(steps), 1.0);
    std::swap(longest, window_);
    auto rollout = std::make_unique<BatchRollout>(model_, batch(), Form::sequential);
    std::swap(longest, window_);
    if (window_.names.empty()) window_ = longest;
    return rollout;
  }

  void run(BatchRollout& rollout, bool backward_follows) const {
    if (const auto bad = rollout.forward({}, backward_follows)) throw TrainingDiverged(0, sentence(*bad), bad->array);
  }

  /// Takes the state over the first steps of the window.
  void carry(std::int64_t steps) {
    auto& carrier = carriers_[steps];
    if (!carrier) carrier = made(steps);
    window_.length = steps;
    window_.input.resize(static_cast<std::size_t>(steps * form_.width()));
    window_.time.resize(static_cast<std::size_t>(steps));
    window_.mask.resize(static_cast<std::size_t>(steps));
    loss_.set(&none_, 0, 0, 0);
    carrier->set_batch(batch());
    carrier->reset_states();
    if (!carried_.empty()) carrier->set_initial(carried_);
    run(*carrier, false);
    carried_ = carrier->final_states();
  }

  Model& model_;
  const StreamForm form_;
  std::int64_t truncate_, advance_;
  bool reset_, running_ = false;  // running_: the state is where rollout_ ended, and not yet in carried_
  StreamBlock none_;
  WindowLoss loss_;
  Sequence window_;
  std::vector<double> past_;  // the inputs of the window's first steps, which were learned from before
  std::unique_ptr<BatchRollout> rollout_;
  std::map<std::int64_t, std::unique_ptr<BatchRollout>> carriers_;  // by their steps
  BatchRollout::States carried_;
  std::map<std::string, std::size_t> sizes_;  // numbers of each state
  std::vector<DeviceArray> gradients_;
};

}  // namespace

std::unique_ptr<StreamRule> stream_bptt(const StreamRuleSetup& setup) { return std::make_unique<StreamBptt>(setup); }

void StreamBlock::clear(std::int64_t at) {
  first = at;
  steps = 0;
  input.clear();
  target.clear();
  regimes.clear();
  counts.clear();
}

void StreamBlock::add(const StreamStep& step) {
  ++steps;
  input.insert(input.end(), step.input.begin(), step.input.end());
  target.insert(target.end(), step.target.begin(), step.target.end());
  regimes.push_back(step.regime);
  counts.push_back(step.counts);
}

std::unique_ptr<StreamRule> stream_rule(const StreamRuleSetup& setup) {
  return learning_rule(setup.options.rule).online ? stream_online(setup) : stream_bptt(setup);
}

}  // namespace reclab
