// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPainter>
#include <QToolButton>

#include "plain_text.h"

namespace reclab {

/// A button with a triangle or bars on it, in the colour of the palette.
class GlyphButton : public QToolButton {
 public:
  enum class Glyph { play, back, forward };
  GlyphButton(Glyph glyph, const QString& name, const QString& tip) : glyph_(glyph) {
    setObjectName(name);
    setToolTip(safeTip(tip));
    setAccessibleName(tip);
    setFixedSize(26, 24);
    setFocusPolicy(Qt::NoFocus);
  }
  void setPause(bool on) {
    pause_ = on;
    update();
  }

 protected:
  void paintEvent(QPaintEvent* event) override {
    QToolButton::paintEvent(event);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(palette().color(isEnabled() ? QPalette::Active : QPalette::Disabled, QPalette::ButtonText));
    const QPointF c = QRectF(rect()).center();
    const auto triangle = [&](double x, double way) {
      painter.drawPolygon(QPolygonF({c + QPointF(x + 5 * way, 0), c + QPointF(x - 4 * way, -5), c + QPointF(x - 4 * way, 5)}));
    };
    if (glyph_ == Glyph::play && pause_) {
      painter.drawRect(QRectF(c.x() - 4.5, c.y() - 5, 3, 10));
      painter.drawRect(QRectF(c.x() + 1.5, c.y() - 5, 3, 10));
    } else if (glyph_ == Glyph::play) {
      triangle(0, 1);
    } else {
      const double way = glyph_ == Glyph::forward ? 1 : -1;
      triangle(-2 * way, way);
      painter.drawRect(QRectF(c.x() + (way > 0 ? 4 : -6), c.y() - 5, 2, 10));
    }
  }

 private:
  Glyph glyph_;
  bool pause_ = false;
};

}  // namespace reclab
