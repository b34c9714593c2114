#include <fmt/core.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "catalog/sql/sqlstate.h"
#include "catalog/sqlite/sqlite_place_internal.h"

namespace sluice::catalog {
namespace {

constexpr std::string_view kDatabaseHeader("SQLite format 3\0", 16);
// Files up to this size are checked page by page, which takes a tenth of a second. A larger file is
// checked when it has become smaller, by VACUUM or by truncation.
constexpr int64_t kBytesLookedAt = int64_t{32} << 20;
constexpr std::string_view kDamagedPage =
    "*** in database";  // how SQLite's report of a damaged page begins

Status NotThere(const SqliteLocation& location, std::string_view state, std::string_view what) {
  return DatabaseError(state, fmt::format("the database file {} {}", location.path, what))
      .Hint(
          "what was written since then is not there; restore the file, and run the statement "
          "again");
}

// Through SQLite: closing a descriptor of our own would release the locks of its connections.
Status CheckHeader(SqliteConnection& connection, const SqliteLocation& location) {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(connection.handle(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
  std::array<char, kDatabaseHeader.size()> header{};
  if (file == nullptr || file->pMethods == nullptr ||
      file->pMethods->xRead(file, header.data(), static_cast<int>(header.size()), 0) != SQLITE_OK ||
      std::string_view(header.data(), header.size()) != kDatabaseHeader) {
    return NotThere(location, "58030", "was overwritten while it was in use");
  }
  return OkStatus();
}

}  // namespace

Result<SqlitePlace::File> SqlitePlace::Look() const {
  struct stat found {};
  if (stat(location_.path.c_str(), &found) == 0) {
    constexpr int64_t kNanosOfSecond = 1'000'000'000;
    return File{found.st_dev, found.st_ino, int64_t{found.st_size},
                int64_t{found.st_mtim.tv_sec} * kNanosOfSecond + found.st_mtim.tv_nsec};
  }
  return errno == ENOENT || errno == ENOTDIR
             ? NotThere(location_, "58P01", "was deleted while it was in use")
             : DatabaseError("58030", fmt::format("cannot read {}: {}", location_.path,
                                                  std::strerror(errno)));
}

Status SqlitePlace::Remember(const File& file, bool* shrunk) {
  const MutexLock lock(mutex_);
  if (!opened_.has_value()) {
    opened_ = file;
  }
  if (file.device != opened_->device || file.inode != opened_->inode) {
    return NotThere(location_, "58030", "was replaced by another one while it was in use");
  }
  if (file.bytes == 0 && opened_->bytes > 0) {
    return NotThere(location_, "58030", "was truncated while it was in use");
  }
  *shrunk = file.bytes < opened_->bytes;
  opened_->bytes = file.bytes;
  return OkStatus();
}

Status SqlitePlace::Check() {
  if (location_.in_memory()) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const File file, Look());
  bool shrunk = false;
  return Remember(file, &shrunk);
}

Status SqlitePlace::CheckIfOpened() {
  {
    const MutexLock lock(mutex_);
    if (!opened_.has_value()) {
      return OkStatus();
    }
  }
  return Check();
}

Result<std::unique_ptr<SqliteConnection>> SqlitePlace::OpenAnew(std::stop_token stop) {
  ASSIGN_OR_RETURN(const File file, Look());
  bool shrunk = false;
  RETURN_IF_ERROR(Remember(file, &shrunk));
  auto opened = SqliteConnection::Open(location_, SqliteConnection::Access::kReadOnly);
  if (!opened.ok() && opened.status().sqlstate() == "XX001") {
    return NotThere(location_, "58030", "was overwritten while it was in use");
  }
  RETURN_IF_ERROR(opened.status());
  std::unique_ptr<SqliteConnection> connection = std::move(opened).value();
  // All pages of a new database may still be in its log.
  if (file.bytes > 0) {
    RETURN_IF_ERROR(CheckHeader(*connection, location_));
  }
  connection->HearStop(std::move(stop));
  if (file.bytes > kBytesLookedAt && !shrunk) {
    return connection;
  }
  {
    const MutexLock lock(mutex_);
    if (looked_at_ == file) {
      return connection;
    }
  }
  ASSIGN_OR_RETURN(const SqlRows rows, connection->Query("PRAGMA quick_check(1)", {}));
  const std::string found = rows.empty() ? "" : TextCell(rows[0][0]);
  // Reports about values concern only the user and the constraints.
  if (found.starts_with(kDamagedPage)) {
    return DatabaseError("XX001", fmt::format("the database file {} is damaged", location_.path))
        .Detail(found)
        .Hint(
            "it was overwritten or truncated by something that is not SQLite; restore it, and "
            "run the statement again");
  }
  const MutexLock lock(mutex_);
  looked_at_ = file;
  return connection;
}

}  // namespace sluice::catalog
