// SPDX-License-Identifier: GPL-3.0-or-later
// The arrays of a file of weights by name and shape, the names cut once into a prefix that a wrapper may have put in front and the part
// that may be the name of a parameter. Every network that is tried against the file looks its own names up here.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "array/shape.h"

namespace reclab {

/// The shapes of a file's arrays by name.
using FileShapes = std::map<std::string, Shape, std::less<>>;

struct Architecture;

class FileIndex {
 public:
  explicit FileIndex(FileShapes shapes);
  FileIndex(const FileIndex&) = delete;
  FileIndex& operator=(const FileIndex&) = delete;

  const FileShapes& shapes() const { return shapes_; }
  /// A file with names that begin with "param/" is the trace of a run: only these are weights, and nothing else is put in front.
  bool of_trace() const { return of_trace_; }
  /// The names that may be weights, sorted.
  std::size_t size() const { return entries_.size(); }
  const std::string& name(std::size_t entry) const { return entries_[entry]->first; }
  const Shape& shape(std::size_t entry) const { return entries_[entry]->second; }

  struct Hit {
    std::size_t entry, prefix;  ///< prefix: the length of the prefix in front
    bool dotted;                ///< with dots where the file has slashes, as trees of arrays are flattened in JAX
  };
  /// The entries that are called so below some prefix.
  const std::vector<Hit>& called(std::string_view name) const;
  /// The entries whose names end with "weight".
  const std::vector<std::size_t>& weights() const { return weights_; }
  /// Whether each entry is of no use to a network of these architectures and may be there all the same (ReferenceName without `ours`).
  const std::vector<char>& of_no_use(const std::vector<const Architecture*>& architectures) const;
  /// A cached result on the names that a network may have, by question (match_names); null at first.
  std::shared_ptr<const void>& answer(const std::string& question) const { return answers_[question]; }
  /// The part of the file below a prefix, without it.
  FileShapes below(std::string_view prefix) const;

 private:
  FileShapes shapes_;
  bool of_trace_ = false;
  std::vector<FileShapes::const_iterator> entries_;
  std::unordered_map<std::string, std::vector<Hit>> called_;
  std::vector<std::size_t> weights_;
  mutable std::map<std::vector<const Architecture*>, std::vector<char>> of_no_use_;
  mutable std::unordered_map<std::string, std::shared_ptr<const void>> answers_;
};

}  // namespace reclab
