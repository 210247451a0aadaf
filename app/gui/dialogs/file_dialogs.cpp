// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/dialogs/file_dialogs.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QDir>
#include <QDoubleSpinBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPushButton>
#include <QSettings>
#include <QVBoxLayout>
#include <utility>

#include "gui/look/look.h"

namespace reclab {
namespace {

constexpr int least_field = 320;

QString lastFolder() {
  const QString folder = QSettings().value("lastFolder").toString();
  return !folder.isEmpty() && QFileInfo(folder).isDir() ? folder : QDir::homePath();
}

/// In this folder, one by this name that is not there yet.
QString newFolder(const QString& in, const QString& name) {
  QString folder = QDir(in).filePath(name);
  for (int next = 2; QFileInfo::exists(folder); ++next) folder = QDir(in).filePath(QStringLiteral("%1-%2").arg(name).arg(next));
  return folder;
}

QString remembered(const QString& path, bool isFolder) {
  if (!path.isEmpty()) QSettings().setValue("lastFolder", isFolder ? path : QFileInfo(path).absolutePath());
  return path;
}

QDoubleSpinBox* spin(double low, double high, double step, double value, const QString& unit) {
  auto* box = new QDoubleSpinBox;
  box->setRange(low, high);
  box->setSingleStep(step);
  box->setDecimals(1);
  box->setSuffix(' ' + unit);
  box->setValue(value);
  return box;
}

}  // namespace

FileChooser dialogChooser() {
  return {[](QWidget* parent, const QString& title, const QString& filter) {
            return remembered(QFileDialog::getOpenFileName(parent, title, lastFolder(), filter), false);
          },
          [](QWidget* parent, const QString& title, const QString& name, const QString& filter) {
            return remembered(QFileDialog::getSaveFileName(parent, title, QDir(lastFolder()).filePath(name), filter), false);
          },
          [](QWidget* parent, const QString& title, const QString& name) {
            FolderDialog dialog(title, name.isEmpty() ? lastFolder() : newFolder(lastFolder(), name), parent);
            if (dialog.exec() != QDialog::Accepted) return QString();
            const QString folder = dialog.folder();
            remembered(folder, name.isEmpty() || QFileInfo(folder).isDir());  // the next proposal stands beside a new one
            return folder;
          },
          [](QWidget* parent, const FigureQuestion& question) -> std::optional<FigureAnswer> {
            FigureDialog dialog(question, lastFolder(), parent);
            if (dialog.exec() != QDialog::Accepted) return std::nullopt;
            remembered(dialog.answer().folder, true);
            return dialog.answer();
          }};
}

// ---------------------------------------------------------------------------------------------------------------- folder

FolderField::FolderField(const QString& folder, const QString& title, QWidget* parent) : QWidget(parent), line_(new QLineEdit) {
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(8);
  line_->setText(QDir::toNativeSeparators(folder));
  line_->setMinimumWidth(least_field);
  line_->setObjectName("folder");
  auto* choose = new QPushButton(tr("Choose…"));
  row->addWidget(line_, 1);
  row->addWidget(choose);
  setFocusProxy(line_);
  connect(line_, &QLineEdit::textChanged, this, &FolderField::changed);
  connect(choose, &QPushButton::clicked, this, [this, title] {
    const QString chosen =
        QFileDialog::getExistingDirectory(this, title, QFileInfo(this->folder()).isDir() ? this->folder() : lastFolder());
    if (!chosen.isEmpty()) line_->setText(QDir::toNativeSeparators(chosen));
  });
}

QString FolderField::folder() const {
  QString typed = QDir::fromNativeSeparators(line_->text().trimmed());
  if (typed.isEmpty()) return {};
  if (typed == u'~' || typed.startsWith(QStringLiteral("~/"))) typed.replace(0, 1, QDir::homePath());
  return QDir::cleanPath(QDir(lastFolder()).absoluteFilePath(typed));
}

FolderDialog::FolderDialog(const QString& title, const QString& folder, QWidget* parent) : QDialog(parent) {
  setWindowTitle(title);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(24, 20, 24, 16);
  column->setSpacing(12);
  column->addWidget(label(title, "title", this));
  field_ = new FolderField(folder, title, this);
  column->addWidget(field_);
  column->addWidget(label(tr("A folder that does not exist is made."), "muted", this));
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel);
  buttons->button(QDialogButtonBox::Ok)->setText(tr("Export"));
  column->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(field_, &FolderField::changed, this,
          [this, buttons] { buttons->button(QDialogButtonBox::Ok)->setEnabled(!field_->folder().isEmpty()); });
}

// --------------------------------------------------------------------------------------------------------------- figures

FigureDialog::FigureDialog(FigureQuestion question, const QString& folder, QWidget* parent)
    : QDialog(parent), question_(std::move(question)) {
  setWindowTitle(question_.title);
  const QSettings kept;
  const FigureStyle style;
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(24, 20, 24, 16);
  column->setSpacing(12);
  column->addWidget(label(question_.title, "title", this));
  auto* form = new QFormLayout;
  form->setHorizontalSpacing(16);
  form->setVerticalSpacing(8);
  column->addLayout(form);

  folder_ = new FolderField(folder, question_.title, this);
  folder_->setToolTip(tr("A folder that does not exist is made."));
  form->addRow(tr("Folder"), folder_);
  name_ = new QLineEdit(question_.stems.value(0));
  name_->setObjectName("name");
  if (question_.stems.size() == 1)
    form->addRow(tr("Name"), name_);
  else
    name_->setParent(this), name_->hide();
  format_ = new QComboBox;
  format_->setObjectName("format");
  format_->addItem(tr("PDF"), static_cast<int>(Panel::Format::pdf));
  format_->addItem(tr("SVG"), static_cast<int>(Panel::Format::svg));
  format_->addItem(tr("PNG, 600 dpi"), static_cast<int>(Panel::Format::png));
  format_->setCurrentIndex(format_->findData(static_cast<int>(question_.format)));
  form->addRow(tr("Format"), format_);

  const double width = kept.value("figures/width", style.width).toDouble();
  width_ = new QComboBox;
  width_->setObjectName("width");
  width_->addItem(tr("%1 mm, one column of a journal").arg(FigureStyle::column), FigureStyle::column);
  width_->addItem(tr("%1 mm, two columns").arg(FigureStyle::page), FigureStyle::page);
  width_->addItem(tr("Another width"), 0.0);
  own_width_ = spin(40, 500, 1, width, tr("mm"));
  own_width_->setObjectName("ownWidth");
  width_->setCurrentIndex(width_->findData(width) >= 0 ? width_->findData(width) : 2);
  auto* widths = new QHBoxLayout;
  widths->setSpacing(8);
  widths->addWidget(width_, 1);
  widths->addWidget(own_width_);
  form->addRow(tr("Width"), widths);
  font_ = spin(4, 30, 0.5, kept.value("figures/fontSize", style.fontSize).toDouble(), tr("pt"));
  font_->setObjectName("fontSize");
  font_->setToolTip(tr("Of the smallest text, in the printed figure. Journals ask for 5 to 8 pt; lines and markers follow."));
  form->addRow(tr("Smallest text"), font_);
  const auto box = [&](const QString& text, const char* name, bool on) {
    auto* made = new QCheckBox(text);
    made->setObjectName(name);
    made->setChecked(kept.value(QStringLiteral("figures/") + name, on).toBool());
    return made;
  };
  title_ = box(tr("Title"), "title", style.title);
  caption_ = box(tr("Verdict and caption"), "caption", style.caption);
  caption_->setToolTip(tr("The sentences over and under the picture"));
  cursor_ = box(tr("Cursor, with the values there"), "cursor", style.cursor);
  auto* parts = new QVBoxLayout;
  parts->setSpacing(4);
  for (QCheckBox* one : {title_, caption_, cursor_}) parts->addWidget(one);
  form->addRow(tr("Also drawn"), parts);

  said_ = label({}, "muted", this);
  said_->setWordWrap(true);
  said_->setTextFormat(Qt::PlainText);
  said_->setObjectName("said");
  column->addWidget(said_);
  buttons_ = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Cancel);
  column->addWidget(buttons_);
  connect(buttons_, &QDialogButtonBox::accepted, this, &FigureDialog::accept);
  connect(buttons_, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(folder_, &FolderField::changed, this, &FigureDialog::update);
  connect(name_, &QLineEdit::textChanged, this, &FigureDialog::update);
  for (QComboBox* one : {format_, width_}) connect(one, &QComboBox::currentIndexChanged, this, &FigureDialog::update);
  for (QDoubleSpinBox* one : {own_width_, font_}) connect(one, &QDoubleSpinBox::valueChanged, this, &FigureDialog::update);
  update();
}

FigureAnswer FigureDialog::answer() const {
  FigureStyle style;
  const double width = width_->currentData().toDouble();
  style.width = width > 0 ? width : own_width_->value();
  style.fontSize = font_->value();
  style.title = title_->isChecked();
  style.caption = caption_->isChecked();
  style.cursor = cursor_->isChecked();
  QString stem = name_->text().trimmed();
  const auto format = static_cast<Panel::Format>(format_->currentData().toInt());
  if (const QString suffix = '.' + suffixOf(format); stem.endsWith(suffix, Qt::CaseInsensitive)) stem.chop(suffix.size());
  return {folder_->folder(), stem, format, style};
}

/// The files to write.
QStringList FigureDialog::files() const {
  const FigureAnswer given = answer();
  QStringList names;
  for (const QString& stem : question_.stems.size() == 1 ? QStringList{given.stem} : question_.stems)
    names << stem + '.' + suffixOf(given.format);
  return names;
}

void FigureDialog::update() {
  own_width_->setEnabled(width_->currentData().toDouble() == 0.0);
  const FigureAnswer given = answer();
  const QStringList names = files();
  QString problem = given.style.problem();
  if (problem.isEmpty() && given.folder.isEmpty()) problem = tr("Name a folder.");
  if (problem.isEmpty() && question_.stems.size() == 1 && (given.stem.isEmpty() || given.stem.contains('/')))
    problem = tr("Give the figure a name, without a folder.");
  said_->setText(!problem.isEmpty()  ? problem
                 : names.size() == 1 ? names.front()
                                     : tr("%1 figures: %2").arg(names.size()).arg(names.join(", ")));
  buttons_->button(QDialogButtonBox::Save)->setEnabled(problem.isEmpty());
}

bool mayReplace(QWidget* parent, const QString& title, const QString& there, bool several) {
  QMessageBox question(QMessageBox::Question, title, {}, QMessageBox::Cancel, parent);
  question.setTextFormat(Qt::PlainText);
  question.setText(there);
  const QPushButton* replace =
      question.addButton(several ? QObject::tr("Replace them") : QObject::tr("Replace it"), QMessageBox::AcceptRole);
  question.setDefaultButton(QMessageBox::Cancel);
  question.exec();
  return question.clickedButton() == replace;
}

bool mayReplaceFiles(QWidget* parent, const QString& title, const QString& folder, const QStringList& files) {
  QStringList there;
  for (const QString& name : files)
    if (QFileInfo::exists(QDir(folder).filePath(name))) there << name;
  if (there.isEmpty()) return true;
  const QString place = QDir::toNativeSeparators(folder);
  const bool several = there.size() > 1;
  return mayReplace(parent, title,
                    several ? QObject::tr("%1 of these files are in %2 already: %3.").arg(there.size()).arg(place, there.join(", "))
                            : QObject::tr("%1 is in %2 already.").arg(there.front(), place),
                    several);
}

void FigureDialog::accept() {
  const FigureAnswer given = answer();
  if (!mayReplaceFiles(this, windowTitle(), given.folder, files())) return;
  QSettings kept;
  kept.setValue("figures/width", given.style.width);
  kept.setValue("figures/fontSize", given.style.fontSize);
  kept.setValue("figures/title", given.style.title);
  kept.setValue("figures/caption", given.style.caption);
  kept.setValue("figures/cursor", given.style.cursor);
  QDialog::accept();
}

}  // namespace reclab
