#include "tests/simulation/simulation.h"

#include <fmt/core.h>

#include <algorithm>

// The faults, and when they happen.
namespace sluice::elastic::simulation {

ModelWorker* Simulation::RandomWorker() {
  if (workers_.empty()) {
    return nullptr;
  }
  auto worker = workers_.begin();
  std::advance(worker, world_.Below(static_cast<int64_t>(workers_.size())));
  return worker->second.get();
}

void Simulation::ScheduleFaults() {
  const int64_t faults = world_.Below(12);
  const double within = world_.Uniform(1, 8);
  for (int64_t i = 0; i < faults; ++i) {
    world_.At(world_.Uniform(0.2, within), [this] { Fault(); });
  }
}

void Simulation::Fault() {
  const int64_t what = world_.Below(6);
  if (what >= 4) {
    if (what == 4) {
      CrashMaster();
    } else {
      tear_ = true;
    }
    return;
  }
  ModelWorker* worker = RandomWorker();
  if (worker == nullptr) {
    return;
  }
  const std::string name = worker->name();
  if (what <= 1) {
    world_.Tell(fmt::format("{} is killed", name));
    ++outcome_.kills;
    worker->Kill();
    OnWorkerGone(name, ExitClass::kPreempted);
  } else if (what == 2) {
    world_.Tell(fmt::format("{} is stopped for a while", name));
    ++outcome_.pauses;
    worker->Pause(world_.now() + world_.Uniform(0.1, 8));
  } else {
    world_.Tell(fmt::format("{} is cut off", name));
    ++outcome_.cuts;
    worker->CutOff(world_.now() + world_.Uniform(0.5, 60));
  }
}

void Simulation::ScheduleLostServers() {
  const double within = world_.Uniform(1, 12);
  for (int64_t i = world_.Below(4); i > 0; --i) {
    world_.At(world_.Uniform(0.2, within), [this] { LoseServer(); });
  }
}

void Simulation::LoseServer() {
  const auto server = static_cast<size_t>(world_.Below(static_cast<int64_t>(servers_->size())));
  const bool unshipped = world_.Chance(0.5);
  if (!servers_->Lose(server, unshipped)) {
    return;
  }
  world_.Tell(fmt::format("server {} is lost{}", server, unshipped ? " in its next call" : ""));
  ++outcome_.lost_servers;
  const double until = world_.now() + world_.Uniform(0.02, 0.5);
  const auto now_and_then = [this, life = life_](double time, const std::function<void()>& what) {
    world_.At(time, [this, life, what] {
      if (life == life_) {
        what();
      }
    });
  };
  now_and_then(until, [this, server] { servers_->Return(server); });
  now_and_then(until + world_.Uniform(0.1, 2), [this, server] { servers_->Refill(server); });
}

void Simulation::ScheduleDelays() {
  const double within = world_.Uniform(1, 12);
  for (int64_t i = 1 + world_.Below(4); i > 0; --i) {
    world_.At(world_.Uniform(0, within), [this] {
      slow_until_ = std::max(slow_until_, world_.now() + world_.Uniform(0.5, 10));
      world_.Tell("disk and fleet are slow");
    });
  }
}

// The moments when kept weights could be confused with those being trained.
void Simulation::OnJudged() {
  if (!run_.early_stopping) {
    return;
  }
  if (world_.Chance(0.5)) {
    world_.In(world_.Uniform(0, 0.3), [this] { CrashMaster(); });
  }
  if (world_.Chance(0.3)) {
    world_.In(world_.Uniform(0, 0.6), [this] { LoseServer(); });
  }
}

void Simulation::ScheduleOutages() {
  options_.checkpoint_steps = world_.Chance(0.9) ? 1 + world_.Below(10) : 0;
  if (options_.evaluation_shards > 0 && !run_.early_stopping && world_.Chance(0.5)) {
    // The first epoch is the best; the others must not end the training early.
    options_.patience = options_.queue.epochs;
    options_.metric = "rmse";
  }
  const double within = world_.Uniform(5, 30);
  for (int64_t i = 1 + world_.Below(4); i > 0; --i) {
    world_.At(world_.Uniform(2, within), [this] {
      const int64_t what = world_.Below(4);
      if (what <= 1) {
        Outage();
        return;
      }
      ++outcome_.full_disks;
      const double until = world_.now() + world_.Uniform(0.05, 3);
      world_.Tell(what == 2 ? "the journal's disk is full" : "the checkpoints' disk is full");
      what == 2 ? disk_.FillJournal(until) : disk_.FillCheckpoints(until);
    });
  }
}

void Simulation::Outage() {
  world_.Tell("everybody is killed");
  ++outcome_.outages;
  ++life_;
  master_.reset();
  writing_ = false;
  for (const auto& [name, worker] : workers_) {
    worker->Kill();
  }
  workers_.clear();
  world_.At(std::max(disk_.journal_full_until(), world_.now() + world_.Uniform(0.1, 3)),
            [this, life = life_] {
              if (life == life_) {
                RunAgain();
              }
            });
}

void Simulation::RunAgain() {
  if (world_.Chance(0.1)) {
    disk_.Damage();
  }
  disk_.RemoveJournal();
  owned_.clear();
  restore_.reset();
  if (disk_.Newest() != nullptr) {
    restore_ = *disk_.Newest();
    ++outcome_.resumed;
  }
  servers_->Restart(restore_.has_value() ? restore_->partitions : std::vector<std::string>());
  StartMaster();
}

}  // namespace sluice::elastic::simulation
