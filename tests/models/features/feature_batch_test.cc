#include "models/features/feature_transform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::models {
namespace {

using ::testing::ElementsAre;

TEST(FeatureBatchTest, SliceAndAppendAreInverse) {
  FeatureBatch batch;
  batch.rows = 3;
  batch.dense_width = 2;
  batch.dense = {1, 2, 3, 4, 5, 6};
  batch.labels = {0, 1, 0};
  batch.label_numbers = {1e9, 1e9 + 0.25, 1e9};
  batch.weights = {1, 2, 3};
  batch.groups = {1, 1, 2};
  batch.slots.resize(2);
  batch.slots[0].ids = {7, 8, 9};
  batch.slots[1].ids = {1, 2, 3, 4};
  batch.slots[1].ends = {2, 2, 4};
  batch.slots[1].weights = {0.1F, 0.2F, 0.3F, 0.4F};
  FeatureBatch joined = batch.Slice(0, 1);
  EXPECT_THAT(joined.slots[1].ids, ElementsAre(1, 2));
  joined.Append(batch.Slice(1, 3));
  EXPECT_EQ(joined.rows, 3U);
  EXPECT_EQ(joined.dense, batch.dense);
  EXPECT_EQ(joined.labels, batch.labels);
  EXPECT_EQ(joined.label_numbers, batch.label_numbers);
  EXPECT_EQ(joined.OwnLabels(), batch.label_numbers);
  EXPECT_EQ(joined.weights, batch.weights);
  EXPECT_EQ(joined.groups, batch.groups);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(joined.slots[i].ids, batch.slots[i].ids);
    EXPECT_EQ(joined.slots[i].ends, batch.slots[i].ends);
    EXPECT_EQ(joined.slots[i].weights, batch.slots[i].weights);
  }
  EXPECT_GT(joined.Bytes(), 0U);
  joined.Clear();
  EXPECT_EQ(joined.rows, 0U);
  EXPECT_EQ(joined.Bytes(), 0U);
  joined.labels = {1, 0};
  EXPECT_THAT(joined.OwnLabels(), ElementsAre(1, 0)) << "classes";
}

TEST(FeatureBatchTest, AppendJoinsSingleIdsWithLists) {
  FeatureBatch single;
  single.rows = 2;
  single.slots.resize(1);
  single.slots[0].ids = {5, 6};
  FeatureBatch list;
  list.rows = 1;
  list.slots.resize(1);
  list.slots[0].ids = {1, 2};
  list.slots[0].ends = {2};
  list.slots[0].weights = {0.5F, 0.25F};
  FeatureBatch joined = single;
  joined.Append(list);
  EXPECT_THAT(joined.slots[0].ids, ElementsAre(5, 6, 1, 2));
  EXPECT_THAT(joined.slots[0].ends, ElementsAre(1, 2, 4));
  EXPECT_THAT(joined.slots[0].weights, ElementsAre(1, 1, 0.5F, 0.25F));
  joined.Append(single);
  EXPECT_THAT(joined.slots[0].ends, ElementsAre(1, 2, 4, 5, 6));
  EXPECT_THAT(joined.slots[0].weights, ElementsAre(1, 1, 0.5F, 0.25F, 1, 1));
}

}  // namespace
}  // namespace sluice::models
