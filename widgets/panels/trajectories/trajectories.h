// SPDX-License-Identifier: GPL-3.0-or-later
// The trajectory of the state: a tube through its principal components, all units as a map, chosen units as lines; and the past that it
// holds.
#pragma once

#include <QComboBox>
#include <QHash>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QStackedWidget>
#include <QStandardItemModel>
#include <QStringListModel>
#include <QThreadPool>
#include <QToolButton>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "panel.h"
#include "panels/described.h"
#include "scene/state_space.h"

class QBoxLayout;
class QCPRange;
class QSortFilterProxyModel;

namespace reclab {

class ColourBar;
class Heatmap;
class Legend;
class PastView;
class Plot;
class TrajectoryView;
class ValueAxis;

class TrajectoriesPanel : public Described<TrajectoriesPanel, Panel> {
  Q_OBJECT
 public:
  /// `openGl` false draws the three dimensions as on a machine without OpenGL.
  explicit TrajectoriesPanel(QWidget* parent = nullptr, bool openGl = true);
  ~TrajectoriesPanel() override;

  static PanelAbout describe() {
    return {
        .id = "trajectories",
        .title = tr("Trajectories"),
        .hint = tr("The way of the state through time: in 3-D along the directions in which it moves most, as a map of all units, or as "
                   "lines of a few; or, for a memory of polynomial coefficients, the past that it still holds. Drag turns the 3-D picture, "
                   "the wheel zooms, Shift and drag moves it, a double click puts it back, a click on the curve picks that time."),
        .needs = {Kind::state, Kind::signal, Kind::basis, Kind::reconstruction},
        .places = {.views = {"3-D", "map", "past", "lines"}, .named = tr("a state"), .example = "h"}};
  }
  void setTrace(std::shared_ptr<const Trace> trace) override;
  void holdAxes(bool hold) override;
  void setPinned(const std::vector<Run>& runs) override;
  void setOwnColour(const QColor& colour) override;
  void lookAt(const QString& preset, const QString& detail, bool asked) override;
  void setTime(std::int64_t step) override;
  void setTimeRange(std::int64_t first, std::int64_t last) override;
  QString headline() const override;
  QString emptyReason() const override;
  FigureDrawing drawing(const FigureStyle& style) override;
  QString dataAsCsv() const override;

  enum class View { scene, map, lines, past };
  void setView(View view);
  View view() const { return view_; }
  TrajectoryView* sceneView() const { return scene_; }
  Plot* mapPlot() const { return map_; }
  Plot* linesPlot() const { return lines_; }
  PastView* pastView() const { return past_; }
  /// Shows these columns of the state as lines, at most seven.
  void setLines(std::vector<std::int64_t> columns);
  /// Shows three columns (-1: time) in 3-D in place of the principal components.
  void setAxes(std::array<std::int64_t, 3> columns);
  const std::vector<std::int64_t>& lines() const { return chosen_; }
  void finish() override;

 private:
  void pickView(View view);  ///< by hand
  void rememberPlace();
  bool takePlace();
  void makeControls();
  void resizeEvent(QResizeEvent* event) override;
  void makeMap();
  void makeLines();
  void fillArrays();  ///< the choice of layer and array, from the trace
  void keepPast();    ///< when the past is looked at: in a state of this run that has one, or not at all
  void turnTo(View view);
  void chooseColumns();  ///< the columns of that choice, and a new picture unless it is there
  void request();        ///< a new picture of wanted_
  void take(StateColumns columns, StatePicture picture);
  std::vector<PinnedState> pinnedStates() const;  ///< of the chosen layer and array
  void drawPinnedLines(std::optional<QCPRange>& all);
  void turnPage();  ///< the page that view and picture call for
  void showMap();
  void showLines();
  void showPast();
  void fillUnits();
  void fillAxes();
  void takeReady();
  void applyRange();
  QString figureTitle() const;
  QSize figureSize() const;
  void drawScene(QCPPainter* painter, QSize size, const FigureStyle& style) const;
  QString timeName() const;

  std::shared_ptr<const Trace> trace_;
  std::vector<Run> pinned_;
  struct Place {
    View view;
    QString state;  ///< empty: any
  };
  QHash<QString, Place> chosen_by_hand_, wanted_places_;  ///< by preset: the picked place, and the one that it names
  QString placed_;                                        ///< the preset whose place was taken last
  StateColumns wanted_;                                   ///< as asked for last
  StateColumns columns_;                                  ///< of picture_
  StatePicture picture_;
  View view_ = View::scene;
  std::optional<View> left_for_preset_;  ///< the view before a preset's wish took its place
  bool pastWanted_ = false;              ///< it was looked at, and the run has none: the next that has one shows it
  std::int64_t step_ = 0, first_ = 0, last_ = -1;
  QString headline_;
  bool mapFresh_ = false, linesFresh_ = false, pastFresh_ = false;
  std::vector<std::int64_t> chosen_;  ///< columns shown as lines
  bool chosenByHand_ = false;
  QString structure_;  ///< of the columns that the choices were made for

  QToolButton *sceneButton_, *mapButton_, *linesButton_, *pastButton_, *unitsButton_;
  QComboBox *array_, *axes_;
  QWidget* axisRow_;
  QBoxLayout* viewRow_;
  QWidget* choiceRow_;  ///< the boxes of choices, under the views where both do not fit beside each other
  std::array<QComboBox*, 3> axis_{};
  QStringListModel* axisNames_;
  QStandardItemModel* units_;
  QSortFilterProxyModel* unitsFound_;
  QLineEdit* unitSearch_;
  QLabel *sentence_, *flat_, *unpinned_;  ///< unpinned_: that this view shows one run alone
  QStackedWidget* pages_;
  TrajectoryView* scene_;
  Plot *map_, *lines_;
  PastView* past_;
  Heatmap* heat_;
  ColourBar* bar_;
  Legend* legend_;
  ValueAxis* values_;  ///< of the lines

  // A picture that takes long is computed beside; a newer request stops and supersedes it.
  std::mutex mutex_;
  std::shared_ptr<std::pair<StateColumns, StatePicture>> ready_;
  std::stop_source stop_;
  bool pending_ = false;
  QThreadPool pool_;  ///< last: it is waited for before anything above goes
};

}  // namespace reclab
