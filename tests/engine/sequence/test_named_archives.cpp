// SPDX-License-Identifier: GPL-3.0-or-later
// The names in NPZ files: of columns and of the time.
#include <span>
#include <string>
#include <vector>

#include "files/files.h"
#include "files/npz.h"
#include "scratch.h"
#include "sequence/sequence.h"
#include "test.h"

using namespace reclab;
using reclab::test::Scratch;
using Names = std::vector<std::string>;

namespace {

LoadOptions raw() {
  LoadOptions options;
  options.standardise = false;
  return options;
}

}  // namespace

TEST_CASE("an archive has the names of its columns and of its time, and a column is chosen by its name") {
  const Scratch scratch;
  Sequence made = make_task("adding", {.length = 5, .seed = 4});
  made.width = 1;
  made.input = {1, 2, 3, 4, 5};
  made.names = {"Größe 🎵"};
  made.time_name = "day";
  made.time_unit = "h";
  save_sequence(made, scratch / "ring.npz");
  const Sequence read = load_sequence(scratch / "ring.npz", raw());
  CHECK(read.names == made.names);
  CHECK_EQUAL(read.time_name, "day");
  CHECK_EQUAL(read.time_unit, "h");
  LoadOptions options = raw();
  options.columns = {"Größe 🎵"};
  CHECK(load_sequence(scratch / "ring.npz", options).names == made.names);
  // A time that is the number of the step needs none.
  made.time_name = "step";
  made.time_unit.clear();
  save_sequence(made, scratch / "steps.npz");
  CHECK(!NpzFile(scratch / "steps.npz").has("time_name"));
  // What others call names may be something else: the columns are then numbered, or have the file's name.
  const auto names_of = [&](const auto& put) {
    AtomicFile out(scratch / "theirs.npz");
    NpzWriter archive(out);
    archive.add("input", {2, 2}, std::span<const double>(std::vector<double>{1, 2, 3, 4}));
    put(archive);
    archive.finish();
    out.commit();
    return load_sequence(scratch / "theirs.npz", raw()).names;
  };
  const Names numbered{"column 1", "column 2"};
  CHECK(names_of([](NpzWriter& archive) { archive.add("names", std::span<const std::string>(Names{"a", "b"})); }) == (Names{"a", "b"}));
  CHECK(names_of([](NpzWriter& archive) { archive.add("names", std::span<const std::string>(Names{"a", "b", "c"})); }) == numbered);
  CHECK(names_of([](NpzWriter& archive) { archive.add("names", std::span<const std::string>(Names{"a", ""})); }) == numbered);
  CHECK(names_of([](NpzWriter& archive) { archive.add("names", std::span<const std::string>(Names{"a", "b\x1b[31m"})); }) == numbered);
  CHECK(names_of([](NpzWriter& archive) { archive.add("names", {2}, std::span<const double>(std::vector<double>{1, 2})); }) == numbered);
}
