// SPDX-License-Identifier: GPL-3.0-or-later
// Text from files, names and titles reaches the terminal as text and never as a control sequence.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>

namespace reclab::cli {

/// While it lives, control characters that are written into the stream become spaces, but for line ends, tabs and the two commands of
/// heading(). Where the stream's descriptor is a terminal so do U+0080 to U+009F.
class PlainText final : public std::streambuf {
 public:
  PlainText(std::ostream& stream, int descriptor);
  ~PlainText() override;
  PlainText(const PlainText&) = delete;
  PlainText& operator=(const PlainText&) = delete;

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;

 private:
  bool put(char c);
  bool pass(char c) { return under_->sputc(c) != traits_type::eof(); }

  std::ostream& stream_;
  std::streambuf* under_;
  bool terminal_;
  std::string held_;  ///< the beginning of a possible control sequence or two-byte character
};

}  // namespace reclab::cli
