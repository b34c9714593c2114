#include "elastic/worker/split.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "catalog/dataset.pb.h"
#include "models/features/calendar_parts.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {
namespace {

catalog::DatasetSpec CutInto(const std::vector<int64_t>& rows) {
  catalog::DatasetSpec dataset;
  for (const int64_t count : rows) {
    dataset.add_shards()->set_estimated_rows(count);
  }
  return dataset;
}

// The numbers of the validation rows in a table of `rows` rows, however it is cut.
std::vector<int64_t> ValidationRows(const SplitRule& rule, const std::vector<int64_t>& cut) {
  std::vector<int64_t> found;
  const std::vector<int64_t> places = PlacesOf(CutInto(cut));
  int64_t number = 0;
  for (size_t shard = 0; shard < cut.size(); ++shard) {
    for (int64_t row = 0; row < cut[shard]; ++row, ++number) {
      if (rule.IsValidation(places[shard] + row, {}, 0)) {
        found.push_back(number);
      }
    }
  }
  return found;
}

TEST(RowPlaces, FollowThePiecesOfAMixedShard) {
  catalog::ShardRange shard;
  for (const auto& [first, rows] : {std::pair(0, 2), std::pair(7, 0), std::pair(100, 3)}) {
    catalog::ShardPiece* piece = shard.add_pieces();
    piece->set_first_row(first);
    piece->set_estimated_rows(rows);
  }
  RowPlaces places(shard, 0);
  for (const int64_t place : {0, 1, 100, 101, 102, 103}) {  // the last: more rows than estimated
    EXPECT_EQ(places.Next(), place);
  }
  const catalog::ShardRange unmixed;
  RowPlaces whole(unmixed, 40);
  EXPECT_EQ(whole.Next(), 40);
  EXPECT_EQ(whole.Next(), 41);
}

TEST(Split, FoldsOfNeighboursHoldEachRowOutOnceAndRunsTogether) {
  constexpr uint32_t kFolds = 5;
  constexpr int64_t kTableRows = 400;
  constexpr int64_t kTogether = 16;
  std::vector<int> times(kTableRows, 0);
  for (uint32_t fold = 0; fold < kFolds; ++fold) {
    plan::Split split;
    split.set_kind(plan::Split::RANDOM);
    split.set_seed(7);
    split.set_folds(kFolds);
    split.set_fold(fold);
    split.set_together(kTogether);
    const SplitRule rule = SplitRule::Make(split).value();
    const std::vector<int64_t> rows = ValidationRows(rule, {kTableRows});
    EXPECT_EQ(rows.size(), kTableRows / kFolds);
    EXPECT_EQ(ValidationRows(rule, {100, 50, 250}), rows);
    for (size_t i = 0; i < rows.size(); ++i) {
      ++times[static_cast<size_t>(rows[i])];
      EXPECT_EQ(rows[i] / kTogether, rows[i / kTogether * kTogether] / kTogether);
    }
  }
  EXPECT_EQ(times, std::vector<int>(kTableRows, 1));
}

TEST(Split, RandomRowsAreTheSameHoweverTheTableIsCut) {
  plan::Split split;
  split.set_kind(plan::Split::RANDOM);
  split.set_fraction(0.2);
  split.set_seed(7);
  const SplitRule rule = SplitRule::Make(split).value();
  const std::vector<int64_t> whole = ValidationRows(rule, {1'000});
  EXPECT_GT(whole.size(), 150U);
  EXPECT_LT(whole.size(), 250U);
  EXPECT_EQ(ValidationRows(rule, {100, 100, 500, 0, 300}), whole);
  split.set_seed(8);
  EXPECT_NE(ValidationRows(SplitRule::Make(split).value(), {1'000}), whole);
}

// Each cell beside the ones of its row.
RowBatch::Column Numbers(const std::vector<int64_t>& numbers) {
  RowBatch::Column column;
  column.type = DataType::kInt64;
  column.int64s = numbers;
  column.null.assign(numbers.size(), 0);
  return column;
}

TEST(Split, TimesMayBeToldBySeveralColumns) {
  plan::Split split;
  split.set_kind(plan::Split::TIME);
  split.set_column("year");
  split.add_finer_columns("month");
  split.add_finer_columns("day");
  split.set_threshold(models::PlaceInCalendar(std::vector<double>{2020, 3, 15}));
  const SplitRule rule = SplitRule::Make(split).value();
  EXPECT_EQ(rule.columns(), (std::vector<std::string>{"year", "month", "day"}));
  const RowBatch::Column year = Numbers({2019, 2020, 2020, 2020, 2020, 2021, 2021});
  const RowBatch::Column month = Numbers({12, 2, 3, 3, 4, 1, 1});
  RowBatch::Column day = Numbers({31, 28, 14, 15, 1, 1, 1});
  day.null[6] = 1;
  std::vector<int> late;
  for (size_t row = 0; row < 7; ++row) {
    late.push_back(
        rule.IsValidation(0, std::vector<const RowBatch::Column*>{&year, &month, &day}, row) ? 1
                                                                                             : 0);
  }
  EXPECT_EQ(late, (std::vector<int>{0, 0, 0, 1, 1, 1, 0}));
}

}  // namespace
}  // namespace sluice::elastic
