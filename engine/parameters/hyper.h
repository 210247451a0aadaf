// SPDX-License-Identifier: GPL-3.0-or-later
// Hyper-parameters as data: one table feeds validation, JSON, the inspector's editors, the command line and the card.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace reclab {

using HyperValue = std::variant<bool, std::int64_t, double, std::string>;

/// The shortest text that reads back to the same value.
std::string as_text(const HyperValue& value);

enum class HyperKind { flag, integer, real, choice };

/// One row of an architecture's table.
struct HyperSpec {
  std::string key;     ///< "width": its name for --set and the presets
  std::string symbol;  ///< the paper's symbol, "H"
  std::string unit;    ///< "units", "steps", "" when it has none
  HyperKind kind = HyperKind::real;
  HyperValue standard;               ///< the default
  double low = 0.0, high = 0.0;      ///< inclusive, for integer and real
  double step = 0.0;                 ///< of the slider; 0: the editor chooses
  bool logarithmic = false;          ///< the slider moves in decades
  std::vector<std::string> choices;  ///< for choice
  std::string text;                  ///< one sentence
  bool initialisation_only = false;  ///< it matters for drawing weights alone: with weights from a file it has no effect
};

HyperSpec hyper_integer(std::string key, std::string symbol, std::int64_t standard, std::int64_t low, std::int64_t high, std::string text,
                        std::string unit = {});
HyperSpec hyper_real(std::string key, std::string symbol, double standard, double low, double high, std::string text,
                     bool logarithmic = false, std::string unit = {});
HyperSpec hyper_flag(std::string key, bool standard, std::string text);
HyperSpec hyper_choice(std::string key, std::string standard, std::vector<std::string> choices, std::string text);
/// The same row, for a hyper-parameter that matters for drawing weights alone.
inline HyperSpec initialisation_only(HyperSpec row) {
  row.initialisation_only = true;
  return row;
}

/// Values for a table: every key of the table has a value that is in range.
class Hyper {
 public:
  Hyper() = default;
  explicit Hyper(const std::vector<HyperSpec>& table);  ///< the defaults

  /// Sets from text or from a value. Throws Error naming the model, key, value and range; the old value stays.
  void set(std::string_view key, const HyperValue& value, std::string_view model);
  void set_text(std::string_view key, std::string_view text, std::string_view model);

  bool has(std::string_view key) const;
  std::int64_t integer(std::string_view key) const;
  double real(std::string_view key) const;
  bool flag(std::string_view key) const;
  const std::string& choice(std::string_view key) const;
  const HyperValue& value(std::string_view key) const;
  std::string text(std::string_view key) const;  ///< as set_text reads it, shortest form that reads back to the same value

  const std::vector<HyperSpec>& table() const { return table_; }
  bool operator==(const Hyper& other) const { return values_ == other.values_; }

 private:
  std::size_t index(std::string_view key) const;
  std::vector<HyperSpec> table_;
  std::vector<HyperValue> values_;
};

}  // namespace reclab
