#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/result_table.h"

// The door to a database: everything that the rest of the house knows about one. PostgreSQL and
// SQLite stand behind it; nothing outside catalog/ knows which.
namespace sluice::catalog {

class DatasetSpec;
class ShardRange;
class TableLoader;

// Statistics of one column of a SELECT, from pg_stats, a sample, or (small tables) every row.
struct ColumnStatistics {
  bool exact = false;  // computed over every row
  double null_fraction = 0;
  double distinct = 0;     // estimated number of distinct values, NULL not counted
  bool has_range = false;  // numeric, boolean and timestamp columns
  double min = 0, max = 0, mean = 0, standard_deviation = 0;
  // Most common values, most frequent first, with their fraction of all rows; complete when
  // `all_values` is set.
  std::vector<std::pair<std::string, double>> common_values;
  bool all_values = false;
  double average_length = 0;  // bytes, text only
};

// What a table says of a column by itself: that no two of its rows have the same value.
enum class ColumnKey { kNone, kPrimary, kUnique };

struct SelectStatistics {
  int64_t rows = 0;  // estimated unless exact_rows
  bool exact_rows = false;
  std::vector<ColumnStatistics> columns;
  // The rows that were looked at (at most `sample_rows` of StatisticsOptions), for format
  // inference.
  std::vector<std::vector<Value>> sample;
};

struct StatisticsOptions {
  int64_t exact_below_rows = 100'000;  // at most so many rows: read them all
  int64_t sample_rows = 1'000;         // kept in SelectStatistics::sample
  int64_t common_values = 1'000;       // per column at most
};

// What a Dataset of this SELECT would look like; costs no scan and changes nothing.
struct CutEstimate {
  std::string method;  // "ctid ranges", "rowid ranges", "staged", "whole"
  int64_t estimated_rows = 0;
  int64_t shards = 1;
};

// A batch ends with the row that makes it this large, however few rows it has: a thousand rows with
// documents or pictures in them would not fit into memory.
inline constexpr size_t kBatchBytes = size_t{4} << 20;

// Reads one shard. Not thread-safe; belongs to one thread.
class RowStream {
 public:
  virtual ~RowStream() = default;
  // Fills `batch` with up to `max_rows` rows, or about kBatchBytes, in the shard's fixed order;
  // rows == 0 is the end. Texts stay valid until the next call.
  virtual Status Next(size_t max_rows, RowBatch* batch) = 0;
};

// Columns that are only passed through, and what for. None of their cells is ever refused.
struct CopiedColumns {
  enum class Purpose {
    kShow,   // to a person or a client: as a plain statement shows them
    kWrite,  // to a result table, which then holds the same values
  };
  std::vector<size_t> columns;  // indexes into the dataset's columns
  Purpose purpose = Purpose::kShow;
};

struct DatasetOptions {
  int64_t rows_per_shard = 10'000;
  // What for its readers will ask for CopiedColumns; nullopt: they will not.
  std::optional<CopiedColumns::Purpose> copies = std::nullopt;
  bool many_processes =
      false;  // other processes will read it: stage where a snapshot cannot be shared
  // Each shard holds rows from all over the dataset (ShardRange::pieces), so that the batches of
  // one shard are like the whole, in whatever order the table is stored.
  bool mixed = false;
};

// The type that a column has when it is shown: its own where that says all that the database does,
// else kText (dates, numerics).
DataType ShownType(const ColumnInfo& column);

// One connection that reads shards of one dataset, one after another. Not thread-safe.
class ShardReader {
 public:
  virtual ~ShardReader() = default;
  // Only the columns listed (indexes into the dataset's columns) are asked of the database; the
  // batches have exactly those, in that order, decoded to their types, and then the copied ones.
  // The stream must be gone before the next call.
  virtual Result<std::unique_ptr<RowStream>> Read(const ShardRange& shard,
                                                  const std::vector<size_t>& columns,
                                                  const CopiedColumns& copied) = 0;
  // From now on Read waits for so long for somebody else's lock at most (55P03, which says whose),
  // where it would wait until it is free.
  virtual void WaitForLocks(std::chrono::milliseconds /*most*/) {}
  Result<std::unique_ptr<RowStream>> Read(const ShardRange& shard,
                                          const std::vector<size_t>& columns) {
    return Read(shard, columns, {});
  }
};

// Keeps the snapshot (and the staging table) of a dataset alive; releases them when destroyed.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const DatasetSpec& spec() const = 0;
  // The connection that held the snapshot is gone, and with it what its readers read.
  virtual bool Lost() { return false; }
  // Rows of the snapshot, counted by the database.
  virtual Result<int64_t> CountRows() = 0;
};

// Writes a result table. Rows go to a staging table; Commit brings them into the result table in
// one transaction, so that others see the old rows or the new ones, never none; a writer that is
// destroyed without Commit leaves nothing behind.
// Thread-safe: several threads may write different parts.
class TableWriter {
 public:
  virtual ~TableWriter() = default;
  // `batch` has the columns of the schema the writer was made with.
  virtual Status Write(const RowBatch& batch) = 0;
  // `stop` ends it within a second, with nothing changed (57014).
  virtual Status Commit(std::stop_token stop) = 0;
  // After Commit: of the rows that were written, those that are in the table where it can tell; a
  // trigger of a table that was appended to may have kept some out.
  virtual std::optional<int64_t> rows_arrived() { return std::nullopt; }
};

// Receives the rows of a plain statement, in batches of at most about kBatchBytes. Cells are what
// the database shows: a column's type says how they arrive, but any cell may have a type of its
// own.
class RowReceiver {
 public:
  virtual ~RowReceiver() = default;
  virtual Status Header(const Schema& schema) = 0;  // once, before rows; not called without rows
  virtual Status Rows(const RowBatch& batch) = 0;
  // What the database says beside (NOTICE, WARNING), as a line for a person.
  virtual void Notice(const std::string& /*message*/) {}
};

// Where a session's own connection can be borrowed for a statement: a Unix socket at which whoever
// has the connection speaks PostgreSQL's protocol, and a secret that is good for once.
struct SessionLink {
  std::string host;  // "@name": an abstract socket
  std::string port;
  std::string token;
};

struct ExecuteResult {
  int64_t rows_affected = -1;  // -1: the statement does not count rows
  std::string tag;             // "INSERT 0 3", "CREATE TABLE" ...
};

// The user's data, on connections that are logged in as the user; models and jobs are Catalog's
// (catalog.h). Thread-safe: every call but Execute takes a connection of its own from a bounded
// pool.
class DataSource {
 public:
  virtual ~DataSource() = default;

  // "postgresql" or "sqlite".
  virtual std::string_view dialect() const = 0;
  // The URL it was opened with, without the password.
  virtual const std::string& url() const = 0;
  // A secret that another process needs beside the URL to open the same source ("" when none); it
  // travels only through inherited descriptors and Kubernetes Secrets.
  virtual std::string secret() const = 0;

  // Runs a statement as it is; all of them on one connection, one after another, so that BEGIN, SET
  // and temporary tables last until the next. `stop` cancels it within a second.
  virtual Result<ExecuteResult> Execute(std::string_view sql, RowReceiver* receiver,
                                        std::stop_token stop) = 0;

  // An extended statement begins. Other connections than the session's read and write for it: until
  // EndStatement they do so as the session would, with its role, search_path and all that it has
  // SET (PostgreSQL), and so do those of other processes that are given the DatasetSpec. What they
  // cannot do as the session would is refused, now or by Describe, with its name and a hint: an
  // open transaction (25001, 25P02), temporary tables, ATTACHed databases, some settings (0A000).
  // `statement`: its text. `stop` ends whatever runs or waits for the statement, within a second
  // (57014).
  virtual Status BeginStatement(std::string_view statement, std::stop_token stop);
  // The same where the session is somebody else's: its own connection says what it sees. What other
  // connections cannot see is read and written through it, so an open transaction and temporary
  // tables are not refused (25P02 where the transaction has failed). 0A000: not PostgreSQL.
  virtual Status BeginStatementIn(const SessionLink& session, std::string_view statement,
                                  std::stop_token stop);
  // What the statement that has begun needs of its session, for a source of another process; which
  // begins it by BeginStatementAs. Asked once it is known what the statement reads. 25001: the
  // session is inside a transaction; 0A000: only the session itself can run it, and why.
  using StatementSession = std::vector<std::pair<std::string, std::string>>;
  virtual Result<StatementSession> LeaveSession();
  virtual Status BeginStatementAs(const StatementSession& session, std::stop_token stop);
  // From now on `stop` does: the statement has become a job, which is cancelled by its number, too.
  // Between the two: what settings have in the session (BeginStatementIn); those that it does not
  // know are left out.
  virtual Result<std::vector<std::pair<std::string, std::string>>> SettingsOfSession(
      const std::vector<std::string>& names);
  virtual void HearStop(std::stop_token stop);
  // What the session lets the statement that was begun take (SET statement_timeout); 0: for ever.
  virtual std::chrono::milliseconds statement_timeout();
  // What the database has said meanwhile (NOTICE, WARNING), each a line for a person; bounded.
  virtual std::vector<std::string> TakeNotices();
  virtual void EndStatement();
  // 25001 or 25P02 while the session is inside a transaction.
  virtual Status CheckNoTransaction();

  // A name that was written without quotes, as the database reads it: PostgreSQL in lower case.
  virtual std::string Fold(std::string_view name) const = 0;

  // The columns of a SELECT, without running it. Errors carry the database's SQLSTATE and, where it
  // names a position, a span relative to `select`.
  virtual Result<Schema> Describe(std::string_view select) = 0;
  // Fills in what copies of the columns of a SELECT have to be declared with
  // (ColumnInfo::declaration), where Describe, whose answer `schema` is, leaves that open.
  virtual Status DescribeCopies(std::string_view select, Schema* schema);
  // Of each column of a SELECT, whether it is a key of the table that it comes from. A join may
  // have a key's value in many rows.
  virtual Result<std::vector<ColumnKey>> DescribeKeys(std::string_view select,
                                                      const Schema& schema);
  // Tables a SELECT reads from, through views, partitions and, as far as that can be known,
  // functions too; for `the result table is also the source`.
  virtual Result<std::vector<TableName>> SourceTables(std::string_view select) = 0;
  // The rows of a SELECT, as a part of the statement that has begun. Changes nothing.
  virtual Status Read(std::string_view select, RowReceiver* receiver);
  virtual Result<SelectStatistics> Statistics(std::string_view select, const Schema& schema,
                                              const StatisticsOptions& options) = 0;
  virtual Result<CutEstimate> EstimateCut(std::string_view select,
                                          const DatasetOptions& options) = 0;

  virtual Result<std::unique_ptr<Dataset>> OpenDataset(std::string_view select,
                                                       const DatasetOptions& options) = 0;
  // Keeps a dataset alive that another process has opened, from a connection of its own: under the
  // same rows, another name (spec().snapshot()), which lasts when the first one's goes. 72000: it
  // has gone. 0A000: not PostgreSQL.
  virtual Result<std::unique_ptr<Dataset>> HoldDataset(const DatasetSpec& spec);
  // A reader of a dataset that this or another process opened.
  virtual Result<std::unique_ptr<ShardReader>> OpenReader(const DatasetSpec& spec) = 0;

  // The table with its schema, as the database finds it, or nullopt if there is none.
  virtual Result<std::optional<TableName>> ResolveTable(const TableName& table) = 0;
  // What a writer would do with the table, which says now what OpenWriter and Commit would refuse:
  // 42P07 a table that must not be replaced unasked, 42809 no table, 42939 one of the catalog or
  // the database itself, 42703 and 42804 columns that do not fit, 42501 rights, 0A000 one that only
  // the session would see or not see; 55000 and 2BP01 what hangs on it. Changes nothing; may read
  // all rows of a table that is Sluice's.
  // `columns`: of the result; null when they are not known yet.
  virtual Result<ResultPlan> PlanResultTable(const ResultTable& table, const Schema* columns) = 0;
  // Refuses what PlanResultTable does, and Commit looks once more. PostgreSQL: the catalog's tables
  // are there (Catalog::MakeTables).
  virtual Result<std::unique_ptr<TableWriter>> OpenWriter(const ResultTable& table,
                                                          const Schema& schema) = 0;
  // Rows from outside, for a table of the user's own: a new one with these columns (42P07 where it
  // exists), or one that is there. Within the statement that has begun.
  virtual Result<std::unique_ptr<TableLoader>> OpenLoader(const TableName& table,
                                                          const Schema& columns, bool make);
  // Appends rows to an existing or new table right away (sample data, tests); not atomic.
  virtual Status AppendRows(const TableName& table, const Schema& schema,
                            const RowBatch& batch) = 0;

  // Removes what processes that are gone have left behind: copies of a select's rows (a table or a
  // file) that nobody owns any more. OpenDataset does it, too.
  virtual Status DropLeftovers() { return OkStatus(); }
};

// sqlite:PATH | postgresql://user[:password]@host:port/database. sqlite::memory: is a new, empty
// database that only this process can read, and that goes with the source. `secret` is the password
// when the URL has none; otherwise libpq's own ways (PGPASSWORD, ~/.pgpass) apply. Connects once,
// so that a wrong host or password is told now; messages never repeat the password. SQLite files
// are created.
// `stop` ends the waiting for a server (57014).
Result<std::unique_ptr<DataSource>> OpenDataSource(std::string_view url,
                                                   std::string_view secret = "",
                                                   std::stop_token stop = {});
// The same database, logged in as `role` in place of the URL's user, for one who has proved nothing
// yet: none of this process's own secrets is used, and a server that lets the role in without
// having asked for the password is refused (28000). Of PostgreSQL.
Result<std::unique_ptr<DataSource>> OpenDataSourceAs(std::string_view url, std::string_view role,
                                                     std::string_view password,
                                                     std::stop_token stop = {});

}  // namespace sluice::catalog
