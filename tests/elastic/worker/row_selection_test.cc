#include "elastic/worker/row_selection.h"

#include <gtest/gtest.h>

namespace sluice::elastic {
namespace {

models::FeatureBatch Rows() {
  models::FeatureBatch rows;
  rows.rows = 4;
  rows.dense_width = 2;
  rows.dense = {1, 2, 3, 4, 5, 6, 1, 2};
  rows.slots.resize(1);
  rows.slots[0].ids = {7, 8, 9, 10};
  rows.labels = {0, 1, 0, 0};
  return rows;
}

TEST(RowSelection, S16_AChecksumDoesNotDependOnTheOrderButOnEveryValue) {
  const models::FeatureBatch rows = Rows();
  const uint64_t checksum = ChecksumOf(rows);
  models::FeatureBatch other;
  GatherRows(rows, std::vector<uint32_t>{3, 1, 0, 2}, &other);
  EXPECT_EQ(ChecksumOf(other), checksum);
  GatherRows(rows, std::vector<uint32_t>{3, 1, 0}, &other);
  EXPECT_NE(ChecksumOf(other), checksum) << "a row less";
  GatherRows(rows, std::vector<uint32_t>{3, 1, 0, 0}, &other);
  EXPECT_NE(ChecksumOf(other), checksum) << "one twice, another not at all";
  other = rows;
  other.dense[5] = 7;
  EXPECT_NE(ChecksumOf(other), checksum);
  other = rows;
  other.slots[0].ids[1] = 9;
  EXPECT_NE(ChecksumOf(other), checksum);
  other = rows;
  std::swap(other.labels[0], other.labels[1]);
  EXPECT_NE(ChecksumOf(other), checksum);
  other = rows;
  other.weights = {1, 1, 2, 1};
  const uint64_t weighed = ChecksumOf(other);
  EXPECT_NE(weighed, checksum);
  std::swap(other.weights[1], other.weights[2]);
  EXPECT_NE(ChecksumOf(other), weighed);
  other = rows;
  other.slots[0].weights.assign(other.slots[0].ids.size(), 0.5F);
  EXPECT_NE(ChecksumOf(other), checksum) << "of an id";
}

}  // namespace
}  // namespace sluice::elastic
