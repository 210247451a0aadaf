// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/weight_memory.h"

#include <utility>

#include "array/demand.h"
#include "array/error.h"
#include "array/host.h"

namespace reclab {

WeightMemory::WeightMemory(Model& model, std::vector<std::string> names, const std::vector<bool>& frozen)
    : model_(model), names_(std::move(names)) {
  const auto& weights = model.weights();
  RECLAB_DEMAND(frozen.size() == weights.size());
  arrays_.resize(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i)
    for (std::size_t k = 0; k < names_.size() && !frozen[i]; ++k) {
      DeviceArray& array = arrays_[i].emplace_back(model.backend(), model.real(), weights[i].entries());
      model.backend().zero(array.data(), array.bytes());
    }
}

std::vector<double>& WeightMemory::add(std::string name, std::size_t entries) {
  return own_[std::move(name)] = std::vector<double>(entries);
}

std::int64_t WeightMemory::bytes() const {
  std::size_t total = 0;
  for (const auto* all : {&own_, &own_before_})
    for (const auto& [name, numbers] : *all) total += numbers.size() * sizeof(double);
  for (const auto* all : {&arrays_, &before_})
    for (const auto& arrays : *all)
      for (const DeviceArray& array : arrays) total += array.bytes();
  return static_cast<std::int64_t>(total);
}

void WeightMemory::keep() {
  own_before_ = own_;
  before_.resize(arrays_.size());
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    before_[i].resize(arrays_[i].size());
    for (std::size_t k = 0; k < arrays_[i].size(); ++k) {
      const DeviceArray& from = arrays_[i][k];
      model_.backend().copy(before_[i][k].resize(model_.backend(), model_.real(), from.entries()), from.data(), from.bytes());
    }
  }
}

void WeightMemory::go_back() {
  RECLAB_DEMAND(before_.size() == arrays_.size());
  for (auto& [name, numbers] : own_) numbers = own_before_.at(name);
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    for (std::size_t k = 0; k < arrays_[i].size(); ++k)
      model_.backend().copy(arrays_[i][k].data(), before_[i][k].data(), arrays_[i][k].bytes());
}

template <class F>
void WeightMemory::each(const F& f) const {
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    for (std::size_t k = 0; k < arrays_[i].size(); ++k) f(arrays_[i][k], names_[k] + "/" + model_.weights()[i].name);
}

std::map<std::string, std::int64_t> WeightMemory::entries() const {
  std::map<std::string, std::int64_t> all;
  each([&](const DeviceArray& array, const std::string& name) { all.emplace(name, array.entries()); });
  for (const auto& [name, numbers] : own_) all.emplace(name, std::ssize(numbers));
  return all;
}

std::map<std::string, std::vector<double>> WeightMemory::values() const {
  std::map<std::string, std::vector<double>> all = own_;
  each([&](const DeviceArray& array, const std::string& name) {
    all.emplace(name, to_double(model_.backend(), model_.real(), array.data(), array.entries()));
  });
  return all;
}

void WeightMemory::restore(const std::map<std::string, std::vector<double>>& values, std::string_view owner) {
  const auto check = [&](const std::string& name, std::int64_t entries, const std::string& of) {
    const auto found = values.find(name);
    if (found == values.end()) throw Error("what " + std::string(owner) + " keeps of " + name + " is missing.", {.place = name});
    if (std::ssize(found->second) != entries)
      throw Error("what " + std::string(owner) + " keeps of " + name + " has " + std::to_string(found->second.size()) + " numbers" + of +
                      " of " + std::to_string(entries) + ".",
                  {.place = name});
  };
  each([&](const DeviceArray& array, const std::string& name) { check(name, array.entries(), " for a weight"); });
  for (const auto& [name, numbers] : own_) check(name, std::ssize(numbers), " in place");
  for (auto& [name, numbers] : own_) numbers = values.at(name);
  each([&](const DeviceArray& array, const std::string& name) {
    const auto bytes = narrowed(model_.real(), values.at(name));
    model_.backend().upload(array.data(), bytes.data(), bytes.size());
  });
}

}  // namespace reclab
