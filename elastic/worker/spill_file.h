#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::elastic {

// A file on a local disk for what its process can also get elsewhere. It has no name, and so is
// gone with the process, however that ends; no other user can read it. It never fills the disk. One
// thread.
class SpillFile {
 public:
  struct Options {
    std::string folder;  // "": the system's folder for temporary files (TMPDIR)
    int64_t most_bytes = int64_t{64} << 30;
    // Of what is free, its own bytes included: that much it may take. Several processes spill side
    // by side.
    double share_of_free = 0.25;
    // The share of the disk that stays free. A node of Kubernetes evicts pods when less than 10 or
    // 15 % are.
    double share_left = 1.0 / 6;
  };
  // FailedPrecondition: the folder is in memory (tmpfs). ResourceExhausted: the disk is as good as
  // full.
  static Result<std::unique_ptr<SpillFile>> Create(const Options& options);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  // Writes the pieces one after the other, and returns where they begin. ResourceExhausted: the
  // bound is reached, or the disk is full. After an error the file has what it had before.
  Result<uint64_t> Append(std::span<const std::string_view> pieces);
  // Unavailable: the disk fails, or the file ends before.
  Status Read(uint64_t offset, std::span<char> to) const;
  // Will be read soon: the disk may begin.
  void Expect(uint64_t offset, uint64_t bytes) const;

  int64_t bytes() const { return bytes_; }
  const std::string& folder() const { return options_.folder; }

 private:
  SpillFile(Options options, int descriptor);
  Status CheckRoom() const;
  Status Write(std::string_view bytes, int64_t at) const;

  const Options options_;
  const int descriptor_;
  int64_t most_bytes_;  // of options_, or fewer
  int64_t bytes_ = 0;
};

}  // namespace sluice::elastic
