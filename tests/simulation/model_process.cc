#include "tests/simulation/model_process.h"

#include <fmt/core.h>

#include <utility>

#include "tests/simulation/simulation.h"

namespace sluice::elastic::simulation {
namespace {

constexpr double kCallTimeout = 0.5;
constexpr double kGiveUpSeconds = 30;
constexpr double kHeartbeat = 1;

}  // namespace

ModelProcess::ModelProcess(Simulation& job, std::string name, Incarnation incarnation,
                           double slowness)
    : job_(job),
      incarnation_(incarnation),
      slowness_(slowness),
      name_(std::move(name)),
      life_(job.life_) {}

bool ModelProcess::CutOff() const {
  return job_.world_.now() < cut_off_until_;
}

void ModelProcess::Run(const Then& then) {
  if (!alive_ || job_.finished_) {
    return;
  }
  if (job_.world_.now() < paused_until_) {
    job_.world_.At(paused_until_, [self = shared_from_this(), then] { self->Run(then); });
    return;
  }
  then();
}

void ModelProcess::Sleep(double seconds, const Then& then) {
  job_.world_.In(seconds, [self = shared_from_this(), then] { self->Run(then); });
}

void ModelProcess::Call(bool to_master, const Serve& serve) {
  Attempt(to_master, serve, ++call_, job_.world_.now() + kGiveUpSeconds);
}

void ModelProcess::Attempt(bool to_master, const Serve& serve, uint64_t call, double give_up) {
  World& world = job_.world_;
  if (call != call_ || !alive_) {
    return;
  }
  if (world.now() > give_up) {
    Exit("the other side cannot be reached", false);
    return;
  }
  const auto self = shared_from_this();
  const int copies = world.Chance(job_.weather_.duplicate) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    if (world.Chance(job_.weather_.drop)) {
      continue;
    }
    world.In(world.Exponential(job_.weather_.delay), [self, to_master, serve, call] {
      const bool gone = self->life_ != self->job_.life_;
      if (gone || (to_master && (self->CutOff() || self->job_.master_ == nullptr))) {
        return;
      }
      const Then answer = serve();
      World& there = self->job_.world_;
      if (answer == nullptr || there.Chance(self->job_.weather_.drop)) {
        return;
      }
      there.In(there.Exponential(self->job_.weather_.delay), [self, call, answer] {
        self->Run([self, call, answer] {
          if (self->call_ == call) {
            ++self->call_;  // other answers to it are late
            answer();
          }
        });
      });
    });
  }
  world.In(kCallTimeout, [self, to_master, serve, call, give_up] {
    self->Run([=] { self->Attempt(to_master, serve, call, give_up); });
  });
}

void ModelProcess::Exit(const std::string& why, bool ok) {
  job_.world_.Tell(fmt::format("{} ends: {}", name_, why));
  alive_ = false;
  job_.OnWorkerGone(name_, ok ? ExitClass::kOk : ExitClass::kPreempted);
}

// In the real process, a thread of its own: one message, no retry.
void ModelProcess::Beat() {
  World& world = job_.world_;
  const auto self = shared_from_this();
  if (!world.Chance(job_.weather_.drop)) {
    world.In(world.Exponential(job_.weather_.delay), [self] {
      if (self->job_.master_ == nullptr || self->CutOff() || !self->alive_) {
        return;
      }
      if (!self->job_.master_->Heartbeat(self->incarnation_, self->job_.MasterNow()).ok()) {
        self->Run([self] { self->Exit("given up by the master", false); });
      }
    });
  }
  Sleep(kHeartbeat, [self] { self->Beat(); });
}

}  // namespace sluice::elastic::simulation
