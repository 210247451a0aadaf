// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "panel.h"

namespace reclab {

/// What is said of a panel before there is one.
struct PanelAbout {
  QString id, title, hint;
  Kinds needs;
  Panel::Places places = {};
};

/// A panel whose class P says this of itself: PanelAbout P::describe(), a static function.
template <class P, class Base>
class Described : public Base {
 public:
  static const PanelAbout& about() {
    static const PanelAbout made = P::describe();
    return made;
  }
  QString id() const final { return about().id; }
  QString title() const final { return about().title; }
  QString hint() const final { return about().hint; }
  Kinds needs() const final { return about().needs; }
  Panel::Places places() const final { return about().places; }

 protected:
  using Base::Base;
};

}  // namespace reclab
