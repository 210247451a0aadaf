// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/composition/codes.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "array/error.h"

namespace reclab {
namespace {

constexpr std::array expand_choices{
    LcsmChoice{0, "independent", "E", "A learned k × d matrix says how much of each input goes where, the same at every step.", false},
    LcsmChoice{1, "dependent", "e_t = W_e x_t", "Each step has a key of k entries, a projection of its input.", true}};
constexpr std::array shrink_choices{
    LcsmChoice{0, "independent", "S", "A learned k × d matrix reads the memory, the same at every step.", false},
    LcsmChoice{1, "dependent", "s_t = W_s x_t", "Each step has a query of k entries, a projection of its input.", true}};
constexpr std::array oscillation_choices{
    LcsmChoice{0, "matrix", "σ(A)^{1/τ}", "Each of the k × d entries has a decay of its own, which is learned.", false},
    LcsmChoice{1, "gates", "σ(W₂ x_t)^{1/τ} (σ(W₁ x_t)^{1/τ})ᵀ",
               "Each step has two gates, by key and by value dimension, and an entry is kept by the product of its two.", true},
    LcsmChoice{2, "value-gates", "1 (σ(W_o x_t)^{1/τ})ᵀ", "Each step has a gate for each value dimension.", true},
    LcsmChoice{3, "key-gates", "σ(W_o x_t)^{1/τ} 1ᵀ", "Each step has a gate for each key dimension.", true},
    LcsmChoice{4, "key-decays", "σ(a)^{1/τ} 1ᵀ", "Each key dimension has a decay, which is learned.", false},
    LcsmChoice{5, "value-decays", "1 (σ(b)^{1/τ})ᵀ", "Each value dimension has a decay, which is learned.", false},
    LcsmChoice{6, "key-gated-matrix", "σ((W_o x_t) 1ᵀ ⊙ A)^{1/τ}",
               "A learned k × d matrix, each row of which the step multiplies before the sigmoid.", true},
    LcsmChoice{7, "value-gated-matrix", "σ(1 (W_o x_t)ᵀ ⊙ A)^{1/τ}",
               "A learned k × d matrix, each column of which the step multiplies before the sigmoid.", true},
    LcsmChoice{8, "keys-by-value-gates", "σ(a (W_o x_t)ᵀ)^{1/τ}",
               "The outer product of a learned vector over the keys and the step's own over the values, before the sigmoid.", true},
    LcsmChoice{9, "key-gates-by-values", "σ((W_o x_t) bᵀ)^{1/τ}",
               "The outer product of the step's own vector over the keys and a learned one over the values, before the sigmoid.", true},
    LcsmChoice{10, "ones", "1", "Nothing is forgotten: what is written stays.", false},
    LcsmChoice{11, "rotation", "e^{iθ} 1ᵀ", "Each key dimension turns by an angle of its own at every step; the real part is read.",
               false}};
constexpr std::array activation_choices{LcsmChoice{0, "identity", "x", "Expand and shrink are used as they are.", false},
                                        LcsmChoice{1, "relu", "relu(x)", "Negative entries are 0.", false},
                                        LcsmChoice{2, "sigmoid", "σ(x)", "Entries are between 0 and 1.", false},
                                        LcsmChoice{3, "elu+1", "1 + elu(x)", "Entries are above 0, as in linear attention.", false},
                                        LcsmChoice{4, "silu", "silu(x)", "Each entry is gated by its own sigmoid.", false},
                                        LcsmChoice{5, "elu", "elu(x)", "Entries are above -1.", false},
                                        LcsmChoice{6, "relu2", "relu(x)²", "The square of the positive part.", false},
                                        LcsmChoice{7, "square", "x²", "Entries are squared, so their signs do not count.", false}};
constexpr std::array rows{
    LcsmRow{"expand", "Expand", "What the input is multiplied with on its way into the memory.", expand_choices},
    LcsmRow{"oscillation", "Oscillation", "What the memory is multiplied with, entry by entry, at every step.", oscillation_choices},
    LcsmRow{"shrink", "Shrink", "What the memory is read with.", shrink_choices},
    LcsmRow{"activation", "Activation", "What expand and shrink go through.", activation_choices}};

constexpr std::array<int LcsmCode::*, 4> members{&LcsmCode::expand, &LcsmCode::oscillation, &LcsmCode::shrink, &LcsmCode::activation};

/// The properties by which oscillations differ.
struct Traits {
  bool by_key, by_value;      ///< factors differ along the axis
  bool key_data, value_data;  ///< and depend on the data by it
  bool forgets, turns;
};
constexpr std::array<Traits, 12> traits{{
    {true, true, false, false, true, false},     // 0 a matrix
    {true, true, true, true, true, false},       // 1 gates
    {false, true, false, true, true, false},     // 2 gates by value
    {true, false, true, false, true, false},     // 3 gates by key
    {true, false, false, false, true, false},    // 4 decays by key
    {false, true, false, false, true, false},    // 5 decays by value
    {true, true, true, false, true, false},      // 6 a matrix gated by key
    {true, true, false, true, true, false},      // 7 a matrix gated by value
    {true, true, false, true, true, false},      // 8 gates by value, decays by key
    {true, true, true, false, true, false},      // 9 gates by key, decays by value
    {false, false, false, false, false, false},  // 10 ones
    {true, false, false, false, false, true},    // 11 a rotation
}};
const Traits& traits_of(int oscillation) { return traits[static_cast<std::size_t>(oscillation)]; }
/// Whether the factors are a k x d matrix that is no outer product.
bool full(int oscillation) { return oscillation == 0 || (oscillation >= 6 && oscillation <= 9); }

const LcsmChoice& choice(std::size_t row, const LcsmCode& code) { return rows[row].choices[static_cast<std::size_t>(code.*members[row])]; }

/// "relu(W_e x_t)".
std::string activated(int activation, const std::string& x) {
  switch (activation) {
    case 1: return "relu(" + x + ")";
    case 2: return "σ(" + x + ")";
    case 3: return "1 + elu(" + x + ")";
    case 4: return "silu(" + x + ")";
    case 5: return "elu(" + x + ")";
    case 6: return "relu(" + x + ")²";
    case 7: return "(" + x + ")²";
    default: return x;
  }
}

/// A row of table 1. `own`: a clause on the model's other differences, where all three of its choices are the code's.
struct TableRow {
  std::string_view title, id;
  std::array<std::string_view, 2> also;
  LcsmCode code;
  bool exact;
  std::string_view own;
};
constexpr std::array table{
    TableRow{"S4",
             "s4",
             {},
             {0, 0, 0, 0},
             false,
             "each channel's transition is a dense matrix, whose eigenvalues are complex; here they are real decays"},
    TableRow{"S5", "s5", {"DSS", "TNN"}, {0, 4, 0, 0}, false, "the decays are complex, and one system is driven by all channels at once"},
    TableRow{"Linear attention",
             "linear-attention",
             {},
             {1, 10, 1, 3},
             true,
             "what is read is divided by the sum of its weights, where this layer has a norm"},
    TableRow{"RetNet",
             "retnet",
             {"TransNormerLLM"},
             {1, 4, 1, 0},
             true,
             "all decays of a head are one fixed number, and queries and keys are turned by their positions"},
    TableRow{"Mamba",
             "mamba",
             {},
             {1, 7, 1, 0},
             false,
             "the factors are exp(Δ_t A) and the input is multiplied with Δ_t as well, which parameterisation=ssm has"},
    TableRow{
        "RWKV-4",
        "rwkv-4",
        {},
        {1, 5, 1, 2},
        false,
        "each channel has a memory of one number with a key exp(k_t) of its own, and what is read is divided by the sum of the weights"},
    TableRow{"cosFormer",
             "cosformer",
             {},
             {1, 11, 1, 1},
             true,
             "all key dimensions turn by one fixed angle, and what is read is divided by the sum of its weights"},
    TableRow{
        "LRPE", "lrpe", {}, {1, 11, 1, 3}, true, "the angles are learned, and queries and keys may be rotated by a unitary matrix first"},
    TableRow{"GLA",
             "gla",
             {"GateLoop"},
             {1, 3, 1, 0},
             true,
             "there are several heads, and a gate multiplies what is read; the factors of GateLoop turn as well"},
    TableRow{"DUR", "mao-fast-weights", {"GFW"}, {1, 1, 1, 0}, true, "there are several heads, and projections and gates have biases"},
    TableRow{"HGRN",
             "hgrn",
             {"LRN"},
             {1, 2, 1, 2},
             false,
             "each channel has a memory of one number, which is written by 1 - λ_t where λ_t is its gate"}};

std::string sentence_of(const LcsmCode& code, const TableRow& row) {
  const auto by_data = [](int dependent) { return dependent ? "depends on the data" : "does not depend on the data"; };
  std::vector<std::string> clauses;
  if (code.expand != row.code.expand) clauses.push_back(std::string("expand ") + by_data(row.code.expand));
  if (code.shrink != row.code.shrink) clauses.push_back(std::string("shrink ") + by_data(row.code.shrink));
  if (code.oscillation != row.code.oscillation)
    clauses.push_back("the oscillation is " + std::string(oscillation_choices[static_cast<std::size_t>(row.code.oscillation)].symbols));
  if (code.activation != row.code.activation)
    clauses.push_back("the activation is " + std::string(activation_choices[static_cast<std::size_t>(row.code.activation)].symbols));
  if (code.expand == row.code.expand && code.shrink == row.code.shrink && code.oscillation == row.code.oscillation)
    clauses.emplace_back(row.own);
  std::string text = "In " + std::string(row.title) + " ";
  for (std::size_t i = 0; i < clauses.size(); ++i) text += (i == 0 ? "" : i + 1 == clauses.size() ? ", and " : ", ") + clauses[i];
  return text + ".";
}

NamedModel seen_from(const LcsmCode& code, const TableRow& row, const Registry& registry) {
  NamedModel made;
  made.title = row.title;
  for (const std::string_view other : row.also)
    if (!other.empty()) made.also.emplace_back(other);
  if (std::ranges::find(registry.all(), row.id, &Architecture::id) != registry.all().end()) made.id = row.id;
  made.code = row.code;
  made.distance = distance(code, row.code);
  made.exact = row.exact && code.expand == row.code.expand && code.oscillation == row.code.oscillation && code.shrink == row.code.shrink;
  made.differs = sentence_of(code, row);
  return made;
}

}  // namespace

std::span<const LcsmRow> lcsm_rows() { return rows; }

std::string to_string(const LcsmCode& code) {
  std::string text;
  for (const auto part : members) text += (text.empty() ? "" : "-") + std::to_string(code.*part);
  return text;
}

LcsmCode lcsm_code(std::string_view text) {
  const auto refuse = [&](const std::string& what, const std::string& range) {
    throw Error("\"" + std::string(text) + "\" is no code e-o-s-a: " + what + ".",
                {.parameter = "code", .value = std::string(text), .range = range});
  };
  std::vector<std::string_view> words;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find('-', from), text.size());
    words.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  if (words.size() != rows.size())
    refuse(
        "it has " + std::to_string(words.size()) + " part" + (words.size() == 1 ? "" : "s") + " where four numbers belong, as in 1-9-1-0",
        "e-o-s-a");
  LcsmCode code;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const int last = static_cast<int>(rows[row].choices.size()) - 1;
    const std::string name(rows[row].key), range = "0 to " + std::to_string(last);
    int number = -1;
    const auto [end, error] = std::from_chars(words[row].data(), words[row].data() + words[row].size(), number);
    if (error != std::errc() || end != words[row].data() + words[row].size() || words[row].front() == '-')
      refuse("its " + name + " \"" + std::string(words[row]) + "\" is not a number from " + range, range);
    if (number < 0 || number > last) refuse("its " + name + " " + std::to_string(number) + " is not from " + range, range);
    code.*members[row] = number;
  }
  return code;
}

std::vector<LcsmCode> all_lcsm_codes() {
  std::vector<LcsmCode> all;
  for (int e = 0; e < 2; ++e)
    for (int o = 0; o < 12; ++o)
      for (int s = 0; s < 2; ++s)
        for (int a = 0; a < 8; ++a) all.push_back({e, o, s, a});
  return all;
}

std::vector<std::pair<std::string, std::string>> settings(const LcsmCode& code) {
  std::vector<std::pair<std::string, std::string>> set;
  for (std::size_t row = 0; row < rows.size(); ++row) set.emplace_back(rows[row].key, choice(row, code).name);
  return set;
}

LcsmCode lcsm_code(const Hyper& hyper) {
  LcsmCode code;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto found =
        std::ranges::find(rows[row].choices, hyper.choice(rows[row].key), [](const LcsmChoice& one) { return std::string(one.name); });
    code.*members[row] = found->number;
  }
  return code;
}

std::vector<std::string> equation(const LcsmCode& code) {
  const int o = code.oscillation;
  const bool step = traits_of(o).key_data || traits_of(o).value_data;
  const std::string factor = o == 10 ? "" : o == 11 ? "(e^{iθ} 1ᵀ) ⊙ " : step ? "o_t ⊙ " : "o ⊙ ";
  std::vector<std::string> lines;
  lines.push_back("m_t = " + factor + "m_{t-1} + " + (code.expand ? "e_t i_tᵀ" : "e ⊙ (1 i_tᵀ)"));
  const std::string read = code.shrink ? "m_tᵀ s_t" : "(s ⊙ m_t)ᵀ 1";
  lines.push_back("y_t = " + (o == 11 ? "Re " + read : read));
  lines.push_back("i_t = W_i x_t");
  lines.push_back(code.expand ? "e_t = " + activated(code.activation, "W_e x_t") : "e = " + activated(code.activation, "E"));
  if (o < 10) lines.push_back((step ? "o_t = " : "o = ") + std::string(oscillation_choices[static_cast<std::size_t>(o)].symbols));
  lines.push_back(code.shrink ? "s_t = " + activated(code.activation, "W_s x_t") : "s = " + activated(code.activation, "S"));
  return lines;
}

LcsmMemory lcsm_memory(const LcsmCode& code) {
  const Traits& of = traits_of(code.oscillation);
  if (code.expand && code.shrink && !full(code.oscillation)) return LcsmMemory::outer;
  return code.expand || code.shrink || of.key_data || of.value_data ? LcsmMemory::matrix : LcsmMemory::channels;
}

std::vector<LcsmForm> exact_forms(const LcsmCode& code) {
  const Traits& of = traits_of(code.oscillation);
  std::vector<LcsmForm> forms{{Form::sequential, "O(T k d)", "T steps"}};
  const LcsmForm scan{Form::scan, "O(T k d)", "2 log₂ T rounds"};
  switch (lcsm_memory(code)) {
    case LcsmMemory::outer:
      if (of.forgets || of.turns) forms.push_back(scan);
      // The factors between the two steps of each pair are sums of logarithms over c steps where one differs by value dimension.
      forms.push_back({Form::chunkwise,
                       !of.by_value ? "O(T (k d + c (k + d)))"
                       : of.by_key  ? "O(T (k d + c² (k + d)))"
                                    : "O(T (k d + c k + c² d))",
                       "T / c chunks"});
      if (!of.forgets) forms.push_back({Form::attention, "O(T² (k + d))", "no step: all pairs of steps"});
      break;
    case LcsmMemory::matrix:
      forms.push_back(scan);
      forms.push_back({Form::chunkwise, "O(T k d)", "c steps, then T / c chunks"});
      if (of.turns) forms.push_back({Form::convolution, "O(T log T k d)", "log₂ T rounds"});
      break;
    case LcsmMemory::channels:
      forms.push_back(scan);
      forms.push_back({Form::chunkwise, "O(T k d)", "c steps, then T / c chunks"});
      forms.push_back({Form::convolution, "O(T k d + T log T d)", "log₂ T rounds"});
      break;
  }
  return forms;
}

int distance(const LcsmCode& a, const LcsmCode& b) {
  const Traits &x = traits_of(a.oscillation), &y = traits_of(b.oscillation);
  int sum = 5 * (a.expand != b.expand) + 5 * (a.shrink != b.shrink);
  sum += 2 * ((x.by_key != y.by_key) + (x.by_value != y.by_value) + (x.key_data != y.key_data) + (x.value_data != y.value_data));
  sum += 3 * (x.forgets != y.forgets) + 4 * (x.turns != y.turns);
  return sum + (a.oscillation != b.oscillation) + (a.activation != b.activation);
}

NamedModel named(const LcsmCode& code, const Registry& registry) {
  const auto nearest = std::ranges::min_element(table, {}, [&](const TableRow& row) { return distance(code, row.code); });
  return seen_from(code, *nearest, registry);
}

std::vector<NamedModel> lcsm_table(const Registry& registry) {
  std::vector<NamedModel> all;
  for (const TableRow& row : table) all.push_back(seen_from(row.code, row, registry));
  return all;
}

}  // namespace reclab
