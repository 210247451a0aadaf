// SPDX-License-Identifier: GPL-3.0-or-later
// The menus of the window and what only they do: figures, exports, layouts, help.
#include <QActionGroup>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDialog>
#include <QDialogButtonBox>
#include <QDir>
#include <QFileInfo>
#include <QGridLayout>
#include <QLabel>
#include <QMenuBar>
#include <QScreen>
#include <QSettings>
#include <QStyle>
#include <QToolBar>
#include <QToolButton>
#include <QUndoStack>
#include <QVBoxLayout>
#include <algorithm>

#include "experiment/command.h"
#include "files/archive.h"
#include "gui/dialogs/complexity_dialog.h"
#include "gui/dialogs/device_dialog.h"
#include "gui/dialogs/distill_dialog.h"
#include "gui/dialogs/file_dialogs.h"
#include "gui/docks/panel_area.h"
#include "gui/session/kept_setup.h"
#include "gui/session/pins.h"
#include "gui/session/requests.h"
#include "gui/views/inspector_view.h"
#include "gui/views/scrubber.h"
#include "gui/window/main_window.h"
#include "plain_text.h"
#include "sequence/format.h"

namespace reclab {
namespace {

constexpr int layoutVersion = 1;

/// A checksum goes with a state, so that a damaged file is seen before Qt takes it apart.
QByteArray sealed(const QByteArray& state) { return QByteArray::number(qChecksum(state)) + ':' + state.toBase64(); }
QByteArray unsealed(const QByteArray& kept) {
  const auto at = kept.indexOf(':');
  if (at < 1) return {};
  const QByteArray state = QByteArray::fromBase64(kept.mid(at + 1));
  return QByteArray::number(qChecksum(state)) == kept.left(at) ? state : QByteArray();
}

void showDialog(QWidget* parent, const QString& title, QWidget* content) {
  auto* dialog = new QDialog(parent);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(title);
  auto* column = new QVBoxLayout(dialog);
  column->setContentsMargins(24, 24, 24, 16);
  column->setSpacing(16);
  column->addWidget(content);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, dialog);
  QObject::connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
  column->addWidget(buttons);
  dialog->open();
}

void showAbout(QWidget* parent) {
  auto* content = new QWidget;
  auto* row = new QHBoxLayout(content);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(24);
  auto* mark = plainLabel();
  mark->setPixmap(QIcon(":/recurrence-lab.svg").pixmap(72, 72));
  row->addWidget(mark, 0, Qt::AlignTop);
  auto* words = plainLabel();
  words->setTextFormat(Qt::RichText);
  words->setText(
      QObject::tr("<p style='font-size:15pt; font-weight:600; margin:0'>Recurrence Lab</p><p>Version %1</p>"
                  "<p>See how recurrent sequence models remember and forget: eigenvalues, states, gates and gradients of every step, "
                  "on a sequence of your own.</p><p>Free software under the GNU General Public License, version 3 or later. "
                  "It stands on Qt, VTK, QCustomPlot, Eigen and FFTW.</p>")
          .arg(RECLAB_VERSION));
  words->setWordWrap(true);
  words->setFixedWidth(360);
  row->addWidget(words);
  showDialog(parent, QObject::tr("About Recurrence Lab"), content);
}

/// The steps of the README's first hour, in the words on the screen.
void showGuide(QWidget* parent) {
  auto* content = new QWidget;
  auto* grid = new QGridLayout(content);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setHorizontalSpacing(16);
  grid->setVerticalSpacing(10);
  const std::pair<QString, QString> steps[] = {
      {QObject::tr("Drag a slider"),
       QObject::tr("The inspector on the right has the settings of the model; every picture follows while one moves.")},
      {QObject::tr("Train"), QObject::tr("Press Train in the tool bar. The second time line, below the first, is that of training: drag "
                                         "along it to see the weights of any step.")},
      {QObject::tr("Move through time"),
       QObject::tr("Drag along the time line. What the curves are worth at that step stands beside the cursor, in every picture.")},
      {QObject::tr("Pick another model"), QObject::tr("The list on the left has them by family; the search finds names, authors, years and "
                                                      "properties. The card says what to look at, and its links open it.")},
      {QObject::tr("Compare"), QObject::tr("Pin keeps a run beside the next one. Compare in the tool bar has ready comparisons, a table of "
                                           "what differs, and all runs side by side.")},
      {QObject::tr("Bring your own"), QObject::tr("Drop a table or a sound file on the window; where cells are missing it asks what "
                                                  "becomes of them. File loads weights that were trained elsewhere.")},
      {QObject::tr("Look closer"), QObject::tr("The box Layout has arrangements of more views. A double click on a title enlarges one, a "
                                               "hover says what a mark means, and an empty view says why.")},
      {QObject::tr("Take it along"), QObject::tr("The menu of a view saves its figure and its data; File exports the whole run; Run ▸ Copy "
                                                 "the command gives the line that repeats it in a terminal.")}};
  int row = 0;
  for (const auto& [what, how] : steps) {
    auto* head = label(what, "title");
    auto* words = plainLabel(how);
    words->setWordWrap(true);
    words->setFixedWidth(440);
    grid->addWidget(head, row, 0, Qt::AlignTop);
    grid->addWidget(words, row++, 1, Qt::AlignTop);
  }
  showDialog(parent, QObject::tr("Guide"), content);
}

void showShortcuts(QWidget* parent) {
  auto* content = new QWidget;
  auto* grid = new QGridLayout(content);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setHorizontalSpacing(24);
  grid->setVerticalSpacing(6);
  const std::pair<QString, QString> keys[] = {
      {QObject::tr("Space"), QObject::tr("Play or pause")},
      {QObject::tr("← →"), QObject::tr("One step back or forward; on the time line also Page Up and Down, Home and End")},
      {QObject::tr("F5"), QObject::tr("Run once more")},
      {QObject::tr("Esc"), QObject::tr("Stop what is running, and pause what trains")},
      {QObject::tr("Ctrl+O"), QObject::tr("Open a sequence")},
      {QObject::tr("Ctrl+E"), QObject::tr("Export the run")},
      {QObject::tr("Ctrl+T"), QObject::tr("Train, or pause")},
      {QObject::tr("Ctrl+P"), QObject::tr("Pin the run for comparison")},
      {QObject::tr("Ctrl+B"), QObject::tr("The runs that are compared side by side, or in one picture")},
      {QObject::tr("Ctrl+D"), QObject::tr("What differs between them")},
      {QObject::tr("Ctrl+Z, Ctrl+Y"), QObject::tr("Undo, redo")},
      {QObject::tr("Ctrl+F"), QObject::tr("Search the models; Enter picks the first, ↓ goes into the list, Esc takes the search back")},
      {QObject::tr("Ctrl+M"),
       QObject::tr("The map of the literature; there the arrows go from model to model, Enter loads one, Space marks one to compare")},
      {QObject::tr("F6, Ctrl+Tab"), QObject::tr("Keyboard to the next part of the window; with Shift to the one before")},
      {QObject::tr("Tab, then Space"), QObject::tr("Buttons; the menu key opens a panel's menu")},
      {QObject::tr("Shift-drag on the input"), QObject::tr("Zoom every time axis to a range")},
      {QObject::tr("Double-click on the input"), QObject::tr("The whole sequence again")},
      {QObject::tr("Double-click on a panel's title"), QObject::tr("Only this panel, or all again")}};
  int line = 0;
  for (const auto& [key, text] : keys) {
    grid->addWidget(label(key, "title"), line, 0);
    grid->addWidget(plainLabel(text), line++, 1);
  }
  showDialog(parent, QObject::tr("Shortcuts"), content);
}

/// What a file dialog shows, "Sequences (*.csv *.npy);;All files (*)".
QString filterOf(const QString& what, const std::vector<std::string>& suffixes) {
  QStringList patterns;
  for (const std::string& suffix : suffixes) patterns << "*" + QString::fromStdString(suffix);
  return QObject::tr("%1 (%2);;All files (*)").arg(what, patterns.join(' '));
}

}  // namespace

void MainWindow::buildMenus() {
  QMenu* file = menuBar()->addMenu(tr("&File"));
  file->addAction(frame_->add("open", "open", tr("Open sequence…"), QKeySequence::Open, [this] {
    const QString path = frame_->chooser()->open(this, tr("Open a sequence"), filterOf(tr("Sequences"), sequence_suffixes()));
    if (!path.isEmpty()) openFile(path);
  }));
  QMenu* recent = file->addMenu(tr("Open recent"));
  recent->setObjectName("recent");
  recent->setToolTipsVisible(true);
  connect(recent, &QMenu::aboutToShow, this, [this, recent] {
    recent->clear();
    for (const QString& path : recentFiles()) {
      QAction* one = recent->addAction(buttonText(QFileInfo(path).fileName()), this, [this, path] { openFile(path); });
      one->setToolTip(safeTip(QDir::toNativeSeparators(path)));
      one->setEnabled(QFileInfo(path).isFile());
    }
    if (recent->isEmpty()) recent->addAction(tr("Nothing has been opened yet"))->setEnabled(false);
    recent->addSeparator();
    recent->addAction(tr("Clear this list"), this, [] { forgetRecentFiles(); });
  });
  file->addAction(frame_->add("weights", "weights", tr("Load weights…"), {}, [this] { loadFile(FileKind::weights); }));
  file->addAction(frame_->add("state", {}, tr("Load initial state…"), {}, [this] { loadFile(FileKind::state); }));
  file->addAction(frame_->add("forget", {}, tr("Forget weights and initial state"), {}, [this] {
    Setup after = session_->setup();
    after.weights.erase(after.preset);
    after.states.erase(after.preset);
    after.learned.erase(after.preset);
    frame_->change(after, tr("forgetting weights and state"));
  }));
  action("forget")->setEnabled(false);
  action("forget")->setToolTip(tr("Weights drawn from the seed again, and the state that the model begins with"));
  file->addSeparator();
  file->addAction(frame_->add("saveWeights", "export", tr("Save weights…"), {}, [this] { saveFile(FileKind::weights); }));
  file->addAction(frame_->add("saveState", {}, tr("Save final state…"), {}, [this] { saveFile(FileKind::state); }));
  file->addSeparator();
  QMenu* figures = file->addMenu(icon("image"), tr("Save figures of the open panels"));
  for (const auto& [name, format] : {std::pair{"PNG", Panel::Format::png}, {"SVG", Panel::Format::svg}, {"PDF", Panel::Format::pdf}})
    figures->addAction(frame_->add("figures." + QString(name).toLower(), {}, tr("As %1…").arg(name), {},
                                   [this, format = format] { saveAllFigures(format); }));
  file->addAction(frame_->add("exportRun", "export", tr("Export run…"), QKeySequence(tr("Ctrl+E")), [this] {
    const QString folder = frame_->chooser()->folder(this, tr("Export the run into a folder"));
    if (!folder.isEmpty() && mayReplaceFiles(this, tr("Export run"), folder, {"manifest.json", "trace.npz", "state.npz"}))
      session_->exportRun(folder, false);
  }));
  file->addActions(frame_->offered(ActionPlace::fileExport));
  file->addAction(frame_->add("exportData", "table", tr("Export data behind the figures…"), {}, [this] { exportData(); }));
  file->addSeparator();
  file->addAction(frame_->add("quit", {}, tr("Quit"), QKeySequence::Quit, [this] { close(); }));

  QMenu* edit = menuBar()->addMenu(tr("&Edit"));
  QAction* undo = frame_->undo()->createUndoAction(this, tr("Undo"));
  QAction* redo = frame_->undo()->createRedoAction(this, tr("Redo"));
  undo->setObjectName("action.undo");
  redo->setObjectName("action.redo");
  undo->setIcon(icon("undo"));
  redo->setIcon(icon("redo"));
  undo->setShortcut(QKeySequence(tr("Ctrl+Z")));
  redo->setShortcuts({QKeySequence(tr("Ctrl+Y")), QKeySequence(tr("Ctrl+Shift+Z"))});
  edit->addActions({undo, redo});
  edit->addSeparator();
  edit->addActions(frame_->offered(ActionPlace::edit));

  QMenu* view = menuBar()->addMenu(tr("&View"));
  QMenu* theme = view->addMenu(icon("theme"), tr("Theme"));
  auto* themes = new QActionGroup(this);
  for (const auto& [text, choice] :
       {std::pair{tr("As the system"), ThemeChoice::system}, {tr("Light"), ThemeChoice::light}, {tr("Dark"), ThemeChoice::dark}}) {
    QAction* one = frame_->add("theme." + toString(choice), {}, text, {}, [this, choice = choice] {
      look_->apply(choice);
      QSettings().setValue("theme", toString(choice));
    });
    one->setCheckable(true);
    one->setChecked(look_->choice() == choice);
    themes->addAction(one);
    theme->addAction(one);
  }
  QMenu* shown = view->addMenu(icon("layout"), tr("Panels"));
  for (PanelDock* dock : area_->docks()) shown->addAction(dock->toggleViewAction());
  shown->addSeparator();
  for (FlatDock* dock : frame_->docks()) shown->addAction(dock->toggleViewAction());
  view->addActions(frame_->offered(ActionPlace::view));
  view->addAction(frame_->add("complexities", "table", tr("Tables of complexities…"), {}, [this] {
    if (!session_->library()) return;
    auto* dialog = new ComplexityDialog(session_->library(), *frame_->chooser(), this, &session_->desk());
    connect(dialog, &ComplexityDialog::picked, frame_, &WindowFrame::pickModel);
    dialog->open();
  }));
  action("complexities")->setToolTip(tr("How time and memory grow with the length: what the survey states, and what is measured"));
  view->addAction(frame_->add("resetLayout", "reset", tr("Reset layout"), {}, [this] { resetLayout(); }));
  view->addSeparator();
  view->addAction(frame_->add("nextPart", {}, tr("Keyboard to the next part"), {}, [this] { focusNextPart(false); }));
  view->addAction(frame_->add("lastPart", {}, tr("Keyboard to the part before"), {}, [this] { focusNextPart(true); }));
  action("nextPart")->setShortcuts({QKeySequence(Qt::Key_F6), QKeySequence(Qt::CTRL | Qt::Key_Tab)});
  action("lastPart")->setShortcuts({QKeySequence(Qt::SHIFT | Qt::Key_F6), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Tab)});
  view->addAction(
      frame_->add("allTime", {}, tr("Show all of the time"), QKeySequence(tr("Ctrl+0")), [this] { frame_->time()->resetRange(); }));
  view->addAction(
      frame_->add("zoomBack", {}, tr("Back to the zoom before"), QKeySequence(tr("Alt+Left")), [this] { frame_->time()->zoomBack(); }));

  QMenu* run = menuBar()->addMenu(tr("&Run"));
  run->addActions({action("run"), action("stop")});
  run->addSeparator();
  run->addActions(frame_->offered(ActionPlace::runTrain));
  run->addSeparator();
  run->addActions({scrubber_->playAction(), scrubber_->backAction(), scrubber_->forwardAction()});
  run->addSeparator();
  run->addActions(frame_->offered(ActionPlace::runCompare));
  run->addAction(frame_->add("distill", {}, tr("Distill its long filters…"), {}, [this] {
    if (!session_->library()) return;
    auto* dialog = new DistillDialog(session_->library(), session_->setup(), *frame_->chooser(), this, &session_->desk());
    connect(dialog, &DistillDialog::opened, this,
            [this](const Setup& distilled, const QString& title) { frame_->change(distilled, tr("model %1").arg(title)); });
    dialog->open();
  }));
  action("distill")->setToolTip(tr("The filters that the model convolves with, as a few modes that a recurrence runs"));
  run->addAction(frame_->add("copyCommand", "copy", tr("Copy the command"), {}, [this] { copyCommand(); }));
  action("copyCommand")->setToolTip(tr("The line for a terminal that repeats this run, with all that an export has"));

  QMenu* help = menuBar()->addMenu(tr("&Help"));
  help->addAction(frame_->add("guide", {}, tr("Guide"), {}, [this] { showGuide(this); }));
  help->addAction(frame_->add("shortcuts", "keyboard", tr("Shortcuts"), QKeySequence(Qt::Key_F1), [this] { showShortcuts(this); }));
  help->addAction(frame_->add("checkDevice", "run", tr("Check the device…"), {}, [this] {
    if (session_->library()) (new DeviceDialog(session_->library(), *frame_->chooser(), this, &session_->desk()))->open();
  }));
  action("checkDevice")
      ->setToolTip(tr("Does the CUDA device compute what the CPU does? Every primitive and every model, forward and gradients"));
  help->addAction(frame_->add("about", "info", tr("About Recurrence Lab"), {}, [this] { showAbout(this); }));
}

void MainWindow::copyCommand() {
  const TracePtr& trace = session_->trace();
  if (!trace || trace->info.command.empty()) return frame_->say(tr("There is no run yet whose command could be copied."));
  // With all that an export records, not what panels happen to show.
  const Setup shown = session_->shownSetup();
  const RunRequest request = requestFor(shown, session_->library()->presets.find(shown.preset), Probe{});
  QApplication::clipboard()->setText(QString::fromStdString(command_of(request, trace->info.device)));
  frame_->say(tr("The command that repeats this run is in the clipboard."));
}

void MainWindow::loadFile(FileKind kind) {
  const QString path =
      frame_->chooser()->open(this, kind == FileKind::weights ? tr("Load trained weights") : tr("Load the state to begin with"),
                              filterOf(tr("Arrays"), archive_suffixes()));
  if (!path.isEmpty()) session_->loadFile(kind, path);
}

void MainWindow::saveFile(FileKind kind) {
  const bool weights = kind == FileKind::weights;
  const QString path = frame_->chooser()->save(this, weights ? tr("Save the weights that ran") : tr("Save the state that the run ended in"),
                                               QString::fromStdString(session_->setup().preset) + (weights ? "-weights.npz" : "-state.npz"),
                                               tr("NumPy archives (*.npz)"));
  if (!path.isEmpty()) session_->saveFile(kind, path);
}

/// Those of this arrangement, also where they stand behind others.
std::vector<Panel*> MainWindow::openPanels() const {
  std::vector<Panel*> open;
  for (PanelDock* dock : area_->docks())
    if (!dock->isHidden()) {
      dock->catchUp();  // one that stands behind another as a tab
      open.push_back(dock->panel());
    }
  return open;
}

void MainWindow::saveAllFigures(Panel::Format format) {
  const QString model = QString::fromStdString(session_->trace() ? session_->trace()->info.preset : session_->setup().preset);
  const std::vector<Panel*> open = openPanels();
  FigureQuestion question{tr("Save the figures of the open panels"), {}, format};
  for (Panel* panel : open) {
    panel->finish();
    if (panel->emptyReason().isEmpty()) question.stems << stemOf(*panel, model);
  }
  if (question.stems.isEmpty()) return frame_->say(tr("No open panel has a picture yet."), Tone::warning);
  const auto answer = frame_->chooser()->figure(this, question);
  if (!answer) return;
  const SavedFigures saved = saveFigures(open, model, answer->folder, answer->format, answer->style);
  if (!saved.problem.isEmpty()) return frame_->say(saved.problem, Tone::warning);
  QStringList said{saved.files.size() == 1 ? tr("One figure is in %1.").arg(answer->folder)
                                           : tr("%1 figures are in %2.").arg(saved.files.size()).arg(answer->folder)};
  frame_->say((said + saved.without).join(' '));
}

void MainWindow::exportData() {
  const QString folder = frame_->chooser()->folder(this, tr("Export the data behind the figures into a folder"));
  if (folder.isEmpty()) return;
  const QString model = QString::fromStdString(session_->trace() ? session_->trace()->info.preset : session_->setup().preset);
  const std::vector<PanelData> tables = dataOf(openPanels(), model);
  QStringList files;
  for (const PanelData& one : tables) files << one.file;
  if (!mayReplaceFiles(this, tr("Export data"), folder, files)) return;
  const QString sentence = saveData(tables, folder);
  if (sentence.isEmpty())
    frame_->say(tr("The data of %1 panels are in %2.").arg(tables.size()).arg(folder));
  else
    frame_->say(sentence, Tone::warning);
}

bool MainWindow::isNarrow() const { return width() < 1100; }

void MainWindow::keepOnScreen() {
  if (isMaximized() || isFullScreen()) return;
  const QRect room = screen()->availableGeometry(), frame = frameGeometry();
  if (room.contains(frame)) return;
  const QSize border = frame.size() - size();
  resize(size().boundedTo(room.size() - border));
  move(std::clamp(frame.left(), room.left(), std::max(room.left(), room.right() + 1 - width() - border.width())),
       std::clamp(frame.top(), room.top(), std::max(room.top(), room.bottom() + 1 - height() - border.height())));
}

void MainWindow::arrangeSides() {
  arrangingSides_ = true;
  sidesOwn_ = false;
  narrow_ = isNarrow();
  for (FlatDock* dock : frame_->docks()) {
    dock->setFloating(false);
    removeDockWidget(dock);
  }
  for (QAction* words : fieldWords_) words->setVisible(!narrow_ && (!calm_ || words == fieldWords_.back()));
  for (QAction* one : calmHides_) one->setVisible(!calm_);
  emit frame_->roomChanged(narrow_);
  for (std::size_t i = 0; i < frame_->docks().size(); ++i) {
    addDockWidget((i < 2 && !calm_) || narrow_ ? Qt::LeftDockWidgetArea : Qt::RightDockWidgetArea, frame_->docks()[i]);
    frame_->docks()[i]->setVisible(!calm_ || i == 0 || i == 2);
  }
  if (narrow_) {  // one column of tabs beside the panels
    for (std::size_t i = 1; i < frame_->docks().size(); ++i) tabifyDockWidget(frame_->docks()[0], frame_->docks()[i]);
    frame_->docks()[calm_ ? 2 : 0]->raise();
    resizeDocks({frame_->docks()[0]}, {280}, Qt::Horizontal);
  } else if (calm_) {
    resizeDocks({frame_->docks()[2]}, {300}, Qt::Horizontal);
    resizeDocks({frame_->docks()[0], frame_->docks()[2]}, {90, 800}, Qt::Vertical);
  } else {
    const int side = qBound(230, width() / 6, 300);
    resizeDocks({frame_->docks()[0], frame_->docks()[2]}, {side, side + 20}, Qt::Horizontal);
    resizeDocks({frame_->docks()[0], frame_->docks()[1], frame_->docks()[2], frame_->docks()[3]}, {500, 340, 430, 440}, Qt::Vertical);
  }
  layout()->activate();
  arrangingSides_ = false;
}

void MainWindow::resetLayout() {
  calm_ = false;
  showCalm();
  arrangeSides();
  area_->arrange(area_->layouts().front());
  layout_->setCurrentIndex(0);
}

void MainWindow::showCalm() {
  inspector_->setFew(calm_);
  emit frame_->calmChanged(calm_);
}

void MainWindow::setCalm(bool calm) {
  calm_ = calm;
  showCalm();
  arrangeSides();
}

void MainWindow::pickLayout(int index) {
  const PanelLayout& layout = area_->layouts()[static_cast<std::size_t>(index)];
  layout_->setCurrentIndex(index);
  if (layout.calm || calm_) setCalm(layout.calm);
  area_->arrange(layout);
}

void MainWindow::saveLayout() const {
  QSettings settings;
  settings.setValue("window/geometry", sealed(saveGeometry()));
  settings.setValue("window/docks", sealed(saveState(layoutVersion)));
  const PanelArea::Places places = area_->places(layoutVersion);
  settings.setValue("window/panels", sealed(places.state));
  settings.setValue("window/without", places.without);
  settings.setValue("window/layout", layout_->currentIndex());
  if (session_->setup().sequence) {
    const PutLearned learned = [this](const LearnedPtr& weights) { return session_->putLearned(weights); };
    settings.setValue("session/setup", toJson(session_->setup(), learned));
    std::vector<KeptPin> pins;
    for (const Pin& pin : frame_->pins()->pins())
      pins.push_back({pin.setup, pin.given, pin.colour, session_->idOfTraining(session_->trainingOf(pin.id))});
    settings.setValue("session/pins", toJson(pins, learned));
    settings.setValue("session/training", session_->trainedTogether());
    session_->keepNoOtherWeights();
  }
  settings.setValue("window/fit", area_->fit());
  settings.setValue("window/own", area_->isOwn());
  settings.setValue("window/sides", sidesOwn_ ? "own" : narrow_ ? "narrow" : "wide");
  emit frame_->keeping();
  for (const PanelDock* dock : area_->docks())
    if (const QVariantMap choices = dock->panel()->choices(); !choices.isEmpty())
      settings.setValue("panels/" + dock->panel()->id(), choices);
}

void MainWindow::restoreLayout() {
  resetLayout();
  QSettings settings;
  emit frame_->restoring();
  for (const PanelDock* dock : area_->docks()) dock->panel()->setChoices(settings.value("panels/" + dock->panel()->id()).toMap());
  // Where the note is still there the window ended while it restored, for Qt does not survive every state; it is not tried again.
  if (settings.contains("window/restoring")) {
    settings.remove("window");
    return frame_->say(tr("The layout that was kept could not be restored; this is the standard one."));
  }
  const QByteArray geometry = unsealed(settings.value("window/geometry").toByteArray()),
                   docks = unsealed(settings.value("window/docks").toByteArray()),
                   shown = unsealed(settings.value("window/panels").toByteArray());
  const auto calm = std::ranges::find_if(area_->layouts(), &PanelLayout::calm);
  const int asked = layout_->findText(options_.layout, Qt::MatchFixedString);
  if (geometry.isEmpty() || docks.isEmpty() || shown.isEmpty())
    return pickLayout(asked >= 0 ? asked : static_cast<int>(calm - area_->layouts().begin()));
  settings.setValue("window/restoring", true);
  settings.sync();
  restoreGeometry(geometry);
  const bool whole =
      restoreState(docks, layoutVersion) && area_->restorePlaces({shown, settings.value("window/without").toStringList()}, layoutVersion);
  emit frame_->restored();
  if (!whole) return resetLayout();
  layout_->setCurrentIndex(qBound(0, settings.value("window/layout").toInt(), layout_->count() - 1));
  if (area_->isEmpty()) return resetLayout();
  if (asked >= 0) return pickLayout(asked);
  if (area_->layouts()[static_cast<std::size_t>(layout_->currentIndex())].calm) {
    calm_ = true;
    showCalm();
    for (QAction* one : calmHides_) one->setVisible(false);
    for (QAction* words : fieldWords_) words->setVisible(!narrow_ && words == fieldWords_.back());
  }
  const QString sides = settings.value("window/sides").toString();
  sidesOwn_ = sides == "own";
  if (!sidesOwn_ && sides != (isNarrow() ? "narrow" : "wide")) arrangeSides();
  area_->takeOver(area_->layouts()[static_cast<std::size_t>(layout_->currentIndex())], settings.value("window/fit").toSize(),
                  settings.value("window/own").toBool());
}

/// What was restored has stood the first pictures.
void MainWindow::endRestoring() {
  QSettings settings;
  if (!settings.contains("window/restoring") && !settings.contains("session/restoring")) return;
  settings.remove("window/restoring");
  settings.remove("session/restoring");
  settings.sync();
}

}  // namespace reclab
