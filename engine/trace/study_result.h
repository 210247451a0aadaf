// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <type_traits>
#include <typeindex>
#include <utility>

namespace reclab {

/// The result of a study: a Trace, a Composition, any value, which is shared and never changed. Empty: nothing.
class StudyResult {
 public:
  StudyResult() = default;
  template <class T>
  StudyResult(std::shared_ptr<T> value) : value_(std::move(value)), type_(typeid(std::remove_const_t<T>)) {}
  /// Null where it is of another type.
  template <class T>
  std::shared_ptr<const T> get() const {
    return type_ == typeid(T) ? std::static_pointer_cast<const T>(value_) : nullptr;
  }

 private:
  std::shared_ptr<const void> value_;
  std::type_index type_ = typeid(void);
};

}  // namespace reclab
