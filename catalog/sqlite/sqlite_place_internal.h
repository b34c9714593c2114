#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "catalog/sqlite/sqlite_connection_internal.h"

namespace sluice::catalog {

// Whether the path of a SQLite database still leads to the file that was opened, and whether that
// is still a database. SQLite does not notice when an open file is deleted, replaced, truncated or
// overwritten: later writes are lost with it. Thread-safe.
class SqlitePlace {
 public:
  explicit SqlitePlace(SqliteLocation location) : location_(std::move(location)) {}

  // The first call records the file. 58P01: it is gone; 58030: another file is there, or it is
  // empty. Costs microseconds.
  Status Check() EXCLUDES(mutex_);
  Status CheckIfOpened() EXCLUDES(mutex_);  // OK before the first Check
  // A connection that sees what a process would see that opens the database now, after a look at
  // the file's header (58030) and, where that takes no more than a moment and the file has changed
  // since the last look, at each of its pages (XX001).
  Result<std::unique_ptr<SqliteConnection>> OpenAnew(std::stop_token stop) EXCLUDES(mutex_);

 private:
  struct File {
    uint64_t device = 0;
    uint64_t inode = 0;
    int64_t bytes = 0;
    int64_t changed_nanos = 0;  // commits to a write-ahead log leave it as it is
    bool operator==(const File&) const = default;
  };
  Result<File> Look() const;
  Status Remember(const File& file, bool* shrunk) EXCLUDES(mutex_);

  const SqliteLocation location_;
  Mutex mutex_;
  std::optional<File> opened_ GUARDED_BY(mutex_);
  std::optional<File> looked_at_ GUARDED_BY(mutex_);  // when all of its pages were whole
};

}  // namespace sluice::catalog
