// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/figure.h"

#include <QBuffer>
#include <QFileInfo>
#include <QPdfWriter>
#include <QRegularExpression>
#include <QSaveFile>
#include <QSvgGenerator>

#include "plot/plot.h"
#include "trace/input_scale.h"

namespace reclab {
namespace {

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
  pdf += "xref\n" + info.toLatin1() + " 1\n" + at + " 00000 n \ntrailer\n<<\n/Size " + size.toLatin1() + "\n/Info " + info.toLatin1() + " 0 R\n/Root " +
         root.toLatin1() + " 0 R\n/Prev " + before.toLatin1() + "\n>>\nstartxref\n" + table + "\n%%EOF\n";
}

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
  text += run.learned ? Plot::tr("; after %1 steps of training").arg(run.learned->steps) : run.weights.empty() ? Plot::tr("; seed %1").arg(run.seed) : Plot::tr("; weights %1").arg(QFileInfo(words(run.weights)).fileName());
  if (!run.loss.empty()) text += Plot::tr("; loss %1").arg(words(run.loss));
  if (!run.form.empty()) text += Plot::tr("; %1 form, %2, %3").arg(words(run.form), words(run.dtype), words(run.device));
  text += Plot::tr(". Made by Recurrence Lab %1.").arg(words(run.version));
  if (!run.command.empty()) text += Plot::tr(" The run again: %1").arg(words(run.command));
  FigureText figure(title);
  figure.description = text;
  figure.command = words(run.command);
  return figure;
}

QImage drawnImage(QSize size, double scale, const QColor& opaque, const std::function<void(QCPPainter*)>& draw) {
  QImage image((QSizeF(size) * scale).toSize(), QImage::Format_RGB32);
  image.setDevicePixelRatio(scale);
  image.fill(opaque);
  QCPPainter painter(&image);
  painter.setMode(QCPPainter::pmNoCaching);
  draw(&painter);
  return image;
}

QString saveDrawing(const QString& file, Panel::Format format, QSize size, const QColor& opaque, int dpi, const FigureText& text,
                    const std::function<void(QCPPainter*)>& draw) {
  const auto refused = [&](const QString& reason) {
    return Plot::tr(
               "The figure could not be written to %1 (%2); choose a folder that exists, that you may write to and that has space left.")
        .arg(file, reason);
  };
  const auto drawVectors = [&](QPaintDevice* device) {
    QCPPainter painter;
    painter.begin(device);
    painter.setModes(QCPPainter::pmVectorized | QCPPainter::pmNoCaching);
    painter.fillRect(QRect(QPoint(0, 0), size), opaque);
    draw(&painter);
  };
  const QFileInfo there(file);
  if (there.exists() && !there.isFile()) return refused(Plot::tr("that is not an ordinary file"));
  QSaveFile out(file);
  if (!out.open(QIODevice::WriteOnly | QIODevice::Unbuffered)) return refused(out.errorString());
  // Drawn into memory first: the generators do not notice a disk that is full, writing the bytes does.
  QBuffer bytes;
  bytes.open(QIODevice::WriteOnly);
  if (format == Panel::Format::png) {
    QImage image = drawnImage(size, 2.0, opaque, draw);
    image.setText(QStringLiteral("Title"), text.title);
    image.setText(QStringLiteral("Description"), text.description);
    image.save(&bytes, "PNG");
  } else if (format == Panel::Format::svg) {
    QSvgGenerator svg;
    svg.setOutputDevice(&bytes);
    svg.setResolution(dpi);
    svg.setSize(size);
    svg.setViewBox(QRect(QPoint(0, 0), size));
    svg.setTitle(text.title);
    svg.setDescription(text.description.isEmpty() ? Plot::tr("Made by Recurrence Lab.") : text.description);
    drawVectors(&svg);
    // Where the font is missing the text is to stay one without serifs.
    static const QRegularExpression family(QStringLiteral("font-family=\"([^\",]+)\""));
    bytes.buffer() = QString::fromUtf8(bytes.data()).replace(family, QStringLiteral("font-family=\"\\1, sans-serif\"")).toUtf8();
  } else {
    QPdfWriter pdf(&bytes);
    pdf.setResolution(dpi);
    pdf.setTitle(text.title);
    pdf.setCreator(QStringLiteral("Recurrence Lab"));
    pdf.setPageSize(QPageSize(QSizeF(size) * 72.0 / dpi, QPageSize::Point, QString(), QPageSize::ExactMatch));
    pdf.setPageMargins(QMarginsF(0, 0, 0, 0));
    drawVectors(&pdf);
    describe(bytes.buffer(), text);
  }
  if (out.write(bytes.data()) != bytes.size()) return refused(Plot::tr("the disk is full, or a limit was reached"));
  if (!out.commit()) return refused(out.errorString());
  return {};
}

}  // namespace reclab
