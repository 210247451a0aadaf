// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/sentences.h"

#include <QObject>
#include <new>

#include "window_text.h"

namespace reclab {
QString sentenceOf(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return windowText(error);
  } catch (const std::bad_alloc&) {
    return QObject::tr("There is not enough memory for this; take a shorter sequence or a narrower model.");
  } catch (const std::exception& error) {
    return QObject::tr("Something went wrong inside the program: %1.").arg(QString::fromUtf8(error.what()));
  }
}

QString inWords(const std::string& name) {
  QString words = QString::fromStdString(name).replace('_', ' ').replace('-', ' ');
  if (!words.isEmpty()) words[0] = words[0].toUpper();
  return words;
}

namespace {
QString belowASecond(double seconds) {
  if (seconds < 0.001) return QObject::tr("%1 µs").arg(seconds * 1e6, 0, 'f', 0);
  return QObject::tr("%1 ms").arg(seconds * 1e3, 0, 'f', seconds < 0.01 ? 1 : 0);
}
}  // namespace

QString secondsInWords(double seconds) {
  if (seconds < 1.0) return belowASecond(seconds);
  return seconds < 120.0 ? QObject::tr("%1 s").arg(seconds, 0, 'f', seconds < 10.0 ? 2 : 1)
                         : QObject::tr("%1 min").arg(seconds / 60.0, 0, 'f', 1);
}

QString roughSecondsInWords(double seconds) { return seconds < 1.0 ? belowASecond(seconds) : QObject::tr("%1 s").arg(seconds, 0, 'f', 1); }

}  // namespace reclab
