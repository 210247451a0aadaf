// SPDX-License-Identifier: GPL-3.0-or-later
// Rows of numbers as text, read line by line from a descriptor in bounded memory.
#pragma once

#include <string>
#include <vector>

#include "streams/source.h"

namespace reclab {

/// Numbers between commas, semicolons, tabs or blanks, as many in each line as in the first. A first line without any number has the names
/// of the columns; empty lines, and those that begin with #, are passed over. The first row is read when it is made.
class TextRows final : public SeriesSource {
 public:
  enum class At : std::uint8_t { end_ends, end_waits };  ///< the meaning of a file's end
  /// Takes the descriptor. `name`: for sentences.
  TextRows(int descriptor, std::string name, At end, bool seekable, std::int64_t standardise);
  ~TextRows() override;
  TextRows(const TextRows&) = delete;
  TextRows& operator=(const TextRows&) = delete;

 protected:
  Next row(std::vector<double>& values, std::int64_t& regime, std::stop_token stop) override;
  void keep_place(StreamState& state) override;

 private:
  Next line(std::string& text, std::stop_token stop);
  bool parse(const std::string& text, std::vector<double>& values);
  [[noreturn]] void refuse(const std::string& what) const;
  int descriptor_;
  std::string name_;
  At end_;
  bool seekable_, ended_ = false, has_first_ = false;
  std::string buffer_;
  std::size_t at_ = 0;                    // of the buffer, where the next line begins
  std::int64_t offset_ = 0, number_ = 0;  // of the descriptor, where the buffer begins; lines so far
  std::vector<double> first_;
};

/// Opens a file. Throws Error.
int open_stream_file(const std::string& file);

}  // namespace reclab
