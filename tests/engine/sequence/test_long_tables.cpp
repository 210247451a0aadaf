// SPDX-License-Identifier: GPL-3.0-or-later
// Tables of many megabytes: their rows are read in pieces, on all processors, and are what a short table would be, faults and all.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "array/error.h"
#include "files/files.h"
#include "scratch.h"
#include "sequence/sequence.h"
#include "sequence/text/cells.h"
#include "test.h"

using namespace reclab;

namespace {

constexpr std::int64_t rows = 500'000;

LoadOptions raw(std::vector<std::string> columns = {}) {
  LoadOptions options;
  options.standardise = false;
  options.columns = std::move(columns);
  return options;
}

std::string number_text(double value) {
  char text[40];
  return {text, std::to_chars(text, text + 40, value).ptr};
}

/// Numbers as files have them: of few and of all digits, with and without a point or an exponent.
std::vector<double> numbers() {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::vector<double> all;
  for (std::int64_t i = 0; i < rows; ++i) {
    const double x = normal(random);
    all.push_back(i % 7 == 0    ? x
                  : i % 7 == 1  ? std::round(1e3 * x)
                  : i % 7 == 2  ? 1e-9 * x
                  : i % 11 == 0 ? -0.0
                                : std::round(1e6 * x) / 1e6);
  }
  return all;
}

struct Table {
  std::string text;
  std::vector<std::string> lines;
  Table(const std::vector<double>& values, const std::string& delimiter, const std::string& end) {
    lines.push_back("t" + delimiter + "v" + end);
    for (std::size_t i = 0; i < values.size(); ++i)
      lines.push_back(number_text(0.25 * static_cast<double>(i)) + delimiter + number_text(values[i]) + end);
    for (const std::string& line : lines) text += line;
  }
  /// With another line in place of one; both counted from 1, as in sentences.
  std::string with(std::int64_t line, const std::string& other) const {
    std::string all;
    for (std::int64_t i = 0; i < std::ssize(lines); ++i) all += i + 1 == line ? other : lines[static_cast<std::size_t>(i)];
    return all;
  }
};

void check_same(const Sequence& read, const std::vector<double>& values, const std::string& what) {
  CHECK_SAYS(read.length == std::ssize(values) && read.width == 1, what);
  std::int64_t others = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    others += std::bit_cast<std::uint64_t>(read.input[i]) != std::bit_cast<std::uint64_t>(values[i]) ||
              read.time[i] != 0.25 * static_cast<double>(i);
  CHECK_SAYS(others == 0, what + ": " + std::to_string(others) + " rows are others");
}

}  // namespace

TEST_CASE("a short decimal is the number that the library reads, to the bit, and ends where it does") {
  std::mt19937_64 random(2);
  const auto same = [](const std::string& text) {
    double ours = 7.0, theirs = 8.0;
    bool point = false;
    const char *const from = text.data(), *const end = from + text.size(), *const after = short_decimal(from, end, ours, point);
    const auto [stop, code] = std::from_chars(from, end, theirs);
    if (after == from) return;  // left to the library
    CHECK_SAYS(code == std::errc{}, text);
    // An exponent is not taken: the caller sees that something follows.
    const std::string taken(from, after);
    CHECK_SAYS(std::from_chars(taken.data(), taken.data() + taken.size(), theirs).ptr == taken.data() + taken.size(), text);
    CHECK_SAYS(std::bit_cast<std::uint64_t>(ours) == std::bit_cast<std::uint64_t>(theirs), text);
    CHECK_SAYS(point == (taken.find('.') != std::string::npos), text);
    CHECK_SAYS(after == stop || *after == 'e' || *after == 'E', text);
  };
  for (const char* text : {"",
                           "-",
                           ".",
                           "-.",
                           "1.",
                           ".5",
                           "-.5",
                           "007",
                           "-0",
                           "0.0",
                           "1.5.2",
                           "1,5",
                           "1e5",
                           "1.5E-3",
                           "123456789012345",
                           "1234567890123456",
                           "99999999999999.9",
                           "0.000000000000001",
                           "18446744073709551616",
                           "--1",
                           "+1",
                           "inf",
                           "nan"})
    same(text);
  double value = 0.0;
  bool point = false;
  const std::string taken = "-12.5,3", left = "1234567890123456";
  CHECK(short_decimal(taken.data(), taken.data() + taken.size(), value, point) == taken.data() + 5 && value == -12.5 && point);
  CHECK(short_decimal(left.data(), left.data() + left.size(), value, point) == left.data());
  for (int i = 0; i < 200'000; ++i) {
    std::string text = random() % 2 ? "-" : "";
    const std::size_t digits = 1 + random() % 16, place = random() % (digits + 2);
    for (std::size_t k = 0; k < digits; ++k) {
      if (k == place) text += '.';
      text += static_cast<char>('0' + random() % 10);
    }
    same(text);
  }
}

TEST_CASE("a long table is read to the bit, whatever separates its cells and ends its lines") {
  const test::Scratch scratch;
  const std::vector<double> values = numbers();
  for (const std::string delimiter : {",", ";", "\t", " "})
    for (const std::string end : {"\n", "\r\n"}) {
      const Table table(values, delimiter, end);
      CHECK(table.text.size() > std::size_t{8} << 20);
      const Sequence read = load_sequence(scratch.file("x.csv", table.text), raw());
      check_same(read, values, "'" + delimiter + "'");
      CHECK_EQUAL(read.sha256, sha256_hex(table.text));
    }
  // With a decimal comma.
  Table table(values, ";", "\n");
  std::ranges::replace(table.text, '.', ',');
  check_same(load_sequence(scratch.file("x.csv", table.text), raw()), values, "decimal comma");
  // Without an end of the last line, and with blank lines there.
  check_same(load_sequence(scratch.file("x.csv", Table(values, ",", "\n").text + "\n\n"), raw()), values, "blank lines at the end");
  std::string open = Table(values, ",", "\n").text;
  open.pop_back();
  check_same(load_sequence(scratch.file("x.csv", open), raw()), values, "no end of the last line");
}

TEST_CASE("a fault deep in a long table is told with its line") {
  const test::Scratch scratch;
  const std::vector<double> values = numbers();
  const Table table(values, ",", "\n"), semicolons(values, ";", "\n");
  const auto sentence = [&](const std::string& text) -> std::string {
    try {
      load_sequence(scratch.file("x.csv", text), raw());
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  for (const std::int64_t line : {std::int64_t{3}, std::int64_t{200'001}, rows - 1}) {
    const std::string at = "line " + std::to_string(line), time = number_text(0.25 * static_cast<double>(line - 2));
    const auto says = [&](const std::string& text, const std::string& what) {
      const std::string said = sentence(text);
      CHECK_SAYS(said.find(at) != std::string::npos && said.find(what) != std::string::npos, said);
    };
    says(table.with(line, time + ",x\n"), "is 'x', not a number");
    says(table.with(line, time + ",inf\n"), "is infinite");
    says(table.with(line, time + ",1e999\n"), "beyond the range");
    says(table.with(line, time + ",\n"), "is empty");
    says(table.with(line, time + ",1,2\n"), "has 3 cells");
    says(table.with(line, "\n"), "is empty and rows follow it");
    says(table.with(line, time + ",\"1\n"), "opens a quote that is never closed");
    if (line > 3) says(semicolons.with(line, "1e9;1,5\n"), "with a decimal comma where line");
  }
  // A time that falls is no time: it is an input, as in a short table.
  const Sequence falls = load_sequence(scratch.file("x.csv", table.with(300'000, "0,5\n")), raw());
  CHECK(falls.width == 2 && falls.length == rows && falls.time[1] == 1.0);
  CHECK(falls.input[2 * 299'998] == 0.0 && falls.input[2 * 299'998 + 1] == 5.0 && falls.input[2 * 299'999 + 1] == values[299'999]);
}

TEST_CASE("lines in a quoted cell are no rows, however many there are") {
  const test::Scratch scratch;
  std::string text = "t,v,note\n", note;
  for (int i = 0; i < 700'000; ++i) note += "1,2,7\n";
  for (std::int64_t i = 0; i < rows; ++i)
    text += std::to_string(i) + ',' + std::to_string(i % 100) + ',' + (i == 1000 ? '"' + note + '"' : std::string("7")) + '\n';
  const Sequence read = load_sequence(scratch.file("x.csv", text), raw({"v"}));
  CHECK_EQUAL(read.length, rows);
  std::int64_t others = 0;
  for (std::int64_t i = 0; i < rows; ++i)
    others += read.input[static_cast<std::size_t>(i)] != static_cast<double>(i % 100) ||
              read.time[static_cast<std::size_t>(i)] != static_cast<double>(i);
  CHECK_EQUAL(others, std::int64_t{0});
}

TEST_CASE("the hash that is made while a file is read is that of its bytes") {
  const test::Scratch scratch;
  std::mt19937_64 random(3);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, (std::size_t{16} << 20) - 1, std::size_t{16} << 20, (std::size_t{50} << 20) + 3}) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; i += 97) bytes[i] = static_cast<char>(random());
    Sha256 hash;
    CHECK(read_file(scratch.file("bytes", bytes), Pipes::refused, &hash) == bytes);
    CHECK_EQUAL(hash.hex(), sha256_hex(bytes));
  }
}
