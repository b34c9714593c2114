#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "tests/simulation/world.h"

namespace sluice::elastic::simulation {

// What a simulated job stores: the master's journal, as a file on one disk, and checkpoints on
// another. Each disk may be full for a while; a writer may die in the middle.
class ModelDisk {
 public:
  explicit ModelDisk(World& world) : world_(world) {}

  void FillJournal(double until) { journal_full_until_ = until; }
  void FillCheckpoints(double until) { checkpoints_full_until_ = until; }
  double journal_full_until() const { return journal_full_until_; }

  // ResourceExhausted: the disk is full, and part of the entry may be written.
  Status Append(const std::string& entry);
  // Truncates the last entry somewhere.
  void Tear();
  // Entries up to the first incomplete one; the rest is removed.
  std::vector<std::string> ReadJournal();
  void RemoveJournal() { journal_.clear(); }

  struct Checkpoint {
    std::string queue;                    // Master::SaveCut
    std::vector<std::string> partitions;  // by server
  };
  // Whether files of a checkpoint can be written. ResourceExhausted: they cannot.
  Status CheckRoom() const;
  void Keep(Checkpoint checkpoint);
  // A bad block: the newest checkpoint becomes unreadable.
  void Damage();
  const Checkpoint* Newest() const { return checkpoints_.empty() ? nullptr : &checkpoints_.back(); }

 private:
  // Of the journal. A torn one has only some of its bytes, which its checksum reveals.
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
