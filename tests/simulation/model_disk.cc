#include "tests/simulation/model_disk.h"

#include <algorithm>
#include <iterator>

#include "elastic/storage/crc32c.h"

namespace sluice::elastic::simulation {
namespace {

constexpr size_t kKept = 2;  // checkpoints

Status RoomOf(double full_until, const World& world) {
  return world.now() < full_until ? ResourceExhausted("the simulated disk is full") : Status();
}

}  // namespace

Status ModelDisk::Append(const std::string& entry) {
  journal_.push_back({entry, Crc32c(entry)});
  Status status = RoomOf(journal_full_until_, world_);
  if (!status.ok()) {
    Tear();
  }
  return status;
}

void ModelDisk::Tear() {
  Entry& last = journal_.back();
  const int64_t written = world_.Below(std::max<int64_t>(1, std::ssize(last.bytes)));
  last.bytes.resize(static_cast<size_t>(written));
}

std::vector<std::string> ModelDisk::ReadJournal() {
  std::vector<std::string> entries;
  for (const Entry& entry : journal_) {
    if (Crc32c(entry.bytes) != entry.crc) {
      break;
    }
    entries.push_back(entry.bytes);
  }
  journal_.resize(entries.size());
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
