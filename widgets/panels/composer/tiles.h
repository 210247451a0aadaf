// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <QWidget>
#include <vector>

#include "plot/theme.h"
#include "trace/composition.h"

namespace reclab {

/// One row of choices as tiles, of which one is chosen: by a click, or with the arrows, Home and End while it has the keyboard. It wraps.
class TileRow : public QWidget {
  Q_OBJECT
 public:
  explicit TileRow(QWidget* parent = nullptr);
  void setRow(const Composition::Row& row);
  const Composition::Row& row() const { return row_; }
  /// Small tiles of a picture and a number each; the title says which one is chosen.
  void setCompact(bool compact);
  bool isCompact() const { return compact_; }
  int chosen() const { return static_cast<int>(row_.chosen); }
  /// The place of a tile, in the row's pixels.
  QRect placeOf(int tile) const;
  QString tipOf(int tile) const;  ///< rich text
  int heightForWidth(int width) const override;
  bool hasHeightForWidth() const override { return true; }
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 signals:
  void picked(int tile);  ///< another than is chosen

 protected:
  bool event(QEvent* event) override;
  void changeEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  struct Face {
    QString sign;
    QStringList name;  ///< its lines
  };
  void dress();
  int columns(int width) const;
  int tileAt(const QPointF& position) const;
  int neighbour(int key) const;
  void pick(int tile);
  void paintTile(QPainter& painter, int tile) const;
  void paintFrame(QPainter& painter, int tile) const;
  void paintPicture(QPainter& painter, const QRectF& place, const Composition::Choice& choice) const;

  Composition::Row row_;
  std::vector<Face> faces_;
  Theme theme_;
  QSize tile_;     ///< of each
  int title_ = 0;  ///< height of the line above them
  int hovered_ = -1, gap_ = 0;
  bool compact_ = false;
};

}  // namespace reclab
