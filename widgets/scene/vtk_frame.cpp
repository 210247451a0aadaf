// SPDX-License-Identifier: GPL-3.0-or-later
#include "scene/vtk_frame.h"

#include <vtkGenericOpenGLRenderWindow.h>
#include <vtkOpenGLFramebufferObject.h>
#include <vtkOpenGLState.h>
#include <vtkRenderer.h>
#include <vtkRendererCollection.h>

#include <QElapsedTimer>
#include <QOffscreenSurface>
#include <QOpenGLContext>
#include <QOpenGLExtraFunctions>
#include <QOpenGLFramebufferObject>
#include <QOpenGLFunctions>
#include <algorithm>

namespace reclab {
namespace {

QSurfaceFormat sceneFormat() {
  QSurfaceFormat format;
  format.setRenderableType(QSurfaceFormat::OpenGL);
  format.setVersion(3, 2);
  format.setProfile(QSurfaceFormat::CoreProfile);
  format.setRedBufferSize(8);
  format.setGreenBufferSize(8);
  format.setBlueBufferSize(8);
  format.setAlphaBufferSize(0);
  format.setDepthBufferSize(24);
  format.setStencilBufferSize(8);
  return format;
}

/// A context of our own that draws nowhere on the screen.
struct Offscreen {
  QOffscreenSurface surface;
  QOpenGLContext context;
  bool current() {
    surface.setFormat(sceneFormat());
    surface.create();
    context.setFormat(sceneFormat());
    return surface.isValid() && context.create() && context.makeCurrent(&surface);
  }
};

}  // namespace

void prepareOpenGl() { QSurfaceFormat::setDefaultFormat(sceneFormat()); }

bool openGlAvailable() {
  static const bool available = [] {
    Offscreen offscreen;
    if (!offscreen.current()) return false;
    const QSurfaceFormat got = offscreen.context.format();
    offscreen.context.doneCurrent();
    return got.renderableType() != QSurfaceFormat::OpenGLES && got.version() >= std::pair(3, 2);
  }();
  return available;
}

VtkFrame::VtkFrame() {
  window_->SetOwnContext(false);
  window_->SetFrameBlitModeToNoBlit();
  window_->SetReadyForRendering(false);
}

VtkFrame::~VtkFrame() {
  // Whoever owns the context has released; a frame that never had one has nothing to give back.
  window_->SetReadyForRendering(false);
}

void VtkFrame::attach() {
  window_->SetReadyForRendering(true);
  window_->SetForceMaximumHardwareLineWidth(1);
  window_->SetIsCurrent(true);
  window_->InitializeFromCurrentContext();
  attached_ = true;
}

void VtkFrame::release() {
  if (!attached_) return;
  window_->SetIsCurrent(true);
  window_->Finalize();
  window_->SetReadyForRendering(false);
  attached_ = false;
}

void VtkFrame::render(QSize pixels, unsigned framebuffer, bool smooth) {
  if (!attached_ || pixels.isEmpty()) return;
  vtkOpenGLState* state = window_->GetState();
  // Qt has touched the state since the last picture: VTK forgets what it remembers, and puts back what it found.
  state->Reset();
  state->Push();
  window_->InitializeFromCurrentContext();
  window_->SetIsCurrent(true);
  window_->SetMapped(true);
  window_->SetMultiSamples(smooth ? 4 : 0);
  window_->SetSize(pixels.width(), pixels.height());
  window_->SetScreenSize(pixels.width(), pixels.height());
  window_->Render();

  QOpenGLExtraFunctions* gl = QOpenGLContext::currentContext()->extraFunctions();
  gl->glDisable(GL_SCISSOR_TEST);
  gl->glBindFramebuffer(GL_READ_FRAMEBUFFER, window_->GetDisplayFramebuffer()->GetFBOIndex());
  gl->glBindFramebuffer(GL_DRAW_FRAMEBUFFER, framebuffer);
  gl->glReadBuffer(GL_COLOR_ATTACHMENT0);
  gl->glBlitFramebuffer(0, 0, pixels.width(), pixels.height(), 0, 0, pixels.width(), pixels.height(), GL_COLOR_BUFFER_BIT, GL_NEAREST);
  gl->glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  // What VTK leaves in the alpha channel is no transparency for Qt to compose with.
  gl->glColorMask(GL_FALSE, GL_FALSE, GL_FALSE, GL_TRUE);
  gl->glClearColor(0, 0, 0, 1);
  gl->glClear(GL_COLOR_BUFFER_BIT);
  gl->glColorMask(GL_TRUE, GL_TRUE, GL_TRUE, GL_TRUE);
  state->Pop();
}

QImage renderImage(vtkRenderer* renderer, QSize pixels) {
  if (!openGlAvailable()) return {};
  QOpenGLContext* before = QOpenGLContext::currentContext();
  QSurface* beforeSurface = before ? before->surface() : nullptr;
  Offscreen offscreen;
  QImage image;
  if (offscreen.current()) {
    {
      QOpenGLFramebufferObject target(pixels, QOpenGLFramebufferObject::CombinedDepthStencil);
      VtkFrame frame;
      frame.window()->AddRenderer(renderer);
      frame.attach();
      frame.render(pixels, target.handle());
      image = target.toImage();
      frame.release();
      frame.window()->RemoveRenderer(renderer);
    }
    offscreen.context.doneCurrent();
  }
  if (before) before->makeCurrent(beforeSurface);
  return image.convertToFormat(QImage::Format_RGB32);
}

VtkWidget::VtkWidget(QWidget* parent) : QOpenGLWidget(parent) {
  setFormat(sceneFormat());
  setAttribute(Qt::WA_TransparentForMouseEvents);
  rest_.setSingleShot(true);
  rest_.setInterval(350);
  connect(&rest_, &QTimer::timeout, this, [this] {
    moving_ = false;
    update();
  });
}

VtkWidget::~VtkWidget() { release(); }

void VtkWidget::initializeGL() {
  // A widget that moves to another window (a dock that floats) gets another context: the old one leaves with what VTK made in it.
  leaving_ = connect(context(), &QOpenGLContext::aboutToBeDestroyed, this, &VtkWidget::release);
  frame_.attach();
}

void VtkWidget::release() {
  if (!context()) return;
  disconnect(leaving_);
  makeCurrent();
  frame_.release();
  doneCurrent();
}

void VtkWidget::changed() {
  if (slow_) {
    moving_ = true;
    rest_.start();
  }
  update();
}

void VtkWidget::resizeGL(int, int) {
  if (slow_) moving_ = true, rest_.start();
}

void VtkWidget::paintGL() {
  if (beforeRender) beforeRender();
  QElapsedTimer clock;
  clock.start();
  frame_.render(size() * devicePixelRatio(), defaultFramebufferObject(), !moving_);
  context()->functions()->glFinish();
  if (!moving_) slow_ = clock.elapsed() > 20;
}

}  // namespace reclab
