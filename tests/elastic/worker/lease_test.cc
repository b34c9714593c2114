#include "elastic/worker/lease.h"

#include <gtest/gtest.h>

#include <cmath>

#include <numeric>

namespace sluice::elastic {
namespace {

// 35 rows in batches of 10, of a task that begins with the second batch.
Lease HalfTrained() {
  Task task;
  task.id = TaskId(3);
  task.epoch = Epoch(2);
  task.shard = ShardId(5);
  task.first_batch = BatchIndex(1);
  Lease lease(task);
  std::vector<uint32_t> order(35);
  std::iota(order.begin(), order.end(), 0);
  auto rows = std::make_shared<ShardRows>();
  rows->checksum = 77;
  lease.Begin(rows, std::move(order), 10, 40);
  return lease;
}

TEST(Lease, CountsTheRowsOfItsBatches) {
  Lease lease = HalfTrained();
  EXPECT_EQ(lease.batches, 4);
  EXPECT_EQ(lease.report.task, TaskId(3));
  EXPECT_EQ(lease.report.next_batch, BatchIndex(1));
  EXPECT_EQ(lease.report.shard_rows, 35);
  EXPECT_EQ(lease.report.checksum, 77U);
  EXPECT_EQ(lease.report.rows_read, 40);
  EXPECT_TRUE(lease.Count({.loss = 4, .weight = 10}).ok());
  EXPECT_TRUE(lease.Count({.loss = 2, .weight = 10}).ok());
  EXPECT_EQ(lease.report.rows, 20);
  EXPECT_FALSE(lease.done());
  EXPECT_FALSE(lease.Identity(BatchIndex(2)).last);
  EXPECT_TRUE(lease.Identity(BatchIndex(3)).last);
  EXPECT_TRUE(lease.Count({.loss = 1, .weight = 5}).ok());
  EXPECT_EQ(lease.report.rows, 25) << "the last batch is short";
  EXPECT_EQ(lease.report.loss, 7);
  EXPECT_EQ(lease.report.weight, 25);
  EXPECT_EQ(lease.report.next_batch, BatchIndex(4));
  EXPECT_TRUE(lease.done());
}

TEST(Lease, DoesNotCountALossThatIsNoNumber) {
  Lease lease = HalfTrained();
  const Status status = lease.Count({.loss = std::nan(""), .weight = 10});
  EXPECT_EQ(status.sqlstate(), "22003") << status.ToString();
  EXPECT_EQ(lease.report.rows, 0);
  EXPECT_EQ(lease.report.next_batch, BatchIndex(1));
}

TEST(Lease, EndsWhereItsTaskEnds) {
  Lease lease = HalfTrained();
  lease.task.last_batch = BatchIndex(2);
  EXPECT_TRUE(lease.Count({.loss = 4, .weight = 10}).ok());
  EXPECT_TRUE(lease.done());
}

TEST(Lease, IsCutToItsShareOfWhatWasReported) {
  Lease lease = HalfTrained();
  EXPECT_TRUE(lease.Count({.loss = 4, .weight = 10}).ok());
  EXPECT_TRUE(lease.Count({.loss = 2, .weight = 10}).ok());
  lease.report.rows_retried = 20;
  lease.CutShort(BatchIndex(2));
  EXPECT_EQ(lease.report.rows, 10);
  EXPECT_EQ(lease.report.rows_retried, 10);
  EXPECT_EQ(lease.report.loss, 3);
  EXPECT_EQ(lease.report.weight, 10);
  EXPECT_EQ(lease.report.next_batch, BatchIndex(2));
  EXPECT_TRUE(lease.done());
}

}  // namespace
}  // namespace sluice::elastic
