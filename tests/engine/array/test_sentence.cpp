// SPDX-License-Identifier: GPL-3.0-or-later
// What can be done about something is data in a sentence: a terminal names the option, and elsewhere it is said or left out.
#include <string>

#include "array/error.h"
#include "test.h"

using namespace reclab;

TEST_CASE("a terminal reads a sentence with the options of reclab") {
  CHECK_EQUAL(Sentence("plain --text stays").terminal_text(), "plain --text stays");
  const Sentence wrong = "it is not finite" + Remedy{": ", "choose ", {"dtype", "f64"}} + Remedy{", or ", "take a smaller width"} + ".";
  CHECK_EQUAL(wrong.terminal_text(), "it is not finite: choose --dtype f64, or take a smaller width.");
  const Sentence many = std::string("too large") + Remedy{": ", "record less with ", {"every"}} + Remedy{" or ", "", {"record"}} +
                        Remedy{"; ", "", {"every", "1"}, " records all"} + ".";
  CHECK_EQUAL(many.terminal_text(), "too large: record less with --every or --record; --every 1 records all.");
  CHECK_EQUAL(std::string(Error("a\x1b" + Remedy{": ", "leave out ", {"trained"}}).what()), "a\\x1b: leave out --trained");
  CHECK(Error(wrong).sentence() == wrong);
}

TEST_CASE("a remedy that there is not is left out with its separator, which the next one has where none was said before it") {
  const auto without = [](const std::string& control) {
    return [control](const Remedy& remedy) {
      return remedy.control.name == control ? std::nullopt : std::optional(remedy.before + remedy.control.name + remedy.after);
    };
  };
  const Sentence all = "it is so" + Remedy{": ", "say a"} + Remedy{" or ", "", {"b"}} + Remedy{"; ", "", {"c"}, " does it"} + ". More.";
  CHECK_EQUAL(all.text(without("none")), "it is so: say a or b; c does it. More.");
  CHECK_EQUAL(all.text(without("b")), "it is so: say a; c does it. More.");
  CHECK_EQUAL(all.text(without("c")), "it is so: say a or b. More.");
  const Sentence first = "it is so" + Remedy{": ", "", {"b"}} + Remedy{" or ", "", {"b"}} + Remedy{", ", "say a"} + ".";
  CHECK_EQUAL(first.text(without("b")), "it is so: say a.");
  const Sentence two = "it is so" + Remedy{"; ", "", {"b"}} + " now" + Remedy{", or ", "say a"} + ".";
  CHECK_EQUAL(two.text(without("b")), "it is so now, or say a.");  // words between them part them
}

TEST_CASE("sentences that say the same are the same, however they are put together") {
  CHECK(Sentence("a") + "b" + "" == Sentence("ab"));
  CHECK(Sentence("").empty() && Sentence().empty() && (Sentence() + "").empty() && !Sentence(Remedy{"", "a"}).empty());
  CHECK((Sentence("a: b") != "a" + Remedy{": ", "b"}));
}
