// SPDX-License-Identifier: GPL-3.0-or-later
// The model that is composed in words, as a figure and as a table.
#include "panels/composer/composer_words.h"

#include <QTextDocument>
#include <algorithm>
#include <cmath>

#include "panels/composer/composer_panel.h"
#include "plot/parts/table.h"
#include "window_text.h"

namespace reclab {
namespace {

QString html(const std::string& text) { return plain(text).toHtmlEscaped(); }

/// An equation that is not broken between lines.
QString whole(const std::string& equation) {
  QString text = plain(equation);
  text.replace(u' ', QChar::Nbsp).replace(QStringLiteral("/"), QStringLiteral("/\u2060"));
  return mathHtml(text.toStdString());
}

}  // namespace

QString composedVerdict(const Composition& c, const QColor& link) {
  const auto name_of = [&link](const Composition::Model& model) {
    const QString title = html(model.title);
    return model.preset.empty() || !link.isValid()
               ? title
               : QStringLiteral("<a style='color:%1' href='preset:%2'>%3</a>").arg(link.name(), html(model.preset), title);
  };
  QStringList others;
  for (const Composition::Model& one : c.nearest.also) others << name_of(one);
  const QString name = QStringLiteral("<b>%1</b>").arg(name_of(c.nearest.model)) +
                       (others.isEmpty() ? QString() : QStringLiteral(" (%1)").arg(others.join(QStringLiteral(", "))));
  return c.nearest.exact ? Panel::tr("is %1").arg(name) : Panel::tr("nearest to %1").arg(name);
}

QString composedWords(const Composition& c, const QPalette& palette, const Theme& theme, bool links) {
  const QString muted = theme.muted.name(), link = palette.color(QPalette::Link).name();
  // The two lines of the recurrence; the definitions of its parts follow on as few as fit.
  QStringList recurrence, parts, forms;
  for (const std::string& line : c.equations) (recurrence.size() < 2 ? recurrence : parts) << whole(line);
  QString out = QStringLiteral(
                    "<table width='100%' cellpadding='6' cellspacing='0'><tr><td bgcolor='%1' style='font-family:\"DejaVu Serif\",serif; "
                    "font-size:11pt'>%2</td></tr></table>")
                    .arg(mixed(theme.text, theme.base, 0.06).name(),
                         recurrence.join(QStringLiteral("<br/>")) + QStringLiteral("<br/>") + parts.join(QStringLiteral(", &nbsp; ")));
  const QString verdict =
      links ? QString() : Panel::tr("It %1. ").arg(c.nearest.exact ? composedVerdict(c) : Panel::tr("is ") + composedVerdict(c));
  out += QStringLiteral("<p style='margin-top:6px; margin-bottom:6px'>%1<span style='color:%2'>%3</span></p>")
             .arg(verdict, muted, mathHtml(c.nearest.differs));
  for (const Composition::Form& form : c.forms)
    forms << QStringLiteral(
                 "<tr><td style='padding-right:12px'>%1</td><td style='padding-right:12px'>%2</td><td style='color:%3'>%4</td></tr>")
                 .arg(html(form.name), mathHtml(form.cost), muted, mathHtml(form.depth));
  out += QStringLiteral(
             "<table cellspacing='0' cellpadding='1'><tr><td style='padding-right:12px; color:%1'>%2</td><td style='padding-right:12px; "
             "color:%1'>%3</td><td style='color:%1'>%4</td></tr>%5</table>")
             .arg(muted, Panel::tr("exact form"), Panel::tr("operations"), Panel::tr("one after another"), forms.join(QString()));
  if (!c.problem.empty())
    out += QStringLiteral("<p style='margin-top:6px; margin-bottom:0'>%1</p>").arg(windowText(c.problem).toHtmlEscaped());
  if (!c.command.empty())
    out += QStringLiteral("<p style='margin-top:6px; margin-bottom:0; color:%1'>%2 <tt>%3</tt>%4</p>")
               .arg(muted,
                    Panel::tr("The pictures are of a small run of it: %1, %2 tokens, a memory of %3 entries, seed %4.")
                        .arg(html(c.input))
                        .arg(c.steps)
                        .arg(c.entries)
                        .arg(c.seed),
                    html(c.command),
                    links ? QStringLiteral(" <a style='color:%1' href='copy'>%2</a>").arg(link, Panel::tr("Copy")) : QString());
  return out;
}

/// The model that runs may be the composed one.
QString ComposerPanel::fileModel(const QString& model) const { return shown() && settingsOfRun() == chosen() ? model : QString(); }

QString ComposerPanel::figureTitle() const { return shown() ? tr("%1: code %2").arg(title(), plain(shown()->code)) : title(); }

/// The pictures of the factors; the model in words and equations on request, or where there are no factors.
FigureDrawing ComposerPanel::drawing(const FigureStyle& style) {
  const Composition& c = *shown();
  FigureText text(figureTitle());
  QStringList settings;
  for (const auto& [key, value] : composition_->settings) settings << plain(key) + QStringLiteral(" = ") + plain(value);
  text.description = tr("%1 (%2); input %3, %4 steps; seed %5. Made by Recurrence Lab. The run again: %6")
                         .arg(plain(composition_->code), settings.join(QStringLiteral(", ")), plain(composition_->input))
                         .arg(composition_->steps)
                         .arg(composition_->seed)
                         .arg(plain(composition_->command));
  text.command = plain(composition_->command);
  const Theme theme = Theme::of(this);
  FigureStyle without = style;
  without.title = false;
  const bool pictures = c.problem.empty();
  const FigureDrawing factors =
      pictures ? factors_->drawing({}, without) : FigureDrawing{{}, {style.forPrint() ? style.pixels(logicalDpiX()) : 680, 0}, {}};
  auto words = std::make_shared<QTextDocument>();
  words->setDefaultFont(theme.normal);
  words->setDefaultStyleSheet(QStringLiteral("body { color: %1; }").arg(theme.text.name()));
  words->setTextWidth(factors.size.width() - 16);
  if (style.caption || !pictures) words->setHtml(QStringLiteral("<body>%1</body>").arg(composedWords(c, palette(), theme, false)));
  const int top = style.title ? QFontMetrics(theme.large, this).height() + 16 : 0;
  const int below = top + (words->isEmpty() ? 0 : static_cast<int>(std::ceil(words->size().height())) + 8);
  return {
      text, {factors.size.width(), below + factors.size.height()}, [this, theme, top, below, words, factors, style](QCPPainter* painter) {
        painter->setFont(theme.large);
        painter->setPen(theme.text);
        if (style.title) painter->drawText(QRect(8, 0, factors.size.width() - 16, top), Qt::AlignVCenter | Qt::AlignLeft, figureTitle());
        painter->save();
        painter->translate(8, top);
        if (!words->isEmpty()) words->drawContents(painter);
        painter->restore();
        if (!factors.draw) return;
        painter->save();
        painter->translate(0, below);
        factors.draw(painter);
        painter->restore();
      }};
}

/// A line a token: the share kept of it where the memory is read, and the factors of its step.
QString ComposerPanel::dataAsCsv() const {
  if (!shown()) return {};
  const Composition& c = *shown();
  QByteArray text = "code,read_at,token,kept_least,kept_10,kept_median,kept_90,kept_most";
  for (std::int64_t i = 0; i < c.entries; ++i)
    text += ",factor_" + QByteArray::number(static_cast<qlonglong>(i)) + ",factor_" + QByteArray::number(static_cast<qlonglong>(i)) +
            "_imaginary";
  text += '\n';
  for (std::int64_t token = 0; token < c.steps && !c.factors.empty(); ++token) {
    text += QByteArray::fromStdString(c.code) + ',' + QByteArray::number(factors_->token()) + ',' +
            QByteArray::number(static_cast<qlonglong>(token));
    if (token <= factors_->token()) {
      const FactorsView::Kept& kept = factors_->kept()[static_cast<std::size_t>(token)];
      for (const double value : {kept.least, kept.low, kept.median, kept.high, kept.most}) text += ',' + csvNumber(value);
    } else {
      text += ",,,,,";
    }
    const std::int64_t row = std::min(token, c.rows_of_factors - 1);
    for (std::int64_t i = 0; i < c.entries; ++i) {
      const auto& factor = c.factors[static_cast<std::size_t>(row * c.entries + i)];
      text += ',' + csvNumber(factor.real()) + ',' + csvNumber(factor.imag());
    }
    text += '\n';
  }
  return QString::fromUtf8(text);
}

}  // namespace reclab
