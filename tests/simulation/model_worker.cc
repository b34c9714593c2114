#include "tests/simulation/model_worker.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "tests/simulation/simulation.h"

namespace sluice::elastic::simulation {
namespace {

constexpr double kBatchSeconds = 0.05;
constexpr double kReadSeconds = 0.2;
constexpr double kNothingSeconds = 0.2;
// About every third batch is followed by a report.
constexpr double kReports = 0.3;

}  // namespace

void ModelWorker::Start() {
  job_.world_.Tell(fmt::format("{} starts", name()));
  Beat();
  job_.options_.queue.lanes > 0 ? Lockstep() : Asynchronous();
}

void ModelWorker::Take(bool waiting, std::function<void(std::optional<Task>)> then) {
  const auto self = Self();
  Call(true, [self, waiting, held = held_, then]() -> Then {
    Simulation& job = self->job_;
    const Result<MasterLink::Answer> answer =
        job.master_->Take(self->incarnation_, waiting, held, job.MasterNow());
    if (!answer.ok()) {
      return [self, text = answer.status().message()] { self->Exit(text, false); };
    }
    if (answer->kind == MasterLink::Answer::Kind::kFinished) {
      return [self] { self->Exit("the job is over", true); };
    }
    if (answer->kind == MasterLink::Answer::Kind::kNothing) {
      return [then] { then(std::nullopt); };
    }
    if (answer->task.kind == Task::Kind::kTrain && !job.WriteEpoch(answer->task.epoch)) {
      return nullptr;
    }
    job.SawTask(answer->task, self->incarnation_);
    return [self, then, task = answer->task] {
      self->held_.push_back(task.id);
      then(task);
    };
  });
}

void ModelWorker::Report(Lease* lease, bool done, std::function<void(bool)> then) {
  const auto self = Self();
  TaskReport& report = lease->report;
  report.done = done;
  report.end_of_shard = done && lease->next >= EndOf(lease->batches);
  Call(true, [self, report, lease, then]() -> Then {
    const Result<LeaseStatus> lease_status =
        self->job_.master_->Report(self->incarnation_, report, self->job_.MasterNow());
    if (!lease_status.ok()) {
      return [self, text = lease_status.status().message()] { self->Exit(text, false); };
    }
    return [self, lease, then, lease_status = *lease_status] {
      TaskReport& said = lease->report;
      const bool counted = lease_status.last_batch >= said.next_batch;
      if (!lease_status.mine || counted) {
        lease->task.last_batch = std::min(lease->task.last_batch, lease_status.last_batch);
        if (!lease_status.mine || said.done) {
          std::erase(self->held_, said.task);
        }
        then(lease_status.mine);
        return;
      }
      const int64_t first = self->job_.RowsBefore(lease->task.shard, lease->task.first_batch);
      said.rows = self->job_.RowsBefore(lease->task.shard, lease_status.last_batch) - first;
      said.next_batch = lease_status.last_batch;
      lease->task.last_batch = lease_status.last_batch;
      lease->next = lease_status.last_batch;
      self->Report(lease, true, then);
    };
  });
}

void ModelWorker::AskVersions(std::vector<int64_t> versions,
                              std::function<void(std::vector<int64_t>)> then) {
  if (!job_.run_.early_stopping || versions.size() == job_.servers_->size()) {
    then(std::move(versions));
    return;
  }
  Call(false, [self = Self(), versions, then]() -> Then {
    const Result<int64_t> version = self->job_.servers_->Version(versions.size());
    if (!version.ok()) {
      return nullptr;  // it is stopped
    }
    return [self, versions, then, version = *version]() mutable {
      versions.push_back(version);
      self->AskVersions(versions, then);
    };
  });
}

void ModelWorker::Evaluate(const Task& task, const Then& then) {
  const auto self = Self();
  AskVersions({}, [self, task, then](const std::vector<int64_t>& versions) {
    self->EvaluateAt(versions, task, then);
  });
}

void ModelWorker::EvaluateAt(const std::vector<int64_t>& versions, const Task& task,
                             const Then& then) {
  const auto self = Self();
  Sleep(kReadSeconds * slowness_, [self, versions, task, then] {
    models::Metrics metrics(models::Task::kRegression, 1);
    const std::vector<double> predictions(task.shards.size(),
                                          static_cast<double>(self->job_.Judge(versions))),
        labels(task.shards.size(), 0.0);
    metrics.Add(predictions, labels, {});
    TaskReport report;
    report.task = task.id;
    report.done = true;
    report.rows = static_cast<int64_t>(task.shards.size());
    report.metrics = metrics.Serialize();
    report.versions = versions;
    for (ShardId shard : task.shards) {
      report.checksums.push_back(shard.index() + 1);
    }
    self->Call(true, [self, report, then]() -> Then {
      const Result<LeaseStatus> lease_status =
          self->job_.master_->Report(self->incarnation_, report, self->job_.MasterNow());
      if (!lease_status.ok()) {
        return [self] { self->Exit("given up by the master", false); };
      }
      return [self, report, then] {
        std::erase(self->held_, report.task);
        then();
      };
    });
  });
}

// The code fails on the poisoned shard, whichever worker runs it.
bool ModelWorker::Crashes(const Task& task) {
  if (task.shard != job_.poisoned_) {
    return false;
  }
  job_.world_.Tell(fmt::format("{} crashes on shard {}", name(), task.shard));
  Kill();
  job_.OnWorkerGone(name(), ExitClass::kApplication);
  return true;
}

ModelWorker::Lease ModelWorker::MakeLease(const Task& task) const {
  Lease lease;
  lease.task = task;
  lease.batches = job_.BatchesOf(task.shard);
  lease.next = task.first_batch;
  lease.report.task = task.id;
  lease.report.next_batch = task.first_batch;
  lease.report.batches = lease.batches;
  lease.report.shard_rows = job_.RowsOf(task.shard);
  lease.report.checksum = task.shard.index() + 1;
  return lease;
}

void ModelWorker::Count(Lease* lease, double loss) {
  const ShardId shard = lease->task.shard;
  const int64_t rows =
      job_.RowsBefore(shard, lease->next + 1) - job_.RowsBefore(shard, lease->next);
  lease->report.rows += rows;
  lease->report.loss += loss * static_cast<double>(rows);
  lease->report.weight += static_cast<double>(rows);
  lease->report.next_batch = ++lease->next;
}

void ModelWorker::Push(Lease* lease, size_t server, bool end, std::function<void(Status)> then) {
  if (server == job_.servers_->size()) {
    then(Status());
    return;
  }
  const Task& task = lease->task;
  BatchIdentity batch{task.epoch, task.shard, lease->next, task.attempt,
                      task.round, task.lane,  task.lanes,  task.range};
  batch.last = lease->next + 1 == EndOf(lease->batches);
  const auto self = Self();
  Call(false, [=]() -> Then {
    const Status status = self->job_.Push(server, batch, end);
    if (status.code() == Code::kNotFound) {
      return nullptr;  // it is stopped
    }
    if (!status.ok()) {
      return [then, status] { then(status); };
    }
    return [=] { self->Push(lease, server + 1, end, then); };
  });
}

void ModelWorker::Asynchronous() {
  const auto self = Self();
  if (ahead_.has_value()) {
    current_ = std::exchange(ahead_, std::nullopt);
    Sleep(0, [self] { self->Begin(0, kToTheEnd); });
    return;
  }
  current_.reset();
  Take(true, [self](std::optional<Task> task) {
    if (!task.has_value()) {
      self->Sleep(kNothingSeconds, [self] { self->Asynchronous(); });
    } else if (task->kind != Task::Kind::kTrain) {
      self->Evaluate(*task, [self] { self->Asynchronous(); });
    } else {
      self->current_ = self->MakeLease(*task);
      self->Sleep(kReadSeconds * self->slowness_, [self] {
        if (!self->Crashes(self->current_->task)) {
          self->Begin(0, kToTheEnd);
        }
      });
    }
  });
}

// Asks every server how far an earlier holder got, then whether there is a shard to prefetch.
void ModelWorker::Begin(size_t server, BatchIndex applied) {
  const auto self = Self();
  Lease& lease = *current_;
  if (Crashes(lease.task)) {
    return;
  }
  if (lease.task.attempt > Attempt::First() && lease.task.range == RangeId::First() &&
      server < job_.servers_->size()) {
    Call(false, [self, server, applied, task = lease.task]() -> Then {
      const Result<BatchIndex> there =
          self->job_.servers_->AppliedBatches(server, task.epoch, task.shard);
      if (!there.ok()) {
        return nullptr;  // it is stopped
      }
      return [=, there = *there] { self->Begin(server + 1, std::min(applied, there)); };
    });
    return;
  }
  if (lease.task.attempt > Attempt::First() && lease.task.range == RangeId::First()) {
    while (lease.next < std::min(applied, lease.end())) {
      Count(&lease, 0);
    }
    lease.report.rows_retried = lease.report.rows;
  }
  Take(false, [self](std::optional<Task> task) {
    if (task.has_value()) {
      self->ahead_ = self->MakeLease(*task);
    }
    self->TrainBatch();
  });
}

void ModelWorker::TrainBatch() {
  const auto self = Self();
  Lease* lease = &*current_;
  const auto next = [self](bool mine) {
    if (!mine || self->current_->report.done) {
      self->Asynchronous();
    } else {
      self->TrainBatch();
    }
  };
  if (lease->done()) {
    Report(lease, true, next);
    return;
  }
  Sleep(kBatchSeconds * slowness_, [self, lease, next] {
    self->Push(lease, 0, false, [self, lease, next](const Status& status) {
      if (status.code() == Code::kAborted) {
        self->Report(lease, lease->done(), [self, lease](bool) {
          std::erase(self->held_, lease->report.task);
          self->Asynchronous();
        });
        return;
      }
      if (!status.ok()) {
        self->job_.Break("a server refused a push: " + status.message());
        return;
      }
      self->Count(lease, 1);
      if (self->job_.world_.Chance(kReports)) {
        self->Report(lease, false, next);
      } else {
        self->TrainBatch();
      }
    });
  });
}

void ModelWorker::Lockstep() {
  const auto self = Self();
  if (lanes_.empty()) {
    Take(true, [self](std::optional<Task> task) {
      if (!task.has_value()) {
        self->Sleep(kNothingSeconds, [self] { self->Lockstep(); });
      } else if (task->kind != Task::Kind::kTrain) {
        self->Evaluate(*task, [self] { self->Lockstep(); });
      } else {
        self->lanes_.push_back(self->MakeLease(*task));
        self->FillLanes();
      }
    });
    return;
  }
  const auto first =
      std::min_element(lanes_.begin(), lanes_.end(), [](const auto& a, const auto& b) {
        return std::tie(a.task.epoch, a.task.round, a.next) <
               std::tie(b.task.epoch, b.task.round, b.next);
      });
  StepLane(static_cast<size_t>(first - lanes_.begin()), 0);
}

void ModelWorker::FillLanes() {
  const auto self = Self();
  Take(false, [self](std::optional<Task> task) {
    if (task.has_value()) {
      self->lanes_.push_back(self->MakeLease(*task));
      self->FillLanes();
    } else {
      self->Sleep(kReadSeconds * self->slowness_, [self] { self->Lockstep(); });
    }
  });
}

void ModelWorker::StepLane(size_t lane, size_t server) {
  const auto self = Self();
  Lease* lease = &lanes_[lane];
  const auto reported = [self, lane](bool mine) {
    if (!mine || self->lanes_[lane].report.done) {
      std::erase(self->held_, self->lanes_[lane].report.task);
      self->lanes_.erase(self->lanes_.begin() + static_cast<std::ptrdiff_t>(lane));
    }
    self->Lockstep();
  };
  const bool end = lease->done();
  if (!end && server < job_.servers_->size()) {
    const Task& task = lease->task;
    const BatchIdentity batch{task.epoch, task.shard, lease->next, task.attempt,
                              task.round, task.lane,  task.lanes,  RangeId::First()};
    Call(false, [self, lane, server, batch]() -> Then {
      const Status ready = self->job_.servers_->Ready(server, batch);
      if (ready.code() == Code::kNotFound) {
        return nullptr;  // it is stopped
      }
      if (ready.ok()) {
        return [self, lane, server] { self->StepLane(lane, server + 1); };
      }
      // Some lane of this step has no worker: it may be waiting for this one.
      return [self] {
        self->Take(true, [self](std::optional<Task> more) {
          if (more.has_value() && more->kind != Task::Kind::kTrain) {
            self->Evaluate(*more, [self] { self->Lockstep(); });
            return;
          }
          if (more.has_value()) {
            self->lanes_.push_back(self->MakeLease(*more));
          }
          self->Sleep(kBatchSeconds, [self] { self->Lockstep(); });
        });
      };
    });
    return;
  }
  Sleep(kBatchSeconds * slowness_, [self, lease, end, reported] {
    self->Push(lease, 0, end, [self, lease, end, reported](const Status& status) {
      if (!status.ok()) {
        self->job_.Break("a server refused a lane: " + status.message());
      } else if (end) {
        self->Report(lease, true, reported);
      } else {
        self->Count(lease, 1);
        if (self->job_.world_.Chance(kReports)) {
          self->Report(lease, false, reported);
        } else {
          self->Lockstep();
        }
      }
    });
  });
}

}  // namespace sluice::elastic::simulation
