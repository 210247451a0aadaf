// SPDX-License-Identifier: GPL-3.0-or-later
// The rules of the house, read off the #include lines: floors see only what is under them, the engine sees no window, a panel no model.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "houses.h"
#include "places.h"
#include "test.h"

namespace {
struct Include {
  int line;
  std::string name;
  bool quoted;
};

bool is_source(const fs::path& file) {
  static const std::set<std::string> endings{".h", ".hpp", ".cpp", ".cu", ".cuh", ".in", ".inc"};
  return endings.contains(file.extension().string());
}

std::string contents(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  CHECK_SAYS(stream.good(), file.string());
  std::stringstream buffer;
  buffer << stream.rdbuf();
  return buffer.str();
}

/// The text without comments and without what stands in quotes; lines stay where they are.
std::string code_of(const std::string& text) {
  static const std::regex quiet(R"(//[^\n]*|/\*[^]*?\*/|"(?:\\.|[^"\\\n])*")");
  std::string code;
  auto last = text.cbegin();
  for (std::sregex_iterator match(text.begin(), text.end(), quiet), end; match != end; ++match) {
    code.append(last, text.cbegin() + match->position());
    const std::string gone = match->str();
    code.append(static_cast<std::size_t>(std::ranges::count(gone, '\n')), '\n');
    last = text.cbegin() + match->position() + match->length();
  }
  return code.append(last, text.cend());
}

std::vector<Include> includes_of(const std::string& text) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*(["<])([^">]+)[">].*)re");
  std::vector<Include> found;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::smatch match;
    if (std::regex_match(line, match, pattern)) found.push_back({number, match[2], match[1] == "\""});
  }
  return found;
}

bool is_window(const std::string& include) {
  static const std::regex pattern(R"((Q[A-Z]\w*|Qt\w*|q[a-z]+\.h|vtk\w+\.h|VTK|qcustomplot\.h)(/.*)?)");
  return std::regex_match(include, pattern);
}

bool is_eigen_or_cuda(const std::string& include) {
  static const std::regex pattern(
      R"((unsupported/)?Eigen/.*|cu[a-z_]*\.h|cublas\w*\.h|cufft\w*\.h|thrust/.*|cub/.*|cooperative_groups.*|.*\.cuh)");
  return std::regex_match(include, pattern);
}

/// The path inside a house that an include names, however it is spelt; empty when it names nothing there.
fs::path path_in(const House& house, const fs::path& root, const fs::path& file, const Include& include) {
  for (const fs::path& base : {root / house.included_from, file.parent_path(), root}) {
    const fs::path target = (base / include.name).lexically_normal();
    const fs::path inside = target.lexically_relative(root / house.folder);
    if (!inside.empty() && *inside.begin() != ".." && house.row_of(House::floor_of(inside)) != house.floors.end() &&
        (fs::exists(target) || base == root / house.included_from))
      return inside;
  }
  return {};
}

/// Every broken rule below `root`, a sentence each.
std::vector<std::string> violations(const fs::path& root, std::size_t* files_read = nullptr) {
  std::vector<std::string> found;
  std::size_t count = 0;
  for (const char* top : {"engine", "widgets", "app"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (!entry.is_regular_file() || !is_source(entry.path())) continue;
      ++count;
      const fs::path file = entry.path(), relative = file.lexically_relative(root);
      auto part = relative.begin();
      const std::string house = (part++)->string(), floor = part->string();
      const std::string text = contents(file);
      const auto say = [&](int line, const std::string& sentence) {
        found.push_back(relative.string() + ":" + std::to_string(line) + ": " + sentence);
      };

      const bool windowless = house == "engine" || (house == "app" && floor == "cli");
      for (const House& of : houses) {
        const fs::path own = relative.lexically_relative(of.folder);
        if (*own.begin() == "..") continue;
        const std::string stands = House::floor_of(own);
        const auto row = of.row_of(stands);
        if (row == of.floors.end()) {
          if (!stands.empty()) say(1, stands + " is no floor of " + of.folder);
          continue;
        }
        for (const Include& include : includes_of(text)) {
          const fs::path inside = path_in(of, root, file, include);
          const std::string target = House::floor_of(inside);
          if (!inside.empty() && target != stands && !row->second.contains(target))
            say(include.line, "the floor " + stands + " includes " + inside.string() + " of a floor that is not under it");
        }
      }
      for (const Include& include : includes_of(text)) {
        const fs::path inside = path_in(engine_house, root, file, include);
        const std::string target = inside.empty() ? "" : inside.begin()->string();
        if (windowless && is_window(include.name)) say(include.line, "what has no window includes <" + include.name + ">");
        if (house == "engine" && floor == "models" && is_eigen_or_cuda(include.name))
          say(include.line, "a model includes <" + include.name + ">");
        if (house == "engine" &&
            (include.name.starts_with("widgets/") || include.name.starts_with("gui/") || include.name.starts_with("app/")))
          say(include.line, "the engine includes " + include.name);
        if (house == "widgets" && !target.empty() && target != "trace" && inside != "array/error.h")
          say(include.line, "a widget includes " + inside.string() + "; it knows a Trace and nothing else of the engine");
        if (house == "widgets" && (include.name.starts_with("gui/") || include.name.starts_with("app/")))
          say(include.line, "a widget includes " + include.name);
        if (house == "app" && floor == "cli" && include.name.starts_with("gui/")) say(include.line, "the command line includes the window");
        if (house == "app" && floor == "gui" && include.name.starts_with("cli/")) say(include.line, "the window includes the command line");
      }
      if (windowless) {
        // A forward declaration needs no #include.
        static const std::regex of_qt(
            R"(\bQ(Application|CoreApplication|GuiApplication|Object|String|Widget|Thread|Timer|Variant|_OBJECT)\b)");
        std::istringstream lines(code_of(text));
        int number = 0;
        for (std::string line; std::getline(lines, line);) {
          ++number;
          std::smatch match;
          if (line.find("#") == std::string::npos && std::regex_search(line, match, of_qt))
            say(number, "what has no window names " + match.str());
        }
      }
    }
  }
  if (files_read) *files_read = count;
  return found;
}

/// Files that are longer than they may be until they are cut. One that is not needed here any more is a violation too, so the list only
/// shrinks.
const std::set<std::string> still_long{};

constexpr std::ptrdiff_t most_lines = 700, lines_of_widgets = 350;  // the latter of all but one in twenty
constexpr int most_files = 20;

/// Files of ours that are too long and folders that hold too many, a sentence each.
std::vector<std::string> oversized(const fs::path& root, std::set<std::string> allowed, std::size_t* files_read = nullptr) {
  static const std::set<std::string> sources{".h", ".cpp", ".cu"};
  std::vector<std::string> found, long_widgets;
  std::map<std::string, int> files;
  std::size_t count = 0, widgets = 0;
  for (const char* top : {"engine", "widgets", "app", "tests"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string extension = entry.path().extension().string();
      const fs::path relative = entry.path().lexically_relative(root);
      files[relative.parent_path().string()] += extension == ".py";
      if (!entry.is_regular_file() || !sources.contains(extension)) continue;
      ++count;
      ++files[relative.parent_path().string()];
      const auto lines = std::ranges::count(contents(entry.path()), '\n');
      const std::string sentence = relative.string() + " has " + std::to_string(lines) + " lines";
      if (lines > most_lines && allowed.erase(relative.string()) == 0) found.push_back(sentence);
      if (*relative.begin() == "widgets" && ++widgets && lines > lines_of_widgets) long_widgets.push_back(sentence);
    }
  }
  if (20 * long_widgets.size() > widgets) found.insert(found.end(), long_widgets.begin(), long_widgets.end());
  for (const auto& [folder, number] : files)
    if (number > most_files) found.push_back(folder + " holds " + std::to_string(number) + " files");
  for (const std::string& file : allowed) found.push_back(file + " is not too long any more: take it off the list");
  if (files_read) *files_read = count;
  return found;
}

/// Assertions that some builds do not have.
std::vector<std::string> asserts(const fs::path& root, std::size_t* demands = nullptr) {
  static const std::regex of_some(R"((^|[^\w])assert\s*\()"), of_all(R"(\bRECLAB_DEMAND\()");
  std::vector<std::string> found;
  for (const char* top : {"engine", "widgets", "app"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (!entry.is_regular_file() || !is_source(entry.path())) continue;
      std::istringstream lines(code_of(contents(entry.path())));
      int number = 0;
      for (std::string line; std::getline(lines, line);) {
        ++number;
        if (std::regex_search(line, of_some))
          found.push_back(entry.path().lexically_relative(root).string() + ":" + std::to_string(number) +
                          ": assert() is not in every build: say RECLAB_DEMAND()");
        if (demands) *demands += std::regex_search(line, of_all);
      }
    }
  }
  return found;
}

/// Where app/gui names a panel, which only widgets/panels knows: by its id, which is its folder's name, or by its header.
std::vector<std::string> named_panels(const fs::path& root) {
  static const std::regex literal(R"re(//[^\n]*|"((?:\\.|[^"\\\n])*)")re");
  std::set<std::string> panels;
  for (const auto& entry : fs::directory_iterator(root / "widgets/panels"))
    if (entry.is_directory()) panels.insert(entry.path().filename().string());
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(root / "app/gui")) {
    if (!entry.is_regular_file() || !is_source(entry.path())) continue;
    std::istringstream lines(contents(entry.path()));
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      for (std::sregex_iterator match(line.begin(), line.end(), literal), end; match != end; ++match) {
        const std::string text = (*match)[1];
        if (panels.contains(text) || (text.starts_with("panels/") && text.ends_with(".h") && text != "panels/panels.h"))
          found.push_back(entry.path().lexically_relative(root).string() + ":" + std::to_string(number) + ": the window names the panel " +
                          text);
      }
    }
  }
  return found;
}

/// Classes and enumerations of one name on two floors, a sentence each. What stands inside another class is its own affair.
std::vector<std::string> doubled_classes(const fs::path& root, std::size_t* classes_read = nullptr) {
  static const std::regex definition(
      R"re((^|\n)(?:class|struct|union|enum class|enum)\s+(?:alignas\([^)]*\)\s*)?([A-Za-z_]\w*)\s*(?:final\s*)?(?::[^;{}]*)?\{)re");
  std::map<std::string, std::map<std::string, std::string>> places;  // by name and floor
  std::size_t count = 0;
  for (const char* top : {"engine", "widgets", "app"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (!entry.is_regular_file() || !is_source(entry.path())) continue;
      const fs::path relative = entry.path().lexically_relative(root);
      const fs::path floor = std::string_view(top) == "widgets" ? fs::path(top) : fs::path(top) / *std::next(relative.begin());
      const std::string code = code_of(contents(entry.path()));
      for (std::sregex_iterator match(code.begin(), code.end(), definition), end; match != end; ++match, ++count)
        places[(*match)[2]].emplace(floor.string(), relative.string());
    }
  }
  std::vector<std::string> found;
  for (const auto& [name, floors] : places) {
    if (floors.size() < 2) continue;
    std::string sentence = name + " is a class on " + std::to_string(floors.size()) + " floors:";
    for (const auto& [floor, file] : floors) sentence += " " + file;
    found.push_back(sentence);
  }
  if (classes_read) *classes_read = count;
  return found;
}

/// Where a text could be taken for HTML because it looks like some: labels that do not say their format, tooltips that are more than words
/// of this program and do not go through plain_text.h, questions that Qt words by itself.
std::vector<std::string> guessed_texts(const fs::path& root, std::size_t* tips_read = nullptr) {
  static const std::regex words(R"re(\s*(?:[01],\s*)?(?:\{\}|(?:QObject::)?tr\(\s*(?:"(?:\\.|[^"\\])*"\s*)+\))\s*)re");
  static const std::regex wrapped(R"re(\s*(?:[\w>()\-]+,\s*)?(?:safeTip|htmlTip|joinedTips)\([^]*)re");
  static const std::regex call(
      R"re((\bnew QLabel\b|: public QLabel\b|\bQMessageBox(?:::\w+\()?|\bQInputDialog|\bQProgressDialog|\bQErrorMessage|\bsetToolTip\(|\bsetItemData\(|\bsetData\(|\bQToolTip::showText\())re");
  std::vector<std::string> found;
  std::size_t tips = 0;
  for (const fs::path& top : {root / "widgets", root / "app/gui"}) {
    if (!fs::exists(top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(top)) {
      if (!entry.is_regular_file() || !is_source(entry.path()) || entry.path().filename() == "plain_text.cpp") continue;
      const std::string text = contents(entry.path());
      // The arguments of the call whose bracket is before `from`.
      const auto arguments = [&text](std::size_t from) {
        int depth = 1;
        bool quoted = false;
        std::size_t at = from;
        for (; at < text.size() && depth > 0; ++at) {
          const char c = text[at];
          if (quoted && c == '\\')
            ++at;
          else if (c == '"')
            quoted = !quoted;
          else if (!quoted && (c == '(' || c == '{'))
            ++depth;
          else if (!quoted && (c == ')' || c == '}'))
            --depth;
        }
        return text.substr(from, at - from - 1);
      };
      for (std::sregex_iterator match(text.begin(), text.end(), call), end; match != end; ++match) {
        const std::string what = (*match)[1];
        const auto begin = static_cast<std::size_t>(match->position());
        const std::string of = what.ends_with('(') ? arguments(begin + match->str().size()) : std::string();
        const auto say = [&](const std::string& sentence) {
          const auto line = std::count(text.begin(), text.begin() + match->position(), '\n') + 1;
          found.push_back(entry.path().lexically_relative(root).string() + ":" + std::to_string(line) + ": " + sentence);
        };
        if (what == "new QLabel") say("a label whose text Qt may take for HTML; plainLabel() makes one that shows it as it is");
        if (what == ": public QLabel" && text.find("setTextFormat(Qt::") == std::string::npos)
          say("a label that does not say its text format");
        if (what.starts_with("QMessageBox") && text.find("setTextFormat(Qt::PlainText)") == std::string::npos &&
            text.rfind("#include", begin) == std::string::npos)
          say("a question whose text Qt may take for HTML; setTextFormat(Qt::PlainText) of a QMessageBox of one's own");
        if (what.starts_with("QMessageBox::") && of.size() > 0 &&
            text.substr(begin, 40).find("QMessageBox::StandardButton") == std::string::npos)
          say("a question that Qt words by itself; make a QMessageBox with a plain text");
        if (what == "QInputDialog" || what == "QProgressDialog" || what == "QErrorMessage") {
          if (text.substr(text.rfind('\n', begin) + 1, 8) != "#include") say(what + " takes texts for HTML");
        }
        const bool role = what == "setItemData(" || what == "setData(";
        if (role && of.find("ToolTipRole") == std::string::npos) continue;
        if (!what.ends_with('(') || what.starts_with("QMessageBox")) continue;
        ++tips;
        if (what == "QToolTip::showText(" ? of.find("safeTip(") == std::string::npos && of.find("htmlTip(") == std::string::npos &&
                                                of.find("joinedTips(") == std::string::npos
            : role ? of.find("safeTip(") == std::string::npos && of.find(" tr(\"") == std::string::npos
                   : !std::regex_match(of, words) && !std::regex_match(of, wrapped))
          say("a tooltip that Qt may take for HTML: " + of);
      }
    }
  }
  if (tips_read) *tips_read = tips;
  return found;
}

/// Texts of the engine that may name an option of reclab: by file, what they look like. One that is not needed any more is a violation too.
using Texts = std::map<std::string, std::regex>;
const std::regex option_alone(" ?--[a-z][a-z0-9-]* ?");
const Texts with_options{
    {"engine/array/sentence.cpp", std::regex("--")},            // names the control of a remedy for the terminal
    {"engine/experiment/training/training.cpp", option_alone},  // the line that repeats a training
    {"engine/parameters/field.cpp", std::regex("--")},          // the option of a field, by its key
    {"engine/sequence/tasks.cpp", option_alone},                // what made a sequence, as exports have it
    // The options of training, of a run and of its sequence.
    {"engine/experiment/training/plan.cpp", std::regex("--([a-z][a-z0-9-]*)?|as many as --truncate")},
    {"engine/experiment/command/run_fields.cpp", option_alone},
    {"engine/experiment/command/typed_run.cpp", std::regex("--[a-z-]*|.*; (give|leave) .*")},  // a line of reclab, as text
    {"engine/sequence/choice.cpp", std::regex("--[a-z-]*(; )?|.*only where --columns names.*")},
    {"engine/sequence/text/cells.cpp", std::regex("--")}};  // a cell that is missing

/// Where a text of the engine names an option, which a window has not: what can be done is a Remedy (array/sentence.h). A command between
/// backquotes is for a terminal, whoever shows it.
std::vector<std::string> named_options(const fs::path& root, Texts allowed, std::size_t* texts_read = nullptr) {
  static const std::regex literal(R"re(//[^\n]*|/\*[^]*?\*/|'(?:\\.|[^'\\\n])'|"((?:\\.|[^"\\\n])*)")re");
  static const std::regex option("--([a-z]|$)"), command("`[^`]*`");
  std::vector<std::string> found;
  std::set<std::string> needed;
  std::size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root / "engine")) {
    if (!entry.is_regular_file() || !is_source(entry.path())) continue;
    const std::string text = contents(entry.path()), file = entry.path().lexically_relative(root).string();
    const auto own = allowed.find(file);
    for (std::sregex_iterator match(text.begin(), text.end(), literal), end; match != end; ++match) {
      count += (*match)[1].matched;
      const std::string said = std::regex_replace((*match)[1].str(), command, "");
      if (!std::regex_search(said, option)) continue;
      if (own != allowed.end() && std::regex_match(said, own->second))
        needed.insert(file);
      else
        found.push_back(file + ":" + std::to_string(std::count(text.begin(), text.begin() + match->position(), '\n') + 1) +
                        ": a text names an option: " + said);
    }
  }
  for (const auto& [file, look] : allowed)
    if (!needed.contains(file)) found.push_back(file + " names no option any more: take it off the list");
  if (texts_read) *texts_read = count;
  return found;
}

/// A small house of its own, removed at the end of the case.
class Planted {
 public:
  Planted() : root_(fs::temp_directory_path() / ("reclab-floors-" + std::to_string(std::hash<const void*>{}(this)))) {
    fs::create_directories(root_);
  }
  ~Planted() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  Planted& file(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
    return *this;
  }
  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

std::string said(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += "\n  " + sentence;
  return text;
}

}  // namespace

TEST_CASE("no floor of this house includes what it must not") {
  std::size_t files = 0;
  const auto found = violations(reclab::test::source(), &files);
  CHECK_SAYS(files > 10, std::to_string(files) + " files read");
  CHECK_SAYS(found.empty(), said(found));
}

TEST_CASE("the window names no panel") {
  const auto found = named_panels(reclab::test::source());
  CHECK_SAYS(found.empty(), said(found));
}

TEST_CASE("no text of a file can be taken for HTML") {
  std::size_t tips = 0;
  const auto found = guessed_texts(reclab::test::source(), &tips);
  CHECK_SAYS(tips > 100, std::to_string(tips) + " tooltips read");
  CHECK_SAYS(found.empty(), said(found));
}

TEST_CASE("a label, tooltip or question that Qt may take for HTML is found, with file and line") {
  Planted planted;
  planted.file("widgets/plain_text.cpp", "new QLabel(x);\n")
      .file("app/gui/a.cpp",
            "a->setToolTip(tr(\"Words (and \\\"more\\\")\"\n  \" of them\"));\nb->setToolTip(0, "
            "safeTip(name));\nc->setToolTip({});\nd->setItemData(0, 3, Qt::UserRole);\n")
      .file("app/gui/b.cpp",
            "class A : public QLabel {\n A() { setTextFormat(Qt::PlainText); }\n};\nQMessageBox box;\nQToolTip::showText(at, htmlTip(a), "
            "this);\n");
  CHECK_SAYS(guessed_texts(planted.root()).empty(), said(guessed_texts(planted.root())));
  for (const std::string text :
       {"new QLabel(name);", "class A : public QLabel {};", "QMessageBox box;", "QMessageBox::warning(this, a, b);", "QInputDialog ask;",
        "a->setToolTip(name);", "a->setToolTip(tr(\"%1\").arg(name));", "a->setToolTip(0, name);",
        "a->setItemData(0, name, Qt::ToolTipRole);", "QToolTip::showText(at, name, this);"}) {
    planted.file("widgets/panels/c.cpp", "\n" + text + "\n");
    const auto found = guessed_texts(planted.root());
    CHECK_SAYS(!found.empty() && found[0].starts_with("widgets/panels/c.cpp:2: "), text + said(found));
  }
}

TEST_CASE("every floor that is built is one of those that are checked, and links what it may include") {
  const std::string cmake = contents(reclab::test::source("engine/CMakeLists.txt"));
  static const std::regex line(R"(reclab_floor\((\w+) USES([^)]*)\))");
  std::set<std::string> built;
  for (std::sregex_iterator match(cmake.begin(), cmake.end(), line), end; match != end; ++match) {
    const std::string floor = (*match)[1];
    built.insert(floor);
    CHECK_SAYS(below.contains(floor), floor);
    std::istringstream uses((*match)[2]);
    for (std::string use; uses >> use;)
      CHECK_SAYS(below.at(floor).contains(use.substr(std::string("reclab_").size())), floor + " links " + use);
  }
  CHECK_EQUAL(built.size(), below.size());
  CHECK_SAYS(cmake.find("Qt6") == std::string::npos && cmake.find("VTK") == std::string::npos, "engine/CMakeLists.txt looks for Qt or VTK");
}

TEST_CASE("a house that keeps the rules is not complained about") {
  Planted planted;
  planted.file("engine/array/error.h", "#include <string>\n")
      .file("engine/trace/trace.h", "#include \"array/error.h\"\n")
      .file("engine/models/recurrent/lstm.cpp",
            "#include \"models/card.h\"\n#include \"recurrence/memory.h\"\n// QString and QWidget in words are fine\n")
      .file("engine/array/cpu/gemm.cpp", "#include <Eigen/Dense>\nconst char* text = \"QObject\";\n")
      .file("widgets/panel.h", "#include <QWidget>\n#include \"trace/trace.h\"\n#include \"array/error.h\"\n")
      .file("widgets/panels/spectrum/a.cpp", "#include <cmath>\n#include \"panels/spectrum/b.h\"\n#include \"panels/step_time.h\"\n")
      .file("app/gui/window/a.cpp", "#include \"gui/comparing/ready.h\"\n#include \"plot/plot.h\"\n")
      .file("app/gui/main.cpp", "#include <QApplication>\n#include \"experiment/experiment.h\"\n#include \"gui/window/a.h\"\n");
  const auto found = violations(planted.root());
  CHECK_SAYS(found.empty(), said(found));
}

TEST_CASE("each planted violation is found, with file and line") {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"engine/array/a.cpp", "\n#include <QString>\n"},
      {"engine/trace/a.h", "\n#include <QtCore/QObject>\n"},
      {"engine/trace/a.cpp", "\n#include <vtkRenderer.h>\n"},
      {"engine/analysis/a.cpp", "\n  #  include \"qcustomplot.h\"\n"},
      {"engine/experiment/a.cpp", "\nclass QApplication;\n"},
      {"engine/array/b.cpp", "\n#include \"autodiff/graph.h\"\n"},
      {"engine/autodiff/b.cpp", "\n#include \"recurrence/memory.h\"\n"},
      {"engine/recurrence/b.cpp", "\n#include \"models/card.h\"\n"},
      {"engine/trace/b.cpp", "\n#include \"sequence/sequence.h\"\n"},
      {"engine/sequence/b.cpp", "\n#include \"autodiff/graph.h\"\n"},
      {"engine/models/b.cpp", "\n#include <analysis/product.h>\n"},
      {"engine/models/recurrent/b.cpp", "\n#include \"../../experiment/experiment.h\"\n"},
      {"engine/learning/b.cpp", "\n#include \"experiment/experiment.h\"\n"},
      {"engine/models/c.cpp", "\n#include <Eigen/Dense>\n"},
      {"engine/models/recurrent/c.cpp", "\n#include <cuda_runtime.h>\n"},
      {"engine/attic/a.cpp", "\n"},
      {"widgets/panels/a.cpp", "\n#include \"models/card.h\"\n"},
      {"widgets/panels/b.h", "\n#include \"experiment/experiment.h\"\n"},
      {"widgets/panels/c.h", "\n#include \"gui/setup.h\"\n"},
      {"app/cli/a.cpp", "\n#include <QCoreApplication>\n"},
      {"app/gui/session/a.cpp", "\n#include \"gui/window/main_window.h\"\n"},
      {"app/gui/session/work/a.h", "\n#include \"gui/views/card_view.h\"\n"},
      {"app/gui/views/a.h", "\n#include \"gui/literature/map_view.h\"\n"},
      {"app/gui/comparing/a.cpp", "\n#include \"../learning/training_bar.h\"\n"},
      {"app/gui/look/a.cpp", "\n#include \"app/gui/learning/training_bar.h\"\n"},
      {"app/gui/attic/a.cpp", "\n"},
      {"widgets/a.h", "\n#include \"plot/plot.h\"\n"},
      {"widgets/plot/a.cpp", "\n#include \"scene/state_space.h\"\n"},
      {"widgets/scene/a.cpp", "\n#include \"panels/panel_info.h\"\n"},
      {"widgets/panels/a.cpp", "\n#include \"panels/gating/gating.h\"\n"},
      {"widgets/panels/spectrum/a.cpp", "\n#include \"panels/gating/gating.h\"\n"},
      {"widgets/attic/a.cpp", "\n"},
  };
  for (const auto& [name, text] : wrong) {
    Planted planted;
    planted.file("engine/experiment/experiment.h", "").file("engine/models/card.h", "").file("app/gui/learning/training_bar.h", "");
    planted.file(name, text);
    const auto found = violations(planted.root());
    CHECK_SAYS(found.size() == 1, name + ":" + said(found));
    const std::string line = name.find("/attic/") != std::string::npos ? ":1: " : ":2: ";
    CHECK_SAYS(found[0].starts_with(name + line), found[0]);
  }
}

TEST_CASE("no file of ours is too long, and no folder holds too many") {
  std::size_t files = 0;
  const auto found = oversized(reclab::test::source(), still_long, &files);
  CHECK_SAYS(files > 100, std::to_string(files) + " files read");
  CHECK_SAYS(found.empty(), said(found));
}

TEST_CASE("a file of 701 lines, a folder of 21 files and a line of the list that is not needed are found") {
  const std::string longest(700, '\n');
  Planted planted;
  planted.file("engine/array/a.h", longest).file("app/cli/a.cpp", longest).file("tests/data.py", longest + longest);
  for (int i = 0; i < 20; ++i)
    planted.file("app/gui/a" + std::to_string(i) + ".cpp", "").file("app/gui/inside/a" + std::to_string(i) + ".h", "");
  CHECK_SAYS(oversized(planted.root(), {}).empty(), said(oversized(planted.root(), {})));
  planted.file("tests/app/a.cpp", longest + "\n").file("engine/array/cuda/a.cu", longest + "\n").file("app/gui/b.h", "");
  const auto found = oversized(planted.root(), {});
  CHECK_SAYS(found.size() == 3 && found[0] == "engine/array/cuda/a.cu has 701 lines" && found[1] == "tests/app/a.cpp has 701 lines" &&
                 found[2] == "app/gui holds 21 files",
             said(found));
  const auto listed = oversized(planted.root(), {"tests/app/a.cpp", "engine/array/cuda/a.cu", "app/cli/a.cpp", "app/gone.cpp"});
  CHECK_SAYS(listed.size() == 3 && listed[1] == "app/cli/a.cpp is not too long any more: take it off the list" &&
                 listed[2].starts_with("app/gone.cpp"),
             said(listed));
}

TEST_CASE("more than one in twenty files of the widgets of more than 350 lines are found") {
  const std::string longest(350, '\n');
  Planted planted;
  for (int i = 0; i < 19; ++i) planted.file("widgets/panels/a" + std::to_string(i) + "/a.cpp", longest);
  planted.file("widgets/plot/a.h", longest + "\n");
  CHECK_SAYS(oversized(planted.root(), {}).empty(), said(oversized(planted.root(), {})));
  planted.file("widgets/panels/a7/a.cpp", longest + "\n");
  const auto found = oversized(planted.root(), {});
  CHECK_SAYS(found.size() == 2 && std::ranges::count(found, "widgets/plot/a.h has 351 lines") == 1, said(found));
}

TEST_CASE("a panel that the window names is found, with file and line") {
  Planted planted;
  planted.file("widgets/panels/timing/timing.h", "").file("widgets/panels/panels.h", "");
  planted.file("app/gui/window/a.cpp", "#include \"panels/panels.h\"\n// the panel \"timing\"\nconst char* said = \"timing of forms\";\n");
  CHECK_SAYS(named_panels(planted.root()).empty(), said(named_panels(planted.root())));
  for (const std::string text : {"x(\"timing\");\n", "#include \"panels/timing/timing.h\"\n", "#include \"panels/timing.h\"\n"}) {
    planted.file("app/gui/b.cpp", "\n" + text);
    const auto found = named_panels(planted.root());
    CHECK_SAYS(found.size() == 1 && found[0].starts_with("app/gui/b.cpp:2: the window names the panel "), said(found));
  }
}

TEST_CASE("no sentence of the engine names an option") {
  std::size_t texts = 0;
  const auto found = named_options(reclab::test::source(), with_options, &texts);
  CHECK_SAYS(texts > 5000, std::to_string(texts) + " texts read");
  CHECK_SAYS(found.empty(), said(found));
}

TEST_CASE("a sentence that names an option is found, with file and line; a command between backquotes and a comment are none") {
  Planted planted;
  planted
      .file("engine/experiment/a.cpp",
            "/// --every\nsay(\"train it with `reclab train --export DIR`\", '\"', \"a -- b\", x--, \"run\"); // \"--every\"\n")
      .file("engine/experiment/command/command.cpp", "line.option(\"--dtype\", dtype);\n");
  const Texts allowed{{"engine/experiment/command/command.cpp", option_alone}};
  CHECK_SAYS(named_options(planted.root(), allowed).empty(), said(named_options(planted.root(), allowed)));
  for (const std::string text : {"throw Error(\"x; choose --dtype f64.\");", "note(\"all (\" + n + \"; --every 1 has them)\");",
                                 "say(\"leave it out (--missing leave-out)\");", "why += \"--lr\";", "why += \"; --\" + name;"}) {
    for (const std::string file : {"engine/experiment/b.cpp", "engine/trace/kinds.inc"}) {
      planted.file(file, "\n" + text + "\n");
      const auto found = named_options(planted.root(), allowed);
      CHECK_SAYS(found.size() == 1 && found[0].starts_with(file + ":2: a text names an option: "), text + said(found));
      planted.file(file, "");
    }
  }
  planted.file("engine/experiment/command/command.cpp", "throw Error(\"choose --dtype f64\");\n");
  const auto found = named_options(planted.root(), allowed);
  CHECK_SAYS(
      found.size() == 2 && found[0].starts_with("engine/experiment/command/command.cpp:1: ") && found[1].ends_with("take it off the list"),
      said(found));
}

TEST_CASE("no name is a class on two floors") {
  std::size_t classes = 0;
  const auto found = doubled_classes(reclab::test::source(), &classes);
  CHECK_SAYS(classes > 500, std::to_string(classes) + " classes read");
  CHECK_SAYS(found.empty(), said(found));
}

TEST_CASE("a class on two floors is found, whatever it is defined with; declarations, comments and classes inside others are none") {
  Planted planted;
  planted.file("engine/array/a.h", "#pragma once\nstruct Step final : Base<int> {\n};\nclass Only {};\n")
      .file("engine/array/b.cpp", "struct Step {\n  struct Inner {};\n};\n")
      .file("widgets/a.h", "class Step;\n// class Only {\nstruct Outer {\n  class Only {};\n};\n")
      .file("app/gui/a.h", "enum class Inner : int {\n  a\n};\n");
  CHECK_SAYS(doubled_classes(planted.root()).empty(), said(doubled_classes(planted.root())));
  planted.file("engine/timing/c.cpp", "enum class Step {\n  a\n};\n");
  const auto found = doubled_classes(planted.root());
  CHECK_SAYS(found.size() == 1 && found[0] == "Step is a class on 2 floors: engine/array/a.h engine/timing/c.cpp", said(found));
}

TEST_CASE("what our own code is to keep is looked at in every build") {
  std::size_t demands = 0;
  const auto found = asserts(reclab::test::source(), &demands);
  CHECK_SAYS(demands > 100, std::to_string(demands) + " read");
  CHECK_SAYS(found.empty(), said(found));
  Planted planted;
  planted.file("engine/array/a.cpp", "static_assert(true);\n// assert(0)\nRECLAB_DEMAND(x);\n");
  CHECK(asserts(planted.root()).empty());
  planted.file("app/gui/b.cpp", "if (x)\n  assert(y);\n");
  CHECK_EQUAL(asserts(planted.root()).size(), 1u);
}
