#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elastic/master/master.h"
#include "tests/elastic/queue/queue_steps.h"

namespace sluice::elastic {

class MasterTest : public ::testing::Test {
 protected:
  MasterTest() {
    options_.queue.shards = 4;
    options_.queue.epochs = 2;
    options_.queue.shuffle = false;
    options_.job_name = "job7";
    options_.workers = 2;
  }
  // A started master and the workers that it requested.
  void Start() {
    master_ = std::make_unique<Master>(options_, At(0));
    master_->Start(At(0));
    Collect();
  }
  void Collect() {
    for (const Master::Action& action : master_->outbox().TakeActions()) {
      (action.kind == Master::Action::Kind::kStartWorker  ? started_
       : action.kind == Master::Action::Kind::kStopWorker ? stopped_
                                                          : kept_)
          .push_back(action);
    }
    for (const Master::Event& event : master_->outbox().TakeEvents()) {
      events_.push_back(event);
    }
  }
  int Count(const std::string& kind) const {
    int count = 0;
    for (const Master::Event& event : events_) {
      count += event.kind == kind ? 1 : 0;
    }
    return count;
  }
  std::optional<Task> Take(Incarnation worker, double now = 1,
                           const std::vector<TaskId>& held = {}) {
    const Result<MasterLink::Answer> answer = master_->Take(worker, true, held, At(now));
    if (!answer.ok() || answer->kind != MasterLink::Answer::Kind::kTask) {
      return std::nullopt;
    }
    return answer->task;
  }
  // Four batches of 25 rows.
  static TaskReport Done(const Task& task) {
    TaskReport report;
    report.task = task.id;
    report.done = report.end_of_shard = true;
    report.next_batch = BatchIndex(4);
    report.rows = 100 - 25 * (task.first_batch - BatchIndex::First());
    report.loss = 50;
    report.weight = 100;
    return report;
  }
  void FinishEpoch(Incarnation worker) {
    while (const std::optional<Task> task = Take(worker)) {
      if (task->kind == Task::Kind::kEvaluate) {
        return;
      }
      ASSERT_TRUE(master_->Report(worker, Done(*task), At(1)).ok());
      if (master_->Describe(At(1)).epoch != task->epoch) {
        return;
      }
    }
  }

  Incarnation Worker(size_t i) const { return started_[i].incarnation; }
  // All-reduce: a worker comes to regroup.
  WorldAnswer Regroup(size_t i, int64_t closed, const RoundPosition& position,
                      Generation generation, WorldId world) {
    WorldArrival arrival;
    arrival.at.address = "unix:" + std::to_string(i);
    arrival.at.closed = closed;
    arrival.at.generation = generation;
    arrival.at.world = world;
    arrival.position = position;
    return *master_->Regroup(Worker(i), arrival, At(2));
  }
  // The position of both lanes after this many batches of 25 rows.
  static RoundPosition After(const std::vector<Task>& lanes, int64_t step, bool over) {
    RoundPosition position{lanes[0].epoch, lanes[0].round, BatchIndex(step), {}};
    for (const Task& lane : lanes) {
      TaskReport report;
      report.task = lane.id;
      report.next_batch = BatchIndex(step);
      report.rows = 25 * step;
      report.done = report.end_of_shard = over;
      position.lanes.push_back(report);
    }
    return position;
  }

  Master::Options options_;
  std::unique_ptr<Master> master_;
  std::vector<Master::Action> started_, stopped_, kept_;
  std::vector<Master::Event> events_;
};

}  // namespace sluice::elastic
