// SPDX-License-Identifier: GPL-3.0-or-later
// A sentence for the user, and its remedies as data: a terminal names an option where the window names a control on its screen.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace reclab {

/// The control that sets a value, by its name in reclab: "dtype" is --dtype there and Precision in the window.
struct Control {
  std::string name{}, value{};  ///< the value as reclab takes it, "f64"; empty where it is the user's to choose
  bool operator==(const Control&) const = default;
};

/// Something that can be done, in the terminal's words around a control. One without a control is its words alone, the same everywhere.
struct Remedy {
  std::string separator;  ///< between it and the words before it: ": ", ", or "
  std::string before{};   ///< "choose "
  Control control{};
  std::string after{};  ///< " records them all"
  bool operator==(const Remedy&) const = default;
};

/// Plain text with remedies in it: "the state is not finite in float32" + Remedy{": ", "choose ", {"dtype", "f64"}} + ".". Names that are
/// the user's are text, and no part of a text is ever taken for a control.
class Sentence {
 public:
  Sentence() = default;
  Sentence(std::string text);
  Sentence(const char* text) : Sentence(std::string(text)) {}
  Sentence(Remedy remedy) : pieces_{std::move(remedy)} {}

  bool empty() const { return pieces_.empty(); }
  /// `words`: those of a remedy, without its separator; nothing where it cannot be done. It is left out then, with its separator, which the
  /// next remedy has if none was said before it in a row.
  std::string text(const std::function<std::optional<std::string>(const Remedy&)>& words) const;
  /// The text with options of reclab: "...: choose --dtype f64." Exports have it too.
  std::string terminal_text() const;

  Sentence& operator+=(const Sentence& more);
  bool operator==(const Sentence&) const = default;

 private:
  std::vector<std::variant<std::string, Remedy>> pieces_;  ///< no two texts beside each other, and none that is empty
};

Sentence operator+(Sentence left, const Sentence& right);

template <class Json>
void to_json(Json& json, const Sentence& sentence) {
  json = sentence.terminal_text();
}

}  // namespace reclab
