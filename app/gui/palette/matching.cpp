// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/palette/matching.h"

#include <QRegularExpression>
#include <algorithm>
#include <limits>

namespace reclab {
namespace {

/// Small letters without accents, one for each, so that places in it are places in the text.
QString folded(const QString& text) {
  QString made = text;
  for (QChar& letter : made) {
    if (const QString parts = letter.decomposition(); letter.decompositionTag() == QChar::Canonical && !parts.isEmpty()) letter = parts[0];
    letter = letter == u'_' ? QChar(u' ') : letter.toLower();
  }
  return made;
}

constexpr int far = 8;  ///< a menu in a menu comes after other entries that fit as well

bool beginsWord(QStringView text, qsizetype at) { return at == 0 || !text[at - 1].isLetterOrNumber(); }
bool endsWord(QStringView text, qsizetype end) { return end == text.size() || !text[end].isLetterOrNumber(); }

struct Hit {
  int score = 0;  ///< 0: it is not there
  QList<int> letters = {};
};

/// A word in one piece: 100 as a word, 80 as the beginning of one, 50 inside one.
Hit inOnePiece(QStringView word, QStringView text) {
  Hit best;
  for (qsizetype at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    const int score = !beginsWord(text, at) ? 50 : endsWord(text, at + word.size()) ? 100 : 80;
    if (score <= best.score) continue;
    best = {score, {}};
    for (qsizetype i = 0; i < word.size(); ++i) best.letters << static_cast<int>(at + i);
  }
  return best;
}

/// Its letters in their order from the beginning of a word on: 35 where each goes on with the one before or begins a word, "gradlab" in
/// "gradient lab"; 15 where few others lie between them.
Hit inPieces(QStringView word, QStringView text) {
  if (word.size() < 2) return {};
  Hit best;
  for (qsizetype first = text.indexOf(word[0]); first >= 0; first = text.indexOf(word[0], first + 1)) {
    if (!beginsWord(text, first)) continue;
    QList<int> letters{static_cast<int>(first)};
    bool tidy = true;
    for (qsizetype i = 1; i < word.size() && !letters.isEmpty(); ++i) {
      const qsizetype next = letters.back() + 1;
      qsizetype at = next < text.size() && text[next] == word[i] ? next : -1;
      for (qsizetype start = at < 0 ? text.indexOf(word[i], next) : -1; at < 0 && start >= 0; start = text.indexOf(word[i], start + 1))
        if (beginsWord(text, start)) at = start;
      if (at < 0) {
        at = text.indexOf(word[i], next);
        tidy = false;
      }
      if (at < 0)
        letters.clear();
      else
        letters << static_cast<int>(at);
    }
    if (letters.isEmpty()) continue;
    const int score = tidy ? 35 : letters.back() - letters.front() < 2 * word.size() + 2 ? 15 : 0;
    if (score > best.score) best = {score, letters};
  }
  return best;
}

Hit placeOf(QStringView word, QStringView text) {
  Hit found = inOnePiece(word, text);
  return found.score > 0 ? found : inPieces(word, text);
}

QStringList wordsOf(const QString& query) {
  static const QRegularExpression gap(QStringLiteral("[\\s=]+"));
  return folded(query).split(gap, Qt::SkipEmptyParts);
}

/// 0 where a word is in neither.
int scoreOf(const QStringList& words, const QString& text, const QString& more) {
  int sum = 0;
  for (const QString& word : words) {
    int best = placeOf(word, text).score;
    if (best < 60) best = std::max(best, inOnePiece(word, more).score * 3 / 5);
    if (best == 0) return 0;
    sum += best;
  }
  const QString whole = words.join(' ');
  if (text == whole)
    sum += 200;
  else if (text.startsWith(whole))
    sum += 60;
  return 16 * sum - static_cast<int>(std::min<qsizetype>(text.size(), 100) / 10);  // of as good ones the shorter
}

}  // namespace

PaletteIndex::PaletteIndex(std::vector<PaletteEntry> entries, const QStringList& lastUsed) : entries_(std::move(entries)) {
  for (const PaletteEntry& entry : entries_) {
    const auto used = lastUsed.indexOf(keyOf(entry));
    folded_.push_back({folded(entry.text), folded(entry.synonyms + ' ' + entry.detail),
                       used < 0 ? std::numeric_limits<int>::max() : static_cast<int>(used),
                       static_cast<int>(entry.detail.count(QStringLiteral("▸")))});
  }
}

std::vector<PaletteIndex::Match> PaletteIndex::find(const QString& query) const {
  static const QRegularExpression valued(QStringLiteral("^(.*\\S)\\s*[\\s=]\\s*(\\S+)\\s*$"));
  const QStringList words = wordsOf(query);
  const QRegularExpressionMatch parts = valued.match(query);
  const QStringList named = wordsOf(parts.captured(1));
  const QString value = parts.captured(2);
  const bool isNumber = !value.isEmpty() && (value[0].isDigit() || QStringLiteral("+-.").contains(value[0]));
  struct Found {
    Match match;
    int used;
  };
  std::vector<Found> found;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const PaletteEntry& entry = entries_[i];
    const Folded& its = folded_[i];
    if (entry.values && !named.isEmpty())
      if (const int score = scoreOf(named, its.text, its.more); score > 0) {
        const QString whyNot = entry.enabled ? entry.values->whyNot(value) : entry.whyNot;
        if (whyNot.isEmpty() || isNumber) {
          found.push_back({{&entry, value, whyNot, score + (whyNot.isEmpty() ? 16 * 100 : 0)}, its.used});
          continue;
        }
      }
    if (const int score = words.isEmpty() ? 1 : scoreOf(words, its.text, its.more); score > 0)
      found.push_back({{&entry, {}, entry.enabled ? QString() : entry.whyNot, words.isEmpty() ? 1 : score - far * its.depth}, its.used});
  }
  std::ranges::stable_sort(found, [](const Found& a, const Found& b) {
    return a.match.score != b.match.score ? a.match.score > b.match.score : a.used < b.used;
  });
  std::vector<Match> matches;
  for (Found& one : found) matches.push_back(std::move(one.match));
  return matches;
}

QList<int> markedBy(const QString& query, const QString& text) {
  QList<int> all;
  const QString plain = folded(text);
  for (const QString& word : wordsOf(query)) all << placeOf(word, plain).letters;
  return all;
}

}  // namespace reclab
