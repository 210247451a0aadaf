// SPDX-License-Identifier: GPL-3.0-or-later
// A file that ends the program while it is restored is not restored a third time: the settings note it before, and forget it afterwards.
#pragma once

#include <QString>

namespace reclab {

/// Notes that the file is about to be restored. False, with no note left, where two starts ended in it.
bool beginRestoring(const QString& file);
/// The restored state has had its first pictures.
void endRestoring();
/// Why a file is not restored, a sentence.
QString twiceEnded(const QString& file);

}  // namespace reclab
