#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace sluice::chaos {

// A job's folder of checkpoints, observed from outside the job. Not thread-safe.
class CheckpointFiles {
 public:
  explicit CheckpointFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Counts drafts and checkpoints that were not seen before.
  void Look();
  size_t drafts() const { return drafts_.size(); }
  size_t checkpoints() const { return checkpoints_.size(); }

  // Exchanges a file of the newest checkpoint with the file of the same name in an older
  // checkpoint, of the same length if possible. False: there are no two checkpoints.
  bool Exchange(uint32_t pick) const;
  // Changes a byte in the middle of a file of the newest checkpoint. False: there is none.
  bool Damage(uint32_t pick) const;

 private:
  // Newest first.
  std::vector<std::filesystem::path> Whole() const;

  const std::filesystem::path folder_;
  std::set<std::string> drafts_, checkpoints_;  // names
};

}  // namespace sluice::chaos
