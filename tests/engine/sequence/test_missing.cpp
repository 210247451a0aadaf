// SPDX-License-Identifier: GPL-3.0-or-later
// Cells of a file that are missing: what becomes of them is chosen, and the numbers are those that one gets by hand.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "array/error.h"
#include "files/files.h"
#include "files/npy.h"
#include "files/npz.h"
#include "learning/examples.h"
#include "scratch.h"
#include "sequence/elapsed.h"
#include "sequence/sequence.h"
#include "test.h"

using namespace reclab;
using reclab::test::Scratch;
using Numbers = std::vector<double>;
using Names = std::vector<std::string>;

namespace {

constexpr double gap = std::numeric_limits<double>::quiet_NaN();

LoadOptions reading(Missing missing) {
  LoadOptions options;
  options.standardise = false;
  options.missing = missing;
  return options;
}

Sequence load(const std::string& bytes, const LoadOptions& options, const std::string& name = "x.csv") {
  const Scratch scratch;
  return load_sequence(scratch.file(name, bytes), options);
}

std::string sentence_of(const std::string& bytes, const LoadOptions& options, const std::string& name = "x.csv") {
  try {
    load(bytes, options, name);
  } catch (const Error& error) {
    return error.what();
  }
  test::fail(__FILE__, __LINE__, "no error from:\n" + bytes);
}
void check_says(const std::string& sentence, const std::string& part) {
  CHECK_SAYS(sentence.find(part) != std::string::npos, "\"" + sentence + "\" has no \"" + part + "\"");
}

const std::string table =
    "a,b\n"
    "1,\n"
    "2,10\n"
    "NA,20\n"
    "4,nan\n"
    "8,?\n"
    "16,50\n";

}  // namespace

TEST_CASE("a row with a missing cell is left out, and the steps around it keep their numbers") {
  const Sequence s = load(table, reading(Missing::leave_out));
  CHECK(s.input == (Numbers{2, 10, 16, 50}));
  CHECK(s.time == (Numbers{1, 5}));
  CHECK_EQUAL(s.time_name, "step");
  CHECK_EQUAL(s.length, 2);
  CHECK_EQUAL(s.missing.rows_left_out, 4);
  CHECK_EQUAL(s.missing.cells, 4);
  CHECK_EQUAL(s.missing.of, 12);
  CHECK(s.missing.columns == (Names{"a", "b"}));
  const Sequence three = load("a\n1\n2\n\n4\n", reading(Missing::leave_out));
  CHECK(three.input == (Numbers{1, 2, 4}) && three.time == (Numbers{0, 1, 3}));
  CHECK(uneven(three.time));  // a model that knows time is told of the gap
  check_says(sentence_of("a,b\n1,\n,2\n", reading(Missing::leave_out)), "every row has a missing cell");
}

TEST_CASE("a missing cell holds the last value, and the first one where there is none before") {
  const Sequence s = load(table, reading(Missing::hold));
  CHECK(s.input == (Numbers{1, 10, 2, 10, 2, 20, 4, 20, 8, 20, 16, 50}));
  CHECK(s.time == (Numbers{0, 1, 2, 3, 4, 5}));
  CHECK(s.known == (Numbers{0, 1, 0, 0, 0, 1}));
  CHECK_EQUAL(s.flags, 0);
  CHECK_EQUAL(missing_notes(s.missing).size(), std::size_t{1});
  check_says(missing_notes(s.missing)[0], "4 of the 12 cells of the input were missing, in a and b; each holds the last value");
}

TEST_CASE("a missing cell is on the line between its neighbours in time") {
  const Sequence s = load(table, reading(Missing::interpolate));
  CHECK(s.input == (Numbers{1, 10, 2, 10, 3, 20, 4, 30, 8, 40, 16, 50}));
  const Sequence timed = load("t,a\n0,0\n1,\n4,8\n9,\n", reading(Missing::interpolate));
  CHECK(timed.input == (Numbers{0, 2, 8, 8}));
  CHECK(timed.time == (Numbers{0, 1, 4, 9}));
}

TEST_CASE("a mask has a channel for each column with missing cells, which is never standardised") {
  const Sequence s = load("a,b,c\n1,5,\n,5,2\n3,5,4\n", reading(Missing::mask));
  CHECK(s.names == (Names{"a", "b", "c", "a known", "c known"}));
  CHECK(s.input == (Numbers{1, 5, 2, 1, 0, 1, 5, 2, 0, 1, 3, 5, 4, 1, 1}));
  CHECK_EQUAL(s.width, 5);
  CHECK_EQUAL(s.flags, 2);
  LoadOptions standard = reading(Missing::mask);
  standard.standardise = true;
  const Sequence scaled = load("a,b,c\n1,5,\n,5,2\n3,5,4\n", standard);
  for (std::size_t t = 0; t < 3; ++t)
    for (std::size_t j = 3; j < 5; ++j) CHECK_EQUAL(scaled.input[t * 5 + j], s.input[t * 5 + j]);
  const Numbers mean{5.0 / 3.0, 5, 8.0 / 3.0, 0, 0};
  for (std::size_t j = 0; j < 5; ++j) CHECK_CLOSE(scaled.mean[j], mean[j], 1e-15);
  CHECK(scaled.deviation[3] == 1.0 && scaled.deviation[4] == 1.0);
}

TEST_CASE("a file without missing cells is read as ever under every choice") {
  const std::string whole = "t,a,b\n1,2,3\n2,5,7\n4,1,1\n";
  const Sequence plain = load(whole, reading(Missing::refuse));
  for (const Missing missing : {Missing::leave_out, Missing::hold, Missing::interpolate, Missing::mask}) {
    const Sequence s = load(whole, reading(missing));
    CHECK(s.input == plain.input && s.names == plain.names && s.time == plain.time && s.time_name == plain.time_name);
    CHECK(!s.missing.any() && s.known.empty() && missing_notes(s.missing).empty());
    CHECK_EQUAL(s.missing.treated, to_string(missing));
  }
  CHECK(plain.missing.treated.empty());
}

TEST_CASE("a file that was filled in by hand gives the same numbers") {
  for (const bool standardise : {false, true}) {
    LoadOptions options = reading(Missing::hold), plain = reading(Missing::refuse);
    options.standardise = plain.standardise = standardise;
    CHECK(load(table, options).input == load("a,b\n1,10\n2,10\n2,20\n4,20\n8,20\n16,50\n", plain).input);
  }
}

TEST_CASE("a missing cell is refused unless it is said what becomes of it, and the sentence says how") {
  for (const char* text : {"a,b\n1,2\n,4\n", "a,b\n1,2\nNA,4\n", "a,b\n1,2\nnan,4\n", "a\n1\n\n3\n"}) {
    const std::string sentence = sentence_of(text, reading(Missing::refuse));
    check_says(sentence, "line 3");
    check_says(sentence, "--missing");
    for (const char* word : {"leave-out", "hold", "interpolate", "mask"}) check_says(sentence, word);
  }
  try {
    load("a\n1\nNA\n", reading(Missing::refuse));
    CHECK(false);
  } catch (const MissingCellError& error) {
    CHECK_EQUAL(error.where().range, "leave-out,hold,interpolate,mask");
  }
  for (const std::string& word : missing_choices()) CHECK_EQUAL(to_string(*missing_choice(word)), word);
  CHECK(!missing_choice("zero"));
  // What is no missing cell is refused as ever.
  for (const Missing missing : {Missing::leave_out, Missing::hold, Missing::interpolate, Missing::mask}) {
    check_says(sentence_of("a,b\n1,2\nx,4\n3,5\n", reading(missing)), "not a number");
    check_says(sentence_of("a,b\n1,2\ninf,4\n", reading(missing)), "infinite");
    check_says(sentence_of("a,b\n1,2\n3\n", reading(missing)), "1 cell");
    check_says(sentence_of("a,b\n1,2\n\n3,4\n", reading(missing)), "is empty and rows follow");
  }
}

TEST_CASE("a time that is missing leaves its row out, or is refused") {
  const std::string text = "time,a\n1,5\n,6\n3,7\n4,\n";
  const Sequence s = load(text, reading(Missing::leave_out));
  CHECK(s.time == (Numbers{1, 3}) && s.input == (Numbers{5, 7}));
  CHECK_EQUAL(s.missing.rows_left_out, 2);
  for (const Missing missing : {Missing::refuse, Missing::hold, Missing::interpolate, Missing::mask})
    check_says(sentence_of("time,a\n1,5\n,6\n3,7\n", reading(missing)),
               "line 3, column 1 (time) is a time that is missing: fill it in, leave such rows out (--missing leave-out)");
  const Sequence dates = load("date,a\nNA,5\n2024-01-03,6\n2024-01-05,7\n", reading(Missing::leave_out));
  CHECK(dates.time == (Numbers{0, 2}) && dates.input == (Numbers{6, 7}));
  CHECK_EQUAL(dates.time_unit, "days since 2024-01-03");
  // A column that is no time after all, since it falls, is an input like others.
  const Sequence falls = load("t,a\n1,5\n,6\n3,7\n2,8\n", reading(Missing::interpolate));
  CHECK(falls.names == (Names{"t", "a"}) && falls.input == (Numbers{1, 5, 2, 6, 3, 7, 2, 8}));
}

TEST_CASE("a step whose target is missing does not count") {
  LoadOptions options = reading(Missing::hold);
  options.target = {"y"};
  const std::string text = "a,y\n1,\n2,20\n3,NA\n4,40\n";
  for (const Missing missing : {Missing::hold, Missing::leave_out, Missing::interpolate, Missing::mask}) {
    options.missing = missing;
    const Sequence s = load(text, options);
    CHECK(s.input == (Numbers{1, 2, 3, 4}));
    CHECK(s.mask == (Numbers{0, 1, 0, 1}));
    CHECK(s.target == (Numbers{20, 20, 20, 40}));
    CHECK_EQUAL(s.missing.target_steps, 2);
    CHECK_EQUAL(s.missing.cells, 0);
    check_says(missing_notes(s.missing)[0], "The target is missing at 2 steps, which do not count.");
  }
  options.missing = Missing::refuse;
  check_says(sentence_of(text, options), "line 2, column 2 (y) is empty");
  options.missing = Missing::hold;
  check_says(sentence_of("a,y\n1,NA\n2,NA\n", options), "the target y has no number");
  // The next value of what was not known is none to learn; the channels of a mask are never a target.
  options.target = {"next"};
  options.missing = Missing::mask;
  const Sequence next = load("a\n1\n\n3\n4\n", options);
  CHECK(next.input == (Numbers{1, 1, 1, 0, 3, 1, 4, 1}));
  CHECK(next.target == (Numbers{1, 3, 4, 0}) && next.mask == (Numbers{0, 1, 1, 0}));
  CHECK(next.target_names == Names{"next " + next.names[0]});
}

TEST_CASE("a column without any number is no input unless it is chosen") {
  const std::string text = "a,b\n1,NA\n,NA\n3,NA\n";
  for (const Missing missing : {Missing::leave_out, Missing::hold}) {
    const Sequence s = load(text, reading(missing));
    CHECK(s.names == Names{"a"});
    CHECK(s.missing.columns_left_out == Names{"b"});
    check_says(missing_notes(s.missing).back(), "b has no number and is no input.");
  }
  LoadOptions both = reading(Missing::hold);
  both.columns = {"a", "b"};
  check_says(sentence_of(text, both), "column b has no number");
}

TEST_CASE("NaN in an array is a missing cell") {
  const auto file = [](const Numbers& values) {
    return npy_header({static_cast<std::int64_t>(values.size() / 2), 2}, "<f8") +
           std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  };
  const Numbers values{1, 10, gap, 20, 3, gap, 5, 40};
  check_says(sentence_of(file(values), reading(Missing::refuse), "x.npy"), "row 2, column 1 is NaN");
  CHECK(load(file(values), reading(Missing::hold), "x.npy").input == (Numbers{1, 10, 1, 20, 3, 20, 5, 40}));
  CHECK(load(file(values), reading(Missing::leave_out), "x.npy").input == (Numbers{1, 10, 5, 40}));
  LoadOptions timed = reading(Missing::leave_out);
  timed.time = "1";
  CHECK(load(file(values), timed, "x.npy").time == (Numbers{1, 5}));
  timed.missing = Missing::hold;
  check_says(sentence_of(file(values), timed, "x.npy"), "the time at row 2 is missing");

  const Scratch scratch;
  const auto path = scratch.path() / "x.npz";
  const Numbers input{1, gap, 3, 4}, target{0, 1, gap, 1};
  const std::vector<std::int64_t> classes{2};
  {
    AtomicFile out(path);
    NpzWriter archive(out);
    archive.add("input", {4, 1}, std::span<const double>(input));
    archive.add("target", {4, 1}, std::span<const double>(target));
    archive.add("classes", {}, std::span<const std::int64_t>(classes));
    archive.finish();
    out.commit();
  }
  const Sequence held = load_sequence(path, reading(Missing::interpolate));
  CHECK(held.input == (Numbers{1, 2, 3, 4}) && held.target == (Numbers{0, 1, 1, 1}) && held.mask == (Numbers{1, 1, 0, 1}));
  const Sequence left = load_sequence(path, reading(Missing::leave_out));
  CHECK(left.input == (Numbers{1, 3, 4}) && left.target == (Numbers{0, 0, 1}) && left.mask == (Numbers{1, 0, 1}));
  CHECK_EQUAL(left.missing.target_steps, 1);
}

TEST_CASE("windows that are learned from take no filled cell for a target, and no mask for a value") {
  const Sequence s = load("a\n0\n2\n\n6\n8\n10\n12\n14\n", reading(Missing::mask));
  const auto examples =
      window_examples(std::make_shared<const Sequence>(s), {.length = 3, .ahead = 1, .held_out = 0.5, .standardise = true, .seed = 1});
  const Sequence window = examples->training(0, 0);  // the only place
  CHECK_EQUAL(window.width, 2);
  CHECK_EQUAL(window.target_width, 1);
  CHECK(window.mask == (Numbers{1, 0, 1}));
  // By the first four steps: 0 2 2 6, with mean 2.5 and deviation sqrt(4.75).
  const double by = std::sqrt(4.75);
  for (std::size_t t = 0; t < 3; ++t) {
    CHECK_CLOSE(window.input[2 * t], (Numbers{0, 2, 2}[t] - 2.5) / by, 1e-15);
    CHECK_EQUAL(window.input[2 * t + 1], (Numbers{1, 1, 0}[t]));
    CHECK_CLOSE(window.target[t], (Numbers{2, 2, 6}[t] - 2.5) / by, 1e-15);
  }
  check_says(examples->text(), "1 of 8 cells missing, held and marked");
}
