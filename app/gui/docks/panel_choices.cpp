// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/docks/panel_choices.h"

#include <QAction>
#include <QComboBox>

namespace reclab {

QVariantMap choicesIn(const Panel& panel, bool inSight) {
  QVariantMap all = panel.choices();
  if (inSight)
    for (const QComboBox* box : panel.findChildren<QComboBox*>())
      if (const QString name = box->property("choice").toString(); !name.isEmpty() && box->currentIndex() > 0 && box->isVisibleTo(&panel))
        all["box/" + name] = box->currentText();
  for (const QAction* action : panel.actions())
    if (action->isCheckable() && action->isChecked()) all["action/" + action->text()] = true;
  return all;
}

void choose(Panel& panel, const QVariantMap& all) {
  const QVariantMap now = panel.choices();
  QVariantMap choices;
  for (auto one = all.begin(); one != all.end(); ++one)
    if (!one.key().contains('/')) choices[one.key()] = one.value();
  if (choices != now) panel.setChoices(choices);
  for (QComboBox* box : panel.findChildren<QComboBox*>()) {
    const QString name = box->property("choice").toString(), text = all.value("box/" + name).toString();
    const int wanted = text.isEmpty() ? 0 : box->findText(text);
    if (name.isEmpty() || wanted < 0 || wanted == box->currentIndex() || box->count() == 0 || !box->isVisibleTo(&panel)) continue;
    box->setCurrentIndex(wanted);
    emit box->activated(wanted);
  }
  for (QAction* action : panel.actions())
    if (action->isCheckable()) action->setChecked(all.contains("action/" + action->text()));
}

}  // namespace reclab
