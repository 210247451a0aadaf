// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/window/main_window.h"

#include <QApplication>
#include <QComboBox>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QLabel>
#include <QMenu>
#include <QMenuBar>
#include <QMimeData>
#include <QScreen>
#include <QSettings>
#include <QStandardItemModel>
#include <QStyle>
#include <QToolBar>
#include <QToolButton>
#include <algorithm>
#include <utility>

#include "gui/comparing/comparing_feature.h"
#include "gui/docks/panel_area.h"
#include "gui/learning/training_feature.h"
#include "gui/literature/literature_feature.h"
#include "gui/literature/models_view.h"
#include "gui/session/kept_setup.h"
#include "gui/session/pins.h"
#include "gui/session/words.h"
#include "gui/views/card_view.h"
#include "gui/views/first_hint.h"
#include "gui/views/inspector_view.h"
#include "gui/views/scrubber.h"
#include "gui/views/sequence_view.h"
#include "gui/views/status_line.h"
#include "plain_text.h"
#include "trace/input_scale.h"

namespace reclab {
namespace {

/// Where they come from that are not drawn: a file, or a training; else empty.
QString weightsOf(const Setup& setup) {
  if (const LearnedPtr learned = setup.learnedWeights()) return MainWindow::tr("%1 steps of training").arg(learned->step);
  const auto file = setup.weights.find(setup.preset);
  return file == setup.weights.end() ? QString() : QString::fromStdString(file->second.string());
}

}  // namespace

MainWindow::MainWindow(Look* look, Options options, std::optional<Setup> first)
    : look_(look),
      options_(std::move(options)),
      first_(std::move(first)),
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
  addToolBarBreak(Qt::BottomToolBarArea);
  addToolBar(Qt::BottomToolBarArea, scrubber_);
  buildToolBar();
  buildMenus();
  connectSession();
  connect(look_, &Look::changed, card_, &CardView::redraw);
  qApp->installEventFilter(this);
  sidesSoon_.setSingleShot(true);
  sidesSoon_.setInterval(0);
  connect(&sidesSoon_, &QTimer::timeout, this, [this] {
    if (!sidesOwn_ && isNarrow() != narrow_) arrangeSides();
  });

  // Inside the screen, title bar and all; a small screen is filled.
  const QSize wanted(1600, 1000), room = screen()->availableSize() - QSize(4, style()->pixelMetric(QStyle::PM_TitleBarHeight) + 8);
  resize(wanted.boundedTo(room));
  if (wanted.boundedTo(room) != wanted) setWindowState(windowState() | Qt::WindowMaximized);
  session_->open(!options_.named() && !first_ && !QSettings().contains("session/restoring"));
}

MainWindow::~MainWindow() { qApp->removeEventFilter(this); }

ModelsView* MainWindow::models() const { return literature_->models(); }
MapWindow* MainWindow::mapWindow() const { return literature_->mapWindow(); }
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

  connect(frame_, &WindowFrame::docksMoved, this, [this] {
    if (!arrangingSides_) sidesOwn_ = true;
  });
  connect(literature_->models(), &ModelsView::allWanted, this,
          [this] { resizeDocks({frame_->docks()[0], frame_->docks()[2]}, {500, 400}, Qt::Vertical); });
  connect(frame_, &WindowFrame::modelPicked, this, [this](const QString& id) { lookAtPlaces(id, true); });
  connect(card_, &CardView::modelWanted, frame_, &WindowFrame::pickModel);
  connect(card_, &CardView::lookWanted, this, &MainWindow::lookAtPlace);
  connect(inspector_, &InspectorView::edited, this, &MainWindow::editSetting);
  connect(inspector_, &InspectorView::seedEdited, this, [this](quint64 seed, int gesture) {
    Setup after = session_->setup();
    after.seed = seed;
    frame_->change(after, tr("seed"), gesture);
  });
  connect(inspector_, &InspectorView::lossEdited, this, [this](const QString& loss) {
    Setup after = session_->setup();
    after.loss = loss.toStdString();
    if (after.loss != session_->setup().loss) frame_->change(after, tr("loss"));
  });
  connect(inspector_, &InspectorView::trainedWanted, this, &MainWindow::showTrained);
  connect(inspector_, &InspectorView::resetWanted, this, [this] {
    Setup after = session_->setup();
    after.set.erase(after.preset);
    frame_->change(after, tr("back to the preset"));
  });
  connect(sequence_, &SequenceView::openWanted, this, [this] { action("open")->trigger(); });
  connect(sequence_, &SequenceView::chosen, session_, &SessionController::loadSequence);
}

void MainWindow::buildToolBar() {
  auto* bar = addToolBar(tr("Run"));
  bar->setObjectName("toolbar");
  bar->setMovable(false);
  bar->setIconSize({16, 16});
  bar->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);

  auto* run = frame_->add("run", "run", tr("Run"), QKeySequence(Qt::Key_F5), [this] { session_->run(); });
  run->setToolTip(tr("Run once more, in full (F5)"));
  auto* stop = frame_->add("stop", "stop", tr("Stop"), QKeySequence(Qt::Key_Escape), [this] { session_->stop(); });
  stop->setToolTip(tr("Stop what is running, and pause what trains (Esc); what is shown stays"));
  auto* primary = new QToolButton(bar);  // not of the action: its icon stands on the accent, the menu's does not
  primary->setObjectName("primary");
  primary->setIcon(icon("run", QPalette::HighlightedText));
  primary->setText(run->text());
  primary->setToolTip(safeTip(run->toolTip()));
  primary->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  connect(primary, &QToolButton::clicked, run, &QAction::trigger);
  calmHides_.push_back(bar->addWidget(primary));
  bar->addAction(stop);
  bar->addActions(frame_->offered(ActionPlace::barTrain));
  bar->addSeparator();

  const auto field = [&](const QString& name, const QString& tip) {
    auto* words = label(name, "muted", bar);
    words->setContentsMargins(6, 0, 4, 0);
    fieldWords_.push_back(bar->addWidget(words));
    auto* box = new QComboBox(bar);
    box->setToolTip(safeTip(tip));
    box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    fields_.push_back(bar->addWidget(box));
    return box;
  };
  device_ =
      field(tr("Device"), tr("Where the next run computes; auto: on a CUDA device what is float32 and large enough, all else on the CPU"));
  device_->addItem(tr("auto"), "auto");
  device_->addItem(tr("CPU"), "cpu");
  device_->addItem(tr("CUDA"), "cuda");
  form_ = field(tr("Form"), tr("How the recurrence is computed: all of them give the same numbers, at different speeds"));
  form_->addItem(tr("auto"), "auto");
  form_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);  // one width for every model's forms
  form_->setMinimumContentsLength(11);
  precision_ = field(tr("Precision"), tr("float64 for science, float32 for speed"));
  precision_->addItem("float64", "f64");
  precision_->addItem("float32", "f32");
  const auto pick = [this](QComboBox* box, std::string Setup::* field_, const QString& text) {
    connect(box, &QComboBox::activated, this, [this, box, field_, text](int index) {
      Setup after = session_->setup();
      after.*field_ = box->itemData(index).toString().toStdString();
      if (after.*field_ != session_->setup().*field_) frame_->change(after, text);
    });
  };
  pick(device_, &Setup::device, tr("device"));
  pick(form_, &Setup::form, tr("form"));
  pick(precision_, &Setup::dtype, tr("precision"));
  layout_ = field(tr("Layout"), tr("Which panels are shown, and where"));
  for (const PanelLayout& one : area_->layouts()) layout_->addItem(one.name);
  calmHides_.insert(calmHides_.end(), fields_.begin(), fields_.end() - 1);
  connect(layout_, &QComboBox::activated, this, &MainWindow::pickLayout);
  bar->addSeparator();

  bar->addActions(frame_->offered(ActionPlace::barCompare));

  if (auto* more = bar->findChild<QToolButton*>("qt_toolbar_ext_button")) more->setIcon(icon("menu"));  // what there is no room for
  for (QToolButton* button : bar->findChildren<QToolButton*>())
    button->setFocusPolicy(Qt::TabFocus);  // a tool bar takes the keyboard from them
}

void MainWindow::editSetting(const QString& key, const QString& text, bool live, int gesture) {
  Setup after = session_->setup();
  after.setValue(key.toStdString(), text.toStdString());
  area_->holdAxes(live);
  session_->setFollowed(live ? area_->waitedFor() : Kinds());
  frame_->change(after, tr("%1 of %2").arg(key, QString::fromStdString(after.preset)), gesture, live);
}

void MainWindow::connectSession() {
  connect(session_, &SessionController::libraryReady, this, &MainWindow::begin);
  connect(session_, &SessionController::setupChanged, this, &MainWindow::showSetup);
  connect(session_, &SessionController::modelDescribed, this, &MainWindow::showModel);
  connect(session_, &SessionController::traceChanged, this, &MainWindow::showTrace);
  connect(session_, &SessionController::said, frame_, &WindowFrame::say);
  connect(frame_, &WindowFrame::said, this, &MainWindow::showBanner);
  connect(session_, &SessionController::progressed, frame_->status(), &StatusLine::setProgress);
  connect(session_, &SessionController::runningChanged, frame_->status(), &StatusLine::setRunning);
  connect(session_, &SessionController::sequenceLoaded, this, [this](const LoadedSequencePtr& loaded) {
    Setup after = withSequence_ && withSequence_->first == loaded->choice ? withSequence_->second : session_->setup();
    withSequence_.reset();
    after.sequence = loaded;
    const bool targetless = after.loss == "task" && loaded->sequence.target_kind == TargetKind::none;
    if (targetless) after.loss = "auto";
    if (session_->setup().sequence) {
      frame_->banner()->hide();
      if (loaded->choice.isFile) noteRecentFile(QString::fromStdString(loaded->choice.file));
      frame_->change(after, tr("sequence %1").arg(QString::fromStdString(loaded->sequence.name)));
    } else {
      session_->apply(after, false);  // the start is nothing to undo
    }
    if (targetless)
      frame_->say(tr("%1 has no target, so the loss is that of the last step.").arg(QString::fromStdString(loaded->sequence.name)),
                  Tone::warning);
  });
  connect(session_, &SessionController::sequenceRefused, this, [this] {
    // What was looked at last may be gone; then the window begins as it does the first time.
    if (session_->setup().sequence || !std::exchange(sessionRestored_, false)) return;
    connect(
        session_, &SessionController::runEnded, this, [this, why = frame_->banner()->sentence()] { frame_->banner()->show(why); },
        Qt::SingleShotConnection);
    session_->apply(beginning(options_, *session_->library()), false);
    session_->loadSequence(beginningSequence(options_, *session_->library()));
  });
  connect(session_, &SessionController::runEnded, this, &MainWindow::endRestoring);
  connect(session_, &SessionController::cellsMissing, this, &MainWindow::offerMissing);
  connect(session_, &SessionController::weightsMisfit, this, [this] {
    misfit_ = true;
    offerOtherWeights();
  });
  connect(session_, &SessionController::runningChanged, this, [this](bool running) {
    if (running) misfit_ = false;
  });
  connect(session_, &SessionController::runEnded, this, [this](Outcome outcome) {
    nameModel();
    if (outcome == Outcome::cancelled) offerAfterStop();
  });
  connect(session_, &SessionController::runningChanged, this, &MainWindow::nameModel);
  connect(inspector_, &InspectorView::edited, frame_->hint(), [this] { frame_->hint()->done(FirstHint::drag); });
  connect(scrubber_->strip(), &TimeStrip::stepPicked, frame_->hint(), [this] { frame_->hint()->done(FirstHint::scrub); });
  connect(session_, &SessionController::fileFits, this, [this](FileKind kind, const QString& preset, const QString& file) {
    Setup after = session_->setup();
    if (preset.toStdString() != after.preset) return;  // another model was picked meanwhile
    after.files(kind)[after.preset] = file.toStdString();
    if (kind == FileKind::weights) after.learned.erase(after.preset);
    frame_->banner()->hide();
    noteRecentFile(QFileInfo::exists(file) ? file : file.left(file.lastIndexOf(':')));  // of a part the file
    frame_->change(after, (kind == FileKind::weights ? tr("weights %1") : tr("initial state %1")).arg(QFileInfo(file).fileName()));
  });
  area_->setQuestions(
      {[this](Kind kind) { return session_->awaits(kind); }, [this](const TracePtr& trace) { return session_->nameOfFormer(trace); }});
  connect(session_, &SessionController::setupChanged, area_, &PanelArea::askAgain);
  connect(session_, &SessionController::awaitedChanged, area_, &PanelArea::askAgain);
  connect(frame_->time(), &TimeLink::stepChanged, session_, &SessionController::setFocus);
  connect(session_, &SessionController::sizesFit, this, [this](const QString& preset, const QString& file, const Settings& sizes) {
    QStringList words;
    for (const auto& [key, value] : sizes) words << QString::fromStdString(key + " " + value);
    frame_->banner()->offer(tr("Take its sizes: %1").arg(words.join(", ")), [this, preset, file, sizes] {
      Setup after = session_->setup();
      if (preset.toStdString() != after.preset) return;  // another model was picked meanwhile
      for (const auto& [key, value] : sizes) after.setValue(key, value);
      after.weights[after.preset] = file.toStdString();
      after.learned.erase(after.preset);
      frame_->banner()->hide();
      frame_->change(after, tr("weights %1 and their sizes").arg(QFileInfo(file).fileName()));
    });
  });
  connect(session_, &SessionController::partsFit, this, [this](const QString& preset, const QString& file, const QStringList& parts) {
    const auto load = [this, preset, file](const QString& part) {
      if (preset.toStdString() == session_->setup().preset) session_->loadFile(FileKind::weights, file + ":" + part);
    };
    if (parts.size() == 1) return frame_->banner()->offer(tr("Take its part %1").arg(parts[0]), [load, part = parts[0]] { load(part); });
    frame_->banner()->offer(tr("Choose a part…"), [this, load, parts] {
      auto* menu = new QMenu(this);
      menu->setObjectName("parts");
      menu->setAttribute(Qt::WA_DeleteOnClose);
      for (const QString& part : parts) connect(menu->addAction(buttonText(part)), &QAction::triggered, this, [load, part] { load(part); });
      menu->popup(frame_->banner()->mapToGlobal(frame_->banner()->rect().bottomRight()));
    });
  });
  connect(frame_->pins(), &Pins::changed, this, &MainWindow::tellCard);
  connect(comparing_, &ComparingFeature::keyboardFree, this, [this] { scrubber_->strip()->setFocus(Qt::OtherFocusReason); });
  connect(area_, &PanelArea::requested, session_, &SessionController::request);
  connect(session_, &SessionController::composed, area_, &PanelArea::setComposition);
  connect(session_, &SessionController::modelWanted, this, &MainWindow::openModel);
  // Panels count their gestures themselves, the inspector's are others.
  connect(session_, &SessionController::settingWanted, this, [this](const SettingChoice& setting) {
    editSetting(QString::fromStdString(setting.key), QString::fromStdString(setting.value), setting.live,
                setting.gesture > 0 ? setting.gesture + 1'000'000'000 : 0);
  });
  connect(session_, &SessionController::computing, area_, &PanelArea::setComputing);
  connect(session_, &SessionController::computed, area_, &PanelArea::setProgress);
  connect(session_, &SessionController::waits, area_, &PanelArea::setWaiting);
  connect(area_, &PanelArea::said, frame_, &WindowFrame::tell);
}

void MainWindow::begin() {
  sequence_->setLibrary(session_->library());
  if (const std::string& why = session_->library()->noCuda; !why.empty()) {
    const int cuda = device_->findData("cuda");
    qobject_cast<QStandardItemModel*>(device_->model())->item(cuda)->setEnabled(false);
    device_->setItemData(cuda, safeTip(QString::fromStdString(why)), Qt::ToolTipRole);
    device_->setToolTip(safeTip(tr("Where the next run computes. CUDA cannot be used: %1").arg(QString::fromStdString(why))));
    area_->setNoCuda(QString::fromStdString(why));
  }
  try {
    const Library& library = *session_->library();
    QSettings settings;
    std::optional<KeptSetup> kept;
    // Where the note is still there, the last start ended while it restored this.
    const GetLearned learned = [this](const QJsonObject& weights) { return session_->getLearned(weights); };
    if (!options_.named() && !settings.contains("session/restoring"))
      kept = keptSetup(settings.value("session/setup").toByteArray(), library, learned);
    settings.setValue("session/restoring", true);
    settings.sync();
    sessionRestored_ = kept.has_value();
    Setup setup = first_ ? *first_ : kept ? kept->setup : beginning(options_, library);
    if (kept && !first_) setup.sequence = session_->sequenceOf(kept->sequence);
    session_->apply(setup, false);
    if (kept && !first_) {
      QStringList unlearned;
      if (kept->unlearned) unlearned << QString::fromStdString(library.presets.find(setup.preset).title);
      for (const KeptPin& pin : keptPins(settings.value("session/pins").toByteArray(), library, learned)) {
        if (frame_->pins()->add(pin.setup, nullptr, {}, pin.given, pin.colour).isEmpty())
          session_->follow(frame_->pins()->pins().back().id, pin.training);
        if (pin.unlearned)
          unlearned << (pin.given.isEmpty() ? QString::fromStdString(library.presets.find(pin.setup.preset).title) : pin.given);
      }
      session_->trainOnWith(settings.value("session/training").toStringList());
      if (!unlearned.isEmpty())
        connect(
            session_, &SessionController::runEnded, this,
            [this, unlearned] {
              frame_->say(
                  tr("Weights that were learned are there no more, of: %1. These runs are untrained now, with weights drawn from the seed.")
                      .arg(unlearned.join(QStringLiteral(", "))),
                  Tone::warning);
            },
            Qt::SingleShotConnection);
    }
    if (!options_.model.isEmpty()) lookAtPlaces(QString::fromStdString(setup.preset), true);
    if (!setup.sequence) session_->loadSequence(kept ? kept->sequence : beginningSequence(options_, library));
  } catch (const Error& error) {
    frame_->say(inWindowWords(error), Tone::warning);
  }
}

void MainWindow::showSetup() {
  const Setup& setup = session_->setup();
  inspector_->setSeed(setup.seed);
  const QString weights = weightsOf(setup);
  inspector_->setWeights(weights);
  if (const ModelPtr& model = session_->model(); model && model->preset.id == setup.preset)
    area_->setSettings(settings_beside(model, weights));
  if (session_->library() && !setup.preset.empty()) {
    const Preset& preset = session_->library()->presets.find(setup.preset);
    inspector_->setTrained(preset.trained.has_value(), isTrained(setup, preset), weights.isEmpty());
  }
  tellCard();
  inspector_->setLoss(setup.loss, setup.sequence && setup.sequence->sequence.target_kind != TargetKind::none);
  if (session_->library() && lookedAt_ != QString::fromStdString(setup.preset)) lookAtPlaces(QString::fromStdString(setup.preset), false);
  const auto select = [](QComboBox* box, const std::string& value) {
    box->setCurrentIndex(std::max(0, box->findData(QString::fromStdString(value))));
  };
  select(device_, setup.device);
  select(form_, setup.form);
  select(precision_, setup.dtype);
  action("forget")->setEnabled(setup.learned.contains(setup.preset) || setup.weights.contains(setup.preset) ||
                               setup.states.contains(setup.preset));
  sequence_->setSequence(setup.sequence);
  nameInput();
}

/// The input's name over its editors, and by what the model multiplies it where it does.
void MainWindow::nameInput() {
  const LoadedSequencePtr& input = session_->setup().sequence;
  const QString scale = inputScale_.isEmpty() ? QString() : tr(" × %1").arg(inputScale_);
  for (FlatDock* dock : frame_->docks())
    if (dock->objectName() == "dock.sequence" && input) dock->header()->setHeadline(QString::fromStdString(input->sequence.name) + scale);
}

/// What the card says of a run it says of the preset's own, alone.
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
  // The time line is that of what is shown: a new sequence comes with its first pictures, not before.
  const LoadedSequencePtr& sequence = session_->setup().sequence;
  if (!sequence || sequence == shownSequence_) return;
  if (trace->info.input_sha256 != sequence->sequence.sha256 || trace->info.length != sequence->sequence.length) return;
  shownSequence_ = sequence;
  scrubber_->setPlaying(false);
  const bool first = frame_->time()->length() <= 1;
  frame_->time()->setLength(sequence->sequence.length);
  if (first) frame_->time()->setStep(sequence->sequence.length / 2);
  scrubber_->setSequence(sequence);
}

void MainWindow::showModel(const ModelPtr& model) {
  inspector_->setModel(model);
  card_->setModel(model);
  area_->setSettings(settings_beside(model, weightsOf(session_->setup())));
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
  // The forms that this model has.
  form_->clear();
  form_->addItem(tr("auto"), "auto");
  for (const auto& form : model->card.forms) form_->addItem(QString::fromStdString(form), QString::fromStdString(form));
  form_->setCurrentIndex(std::max(0, form_->findData(QString::fromStdString(session_->setup().form))));
}

void MainWindow::showTrace(const TracePtr& trace) {
  frame_->status()->setRun(trace);
  inspector_->setLossValue(trace->info);
  showTimeOf(trace);
  tellModelHas(trace);
  frame_->pins()->follow();
  comparing_->showRuns();
}

/// What was to be recorded and is not there, there is not: a card also lists what is kept between runs alone. Card and run come in either
/// order.
void MainWindow::tellModelHas(const TracePtr& trace) {
  QStringList has = modelHas_;
  if (trace && trace->info.preset == session_->setup().preset) {
    if (session_->asked().kinds.has(Kind::gate) && !trace->has(Kind::gate)) has.removeAll("gates");
    if (session_->asked().kinds.has(Kind::state) && !trace->has(Kind::state)) has.removeAll("states");
  }
  area_->setModelHas(has);
}

/// Panels are told what the preset says to look at; one that is closed stays closed. Raised is the first, when the user opens the model.
void MainWindow::lookAtPlaces(const QString& preset, bool raise) {
  if (!session_->library()) return;
  const auto& presets = session_->library()->presets.presets();
  const auto found = std::find_if(presets.begin(), presets.end(), [&](const Preset& one) { return one.id == preset.toStdString(); });
  if (found == presets.end()) return;
  lookedAt_ = preset;
  for (PanelDock* dock : area_->docks()) tellPlace(*found, dock->panel());
  if (leaves_ && leaves_->preset != preset) {
    const Raised leaves = *std::exchange(leaves_, std::nullopt);
    if (leaves.dock && leaves.before && leaves.dock->inSight() && !leaves.before->isHidden()) {
      leaves.before->raise();
      raised_.remove(leaves.preset);
    }
  }
  if (!raise || raised_.contains(preset) || found->look_at.empty()) return;
  raised_.insert(preset);
  PanelDock* first = area_->dock(QString::fromStdString(found->look_at.front()).section(':', 0, 0));
  if (first == nullptr || first->isHidden()) return;
  if (!first->inSight() && first->panel()->isOfRun())  // a place to work in, as the composer is, stays
    for (PanelDock* one : area_->docks())
      if (one->inSight() && area_->tabifiedDockWidgets(first).contains(one)) leaves_ = Raised{preset, first, one};
  first->raise();
}

/// A link of the card: the user wants to see this place, so its panel is opened where it is closed.
void MainWindow::lookAtPlace(const QString& place) {
  PanelDock* dock = area_->dock(place.section(':', 0, 0));
  if (dock == nullptr) return;
  area_->open(dock);
  dock->panel()->lookAt(QString::fromStdString(session_->setup().preset), place.section(':', 1), true);
}

void MainWindow::showBanner(const QString& sentence, Tone tone) {
  // As long as the weights of what is set do not fit, its ways out stay, whatever else is said.
  if (tone == Tone::warning) {
    frame_->banner()->show(sentence);
    if (misfit_) offerOtherWeights();
  } else if (tone == Tone::info && !misfit_) {
    frame_->banner()->hide();
  }
}

void MainWindow::openFile(const QString& file) {
  SequenceChoice choice;
  choice.isFile = true;
  choice.file = file.toStdString();
  choice.load.standardise = sequence_->wantsStandardised();
  session_->openFile(choice);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls() && event->mimeData()->urls().front().isLocalFile()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  const QList<QUrl> urls = event->mimeData()->urls();
  if (urls.isEmpty() || !urls.front().isLocalFile()) return;
  event->acceptProposedAction();
  openFile(urls.front().toLocalFile());
}

void MainWindow::showEvent(QShowEvent* event) {
  QMainWindow::showEvent(event);
  if (std::exchange(restored_, true)) return;
  restoreLayout();
  scrubber_->strip()->setFocus();                            // the keyboard begins with the time, not in a field for text
  QTimer::singleShot(200, this, &MainWindow::keepOnScreen);  // the frame is known once the window is on the screen
}

void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  if (restored_) emit frame_->roomChanged(narrow_);
  if (restored_ && !sidesOwn_ && isNarrow() != narrow_) sidesSoon_.start();
}

void MainWindow::closeEvent(QCloseEvent* event) {
  session_->stop();
  if (!training_->mayClose(asks_)) return event->ignore();
  saveLayout();
  endRestoring();
  QMainWindow::closeEvent(event);
}

void MainWindow::closeUnasked() {
  asks_ = false;
  close();
}

}  // namespace reclab
