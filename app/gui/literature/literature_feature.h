// SPDX-License-Identifier: GPL-3.0-or-later
// The models that there are: the list and the map in a dock, and the map in a window of its own.
#pragma once

#include <QObject>
#include <vector>

#include "gui/frame/palette_source.h"

namespace reclab {

class FlatDock;
class MapWindow;
class ModelsView;
class SessionController;
class WindowFrame;

class LiteratureFeature : public QObject {
  Q_OBJECT
 public:
  explicit LiteratureFeature(WindowFrame* frame);
  ModelsView* models() const { return models_; }
  MapWindow* mapWindow() const { return mapWindow_; }  ///< null until it was asked for

 private:
  void showLibrary();
  void showProperties();
  std::vector<PaletteEntry> paletteEntries() const;  ///< the models
  void showCurrent();
  void showMap(const QString& marked);
  void makeMapWindow();
  void search();

  WindowFrame* frame_;
  SessionController* session_;
  ModelsView* models_;
  FlatDock* dock_;
  MapWindow* mapWindow_ = nullptr;
};

}  // namespace reclab
