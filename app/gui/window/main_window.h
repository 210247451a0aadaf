// SPDX-License-Identifier: GPL-3.0-or-later
// The window: it puts the parts together and passes on their signals. The session computes, and the panels show.
#pragma once

#include <QMainWindow>
#include <QTimer>
#include <memory>
#include <optional>
#include <vector>

#include "gui/frame/window_frame.h"
#include "gui/session/files.h"
#include "gui/session/session_controller.h"
#include "gui/start/options.h"
#include "gui/time/time_link.h"
#include "panel.h"

class QMenu;

namespace reclab {

class Arrangement;
class CardView;
class ComparingFeature;
class InspectorView;
class Keys;
class LastSession;
class LessonsFeature;
class LiteratureFeature;
class LookAt;
class MapWindow;
class ModelsView;
class OpeningFeature;
class PaletteFeature;
class ResultsFeature;
class RunBar;
class Scrubber;
class SequenceView;
class SessionsFeature;
class SideBySide;
class StreamFeature;
class StreamView;
class TrainingBar;
class TrainingFeature;

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  /// `first`: the setup to begin with, when it is loaded already.
  explicit MainWindow(Look* look, Options options = {}, std::optional<Setup> first = {});
  ~MainWindow() override;

  /// Sets the dialogs that ask for paths; tests answer themselves.
  void setFileChooser(FileChooser chooser) { frame_->setChooser(std::move(chooser)); }

  SessionController* session() const { return session_; }
  TimeLink* time() const { return frame_->time(); }
  ModelsView* models() const;
  MapWindow* mapWindow() const;  ///< null until it was asked for
  InspectorView* inspector() const { return inspector_; }
  SequenceView* sequenceView() const { return sequence_; }
  Scrubber* scrubber() const { return scrubber_; }
  TrainingBar* trainingBar() const;
  StreamView* streamView() const;
  SessionsFeature* sessions() const { return sessions_; }
  PanelArea* area() const { return area_; }
  SideBySide* sideBySide() const;  ///< null until it was asked for
  QMenu* compareMenu() const;
  PaletteFeature* commandPalette() const { return palette_; }
  LessonsFeature* lessons() const { return lessons_; }
  ResultsFeature* results() const { return results_; }
  Pins* pins() const { return frame_->pins(); }
  StatusLine* statusLine() const { return frame_->status(); }
  Banner* banner() const { return frame_->banner(); }
  FirstHint* hint() const { return frame_->hint(); }
  QUndoStack* undoStack() const { return frame_->undo(); }
  Lab* lab() const { return frame_->lab(); }
  QAction* action(const QString& name) const { return frame_->action(name); }  ///< "open", "stop", "exportRun", ...

  /// Closes as when the session of the desktop ends, or the process is asked to: all that can be kept is kept, and nothing is asked.
  void closeUnasked();

  /// Opens a file as a drop does: a session by its name; by its content a sequence, weights or a state, a preset, or the folder of an
  /// export or of a sweep.
  void openFile(const QString& file);

 protected:
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void closeEvent(QCloseEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void buildDocks();
  void buildMenus();
  void connectViews();
  void connectSession();
  void connectArea();
  void begin();
  void showSetup();
  void showTrace(const TracePtr& trace);
  void tellNumbers();
  void tellModelHas(const TracePtr& trace);
  void showTimeOf(const TracePtr& trace);
  void showModel(const ModelPtr& model);
  void tellCard();
  void nameInput();
  void nameModel();  ///< over its list, inspector and card: which it is, and that it is not shown where it is not

  QString layout_;  ///< that is asked for by the command line
  QString lesson_;  ///< to begin with; empty: none
  WindowFrame* frame_;
  SessionController* session_;
  PanelArea* area_;
  LiteratureFeature* literature_ = nullptr;
  ComparingFeature* comparing_ = nullptr;
  LessonsFeature* lessons_ = nullptr;
  TrainingFeature* training_ = nullptr;
  StreamFeature* streams_ = nullptr;
  OpeningFeature* opening_ = nullptr;
  PaletteFeature* palette_ = nullptr;
  ResultsFeature* results_ = nullptr;
  SessionsFeature* sessions_ = nullptr;
  SequenceView* sequence_ = nullptr;
  CardView* card_ = nullptr;
  InspectorView* inspector_ = nullptr;
  Scrubber* scrubber_ = nullptr;
  RunBar* bar_ = nullptr;
  std::unique_ptr<Keys> keys_;
  Arrangement* arrangement_ = nullptr;
  LookAt* lookAt_ = nullptr;
  LastSession* lastSession_ = nullptr;
  LoadedSequencePtr shownSequence_;
  std::vector<StepMark> shownMarks_;
  QTimer numbersSoon_;    ///< while a stream goes on its pictures come faster than numbers are read
  QString inputScale_;    ///< of the model that is looked at: empty where it reads the input as it is
  QStringList modelHas_;  ///< "gates", "states": by its card
  bool restored_ = false, asks_ = true;
};

}  // namespace reclab
