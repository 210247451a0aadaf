// SPDX-License-Identifier: GPL-3.0-or-later
// What comes from files reaches the terminal as text, and what would take all memory is a sentence.
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "places.h"
#include "process.h"
#include "scratch.h"
#include "terminal.h"
#include "test.h"
#include "text.h"

using namespace reclab;
using reclab::test::Process;

TEST_CASE("what a stream writes has no control characters but its own") {
  const auto written = [](const std::string& text, bool in_pieces) {
    std::ostringstream out;
    {
      const cli::PlainText plain(out, -1);
      if (in_pieces)
        for (const char c : text) out << c << std::flush;
      else
        out << text;
    }
    return out.str();
  };
  CHECK_EQUAL(written("a\033]0;title\007b\n\tc", false), std::string("a ]0;title b\n\tc"));
  CHECK_EQUAL(written("\033[1mbold\033[0m \033[2Jno \033\033[1mx\033[", false), std::string("\033[1mbold\033[0m  [2Jno  \033[1mx ["));
  CHECK_EQUAL(written("\033", false), std::string(" "));
  CHECK_EQUAL(written(std::string("a\0b\r", 4), true), std::string("a b "));
  CHECK_EQUAL(written("\u00e4\u2588 \u03bc", true), std::string("\u00e4\u2588 \u03bc"));
}

TEST_CASE("a file's name is no command to the terminal") {
  const test::Scratch folder;
  const auto file = folder.file("x\033]0;owned\007.csv", "a,b\n1,2\n2,3\n4,5\n");
  Process process(test::built("bin/reclab"), {"run", "elman", "--input", file.string()}, {});
  CHECK_SAYS(process.wait() == 0, process.error);
  CHECK_SAYS(process.output.find("]0;owned") != std::string::npos, process.output);
  for (const std::string& text : {process.output, process.error})
    CHECK(text.find('\033') == std::string::npos && text.find('\007') == std::string::npos);
}

TEST_CASE("a sentence after the program's name begins in lower case, and a name stays as it is") {
  CHECK_EQUAL(cli::sentence_after_colon("Training ended at step 3."), std::string("training ended at step 3."));
  CHECK_EQUAL(cli::sentence_after_colon("The weights w are wrong."), std::string("the weights w are wrong."));
  CHECK_EQUAL(cli::sentence_after_colon("Theta.csv is empty."), std::string("Theta.csv is empty."));
  CHECK_EQUAL(cli::sentence_after_colon(""), std::string());
  CHECK_EQUAL(cli::one_line("a\xc2\x9b"
                            "2Jb\033c"),
              std::string("a  2Jb c"));
}

TEST_CASE("a batch that would take more memory than is free is refused before it takes it") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  throw test::Skip("a sanitiser takes more address space than the limit");
#endif
  Process process("/bin/sh", {"-c", "ulimit -v 6000000; exec \"" + test::built("bin/reclab") + "\" bench lru --lengths 1 --batch 1000000"},
                  {});
  const int status = process.wait();
  std::string said = process.output;
  std::ranges::replace(said, '\n', ' ');  // it is broken into lines
  CHECK_SAYS(status == 0 && said.find("The sequential form at length 1 was left out: lru would need ") != std::string::npos &&
                 said.find(" MiB for 1 step at once") != std::string::npos,
             said + process.error);
}
