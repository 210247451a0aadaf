// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/literature/literature_feature.h"

#include <QAction>
#include <QLayout>
#include <QLineEdit>
#include <QScreen>

#include "gui/docks/flat_dock.h"
#include "gui/frame/lab.h"
#include "gui/frame/window_frame.h"
#include "gui/literature/map_view.h"
#include "gui/literature/map_window.h"
#include "gui/literature/models_view.h"
#include "gui/look/look.h"

namespace reclab {

LiteratureFeature::LiteratureFeature(WindowFrame* frame)
    : QObject(frame), frame_(frame), session_(frame->session()), models_(new ModelsView(frame->window())) {
  dock_ = frame_->addDock("dock.models", tr("Models"), models_, Qt::LeftDockWidgetArea, 220);
  frame_->offer(ActionPlace::edit, frame_->add("search", "search", tr("Search models"), QKeySequence::Find, [this] { search(); }));
  frame_->offer(ActionPlace::view,
                frame_->add("map", "map", tr("Map of the literature"), QKeySequence(tr("Ctrl+M")), [this] { showMap({}); }));
  frame_->offer({[this] { return paletteEntries(); }});
  connect(models_, &ModelsView::picked, frame_, &WindowFrame::pickModel);
  connect(models_, &ModelsView::enlargeWanted, this, [this] { showMap(models_->map()->marked()); });
  connect(models_, &ModelsView::compareWanted, this, &LiteratureFeature::showMap);
  connect(frame_, &WindowFrame::calmChanged, models_, &ModelsView::setFew);
  connect(session_, &SessionController::libraryReady, this, &LiteratureFeature::showLibrary);
  connect(session_, &SessionController::propertiesReady, this, &LiteratureFeature::showProperties);
  connect(session_, &SessionController::presetOpened, this, &LiteratureFeature::showLibrary);
  connect(session_, &SessionController::setupChanged, this, &LiteratureFeature::showCurrent);
  frame_->lab()->add({"models", tr("map of the models"), [this] { return QVariantMap{{"map", models_->isMap()}}; },
                      [this](const QVariantMap& saved) { models_->showMap(saved["map"].toBool()); }});
  connect(frame_->look(), &Look::changed, this, [this] {
    showLibrary();
    if (mapWindow_ != nullptr) mapWindow_->redraw();
  });
}

void LiteratureFeature::showProperties() {
  models_->setProperties(session_->library(), session_->properties());
  if (mapWindow_ != nullptr) mapWindow_->setLiterature(models_->literature());
}

/// Again when the theme is another.
void LiteratureFeature::showLibrary() {
  if (!session_->library()) return;
  models_->setLibrary(session_->library(), session_->properties());
  models_->setCurrent(QString::fromStdString(session_->setup().preset));
  if (mapWindow_ != nullptr) mapWindow_->setLiterature(models_->literature());
}

std::vector<PaletteEntry> LiteratureFeature::paletteEntries() const {
  std::vector<PaletteEntry> all;
  if (models_->literature())
    for (const Literature::Model& model : models_->literature()->models)
      all.push_back({.text = model.title,
                     .detail = model.year > 0 ? tr("model, %1, %2").arg(model.authors).arg(model.year) : tr("model"),
                     .synonyms = model.id + ' ' + model.paper + ' ' + model.text,
                     .does = [frame = frame_, id = model.id] { frame->pickModel(id); }});
  return all;
}

void LiteratureFeature::showCurrent() {
  const QString id = QString::fromStdString(session_->setup().preset);
  models_->setCurrent(id);
  if (mapWindow_ != nullptr) mapWindow_->setCurrent(id);
}

void LiteratureFeature::makeMapWindow() {
  QMainWindow* window = frame_->window();
  mapWindow_ = new MapWindow(frame_->chooser(), window);
  mapWindow_->resize(QSize(1500, 900).boundedTo(window->screen()->availableSize() * 0.94));
  connect(mapWindow_, &MapWindow::picked, frame_, &WindowFrame::pickModel);
  connect(mapWindow_, &MapWindow::compareWanted, session_, [this](const QString& one, const QString& other) {
    session_->request(StudyChoice{"compare", {{"presets", list_of_names({one.toStdString(), other.toStdString()})}}});
  });
  connect(mapWindow_, &MapWindow::said, frame_, &WindowFrame::tell);
  connect(session_, &SessionController::studied, mapWindow_, &MapWindow::setResult);
  mapWindow_->setLiterature(models_->literature());
  mapWindow_->setCurrent(QString::fromStdString(session_->setup().preset));
}

void LiteratureFeature::showMap(const QString& marked) {
  if (mapWindow_ == nullptr) makeMapWindow();
  mapWindow_->show();
  mapWindow_->raise();
  mapWindow_->activateWindow();
  if (!marked.isEmpty()) mapWindow_->map()->setMarked(marked);
}

void LiteratureFeature::search() {
  constexpr int room = 280;  // for the field and some models
  dock_->show();
  dock_->raise();
  if (QMainWindow* window = frame_->window(); !dock_->isFloating() && dock_->height() < room) {
    window->layout()->activate();
    if (dock_->height() < room) window->resizeDocks({dock_}, {room}, Qt::Vertical);
  }
  if (models_->searchField()->isHidden()) {
    models_->setFew(false);
    emit models_->allWanted();
  }
  models_->searchField()->setFocus(Qt::ShortcutFocusReason);
  models_->searchField()->selectAll();
}

}  // namespace reclab
