#include "executor/files/model_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace sluice::executor {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;  // between looks at the stop token

// An open descriptor, closed on destruction.
class Handle {
 public:
  explicit Handle(int fd) : fd_(fd) {}
  Handle(Handle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Handle() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }

 private:
  int fd_;
};

// Of a call that has just failed.
Status SystemError(std::string_view what, const std::string& name) {
  const int error = errno;
  const std::string message = fmt::format("cannot {} '{}': {}", what, name, std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return NotFound(message).SqlState("58P01");
    case EEXIST:
      return AlreadyExists(fmt::format("the file '{}' exists already", name)).SqlState("58P02");
    case EACCES:
    case EPERM:
    case ELOOP:
      return Status(Code::kPermissionDenied, message);
    case ENOSPC:
    case EDQUOT:
      return ResourceExhausted(message).SqlState("53100");
    case ENAMETOOLONG:
      return InvalidArgument(message);
    default:
      return Unavailable(message).SqlState("58030");
  }
}

// The folder that a name lies in, and the last part of the name.
struct Spot {
  Handle folder;
  std::string file;
};

Status NotInside(const std::string& name) {
  return Status(Code::kPermissionDenied,
                fmt::format("'{}' is no name of a file in the gateway's folder", name))
      .SqlState("42501")
      .Hint("a name without a path will do: 'model.sluice'");
}

Result<Handle> OpenRoot(const std::string& root) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  Handle folder(open(root.c_str(), kFlags));
  if (!folder.open() && errno == ENOENT) {
    const std::string above = std::filesystem::path(root).parent_path().string();
    mkdir(above.c_str(), 0700);  // if it cannot be made, opening says why
    mkdir(root.c_str(), 0700);
    folder = Handle(open(root.c_str(), kFlags));
  }
  return folder.open() ? Result<Handle>(std::move(folder)) : SystemError("open the folder", root);
}

Result<Spot> SpotIn(const std::string& root, const std::string& name) {
  if (root.empty()) {
    return Status(Code::kPermissionDenied, "this gateway has no folder for files of models")
        .SqlState("42501")
        .Hint(
            "it has when it is started with --export-root FOLDER; a shell with --source uses "
            "its user's own files");
  }
  if (name.find('\0') != std::string::npos) {
    return NotInside(name);
  }
  ASSIGN_OR_RETURN(Handle folder, OpenRoot(root));
  std::string_view rest = name;
  while (true) {
    const size_t slash = rest.find('/');
    const std::string part(rest.substr(0, slash));
    if (part.empty() || part == "." || part == "..") {
      return NotInside(name);
    }
    if (slash == std::string_view::npos) {
      return Spot{std::move(folder), part};
    }
    folder =
        Handle(openat(folder.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder.open()) {
      return SystemError("open", name);
    }
    rest.remove_prefix(slash + 1);
  }
}

Result<Spot> SpotAt(const std::string& name) {
  const std::filesystem::path path(name);
  const std::string parent = path.has_parent_path() ? path.parent_path().string() : ".";
  Handle folder(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.open()) {
    return SystemError("open the folder of", name);
  }
  return Spot{std::move(folder), path.filename().string()};
}

Status WriteAll(const Handle& file, std::string_view bytes, const std::string& name,
                const std::stop_token& stop) {
  while (!bytes.empty()) {
    if (stop.stop_requested()) {
      return Cancelled("the export was cancelled");
    }
    const ssize_t written = write(file.get(), bytes.data(), std::min(bytes.size(), kPieceBytes));
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      return SystemError("write", name);
    }
  }
  return fsync(file.get()) == 0 ? OkStatus() : SystemError("write", name);
}

// Unless there is a file of that name.
Status MoveToFreeName(const Spot& spot, const std::string& draft, const std::string& name) {
  if (renameat2(spot.folder.get(), draft.c_str(), spot.folder.get(), spot.file.c_str(),
                RENAME_NOREPLACE) == 0) {
    return OkStatus();
  }
  if (errno != EINVAL && errno != ENOSYS) {
    return SystemError("create", name);
  }
  // A file system without such a call has links.
  if (linkat(spot.folder.get(), draft.c_str(), spot.folder.get(), spot.file.c_str(), 0) != 0) {
    return SystemError("create", name);
  }
  unlinkat(spot.folder.get(), draft.c_str(), 0);
  return OkStatus();
}

Status CheckFree(const Spot& spot, const std::string& name, bool overwrite) {
  struct stat found = {};
  if (fstatat(spot.folder.get(), spot.file.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT ? OkStatus() : SystemError("create", name);
  }
  if (!overwrite) {
    errno = EEXIST;
    return SystemError("create", name);
  }
  return S_ISREG(found.st_mode)
             ? OkStatus()
             : InvalidArgument(fmt::format("'{}' is no ordinary file, and is not replaced", name));
}

}  // namespace

Result<std::string> ModelFolder::Read(const std::string& name, int64_t most_bytes) const {
  ASSIGN_OR_RETURN(const Spot spot, root_ ? SpotIn(*root_, name) : SpotAt(name));
  // Opening a pipe would wait for its other end.
  const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | (root_ ? O_NOFOLLOW : 0);
  const Handle file(openat(spot.folder.get(), spot.file.c_str(), flags));
  struct stat found = {};
  if (!file.open() || fstat(file.get(), &found) != 0) {
    return SystemError("open", name);
  }
  if (!S_ISREG(found.st_mode)) {
    return InvalidArgument(fmt::format("'{}' is no ordinary file", name));
  }
  if (found.st_size > most_bytes) {
    return ResourceExhausted(fmt::format("'{}' has {} MiB, and the memory limit allows {}", name,
                                         found.st_size >> 20, most_bytes >> 20))
        .SqlState("53200")
        .Hint("start Sluice with a larger --memory-limit");
  }
  std::string bytes(static_cast<size_t>(found.st_size), '\0');
  size_t read_bytes = 0;
  while (read_bytes < bytes.size()) {
    const ssize_t got = read(file.get(), bytes.data() + read_bytes, bytes.size() - read_bytes);
    if (got == 0) {
      break;  // it has become shorter
    }
    if (got < 0 && errno != EINTR) {
      return SystemError("read", name);
    }
    read_bytes += got > 0 ? static_cast<size_t>(got) : 0;
  }
  bytes.resize(read_bytes);
  return bytes;
}

Status ModelFolder::Write(const std::string& name, std::string_view bytes, bool overwrite,
                          const std::stop_token& stop) const {
  ASSIGN_OR_RETURN(const Spot spot, root_ ? SpotIn(*root_, name) : SpotAt(name));
  RETURN_IF_ERROR(CheckFree(spot, name, overwrite));
  const std::string draft =
      fmt::format(".sluice-{}-{}.partial", getpid(),
                  std::chrono::steady_clock::now().time_since_epoch().count());
  const Handle file(openat(spot.folder.get(), draft.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.open()) {
    return SystemError("create", name);
  }
  Status written = WriteAll(file, bytes, name, stop);
  if (written.ok() && overwrite) {
    written = renameat(spot.folder.get(), draft.c_str(), spot.folder.get(), spot.file.c_str()) == 0
                  ? OkStatus()
                  : SystemError("create", name);
  } else if (written.ok()) {
    written = MoveToFreeName(spot, draft, name);
  }
  if (!written.ok()) {
    unlinkat(spot.folder.get(), draft.c_str(), 0);
    return written;
  }
  return fsync(spot.folder.get()) == 0 ? OkStatus() : SystemError("write", name);
}

}  // namespace sluice::executor
