// SPDX-License-Identifier: GPL-3.0-or-later
#include "serve/wire.h"

#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

namespace reclab::cli {

WireInput::WireInput(int descriptor, std::stop_token stop)
    : descriptor_(descriptor), stopped_(eventfd(0, EFD_CLOEXEC)), stop_(std::move(stop)) {
  if (stopped_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

WireInput::~WireInput() { close(stopped_); }

bool WireInput::fill() {
  const auto wake = [this] {
    const std::uint64_t one = 1;
    static_cast<void>(!write(stopped_, &one, sizeof one));
  };
  const std::stop_callback stopping(stop_, wake);
  buffer_.erase(0, std::exchange(at_, 0));
  for (;;) {
    pollfd ends[] = {{descriptor_, POLLIN, 0}, {stopped_, POLLIN, 0}};
    if (poll(ends, 2, -1) < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "poll");
    if (stop_.stop_requested()) return false;
    if (ends[0].revents == 0) continue;
    constexpr std::size_t piece = std::size_t{1} << 18;
    const std::size_t before = buffer_.size();
    buffer_.resize(before + piece);
    const ssize_t count = read(descriptor_, buffer_.data() + before, piece);
    buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count > 0) return true;
    if (count == 0 || errno != EINTR) return false;
  }
}

std::optional<WireInput::Line> WireInput::line(std::size_t most) {
  Line line;
  for (std::size_t looked = 0;;) {
    const std::size_t end = buffer_.find('\n', at_ + looked);
    const std::size_t length = std::min(end, buffer_.size()) - at_;
    line.too_long = line.too_long || length > most;
    if (end != std::string::npos) {
      if (!line.too_long) line.text = buffer_.substr(at_, length);
      at_ = end + 1;
      return line;
    }
    if (line.too_long) at_ = buffer_.size();
    looked = buffer_.size() - at_;
    if (!fill()) return {};
  }
}

bool WireInput::take(std::uint64_t bytes, std::string* to) {
  while (bytes > 0) {
    if (at_ == buffer_.size() && !fill()) return false;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, buffer_.size() - at_));
    if (to) to->append(buffer_, at_, count);
    at_ += count;
    bytes -= count;
  }
  return true;
}

bool write_all(int descriptor, std::span<const std::string_view> pieces) {
  std::vector<iovec> left;
  for (const std::string_view piece : pieces)
    if (!piece.empty()) left.push_back({const_cast<char*>(piece.data()), piece.size()});
  for (std::size_t first = 0; first < left.size();) {
    const ssize_t count = writev(descriptor, left.data() + first, static_cast<int>(std::min<std::size_t>(left.size() - first, IOV_MAX)));
    if (count < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    for (auto done = static_cast<std::size_t>(count); done > 0;) {
      iovec& piece = left[first];
      const std::size_t part = std::min(done, piece.iov_len);
      piece.iov_base = static_cast<char*>(piece.iov_base) + part;
      piece.iov_len -= part;
      done -= part;
      if (piece.iov_len == 0) ++first;
    }
  }
  return true;
}

}  // namespace reclab::cli
