// SPDX-License-Identifier: GPL-3.0-or-later
#include "execution/model.h"

#include <algorithm>

#include "array/demand.h"
#include "array/error.h"
#include "array/host.h"
#include "array/stop.h"

namespace reclab {

Model::Model(const Architecture& architecture, const Hyper& hyper, const Parameters& parameters, Backend& backend, DType real)
    : architecture_(architecture), hyper_(hyper), backend_(backend), real_(real) {
  weights_.reserve(parameters.entries().size());
  for (const auto& entry : parameters.entries())
    weights_.push_back({entry.name, entry.text, entry.shape, DeviceArray(backend, real, count(entry.shape))});
  set(parameters);
  changes_ = 0;
}

void Model::set(const Parameters& parameters) {
  RECLAB_DEMAND(parameters.entries().size() == weights_.size());
  ++changes_;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const Weight& weight = weights_[i];
    const std::vector<double>& all = parameters.entries()[i].values;
    RECLAB_DEMAND(std::ssize(all) == weight.entries());
    check_stop();
    // A matrix of a wide model takes a second, and a copy of it would be as large.
    piece_by_piece(all.size(), sizeof(double), [&](std::size_t from, std::size_t some) {
      const auto values = checked(weight, std::span(all).subspan(from, some));
      backend_.upload(weight.values.at(static_cast<std::int64_t>(from)), values.data(), values.size());
    });
  }
}

std::vector<char> Model::checked(const Weight& weight, std::span<const double> values) const {
  auto made = narrowed(real_, values);
  if (!all_finite(real_, made))
    throw Error("The weights " + weight.name + " of " + architecture_.id + " have an entry that is not finite" +
                    (real_ == DType::f32 ? " in float32" + Remedy{": ", "choose ", {"dtype", "f64"}} + ", or other weights."
                                         : Sentence(": choose other weights.")),
                {.place = weight.name, .model = architecture_.id, .parameter = weight.name});
  return made;
}

std::int64_t Model::bytes() const {
  std::size_t total = product_.capacity();
  for (const Weight& weight : weights_) total += weight.values.bytes();
  return static_cast<std::int64_t>(total);
}

Parameters Model::parameters() const {
  Parameters all;
  for (const Weight& weight : weights_)
    all.entries().push_back({weight.name, weight.text, weight.shape, to_double(backend_, real_, weight.values.data(), weight.entries())});
  return all;
}

void Model::set(std::string_view name, std::span<const double> values) {
  const auto weight = std::ranges::find(weights_, name, &Weight::name);
  const std::string given(name);
  if (weight == weights_.end()) {
    std::string known;
    for (const Weight& one : weights_) known += (known.empty() ? "" : ", ") + one.name;
    throw Error(architecture_.id + " has no weights " + given + ": choose " + known + ".",
                {.model = architecture_.id, .parameter = given, .range = known});
  }
  if (std::ssize(values) != weight->entries())
    throw Error("The weights " + given + " of " + architecture_.id + " are " + std::to_string(weight->entries()) + " numbers, and " +
                    std::to_string(values.size()) + " were given: give one for each entry.",
                {.model = architecture_.id,
                 .parameter = given,
                 .value = std::to_string(values.size()),
                 .range = std::to_string(weight->entries())});
  const auto all = checked(*weight, values);
  backend_.upload(weight->values.data(), all.data(), all.size());
  ++changes_;
}

void Model::update(const Change& change) {
  for (std::size_t i = 0; i < weights_.size(); ++i) change(i, weights_[i]);
  ++changes_;
}

void Model::add(double factor, std::span<const DeviceArray> steps) {
  RECLAB_DEMAND(steps.size() == weights_.size());
  update([&](std::size_t i, const Weight& weight) {
    const std::int64_t n = weight.entries();
    RECLAB_DEMAND(steps[i].bytes() == weight.values.bytes());
    product_.resize(backend_, real_, n);
    backend_.unary(Unary::affine, real_, n, steps[i].data(), product_.data(), factor, 0.0);
    backend_.add_scaled(real_, n, 0, product_.data(), weight.values.data(), true);
  });
}

}  // namespace reclab
