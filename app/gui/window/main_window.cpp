// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/window/main_window.h"

#include <QDragEnterEvent>
#include <QMenuBar>
#include <QScreen>
#include <QStyle>
#include <QTimer>
#include <algorithm>
#include <utility>

#include "gui/comparing/comparing_feature.h"
#include "gui/docks/flat_dock.h"
#include "gui/docks/panel_area.h"
#include "gui/frame/lab.h"
#include "gui/frame/lab_json.h"
#include "gui/learning/training_feature.h"
#include "gui/lessons/lessons_feature.h"
#include "gui/literature/literature_feature.h"
#include "gui/literature/models_view.h"
#include "gui/look/look.h"
#include "gui/opening/opening_feature.h"
#include "gui/palette/palette_feature.h"
#include "gui/results/results_feature.h"
#include "gui/session/pins.h"
#include "gui/sessions/sessions_feature.h"
#include "gui/streams/stream_feature.h"
#include "gui/views/card_view.h"
#include "gui/views/first_hint.h"
#include "gui/views/inspector_view.h"
#include "gui/views/scrubber.h"
#include "gui/views/sequence_view.h"
#include "gui/views/status_line.h"
#include "gui/window/arrangement.h"
#include "gui/window/changes.h"
#include "gui/window/file_menu.h"
#include "gui/window/keys.h"
#include "gui/window/last_session.h"
#include "gui/window/look_at.h"
#include "gui/window/menus.h"
#include "gui/window/run_bar.h"
#include "gui/window/ways_out.h"
#include "plot/parts/step_marks.h"
#include "plot/theme.h"
#include "trace/input_scale.h"

namespace reclab {
namespace {

constexpr int numbersEvery = 100;  ///< ms

}  // namespace

MainWindow::MainWindow(Look* look, Options options, std::optional<Setup> first)
    : layout_(options.layout),
      lesson_(options.lesson),
      frame_(new WindowFrame(this, look)),
      session_(frame_->session()),
      area_(frame_->area()) {
  setWindowTitle(tr("Recurrence Lab"));
  setAcceptDrops(true);
  setDockNestingEnabled(true);
  setAnimated(false);
  setContextMenuPolicy(Qt::PreventContextMenu);

  buildDocks();
  scrubber_ = new Scrubber(frame_->time(), this);
  comparing_ = new ComparingFeature(frame_);
  training_ = new TrainingFeature(frame_);
  streams_ = new StreamFeature(frame_);
  lessons_ = new LessonsFeature(frame_);
  results_ = new ResultsFeature(frame_);
  sessions_ = new SessionsFeature(frame_);
  addToolBarBreak(Qt::BottomToolBarArea);
  addToolBar(Qt::BottomToolBarArea, scrubber_);
  bar_ = new RunBar(frame_);
  addToolBar(bar_);
  keys_ = std::make_unique<Keys>(frame_, scrubber_);
  arrangement_ = new Arrangement(frame_, bar_);
  lookAt_ = new LookAt(frame_);
  lastSession_ = new LastSession(frame_, sessions_, std::move(options), std::move(first));
  new WaysOut(frame_);
  opening_ = new OpeningFeature(frame_);
  connect(opening_, &OpeningFeature::fileWanted, this, &MainWindow::openFile);
  connect(results_, &ResultsFeature::trainingWanted, opening_, &OpeningFeature::open);
  palette_ = new PaletteFeature(frame_);
  buildMenus();
  connectViews();
  connectSession();
  connectArea();

  // Inside the screen, title bar and all; a small screen is filled.
  const QSize wanted(1600, 1000), room = screen()->availableSize() - QSize(4, style()->pixelMetric(QStyle::PM_TitleBarHeight) + 8);
  resize(wanted.boundedTo(room));
  if (wanted.boundedTo(room) != wanted) setWindowState(windowState() | Qt::WindowMaximized);
  lastSession_->open();
}

MainWindow::~MainWindow() = default;

ModelsView* MainWindow::models() const { return literature_->models(); }
MapWindow* MainWindow::mapWindow() const { return literature_->mapWindow(); }
StreamView* MainWindow::streamView() const { return streams_->view(); }
TrainingBar* MainWindow::trainingBar() const { return training_->bar(); }
SideBySide* MainWindow::sideBySide() const { return comparing_->sideBySide(); }
QMenu* MainWindow::compareMenu() const { return comparing_->menu(); }

void MainWindow::buildDocks() {
  literature_ = new LiteratureFeature(frame_);
  sequence_ = new SequenceView(this);
  inspector_ = new InspectorView(this);
  card_ = new CardView(this);
  frame_->addDock("dock.sequence", tr("Sequence"), sequence_, Qt::LeftDockWidgetArea, 220);
  frame_->addDock("dock.inspector", tr("Inspector"), inspector_, Qt::RightDockWidgetArea, 250);
  frame_->addDock("dock.card", tr("Card"), card_, Qt::RightDockWidgetArea, 220);
}

void MainWindow::buildMenus() {
  auto* file = new FileMenu(frame_);
  menuBar()->addMenu(file);
  connect(file, &FileMenu::fileWanted, this, &MainWindow::openFile);
  addEditMenu(frame_);
  addViewMenu(frame_, arrangement_, keys_.get());
  addRunMenu(frame_, scrubber_);
  menuBar()->addMenu(lessons_->menu());
  addHelpMenu(frame_);
}

void MainWindow::connectViews() {
  const auto* changes = new Changes(frame_, inspector_);
  connect(changes, &Changes::unchanged, this, &MainWindow::showSetup);
  connect(literature_->models(), &ModelsView::allWanted, this,
          [this] { resizeDocks({frame_->docks()[0], frame_->docks()[2]}, {500, 400}, Qt::Vertical); });
  connect(card_, &CardView::modelWanted, frame_, &WindowFrame::pickModel);
  connect(card_, &CardView::lookWanted, lookAt_, &LookAt::open);
  connect(frame_->look(), &Look::changed, card_, &CardView::redraw);
  connect(sequence_, &SequenceView::openWanted, this, [this] { action("open")->trigger(); });
  connect(sequence_, &SequenceView::chosen, session_, &SessionController::loadSequence);
  connect(frame_, &WindowFrame::calmChanged, inspector_, &InspectorView::setFew);
  connect(inspector_, &InspectorView::edited, frame_->hint(), [this] { frame_->hint()->done(FirstHint::drag); });
  connect(frame_->hint(), &FirstHint::wanted, this, [this](FirstHint::Gesture gesture) {
    if (gesture == FirstHint::train) action("train")->trigger();
    if (gesture == FirstHint::drag) inspector_->takeKeyboard();
  });
  connect(frame_->time(), &TimeLink::stepChanged, session_, &SessionController::setFocus);
  connect(comparing_, &ComparingFeature::keyboardFree, this, [this] { scrubber_->strip()->setFocus(Qt::OtherFocusReason); });
  connect(frame_->pins(), &Pins::changed, this, &MainWindow::tellCard);
}

void MainWindow::connectSession() {
  numbersSoon_.setSingleShot(true);
  numbersSoon_.setInterval(numbersEvery);
  connect(&numbersSoon_, &QTimer::timeout, this, &MainWindow::tellNumbers);
  connect(session_, &SessionController::libraryReady, this, &MainWindow::begin);
  connect(sessions_, &SessionsFeature::refused, lastSession_, &LastSession::beginWithout);
  connect(session_, &SessionController::setupChanged, this, &MainWindow::showSetup);
  connect(session_, &SessionController::streamChanged, this, [this] {
    if (session_->streams()) sequence_->setNext(session_->setup().sequence);
  });
  connect(session_, &SessionController::modelDescribed, this, &MainWindow::showModel);
  connect(session_, &SessionController::traceChanged, this, &MainWindow::showTrace);
  connect(session_, &SessionController::said, frame_, &WindowFrame::say);
  connect(session_, &SessionController::progressed, frame_->status(), &StatusLine::setProgress);
  connect(session_, &SessionController::runningChanged, frame_->status(), &StatusLine::setRunning);
  connect(session_, &SessionController::runEnded, this, &MainWindow::nameModel);
  connect(session_, &SessionController::runningChanged, this, &MainWindow::nameModel);
}

void MainWindow::connectArea() {
  area_->setQuestions(
      {[this](Kind kind) { return session_->isPending(kind); }, [this](const TracePtr& trace) { return session_->nameOfFormer(trace); }});
  connect(session_, &SessionController::setupChanged, area_, &PanelArea::askAgain);
  connect(session_, &SessionController::pendingChanged, area_, &PanelArea::askAgain);
  // The description is asked for with the run, and comes as that begins.
  connect(session_, &SessionController::modelDescribed, area_, &PanelArea::begin);
  connect(session_, &SessionController::runEnded, area_, &PanelArea::begin);
  connect(area_, &PanelArea::requested, session_, &SessionController::request);
  connect(session_, &SessionController::studied, area_, &PanelArea::setResult);
  connect(session_, &SessionController::studyMoved, area_, &PanelArea::setStudyState);
  connect(area_, &PanelArea::said, frame_, &WindowFrame::tell);
}

void MainWindow::begin() {
  sequence_->setLibrary(session_->library());
  if (const QString why = QString::fromStdString(session_->library()->noCuda); !why.isEmpty()) {
    bar_->setNoCuda(why);
    area_->setNoCuda(why);
  }
  lastSession_->begin();
  lessons_->begin(lesson_);
}

void MainWindow::showSetup() {
  const Setup& setup = session_->setup();
  inspector_->setSeed(setup.seed);
  const QString weights = weightsInWords(setup);
  inspector_->setWeights(weights);
  if (const ModelPtr& model = session_->model(); model && model->preset.id == setup.preset)
    area_->setSettings(settings_beside(model, weights));
  if (session_->library() && !setup.preset.empty()) {
    const Preset& preset = session_->library()->presets.find(setup.preset);
    inspector_->setTrained(preset.trained.has_value(), isTrained(setup, preset), weights.isEmpty());
  }
  tellCard();
  inspector_->setLoss(to_string(setup.loss), setup.sequence && setup.sequence->sequence.target_kind != TargetKind::none);
  bar_->showSetup(setup);
  action("forget")->setEnabled(setup.learned.contains(setup.preset) || setup.weights.contains(setup.preset) ||
                               setup.states.contains(setup.preset));
  sequence_->setSequence(setup.sequence);
  nameInput();
}

/// Shows the input's name over its editors, and the model's scale of it where there is one.
void MainWindow::nameInput() {
  const LoadedSequencePtr& input = session_->setup().sequence;
  const QString scale = inputScale_.isEmpty() ? QString() : tr(" × %1").arg(inputScale_);
  for (FlatDock* dock : frame_->docks())
    if (dock->objectName() == "dock.sequence" && input) dock->header()->setHeadline(QString::fromStdString(input->sequence.name) + scale);
}

/// The card's sentences about a run hold for the preset's own run alone.
void MainWindow::tellCard() {
  const Setup& setup = session_->setup();
  if (!session_->library() || setup.preset.empty()) return;
  const Preset& preset = session_->library()->presets.find(setup.preset);
  QString other;
  if (!isOwnRun(setup, preset) || !frame_->pins()->pins().empty()) {
    const Preset own = isTrained(setup, preset) ? as_trained(preset) : preset;
    other = tr("In grey: what is to be seen in the preset's own run, on the task %1 with %2 steps, with its own settings, seed 1 and "
               "nothing pinned. What is shown now is not that run.")
                .arg(QString::fromStdString(own.task).replace('_', ' '))
                .arg(own.task_length);
  }
  card_->setOtherRun(other);
}

void MainWindow::showTimeOf(const TracePtr& trace) {
  // The time line is that of the shown run: a new sequence comes with its first pictures, not before.
  const LoadedSequencePtr& sequence = session_->setup().sequence;
  if (!sequence || sequence == shownSequence_) return;
  if (trace->info.input_sha256 != sequence->sequence.sha256 || trace->info.length != sequence->sequence.length) return;
  shownSequence_ = sequence;
  scrubber_->setPlaying(false);
  const bool first = frame_->time()->length() <= 1;
  frame_->time()->setLength(sequence->sequence.length);
  if (first) frame_->time()->setStep(sequence->sequence.length / 2);
  scrubber_->setSequence(sequence, numbersSoon_.isActive());
  if (sequence->marks != shownMarks_) area_->setStepMarks(shownMarks_ = sequence->marks);
}

void MainWindow::showModel(const ModelPtr& model) {
  inspector_->setModel(model);
  card_->setModel(model);
  area_->setSettings(settings_beside(model, weightsInWords(session_->setup())));
  sequence_->setModelTask(model->preset);
  inputScale_.clear();
  for (const HyperSpec& row : model->hyper.table())
    if (scales_input(row.key) && model->hyper.text(row.key) != "1") inputScale_ = QString::fromStdString(model->hyper.text(row.key));
  scrubber_->setInputScale(inputScale_);
  sequence_->setInputScale(inputScale_);
  nameInput();
  modelHas_.clear();
  if (!model->card.gates.empty()) modelHas_ << "gates";
  if (!model->card.states.empty()) modelHas_ << "states";
  tellModelHas(session_->trace());
  nameModel();
  bar_->setForms(model->card.forms);
}

void MainWindow::tellNumbers() {
  const TracePtr& trace = session_->trace();
  frame_->status()->setRun(trace);
  if (trace) inspector_->setLossValue(trace->info);
  scrubber_->tell();
  nameInput();
}

void MainWindow::showTrace(const TracePtr& trace) {
  showTimeOf(trace);
  if (!session_->streams()) {
    numbersSoon_.stop();
    tellNumbers();
  } else if (!numbersSoon_.isActive()) {
    numbersSoon_.start();
  }
  tellModelHas(trace);
  frame_->pins()->follow();
  comparing_->showRuns();
}

/// A requested kind without arrays is struck from the card's list, which also names values kept only between runs. Card and run come in
/// either order.
void MainWindow::tellModelHas(const TracePtr& trace) {
  QStringList has = modelHas_;
  if (trace && trace->info.preset == session_->setup().preset) {
    if (session_->asked().kinds.has(Kind::gate) && !trace->has(Kind::gate)) has.removeAll("gates");
    if (session_->asked().kinds.has(Kind::state) && !trace->has(Kind::state)) has.removeAll("states");
  }
  area_->setModelHas(has);
}

void MainWindow::nameModel() {
  const ModelPtr& model = session_->model();
  const QString why = session_->library() ? session_->whyNotShown() : QString(),
                title = model ? QString::fromStdString(model->preset.title) : QString();
  for (FlatDock* dock : frame_->docks()) {
    const QString id = dock->objectName();
    if (id == "dock.models")
      dock->header()->setHeadline(
          why.isEmpty() ? QString()
                        : tr("%1 is not shown: %2")
                              .arg(QString::fromStdString(session_->library()->presets.find(session_->setup().preset).title), why));
    else if (id == "dock.inspector" || id == "dock.card")
      dock->header()->setHeadline(why.isEmpty() ? title : tr("%1, not shown").arg(title));
  }
}

void MainWindow::openFile(const QString& file) {
  if (isSessionFile(file)) return sessions_->open(file);
  if (results_->open(file) || opening_->open(file)) return;
  SequenceChoice choice;
  choice.file = file.toStdString();
  choice.load.standardise = sequence_->wantsStandardised();
  session_->openFile(choice);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) { event->acceptProposedAction(); }

void MainWindow::dropEvent(QDropEvent* event) {
  event->acceptProposedAction();
  opening_->take(event->mimeData());
}

void MainWindow::showEvent(QShowEvent* event) {
  QMainWindow::showEvent(event);
  if (std::exchange(restored_, true)) return;
  frame_->lab()->restoreView(lastSession_->written());
  // Without the lesson that was left open, in a start that has other runs, its panels are no more those of a step.
  const WrittenView view = viewOf(lastSession_->written());
  std::optional<Arranged> before;
  if (!lastSession_->restores()) before = LessonsFeature::arrangedBefore(view.parts.value("lesson"));
  arrangement_->restore(layout_, before ? before : view.arranged);
  scrubber_->strip()->setFocus();                                     // the keyboard begins with the time, not in a field for text
  QTimer::singleShot(200, arrangement_, &Arrangement::keepOnScreen);  // the frame is known once the window is on the screen
}

void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  if (restored_) arrangement_->fitWindow();
}

void MainWindow::closeEvent(QCloseEvent* event) {
  session_->stop();
  if (!streams_->mayClose(asks_) || !training_->mayClose(asks_) || !sessions_->mayClose(asks_) || !lastSession_->mayClose(asks_))
    return event->ignore();
  lastSession_->end();
  sessions_->close();
  QMainWindow::closeEvent(event);
}

void MainWindow::closeUnasked() {
  asks_ = false;
  close();
}

}  // namespace reclab
