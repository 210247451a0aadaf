// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/frame/palette_source.h"

#include <QMap>
#include <QObject>

#include "array/error.h"
#include "window_text.h"

namespace reclab {
namespace {

QString rangeOf(const PaletteSetting& setting) {
  QString text = QObject::tr("%1: now %2").arg(setting.of, setting.now.isEmpty() ? QObject::tr("none") : setting.now);
  if (setting.row.high > setting.row.low) text += QObject::tr(", from %1 to %2").arg(setting.row.low).arg(setting.row.high);
  return text;
}

/// "Δ_min delta min": a symbol, and how its Greek letters are typed.
QString spelled(const QString& symbol) {
  static const QMap<QChar, QString> greek{{u'α', "alpha"}, {u'β', "beta"},  {u'γ', "gamma"},  {u'δ', "delta"}, {u'ε', "epsilon"},
                                          {u'η', "eta"},   {u'θ', "theta"}, {u'λ', "lambda"}, {u'μ', "mu"},    {u'ν', "nu"},
                                          {u'ρ', "rho"},   {u'σ', "sigma"}, {u'τ', "tau"},    {u'ω', "omega"}};
  QString typed;
  for (const QChar letter : symbol) typed += greek.value(letter.toLower(), letter);
  return symbol + ' ' + typed;
}

}  // namespace

std::vector<PaletteEntry> entriesOf(const PaletteSetting& setting) {
  PaletteEntry entry;
  entry.synonyms = QStringList{setting.synonyms, QString::fromStdString(setting.row.key),
                               spelled(QString::fromStdString(setting.row.symbol)), QString::fromStdString(setting.row.text)}
                       .join(' ');
  entry.enabled = setting.whyNot.isEmpty();
  entry.whyNot = setting.whyNot;
  std::vector<PaletteEntry> all;
  const auto add = [&](const QString& text, const QString& detail, const QString& value) {
    entry.text = text;
    entry.detail = detail;
    entry.does = [set = setting.set, value] { set(value); };
    all.push_back(entry);
  };
  if (setting.row.kind == HyperKind::flag) {
    const bool on = setting.now == u"true";
    add(setting.name, QObject::tr("%1: now %2").arg(setting.of, on ? QObject::tr("on") : QObject::tr("off")), on ? "false" : "true");
  } else if (!setting.row.choices.empty()) {
    for (std::size_t i = 0; i < setting.row.choices.size(); ++i) {
      const QString choice = QString::fromStdString(setting.row.choices[i]), label = setting.labels.value(static_cast<int>(i), choice);
      add(setting.name + ": " + label, choice == setting.now ? QObject::tr("%1: now").arg(setting.of) : setting.of, choice);
    }
  } else {
    entry.text = setting.name;
    entry.detail = rangeOf(setting);
    entry.values = {[check = setting.check](const QString& value) {
                      try {
                        check(value);
                        return QString();
                      } catch (const Error& error) {
                        return windowText(error);
                      }
                    },
                    setting.set};
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace reclab
