// SPDX-License-Identifier: GPL-3.0-or-later
// Tests of the state of the lab: changes at random, as by a hand, and the differences of two states in words.
#pragma once

#include <QApplication>
#include <QComboBox>
#include <QJsonArray>
#include <QJsonDocument>
#include <array>
#include <random>

#include "gui/docks/panel_area.h"
#include "gui/frame/lab.h"
#include "gui/session/pins.h"
#include "training_test.h"

namespace reclab::test {

class LabTest : public TrainingTest {
 protected:
  /// In words, what two states differ in first.
  static QString difference(const LabState& a, const LabState& b) {
    if (a.setup != b.setup) return a.setup.sameRun(b.setup) ? "setup of other models" : "setup";
    if (a.follows != b.follows) return "follows";
    if (a.pins != b.pins) return QString("pins: %1 and %2").arg(a.pins.size()).arg(b.pins.size());
    for (auto one = a.panels.begin(); one != a.panels.end(); ++one)
      if (b.panels.value(one.key()) != one.value())
        for (auto key = one->begin(); key != one->end(); ++key)
          if (b.panels[one.key()].value(key.key()) != key.value())
            return one.key() + ", " + key.key() + ": " + key->toString() + " and " + b.panels[one.key()].value(key.key()).toString();
    for (auto one = a.parts.begin(); one != a.parts.end(); ++one)
      if (b.parts.value(one.key()) != one.value()) return one.key();
    if (!(a.arranged == b.arranged)) return "arrangement:\n" + a.arranged.shape + '\n' + b.arranged.shape;
    return QString();  // undo leaves the time where it is
  }
  /// As it is written, but for the places of docks, whose bytes differ by a pixel after each restoring while their shape is the same.
  QJsonObject written() const {
    QJsonObject lab = window_->lab()->written(), arranged = lab["arranged"].toObject();
    for (const char* key : {"window", "docks", "panels"}) arranged.remove(QLatin1String(key));
    lab["arranged"] = arranged;
    return lab;
  }
  static QString firstDifference(const QJsonValue& a, const QJsonValue& b, const QString& at = {}) {
    if (a == b) return {};
    if (!a.isObject() || !b.isObject())
      return at + ": " + QJsonDocument(QJsonArray{a}).toJson(QJsonDocument::Compact) + " and " +
             QJsonDocument(QJsonArray{b}).toJson(QJsonDocument::Compact);
    for (const QString& key : a.toObject().keys() + b.toObject().keys())
      if (const QString found = firstDifference(a.toObject()[key], b.toObject()[key], at + '/' + key); !found.isEmpty()) return found;
    return at;
  }
  void again() {
    close();
    window_ = std::make_unique<MainWindow>(&look_, Options{});
    window_->setFileChooser({});
    window_->show();
    QVERIFY(QTest::qWaitForWindowExposed(window_.get()));
    window_->activateWindow();
    QTRY_VERIFY_WITH_TIMEOUT(session().library() && session().setup().sequence, patience);
    rest();
  }
  /// Nothing runs, whether what is set can be run or not.
  void rest() {
    QTRY_VERIFY_WITH_TIMEOUT(!session().running() && !window_->pins()->running(), patience);
    QApplication::processEvents();
  }
  /// The index of a box by its keys, as a hand changes it.
  static void step(QComboBox* box, bool down) {
    box->setFocus();
    QTest::keyClick(box, down ? Qt::Key_Down : Qt::Key_Up);
    QApplication::processEvents();
  }
  QComboBox* layouts() const {
    for (QComboBox* box : window_->findChildren<QComboBox*>())
      if (box->findText("Explore") >= 0) return box;
    return nullptr;
  }
  std::vector<QComboBox*> boxesInSight() const {
    std::vector<QComboBox*> boxes;
    for (PanelDock* dock : window_->area()->docks())
      if (dock->inSight())
        for (QComboBox* box : dock->panel()->findChildren<QComboBox*>())
          if (box->isVisible() && box->isEnabled() && box->count() > 1) boxes.push_back(box);
    return boxes;
  }
  void changeAtRandom(std::mt19937& random, QStringList& done) {
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    Setup after = session().setup();
    const int kind = static_cast<int>(below(11));
    switch (kind) {
      case 0:
        after.seed = 1 + below(4);
        window_->lab()->change("seed", [&] { session().apply(after, false); });
        break;
      case 1:
        after.setValue("width", std::to_string(3 + below(3)));
        window_->lab()->change("width", [&] { session().apply(after, false); }, 1 + static_cast<int>(below(3)));
        break;
      case 2: {
        static constexpr std::array models{"gru", "elman", "lstm", "jordan"};
        after.preset = models[below(models.size())];
        after.form = "auto";
        window_->lab()->change("model", [&] { session().apply(session().asLearned(after), false); });
        break;
      }
      case 3: window_->action("pin")->trigger(); break;
      case 4:
        if (!window_->pins()->pins().empty())
          window_->lab()->change("unpin", [&] { window_->pins()->remove(below(window_->pins()->pins().size())); });
        break;
      case 5:
        if (!window_->pins()->pins().empty())
          window_->lab()->change("name",
                                 [&] { window_->pins()->rename(below(window_->pins()->pins().size()), QString::number(random() % 9)); });
        break;
      case 6:
        if (const auto boxes = boxesInSight(); !boxes.empty()) step(boxes[below(boxes.size())], below(2) == 0);
        break;
      case 7: step(layouts(), below(2) == 0); break;
      case 8: window_->action("sideBySide")->trigger(); break;
      case 9: {
        TimeLink* time = window_->time();
        const auto at = static_cast<std::int64_t>(below(static_cast<std::size_t>(time->length())));
        time->setStep(at);
        time->setRange(at, time->length() - 1);
        break;
      }
      default:
        if (const auto learning = session().learning(); learning && learning->current != 0)
          window_->lab()->change("checkpoint",
                                 [&] { session().lookAtStep(learning->current, static_cast<std::int64_t>(below(30)), false); });
    }
    done << QString::number(kind);
  }
};

}  // namespace reclab::test
