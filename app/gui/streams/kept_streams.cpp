// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/streams/kept_streams.h"

#include <QDir>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLocale>
#include <QPushButton>
#include <QTableWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <numeric>

#include "gui/look/look.h"
#include "plain_text.h"
#include "plot/theme.h"

namespace reclab {
namespace {

enum PlaceColumn { ofModel, ofSteps, ofTime, ofSize, ofUse, placeColumns };

QString sizeText(std::int64_t bytes) { return QLocale(QLocale::English).formattedDataSize(bytes, 1, QLocale::DataSizeSIFormat); }

}  // namespace

KeptStreams::KeptStreams(const LibraryPtr& library, QWidget* parent) : QDialog(parent), library_(library) {
  setObjectName("stream.places");
  setWindowTitle(tr("Kept streams"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(24, 24, 24, 16);
  column->setSpacing(12);
  column->addWidget(label(tr("Kept streams"), "title", this));
  words_ = plainLabel({}, this);
  words_->setWordWrap(true);
  column->addWidget(words_);
  table_ = new QTableWidget(0, placeColumns, this);
  table_->setAccessibleName(tr("Kept streams"));
  table_->setHorizontalHeaderLabels({tr("model"), tr("step"), tr("written"), tr("size"), {}});
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setShowGrid(false);
  table_->verticalHeader()->hide();
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setSectionResizeMode(ofModel, QHeaderView::Stretch);
  table_->horizontalHeader()->setHighlightSections(false);
  column->addWidget(table_, 1);
  why_ = label({}, "muted", this);
  why_->setWordWrap(true);
  column->addWidget(why_);
  auto* row = new QHBoxLayout;
  row->setSpacing(8);
  row->addStretch(1);
  look_ = new QPushButton(tr("Look at it"), this);
  look_->setToolTip(tr("Its last steps with the weights that it had then; Go on continues it from there"));
  remove_ = new QPushButton(tr("Remove"), this);
  auto* shut = new QPushButton(tr("Close"), this);
  for (QPushButton* button : {look_, remove_, shut}) {
    button->setAutoDefault(false);
    row->addWidget(button);
  }
  column->addLayout(row);
  resize(560, 420);
  connect(table_, &QTableWidget::itemSelectionChanged, this, &KeptStreams::tell);
  connect(look_, &QPushButton::clicked, this, [this] {
    if (const auto rows = chosen(); rows.size() == 1) emit lookWanted(places_[rows[0]].folder);
  });
  connect(remove_, &QPushButton::clicked, this, [this] {
    QStringList folders;
    for (const std::size_t one : chosen()) folders << places_[one].folder;
    emit removeWanted(folders);
  });
  connect(shut, &QPushButton::clicked, this, &QDialog::reject);
  tell();
}

QString KeptStreams::words() const { return words_->text(); }

void KeptStreams::show(const std::vector<KeptPlace>& places, const QStringList& inUse) {
  places_ = places;
  inUse_ = inUse;
  const std::int64_t bytes = std::accumulate(places.begin(), places.end(), std::int64_t{0},
                                             [](std::int64_t sum, const KeptPlace& one) { return sum + one.bytes; });
  words_->setText(places.empty() ? tr("No stream is kept.")
                                 : tr("%1 places where streams were left, %2, in %3. Each can be looked at and gone on with.")
                                       .arg(grouped(std::ssize(places)), sizeText(bytes), QDir::toNativeSeparators(folderOfStreams())));
  table_->clearContents();
  table_->setRowCount(static_cast<int>(places.size()));
  for (int row = 0; row < table_->rowCount(); ++row) {
    const KeptPlace& one = places[static_cast<std::size_t>(row)];
    const auto& presets = library_->presets.presets();
    const auto preset = std::ranges::find(presets, one.preset, &Preset::id);
    const QString texts[placeColumns]{QString::fromStdString(preset != presets.end() ? preset->title : one.preset), grouped(one.steps),
                                      QLocale(QLocale::English).toString(one.written, QStringLiteral("d MMM yyyy, HH:mm:ss")),
                                      sizeText(one.bytes),
                                      inUse.contains(one.folder) ? tr("in use")
                                      : one.checkpoint           ? tr("checkpoint")
                                                                 : QString()};
    for (int i = 0; i < placeColumns; ++i) {
      auto* item = new QTableWidgetItem(texts[i]);
      item->setTextAlignment(Qt::AlignVCenter | (i == ofSteps || i == ofSize ? Qt::AlignRight : Qt::AlignLeft));
      item->setToolTip(safeTip(QDir::toNativeSeparators(one.folder)));
      table_->setItem(row, i, item);
    }
  }
  tell();
}

std::vector<std::size_t> KeptStreams::chosen() const {
  std::vector<std::size_t> rows;
  for (const QModelIndex& index : table_->selectionModel()->selectedRows()) rows.push_back(static_cast<std::size_t>(index.row()));
  std::ranges::sort(rows);
  return rows;
}

void KeptStreams::tell() {
  const auto rows = chosen();
  const bool used = std::ranges::any_of(rows, [this](std::size_t row) { return inUse_.contains(places_[row].folder); });
  look_->setEnabled(rows.size() == 1);
  remove_->setEnabled(!rows.empty() && !used);
  why_->setText(used ? tr("What is in use, since it is looked at or pinned, cannot be removed.") : QString());
  why_->setVisible(used);
}

}  // namespace reclab
