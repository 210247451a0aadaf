// SPDX-License-Identifier: GPL-3.0-or-later
// Loading sequences from what people have, refusing in a sentence what cannot be one, and saving them.
#include <algorithm>
#include <clocale>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include "array/error.h"
#include "files/files.h"
#include "files/npy.h"
#include "files/npz.h"
#include "places.h"
#include "scratch.h"
#include "sequence/format.h"
#include "sequence/sequence.h"
#include "test.h"

using namespace reclab;
using reclab::test::bytes_of_file;
using reclab::test::listing;
using reclab::test::Scratch;
using Numbers = std::vector<double>;
using Names = std::vector<std::string>;

namespace {

LoadOptions raw() {
  LoadOptions options;
  options.standardise = false;
  return options;
}

Sequence load(const std::string& bytes, LoadOptions options = raw(), const std::string& name = "x.csv") {
  const Scratch scratch;
  return load_sequence(scratch.file(name, bytes), options);
}

std::string sentence_of(const std::string& bytes, LoadOptions options = raw(), const std::string& name = "x.csv") {
  try {
    load(bytes, std::move(options), name);
  } catch (const Error& error) {
    CHECK_SAYS(error.where().file.ends_with(name), error.what());
    return error.what();
  }
  test::fail(__FILE__, __LINE__, "no error from:\n" + bytes.substr(0, 200));
}

/// One sentence with every part: the file always, and what the test asks for.
void check_refused(const std::string& bytes, std::initializer_list<const char*> parts, LoadOptions options = raw(),
                   const std::string& name = "x.csv") {
  const std::string sentence = sentence_of(bytes, std::move(options), name);
  CHECK_SAYS(sentence.find(name) != std::string::npos, sentence);
  CHECK_SAYS(sentence.find('\n') == std::string::npos, sentence);
  for (const char* part : parts) CHECK_SAYS(sentence.find(part) != std::string::npos, "\"" + sentence + "\" has no \"" + part + "\"");
}

void check_numbers(const Numbers& actual, const Numbers& expected) {
  CHECK_EQUAL(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK_EQUAL(actual[i], expected[i]);
}

std::string utf16(const std::string& ascii, bool big) {
  std::string bytes = big ? "\xfe\xff" : "\xff\xfe";
  for (const char c : ascii) bytes += big ? std::string{'\0', c} : std::string{c, '\0'};
  return bytes;
}

std::string npy_file(const std::string& descr, const Shape& shape, const std::string& data) { return npy_header(shape, descr) + data; }
std::string bytes_of(const Numbers& values) { return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)}; }

std::string sample(const char* name) { return test::source("resources/samples/") + name; }

}  // namespace

// ---- text

TEST_CASE("delimiters, headers, ends of line and encodings are found by looking") {
  const Numbers numbers{1, 2, 3, 4};
  const Names names{"a", "b"};
  for (const char* const text :
       {"a,b\n1,2\n3,4\n", "a;b\n1;2\n3;4\n", "a\tb\n1\t2\n3\t4\n", "a|b\n1|2\n3|4\n", "a b\n1 2\n3 4\n", "  a   b \n 1\t2\n3     4  \n",
        "a,b\r\n1,2\r\n3,4\r\n", "a,b\r1,2\r3,4\r", "a,b\n1,2\n3,4", "a,b\n1,2\n3,4\n\n\n",
        "\xef\xbb\xbf"
        "a,b\n1,2\n3,4\n",
        "a, b\n1 , 2\n 3, 4\n", "\"a\",\"b\"\n\"1\",\"2\"\n3,\"4\"\n", "# made by hand\n#\n\na,b\n1,2\n3,4\n", "# a b\n1 2\n3 4\n",
        "sep=;\na;b\n1;2\n3;4\n", "a,b\n+1,2e0\n3.,.4E1\n", "a,b,\n1,2,\n3,4,\n"}) {
    const Sequence sequence = load(text);
    CHECK_SAYS(sequence.names == names, std::string(text) + sequence.names[0]);
    CHECK_SAYS(sequence.input == numbers, text);
    CHECK_EQUAL(sequence.length, 2);
    CHECK_EQUAL(sequence.width, 2);
    CHECK_EQUAL(sequence.time_name, "step");
    check_numbers(sequence.time, {0, 1});
  }
  for (const bool big : {false, true}) {
    const Sequence sequence = load(utf16("a\tb\r\n1\t2\r\n3\t4\r\n", big));
    CHECK(sequence.names == names && sequence.input == numbers);
  }
}

TEST_CASE("blank lines below a wide table take no memory") {
  std::string row;
  for (int i = 0; i < 20'000; ++i) row += i ? ",1" : "1";
  const Sequence sequence = load(row + "\n" + row + "\n" + std::string(400'000, '\n'));
  CHECK_EQUAL(sequence.length, 2);
  CHECK_EQUAL(sequence.width, 20'000);
}

TEST_CASE("without a header columns are numbered, and one alone is named after its file") {
  const Sequence two = load("1,2\n3,4\n");
  CHECK(two.names == (Names{"column 1", "column 2"}));
  check_numbers(two.input, {1, 2, 3, 4});
  const Sequence one = load("5\n6\n7\n", raw(), "pulse.txt");
  CHECK(one.names == Names{"pulse"});
  check_numbers(one.input, {5, 6, 7});
  check_numbers(load("42").input, {42});
  CHECK_EQUAL(load("1 2 3\n").width, 3);
}

TEST_CASE("quotes hold delimiters, ends of line and doubled quotes") {
  const Sequence sequence = load("\"a, b\",\"c \"\"d\"\"\",\"two\nlines\"\n1,2,3\n\"4\",5,6\n");
  CHECK(sequence.names == (Names{"a, b", "c \"d\"", "two\nlines"}));
  check_numbers(sequence.input, {1, 2, 3, 4, 5, 6});
  // Lines are counted through them.
  check_refused("\"two\nlines\",b\n1,2\n3,x\n", {"line 4, column 2 (b)", "'x'"});
}

TEST_CASE("decimal commas are understood where the comma is no delimiter") {
  check_numbers(load("1,5;2,5\r\n-3,25;4\r\n").input, {1.5, 2.5, -3.25, 4});
  check_numbers(load("a\tb\n1,5\t,5\n2\t1,5e3\n").input, {1.5, 0.5, 2, 1500});
  check_numbers(load("1,5 2,5\n3,5 4,5\n").input, {1.5, 2.5, 3.5, 4.5});
  check_numbers(load("v\n1,5\n2,5\n").input, {1.5, 2.5});
  check_numbers(load("1,5\n2,5\n").input, {1, 5, 2, 5});  // two columns: nothing says otherwise
  check_refused("a;b\n1,5;2\n1.5;3\n", {"line 3, column 1 (a)", "decimal point where line 2 has a decimal comma"});
  check_refused("a;b\n1.234,5;2\n", {"line 2, column 1 (a)", "'1.234,5'", "without thousands separators"});
  check_refused("a,b\n\"1,234\",2\n\"2,345\",3\n", {"line 2, column 1 (a)", "'1,234'", "decimal point"});
}

TEST_CASE("numbers do not depend on the locale") {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"})
    if (std::setlocale(LC_ALL, name)) break;
  const Numbers numbers = load("a,b\n1.5,2.25\n").input;
  std::setlocale(LC_ALL, before.c_str());
  check_numbers(numbers, {1.5, 2.25});
}

TEST_CASE("numbers are read to the last bit, the smallest and largest too") {
  check_numbers(load("v,w\n0.1,4.9e-324\n1.7976931348623157e308,1e-400\n-0.30000000000000004,2.2250738585072011e-308\n").input,
                {0.1, 4.9e-324, 1.7976931348623157e308, 0.0, -0.30000000000000004, 2.2250738585072011e-308});
  check_refused("v,w\n1,2\n3,-1e400\n", {"line 3, column 2 (w)", "-1e400", "range", "rescale"});
}

TEST_CASE("a column named like a time that increases is the time") {
  for (const char* const header : {"t", "T", "time", "Time", "date", "TIMESTAMP", "year", "datetime"}) {
    const Sequence sequence = load("v," + std::string(header) + "\n5,1.5\n6,2\n7,10\n");
    CHECK_SAYS(sequence.width == 1 && sequence.names[0] == "v", header);
    CHECK_EQUAL(sequence.time_name, header);
    check_numbers(sequence.time, {1.5, 2, 10});
  }
  const Sequence unit = load("time [ms],v\n0,5\n2,6\n");
  CHECK_EQUAL(unit.time_name, "time");
  CHECK_EQUAL(unit.time_unit, "ms");
  // What repeats or falls is an input, at its place; so is a time alone, or one that is asked for as input.
  const Sequence falls = load("a,t,v\n1,1,5\n2,2,6\n3,2,7\n");
  CHECK(falls.names == (Names{"a", "t", "v"}));
  check_numbers(falls.input, {1, 1, 5, 2, 2, 6, 3, 2, 7});
  CHECK_EQUAL(falls.time_name, "step");
  CHECK(load("year,month,v\n1999,1,3\n1999,2,4\n").names == (Names{"year", "month", "v"}));
  CHECK(load("t\n1\n2\n").names == Names{"t"});
  LoadOptions as_input = raw();
  as_input.columns = {"t", "v"};
  CHECK_EQUAL(load("t,v\n1,5\n2,6\n", as_input).width, 2);
  LoadOptions none = raw();
  none.time = "none";
  CHECK_EQUAL(load("t,v\n1,5\n2,6\n", none).width, 2);
}

TEST_CASE("a time is a time in other languages too, and without a name where it counts the rows") {
  for (const char* const header : {"Zeit", "Datum", "temps", "tiempo", "Tempo (s)", "tijd", "czas", "Année", "время", "时间"}) {
    const Sequence sequence = load("v," + std::string(header) + "\n5,1.5\n6,2\n7,10\n");
    CHECK_SAYS(sequence.width == 1 && sequence.names[0] == "v", header);
    check_numbers(sequence.time, {1.5, 2, 10});
  }
  CHECK_EQUAL(load("a,data\n5,1\n6,2\n").width, 2);  // a word of two languages
  const auto rows = [](auto first, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += first(i) + "," + std::to_string(i * i % 7) + ",3\n";
    return text;
  };
  const auto even = [](int i) { return std::to_string(0.25 * i); };
  const Sequence counted = load(rows(even, 20));
  CHECK_EQUAL(counted.width, 2);
  CHECK_EQUAL(counted.time_name, "time");
  check_numbers(std::vector<double>(counted.time.begin(), counted.time.begin() + 3), {0, 0.25, 0.5});
  const auto instants = [](int i) { return std::to_string(1'700'000'000 + i * i * 60 + i); };
  CHECK_EQUAL(load(rows(instants, 20)).time_name, "time");
  CHECK_EQUAL(load(rows([&](int i) { return instants(i) + "250"; }, 20)).width, 2);  // milliseconds
  // A few rows, what goes up unevenly, what falls later, and one of several that count are inputs.
  CHECK_EQUAL(load(rows([&](int i) { return even(i) + "," + even(i + 3); }, 20)).width, 4);
  CHECK_EQUAL(load(rows(even, 5)).width, 3);
  CHECK_EQUAL(load(rows([](int i) { return std::to_string(i * i); }, 20)).width, 3);
  CHECK_EQUAL(load(rows([](int i) { return std::to_string(i < 300 ? i : 600 - i); }, 600)).width, 3);
  LoadOptions none = raw();
  none.time = "none";
  CHECK_EQUAL(load(rows(even, 20), none).width, 3);
}

TEST_CASE("row numbers without a heading, as pandas and R write them, are not an input") {
  for (const char* const text :
       {",a,b\n0,5,6\n1,7,8\n", "\"a\" \"b\"\n\"1\" 5 6\n\"2\" 7 8\n", "\"\",\"a\",\"b\"\n\"1\",5,6\n\"2\",7,8\n"}) {
    const Sequence sequence = load(text);
    CHECK_SAYS(sequence.names == (Names{"a", "b"}), text);
    check_numbers(sequence.input, {5, 6, 7, 8});
  }
}

TEST_CASE("dates are a time") {
  const Sequence days = load("date,open,name\n2019-12-31,5,x\n2020-01-01,6,y\n2020-03-01,7,z\n");
  CHECK(days.names == Names{"open"});
  CHECK_EQUAL(days.time_name, "date");
  CHECK_EQUAL(days.time_unit, "days since 2019-12-31");
  check_numbers(days.time, {0, 1, 61});  // 2020 has a 29th of February
  const Sequence seconds = load("5,2020-01-01T00:00:00.5Z\n6,2020-01-01 01:00:01.25+01:00\n7,2020-01-01T00:01\n");
  CHECK_EQUAL(seconds.time_unit, "s since 2020-01-01");
  check_numbers(seconds.time, {0.5, 1.25, 60});
  check_refused("date,v\n2020-01-02,5\n2020-01-01,6\n", {"line 3, column 1 (date)", "'2020-01-01'", "sort the rows", "none"});
  check_refused("date,v\n2020-01-01,5\n2020-01-02,6\n2020-02-30,6\n", {"line 4, column 1 (date)", "'2020-02-30'", "not a date"});
}

TEST_CASE("columns are chosen by name or number, in the order asked for") {
  const std::string text = "t,a,b,word\n1,5,6,x\n2,7,8,y\n";
  const auto with = [&](Names columns, std::optional<std::string> time = {}) {
    LoadOptions options = raw();
    options.columns = std::move(columns);
    options.time = std::move(time);
    return options;
  };
  const Sequence swapped = load(text, with({"b", "2"}));
  CHECK(swapped.names == (Names{"b", "a"}));
  check_numbers(swapped.input, {6, 5, 8, 7});
  CHECK_EQUAL(swapped.time_name, "t");
  CHECK(load(text).names == (Names{"a", "b"}));  // words are left out
  const Sequence other = load(text, with({}, "a"));
  CHECK(other.names == (Names{"t", "b"}));
  check_numbers(other.time, {5, 7});
  CHECK_EQUAL(load(text, with({"a"}, "3")).time_name, "b");
  // A name that is a number goes before the number.
  check_numbers(load("2,1\n5,6\n7,8\n", with({"1"})).input, {2, 5, 7});
  check_numbers(load("\"2\",\"1\"\n5,6\n7,8\n", with({"1"})).input, {6, 8});
  check_refused(text, {"no column 'c'", "t, a, b, word", "1 to 4"}, with({"c"}));
  check_refused(text, {"no column '5'", "1 to 4"}, with({"5"}));
  check_refused(text, {"no column '0'"}, with({"0"}));
  check_refused("1,2\n3,4\n", {"no column 'a'", "a number from 1 to 2"}, with({"a"}));
  check_refused(text, {"'a' is chosen twice"}, with({"a", "a"}));
  check_refused("v,v\n1,2\n", {"two columns named 'v'", "by number"}, with({"v"}));
  check_refused(text, {"line 2, column 4 (word)", "'x'", "not a number"}, with({"word"}));
  check_refused(text, {"no column 'when'"}, with({}, "when"));
  check_refused("a,b\n1,5\n1,6\n", {"line 3, column 1 (a)", "not later"}, with({}, "a"));
  check_refused("t,word\n1,x\n2,y\n", {"no column of numbers beside its time"});
}

TEST_CASE("bad text is refused with file, line, column and cure") {
  check_refused("", {"is empty", "give it a row"});
  check_refused("\n\n  \n", {"is empty"});
  check_refused("# only a comment\n", {"is empty"});
  check_refused("t,v\n", {"has a header in line 1 and no rows", "add a row"});
  check_refused("# c\n\nt,v\r\n", {"has a header in line 3 and no rows"});
  check_refused("a,b\n1,2\n3\n4,5\n", {"line 3 has 1 cell where the header has 2", "make every row as long"});
  check_refused("a,b\n1,2\n3,4,5\n", {"line 3 has 3 cells where the header has 2"});
  check_refused("1 2\n3 4\n5\n", {"line 3 has 1 cell where the first row has 2"});
  check_refused("a,b\n1,2\n\n3,4\n", {"line 3 is empty", "rows follow"});
  check_refused("v\n1\n\n3\n", {"line 3 is empty"});
  check_refused("t,v\n1,2\n2,abc\n3,4\n", {"line 3, column 2 (v)", "'abc', not a number", "correct it"});
  check_refused("1,2\n3,four\n", {"line 2, column 2", "'four'"});
  check_refused("a,b\n1,2\nNaN,4\n", {"line 3, column 1 (a) is NaN", "leave the row out"});
  check_refused("nan,2\n3,4\n", {"line 1, column 1 is NaN"});
  check_refused("a,b\n1,2\n3,-inf\n", {"line 3, column 2 (b) is infinite"});
  check_refused("a,b\n1,2\n3,Infinity\n", {"line 3, column 2 (b) is infinite"});
  check_refused("a,b\n1,2\n,4\n", {"line 3, column 1 (a) is empty", "fill it in"});
  check_refused("a,b\n1,2\n3,\n", {"line 3, column 2 (b) is empty"});
  check_refused("a,b\n1,NA\n2,3\n", {"line 2, column 2 (b)", "'NA', a missing value"});
  check_refused("a,b\n1,\"2\n3,4\n", {"line 2, column 2", "quote", "never closed"});
  check_refused("name,city\nbob,paris\n", {"line 2, column 1", "'bob'", "no column of the file holds numbers"});
  check_refused("Once upon a time\nthere was a table.\n", {"no column of the file holds numbers"});
  check_refused("v\nabc\n", {"line 2, column 1", "'abc'"});
  // Far beyond the lines that are looked at to find the dialect.
  std::string longer = "a,b\n";
  for (int i = 0; i < 5000; ++i) longer += "1,2\n";
  check_refused(longer + "1,oops\n", {"line 5002, column 2 (b)", "'oops'"});
  check_refused(longer + "1\n", {"line 5002 has 1 cell"});
}

TEST_CASE("what is not text is refused with its byte or its kind") {
  check_refused(std::string("a,b\n1,\0"
                            "2\n",
                            9),
                {"neither text nor NPY", "byte 6 is 0", "CSV"});
  check_refused(
      "\x7f"
      "ELF\x02\x01\x01",
      {"neither text nor NPY", "byte 4"});
  check_refused(std::string("RIFF\0\0\0\0AVI ", 12), {"sound", "CSV or NPY"});
  check_refused("\x1f\x8b\x08", {"gzip", "gunzip"});
  check_refused("\x89HDF\r\n\x1a\n", {"HDF5"});
  std::string garbage;
  std::uint32_t state = 1;
  for (int i = 0; i < 4000; ++i) garbage += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  check_refused(garbage, {"neither text nor NPY", "byte"});
}

TEST_CASE("names of any encoding become valid UTF-8") {
  CHECK_EQUAL(load("Gr\xf6\xdf"
                   "e,b\n1,2\n")
                  .names[0],
              "Größe");
  CHECK_EQUAL(load("Größe,b\n1,2\n").names[0], "Größe");
}

TEST_CASE("tables of thousands of columns load") {
  std::string text;
  for (int row = 0; row < 20; ++row)
    for (int j = 0; j < 5000; ++j) text += std::to_string(row * 5000 + j) + (j < 4999 ? "," : "\n");
  const Sequence sequence = load(text);
  CHECK_EQUAL(sequence.width, 5000);
  CHECK_EQUAL(sequence.length, 20);
  CHECK_EQUAL(sequence.input.back(), 99999.0);
}

TEST_CASE("a million rows of four columns load in seconds") {
  std::string text = "a,b,c,d\n";
  for (int i = 0; i < 1'000'000; ++i) text += "0.123456789,-1.5,2e-3," + std::to_string(i) + "\n";
  const Scratch scratch;
  const auto file = scratch.file("large.csv", text);
  timespec from{}, to{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);  // of this thread: other programs must not fail the test
  const Sequence sequence = load_sequence(file, raw());
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
  CHECK_EQUAL(sequence.length, 1'000'000);
  CHECK_EQUAL(sequence.input.back(), 999'999.0);
  const double seconds = static_cast<double>(to.tv_sec - from.tv_sec) + 1e-9 * static_cast<double>(to.tv_nsec - from.tv_nsec);
#ifdef __OPTIMIZE__
  CHECK_SAYS(seconds < 4.0, test::show(seconds) + " s");
#else
  CHECK(seconds > 0.0);
#endif
}

// ---- paths

TEST_CASE("what is wrong with a path is said") {
  const Scratch scratch;
  CHECK_ERROR(load_sequence(scratch / "none.csv"), "there is no file");
  CHECK_ERROR(load_sequence(scratch.path()), "is a folder");
  CHECK_ERROR(load_sequence("/dev/null"), "is a device");
}

TEST_CASE("a sequence knows its file and the digest of its bytes") {
  const Scratch scratch;
  const auto file = scratch.file("abc.csv", "a,b\n1,2\n");
  const Sequence sequence = load_sequence(file);
  CHECK_EQUAL(sequence.name, "abc.csv");
  CHECK_EQUAL(sequence.source, file.string());
  CHECK_EQUAL(sequence.sha256, sha256_hex("a,b\n1,2\n"));
}

// ---- NPY and NPZ

TEST_CASE("NPY of one and two dimensions is a sequence") {
  const Sequence line = load(npy_file("<f8", {3}, bytes_of({1, 2, 3})), raw(), "heart.npy");
  CHECK_EQUAL(line.length, 3);
  CHECK(line.names == Names{"heart"});
  const Sequence plane = load(npy_file("<f8", {2, 3}, bytes_of({1, 2, 3, 4, 5, 6})), raw(), "x.csv");  // by content, not by the ending
  CHECK_EQUAL(plane.length, 2);
  CHECK_EQUAL(plane.width, 3);
  CHECK(plane.names == (Names{"column 1", "column 2", "column 3"}));
  check_numbers(plane.input, {1, 2, 3, 4, 5, 6});
  LoadOptions options = raw();
  options.columns = {"3", "column 2"};
  options.time = "1";
  const Sequence chosen = load(npy_file("<f8", {2, 3}, bytes_of({1, 2, 3, 4, 5, 6})), options, "x.npy");
  check_numbers(chosen.input, {3, 2, 6, 5});
  check_numbers(chosen.time, {1, 4});
}

TEST_CASE("bad NPY is refused with file, place and cure") {
  const std::string good = npy_file("<f8", {2, 2}, bytes_of({1, 2, 3, 4}));
  check_refused(good.substr(0, good.size() - 5), {"cut short: 5 bytes are missing", "again"}, raw(), "x.npy");
  check_refused(good.substr(0, 3), {"cut short"}, raw(), "x.npy");
  check_refused(npy_file("|O", {2}, "whatever"), {"Python objects", "astype(float)"}, raw(), "x.npy");
  check_refused(npy_file("<f8", {1, 2, 2}, bytes_of({1, 2, 3, 4})), {"shape [1, 2, 2]", "one or two dimensions", "[T, d]"}, raw(), "x.npy");
  check_refused(npy_file("<f8", {}, bytes_of({1})), {"single number", "[T]"}, raw(), "x.npy");
  check_refused(npy_file("<f8", {0, 3}, ""), {"no numbers", "at least one row"}, raw(), "x.npy");
  check_refused(npy_file("<c16", {1}, bytes_of({1, 2})), {"complex", "two columns"}, raw(), "x.npy");
  check_refused(npy_file("<f8", {2, 2}, bytes_of({1, 2, 3, std::nan("")})), {"row 2, column 2 is NaN"}, raw(), "x.npy");
  check_refused(npy_file("<f8", {2, 2}, bytes_of({1, 2, -INFINITY, 4})), {"row 2, column 1 is infinite"}, raw(), "x.npy");
  LoadOptions options = raw();
  options.columns = {"3"};
  check_refused(good, {"no column '3'", "1 to 2"}, options, "x.npy");
  options.columns = {};
  options.time = "2";
  check_refused(npy_file("<f8", {2, 2}, bytes_of({1, 2, 3, 2})), {"row 2", "not later", "none"}, options, "x.npy");
}

TEST_CASE("archives need one sequence") {
  const Scratch scratch;
  const Numbers numbers{1, 2, 3, 4};
  const auto archive = [&](const std::vector<std::pair<std::string, Shape>>& arrays) {
    AtomicFile out(scratch / "x.npz");
    NpzWriter writer(out);
    for (const auto& [key, shape] : arrays)
      writer.add(key, shape, std::span<const double>(numbers).first(static_cast<std::size_t>(count(shape))));
    writer.finish();
    out.commit();
    return scratch / "x.npz";
  };
  CHECK_EQUAL(load_sequence(archive({{"anything", {2, 2}}}), raw()).width, 2);
  CHECK_EQUAL(load_sequence(archive({{"b", {1}}, {"input", {4}}}), raw()).length, 4);
  CHECK_ERROR(load_sequence(archive({{"a", {1}}, {"b", {1}}})), "holds several arrays (a, b) and none is named input");
  CHECK_ERROR(load_sequence(archive({})), "Excel");
  CHECK_ERROR(load_sequence(archive({{"input", {2, 2}}, {"time", {4}}})), "time has shape [4] where input has 2 steps");
  CHECK_ERROR(load_sequence(archive({{"input", {2, 2}}, {"target", {3}}})), "target has shape [3] where input has 2 steps");
  // All headers are looked at before an array is read, which may be of any size: of two mistakes that in a header is told.
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [key, shape] : std::vector<std::pair<std::string, Shape>>{{"time", {4}}, {"target", {3}}}) {
    AtomicFile out(scratch / "y.npz");
    NpzWriter writer(out);
    writer.add("input", {2}, std::span<const double>(Numbers{nan, 1.0}));
    writer.add(key, shape, std::span<const double>(numbers).first(static_cast<std::size_t>(count(shape))));
    writer.finish();
    out.commit();
    CHECK_ERROR(load_sequence(scratch / "y.npz", raw()), key + " has shape");
  }
}

TEST_CASE("a time beside the columns stays when columns are chosen") {
  const Scratch scratch;
  AtomicFile out(scratch / "x.npz");
  NpzWriter writer(out);
  const Numbers numbers{1, 2, 3, 4}, time{0.5, 0.75};
  writer.add("input", {2, 2}, std::span<const double>(numbers));
  writer.add("time", {2}, std::span<const double>(time));
  writer.finish();
  out.commit();
  LoadOptions options = raw();
  options.columns = {"2"};
  const Sequence chosen = load_sequence(scratch / "x.npz", options);
  check_numbers(chosen.input, {2, 4});
  check_numbers(chosen.time, time);
  CHECK_EQUAL(chosen.time_name, "time");
  options.time = "none";
  check_numbers(load_sequence(scratch / "x.npz", options).time, {0, 1});
}

TEST_CASE("the table of formats says what is read, told by its beginning, and what is written") {
  std::set<std::string> suffixes, names;
  for (const SequenceFormat& format : sequence_formats()) {
    CHECK(format.load && !format.names.empty() && !format.suffixes.empty());
    CHECK_EQUAL(format.save == nullptr, format.saved_as.empty());
    CHECK_EQUAL(format.sniff == nullptr, &format == &sequence_formats().front());  // text alone is what no other is
    for (const std::string& suffix : format.suffixes) CHECK_SAYS(suffix.starts_with('.') && suffixes.insert(suffix).second, suffix);
    for (const std::string& name : format.names) CHECK_SAYS(names.insert(name).second, name);
    if (format.save) CHECK_SAYS(std::ranges::find(format.suffixes, format.saved_as) != format.suffixes.end(), format.saved_as);
  }
  CHECK_EQUAL(suffixes.size(), sequence_suffixes().size());
  CHECK(sequence_format_names().starts_with("CSV, TSV, NPY, NPZ") || sequence_format_names() == "CSV, TSV, NPY or NPZ");
  CHECK(saved_sequence_suffixes() == (Names{".csv", ".npz"}));
  CHECK_EQUAL(sequence_format_of("1,2\n").names[0], "CSV");
  CHECK_EQUAL(sequence_format_of("\x93NUMPY").names[0], "NPY");
  CHECK_EQUAL(sequence_format_of("PK\x03\x04").names[0], "NPZ");
}

// ---- standardising

TEST_CASE("standardising makes mean 0 and deviation 1, and keeps what it took away") {
  LoadOptions options;
  const Sequence sequence = load("a,b\n1,7\n2,7\n3,7\n6,7\n", options);
  CHECK(sequence.standardised);
  CHECK_CLOSE(sequence.mean[0], 3.0, 1e-15);
  CHECK_CLOSE(sequence.deviation[0], std::sqrt(3.5), 1e-15);  // of the population
  CHECK_CLOSE(sequence.input[0], -2.0 / std::sqrt(3.5), 1e-15);
  CHECK_CLOSE(sequence.input[6], 3.0 / std::sqrt(3.5), 1e-15);
  CHECK_EQUAL(sequence.mean[1], 7.0);
  CHECK_EQUAL(sequence.deviation[1], 1.0);
  CHECK_EQUAL(sequence.input[3], 0.0);
  // A constant that binary fractions do not hold stays one.
  const Sequence tenth = load("v\n0.1\n0.1\n0.1\n0.1\n0.1\n0.1\n0.1\n", options);
  CHECK_EQUAL(tenth.deviation[0], 1.0);
  for (const double value : tenth.input) CHECK_EQUAL(value, 0.0);
  const Sequence plain = load("a\n1\n2\n");
  CHECK(!plain.standardised);
  CHECK_EQUAL(plain.mean[0], 0.0);
  CHECK_EQUAL(plain.deviation[0], 1.0);
  // Far from zero, where the sum of squares would lose everything.
  const Sequence far = load("v\n1000000001\n1000000002\n1000000003\n", options);
  CHECK_CLOSE(far.deviation[0], std::sqrt(2.0 / 3.0), 1e-9);
  check_refused("v,w\n1e308,1\n-1e308,2\n", {"channel v", "too far apart", "rescale"}, options);
}

// ---- samples

TEST_CASE("the shipped sunspots load with their year as time") {
  const Sequence sequence = load_sequence(sample("sunspots.csv"), raw());
  CHECK_EQUAL(sequence.length, 2820);
  CHECK(sequence.names == Names{"v"});
  CHECK_EQUAL(sequence.time_name, "t");
  CHECK_EQUAL(sequence.time.front(), 1749.0);
  CHECK_EQUAL(sequence.input[0], 58.0);
  CHECK_EQUAL(sequence.input.back(), 33.4);
  const Sequence standardised = load_sequence(sample("sunspots.csv"));
  double sum = 0.0, squares = 0.0;
  for (const double value : standardised.input) sum += value, squares += value * value;
  CHECK_CLOSE(sum / 2820, 0.0, 1e-12);
  CHECK_CLOSE(squares / 2820, 1.0, 1e-12);
}

TEST_CASE("the shipped ECG loads") {
  const Sequence sequence = load_sequence(sample("ecg.npy"), raw());
  CHECK_EQUAL(sequence.length, 3600);
  CHECK_EQUAL(sequence.width, 1);
  CHECK_CLOSE(sequence.input[0], -0.245, 1e-7);
}

// ---- saving

TEST_CASE("a saved archive comes back whole, target and classes too") {
  const Scratch scratch;
  for (const TaskInfo& info : tasks()) {
    const Sequence made = make_task(info.name, {.length = info.default_length, .seed = 4});
    save_sequence(made, scratch / "s.npz");
    const Sequence read = load_sequence(scratch / "s.npz", raw());
    CHECK_EQUAL(read.length, made.length);
    CHECK_EQUAL(read.width, made.width);
    CHECK(read.input == made.input && read.time == made.time && read.target == made.target && read.mask == made.mask);
    CHECK(read.target_kind == made.target_kind);
    CHECK_EQUAL(read.target_width, made.target_width);
    CHECK_EQUAL(read.classes, made.classes);
    CHECK(read.names == made.names);
  }
}

TEST_CASE("a saved table has time, inputs, target and mask, to the last bit") {
  const Scratch scratch;
  const Sequence made = make_task("adding", {.length = 30, .seed = 4});
  save_sequence(made, scratch / "s.csv");
  const std::string text = bytes_of_file(scratch / "s.csv");
  CHECK(text.starts_with("step,value,marker,target,mask\n0,"));
  const Sequence read = load_sequence(scratch / "s.csv", raw());
  CHECK(read.names == (Names{"value", "marker", "target", "mask"}));
  CHECK(read.time == made.time);
  for (std::size_t t = 0; t < 30; ++t) {
    CHECK_EQUAL(read.input[4 * t], made.input[2 * t]);
    CHECK_EQUAL(read.input[4 * t + 2], made.target[t]);
  }
  Sequence odd = made;
  odd.names = {"a, \"b\"", "#c"};
  odd.time_unit = "s";
  save_sequence(odd, scratch / "o.csv");
  const Sequence back = load_sequence(scratch / "o.csv", raw());
  CHECK_EQUAL(back.names[0], "a, \"b\"");
  CHECK_EQUAL(back.names[1], "#c");
  CHECK_EQUAL(back.time_unit, "s");
  CHECK_ERROR(save_sequence(made, scratch / "s.xlsx"), "name it .csv or .npz");
  CHECK_ERROR(save_sequence(made, scratch / "none/s.csv"), "folder does not exist");
  CHECK(listing(scratch.path()) == (std::set<std::string>{"s.csv", "o.csv"}));
}

TEST_CASE("columns of a file can be the target: they are no inputs, and standardised as inputs are") {
  const std::string bytes = "time,u,y,z\n0,1,10,5\n1,2,30,5\n2,4,50,6\n";
  LoadOptions options = raw();
  options.target = {"y"};
  const Sequence one = load(bytes, options);
  CHECK_EQUAL(one.width, 2);
  CHECK((one.names == Names{"u", "z"}));
  CHECK((one.input == Numbers{1, 5, 2, 5, 4, 6}));
  CHECK(one.target_kind == TargetKind::regress);
  CHECK_EQUAL(one.target_width, 1);
  CHECK((one.target == Numbers{10, 30, 50}));
  CHECK((one.mask == Numbers{1, 1, 1}));
  CHECK((one.target_names == Names{"y"}));
  CHECK_EQUAL(one.time_name, "time");
  CHECK(one.load == options);

  options.target = {"4", "y"};
  options.columns = {"u"};
  const Sequence two = load(bytes, options);
  CHECK((two.names == Names{"u"}));
  CHECK((two.target == Numbers{5, 10, 5, 30, 6, 50}));
  CHECK((two.target_names == Names{"z", "y"}));

  LoadOptions standard;
  standard.target = {"y"};
  const Sequence scaled = load(bytes, standard);
  CHECK_CLOSE(scaled.target[0], -std::sqrt(1.5), 1e-12);
  CHECK_CLOSE(scaled.target[1], 0.0, 1e-12);
  CHECK_CLOSE(scaled.target[2], std::sqrt(1.5), 1e-12);

  // A time that turns out to be none goes back among the inputs, before the target.
  options = raw();
  options.target = {"u"};
  const Sequence falling = load("u,time,y\n1,0,10\n2,1,20\n4,0,30\n", options);
  CHECK((falling.names == Names{"time", "y"}));
  CHECK((falling.input == Numbers{0, 10, 1, 20, 0, 30}));
  CHECK((falling.target == Numbers{1, 2, 4}));
}

TEST_CASE("the target can be the inputs' own next values; the last step does not count") {
  LoadOptions options = raw();
  options.target = {"next"};
  const Sequence sequence = load("u,v\n1,10\n2,20\n4,30\n", options);
  CHECK_EQUAL(sequence.target_width, 2);
  CHECK((sequence.target == Numbers{2, 20, 4, 30, 0, 0}));
  CHECK((sequence.mask == Numbers{1, 1, 0}));
  CHECK((sequence.target_names == Names{"next u", "next v"}));
  options.standardise = true;
  const Sequence standard = load("u,v\n1,10\n2,20\n4,30\n", options);
  for (std::size_t i = 0; i + 2 < standard.input.size(); ++i) CHECK_EQUAL(standard.target[i], standard.input[i + 2]);
  // Of a column that is named next, by its number.
  options.target = {"2"};
  options.standardise = false;
  CHECK((load("u,next\n1,10\n2,20\n", options).target == Numbers{10, 20}));
  options.target = {"next"};
  check_refused("u\n1\n", {"has one row", "no next value"}, options);
}

TEST_CASE("a target of an array is a column of it, and takes the place of one that an archive brings") {
  const Scratch scratch;
  LoadOptions options = raw();
  options.target = {"2"};
  Sequence made = make_task("adding", {.length = 12, .seed = 2});
  save_sequence(made, scratch / "a.npz");
  CHECK_EQUAL(load_sequence(scratch / "a.npz", raw()).target_names.size(), 0u);
  const Sequence read = load_sequence(scratch / "a.npz", options);
  CHECK_EQUAL(read.width, 1);
  CHECK_EQUAL(read.target_width, 1);
  for (std::size_t t = 0; t < 12; ++t) {
    CHECK_EQUAL(read.input[t], made.input[2 * t]);
    CHECK_EQUAL(read.target[t], made.input[2 * t + 1]);
    CHECK_EQUAL(read.mask[t], 1.0);
  }
  options.target = {"next"};
  CHECK_EQUAL(load_sequence(scratch / "a.npz", options).target_width, 2);
}

TEST_CASE("a target that cannot be is refused by name") {
  LoadOptions options = raw();
  options.target = {"w"};
  check_refused("u,v\n1,10\n2,20\n", {"no column 'w'", "u, v"}, options);
  options.target = {"u", "v"};
  check_refused("u,v\n1,10\n2,20\n", {"no column of numbers beside its target"}, options);
  options.target = {"u", "1"};
  check_refused("u,v\n1,10\n2,20\n", {"chosen twice"}, options);
}

TEST_CASE("a column that is named as input and as target is both, in text and in arrays") {
  LoadOptions options = raw();
  options.columns = {"1", "2"};
  options.target = {"2"};
  const Numbers values{1, 10, 2, 20};
  const Scratch folder;
  AtomicFile file(folder / "a.npz");
  NpzWriter writer(file);
  writer.add("input", {2, 2}, std::span<const double>(values));
  writer.finish();
  file.commit();
  for (const auto& path : {folder.file("a.csv", "u,v\n1,10\n2,20\n"), folder / "a.npz"}) {
    const Sequence read = load_sequence(path, options);
    CHECK_EQUAL(read.width, 2);
    CHECK(read.input == values);
    CHECK_EQUAL(read.target_width, 1);
    CHECK(read.target == (Numbers{10, 20}));
  }
}
