// SPDX-License-Identifier: GPL-3.0-or-later
// The bridge between VTK and Qt 6: VTK draws into an OpenGL context that Qt owns. (Debian's VTK has its Qt module built against Qt 5.)
#pragma once

#include <vtkNew.h>

#include <QImage>
#include <QOpenGLWidget>
#include <QSize>
#include <QSurfaceFormat>
#include <QTimer>
#include <functional>

class vtkGenericOpenGLRenderWindow;
class vtkRenderer;

namespace reclab {

/// Sets the format that VTK needs (OpenGL 3.2 core, no alpha) as Qt's default. Call it before the QApplication is made.
void prepareOpenGl();
/// Whether this machine and display give us that OpenGL; tried once, on the first call. Needs a QGuiApplication.
bool openGlAvailable();

/// A VTK render window without a window: it draws into whatever context is current.
class VtkFrame {
 public:
  VtkFrame();
  ~VtkFrame();
  VtkFrame(const VtkFrame&) = delete;
  VtkFrame& operator=(const VtkFrame&) = delete;

  vtkGenericOpenGLRenderWindow* window() const { return window_.Get(); }
  /// Each of these three wants the context current: a context has come, is about to go, and a picture into one of its framebuffers.
  void attach();
  void release();
  void render(QSize pixels, unsigned framebuffer, bool smooth = true);

 private:
  vtkNew<vtkGenericOpenGLRenderWindow> window_;
  bool attached_ = false;
};

/// Draws a renderer that belongs to no window yet into an image, without anything on the screen. Null when there is no OpenGL.
QImage renderImage(vtkRenderer* renderer, QSize pixels);

/// The widget that shows a VtkFrame. It takes no mouse events: what lies over it does. Where a smooth picture takes long (no graphics
/// card), it is drawn with jagged edges while it changes and smoothed when it has come to rest.
class VtkWidget : public QOpenGLWidget {
  Q_OBJECT
 public:
  explicit VtkWidget(QWidget* parent = nullptr);
  ~VtkWidget() override;
  VtkFrame& frame() { return frame_; }
  void changed();  ///< what is drawn has changed
  bool isMoving() const { return moving_; }
  std::function<void()> beforeRender;  ///< called in paintGL, the sizes being known

 protected:
  void initializeGL() override;
  void resizeGL(int width, int height) override;
  void paintGL() override;

 private:
  void release();
  VtkFrame frame_;
  QTimer rest_;
  bool slow_ = false, moving_ = false;
  QMetaObject::Connection leaving_;
};

}  // namespace reclab
