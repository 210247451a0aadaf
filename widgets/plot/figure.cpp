// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/figure.h"

#include <QFileInfo>
#include <cmath>
#include <utility>

#include "plot/plot.h"
#include "plot/theme.h"
#include "plot/type_scale.h"
#include "trace/input_scale.h"

namespace reclab {
namespace {

constexpr int title_gap = 8;           // pixels around a title
constexpr double least_width = 230.0;  // of a figure, in points of the screen, with which axes and legends have room

/// The number of pictures above each other, without colour bars.
int stacked(QCPLayoutElement* element) {
  if (element == nullptr || qobject_cast<Paragraph*>(element) || qobject_cast<Legend*>(element) || qobject_cast<QCPColorScale*>(element))
    return 0;
  auto* grid = qobject_cast<QCPLayoutGrid*>(element);
  if (grid == nullptr) return element->visible() ? 1 : 0;
  int count = 0;
  for (int row = 0; row < grid->rowCount(); ++row) {
    int highest = 0;
    for (int column = 0; column < grid->columnCount(); ++column)
      if (grid->hasElement(row, column)) highest = std::max(highest, stacked(grid->element(row, column)));
    count += highest;
  }
  return count;
}

/// A run of a text, on the line or raised; raised digits are ordinary ones.
struct TextPart {
  QString text;
  bool raised = false;
};
QList<TextPart> partsOf(const QString& text) {
  static const QString high = QStringLiteral("⁰¹²³⁴⁵⁶⁷⁸⁹⁻"), plain = QStringLiteral("0123456789−");
  QList<TextPart> parts;
  for (qsizetype i = 0; i < text.size(); ++i) {
    const bool point = text[i] == u'·' && i > 0 && i + 1 < text.size() && high.contains(text[i - 1]) && high.contains(text[i + 1]);
    const qsizetype digit = high.indexOf(text[i]);
    const bool raised = point || digit >= 0;
    if (parts.isEmpty() || parts.back().raised != raised) parts << TextPart{{}, raised};
    parts.back().text += point ? QChar(u'.') : raised ? plain[digit] : text[i];
  }
  return parts;
}
int liftOf(const QFontMetrics& metrics) { return metrics.ascent() * 2 / 5; }
QSize sizeOf(const QList<TextPart>& parts, const QFontMetrics& metrics) {
  QSize size(0, metrics.height());
  for (const TextPart& part : parts) {
    size.rwidth() += metrics.horizontalAdvance(part.text) + (part.raised ? 1 : 0);
    if (part.raised) size.setHeight(metrics.height() + liftOf(metrics));
  }
  return size;
}
void drawParts(QPainter* painter, QPointF at, const QList<TextPart>& parts, const QFontMetrics& metrics) {
  for (const TextPart& part : parts) {
    painter->drawText(at + QPointF(part.raised ? 1 : 0, part.raised ? -liftOf(metrics) : 0), part.text);
    at.rx() += metrics.horizontalAdvance(part.text) + (part.raised ? 1 : 0);
  }
}

/// The labels of ticks. Unicode's raised digits are small in every font: in a figure, whose smallest text has a size, an exponent is
/// written in ordinary digits of the label's own size, raised.
class TickLabels : public QCPAxisPainterPrivate {
 public:
  explicit TickLabels(const QCPAxisPainterPrivate& before, Plot* plot) : QCPAxisPainterPrivate(plot), plot_(plot) {
    type = before.type;
    basePen = before.basePen;
    lowerEnding = before.lowerEnding, upperEnding = before.upperEnding;
    labelPadding = before.labelPadding, labelFont = before.labelFont, labelColor = before.labelColor, label = before.label;
    tickLabelPadding = before.tickLabelPadding, tickLabelRotation = before.tickLabelRotation, tickLabelSide = before.tickLabelSide;
    substituteExponent = before.substituteExponent, numberMultiplyCross = before.numberMultiplyCross;
    tickLengthIn = before.tickLengthIn, tickLengthOut = before.tickLengthOut;
    subTickLengthIn = before.subTickLengthIn, subTickLengthOut = before.subTickLengthOut;
    tickPen = before.tickPen, subTickPen = before.subTickPen;
    tickLabelFont = before.tickLabelFont, tickLabelColor = before.tickLabelColor;
    offset = before.offset;
    abbreviateDecimalPowers = before.abbreviateDecimalPowers, reversedEndings = before.reversedEndings;
  }

 protected:
  QByteArray generateLabelParameterHash() const override {
    return QCPAxisPainterPrivate::generateLabelParameterHash() + (plot_->drawsFigure() ? 'f' : 's');
  }
  TickLabelData getTickLabelData(const QFont& font, const QString& text) const override {
    TickLabelData data = QCPAxisPainterPrivate::getTickLabelData(font, text);
    const QList<TextPart> parts = plot_->drawsFigure() && tickLabelRotation == 0.0 ? partsOf(text) : QList<TextPart>();
    if (parts.size() < 2) return data;
    const QSize room = sizeOf(parts, QFontMetrics(font, plot_));
    data.basePart = text;
    data.expPart = QStringLiteral("^");  // that there is one
    data.totalBounds = data.rotatedTotalBounds = QRect(QPoint(0, 0), room);
    return data;
  }
  void drawTickLabel(QCPPainter* painter, double x, double y, const TickLabelData& data) const override {
    if (data.expPart != QStringLiteral("^")) return QCPAxisPainterPrivate::drawTickLabel(painter, x, y, data);
    painter->setFont(data.baseFont);
    drawParts(painter, QPointF(x, y + data.totalBounds.height() - QFontMetrics(data.baseFont, plot_).descent()), partsOf(data.basePart),
              QFontMetrics(data.baseFont, plot_));
  }

 private:
  Plot* plot_;
};

/// Access to the protected members of QCPAxis.
struct AxisPainter : QCPAxis {
  static QCPAxisPainterPrivate*& of(QCPAxis* axis) { return axis->*(&AxisPainter::mAxisPainter); }
};

}  // namespace

FigureText figureText(const QString& title, const Trace* trace) {
  if (!trace) return title;
  const RunInfo& run = trace->info;
  const auto words = [](const std::string& text) { return QString::fromStdString(text); };
  QStringList hyper;
  for (const auto& [key, value] : run.hyper) hyper << words(key) + QStringLiteral(" = ") + words(value);
  QString text = words(run.title.empty() ? run.preset : run.title);
  if (!hyper.isEmpty()) text += QStringLiteral(" (") + hyper.join(QStringLiteral(", ")) + u')';
  if (!run.input_name.empty()) text += Plot::tr("; input %1, %2 steps").arg(words(input_words(run)), grouped(run.length));
  text += run.learned           ? Plot::tr("; after %1 steps of training").arg(grouped(run.learned->steps))
          : run.weights.empty() ? Plot::tr("; seed %1").arg(run.seed)
                                : Plot::tr("; weights %1").arg(QFileInfo(words(run.weights)).fileName());
  if (!run.loss.empty()) text += Plot::tr("; loss %1").arg(words(run.loss));
  if (!run.form.empty()) text += Plot::tr("; %1 form, %2, %3").arg(words(run.form), words(run.dtype), words(run.device));
  text += Plot::tr(". Made by Recurrence Lab %1.").arg(words(run.version));
  if (!run.command.empty()) text += Plot::tr(" The run again: %1").arg(words(run.command));
  FigureText figure(title);
  figure.description = text;
  figure.command = words(run.command);
  return figure;
}

void raiseExponents(QCPAxis* axis) {
  QCPAxisPainterPrivate*& painter = AxisPainter::of(axis);
  QCPAxisPainterPrivate* before = std::exchange(painter, new TickLabels(*painter, static_cast<Plot*>(axis->parentPlot())));
  delete before;
}

int widthInFigure(const QString& text, const QFontMetrics& metrics) { return sizeOf(partsOf(text), metrics).width(); }

void drawInFigure(QPainter* painter, const QRectF& box, const QString& text, const QFontMetrics& metrics) {
  drawParts(painter, QPointF(box.left(), box.center().y() + (metrics.ascent() - metrics.descent()) / 2.0), partsOf(text), metrics);
}

double FigureStyle::scale() const { return forPrint() ? fontSize / (smallest_text * typeScale()) : 1.0; }

int FigureStyle::pixels(int dpi) const { return static_cast<int>(std::lround(width / mm_of_an_inch * dpi / scale())); }

QString FigureStyle::problem() const {
  if (!forPrint()) return {};
  if (!(width >= 40.0 && width <= 500.0)) return Plot::tr("The width of a figure is %1 mm; it can be 40 to 500 mm.").arg(width);
  if (!(fontSize >= 4.0 && fontSize <= 30.0)) return Plot::tr("The font size of a figure is %1 pt; it can be 4 to 30 pt.").arg(fontSize);
  const double largest = std::floor(10.0 * width / mm_of_an_inch * 72.0 * smallest_text / least_width) / 10.0;
  if (fontSize > largest)
    return Plot::tr("A font size of %1 pt leaves no room in a figure of %2 mm; it can be up to %3 pt there.")
        .arg(fontSize)
        .arg(width)
        .arg(largest);
  return {};
}

/// At the present viewport. A figure leaves nothing out: it is higher than the screen's by the parts without room there.
QSize Plot::figureSize(const FigureStyle& style) {
  const Beside all = beside();
  if (!style.forPrint()) return viewport().size() + QSize(0, std::max(0, all.wanted - all.room));
  constexpr double column = 500.0, one_more = 95.0;
  const double width = style.pixels(logicalDpiX());
  double height =
      figure_shape_ * std::min(width, column) + 0.3 * std::max(0.0, width - column) + one_more * std::max(0, stacked(plotLayout()) - 1);
  for (const Legend* names : all.legends) height += names->wantedHeight();
  for (const Paragraph* text : all.texts) height += style.caption ? text->wantedHeight() : 0;
  return {static_cast<int>(width), static_cast<int>(std::lround(height))};
}

/// The plot has the size of the figure while it is drawn, so that everything that follows from its size does; it is back before anything is
/// painted on the screen.
void Plot::asFigure(const FigureStyle& style, const std::function<void()>& draw) {
  const QRect on_screen = geometry();
  figure_ = style;
  QList<QPointer<QCPLayerable>> hidden;
  for (const auto& mark : cursor_marks_)
    if (mark && mark->visible() && !style.cursor) mark->setVisible(false), hidden << mark;
  const auto become = [&](const QSize& size) {
    setGeometry(QRect(on_screen.topLeft(), size));
    setViewport(QRect(QPoint(0, 0), size));
    replot(rpQueuedRefresh);  // margins follow from ticks and ticks from the room that margins leave: laid out before it is drawn, both fit
  };
  if (style.forPrint()) {
    QSize size;
    become({style.pixels(logicalDpiX()), 400});
    // The parts shown follow from the height, and the height from the parts shown.
    for (int i = 0; i < 3 && size != figureSize(style); ++i) become(size = figureSize(style));
  } else {
    become(on_screen.width() < 200 || on_screen.height() < 140 ? QSize(640, 420) : on_screen.size());
    become(figureSize(style));
  }
  draw();
  for (const auto& mark : hidden)
    if (mark) mark->setVisible(true);
  figure_.reset();
  setGeometry(on_screen);
  setViewport(rect());
  if (isVisible()) replot(rpQueuedRefresh);
}

void Plot::drawFigure(QCPPainter* painter, const QString& title, const FigureStyle& style) {
  asFigure(style, [&] {
    const QSize size = viewport().size();
    const QFontMetrics metrics(theme_.large, this);
    const int top = style.title ? metrics.height() + 2 * title_gap : 0;
    if (style.title) {
      // A title that is too long is written smaller before anything of it is left out.
      const bool fits = metrics.horizontalAdvance(title) <= size.width() - 2 * title_gap;
      painter->setFont(fits ? theme_.large : theme_.small);
      painter->setPen(theme_.text);
      painter->drawText(QRect(title_gap, 0, size.width() - 2 * title_gap, top), Qt::AlignVCenter | Qt::AlignLeft,
                        fits ? title : QFontMetrics(theme_.small, this).elidedText(title, Qt::ElideRight, size.width() - 2 * title_gap));
    }
    painter->save();
    painter->translate(0, top);
    toPainter(painter, size.width(), size.height());
    painter->restore();
  });
}

FigureDrawing Plot::drawing(const FigureText& text, const FigureStyle& style) {
  QSize size;
  asFigure(style, [&] { size = viewport().size(); });
  if (style.title) size.rheight() += QFontMetrics(theme_.large, this).height() + 2 * title_gap;
  return {text, size, [this, title = text.title, style](QCPPainter* painter) { drawFigure(painter, title, style); }};
}

}  // namespace reclab
