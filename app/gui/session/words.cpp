// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/words.h"

#include <QHash>
#include <QRegularExpression>
#include <algorithm>
#include <functional>
#include <new>

#include "array/error.h"

namespace reclab {
namespace {

struct Words {
  const char *engine, *window;
};

/// Whole remedies first: some are other ones in the window.
constexpr Words remedies[] = {
    {"choose as many columns with --columns", "choose as many under Columns"},
    {"or say with --missing what becomes of missing cells: leave-out, hold, interpolate or mask",
     "or choose what becomes of missing cells"},
    {"leave such rows out (--missing leave-out)", "leave such rows out"},
    {"choose --dtype f64", "choose float64 under Precision"},
    {"choose --device cpu", "choose CPU under Device"},
    {": record less with --every or --record, take a shorter sequence or a smaller width", ": take a shorter sequence or a smaller width"},
    {"; record less with --every", "; take a shorter sequence or a narrower model"},
    {"; --every 1 records them all", ""},
    {": choose a smaller rate (--lr), or clip the gradient (--clip 1)", ": choose a smaller learning rate, or clip the gradient's norm"},
    {": ask for them with --record jacobian, or take a smaller width", ": take a smaller width"},
};

/// What an option is on the screen, for sentences that are not among these.
const QHash<QString, QString>& controls() {
  static const QHash<QString, QString> all{{"--columns", QObject::tr("Columns")},
                                           {"--time", QObject::tr("Time")},
                                           {"--target", QObject::tr("Target")},
                                           {"--missing", QObject::tr("Missing")},
                                           {"--standardise", QObject::tr("Standardise")},
                                           {"--dtype", QObject::tr("Precision")},
                                           {"--device", QObject::tr("Device")},
                                           {"--form", QObject::tr("Form")},
                                           {"--task", QObject::tr("Task")},
                                           {"--length", QObject::tr("Length")},
                                           {"--input", QObject::tr("File")},
                                           {"--seed", QObject::tr("Seed")},
                                           {"--task-seed", QObject::tr("the sequence's Seed")},
                                           {"--loss", QObject::tr("the loss")},
                                           {"--set", QObject::tr("the Inspector")},
                                           {"--weights", QObject::tr("Load weights")},
                                           {"--state", QObject::tr("Load initial state")}};
  return all;
}

}  // namespace

QString sentenceOf(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return inWindowWords(error);
  } catch (const std::bad_alloc&) {
    return QObject::tr("There is not enough memory for this; take a shorter sequence or a narrower model.");
  } catch (const std::exception& error) {
    return QObject::tr("Something went wrong inside the program: %1.").arg(QString::fromUtf8(error.what()));
  }
}

QString inWindowWords(const std::string& sentence, const QStringList& names) {
  QString text = QString::fromStdString(sentence);
  if (!text.contains(QLatin1String("--"))) return text;
  // What is not the engine's is taken out, each piece behind a letter of no script, and put back at the end.
  QStringList kept;
  const auto take = [&](qsizetype at, qsizetype length) {
    const QString place = QChar(0xe000) + QString::number(kept.size()) + QChar(0xe001);
    kept << text.mid(at, length);
    text.replace(at, length, place);
    return at + place.size();
  };
  text.remove(QChar(0xe000)).remove(QChar(0xe001));
  QStringList longest = names;
  std::ranges::stable_sort(longest, std::greater<>(), &QString::size);  // a folder's name may have a file's in it
  for (const QString& name : longest)
    if (name.contains(QLatin1String("--")))
      for (qsizetype at = text.indexOf(name); at >= 0; at = text.indexOf(name, at)) {
        const QChar next = text.size() > at + name.size() ? text[at + name.size()] : QChar(u' ');
        at = next.isLetterOrNumber() || next == u'-' ? at + 1 : take(at, name.size());  // not the beginning of a longer word
      }
  static const QRegularExpression command("`[^`]*`");
  for (auto found = command.match(text); found.hasMatch(); found = command.match(text, found.capturedStart() + 1))
    take(found.capturedStart(), found.capturedLength());
  for (const Words& remedy : remedies) text.replace(QLatin1String(remedy.engine), QLatin1String(remedy.window));
  // A word of its own: not a part of "run--seed.csv", and no name between quotes.
  static const QRegularExpression option(R"((?<![\w./\\"'-])--[a-z][a-z-]*+(?![\w/\\"']|\.\w))",
                                         QRegularExpression::UseUnicodePropertiesOption);
  for (auto found = option.match(text); found.hasMatch(); found = option.match(text))
    text.replace(found.capturedStart(), found.capturedLength(), controls().value(found.captured(), found.captured().mid(2)));
  for (qsizetype i = kept.size() - 1; i >= 0; --i) text.replace(QChar(0xe000) + QString::number(i) + QChar(0xe001), kept[i]);
  return text;
}

QString inWindowWords(const Error& error) {
  const ErrorPlace& where = error.where();
  QStringList names;
  for (const std::string* one : {&where.file, &where.place, &where.model, &where.value, &where.range})
    names << QString::fromStdString(*one);
  return inWindowWords(std::string(error.what()), names);
}

std::shared_ptr<const Trace> inWindowWords(std::shared_ptr<const Trace> trace) {
  if (!trace) return trace;
  const auto foreign = [](const std::string& text) { return text.find("--") != std::string::npos; };
  const auto& arrays = trace->arrays();
  const RunInfo& info = trace->info;
  const bool any = foreign(info.sentence) || std::any_of(info.notes.begin(), info.notes.end(), foreign) ||
                   std::any_of(info.spectra.begin(), info.spectra.end(), [&](const SpectrumInfo& one) { return foreign(one.of); }) ||
                   std::any_of(arrays.begin(), arrays.end(), [&](const auto& one) { return foreign(one->text); });
  if (!any) return trace;
  auto mine = std::make_shared<Trace>(*trace);
  QStringList names{QString::fromStdString(info.input_name), QString::fromStdString(info.weights), QString::fromStdString(info.state)};
  for (const auto* all : {&trace->input_names, &trace->output_names})
    for (const std::string& name : *all) names << QString::fromStdString(name);
  const auto change = [&](std::string& text) { text = inWindowWords(text, names).toStdString(); };
  change(mine->info.sentence);
  for (std::string& note : mine->info.notes) change(note);
  for (SpectrumInfo& one : mine->info.spectra) change(one.of);
  for (const auto& array : arrays)
    if (foreign(array->text)) {
      TraceArray changed = *array;
      change(changed.text);
      mine->put(std::move(changed));
    }
  return mine;
}

QString inWords(const std::string& name) {
  QString words = QString::fromStdString(name).replace('_', ' ').replace('-', ' ');
  if (!words.isEmpty()) words[0] = words[0].toUpper();
  return words;
}

namespace {
QString belowASecond(double seconds) {
  if (seconds < 0.001) return QObject::tr("%1 µs").arg(seconds * 1e6, 0, 'f', 0);
  return QObject::tr("%1 ms").arg(seconds * 1e3, 0, 'f', seconds < 0.01 ? 1 : 0);
}
}  // namespace

QString secondsInWords(double seconds) {
  if (seconds < 1.0) return belowASecond(seconds);
  return seconds < 120.0 ? QObject::tr("%1 s").arg(seconds, 0, 'f', seconds < 10.0 ? 2 : 1)
                         : QObject::tr("%1 min").arg(seconds / 60.0, 0, 'f', 1);
}

QString roughSecondsInWords(double seconds) { return seconds < 1.0 ? belowASecond(seconds) : QObject::tr("%1 s").arg(seconds, 0, 'f', 1); }

}  // namespace reclab
