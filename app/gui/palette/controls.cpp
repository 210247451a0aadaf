// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/palette/controls.h"

#include <QAbstractButton>
#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QPointer>
#include <QRegularExpression>
#include <QSet>
#include <QSpinBox>
#include <QStatusBar>
#include <QTabBar>
#include <QTextDocumentFragment>
#include <QToolBar>
#include <QToolButton>
#include <QWidgetAction>

#include "gui/docks/panel_area.h"
#include "gui/frame/window_frame.h"
#include "spoken.h"

namespace reclab {
namespace {

constexpr int fewChoices = 24;  ///< of a box: more are typed behind its name

/// A button's or an action's text without the marks of letters and keys.
QString plainOf(const QString& text) {
  static const QRegularExpression mark(QStringLiteral("&(.?)"));
  return text.section('\t', 0, 0).replace(mark, QStringLiteral("\\1"));
}

QString plainTip(const QString& tip) { return Qt::mightBeRichText(tip) ? QTextDocumentFragment::fromHtml(tip).toPlainText() : tip; }

/// A part of the window in which controls lie.
struct Part {
  QString name;
  QWidget* widget;
  std::function<void()> show;  ///< brings it to where it is seen
};

class Collector {
 public:
  explicit Collector(WindowFrame* frame) : frame_(frame) {}
  std::vector<PaletteEntry> all() {
    std::vector<Part> parts = panels();
    for (QAction* top : frame_->window()->menuBar()->actions())
      if (top->menu() != nullptr) addMenu(top->menu(), plainOf(top->text()), {});
    for (QAction* action : frame_->window()->actions()) add(action, QObject::tr("window"), {});
    for (auto* bar : frame_->window()->findChildren<QToolBar*>(Qt::FindDirectChildrenOnly))
      parts.push_back({QObject::tr("tool bar"), bar, {}});
    for (FlatDock* dock : frame_->docks()) parts.push_back({dock->windowTitle(), dock, {}});
    parts.push_back({QObject::tr("window"), frame_->window()->centralWidget(), {}});
    parts.push_back({QObject::tr("status"), frame_->window()->statusBar(), {}});
    for (const Part& part : parts) {
      for (auto* button : part.widget->findChildren<QAbstractButton*>()) addButton(button, part);
      if (qobject_cast<FlatDock*>(part.widget) != nullptr && !part.show) continue;  // its boxes are settings
      for (auto* box : part.widget->findChildren<QComboBox*>()) addBox(box, part);
      for (auto* box : part.widget->findChildren<QAbstractSpinBox*>()) addBox(box, part);
    }
    for (auto* menu : frame_->window()->findChildren<QMenu*>())  // of other widgets than buttons, such as a pinned run
      if (menu->parentWidget() != nullptr && qobject_cast<QMenu*>(menu->parentWidget()) == nullptr)
        addMenu(menu, spokenName(menu->parentWidget()), {});
    return std::move(entries_);
  }

 private:
  std::vector<Part> panels() {
    std::vector<Part> parts;
    for (PanelDock* dock : frame_->area()->docks()) {
      const auto show = [area = frame_->area(), dock] { area->open(dock); };
      entries_.push_back({.text = dock->info().title, .detail = QObject::tr("panel"), .synonyms = dock->info().hint, .does = show});
      dock->panel();  // its controls are found, too, whether or not it was in sight
      parts.push_back({dock->info().title, dock, show});
    }
    for (FlatDock* dock : frame_->docks())
      entries_.push_back({.text = dock->windowTitle(), .detail = QObject::tr("part of the window"), .does = [dock] {
                            dock->show();
                            dock->raise();
                          }});
    return parts;
  }

  void addMenu(QMenu* menu, const QString& path, const std::function<void()>& show) {
    if (menus_.contains(menu) || menu->property("repeats").toBool()) return;
    menus_.insert(menu);
    emit menu->aboutToShow();  // some are filled then
    for (QAction* action : menu->actions())
      if (action->menu() != nullptr)
        addMenu(action->menu(), path + QStringLiteral(" ▸ ") + plainOf(action->text()), show);
      else
        add(action, path, show);
  }

  void add(QAction* action, const QString& path, const std::function<void()>& show) {
    if (action->isSeparator() || action->menu() != nullptr || qobject_cast<QWidgetAction*>(action) != nullptr || seen_.contains(action))
      return;
    seen_.insert(action);
    const QString state = !action->isCheckable() ? QString() : action->isChecked() ? QObject::tr(": on") : QObject::tr(": off");
    PaletteEntry entry{.text = plainOf(action->text()),
                       .detail = path + state,
                       .synonyms = plainTip(action->toolTip()),
                       .keys = action->shortcut().toString(QKeySequence::NativeText),
                       .enabled = action->isEnabled(),
                       .whyNot = action->isEnabled() ? QString() : action->property("whyNot").toString(),
                       .show = show,
                       .does = [action = QPointer(action)] {
                         if (action) action->trigger();
                       }};
    if (!show) texts_.insert(entry.text);
    entries_.push_back(std::move(entry));
  }

  /// Whether it is of use at the moment, and a control of its own: none that Qt puts into another.
  static bool counts(const QAbstractButton* button, const Part& part) {
    const QWidget* in = button->parentWidget();
    return button->isVisibleTo(part.widget) && !button->objectName().startsWith("qt_") && qobject_cast<const QTabBar*>(in) == nullptr &&
           qobject_cast<const QLineEdit*>(in) == nullptr;
  }

  void addButton(QAbstractButton* button, const Part& part) {
    if (auto* tool = qobject_cast<QToolButton*>(button)) {
      if (tool->defaultAction() != nullptr && tool->defaultAction()->menu() == nullptr)
        return add(tool->defaultAction(), part.name, part.show);
      if (tool->menu() != nullptr) addMenu(tool->menu(), part.show ? part.name : menuOf(tool, part), part.show);
    }
    const QString name = spokenName(button);
    // A tick in the inspector is a setting, and the models in front are found as models.
    const bool found = button->property("preset").isValid() || (!part.show && texts_.contains(name)) ||
                       (qobject_cast<QCheckBox*>(button) != nullptr && !part.show);
    if (name.isEmpty() || found || !counts(button, part)) return;
    const QString state = button->isCheckable() ? button->isChecked() ? QObject::tr(": on") : QObject::tr(": off") : QString();
    entries_.push_back({.text = name,
                        .detail = part.name + state,
                        .synonyms = plainTip(button->toolTip()),
                        .enabled = button->isEnabled(),
                        .whyNot = button->isEnabled() ? QString() : button->property("whyNot").toString(),
                        .show = part.show,
                        .does = [button = QPointer(button)] {
                          if (!button) return;
                          const auto* tool = qobject_cast<QToolButton*>(button);
                          if (tool != nullptr && tool->menu() != nullptr)
                            tool->menu()->popup(button->mapToGlobal(button->rect().bottomLeft()));
                          else
                            button->click();
                        }});
  }

  static QString menuOf(QToolButton* button, const Part& part) {
    const QString name = spokenName(button);
    return name.isEmpty() ? part.name : part.name + QStringLiteral(" ▸ ") + name;
  }

  void addBox(QComboBox* box, const Part& part) {
    const QString name = spokenName(box);
    if (name.isEmpty() || box->count() == 0 || (part.show && !box->isVisibleTo(part.widget))) return;
    const auto choose = [box = QPointer(box)](const QString& text) {
      const int index = box ? box->findText(text, Qt::MatchFixedString) : -1;
      if (index < 0 || index == box->currentIndex()) return;
      box->setCurrentIndex(index);
      emit box->activated(index);
      emit box->textActivated(box->itemText(index));
    };
    const QString tip = plainTip(box->toolTip());
    if (box->count() > fewChoices) {
      PaletteEntry entry{
          .text = name, .detail = QObject::tr("%1: now %2").arg(part.name, box->currentText()), .synonyms = tip, .show = part.show};
      entry.values = {[box = QPointer(box)](const QString& value) {
                        return box && box->findText(value, Qt::MatchFixedString) >= 0 ? QString()
                                                                                      : QObject::tr("There is no %1.").arg(value);
                      },
                      choose};
      entries_.push_back(std::move(entry));
      return;
    }
    for (int i = 0; i < box->count(); ++i) {
      const QModelIndex item = box->model()->index(i, box->modelColumn(), box->rootModelIndex());
      const bool enabled = box->isEnabled() && (item.flags() & Qt::ItemIsEnabled);
      const QString itemTip = plainTip(box->itemData(i, Qt::ToolTipRole).toString());
      entries_.push_back({.text = name + ": " + box->itemText(i),
                          .detail = i == box->currentIndex() ? QObject::tr("%1: now").arg(part.name) : part.name,
                          .synonyms = tip + ' ' + itemTip,
                          .enabled = enabled,
                          .whyNot = enabled ? QString() : itemTip,
                          .show = part.show,
                          .does = [choose, text = box->itemText(i)] { choose(text); }});
    }
  }

  void addBox(QAbstractSpinBox* box, const Part& part) {
    const QString name = spokenName(box);
    if (name.isEmpty() || !box->isVisibleTo(part.widget)) return;
    const auto add = [&](auto* number) {
      PaletteEntry entry{
          .text = name,
          .detail = QObject::tr("%1: now %2, from %3 to %4").arg(part.name, number->text()).arg(number->minimum()).arg(number->maximum()),
          .synonyms = plainTip(number->toolTip()),
          .enabled = number->isEnabled(),
          .show = part.show};
      entry.values = {[number = QPointer(number)](const QString& value) {
                        bool good = false;
                        const double wanted = value.toDouble(&good);
                        return number && good && wanted >= number->minimum() && wanted <= number->maximum()
                                   ? QString()
                                   : QObject::tr("It takes a number from %1 to %2.").arg(number->minimum()).arg(number->maximum());
                      },
                      [number = QPointer(number)](const QString& value) {
                        if (number) number->setValue(static_cast<decltype(number->value())>(value.toDouble()));
                      }};
      entries_.push_back(std::move(entry));
    };
    if (auto* whole = qobject_cast<QSpinBox*>(box)) add(whole);
    if (auto* real = qobject_cast<QDoubleSpinBox*>(box)) add(real);
  }

  WindowFrame* frame_;
  std::vector<PaletteEntry> entries_;
  QSet<const QAction*> seen_;
  QSet<QString> texts_;  ///< of actions outside of the panels: a button of that name is the same
  QSet<const QMenu*> menus_;
};

}  // namespace

std::vector<PaletteEntry> controlEntries(WindowFrame* frame) { return Collector(frame).all(); }

}  // namespace reclab
