#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

// Files with secrets, which only their owner may read or create. 55000, with what would be right: a
// file or folder has other rights. 58030: the disk refuses.
namespace sluice::server::pgwire {

// How errors name a file.
struct PrivateKind {
  std::string_view what;     // "a certificate or a key"
  std::string_view renewal;  // what to do with one that others may have read: "remove it, and ..."
  std::string_view secret;   // what the folder holds: "the gateway's private key"
  size_t most_bytes = 0;
};

// Creates the folder for its owner alone if necessary, but not its parent.
Status PrepareFolder(const std::string& folder, const PrivateKind& kind);
// nullopt: the file does not exist.
Result<std::optional<std::string>> ReadPrivateFile(const std::string& path,
                                                   const PrivateKind& kind);
// Creates the file with the whole text, unless it exists by then; returns the file's content.
Result<std::string> PutPrivateFile(const std::string& folder, const char* name,
                                   std::string_view text, const PrivateKind& kind);
// Replaces the file by one with the whole text.
Status ReplacePrivateFile(const std::string& path, std::string_view text);

// Lets one process at a time change a folder's files, while it exists.
class FolderLock {
 public:
  static Result<FolderLock> Take(const std::string& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace sluice::server::pgwire
