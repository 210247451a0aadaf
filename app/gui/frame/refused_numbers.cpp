// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/frame/refused_numbers.h"

#include <QApplication>
#include <QDoubleSpinBox>
#include <QDoubleValidator>
#include <QKeyEvent>
#include <QLineEdit>
#include <QLocale>
#include <QSpinBox>
#include <optional>

#include "gui/frame/window_frame.h"
#include "spoken.h"

namespace reclab {
namespace {

/// What is in an editor of a number, without the unit behind it, and what may be.
struct Typed {
  QString text, low, high;
  QString stays{};  ///< the value that the editor goes back to; empty: none yet
  QString takes{};  ///< of what is no one number: what the editor takes, in words
};

QString bare(const QAbstractSpinBox* box, const QString& prefix, const QString& suffix) {
  QString text = box->text();
  if (text.startsWith(prefix)) text.remove(0, prefix.size());
  if (!suffix.isEmpty() && text.endsWith(suffix)) text.chop(suffix.size());
  return text.trimmed();
}

QString exactText(double value) {
  return QLocale::c().toString(value, 'g', QLocale::FloatingPointShortest).remove(QLocale::c().groupSeparator());
}

std::optional<Typed> refusedIn(const QWidget* editor) {
  if (const auto* box = qobject_cast<const QAbstractSpinBox*>(editor); box != nullptr && box->hasAcceptableInput()) return {};
  if (const auto* box = qobject_cast<const QSpinBox*>(editor))
    return Typed{bare(box, box->prefix(), box->suffix()), QString::number(box->minimum()), QString::number(box->maximum()),
                 QString::number(box->value())};
  if (const auto* box = qobject_cast<const QDoubleSpinBox*>(editor))
    return Typed{bare(box, box->prefix(), box->suffix()), exactText(box->minimum()), exactText(box->maximum()), exactText(box->value())};
  const auto* line = qobject_cast<const QLineEdit*>(editor);
  if (line != nullptr && !line->hasAcceptableInput() && line->property("takes").isValid())
    return Typed{line->text().trimmed(), {}, {}, line->property("stays").toString(), line->property("takes").toString()};
  const auto* range = line == nullptr ? nullptr : qobject_cast<const QDoubleValidator*>(line->validator());
  if (range == nullptr || line->hasAcceptableInput()) return {};
  return Typed{line->text().trimmed(), exactText(range->bottom()), exactText(range->top()), line->property("stays").toString()};
}

}  // namespace

RefusedNumbers::RefusedNumbers(WindowFrame* frame) : QObject(frame), frame_(frame) { qApp->installEventFilter(this); }

/// Before the editor has the event, and puts another text there.
bool RefusedNumbers::eventFilter(QObject* watched, QEvent* event) {
  const auto* editor = qobject_cast<const QWidget*>(watched);
  if (editor == nullptr || (event->type() != QEvent::FocusOut && event->type() != QEvent::KeyPress)) return false;
  if (event->type() == QEvent::KeyPress) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key != Qt::Key_Return && key != Qt::Key_Enter) return false;
  }
  const std::optional<Typed> typed = refusedIn(editor);
  if (!typed || typed->text.isEmpty()) return false;
  QString name = spokenName(editor);
  if (name.isEmpty()) name = tr("this field");
  const QString stays = typed->stays.isEmpty() ? QString() : tr("; it is still %1").arg(typed->stays);
  if (!typed->takes.isEmpty())
    frame_->say(tr("%1 was not taken: %2 %3%4.").arg(typed->text, name, typed->takes, stays), Tone::warning);
  else
    frame_->say(tr("%1 was not taken: %2 goes from %3 to %4%5.").arg(typed->text, name, typed->low, typed->high, stays), Tone::warning);
  return false;
}

}  // namespace reclab
