// SPDX-License-Identifier: GPL-3.0-or-later
#include "streams/rows.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "array/error.h"
#include "files/files.h"

namespace reclab {
namespace {

constexpr std::size_t longest_line = std::size_t{1} << 20, piece = std::size_t{1} << 16;
constexpr int wait_ms = 50;

std::vector<std::string_view> cells_of(std::string_view text) {
  std::vector<std::string_view> cells;
  const bool by_blanks = text.find_first_of(",;\t") == std::string_view::npos;
  const std::string_view between = by_blanks ? " " : ",;\t";
  const auto trimmed = [](std::string_view cell) {
    const std::size_t first = cell.find_first_not_of(' ');
    return first == std::string_view::npos ? std::string_view() : cell.substr(first, cell.find_last_not_of(' ') - first + 1);
  };
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find_first_of(between, from), text.size());
    const std::string_view cell = trimmed(text.substr(from, to - from));
    if (!by_blanks || !cell.empty()) cells.push_back(cell);
    from = to + 1;
  }
  return cells;
}

bool is_number(std::string_view cell, double& value) {
  if (cell.starts_with('+')) cell.remove_prefix(1);
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return !cell.empty() && error == std::errc() && end == cell.data() + cell.size();
}

}  // namespace

int open_stream_file(const std::string& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about{};
  if (descriptor < 0 || fstat(descriptor, &about) != 0)
    throw Error(file + " cannot be read (" + std::strerror(errno) + "): give the name of a file that is there.", {.file = file});
  if (!S_ISDIR(about.st_mode)) return descriptor;
  close(descriptor);
  throw Error(file + " is a folder: give the name of a file in it.", {.file = file});
}

TextRows::TextRows(int descriptor, std::string name, At end, bool seekable, std::int64_t standardise)
    : SeriesSource({"value"}, standardise), descriptor_(descriptor), name_(std::move(name)), end_(end), seekable_(seekable) {
  try {
    std::string text;
    std::vector<std::string> names;
    while (!has_first_) {
      if (line(text, {}) == Next::ended) refuse("there is no row of numbers");
      const auto cells = cells_of(text);
      double value = 0.0;
      if (names.empty() && std::ranges::none_of(cells, [&](std::string_view cell) { return is_number(cell, value); })) {
        for (const std::string_view cell : cells) names.push_back(printable(cell));
        continue;
      }
      if (names.empty())
        for (std::size_t j = 1; j <= cells.size(); ++j) names.push_back("column " + std::to_string(j));
      set_names(names);
      has_first_ = parse(text, first_);
    }
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

TextRows::~TextRows() { close(descriptor_); }

void TextRows::refuse(const std::string& what) const {
  const std::string place = "line " + std::to_string(number_);
  throw Error(name_ + ", " + place + ": " + what + "; give lines of numbers, as many in each.", {.file = name_, .place = place});
}

/// The next line that is no comment and not empty, without its end.
TextRows::Next TextRows::line(std::string& text, std::stop_token stop) {
  std::size_t searched = at_;
  for (;;) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos || (ended_ && at_ < buffer_.size())) {
      const std::size_t to = std::min(end, buffer_.size());
      text.assign(buffer_, at_, to - at_);
      at_ = std::min(to + 1, buffer_.size());
      searched = at_;
      ++number_;
      if (text.ends_with('\r')) text.pop_back();
      const std::size_t first = text.find_first_not_of(" \t");
      if (first != std::string::npos && text[first] != '#') return Next::step;
      continue;
    }
    if (ended_) return Next::ended;
    if (buffer_.size() - at_ > longest_line) {
      ++number_;
      refuse("it is longer than " + std::to_string(longest_line) + " bytes");
    }
    offset_ += static_cast<std::int64_t>(at_);
    buffer_.erase(0, at_);
    at_ = 0;
    searched = buffer_.size();
    if (stop.stop_requested()) return Next::stopped;
    pollfd ready{descriptor_, POLLIN, 0};
    if (poll(&ready, 1, wait_ms) == 0) continue;
    buffer_.resize(searched + piece);
    const ssize_t got = read(descriptor_, buffer_.data() + searched, piece);
    const int error = errno;
    buffer_.resize(searched + static_cast<std::size_t>(std::max<ssize_t>(0, got)));
    if (got < 0 && error != EINTR && error != EAGAIN)
      throw Error(name_ + " cannot be read any further (" + std::strerror(error) + "): look whether its sender is there.", {.file = name_});
    if (got != 0) continue;
    if (end_ == At::end_ends) {
      ended_ = true;
      continue;
    }
    struct stat about{};
    if (fstat(descriptor_, &about) == 0 && about.st_size < offset_ + static_cast<std::int64_t>(buffer_.size()))
      throw Error(name_ + " has become shorter than what was read of it: begin anew with it.", {.file = name_});
    std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
  }
}

bool TextRows::parse(const std::string& text, std::vector<double>& values) {
  const auto cells = cells_of(text);
  const auto columns = static_cast<std::size_t>(form().width());
  if (cells.size() != columns)
    refuse("it has " + std::to_string(cells.size()) + " cells, and the first row has " + std::to_string(columns));
  values.resize(columns);
  for (std::size_t j = 0; j < columns; ++j)
    if (!is_number(cells[j], values[j]) || !std::isfinite(values[j]))
      refuse("\"" + printable(cells[j]) + "\" in column " + std::to_string(j + 1) + " is no number");
  return true;
}

TextRows::Next TextRows::row(std::vector<double>& values, std::int64_t& regime, std::stop_token stop) {
  regime = -1;
  if (has_first_) {
    has_first_ = false;
    values = first_;
    return Next::step;
  }
  std::string text;
  const Next next = line(text, stop);
  if (next == Next::step) parse(text, values);
  return next;
}

void TextRows::keep_place(StreamState& state) {
  std::int64_t first = has_first_, place = offset_ + static_cast<std::int64_t>(at_);
  state.whole("first", first, 0, 1);
  state.whole("line", number_);
  state.whole("offset", place);
  if (!state.reads() || !seekable_) return;
  has_first_ = first != 0;
  ended_ = false;
  buffer_.clear();
  at_ = 0;
  offset_ = place;
  struct stat about{};
  if (fstat(descriptor_, &about) != 0 || about.st_size < place || lseek(descriptor_, place, SEEK_SET) != place)
    throw Error(name_ + " is shorter than what was read of it: bring back the file, or begin anew.", {.file = name_});
}

}  // namespace reclab
