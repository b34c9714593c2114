#include "tests/simulation/model_disk.h"

#include "elastic/storage/journal.h"

namespace sluice::elastic::simulation {
namespace {

constexpr size_t kKept = 2;  // checkpoints

Status RoomOf(double full_until, const World& world) {
  return world.now() < full_until ? ResourceExhausted("the simulated disk is full") : Status();
}

}  // namespace

Status ModelDisk::Append(const std::string& entry) {
  last_entry_ = journal_.size();
  AppendFrame(entry, &journal_);
  Status status = RoomOf(journal_full_until_, world_);
  if (!status.ok()) {
    Tear();
  }
  return status;
}

void ModelDisk::Tear() {
  const auto written = static_cast<int64_t>(journal_.size() - last_entry_);
  journal_.resize(last_entry_ + static_cast<size_t>(world_.Below(written)));
}

std::vector<std::string> ModelDisk::ReadJournal() {
  size_t whole = 0;
  std::vector<std::string> entries = ReadFrames(journal_, &whole);
  journal_.resize(whole);
  return entries;
}

Status ModelDisk::CheckRoom() const {
  return RoomOf(checkpoints_full_until_, world_);
}

void ModelDisk::Keep(Checkpoint checkpoint) {
  checkpoints_.push_back(std::move(checkpoint));
  if (checkpoints_.size() > kKept) {
    checkpoints_.erase(checkpoints_.begin());
  }
}

void ModelDisk::Damage() {
  if (checkpoints_.size() > 1) {
    checkpoints_.pop_back();
  }
}

}  // namespace sluice::elastic::simulation
