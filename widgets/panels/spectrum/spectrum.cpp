// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/spectrum/spectrum.h"

#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "panels/panel_info.h"
#include "plain_text.h"
#include "plot/pinned.h"

namespace reclab {

using Complex = std::complex<double>;

/// A part of the picture: the ground with the cloud of all steps, the eigenvalues of now, or those of a pinned run under them.
class SpectrumPicture : public QCPLayerable {
 public:
  SpectrumPicture(SpectrumPanel* panel, const QString& layer, bool now) : QCPLayerable(panel->plot_, layer), panel_(panel), now_(now) {}
  SpectrumPicture(SpectrumPanel* panel, std::shared_ptr<const Trace> pinned, const QColor& colour)
      : QCPLayerable(panel->plot_, QStringLiteral("now")), panel_(panel), now_(true), pinned_(std::move(pinned)), ink_(colour) {
    moveToLayer(this->layer(), true);
  }
  void forget() { image_ = {}; }

 protected:
  void applyDefaultAntialiasingHint(QCPPainter* painter) const override { painter->setAntialiasing(true); }
  QRect clipRect() const override { return panel_->rect_->rect(); }

  void draw(QCPPainter* painter) override {
    if (!panel_->array_) return;
    if (panel_->fromContinuous()) {
      if (!now_) drawGround(painter);
    } else if (now_) {
      drawNow(painter);
    } else {
      drawGround(painter);
      drawCloud(painter);
      drawTrail(painter);
    }
  }

 private:
  double x(double re) const { return panel_->rect_->axis(QCPAxis::atBottom)->coordToPixel(re); }
  double y(double im) const { return panel_->rect_->axis(QCPAxis::atLeft)->coordToPixel(im); }

  void drawGround(QCPPainter* painter) const {
    const Theme& theme = panel_->plot_->theme();
    const QRectF area(clipRect());
    const QColor shade = mixed(theme.text, theme.base, theme.dark ? 0.07 : 0.045);
    painter->setBrush(shade);
    painter->setPen(Qt::NoPen);
    const QRectF circle(QPointF(x(-1), y(1)), QPointF(x(1), y(-1)));
    painter->drawEllipse(circle);
    painter->setBrush(Qt::NoBrush);
    painter->setPen(QPen(theme.grid, 1));
    painter->drawLine(QPointF(x(0), area.top()), QPointF(x(0), area.bottom()));
    painter->drawLine(QPointF(area.left(), y(0)), QPointF(area.right(), y(0)));
    painter->setPen(QPen(theme.axis, 1.2));
    painter->drawEllipse(circle);
  }

  /// Where the eigenvalues were at earlier steps of training, from the darkest to the brightest.
  void drawTrail(QCPPainter* painter) const {
    const auto& past = panel_->trail_.past();
    if (past.size() < 2) return;
    const ColourMap& map = viridis();
    const auto first = static_cast<double>(past.front().steps), span = static_cast<double>(past.back().steps) - first;
    painter->setPen(Qt::NoPen);
    for (const SpectrumTrail::Past& one : past) {
      painter->setBrush(QColor(map[static_cast<std::size_t>(255.0 * (static_cast<double>(one.steps) - first) / span)]));
      for (const Complex& z : one.values)
        if (std::isfinite(z.real()) && std::isfinite(z.imag())) painter->drawEllipse(QPointF(x(z.real()), y(z.imag())), 1.4, 1.4);
    }
  }

  /// How often each pixel is hit by any step, as opacity. Drawn once for a view.
  void drawCloud(QCPPainter* painter) {
    if (!panel_->cloudArray_) return;
    const std::vector<Complex>& values = *panel_->cloudArray_->complex;
    if (static_cast<std::int64_t>(values.size()) <= panel_->cloudArray_->row_size()) return;
    const QRect area = clipRect();
    const QCPRange re = panel_->rect_->axis(QCPAxis::atBottom)->range(), im = panel_->rect_->axis(QCPAxis::atLeft)->range();
    const double scale = painter->device()->devicePixelRatioF();
    const QSize size = (QSizeF(area.size()) * scale).toSize();
    const Theme& theme = panel_->plot_->theme();
    QColor colour = mixed(theme.shown(), theme.text, 0.6);
    if (panel_->cloudArray_ != panel_->array_) colour = mixed(colour, theme.base, 0.5);  // of the run before
    if (painter->modes().testFlag(QCPPainter::pmVectorized) && values.size() <= 20'000) {
      QColor faint = colour;
      faint.setAlphaF(0.3f);
      painter->setPen(Qt::NoPen);
      painter->setBrush(faint);
      for (const Complex& z : values)
        if (const QPointF at(x(z.real()), y(z.imag())); area.contains(at.toPoint())) painter->drawEllipse(at, 1.1, 1.1);
      return;
    }
    if (image_.isNull() || image_.size() != size || re != re_ || im != im_ || colour != colour_) {
      re_ = re;
      im_ = im;
      colour_ = colour;
      const int width = size.width(), height = size.height();
      std::vector<std::uint16_t> hits(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), 0);
      // Two million points say no more than a sample of them: whole rows are left out, evenly.
      const auto n = static_cast<std::size_t>(panel_->cloudArray_->row_size());
      const std::size_t rows = values.size() / n, stride = std::max<std::size_t>(1, values.size() / 2'000'000);
      for (std::size_t row = 0; row < rows; row += stride) {
        for (std::size_t j = row * n; j < (row + 1) * n; ++j) {
          const double px = (values[j].real() - re.lower) / re.size() * width, py = (im.upper - values[j].imag()) / im.size() * height;
          if (!(px >= 1 && py >= 1 && px < width - 1 && py < height - 1)) continue;
          const auto at = static_cast<std::size_t>(py) * static_cast<std::size_t>(width) + static_cast<std::size_t>(px);
          const auto hit = [&](std::size_t i) { hits[i] = static_cast<std::uint16_t>(std::min(65535, hits[i] + 1)); };
          for (const std::size_t i : {at, at - 1, at + 1, at - static_cast<std::size_t>(width), at + static_cast<std::size_t>(width)})
            hit(i);
        }
      }
      image_ = QImage(size, QImage::Format_ARGB32);
      image_.fill(Qt::transparent);
      for (int row = 0; row < height; ++row) {
        auto* line = reinterpret_cast<QRgb*>(image_.scanLine(row));
        for (int column = 0; column < width; ++column) {
          const int count = hits[static_cast<std::size_t>(row) * static_cast<std::size_t>(width) + static_cast<std::size_t>(column)];
          if (count > 0) line[column] = qRgba(colour.red(), colour.green(), colour.blue(), std::min(110, 36 + 8 * count));
        }
      }
    }
    painter->drawImage(QRectF(area), image_);
  }

  void drawNow(QCPPainter* painter) const {
    if (pinned_)
      drawPoints(painter, panel_->rowAt(*pinned_, panel_->step_), ink_, false);
    else
      drawPoints(painter, panel_->rowAt(*panel_->trace_, panel_->step_), panel_->plot_->theme().shown(), true);
  }

  /// Discs, or rings for pinned runs. On the screen very many are stamped, in a vector figure each is a path.
  void drawPoints(QCPPainter* painter, std::span<const Complex> values, const QColor& colour, bool solid) const {
    const QRectF area = QRectF(clipRect()).adjusted(-4, -4, 4, 4);
    const double radius = values.size() > 512 ? 2.0 : values.size() > 96 ? 2.8 : 3.6;
    const Theme& theme = panel_->plot_->theme();
    const auto pen = [&](QPainter* p) {
      if (solid) {
        p->setPen(QPen(theme.base, 0.8));
        p->setBrush(colour);
      } else {
        p->setPen(QPen(colour, 1.2));
        p->setBrush(Qt::NoBrush);
      }
    };
    if (values.size() <= 256 || painter->modes().testFlag(QCPPainter::pmVectorized)) {
      pen(painter);
      for (const Complex& z : values) {
        const QPointF at(x(z.real()), y(z.imag()));
        if (area.contains(at)) painter->drawEllipse(at, radius, radius);
      }
      return;
    }
    const double scale = painter->device()->devicePixelRatioF(), side = 2.0 * radius + 3.0;
    QPixmap stamp((QSizeF(side, side) * scale).toSize());
    stamp.setDevicePixelRatio(scale);
    stamp.fill(Qt::transparent);
    {
      QPainter on(&stamp);
      on.setRenderHint(QPainter::Antialiasing);
      pen(&on);
      on.drawEllipse(QPointF(side / 2, side / 2), radius, radius);
    }
    for (const Complex& z : values) {
      const QPointF at(x(z.real()), y(z.imag()));
      if (area.contains(at)) painter->drawPixmap(at - QPointF(side / 2, side / 2), stamp);
    }
  }

  SpectrumPanel* panel_;
  bool now_;
  std::shared_ptr<const Trace> pinned_;
  QColor ink_;
  QImage image_;
  QCPRange re_, im_;
  QColor colour_;
};

SpectrumPanel::SpectrumPanel(QWidget* parent) : PlotPanel(parent) {
  layers_ = new QComboBox;
  layers_->setProperty("choice", "layer");
  layers_->setObjectName(QStringLiteral("layer"));
  layers_->setToolTip(tr("The layer whose eigenvalues are shown."));
  view_ = new QComboBox;
  view_->setProperty("choice", "view");
  view_->setObjectName(QStringLiteral("view"));
  view_->addItems({tr("transition"), tr("from continuous to discrete")});
  view_->setMinimumWidth(90);
  view_->setToolTip(
      tr("The eigenvalues of a step, or those in continuous time that the step was made of, and what other rules would make of them."));
  makeFlowControls();
  controls_->addWidget(layers_);
  controls_->addWidget(view_);
  controls_->addStretch();
  static_cast<QVBoxLayout*>(control_row_->parentWidget()->layout())
      ->insertWidget(1, flow_controls_);  // a row of its own, for narrow panels
  note_ = new Paragraph(plot_);
  note_->setLayer(QStringLiteral("overlay"));  // it moves with the cursor
  rect_ = plot_->makeRect([this] { keepRound(); });
  legend_ = new Legend(plot_);
  plot_->plotLayout()->addElement(0, 0, legend_);
  plane_ = plot_->makeRect([this] {
    if (!fromContinuous() || lock_->isChecked()) return;
    plane_->axis(QCPAxis::atBottom)->setRange(flow_->planeRe());
    plane_->axis(QCPAxis::atLeft)->setRange(flow_->planeIm());
  });
  grid_ = new QCPLayoutGrid;
  grid_->setColumnSpacing(8);
  grid_->addElement(0, 0, plane_);
  grid_->addElement(0, 1, rect_);
  plot_->plotLayout()->addElement(1, 0, grid_);
  plot_->plotLayout()->addElement(2, 0, note_);
  rect_->axis(QCPAxis::atBottom)->setLabel(tr("Re λ"));
  rect_->axis(QCPAxis::atLeft)->setLabel(tr("Im λ"));
  cloud_ = new SpectrumPicture(this, QStringLiteral("main"), false);
  now_ = new SpectrumPicture(this, QStringLiteral("now"), true);
  flow_ = new FlowView(plot_, legend_, plane_, rect_);
  connect(layers_, &QComboBox::activated, this, &SpectrumPanel::choose);
  connect(view_, &QComboBox::activated, this, [this](int index) {
    by_hand_[QString::fromStdString(trace_->info.preset)] = index == 1;
    refresh();
  });
  connect(plot_, &Plot::curvesToggled, this, [this] {
    if (fromContinuous()) moveTime();
  });
  lock_ = new QAction(tr("Hold the axes"), this);
  lock_->setCheckable(true);
  lock_->setToolTip(tr("The axes stay as they are whatever is changed; a zoom holds them too. A double click fits them again."));
  addAction(lock_);
  connect(lock_, &QAction::toggled, this, [this] {
    imposed_ = false;
    plot_->redraw();
  });
  const auto zoom = [this](const QPointF& at) {
    if (rect_->rect().contains(at.toPoint()) || (fromContinuous() && plane_->rect().contains(at.toPoint()))) lock_->setChecked(true);
  };
  connect(plot_, &QCustomPlot::mouseWheel, this, [zoom](QWheelEvent* event) { zoom(event->position()); });
  connect(plot_, &QCustomPlot::mouseMove, this, [zoom](QMouseEvent* event) {
    if (event->buttons() & Qt::LeftButton) zoom(event->position());
  });
  plot_->setResetHandler([this] {
    if (fromContinuous()) step_slider_->setValue(0);
    lock_->setChecked(false);
    plot_->redraw();
  });
  plot_->setHoverHandler([this](const QPointF& at) { return tipAt(at); });
  refresh();
}

QString SpectrumPanel::hint() const {
  return tr(
      "The eigenvalues that carry the state from one step to the next: inside the circle a mode fades, on it it stays, outside it grows. "
      "The cloud is every computed step.");
}

void SpectrumPanel::makeFlowControls() {
  flow_controls_ = new QWidget;
  flow_controls_->hide();
  auto* row = new QHBoxLayout(flow_controls_);
  row->setContentsMargins(8, 0, 8, 4);
  row->setSpacing(8);
  step_slider_ = new QSlider(Qt::Horizontal);
  step_slider_->setObjectName(QStringLiteral("step"));
  step_slider_->setRange(-200, 200);
  step_slider_->setPageStep(25);
  step_slider_->setMinimumWidth(60);
  step_slider_->setToolTip(
      tr("The length h of a step, from a hundredth to a hundred times that of the sequence. A double click on the picture puts it back."));
  step_label_ = plainLabel();
  step_label_->setObjectName(QStringLiteral("stepLength"));
  share_ = new QDoubleSpinBox;
  share_->setObjectName(QStringLiteral("share"));
  share_->setRange(0.0, 1.0);
  share_->setSingleStep(0.05);
  share_->setDecimals(2);
  share_->setValue(0.75);
  share_->setPrefix(QStringLiteral("α "));
  share_->setToolTip(tr("The share α of the new state in the slope of a generalised step."));
  row->addWidget(step_slider_, 1);
  row->addWidget(step_label_);
  row->addWidget(share_);
  connect(step_slider_, &QSlider::valueChanged, this, [this](int hundredths) {
    flow_->setStep(hundredths == 0 ? 1.0 : std::pow(10.0, 0.01 * hundredths));
    if (fromContinuous()) moveTime();
  });
  connect(share_, &QDoubleSpinBox::valueChanged, this, [this](double share) {
    flow_->setShare(share);
    if (fromContinuous()) showPins();
  });
}

void SpectrumPanel::lookAt(const QString& preset, const QString& detail, bool asked) {
  wanted_[preset] = detail == u"continuous";
  if (asked) by_hand_.remove(preset);
  refresh();
}

void SpectrumPanel::forget() {
  array_ = cloudArray_ = nullptr;
  flow_->clear();
}

/// The half-plane stands beside the disk, or takes no room at all.
void SpectrumPanel::setFlowRect(bool shown) {
  plane_->setVisible(shown);
  plane_->setMinimumSize(shown ? QSize(30, 20) : QSize(0, 0));
  plane_->setMaximumSize(shown ? QWIDGETSIZE_MAX : 0, QWIDGETSIZE_MAX);
  for (const QCPAxis::AxisType side : {QCPAxis::atLeft, QCPAxis::atBottom}) plane_->axis(side)->setVisible(shown);
  plane_->setAutoMargins(shown ? QCP::msAll : QCP::MarginSides());
  if (!shown) plane_->setMargins(QMargins());
  grid_->setColumnSpacing(shown ? 8 : 0);
  rect_->axis(QCPAxis::atBottom)->setLabel(shown ? tr("Re z") : tr("Re λ"));
  rect_->axis(QCPAxis::atLeft)->setLabel(shown ? tr("Im z") : tr("Im λ"));
}

/// As it was left for this model, else as its preset says.
void SpectrumPanel::chooseView() {
  const QString preset = QString::fromStdString(trace_->info.preset);
  const bool flows = info_.continuous && by_hand_.value(preset, wanted_.value(preset, false));
  layers_->setVisible(layers_->count() > 1);
  view_->setVisible(info_.continuous);
  view_->setCurrentIndex(flows ? 1 : 0);
  flow_controls_->setVisible(flows);
  control_row_->setVisible(layers_->count() > 1 || info_.continuous);
  setFlowRect(flows);
  if (flows)
    showFlow();
  else
    flow_->clear();
  if (was_flow_ != flows) lock_->setChecked(false);
  was_flow_ = flows;
}

/// The eigenvalues in continuous time at the cursor: those that the run recorded, else those that its rule's inverse finds.
void SpectrumPanel::showFlow() {
  Discretisation own{"exponential", 0.0};
  for (const Discretisation& rule : discretisations(info_.share))
    if (rule.name == info_.rule) own = rule;
  std::vector<Complex> exponents;
  const TraceArray* flow = trace_->find(key_of(Kind::flow, layer_.toLongLong()));
  if (flow && flow->complex && flow->has_rows()) {
    const std::int64_t row = std::clamp<std::int64_t>(trace_->row_of_step(*flow, step_), 0, flow->shape[0] - 1), n = flow->row_size();
    exponents.assign(flow->complex->begin() + row * n, flow->complex->begin() + (row + 1) * n);
  } else {
    for (const Complex& z : rowAt(*trace_, step_)) exponents.push_back(continuous(own, z));
  }
  StepTime time;
  if (!plot_->timeIsSteps())
    time = {plot_->timeSpacing(), QString::fromStdString(trace_->time_unit.empty() ? trace_->time_name : trace_->time_unit)};
  const bool before = flow_->shown();
  flow_->set(std::move(exponents), own, time);
  if (!before && own.name == "generalised") share_->setValue(own.share);
  plane_->axis(QCPAxis::atBottom)->setLabel(flow_->rateName(tr("Re λ")));
  plane_->axis(QCPAxis::atLeft)->setLabel(flow_->rateName(tr("Im λ")));
  step_label_->setText(tr("h = %1").arg(flow_->stepText().section(QStringLiteral(", "), 0, 0)));
  step_label_->setToolTip(safeTip(flow_->stepText()));
}

QString SpectrumPanel::subject() const { return layers_->count() > 1 ? layerName(*trace_, layer_) : QString(); }

QString SpectrumPanel::whyEmpty() const {
  if (const QString said = noRunSentence(trace_.get(), tr("its eigenvalues appear here")); !trace_) return said;
  for (const TraceArray* array : trace_->of(Kind::spectrum))
    if (array->complex && array->size() > 0) return {};
  if (trace_->info.outcome == Outcome::diverged || trace_->info.outcome == Outcome::cancelled)
    return tr("This run has no spectrum, for it ended early: %1").arg(QString::fromStdString(trace_->info.sentence));
  // A model without a transition says so in place of what its spectrum would hold.
  for (const SpectrumInfo& info : trace_->info.spectra)
    if (info.of.starts_with("none"))
      return (tr("%1 has no spectrum: %2.")
                  .arg(QString::fromStdString(trace_->info.title),
                       mathText(QString::fromStdString(info.of).section(QStringLiteral(": "), 1))) +
              u' ' + pinsThatHave(pinned_, {Kind::spectrum}))
          .trimmed();
  return tr("This run has no spectrum yet: it comes after states and gradients. If it does not, press Run.");
}

void SpectrumPanel::rebuild() {
  const QSignalBlocker quiet(layers_);
  layers_->clear();
  std::vector<const TraceArray*> arrays;
  for (const TraceArray* array : trace_->of(Kind::spectrum)) {
    if (!array->complex || array->size() == 0) continue;
    arrays.push_back(array);
    const QString layer = QString::fromStdString(array->key).section(u'/', 1);
    layers_->addItem(layerName(*trace_, layer), layer);
  }
  choose(std::max(0, layers_->findData(layer_)));
}

void SpectrumPanel::choose(int index) {
  layers_->setCurrentIndex(index);
  layer_ = layers_->itemData(index).toString();
  array_ = trace_->find(key_of(Kind::spectrum, layer_.toLongLong()));
  bool numeric = false;
  const int number_ = layer_.toInt(&numeric);
  const auto at = static_cast<std::size_t>(numeric ? number_ : index);
  info_ = at < trace_->info.spectra.size() ? trace_->info.spectra[at] : SpectrumInfo{};
  cloudArray_ = array_;
  if (const Trace* former = comparable(); former && info_.per_step && array_->shape[0] == 1) {
    const TraceArray* before = former->find(array_->key);
    if (before && before->complex && before->row_size() == array_->row_size()) cloudArray_ = before;
  }
  cloud_->forget();
  chooseView();
  plot_->setFigureShape(fromContinuous() ? 0.62 : 0.85);
  findHome();
  moveTime();
  showPins();
}

std::span<const Complex> SpectrumPanel::rowAt(const Trace& trace, std::int64_t step, std::int64_t* at) const {
  const TraceArray* array = trace.find(key_of(Kind::spectrum, layer_.toLongLong()));
  if (!array || !array->complex || array->size() == 0) return {};
  const std::int64_t row = std::clamp<std::int64_t>(trace.row_of_step(*array, step), 0, array->shape[0] - 1), n = array->row_size();
  if (at) {
    const std::vector<std::int64_t>& steps = array->steps.empty() ? trace.steps : array->steps;
    *at = array->shape[0] == 1 && array->steps.empty()   ? step
          : static_cast<std::size_t>(row) < steps.size() ? steps[static_cast<std::size_t>(row)]
                                                         : step;
  }
  return {array->complex->data() + row * n, static_cast<std::size_t>(n)};
}

/// A few steps with eigenvalues far beyond all others', as a first one from an empty memory, would make a point of the rest.
double SpectrumPanel::reachOfMostRows() {
  far_rows_ = 0;
  constexpr double all = std::numeric_limits<double>::infinity();
  constexpr std::ptrdiff_t enough = 20;
  std::vector<double> reaches;
  const std::int64_t n = std::max<std::int64_t>(array_->row_size(), 1);
  for (std::int64_t row = 0; row + n <= array_->size(); row += n) {
    double reach = 0.0;
    for (std::int64_t i = row; i < row + n; ++i)
      if (const double size = std::abs((*array_->complex)[static_cast<std::size_t>(i)]); std::isfinite(size)) reach = std::max(reach, size);
    reaches.push_back(reach);
  }
  if (std::ssize(reaches) < enough) return all;
  std::ranges::sort(reaches);
  const double reach = 4.0 * std::max(1.0, reaches[reaches.size() * 95 / 100]);
  far_rows_ = reaches.end() - std::ranges::upper_bound(reaches, reach);
  far_reach_ = reaches.back();
  return reach;
}

void SpectrumPanel::findHome() {
  double left = -1, right = 1, top = 1, bottom = -1;
  const double reach = reachOfMostRows();
  const bool learns = trace_->info.learned.has_value();  // then the cloud of former weights may be far from where these are
  for (const TraceArray* array : {array_, learns ? array_ : cloudArray_})
    for (const Complex& z : *array->complex) {
      if (!std::isfinite(z.real()) || !std::isfinite(z.imag()) || std::abs(z) > reach) continue;
      left = std::min(left, z.real());
      right = std::max(right, z.real());
      bottom = std::min(bottom, z.imag());
      top = std::max(top, z.imag());
    }
  const double across = std::max(0.08 * (right - left), 1e-6), up = std::max(0.08 * (top - bottom), 1e-6);
  const QCPRange re(left - across, right + across), im(bottom - up, top + up);
  // Eigenvalues that leave the plane while a slider moves are what one looks for: it grows, by a quarter more than it must, so that it is
  // seldom.
  const auto grown = [this](const QCPRange& home, const QCPRange& wanted) {
    if (!held_ || !(home.size() > 0)) return wanted;
    QCPRange range = home;
    if (wanted.lower < home.lower) range.lower = wanted.lower - 0.25 * (home.lower - wanted.lower) - 0.05 * home.size();
    if (wanted.upper > home.upper) range.upper = wanted.upper + 0.25 * (wanted.upper - home.upper) + 0.05 * home.size();
    return range;
  };
  const QCPRange before_re = std::exchange(home_re_, grown(home_re_, re)), before_im = std::exchange(home_im_, grown(home_im_, im));
  if (before_re != home_re_ || before_im != home_im_) imposed_ = false;
}

/// A circle is to be round: the axis that has pixels to spare shows more. A plane that somebody else gave it, as to all that stand side by
/// side, stays.
void SpectrumPanel::keepRound() {
  QCPAxis *re = rect_->axis(QCPAxis::atBottom), *im = rect_->axis(QCPAxis::atLeft);
  if (std::exchange(continuous_, fromContinuous()) != fromContinuous())
    imposed_ = false;
  else if (kept_re_.size() > 0 && (re->range() != kept_re_ || im->range() != kept_im_))
    imposed_ = !lock_->isChecked();
  const auto remember = [this, re, im] { kept_re_ = re->range(), kept_im_ = im->range(); };
  if (!lock_->isChecked() && !imposed_) {
    const double reach = 1.1 * flow_->diskReach();
    re->setRange(fromContinuous() ? QCPRange(-reach, reach) : home_re_);
    im->setRange(fromContinuous() ? QCPRange(-reach, reach) : home_im_);
  }
  remember();
  if (rect_->width() < 2 || rect_->height() < 2) return;
  const double a = re->range().size() / rect_->width(), b = im->range().size() / rect_->height();
  if (a < b)
    re->setRange(re->range().center(), b * rect_->width(), Qt::AlignCenter);
  else
    im->setRange(im->range().center(), a * rect_->height(), Qt::AlignCenter);
  remember();
}

void SpectrumPanel::moveTime() {
  if (fromContinuous()) {
    showFlow();
    plot_->redraw();
  }
  const std::size_t before = trail_.past().size();
  trail_.take(trace_->info, layer_, step_, rowAt(*trace_, step_));
  writeNote();
  if (before != trail_.past().size())
    plot_->redraw();
  else
    plot_->redrawNow();
}

void SpectrumPanel::writeNote() {
  std::int64_t at = 0;
  const auto values = rowAt(*trace_, step_, &at);
  QString text = info_.of.empty() ? tr("Eigenvalues") : mathText(QString::fromStdString(info_.of));
  if (!text.isEmpty()) text[0] = text[0].toUpper();
  if (info_.per_step) text += tr(" at step %1").arg(grouped(at));
  if (info_.per_step && at != step_) text += tr(", the nearest to step %1 that was computed").arg(grouped(step_));
  if (!info_.per_step && !text.contains(u"every step")) text += tr(", the same at every step");
  const auto unstable = std::count_if(values.begin(), values.end(), [&](const Complex& z) { return std::abs(z) > 1.0 + 1e-12; });
  if (unstable > 0)
    text += tr("; %1 of %2 outside the unit circle").arg(grouped(unstable), grouped(static_cast<std::int64_t>(values.size())));
  text += u'.';
  if (far_rows_ > 0)
    text += tr(" At %1 of %2 steps some are far outside the picture, up to |λ| = %3.")
                .arg(grouped(far_rows_), grouped(array_->shape[0]), number(far_reach_, 3));
  if (trail_.past().size() > 1)
    text += tr(" Small dots: where they were at %1 steps of training, from %2 (dark) to %3 (bright).")
                .arg(grouped(std::ssize(trail_.past())), grouped(trail_.past().front().steps), grouped(trail_.past().back().steps));
  if (fromContinuous()) text = flow_->note();
  if (const QString said = notesOn(*trace_, {Kind::spectrum}); !said.isEmpty()) text += u' ' + said;
  const QSize before = note_->minimumOuterSizeHint();
  if (text == note_->text()) return;
  note_->setText(text, true);
  if (note_->minimumOuterSizeHint() != before) plot_->redraw();
}

QString SpectrumPanel::makeHeadline() const {
  if (fromContinuous()) return flow_->headline();
  double largest = -std::numeric_limits<double>::infinity();
  for (const Complex& z : rowAt(*trace_, step_)) {
    const double size = std::abs(z);
    if (!std::isnan(size)) largest = std::max(largest, size);
  }
  if (std::isinf(largest) && largest < 0) return {};
  return tr("|λ|max %1").arg(number(largest, 3));
}

QPointF SpectrumPanel::pixelOf(Complex z) const {
  return {rect_->axis(QCPAxis::atBottom)->coordToPixel(z.real()), rect_->axis(QCPAxis::atLeft)->coordToPixel(z.imag())};
}

QString SpectrumPanel::tipAt(const QPointF& position) const {
  if (array_ && fromContinuous()) return flow_->tipAt(position);
  if (!array_ || !rect_->rect().contains(position.toPoint())) return {};
  const auto values = rowAt(*trace_, step_);
  double nearest = 9.0 * 9.0;
  const Complex* hit = nullptr;
  for (const Complex& z : values) {
    const QPointF away = pixelOf(z) - position;
    const double distance = QPointF::dotProduct(away, away);
    if (distance < nearest) nearest = distance, hit = &z;
  }
  if (!hit) return {};
  const double modulus = std::abs(*hit), angle = std::arg(*hit), full = 2.0 * std::numbers::pi;
  QString text =
      tr("λ = %1 %2 %3 i")
          .arg(number(hit->real(), 4), hit->imag() < 0 ? QStringLiteral("−") : QStringLiteral("+"), number(std::abs(hit->imag()), 4));
  text += QStringLiteral("\n") + tr("|λ| = %1").arg(number(modulus, 5));
  const double log_modulus = std::log(modulus), spacing = plot_->timeSpacing();
  // In the sequence's own time too, where it has one.
  const bool timed = !plot_->timeIsSteps();
  const QString unit = QString::fromStdString(trace_->time_unit.empty() ? trace_->time_name : trace_->time_unit);
  if (modulus == 0.0)
    text += QStringLiteral("\n") + tr("forgets at once");
  else if (std::abs(log_modulus) < 1e-12)
    text += QStringLiteral("\n") + tr("neither fades nor grows");
  else
    text += QStringLiteral("\n") +
            (log_modulus < 0 ? tr("time constant %1 steps") : tr("grows e-fold in %1 steps")).arg(number(1.0 / std::abs(log_modulus), 4)) +
            (timed ? tr(", %1 %2").arg(number(spacing / std::abs(log_modulus), 4), unit) : QString());
  text += QStringLiteral("\n") + tr("frequency %1 cycles per step").arg(number(std::abs(angle) / full, 4));
  if (timed) text += tr(", %1 per %2").arg(number(std::abs(angle) / full / spacing, 4), unit);
  return text;
}

void SpectrumPanel::setPinned(const std::vector<Run>& runs) {
  pinned_ = runs;
  if (emptyReason().isEmpty())
    showPins();
  else
    refresh();  // which of them have a spectrum
}

void SpectrumPanel::showPins() {
  for (SpectrumPicture* picture : pictures_) delete picture;
  pictures_.clear();
  legend_->clear();
  if (fromContinuous()) {
    flow_->addToLegend();
    addPinsWithout(legend_, pinned_, plot_->theme(), tr("under “transition”"), tr("This view has room for one run."));
    return plot_->redraw();
  }
  if (!pinned_.empty())
    legend_->add(QStringLiteral("shown"), tr("shown"), QPen(plot_->theme().shown(), 2.0), {cloud_, now_},
                 tr("The run that is looked at: its eigenvalues at the cursor are the discs, those of its other steps are faint."));
  for (const Run& run : pinned_) {
    if (!run.trace) continue;
    if (rowAt(*run.trace, step_).empty()) {
      addPinWithout(legend_, run, plot_->theme(), layers_->count() > 1 ? tr("no %1").arg(layerName(*trace_, layer_)) : tr("no spectrum"));
      continue;
    }
    pictures_.push_back(new SpectrumPicture(this, run.trace, run.colour));
    addPin(legend_, run, QPen(run.colour, 1.2), {pictures_.back()}, {}, tr("Its eigenvalues at the cursor are the rings of this colour."));
  }
  plot_->redraw();
}

QString SpectrumPanel::dataAsCsv() const {
  if (!trace_) return {};
  if (array_ && fromContinuous()) return flow_->csv();
  // With pinned runs, whose each line is stands in a column after the others.
  const bool several = std::any_of(pinned_.begin(), pinned_.end(), [](const Run& run) { return run.trace != nullptr; });
  QByteArray text = "layer,step,eigenvalue,real,imaginary,modulus";
  text += several ? ",run\n" : "\n";
  const auto add = [&](const Trace& trace, const QByteArray& run) {
    for (const TraceArray* array : trace.of(Kind::spectrum)) {
      if (!array->complex) continue;
      const QByteArray layer = csvCell(QString::fromStdString(array->key).section(u'/', 1)).toUtf8();
      const std::vector<std::int64_t>& steps = array->steps.empty() ? trace.steps : array->steps;
      const std::int64_t rows = array->shape[0], n = array->row_size();
      for (std::int64_t row = 0; row < rows; ++row) {
        // One row for the whole run belongs to no step.
        const bool all = rows == 1 && array->steps.empty();
        const QByteArray step = all ? QByteArray("all") : QByteArray::number(static_cast<qlonglong>(steps[static_cast<std::size_t>(row)]));
        for (std::int64_t j = 0; j < n; ++j) {
          const Complex z = (*array->complex)[static_cast<std::size_t>(row * n + j)];
          text += layer + ',' + step + ',' + QByteArray::number(static_cast<qlonglong>(j)) + ',' + csvNumber(z.real()) + ',' +
                  csvNumber(z.imag()) + ',' + csvNumber(std::abs(z)) + run + '\n';
        }
      }
    }
  };
  const auto named = [&](const QString& run) { return several ? ',' + csvCell(run).toUtf8() : QByteArray(); };
  add(*trace_, named(tr("shown")));
  for (const Run& run : pinned_)
    if (run.trace) add(*run.trace, named(run.label));
  return QString::fromUtf8(text);
}

RECLAB_PANEL_IS(spectrum, SpectrumPanel)

}  // namespace reclab
