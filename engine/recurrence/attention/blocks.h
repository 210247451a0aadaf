// SPDX-License-Identifier: GPL-3.0-or-later
// The base of the attention operations: products between blocks of rows of one array and all columns that they see.
#pragma once

#include <algorithm>

#include "array/device_array.h"
#include "array/error.h"
#include "autodiff/graph.h"

namespace reclab {

inline constexpr std::int64_t block_rows = 64;

struct AttentionSizes {
  std::int64_t batch = 0, steps = 0, cached_steps = 0, key = 0, value = 0, distances = 0, rows = 1, window = 0;
  std::int64_t far_key = 0;  ///< width of the rows of q2 and rel
};

/// The base of both kinds of attention: matrix products between blocks of rows of one array and all columns that they see.
class Blocks : public Operation {
 public:
  Blocks(DType type, const AttentionSizes& s) : type_(type), s_(s) {}
  void take_batch_at_once() { at_once_ = true; }

 protected:
  DType type_;
  AttentionSizes s_;
  /// The sequences of the batch whose blocks are computed at a time: on the CPU so many that the caches hold their pairs.
  std::int64_t from_ = 0, some_ = 0;
  bool at_once_ = false;  ///< whether a block is always made for all of the batch

  std::size_t bytes(std::int64_t n) const { return static_cast<std::size_t>(n) * bytes_of(type_); }
  const void* at(const void* p, std::int64_t offset) const { return static_cast<const char*>(p) + bytes(offset); }
  void* at(void* p, std::int64_t offset) const { return static_cast<char*>(p) + bytes(offset); }

  /// block [batch, rows, columns] = (or +=) left[first.., d] right[0..columns, d]^T, both [batch, length, d].
  void scores(Backend& b, const void* left, std::int64_t left_length, std::int64_t first, std::int64_t rows, const void* right,
              std::int64_t right_length, std::int64_t columns, std::int64_t d, void* block, bool add = false) const {
    b.matmul(type_, {some_, rows, columns, d, false, true, left_length * d, right_length * d, rows * columns},
             at(left, (from_ * left_length + first) * d), at(right, from_ * right_length * d), block, add);
  }
  /// to[first.., d] = (or +=) block [rows, columns] right[0..columns, d].
  void apply(Backend& b, const void* block, std::int64_t rows, std::int64_t columns, const void* right, std::int64_t right_length,
             std::int64_t d, void* to, std::int64_t to_length, std::int64_t first, bool add) const {
    b.matmul(type_, {some_, rows, d, columns, false, false, rows * columns, right_length * d, to_length * d}, block,
             at(right, from_ * right_length * d), at(to, (from_ * to_length + first) * d), add);
  }
  /// to[0..columns, d] += block^T left[first.., d].
  void apply_transposed(Backend& b, const void* block, std::int64_t rows, std::int64_t columns, const void* left, std::int64_t left_length,
                        std::int64_t first, std::int64_t d, void* to, std::int64_t to_length) const {
    b.matmul(type_, {some_, columns, d, rows, true, false, rows * columns, left_length * d, to_length * d}, block,
             at(left, (from_ * left_length + first) * d), at(to, from_ * to_length * d), true);
  }
  /// Calls body(first row, rows, end of the columns that they see) for blocks of rows of `some_` of the batch, from `from_` on.
  template <class F>
  void each_block(const Backend& b, const std::stop_token& stop, const F& body) {
    constexpr std::int64_t in_the_caches = std::int64_t{1} << 18, least = 4;
    const std::int64_t pairs = std::min(s_.rows, s_.steps) * (s_.cached_steps + s_.steps) * static_cast<std::int64_t>(bytes_of(type_));
    const std::int64_t most =
        at_once_ || b.device() != Device::cpu ? s_.batch : std::max(least, in_the_caches / std::max<std::int64_t>(1, pairs));
    for (from_ = 0; from_ < s_.batch; from_ += most) {
      some_ = std::min(most, s_.batch - from_);
      for (std::int64_t first = 0; first < s_.steps; first += s_.rows) {
        if (stop.stop_requested()) throw Cancelled();
        const std::int64_t rows = std::min(s_.rows, s_.steps - first);
        body(first, rows, s_.cached_steps + first + rows);
      }
    }
  }
  /// The first column that a block from row `first` on takes.
  std::int64_t start(std::int64_t first) const {
    return s_.window ? std::max<std::int64_t>(0, s_.cached_steps + first - (s_.window - 1)) : 0;
  }
  /// A number of a column a row, counted from column `from` on.
  const void* moved(Backend& b, const void* numbers, std::int64_t first, std::int64_t rows, std::int64_t from, DeviceArray& scratch) const {
    if (from == 0) return at(numbers, first);
    void* to = scratch.resize(b, type_, rows);
    b.unary(Unary::affine, type_, rows, at(numbers, first), to, 1.0, -static_cast<double>(from));
    return to;
  }
};

}  // namespace reclab
