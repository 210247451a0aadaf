// SPDX-License-Identifier: GPL-3.0-or-later
// The engine's sentences, with the window's own controls in place of reclab's options.
#pragma once

#include <QString>

#include "array/error.h"

namespace reclab {

/// "...: choose float64 under Precision." A remedy whose control the window does not have is left out.
QString windowText(const Sentence& sentence);
QString windowText(const Error& error);

}  // namespace reclab
