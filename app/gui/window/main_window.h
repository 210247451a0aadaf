// SPDX-License-Identifier: GPL-3.0-or-later
// The window: it puts the parts together and passes on what they say. What is computed is the session's, what is shown the panels'.
#pragma once

#include <QMainWindow>
#include <QPointer>
#include <QSet>
#include <QTimer>
#include <optional>
#include <vector>

#include "gui/comparing/ready.h"
#include "gui/session/files.h"
#include "gui/session/session_controller.h"
#include "gui/start/options.h"
#include "gui/time/time_link.h"
#include "panel.h"

class QComboBox;
class QHBoxLayout;
class QMenu;
class QStackedWidget;
class QToolButton;
class QUndoStack;

namespace reclab {

class Banner;
class CardView;
class FirstHint;
class FlatDock;
class InspectorView;
class MapWindow;
class ModelsView;
class PanelArea;
class PanelDock;
class PinChip;
class PinRow;
class Pins;
class Scrubber;
class SequenceView;
class SideBySide;
class StatusLine;
class TrainingBar;

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  /// `first`: what to begin with when it is loaded already.
  explicit MainWindow(Look* look, Options options = {}, std::optional<Setup> first = {});
  ~MainWindow() override;

  /// How paths are asked for; tests answer themselves.
  void setFileChooser(FileChooser chooser);

  SessionController* session() const { return session_; }
  TimeLink* time() const { return time_; }
  ModelsView* models() const { return models_; }
  MapWindow* mapWindow() const { return mapWindow_; }  ///< null until it was asked for
  InspectorView* inspector() const { return inspector_; }
  SequenceView* sequenceView() const { return sequence_; }
  Scrubber* scrubber() const { return scrubber_; }
  TrainingBar* trainingBar() const { return training_; }
  PanelArea* area() const { return area_; }
  SideBySide* sideBySide() const { return side_; }  ///< null until it was asked for
  QMenu* compareMenu() const { return compare_; }
  Pins* pins() const { return pins_; }
  StatusLine* statusLine() const { return status_; }
  Banner* banner() const { return banner_; }
  FirstHint* hint() const { return hint_; }
  QUndoStack* undoStack() const { return undo_; }
  QAction* action(const QString& name) const;  ///< "open", "stop", "exportRun", ...

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
  QAction* add(const QString& name, const QString& iconName, const QString& text, const QKeySequence& keys, std::function<void()> does);
  void buildDocks();
  void buildToolBar();
  void buildMenus();
  void connectSession();
  void connectTraining();
  void train(std::int64_t steps = 0);  ///< so many; 0: to the end; or pauses what trains
  void tellLearning();
  void resetTraining();
  bool mayExportTraining(const QString& folder);
  bool mayLose(const QString& why);
  bool askAboutOldest();
  void begin();
  void change(const Setup& after, const QString& text, int gesture = 0, bool live = false);
  void showSetup();
  void showTrace(const TracePtr& trace);
  void tellModelHas(const TracePtr& trace);
  void showTimeOf(const TracePtr& trace);
  void showModel(const ModelPtr& model);
  void tellCard();
  void nameInput();
  void lookAtPlaces(const QString& preset, bool raise);
  void lookAtPlace(const QString& place);
  void pin();
  void showPins();
  PinChip* makeChip(std::size_t index);
  void comparePins();
  void buildCompareMenu();
  void fillCompareMenu();
  void compareRuns(const ReadyComparison& which);
  void unpinAll();
  ReadyComparison alongTraining() const;
  std::vector<Panel::Run> compared() const;
  void showSideBySide(bool on);
  void tellVisible();  ///< to the session, which panels are in sight
  void say(const QString& sentence, Tone tone);
  std::vector<Panel*> openPanels() const;
  void saveAllFigures(Panel::Format format);
  void exportData();
  void loadFile(FileKind kind);
  void saveFile(FileKind kind);
  void searchModels();
  void pickModel(const QString& id);
  void openModel(const ModelChoice& model);
  void editSetting(const QString& key, const QString& text, bool live, int gesture);
  void showTrained(bool trained);
  void offerOtherWeights();  ///< beside the sentence that those of what is set do not fit
  void offerAfterStop();
  void offerMissing(const SequenceChoice& choice,
                    const QStringList& cures);  ///< what may become of the missing cells of a file that was refused
  void nameModel();  ///< over its list, inspector and card: which it is, and that it is not shown where it is not
  void showMap(const QString& marked);
  void showLibrary();
  void focusNextPart(bool back);
  void arrangeSides();
  void pickLayout(int index);
  void showCalm();
  void setCalm(bool calm);  ///< little beside the panels: three sliders, three models, few buttons
  void keepOnScreen();
  bool isNarrow() const;
  void fitToolBar();  ///< as words or icons, as there is room
  void resetLayout();
  void restoreLayout();
  void saveLayout() const;
  void endRestoring();
  void copyCommand();

  Look* look_;
  Options options_;
  std::optional<Setup> first_;
  FileChooser chooser_ = dialogChooser();
  SessionController* session_;
  TimeLink* time_;
  QUndoStack* undo_;
  Pins* pins_;
  QStackedWidget* middle_ = nullptr;  ///< area_, or side_
  PanelArea* area_ = nullptr;
  SideBySide* side_ = nullptr;
  QMenu* compare_ = nullptr;
  ModelsView* models_ = nullptr;
  MapWindow* mapWindow_ = nullptr;
  SequenceView* sequence_ = nullptr;
  CardView* card_ = nullptr;
  InspectorView* inspector_ = nullptr;
  Scrubber* scrubber_ = nullptr;
  TrainingBar* training_ = nullptr;
  StatusLine* status_ = nullptr;
  Banner* banner_ = nullptr;
  FirstHint* hint_ = nullptr;
  std::vector<FlatDock*> docks_;              ///< models, sequence, inspector, card
  std::vector<QAction*> fields_, calmHides_;  ///< of the tool bar: its boxes, and what a calm layout does not show
  std::vector<QAction*> fieldWords_;          ///< before the boxes of the tool bar; not shown where the window is narrow
  bool calm_ = false, narrow_ = false, sidesOwn_ = false, arrangingSides_ = false;
  QTimer sidesSoon_;
  QComboBox *device_ = nullptr, *form_ = nullptr, *precision_ = nullptr, *layout_ = nullptr;
  PinRow* chips_ = nullptr;
  QToolButton *pinButton_ = nullptr, *compareButton_ = nullptr, *trainButton_ = nullptr;
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
