#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "base/log.h"
#include "catalog/column_description.h"
#include "catalog/dataset.pb.h"
#include "catalog/postgres/postgres_cut_internal.h"
#include "catalog/postgres/postgres_database_internal.h"
#include "catalog/postgres/postgres_spooled_internal.h"
#include "catalog/row_ranges_internal.h"

namespace sluice::catalog {
namespace {

// Rows of a piece of a shard that is read ahead on a connection of its own: about a megabyte, which
// fits in the socket's buffers, so that the server continues while the previous piece is used.
constexpr int64_t kPieceRows = 8'192;

// The columns of a stream; the decoded ones come first.
struct ReadColumns {
  StreamColumns stream;
  bool copied = false;  // into a table: as text that PostgreSQL reads back as the same values
};

// A statement that the server runs for one range after another.
struct ReadStatement {
  std::string sql;   // of a ctid cut: its last {begin} and {end} stand for the bounds
  RowRanges ranges;  // of a ctid cut
};

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

  Status Begin() {
    texts_ = Texts::kAny;
    locked_ = false;
    planned_once_ = false;
    return SnapshotGone(connection_->Begin(BeginReading(spec_.snapshot())));
  }
  void WaitForLocks(std::chrono::milliseconds most) { lock_wait_ = most; }

  Result<std::unique_ptr<RowStream>> Open(const ReadStatement& statement,
                                          const ReadColumns& columns) {
    // An earlier stream that was abandoned or failed ended the transaction.
    if (connection_->TransactionFailed()) {
      connection_->Rollback();
      RETURN_IF_ERROR(Begin());
    }
    RETURN_IF_ERROR(LockTables());
    const Texts wanted = columns.copied           ? Texts::kPinned
                         : OnlyText(*connection_) ? Texts::kReadable
                                                  : Texts::kAny;
    if (texts_ < wanted) {
      RETURN_IF_ERROR(MakeTexts(wanted));
      texts_ = wanted;
    }
    return OpenRanges(statement, columns);
  }

  // Takes the locks of the select's plan, which last as long as the transaction. A lock that waits
  // behind another session's is never granted: that one waits for the dataset itself.
  Status LockTables() {
    if (locked_ || lock_wait_.count() == 0) {
      return OkStatus();
    }
    Status locked =
        connection_->Run(fmt::format("SET LOCAL lock_timeout = {}; EXPLAIN\n{}\n; SET LOCAL "
                                     "lock_timeout = 0",
                                     lock_wait_.count(), spec_.select()));
    if (locked.sqlstate() == "55P03") {
      connection_->Rollback();
      RETURN_IF_ERROR(Begin());
      return std::move(locked).Detail(LocksInTheWay(database_, spec_.holder()));
    }
    locked_ = locked.ok();
    return locked;
  }

 private:
  Result<std::unique_ptr<RowStream>> OpenRanges(const ReadStatement& statement,
                                                const ReadColumns& columns) {
    if (statement.ranges.empty()) {
      return OpenPostgresStream(*connection_, statement.sql, columns.stream);
    }
    if (statement.ranges.size() == 1 || OnlyText(*connection_)) {
      return ReadRanges(
          statement.ranges, [this, sql = statement.sql, columns](int64_t begin, int64_t end) {
            return OpenPostgresStream(*connection_, WithBounds(sql, TidText(begin), TidText(end)),
                                      columns.stream);
          });
    }
    if (!planned_once_) {  // not for each range, which would take longer than reading it
      RETURN_IF_ERROR(connection_->Run(std::string(kPlanOnce)));
      planned_once_ = true;
    }
    std::vector<std::vector<std::string>> runs;
    for (const auto& [begin, end] : statement.ranges) {
      runs.push_back({TidText(begin), TidText(end)});
    }
    return OpenPostgresRuns(*connection_, WithParameters(statement.sql), runs, columns.stream);
  }

  enum class Texts { kAny, kReadable, kPinned };

  // Texts produced by the select itself depend on the session's settings; a staging table's rows
  // were made with them.
  Status MakeTexts(Texts wanted) {
    if (spec_.staging_table().empty()) {
      RETURN_IF_ERROR(CheckReadableAsText(
          *connection_, wanted == Texts::kPinned
                            ? "columns that are copied into a table cannot be read exactly"
                            : "over a connection with TLS its rows cannot be read exactly"));
      if (wanted == Texts::kReadable) {
        return OkStatus();
      }
    }
    return connection_->Run(std::string(kPinnedText));
  }

  PostgresDatabase& database_;
  PostgresPool::Lease connection_;
  const DatasetSpec& spec_;
  std::chrono::milliseconds lock_wait_{0};  // 0: no limit
  Texts texts_ = Texts::kAny;
  bool locked_ = false;
  bool planned_once_ = false;  // of this transaction
};

// Statements one after another as one stream: each begins on one connection when reading of the
// previous one begins on the other.
class ReadAheadStream final : public RowStream {
 public:
  ReadAheadStream(SnapshotConnection& first, SnapshotConnection& second,
                  std::deque<ReadStatement> statements, ReadColumns columns)
      : free_(&first),
        busy_(&second),
        statements_(std::move(statements)),
        columns_(std::move(columns)) {}

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
      ASSIGN_OR_RETURN(ahead_, free_->Open(statements_.front(), columns_));
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
  std::deque<ReadStatement> statements_;
  const ReadColumns columns_;
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

  Status Prepare() override { return first_->LockTables(); }
  void WaitForLocks(std::chrono::milliseconds most) override {
    lock_wait_ = most;
    first_->WaitForLocks(most);
  }

  Result<std::unique_ptr<RowStream>> Read(const ShardRange& shard,
                                          const std::vector<size_t>& columns,
                                          const CopiedColumns& copied) override {
    std::string list;
    ASSIGN_OR_RETURN(const ReadColumns read, Columns(columns, copied, &list));
    const bool cut = spec_.cut() == DatasetSpec::CTID;
    const std::string sql = fmt::format("SELECT {} FROM (\n{}\n) AS s({})", list,
                                        cut ? spec_.shard_select() : spec_.select(),
                                        NumberedColumns(schema_.columns.size()));
    std::deque<ReadStatement> statements;
    for (RowRanges& ranges : Statements(shard)) {
      statements.push_back({sql, cut ? std::move(ranges) : RowRanges()});
    }
    if (statements.size() == 1) {
      return first_->Open(statements.front(), read);
    }
    auto stream = std::make_unique<ReadAheadStream>(*first_, *second_, std::move(statements), read);
    RETURN_IF_ERROR(stream->Start());
    return std::unique_ptr<RowStream>(std::move(stream));
  }

 private:
  // `list`: what the statement selects. A column that is decoded and copied is sent once if both
  // are made from the same text, since the server's output of cells is most of reading.
  Result<ReadColumns> Columns(const std::vector<size_t>& columns, const CopiedColumns& copied,
                              std::string* list) {
    std::vector<size_t> all = columns;
    all.insert(all.end(), copied.columns.begin(), copied.columns.end());
    ReadColumns read;
    read.stream.decoded = columns.size();
    read.copied = copied.purpose == CopiedColumns::Purpose::kWrite && !copied.columns.empty();
    ASSIGN_OR_RETURN(read.stream.schema, ChosenSchema(schema_, all));
    *list = ValuesOf(columns, schema_);
    size_t sent = columns.size();
    std::vector<bool> taken(columns.size());
    for (size_t i = 0; i < all.size(); ++i) {
      ColumnInfo& column = read.stream.schema.columns[i];
      if (i < columns.size()) {
        read.stream.sources.push_back(i);
        continue;
      }
      const auto twin = std::find(columns.begin(), columns.end(), all[i]);
      const auto at = static_cast<size_t>(twin - columns.begin());
      const bool binary = IsIn(copied.binary, column);
      const bool shared =
          !binary && twin != columns.end() && !taken[at] && HasOneText(column, read.copied);
      column.type = binary ? DataType::kBytes : read.copied ? DataType::kText : ShownType(column);
      if (shared) {
        taken[at] = true;
        read.stream.sources.push_back(at);
        continue;
      }
      read.stream.sources.push_back(sent++);
      const std::string name = fmt::format("c{}", all[i]);
      *list +=
          fmt::format("{}{}{}", list->empty() ? "" : ", ", binary ? BinaryForm(name, column) : name,
                      read.copied ? CastForCopy(column.database_type) : "");
    }
    constexpr size_t kMostSent = 1'664;  // MaxTupleAttributeNumber
    if (sent > kMostSent) {
      return Status(Code::kResourceExhausted,
                    fmt::format("the statement reads {} columns as features and passes {} on: {} "
                                "in all, of which PostgreSQL sends at most {}",
                                columns.size(), copied.columns.size(), sent, kMostSent))
          .SqlState("54011")
          .Hint("WITH predict.keep=[...] names those that are passed on");
    }
    return read;
  }

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
    RETURN_IF_ERROR(connection->LockTables());
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
