// SPDX-License-Identifier: GPL-3.0-or-later
// RECLAB_PANEL_IS, at the end of a panel's own file, so that the list of panels, which includes none of them, knows it.
#pragma once

#include <memory>
#include <type_traits>

#include "panel.h"

namespace reclab {

/// The panel, its plots named as it is where they have no name of their own.
Panel* named(Panel* panel);

/// The PanelInfo of a panel's class, from an instance of it that is not shown, and gets no OpenGL if it can do without.
template <class P>
PanelInfo infoOfPanel() {
  const auto make_probe = [] {
    if constexpr (std::is_constructible_v<P, QWidget*, bool>)
      return std::make_unique<P>(nullptr, false);
    else
      return std::make_unique<P>();
  };
  const auto asked = make_probe();
  const Panel& recording = *asked;
  return {recording.id(),    recording.title(),  recording.hint(),
          recording.needs(), recording.places(), [](QWidget* parent) -> Panel* { return named(new P(parent)); }};
}

}  // namespace reclab

/// Defines, in the namespace reclab, the entry of panels.inc with this id as this class.
#define RECLAB_PANEL_IS(id, Type)                \
  namespace panel_infos {                        \
  PanelInfo id();                                \
  PanelInfo id() { return infoOfPanel<Type>(); } \
  }
