// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/lessons/lesson_text.h"

#include <QLabel>

#include "gui/look/look.h"
#include "plain_text.h"
#include "plot/theme.h"

namespace reclab {

namespace {

/// A hyphen in a formula is a minus. A short one is not broken over two lines, a longer one behind a sign of relation alone.
QString formulaHtml(const std::string& text) {
  constexpr qsizetype inOneLine = 20;
  QString words = QString::fromStdString(text).replace('-', QChar(0x2212));
  const bool isShort = words.size() <= inOneLine;
  words.replace(' ', QChar::Nbsp).replace('/', QStringLiteral("/\u2060")).replace('|', QStringLiteral("\u2060|\u2060"));
  if (!isShort)
    for (const QChar relation : QStringLiteral("=≈≤≥<>←→"))
      words.replace(QString(QChar::Nbsp) + relation + QChar::Nbsp, QString(QChar::Nbsp) + relation + ' ');
  return mathHtml(words.toStdString());
}

}  // namespace

QString htmlOf(const Prose& words, const QPalette& palette) {
  const QString link = palette.color(QPalette::Link).name();
  QString html;
  for (const ProseSpan& span : words) {
    const QString text = QString::fromStdString(span.text).toHtmlEscaped();
    switch (span.kind) {
      case ProseSpan::Kind::text: html += text; break;
      case ProseSpan::Kind::emphasis: html += "<i>" + text + "</i>"; break;
      case ProseSpan::Kind::strong: html += "<b>" + text + "</b>"; break;
      case ProseSpan::Kind::code: html += "<tt>" + text + "</tt>"; break;
      case ProseSpan::Kind::formula:
        html += "<span style='font-family:\"DejaVu Serif\",serif'>" + formulaHtml(span.text) + "</span>";
        break;
      case ProseSpan::Kind::number: html += "<b>" + mathHtml(span.text) + "</b>"; break;
      case ProseSpan::Kind::link:
        html += QString("<a style='color:%1' href='%2'>%3</a>").arg(link, QString::fromStdString(span.target).toHtmlEscaped(), text);
        break;
    }
  }
  return html;
}

QFont lessonFont(double scale, QFont::Weight weight) {
  QFont font = uiFont();
  font.setWeight(weight);
  font.setPointSizeF(10.5 * scale);
  return font;
}

QLabel* proseLabel(QWidget* parent, double scale) {
  QLabel* made = plainLabel({}, parent);
  made->setTextFormat(Qt::RichText);  // of htmlOf() alone
  made->setWordWrap(true);
  made->setFont(lessonFont(scale));
  made->setTextInteractionFlags(Qt::TextBrowserInteraction);
  made->setFocusPolicy(Qt::ClickFocus);
  QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Preferred);  // the height is that of its width alone
  policy.setHeightForWidth(true);
  made->setSizePolicy(policy);
  return made;
}

}  // namespace reclab
