// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace reclab {

/// The numbers that a stream is continued from, as named arrays. An object has one function for both directions, which names each of its
/// values: they are written into the state, or set from it.
class StreamState {
 public:
  using Arrays = std::map<std::string, std::vector<double>>;

  StreamState() = default;  ///< to be written to
  /// To be read. `file`: for sentences.
  StreamState(Arrays arrays, std::string file) : arrays_(std::move(arrays)), file_(std::move(file)), reads_(true) {}
  bool reads() const { return reads_; }
  const Arrays& arrays() const { return arrays_; }

  /// An array of any length, or of the length that it has. Throws Error where it is missing, or has another length.
  void any(const std::string& name, std::vector<double>& values);
  void same(const std::string& name, std::vector<double>& values);
  void real(const std::string& name, double& value);
  /// Throws Error where it is no whole number in [low, high].
  void whole(const std::string& name, std::int64_t& value, std::int64_t low = 0, std::int64_t high = std::int64_t{1} << 52);
  void whole(const std::string& name, std::vector<std::int64_t>& values, std::int64_t low, std::int64_t high);
  /// Names inside f begin with "<folder>/".
  template <class F>
  void in(const std::string& folder, const F& f) {
    const std::string before = std::exchange(prefix_, prefix_ + folder + "/");
    f();
    prefix_ = before;
  }
  /// Throws the Error of a file that holds something else than it should.
  [[noreturn]] void refuse(const std::string& name, const std::string& what) const;

 private:
  Arrays arrays_;
  std::string file_, prefix_;
  bool reads_ = false;
};

}  // namespace reclab
