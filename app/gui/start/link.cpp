// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/start/link.h"

#include <QUrl>
#include <algorithm>

#include "experiment/command/command.h"
#include "experiment/command/run_fields.h"
#include "files/files.h"
#include "gui/session/requests.h"

namespace reclab {
namespace {

const QString scheme = QStringLiteral("reclab:"), begins = QStringLiteral("reclab:run?");

/// Options of a run and of a task, that name no file and no place for what it records.
bool mayHave(std::string_view flag) {
  const auto named = [&](const Field& field) { return field.flag == flag; };
  static const std::initializer_list<std::string_view> without{"file", "weights", "state", "every", "record"};
  const auto good = [&](const Field& field) {
    return named(field) && field.of != Field::Of::file && std::ranges::find(without, field.row.key) == without.end();
  };
  return std::ranges::any_of(sequence_fields(), good) || std::ranges::any_of(run_fields(), good);
}

}  // namespace

bool isLink(const QString& text) { return text.startsWith(scheme); }

QString linkOf(const Setup& setup, const Library& library) {
  const Preset& preset = library.presets.find(setup.preset);
  const bool trained = isTrained(setup, preset);
  const bool files = (setup.sequence && setup.sequence->choice.is_file()) || (setup.weights.contains(setup.preset) && !trained) ||
                     setup.states.contains(setup.preset);
  if (files || setup.learnedWeights())
    throw Error(files ? "A link carries no file, and this run has one: save a folder to send."
                      : "A link carries no weights, and this run has learned some: save a folder to send.");
  CommandLine line;
  line.model(requestFor(setup, trained ? as_trained(preset) : preset, {}), setup.device, {});
  QStringList words;
  for (const std::string& word : line.words()) words << QString::fromLatin1(QUrl::toPercentEncoding(QString::fromStdString(word)));
  return begins + words.join('&');
}

QStringList argumentsOf(const QString& link) {
  if (!link.startsWith(begins))
    throw Error(printable(link.toStdString()) + " is no link to a run; it begins with " + begins.toStdString() + ".");
  QStringList words;
  for (const QString& word : link.mid(begins.size()).split('&', Qt::SkipEmptyParts)) words << QUrl::fromPercentEncoding(word.toLatin1());
  for (const QString& word : words)
    if (isLink(word) || (word.startsWith('-') && !mayHave(word.section('=', 0, 0).toStdString())))
      throw Error("The link has " + printable(word.toStdString()) + ", which is for a command line alone; it was not opened.");
  return words;
}

}  // namespace reclab
