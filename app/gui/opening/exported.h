// SPDX-License-Identifier: GPL-3.0-or-later
// The folders that `reclab run --export` and `reclab train --export` write, and the window too.
#pragma once

#include <QString>
#include <QStringList>

namespace reclab {

struct Exported {
  QStringList arguments;  ///< of recurrence-lab, for the same model on the same sequence
  QString weights;        ///< a file of the folder, where they are not drawn from the seed
};
/// Throws Error for a folder that is neither.
Exported exportedIn(const QString& folder);
/// Whether a file is the description in such a folder.
bool isDescription(const QString& file);

}  // namespace reclab
