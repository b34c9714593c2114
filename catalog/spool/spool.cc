#include "catalog/spool/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "catalog/spool/spool_format_internal.h"

namespace sluice::catalog {
namespace {

// The fraction of its disk that a spool leaves free.
constexpr double kDiskLeft = 0.1;
// How often that is checked.
constexpr uint64_t kBytesBetweenLooks = uint64_t{64} << 20;

Status Failed(const std::string& path, const char* what) {
  const int error = errno;
  Status status =
      Status(error == ENOSPC || error == EDQUOT ? Code::kResourceExhausted : Code::kUnavailable,
             fmt::format("cannot {} {}: {}", what, path, std::strerror(error)))
          .SqlState(error == ENOSPC || error == EDQUOT ? "53100" : "58030");
  return error == ENOSPC || error == EDQUOT
             ? std::move(status).Hint(
                   "the rows are kept there while the statement runs, as they can be read "
                   "only once: make room, or start the gateway with TMPDIR on another disk")
             : status;
}

// A statement of one row takes less time than looking through a folder of many files.
class LeftoverRemoval {
 public:
  void RemoveIfDue(const std::string& folder) {
    constexpr double kSeconds = 60;
    const TimePoint now = SteadyClock().Now();
    {
      const MutexLock lock(mutex_);
      if (folder == folder_ && SecondsBetween(looked_, now) < kSeconds) {
        return;
      }
      folder_ = folder;
      looked_ = now;
    }
    RemoveLeftoverSpools(folder);
  }

 private:
  Mutex mutex_;
  std::optional<std::string> folder_ GUARDED_BY(mutex_);
  TimePoint looked_ GUARDED_BY(mutex_){0};
};

}  // namespace

std::string SpoolFolder(const std::string& folder) {
  if (!folder.empty()) {
    return folder;
  }
  return std::filesystem::temp_directory_path().string();
}

Spool::Spool(Schema schema, std::string path, int descriptor)
    : schema_(std::move(schema)), path_(std::move(path)), descriptor_(descriptor) {}

Spool::~Spool() {
  unlink(path_.c_str());
  close(descriptor_);
}

Result<std::unique_ptr<Spool>> Spool::Create(Schema schema, const std::string& folder) {
  static LeftoverRemoval leftovers;
  leftovers.RemoveIfDue(folder);
  for (;;) {
    std::string path = fmt::format("{}/{}XXXXXX", SpoolFolder(folder), kSpoolPrefix);
    const int descriptor = mkostemp(path.data(), O_CLOEXEC);  // 0600
    if (descriptor < 0) {
      return Failed(path, "make");
    }
    struct stat about = {};
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0 && fstat(descriptor, &about) == 0 &&
        about.st_nlink > 0) {
      return std::unique_ptr<Spool>(new Spool(std::move(schema), std::move(path), descriptor));
    }
    close(descriptor);  // another process has taken it for a leftover before it was locked
  }
}

Status Spool::Write(const std::string& bytes) {
  if (bytes_ / kBytesBetweenLooks != (bytes_ + bytes.size()) / kBytesBetweenLooks) {
    struct statvfs disk = {};
    if (fstatvfs(descriptor_, &disk) == 0 &&
        static_cast<double>(disk.f_bavail) < kDiskLeft * static_cast<double>(disk.f_blocks)) {
      errno = ENOSPC;
      return Failed(path_, "write");
    }
  }
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t written = write(descriptor_, bytes.data() + at, bytes.size() - at);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return Failed(path_, "write");
    }
    at += static_cast<size_t>(written);
  }
  bytes_ += bytes.size();
  return OkStatus();
}

Status Spool::Append(const RowBatch& batch) {
  if (batch.rows == 0) {
    return OkStatus();
  }
  std::string block;
  AppendNumber(block, batch.rows);
  const size_t offsets = block.size();
  block.append((batch.columns.size() + 1) * sizeof(uint64_t), '\0');
  const auto note = [&block, offsets](size_t column) {
    const uint64_t here = block.size();
    std::memcpy(block.data() + offsets + column * sizeof(here), &here, sizeof(here));
  };
  for (size_t i = 0; i < batch.columns.size(); ++i) {
    const RowBatch::Column& column = batch.columns[i];
    note(i);
    block.append(column.null.begin(), column.null.begin() + static_cast<ptrdiff_t>(batch.rows));
    uint64_t end = 0;
    for (size_t row = 0; row < batch.rows; ++row) {
      const bool null = column.null[row] != 0;
      uint64_t number = 0;
      if (HasTexts(column.type)) {
        end += null ? 0 : column.texts[row].size();
        number = end;
      } else if (column.type == DataType::kDouble && !null) {
        std::memcpy(&number, &column.doubles[row], sizeof(number));
      } else if (!null) {
        std::memcpy(&number, &column.int64s[row], sizeof(number));
      }
      AppendNumber(block, number);
    }
    for (size_t row = 0; HasTexts(column.type) && row < batch.rows; ++row) {
      if (column.null[row] == 0) {
        block += column.texts[row];
      }
    }
  }
  note(batch.columns.size());
  blocks_.push_back(bytes_);
  block_rows_.push_back(static_cast<int64_t>(batch.rows));
  rows_ += static_cast<int64_t>(batch.rows);
  return Write(block);
}

Status Spool::Finish() {
  std::string index;
  for (const uint64_t block : blocks_) {
    AppendNumber(index, block);
  }
  AppendNumber(index, blocks_.size());
  AppendNumber(index, kSpoolMark);
  return Write(index);
}

void RemoveLeftoverSpools(const std::string& folder) {
  const std::string place = SpoolFolder(folder);
  DIR* const entries = opendir(place.c_str());
  if (entries == nullptr) {
    return;
  }
  while (const dirent* entry = readdir(entries)) {
    const std::string path = place + "/" + entry->d_name;
    struct stat about = {};
    if (std::strncmp(entry->d_name, kSpoolPrefix, std::strlen(kSpoolPrefix)) != 0 ||
        lstat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != geteuid()) {
      continue;
    }
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
      log::Info("removing a leftover file={}", path);
      unlink(path.c_str());
    }
    if (descriptor >= 0) {
      close(descriptor);
    }
  }
  closedir(entries);
}

}  // namespace sluice::catalog
