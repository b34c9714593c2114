#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "tests/simulation/world.h"

namespace sluice::elastic::simulation {

// What a simulated job keeps beyond its processes' lives: the master's journal, as a file, on one
// disk, and checkpoints on another. Each may be full for a while; whoever writes may die in the
// middle.
class ModelDisk {
 public:
  explicit ModelDisk(World& world) : world_(world) {}

  void FillJournal(double until) { journal_full_until_ = until; }
  void FillCheckpoints(double until) { checkpoints_full_until_ = until; }
  double journal_full_until() const { return journal_full_until_; }

  // ResourceExhausted: the disk is full, and some of the entry may be there.
  Status Append(const std::string& entry);
  // The last entry was cut off somewhere.
  void Tear();
  // Up to the first that is not whole; the rest is cut off.
  std::vector<std::string> ReadJournal();
  void RemoveJournal() { journal_.clear(); }

  struct Checkpoint {
    std::string queue;                    // Master::SaveCut
    std::vector<std::string> partitions;  // by server
  };
  // A file that checkpoints are made of can be written. ResourceExhausted: it cannot.
  Status CheckRoom() const;
  void Keep(Checkpoint checkpoint);
  // A bad block: the newest checkpoint cannot be read any more.
  void Damage();
  const Checkpoint* Newest() const { return checkpoints_.empty() ? nullptr : &checkpoints_.back(); }

 private:
  // Of the journal. Of a torn one only some bytes are there, which its checksum tells.
  struct Entry {
    std::string bytes;
    uint32_t crc = 0;
  };

  World& world_;
  double journal_full_until_ = 0, checkpoints_full_until_ = 0;
  std::vector<Entry> journal_;
  std::vector<Checkpoint> checkpoints_;
};

}  // namespace sluice::elastic::simulation
