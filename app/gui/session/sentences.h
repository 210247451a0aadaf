// SPDX-License-Identifier: GPL-3.0-or-later
// The window's words for exceptions of computations, names of the engine and durations.
#pragma once

#include <QString>
#include <exception>
#include <string>

namespace reclab {

enum class Tone { info, busy, warning };  ///< in which a sentence is said

/// The sentence for an exception of a computation.
QString sentenceOf(const std::exception_ptr& thrown);

/// A name of the engine's as words: "linear_attention" is "Linear attention".
QString inWords(const std::string& name);
/// "12 ms", "3.20 s", "4.5 min"
QString secondsInWords(double seconds);
/// The same for a duration that is no measurement: "12 ms", "3.2 s", "270.0 s"
QString roughSecondsInWords(double seconds);

}  // namespace reclab
