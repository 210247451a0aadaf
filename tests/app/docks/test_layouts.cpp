// SPDX-License-Identifier: GPL-3.0-or-later
// The layouts of resources/layouts: what they name is there, every panel has a place, and a file with a mistake is refused.
#include <QTest>
#include <algorithm>
#include <set>

#include "array/error.h"
#include "gui/docks/layouts.h"
#include "panel.h"

using namespace reclab;

namespace {

std::set<QString> panelsOf(const PanelLayout& layout) {
  std::set<QString> ids;
  for (const QStringList& row : layout.rows)
    for (const QString& cell : row)
      for (const QString& id : cell.split('|')) ids.insert(id);
  return ids;
}

}  // namespace

class TestLayouts : public QObject {
  Q_OBJECT
 private slots:
  void everyPanelHasAPlaceInTheFirst() {
    std::set<QString> all;
    for (const PanelInfo& panel : panels()) all.insert(panel.id);
    QVERIFY(all.size() > 10);
    const std::set<QString> first = panelsOf(panelLayouts().front());
    for (const QString& id : all) QVERIFY2(first.contains(id), qPrintable(id));
    QCOMPARE(first.size(), all.size());
  }

  void theyComeInTheirOrderWithNamesOfTheirOwn() {
    const std::vector<PanelLayout>& layouts = panelLayouts();
    QCOMPARE(layouts.size(), 8UL);
    QCOMPARE(layouts.front().name, QStringLiteral("Explore"));
    QCOMPARE(std::ranges::count_if(layouts, &PanelLayout::calm), 1);
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      QCOMPARE(layouts[i].place, static_cast<int>(i) + 1);
      for (std::size_t j = 0; j < i; ++j) QVERIFY(layouts[i].name.compare(layouts[j].name, Qt::CaseInsensitive) != 0);
    }
  }

  void aFileIsReadAsItIs() {
    const PanelLayout layout = layoutFrom(R"({"name": "A", "place": 3, "rows": [[["spectrum", "gating"], ["steps"]], [["timing"]]]})");
    QCOMPARE(layout.rows, (std::vector<QStringList>{{"spectrum|gating", "steps"}, {"timing"}}));
    QVERIFY(!layout.calm && layout.learns.isEmpty() && layout.place == 3);
  }

  void aMistakeIsSaid() {
    const std::pair<const char*, const char*> wrong[] = {
        {R"({"name": "A", "rows": [[["spektrum"]]]})", "A layout names no panel: spektrum."},
        {R"({"name": "A", "rows": [[["steps"]]], "learns": "x"})", "A layout names no panel: x."},
        {R"({"name": "A", "rows": [[["steps"], ["steps"]]]})", "A layout names a panel twice: steps."},
        {R"({"name": "A", "rows": [[["steps"]]], "size": 3})", "A layout has no size."},
        {R"({"rows": [[["steps"]]]})", "A layout has a name and rows of panels."},
        {R"({"name": "A"})", "A layout has a name and rows of panels."},
        {R"({"name": "A", "rows": [["steps"]]})", "A layout cannot be read: "},
        {R"({"name": )", "A layout cannot be read: "}};
    for (const auto& [json, sentence] : wrong) try {
        layoutFrom(json);
        QFAIL(json);
      } catch (const Error& error) {
        QVERIFY2(QString(error.what()).startsWith(sentence), error.what());
      }
  }
};

QTEST_MAIN(TestLayouts)
#include "test_layouts.moc"
