#include "server/shell/table_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>

namespace sluice::server {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(FoldText, CutsAtBlanksWhereThatLeavesNoLineHalfEmpty) {
  EXPECT_THAT(FoldText("the quick brown fox", 10), ElementsAre("the quick ", "brown fox"));
  EXPECT_THAT(FoldText("a bcdefghijklmnop", 10), ElementsAre("a bcdefghi", "jklmnop"));
  EXPECT_THAT(FoldText("", 10), ElementsAre(""));
  EXPECT_THAT(FoldText("0123456789", 10), ElementsAre("0123456789"));
  EXPECT_THAT(FoldText("\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD", 4),
              ElementsAre("\xE4\xB8\xAD\xE4\xB8\xAD", "\xE4\xB8\xAD"))
      << "a wide character is not cut";
  EXPECT_THAT(FoldText("\xE4\xB8\xAD", 1), ElementsAre("\xE4\xB8\xAD"));
}

TEST(LayOutTable, OneBlockWhereItFitsOrNobodyLooks) {
  EXPECT_THAT(LayOutTable({{1, 10, true}, {1, 20, false}}, 80), SizeIs(1));
  EXPECT_THAT(LayOutTable({{1, 1000, true}, {1, 2000, false}}, 0), SizeIs(1));
  EXPECT_THAT(LayOutTable({}, 80), SizeIs(1));
}

TEST(LayOutTable, LongTextsFoldBeforeColumnsDo) {
  const auto blocks = LayOutTable({{2, 4, false}, {4, 300, true}, {4, 25, true}}, 80);
  ASSERT_THAT(blocks, SizeIs(1));
  EXPECT_THAT(blocks[0].widths, ElementsAre(4, 43, 25));
}

// For any table: each column is in one block, and no block is wider than the terminal.
TEST(LayOutTable, EveryBlockFits) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<ColumnWidth> table(1 + random() % 60);
    for (ColumnWidth& column : table) {
      column.name = 1 + random() % 30;
      column.widest = column.name + random() % 200;
      column.folds = random() % 2 == 0;
    }
    const size_t columns = 40 + random() % 120;
    size_t next = 0;
    for (const TableBlock& block : LayOutTable(table, columns)) {
      EXPECT_EQ(block.first, next);
      next += block.widths.size();
      EXPECT_LE(std::accumulate(block.widths.begin(), block.widths.end(), size_t{0}) +
                    3 * block.widths.size() - 1,
                columns);
    }
    EXPECT_EQ(next, table.size());
  }
}

}  // namespace
}  // namespace sluice::server
