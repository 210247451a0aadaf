// SPDX-License-Identifier: GPL-3.0-or-later
// The codes of linear-complexity sequence models: their text, their equations, their forms and the models that they are or are nearest to.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "array/error.h"
#include "models/network.h"
#include "models/parts/composition/codes.h"
#include "models/registry.h"
#include "test.h"

using namespace reclab;

TEST_CASE("there are 384 codes, each of which its text names") {
  const std::vector<LcsmCode> all = all_lcsm_codes();
  CHECK_EQUAL(all.size(), std::size_t{384});
  std::set<std::string> texts;
  for (const LcsmCode& code : all) {
    CHECK(lcsm_code(to_string(code)) == code);
    texts.insert(to_string(code));
  }
  CHECK_EQUAL(texts.size(), all.size());
  CHECK_EQUAL(to_string(LcsmCode{1, 9, 1, 0}), std::string("1-9-1-0"));
  CHECK(std::ranges::is_sorted(all));
}

TEST_CASE("what is no code is refused with what is wrong with it") {
  CHECK_ERROR(lcsm_code("1-9-1"), "it has 3 parts where four numbers belong");
  CHECK_ERROR(lcsm_code(""), "it has 1 part where");
  CHECK_ERROR(lcsm_code("1-9-1-0-0"), "it has 5 parts");
  CHECK_ERROR(lcsm_code("2-9-1-0"), "its expand 2 is not from 0 to 1");
  CHECK_ERROR(lcsm_code("1-12-1-0"), "its oscillation 12 is not from 0 to 11");
  CHECK_ERROR(lcsm_code("1-9-x-0"), "its shrink \"x\" is not a number from 0 to 1");
  CHECK_ERROR(lcsm_code("1-9--0"), "its shrink \"\" is not a number from 0 to 1");
  CHECK_ERROR(lcsm_code("1-9-1-8"), "its activation 8 is not from 0 to 7");
  CHECK_ERROR(lcsm_code("1-9-1-0 "), "its activation \"0 \" is not a number");
  CHECK_ERROR(lcsm_code("1-99999999999-1-0"), "its oscillation \"99999999999\" is not a number");
}

TEST_CASE("the choices of each row have numbers in order and names of their own") {
  const auto rows = lcsm_rows();
  CHECK_EQUAL(rows.size(), std::size_t{4});
  const std::size_t counts[] = {2, 12, 2, 8};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    CHECK_EQUAL(rows[row].choices.size(), counts[row]);
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < rows[row].choices.size(); ++i) {
      CHECK_EQUAL(rows[row].choices[i].number, static_cast<int>(i));
      CHECK(rows[row].choices[i].text.ends_with('.'));
      names.insert(rows[row].choices[i].name);
    }
    CHECK_EQUAL(names.size(), rows[row].choices.size());
  }
}

TEST_CASE("an equation has the parts of its code alone") {
  const auto whole = [](const char* code) {
    std::string text;
    for (const std::string& line : equation(lcsm_code(code))) text += line + "\n";
    return text;
  };
  CHECK_EQUAL(whole("1-10-1-0"), std::string("m_t = m_{t-1} + e_t i_tᵀ\ny_t = m_tᵀ s_t\ni_t = W_i x_t\ne_t = W_e x_t\ns_t = W_s x_t\n"));
  CHECK_EQUAL(
      whole("0-0-0-1"),
      std::string("m_t = o ⊙ m_{t-1} + e ⊙ (1 i_tᵀ)\ny_t = (s ⊙ m_t)ᵀ 1\ni_t = W_i x_t\ne = relu(E)\no = σ(A)^{1/τ}\ns = relu(S)\n"));
  CHECK_EQUAL(whole("1-11-0-7"),
              std::string("m_t = (e^{iθ} 1ᵀ) ⊙ m_{t-1} + e_t i_tᵀ\ny_t = Re (s ⊙ m_t)ᵀ 1\ni_t = W_i x_t\ne_t = (W_e x_t)²\ns = (S)²\n"));
  std::set<std::string> all;
  for (const LcsmCode& code : all_lcsm_codes()) all.insert(whole(to_string(code).c_str()));
  CHECK_EQUAL(all.size(), std::size_t{384});  // no two say the same
}

TEST_CASE("a code that is a row of Table 1 is named by it") {
  const Registry& registry = builtin_registry();
  struct Expected {
    const char *code, *title;
    bool exact;
    int distance;
  };
  for (const Expected& one : {Expected{"1-10-1-3", "Linear attention", true, 0},
                              {"1-10-1-0", "Linear attention", true, 1},
                              {"1-4-1-0", "RetNet", true, 0},
                              {"1-3-1-0", "GLA", true, 0},
                              {"1-1-1-0", "DUR", true, 0},
                              {"1-11-1-1", "cosFormer", true, 0},
                              {"1-11-1-3", "LRPE", true, 0},
                              {"1-7-1-0", "Mamba", false, 0},
                              {"1-5-1-2", "RWKV-4", false, 0},
                              {"1-2-1-2", "HGRN", false, 0},
                              {"0-0-0-0", "S4", false, 0},
                              {"0-4-0-0", "S5", false, 0},
                              {"1-8-1-0", "Mamba", false, 1},
                              {"1-9-1-0", "GLA", false, 3},
                              {"0-3-0-0", "S5", false, 3},
                              {"0-10-0-0", "S5", false, 6},
                              {"1-3-0-0", "GLA", false, 5}}) {
    const NamedModel found = named(lcsm_code(one.code), registry);
    CHECK_EQUAL(found.title, std::string(one.title));
    CHECK_SAYS(found.exact == one.exact && found.distance == one.distance,
               std::string(one.code) + " is at " + std::to_string(found.distance));
  }
  for (const LcsmCode& code : all_lcsm_codes()) {
    const NamedModel found = named(code, registry);
    CHECK(found.differs.starts_with("In " + found.title + " ") && found.differs.ends_with('.') &&
          std::ranges::count(found.differs, '.') >= 1);
    CHECK_EQUAL(found.distance, distance(code, found.code));
    for (const NamedModel& row : lcsm_table(registry)) CHECK(distance(code, row.code) >= found.distance);
    if (!found.id.empty()) CHECK_EQUAL(registry.find(found.id).id, found.id);
  }
}

TEST_CASE("the distance of codes is symmetric and 0 for a code itself alone") {
  for (const LcsmCode& a : all_lcsm_codes())
    for (const LcsmCode& b : all_lcsm_codes()) {
      CHECK_EQUAL(distance(a, b), distance(b, a));
      CHECK((distance(a, b) == 0) == (a == b));
    }
}

TEST_CASE("each code has the sequential form and one that goes over all steps at once, each with its cost") {
  const auto names = [](const char* code) {
    std::string text;
    for (const LcsmForm& form : exact_forms(lcsm_code(code))) text += (text.empty() ? "" : " ") + std::string(to_string(form.form));
    return text;
  };
  CHECK_EQUAL(names("1-10-1-0"), std::string("sequential chunkwise attention"));
  CHECK_EQUAL(names("1-3-1-0"), std::string("sequential scan chunkwise"));
  CHECK_EQUAL(names("1-11-1-0"), std::string("sequential scan chunkwise attention"));
  CHECK_EQUAL(names("1-9-1-0"), std::string("sequential scan chunkwise"));
  CHECK_EQUAL(names("0-4-0-0"), std::string("sequential scan chunkwise convolution"));
  CHECK_EQUAL(names("0-11-1-0"), std::string("sequential scan chunkwise convolution"));
  for (const LcsmCode& code : all_lcsm_codes()) {
    const std::vector<LcsmForm> forms = exact_forms(code);
    CHECK(forms.size() >= 3 && forms.front().form == Form::sequential);
    for (const LcsmForm& form : forms) CHECK(form.cost.starts_with("O(T") && !form.depth.empty());
  }
}
