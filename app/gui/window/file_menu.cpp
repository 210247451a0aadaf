// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/window/file_menu.h"

#include <QDir>
#include <QFileInfo>
#include <QToolButton>
#include <QWidgetAction>

#include "files/archive.h"
#include "gui/dialogs/file_dialogs.h"
#include "gui/docks/panel_area.h"
#include "gui/frame/window_frame.h"
#include "gui/look/look.h"
#include "gui/session/kept_setup.h"
#include "gui/sessions/sessions_feature.h"
#include "gui/views/first_hint.h"
#include "plain_text.h"
#include "sequence/format.h"

namespace reclab {
namespace {

/// The filter of a file dialog, "Sequences (*.csv *.npy);;All files (*)".
QString filterOf(const QString& what, const std::vector<std::string>& suffixes) {
  QStringList patterns;
  for (const std::string& suffix : suffixes) patterns << "*" + QString::fromStdString(suffix);
  return QObject::tr("%1 (%2);;All files (*)").arg(what, patterns.join(' '));
}

QStringList sampleFiles() {
  const QDir folder(dataFile("samples"));
  QStringList patterns, files;
  for (const std::string& suffix : sequence_suffixes()) patterns << "*" + QString::fromStdString(suffix);
  for (const QString& name : folder.entryList(patterns, QDir::Files)) files << folder.filePath(name);
  return files;
}

void addTitle(QMenu* menu, const QString& text) {
  auto* title = label(text, "muted");
  title->setContentsMargins(10, 6, 10, 2);
  title->setFont(smallFont());
  auto* action = new QWidgetAction(menu);
  action->setText(text);
  action->setDefaultWidget(title);
  action->setEnabled(false);
  menu->addAction(action);
}

}  // namespace

FileMenu::FileMenu(WindowFrame* frame) : QMenu(tr("&File"), frame->window()), frame_(frame) {
  addActions(frame_->offered(ActionPlace::fileSession));
  addSeparator();
  addAction(frame_->add("open", "open", tr("Open sequence…"), QKeySequence::Open, [this] {
    const QString path = frame_->chooser()->open(frame_->window(), tr("Open a sequence"), filterOf(tr("Sequences"), sequence_suffixes()));
    if (!path.isEmpty()) emit fileWanted(path);
  }));
  addAction(frame_->action("paste"));
  QMenu* recent = addMenu(tr("Open recent"));
  recent->setObjectName("recent");
  recent->setToolTipsVisible(true);
  connect(recent, &QMenu::aboutToShow, this, [this, recent] {
    recent->clear();
    addFiles(recent, recentFiles());
    if (recent->isEmpty()) recent->addAction(tr("Nothing has been opened yet"))->setEnabled(false);
    recent->addSeparator();
    recent->addAction(tr("Clear this list"), this, [] { forgetRecentFiles(); });
  });
  QMenu* samples = addMenu(tr("Samples"));
  samples->setToolTipsVisible(true);
  addFiles(samples, sampleFiles());
  offerData();
  addAction(frame_->add("weights", "weights", tr("Load weights…"), {}, [this] { loadFile(FileKind::weights); }));
  addAction(frame_->add("state", {}, tr("Load initial state…"), {}, [this] { loadFile(FileKind::state); }));
  addAction(frame_->add("forget", {}, tr("Forget weights and initial state"), {}, [this] {
    Setup after = frame_->session()->setup();
    after.weights.erase(after.preset);
    after.states.erase(after.preset);
    after.learned.erase(after.preset);
    frame_->change(after, tr("forgetting weights and state"));
  }));
  frame_->action("forget")->setEnabled(false);
  WindowFrame::setWhyNot(frame_->action("forget"), tr("The weights are drawn from the seed, and the state is the model's own."));
  frame_->action("forget")->setToolTip(tr("Weights drawn from the seed again, and the state that the model begins with"));
  addSeparator();
  addAction(frame_->add("saveWeights", "export", tr("Save weights…"), {}, [this] { saveFile(FileKind::weights); }));
  addAction(frame_->add("saveState", {}, tr("Save final state…"), {}, [this] { saveFile(FileKind::state); }));
  addSeparator();
  QMenu* figures = addMenu(reclab::icon("image"), tr("Save figures of the open panels"));
  for (const auto& [name, format] : {std::pair{"PNG", Panel::Format::png}, {"SVG", Panel::Format::svg}, {"PDF", Panel::Format::pdf}})
    figures->addAction(frame_->add("figures." + QString(name).toLower(), {}, tr("As %1…").arg(name), {},
                                   [this, format = format] { saveAllFigures(format); }));
  addAction(frame_->add("exportRun", "export", tr("Export run…"), QKeySequence(tr("Ctrl+E")), [this] {
    const QString folder =
        frame_->chooser()->folder(frame_->window(), tr("Export the run into a folder"), folderNameOf(frame_->session()->trace()));
    if (!folder.isEmpty() && mayReplaceFiles(frame_->window(), tr("Export run"), folder, {"manifest.json", "trace.npz", "state.npz"}))
      frame_->session()->exportRun(folder, false);
  }));
  addActions(frame_->offered(ActionPlace::fileExport));
  addAction(frame_->add("exportData", "table", tr("Export data behind the figures…"), {}, [this] { exportData(); }));
  addSeparator();
  addAction(frame_->add("quit", {}, tr("Quit"), QKeySequence::Quit, [this] { frame_->window()->close(); }));
}

void FileMenu::addFiles(QMenu* menu, const QStringList& paths) {
  for (const QString& path : paths) {
    const QFileInfo file(path);
    QAction* one = menu->addAction(buttonText(file.fileName()), this, [this, path] { emit fileWanted(path); });
    one->setToolTip(safeTip(QDir::toNativeSeparators(path)));
    one->setEnabled(file.isFile());
    WindowFrame::setWhyNot(one, tr("%1 is there no more.").arg(QDir::toNativeSeparators(path)));
  }
}

/// For a first look: samples, and sessions and files that were opened, one click away.
void FileMenu::offerData() {
  auto* menu = new QMenu(frame_->window());
  menu->setProperty("repeats", true);  // other menus' actions
  menu->setToolTipsVisible(true);
  connect(menu, &QMenu::aboutToShow, this, [this, menu] {
    menu->clear();
    addTitle(menu, tr("Samples"));
    const QStringList samples = sampleFiles();
    addFiles(menu, samples);
    QStringList recent = recentSessions() + recentFiles();
    recent.removeIf([&](const QString& file) { return samples.contains(file); });
    if (!recent.isEmpty()) {
      addTitle(menu, tr("Opened before"));
      addFiles(menu, recent);
    }
    addTitle(menu, tr("Your own"));
    menu->addActions({frame_->action("open"), frame_->action("paste")});
  });
  frame_->hint()->addButton("open", tr("Data"), tr("Samples, sessions and files that were opened before, and your own"))->setMenu(menu);
}

void FileMenu::loadFile(FileKind kind) {
  const QString path =
      frame_->chooser()->open(frame_->window(), kind == FileKind::weights ? tr("Load trained weights") : tr("Load the state to begin with"),
                              filterOf(tr("Arrays"), archive_suffixes()));
  if (!path.isEmpty()) frame_->session()->loadFile(kind, path);
}

void FileMenu::saveFile(FileKind kind) {
  const bool weights = kind == FileKind::weights;
  const QString path = frame_->chooser()->save(
      frame_->window(), weights ? tr("Save the weights that ran") : tr("Save the state that the run ended in"),
      QString::fromStdString(frame_->session()->setup().preset) + (weights ? "-weights.npz" : "-state.npz"), tr("NumPy archives (*.npz)"));
  if (!path.isEmpty()) frame_->session()->saveFile(kind, path);
}

/// The panels of this arrangement, also those behind others.
std::vector<Panel*> FileMenu::openPanels() const {
  std::vector<Panel*> open;
  for (PanelDock* dock : frame_->area()->docks())
    if (!dock->isHidden()) {
      dock->catchUp();  // one that stands behind another as a tab
      open.push_back(dock->panel());
    }
  return open;
}

void FileMenu::saveAllFigures(Panel::Format format) {
  const QString model =
      QString::fromStdString(frame_->session()->trace() ? frame_->session()->trace()->info.preset : frame_->session()->setup().preset);
  const std::vector<Panel*> open = openPanels();
  FigureQuestion question{tr("Save the figures of the open panels"), {}, format};
  for (Panel* panel : open) {
    panel->finish();
    if (panel->emptyReason().isEmpty()) question.stems << stemOf(*panel, model);
  }
  if (question.stems.isEmpty()) return frame_->say(tr("No open panel has a picture yet."), Tone::warning);
  const auto answer = frame_->chooser()->figure(frame_->window(), question);
  if (!answer) return;
  const SavedFigures saved = saveFigures(open, model, answer->folder, answer->format, answer->style);
  if (!saved.problem.isEmpty()) return frame_->say(saved.problem, Tone::warning);
  QStringList said{saved.files.size() == 1 ? tr("One figure is in %1.").arg(answer->folder)
                                           : tr("%1 figures are in %2.").arg(saved.files.size()).arg(answer->folder)};
  frame_->say((said + saved.without).join(' '));
}

void FileMenu::exportData() {
  const std::string preset = frame_->session()->trace() ? frame_->session()->trace()->info.preset : frame_->session()->setup().preset;
  const QString folder = frame_->chooser()->folder(frame_->window(), tr("Export the data behind the figures into a folder"),
                                                   folderNameOf(preset, QStringLiteral("figures")));
  if (folder.isEmpty()) return;
  const QString model = QString::fromStdString(preset);
  const std::vector<PanelData> tables = dataOf(openPanels(), model);
  QStringList files;
  for (const PanelData& one : tables) files << one.file;
  if (!mayReplaceFiles(frame_->window(), tr("Export data"), folder, files)) return;
  const QString sentence = saveData(tables, folder);
  if (sentence.isEmpty())
    frame_->say(tr("The data of %1 panels are in %2.").arg(tables.size()).arg(folder));
  else
    frame_->say(sentence, Tone::warning);
}

}  // namespace reclab
