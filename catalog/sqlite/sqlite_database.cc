#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "catalog/sqlite/sqlite_database_internal.h"
#include "catalog/sqlite/sqlite_result_table_internal.h"
#include "catalog/sqlite/sqlite_stage_internal.h"

namespace sluice::catalog {
namespace {

// Beginning a few transactions takes microseconds; if the database commits in between this often,
// we hold its write lock for that moment instead.
constexpr int kTriesWithoutLock = 5;
constexpr std::chrono::seconds kMaxReaderWait{30};
// SQLite writes the log back into the database at this length, unless somebody reads an older
// state: then the log grows, and nothing shortens its file but a checkpoint that asks for it.
constexpr std::uintmax_t kUsualLogBytes = uintmax_t{1000} * 4096;

// A transaction begins to see the database with its first read.
Status BeginRead(SqliteConnection& connection) {
  RETURN_IF_ERROR(connection.Run("BEGIN"));
  return connection.QueryInteger("SELECT count(*) FROM sqlite_schema").status();
}

Result<int64_t> DataVersion(SqliteConnection& connection) {
  return connection.QueryInteger("PRAGMA data_version");
}

// Escapes characters of a path that have a meaning in a URI.
std::string UriPath(std::string_view path) {
  std::string uri;
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      uri += fmt::format("%{:02x}", static_cast<unsigned>(c));
    } else {
      uri += c;
    }
  }
  return uri;
}

}  // namespace

Result<bool> SqliteSnapshot::TryBegin(std::vector<SqlitePool::Lease>* readers) {
  ASSIGN_OR_RETURN(version_, DataVersion(*watcher_));
  for (SqlitePool::Lease& reader : *readers) {
    RETURN_IF_ERROR(BeginRead(*reader));
  }
  ASSIGN_OR_RETURN(const int64_t now, DataVersion(*watcher_));
  if (now == version_) {
    return true;
  }
  for (SqlitePool::Lease& reader : *readers) {
    reader->EndTransaction();
  }
  return false;
}

Result<std::shared_ptr<SqliteSnapshot>> SqliteSnapshot::Open(SqlitePool& pool, SqlitePool& writers,
                                                             size_t first_readers,
                                                             std::stop_token stop) {
  ASSIGN_OR_RETURN(SqlitePool::Lease watcher, pool.Take(stop));
  std::shared_ptr<SqliteSnapshot> snapshot(
      new SqliteSnapshot(pool, std::move(watcher), std::move(stop)));
  std::vector<SqlitePool::Lease> readers;
  for (size_t i = 0; i < first_readers; ++i) {
    ASSIGN_OR_RETURN(SqlitePool::Lease reader, snapshot->NewReader());
    readers.push_back(std::move(reader));
  }
  MutexLock lock(snapshot->mutex_);
  bool begun = false;
  for (int attempt = 0; !begun && attempt < kTriesWithoutLock; ++attempt) {
    ASSIGN_OR_RETURN(begun, snapshot->TryBegin(&readers));
  }
  if (!begun) {
    ASSIGN_OR_RETURN(SqlitePool::Lease writer, writers.Take());
    RETURN_IF_ERROR(writer->Run("BEGIN IMMEDIATE"));
    const Result<bool> alone = snapshot->TryBegin(&readers);
    writer->EndTransaction();
    RETURN_IF_ERROR(alone.status());
    if (!*alone) {
      return Internal("the SQLite database changed while its write lock was held");
    }
  }
  snapshot->free_ = std::move(readers);
  return snapshot;
}

Result<SqlitePool::Lease> SqliteSnapshot::NewReader() {
  ASSIGN_OR_RETURN(SqlitePool::Lease reader, pool_.Take(stop_));
  reader->HearStop(stop_);
  return reader;
}

Result<SqlitePool::Lease> SqliteSnapshot::TryAdd() {
  ASSIGN_OR_RETURN(SqlitePool::Lease reader, NewReader());
  RETURN_IF_ERROR(BeginRead(*reader));
  const Result<int64_t> now = DataVersion(*watcher_);
  if (now.ok() && *now == version_) {
    return reader;
  }
  reader->EndTransaction();
  if (!now.ok()) {
    return now.status();
  }
  return SqlitePool::Lease();
}

Result<SqlitePool::Lease> SqliteSnapshot::Take() {
  const auto deadline = std::chrono::steady_clock::now() + kMaxReaderWait;
  MutexLock lock(mutex_);
  while (true) {
    if (closed_) {
      return Status(Code::kFailedPrecondition, "the dataset was closed");
    }
    if (!free_.empty()) {
      SqlitePool::Lease reader = std::move(free_.back());
      free_.pop_back();
      return reader;
    }
    ASSIGN_OR_RETURN(SqlitePool::Lease added, TryAdd());
    if (added) {
      return added;
    }
    const auto changed = [this]() REQUIRES(mutex_) { return closed_ || !free_.empty(); };
    if (!returned_.wait_until(lock.native(), stop_, deadline, changed)) {
      if (stop_.stop_requested()) {
        return Cancelled("the statement was cancelled");
      }
      return ResourceExhausted(
          "all readers of the dataset are in use, and the database has changed since it was "
          "opened, so that no other can see the same rows");
    }
  }
}

void SqliteSnapshot::GiveBack(SqlitePool::Lease reader) {
  {
    MutexLock lock(mutex_);
    if (!closed_) {
      free_.push_back(std::move(reader));
      returned_.notify_one();
      return;
    }
  }
  reader->EndTransaction();
}

void SqliteSnapshot::Close() {
  std::vector<SqlitePool::Lease> readers;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    readers = std::move(free_);
    watcher_ = SqlitePool::Lease();
  }
  for (SqlitePool::Lease& reader : readers) {
    reader->EndTransaction();
  }
  returned_.notify_all();
}

SqliteDatabase::SqliteDatabase(SqliteLocation location)
    : location_(std::move(location)),
      writers_(
          [this](const std::stop_token&) { return Connect(SqliteConnection::Access::kReadWrite); }),
      // An in-memory database is never read under a snapshot, and memdb has no read-only handles.
      readers_([this](const std::stop_token&) {
        return Connect(location_.in_memory() ? SqliteConnection::Access::kReadWrite
                                             : SqliteConnection::Access::kReadOnly);
      }) {}

Result<std::unique_ptr<SqliteConnection>> SqliteDatabase::Connect(SqliteConnection::Access access) {
  // First: nothing may be created where a file was deleted.
  RETURN_IF_ERROR(place_.CheckIfOpened());
  ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> connection,
                   SqliteConnection::Open(location_, access));
  RETURN_IF_ERROR(place_.Check());
  return connection;
}

Result<std::unique_ptr<SqlSession>> SqliteDatabase::OpenAnew(const std::stop_token& stop) {
  if (location_.in_memory()) {  // no other process can reach it
    ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> again,
                     Connect(SqliteConnection::Access::kReadWrite));
    return std::unique_ptr<SqlSession>(std::move(again));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> connection, place_.OpenAnew(stop));
  return std::unique_ptr<SqlSession>(std::move(connection));
}

void SqliteDatabase::HearStop(std::stop_token stop) {
  MutexLock lock(mutex_);
  stop_ = std::move(stop);
}

std::stop_token SqliteDatabase::stop() {
  MutexLock lock(mutex_);
  return stop_;
}

Result<SqlitePool::Lease> SqliteDatabase::TakeForStatement(const std::stop_token& stop) {
  ASSIGN_OR_RETURN(SqlitePool::Lease connection, writers_.Take(stop));
  connection->HearStop(stop);
  bool first = false;
  {
    const MutexLock lock(mutex_);
    first = !std::exchange(asked_for_log_, true);
  }
  if (first && !location_.in_memory()) {
    RETURN_IF_ERROR(connection->UseWriteAheadLog());
    const Status dropped = DropLeftoversOn(*connection);
    if (!dropped.ok()) {
      log::Debug("what is left of ended statements stays: {}", dropped.ToString());
    }
  }
  connection->SeeNewTables();
  return connection;
}

Status SqliteDatabase::DropLeftovers() {
  if (location_.in_memory()) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(SqlitePool::Lease connection, writers_.Take());
  return DropLeftoversOn(*connection);
}

Status SqliteDatabase::DropLeftoversOn(SqliteConnection& connection) const {
  RemoveAbandonedStages(location_);
  connection.WaitForLocks(std::chrono::milliseconds(0));  // the next one tries again
  Status dropped = DropAbandonedStaging(connection, "main");
  std::error_code error;
  const auto bytes = std::filesystem::file_size(location_.path + "-wal", error);
  if (dropped.ok() && !error && bytes > kUsualLogBytes) {
    dropped = connection.Run("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  connection.WaitForLocks(SqliteConnection::kPatience);
  return dropped;
}

std::string SqliteDatabase::AddSnapshot(std::shared_ptr<SqliteSnapshot> snapshot) {
  MutexLock lock(mutex_);
  std::string name = fmt::format("in-process:{}", next_snapshot_++);
  snapshots_.emplace(name, std::move(snapshot));
  return name;
}

std::shared_ptr<SqliteSnapshot> SqliteDatabase::FindSnapshot(const std::string& name) {
  MutexLock lock(mutex_);
  const auto found = snapshots_.find(name);
  return found == snapshots_.end() ? nullptr : found->second;
}

void SqliteDatabase::RemoveSnapshot(const std::string& name) {
  MutexLock lock(mutex_);
  snapshots_.erase(name);
}

SqliteLocation LocateSqlite(std::string_view path) {
  if (path == ":memory:") {
    static std::atomic<int64_t> next{1};
    return {fmt::format("file:/sluice-{}?vfs=memdb", next++), ""};
  }
  return {fmt::format("file:{}", UriPath(path)), std::string(path)};
}

SqliteLocation LocateBeside(const SqliteLocation& location, std::string_view suffix) {
  if (location.in_memory()) {
    const std::string_view name(location.uri.data(), location.uri.find('?'));
    return {fmt::format("{}.{}?vfs=memdb", name, suffix), ""};
  }
  return LocateSqlite(fmt::format("{}.{}", location.path, suffix));
}

SqliteLocation Immutable(const SqliteLocation& location) {
  return location.in_memory() ? location
                              : SqliteLocation{location.uri + "?immutable=1", location.path};
}

}  // namespace sluice::catalog
