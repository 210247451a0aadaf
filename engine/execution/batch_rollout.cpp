// SPDX-License-Identifier: GPL-3.0-or-later
#include "execution/batch_rollout.h"

#include <algorithm>
#include <string>

#include "array/cpu/processor/threads.h"
#include "array/demand.h"
#include "array/error.h"

namespace reclab {
namespace {

std::int64_t parts_of(const Model& model, std::int64_t size) {
  if (model.backend().device() != Device::cpu) return 1;
  std::int64_t weights = 0;
  for (const auto& weight : model.weights()) weights += weight.values.entries();
  return std::max<std::int64_t>(1, size / BatchRollout::sequences_of_part(weights));
}

}  // namespace

BatchRollout::BatchRollout(const Model& model, const Batch& batch, Form form, OdeGradient ode)
    : model_(model), size_(batch.size()), count_(parts_of(model, batch.size())) {
  const Rollout::Options options{.form = form, .record = false, .gradients = GradientsOn::device, .ode = ode};
  for (std::int64_t i = 0; i < count_; ++i) parts_.push_back(std::make_unique<Rollout>(model, part_of(batch, i), options));
}

Batch BatchRollout::part_of(const Batch& batch, std::int64_t part) const {
  const auto at = [&](std::int64_t i) { return batch.examples().begin() + size_ * i / count_; };
  return Batch(std::vector<Example>(at(part), at(part + 1)));
}

void BatchRollout::set_batch(const Batch& batch) {
  if (batch.size() != size_)
    throw Error("A batch with a number of sequences of " + std::to_string(batch.size()) + " was given to a rollout made for " +
                    std::to_string(size_) + ": build another rollout of the model.",
                {.value = std::to_string(batch.size()), .range = std::to_string(size_)});
  for (std::int64_t i = 0; i < count_; ++i) parts_[static_cast<std::size_t>(i)]->set_batch(part_of(batch, i));
}

void BatchRollout::reset_states() {
  for (const auto& part : parts_) part->reset_states();
}
void BatchRollout::continue_states() {
  for (const auto& part : parts_) part->continue_states();
}

void BatchRollout::set_initial(const States& states) {
  RECLAB_DEMAND(states.empty() || states.size() == parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i]->set_initial(states.empty() ? States::value_type{} : states[i]);
}
BatchRollout::States BatchRollout::final_states() const {
  States states;
  for (const auto& part : parts_) states.push_back(part->final_states());
  return states;
}

template <class F>
std::vector<std::optional<Divergence>> BatchRollout::each(const F& pass) {
  std::vector<std::optional<Divergence>> found(parts_.size());
  cpu::parallel(count_, [&](std::int64_t i) { found[static_cast<std::size_t>(i)] = pass(*parts_[static_cast<std::size_t>(i)]); });
  return found;
}

std::optional<Divergence> BatchRollout::forward(std::stop_token stop, bool backward_follows) {
  std::optional<Divergence> first;
  for (auto& bad : each([&](Rollout& part) { return part.forward({}, stop, backward_follows); }))
    if (bad && (!first || bad->good < first->good)) first = std::move(bad);
  return first;
}

double BatchRollout::loss() const {
  double sum = 0.0;
  for (const auto& part : parts_) sum += part->loss();
  return sum;
}

double BatchRollout::gate_penalty() const {
  double sum = 0.0;
  for (const auto& part : parts_) sum += part->gate_penalty();
  return sum;
}

std::int64_t BatchRollout::loss_step() const {
  std::int64_t first = -1;
  for (const auto& part : parts_)
    if (part->loss_step() >= 0 && (first < 0 || part->loss_step() < first)) first = part->loss_step();
  return first;
}

std::optional<Divergence> BatchRollout::backward(std::stop_token stop) {
  std::optional<Divergence> last;
  for (auto& bad : each([&](Rollout& part) { return part.backward({}, stop); }))
    if (bad && (!last || bad->step > last->step)) last = std::move(bad);
  const auto totals = device_gradients();
  for (std::size_t part = 1; part < parts_.size(); ++part)
    for (std::size_t i = 0; i < totals.size(); ++i)
      model_.backend().add_scaled(model_.real(), totals[i].entries(), 0, parts_[part]->device_gradients()[i].data(), totals[i].data(),
                                  true);
  return last;
}

std::int64_t BatchRollout::bytes() const {
  std::int64_t total = 0;
  for (const auto& part : parts_) total += part->bytes();
  return total - (count_ - 1) * model_.bytes();
}

}  // namespace reclab
