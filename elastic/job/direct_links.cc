#include "elastic/job/direct_links.h"

namespace sluice::elastic {

Result<MasterLink::Answer> DirectMasterLink::Take(bool waiting) {
  // The job's only worker never waits, since it could only wait for itself.
  Result<Answer> answer = host_.Take(worker_, waiting, held_.ids(), 0);
  held_.Took(answer);
  host_.Pump();
  return answer;
}

Result<LeaseStatus> DirectMasterLink::Report(const TaskReport& report) {
  Result<LeaseStatus> lease_status = host_.With(
      [&](Master& master, TimePoint now) { return master.Report(worker_, report, now); });
  held_.Reported(report, lease_status);
  host_.Pump();
  return lease_status;
}

Status DirectMasterLink::Fail(const Task& task, const Status& cause) {
  Status status = host_.With(
      [&](Master& master, TimePoint now) { return master.Fail(worker_, task.id, cause, now); });
  held_.Drop(task.id);
  host_.Pump();
  return status;
}

void DirectMasterLink::Leave() {
  // An error: given up already, which has the same effect.
  static_cast<void>(
      host_.With([&](Master& master, TimePoint now) { return master.Leave(worker_, now); }));
  host_.Pump();
}

DirectParameterLink::DirectParameterLink(ParameterShard& shard, const models::Network& network,
                                         PhaseClock* clock)
    : shard_(shard), clock_(clock), dense_(shard.LiveDense()) {
  for (const models::EmbeddingTable& table : network.tables()) {
    dimensions_.push_back(table.dimension);
  }
  pull_.tables.resize(dimensions_.size());
  target_.tables.resize(dimensions_.size());
  push_.tables.resize(dimensions_.size());
  pull_.partitions = std::span(&partition_, 1);
  push_.partitions = std::span(&partition_, 1);
  push_.versions = std::span(&version_, 1);
  target_.versions = std::span(&version_, 1);
}

Status DirectParameterLink::Pull(const BatchIdentity& batch, Purpose purpose,
                                 models::ParameterView* view) {
  view->dense = dense_;
  pull_.batch = batch;
  pull_.purpose = purpose;
  for (size_t t = 0; t < dimensions_.size(); ++t) {
    models::RowSet& rows = view->tables[t];
    rows.values.resize(rows.ids.size() * dimensions_[t]);
    pull_.tables[t] = rows.ids;
    target_.tables[t] = rows.values.data();
  }
  return shard_.Pull(pull_, target_, 0);
}

Status DirectParameterLink::Push(const BatchIdentity& batch, double weight,
                                 const models::ParameterView& view,
                                 const models::Gradient& gradient) {
  const PhaseScope applying(clock_, Phase::kOptimizer);
  push_.batch = batch;
  push_.weight = weight;
  push_.end = false;
  push_.dense.assign(gradient.dense.begin(), gradient.dense.end());
  for (size_t t = 0; t < dimensions_.size(); ++t) {
    push_.tables[t] = {view.tables[t].ids, gradient.tables[t]};
  }
  return shard_.Push(push_);
}

Status DirectParameterLink::PushEnd(const BatchIdentity& batch) {
  push_.batch = batch;
  push_.end = true;
  return shard_.Push(push_);
}

Result<BatchIndex> DirectParameterLink::AppliedBatches(Epoch epoch, ShardId shard) {
  return shard_.AppliedBatches(kNoMapVersion, epoch, shard);
}

}  // namespace sluice::elastic
