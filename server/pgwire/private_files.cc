#include "server/pgwire/private_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

namespace sluice::server::pgwire {
namespace {

constexpr mode_t kOwnersAlone = 0700;
constexpr mode_t kOthersAnything = 0077;
constexpr mode_t kOthersWrite = 0022;

Status DiskFailed(std::string_view what, const std::string& path) {
  return Status(Code::kUnavailable,
                fmt::format("cannot {} '{}': {}", what, path, std::strerror(errno)))
      .SqlState("58030");
}

class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  ~OpenFile() {
    if (descriptor_ >= 0) {
      close(descriptor_);
    }
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return descriptor_; }
  bool ok() const { return descriptor_ >= 0; }

 private:
  const int descriptor_;
};

// No other user may have created it.
Status CheckOwner(const struct stat& facts, const std::string& path) {
  if (facts.st_uid != geteuid() && facts.st_uid != 0) {
    return FailedPrecondition(fmt::format("'{}' belongs to another user", path))
        .Hint("remove it, or run the gateway as its owner");
  }
  return OkStatus();
}

Status WriteAll(int descriptor, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return DiskFailed("write", path);
    }
    text.remove_prefix(written > 0 ? static_cast<size_t>(written) : 0);
  }
  return fsync(descriptor) == 0 ? OkStatus() : DiskFailed("write", path);
}

// Entries of the folder survive a crash of the machine from now on.
Status SyncFolder(const std::string& folder) {
  const OpenFile opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return opened.ok() && fsync(opened.get()) == 0 ? OkStatus() : DiskFailed("write", folder);
}

// Writes the text to a file next to `path`; returns its name.
Result<std::string> WriteDraft(const std::string& path, std::string_view text) {
  std::string draft = path + ".XXXXXX";
  const OpenFile file(mkostemp(draft.data(), O_CLOEXEC));  // 0600
  if (!file.ok()) {
    return DiskFailed("make", draft);
  }
  const Status written = WriteAll(file.get(), text, draft);
  if (!written.ok()) {
    unlink(draft.c_str());
    return written;
  }
  return draft;
}

}  // namespace

Status PrepareFolder(const std::string& folder, const PrivateKind& kind) {
  if (mkdir(folder.c_str(), kOwnersAlone) != 0 && errno != EEXIST) {
    return DiskFailed("make the folder", folder);
  }
  struct stat facts {};
  if (stat(folder.c_str(), &facts) != 0) {
    return DiskFailed("look at", folder);
  }
  if (!S_ISDIR(facts.st_mode)) {
    return FailedPrecondition(fmt::format("'{}' is no folder", folder));
  }
  RETURN_IF_ERROR(CheckOwner(facts, folder));
  if ((facts.st_mode & kOthersWrite) != 0) {
    return FailedPrecondition(
               fmt::format("others may write into '{}', where {} is", folder, kind.secret))
        .Hint(fmt::format("chmod 700 '{}'", folder));
  }
  return OkStatus();
}

Result<std::optional<std::string>> ReadPrivateFile(const std::string& path,
                                                   const PrivateKind& kind) {
  const OpenFile file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.ok()) {
    if (errno == ENOENT) {
      return std::optional<std::string>();
    }
    return DiskFailed("open", path);
  }
  struct stat facts {};
  if (fstat(file.get(), &facts) != 0) {
    return DiskFailed("look at", path);
  }
  if (!S_ISREG(facts.st_mode) || std::cmp_greater(facts.st_size, kind.most_bytes)) {
    return FailedPrecondition(fmt::format("'{}' is no file of {}", path, kind.what))
        .Hint("remove it, and a new one is made");
  }
  RETURN_IF_ERROR(CheckOwner(facts, path));
  if ((facts.st_mode & kOthersAnything) != 0) {
    return FailedPrecondition(fmt::format("others may read '{}': its mode is {:04o}", path,
                                          facts.st_mode & 07777U))
        .Hint(fmt::format("chmod 600 '{}' if no other user has read it; else {}", path,
                          kind.renewal));
  }
  std::string text(static_cast<size_t>(facts.st_size), '\0');
  for (size_t read_bytes = 0; read_bytes < text.size();) {
    const ssize_t got = read(file.get(), text.data() + read_bytes, text.size() - read_bytes);
    if (got < 0 && errno != EINTR) {
      return DiskFailed("read", path);
    }
    if (got == 0) {
      text.resize(read_bytes);
    }
    read_bytes += got > 0 ? static_cast<size_t>(got) : 0;
  }
  return std::optional(std::move(text));
}

Result<std::string> PutPrivateFile(const std::string& folder, const char* name,
                                   std::string_view text, const PrivateKind& kind) {
  const std::string path = folder + "/" + name;
  ASSIGN_OR_RETURN(const std::string draft, WriteDraft(path, text));
  const bool put = link(draft.c_str(), path.c_str()) == 0 || errno == EEXIST;
  const Status linked = put ? OkStatus() : DiskFailed("make", path);
  unlink(draft.c_str());
  RETURN_IF_ERROR(linked);
  RETURN_IF_ERROR(SyncFolder(folder));
  ASSIGN_OR_RETURN(std::optional<std::string> there, ReadPrivateFile(path, kind));
  if (!there.has_value()) {
    return FailedPrecondition(fmt::format("'{}' has been removed meanwhile", path));
  }
  return *std::move(there);
}

Status ReplacePrivateFile(const std::string& path, std::string_view text) {
  ASSIGN_OR_RETURN(const std::string draft, WriteDraft(path, text));
  if (rename(draft.c_str(), path.c_str()) != 0) {
    Status failed = DiskFailed("write", path);
    unlink(draft.c_str());
    return failed;
  }
  return SyncFolder(std::filesystem::path(path).parent_path().string());
}

Result<FolderLock> FolderLock::Take(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    return DiskFailed("open", folder);
  }
  FolderLock lock(descriptor);
  while (flock(descriptor, LOCK_EX) != 0) {
    if (errno != EINTR) {
      return DiskFailed("lock", folder);
    }
  }
  return lock;
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

}  // namespace sluice::server::pgwire
