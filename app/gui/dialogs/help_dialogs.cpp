// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/dialogs/help_dialogs.h"

#include <QDialog>
#include <QDialogButtonBox>
#include <QGridLayout>
#include <QLabel>
#include <QVBoxLayout>
#include <utility>

#include "gui/look/look.h"
#include "plain_text.h"

namespace reclab {
namespace {

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

}  // namespace

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
      {QObject::tr("Bring your own"), QObject::tr("Drop a table or a sound file on the window, or paste rows; where cells are missing it "
                                                  "asks what becomes of them. File loads weights that were trained elsewhere.")},
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
      {QObject::tr("Shift+F5"), QObject::tr("A lecture: large type, and a clicker's Page Up and Down through the steps of a lesson")},
      {QObject::tr("Esc"), QObject::tr("Stop what is running, and pause what trains")},
      {QObject::tr("Ctrl+O"), QObject::tr("Open a sequence")},
      {QObject::tr("Ctrl+E"), QObject::tr("Export the run")},
      {QObject::tr("Ctrl+T"), QObject::tr("Train, or pause")},
      {QObject::tr("Ctrl+P"), QObject::tr("Pin the run for comparison")},
      {QObject::tr("Ctrl+B"), QObject::tr("The runs that are compared side by side, or in one picture")},
      {QObject::tr("Ctrl+D"), QObject::tr("What differs between them")},
      {QObject::tr("Ctrl+K"), QObject::tr("Find anything: models, settings with values (radius 0.9), panels, tasks, files, actions")},
      {QObject::tr("Ctrl+V"), QObject::tr("Paste a table as the sequence")},
      {QObject::tr("Ctrl+Z, Ctrl+Y"), QObject::tr("Undo, redo; Edit ▸ History has all states")},
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

}  // namespace reclab
