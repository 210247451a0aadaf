// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/streams/stream_curves.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "gui/look/look.h"
#include "plain_text.h"
#include "plot/parts/curves.h"
#include "plot/parts/layout.h"

namespace reclab {
namespace {

constexpr int leastHeight = 190;
constexpr std::int64_t mostPoints = 600;  ///< of a curve that is drawn
constexpr int colours = 7;                ///< of the theme's series

}  // namespace

StreamCurvesView::StreamCurvesView(QWidget* parent) : QWidget(parent), what_(new QComboBox(this)), plot_(new Plot(this)) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(4);
  auto* line = new QHBoxLayout;
  line->setSpacing(8);
  what_->setObjectName("stream.curve");
  what_->addItem(tr("error of the last ones"));
  what_->addItem(tr("regret"));
  what_->setItemData(errors, tr("The mean error of the last steps, each predicted before anything is learned from it"), Qt::ToolTipRole);
  what_->setItemData(regret, tr("Of a learner: the sum of its errors until then, less that of the learner for which it was least then"),
                     Qt::ToolTipRole);
  what_->setAccessibleName(tr("Curve"));
  auto* name = label(tr("curve"), "muted", this);
  name->setBuddy(what_);
  line->addWidget(name);
  line->addWidget(what_, 1);
  column->addLayout(line);
  plot_->setMinimumHeight(leastHeight);
  plot_->setAccessibleName(tr("Errors over the stream"));
  column->addWidget(plot_);
  legend_ = new Legend(plot_);
  rect_ = plot_->makeRect([this] {
    const QString measure = QString::fromStdString(numbers_.measures[0]);
    nameValues(rect_, drawsRegret() ? tr("regret, %1").arg(measure) : tr("%1 error").arg(measure),
               drawsRegret() ? tr("regret") : tr("error"));
  });
  stack(plot_, {legend_, rect_});
  rect_->axis(QCPAxis::atBottom)->setTicker(QSharedPointer<QCPAxisTicker>(new StepTicker));
  rect_->axis(QCPAxis::atBottom)->setLabel(tr("step of the stream"));
  values_ = plot_->addValueAxis(rect_);
  plot_->setResetHandler([this] { values_->reset(); });
  connect(plot_, &Plot::themeChanged, this, &StreamCurvesView::draw);
  connect(plot_, &Plot::curvesToggled, this, &StreamCurvesView::draw);
  connect(what_, &QComboBox::currentIndexChanged, this, [this] {
    draw();
    emit chosen();
  });
  hide();
}

QPen StreamCurvesView::penOf(const Theme& theme, const std::vector<StreamRow>& rows, std::size_t row) {
  const auto before = static_cast<int>(std::count_if(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(row),
                                                     [&](const StreamRow& one) { return one.learns == rows[row].learns; }));
  if (rows[row].learns) return QPen(theme.series(before), 1.6, curveStyle(before / colours));
  return QPen(theme.muted, 1.2, curveStyle(before + 1));
}

void StreamCurvesView::show(const StreamNumbers& numbers) {
  setVisible(numbers.curves != nullptr && !numbers.curves->steps.empty());
  if (numbers.curves == numbers_.curves) return;
  numbers_ = numbers;
  // Of one learner alone the regret is 0.
  const bool several = std::ranges::count_if(numbers_.rows, &StreamRow::learns) > 1;
  what_->setEnabled(several);
  draw();
}

bool StreamCurvesView::drawsRegret() const { return what_->isEnabled() && what_->currentIndex() == regret; }

void StreamCurvesView::draw() {
  plot_->clearPlottables();
  legend_->clear();
  const StreamCurvesPtr& curves = numbers_.curves;
  if (!curves || curves->steps.empty()) return;
  const bool ofRegret = drawsRegret();
  QCPAxis* values = rect_->axis(QCPAxis::atLeft);
  values->setTicker(ofRegret ? QSharedPointer<QCPAxisTicker>(new NumberTicker) : QSharedPointer<QCPAxisTicker>(new PowerTicker));
  for (std::size_t row = 0; row < numbers_.rows.size(); ++row) {
    const StreamRow& one = numbers_.rows[row];
    const std::vector<double>& of = ofRegret ? curves->regret[row] : curves->windowed[row];
    if (of.empty()) continue;
    const QPen pen = penOf(plot_->theme(), numbers_.rows, row);
    QCPGraph* graph = plot_->addCurve(rect_, pen.color(), pen.widthF(), pen.style());
    fillCurve(
        graph, curves->steps, std::ssize(of),
        [&](std::int64_t i) {
          const double value = of[static_cast<std::size_t>(i)];
          return ofRegret ? value : std::log10(value);
        },
        mostPoints);
    QString tip = QString::fromStdString(one.text);
    if (one.diverged >= 0) tip += tr("; not finite from step %1 on").arg(grouped(one.diverged));
    legend_->add(QString::fromStdString(one.name), QString::fromStdString(one.name), pen, {graph}, tip);
  }
  rect_->axis(QCPAxis::atBottom)->setRange(0.0, std::max(1.0, curves->steps.back()));
  if (const auto span = spanOf(rect_)) values_->fit(padded(*span, 0.05, ofRegret ? 1e-9 : 0.02));
  plot_->redraw();
}

}  // namespace reclab
