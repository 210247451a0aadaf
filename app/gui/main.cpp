// SPDX-License-Identifier: GPL-3.0-or-later
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <QApplication>
#include <QDir>
#include <QFile>
#include <QIcon>
#include <QSettings>
#include <QSocketNotifier>
#include <cerrno>
#include <cstdio>

#include "array/error.h"
#include "files/files.h"
#include "gui/lessons/print_lesson.h"
#include "gui/look/look.h"
#include "gui/sessions/session_file.h"
#include "gui/start/link.h"
#include "gui/start/options.h"
#include "gui/window/main_window.h"
#include "scene/vtk_frame.h"

namespace {

int asked[2] = {-1, -1};  ///< a pipe from the handler, which may do little else, to the window's thread

void askToEnd(int) {
  const int before = errno;
  const char one = 1;
  static_cast<void>(!write(asked[1], &one, 1));
  errno = before;
}

/// A request to end from the system or a shell saves the desk like a closed window. A second signal ends at once.
void endAsClosed(reclab::MainWindow& window) {
  if (pipe(asked) != 0) return;
  for (const int end : asked) fcntl(end, F_SETFD, FD_CLOEXEC);
  fcntl(asked[1], F_SETFL, O_NONBLOCK);
  auto* heard = new QSocketNotifier(asked[0], QSocketNotifier::Read, &window);
  QObject::connect(heard, &QSocketNotifier::activated, &window, [&window, heard] {
    heard->setEnabled(false);
    window.closeUnasked();
    QApplication::quit();  // also where a dialog is open
  });
  struct sigaction action = {};
  action.sa_handler = askToEnd;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaction(signal, &action, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  // A write that fails says why, which is a sentence; a signal would end the window in the middle of it.
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  QStringList arguments;
  for (int i = 0; i < argc; ++i) arguments << QString::fromLocal8Bit(argv[i]);
  // Who clicks on a session or a link sees no terminal: that it cannot be opened is said in the window, too.
  const bool isLink = arguments.size() == 2 && reclab::isLink(arguments[1]);
  reclab::Options options;
  try {
    options = reclab::readOptions(arguments);
  } catch (const reclab::Error& error) {
    std::fprintf(stderr, "recurrence-lab: %s\n", error.what());
    if (!isLink) return 2;
    options.problem = error.what();
  }
  if (options.help || options.version) {
    std::fputs(qUtf8Printable(options.text), stdout);
    return 0;
  }
  const bool draws = !options.figures.isEmpty() || !options.print.isEmpty();
  if (draws && qEnvironmentVariableIsEmpty("DISPLAY") && qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY") &&
      qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM"))
    qputenv("QT_QPA_PLATFORM", "offscreen");
  // Without a session Qt takes this folder by itself, but says so on standard error, where a script looks for one line.
  if (qEnvironmentVariableIsEmpty("XDG_RUNTIME_DIR")) {
    const QByteArray folder = QFile::encodeName(QDir::tempPath()) + "/runtime-" + QByteArray::number(static_cast<qulonglong>(getuid()));
    if (mkdir(folder.constData(), 0700) == 0 || errno == EEXIST) qputenv("XDG_RUNTIME_DIR", folder);
  }
  reclab::prepareOpenGl();
  QApplication application(argc, argv);
  QApplication::setOrganizationName("recurrence-lab");
  QApplication::setApplicationName("recurrence-lab");
  QApplication::setApplicationDisplayName("Recurrence Lab");
  QApplication::setDesktopFileName("recurrence-lab");
  QSettings::setDefaultFormat(QSettings::IniFormat);

  reclab::Look look;
  look.apply(options.theme.value_or(draws ? reclab::ThemeChoice::light : reclab::themeChoice(QSettings().value("theme").toString())));
  QApplication::setWindowIcon(QIcon(":/recurrence-lab.svg"));
  if (!options.figures.isEmpty()) return reclab::drawFigures(options);

  // Options by name are read before there is a window, so that a mistake ends here.
  std::optional<reclab::Setup> first;
  try {
    reclab::checkLayout(options);
    reclab::checkLesson(options);
  } catch (const reclab::Error& error) {
    std::fprintf(stderr, "recurrence-lab: %s\n", error.what());
    return 2;
  }
  if (!options.session.isEmpty()) try {
      reclab::readSession(QByteArray::fromStdString(reclab::read_file(options.session.toStdString())), options.session);
    } catch (const reclab::Error& error) {
      std::fprintf(stderr, "recurrence-lab: %s\n", error.what());
      options.session.clear();
      options.problem = error.what();
    }
  if (!options.print.isEmpty()) return reclab::printLesson(options);
  if (options.named()) try {
      first = reclab::loadedBeginning(options);
    } catch (const reclab::Error& error) {
      std::fprintf(stderr, "recurrence-lab: %s\n", error.what());
      if (!isLink) return 2;
      options = {};
      options.problem = error.what();
    }
  const bool refused = !options.problem.isEmpty();
  reclab::MainWindow window(&look, options, first);
  window.show();
  endAsClosed(window);
  const int status = QApplication::exec();
  return refused ? 2 : status;
}
