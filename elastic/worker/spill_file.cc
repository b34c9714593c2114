#include "elastic/worker/spill_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "elastic/storage/durable_file.h"

namespace sluice::elastic {
namespace {

// Appended data begin at a multiple of this: whole pages are read.
constexpr int64_t kPage = 4096;
// How often the room on the disk is looked at.
constexpr int64_t kBytesBetweenLooks = int64_t{16} << 20;

// Files there take memory, not a disk.
bool IsInMemory(int descriptor) {
  struct statfs about = {};
  return fstatfs(descriptor, &about) == 0 &&
         (about.f_type == TMPFS_MAGIC || about.f_type == RAMFS_MAGIC ||
          about.f_type == HUGETLBFS_MAGIC);
}

// Not every file system can make a file that never had a name.
int OpenNameless(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) {
    return descriptor;
  }
  std::string path = folder + "/sluice_rows_XXXXXX";
  const int named = mkostemp(path.data(), O_CLOEXEC);  // 0600
  if (named >= 0) {
    unlink(path.c_str());
  }
  return named;
}

// A process that passes its limit for files is killed by a signal.
int64_t MostBytes(int64_t wanted) {
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return wanted;
  }
  return std::min(wanted, static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX)));
}

}  // namespace

SpillFile::SpillFile(Options options, int descriptor)
    : options_(std::move(options)),
      descriptor_(descriptor),
      most_bytes_(MostBytes(options_.most_bytes)) {}

SpillFile::~SpillFile() {
  close(descriptor_);
}

Result<std::unique_ptr<SpillFile>> SpillFile::Create(const Options& options) {
  Options chosen = options;
  if (chosen.folder.empty()) {
    std::error_code error;
    chosen.folder = std::filesystem::temp_directory_path(error).string();
    if (error) {
      return Unavailable(
          fmt::format("there is no folder for temporary files: {}", error.message()));
    }
  }
  const std::string folder = chosen.folder;
  const int descriptor = OpenNameless(folder);
  if (descriptor < 0) {
    return SystemError("make a file in", folder);
  }
  std::unique_ptr<SpillFile> file(new SpillFile(std::move(chosen), descriptor));
  if (IsInMemory(descriptor)) {
    return FailedPrecondition(fmt::format("'{}' is in memory", folder));
  }
  RETURN_IF_ERROR(file->CheckRoom());
  return file;
}

Status SpillFile::CheckRoom() const {
  struct statvfs disk = {};
  if (fstatvfs(descriptor_, &disk) != 0) {
    return SystemError("look at the disk of", options_.folder);
  }
  const double block = static_cast<double>(disk.f_frsize);
  const double free = static_cast<double>(disk.f_bavail) * block;
  const double own = static_cast<double>(bytes_);
  if (free < options_.share_left * static_cast<double>(disk.f_blocks) * block ||
      own > options_.share_of_free * (free + own)) {
    return ResourceExhausted(
        fmt::format("the disk of '{}' has no more room for it: {:.1f} GB are free", options_.folder,
                    free / 1e9));
  }
  return Status();
}

Result<uint64_t> SpillFile::Append(std::span<const std::string_view> pieces) {
  int64_t end = bytes_;
  for (const std::string_view piece : pieces) {
    if (static_cast<int64_t>(piece.size()) > most_bytes_ - end) {
      return ResourceExhausted(
          fmt::format("the limit of {:.1f} GB is reached", static_cast<double>(most_bytes_) / 1e9));
    }
    end += static_cast<int64_t>(piece.size());
  }
  if (bytes_ / kBytesBetweenLooks != end / kBytesBetweenLooks) {
    RETURN_IF_ERROR(CheckRoom());
  }
  const int64_t begin = bytes_;
  int64_t at = begin;
  for (const std::string_view piece : pieces) {
    RETURN_IF_ERROR(Write(piece, at));
    at += static_cast<int64_t>(piece.size());
  }
  bytes_ = std::min(most_bytes_, (end + kPage - 1) / kPage * kPage);
  return static_cast<uint64_t>(begin);
}

Status SpillFile::Write(std::string_view bytes, int64_t at) const {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(descriptor_, bytes.data(), bytes.size(), at);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return SystemError("write a file in", options_.folder);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
    at += written;
  }
  return Status();
}

Status SpillFile::Read(uint64_t offset, std::span<char> to) const {
  while (!to.empty()) {
    const ssize_t got = pread(descriptor_, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return SystemError("read a file in", options_.folder);
    }
    if (got == 0) {
      return Unavailable(fmt::format("a file in '{}' is shorter than it was", options_.folder));
    }
    to = to.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return Status();
}

void SpillFile::Expect(uint64_t offset, uint64_t bytes) const {
  // A hint: what it returns does not matter.
  posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                POSIX_FADV_WILLNEED);
}

}  // namespace sluice::elastic
