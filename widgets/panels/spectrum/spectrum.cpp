// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/spectrum/spectrum.h"

#include <QSignalBlocker>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "box_layout.h"
#include "panels/panel_info.h"
#include "panels/spectrum/spectrum_picture.h"
#include "plain_text.h"
#include "plot/parts/curves.h"
#include "plot/parts/layout.h"
#include "plot/parts/pinned.h"
#include "spoken.h"

namespace reclab {

using Complex = std::complex<double>;

SpectrumPanel::SpectrumPanel(QWidget* parent) : Described(parent) {
  layers_ = addChoice("layer", true, tr("The layer whose eigenvalues are shown."));
  view_ = addChoice(
      "view", true,
      tr("The eigenvalues of a step, or those in continuous time that the step was made of, and what other rules would make of them."),
      {tr("transition"), tr("from continuous to discrete")});
  view_->setMinimumWidth(90);
  makeFlowControls();
  controls_->addStretch();
  static_cast<QVBoxLayout*>(control_row_->parentWidget()->layout())
      ->insertWidget(1, flow_controls_);  // a row of its own, for narrow panels
  note_ = new CursorText(plot_);
  rect_ = plot_->makeRect([this] { keepRound(); });
  legend_ = new Legend(plot_);
  plane_ = plot_->makeRect([this] {
    if (!fromContinuous() || lock_->isChecked()) return;
    plane_->axis(QCPAxis::atBottom)->setRange(flow_->planeRe());
    plane_->axis(QCPAxis::atLeft)->setRange(flow_->planeIm());
  });
  grid_ = new QCPLayoutGrid;
  grid_->setColumnSpacing(8);
  grid_->addElement(0, 0, plane_);
  grid_->addElement(0, 1, rect_);
  stack(plot_, {legend_, grid_, note_});
  rect_->axis(QCPAxis::atBottom)->setLabel(tr("Re λ"));
  rect_->axis(QCPAxis::atLeft)->setLabel(tr("Im λ"));
  cloud_ = new SpectrumPicture(this, QStringLiteral("main"), false);
  now_ = new SpectrumPicture(this, QStringLiteral("now"), true);
  flow_ = new FlowView(plot_, legend_, plane_, rect_);
  connect(layers_, &QComboBox::activated, this, &SpectrumPanel::choose);
  connect(view_, &QComboBox::activated, this, [this](int index) {
    by_hand_[preset()] = index == 1;
    refresh();
  });
  connect(plot_, &Plot::curvesToggled, this, [this] {
    if (fromContinuous()) moveTime();
  });
  lock_ = new QAction(tr("Hold the axes"), this);
  lock_->setObjectName(QStringLiteral("hold"));
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

void SpectrumPanel::makeFlowControls() {
  flow_controls_ = new QWidget;
  flow_controls_->hide();
  auto* row = boxLayout<QHBoxLayout>(flow_controls_, 8, {8, 0, 8, 4});
  step_slider_ = new QSlider(Qt::Horizontal);
  step_slider_->setObjectName(QStringLiteral("step"));
  step_slider_->setRange(-200, 200);
  step_slider_->setPageStep(25);
  step_slider_->setMinimumWidth(60);
  step_slider_->setToolTip(
      tr("The length h of a step, from a hundredth to a hundred times that of the sequence. A double click on the picture puts it back."));
  step_slider_->setAccessibleName(tr("Length of a step"));
  setSpokenValue(step_slider_, 1.0, 0.01, 100.0);
  step_label_ = plainLabel();
  step_label_->setObjectName(QStringLiteral("stepLength"));
  share_ = new QDoubleSpinBox;
  share_->setObjectName(QStringLiteral("share"));
  share_->setAccessibleName(tr("Share α"));
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
    setSpokenValue(step_slider_, std::pow(10.0, 0.01 * hundredths), 0.01, 100.0);
    if (fromContinuous()) moveTime();
  });
  connect(share_, &QDoubleSpinBox::valueChanged, this, [this](double share) {
    flow_->setShare(share);
    if (fromContinuous()) showPins();
  });
}

void SpectrumPanel::forget() {
  array_ = cloudArray_ = nullptr;
  flow_->clear();
}

/// The half-plane stands beside the disk, or takes no room at all.
void SpectrumPanel::setFlowRect(bool shown) {
  fold(plane_, !shown, Qt::Horizontal);
  grid_->setColumnSpacing(shown ? 8 : 0);
  rect_->axis(QCPAxis::atBottom)->setLabel(shown ? tr("Re z") : tr("Re λ"));
  rect_->axis(QCPAxis::atLeft)->setLabel(shown ? tr("Im z") : tr("Im λ"));
}

/// As it was left for this model, else as its preset says.
void SpectrumPanel::chooseView() {
  const bool flows = info_.continuous && by_hand_.value(preset(), wanted() == u"continuous");
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

void SpectrumPanel::rebuild() {
  std::vector<const TraceArray*> arrays = trace_->of(Kind::spectrum);
  std::erase_if(arrays, [](const TraceArray* array) { return !array->complex || array->size() == 0; });
  fillLayers(layers_, arrays, layer_);
  const QSignalBlocker quiet(layers_);
  choose(layers_->currentIndex());
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
    const std::vector<std::int64_t>& steps = stepsOf(trace, *array);
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
  // Eigenvalues that leave the plane while a slider moves are of interest: the plane grows, by a quarter more than needed, so that it does
  // so seldom.
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
  const QCPRange disk(-1.1 * flow_->diskReach(), 1.1 * flow_->diskReach());
  const QCPRange &home_re = fromContinuous() ? disk : home_re_, &home_im = fromContinuous() ? disk : home_im_;
  // Panels side by side share the wanted ranges, without the margins that each adds for a round disk.
  rect_->setProperty("wanted", QRectF(home_re.lower, home_im.lower, home_re.size(), home_im.size()));
  if (!lock_->isChecked() && !imposed_) {
    re->setRange(home_re);
    im->setRange(home_im);
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

QPointF SpectrumPanel::pixelOf(Complex z) const {
  return {rect_->axis(QCPAxis::atBottom)->coordToPixel(z.real()), rect_->axis(QCPAxis::atLeft)->coordToPixel(z.imag())};
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
    if (rowAt(*run.trace, step_).empty()) {
      addPinWithout(legend_, run, plot_->theme(), layers_->count() > 1 ? tr("no %1").arg(layerName(*trace_, layer_)) : tr("no spectrum"));
      continue;
    }
    pictures_.push_back(new SpectrumPicture(this, run.trace, run.colour));
    addPin(legend_, run, QPen(run.colour, 1.2), {pictures_.back()}, {}, tr("Its eigenvalues at the cursor are the rings of this colour."));
  }
  plot_->redraw();
}

RECLAB_PANEL_IS(spectrum, SpectrumPanel)

}  // namespace reclab
