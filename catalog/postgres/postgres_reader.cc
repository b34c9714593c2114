#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "base/log.h"
#include "catalog/column_description.h"
#include "catalog/dataset.pb.h"
#include "catalog/postgres/postgres_cut_internal.h"
#include "catalog/postgres/postgres_database_internal.h"
#include "catalog/postgres/postgres_lender_internal.h"
#include "catalog/postgres/postgres_shard_select_internal.h"
#include "catalog/postgres/postgres_spooled_internal.h"
#include "catalog/row_ranges_internal.h"
#include "catalog/sql/sqlstate.h"

namespace sluice::catalog {
namespace {

// Rows of a piece of a shard that is read ahead on a connection of its own: about a megabyte, which
// fits in the socket's buffers, so that the server continues while the previous piece is used.
constexpr int64_t kPieceRows = 8'192;

// Who keeps other sessions from reading what the session `holder` reads: "session 7 (psql, role x)
// waits for AccessExclusiveLock on t: ALTER TABLE t ..."; "" if no session does any more.
std::string LocksInTheWay(PostgresDatabase& database, int64_t holder) {
  Result<PostgresPool::Lease> connection = database.pool().Take();
  if (!connection.ok()) {
    return "";
  }
  const auto found =
      (*connection)
          ->Ask(
              "SELECT pg_catalog.format('session %s (%s, role %s) %s %s on %s: %s', a.pid,"
              " CASE WHEN a.application_name OPERATOR(pg_catalog.=) '' THEN 'without a name'"
              " ELSE a.application_name END,"
              " a.usename, CASE WHEN l.granted THEN 'has' ELSE 'waits for' END, l.mode,"
              " l.relation::pg_catalog.regclass, pg_catalog.left(pg_catalog.regexp_replace("
              "a.query, '\\s+', ' ', 'g'), 100))"
              " FROM pg_catalog.pg_locks AS l JOIN pg_catalog.pg_stat_activity AS a"
              " ON a.pid OPERATOR(pg_catalog.=) l.pid"
              " JOIN pg_catalog.pg_locks AS h ON h.relation OPERATOR(pg_catalog.=) l.relation"
              " AND h.database OPERATOR(pg_catalog.=) l.database"
              " WHERE l.locktype OPERATOR(pg_catalog.=) 'relation'"
              " AND l.mode OPERATOR(pg_catalog.=) 'AccessExclusiveLock'"
              " AND h.locktype OPERATOR(pg_catalog.=) 'relation'"
              " AND h.granted AND h.pid::pg_catalog.int8 OPERATOR(pg_catalog.=) $1"
              " ORDER BY l.granted DESC, a.xact_start LIMIT 3",
              std::vector<SqlParameter>{holder});
  std::string who;
  for (int i = 0; found.ok() && i < PQntuples(found->get()); ++i) {
    who += fmt::format("{}{}", who.empty() ? "" : "; ", PostgresText(found->get(), i, 0));
  }
  return who;
}

// A connection inside a transaction on the dataset's snapshot.
class SnapshotConnection {
 public:
  SnapshotConnection(PostgresDatabase& database, PostgresPool::Lease connection,
                     const DatasetSpec& spec)
      : database_(database), connection_(std::move(connection)), spec_(spec) {}
  ~SnapshotConnection() { connection_->Rollback(); }
  SnapshotConnection(const SnapshotConnection&) = delete;
  SnapshotConnection& operator=(const SnapshotConnection&) = delete;

  PostgresConnection& connection() { return *connection_; }

  Status Begin() {
    texts_ = CellTexts::kAny;
    locked_ = false;
    planned_once_ = false;
    return SnapshotGone(connection_->Begin(BeginReading(spec_.snapshot())));
  }
  void WaitForLocks(std::chrono::milliseconds most) { lock_wait_ = most; }

  Result<std::unique_ptr<RowStream>> Open(const RowRanges& ranges, const ShardSelect& select) {
    // An earlier stream that was abandoned or failed ended the transaction.
    if (connection_->TransactionFailed()) {
      connection_->Rollback();
      RETURN_IF_ERROR(Begin());
    }
    RETURN_IF_ERROR(LockTables());
    const CellTexts wanted = TextsOf(*connection_, select);
    if (texts_ < wanted) {
      RETURN_IF_ERROR(MakeTexts(*connection_, spec_, wanted));
      texts_ = wanted;
    }
    return OpenRanges(ranges, select);
  }

  // Takes the locks of the select's plan, which last as long as the transaction. A lock that waits
  // behind another session's is never granted: that one waits for the dataset itself.
  Status LockTables() {
    if (lock_wait_.count() == 0) {
      return OkStatus();
    }
    Status locked = LockTablesWithin(lock_wait_);
    return IsLocked(locked) ? std::move(locked).Detail(LocksInTheWay(database_, spec_.holder()))
                            : locked;
  }
  // The same where the dataset's lender reads instead (55P03).
  Status LockTablesAtOnce() { return LockTablesWithin(std::chrono::milliseconds(1)); }

 private:
  Status LockTablesWithin(std::chrono::milliseconds most) {
    if (connection_->TransactionFailed()) {
      connection_->Rollback();
      RETURN_IF_ERROR(Begin());
    }
    if (locked_) {
      return OkStatus();
    }
    const Status locked =
        connection_->Run(fmt::format("SET LOCAL lock_timeout = {}; EXPLAIN\n{}\n; SET LOCAL "
                                     "lock_timeout = 0",
                                     most.count(), spec_.select()));
    if (IsLocked(locked)) {
      connection_->Rollback();
      RETURN_IF_ERROR(Begin());
    }
    locked_ = locked.ok();
    return locked;
  }

  Result<std::unique_ptr<RowStream>> OpenRanges(const RowRanges& ranges,
                                                const ShardSelect& select) {
    if (ranges.empty()) {
      return OpenPostgresStream(*connection_, select.sql, select.columns);
    }
    if (ranges.size() == 1 || OnlyText(*connection_)) {
      return ReadRanges(ranges, [this, select](int64_t begin, int64_t end) {
        return OpenPostgresStream(
            *connection_, WithBounds(select.sql, TidText(begin), TidText(end)), select.columns);
      });
    }
    if (!planned_once_) {  // not for each range, which would take longer than reading it
      RETURN_IF_ERROR(connection_->Run(std::string(kPlanOnce)));
      planned_once_ = true;
    }
    std::vector<std::vector<std::string>> runs;
    for (const auto& [begin, end] : ranges) {
      runs.push_back({TidText(begin), TidText(end)});
    }
    return OpenPostgresRuns(*connection_, WithParameters(select.sql), runs, select.columns);
  }

  PostgresDatabase& database_;
  PostgresPool::Lease connection_;
  const DatasetSpec& spec_;
  std::chrono::milliseconds lock_wait_{0};  // 0: no limit
  CellTexts texts_ = CellTexts::kAny;
  bool locked_ = false;
  bool planned_once_ = false;  // of this transaction
};

// Statements one after another as one stream: each begins on one connection when reading of the
// previous one begins on the other.
class ReadAheadStream final : public RowStream {
 public:
  ReadAheadStream(SnapshotConnection& first, SnapshotConnection& second,
                  std::deque<RowRanges> statements, ShardSelect select)
      : free_(&first),
        busy_(&second),
        statements_(std::move(statements)),
        select_(std::move(select)) {}

  // From here on two statements run.
  Status Start() {
    RETURN_IF_ERROR(OpenNext());
    return Advance();
  }

  Status Next(size_t max_rows, RowBatch* batch) override {
    for (;;) {
      RETURN_IF_ERROR(now_->Next(max_rows, batch));
      if (batch->rows > 0 || ahead_ == nullptr) {
        return OkStatus();
      }
      RETURN_IF_ERROR(Advance());
    }
  }
  double waited_seconds() const override { return waited_before_ + now_->waited_seconds(); }

 private:
  Status OpenNext() {
    if (!statements_.empty()) {
      ASSIGN_OR_RETURN(ahead_, free_->Open(statements_.front(), select_));
      statements_.pop_front();
      std::swap(free_, busy_);
    }
    return OkStatus();
  }
  Status Advance() {
    waited_before_ += now_ == nullptr ? 0 : now_->waited_seconds();
    now_ = std::move(ahead_);
    return OpenNext();
  }

  SnapshotConnection* free_;  // where the next statement begins
  SnapshotConnection* busy_;
  std::deque<RowRanges> statements_;
  const ShardSelect select_;
  std::unique_ptr<RowStream> now_;
  std::unique_ptr<RowStream> ahead_;
  double waited_before_ = 0;  // for the streams before now_
};

class PostgresShardReader final : public ShardReader {
 public:
  PostgresShardReader(PostgresDatabase& database, DatasetSpec spec)
      : database_(database), spec_(std::move(spec)), schema_(SchemaOf(spec_)) {}

  Status Begin() {
    ASSIGN_OR_RETURN(first_, Connect());
    return OkStatus();
  }

  Status Prepare() override {
    const bool lent =
        IsLocked(spec_.lender().empty() ? OkStatus() : first_->LockTablesAtOnce()) && IsLent(spec_);
    return lent ? OkStatus() : first_->LockTables();
  }
  void WaitForLocks(std::chrono::milliseconds most) override {
    lock_wait_ = most;
    first_->WaitForLocks(most);
  }

  Result<std::unique_ptr<RowStream>> Read(const ShardRange& shard,
                                          const std::vector<size_t>& columns,
                                          const CopiedColumns& copied) override {
    ASSIGN_OR_RETURN(const ShardSelect select, MakeShardSelect(spec_, schema_, columns, copied));
    if (!spec_.lender().empty()) {
      Status locked = first_->LockTablesAtOnce();
      if (IsLocked(locked)) {
        auto lent =
            OpenLentStream(first_->connection(), spec_, shard, columns, copied, select.columns);
        if (lent.ok()) {
          return lent;
        }
        log::Debug("nobody lends the snapshot: {}", lent.status().message());
      } else if (!locked.ok()) {
        return locked;
      }
    }
    std::deque<RowRanges> statements;
    for (RowRanges& ranges : Statements(shard)) {
      statements.push_back(spec_.cut() == DatasetSpec::CTID ? std::move(ranges) : RowRanges());
    }
    if (statements.size() == 1) {
      return first_->Open(statements.front(), select);
    }
    auto stream =
        std::make_unique<ReadAheadStream>(*first_, *second_, std::move(statements), select);
    RETURN_IF_ERROR(stream->Start());
    return std::unique_ptr<RowStream>(std::move(stream));
  }

 private:
  Result<std::unique_ptr<SnapshotConnection>> Connect() {
    ASSIGN_OR_RETURN(PostgresPool::Lease lease, database_.TakeFor(spec_));
    auto connection = std::make_unique<SnapshotConnection>(database_, std::move(lease), spec_);
    RETURN_IF_ERROR(connection->Begin());
    connection->WaitForLocks(lock_wait_);
    return connection;
  }

  // The ranges of each statement that reads a shard. Those of a mixed shard are short, so that one
  // statement reads several, one after another.
  std::vector<RowRanges> Statements(const ShardRange& shard) {
    std::vector<RowRanges> statements;
    if (shard.pieces().empty()) {
      for (const auto& range : Pieces(shard)) {
        statements.push_back({range});
      }
      return statements;
    }
    const bool ahead = spec_.read_ahead() && HasSecond();
    int64_t rows = 0;
    for (const ShardPiece& piece : shard.pieces()) {
      if (statements.empty() || (ahead && rows >= kPieceRows)) {
        statements.emplace_back();
        rows = 0;
      }
      statements.back().emplace_back(piece.begin(), piece.end());
      rows += piece.estimated_rows();
    }
    return statements;
  }

  // The ranges in which a shard is read: several if a second connection can read ahead.
  std::vector<std::pair<int64_t, int64_t>> Pieces(const ShardRange& shard) {
    const int64_t blocks = (shard.end() - shard.begin()) / kTidsPerBlock;
    const int64_t pieces = std::min(shard.estimated_rows() / kPieceRows, blocks);
    // The last shard of a table is unbounded.
    const bool open_end = shard.end() >= kEndOfTable;
    if (!spec_.read_ahead() || spec_.cut() != DatasetSpec::CTID || open_end || pieces < 2 ||
        !HasSecond()) {
      return {{shard.begin(), shard.end()}};
    }
    std::vector<std::pair<int64_t, int64_t>> ranges;
    int64_t begin = shard.begin();
    for (int64_t piece = 1; piece <= pieces; ++piece) {
      const int64_t end =
          piece == pieces ? shard.end() : shard.begin() + blocks * piece / pieces * kTidsPerBlock;
      ranges.emplace_back(begin, end);
      begin = end;
    }
    return ranges;
  }

  // One is used if the server has no connection left, or another session's lock is in the way.
  bool HasSecond() {
    if (second_ == nullptr && !refused_) {
      const Status connected = ConnectSecond();
      refused_ = !connected.ok();
      if (refused_) {
        log::Debug("reading without a second connection error=\"{}\"", connected.message());
      }
    }
    return second_ != nullptr;
  }

  Status ConnectSecond() {
    ASSIGN_OR_RETURN(auto connection, Connect());
    RETURN_IF_ERROR(spec_.lender().empty() ? connection->LockTables()
                                           : connection->LockTablesAtOnce());
    second_ = std::move(connection);
    return OkStatus();
  }

  PostgresDatabase& database_;
  const DatasetSpec spec_;
  const Schema schema_;
  std::chrono::milliseconds lock_wait_{0};
  std::unique_ptr<SnapshotConnection> first_;
  std::unique_ptr<SnapshotConnection> second_;  // from the first shard for which it is worthwhile
  bool refused_ = false;
};

}  // namespace

Status SnapshotGone(Status status) {
  // 22023 and 42704: errors of SET TRANSACTION SNAPSHOT when the snapshot's owner has ended.
  if (status.sqlstate() == "22023" || status.sqlstate() == "42704") {
    return Status(Code::kFailedPrecondition,
                  "the dataset's snapshot is gone: the connection that held it has ended")
        .SqlState("72000")
        .Detail(status.message());
  }
  return status;
}

Result<std::unique_ptr<ShardReader>> OpenPostgresReader(PostgresDatabase& database,
                                                        const DatasetSpec& spec) {
  if (!spec.spool().empty()) {
    return OpenSpooledReader(spec);
  }
  auto reader = std::make_unique<PostgresShardReader>(database, spec);
  RETURN_IF_ERROR(reader->Begin());
  return std::unique_ptr<ShardReader>(std::move(reader));
}

}  // namespace sluice::catalog
