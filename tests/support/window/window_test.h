// SPDX-License-Identifier: GPL-3.0-or-later
// The base of tests of the window: one window at a time, a folder of the test's own, and waits for runs.
#pragma once

#include <QCoreApplication>
#include <QDeadlineTimer>
#include <QFile>
#include <QJsonDocument>
#include <QJsonObject>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeWidget>
#include <cmath>
#include <functional>
#include <memory>

#include "gui/docks/panel_area.h"
#include "gui/literature/models_view.h"
#include "gui/window/last_session.h"
#include "gui/window/main_window.h"
#include "test_application.h"

namespace reclab::test {

constexpr int patience = 60'000;  // for a busy machine; nothing waits that long otherwise

inline QByteArray twoWaves(int rows, double quick = 0.9) {
  QByteArray text = "t,slow,fast\n";
  for (int i = 0; i < rows; ++i)
    text +=
        QByteArray::number(i * 0.5) + ',' + QByteArray::number(std::sin(i * 0.05)) + ',' + QByteArray::number(std::sin(i * quick)) + '\n';
  return text;
}

/// The next window is that of a first start.
inline void forgetAll() {
  QSettings().clear();
  QFile::remove(LastSession::file());
}

/// The state of the lab as the window that was closed last left it.
inline QJsonObject keptLab() {
  QFile file(LastSession::file());
  return file.open(QIODevice::ReadOnly) ? QJsonDocument::fromJson(file.readAll()).object() : QJsonObject();
}
inline void keepLab(const QJsonObject& lab) {
  QFile file(LastSession::file());
  if (!file.open(QIODevice::WriteOnly)) qFatal("%s cannot be written", qPrintable(file.fileName()));
  file.write(QJsonDocument(lab).toJson());
}

/// Turns of the event loop until `come`, looked at after each: QTest::qWait() sleeps for 10 ms between two, which a measurement would take
/// for the window's. The last turn is ended by an event, such as a timer of the test. False after `patience`.
inline bool turnUntil(const std::function<bool()>& come) {
  for (const QDeadlineTimer deadline(patience); !come() && !deadline.hasExpired();)
    QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
  return come();
}
inline bool turnFor(int ms) {
  return turnUntil([end = QDeadlineTimer(ms)] { return end.hasExpired(); });
}

class WindowTest : public QObject {
 protected:
  WindowTest() { look_.apply(ThemeChoice::light); }

  /// The window on a sequence or task of the test, at rest; `size`: its own, or that of a first start.
  void open(const Options& options, QSize size = {}) {
    Options its = options;
    if (its.layout.isEmpty() && !QFile::exists(LastSession::file())) its.layout = "Explore";  // a first start has hardly a panel
    window_ = std::make_unique<MainWindow>(&look_, its);
    window_->setFileChooser({});  // a question that a test does not answer is a mistake of the test
    if (size.isValid()) window_->resize(size);
    window_->show();
    QVERIFY(QTest::qWaitForWindowExposed(window_.get()));
    window_->activateWindow();
    QVERIFY(settle());
  }
  void close() {
    if (!window_) return;
    window_->close();
    window_.reset();
  }

  SessionController& session() const { return *window_->session(); }
  /// The panel of this class, made now where it was not in sight yet.
  template <class P>
  P* panelOf() const {
    return qobject_cast<P*>(window_->area()->dock(P::about().id)->panel());
  }
  /// Whether a run is at rest: nothing computing, the trace that of the setup.
  bool atRest() const {
    const TracePtr& trace = session().trace();
    return !session().running() && trace && trace->info.preset == session().setup().preset && trace->info.seed == session().setup().seed;
  }
  bool settle() const {
    return QTest::qWaitFor([this] { return atRest(); }, patience);
  }
  QString written(const QString& name, const QByteArray& text) const {
    QFile file(folder_.filePath(name));
    if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size()) qFatal("the test cannot write its own file");
    return file.fileName();
  }
  /// Kept as a picture where a person asks for it by a folder, RECLAB_PICTURES.
  static void photograph(QWidget* widget, const QString& name) {
    if (const QString folder = qEnvironmentVariable("RECLAB_PICTURES"); !folder.isEmpty())
      QVERIFY(widget->grab().save(folder + '/' + name + ".png"));
  }
  /// Two short waves, so that a test is about the window and not about the patience of a machine.
  Options onWaves(int rows = 120) const {
    Options options;
    options.given["--input"] = written("start.csv", twoWaves(rows)).toStdString();
    return options;
  }
  void clickModel(const QString& id) const {
    QTreeWidgetItem* item = window_->models()->itemOf(id);
    if (item == nullptr) qFatal("there is no model %s", qPrintable(id));
    QTreeWidget* tree = window_->models()->tree();
    tree->scrollToItem(item);
    QTest::mouseClick(tree->viewport(), Qt::LeftButton, {}, tree->visualItemRect(item).center());
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().preset == id.toStdString(), patience);
  }
  /// The value in the run's info; empty where the model has none of that key.
  static QString hyperOf(const TracePtr& trace, const std::string& key) {
    if (trace)
      for (const auto& [name, value] : trace->info.hyper)
        if (name == key) return QString::fromStdString(value);
    return {};
  }

  Look look_;
  QTemporaryDir folder_;
  std::unique_ptr<MainWindow> window_;
};

}  // namespace reclab::test
