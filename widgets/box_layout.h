// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QHBoxLayout>
#include <QVBoxLayout>

namespace reclab {

/// A row or a column: pixels between what is in it, as the style has them where none are said, and around it.
template <class Layout>
Layout* boxLayout(QWidget* parent, int spacing = -1, const QMargins& around = {}) {
  auto* made = parent != nullptr ? new Layout(parent) : new Layout;
  made->setContentsMargins(around);
  if (spacing >= 0) made->setSpacing(spacing);
  return made;
}

}  // namespace reclab
