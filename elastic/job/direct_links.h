#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/profile.h"
#include "elastic/master/master_host.h"
#include "elastic/rpc/links.h"

namespace sluice::elastic {

// The master in the same process and thread: direct calls, whose consequences are carried out at
// once.
class DirectMasterLink final : public MasterLink {
 public:
  DirectMasterLink(MasterHost& host, Incarnation worker) : host_(host), worker_(worker) {}
  Result<Answer> Take(bool waiting) override;
  Result<LeaseStatus> Report(const TaskReport& report) override;
  // The job's only worker is also the slowest.
  Result<bool> MayBegin(int64_t) override { return true; }
  void Abandon(TaskId task) override { held_.Drop(task); }
  Status Fail(const Task& task, const Status& cause) override;
  void Leave() override;

 private:
  MasterHost& host_;
  const Incarnation worker_;
  HeldTasks held_;
};

// The parameter shard in the same process: no copies of dense tensors, no messages. With one worker
// the live values may be read in place, because nothing writes between its pull and its push.
class DirectParameterLink final : public ParameterLink {
 public:
  // `clock`: of the worker's thread, which applies its gradients itself; null: none.
  DirectParameterLink(ParameterShard& shard, const models::Network& network,
                      PhaseClock* clock = nullptr);
  Status Pull(const BatchIdentity& batch, Purpose purpose, models::ParameterView* view) override;
  Status Push(const BatchIdentity& batch, double weight, const models::ParameterView& view,
              const models::Gradient& gradient) override;
  Status PushEnd(const BatchIdentity& batch) override;
  std::vector<int64_t> Versions() const override { return {version_}; }
  Result<BatchIndex> AppliedBatches(Epoch epoch, ShardId shard) override;

 private:
  ParameterShard& shard_;
  PhaseClock* const clock_;
  std::vector<uint32_t> dimensions_;
  const std::vector<const float*> dense_;
  const uint32_t partition_ = 0;  // the only one
  int64_t version_ = 0;
  PullRequest pull_;
  PullTarget target_;
  PushRequest push_;
};

}  // namespace sluice::elastic
