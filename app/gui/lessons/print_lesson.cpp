// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/lessons/print_lesson.h"

#include <qcustomplot.h>

#include <QAbstractTextDocumentLayout>
#include <QBuffer>
#include <QPdfWriter>
#include <QSaveFile>
#include <QTextDocument>
#include <algorithm>
#include <cstdio>

#include "files/files.h"
#include "gui/lessons/lesson_text.h"
#include "gui/start/drawn_panels.h"
#include "lessons/play.h"
#include "models/registry.h"

namespace reclab {
namespace {

constexpr double inch = 25.4;  // mm
constexpr int dpi = 96;        // of the page, as of the screen that panels are laid out for
constexpr double margin = 20;  // mm
constexpr double gap = 9;      // pixels between blocks
constexpr double answer_line = 34;

/// Pages of A4 that blocks are put on, one under the other.
class LessonPages {
 public:
  LessonPages(QIODevice* device, const QString& title) : pdf_(device), title_(title) {
    pdf_.setResolution(dpi);
    pdf_.setTitle(title);
    pdf_.setCreator(QStringLiteral("Recurrence Lab"));
    pdf_.setPageSize(QPageSize(QPageSize::A4));
    pdf_.setPageMargins(QMarginsF(margin, margin, margin, margin), QPageLayout::Millimeter);
    painter_.begin(&pdf_);
    painter_.setModes(QCPPainter::pmVectorized | QCPPainter::pmNoCaching);
    foot();
  }
  double width() const { return pdf_.width(); }
  double bottom() const { return pdf_.height() - 28.0; }
  /// Begins a page where there is no room for so much; what is higher than a page stays where it is.
  void need(double height) {
    if (y_ + height <= bottom() || y_ == 0.0) return;
    pdf_.newPage();
    y_ = 0.0;
    ++page_;
    foot();
  }
  /// `after`: room that is to be on the same page, under it.
  void html(const QString& html, const QFont& font, double left = 0.0, double after = 0.0) {
    QTextDocument text;
    text.setDocumentMargin(0);
    text.setUseDesignMetrics(true);
    text.documentLayout()->setPaintDevice(&pdf_);
    text.setDefaultFont(font);
    text.setHtml(html);
    text.setTextWidth(width() - left);
    need(text.size().height() + after);
    painter_.save();
    painter_.translate(left, y_);
    text.drawContents(&painter_);
    painter_.restore();
    y_ += text.size().height() + gap;
  }
  void lines(int count) {
    need(count * answer_line);
    painter_.setPen(QPen(Qt::gray, 0.6));
    for (int i = 0; i < count; ++i) {
      y_ += answer_line;
      painter_.drawLine(QLineF(14.0, y_, width(), y_));
    }
    y_ += 2 * gap;
  }
  void figure(const FigureDrawing& drawing, double scale, double caption) {
    scale = std::min(scale, (bottom() - caption) / drawing.size.height());
    need(drawing.size.height() * scale + caption);
    painter_.save();
    painter_.translate(0, y_);
    painter_.scale(scale, scale);
    drawing.draw(&painter_);
    painter_.restore();
    y_ += drawing.size.height() * scale + 4.0;
  }
  void space(double height) { y_ += height; }

 private:
  void foot() {
    painter_.setFont(smallFont());
    painter_.setPen(Qt::darkGray);
    const QRectF line(0, pdf_.height() - 18.0, width(), 18.0);
    painter_.drawText(line, Qt::AlignLeft | Qt::AlignBottom, title_);
    painter_.drawText(line, Qt::AlignRight | Qt::AlignBottom, QString::number(page_));
  }
  QPdfWriter pdf_;
  QString title_;
  QCPPainter painter_;
  double y_ = 0.0;
  int page_ = 1;
};

class Printer {
 public:
  Printer(const Library& library, const Lesson& lesson, LessonPages* pages) : library_(library), lesson_(lesson), pages_(pages) {}

  void title() {
    QFont font = lessonFont(1.9);
    font.setWeight(QFont::DemiBold);
    pages_->html(QString::fromStdString(lesson_.title).toHtmlEscaped(), font);
    if (!lesson_.about.empty()) pages_->html(QString::fromStdString(lesson_.about).toHtmlEscaped(), lessonFont(1.0));
    pages_->space(gap);
  }

  void step(std::size_t at) {
    const LessonStep& step = lesson_.steps[at];
    QFont font = lessonFont(1.35);
    font.setWeight(QFont::DemiBold);
    pages_->space(gap);
    pages_->html(QString::fromStdString(step.title).toHtmlEscaped(), font, 0.0, 60.0);
    for (std::size_t i = 0; i < step.blocks.size(); ++i) {
      if (const auto* words = std::get_if<ProseBlock>(&step.blocks[i])) prose(*words, at);
      if (const auto* question = std::get_if<Question>(&step.blocks[i])) ask(*question, at);
      if (const auto* lab = std::get_if<LabSetup>(&step.blocks[i])) figures(*lab);
    }
  }

 private:
  QString html(const Prose& words, std::size_t step) {
    const bool numbers = std::ranges::any_of(words, [](const ProseSpan& span) { return span.kind == ProseSpan::Kind::number; });
    if (!numbers) return htmlOf(words, palette_);
    const LabSetup* lab = lab_measured_at(lesson_, step);
    if (lab != nullptr && !known_.contains(lab)) {
      const std::vector<std::string> texts = measured_in(lesson_, *lab);
      LabRuns runs(*lab, library_.presets, texts);
      known_[lab] = runs.measure_all(texts);
    }
    return htmlOf(with_numbers(words, measured_before(lab == nullptr ? std::map<std::string, double>() : known_[lab])), palette_);
  }

  void prose(const ProseBlock& block, std::size_t step) {
    const QString text = html(block.words, step);
    switch (block.kind) {
      case ProseBlock::Kind::text: return pages_->html(text, lessonFont(1.0));
      case ProseBlock::Kind::heading: return pages_->html("<b>" + text + "</b>", lessonFont(1.1), 0.0, 40.0);
      case ProseBlock::Kind::item: return pages_->html(QString::fromUtf8("•\u2002") + text, lessonFont(1.0), 10.0);
      case ProseBlock::Kind::formula: return pages_->html("<div align='center'>" + text + "</div>", lessonFont(1.1));
    }
  }

  void ask(const Question& question, std::size_t step) {
    const QString kind = question.kind == Question::Kind::act       ? QObject::tr("To do")
                         : question.kind == Question::Kind::predict ? QObject::tr("Before you look")
                                                                    : QObject::tr("Question");
    const double room = 30.0 * static_cast<double>(question.order.size()) + (question.order.empty() ? 3 * answer_line : 0.0);
    pages_->space(gap);
    pages_->html("<b>" + kind + ".</b> " + html(prose_of(question.text), step), lessonFont(1.0), 14.0, room);
    for (const std::string& answer : question.order)
      pages_->html(QString::fromUtf8("○\u2002") + html(prose_of(answer), step), lessonFont(1.0), 28.0);
    if (question.kind == Question::Kind::number && !question.unit.empty())
      pages_->html(QObject::tr("Your answer, in %1:").arg(QString::fromStdString(question.unit).toHtmlEscaped()), lessonFont(0.9), 14.0);
    if (question.order.empty()) return pages_->lines(question.kind == Question::Kind::number ? 1 : 2);
    pages_->space(gap);
  }

  Setup setupOf(const TypedRun& run) const {
    Options options;
    options.model = QString::fromStdString(run.id);
    options.given = run.given;
    return beginning(options, library_);
  }

  void figures(const LabSetup& lab) {
    QStringList ids;
    for (const std::string& place : lab.look) ids << QString::fromStdString(place).section(':', 0, 0);
    if (ids.isEmpty()) return;
    Setup setup = setupOf(lab.run);
    const Preset& preset = library_.presets.find(setup.preset);
    const Preset of = is_given(lab.run.given, "--trained") ? as_trained(preset) : preset;
    setup.sequence = loadChoice(sequence_of(lab.run.given, of, of.task_length));
    std::vector<Setup> beside;
    for (const TypedRun& pin : lab.pins) beside.emplace_back(setupOf(pin)).sequence = setup.sequence;
    const DrawnPanels drawn(library_, setup, ids, beside);
    std::vector<Panel*> panels = drawn.panels();
    std::ranges::stable_sort(panels, {}, [&](const Panel* panel) { return ids.indexOf(panel->id()); });
    for (Panel* panel : panels) {
      for (const std::string& place : lab.look)
        if (const QString text = QString::fromStdString(place); text.section(':', 0, 0) == panel->id() && text.contains(':'))
          panel->lookAt(QString::fromStdString(setup.preset), text.section(':', 1), true);
      if (lab.step) panel->setTime(*lab.step);
      panel->finish();
      QString caption = QString("<b>%1 %2.</b> %3. ").arg(QObject::tr("Figure")).arg(++figures_).arg(panel->title().toHtmlEscaped());
      if (const QString why = panel->emptyReason(); !why.isEmpty()) {
        caption += why.toHtmlEscaped() + ' ';
      } else {
        FigureStyle style;
        style.width = pages_->width() * inch / dpi;
        style.cursor = lab.step.has_value();
        pages_->figure(panel->drawing(style), style.scale(), 48.0);
      }
      pages_->html(caption + "<tt>" + QString::fromStdString(lab.line).toHtmlEscaped() + "</tt>", smallFont());
    }
    pages_->space(gap);
  }

  const Library& library_;
  const Lesson& lesson_;
  LessonPages* pages_;
  QPalette palette_;
  std::map<const LabSetup*, std::map<std::string, double>> known_;
  int figures_ = 0;
};

}  // namespace

int printLesson(const Options& options) {
  try {
    const LessonLibrary lessons = lesson_library(lesson_folders());
    const Lesson* lesson = lessons.find(options.lesson.toStdString());
    if (lesson == nullptr) throw Error("--lesson names none that there is: " + options.lesson.toStdString() + '.');
    const auto one = std::ranges::find(lesson->steps, options.step.toStdString(), &LessonStep::id);
    if (!options.step.isEmpty() && one == lesson->steps.end()) {
      std::vector<std::string> ids;
      for (const LessonStep& step : lesson->steps) ids.push_back(step.id);
      throw Error("--step is " + options.step.toStdString() + "; the steps of this lesson are " + listed(ids, "and") + '.');
    }
    QSaveFile out(options.print);  // first, so that a folder that there is not is said at once
    const auto refuse = [&] {
      throw Error(QString("%1 cannot be written: %2; choose another place.").arg(options.print, out.errorString()).toStdString());
    };
    if (!out.open(QIODevice::WriteOnly)) refuse();
    const Library library{PresetLibrary(builtin_registry(), preset_folders()), tasks()};
    QBuffer bytes;
    bytes.open(QIODevice::WriteOnly);
    {
      LessonPages pages(&bytes, QString::fromStdString(lesson->title));
      Printer printer(library, *lesson, &pages);
      if (options.step.isEmpty()) printer.title();
      for (std::size_t i = 0; i < lesson->steps.size(); ++i)
        if (options.step.isEmpty() || lesson->steps.begin() + static_cast<std::ptrdiff_t>(i) == one) printer.step(i);
    }
    if (out.write(bytes.data()) != bytes.size() || !out.commit()) refuse();
    std::printf("%s\n", qUtf8Printable(options.print));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "recurrence-lab: %s\n", error.what());
  }
  return 2;
}

}  // namespace reclab
