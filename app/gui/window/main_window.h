// SPDX-License-Identifier: GPL-3.0-or-later
// The window: it puts the parts together and passes on what they say. What is computed is the session's, what is shown the panels'.
#pragma once

#include <QMainWindow>
#include <QPointer>
#include <QSet>
#include <QTimer>
#include <optional>
#include <vector>

#include "gui/frame/window_frame.h"
#include "gui/session/files.h"
#include "gui/session/session_controller.h"
#include "gui/start/options.h"
#include "gui/time/time_link.h"
#include "panel.h"

class QComboBox;
class QMenu;

namespace reclab {

class CardView;
class ComparingFeature;
class InspectorView;
class LiteratureFeature;
class MapWindow;
class ModelsView;
class PanelDock;
class Scrubber;
class SequenceView;
class SideBySide;
class TrainingBar;
class TrainingFeature;

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  /// `first`: what to begin with when it is loaded already.
  explicit MainWindow(Look* look, Options options = {}, std::optional<Setup> first = {});
  ~MainWindow() override;

  /// How paths are asked for; tests answer themselves.
  void setFileChooser(FileChooser chooser) { frame_->setChooser(std::move(chooser)); }

  SessionController* session() const { return session_; }
  TimeLink* time() const { return frame_->time(); }
  ModelsView* models() const;
  MapWindow* mapWindow() const;  ///< null until it was asked for
  InspectorView* inspector() const { return inspector_; }
  SequenceView* sequenceView() const { return sequence_; }
  Scrubber* scrubber() const { return scrubber_; }
  TrainingBar* trainingBar() const;
  PanelArea* area() const { return area_; }
  SideBySide* sideBySide() const;  ///< null until it was asked for
  QMenu* compareMenu() const;
  Pins* pins() const { return frame_->pins(); }
  StatusLine* statusLine() const { return frame_->status(); }
  Banner* banner() const { return frame_->banner(); }
  FirstHint* hint() const { return frame_->hint(); }
  QUndoStack* undoStack() const { return frame_->undo(); }
  QAction* action(const QString& name) const { return frame_->action(name); }  ///< "open", "stop", "exportRun", ...

  /// As when the session of the desktop ends, or the process is asked to: what can be kept is kept, and nothing is asked.
  void closeUnasked();

  /// Opens a file as a drop does: a sequence, or weights or a state by what is in it.
  void openFile(const QString& file);

 protected:
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void closeEvent(QCloseEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void buildDocks();
  void buildToolBar();
  void buildMenus();
  void connectSession();
  void begin();
  void showSetup();
  void showTrace(const TracePtr& trace);
  void tellModelHas(const TracePtr& trace);
  void showTimeOf(const TracePtr& trace);
  void showModel(const ModelPtr& model);
  void tellCard();
  void nameInput();
  void lookAtPlaces(const QString& preset, bool raise);
  void lookAtPlace(const QString& place);
  void showBanner(const QString& sentence, Tone tone);
  std::vector<Panel*> openPanels() const;
  void saveAllFigures(Panel::Format format);
  void exportData();
  void loadFile(FileKind kind);
  void saveFile(FileKind kind);
  void openModel(const ModelChoice& model);
  void editSetting(const QString& key, const QString& text, bool live, int gesture);
  void showTrained(bool trained);
  void offerOtherWeights();  ///< beside the sentence that those of what is set do not fit
  void offerAfterStop();
  void offerMissing(const SequenceChoice& choice,
                    const QStringList& cures);  ///< what may become of the missing cells of a file that was refused
  void nameModel();  ///< over its list, inspector and card: which it is, and that it is not shown where it is not
  void focusNextPart(bool back);
  void arrangeSides();
  void pickLayout(int index);
  void showCalm();
  void setCalm(bool calm);  ///< little beside the panels: three sliders, three models, few buttons
  void keepOnScreen();
  bool isNarrow() const;
  void resetLayout();
  void restoreLayout();
  void saveLayout() const;
  void endRestoring();
  void copyCommand();

  Look* look_;
  Options options_;
  std::optional<Setup> first_;
  WindowFrame* frame_;
  SessionController* session_;
  PanelArea* area_;
  LiteratureFeature* literature_ = nullptr;
  ComparingFeature* comparing_ = nullptr;
  TrainingFeature* training_ = nullptr;
  SequenceView* sequence_ = nullptr;
  CardView* card_ = nullptr;
  InspectorView* inspector_ = nullptr;
  Scrubber* scrubber_ = nullptr;
  std::vector<QAction*> fields_, calmHides_;  ///< of the tool bar: its boxes, and what a calm layout does not show
  std::vector<QAction*> fieldWords_;          ///< before the boxes of the tool bar; not shown where the window is narrow
  bool calm_ = false, narrow_ = false, sidesOwn_ = false, arrangingSides_ = false;
  QTimer sidesSoon_;
  QComboBox *device_ = nullptr, *form_ = nullptr, *precision_ = nullptr, *layout_ = nullptr;
  LoadedSequencePtr shownSequence_;
  QString inputScale_;  ///< of the model that is looked at: empty where it reads the input as it is
  std::optional<std::pair<SequenceChoice, Setup>> withSequence_;  ///< what is to be looked at on a sequence that is being loaded
  QStringList modelHas_;                                          ///< "gates", "states": by its card
  QString lookedAt_;                                              ///< the preset whose places the panels were told last
  QSet<QString> raised_;  ///< presets whose first place was raised: once is enough, afterwards the tabs are as they were left
  struct Raised {
    QString preset;
    QPointer<PanelDock> dock, before;  ///< what was raised for it, and what stood in front there
  };
  std::optional<Raised> leaves_;  ///< the next preset has `before` in front again, where nobody has picked another tab
  bool restored_ = false, sessionRestored_ = false, asks_ = true;
  bool misfit_ = false;  ///< the last run failed since its weights are others
};

}  // namespace reclab
