// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/card_view.h"

#include <QDesktopServices>
#include <QRegularExpression>
#include <QScrollBar>
#include <algorithm>
#include <utility>

#include "gui/look/look.h"
#include "panel.h"

namespace reclab {
namespace {

QString html(const std::string& text) { return QString::fromStdString(text).toHtmlEscaped(); }

QString shapeText(const Shape& shape) {
  QStringList sizes;
  for (const auto size : shape) sizes << QString::number(size);
  return sizes.isEmpty() ? QStringLiteral("1") : sizes.join(QStringLiteral(" × "));
}

QStringList sentencesOf(const QString& text) {
  static const QRegularExpression gap(QStringLiteral("(?<=[.!?])\\s+(?=\\p{Lu})"));
  return text.split(gap, Qt::SkipEmptyParts);
}

/// Whether a sentence is about a run: it has claims, or names places to look at.
bool isOfRun(const QString& sentence, const std::vector<Claim>& claims) {
  return sentence.startsWith(QStringLiteral("Look at")) ||
         std::ranges::any_of(claims, [&](const Claim& claim) { return sentence.contains(QString::fromStdString(claim.text)); });
}

}  // namespace

QString placeInWords(const std::string& place) {
  const QStringList parts = QString::fromStdString(place).split(':');
  QString title = parts.front();
  for (const PanelInfo& info : panels())
    if (info.id == parts.front()) title = info.title;
  return parts.size() > 1 ? QString("%1 (%2)").arg(title, parts.mid(1).join(", ").replace('_', ' ')) : title;
}

QString cardHtml(const Card& card, const QPalette& palette, const std::vector<std::string>& places, const CardExtras& extras) {
  const QString muted = palette.color(QPalette::PlaceholderText).name(), link = palette.color(QPalette::Link).name();
  const QString shade = palette.color(QPalette::Window).name();
  const auto heading = [&](const QString& text) {
    return QString("<p style='margin-top:14px; margin-bottom:4px; color:%1; font-weight:600'>%2</p>").arg(muted, text);
  };
  QString out;
  const Reference& source = card.source;
  out += QString("<p style='margin-bottom:0; font-size:14pt; font-weight:600'>%1</p>").arg(html(card.title));
  if (!source.authors.empty())
    out += QString("<p style='margin-top:0; margin-bottom:%4; color:%1'>%2%3</p>")
               .arg(muted, html(source.authors), source.year > 0 ? QString(", %1").arg(source.year) : QString(),
                    QString(extras.properties.isEmpty() ? "12px" : "0"));
  if (!extras.properties.isEmpty()) out += QString("<p style='margin-top:0; color:%1'>%2</p>").arg(muted, extras.properties);
  if (!card.idea.empty()) {
    QStringList sentences;
    bool other = false;
    for (const QString& sentence : sentencesOf(QString::fromStdString(card.idea))) {
      const bool muted_ = !extras.otherRun.isEmpty() && isOfRun(sentence, extras.claims);
      other = other || muted_;
      sentences << (muted_ ? QString("<span style='color:%1'>%2</span>").arg(muted, sentence.toHtmlEscaped()) : sentence.toHtmlEscaped());
    }
    out += "<p>" + sentences.join(' ') + "</p>";
    if (other) out += QString("<p style='color:%1'><i>%2</i></p>").arg(muted, extras.otherRun.toHtmlEscaped());
  }
  QStringList links;
  for (const std::string& place : places)
    links << QString("<a style='color:%1' href='look:%2'>%3</a>").arg(link, html(place), placeInWords(place).toHtmlEscaped());
  if (!links.isEmpty()) out += "<p>" + QObject::tr("Look at: %1").arg(links.join(" · ")) + "</p>";

  if (!extras.lineage.isEmpty()) out += heading(QObject::tr("Lineage"));
  for (const QString& line : extras.lineage) out += "<p style='margin-top:0; margin-bottom:4px'>" + line + "</p>";
  if (!card.equations.empty()) {
    out += heading(QObject::tr("Equations"));
    out += QString(
               "<table width='100%' cellpadding='8' cellspacing='0'><tr><td bgcolor='%1' style='font-family:\"DejaVu Serif\",serif; "
               "font-size:11pt'>")
               .arg(shade);
    QStringList lines;
    for (const auto& equation : card.equations) lines << mathHtml(equation);
    out += lines.join("<br/>") + "</td></tr></table>";
  }
  const auto rows = [&](const QString& title, const QStringList& entries) {
    if (!entries.isEmpty())
      out += heading(title) + "<table width='100%' cellspacing='0' cellpadding='2'>" + entries.join(QString()) + "</table>";
  };
  const auto row = [&](const std::string& name, const QString& size, const std::string& text) {
    return QString(
               "<tr><td style='padding-right:10px'><tt>%1</tt></td><td align='right' style='white-space:nowrap; color:%2'>%3</td></tr>"
               "<tr><td colspan='2' style='color:%2; padding-bottom:5px'>%4</td></tr>")
        .arg(html(name), muted, size, html(text));
  };
  QStringList entries;
  for (const GateInfo& gate : card.gates)
    entries << row(gate.name,
                   shapeText(gate.shape) + (gate.low < gate.high ? QString(" in [%1, %2]").arg(gate.low).arg(gate.high) : QString()),
                   gate.text);
  rows(QObject::tr("Gates"), entries);
  entries.clear();
  for (const StateInfo& state : card.states)
    entries << row(state.name, shapeText(state.shape) + (state.complex ? QObject::tr(" complex") : QString()), state.text);
  rows(QObject::tr("State, one layer"), entries);
  if (!card.spectrum.empty()) out += heading(QObject::tr("Spectrum")) + "<p style='margin-top:0'>" + html(card.spectrum) + "</p>";
  entries.clear();
  for (const ParameterInfo& parameter : card.parameters)
    entries << row(parameter.name, shapeText(parameter.shape),
                   parameter.text + (parameter.when.empty() ? "" : " It is there " + parameter.when + "."));
  rows(QObject::tr("Parameters"), entries);
  entries.clear();
  for (const HyperSpec& spec : card.hyper) {
    QString range =
        spec.kind == HyperKind::integer || spec.kind == HyperKind::real ? QString("%1 … %2").arg(spec.low).arg(spec.high) : QString();
    if (spec.kind == HyperKind::choice) {
      QStringList choices;
      for (const auto& choice : spec.choices) choices << QString::fromStdString(choice);
      range = choices.join(", ").toHtmlEscaped();
    }
    if (spec.kind == HyperKind::flag) range = QObject::tr("yes or no");
    entries << row(
        spec.key,
        (spec.symbol.empty() ? QString() : "<span style='font-family:\"DejaVu Serif\",serif'>" + mathHtml(spec.symbol) + "</span>&nbsp; ") +
            range,
        spec.text);
  }
  rows(QObject::tr("Hyper-parameters"), entries);
  QStringList forms;
  for (const auto& form : card.forms) forms << html(form);
  if (!forms.isEmpty()) out += heading(QObject::tr("Exact forms")) + "<p style='margin-top:0'>" + forms.join(", ") + "</p>";
  if (!card.notes.empty()) {
    out += heading(QObject::tr("Conventions"));
    for (const auto& note : card.notes) out += "<p style='margin-top:0; margin-bottom:4px'>" + html(note) + "</p>";
  }
  if (!source.title.empty()) {
    QString cite = html(source.authors) + (source.year > 0 ? QString(" (%1). ").arg(source.year) : QString(". ")) + "<i>" +
                   html(source.title) + "</i>.";
    if (!source.venue.empty()) cite += " " + html(source.venue) + ".";
    if (!source.url.empty()) cite += QString(" <a style='color:%1' href=\"%2\">%2</a>").arg(link, html(source.url));
    out += heading(QObject::tr("Source")) + "<p style='margin-top:0'>" + cite + "</p>";
  }
  return out;
}

QString cardHtml(const ModelDescription& model, const QPalette& palette, const QString& otherRun) {
  const QString muted = palette.color(QPalette::PlaceholderText).name(), link = palette.color(QPalette::Link).name();
  QStringList words;
  for (const std::string& word : words_of(model.properties)) words << html(word);
  const auto named = [&](const ModelDescription::Kin& kin) {
    return kin.title.empty() ? QString("<span style='color:%1'>%2</span>").arg(muted, html(kin.id))
                             : QString("<a style='color:%1' href='model:%2'>%3</a>").arg(link, html(kin.id), html(kin.title));
  };
  CardExtras extras{words.join(QString::fromUtf8(" · ")), {}, model.preset.claims, otherRun};
  for (const auto& kin : model.from) extras.lineage << QObject::tr("from %1: %2").arg(named(kin), html(kin.changed));
  for (const auto& kin : model.ledTo) extras.lineage << QObject::tr("led to %1: %2").arg(named(kin), html(kin.changed));
  return cardHtml(model.card, palette, model.preset.look_at, extras);
}

CardView::CardView(QWidget* parent) : QTextBrowser(parent) {
  setOpenLinks(false);
  setAccessibleName(tr("Card"));
  connect(this, &QTextBrowser::anchorClicked, this, [this](const QUrl& url) {
    if (url.scheme() == "look")
      emit lookWanted(url.path());
    else if (url.scheme() == "model")
      emit modelWanted(url.path());
    else if (url.scheme() == "https" || url.scheme() == "http")  // no file or program of a preset's choice
      QDesktopServices::openUrl(url);
  });
  setFrameShape(NoFrame);
  setFont(smallFont());
  document()->setDocumentMargin(10);
  setPlaceholderText(tr("Choose a model; its equations, parameters and source are shown here."));
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setWordWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
  soon_.setSingleShot(true);
  soon_.setInterval(120);
  connect(&soon_, &QTimer::timeout, this, &CardView::redraw);
}

void CardView::setModel(const ModelPtr& model) {
  const bool other = !model_ || !model || model_->card.id != model->card.id;
  model_ = model;
  if (other) {
    redraw();
    verticalScrollBar()->setValue(0);
  } else {
    soon_.start();
  }
}

void CardView::setOtherRun(const QString& sentence) {
  if (std::exchange(otherRun_, sentence) != sentence) soon_.start();
}

void CardView::redraw() {
  soon_.stop();
  const int at = verticalScrollBar()->value();
  setHtml(model_ ? cardHtml(*model_, palette(), otherRun_) : QString());
  verticalScrollBar()->setValue(at);
}

}  // namespace reclab
