#include "tests/simulation/model_cut.h"

#include "tests/simulation/simulation.h"

namespace sluice::elastic::simulation {
namespace {

constexpr double kCallSeconds = 0.01, kWriteSeconds = 0.3;  // on average

}  // namespace

ModelCut::ModelCut(Simulation& job) : job_(job), term_(job.term_) {}

void ModelCut::Go() {
  const size_t servers = job_.servers_->size();
  const auto stage = static_cast<Stage>(done_ / servers);
  World& world = job_.world_;
  world.In(world.Exponential(stage == Stage::kWrite ? kWriteSeconds : kCallSeconds),
           [self = shared_from_this(), stage, server = done_ % servers] {
             Simulation& job = self->job_;
             if (job.master_ == nullptr || job.term_ != self->term_ || job.master_->finished()) {
               return;  // the next master resumes the servers
             }
             self->Do(stage, server);
           });
  ++done_;
}

void ModelCut::Do(Stage stage, size_t server) {
  ModelServers& servers = *job_.servers_;
  switch (stage) {
    case Stage::kStandStill:
      servers.StandStill(server);
      if (server + 1 == servers.size()) {
        CheckpointManifest manifest;
        job_.master_->SaveCut(&manifest);
        checkpoint_.queue = manifest.queue_state;
      }
      break;
    case Stage::kSave:
      checkpoint_.partitions.push_back(servers.Save(server));
      break;
    case Stage::kResume:
      servers.Resume(server);
      break;
    case Stage::kWrite:
      written_ = written_.ok() ? job_.disk_.CheckRoom() : written_;
      break;
    case Stage::kCommit:
      written_ = written_.ok() ? job_.disk_.CheckRoom() : written_;
      job_.EndCheckpoint(written_, std::move(checkpoint_));
      return;
  }
  Go();
}

}  // namespace sluice::elastic::simulation
