// SPDX-License-Identifier: GPL-3.0-or-later
// Names, roles and values for screen readers, of every control that takes the keyboard.
#include <QAccessible>
#include <QApplication>
#include <QComboBox>
#include <QDockWidget>
#include <QTest>
#include <QTextDocumentFragment>

#include "gui/docks/panel_area.h"
#include "gui/learning/training_bar.h"
#include "gui/palette/palette.h"
#include "gui/palette/palette_feature.h"
#include "gui/session/pins.h"
#include "gui/views/inspector_view.h"
#include "gui/views/scrubber.h"
#include "gui/window/main_window.h"
#include "spoken.h"
#include "window_test.h"

using namespace reclab;
using test::patience;

namespace {

QString where(const QObject* object) {
  QStringList names;
  for (; object != nullptr && names.size() < 5; object = object->parent())
    names.prepend(object->objectName().isEmpty() ? object->metaObject()->className() : object->objectName());
  return names.join('/');
}

/// Calls `visit` for all that is seen below.
void walk(QAccessibleInterface* node, const std::function<void(QAccessibleInterface*)>& visit) {
  for (int i = 0; i < node->childCount(); ++i) {
    QAccessibleInterface* child = node->child(i);
    if (child == nullptr || !child->isValid() || child->state().invisible) continue;
    visit(child);
    walk(child, visit);
  }
}

bool hasValue(QAccessible::Role role) {
  return role == QAccessible::Slider || role == QAccessible::SpinBox || role == QAccessible::ComboBox;
}

}  // namespace

class TestAccess : public test::WindowTest {
  Q_OBJECT
  QSet<const QObject*> seen_;
  int controls_ = 0;

  QStringList faults(QWidget* top) {
    QStringList all;
    walk(QAccessible::queryAccessibleInterface(top), [&](QAccessibleInterface* one) {
      const QObject* object = one->object();
      if (!one->state().focusable || (object != nullptr && seen_.contains(object))) return;
      seen_ << object;
      ++controls_;
      // The name of a box to choose from is its choice on this platform, and its label stands beside it.
      const auto* box = qobject_cast<const QComboBox*>(object);
      const QString name = box == nullptr ? one->text(QAccessible::Name) : spokenName(box);
      const QString place = object != nullptr ? where(object) : where(one->parent()->object());
      if (name.trimmed().isEmpty()) all << place + " has no name";
      if (name.contains('<')) all << place + " has markup in its name: " + name;
      if (one->role() == QAccessible::NoRole || one->role() == QAccessible::Client) all << place + " says not what it is";
      if (hasValue(one->role()) && !one->state().disabled && one->text(QAccessible::Value).isEmpty()) all << place + " says no value";
    });
    // A widget that takes the keyboard by Tab and is in no such tree would be found by nobody.
    for (QWidget* one : top->findChildren<QWidget*>()) {
      if (!one->isVisible() || !(one->focusPolicy() & Qt::TabFocus) || one->focusProxy() != nullptr || seen_.contains(one)) continue;
      seen_ << one;
      QAccessibleInterface* access = QAccessible::queryAccessibleInterface(one);
      if (access == nullptr || access->text(QAccessible::Name).trimmed().isEmpty()) all << where(one) + " has no name";
    }
    return all;
  }

 private slots:
  void everyControlHasANameARoleAndAValue() {
    test::forgetAll();
    Options options = onWaves();
    options.model = "lstm";
    open(options, {1600, 1000});
    QStringList all = faults(window_.get());
    for (PanelDock* dock : window_->area()->docks()) {
      window_->area()->open(dock);
      QTest::qWait(50);
      all << faults(window_.get());
    }
    for (auto* dock : window_->findChildren<QDockWidget*>(Qt::FindDirectChildrenOnly)) {
      dock->raise();
      QTest::qWait(20);
      all << faults(window_.get());
    }
    window_->action("pin")->trigger();
    window_->action("train")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(window_->trainingBar()->isVisible() && !window_->pins()->pins().empty(), patience);
    session().pauseTraining();
    QTRY_VERIFY_WITH_TIMEOUT(!session().training(), patience);
    all << faults(window_.get());
    SequenceChoice task;
    task.task = "copy";
    session().loadSequence(task);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().sequence->choice.task == "copy", patience);
    all << faults(window_.get());
    window_->action("sideBySide")->trigger();
    all << faults(window_.get());
    window_->action("palette")->trigger();
    all << faults(window_.get());
    all.removeDuplicates();
    for (const QString& one : all) qWarning("%s", qPrintable(one));
    QVERIFY(all.isEmpty());
    QVERIFY2(controls_ > 200, qPrintable(QString::number(controls_)));
  }

  void aSliderSaysItsValueAndNotItsPlace() {
    QSlider* slider = window_->inspector()->slider("width");
    QVERIFY(slider != nullptr);
    QAccessibleInterface* access = QAccessible::queryAccessibleInterface(slider);
    QCOMPARE(access->text(QAccessible::Value), QString::fromStdString(session().model()->hyper.text("width")));
    QVERIFY(access->text(QAccessible::Name).contains("Width"));
  }

  void aSymbolSaysWhatItIs() {
    int symbols = 0;
    for (const HyperSpec& spec : session().model()->hyper.table()) {
      const QSlider* slider = window_->inspector()->slider(QString::fromStdString(spec.key));
      if (slider == nullptr || spec.symbol.empty()) continue;
      ++symbols;
      const QString tip = QTextDocumentFragment::fromHtml(slider->parentWidget()->toolTip()).toPlainText();
      QVERIFY2(tip.contains(QString::fromStdString(spec.text)) && tip.contains("Symbol "), qPrintable(tip));
    }
    QVERIFY(symbols > 1);
  }

  void thePaletteSaysItsRow() {
    QAccessibleInterface* access = QAccessible::queryAccessibleInterface(window_->commandPalette()->palette()->line());
    window_->commandPalette()->palette()->line()->setText("mamba");
    QVERIFY2(access->text(QAccessible::Description).startsWith("Mamba, model"), qPrintable(access->text(QAccessible::Description)));
    close();
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestAccess>(argc, argv, "access-test"); }

#include "test_access.moc"
