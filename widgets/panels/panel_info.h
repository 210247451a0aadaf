// SPDX-License-Identifier: GPL-3.0-or-later
// RECLAB_PANEL_IS, at the end of a panel's own file, so that the list of panels, which includes none of them, knows it.
#pragma once

#include "panels/described.h"

namespace reclab {

/// The panel, its plots named as it is where they have no name of their own.
Panel* named(Panel* panel);

template <class P>
PanelInfo infoOfPanel() {
  const PanelAbout& about = P::about();
  return {about.id, about.title, about.hint, about.needs, about.places, [](QWidget* parent) -> Panel* { return named(new P(parent)); }};
}

}  // namespace reclab

/// Defines, in the namespace reclab, the entry of panels.inc with this id as this class.
#define RECLAB_PANEL_IS(id, Type)                \
  namespace panel_infos {                        \
  PanelInfo id();                                \
  PanelInfo id() { return infoOfPanel<Type>(); } \
  }
