// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/palette/palette_feature.h"

#include <QMenuBar>
#include <QToolButton>
#include <iterator>

#include "gui/frame/lab.h"
#include "gui/frame/window_frame.h"
#include "gui/palette/controls.h"
#include "gui/palette/history.h"
#include "gui/palette/palette.h"
#include "gui/palette/settings.h"

namespace reclab {

PaletteFeature::PaletteFeature(WindowFrame* frame)
    : QObject(frame),
      frame_(frame),
      palette_(new Palette(
          frame->window(), [this] { return entries(); }, [frame](const std::function<void()>& does) { frame->lab()->act(does); })) {
  QAction* find = frame_->add("palette", "search", tr("Find anything…"), QKeySequence(tr("Ctrl+K")), [this] { palette_->open(); });
  find->setToolTip(tr("Models, settings with values, panels, tasks, files and every action, by name (Ctrl+K)"));
  frame_->offer(ActionPlace::edit, find);
  frame_->offer(ActionPlace::edit, frame_->add("history", {}, tr("History…"), {}, [this] { showHistory(); }));
  auto* button = new QToolButton(frame_->window());  // always in sight, so that nobody has to know of it
  button->setObjectName("findAnything");
  button->setAccessibleName(find->text());
  button->setDefaultAction(find);
  button->setText(tr("Find anything  %1").arg(find->shortcut().toString(QKeySequence::NativeText)));
  button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  button->setFocusPolicy(Qt::TabFocus);
  frame_->window()->menuBar()->setCornerWidget(button);
  connect(frame_->session(), &SessionController::libraryReady, palette_, [this] {
    if (palette_->isVisible()) palette_->refill();
  });
}

std::vector<PaletteEntry> PaletteFeature::entries() const {
  std::vector<PaletteEntry> all;
  const auto add = [&](std::vector<PaletteEntry> some) { std::ranges::move(some, std::back_inserter(all)); };
  for (const PaletteSource& source : frame_->sources()) add(source.entries());
  add(settingEntries(frame_));
  add(sequenceEntries(frame_));
  add(controlEntries(frame_));
  return all;
}

void PaletteFeature::showHistory() {
  if (!history_) history_ = new HistoryDialog(frame_->undo(), frame_->window());
  history_->show();
  history_->raise();
  history_->activateWindow();
}

}  // namespace reclab
