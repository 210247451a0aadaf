// SPDX-License-Identifier: GPL-3.0-or-later
// The application of a test of the window: OpenGL as the program has it, and settings and data that are the test's own.
#pragma once

#include <QApplication>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>

#include "scene/vtk_frame.h"

namespace reclab::test {

class TestApplication {
 public:
  /// `settings`: the folder that they are in, and the window's files in the user's data folder; empty for one that goes with the
  /// application.
  TestApplication(int& argc, char** argv, const char* name, const QString& settings = {}) : application_((prepareOpenGl(), argc), argv) {
    QSettings::setDefaultFormat(QSettings::IniFormat);
    const QString own = settings.isEmpty() ? folder_.path() : settings;
    QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, own);
    for (const char* home : {"XDG_DATA_HOME", "XDG_STATE_HOME"}) qputenv(home, own.toLocal8Bit());
    QApplication::setOrganizationName("recurrence-lab");
    QApplication::setApplicationName(name);
  }

 private:
  QApplication application_;
  QTemporaryDir folder_;
};

/// The main() of a test of the window.
template <class Test>
int runWindowTest(int argc, char** argv, const char* name) {
  const TestApplication application(argc, argv, name);
  Test test;
  return QTest::qExec(&test, argc, argv);
}

}  // namespace reclab::test
