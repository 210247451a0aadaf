// SPDX-License-Identifier: GPL-3.0-or-later
// Two models side by side: a table, and a picture of each spectrum.
#include <QPainter>
#include <QPixmap>
#include <algorithm>
#include <cmath>

#include "gui/literature/map_window.h"
#include "plot/theme.h"
#include "window_text.h"

namespace reclab {
namespace {

QString escaped(const std::string& text) { return QString::fromStdString(text).toHtmlEscaped(); }

QString sizesOf(const Shape& shape) {
  QStringList sizes;
  for (const auto size : shape) sizes << QString::number(size);
  return sizes.isEmpty() ? QStringLiteral("1") : sizes.join(QString::fromUtf8(" × "));
}

QString countOf(double value) { return QLocale::c().toString(value, 'f', 0); }

/// The moduli of a spectrum in words.
QString moduliOf(const Compared& compared) {
  if (compared.eigenvalues.empty()) return windowText(compared.no_spectrum).toHtmlEscaped();
  double low = INFINITY, high = 0.0;
  for (const auto& value : compared.eigenvalues) {
    if (!std::isfinite(std::abs(value))) continue;
    low = std::min(low, std::abs(value));
    high = std::max(high, std::abs(value));
  }
  return QString::fromUtf8("|λ| %1 … %2").arg(low, 0, 'g', 3).arg(high, 0, 'g', 3);
}

}  // namespace

QString comparisonHtml(const Literature& literature, const ComparedPresets& both, const QPalette& palette) {
  const QString muted = palette.color(QPalette::PlaceholderText).name(), shade = palette.color(QPalette::Window).name();
  QString out;
  const int one = literature.indexOf(QString::fromStdString(both[0].card.id)),
            other = literature.indexOf(QString::fromStdString(both[1].card.id));
  if (one >= 0 && other >= 0)
    if (const QString relation = literature.relation(one, other); !relation.isEmpty())
      out += "<p style='margin-top:0'>" + relation.toHtmlEscaped() + "</p>";
  out += "<table width='100%' cellspacing='0' cellpadding='6'>";
  const auto section = [&](const QString& title) {
    out +=
        QString("<tr><td colspan='2' style='color:%1; font-weight:600; padding-top:10px; padding-bottom:0'>%2</td></tr>").arg(muted, title);
  };
  const auto row = [&](const auto& cell, bool shaded = false) {
    out += "<tr>";
    for (const Compared& compared : both)
      out += QString("<td width='50%' valign='top'%1>%2</td>")
                 .arg(shaded ? QString(" bgcolor='%1' style='font-family:\"DejaVu Serif\",serif'").arg(shade) : QString(), cell(compared));
    out += "</tr>";
  };
  row([&](const Compared& compared) {
    const Reference& source = compared.card.source;
    return "<span style='font-size:13pt; font-weight:600'>" + escaped(compared.card.title) +
           QString("</span><br/><span style='color:%1'>").arg(muted) + escaped(source.authors) + ", " + QString::number(source.year) +
           "</span>";
  });
  row([&](const Compared& compared) {
    QStringList words;
    for (const std::string& word : words_of(compared.properties)) words << QString::fromStdString(word);
    return words.join(QString::fromUtf8(" · "));
  });
  section(QObject::tr("Equations"));
  row(
      [&](const Compared& compared) {
        QStringList lines;
        for (const std::string& line : compared.card.equations) lines << mathHtml(line);
        return lines.join("<br/>");
      },
      true);
  section(QObject::tr("States of a layer"));
  row([&](const Compared& compared) {
    QStringList lines;
    for (const StateInfo& state : compared.card.states)
      lines << "<tt>" + escaped(state.name) + "</tt> " +
                   QString("<span style='color:%1'>%2%3%4</span>")
                       .arg(muted, sizesOf(state.shape), state.complex ? QObject::tr(" complex") : QString(),
                            state.recorded ? QString() : QObject::tr(", a buffer"));
    return lines.join("<br/>");
  });
  section(QObject::tr("Cost of a step, with the preset's sizes"));
  row([&](const Compared& compared) {
    QString text =
        QObject::tr("%1 floating-point operations<br/>%2 numbers of state<br/>%3 parameters")
            .arg("<b>" + countOf(compared.cost.flops) + "</b>", "<b>" + countOf(static_cast<double>(compared.cost.state)) + "</b>",
                 "<b>" + countOf(static_cast<double>(compared.cost.parameters)) + "</b>");
    if (compared.properties.growing)
      text += QObject::tr("<br/>(the mean over %1 steps and the state after them: both grow)").arg(compared.cost.steps);
    return text;
  });
  section(QObject::tr("Spectrum, on its own task"));
  row([&](const Compared& compared) {
    const QString picture =
        compared.eigenvalues.empty() ? QString() : QString("<img src='spectrum:%1'/><br/>").arg(&compared == &both[0] ? 0 : 1);
    return picture + moduliOf(compared) +
           (compared.card.spectrum.empty() ? QString()
                                           : QString("<br/><span style='color:%1'>%2</span>").arg(muted, mathHtml(compared.card.spectrum)));
  });
  section(QObject::tr("Gates of a layer"));
  row([&](const Compared& compared) {
    QStringList lines;
    for (const GateInfo& gate : compared.card.gates)
      lines << "<tt>" + escaped(gate.name) + "</tt> " + QString("<span style='color:%1'>%2</span>").arg(muted, sizesOf(gate.shape));
    return lines.isEmpty() ? QObject::tr("none") : lines.join("<br/>");
  });
  section(QObject::tr("Exact forms"));
  row([&](const Compared& compared) {
    QStringList forms;
    for (const std::string& form : compared.card.forms) forms << escaped(form);
    return forms.join(", ");
  });
  section(QObject::tr("Parameters of the preset"));
  row([&](const Compared& compared) {
    QStringList lines;
    for (const ParameterInfo& parameter : compared.card.parameters)
      if (!parameter.name.starts_with("head/") && !parameter.name.starts_with("encoder"))
        lines << "<tt>" + escaped(parameter.name) + "</tt> " +
                     QString("<span style='color:%1'>%2</span>").arg(muted, sizesOf(parameter.shape));
    return lines.join("<br/>");
  });
  return out + "</table>";
}

QPixmap spectrumPicture(const Compared& compared, int side, double scale, const QPalette& palette) {
  QPixmap picture(QSize(side, side) * scale);
  picture.setDevicePixelRatio(scale);
  picture.fill(palette.color(QPalette::Base));
  QPainter painter(&picture);
  painter.setRenderHint(QPainter::Antialiasing);
  double reach = 1.0;
  for (const auto& value : compared.eigenvalues)
    if (std::isfinite(std::abs(value))) reach = std::max({reach, std::abs(value.real()), std::abs(value.imag())});
  const double unit = (side / 2.0 - 8.0) / reach;
  painter.translate(side / 2.0, side / 2.0);
  painter.setPen(QPen(palette.color(QPalette::Midlight), 1.0));
  painter.drawLine(QPointF(-side / 2.0, 0), QPointF(side / 2.0, 0));
  painter.drawLine(QPointF(0, -side / 2.0), QPointF(0, side / 2.0));
  painter.setPen(QPen(palette.color(QPalette::PlaceholderText), 1.0));
  painter.drawEllipse(QPointF(), unit, unit);
  QColor ink = palette.color(QPalette::Highlight);
  ink.setAlphaF(std::clamp(60.0F / std::sqrt(static_cast<float>(compared.eigenvalues.size()) + 1.0F), 0.15F, 0.9F));
  painter.setPen(Qt::NoPen);
  painter.setBrush(ink);
  for (const auto& value : compared.eigenvalues)
    if (std::isfinite(std::abs(value))) painter.drawEllipse(QPointF(value.real(), -value.imag()) * unit, 2.0, 2.0);
  return picture;
}

}  // namespace reclab
