#include "elastic/worker/batches_ahead.h"

#include <gtest/gtest.h>

#include "elastic/worker/lease.h"
#include "elastic/worker/row_selection.h"
#include "models/model.pb.h"
#include "planner/plan.pb.h"
#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {
namespace {

class BatchesAheadTest : public ::testing::Test {
 protected:
  BatchesAheadTest() {
    network_ = models::Network::Make(plan_.model()).value();
    const std::unique_ptr<testing::MemorySource> source = SmallSource(kRows);
    const catalog::DatasetSpec spec = source->Spec(kRows);
    const auto loader = ShardLoader::Make(*source, spec, network_->transform(),
                                          SplitRule::Make(plan_.split()).value(), {})
                            .value();
    EXPECT_TRUE(loader->Start(ShardId(0)).ok());
    while (!loader->Pump(kRows).value()) {
    }
    rows_ = loader->Finish();
    order_ = RowOrder(rows_->train.rows, 7, Epoch(1), ShardId(0), true);
  }
  Lease MakeLease(int64_t first) const {
    Task task;
    task.first_batch = BatchIndex(first);
    Lease lease(task);
    lease.Begin(rows_, order_, kBatchRows, 0);
    return lease;
  }
  void ExpectSameBatches(Lease* lease, BatchIndex from) {
    models::FeatureBatch made, expected;
    models::ParameterView view, expected_view;
    for (BatchIndex batch = from; batch < lease->end(); ++batch) {
      lease->MakeBatch(batch, network_.get(), &made, &view);
      lease->Gather(batch, &expected);
      network_->CollectIds(expected, &expected_view);
      EXPECT_EQ(made.dense, expected.dense) << batch;
      EXPECT_EQ(made.labels, expected.labels) << batch;
      ASSERT_EQ(view.tables.size(), expected_view.tables.size());
      for (size_t t = 0; t < view.tables.size(); ++t) {
        EXPECT_EQ(view.tables[t].ids, expected_view.tables[t].ids) << batch;
        EXPECT_EQ(view.tables[t].positions, expected_view.tables[t].positions) << batch;
      }
    }
  }

  static constexpr size_t kRows = 1000;
  static constexpr size_t kBatchRows = 64;
  const plan::TrainPlan plan_ = SmallPlan(1, kBatchRows);
  std::unique_ptr<models::Network> network_;
  std::shared_ptr<const ShardRows> rows_;
  std::vector<uint32_t> order_;
};

TEST_F(BatchesAheadTest, AreTheBatchesThatTheTrainerWouldMake) {
  Lease lease = MakeLease(0);
  lease.ahead = std::make_shared<BatchesAhead>();
  lease.ahead->Make(rows_->train, order_, kBatchRows, BatchIndex(0), network_.get());
  EXPECT_EQ(lease.ahead->TakeOrder(), order_);
  ExpectSameBatches(&lease, BatchIndex(0));
}

TEST_F(BatchesAheadTest, BeginWhereTheTaskDoes) {
  BatchesAhead ahead;
  ahead.Make(rows_->train, order_, kBatchRows, BatchIndex(3), network_.get());
  models::FeatureBatch batch;
  models::ParameterView view;
  EXPECT_FALSE(ahead.Take(BatchIndex(2), &batch, &view));
  EXPECT_TRUE(ahead.Take(BatchIndex(3), &batch, &view));
  EXPECT_EQ(batch.rows, kBatchRows);
  EXPECT_FALSE(ahead.Take(BatchIndex(3), &batch, &view)) << "it was taken";
  Lease lease = MakeLease(3);
  lease.ahead = std::make_shared<BatchesAhead>(std::move(ahead));
  ExpectSameBatches(&lease, BatchIndex(2));
}

TEST_F(BatchesAheadTest, WithoutThemTheTrainerMakesItsOwn) {
  Lease lease = MakeLease(0);
  lease.ahead = std::make_shared<BatchesAhead>();
  ExpectSameBatches(&lease, BatchIndex(0));
  EXPECT_TRUE(lease.ahead->TakeOrder().empty());
}

}  // namespace
}  // namespace sluice::elastic
