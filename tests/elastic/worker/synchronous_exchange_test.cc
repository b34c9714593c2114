#include <gtest/gtest.h>

#include <deque>

#include "catalog/dataset.pb.h"
#include "elastic/job/direct_links.h"
#include "elastic/worker/worker.h"
#include "tests/elastic/job/small_job.h"

// The exchange with the parameter servers of a worker that has several lanes of a round.
namespace sluice::elastic {
namespace {

constexpr int64_t kLaneRows = 200, kLanes = 2, kRowsOfStep = 20;
constexpr int64_t kSteps = kLaneRows / (kRowsOfStep / kLanes);

// Hands out the lanes of one round, and accepts every report.
class MasterOfARound final : public MasterLink {
 public:
  MasterOfARound() {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      Task task;
      task.id = TaskId(lane + 1);
      task.shard = ShardId(lane);
      task.lane = static_cast<uint32_t>(lane);
      task.lanes = kLanes;
      tasks_.push_back(task);
    }
  }
  Result<Answer> Take(bool waiting) override {
    if (tasks_.empty()) {
      return Answer{waiting ? Answer::Kind::kFinished : Answer::Kind::kNothing, {}};
    }
    Answer answer{Answer::Kind::kTask, tasks_.front()};
    tasks_.pop_front();
    return answer;
  }
  Result<LeaseStatus> Report(const TaskReport&) override { return LeaseStatus{.mine = true}; }
  Result<bool> MayBegin(int64_t) override { return true; }
  Status Fail(const Task&, const Status& cause) override { return cause; }
  void Abandon(TaskId) override {}
  void Leave() override {}

 private:
  std::deque<Task> tasks_;
};

class CountedExchanges final : public ParameterLink {
 public:
  explicit CountedExchanges(ParameterLink& link) : link_(link) {}
  Status Pull(const BatchIdentity& batch, Purpose purpose, models::ParameterView* view) override {
    ++pulls;
    return link_.Pull(batch, purpose, view);
  }
  Status Push(const BatchIdentity& batch, double weight, const models::ParameterView& view,
              const models::Gradient& gradient) override {
    ++pushes;
    return link_.Push(batch, weight, view, gradient);
  }
  Status PushAll(std::span<const BatchPush> batches) override {
    ++pushes;
    return link_.PushAll(batches);
  }
  Status PushAndPull(std::span<const BatchPush> batches, const BatchIdentity& next,
                     models::ParameterView* next_view,
                     const std::function<void()>& meanwhile) override {
    ++both;
    return link_.PushAndPull(batches, next, next_view, meanwhile);
  }
  Status PushEnd(const BatchIdentity& batch) override { return link_.PushEnd(batch); }
  std::vector<int64_t> Versions() const override { return link_.Versions(); }
  Result<BatchIndex> AppliedBatches(Epoch epoch, ShardId shard) override {
    return link_.AppliedBatches(epoch, shard);
  }

  int64_t pulls = 0, pushes = 0, both = 0;

 private:
  ParameterLink& link_;
};

TEST(SynchronousExchange, LanesShareOneForEachStep) {
  plan::TrainPlan plan = SmallPlan(1, kRowsOfStep);
  plan.mutable_split()->set_kind(plan::Split::NONE);
  plan.mutable_strategy()->set_mode(plan::Strategy::SYNCHRONOUS);
  plan.mutable_strategy()->set_micro_batches(kLanes);
  const auto source = SmallSource(kLanes * kLaneRows);
  const catalog::DatasetSpec spec = source->Spec(kLaneRows);
  const auto network = models::Network::Make(plan.model()).value();
  const auto shard =
      ParameterShard::Make(plan.model(), *network, {.synchronous = true}, nullptr).value();
  DirectParameterLink direct(*shard, *network);
  CountedExchanges exchanges(direct);
  MasterOfARound master;
  const Worker::Job job{plan, *source, spec};
  const Status status = Worker::Make(job, master, &exchanges).value()->Run({});
  ASSERT_TRUE(status.ok()) << status.ToString();
  // One exchange carries the pushes of all lanes for a step, and the pulls of all for the next.
  EXPECT_EQ(exchanges.pulls, 1);
  EXPECT_EQ(exchanges.both, kSteps - 1);
  EXPECT_EQ(exchanges.pushes, 1);
}

}  // namespace
}  // namespace sluice::elastic
