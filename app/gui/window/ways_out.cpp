// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/window/ways_out.h"

#include <QFileInfo>
#include <QMenu>

#include "gui/frame/window_frame.h"
#include "gui/views/status_line.h"
#include "models/registry.h"
#include "plain_text.h"

namespace reclab {

WaysOut::WaysOut(WindowFrame* frame) : QObject(frame), frame_(frame), session_(frame->session()), banner_(frame->banner()) {
  connect(frame_, &WindowFrame::said, this, &WaysOut::show);
  connect(session_, &SessionController::cellsMissing, this, &WaysOut::offerMissing);
  connect(session_, &SessionController::weightsMisfit, this, [this] {
    misfit_ = true;
    offerOtherWeights();
  });
  connect(session_, &SessionController::runningChanged, this, [this](bool running) {
    if (running) misfit_ = false;
  });
  connect(session_, &SessionController::runEnded, this, [this](Outcome outcome) {
    if (outcome == Outcome::cancelled) offerAfterStop();
  });
  connect(session_, &SessionController::sizesFit, this, &WaysOut::offerSizes);
  connect(session_, &SessionController::partsFit, this, &WaysOut::offerParts);
}

void WaysOut::show(const QString& sentence, Tone tone) {
  // As long as the weights do not fit the setup, the ways out stay, beside any other message.
  if (tone == Tone::warning) {
    banner_->show(sentence);
    if (misfit_) offerOtherWeights();
  } else if (tone == Tone::info && !misfit_) {
    banner_->hide();
  }
}

void WaysOut::offerSizes(const QString& preset, const QString& file, const Settings& sizes) {
  QStringList words;
  for (const auto& [key, value] : sizes) words << QString::fromStdString(key + " " + value);
  banner_->offer(tr("Take its sizes: %1").arg(words.join(", ")), [this, preset, file, sizes] {
    Setup after = session_->setup();
    if (preset.toStdString() != after.preset) return;  // another model was picked meanwhile
    for (const auto& [key, value] : sizes) after.setValue(key, value);
    after.weights[after.preset] = file.toStdString();
    after.learned.erase(after.preset);
    banner_->hide();
    frame_->change(after, tr("weights %1 and their sizes").arg(QFileInfo(file).fileName()));
  });
}

void WaysOut::offerParts(const QString& preset, const QString& file, const QStringList& parts) {
  const auto load = [this, preset, file](const QString& part) {
    if (preset.toStdString() == session_->setup().preset) session_->loadFile(FileKind::weights, file + ":" + part);
  };
  if (parts.size() == 1) return banner_->offer(tr("Take its part %1").arg(parts[0]), [load, part = parts[0]] { load(part); });
  banner_->offer(tr("Choose a part…"), [this, load, parts] {
    auto* menu = new QMenu(frame_->window());
    menu->setObjectName("parts");
    menu->setAttribute(Qt::WA_DeleteOnClose);
    for (const QString& part : parts) connect(menu->addAction(buttonText(part)), &QAction::triggered, this, [load, part] { load(part); });
    menu->popup(banner_->mapToGlobal(banner_->rect().bottomRight()));
  });
}

/// Weights are of the sizes, the sequence and the loss that they learned with.
void WaysOut::offerOtherWeights() {
  const Setup now = session_->setup();
  banner_->offer(tr("Draw anew"), [this] {
    Setup after = session_->setup();
    after.learned.erase(after.preset);
    after.weights.erase(after.preset);
    banner_->hide();
    frame_->change(after, tr("drawn weights"));
  });
  const std::optional<Setup> fits = session_->setupThatFits();
  if (!fits || fits->sameRun(now)) return;
  QStringList words;
  if (fits->sequence != now.sequence && fits->sequence)
    words << tr("%1, %2").arg(QString::fromStdString(fits->sequence->sequence.name)).arg(fits->sequence->sequence.length);
  if (fits->settings() != now.settings()) {
    const Hyper then = hyper_of(builtin_registry(), session_->library()->presets.find(now.preset), fits->settings()),
                set = hyper_of(builtin_registry(), session_->library()->presets.find(now.preset), now.settings());
    for (const HyperSpec& row : then.table())
      if (then.text(row.key) != set.text(row.key)) words << QString::fromStdString(row.key + " " + then.text(row.key)).replace('_', ' ');
  }
  if (fits->loss != now.loss) words << tr("loss %1").arg(QString::fromUtf8(to_string(fits->loss)));
  if (words.isEmpty()) return;
  banner_->offer(tr("Back to %1").arg(words.join(QStringLiteral(", "))), [this, fits = *fits] {
    banner_->hide();
    frame_->change(fits, tr("back to what its weights learned with"));
  });
}

void WaysOut::offerMissing(const SequenceChoice& choice, const QStringList& cures) {
  // At the start the window begins with something else, and says why after that.
  if (!session_->setup().sequence) {
    connect(session_, &SessionController::runEnded, this, [this, choice, cures] { offerMissing(choice, cures); }, Qt::SingleShotConnection);
    return;
  }
  if (banner_->sentence().isEmpty()) return;
  for (const auto& [how, text] : {std::pair{Missing::leave_out, tr("Leave rows out")},
                                  {Missing::hold, tr("Hold the last value")},
                                  {Missing::interpolate, tr("Interpolate")},
                                  {Missing::mask, tr("Hold and mark")}})
    if (cures.contains(QString::fromUtf8(to_string(how))))
      banner_->offer(text, [this, choice, how = how] {
        SequenceChoice other = choice;
        other.load.missing = how;
        session_->loadSequence(other);
      });
}

/// Shown where the panels are still of another run than the setup's.
void WaysOut::offerAfterStop() {
  const TracePtr& trace = session_->trace();
  const QString former = trace ? session_->nameOfFormer(trace) : QString();
  if (former.isEmpty() || session_->running()) return;
  banner_->show(tr("The run was stopped, so the panels still show %1.").arg(former));
  banner_->offer(tr("Run"), [this] {
    banner_->hide();
    session_->run();
  });
  banner_->offer(tr("Back to %1").arg(QString::fromStdString(trace->info.title.empty() ? trace->info.preset : trace->info.title)),
                 [this, before = session_->shownSetup()] {
                   banner_->hide();
                   frame_->change(before, tr("back to what is shown"));
                 });
}

}  // namespace reclab
