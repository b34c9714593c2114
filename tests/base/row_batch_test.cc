#include "base/row_batch.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

TEST(RowBatchTest, KeptTextsOutliveTheirReader) {
  Schema schema;
  schema.columns = {{"t", DataType::kText, "text"},
                    {"n", DataType::kDouble, "double precision"},
                    {"i", DataType::kInt64, "bigint"}};
  RowBatch batch;
  batch.Reset(schema, 3);
  batch.columns[1].texts.resize(3);
  {
    std::string one = "first";
    std::string two = "1.50";
    batch.columns[0].texts = {one, "", std::string_view(nullptr, 0)};
    batch.columns[0].null = {0, 0, 1};
    batch.columns[1].doubles = {1.5, 2, 3};
    batch.columns[1].texts = {two, "", ""};
    batch.columns[2].int64s = {7, 8, 9};
    batch.rows = 3;
    batch.KeepTexts();
    one.assign(one.size(), 'x');
    two.assign(two.size(), 'x');
  }
  const RowBatch moved = std::move(batch);
  EXPECT_EQ(moved.columns[0].ValueAt(0), Value(std::string("first")));
  EXPECT_EQ(moved.columns[0].ValueAt(1), Value(std::string()));
  EXPECT_EQ(moved.columns[0].ValueAt(2), Value());
  EXPECT_EQ(moved.columns[1].texts[0], "1.50");
  EXPECT_FALSE(moved.columns[1].HasShownText(1));
  EXPECT_EQ(moved.columns[2].int64s[2], 9);
}

TEST(RowBatchTest, TextsOfCellsOfOtherTypesAreLeftAlone) {
  // An earlier batch's texts, whose memory is gone.
  const auto gone = [] {
    const auto* const freed = new char[64];
    const std::string_view text(freed, 64);
    delete[] freed;
    return text;
  }();
  Schema schema;
  schema.columns = {{"any", DataType::kText, ""}};
  RowBatch batch;
  batch.Reset(schema, 3);
  batch.columns[0].types = {DataType::kText, DataType::kInt64, DataType::kText};
  batch.columns[0].int64s = {0, 5, 0};
  batch.columns[0].null = {0, 0, 1};
  batch.columns[0].texts = {"here", gone, gone};
  batch.rows = 3;
  batch.KeepTexts();
  EXPECT_EQ(batch.columns[0].texts[0], "here");
  EXPECT_EQ(batch.columns[0].ValueAt(1), Value(int64_t{5}));
  EXPECT_EQ(batch.Bytes(), 4 + 3 * (sizeof(std::string_view) + sizeof(int64_t)));
}

}  // namespace
}  // namespace sluice
