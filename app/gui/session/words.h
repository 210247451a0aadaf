// SPDX-License-Identifier: GPL-3.0-or-later
// What the engine says is said for reclab too and names its options; in the window it names what is on the screen.
#pragma once

#include <QString>
#include <QStringList>
#include <exception>
#include <string>

#include "array/error.h"
#include "trace/trace.h"

namespace reclab {

enum class Tone { info, busy, warning };  ///< in which a sentence is said

/// The sentence for whatever a computation threw.
QString sentenceOf(const std::exception_ptr& thrown);
/// The sentence with the window's own controls in place of reclab's options. `names` are those of files, columns and other things of the
/// user's: they stay as they are, and so does a command between backquotes, which is for a terminal.
QString inWindowWords(const std::string& sentence, const QStringList& names = {});
/// Likewise of an Error, which says which names are in it.
QString inWindowWords(const Error& error);
/// Likewise every sentence that a run says of itself; the same trace where there is none to change.
std::shared_ptr<const Trace> inWindowWords(std::shared_ptr<const Trace> trace);

/// A name of the engine's as words: "linear_attention" is "Linear attention".
QString inWords(const std::string& name);
/// "12 ms", "3.20 s", "4.5 min"
QString secondsInWords(double seconds);
/// Likewise, of what is no measurement: "12 ms", "3.2 s", "270.0 s"
QString roughSecondsInWords(double seconds);

}  // namespace reclab
