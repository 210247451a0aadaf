// SPDX-License-Identifier: GPL-3.0-or-later
#include <clocale>
#include <cmath>
#include <limits>

#include "array/error.h"
#include "parameters/hyper.h"
#include "parameters/nearest.h"
#include "test.h"

using namespace reclab;

namespace {

std::vector<HyperSpec> table() {
  return {hyper_integer("width", "H", 64, 1, 4096, "Units.", "units"), hyper_real("dt_min", "Δ", 0.001, 1e-6, 1.0, "Step.", true),
          hyper_flag("bias", true, "A bias."), hyper_choice("activation", "tanh", {"tanh", "relu", "identity"}, "The non-linearity."),
          hyper_real("shift", "b", 0.0, -10.0, 10.0, "A shift.")};
}

}  // namespace

TEST_CASE("a table gives its defaults") {
  const Hyper hyper(table());
  CHECK_EQUAL(hyper.integer("width"), 64);
  CHECK_EQUAL(hyper.real("dt_min"), 0.001);
  CHECK(hyper.flag("bias"));
  CHECK_EQUAL(hyper.choice("activation"), std::string("tanh"));
  CHECK(hyper.has("width") && !hyper.has("height"));
  CHECK(hyper == Hyper(table()));
}

TEST_CASE("text is read in the type of its row") {
  Hyper hyper(table());
  hyper.set_text("width", " 128 ", "elman");
  CHECK_EQUAL(hyper.integer("width"), 128);
  hyper.set_text("width", "1e3", "elman");
  CHECK_EQUAL(hyper.integer("width"), 1000);
  hyper.set_text("dt_min", "1", "elman");
  CHECK_EQUAL(hyper.real("dt_min"), 1.0);
  hyper.set_text("shift", "+2.5", "elman");
  CHECK_EQUAL(hyper.real("shift"), 2.5);
  for (const char* no : {"false", "no", "off", "0"}) {
    hyper.set_text("bias", "yes", "elman");
    hyper.set_text("bias", no, "elman");
    CHECK_SAYS(!hyper.flag("bias"), no);
  }
  hyper.set_text("activation", "relu", "elman");
  CHECK_EQUAL(hyper.choice("activation"), std::string("relu"));
}

TEST_CASE("values from JSON are taken when they mean the same") {
  Hyper hyper(table());
  hyper.set("width", 32.0, "elman");
  CHECK_EQUAL(hyper.integer("width"), 32);
  hyper.set("dt_min", std::int64_t{1}, "elman");
  CHECK_EQUAL(hyper.real("dt_min"), 1.0);
  CHECK_ERROR(hyper.set("width", 32.5, "elman"), "an integer from 1 to 4096");
  CHECK_ERROR(hyper.set("width", std::string("32"), "elman"), "width");
  CHECK_ERROR(hyper.set("bias", std::int64_t{1}, "elman"), "true or false");
  CHECK_ERROR(hyper.set("width", true, "elman"), "width = true");
}

TEST_CASE("the shortest text reads back to the same bits, whatever the locale") {
  std::setlocale(LC_ALL, "de_DE.UTF-8");
  Hyper hyper(table());
  CHECK_EQUAL(hyper.text("dt_min"), std::string("0.001"));
  for (const double value : {0.1, 1.0 / 3.0, 0.30000000000000004, 1e-6, std::nextafter(1.0, 0.0), 0.1 + 1e-17}) {
    hyper.set("dt_min", value, "s4d");
    Hyper copy(table());
    copy.set_text("dt_min", hyper.text("dt_min"), "s4d");
    CHECK(copy.real("dt_min") == value);
  }
  hyper.set("dt_min", 0.1, "s4d");
  CHECK_EQUAL(hyper.text("dt_min"), std::string("0.1"));
  CHECK_EQUAL(hyper.text("width"), std::string("64"));
  CHECK_EQUAL(hyper.text("bias"), std::string("true"));
  CHECK_EQUAL(hyper.text("activation"), std::string("tanh"));
}

TEST_CASE("a refused value leaves the old one and says model, key, value and range") {
  Hyper hyper(table());
  for (const char* bad : {"0", "4097", "-1", "64x", "", "1.5", "nan", "inf", "1e300", "99999999999999999999", "+-3", "0x10"}) {
    CHECK_ERROR(hyper.set_text("width", bad, "lstm"), "lstm: width = ");
    CHECK_EQUAL(hyper.integer("width"), 64);
  }
  CHECK_ERROR(hyper.set_text("dt_min", "nan", "s4d"), "a number from 1e-06 to 1");
  CHECK_ERROR(hyper.set("dt_min", std::numeric_limits<double>::quiet_NaN(), "s4d"), "dt_min = nan");
  CHECK_ERROR(hyper.set_text("activation", "tanhh", "elman"), "one of tanh, relu, identity");
  CHECK_ERROR(hyper.set_text("bias", "maybe", "elman"), "bias = maybe");
  CHECK_ERROR(hyper.set_text("widht", "3", "elman"), "elman has no hyper-parameter \"widht\"; it has width");
  try {
    hyper.set_text("width", "0", "lstm");
  } catch (const Error& error) {
    CHECK_EQUAL(error.where().model, std::string("lstm"));
    CHECK_EQUAL(error.where().parameter, std::string("width"));
    CHECK_EQUAL(error.where().value, std::string("0"));
    CHECK_EQUAL(error.where().range, std::string("an integer from 1 to 4096"));
  }
}

TEST_CASE("a table with a mistake of ours is not a user's error") {
  const auto twice = [] { return Hyper({hyper_flag("bias", true, ""), hyper_flag("bias", false, "")}); };
  bool logic = false;
  try {
    twice();
  } catch (const std::logic_error&) {
    logic = true;
  }
  CHECK(logic);
}

TEST_CASE("near names come first") {
  CHECK_EQUAL(edit_distance("kitten", "sitting"), std::size_t{3});
  CHECK_EQUAL(edit_distance("", "abc"), std::size_t{3});
  CHECK_EQUAL(edit_distance("same", "same"), std::size_t{0});
  CHECK_EQUAL(nearest_names("lsmt", {"gru", "lru", "lstm", "mamba"}, 1), std::string("lstm"));
  CHECK_EQUAL(nearest_names("linear", {"lru", "gru", "linear-attention"}, 1), std::string("linear-attention"));
}
