// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QString>
#include <QStringList>
#include <QVariantMap>
#include <QWidget>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "drawing.h"
#include "request.h"
#include "trace/study_result.h"
#include "trace/trace.h"

namespace reclab {

/// The base of all panels of the lab: a picture of a Trace at a time. A panel knows no model, no engine and no other panel. The window
/// gives it a trace and a time; its signals carry the mouse's requests.
class Panel : public QWidget {
  Q_OBJECT
 public:
  using QWidget::QWidget;

  virtual QString id() const = 0;     ///< "spectrum": used by presets' look_at, file names and settings
  virtual QString title() const = 0;  ///< "Spectrum"
  virtual QString hint() const = 0;   ///< one sentence for a newcomer, on the things to be seen here

  /// The run to show; null empties the panel. `pinned` are other runs shown beside it for comparison, colours as given by the window.
  struct Run {
    std::shared_ptr<const Trace> trace;  ///< not null
    QColor colour;
    QString label;
    QString tip = {};   ///< its differences from the run that is shown
    bool whole = true;  ///< false: more of it is to come, such as kinds that are computed late
  };
  virtual void setTrace(std::shared_ptr<const Trace> trace) = 0;
  /// The kinds of arrays that the picture is made of: they are recorded while the panel is in sight, and a trace with none of them has
  /// nothing for it. Empty: anything.
  virtual Kinds needs() const { return {}; }
  /// The kinds without which the chosen picture is not whole: while one of them is to come, the picture before stays. Empty: while all that
  /// it needs are to come.
  virtual Kinds waitsFor() const { return {}; }
  /// Whether the picture is of the run that is shown, and so dimmed and named where another one is set.
  virtual bool isOfRun() const { return true; }
  /// The model in the names of its picture's files, given the id of the current model: "lstm"; empty for a picture of no model.
  virtual QString fileModel(const QString& model) const { return isOfRun() ? model : QString(); }
  /// The run before, while more of the present one is to come: parts of the picture that the present one does not have yet are kept from
  /// it, dimmed. Null when all that will come is there. Given before the trace that it is for.
  virtual void setFormer(std::shared_ptr<const Trace> former) { Q_UNUSED(former); }
  /// While a slider is dragged value axes stay as they are, so that two settings can be compared by eye; one grows only where nothing could
  /// be seen.
  virtual void holdAxes(bool hold) { Q_UNUSED(hold); }
  virtual void setPinned(const std::vector<Run>& runs) { Q_UNUSED(runs); }
  /// The run that is shown is drawn in this colour, by which it is told from those in panels beside this one.
  virtual void setOwnColour(const QColor& colour) { Q_UNUSED(colour); }
  /// The cursor, a time step (0-based) of the sequence.
  virtual void setTime(std::int64_t step) = 0;
  /// The visible range of steps on every time axis.
  virtual void setTimeRange(std::int64_t first, std::int64_t last) {
    Q_UNUSED(first);
    Q_UNUSED(last);
  }

  /// Chooses the part of the picture that a preset names: "forget", a gate; "lines:h", a view and a state. It is shown as soon as that
  /// preset's run is, unless something else was chosen by hand for it; `asked`: the user asks for it now, which overrides a choice by hand.
  virtual void lookAt(const QString& preset, const QString& detail, bool asked) {
    Q_UNUSED(preset);
    Q_UNUSED(detail);
    Q_UNUSED(asked);
  }

  /// The details that `lookAt` takes.
  struct Places {
    QStringList views;            ///< the first part, where it is a view: "lines"
    QString named, example = {};  ///< the kind of thing that a name is of, and one of them: "a state", "h"; empty: nothing is named
  };
  virtual Places places() const { return {}; }

  /// The progress of a study that is computed beside the run.
  virtual void setStudyState(const std::string& study, const StudyState& state) {
    Q_UNUSED(study);
    Q_UNUSED(state);
  }
  /// The result of a study that is no part of a run, a value of its own type: a Composition of "compose", Learning of "train". Or why there
  /// is none, a sentence.
  virtual void setResult(const std::string& study, const StudyResult& result, const QString& problem) {
    Q_UNUSED(study);
    Q_UNUSED(result);
    Q_UNUSED(problem);
  }
  /// A hyper-parameter of the model that is looked at, for a panel that offers it beside its picture and asks for another value with a
  /// SettingChoice.
  struct Setting {
    QString key, label, tip;                                      ///< the label in rich text
    QString value;                                                ///< as it is now
    QStringList choices = {};                                     ///< the values to choose from; none of a number
    std::function<double(int position)> at = {};                  ///< of a number: the value at a slider's position, 0 to 1000
    std::function<int(double value)> position = {};               ///< and back
    std::function<QString(double value)> text = {};               ///< as a SettingChoice takes it
    std::function<double(double value, int steps)> stepped = {};  ///< so many of its steps further
    bool works = true;                                            ///< false: it has no effect on the weights that there are
    QString why = {};                                             ///< a sentence, of one that has none
  };
  virtual void setSettings(const std::vector<Setting>& settings) { Q_UNUSED(settings); }
  /// Why CUDA cannot be used on this machine, a sentence.
  virtual void setNoCuda(const QString& why) { Q_UNUSED(why); }

  /// The one number that matters, for the header line: "|λ|max 0.997". Empty when there is nothing.
  virtual QString headline() const { return {}; }
  /// Why there is nothing to show, in words, or empty when there is something.
  virtual QString emptyReason() const = 0;

  /// Waits for the computation of the picture, if one is under way, and shows it: before a figure or the data are taken.
  virtual void finish() {}
  enum class Format { png, svg, pdf };
  /// The picture on the screen, as a drawing. Asked for only where there is something to show; a title, a caption and a cursor are in it
  /// where the style says so.
  virtual FigureDrawing drawing(const FigureStyle& style) = 0;
  /// Writes it into a file, vectors for SVG and PDF where the content is. Returns an empty string, or one sentence: the error, or the
  /// reason that there is nothing to show and so no file. Written under a temporary name and renamed.
  QString saveFigure(const QString& file, Format format, const FigureStyle& style = {});
  void copyFigure();  ///< to the clipboard: as a picture, as the screen has it, or why there is none
  /// The data behind the picture, with a header line, comma separated.
  virtual QString dataAsCsv() const = 0;

  /// The choices in the panel that are kept from one session to the next; empty for nothing. Anything may come back from a settings file.
  virtual QVariantMap choices() const { return {}; }
  virtual void setChoices(const QVariantMap& saved) { Q_UNUSED(saved); }

 signals:
  void timePicked(std::int64_t step);                           ///< a click or drag on a time axis
  void timeRangePicked(std::int64_t first, std::int64_t last);  ///< zoom or brush on a time axis
  void headlineChanged();
  void requested(const reclab::Request& request);  ///< something that is computed beside the run, when asked for
};

/// The description of a panel and its factory; the list is panels/panels.inc and nowhere else.
struct PanelInfo {
  QString id, title, hint;
  Kinds needs;
  Panel::Places places;
  std::function<Panel*(QWidget* parent)> make;
};
const std::vector<PanelInfo>& panels();
/// The fault of a place that a preset's look_at names, "names no panel ..."; empty when there is none. The names of gates and states are
/// not known here.
QString problem_of_place(const QString& place);
/// The kinds that panels of these names need together; all that a run records where one needs anything, or is not known.
Kinds needs_of(const QStringList& panels);

}  // namespace reclab
