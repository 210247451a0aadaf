// SPDX-License-Identifier: GPL-3.0-or-later
#include "scene/vtk_frame.h"

#include <vtkCamera.h>
#include <vtkGenericOpenGLRenderWindow.h>
#include <vtkOpenGLFramebufferObject.h>
#include <vtkOpenGLState.h>
#include <vtkRenderer.h>
#include <vtkRendererCollection.h>

#include <QOpenGLExtraFunctions>
#include <QPainter>
#include <algorithm>
#include <cstdint>

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

// Where the passes of a smooth picture look past the middle of their pixels, in pixels: one in each row and column of a 4 x 4 grid.
constexpr double shifts[4][2] = {{-0.125, -0.375}, {0.375, -0.125}, {0.125, 0.375}, {-0.375, 0.125}};
constexpr int passes = 4;
constexpr int rest = 350;  // ms without a change, after which a picture is made smooth

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
  // The owner of the context has released the resources; a frame that never had one has nothing to give back.
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

QImage VtkFrame::render(QSize pixels, bool smooth) {
  if (!attached_ || pixels.isEmpty()) return {};
  vtkOpenGLState* state = window_->GetState();
  // VTK's cached state knows nothing of the calls that read the last picture: it is dropped, and the state that it found comes back after
  // them.
  state->Reset();
  state->Push();
  window_->InitializeFromCurrentContext();
  window_->SetIsCurrent(true);
  window_->SetMapped(true);
  window_->SetMultiSamples(smooth ? 4 : 0);
  window_->SetSize(pixels.width(), pixels.height());
  window_->SetScreenSize(pixels.width(), pixels.height());
  window_->Render();

  QImage upwards(pixels, QImage::Format_RGB32), image(pixels, QImage::Format_RGB32);
  QOpenGLExtraFunctions* gl = QOpenGLContext::currentContext()->extraFunctions();
  gl->glBindFramebuffer(GL_READ_FRAMEBUFFER, window_->GetDisplayFramebuffer()->GetFBOIndex());
  gl->glReadBuffer(GL_COLOR_ATTACHMENT0);
  gl->glReadPixels(0, 0, pixels.width(), pixels.height(), GL_BGRA, GL_UNSIGNED_INT_8_8_8_8_REV, upwards.bits());
  state->Pop();
  for (int y = 0; y < pixels.height(); ++y) {
    const auto* from = reinterpret_cast<const QRgb*>(upwards.constScanLine(pixels.height() - 1 - y));
    std::transform(from, from + pixels.width(), reinterpret_cast<QRgb*>(image.scanLine(y)),
                   [](QRgb pixel) { return pixel | 0xff000000U; });  // VTK's alpha channel is no transparency for Qt
  }
  return image;
}

void VtkFrame::shift(double right, double up) {
  vtkRendererCollection* renderers = window_->GetRenderers();
  renderers->InitTraversal();
  while (vtkRenderer* renderer = renderers->GetNextItem()) {
    vtkCamera* eye = renderer->GetActiveCamera();
    const double* centre = eye->GetWindowCenter();
    eye->SetWindowCenter(centre[0] + 2 * right, centre[1] + 2 * up);
  }
}

QImage renderImage(vtkRenderer* renderer, QSize pixels) {
  if (!openGlAvailable()) return {};
  QOpenGLContext* before = QOpenGLContext::currentContext();
  QSurface* beforeSurface = before ? before->surface() : nullptr;
  Offscreen offscreen;
  QImage image;
  if (offscreen.current()) {
    {
      VtkFrame frame;
      frame.window()->AddRenderer(renderer);
      frame.attach();
      image = frame.render(pixels);
      frame.release();
      frame.window()->RemoveRenderer(renderer);
    }
    offscreen.context.doneCurrent();
  }
  if (before) before->makeCurrent(beforeSurface);
  return image;
}

VtkWidget::VtkWidget(QWidget* parent) : QWidget(parent) {
  setAttribute(Qt::WA_TransparentForMouseEvents);
  setAttribute(Qt::WA_OpaquePaintEvent);
  next_.setSingleShot(true);
  connect(&next_, &QTimer::timeout, this, &VtkWidget::draw);
}

VtkWidget::~VtkWidget() {
  if (!context_.isValid() || !makeCurrent()) return;
  frame_.release();
  context_.doneCurrent();
}

bool VtkWidget::makeCurrent() {
  if (context_.isValid()) return context_.makeCurrent(&surface_);
  surface_.setFormat(sceneFormat());
  surface_.create();
  context_.setFormat(sceneFormat());
  if (!surface_.isValid() || !context_.create() || !context_.makeCurrent(&surface_)) return false;
  const QByteArray renderer = reinterpret_cast<const char*>(context_.functions()->glGetString(GL_RENDERER));
  for (const char* name : {"llvmpipe", "softpipe", "swrast", "software", "swr ", "basic render"})
    software_ = software_ || renderer.toLower().contains(name);
  frame_.attach();
  return true;
}

void VtkWidget::changed() {
  pass_ = 0;
  if (!visibleRegion().isEmpty()) return next_.start(0);
  next_.stop();
  picture_ = {};  // drawn when it is seen
}

void VtkWidget::resizeEvent(QResizeEvent*) { changed(); }

QImage VtkWidget::rendered(QSize pixels, bool smooth) {
  if (!makeCurrent()) return {};
  QImage image = frame_.render(pixels, smooth);
  context_.doneCurrent();
  return image;
}

void VtkWidget::draw() {
  if (!context_.isValid() && makeCurrent()) context_.doneCurrent();
  const QSize pixels = (size() * devicePixelRatioF()).expandedTo({1, 1});
  if (pass_ == 0 && beforeRender) beforeRender();
  if (!software_) {
    picture_ = rendered(pixels, true);
    pass_ = passes;
  } else {
    const double right = shifts[pass_][0] / pixels.width(), up = shifts[pass_][1] / pixels.height();
    frame_.shift(right, up);
    const QImage image = rendered(pixels, false);
    frame_.shift(-right, -up);
    if (pass_ == 0 || image.size() != picture_.size()) {
      picture_ = image;
      sum_.assign(static_cast<std::size_t>(image.sizeInBytes()), 0);
    }
    const uchar* bytes = image.constBits();
    for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] = static_cast<std::uint16_t>(sum_[i] + bytes[i]);
    if (++pass_ == passes) {
      uchar* mean = picture_.bits();
      for (std::size_t i = 0; i < sum_.size(); ++i) mean[i] = static_cast<uchar>((sum_[i] + passes / 2) / passes);
    } else {
      next_.start(pass_ == 1 ? rest : 0);
    }
  }
  picture_.setDevicePixelRatio(devicePixelRatioF());
  if (pass_ == 1 || pass_ == passes) update();
}

void VtkWidget::paintEvent(QPaintEvent*) {
  if (picture_.isNull()) draw();
  QPainter painter(this);
  if (picture_.isNull())
    painter.fillRect(rect(), palette().color(QPalette::Base));
  else
    painter.drawImage(rect(), picture_);  // of another size while a new one is on its way
}

}  // namespace reclab
