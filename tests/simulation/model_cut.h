#pragma once

#include <memory>

#include "elastic/ids.h"
#include "tests/simulation/model_disk.h"

namespace sluice::elastic::simulation {

class Simulation;

// One checkpoint of a simulated job, in the order of ParameterFleet::TakeCut: all servers stop; the
// queue's position is taken, then each server's parameters; the servers resume, and their state is
// written while they train. It ends when its master dies.
class ModelCut : public std::enable_shared_from_this<ModelCut> {
 public:
  explicit ModelCut(Simulation& job);
  // Performs the next step after its time, then the rest.
  void Go();

 private:
  enum class Stage { kStandStill, kSave, kResume, kWrite, kCommit };
  void Do(Stage stage, size_t server);

  Simulation& job_;
  const Term term_;
  size_t done_ = 0;  // finished steps: every stage, on every server
  Status written_;
  ModelDisk::Checkpoint checkpoint_;
};

}  // namespace sluice::elastic::simulation
