// SPDX-License-Identifier: GPL-3.0-or-later
// Figures written as PNG, SVG and PDF.
#include <QBuffer>
#include <QClipboard>
#include <QFileInfo>
#include <QGuiApplication>
#include <QPdfWriter>
#include <QRegularExpression>
#include <QSaveFile>
#include <QSvgGenerator>
#include <cmath>

#include "plot/figure.h"
#include "plot/plot.h"

namespace reclab {
namespace {

constexpr double print_dpi = 600.0;  // of a PNG

/// The SVG in its size on paper, with a font that is without serifs also where its own is missing, and without characters that XML forbids:
/// control characters in the names of columns.
QByteArray finished(const QByteArray& svg, const QSizeF& mm) {
  static const QRegularExpression family(QStringLiteral("font-family=\"([^\",]+)\"")),
      size(QStringLiteral("<svg width=\"[^\"]*\" height=\"[^\"]*\""));
  QString text = QString::fromUtf8(svg).replace(family, QStringLiteral("font-family=\"\\1, sans-serif\""));
  if (const QRegularExpressionMatch match = size.match(text); match.hasMatch())
    text.replace(match.capturedStart(), match.capturedLength(),
                 QStringLiteral("<svg width=\"%1mm\" height=\"%2mm\"").arg(mm.width(), 0, 'f', 3).arg(mm.height(), 0, 'f', 3));
  QString allowed;
  allowed.reserve(text.size());
  for (qsizetype i = 0; i < text.size(); ++i) {
    const QChar c = text[i];
    if (c.isHighSurrogate() && i + 1 < text.size() && text[i + 1].isLowSurrogate()) {
      allowed += c;
      allowed += text[++i];
    } else if (!c.isSurrogate() && c.unicode() < 0xfffe && (c.unicode() >= 0x20 || c == u'\t' || c == u'\n' || c == u'\r')) {
      allowed += c;
    }
  }
  return allowed.toUtf8();
}

/// A string of a PDF, in UTF-16 as any text may be.
QByteArray pdfString(const QString& text) {
  QByteArray bytes = "<FEFF";
  for (const QChar c : text) bytes += QByteArray::number(c.unicode(), 16).rightJustified(4, '0').toUpper();
  return bytes + '>';
}

/// Adds a subject and keywords to the document's information, for which QPdfWriter has no words: as an update at the end of the file (PDF
/// 32000-1, 7.5.6), which leaves all offsets as they are.
void describe(QByteArray& pdf, const FigureText& text) {
  const auto trailer = pdf.lastIndexOf("trailer");
  const QString last = QString::fromLatin1(pdf.mid(trailer));
  const auto of = [&](const char* pattern) { return QRegularExpression(QLatin1String(pattern)).match(last).captured(1); };
  const QString size = of("/Size (\\d+)"), root = of("/Root (\\d+) 0 R"), info = of("/Info (\\d+) 0 R"), before = of("startxref\\s+(\\d+)");
  const auto begin = info.isEmpty() ? -1 : pdf.indexOf('\n' + info.toLatin1() + " 0 obj");
  const auto end = begin < 0 ? -1 : pdf.indexOf("endobj", begin);
  const auto close = end < 0 ? -1 : pdf.lastIndexOf(">>", end);
  if (trailer < 0 || size.isEmpty() || root.isEmpty() || before.isEmpty() || close < begin) return;  // of a writer that we do not know
  QByteArray object = pdf.mid(begin + 1, close - begin - 1);
  object += "/Subject " + pdfString(text.description) + "\n/Keywords " + pdfString(text.command) + "\n>>\nendobj\n";
  const QByteArray at = QByteArray::number(pdf.size()).rightJustified(10, '0');
  pdf += object;
  const QByteArray table = QByteArray::number(pdf.size());
  pdf += "xref\n" + info.toLatin1() + " 1\n" + at + " 00000 n \ntrailer\n<<\n/Size " + size.toLatin1() + "\n/Info " + info.toLatin1() +
         " 0 R\n/Root " + root.toLatin1() + " 0 R\n/Prev " + before.toLatin1() + "\n>>\nstartxref\n" + table + "\n%%EOF\n";
}

}  // namespace

QImage drawnImage(const FigureDrawing& drawing, double scale, const QColor& opaque) {
  QImage image((QSizeF(drawing.size) * scale).toSize(), QImage::Format_RGB32);
  image.setDevicePixelRatio(scale);
  image.fill(opaque);
  QCPPainter painter(&image);
  painter.setMode(QCPPainter::pmNoCaching);
  drawing.draw(&painter);
  return image;
}

QString saveDrawing(const QString& file, Panel::Format format, const FigureDrawing& drawing, const FigureStyle& style, const QColor& opaque,
                    int dpi) {
  const auto refused = [&](const QString& reason) {
    return Plot::tr(
               "The figure could not be written to %1 (%2); choose a folder that exists, that you may write to and that has space left.")
        .arg(file, reason);
  };
  if (const QString problem = style.problem(); !problem.isEmpty()) return problem;
  const FigureText& text = drawing.text;
  const double scale = style.scale();
  const auto drawVectors = [&](QPaintDevice* device, double enlarged) {
    QCPPainter painter;
    painter.begin(device);
    painter.setModes(QCPPainter::pmVectorized | QCPPainter::pmNoCaching);
    painter.scale(enlarged, enlarged);
    painter.fillRect(QRect(QPoint(0, 0), drawing.size), opaque);
    drawing.draw(&painter);
  };
  const QFileInfo there(file);
  if (there.exists() && !there.isFile()) return refused(Plot::tr("that is not an ordinary file"));
  QSaveFile out(file);
  if (!out.open(QIODevice::WriteOnly | QIODevice::Unbuffered)) return refused(out.errorString());
  // Drawn into memory first: the generators do not notice a disk that is full, writing the bytes does.
  QBuffer bytes;
  bytes.open(QIODevice::WriteOnly);
  if (format == Panel::Format::png) {
    QImage image = drawnImage(drawing, style.forPrint() ? print_dpi * scale / dpi : 2.0, opaque);
    if (style.forPrint()) {
      image.setDotsPerMeterX(static_cast<int>(std::lround(print_dpi * 1000.0 / mm_of_an_inch)));
      image.setDotsPerMeterY(image.dotsPerMeterX());
    }
    image.setText(QStringLiteral("Title"), text.title);
    image.setText(QStringLiteral("Description"), text.description);
    image.save(&bytes, "PNG");
  } else if (format == Panel::Format::svg) {
    QSvgGenerator svg;
    svg.setOutputDevice(&bytes);
    svg.setResolution(dpi);
    svg.setSize(drawing.size);
    svg.setViewBox(QRect(QPoint(0, 0), drawing.size));
    // The generator writes both as they are.
    svg.setTitle(text.title.toHtmlEscaped());
    svg.setDescription((text.description.isEmpty() ? Plot::tr("Made by Recurrence Lab.") : text.description).toHtmlEscaped());
    drawVectors(&svg, 1.0);
    bytes.buffer() = finished(bytes.data(), QSizeF(drawing.size) * scale * mm_of_an_inch / dpi);
  } else {
    QPdfWriter pdf(&bytes);
    pdf.setResolution(dpi);
    pdf.setTitle(text.title);
    pdf.setCreator(QStringLiteral("Recurrence Lab"));
    const QSizeF points = QSizeF(drawing.size) * scale * 72.0 / dpi;
    pdf.setPageSize(QPageSize(points, QPageSize::Point, QString(), QPageSize::ExactMatch));
    pdf.setPageMargins(QMarginsF(0, 0, 0, 0));
    drawVectors(&pdf, scale);
    // Qt's pages are whole points; the width is written as it is, in as many characters, so that no offset changes.
    const QByteArray before("/MediaBox [0 0 "), exact = QByteArray::number(points.width(), 'f', 6);
    const auto at = bytes.buffer().indexOf(before) + before.size();
    if (at >= before.size() && bytes.buffer().indexOf(' ', at) - at == exact.size()) bytes.buffer().replace(at, exact.size(), exact);
    describe(bytes.buffer(), text);
  }
  if (out.write(bytes.data()) != bytes.size()) return refused(Plot::tr("the disk is full, or a limit was reached"));
  if (!out.commit()) return refused(out.errorString());
  return {};
}

QString Panel::saveFigure(const QString& file, Format format, const FigureStyle& style) {
  finish();
  if (const QString reason = emptyReason(); !reason.isEmpty()) return reason;
  return saveDrawing(file, format, drawing(style), style, Theme::of(this).base, logicalDpiX());
}

void Panel::copyFigure() {
  finish();
  if (const QString reason = emptyReason(); !reason.isEmpty())
    QGuiApplication::clipboard()->setText(reason);
  else
    QGuiApplication::clipboard()->setImage(drawnImage(drawing(FigureStyle::asShown()), 2.0, Theme::of(this).base));
}

}  // namespace reclab
