// SPDX-License-Identifier: GPL-3.0-or-later
#include "scene/trajectory_view.h"

#include <vtkCallbackCommand.h>
#include <vtkCamera.h>
#include <vtkGenericOpenGLRenderWindow.h>
#include <vtkGenericRenderWindowInteractor.h>
#include <vtkInteractorStyleTrackballCamera.h>
#include <vtkObjectFactory.h>
#include <vtkRenderer.h>

#include <QEvent>
#include <QImage>
#include <QMouseEvent>
#include <QPainter>
#include <QResizeEvent>
#include <QTimer>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "scene/vtk_frame.h"

namespace reclab {
namespace {

/// The trackball of VTK with the third axis kept upright, so that the labels of the axes stay where they are read.
class Turntable : public vtkInteractorStyleTrackballCamera {
 public:
  static Turntable* New();
  vtkTypeMacro(Turntable, vtkInteractorStyleTrackballCamera) Turntable(const Turntable&) = delete;
  Turntable& operator=(const Turntable&) = delete;
  TrajectoryScene* scene = nullptr;
  void Rotate() override {
    const int* at = Interactor->GetEventPosition();
    const int* before = Interactor->GetLastEventPosition();
    const int* size = Interactor->GetSize();
    scene->turn(-200.0 * (at[0] - before[0]) / std::max(1, size[0]), -200.0 * (at[1] - before[1]) / std::max(1, size[1]));
    Interactor->Render();
  }
  void Spin() override { Rotate(); }
  void Dolly(double factor) override {
    vtkCamera* eye = scene->camera();
    eye->Dolly(std::clamp(factor, eye->GetDistance() / 60.0, eye->GetDistance() / 0.8));
    Interactor->Render();
  }

 protected:
  Turntable() = default;
  ~Turntable() override = default;
};
vtkStandardNewMacro(Turntable)

}  // namespace

TrajectoryView::TrajectoryView(QWidget* parent, bool openGl)
    : QWidget(parent), openGl_(openGl ? OpenGl::wanted : OpenGl::known), overlay_(nullptr) {
  setMinimumSize(160, 120);
  unseen_->SetReadyForRendering(false);
  unseen_->AddRenderer(scene_.renderer());

  overlay_ = new QWidget(this);
  overlay_->setAttribute(Qt::WA_NoSystemBackground);
  overlay_->installEventFilter(this);
  overlay_->setObjectName("trajectoryOverlay");

  vtkNew<Turntable> style;
  style->scene = &scene_;
  style->AutoAdjustCameraClippingRangeOff();
  interactor_->SetRenderWindow(unseen_);
  interactor_->SetInteractorStyle(style);
  interactor_->EnableRenderOff();  // Qt says when a picture is drawn
  interactor_->Initialize();
  vtkNew<vtkCallbackCommand> wanted;
  wanted->SetClientData(this);
  wanted->SetCallback([](vtkObject*, unsigned long, void* self, void*) { static_cast<TrajectoryView*>(self)->refresh(); });
  interactor_->AddObserver(vtkCommand::RenderEvent, wanted);
  scene_.setTheme(Theme::of(this));
}

TrajectoryView::~TrajectoryView() {
  interactor_->SetInteractorStyle(nullptr);
  interactor_->SetRenderWindow(nullptr);
  delete gl_;  // while the scene that it draws is still there
}

bool TrajectoryView::hasOpenGl() {
  if (openGl_ != OpenGl::known) askForOpenGl();
  return gl_ != nullptr;
}

void TrajectoryView::askForOpenGl() {
  if (openGl_ == OpenGl::known) return;
  openGl_ = OpenGl::known;
  if (openGlAvailable()) {
    gl_ = new VtkWidget(this);
    gl_->beforeRender = [this] { scene_.prepare(gl_->devicePixelRatio()); };
    gl_->setGeometry(rect());
    gl_->stackUnder(overlay_);
    gl_->show();
    unseen_->RemoveRenderer(scene_.renderer());
    gl_->frame().window()->AddRenderer(scene_.renderer());
    interactor_->SetRenderWindow(gl_->frame().window());
    refresh();
  }
  emit openGlKnown();
}

bool TrajectoryView::atRest() const { return openGl_ == OpenGl::known ? !gl_ || !gl_->isMoving() : !isVisible(); }

void TrajectoryView::refresh() {
  if (gl_) gl_->changed();
  overlay_->update();
}

void TrajectoryView::setCursor(std::int64_t row) {
  if (!gl_) {
    scene_.setCursor(row);
    return overlay_->update();
  }
  const QRectF before = scene_.markerArea();
  scene_.setCursor(row);
  for (const QRectF& area : {before, scene_.markerArea(), scene_.barArea()}) overlay_->update(area.toAlignedRect());
}

QImage TrajectoryView::image(QSizeF size, double scale, bool cursor) const {
  TrajectoryScene copy;
  copy.copyFrom(scene_);
  copy.beFigure();
  if (!cursor) copy.setCursor(-1);
  copy.resize(size);
  copy.prepare(scale);
  const QSize pixels = (size * scale).toSize();
  QImage image = openGl_ != OpenGl::known || gl_ ? renderImage(copy.renderer(), pixels) : QImage();
  const bool rendered = !image.isNull();
  if (!rendered) image = QImage(pixels, QImage::Format_RGB32);
  image.setDevicePixelRatio(scale);
  QPainter painter(&image);
  if (rendered)
    copy.paintOver(painter);
  else
    copy.paint(painter);
  return image;
}

void TrajectoryView::paintVectors(QPainter& painter, QSizeF size, bool cursor) const {
  TrajectoryScene copy;
  copy.copyFrom(scene_);
  copy.beFigure();
  if (!cursor) copy.setCursor(-1);
  copy.resize(size);
  copy.prepare(1.0);
  copy.paint(painter);
}

void TrajectoryView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  if (gl_) gl_->setGeometry(rect());
  overlay_->setGeometry(rect());
  overlay_->raise();
  scene_.resize(size());
  scene_.prepare(devicePixelRatioF());
}

void TrajectoryView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) {
    scene_.setTheme(Theme::of(this));
    refresh();
  }
  QWidget::changeEvent(event);
}

void TrajectoryView::paintOverlay() {
  QPainter painter(overlay_);
  if (openGl_ == OpenGl::wanted) {
    openGl_ = OpenGl::asked;
    QTimer::singleShot(0, this, &TrajectoryView::askForOpenGl);
  }
  scene_.prepare(devicePixelRatioF());
  if (gl_)
    scene_.paintOver(painter);
  else
    scene_.paint(painter);
}

bool TrajectoryView::eventFilter(QObject* watched, QEvent* event) {
  switch (event->type()) {
    case QEvent::Paint: paintOverlay(); return true;
    case QEvent::MouseButtonPress:
    case QEvent::MouseButtonRelease:
    case QEvent::MouseButtonDblClick:
    case QEvent::MouseMove:
    case QEvent::Wheel: mouse(event); return true;
    default: return QWidget::eventFilter(watched, event);
  }
}

void TrajectoryView::mouse(QEvent* event) {
  const double ratio = devicePixelRatioF();
  const auto* pointer = static_cast<QSinglePointEvent*>(event);
  const QPointF at = pointer->position();
  // The geometry that VTK would take from a window: pixels, from the lower left corner.
  const QSize pixels = size() * ratio;
  interactor_->SetSize(pixels.width(), pixels.height());
  interactor_->GetRenderWindow()->SetSize(pixels.width(), pixels.height());
  const Qt::KeyboardModifiers keys = pointer->modifiers();
  interactor_->SetEventInformation(int(at.x() * ratio), pixels.height() - 1 - int(at.y() * ratio), keys.testFlag(Qt::ControlModifier),
                                   keys.testFlag(Qt::ShiftModifier));
  const auto send = [&](unsigned long left, unsigned long middle, unsigned long right) {
    switch (pointer->button()) {
      case Qt::LeftButton: interactor_->InvokeEvent(left, nullptr); break;
      case Qt::MiddleButton: interactor_->InvokeEvent(middle, nullptr); break;
      case Qt::RightButton: interactor_->InvokeEvent(right, nullptr); break;
      default: break;
    }
  };
  switch (event->type()) {
    case QEvent::MouseButtonDblClick:
      scene_.resetCamera();
      moved_ = true;  // its release picks nothing
      refresh();
      break;
    case QEvent::MouseButtonPress:
      pressed_ = at;
      moved_ = false;
      send(vtkCommand::LeftButtonPressEvent, vtkCommand::MiddleButtonPressEvent, vtkCommand::RightButtonPressEvent);
      break;
    case QEvent::MouseMove:
      if (std::hypot(at.x() - pressed_.x(), at.y() - pressed_.y()) > 4.0) moved_ = true;
      interactor_->InvokeEvent(vtkCommand::MouseMoveEvent, nullptr);
      break;
    case QEvent::MouseButtonRelease:
      send(vtkCommand::LeftButtonReleaseEvent, vtkCommand::MiddleButtonReleaseEvent, vtkCommand::RightButtonReleaseEvent);
      if (!moved_ && pointer->button() == Qt::LeftButton) {
        const std::int64_t row = scene_.pick(at, 14.0);
        if (row >= 0) emit picked(row);
      }
      break;
    default: {
      const int turns = static_cast<QWheelEvent*>(event)->angleDelta().y();
      if (turns != 0)
        interactor_->InvokeEvent(turns > 0 ? vtkCommand::MouseWheelForwardEvent : vtkCommand::MouseWheelBackwardEvent, nullptr);
      break;
    }
  }
}

}  // namespace reclab
