// SPDX-License-Identifier: GPL-3.0-or-later
// What tests of streams in the window share: a window with the dock Stream, and the same stream without one.
#pragma once

#include <QComboBox>
#include <QDir>
#include <QFileInfo>
#include <QPushButton>
#include <QTableWidget>

#include "gui/session/kept/stream_files.h"
#include "gui/streams/stream_feature.h"
#include "gui/streams/stream_settings.h"
#include "gui/streams/stream_view.h"
#include "models/registry.h"
#include "window_test.h"

namespace reclab::test {

class StreamTest : public WindowTest {
 protected:
  StreamView* view() { return window_->streamView(); }
  void open(const QString& model = "elman") {
    Options options;
    options.model = model;
    options.given["--task"] = "adding";
    options.given["--length"] = "20";
    options.given["--set"] = "width=8";
    WindowTest::open(options);
    window_->action("stream")->trigger();
    QTRY_VERIFY(view()->isVisible());
  }
  void click(QPushButton* button) {
    QVERIFY2(button->isVisible() && button->isEnabled(), qPrintable(button->objectName()));
    QTest::mouseClick(button, Qt::LeftButton);
  }
  void choose(const QString& source) {
    auto* box = view()->findChild<QComboBox*>("stream.source");
    const int index = box->findData(source);
    QVERIFY2(index >= 0, qPrintable(source));
    box->setCurrentIndex(index);
    emit box->activated(index);
  }
  template <class Box, class Value>
  void set(const char* name, Value value) {
    auto* box = view()->findChild<Box*>(name);
    QVERIFY2(box != nullptr, name);
    box->setValue(value);
  }
  std::int64_t steps() { return session().streaming().numbers.steps; }
  void goTo(std::int64_t least) {
    QTRY_VERIFY_WITH_TIMEOUT(session().streams() && steps() >= least && session().trace()->info.learned, patience);
  }
  /// The stream stands, and the run in full of its last steps is there.
  bool stands() const { return !session().streams() && atRest() && session().shownSetup().sameRun(session().setup()); }
  void pause() {
    click(view()->pauseButton());
    QTRY_VERIFY_WITH_TIMEOUT(stands(), patience);
  }
  void start(std::int64_t least = 100) {
    click(view()->startButton());
    QTRY_VERIFY_WITH_TIMEOUT(session().streams(), patience);
    goTo(least);
  }
  QString cell(int row, int column) { return view()->table()->item(row, column)->text(); }
  const Sequence& ring() { return session().setup().sequence->sequence; }
  /// The same stream without a window, as far as that of the window.
  std::unique_ptr<StreamRun> again() {
    const StreamFiles kept = streamFilesIn(session().streaming().folder, *session().library());
    auto run = std::make_unique<StreamRun>(builtin_registry(), kept.request);
    while (run->steps() < steps() && !run->done()) run->advance();
    return run;
  }
  void hasWeightsOf(const StreamRun& run) {
    const Parameters weights = run.weights(run.best());
    for (const auto& entry : weights.entries()) {
      const TraceArray* array = session().trace()->find("param/" + entry.name);
      QVERIFY2(array != nullptr && *array->real == entry.values, entry.name.c_str());
    }
  }
  /// A stream that stands goes on by a click, and has the steps and weights of one that never stood.
  void goesOnFrom(std::int64_t at) {
    click(view()->pauseButton());
    goTo(at + 100);
    pause();
    const auto mine = again();
    QCOMPARE(mine->steps(), steps());
    QVERIFY(ring().input == mine->ring()->sequence().input);
    hasWeightsOf(*mine);
  }
  static QStringList places() {
    QStringList found;
    const QDir all(folderOfStreams());
    for (const QString& stream : all.entryList(QDir::Dirs | QDir::NoDotAndDotDot))
      for (const QString& place : QDir(all.filePath(stream)).entryList(QDir::Dirs | QDir::NoDotAndDotDot))
        found << all.filePath(stream + '/' + place);
    return found;
  }
};

}  // namespace reclab::test
