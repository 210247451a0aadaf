// SPDX-License-Identifier: GPL-3.0-or-later
#include "plain_text.h"

#include <QTextDocument>
#include <QUuid>
#include <algorithm>

namespace reclab {
namespace {

/// The prefix of our own HTML: drawn anew at each start, so that no text from a file begins with it.
const QString& mark() {
  static const QString drawn = QStringLiteral("<qt id='%1'>").arg(QUuid::createUuid().toString(QUuid::Id128));
  return drawn;
}

}  // namespace

QLabel* plainLabel(const QString& text, QWidget* parent) {
  auto* made = new QLabel(parent);
  made->setTextFormat(Qt::PlainText);
  made->setText(text);
  return made;
}

QString buttonText(const QString& text) { return QString(text).replace(u'&', QStringLiteral("&&")).replace(u'\t', u' '); }

QString htmlTip(const QString& html) { return html.isEmpty() || html.startsWith(mark()) ? html : mark() + html + QStringLiteral("</qt>"); }

QString safeTip(const QString& tip) {
  return tip.startsWith(mark()) || !Qt::mightBeRichText(tip) ? tip : mark() + tipAsHtml(tip) + QStringLiteral("</qt>");
}

QString tipAsHtml(const QString& tip) {
  if (tip.startsWith(mark())) return tip.mid(mark().size()).chopped(5);
  return tip.toHtmlEscaped().replace(u'\n', QStringLiteral("<br>"));
}

QString joinedTips(const QStringList& tips) {
  QStringList all = tips;
  all.removeAll(QString());
  if (std::ranges::none_of(all, [](const QString& one) { return one.startsWith(mark()); })) return all.join(u'\n');
  for (QString& one : all) one = tipAsHtml(one);
  return htmlTip(all.join(QStringLiteral("<br>")));
}

}  // namespace reclab
