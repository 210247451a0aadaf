// SPDX-License-Identifier: GPL-3.0-or-later
// The map of the literature: models by year and family, with links from each to its descendants.
#pragma once

#include <QAbstractScrollArea>
#include <optional>

#include "gui/literature/map_layout.h"
#include "panel.h"

namespace reclab {

/// A click or Enter picks a model, Ctrl-click or Space marks one to be compared with it. The mouse or the arrow keys go from model to model
/// and tell the changes of each; Ctrl and the wheel, + and - zoom, 0 shows all.
class LiteratureMap : public QAbstractScrollArea {
  Q_OBJECT
 public:
  explicit LiteratureMap(QWidget* parent = nullptr);

  void setLiterature(const LiteraturePtr& literature);
  void setCurrent(const QString& id);  ///< the model that is looked at; it is brought into sight
  void setMarked(const QString& id);   ///< the model it is to be compared with; empty: none
  void setQuery(const QString& text);  ///< models that do not fit are pale
  QString current() const { return idOf(current_); }
  QString marked() const { return idOf(marked_); }

  double zoom() const { return zoom_; }
  void setZoom(double zoom, std::optional<QPointF> around = {});  ///< around: a place of the viewport that stays where it is
  void fit();
  void bringIntoSight(const QString& id);

  const MapLayout& places() const { return layout_; }
  QPoint placeOf(const QString& id) const;             ///< its dot, in the viewport
  QPoint placeOf(const Literature::Link& link) const;  ///< where the pointer meets it and no model
  struct Name {
    QString id;
    QRectF where;  ///< in the viewport
    bool whole;    ///< not cut
  };
  const std::vector<Name>& drawnNames() const { return drawn_; }  ///< of the last picture
  QString told() const { return told_; }                          ///< tooltip under the mouse or at the keyboard's cursor

  /// Saves the whole map, at the zoom at which every name is there. Returns an empty string or one sentence.
  QString saveFigure(const QString& file, Panel::Format format);

 signals:
  void picked(QString id);
  void markedChanged();

 protected:
  bool viewportEvent(QEvent* event) override;
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void scrollContentsBy(int dx, int dy) override;

 private:
  struct Picture {  // the drawing options beside the places
    int focus = -1, cursor = -1, link = -1;
    QPointF scrolled;
    QSizeF view;
    bool screen = true;
  };
  QString idOf(int model) const { return model < 0 ? QString() : literature_->models[static_cast<std::size_t>(model)].id; }
  double widthOf(const QString& text) const;
  QPointF scrolled() const;
  void arrange();
  void draw(QPainter& painter, const MapLayout& places, const Picture& picture, std::vector<Name>* names) const;
  void drawLinks(QPainter& painter, const MapLayout& places, const Picture& picture) const;
  void drawAxis(QPainter& painter, const MapLayout& places, const Picture& picture) const;
  QPainterPath pathOf(const MapLayout& places, const Literature::Link& link) const;
  int modelAt(QPointF where) const;
  int linkAt(QPointF where) const;
  void hover(QPointF where, QPoint global);
  void tell(const QString& text, QPoint global);
  void moveCursor(int key);
  void toggleMark(int model);
  bool isPale(int model) const { return !query_.isEmpty() && !query_.fits(literature_->models[static_cast<std::size_t>(model)]); }

  LiteraturePtr literature_ = std::make_shared<const Literature>();
  MapLayout layout_;
  ModelQuery query_;
  double zoom_ = 1.0;
  int current_ = -1, marked_ = -1, cursor_ = -1, hovered_ = -1, hoveredLink_ = -1;
  std::optional<QPoint> pressed_;
  QPoint scrolledFrom_;
  bool panning_ = false;
  std::vector<Name> drawn_;
  QString told_;
};

}  // namespace reclab
