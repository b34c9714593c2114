#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

// Files with secrets in them, which nobody but their owner reads or puts there. 55000, with what
// would be right: a file or folder is not so. 58030: the disk does not let us.
namespace sluice::server::pgwire {

// What is said of a file that is not as it should be.
struct PrivateKind {
  std::string_view what;     // "a certificate or a key"
  std::string_view renewal;  // of one that may have been read: "remove it, and ..."
  std::string_view secret;   // that the folder holds: "the gateway's private key"
  size_t most_bytes = 0;
};

// Made, for its owner alone, where there is none; not the one that it is in.
Status PrepareFolder(const std::string& folder, const PrivateKind& kind);
// nullopt: there is none.
Result<std::optional<std::string>> ReadPrivateFile(const std::string& path,
                                                   const PrivateKind& kind);
// The file appears with all of the text, unless there is one by now; what there is then.
Result<std::string> PutPrivateFile(const std::string& folder, const char* name,
                                   std::string_view text, const PrivateKind& kind);
// The file has all of the text from now on, in the place of what there was.
Status ReplacePrivateFile(const std::string& path, std::string_view text);

// Of several processes that change the files of a folder one at a time does, as long as it has one.
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
