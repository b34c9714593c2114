#include "tests/simulation/simulation.h"

#include <fmt/core.h>

#include <chrono>
#include <utility>

#include "base/check.h"

// The processes of the job: its masters one after another, and those that they start.
namespace sluice::elastic::simulation {
namespace {

constexpr double kKeepSeconds = 0.05, kSlowKeepSeconds = 2;  // on average
// For a slow journal and a slow fleet.
constexpr double kLongestWrite = 6, kLongestCall = 3;
constexpr double kNoRoom = 0.1;

}  // namespace

void Simulation::SawTask(const Task& task, Incarnation owner) {
  if (task.kind != Task::Kind::kTrain) {
    world_.Tell(fmt::format("worker {} evaluates {} shards as task {}", owner, task.shards.size(),
                            task.id));
    return;
  }
  world_.Tell(fmt::format("worker {} has task {}: epoch {} shard {} [{}, {}) attempt {}", owner,
                          task.id, task.epoch, task.shard, task.first_batch,
                          task.last_batch == kToTheEnd ? BatchIndex(-1) : task.last_batch,
                          task.attempt));
  const QueueState& state = master_->queue().state();
  const auto lease = state.leases().find(task.id);
  const bool race =
      lease != state.leases().end() && state.ranges().at(lease->second.key).holders.size() > 1;
  outcome_.shared += race || task.range != RangeId::First() ? 1 : 0;
  if (!owned_.insert({task.epoch, task.shard, task.range, task.attempt}).second && !race) {
    Break(fmt::format("I3: shard {} from batch {} was handed out twice as attempt {}", task.shard,
                      task.range, task.attempt));
  }
}

TimePoint Simulation::MasterNow() const {
  return std::chrono::duration_cast<TimePoint>(
      std::chrono::duration<double>(world_.now() + master_clock_));
}

void Simulation::StartMaster() {
  ++term_;
  writing_ = false;
  fleet_free_at_ = 0;
  master_clock_ = world_.Uniform(0, 1e6);
  for (size_t server = 0; server < servers_->size(); ++server) {
    servers_->Resume(server);  // its predecessor may have died in the middle of a checkpoint
  }
  Result<std::unique_ptr<Master>> master = MakeMaster(disk_.ReadJournal());
  if (!master.ok()) {
    Break("a master cannot go on: " + master.status().ToString());
    return;
  }
  master_ = std::move(*master);
  epoch_written_ = master_->queue().epoch();
  world_.Tell(fmt::format("master of term {} starts", term_));
  Pump();
}

Result<std::unique_ptr<Master>> Simulation::MakeMaster(const std::vector<std::string>& journal) {
  if (!journal.empty()) {
    std::vector<std::string> alive;
    for (const auto& [name, worker] : workers_) {
      alive.push_back(name);
    }
    ++outcome_.takeovers;
    return Master::TakeOver(options_, term_, journal, alive, MasterNow());
  }
  std::unique_ptr<Master> master;
  if (restore_.has_value()) {
    ASSIGN_OR_RETURN(master, Master::Resume(options_, restore_->queue, MasterNow()));
  } else {
    master = std::make_unique<Master>(options_, MasterNow());
  }
  master->Start(MasterNow());
  return master;
}

void Simulation::CrashMaster() {
  if (master_ == nullptr) {
    return;
  }
  world_.Tell("the master dies");
  master_.reset();
  world_.In(world_.Uniform(0.2, 3), [this, life = life_] {
    if (life == life_) {
      StartMaster();
    }
  });
}

void Simulation::Store(const std::string& entry) {
  const Status stored = disk_.Append(entry);
  if (master_ == nullptr) {
    return;  // it has died in the meantime
  }
  if (!stored.ok()) {
    Outage();  // the job fails; its user makes room, and runs the statement again
  } else if (std::exchange(tear_, false)) {
    ++outcome_.torn;
    disk_.Tear();
    CrashMaster();
  }
}

bool Simulation::WriteEpoch(Epoch epoch) {
  if (epoch > epoch_written_ && !writing_) {
    Write({});
  }
  return master_ != nullptr && epoch <= epoch_written_;
}

void Simulation::Pump() {
  for (const Master::Event& event : master_->outbox().TakeEvents()) {
    world_.Tell(fmt::format("{}: {}", event.kind, event.detail));
    outcome_.skipped += event.kind == "shard_skipped" ? 1 : 0;
    if (event.kind == "evaluation_done") {
      OnJudged();
    }
  }
  if (!writing_) {
    Write(master_->outbox().TakeActions());
  }
}

void Simulation::Write(std::vector<Master::Action> actions) {
  const std::string entry = master_->TakeJournal().value();
  const Epoch epoch = master_->queue().epoch();
  const auto written = [this, term = term_, epoch, actions = std::move(actions)] {
    if (master_ == nullptr || term != term_) {
      return;
    }
    writing_ = false;
    epoch_written_ = std::max(epoch_written_, epoch);
    for (const Master::Action& action : actions) {
      Act(action);
    }
  };
  if (entry.empty() || world_.now() >= slow_until_) {
    if (!entry.empty()) {
      Store(entry);
    }
    written();
    return;
  }
  ++outcome_.slow_writes;
  writing_ = true;
  const double answered = world_.now() + world_.Uniform(0, kLongestWrite);
  // It is on the disk some time before the master learns so, even if the master has died by then:
  // until there is another master, whose term excludes it.
  world_.At(world_.Uniform(world_.now(), answered), [this, term = term_, life = life_, entry] {
    if (term == term_ && life == life_) {
      Store(entry);
    }
  });
  world_.At(answered, written);
}

void Simulation::CallFleet(const Master::Action& action) {
  if (action.kind == Master::Action::Kind::kStartWorker) {
    if (run_.delays && world_.Chance(kNoRoom)) {
      ++outcome_.refused_starts;
      master_->OnNotStarted(action.name, "there is no room", MasterNow());
      return;
    }
    StartWorker(action.name, action.incarnation);
    return;
  }
  world_.In(0.1, [this, name = action.name] {
    const auto found = workers_.find(name);
    if (found != workers_.end()) {
      found->second->Kill();
      OnWorkerGone(name, ExitClass::kPreempted);
    }
  });
}

void Simulation::Act(const Master::Action& action) {
  switch (action.kind) {
    case Master::Action::Kind::kStartWorker:
    case Master::Action::Kind::kDrainWorker:  // it is gone at once, which is harder to handle
    case Master::Action::Kind::kStopWorker:
      if (world_.now() >= std::max(slow_until_, fleet_free_at_)) {
        CallFleet(action);
        return;
      }
      // One call after another; waiting calls are lost with their master.
      ++outcome_.slow_calls;
      fleet_free_at_ = std::max(fleet_free_at_, world_.now()) + world_.Uniform(0, kLongestCall);
      world_.At(fleet_free_at_, [this, term = term_, action] {
        if (master_ != nullptr && term == term_) {
          CallFleet(action);
        }
      });
      return;
    case Master::Action::Kind::kKeepWeights:
      KeepWeights(term_, action.keep, {});
      return;
    case Master::Action::Kind::kCheckpoint:
      world_.Tell("a checkpoint begins");
      std::make_shared<ModelCut>(*this)->Go();
      return;
    case Master::Action::Kind::kPassDone:
    case Master::Action::Kind::kCommitCheckpoint:
      SLUICE_CHECK(false, "there are servers, and epochs");
  }
}

void Simulation::KeepWeights(Term term, const KeepOrder& order, std::vector<std::string> digests) {
  const double mean = world_.now() < slow_until_ ? kSlowKeepSeconds : kKeepSeconds;
  world_.In(world_.Exponential(mean), [this, term, order, digests] {
    if (master_ == nullptr || term != term_) {
      return;
    }
    std::vector<std::string> kept = digests;
    KeepOrder one{order.number, {}};
    if (!order.versions.empty()) {
      one.versions = {order.versions[kept.size()]};
    }
    const Result<std::string> digest = servers_->KeepBest(kept.size(), one);
    if (digest.ok()) {
      kept.push_back(*digest);
    } else if (digest.status().code() != Code::kNotFound) {  // otherwise it is stopped
      Break("I7: the weights cannot be kept: " + digest.status().message());
    }
    if (kept.size() < servers_->size()) {
      KeepWeights(term, order, kept);
    } else {
      ++outcome_.kept;
      master_->OnWeightsKept(DigestOf(kept), MasterNow());
    }
  });
}

void Simulation::EndCheckpoint(const Status& written, ModelDisk::Checkpoint checkpoint) {
  world_.Tell("the checkpoint is over: " + written.ToString());
  if (written.ok()) {
    ++outcome_.checkpoints;
    disk_.Keep(std::move(checkpoint));
  } else {
    ++outcome_.failed_checkpoints;
  }
  master_->OnCheckpoint(MasterNow());
}

void Simulation::StartWorker(const std::string& name, Incarnation incarnation) {
  const double slowness = world_.Chance(0.2) ? 10 : world_.Uniform(0.5, 1.5);
  auto worker = std::make_shared<ModelWorker>(*this, name, incarnation, slowness);
  workers_[name] = worker;
  world_.In(world_.Uniform(0.1, 1), [worker] {
    if (worker->alive()) {
      worker->Start();
    }
  });
}

void Simulation::OnWorkerGone(const std::string& name, ExitClass how) {
  workers_.erase(name);
  world_.In(world_.Uniform(0.01, 0.3), [this, name, how, life = life_] {
    if (master_ != nullptr && life == life_) {
      master_->OnExit(name, how, "exit", MasterNow());
    }
  });
}

}  // namespace sluice::elastic::simulation
