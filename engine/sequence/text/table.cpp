// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/text/table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "array/cpu/processor/threads.h"
#include "array/error.h"
#include "sequence/missing.h"
#include "sequence/text/cells.h"
#include "sequence/text/encoding.h"
#include "sequence/text/records.h"

namespace reclab {

namespace {

constexpr std::size_t sample_records = 200;  // looked at to find the delimiter, the header and the kinds of the columns

// ---- the dialect

struct Dialect {
  char delimiter = ',';
  std::size_t start = 0;  ///< where the first record begins
  std::int64_t start_line = 1;
  std::string_view comment;  ///< the last comment line above it, without its #
};

/// Skips lines above the table: blank lines, comments, and Excel's "sep=;".
Dialect preamble(std::string_view text) {
  Dialect dialect;
  dialect.delimiter = '\0';
  while (dialect.start < text.size()) {
    const std::size_t end = std::min(text.find_first_of("\r\n", dialect.start), text.size());
    std::string_view line = text.substr(dialect.start, end - dialect.start);
    while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
    const bool separator = line.size() == 5 && line.starts_with("sep=");
    if (!line.empty() && line[0] != '#' && !separator) break;
    if (separator) dialect.delimiter = line[4];
    if (!line.empty() && line[0] == '#') dialect.comment = line.substr(std::min(line.find_first_not_of('#'), line.size()));
    dialect.start = end + (text.substr(end).starts_with("\r\n") ? 2 : end < text.size() ? 1 : 0);
    ++dialect.start_line;
  }
  return dialect;
}

std::vector<std::vector<TableCell>> sample(std::string_view text, const Dialect& dialect, char delimiter, const std::string& file,
                                           std::vector<std::int64_t>* lines = nullptr) {
  Records records(text, delimiter, file);
  records.start_at(dialect.start, dialect.start_line);
  std::vector<std::vector<TableCell>> found;
  std::vector<TableCell> cells;
  while (found.size() < sample_records && records.next(cells)) {
    if (cells.empty()) continue;
    found.push_back(cells);
    if (lines) lines->push_back(records.line());
  }
  return found;
}

/// Takes the delimiter under which the most cells of the most alike records are numbers.
char find_delimiter(std::string_view text, const Dialect& dialect, const std::string& file) {
  double best = -1.0;
  char delimiter = '\0';
  std::optional<Error> unclosed;
  for (const char candidate : {',', '\t', ';', '|', ' ', '\0'}) {
    std::vector<std::vector<TableCell>> records;
    try {
      records = sample(text, dialect, candidate, file);
    } catch (const Error& error) {
      if (!unclosed) unclosed = error;
      continue;
    }
    const bool only = records.size() == 1;
    std::map<std::size_t, std::size_t> widths;
    for (std::size_t i = only ? 0 : 1; i < records.size(); ++i) ++widths[records[i].size()];
    std::size_t width = 0, alike = 0;
    for (const auto& [cells, times] : widths)
      if (times >= alike) width = cells, alike = times;
    if (candidate == '\0') {
      // A column of its own only if its first line has nothing that could separate: "1,5" below a header "v" is one and a half.
      if (!records[0][0].quoted && records[0][0].text.find_first_of(",;\t|") != std::string_view::npos) continue;
    } else if (width < 2) {
      continue;
    }
    alike += !only && records[0].size() == width;
    std::size_t cells = 0, numbers = 0;
    for (std::size_t i = only ? 0 : 1; i < records.size(); ++i)
      for (const TableCell& cell : records[i]) {
        ++cells;
        numbers += kind_of(cell, candidate != ',') != CellKind::word;
      }
    const double score = static_cast<double>(alike) / static_cast<double>(records.size()) *
                         (0.01 + static_cast<double>(numbers) / static_cast<double>(cells));
    if (score > best) best = score, delimiter = candidate;
  }
  if (best < 0.0 && unclosed) throw *unclosed;
  return delimiter;
}

/// "time (s)" or "time [s]" is a name and a unit.
}  // namespace

std::pair<std::string, std::string> name_and_unit(const std::string& name) {
  if (name.size() > 2 && (name.back() == ')' || name.back() == ']')) {
    const std::size_t open = name.rfind(name.back() == ')' ? '(' : '[');
    if (open != std::string::npos && open > 0) {
      std::string bare = name.substr(0, open);
      while (!bare.empty() && is_blank(bare.back())) bare.pop_back();
      if (!bare.empty()) return {bare, name.substr(open + 1, name.size() - open - 2)};
    }
  }
  return {name, ""};
}

namespace {

bool names_a_time(const std::string& name) {
  const std::string bare = name_and_unit(name).first;
  for (const std::string_view word :
       {"t",     "time",     "date",    "datetime",  "timestamp",   "year", "years",    "seconds",
        "step",  // below, the same in other languages
        "zeit",  "datum",    "uhrzeit", "zeitpunkt", "zeitstempel", "jahr", "sekunden", "temps",   "heure",    "horodatage", "année",
        "annee", "secondes", "tiempo",  "fecha",     "hora",        "año",  "segundos", "tempo",   "ora",      "anno",       "secondi",
        "tijd",  "tijdstip", "jaar",    "seconden",  "czas",        "rok",  "sekundy",  "tid",     "tidpunkt", "dato",       "år",
        "čas",   "aika",     "päivä",   "zaman",     "tarih",       "idő",  "время",    "Время",   "дата",     "Дата",       "год",
        "Год",   "час",      "Час",     "时间",      "日期",        "時間", "日時",     "日付",    "시간",     "날짜"})
    if (same_word(bare, word)) return true;
  return false;
}

/// Whether the first column of a table without names is the time of its rows: it goes up evenly, or is seconds (or milli-, micro-,
/// nanoseconds) since 1970 that never fall. A few rows do not tell.
bool counts_the_rows(const std::vector<double>& values) {
  constexpr std::size_t enough = 8;
  if (values.size() < enough) return false;
  const double step = (values.back() - values.front()) / static_cast<double>(values.size() - 1);
  bool rises = true, even = true;
  for (std::size_t i = 1; i < values.size(); ++i) {
    rises = rises && values[i] > values[i - 1];
    even = even && std::abs(values[i] - values[i - 1] - step) <= 1e-3 * step;
  }
  constexpr double of_1990 = 6.3e8, of_2100 = 4.1e9;
  bool instants = false;
  for (const double unit : {1.0, 1e3, 1e6, 1e9})
    instants = instants || (values.front() >= of_1990 * unit && values.back() <= of_2100 * unit);
  return rises && (even || instants);
}

/// The table while it is read.
class TableReader {
 public:
  TableReader(std::string_view text, const std::string& file, const LoadOptions& options) : text_(text), file_(file), options_(options) {}

  Table read() {
    dialect_ = preamble(text_);
    if (dialect_.start >= text_.size()) fail("is empty: give it a row of numbers a time step", "line 1");
    if (dialect_.delimiter == '\0') dialect_.delimiter = find_delimiter(text_, dialect_, file_);
    allow_comma_ = dialect_.delimiter != ',';
    find_header();
    choose();
    read_rows();
    return finish();
  }

 private:
  enum class ColumnKind { numbers, dates, text, nothing };

  [[noreturn]] void fail(const std::string& what, const std::string& place) const {
    throw Error(file_ + " " + what, {.file = file_, .place = place});
  }
  [[noreturn]] void fail_line(std::int64_t line, const std::string& what) const {
    const std::string place = "line " + std::to_string(line);
    throw Error(file_ + ": " + place + " " + what, {.file = file_, .place = place});
  }
  [[noreturn]] void fail_at(std::int64_t line, std::size_t column, const std::string& what, const std::string& value = {}) const {
    const std::string place = "line " + std::to_string(line) + ", column " + std::to_string(column + 1);
    throw Error(file_ + ": " + place + (has_names_ && !names_[column].empty() ? " (" + shown(names_[column]) + ") " : " ") + what,
                {.file = file_, .place = place, .value = value});
  }

  [[noreturn]] void fail_missing(std::int64_t line, std::size_t column, const Sentence& what, const std::string& value,
                                 const char* cures = missing_cures) const {
    const std::string place = "line " + std::to_string(line) + ", column " + std::to_string(column + 1);
    throw MissingCellError(
        file_ + ": " + place + (has_names_ && !names_[column].empty() ? " (" + shown(names_[column]) + ") " : " ") + what,
        {.file = file_, .place = place, .parameter = "missing", .value = value, .range = cures});
  }

  /// Finds the names and the kind of each column.
  void find_header() {
    std::vector<std::int64_t> lines;
    std::vector<std::vector<TableCell>> records = sample(text_, dialect_, dialect_.delimiter, file_, &lines);
    const std::vector<TableCell> first = records.front();
    columns_ = first.size();
    const auto kind = [&](const TableCell& cell) { return kind_of(cell, allow_comma_); };
    // R writes row names without a heading: every row has one cell more than the header.
    const bool blanks = dialect_.delimiter == ' ' || dialect_.delimiter == '\t';
    const bool row_names =
        records.size() > 1 &&
        std::all_of(records.begin() + 1, records.end(),
                    [&](const auto& record) { return record.size() == columns_ + 1 && (blanks || record[0].quoted); }) &&
        std::all_of(first.begin(), first.end(), [&](const TableCell& cell) { return cell.quoted || kind(cell) == CellKind::word; });
    const std::size_t shift = row_names ? 1 : 0;
    columns_ += shift;

    std::vector<std::array<std::size_t, cell_kinds>> counts(columns_);
    for (auto& count : counts) count.fill(0);
    bool quoted_below = false;
    for (std::size_t i = 1; i < records.size(); ++i)
      for (std::size_t j = 0; j < std::min(columns_, records[i].size()); ++j) {
        ++counts[j][static_cast<std::size_t>(kind(records[i][j]))];
        quoted_below = quoted_below || records[i][j].quoted;
      }
    const auto in = [&](std::size_t j, CellKind which) { return counts[j][static_cast<std::size_t>(which)]; };
    const auto words = [&](std::size_t j) { return in(j, CellKind::word); };
    const auto others = [&](std::size_t j) { return records.size() - 1 - words(j); };

    bool header = row_names;
    for (std::size_t j = shift; j < columns_ && !header; ++j)  // a word above mostly other cells
      header = kind(first[j - shift]) == CellKind::word && others(j) >= words(j);
    if (!header && records.size() > 1 && !quoted_below)
      header = std::all_of(first.begin(), first.end(), [](const TableCell& cell) { return cell.quoted; });
    names_.assign(columns_, "");
    has_names_ = header;
    skip_first_ = header;
    if (header) {
      for (std::size_t j = shift; j < columns_; ++j) names_[j] = unquoted(first[j - shift]);
    } else if (!dialect_.comment.empty()) {
      // numpy.savetxt writes its header as a comment.
      std::vector<TableCell> cells;
      Records comment(dialect_.comment, dialect_.delimiter, file_);
      if (comment.next(cells) && cells.size() == columns_ &&
          std::all_of(cells.begin(), cells.end(), [&](const TableCell& cell) { return kind(cell) == CellKind::word; })) {
        for (std::size_t j = 0; j < columns_; ++j) names_[j] = unquoted(cells[j]);
        has_names_ = true;
      }
    }
    if (header && records.size() == 1)
      fail("has a header in line " + std::to_string(lines[0]) + " and no rows below it: add a row of numbers a time step",
           "line " + std::to_string(lines[0]));

    kinds_.resize(columns_);
    for (std::size_t j = 0; j < columns_; ++j) {
      if (!header) ++counts[j][static_cast<std::size_t>(kind(first[j]))];
      const std::size_t numbers = in(j, CellKind::number) + in(j, CellKind::nan) + in(j, CellKind::infinite) + in(j, CellKind::too_large) +
                                  in(j, CellKind::grouped),
                        dates = in(j, CellKind::date);
      if (numbers + dates + words(j) + in(j, CellKind::missing) == 0)
        kinds_[j] = names_[j].empty() && columns_ > 1 && has_names_ ? ColumnKind::nothing : ColumnKind::numbers;
      else if (dates > numbers && dates >= words(j))
        kinds_[j] = ColumnKind::dates;
      else
        kinds_[j] = numbers >= words(j) ? ColumnKind::numbers : ColumnKind::text;
    }
    if (std::none_of(kinds_.begin(), kinds_.end(), [](ColumnKind k) { return k == ColumnKind::numbers; }) && options_.columns.empty()) {
      const std::size_t i = records.size() > 1 ? 1 : 0;  // the first line may be a header, so the second is reported
      fail_word(records[i], lines[i]);
    }
    const std::size_t row = header ? 1 : 0;
    if (!has_names_ && columns_ > 1 && kinds_[0] == ColumnKind::numbers) {
      // Where the second one does so too, as in a table of ramps, none is a time.
      const auto counts_rows = [&](std::size_t column) {
        std::vector<double> values;
        std::optional<bool> comma;
        for (const auto& record : records) {
          double value = 0.0;
          if (column >= record.size() || number(record[column].text, allow_comma_, value, comma) != CellKind::number) return false;
          values.push_back(value);
        }
        return counts_the_rows(values);
      };
      first_counts_ = counts_rows(0) && !counts_rows(1);
    }
    first_rows_.assign(records.begin() + static_cast<std::ptrdiff_t>(row),
                       records.begin() + static_cast<std::ptrdiff_t>(std::min(records.size(), row + 2)));
  }

  [[noreturn]] void fail_word(const std::vector<TableCell>& cells, std::int64_t line) const {
    std::size_t column = 0;
    while (column + 1 < std::min(cells.size(), columns_) && kinds_[column] != ColumnKind::text) ++column;
    const std::string text = shown(cells[column].text);
    fail_at(line, column, "is '" + text + "', and no column of the file holds numbers: give it a column of numbers", text);
  }

  /// Chooses the columns of input and of time.
  void choose() {
    const std::vector<std::string> known = has_names_ ? names_ : std::vector<std::string>(columns_);
    std::vector<bool> taken(columns_, false);
    const ChosenColumns chosen = resolve_columns(options_, known, file_);
    wanted_ = chosen.inputs;
    for (const auto* columns : {&chosen.inputs, &chosen.targets})
      for (const std::size_t column : *columns) taken[column] = true;
    if (options_.time && *options_.time != "none") {
      time_ = resolve_column(*options_.time, known, file_);
      if (kinds_[*time_] == ColumnKind::text) kinds_[*time_] = ColumnKind::numbers;  // its first word is refused below
    } else if (!options_.time) {
      find_time(taken);
    }
    if (options_.columns.empty())
      for (std::size_t j = 0; j < columns_; ++j)
        if (kinds_[j] == ColumnKind::numbers && (!time_ || j != *time_) && !taken[j]) wanted_.push_back(j);
    if (wanted_.empty() && time_)
      fail("has no column of numbers beside its time, column " + std::to_string(*time_ + 1) +
               (chosen.targets.empty() ? ": add one, or set the time column to none"
                                       : ", and its target: add one, or choose another target"),
           "header");
    if (wanted_.empty()) fail("has no column of numbers beside its target: add one, or choose another target", "header");
    inputs_ = wanted_.size();
    wanted_.insert(wanted_.end(), chosen.targets.begin(), chosen.targets.end());
  }

  /// A column that is named like a time, dates, or an unnamed first one that counts the rows.
  void find_time(const std::vector<bool>& taken) {
    automatic_time_ = true;
    for (std::size_t j = 0; j < columns_; ++j)
      if (has_names_ && !taken[j] && names_a_time(names_[j]) && (kinds_[j] == ColumnKind::numbers || kinds_[j] == ColumnKind::dates)) {
        // The first two rows tell a year column that repeats (year, month, value) from a time; the rest is seen when it is read.
        if (kinds_[j] == ColumnKind::numbers && !rises_at_first(j)) continue;
        if (kinds_[j] == ColumnKind::numbers && columns_ == 1) continue;
        time_ = j;
        return;
      }
    for (std::size_t j = 0; j < columns_; ++j)
      if (!taken[j] && kinds_[j] == ColumnKind::dates) {
        time_ = j;
        return;
      }
    if (first_counts_ && !taken[0]) time_ = 0;
    if (has_names_ && columns_ > 1 && names_[0].empty() && !taken[0] && kinds_[0] == ColumnKind::numbers && rises_at_first(0)) time_ = 0;
  }

  bool rises_at_first(std::size_t column) const {
    double value[2] = {};
    std::optional<bool> comma;
    for (std::size_t i = 0; i < first_rows_.size(); ++i)
      if (column >= first_rows_[i].size() || number(first_rows_[i][column].text, allow_comma_, value[i], comma) != CellKind::number)
        return true;
    return first_rows_.size() < 2 || value[0] < value[1];
  }

  void read_rows() {
    Records records(text_, dialect_.delimiter, file_);
    records.start_at(dialect_.start, dialect_.start_line);
    std::vector<TableCell> cells;
    if (skip_first_) records.next(cells);
    const auto lines = static_cast<std::size_t>(std::count_if(text_.begin(), text_.end(), [](char c) { return c == '\n'; })) + 1;
    // A cell takes two bytes at least, with its separator: lines may be blank.
    const std::size_t cells_at_most = text_.size() / 2 + 1;
    data_.reserve(std::min(lines * wanted_.size(), cells_at_most));
    if (time_) times_.reserve(std::min(lines, cells_at_most));
    std::int64_t blank_line = 0, blank_lines = 0;
    std::optional<bool> comma;
    std::int64_t comma_line = 0;
    const bool dates = time_ && kinds_[*time_] == ColumnKind::dates;
    std::vector<double> numbers(columns_);
    for (bool points = false;;) {
      // Most rows are such. What is to be said of a row, and which decimal sign the file has, is found below.
      while (blank_line == 0 && !dates) {
        if (records.position() >= pieces_from_) take_pieces(records, comma);
        if (!records.next_is(numbers, points) || !fits(points, comma, numbers[time_.value_or(0)])) break;
        records.take();
        for (const std::size_t column : wanted_) data_.push_back(numbers[column]);
        if (time_) {
          times_.push_back(numbers[*time_]);
          last_time_ = times_.size() - 1;
        }
      }
      if (!records.next(cells)) break;
      const std::int64_t line = records.line();
      if (cells.empty()) {
        if (blank_line == 0) blank_line = line;
        ++blank_lines;
        continue;
      }
      if (blank_line != 0 && columns_ == 1 && options_.missing != Missing::refuse) {  // the one cell of a row is missing
        data_.insert(data_.end(), static_cast<std::size_t>(blank_lines) * wanted_.size(), not_there);
        blank_line = blank_lines = 0;
      }
      if (blank_line != 0 && columns_ == 1)
        throw MissingCellError(
            file_ + ": line " + std::to_string(blank_line) + " is empty and rows follow it: fill the gap in, remove the line" +
                missing_cure(),
            {.file = file_, .place = "line " + std::to_string(blank_line), .parameter = "missing", .range = missing_cures});
      if (blank_line != 0) fail_line(blank_line, "is empty and rows follow it: fill the gap in or remove the line");
      if (cells.size() != columns_)
        fail_line(line, "has " + std::to_string(cells.size()) + (cells.size() == 1 ? " cell" : " cells") + " where the " +
                            (skip_first_ ? "header" : "first row") + " has " + std::to_string(columns_) + ": make every row as long");
      std::optional<bool> here;
      for (const std::size_t column : wanted_) {
        data_.push_back(value_of(cells[column], line, column, here));
        if (here && comma && *here != *comma)
          fail_at(line, column,
                  std::string("is '") + shown(cells[column].text) + "', with a decimal " + (*here ? "comma" : "point") + " where line " +
                      std::to_string(comma_line) + " has a decimal " + (*comma ? "comma" : "point") +
                      ": use one of them, and no thousands separators",
                  shown(cells[column].text));
        if (here && !comma) comma = here, comma_line = line;
      }
      if (time_) read_time(cells[*time_], line, here);
    }
  }

  /// Whether such rows, from one of that time on, need no look of their own.
  bool fits(bool points, const std::optional<bool>& comma, double time) const {
    return !(allow_comma_ && points && comma.value_or(true)) &&
           (!time_ || time_falls_ || last_time_ == no_row || time > times_[last_time_]);
  }

  /// Takes the rows of long tables that are such in pieces, on all processors.
  void take_pieces(Records& records, const std::optional<bool>& comma) {
    constexpr std::size_t piece_bytes = std::size_t{1} << 19, pieces_a_thread = 4;
    const std::size_t from = records.position();
    const auto threads = static_cast<std::size_t>(cpu::thread_count());
    pieces_.resize(threads == 1 ? 0 : threads * pieces_a_thread);  // their memory is used again
    std::size_t count = 0, next = from;
    while (count < pieces_.size() && text_.size() - next > piece_bytes) {
      const std::size_t end = text_.find('\n', next + piece_bytes - 1);
      if (end == std::string_view::npos) break;
      pieces_[count++].begin_anew(next, end + 1);
      next = end + 1;
    }
    pieces_from_ = count < 2 ? text_.size() : next;  // no second try where some are not such
    if (count < 2) return;
    cpu::parallel(static_cast<std::int64_t>(count), [&](std::int64_t i) {
      read_plain_rows(pieces_[static_cast<std::size_t>(i)], text_, dialect_.delimiter, file_, columns_, wanted_, time_ ? &*time_ : nullptr);
    });
    for (const PlainRows& piece : std::span(pieces_).first(count)) {
      if (!piece.whole || (time_ && !time_falls_ && !piece.rises) || !fits(piece.points, comma, time_ ? piece.times.front() : 0.0)) return;
      data_.insert(data_.end(), piece.data.begin(), piece.data.end());
      times_.insert(times_.end(), piece.times.begin(), piece.times.end());
      if (time_) last_time_ = times_.size() - 1;
      records.start_at(piece.end, records.next_line() + piece.rows);
    }
  }

  double value_of(const TableCell& cell, std::int64_t line, std::size_t column, std::optional<bool>& comma) const {
    double value = 0.0;
    if (number(cell.text, allow_comma_, value, comma) == CellKind::number) return value;
    const std::string text = shown(cell.text);
    const std::string cure = ": correct it, leave the row out, or choose other columns";
    const CellKind kind = kind_of(cell, allow_comma_);
    if (is_missing(kind)) {
      if (options_.missing != Missing::refuse) return not_there;
      fail_missing(line, column,
                   (kind == CellKind::empty ? "is empty"
                    : kind == CellKind::nan ? "is NaN"
                                            : "is '" + text + "', a missing value") +
                       ": fill it in, leave the row out, choose other columns" + missing_cure(),
                   text);
    }
    switch (kind) {
      case CellKind::infinite: fail_at(line, column, "is infinite" + cure, text);
      case CellKind::too_large: fail_at(line, column, "is " + text + ", beyond the range of a float64: rescale the column", text);
      case CellKind::grouped:
        fail_at(line, column, "is '" + text + "', which is no plain number: write it with a decimal point and without thousands separators",
                text);
      default: break;
    }
    fail_at(line, column, "is '" + text + "', not a number" + cure, text);
  }

  static bool is_missing(CellKind kind) { return kind == CellKind::empty || kind == CellKind::nan || kind == CellKind::missing; }

  void read_time(const TableCell& cell, std::int64_t line, std::optional<bool>& comma) {
    if (is_missing(kind_of(cell, allow_comma_))) {
      // Refused once it is known whether the column is the time.
      if (!missing_time_) missing_time_ = {line, shown(cell.text)};
      times_.push_back(not_there);
      return;
    }
    if (kinds_[*time_] == ColumnKind::dates) {
      const auto instant = iso_date(cell.text);
      if (!instant)
        fail_at(line, *time_, "is '" + shown(cell.text) + "', not a date like 2024-05-17: correct it, or set the time column to none",
                shown(cell.text));
      if (last_time_ == no_row) first_instant_ = {instant->seconds, 0.0};
      whole_days_ = whole_days_ && instant->fraction == 0.0 && instant->seconds % 86400 == 0;
      times_.push_back(static_cast<double>(instant->seconds - first_instant_.seconds) + instant->fraction);
    } else {
      times_.push_back(value_of(cell, line, *time_, comma));
    }
    const std::size_t before = std::exchange(last_time_, times_.size() - 1);
    if (!time_falls_ && before != no_row && !(times_.back() > times_[before])) {
      // A column that was taken for time by its name alone is an input after all; dates cannot be one.
      time_falls_ = true;
      if (automatic_time_ && kinds_[*time_] == ColumnKind::numbers) return;
      fail_at(line, *time_,
              "is '" + shown(cell.text) + "', not later than the row above: sort the rows by time, or set the time column to none",
              shown(cell.text));
    }
  }

  Table finish() {
    Table table;
    table.rows = static_cast<std::int64_t>(data_.size() / wanted_.size());
    if (time_ && time_falls_) {
      // Back among the inputs, at its place.
      const auto last_input = wanted_.begin() + static_cast<std::ptrdiff_t>(inputs_);
      const auto at = static_cast<std::size_t>(std::lower_bound(wanted_.begin(), last_input, *time_) - wanted_.begin());
      const bool chosen = !options_.columns.empty();
      if (!chosen) {
        std::vector<double> merged;
        merged.reserve(data_.size() + times_.size());
        for (std::size_t t = 0; t < times_.size(); ++t)
          for (std::size_t k = 0; k <= wanted_.size(); ++k)
            merged.push_back(k == at ? times_[t] : data_[t * wanted_.size() + k - (k > at)]);
        data_ = std::move(merged);
        wanted_.insert(wanted_.begin() + static_cast<std::ptrdiff_t>(at), *time_);
        ++inputs_;
      }
      if (!chosen && missing_time_ && options_.missing == Missing::refuse)
        fail_missing(missing_time_->first, *time_, "has no number: fill it in, leave the row out, choose other columns" + missing_cure(),
                     missing_time_->second);
      time_.reset();
    }
    if (time_ && missing_time_ && options_.missing != Missing::leave_out)
      fail_missing(missing_time_->first, *time_,
                   "is a time that is missing: fill it in" + Remedy{", ", "leave such rows out (", {"missing", "leave-out"}, ")"} +
                       ", or set the time column to none",
                   missing_time_->second, "leave-out");
    for (const std::size_t column : wanted_)
      table.names.push_back(names_[column].empty() ? default_column_name(column, wanted_.size(), file_) : names_[column]);
    table.targets = static_cast<std::int64_t>(wanted_.size() - inputs_);
    table.data = std::move(data_);
    if (time_) {
      std::tie(table.time_name, table.time_unit) = name_and_unit(names_[*time_]);
      if (kinds_[*time_] == ColumnKind::dates) {
        if (whole_days_)
          for (double& time : times_) time /= 86400.0;
        table.time_unit = (whole_days_ ? "days since " : "s since ") + iso_text(first_instant_.seconds);
        if (table.time_name.empty()) table.time_name = "date";
      }
      if (table.time_name.empty()) table.time_name = first_counts_ ? "time" : "row";
      table.time = std::move(times_);
    }
    return table;
  }

  std::string_view text_;
  const std::string& file_;
  const LoadOptions& options_;
  Dialect dialect_;
  bool allow_comma_ = false, has_names_ = false, skip_first_ = false, first_counts_ = false;
  std::size_t columns_ = 0;
  std::vector<std::string> names_;
  std::vector<ColumnKind> kinds_;
  std::vector<std::vector<TableCell>> first_rows_;
  std::vector<std::size_t> wanted_;  // inputs, then targets
  std::size_t inputs_ = 0;
  std::optional<std::size_t> time_;
  bool automatic_time_ = false, time_falls_ = false, whole_days_ = true;
  Instant first_instant_;
  std::vector<double> data_, times_;
  std::vector<PlainRows> pieces_;
  std::size_t pieces_from_ = 0;  ///< where the next ones may begin
  static constexpr double not_there = std::numeric_limits<double>::quiet_NaN();
  static constexpr std::size_t no_row = std::numeric_limits<std::size_t>::max();
  std::size_t last_time_ = no_row;                                    ///< the row of the last time that is there
  std::optional<std::pair<std::int64_t, std::string>> missing_time_;  ///< line and text of the first that is not
};

}  // namespace

std::string shown(std::string_view text) {
  std::string result;
  for (const char c : to_utf8(text.substr(0, 60))) {
    if (result.size() >= 40 && (static_cast<unsigned char>(c) & 0xc0) != 0x80) return result + "...";
    result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  return text.size() > 60 ? result + "..." : result;
}

std::size_t resolve_column(const std::string& wanted, const std::vector<std::string>& names, const std::string& file) {
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found != names.end() && !wanted.empty()) {
    if (std::find(found + 1, names.end(), wanted) != names.end())
      throw Error(file + " has two columns named '" + shown(wanted) + "': choose by number, 1 to " + std::to_string(names.size()),
                  {.file = file, .place = "header", .value = wanted});
    return static_cast<std::size_t>(found - names.begin());
  }
  std::size_t number = 0;
  const auto [end, code] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
  if (code == std::errc{} && end == wanted.data() + wanted.size() && number >= 1 && number <= names.size()) return number - 1;
  std::string known;
  for (std::size_t i = 0; i < names.size() && i < 12; ++i)
    if (!names[i].empty()) known += (known.empty() ? "" : ", ") + shown(names[i]);
  if (names.size() > 12 && !known.empty()) known += ", ...";
  throw Error(file + " has no column '" + shown(wanted) + "': choose " + (known.empty() ? "" : "from " + known + ", or ") +
                  (names.size() == 1 ? "number 1" : "a number from 1 to " + std::to_string(names.size())),
              {.file = file, .place = "header", .value = wanted});
}

ChosenColumns resolve_columns(const LoadOptions& options, const std::vector<std::string>& names, const std::string& file) {
  const auto resolved = [&](const std::vector<std::string>& wanted, const char* as) {
    std::vector<std::size_t> found;
    for (const std::string& name : wanted) {
      const std::size_t column = resolve_column(name, names, file);
      if (std::ranges::find(found, column) != found.end())
        throw Error(file + ": column '" + shown(name) + "' is chosen twice; name it once", {.file = file, .parameter = as, .value = name});
      found.push_back(column);
    }
    return found;
  };
  ChosenColumns chosen;
  chosen.inputs = resolved(options.columns, "columns");
  if (!next_is_target(options)) chosen.targets = resolved(options.target, "target");
  return chosen;
}

std::string default_column_name(std::size_t column, std::size_t columns, const std::string& file) {
  const std::string stem = to_utf8(std::filesystem::path(file).stem().string());
  return columns == 1 && !stem.empty() ? stem : "column " + std::to_string(column + 1);
}

Table read_text_table(std::string bytes, const std::string& file, const LoadOptions& options) {
  const std::string text = decoded(std::move(bytes), file);
  return TableReader(text, file, options).read();
}

}  // namespace reclab
