// SPDX-License-Identifier: GPL-3.0-or-later
// The widget that shows a TrajectoryScene and turns it with the mouse: by VTK where there is OpenGL, painted flat where there is none. To
// ask for OpenGL loads its driver, so that comes after the first picture, which is flat.
#pragma once

#include <vtkNew.h>

#include <QImage>
#include <QWidget>
#include <memory>

#include "scene/trajectory_scene.h"

class vtkGenericOpenGLRenderWindow;
class vtkGenericRenderWindowInteractor;

namespace reclab {

class VtkWidget;

class TrajectoryView : public QWidget {
  Q_OBJECT
 public:
  /// `openGl` false draws as on a machine without it.
  explicit TrajectoryView(QWidget* parent = nullptr, bool openGl = true);
  ~TrajectoryView() override;

  TrajectoryScene& scene() { return scene_; }
  bool hasOpenGl();                  ///< asks for it now where that was not known
  bool atRest() const;               ///< the picture is as good as it gets
  void refresh();                    ///< the scene has changed
  void setCursor(std::int64_t row);  ///< moves the marker, and draws no more than that

  /// The picture in another size (in units of the widget), at `scale` pixels a unit. Rendered by VTK off the screen where it can be; needs
  /// no visible widget.
  QImage image(QSizeF size, double scale, bool cursor = true) const;
  /// Paints the picture in vectors.
  void paintVectors(QPainter& painter, QSizeF size, bool cursor = true) const;

 signals:
  void openGlKnown();
  void picked(qint64 row);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  void askForOpenGl();
  void paintOverlay();
  void mouse(QEvent* event);

  TrajectoryScene scene_;
  enum class OpenGl { wanted, asked, known } openGl_;
  VtkWidget* gl_ = nullptr;
  QWidget* overlay_;
  vtkNew<vtkGenericRenderWindowInteractor> interactor_;
  vtkNew<vtkGenericOpenGLRenderWindow> unseen_;  ///< for the interactor while there is no OpenGL; never rendered
  QPointF pressed_;
  bool moved_ = false;
};

}  // namespace reclab
