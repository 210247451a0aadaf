// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QHBoxLayout>
#include <QVBoxLayout>

namespace reclab {

/// A row or a column: pixels between its items, as the style has them where none are given, and around it.
template <class Layout>
Layout* boxLayout(QWidget* parent, int spacing = -1, const QMargins& around = {}) {
  auto* made = parent != nullptr ? new Layout(parent) : new Layout;
  made->setContentsMargins(around);
  if (spacing >= 0) made->setSpacing(spacing);
  return made;
}

}  // namespace reclab
