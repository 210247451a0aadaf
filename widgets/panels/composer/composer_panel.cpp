// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/composer/composer_panel.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QSignalBlocker>
#include <algorithm>
#include <cmath>

#include "panels/composer/composer_words.h"
#include "panels/panel_info.h"
#include "plain_text.h"
#include "spoken.h"

namespace reclab {
namespace {

/// The value of a key; nothing where there is none.
const std::string* valueIn(const Composition::Settings& settings, const std::string& key) {
  const auto found = std::ranges::find(settings, key, &std::pair<std::string, std::string>::first);
  return found == settings.end() ? nullptr : &found->second;
}

}  // namespace

ComposerPanel::ComposerPanel(QWidget* parent) : Described(parent) {
  makeWidgets();
  connect(open_, &QPushButton::clicked, this, &ComposerPanel::open);
  connect(compose_, &QPushButton::clicked, this, [this] {
    composes_ = true;
    showEmpty();
    emit headlineChanged();
    open_->setFocus();
  });
  connect(verdict_, &QLabel::linkActivated, this, [this](const QString& link) { openNamed(link.section(u':', 1)); });
  connect(words_, &QLabel::linkActivated, this, [this](const QString& link) {
    if (composition_ && link == u"copy") QGuiApplication::clipboard()->setText(plain(composition_->command));
  });
  connect(number_box_, &QDoubleSpinBox::valueChanged, this, &ComposerPanel::numberEdited);
  connect(number_slider_, &QSlider::valueChanged, this, [this](int position) {
    if (!composition_ || composition_->numbers.empty()) return;
    const Composition::Number& of = composition_->numbers.front();
    const double value = of.low * std::pow(of.high / of.low, static_cast<double>(position) / slider_positions);
    const double grain = std::pow(10.0, std::floor(std::log10(value)) - 1.0);  // two digits
    number_box_->setValue(std::round(value / grain) * grain);
  });
  connect(token_, &QSpinBox::valueChanged, factors_, &FactorsView::setToken);
  connect(factors_, &FactorsView::tokenPicked, token_, &QSpinBox::setValue);
  showEmpty();
  arrange();
}

TileRow* ComposerPanel::row(const QString& key) const {
  const auto found = tiles_.find(key.toStdString());
  return found == tiles_.end() ? nullptr : found->second;
}

QString ComposerPanel::words() const { return words_->text(); }
QString ComposerPanel::verdict() const { return verdict_->text(); }
QString ComposerPanel::headline() const { return shown() ? plain(shown()->code) : QString(); }
QString ComposerPanel::emptyReason() const {
  if (setAside()) return without_code_;
  if (composition_) return {};
  return problem_.isEmpty() ? tr("The parts that there are to choose are being read.") : problem_;
}

// ------------------------------------------------------------------------------------------------------------------- choices

void ComposerPanel::ask(const Settings& settings) {
  asked_ = settings;
  emit requested(StudyChoice{"compose", settings});
}

ComposerPanel::Settings ComposerPanel::chosen() const {
  Settings all;
  for (const Composition::Row& row : composition_->rows)
    all.emplace_back(row.key, row.choices[static_cast<std::size_t>(tiles_.at(row.key)->chosen())].value);
  for (const Composition::Number& number : composition_->numbers)
    all.emplace_back(number.key, QString::number(number_box_->value(), 'g', 15).toStdString());
  return all;
}

std::optional<ComposerPanel::Settings> ComposerPanel::settingsOfRun() const {
  if (!trace_ || !composition_ || trace_->info.architecture != composition_->architecture) return std::nullopt;
  const Settings& hyper = trace_->info.hyper;
  for (const auto& [key, value] : composition_->others)
    if (const std::string* its = valueIn(hyper, key); its == nullptr || *its != value) return std::nullopt;
  Settings all;
  const auto take = [&](const std::string& key) {
    if (const std::string* its = valueIn(hyper, key)) all.emplace_back(key, *its);
  };
  for (const Composition::Row& row : composition_->rows) take(row.key);
  for (const Composition::Number& number : composition_->numbers) take(number.key);
  return all;
}

/// "The model that runs has no code: it has transition = m1, where a code has transition = entries."
QString ComposerPanel::whyNoCode() const {
  if (!trace_ || !composition_ || trace_->info.architecture != composition_->architecture) return {};
  QStringList its, of_codes;
  for (const auto& [key, value] : composition_->others) {
    const std::string* own = valueIn(trace_->info.hyper, key);
    if (own == nullptr || *own == value) continue;
    its << QStringLiteral("%1 = %2").arg(plain(key), plain(*own));
    of_codes << QStringLiteral("%1 = %2").arg(plain(key), plain(value));
  }
  return its.isEmpty() ? QString()
                       : tr("The model that runs has no code: it has %1, where every code has %2.")
                             .arg(its.join(tr(" and ")), of_codes.join(tr(" and ")));
}

bool ComposerPanel::follow() {
  const auto run = settingsOfRun();
  if (!run || std::exchange(ran_, run) == run || *run == chosen()) return false;
  kept_.reset();
  ask(*run);
  return true;
}

void ComposerPanel::setTrace(std::shared_ptr<const Trace> trace) {
  trace_ = std::move(trace);
  if (!composition_) return;
  follow();
  showRun();
}

void ComposerPanel::setResult(const std::string& study, const StudyResult& result, const QString& problem) {
  if (study == "compose") setComposition(result.get<Composition>(), problem);
}

void ComposerPanel::setComposition(CompositionPtr composition, const QString& problem) {
  asked_.reset();
  problem_ = problem;
  if (composition) composition_ = std::move(composition);
  if (!composition_) return showEmpty();
  makeRows();
  showComposition();
  if (follow()) return;
  if (!kept_) return;
  // Kept settings may be of another version: only known ones are taken.
  Settings wanted = chosen();
  for (auto& [key, value] : wanted) {
    const std::string* kept = valueIn(*std::as_const(kept_), key);
    if (kept == nullptr) continue;
    const auto row = std::ranges::find(composition_->rows, key, &Composition::Row::key);
    const auto number = std::ranges::find(composition_->numbers, key, &Composition::Number::key);
    bool numeric = false;
    const double read = QString::fromStdString(*kept).toDouble(&numeric);
    const bool known = row != composition_->rows.end()
                           ? std::ranges::find(row->choices, *kept, &Composition::Choice::value) != row->choices.end()
                           : numeric && number != composition_->numbers.end() && read >= number->low && read <= number->high;
    if (known) value = *kept;
  }
  kept_.reset();
  if (wanted != chosen()) ask(wanted);
}

QVariantMap ComposerPanel::choices() const {
  QVariantMap all;
  const auto put = [&](const Settings& settings) {
    for (const auto& [key, value] : settings) all.insert(plain(key), plain(value));
  };
  if (composition_)
    put(chosen());
  else if (kept_)
    put(*kept_);
  return all;
}

void ComposerPanel::setChoices(const QVariantMap& saved) {
  if (saved.isEmpty()) return;
  Settings kept;
  for (auto one = saved.begin(); one != saved.end(); ++one)
    kept.emplace_back(one.key().toStdString(), one.value().toString().toStdString());
  if (composition_)
    ask(kept);
  else
    kept_ = std::move(kept);
}

void ComposerPanel::numberEdited(double value) {
  if (!composition_ || composition_->numbers.empty()) return;
  const Composition::Number& of = composition_->numbers.front();
  const QSignalBlocker quiet(number_slider_);
  number_slider_->setValue(static_cast<int>(std::lround(slider_positions * std::log(value / of.low) / std::log(of.high / of.low))));
  if (value != of.value) ask(chosen());
}

void ComposerPanel::open() {
  if (!composition_ || composition_->preset.empty()) return;
  // The chosen settings, also where their composition is still on its way.
  ModelChoice model{composition_->preset, composition_->code, chosen()};
  model.settings.insert(model.settings.end(), composition_->others.begin(), composition_->others.end());
  emit requested(model);
}

/// The named model as its own preset has it.
void ComposerPanel::openNamed(const QString& preset) {
  if (!composition_) return;
  emit requested(ModelChoice{preset.toStdString(), preset.toStdString(), {}});
}

// -------------------------------------------------------------------------------------------------------------------- display

void ComposerPanel::makeRows() {
  for (const Composition::Row& row : composition_->rows) {
    TileRow*& made = tiles_[row.key];
    if (made == nullptr) {
      made = new TileRow(page_);
      made->show();
      connect(made, &TileRow::picked, this, [this] {
        kept_.reset();
        ask(chosen());
      });
    }
    made->setRow(row);
  }
  // The keyboard goes through them in their order.
  setTabOrder(verdict_, open_);
  QWidget* before = open_;
  for (const bool few : {true, false})
    for (const Composition::Row& row : composition_->rows)
      if ((row.choices.size() <= beside_each_other) == few) {
        setTabOrder(before, tiles_[row.key]);
        before = tiles_[row.key];
      }
  setTabOrder(before, words_);
}

void ComposerPanel::showComposition() {
  const Composition& c = *composition_;
  if (!c.numbers.empty()) {
    const Composition::Number& of = c.numbers.front();
    const QSignalBlocker quiet_box(number_box_), quiet_slider(number_slider_);
    number_name_->setText(plain(of.symbol));
    number_box_->setRange(of.low, of.high);
    number_box_->setValue(of.value);
    number_slider_->setValue(static_cast<int>(std::lround(slider_positions * std::log(of.value / of.low) / std::log(of.high / of.low))));
    for (QWidget* one : std::initializer_list<QWidget*>{number_name_, number_box_, number_slider_}) {
      one->setEnabled(of.unused.empty());
      one->setToolTip(safeTip(plain(of.unused.empty() ? of.text : of.unused)));
    }
    for (QWidget* one : std::initializer_list<QWidget*>{number_box_, number_slider_}) one->setAccessibleName(plain(of.symbol));
    setSpokenValue(number_slider_, of.value, of.low, of.high);
  }
  const bool runs = c.problem.empty() && c.steps > 0;
  {
    const QSignalBlocker quiet(token_);
    const int last = std::max(0, static_cast<int>(c.steps) - 1);
    const bool at_end = token_->maximum() == token_->value() || !runs;
    token_->setRange(0, last);
    if (at_end) token_->setValue(last);
  }
  token_->setEnabled(runs);
  factors_->setVisible(runs);
  factors_->setComposition(composition_);
  factors_->setToken(token_->value());
  code_->setText(plain(c.code));
  QFont large = Theme::of(this).large;
  large.setPointSizeF(14);
  large.setBold(true);
  code_->setFont(large);
  verdict_->setText(composedVerdict(c, palette().color(QPalette::Link)));
  const bool linked = !c.nearest.model.preset.empty() ||
                      std::ranges::any_of(c.nearest.also, [](const Composition::Model& one) { return !one.preset.empty(); });
  verdict_->setFocusPolicy(linked ? Qt::StrongFocus : Qt::NoFocus);
  verdict_->setToolTip(safeTip(linked ? tr("A link opens the model's own preset; Ctrl+Z takes it back.") : QString()));
  words_->setText(composedWords(c, palette(), Theme::of(this), true));
  showRun();
  arrange();
}

void ComposerPanel::showRun() {
  QString why = whyNoCode();
  if (without_code_ != why) composes_ = false;
  without_code_ = std::move(why);
  showEmpty();
  emit headlineChanged();
  const bool is_shown = settingsOfRun() == chosen();
  open_->setEnabled(composition_->problem.empty() && !is_shown);
  open_->setToolTip(
      safeTip(is_shown ? tr("This is the model that runs.") : tr("It becomes the model that runs, in all panels; Ctrl+Z takes it back.")));
}

void ComposerPanel::showEmpty() {
  sentence_->setText(emptyReason());
  compose_->setVisible(setAside());
  pages_->setCurrentIndex(shown() ? 0 : 1);
}

void ComposerPanel::showEvent(QShowEvent* event) {
  Panel::showEvent(event);
  if (!composition_ && !asked_) ask({});
  arrange();
}

void ComposerPanel::resizeEvent(QResizeEvent* event) {
  Panel::resizeEvent(event);
  arrange();
}

void ComposerPanel::changeEvent(QEvent* event) {
  Panel::changeEvent(event);
  if ((event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) && composition_) showComposition();
}

RECLAB_PANEL_IS(composer, ComposerPanel)

}  // namespace reclab
