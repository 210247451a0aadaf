// SPDX-License-Identifier: GPL-3.0-or-later
// The bridge between VTK and Qt 6: VTK draws into an OpenGL context that Qt owns. (Debian's VTK has its Qt module built against Qt 5.)
#pragma once

#include <vtkNew.h>

#include <QImage>
#include <QOffscreenSurface>
#include <QOpenGLContext>
#include <QSize>
#include <QSurfaceFormat>
#include <QTimer>
#include <QWidget>
#include <cstdint>
#include <functional>
#include <vector>

class vtkGenericOpenGLRenderWindow;
class vtkRenderer;

namespace reclab {

/// Sets the format that VTK needs (OpenGL 3.2 core, no alpha) as Qt's default. Call it before the QApplication is made.
void prepareOpenGl();
/// Whether this machine and display give us that OpenGL; tried once, on the first call. Needs a QGuiApplication.
bool openGlAvailable();

/// A VTK render window without a window: it draws into the current context.
class VtkFrame {
 public:
  VtkFrame();
  ~VtkFrame();
  VtkFrame(const VtkFrame&) = delete;
  VtkFrame& operator=(const VtkFrame&) = delete;

  vtkGenericOpenGLRenderWindow* window() const { return window_.Get(); }
  /// These three want the context current: a context has come, is about to go, and a picture. It is null before a context has come.
  void attach();
  void release();
  QImage render(QSize pixels, bool smooth = true);
  /// Moves the view of the cameras from where it is, in widths and heights of the picture.
  void shift(double right, double up);

 private:
  vtkNew<vtkGenericOpenGLRenderWindow> window_;
  bool attached_ = false;
};

/// Draws a renderer that belongs to no window yet into an image, without anything on the screen. Null when there is no OpenGL.
QImage renderImage(vtkRenderer* renderer, QSize pixels);

/// The widget that shows a VtkFrame. It takes no mouse events: the widget over it does. The scene is drawn off the screen, and only when it
/// has changed, between the events of the window; the widget paints the picture. (With a QOpenGLWidget in it, Qt composes the whole window
/// by OpenGL at every repaint of any of its parts, which takes a fifth of a second where there is no graphics card.) Where there is no
/// graphics card it is drawn with jagged edges while it changes; when it has come to rest, a few more of them, each moved by a part of a
/// pixel, are averaged to a smooth one, so that no single one holds the window up.
class VtkWidget : public QWidget {
  Q_OBJECT
 public:
  explicit VtkWidget(QWidget* parent = nullptr);
  ~VtkWidget() override;
  VtkFrame& frame() { return frame_; }
  void changed();  ///< the scene has changed
  /// The picture is not yet the one that stays.
  bool isMoving() const { return next_.isActive() || (picture_.isNull() && isVisible()); }
  std::function<void()> beforeRender;  ///< called before the scene is drawn, the sizes being known

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  bool makeCurrent();
  void draw();
  QImage rendered(QSize pixels, bool smooth);
  VtkFrame frame_;
  QOffscreenSurface surface_;
  QOpenGLContext context_;
  QImage picture_;
  std::vector<std::uint16_t> sum_;  // of the passes so far, each byte of the picture apart
  QTimer next_;
  int pass_ = 0;
  bool software_ = false;
};

}  // namespace reclab
