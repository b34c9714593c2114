#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace sluice::chaos {

// A job's folder of checkpoints, as somebody beside the job sees it. Not thread-safe.
class CheckpointFiles {
 public:
  explicit CheckpointFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Counts the drafts and the checkpoints that are there and have not been seen before.
  void Look();
  size_t drafts() const { return drafts_.size(); }
  size_t checkpoints() const { return checkpoints_.size(); }

  // A file of the newest checkpoint changes places with the one of an older checkpoint that has its
  // name, and its length if there is such a one. False: there are no two checkpoints.
  bool Exchange(uint32_t pick) const;
  // A byte in the middle of a file of the newest checkpoint is another from now on. False: there is
  // none.
  bool Damage(uint32_t pick) const;

 private:
  // Newest first.
  std::vector<std::filesystem::path> Whole() const;

  const std::filesystem::path folder_;
  std::set<std::string> drafts_, checkpoints_;  // names
};

}  // namespace sluice::chaos
