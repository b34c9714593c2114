#include <algorithm>
#include <utility>

#include "elastic/parameters/lane_tree.h"
#include "elastic/worker/all_reduce_group.h"
#include "elastic/worker/replica_state.h"
#include "elastic/worker/round_ahead.h"
#include "elastic/worker/training_loop_internal.h"

// The workers hold the parameters themselves: they regroup at the master, and train a round
// together.
namespace sluice::elastic {
namespace {

size_t DenseSize(const models::Network& network) {
  size_t size = 0;
  for (const models::DenseTensor& tensor : network.dense()) {
    size += tensor.size();
  }
  return size;
}

std::vector<uint32_t> Dimensions(const models::Network& network) {
  std::vector<uint32_t> dimensions;
  for (const models::EmbeddingTable& table : network.tables()) {
    dimensions.push_back(table.dimension);
  }
  return dimensions;
}

class AllReduceLoop final : public TrainingLoop {
 public:
  AllReduceLoop(WorkerTasks& tasks, const Worker::Replica& replica,
                std::unique_ptr<AllReduceGroup> group)
      : tasks_(tasks),
        network_(tasks.network()),
        link_(replica.link),
        dense_size_(DenseSize(network_)),
        dimensions_(Dimensions(network_)),
        group_(std::move(group)),
        replica_(replica, network_),
        ahead_(tasks) {}
  Status Advance() override;

 private:
  Status Enter(const WorldAnswer& answer);
  Status ShareState(const Rendezvous::World& formed);
  Status EvaluateAll();
  Status LoadLanes(const std::vector<Task>& lanes, uint32_t begin, uint32_t end);
  Result<std::unique_ptr<Lease>> LoadLane(const Task& task);
  Status TrainRound(const std::vector<Task>& lanes);
  Status StepLanes(uint32_t lanes);
  Status AddUp(uint32_t lanes, bool regroup);
  void PrepareNextStep();
  Result<LaneNote> StepLane(size_t place, std::optional<FlatGradient>* gradient);
  FlatGradient Flatten(double weight, const models::ParameterView& view);
  Status CloseStep(const Task& first);

  WorkerTasks& tasks_;
  models::Network& network_;
  WorldLink& link_;
  const size_t dense_size_;
  const std::vector<uint32_t> dimensions_;  // of the tables
  const std::unique_ptr<AllReduceGroup> group_;
  ReplicaState replica_;

  // A lane's batch, made before its step.
  struct Batch {
    TaskId task = kNoTask;  // kNoTask: none
    BatchIndex index;
    models::FeatureBatch rows;
    models::ParameterView view;
  };
  void MakeBatch(const Lease& lease, BatchIndex index, Batch* batch);

  RoundAhead ahead_;
  std::vector<std::unique_ptr<Lease>> lanes_;
  std::vector<Batch> batches_;  // by place in lanes_
  AllReduce::Sums sums_;
  std::vector<LaneNote> notes_;
  StepSum sum_;
  std::vector<std::vector<float>> spare_;  // gradient buffers for reuse
  models::Gradient gradient_;
};

Status AllReduceLoop::Advance() {
  WorldArrival arrival;
  group_->Describe(&arrival.at);
  replica_.Describe(&arrival);
  ASSIGN_OR_RETURN(const WorldAnswer answer, link_.Regroup(arrival));
  if (answer.work == WorldAnswer::Work::kFinished) {
    tasks_.Finish();
    return Status();
  }
  if (answer.world.id == kNoWorld) {
    return Status();
  }
  if (answer.world.id != group_->world()) {
    RETURN_IF_ERROR(replica_.BelongTo(answer.world.beginning));
  }
  RETURN_IF_ERROR(Enter(answer));
  if (!group_->connected()) {
    return Status();
  }
  if (answer.best >= 0) {
    RETURN_IF_ERROR(replica_.Keep(answer.best));
  }
  switch (answer.work) {
    case WorldAnswer::Work::kTrain:
      return TrainRound(answer.lanes);
    case WorldAnswer::Work::kEvaluate:
      ahead_.Release();
      return EvaluateAll();
    case WorldAnswer::Work::kExport: {
      ASSIGN_OR_RETURN(const models::NetworkWeights weights, replica_.Export());
      return link_.Deliver(weights);
    }
    default:
      return Status();
  }
}

Status AllReduceLoop::Enter(const WorldAnswer& answer) {
  const PhaseScope exchanging(tasks_.clock(), Phase::kExchange);
  return group_->Enter(answer.world, answer.rank, tasks_.stop(),
                       [&] { return ShareState(answer.world); });
}

// A member that has closed the newest step sends the parameters to those that have not.
Status AllReduceLoop::ShareState(const Rendezvous::World& formed) {
  if (formed.closed == Rendezvous::kNoState) {
    return replica_.Begin();
  }
  std::vector<bool> lacks;
  for (const Rendezvous::Member& member : formed.members) {
    lacks.push_back(member.closed != formed.closed);
  }
  ASSIGN_OR_RETURN(AllReduceGroup::Pieces state,
                   group_->Broadcast(formed.source, lacks, [this] { return replica_.Save(); }));
  return lacks[group_->rank().index()] ? replica_.Load(std::move(state)) : Status();
}

Status AllReduceLoop::EvaluateAll() {
  for (;;) {
    // Nothing left: other workers may have the last tasks, so this one waits for them at the
    // regroup.
    ASSIGN_OR_RETURN(const std::optional<Task> task, tasks_.Ask(false));
    if (!task.has_value()) {
      return Status();
    }
    RETURN_IF_ERROR(tasks_.Judge(*task));
  }
}

// This worker's share of the round's lanes; reads those that are not loaded yet.
Status AllReduceLoop::LoadLanes(const std::vector<Task>& lanes, uint32_t begin, uint32_t end) {
  std::vector<std::unique_ptr<Lease>> held = std::exchange(lanes_, {});
  for (uint32_t lane = begin; lane < end; ++lane) {
    const auto found = std::find_if(held.begin(), held.end(), [&](const auto& lease) {
      return lease != nullptr && lease->task.id == lanes[lane].id;
    });
    if (found != held.end()) {
      lanes_.push_back(std::move(*found));
    } else {
      ASSIGN_OR_RETURN(std::unique_ptr<Lease> lease, LoadLane(lanes[lane]));
      lanes_.push_back(std::move(lease));
    }
    lanes_.back()->next = replica_.position.step;
  }
  batches_.resize(lanes_.size());
  ahead_.Expect(lanes_, group_->rank(), group_->size());
  return Status();
}

// The lanes are held by all members together, so none reports individually while it reads.
Result<std::unique_ptr<Lease>> AllReduceLoop::LoadLane(const Task& task) {
  ASSIGN_OR_RETURN(std::unique_ptr<Lease> lease, ahead_.Take(task));
  if (lease != nullptr) {
    return lease;
  }
  ahead_.Release();
  ASSIGN_OR_RETURN(lease, tasks_.Start(task));
  for (bool complete = false; !complete;) {
    ASSIGN_OR_RETURN(complete, tasks_.Read(lease.get(), WorkerTasks::kLoadRows));
  }
  return lease;
}

Status AllReduceLoop::TrainRound(const std::vector<Task>& lanes) {
  if (lanes.empty()) {
    return Status();
  }
  RoundPosition& position = replica_.position;
  if (position.epoch != lanes[0].epoch || position.round != lanes[0].round ||
      position.lanes.size() != lanes.size()) {
    position = {lanes[0].epoch, lanes[0].round, BatchIndex::First(),
                std::vector<TaskReport>(lanes.size())};
  }
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    position.lanes[lane].task = lanes[lane].id;
  }
  const auto count = static_cast<uint32_t>(lanes.size());
  const auto [begin, end] = LanesOf(count, group_->rank(), group_->size());
  RETURN_IF_ERROR(replica_.ReportWritten());
  RETURN_IF_ERROR(LoadLanes(lanes, begin, end));
  bool regroup = false;  // rank 0 knows that a worker is waiting, and tells the others
  do {
    RETURN_IF_ERROR(tasks_.Stopped());
    RETURN_IF_ERROR(StepLanes(count));
    const Status added = AddUp(count, regroup);
    for (AllReduce::Sums::Node& node : sums_.nodes()) {
      if (node.sum.has_value()) {
        spare_.push_back(std::move(node.sum->dense));
      }
    }
    if (!added.ok()) {
      return group_->Leave(added);
    }
    if (group_->rank() == Rank::First() && tasks_.TimeToReport()) {
      ASSIGN_OR_RETURN(const StepAnswer answer,
                       link_.ReportStep(group_->world(), replica_.closed(), position));
      regroup = answer.regroup;
      if (!answer.draft.empty()) {
        RETURN_IF_ERROR(replica_.BeginWriting(answer.draft));
      }
      RETURN_IF_ERROR(replica_.ReportWritten());
    }
    RETURN_IF_ERROR(CloseStep(lanes[0]));
  } while (!position.Over() && !sum_.reconvene);
  return Status();
}

Status AllReduceLoop::AddUp(uint32_t lanes, bool regroup) {
  const PhaseScope exchanging(tasks_.clock(), Phase::kExchange);
  return group_->all_reduce().Run(replica_.closed(), lanes, &sums_.nodes(), notes_, regroup, &sum_,
                                  [this] { PrepareNextStep(); });
}

// While the others' parts are on their way.
void AllReduceLoop::PrepareNextStep() {
  const PhaseScope making(tasks_.clock(), Phase::kBatches);
  size_t trained = 0;
  for (size_t place = 0; place < lanes_.size(); ++place) {
    const Lease& lease = *lanes_[place];
    trained += lease.done() ? 0 : batches_[place].rows.rows;
    if (lease.next + 1 < lease.end()) {
      MakeBatch(lease, lease.next + 1, &batches_[place]);
    }
  }
  ahead_.Read(trained);
}

void AllReduceLoop::MakeBatch(const Lease& lease, BatchIndex index, Batch* batch) {
  lease.Gather(index, &batch->rows);
  network_.CollectIds(batch->rows, &batch->view);
  batch->task = lease.task.id;
  batch->index = index;
}

// The gradients of this worker's lanes in the open step, added as far as the tree allows.
Status AllReduceLoop::StepLanes(uint32_t lanes) {
  sums_.Start(lanes);
  notes_.clear();
  const auto merge = [this](FlatGradient* left, FlatGradient& right) {
    Merge(left, right, dimensions_);
    spare_.push_back(std::move(right.dense));
  };
  for (size_t place = 0; place < lanes_.size(); ++place) {
    std::optional<FlatGradient> gradient;
    ASSIGN_OR_RETURN(const LaneNote note, StepLane(place, &gradient));
    notes_.push_back(note);
    sums_.Add(note.lane, std::move(gradient), merge);
  }
  return Status();
}

Result<LaneNote> AllReduceLoop::StepLane(size_t place, std::optional<FlatGradient>* gradient) {
  Lease* const lease = lanes_[place].get();
  LaneNote note;
  note.lane = lease->task.lane;
  note.rows_read = std::exchange(lease->report.rows_read, 0);
  note.checksum = lease->report.checksum;
  note.ends = lease->next + 1 >= lease->end() ? 1 : 0;
  note.end_of_shard = note.ends != 0 && EndOf(lease->batches) <= lease->task.last_batch ? 1 : 0;
  if (lease->done()) {
    return note;
  }
  Batch& batch = batches_[place];
  if (batch.task != lease->task.id || batch.index != lease->next) {
    MakeBatch(*lease, lease->next, &batch);
  }
  RETURN_IF_ERROR(
      tasks_.parameters().Pull(lease->Identity(lease->next), Purpose::kLatest, &batch.view));
  const PhaseScope learning(tasks_.clock(), Phase::kLearning);
  const models::LossSum loss = network_.Step(batch.rows, batch.view, lease->StepSeed(), &gradient_);
  note.gradient = 1;
  note.weight = loss.weight;
  note.loss = loss.loss;
  note.rows = static_cast<int64_t>(batch.rows.rows);
  *gradient = Flatten(loss.weight, batch.view);
  return note;
}

// The batch's gradient multiplied by the weight of its rows.
FlatGradient AllReduceLoop::Flatten(double weight, const models::ParameterView& view) {
  const auto factor = static_cast<float>(weight);
  FlatGradient flat;
  if (!spare_.empty()) {
    flat.dense = std::move(spare_.back());
    spare_.pop_back();
  }
  flat.dense.resize(dense_size_);
  float* to = flat.dense.data();
  for (const std::vector<float>& tensor : gradient_.dense) {
    for (float value : tensor) {
      *to++ = value * factor;
    }
  }
  for (size_t t = 0; t < dimensions_.size(); ++t) {
    flat.tables.push_back({view.tables[t].ids, gradient_.tables[t]});
    for (float& value : flat.tables.back().values) {
      value *= factor;
    }
  }
  return flat;
}

// The sum is complete: updates the parameters, and the round's page of the ledger.
Status AllReduceLoop::CloseStep(const Task& first) {
  const PhaseScope applying(tasks_.clock(), Phase::kOptimizer);
  const Status applied = replica_.Apply(sum_, first);
  if (!applied.ok()) {
    return tasks_.Fail(first, applied);
  }
  RoundPosition& position = replica_.position;
  for (const LaneNote& note : sum_.lanes) {
    const BatchIdentity batch{first.epoch, first.shard, position.step};
    if (const Status number = CheckLoss(note.loss, batch); !number.ok()) {
      return tasks_.Fail(first, number);
    }
    TaskReport& report = position.lanes[note.lane];
    report.rows += note.rows;
    report.rows_read += note.rows_read;
    report.checksum = note.checksum;
    report.loss += CountedSum(note.loss);
    report.weight += note.gradient != 0 ? CountedSum(note.weight) : 0;
    report.next_batch = note.gradient != 0 ? position.step + 1 : report.next_batch;
    report.done = note.ends != 0;
    report.end_of_shard = note.end_of_shard != 0;
  }
  ++position.step;
  for (const std::unique_ptr<Lease>& lease : lanes_) {
    lease->next = position.step;
  }
  return Status();
}

}  // namespace

Result<std::unique_ptr<TrainingLoop>> MakeAllReduceLoop(WorkerTasks& tasks,
                                                        const Worker::Replica& replica) {
  ASSIGN_OR_RETURN(std::unique_ptr<AllReduceGroup> group,
                   AllReduceGroup::Make({replica.listen_host, replica.key,
                                         DenseSize(tasks.network()), Dimensions(tasks.network())}));
  return std::unique_ptr<TrainingLoop>(
      std::make_unique<AllReduceLoop>(tasks, replica, std::move(group)));
}

}  // namespace sluice::elastic
