// SPDX-License-Identifier: GPL-3.0-or-later
#include "window_text.h"

#include <QObject>
#include <map>

namespace reclab {
namespace {

using Names = std::map<std::string, QString>;

/// The names of the controls on the screen. One that is not here is reclab's alone.
const Names& controls() {
  static const Names all{{"columns", QObject::tr("Columns")},
                         {"time", QObject::tr("Time")},
                         {"target", QObject::tr("Target")},
                         {"missing", QObject::tr("Missing")},
                         {"task", QObject::tr("Task")},
                         {"length", QObject::tr("Length")},
                         {"standardise", QObject::tr("Standardise")},
                         {"dtype", QObject::tr("Precision")},
                         {"device", QObject::tr("Device")},
                         {"form", QObject::tr("Form")},
                         {"seed", QObject::tr("Seed")}};
  return all;
}

const Names& values() {
  static const Names all{{"f64", "float64"}, {"f32", "float32"}, {"cpu", QObject::tr("CPU")}, {"cuda", "CUDA"}};
  return all;
}

/// Remedies in words of the window's own, by control and value: their remedy is a click, or a field of another name.
const Names& phrases() {
  static const Names all{{"missing", QObject::tr("choose what becomes of missing cells")},
                         {"missing leave-out", QObject::tr("leave such rows out")},
                         {"standardise no", QObject::tr("take them as they are")},
                         {"loss task", QObject::tr("choose the loss of the target")},
                         {"lr", QObject::tr("choose a smaller learning rate")},
                         {"clip 1", QObject::tr("clip the gradient's norm")}};
  return all;
}

std::optional<std::string> wordsOf(const Remedy& remedy) {
  const auto& [name, value] = remedy.control;
  if (name.empty()) return remedy.before + remedy.after;
  if (const auto phrase = phrases().find(value.empty() ? name : name + ' ' + value); phrase != phrases().end())
    return phrase->second.toStdString();
  const auto control = controls().find(name), shown = values().find(value);
  if (control == controls().end()) return std::nullopt;
  const QString chosen = shown == values().end() ? QString::fromStdString(value) : shown->second;
  return remedy.before + (value.empty() ? control->second : QObject::tr("%1 under %2").arg(chosen, control->second)).toStdString() +
         remedy.after;
}

}  // namespace

QString windowText(const Sentence& sentence) { return QString::fromStdString(sentence.text(wordsOf)); }
QString windowText(const Error& error) { return QString::fromStdString(visible(error.sentence().text(wordsOf))); }

}  // namespace reclab
