// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/composer/composer_panel.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QScrollBar>
#include <QSignalBlocker>
#include <QTextDocument>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "panels/panel_info.h"
#include "plain_text.h"
#include "window_text.h"

namespace reclab {
namespace {

constexpr int narrow = 360;                   // pixels, below which the verdict has a line of its own
constexpr int two_columns = 700;              // pixels, from which what the tiles make stands beside them
constexpr std::size_t beside_each_other = 2;  // rows of no more tiles share a line
constexpr int slider_positions = 1000;
constexpr int margin = 10, space = 10;  // pixels round the page and between its parts

/// Whether what the tiles make stands beside them.
bool besides(int width) { return width >= two_columns; }
QString html(const std::string& text) { return QString::fromStdString(text).toHtmlEscaped(); }
QString plain(const std::string& text) { return QString::fromStdString(text); }

/// The value of a key; nothing where there is none.
const std::string* valueIn(const Composition::Settings& settings, const std::string& key) {
  const auto found = std::ranges::find(settings, key, &std::pair<std::string, std::string>::first);
  return found == settings.end() ? nullptr : &found->second;
}

/// A slider that leaves the wheel to the page it is on.
class PageSlider : public QSlider {
 public:
  using QSlider::QSlider;

 protected:
  void wheelEvent(QWheelEvent* event) override { event->ignore(); }
};
/// Likewise fields: only one that has the keyboard turns.
template <class Box>
class PageBox : public Box {
 public:
  PageBox() { this->setFocusPolicy(Qt::StrongFocus); }

 protected:
  void wheelEvent(QWheelEvent* event) override {
    if (this->hasFocus())
      Box::wheelEvent(event);
    else
      event->ignore();
  }
};

/// An equation that is not broken between lines.
QString whole(const std::string& equation) {
  QString text = plain(equation);
  text.replace(u' ', QChar::Nbsp).replace(QStringLiteral("/"), QStringLiteral("/\u2060"));
  return mathHtml(text.toStdString());
}

/// A label whose first link is the keyboard's as soon as the label is, so that Enter opens it.
class LinkLabel : public QLabel {
 public:
  LinkLabel() { setTextFormat(Qt::RichText); }

 protected:
  void focusInEvent(QFocusEvent* event) override {
    QLabel::focusInEvent(event);
    if (event->reason() == Qt::TabFocusReason || event->reason() == Qt::BacktabFocusReason)
      QLabel::focusNextPrevChild(event->reason() == Qt::TabFocusReason);
  }
};

/// "is GLA (GateLoop)". A model that has a preset is a link to it where a colour for links is given.
QString verdictOf(const Composition& c, const QColor& link = {}) {
  const auto name_of = [&link](const Composition::Model& model) {
    const QString title = html(model.title);
    return model.preset.empty() || !link.isValid()
               ? title
               : QStringLiteral("<a style='color:%1' href='preset:%2'>%3</a>").arg(link.name(), html(model.preset), title);
  };
  QStringList others;
  for (const Composition::Model& one : c.nearest.also) others << name_of(one);
  const QString name = QStringLiteral("<b>%1</b>").arg(name_of(c.nearest.model)) +
                       (others.isEmpty() ? QString() : QStringLiteral(" (%1)").arg(others.join(QStringLiteral(", "))));
  return c.nearest.exact ? ComposerPanel::tr("is %1").arg(name) : ComposerPanel::tr("nearest to %1").arg(name);
}

/// Everything that is said of the model. `links`: on the screen, where some of it can be clicked and the verdict stands above.
QString wordsOf(const Composition& c, const QPalette& palette, const Theme& theme, bool links) {
  const QString muted = theme.muted.name(), link = palette.color(QPalette::Link).name();
  // The two lines of the recurrence; what its parts are follows in as few as there is room for.
  QStringList recurrence, parts, forms;
  for (const std::string& line : c.equations) (recurrence.size() < 2 ? recurrence : parts) << whole(line);
  QString out = QStringLiteral(
                    "<table width='100%' cellpadding='6' cellspacing='0'><tr><td bgcolor='%1' style='font-family:\"DejaVu Serif\",serif; "
                    "font-size:11pt'>%2</td></tr></table>")
                    .arg(mixed(theme.text, theme.base, 0.06).name(),
                         recurrence.join(QStringLiteral("<br/>")) + QStringLiteral("<br/>") + parts.join(QStringLiteral(", &nbsp; ")));
  const QString verdict =
      links ? QString() : ComposerPanel::tr("It %1. ").arg(c.nearest.exact ? verdictOf(c) : ComposerPanel::tr("is ") + verdictOf(c));
  out += QStringLiteral("<p style='margin-top:6px; margin-bottom:6px'>%1<span style='color:%2'>%3</span></p>")
             .arg(verdict, muted, mathHtml(c.nearest.differs));
  for (const Composition::Form& form : c.forms)
    forms << QStringLiteral(
                 "<tr><td style='padding-right:12px'>%1</td><td style='padding-right:12px'>%2</td><td style='color:%3'>%4</td></tr>")
                 .arg(html(form.name), mathHtml(form.cost), muted, mathHtml(form.depth));
  out += QStringLiteral(
             "<table cellspacing='0' cellpadding='1'><tr><td style='padding-right:12px; color:%1'>%2</td><td style='padding-right:12px; "
             "color:%1'>%3</td><td style='color:%1'>%4</td></tr>%5</table>")
             .arg(muted, ComposerPanel::tr("exact form"), ComposerPanel::tr("operations"), ComposerPanel::tr("one after another"),
                  forms.join(QString()));
  if (!c.problem.empty())
    out += QStringLiteral("<p style='margin-top:6px; margin-bottom:0'>%1</p>").arg(windowText(c.problem).toHtmlEscaped());
  if (!c.command.empty())
    out += QStringLiteral("<p style='margin-top:6px; margin-bottom:0; color:%1'>%2 <tt>%3</tt>%4</p>")
               .arg(muted,
                    ComposerPanel::tr("The pictures are of a small run of it: %1, %2 tokens, a memory of %3 entries, seed %4.")
                        .arg(html(c.input))
                        .arg(c.steps)
                        .arg(c.entries)
                        .arg(c.seed),
                    html(c.command),
                    links ? QStringLiteral(" <a style='color:%1' href='copy'>%2</a>").arg(link, ComposerPanel::tr("Copy")) : QString());
  return out;
}

}  // namespace

ComposerPanel::ComposerPanel(QWidget* parent) : Panel(parent) {
  code_ = plainLabel();
  code_->setObjectName(QStringLiteral("code"));
  code_->setToolTip(tr("The code e-o-s-a: the numbers of the chosen expand, oscillation, shrink and activation."));
  code_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  verdict_ = new LinkLabel;
  verdict_->setObjectName(QStringLiteral("verdict"));
  verdict_->setTextFormat(Qt::RichText);
  verdict_->setWordWrap(true);
  verdict_->setTextInteractionFlags(Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
  open_ = new QPushButton(tr("Open as a model"));
  open_->setObjectName(QStringLiteral("open"));
  auto* top = new QWidget;
  top_ = new QGridLayout(top);
  top_->setContentsMargins(8, 4, 8, 4);
  top_->setHorizontalSpacing(10);
  top_->setVerticalSpacing(2);
  top_->setColumnStretch(1, 1);
  top_->addWidget(code_, 0, 0);
  top_->addWidget(open_, 0, 2);

  words_ = plainLabel();
  words_->setObjectName(QStringLiteral("words"));
  words_->setTextFormat(Qt::RichText);
  words_->setWordWrap(true);
  words_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
  words_->setAlignment(Qt::AlignTop);
  number_name_ = plainLabel();
  number_slider_ = new PageSlider(Qt::Horizontal);
  number_slider_->setObjectName(QStringLiteral("numberSlider"));
  number_slider_->setRange(0, slider_positions);
  number_slider_->setMinimumWidth(40);
  number_slider_->setMaximumWidth(220);
  number_box_ = new PageBox<QDoubleSpinBox>;
  number_box_->setObjectName(QStringLiteral("number"));
  number_box_->setDecimals(3);
  number_box_->setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
  number_box_->setKeyboardTracking(false);
  token_ = new PageBox<QSpinBox>;
  token_->setObjectName(QStringLiteral("token"));
  token_->setRange(0, 0);
  token_->setToolTip(tr("The token at which the memory is read; a click in the right picture sets it too."));
  token_->setAccessibleName(token_->toolTip());
  const auto group = [](std::initializer_list<QWidget*> widgets) {
    auto* made = new QWidget;
    auto* line = new QHBoxLayout(made);
    line->setContentsMargins(0, 0, 0, 0);
    line->setSpacing(6);
    for (QWidget* one : widgets) line->addWidget(one);
    line->addStretch(1);
    return made;
  };
  page_ = new QWidget;
  page_->setBackgroundRole(QPalette::Base);
  words_->setParent(page_);
  number_fields_ = group({number_name_, number_slider_, number_box_});
  token_fields_ = group({plainLabel(tr("read at token")), token_});
  factors_ = new FactorsView;
  for (QWidget* one : std::initializer_list<QWidget*>{number_fields_, token_fields_, factors_}) one->setParent(page_);

  scroll_ = new QScrollArea;
  scroll_->setFrameShape(QFrame::NoFrame);
  scroll_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll_->setBackgroundRole(QPalette::Base);
  scroll_->setWidget(page_);
  scroll_->setFocusPolicy(Qt::NoFocus);

  auto* shown = new QWidget;
  shown->setBackgroundRole(QPalette::Base);
  shown->setAutoFillBackground(true);
  auto* shown_column = new QVBoxLayout(shown);
  shown_column->setContentsMargins(0, 0, 0, 0);
  shown_column->setSpacing(0);
  shown_column->addWidget(top);
  shown_column->addWidget(scroll_, 1);
  sentence_ = plainLabel();
  sentence_->setObjectName(QStringLiteral("sentence"));
  sentence_->setWordWrap(true);
  sentence_->setAlignment(Qt::AlignCenter);
  sentence_->setContentsMargins(24, 16, 24, 16);
  compose_ = new QPushButton(tr("Put another one together"));
  compose_->setObjectName(QStringLiteral("compose"));
  auto* instead = new QWidget;
  instead->setBackgroundRole(QPalette::Base);
  instead->setAutoFillBackground(true);
  auto* instead_column = new QVBoxLayout(instead);
  instead_column->setContentsMargins(0, 0, 0, 0);
  instead_column->addStretch(1);
  instead_column->addWidget(sentence_);
  instead_column->addWidget(compose_, 0, Qt::AlignHCenter);
  instead_column->addStretch(1);
  pages_ = new QStackedWidget;
  pages_->addWidget(shown);
  pages_->addWidget(instead);
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->addWidget(pages_);

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

QString ComposerPanel::hint() const {
  return tr(
      "Put a linear-complexity model together from its four parts; see at once its equation, the named model nearest to it, its exact "
      "forms, and what it keeps of each token. “Open as a model” runs it everywhere.");
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

// ------------------------------------------------------------------------------------------------------------ what is chosen

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
  // What was kept may be of another version: only what there is is taken.
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
  // What is chosen, also where its answer is still on its way.
  ModelChoice model{composition_->preset, composition_->code, chosen()};
  model.settings.insert(model.settings.end(), composition_->others.begin(), composition_->others.end());
  emit requested(model);
}

/// The named model as its own preset has it.
void ComposerPanel::openNamed(const QString& preset) {
  if (!composition_) return;
  emit requested(ModelChoice{preset.toStdString(), preset.toStdString(), {}});
}

// -------------------------------------------------------------------------------------------------------------- what is shown

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
    number_box_->setAccessibleName(plain(of.text));
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
  verdict_->setText(verdictOf(c, palette().color(QPalette::Link)));
  const bool linked = !c.nearest.model.preset.empty() ||
                      std::ranges::any_of(c.nearest.also, [](const Composition::Model& one) { return !one.preset.empty(); });
  verdict_->setFocusPolicy(linked ? Qt::StrongFocus : Qt::NoFocus);
  verdict_->setToolTip(safeTip(linked ? tr("A link opens the model's own preset; Ctrl+Z takes it back.") : QString()));
  words_->setText(wordsOf(c, palette(), Theme::of(this), true));
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

void ComposerPanel::arrange() {
  if (width() < narrow)
    top_->addWidget(verdict_, 1, 0, 1, 3);
  else
    top_->addWidget(verdict_, 0, 1);
  if (tiles_.empty()) return;
  const QSize room = scroll_->size();
  // Small tiles where large ones would leave less than half of the room to what they make, or be more than half as high again as the room.
  const auto dress = [this](bool compact) {
    for (const auto& [key, tiles] : tiles_) tiles->setCompact(compact);
  };
  dress(false);
  if (placeTiles(room.width()) > (besides(room.width()) ? room.height() * 3 / 2 : room.height() / 2)) dress(true);
  int height = place(room.width(), room.height());
  if (height > room.height())
    height = place(room.width() - style()->pixelMetric(QStyle::PM_ScrollBarExtent, nullptr, scroll_) - 2, room.height());
  page_->resize(page_->width(), std::max(height, room.height()));
}

int ComposerPanel::widthOfTiles(int width) const {
  const int inner = width - 2 * margin;
  if (!besides(width)) return inner;
  int widest = 0, most = 6;
  for (const auto& [key, tiles] : tiles_) {
    widest = std::max(widest, tiles->minimumSizeHint().width());
    if (tiles->isCompact()) most = std::max(most, static_cast<int>(tiles->row().choices.size()));
  }
  return std::clamp(inner * 57 / 100 / widest, 2, most) * widest;
}

/// The rows under each other. Returns their height.
int ComposerPanel::placeTiles(int width) {
  const int left = widthOfTiles(width);
  // Rows of few tiles stand beside each other.
  int y = 2, x = margin;
  std::vector<TileRow*> few;
  for (const Composition::Row& row : composition_->rows)
    if (row.choices.size() <= beside_each_other) few.push_back(tiles_[row.key]);
  const int part = (left - space * (static_cast<int>(few.size()) - 1)) / std::max(1, static_cast<int>(few.size()));
  const bool in_line = std::ranges::all_of(few, [&](const TileRow* row) { return row->sizeHint().width() <= part; });
  for (TileRow* row : few) {
    const int own = in_line ? part : left, high = row->heightForWidth(own);
    row->setGeometry(x, y, own, high);
    if (in_line && row != few.back())
      x += own + space;
    else
      x = margin, y += high + space / 2;
  }
  for (const Composition::Row& row : composition_->rows) {
    TileRow* tiles = tiles_[row.key];
    if (std::ranges::find(few, tiles) != few.end()) continue;
    const int high = tiles->heightForWidth(left);
    tiles->setGeometry(margin, y, left, high);
    y += high + space / 2;
  }
  return y;
}

/// Everything on a page of that width: beside the tiles what they make, or under them where there is no room. Returns the height.
int ComposerPanel::place(int width, int height) {
  const bool beside = besides(width);
  const int left = widthOfTiles(width);
  page_->resize(width, page_->height());
  const int y = placeTiles(width);
  const int from = beside ? margin + left + 2 * space : margin, wide = width - margin - from;
  int at = beside ? 2 : y;
  const auto put = [&](QWidget* one, int own, int high, int indent = 0) { one->setGeometry(from + indent, at, own, high); };
  put(words_, wide, words_->heightForWidth(wide));
  at += words_->height() + space;
  if (!factors_->isHidden()) {
    const QSize number = number_fields_->minimumSizeHint(), token = token_fields_->sizeHint();
    const int high = std::max(number.height(), token.height());
    const bool one_line = number.width() + 2 * space + token.width() <= wide;
    put(number_fields_, one_line ? std::min(wide - token.width() - 2 * space, 360) : wide, high);
    if (!one_line) at += high + space / 2;
    put(token_fields_, token.width() + space, high, one_line ? wide - token.width() - space : 0);
    at += high + space;
    const bool pair = wide >= FactorsView::side_by_side;  // a disk is no higher than it is wide
    put(factors_, wide,
        std::clamp(std::max(y, height) - at - space, pair ? 246 : 420, std::max(pair ? 246 : 420, pair ? wide * 6 / 10 + 60 : 520)));
    at += factors_->height() + space;
  }
  return std::max(y, at);
}

// ------------------------------------------------------------------------------------------------------------- what is saved

/// The model that runs may be what is composed.
QString ComposerPanel::fileModel(const QString& model) const { return shown() && settingsOfRun() == chosen() ? model : QString(); }

QString ComposerPanel::figureTitle() const { return shown() ? tr("%1: code %2").arg(title(), plain(shown()->code)) : title(); }

/// The pictures of the factors; what the model is in words and equations where it is asked for, or where there are no factors.
FigureDrawing ComposerPanel::drawing(const FigureStyle& style) {
  const Composition& c = *shown();
  FigureText text(figureTitle());
  QStringList settings;
  for (const auto& [key, value] : composition_->settings) settings << plain(key) + QStringLiteral(" = ") + plain(value);
  text.description = tr("%1 (%2); input %3, %4 steps; seed %5. Made by Recurrence Lab. The run again: %6")
                         .arg(plain(composition_->code), settings.join(QStringLiteral(", ")), plain(composition_->input))
                         .arg(composition_->steps)
                         .arg(composition_->seed)
                         .arg(plain(composition_->command));
  text.command = plain(composition_->command);
  const Theme theme = Theme::of(this);
  FigureStyle without = style;
  without.title = false;
  const bool pictures = c.problem.empty();
  const FigureDrawing factors =
      pictures ? factors_->drawing({}, without) : FigureDrawing{{}, {style.forPrint() ? style.pixels(logicalDpiX()) : 680, 0}, {}};
  auto words = std::make_shared<QTextDocument>();
  words->setDefaultFont(theme.normal);
  words->setDefaultStyleSheet(QStringLiteral("body { color: %1; }").arg(theme.text.name()));
  words->setTextWidth(factors.size.width() - 16);
  if (style.caption || !pictures) words->setHtml(QStringLiteral("<body>%1</body>").arg(wordsOf(c, palette(), theme, false)));
  const int top = style.title ? QFontMetrics(theme.large, this).height() + 16 : 0;
  const int below = top + (words->isEmpty() ? 0 : static_cast<int>(std::ceil(words->size().height())) + 8);
  return {
      text, {factors.size.width(), below + factors.size.height()}, [this, theme, top, below, words, factors, style](QCPPainter* painter) {
        painter->setFont(theme.large);
        painter->setPen(theme.text);
        if (style.title) painter->drawText(QRect(8, 0, factors.size.width() - 16, top), Qt::AlignVCenter | Qt::AlignLeft, figureTitle());
        painter->save();
        painter->translate(8, top);
        if (!words->isEmpty()) words->drawContents(painter);
        painter->restore();
        if (!factors.draw) return;
        painter->save();
        painter->translate(0, below);
        factors.draw(painter);
        painter->restore();
      }};
}

/// A line a token: what is kept of it where the memory is read, and the factors of its step.
QString ComposerPanel::dataAsCsv() const {
  if (!shown()) return {};
  const Composition& c = *shown();
  QByteArray text = "code,read_at,token,kept_least,kept_10,kept_median,kept_90,kept_most";
  for (std::int64_t i = 0; i < c.entries; ++i)
    text += ",factor_" + QByteArray::number(static_cast<qlonglong>(i)) + ",factor_" + QByteArray::number(static_cast<qlonglong>(i)) +
            "_imaginary";
  text += '\n';
  for (std::int64_t token = 0; token < c.steps && !c.factors.empty(); ++token) {
    text += QByteArray::fromStdString(c.code) + ',' + QByteArray::number(factors_->token()) + ',' +
            QByteArray::number(static_cast<qlonglong>(token));
    if (token <= factors_->token()) {
      const FactorsView::Kept& kept = factors_->kept()[static_cast<std::size_t>(token)];
      for (const double value : {kept.least, kept.low, kept.median, kept.high, kept.most}) text += ',' + csvNumber(value);
    } else {
      text += ",,,,,";
    }
    const std::int64_t row = std::min(token, c.rows_of_factors - 1);
    for (std::int64_t i = 0; i < c.entries; ++i) {
      const auto& factor = c.factors[static_cast<std::size_t>(row * c.entries + i)];
      text += ',' + csvNumber(factor.real()) + ',' + csvNumber(factor.imag());
    }
    text += '\n';
  }
  return QString::fromUtf8(text);
}

RECLAB_PANEL_IS(composer, ComposerPanel)

}  // namespace reclab
