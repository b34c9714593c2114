#include "catalog/sqlite/sqlite_stage_internal.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/log.h"
#include "catalog/row_ranges_internal.h"
#include "catalog/sqlite/sqlite_cut_internal.h"

namespace sluice::catalog {
namespace {

// In the header of every stage ("SlSt"); a file without it is not ours, whatever its name.
constexpr int32_t kApplicationId = 0x536c5374;
constexpr size_t kApplicationIdOffset = 68;  // https://www.sqlite.org/fileformat.html
constexpr std::string_view kFileHeader = "SQLite format 3";
// Others, such as the database's own log, need room, too: 2 % of the disk, at most 1 GiB.
constexpr int64_t kKeptFreeShare = 50;
constexpr int64_t kMaxKeptFree = int64_t{1} << 30;

// For rows that are numbered from 1.
std::vector<ShardRange> CutNumbered(int64_t rows, int64_t rows_per_shard) {
  std::vector<int64_t> keys;
  for (int64_t key = 1; key <= rows; key += rows_per_shard) {
    keys.push_back(key);
  }
  return CutAtKeys(keys, rows + 1, rows, rows_per_shard);
}

std::filesystem::path FolderOf(const SqliteLocation& database) {
  const std::filesystem::path path(database.path);
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

Status SystemError(const std::string& what, int error) {
  return Unavailable(fmt::format("{}: {}", what, std::strerror(error))).SqlState("58030");
}

std::string Mebibytes(int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

// Whether the file is a stage whose owner's lock is free.
bool IsAbandonedStage(int file) {
  std::array<char, kApplicationIdOffset + sizeof(kApplicationId)> header{};
  if (flock(file, LOCK_EX | LOCK_NB) != 0 ||
      pread(file, header.data(), header.size(), 0) != std::ssize(header) ||
      std::string_view(header.data(), kFileHeader.size()) != kFileHeader) {
    return false;
  }
  uint32_t id = 0;
  for (size_t i = kApplicationIdOffset; i < header.size(); ++i) {
    id = (id << 8U) | static_cast<unsigned char>(header[i]);
  }
  return id == static_cast<uint32_t>(kApplicationId);
}

}  // namespace

void RemoveAbandonedStages(const SqliteLocation& database) {
  const std::string prefix = std::filesystem::path(database.path).filename().string() + ".stage-";
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(FolderOf(database), error)) {
    if (!entry.path().filename().string().starts_with(prefix)) {
      continue;
    }
    const int file = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) {
      continue;
    }
    if (IsAbandonedStage(file) && unlink(entry.path().c_str()) != 0) {
      log::Warn("cannot remove staging file path={} error=\"{}\"", entry.path().string(),
                std::strerror(errno));
    }
    close(file);
  }
}

Result<StageRoom> FindStageRoom(const SqliteLocation& database) {
  if (database.in_memory()) {
    return StageRoom{"memory", std::numeric_limits<int64_t>::max(), 0};
  }
  StageRoom room;
  room.folder = FolderOf(database).string();
  struct statvfs disk {};
  if (statvfs(room.folder.c_str(), &disk) != 0) {
    return SystemError(fmt::format("cannot see how much room {} has", room.folder), errno);
  }
  const auto unit = static_cast<int64_t>(disk.f_frsize);
  room.free_bytes = static_cast<int64_t>(disk.f_bavail) * unit;
  room.kept_free_bytes =
      std::min(static_cast<int64_t>(disk.f_blocks) * unit / kKeptFreeShare, kMaxKeptFree);
  return room;
}

Result<std::unique_ptr<SqliteStage>> SqliteStage::Create(const SqliteLocation& database,
                                                         std::string_view select, size_t columns,
                                                         int64_t rows_per_shard,
                                                         const StageRoom& room,
                                                         std::stop_token stop) {
  const std::string suffix = fmt::format("stage-{}-{}", getpid(), RandomSuffix());
  std::unique_ptr<SqliteStage> stage(new SqliteStage(LocateBeside(database, suffix), suffix));
  if (!database.in_memory()) {
    RemoveAbandonedStages(database);
    RETURN_IF_ERROR(stage->MakeFile(database));
  }
  RETURN_IF_ERROR(stage->Fill(database, select, columns, rows_per_shard, room, std::move(stop)));
  return stage;
}

// The file gets the database's access rights before anything is in it.
Status SqliteStage::MakeFile(const SqliteLocation& database) {
  struct stat original {};
  if (stat(database.path.c_str(), &original) != 0) {
    return SystemError("cannot see the rights of " + database.path, errno);
  }
  file_ = open(location_.path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
               S_IRUSR | S_IWUSR);
  if (file_ < 0) {
    return SystemError("cannot create " + location_.path, errno);
  }
  constexpr mode_t kGroup = S_IRGRP | S_IWGRP;
  mode_t mode = original.st_mode & (S_IRUSR | S_IWUSR | kGroup | S_IROTH | S_IWOTH);
  const uid_t owner = geteuid() == 0 ? original.st_uid : static_cast<uid_t>(-1);
  if (fchown(file_, owner, original.st_gid) != 0) {
    mode &= ~kGroup;  // it keeps this process's group, which is another one
  }
  if (fchmod(file_, mode | S_IRUSR | S_IWUSR) != 0) {
    return SystemError("cannot set the rights of " + location_.path, errno);
  }
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    log::Debug("no lock on path={} error=\"{}\"", location_.path, std::strerror(errno));
  }
  return OkStatus();
}

Status SqliteStage::Copy(SqliteConnection& connection, std::string_view select, size_t columns,
                         int64_t rows_per_shard) {
  RETURN_IF_ERROR(connection.Run("BEGIN"));  // the cut and the rows are of the same state
  ASSIGN_OR_RETURN(const std::optional<RowidCut> cut, FindRowidCut(connection, select, columns));
  const std::string rows = cut.has_value()
                               ? WithBounds(cut->shard_select, fmt::format("{}", INT64_MIN),
                                            fmt::format("{}", INT64_MAX))
                               : std::string(select);
  RETURN_IF_ERROR(connection.Run(fmt::format("INSERT INTO stage.{}\n{}", kTable, rows)));
  rows_ = sqlite3_changes64(connection.handle());
  if (!cut.has_value()) {
    shards_ = CutNumbered(rows_, rows_per_shard);
    return connection.Run("COMMIT");
  }
  ASSIGN_OR_RETURN(shards_, CutRowids(connection, *cut, rows_per_shard));
  int64_t next = 1;
  for (ShardRange& shard : shards_) {
    const std::string counted = WithBounds(cut->shard_select, fmt::format("{}", shard.begin()),
                                           fmt::format("{}", shard.end()));
    ASSIGN_OR_RETURN(const int64_t count, connection.QueryInteger(fmt::format(
                                              "SELECT count(*) FROM (\n{}\n)", counted)));
    shard.set_begin(next);
    next += count;
    shard.set_end(next);
  }
  if (next != rows_ + 1) {
    return Internal(
        fmt::format("the shards of a select have {} rows, and it has {}", next - 1, rows_));
  }
  return connection.Run("COMMIT");
}

Status SqliteStage::Fill(const SqliteLocation& database, std::string_view select, size_t columns,
                         int64_t rows_per_shard, const StageRoom& room, std::stop_token stop) {
  ASSIGN_OR_RETURN(auto connection,
                   SqliteConnection::Open(database, SqliteConnection::Access::kReadWrite));
  connection->HearStop(std::move(stop));
  RETURN_IF_ERROR(
      connection
          ->Query(fmt::format("ATTACH {} AS stage", QuoteText(location_.uri, Dialect::kSqlite)), {})
          .status());
  // The copy is useless after a crash.
  RETURN_IF_ERROR(connection->Run("PRAGMA stage.journal_mode = OFF"));
  RETURN_IF_ERROR(connection->Run("PRAGMA stage.synchronous = OFF"));
  RETURN_IF_ERROR(connection->Run(fmt::format("PRAGMA stage.application_id = {}", kApplicationId)));
  RETURN_IF_ERROR(
      connection->Run(fmt::format("CREATE TABLE stage.{} ({})", kTable, NumberedColumns(columns))));
  ASSIGN_OR_RETURN(const int64_t page_bytes, connection->QueryInteger("PRAGMA stage.page_size"));
  const int64_t pages =
      std::clamp<int64_t>((room.free_bytes - room.kept_free_bytes) / page_bytes, 1, 4'294'967'294);
  RETURN_IF_ERROR(connection->Run(fmt::format("PRAGMA stage.max_page_count = {}", pages)));
  Status filled = Copy(*connection, select, columns, rows_per_shard);
  if (filled.sqlstate() == "53100") {
    return ResourceExhausted(
               fmt::format("the rows of the select do not fit into {}: {} were free there, of "
                           "which {} are left to others",
                           room.folder, Mebibytes(room.free_bytes),
                           Mebibytes(room.kept_free_bytes)))
        .SqlState("53100")
        .Hint("make room there, or select fewer rows or columns");
  }
  RETURN_IF_ERROR(filled);
  if (location_.in_memory()) {
    keeper_ = std::move(connection);
  }
  return OkStatus();
}

SqliteStage::~SqliteStage() {
  keeper_.reset();
  if (file_ < 0) {
    return;
  }
  if (unlink(location_.path.c_str()) != 0) {
    log::Warn("cannot remove staging file path={} error=\"{}\"", location_.path,
              std::strerror(errno));
  }
  close(file_);
}

}  // namespace sluice::catalog
