// SPDX-License-Identifier: GPL-3.0-or-later
// A QCustomPlot in the lab's style: themed by the palette, repainted at most 40 times a second, with time axes (in steps of the sequence)
// that share a cursor and a range, legends to click, and figures to save.
#pragma once

#include <qcustomplot.h>

#include <QElapsedTimer>
#include <QPointer>
#include <QSet>
#include <QTimer>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "panel.h"
#include "plot/figure.h"
#include "plot/theme.h"
#include "plot/tickers.h"

namespace reclab {

/// Text that wraps at the width of the plot, as a row of its layout. It gives way to the picture where the plot is low (Plot::roomFor).
class Paragraph : public QCPLayoutElement {
  Q_OBJECT
 public:
  explicit Paragraph(QCustomPlot* plot);
  /// `on_screen` follows it where this is no figure: a hint on the mouse.
  void setText(const QString& text, bool muted = false, const QString& on_screen = {});
  void setSmall(bool small) { small_ = small, width_ = -1; }
  QString text() const;
  /// It is cut to one line where the picture has not its share (Plot::setShareOfPicture), before legends are, and is left out after them.
  void setBrief(bool brief) { brief_ = brief; }
  bool brief() const { return brief_; }
  int wantedHeight() const;  ///< with all of its lines, at the width of the plot
  int lineHeight() const;    ///< with one; 0 when it is empty
  QSize minimumOuterSizeHint() const override;
  QSize maximumOuterSizeHint() const override;

 protected:
  void draw(QCPPainter* painter) override;

 private:
  QString text_, on_screen_;
  bool muted_ = false, small_ = false, brief_ = false;
  mutable int width_ = -1, height_ = 0;  ///< wantedHeight() at a width, kept from one layout to the next
  mutable bool in_figure_ = false;       ///< and in which of both
};

/// The text on the step at the cursor.
class CursorText : public Paragraph {
 public:
  explicit CursorText(QCustomPlot* plot) : Paragraph(plot) { setLayer(QStringLiteral("overlay")); }
  /// The plot is laid out anew only where the text takes another height.
  void say(const QString& text, bool muted = true);
};

/// The names of curves in a row that wraps. A click on one hides its curves; they stay hidden when the entries are made anew. Where the
/// plot is low it is one line with as many as fit, or nothing (Plot::roomFor).
class Legend : public QCPLayoutElement {
  Q_OBJECT
 public:
  explicit Legend(QCustomPlot* plot);
  void clear();
  /// `key` identifies a hidden entry, `tip` explains it.
  void add(const QString& key, const QString& text, const QPen& pen, const QList<QCPLayerable*>& shows, const QString& tip = {});
  QString tipAt(const QPointF& position) const;
  /// Hides or shows the entry under the position. False when there is none.
  bool toggleAt(const QPointF& position);
  bool contains(const QPointF& position) const;
  /// The last place of an entry, in the plot's pixels; null when there is no such entry.
  QRect placeOf(const QString& key) const;
  int wantedHeight() const;                        ///< with all of its lines, at the width of the plot
  int lineHeight() const;                          ///< with one; 0 when it is empty
  QString namesAsHtml(bool left_out_alone) const;  ///< one a line, with their colours
  QSize minimumOuterSizeHint() const override;
  QSize maximumOuterSizeHint() const override;

 protected:
  void draw(QCPPainter* painter) override;

 private:
  struct Entry {
    QString key, text, tip;
    QPen pen;
    QList<QPointer<QCPLayerable>> shows;
    QRect place;  // relative to the legend; null where there was no room for it
  };
  int arrange(int width, bool one_line) const;  // places the entries, returns the height
  QString shownText(const Entry& entry) const;  // cut where its place is too narrow
  mutable std::vector<Entry> entries_;
  mutable QRect more_;  ///< "and 3 more", where not all are shown
  mutable int width_ = -1, height_ = 0;
  QSet<QString> hidden_;
};

class RoomyRect;
class TimeCursor;
class ValueAxis;

class Plot : public QCustomPlot {
  Q_OBJECT
 public:
  explicit Plot(QWidget* parent = nullptr);
  ~Plot() override;
  const Theme& theme() const { return theme_; }
  /// The colour that the run is known by among others; one that is not valid: it is looked at, and its curves have colours of their own.
  void setOwnColour(const QColor& colour);

  /// A new axis rect in our style (left and bottom axes, faint grid, as many ticks as there is room for), to be put into plotLayout() or
  /// a nested layout. `shape` is called when its size is known, and may set ranges.
  QCPAxisRect* makeRect(std::function<void()> shape = {});
  /// A curve in a rect, NaN where it has a gap. Thinned to the pixels when drawn. Its name(), if it has one, stands before its value at the
  /// cursor.
  QCPGraph* addCurve(QCPAxisRect* rect, const QColor& colour, double width = 1.5, Qt::PenStyle style = Qt::SolidLine);
  /// The cursor writes no value beside this curve.
  static void setQuiet(QCPGraph* graph) { graph->setProperty("quiet", true); }

  /// Makes the bottom axis of a rect a time axis. Values at the cursor are written by `format`.
  void addTimeRect(QCPAxisRect* rect, std::function<QString(double)> format = {});
  /// Sets the steps there are, and the names of their times. The visible range is kept when the extent is the one it was.
  void setTimeExtent(std::int64_t first, std::int64_t last);
  void setTimeNames(const Trace& trace);
  double timeSpacing() const { return time_spacing_; }  ///< of a step; 1 where times are not evenly spaced, and steps are counted
  bool timeIsSteps() const { return time_is_steps_; }
  std::int64_t numberOf(std::int64_t step) const { return first_number_ + step; }  ///< by which a step is called
  /// Whether steps are counted back from the last one, which is how runs of other lengths are compared. Where it is offered, a click on the
  /// name of the time axis changes it.
  void setLag(bool lag);
  bool lag() const { return lag_; }
  void offerLag() { lag_offered_ = true; }
  /// The place of the link beside the name of the time axis, where a click counts steps the other way; null where there is no room for it,
  /// and in figures.
  QRect lagLinkPlace() const;
  QString lagLink() const;  ///< its text
  void setTimeRange(std::int64_t first, std::int64_t last);
  /// The ends of its time axis, in its pixels, as it would be drawn alone; nothing where no time axis is seen.
  struct TimeSpan {
    int left = 0, right = 0;
  };
  std::optional<TimeSpan> timeSpan() const;
  /// Narrows the time axis at both ends, so that it stands above that of another plot (AlignedTimes). A figure is drawn without.
  void setTimeInset(int left, int right);
  std::int64_t firstStep() const { return first_; }
  std::int64_t lastStep() const { return last_; }
  void setCursorStep(std::int64_t step);
  std::int64_t cursorStep() const { return cursor_; }

  /// Repaints everything, or only the parts that move with the cursor (the layers "now" and "overlay"); before the window is painted next,
  /// and at most 40 times a second. A plot that is hidden or behind others is drawn when it is seen.
  void redraw();
  void redrawNow();

  /// Sets the action of a double click on an axis rect that is not a time axis.
  void setResetHandler(std::function<void()> reset) { reset_ = std::move(reset); }
  /// Sets the tooltip of a position: plain text, or an htmlTip(); empty for none.
  void setHoverHandler(std::function<QString(const QPointF&)> hover) { hover_ = std::move(hover); }

  /// Makes the left axis of a rect one that can be held, locked and zoomed; the panel gives its ranges to it.
  ValueAxis* addValueAxis(QCPAxisRect* rect);
  void holdValues(bool hold);  ///< of all such axes

  /// The one rule by which a low plot leaves parts out, so that the picture keeps its height: texts from the last to the first, then
  /// legends but for one line, then these. A tooltip on the dots in the corner names the parts left out.
  enum class Room { all, line, none };
  /// The height that the picture keeps, axes with it; where none is said, 120 pixels inside them.
  void setLeastPicture(int height) { least_picture_ = height; }
  /// The share of the plot's height that the picture keeps as long as the texts beside it can be shortened.
  void setShareOfPicture(double share) { share_ = share; }
  Room roomFor(const QCPLayoutElement* one) const;
  QString leftOut() const;     ///< in rich text; empty when everything is shown
  QRect leftOutPlace() const;  ///< where a mark says that something is

  /// The plot laid out for a figure: nothing is left out for want of room, and the style says whether the parts at the cursor are in it.
  FigureDrawing drawing(const FigureText& text, const FigureStyle& style);
  /// Sets the height of a picture alone, in widths where it is a column wide; two pictures above each other are the higher.
  void setFigureShape(double height) { figure_shape_ = height; }
  /// Something that is drawn at the cursor, and so is in a figure only where the cursor is.
  void addCursorMark(QCPLayerable* mark) { cursor_marks_.append(mark); }
  bool drawsCursor() const { return !figure_ || figure_->cursor; }
  bool drawsFigure() const { return figure_.has_value(); }

  QSize minimumSizeHint() const override { return {120, 80}; }
  QSize sizeHint() const override { return {420, 280}; }

 signals:
  void timePicked(std::int64_t step);
  void timeRangePicked(std::int64_t first, std::int64_t last);
  void timeRangeChanged();  ///< by hand or by code
  void themeChanged();
  void curvesToggled();  ///< a legend was clicked
  void lagChanged(bool lag);
  void timeSpanChanged();

 protected:
  void updateLayout() override;
  void changeEvent(QEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;

 private:
  friend class TimeCursor;
  friend class RoomyRect;
  struct TimeRect {
    QPointer<QCPAxisRect> rect;
    std::function<QString(double)> format;
  };
  /// The texts and legends beside the pictures, the height that all of them want, and the height that the pictures leave them.
  struct Beside {
    std::vector<const Paragraph*> texts;
    std::vector<const Legend*> legends;
    int wanted = 0, room = 0;
    int fair = 0;  ///< the height that is left where the picture has its share; `room` where none is said
  };
  Beside beside() const;
  enum class Drag { none, pending, scrub, zoom, pan, values };

  void addMarks();
  void applyTheme();
  void styleAxis(QCPAxis* axis);
  void schedule();
  void flush();
  QCPAxisRect* timeRectAt(const QPointF& position) const;
  Legend* legendAt(const QPointF& position) const;
  std::int64_t stepAt(double x) const;
  double coordAt(double x) const;
  void toggle(Legend* legend_hit);
  void nameTime();
  bool onTimeName(const QPointF& position) const;
  ValueAxis* valueAxisAt(const QPointF& position) const;
  void pickRange(double first, double last);
  QMargins insetOf(const QCPAxisRect* rect) const;
  void tellTimeSpan();
  QSize figureSize(const FigureStyle& style);
  void asFigure(const FigureStyle& style, const std::function<void()>& draw);
  void drawFigure(QCPPainter* painter, const QString& title, const FigureStyle& style);

  Theme theme_;
  QList<TimeRect> time_rects_;
  QList<QPointer<QCPAxisRect>> made_;
  QSharedPointer<StepTicker> step_ticker_;
  std::int64_t extent_first_ = 0, extent_last_ = -1, first_ = 0, last_ = 0, cursor_ = -1;
  Drag drag_ = Drag::none;
  QPointF press_;
  double pan_first_ = 0, pan_last_ = 0, band_from_ = 0, band_to_ = 0;
  QList<ValueAxis*> value_axes_;
  ValueAxis* moved_ = nullptr;  ///< the value axis that is being dragged
  QString time_name_;
  double time_origin_ = 0.0, time_spacing_ = 1.0;
  bool time_is_steps_ = true;
  std::int64_t first_number_ = 0;  ///< by which step 0 is called: of a stream's last steps, that of the stream
  bool lag_ = false, lag_offered_ = false;
  QMargins inset_;
  QMargins laid_inset_;  ///< that with which the rects lie where they do: another may wait for the next layout
  std::optional<TimeSpan> told_;
  std::optional<FigureStyle> figure_;  ///< while one is drawn
  double figure_shape_ = 0.62;
  QList<QPointer<QCPLayerable>> cursor_marks_;
  int least_picture_ = 0;
  double share_ = 0.0;
  bool dirty_ = false, now_dirty_ = false, scheduled_ = false, handled_press_ = false;
  QTimer timer_;
  QElapsedTimer since_flush_;
  std::function<void()> reset_;
  std::function<QString(const QPointF&)> hover_;
};

inline const Theme& themeOf(const QCustomPlot* plot) { return static_cast<const Plot*>(plot)->theme(); }

}  // namespace reclab
