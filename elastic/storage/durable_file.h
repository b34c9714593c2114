#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace sluice::elastic {

// Files that survive a power failure. Errors: ResourceExhausted (the disk is full),
// PermissionDenied, Unavailable, with the path and the system's message.

// A file that is written piece by piece. One thread.
class DurableFile {
 public:
  // Replaces an existing file.
  static Result<DurableFile> Create(const std::string& path);
  DurableFile(DurableFile&& other) noexcept;
  ~DurableFile();
  Status Append(std::string_view bytes);
  // The file is on disk when this returns; nothing may be appended afterwards.
  Status Finish();

 private:
  DurableFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  std::string path_;
  int descriptor_ = -1;
};

// Writes the concatenated pieces, replacing an existing file; on disk when this returns. A new name
// needs SyncFolder, too.
Status WriteDurably(const std::string& path, std::span<const std::string_view> pieces);
// The names in a folder are on the disk when this returns.
Status SyncFolder(const std::string& path);
// Afterwards the file at `from` is at `to`, replacing an existing one, or (on failure) still at
// `from`.
Status RenameDurably(const std::string& from, const std::string& to);
Result<std::string> ReadFile(const std::string& path);

// An error for errno of a call that has just failed: "cannot open '/a': ...".
Status SystemError(const std::string& what, const std::string& path);

}  // namespace sluice::elastic
