// SPDX-License-Identifier: GPL-3.0-or-later
// Texts from others, names of columns, files, presets and runs, are shown as they are. Qt takes a text for HTML when it looks like some,
// and then opens the files that it names; so a label says its format, and a tooltip goes through here.
#pragma once

#include <QLabel>
#include <QString>
#include <QStringList>

namespace reclab {

/// A label that shows its text as it is. One of HTML that this program has put together says so with setTextFormat.
QLabel* plainLabel(const QString& text = {}, QWidget* parent = nullptr);

/// A text from others for a button or an entry of a menu, where Qt takes & for the mark of a letter and a tab for the end of the text.
QString buttonText(const QString& text);

/// HTML that this program has put together, in which all that is not its own is escaped, as a tooltip.
QString htmlTip(const QString& html);
/// The text that Qt is given for a tooltip: `tip` as it is, unless htmlTip() made it.
QString safeTip(const QString& tip);
/// Tooltips under each other, HTML or plain; empty ones are left out.
QString joinedTips(const QStringList& tips);
/// A tooltip as HTML to stand in another.
QString tipAsHtml(const QString& tip);

}  // namespace reclab
