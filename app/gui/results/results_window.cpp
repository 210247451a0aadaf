// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/results/results_window.h"

#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QCloseEvent>
#include <QComboBox>
#include <QDir>
#include <QDragEnterEvent>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QMenu>
#include <QMimeData>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QSettings>
#include <QShortcut>
#include <QSpinBox>
#include <QStackedWidget>
#include <QToolButton>
#include <QUrl>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "experiment/command/command.h"
#include "experiment/command/typed_run.h"
#include "files/files.h"
#include "gui/look/look.h"
#include "gui/results/picture/result_picture.h"
#include "gui/session/sentences.h"
#include "plain_text.h"
#include "plot/figure.h"
#include "window_text.h"

namespace reclab {
namespace {

constexpr int watchEvery = 700;         // ms, at least
constexpr double shareOfReading = 5.0;  // a table is read again after so many times as long as that took
constexpr int mostRows = 24;            // of a menu

const QString lastPlace = QStringLiteral("results/place");

struct ViewName {
  ResultView view;
  const char *name, *id;
};
constexpr ViewName views[] = {
    {ResultView::map, QT_TRANSLATE_NOOP("reclab::ResultsWindow", "Map"), "map"},
    {ResultView::curves, QT_TRANSLATE_NOOP("reclab::ResultsWindow", "Curves"), "curves"},
    {ResultView::ranking, QT_TRANSLATE_NOOP("reclab::ResultsWindow", "Ranking"), "ranking"},
    {ResultView::points, QT_TRANSLATE_NOOP("reclab::ResultsWindow", "Points"), "points"},
    {ResultView::parallel, QT_TRANSLATE_NOOP("reclab::ResultsWindow", "Parallel axes"), "parallel"},
};

/// Of a word or a number of a table, which may be long.
void keepNarrow(QComboBox* box) {
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  box->setMinimumContentsLength(8);
}

void choose(QComboBox* box, const std::string& data) { box->setCurrentIndex(std::max(0, box->findData(QString::fromStdString(data)))); }
std::string dataOf(const QComboBox* box) { return box->currentData().toString().toStdString(); }

}  // namespace

ResultsWindow::ResultsWindow(const FileChooser* chooser, QWidget* parent) : QWidget(parent, Qt::Window), chooser_(chooser), worker_(5) {
  setObjectName("resultsWindow");
  setWindowTitle(tr("Results"));
  setAttribute(Qt::WA_StyledBackground);
  setAcceptDrops(true);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  auto* row = new QHBoxLayout;
  row->setContentsMargins(8, 8, 8, 8);
  row->setSpacing(4);
  column->addLayout(row);
  const auto button = [&](const char* name, const QString& iconName, const QString& text, const QString& tip) {
    auto* made = new QToolButton(this);
    made->setObjectName(QStringLiteral("results.") + name);
    made->setIcon(icon(iconName));
    made->setText(text);
    made->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    made->setToolTip(safeTip(tip));
    made->setFocusPolicy(Qt::TabFocus);
    row->addWidget(made);
    return made;
  };
  connect(button("open", "open", tr("Table…"),
                 tr("Open a table: CSV with a header line, as reclab sweep collect, capacity and evaluate write")),
          &QToolButton::clicked, this, [this] {
            if (!chooser_->open) return;
            const QString file = chooser_->open(this, tr("Open a table of results"), tr("Tables (*.csv);;All files (*)"));
            if (!file.isEmpty()) open(file);
          });
  connect(button("openSweep", "open", tr("Sweep…"),
                 tr("Open the folder of a sweep; it is looked at again as its cells are done, here or elsewhere")),
          &QToolButton::clicked, this, [this] {
            if (!chooser_->folder) return;
            const QString folder = chooser_->folder(this, tr("Open the folder of a sweep"), {});
            if (!folder.isEmpty()) open(folder);
          });
  connect(button("new", "task", tr("New sweep…"), tr("This run or training for many seeds, sizes, settings: a cell each")),
          &QToolButton::clicked, this, &ResultsWindow::newWanted);
  auto* shipped = button("atlases", "map", tr("Atlases"), tr("Tables that come with the program, each with the command that computes it"));
  shipped->setPopupMode(QToolButton::InstantPopup);
  auto* maps = new QMenu(shipped);
  maps->setToolTipsVisible(true);
  try {
    atlases_ = readAtlases(dataFile("atlases/atlases.json"));
  } catch (const Error& error) {
    shipped->setEnabled(false);
    shipped->setToolTip(safeTip(windowText(error)));
  }
  for (const Atlas& one : atlases_) maps->addAction(buttonText(one.title), this, [this, one] { open(one); })->setToolTip(safeTip(one.text));
  shipped->setMenu(maps);
  file_ = new ElidedLabel({}, this);
  file_->setProperty("role", "muted");
  row->addSpacing(8);
  row->addWidget(file_, 1);
  save_ = button("save", "image", tr("Save"), tr("Save the picture as a figure, or its numbers as a table"));
  save_->setPopupMode(QToolButton::InstantPopup);
  auto* saves = new QMenu(save_);
  saves->addAction(tr("Figure…"), this, &ResultsWindow::saveFigure)->setObjectName("results.saveFigure");
  saves->addAction(tr("Its numbers as CSV…"), this, &ResultsWindow::saveTable)->setObjectName("results.saveTable");
  save_->setMenu(saves);

  auto* halves = new QHBoxLayout;
  halves->setContentsMargins(8, 0, 8, 8);
  halves->setSpacing(8);
  column->addLayout(halves, 1);
  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setFocusPolicy(Qt::NoFocus);
  scroll->setFixedWidth(270);
  auto* side = new QWidget(scroll);
  auto* sides = new QVBoxLayout(side);
  sides->setContentsMargins(0, 0, 8, 0);
  sides->setSpacing(10);
  controls_ = makeControls();
  sweep_ = makeSweep();
  sides->addWidget(sweep_);
  sides->addWidget(controls_);
  sides->addStretch();
  scroll->setWidget(side);
  halves->addWidget(scroll);

  pages_ = new QStackedWidget(this);
  picture_ = new ResultPicture(pages_);
  sentence_ = plainLabel({}, pages_);
  sentence_->setAlignment(Qt::AlignCenter);
  sentence_->setWordWrap(true);
  sentence_->setProperty("role", "muted");
  pages_->addWidget(sentence_);
  pages_->addWidget(picture_);
  auto* right = new QVBoxLayout;
  right->setSpacing(4);
  right->addWidget(pages_, 1);
  auto* foot = new QHBoxLayout;
  hint_ = label({}, "muted", this);
  hint_->setFont(smallFont());
  line_ = new ElidedLabel({}, this);
  line_->setFont(monoFont());
  line_->setProperty("role", "muted");
  copy_ = new QToolButton(this);
  copy_->setObjectName("results.copy");
  copy_->setIcon(icon("copy"));
  copy_->setText(tr("Copy the command with these numbers"));
  copy_->setToolTip(safeTip(copy_->text()));
  copy_->setFocusPolicy(Qt::TabFocus);
  connect(copy_, &QToolButton::clicked, this, [this] {
    QApplication::clipboard()->setText(command_);
    emit said(tr("The command is in the clipboard."), false);
  });
  foot->addWidget(hint_);
  foot->addWidget(line_, 1);
  foot->addWidget(copy_);
  right->addLayout(foot);
  halves->addLayout(right, 1);

  connect(picture_, &ResultPicture::rowsPicked, this, &ResultsWindow::offerRows);
  connect(&runner_, &SweepRunner::changed, this, &ResultsWindow::tellSweep);
  connect(&runner_, &SweepRunner::ended, this, [this](const QString& sentence) {
    if (!sentence.isEmpty())
      note(sentence, true);
    else if (!isVisible())
      emit said(tr("The cells of %1 are computed.").arg(QDir::toNativeSeparators(runner_.folder())), false);
    read();
  });
  connect(new QShortcut(QKeySequence::Close, this), &QShortcut::activated, this, &QWidget::close);
  watch_.setSingleShot(true);
  connect(&watch_, &QTimer::timeout, this, &ResultsWindow::read);
  note(tr("Open the folder of a sweep or a table of results, or make a new sweep of the run that is set."), false);
  tellSweep();
  draw();
}

ResultsWindow::~ResultsWindow() = default;

QWidget* ResultsWindow::makeControls() {
  auto* all = new QWidget(this);
  auto* column = new QVBoxLayout(all);
  column->setContentsMargins(0, 0, 0, 0);
  form_ = new QFormLayout;
  form_->setSpacing(6);
  form_->setRowWrapPolicy(QFormLayout::DontWrapRows);
  column->addLayout(form_);
  const auto box = [&](const char* name, const QString& title, const QString& tip) {
    auto* made = new QComboBox(all);
    made->setObjectName(QStringLiteral("results.") + name);
    made->setAccessibleName(title);
    made->setToolTip(safeTip(tip));
    keepNarrow(made);
    auto* words = plainLabel(title, all);
    words->setBuddy(made);
    form_->addRow(words, made);
    connect(made, &QComboBox::activated, this, &ResultsWindow::chosen);
    return made;
  };
  view_ = box("view", tr("Picture"),
              tr("Map: means as colours over two settings. Curves: means over one, with bands. Ranking: the best settings with intervals. "
                 "Points: one measure against another. Parallel axes: each row a line through its values."));
  for (const ViewName& one : views) view_->addItem(tr(one.name), QString(one.id));
  measure_ = box("measure", tr("Measure"), tr("The column whose mean is drawn"));
  against_ = box("against", tr("Against"), tr("The measure of the bottom axis"));
  across_ = box("across", tr("Across"), tr("The setting of the bottom axis"));
  upright_ = box("upright", tr("Upright"), tr("The setting of the upright axis of a map, or of a curve each"));
  uprightName_ = qobject_cast<QLabel*>(form_->labelForField(upright_));
  apart_ = box("apart", tr("A picture each"), tr("The setting whose values have a picture each"));
  confidence_ = box("confidence", tr("Intervals"), tr("The confidence of the intervals of the means"));
  for (const double one : {0.68, 0.9, 0.95, 0.99}) confidence_->addItem(tr("%1 %").arg(100.0 * one), QString::number(one));
  const auto check = [&](const char* name, const QString& title, const QString& tip) {
    auto* made = new QCheckBox(title, all);
    made->setObjectName(QStringLiteral("results.") + name);
    made->setToolTip(safeTip(tip));
    form_->addRow(made);
    connect(made, &QCheckBox::clicked, this, &ResultsWindow::chosen);
    return made;
  };
  falling_ = check("falling", tr("Greatest first"), tr("The ranking begins with the greatest mean"));
  logarithmic_ = check("logarithmic", tr("Logarithmic measure"), tr("Means on a logarithmic axis; those at 0 and below are left out"));
  only_ = new QWidget(all);
  auto* onlys = new QVBoxLayout(only_);
  onlys->setContentsMargins(0, 0, 0, 0);
  onlys->addWidget(label(tr("Only rows with"), "section", only_));
  onlyForm_ = new QFormLayout;
  onlyForm_->setSpacing(6);
  onlys->addLayout(onlyForm_);
  column->addWidget(only_);
  return all;
}

QWidget* ResultsWindow::makeSweep() {
  auto* all = new QWidget(this);
  auto* column = new QVBoxLayout(all);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(6);
  state_ = plainLabel({}, all);
  state_->setWordWrap(true);
  bar_ = new QProgressBar(all);
  bar_->setTextVisible(false);
  bar_->setFixedHeight(6);
  bar_->setAccessibleName(tr("Cells that are done"));
  column->addWidget(state_);
  column->addWidget(bar_);
  auto* row = new QHBoxLayout;
  run_ = new QPushButton(all);
  run_->setObjectName("results.run");
  connect(run_, &QPushButton::clicked, this, [this] {
    if (runner_.running())
      runner_.pause();
    else
      runner_.run(place_, jobs_->value());
  });
  jobs_ = new QSpinBox(all);
  jobs_->setObjectName("results.jobs");
  jobs_->setAccessibleName(tr("Cells at a time"));
  jobs_->setToolTip(safeTip(tr("Cells that are computed at a time, with a thread each")));
  jobs_->setRange(1, std::max(64, SweepRunner::processors()));
  jobs_->setValue(SweepRunner::processors());
  jobs_->setSuffix(tr(" at a time"));
  row->addWidget(run_, 1);
  row->addWidget(jobs_);
  column->addLayout(row);
  hand_ = new QToolButton(all);
  hand_->setObjectName("results.handOver");
  hand_->setText(tr("Compute elsewhere"));
  hand_->setIcon(icon("export"));
  hand_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  hand_->setToolTip(
      safeTip(tr("The line for a terminal by which Slurm, GNU parallel or make computes the cells. This window follows the folder.")));
  hand_->setPopupMode(QToolButton::InstantPopup);
  hand_->setFocusPolicy(Qt::TabFocus);
  auto* menu = new QMenu(hand_);
  for (const auto& [name, target] : {std::pair{tr("Slurm"), "slurm"}, {tr("GNU parallel"), "parallel"}, {tr("make"), "make"}})
    menu->addAction(tr("Copy the line for %1").arg(name), this, [this, target = QString(target)] {
      QApplication::clipboard()->setText(handOver(target));
      emit said(tr("The line is in the clipboard."), false);
    });
  hand_->setMenu(menu);
  column->addWidget(hand_);
  return all;
}

QString ResultsWindow::handOver(const QString& target) const {
  const auto word = [](const QString& one) { return QString::fromStdString(shell_word(one.toStdString())); };
  const QString script = "sweep." + target;
  const QString runs = target == u"slurm" ? "sbatch --wait " + script : target == u"make" ? "make -k -f " + script : "sh " + script;
  return QStringLiteral("reclab sweep emit %1 %2 > %3 && %4").arg(word(place_), target, script, runs);
}

void ResultsWindow::note(const QString& sentence, bool bad) {
  sentence_->setText(sentence);
  if (bad) emit said(sentence, true);
}

QString ResultsWindow::sentence() const { return sentence_->text(); }
QString ResultsWindow::state() const { return state_->text(); }

void ResultsWindow::open(const QString& place) {
  if (runner_.running() && runner_.folder() != place) {
    note(tr("A sweep is computed in %1; pause it first.").arg(QDir::toNativeSeparators(runner_.folder())), true);
    return;
  }
  if (atlas_ && atlas_->file != place) atlas_.reset();
  const bool another = place != place_;
  place_ = place;
  if (!atlas_) QSettings().setValue(lastPlace, place);
  if (another) {
    ++asked_;
    begins_ = atlas_ ? std::optional(atlas_->choice) : std::nullopt;
    from_ = atlas_ ? atlas_->choice.measure : std::string();
    table_.reset();
    status_.reset();
    isSweep_ = false;
    note(tr("Reading %1").arg(QFileInfo(place).fileName()), false);
    file_->setText(atlas_ ? atlas_->title : QDir::toNativeSeparators(place));
    file_->setToolTip(safeTip(file_->text()));
    reading_ = false;
    tellSweep();
    draw();
  }
  read();
}

void ResultsWindow::open(const Atlas& atlas) {
  const bool again = place_ == atlas.file;
  atlas_ = atlas;
  open(atlas.file);
  if (place_ != atlas.file) return atlas_.reset();  // a sweep is computed
  if (again && table_) setChoice(atlas.choice);
}

void ResultsWindow::read() {
  watch_.stop();
  if (place_.isEmpty() || reading_) return;
  reading_ = true;
  worker_.replace([this, number = asked_, place = place_, from = from_, before = table_ ? status_ : std::nullopt](const std::stop_token&) {
    Came came;
    came.place = place;
    QElapsedTimer timer;
    timer.start();
    try {
      came.is_sweep = QFileInfo(place).isDir();
      if (came.is_sweep) {
        const SweepFolder folder(place.toStdString());
        came.cells = folder.size();
        came.status = status_of(folder);
        came.same = before && before->count == came.status->count && before->seconds == came.status->seconds;
      }
      if (!came.same) came.table = std::make_shared<const ResultTable>(read_results(place.toStdString(), from, true));
    } catch (const std::exception&) {
      came.problem = sentenceOf(std::current_exception());
    }
    came.seconds = static_cast<double>(timer.elapsed()) * 1e-3;
    QMetaObject::invokeMethod(this, [this, number, came] {
      if (number == asked_) take(came);
    });
  });
}

void ResultsWindow::take(const Came& came) {
  reading_ = false;
  status_ = came.status;
  cells_ = came.cells;
  isSweep_ = came.is_sweep && came.status;
  if (came.table) {
    const bool first = !table_;
    table_ = came.table;
    choice_ = fitted(first ? begins_.value_or(usual_choice(*table_)) : choice_, *table_);
    if (first) fillControls();
  } else if (!came.same) {
    table_.reset();
    note(came.problem, true);
  }
  tellSweep();
  if (!came.same) draw();
  // Others may compute its cells too.
  const auto open = [&](CellState state) { return status_->of(state) > 0; };
  if (isSweep_ && (runner_.running() || open(CellState::waiting) || open(CellState::running) || open(CellState::interrupted)) &&
      isVisible())
    watch_.start(std::max(watchEvery, static_cast<int>(1000.0 * shareOfReading * came.seconds)));
}

void ResultsWindow::fillControls() {
  filling_ = true;
  measure_->clear();
  against_->clear();
  for (QComboBox* box : {measure_, against_})
    for (const ResultMeasure& one : table_->measures) box->addItem(QString::fromStdString(one.name), QString::fromStdString(one.name));
  if (!isSweep_)  // which columns of a table are measures is not written in it
    for (const ResultAxis& one : table_->axes)
      if (is_scale(one)) measure_->addItem(QString::fromStdString(one.name), QString::fromStdString(one.name));
  for (QComboBox* box : {across_, upright_, apart_}) {
    box->clear();
    box->addItem(box == across_ && varied_axes(*table_).empty() ? tr("nothing varies") : tr("none"), QString());
    for (const std::string& name : varied_axes(*table_)) box->addItem(QString::fromStdString(name), QString::fromStdString(name));
  }
  filling_ = false;
  fillOnly();
}

/// A box for each setting by whose values rows may be left out.
void ResultsWindow::fillOnly() {
  while (onlyForm_->rowCount() > 0) onlyForm_->removeRow(0);
  onlyBoxes_.clear();
  constexpr std::size_t mostLevels = 500;
  for (const std::string& name : varied_axes(*table_)) {
    const ResultAxis& axis = table_->axis(name);
    if (axis.levels.size() > mostLevels) continue;
    auto* box = new QComboBox(only_);
    box->setObjectName("results.only." + QString::fromStdString(name));
    box->setAccessibleName(tr("Only rows with %1").arg(QString::fromStdString(name)));
    keepNarrow(box);
    box->addItem(tr("any"));
    for (const std::string& level : axis.levels)
      box->addItem(level.empty() ? tr("none") : QString::fromStdString(level), QString::fromStdString(level));
    connect(box, &QComboBox::activated, this, &ResultsWindow::chosen);
    onlyForm_->addRow(plainLabel(QString::fromStdString(name), only_), box);
    onlyBoxes_.emplace_back(name, box);
  }
}

void ResultsWindow::setChoice(const ResultChoice& choice) {
  if (!table_) return;
  choice_ = fitted(choice, *table_);
  draw();
}

/// What the boxes say.
void ResultsWindow::chosen() {
  if (filling_ || !table_) return;
  ResultChoice next = choice_;
  next.view = views[std::max(0, view_->currentIndex())].view;
  next.measure = dataOf(measure_);
  next.against = dataOf(against_);
  if (std::ranges::find(table_->measures, next.measure, &ResultMeasure::name) == table_->measures.end()) {
    ++asked_;
    from_ = next.measure;
    begins_ = next;
    reading_ = false;
    table_.reset();  // with other axes
    return read();
  }
  // An axis that is chosen in another place changes places with the one there.
  const std::string across = dataOf(across_), upright = dataOf(upright_), apart = dataOf(apart_);
  const auto move = [](const std::string& was, std::string& to, const std::string& chosen, std::string& one, std::string& other) {
    if (chosen == was) return;  // another box was touched
    if (!chosen.empty() && one == chosen) one = to;
    if (!chosen.empty() && other == chosen) other = to;
    to = chosen;
  };
  move(choice_.across, next.across, across, next.upright, next.apart);
  move(choice_.upright, next.upright, upright, next.across, next.apart);
  move(choice_.apart, next.apart, apart, next.across, next.upright);
  next.confidence = confidence_->currentData().toString().toDouble();
  next.falling = falling_->isChecked();
  next.logarithmic = logarithmic_->isChecked();
  next.only.clear();
  for (const auto& [name, box] : onlyBoxes_)
    if (box->currentIndex() > 0) next.only.emplace_back(name, box->currentData().toString().toStdString());
  setChoice(next);
}

void ResultsWindow::draw() {
  controls_->setVisible(table_ != nullptr);
  save_->setEnabled(table_ != nullptr);
  command_.clear();
  if (!table_) {
    picture_->clearResults();
    pages_->setCurrentWidget(sentence_);
    hint_->clear();
    line_->setText({});
    copy_->setEnabled(false);
    return;
  }
  filling_ = true;
  for (std::size_t i = 0; i < std::size(views); ++i)
    if (views[i].view == choice_.view) view_->setCurrentIndex(static_cast<int>(i));
  choose(measure_, choice_.measure);
  choose(against_, choice_.against);
  choose(across_, choice_.across);
  choose(upright_, choice_.upright);
  choose(apart_, choice_.apart);
  confidence_->setCurrentIndex(std::max(0, confidence_->findData(QString::number(choice_.confidence))));
  falling_->setChecked(choice_.falling);
  logarithmic_->setChecked(choice_.logarithmic);
  for (const auto& [name, box] : onlyBoxes_) {
    const auto found = std::ranges::find(choice_.only, name, &std::pair<std::string, std::string>::first);
    box->setCurrentIndex(found == choice_.only.end() ? 0 : std::max(0, box->findData(QString::fromStdString(found->second))));
  }
  filling_ = false;
  const bool map = choice_.view == ResultView::map, curves = choice_.view == ResultView::curves,
             points = choice_.view == ResultView::points;
  uprightName_->setText(curves ? tr("A curve each") : points ? tr("A colour each") : tr("Upright"));
  upright_->setAccessibleName(uprightName_->text());
  form_->setRowVisible(across_, map || curves);
  form_->setRowVisible(upright_, map || curves || points);
  form_->setRowVisible(against_, points);
  form_->setRowVisible(apart_, map || curves || points);
  form_->setRowVisible(falling_, choice_.view == ResultView::ranking);
  only_->setVisible(!onlyBoxes_.empty());
  picture_->setResults(table_, choice_, atlas_ ? atlas_->text : QString(), atlas_ ? atlas_->runs : std::map<std::string, int>());
  form_->setRowVisible(confidence_, (curves || choice_.view == ResultView::ranking) && picture_->averages());
  const bool none = std::ranges::none_of(picture_->summary().groups, [](const ResultGroup& group) { return group.values > 0; });
  if (none)
    note(isSweep_ ? tr("No cell has a result yet.") : tr("No row has a value of %1.").arg(QString::fromStdString(choice_.measure)), false);
  pages_->setCurrentWidget(none ? static_cast<QWidget*>(sentence_) : picture_);
  hint_->setText(opensRuns() ? tr("A click opens the run.") : QString());
  command_ = atlas_ && atlas_->plans.empty() ? atlas_->command : QString::fromStdString(command_of(choice_, *table_));
  line_->setText(command_);
  line_->setToolTip(safeTip(command_));
  copy_->setEnabled(!command_.isEmpty());
}

void ResultsWindow::tellSweep() {
  sweep_->setVisible(isSweep_);
  if (!isSweep_) return;
  const auto of = [&](CellState state) { return status_->of(state); };
  const std::int64_t done = of(CellState::done) + of(CellState::diverged);
  QStringList words{tr("%1 of %2 cells are done").arg(grouped(done), grouped(cells_))};
  if (of(CellState::diverged) > 0) words << tr("%1 of them diverged").arg(grouped(of(CellState::diverged)));
  if (of(CellState::running) > 0) words << tr("%1 in progress").arg(grouped(of(CellState::running)));
  if (of(CellState::interrupted) > 0) words << tr("%1 with a checkpoint").arg(grouped(of(CellState::interrupted)));
  if (of(CellState::failed) > 0) words << tr("%1 failed").arg(grouped(of(CellState::failed)));
  QString text = words.join(", ") + ".";
  if (runner_.pausing()) text += ' ' + tr("Checkpoints are being written.");
  if (!status_->failures.empty())
    text += ' ' + tr("Cell %1: %2").arg(status_->failures.front().first).arg(QString::fromStdString(status_->failures.front().second));
  state_->setText(text);
  bar_->setRange(0, static_cast<int>(std::max<std::int64_t>(1, cells_)));
  bar_->setValue(static_cast<int>(done));
  const bool runs = runner_.running();
  run_->setIcon(icon(runs ? "pause" : "run"));
  run_->setText(runs ? tr("Pause") : done > 0 && done < cells_ ? tr("Go on here") : tr("Run here"));
  run_->setToolTip(safeTip(runs ? tr("Ends the processes; what they have in hand is kept in checkpoints, from which it goes on")
                                : tr("Computes the cells that are not done, in processes of their own")));
  run_->setEnabled(runs ? !runner_.pausing() : done < cells_);
  jobs_->setEnabled(!runs);
}

void ResultsWindow::saveFigure() {
  if (!table_ || !chooser_->figure) return;
  const auto answer =
      chooser_->figure(this, {tr("Save the picture"), {"results-" + QString::fromStdString(choice_.measure).replace('/', '-')}});
  if (!answer) return;
  const FigureText words = [&] {
    FigureText one(tr("Results – %1").arg(picture_->subject()));
    one.description = file_->text();
    one.command = atlas_ ? atlas_->command : command_;
    return one;
  }();
  QString problem = QDir().mkpath(answer->folder) ? QString() : tr("%1 is no folder and cannot be made.").arg(answer->folder);
  if (problem.isEmpty())
    problem = saveDrawing(answer->file(), answer->format, picture_->drawing(words, answer->style), answer->style, picture_->theme().base,
                          logicalDpiX());
  emit said(problem.isEmpty() ? tr("The figure is in %1.").arg(answer->file()) : problem, !problem.isEmpty());
}

void ResultsWindow::saveTable() {
  if (!table_ || !chooser_->save) return;
  QString file = chooser_->save(this, tr("Save the numbers"), "results.csv", tr("Tables (*.csv)"));
  if (file.isEmpty()) return;
  if (!file.endsWith(".csv", Qt::CaseInsensitive)) file += ".csv";
  const QString problem = writeText(file, picture_->csv());
  emit said(problem.isEmpty() ? tr("The numbers are in %1.").arg(file) : problem, !problem.isEmpty());
}

void ResultsWindow::offerRows(const std::vector<std::int64_t>& rows, QPoint where) {
  if (!opensRuns() || !table_) return;
  if (rows.size() == 1) return openRow(rows.front());
  auto* menu = new QMenu(this);
  menu->setObjectName("results.rows");
  menu->setAttribute(Qt::WA_DeleteOnClose);
  const ResultMeasure& measure = table_->measure(choice_.measure);
  for (std::size_t i = 0; i < std::min<std::size_t>(rows.size(), mostRows); ++i) {
    const std::int64_t row = rows[i];
    menu->addAction(buttonText(tr("%1: %2 %3")
                                   .arg(QString::fromStdString(words_of_row(*table_, row)), QString::fromStdString(measure.name),
                                        number(measure.values[static_cast<std::size_t>(row)], 4))),
                    this, [this, row] { openRow(row); });
  }
  if (rows.size() > mostRows) menu->addAction(tr("and %1 more").arg(rows.size() - mostRows))->setEnabled(false);
  menu->popup(where);
}

void ResultsWindow::openRow(std::int64_t row) {
  try {
    if (atlas_) {
      emit cellWanted(lineOf(atlas_->plans, row), {});
      return;
    }
    const SweepFolder folder(place_.toStdString());
    const SweepCell cell = folder.cell(row);
    const QString kept = QString::fromStdString(folder.place(cell).string());
    emit cellWanted(typed_run(cell.words), QFileInfo::exists(kept + "/training.json") ? kept : QString());
  } catch (const Error& error) {
    emit said(windowText(error), true);
  }
}

void ResultsWindow::closeEvent(QCloseEvent* event) {
  watch_.stop();
  if (runner_.running()) emit said(tr("The sweep is computed on; Run, Results of sweeps… shows how far it is."), false);
  QWidget::closeEvent(event);
}

void ResultsWindow::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (event->spontaneous()) return;
  if (const QString last = QSettings().value(lastPlace).toString(); place_.isEmpty() && QFileInfo::exists(last)) return open(last);
  read();
}

void ResultsWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void ResultsWindow::dropEvent(QDropEvent* event) {
  const QList<QUrl> urls = event->mimeData()->urls();
  if (urls.isEmpty() || !urls.front().isLocalFile()) return;
  event->acceptProposedAction();
  open(urls.front().toLocalFile());
}

void ResultsWindow::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape) return void(close());
  QWidget::keyPressEvent(event);
}

}  // namespace reclab
