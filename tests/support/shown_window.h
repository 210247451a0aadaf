// SPDX-License-Identifier: GPL-3.0-or-later
// A window on a short sequence, and how a test waits for it.
#pragma once

#include <QApplication>
#include <QFile>
#include <QFrame>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeWidget>
#include <cmath>
#include <memory>

#include "gui/main_window.h"
#include "gui/models_view.h"
#include "test_application.h"

namespace reclab::test {

constexpr int patience = 60'000;  // for a busy machine; nothing waits that long otherwise

inline QByteArray twoWaves(int rows, double quick = 0.9) {
  QByteArray text = "t,slow,fast\n";
  for (int i = 0; i < rows; ++i)
    text += QByteArray::number(i * 0.5) + ',' + QByteArray::number(std::sin(i * 0.05)) + ',' + QByteArray::number(std::sin(i * quick)) + '\n';
  return text;
}

class ShownWindow {
 public:
  explicit ShownWindow(Options options = {}) {
    if (options.input.isEmpty() && options.task.isEmpty()) options.input = written("start.csv", twoWaves(120));
    window_ = std::make_unique<MainWindow>(&look(), options);
    window_->setFileChooser({});  // a question that a test does not answer is a mistake of the test
    window_->show();
    static_cast<void>(QTest::qWaitForWindowExposed(window_.get()));
    window_->activateWindow();
    settle();
  }
  MainWindow* operator->() const { return window_.get(); }
  MainWindow* get() const { return window_.get(); }
  /// One for all windows, for the style sheet has files of it.
  static Look& look() {
    static auto* one = new Look(qApp);
    return *one;
  }
  SessionController& session() const { return *window_->session(); }
  QString written(const QString& name, const QByteArray& text) const {
    QFile file(folder_.filePath(name));
    if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size()) qFatal("the test cannot write its own file");
    return file.fileName();
  }
  /// A run at rest: nothing computing, the trace that of what is set.
  bool atRest() const {
    const TracePtr& trace = session().trace();
    return !session().running() && trace && trace->info.preset == session().setup().preset && trace->info.seed == session().setup().seed;
  }
  bool settle() const { return QTest::qWaitFor([this] { return atRest(); }, patience); }
  void clickModel(const QString& id) const {
    QTreeWidgetItem* item = window_->models()->itemOf(id);
    if (item == nullptr) qFatal("there is no model %s", qPrintable(id));
    QTreeWidget* tree = window_->models()->tree();
    tree->scrollToItem(item);
    QTest::mouseClick(tree->viewport(), Qt::LeftButton, {}, tree->visualItemRect(item).center());
    static_cast<void>(QTest::qWaitFor([&] { return session().setup().preset == id.toStdString(); }, patience));
    settle();
  }

 private:
  QTemporaryDir folder_;
  std::unique_ptr<MainWindow> window_;
};

}  // namespace reclab::test
