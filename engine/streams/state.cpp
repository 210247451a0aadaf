// SPDX-License-Identifier: GPL-3.0-or-later
#include "streams/state.h"

#include <cmath>

#include "array/error.h"

namespace reclab {

void StreamState::refuse(const std::string& name, const std::string& what) const {
  throw Error(file_ + ": " + prefix_ + name + " " + what + ": give the folder of a stream that `reclab stream --export` wrote.",
              {.file = file_, .place = prefix_ + name});
}

void StreamState::any(const std::string& name, std::vector<double>& values) {
  if (!reads_) {
    arrays_[prefix_ + name] = values;
    return;
  }
  const auto found = arrays_.find(prefix_ + name);
  if (found == arrays_.end()) refuse(name, "is missing");
  values = found->second;
}

void StreamState::same(const std::string& name, std::vector<double>& values) {
  const std::size_t size = values.size();
  any(name, values);
  if (values.size() != size) refuse(name, "has " + std::to_string(values.size()) + " numbers and not " + std::to_string(size));
}

void StreamState::real(const std::string& name, double& value) {
  std::vector<double> one{value};
  same(name, one);
  value = one[0];
}

void StreamState::whole(const std::string& name, std::vector<std::int64_t>& values, std::int64_t low, std::int64_t high) {
  std::vector<double> numbers(values.begin(), values.end());
  any(name, numbers);
  if (!reads_) return;
  values.clear();
  for (const double x : numbers) {
    if (!(x >= static_cast<double>(low) && x <= static_cast<double>(high)) || x != std::floor(x)) refuse(name, "is out of range");
    values.push_back(static_cast<std::int64_t>(x));
  }
}

void StreamState::whole(const std::string& name, std::int64_t& value, std::int64_t low, std::int64_t high) {
  std::vector<std::int64_t> one{value};
  whole(name, one, low, high);
  if (one.size() != 1) refuse(name, "is no single number");
  value = one[0];
}

}  // namespace reclab
