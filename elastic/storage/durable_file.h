#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace sluice::elastic {

// Files that are there after a loss of power. Errors: ResourceExhausted (the disk is full),
// PermissionDenied, Unavailable, with the path and what the system says.

// A file that is written piece by piece. One thread.
class DurableFile {
 public:
  // In place of what was there.
  static Result<DurableFile> Create(const std::string& path);
  DurableFile(DurableFile&& other) noexcept;
  ~DurableFile();
  Status Append(std::string_view bytes);
  // It is on the disk when this returns; nothing is appended any more.
  Status Finish();

 private:
  DurableFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  std::string path_;
  int descriptor_ = -1;
};

// The pieces end to end, in place of what was there; on the disk when this returns. A name that is
// new needs SyncFolder, too.
Status WriteDurably(const std::string& path, std::span<const std::string_view> pieces);
// The names in a folder are on the disk when this returns.
Status SyncFolder(const std::string& path);
// What is at `from` is at `to` then, in place of what was there, or still at `from`.
Status RenameDurably(const std::string& from, const std::string& to);
Result<std::string> ReadFile(const std::string& path);

// What errno says of a call that has just failed: "cannot open '/a': ...".
Status SystemError(const std::string& what, const std::string& path);

}  // namespace sluice::elastic
