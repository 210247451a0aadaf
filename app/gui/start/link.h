// SPDX-License-Identifier: GPL-3.0-or-later
// A run as a link, "reclab:run?lstm&--task&adding": the words of the line that repeats it. A link comes from anybody, so it names no file.
#pragma once

#include <QString>
#include <QStringList>

#include "gui/session/setup.h"

namespace reclab {

bool isLink(const QString& text);
/// The link of the run of a setup. Throws Error where it has files or learned weights, which no link carries.
QString linkOf(const Setup& setup, const Library& library);
/// The arguments of recurrence-lab that a link stands for. Throws Error where it is none, or has an option that it may not have.
QStringList argumentsOf(const QString& link);

}  // namespace reclab
