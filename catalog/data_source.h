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
#include "catalog/row_writer.h"

// The interface to a database: the only part of a database that other folders know. PostgreSQL and
// SQLite implement it; nothing outside catalog/ knows which one is used.
namespace sluice::catalog {

class DatasetSpec;
class ShardRange;
class TableLoader;

// Statistics of one column of a SELECT, from pg_stats, a sample, or (small tables) every row.
struct ColumnStatistics {
  bool exact = false;  // computed over every row
  double null_fraction = 0;
  double distinct = 0;  // estimated number of distinct values, NULL not counted
  // There may be as many: rare values are hardly ever sampled. At least `distinct`, where known.
  double distinct_at_most = 0;
  bool has_range = false;  // numeric, boolean and timestamp columns
  double min = 0, max = 0, mean = 0, standard_deviation = 0;
  // Most common values, most frequent first, with their fraction of all rows; complete when
  // `all_values` is set.
  std::vector<std::pair<std::string, double>> common_values;
  bool all_values = false;
  double average_length = 0;  // bytes, text only
};

// Whether a table guarantees that no two of its rows have the same value of a column.
enum class ColumnKey { kNone, kPrimary, kUnique };

struct SelectStatistics {
  int64_t rows = 0;  // estimated unless exact_rows
  bool exact_rows = false;
  std::vector<ColumnStatistics> columns;
  // The rows that were read (at most `sample_rows` of StatisticsOptions), for format inference.
  std::vector<std::vector<Value>> sample;
};

struct StatisticsOptions {
  int64_t exact_below_rows = 100'000;  // up to this many rows: read them all
  int64_t sample_rows = 1'000;         // kept in SelectStatistics::sample
  int64_t common_values = 1'000;       // per column at most
};

// The shards that a Dataset of this SELECT would have; costs no scan and changes nothing.
struct CutEstimate {
  std::string method;  // "ctid ranges", "rowid ranges", "staged", "whole"
  int64_t estimated_rows = 0;
  int64_t shards = 1;
};

// A batch ends with the row that makes it this large, however few rows it has: a thousand rows with
// documents or pictures would not fit into memory.
inline constexpr size_t kBatchBytes = size_t{4} << 20;

// Reads one shard. Not thread-safe; belongs to one thread.
class RowStream {
 public:
  virtual ~RowStream() = default;
  // Fills `batch` with up to `max_rows` rows, or about kBatchBytes, in the shard's fixed order;
  // rows == 0 is the end. Texts stay valid until the next call.
  virtual Status Next(size_t max_rows, RowBatch* batch) = 0;
  // How much of the time in Next so far was spent in the database or waiting for it; 0 for rows of
  // a file. SQLite, which works on the caller's thread: all of it.
  virtual double waited_seconds() const { return 0; }
};

// Columns that are only passed through, and their purpose. No value of theirs is ever refused.
struct CopiedColumns {
  enum class Purpose {
    kShow,   // to a person or a client: like a plain statement
    kWrite,  // to a result table, which then holds the same values
  };
  std::vector<size_t> columns;  // indices of the dataset's columns
  Purpose purpose = Purpose::kShow;
  // Those (names) that come as kBytes, in the binary form in which PostgreSQL sends them
  // (ColumnInfo::Wire).
  std::vector<std::string> binary = {};
};
bool IsIn(const std::vector<std::string>& names, const ColumnInfo& column);

struct DatasetOptions {
  int64_t rows_per_shard = 10'000;
  // The purpose for which readers will ask for CopiedColumns; nullopt: they will not.
  std::optional<CopiedColumns::Purpose> copies = std::nullopt;
  std::vector<std::string> binary_copies = {};  // CopiedColumns::binary
  size_t readers = 2;  // that may read it at once, other reads meanwhile included
  bool many_processes =
      false;  // other processes will read it: stage it if a snapshot cannot be shared
  // Each shard holds rows from all over the dataset (ShardRange::pieces), so that the batches of a
  // shard resemble the whole, in whatever order the table is stored.
  bool mixed = false;
};

// The type in which a column is shown: its own if that preserves the database's text, else kText
// (dates, numerics).
DataType ShownType(const ColumnInfo& column);

// One connection that reads shards of one dataset, one after another. Not thread-safe.
class ShardReader {
 public:
  virtual ~ShardReader() = default;
  // Only the listed columns (indices of the dataset's columns) are requested from the database; the
  // batches have exactly those, in that order, decoded to their types, followed by the copied ones.
  // The stream must be destroyed before the next call.
  virtual Result<std::unique_ptr<RowStream>> Read(const ShardRange& shard,
                                                  const std::vector<size_t>& columns,
                                                  const CopiedColumns& copied) = 0;
  // Makes the connection and takes the locks that Read needs, which later reads of the same
  // connection then need not wait for.
  virtual Status Prepare() { return Status(); }
  // From now on Read waits at most this long for another session's lock (55P03, which names its
  // holder); by default it waits until the lock is free.
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
  // The connection that held the snapshot is gone, and with it the snapshot.
  virtual bool Lost() { return false; }
  // Rows of the snapshot, counted by the database.
  virtual Result<int64_t> CountRows() = 0;
};

// Writes a result table. Rows go to a staging table; Commit moves them into the result table in one
// transaction, so that others see either the old rows or the new ones; a writer destroyed without
// Commit leaves nothing behind. Batches have the columns of the schema it was made with.
// Thread-safe: several threads may write different parts.
class TableWriter : public RowWriter {
 public:
  // `stop` ends it within a second, with nothing changed (57014).
  virtual Status Commit(std::stop_token stop) = 0;
  // After Commit: how many of the written rows are in the table, if it can tell; triggers of a
  // table that was appended to may have suppressed some.
  virtual std::optional<int64_t> rows_arrived() { return std::nullopt; }
};

// Receives the rows of a plain statement, in batches of at most about kBatchBytes. Cells are as the
// database shows them: a column's type says how they arrive, but any cell may have a type of its
// own.
class RowReceiver {
 public:
  virtual ~RowReceiver() = default;
  virtual Status Header(const Schema& schema) = 0;  // once, before rows; not called without rows
  virtual Status Rows(const RowBatch& batch) = 0;
  // A further message of the database (NOTICE, WARNING), as a line for a person.
  virtual void Notice(const std::string& /*message*/) {}
  // What COPY TO STDOUT sends, in pieces; and the next piece for COPY FROM STDIN, "" at the end.
  // By default errors (0A000).
  virtual Status Copied(std::string_view text);
  virtual Result<std::string> NextToCopy();
};

// Where a session's own connection can be borrowed for a statement: a Unix socket at which the
// holder of the connection speaks PostgreSQL's protocol, and a one-time secret.
struct SessionLink {
  std::string host;  // "@name": an abstract socket
  std::string port;
  std::string token;
};

struct ExecuteResult {
  int64_t rows_affected = -1;  // -1: the statement does not count rows
  std::string tag;             // "INSERT 0 3", "CREATE TABLE" ...
};

// The user's data, on connections that are logged in as the user; Catalog (catalog.h) has models
// and jobs. Thread-safe: every call but Execute takes a connection of its own from a bounded pool.
class DataSource {
 public:
  virtual ~DataSource() = default;

  // "postgresql" or "sqlite".
  virtual std::string_view dialect() const = 0;
  // The URL it was opened with, without the password.
  virtual const std::string& url() const = 0;
  // A secret that another process needs in addition to the URL to open the same source ("" if
  // none); it is passed on only through inherited descriptors and Kubernetes Secrets.
  virtual std::string secret() const = 0;

  // Runs a statement unchanged; all of them on one connection, one after another, so that BEGIN,
  // SET and temporary tables affect the following ones. `stop` cancels it within a second.
  virtual Result<ExecuteResult> Execute(std::string_view sql, RowReceiver* receiver,
                                        std::stop_token stop) = 0;

  // From now on Execute runs text of clients, with the rights of this process's user: what the
  // database itself does not forbid them is refused (42501): other files, extensions, PRAGMAs that
  // harm, changes of Sluice's own tables (SQLite; PostgreSQL has roles for that).
  virtual void GuardSession() {}

  // Begins an extended statement, which reads and writes on other connections than the session's.
  // Until EndStatement these act like the session, with its role, search_path and all settings
  // (PostgreSQL), and so do those of other processes that are given the DatasetSpec. State that
  // cannot be carried over is refused, now or by Describe, with its name and a hint: an open
  // transaction (25001, 25P02), temporary tables, ATTACHed databases, some settings (0A000).
  // `statement`: its text. `stop` ends everything that runs or waits for the statement, within a
  // second (57014).
  virtual Status BeginStatement(std::string_view statement, std::stop_token stop);
  // The same if the session belongs to another component: its state is read from its own
  // connection. What other connections cannot see is read and written through it, so an open
  // transaction and temporary tables are not refused (25P02 if the transaction has failed). So is
  // a select of few rows, by the database's estimate, if the statement `reads_once`: in this
  // process, from its first row to its last. 0A000: not PostgreSQL.
  // The values of `settings` in the session, without those that it does not know.
  using SettingValues = std::vector<std::pair<std::string, std::string>>;
  virtual Result<SettingValues> BeginStatementIn(const SessionLink& session,
                                                 std::string_view statement, bool reads_once,
                                                 const std::vector<std::string>& settings,
                                                 std::stop_token stop);
  // The session state that the current statement needs, for a source of another process, which
  // begins the statement by BeginStatementWith. To be called once it is known what the statement
  // reads. 25001: the session is inside a transaction; 0A000: only the session itself can run it,
  // with the reason.
  using StatementSession = std::vector<std::pair<std::string, std::string>>;
  virtual Result<StatementSession> ExportSession();
  virtual Status BeginStatementWith(const StatementSession& session, std::stop_token stop);
  // The role that the session's statements act as, which decides what they may do: its
  // current_user, by its present name, whatever SET ROLE, SET SESSION AUTHORIZATION or ALTER ROLE
  // ... SET role made it. "": the database has no roles. After BeginStatementIn: of that session.
  // 25P02 in a failed transaction.
  virtual Result<std::string> ActingRole(std::stop_token stop);
  // The same of a session that belongs to another component, in which no statement has begun.
  virtual Result<std::string> ActingRoleIn(const SessionLink& session, std::stop_token stop);
  // From now on `stop` ends the statement, which has become a job that can also be cancelled by its
  // number.
  virtual void HearStop(std::stop_token stop);
  // The time limit of the current statement: the session's statement_timeout, whether it, its role
  // or the database has set it; 0: none. Known after BeginStatement and ActingRole, and their
  // variants.
  virtual std::chrono::milliseconds statement_timeout();
  // The messages (NOTICE, WARNING) that the database has sent since, each a line for a person;
  // bounded.
  virtual std::vector<std::string> TakeNotices();
  virtual void EndStatement();
  // 25001 or 25P02 while the session is inside a transaction.
  virtual Status CheckNoTransaction();

  // An unquoted name as the database interprets it: PostgreSQL in lower case.
  virtual std::string Fold(std::string_view name) const = 0;
  // The most bytes of a name that the database keeps.
  virtual size_t most_name_bytes() const { return SIZE_MAX; }
  // The most columns of a table.
  virtual size_t most_columns() const { return SIZE_MAX; }

  // The columns of a SELECT, without running it. Errors carry the database's SQLSTATE and, where it
  // names a position, a span relative to `select`.
  virtual Result<Schema> Describe(std::string_view select) = 0;
  // Fills in ColumnInfo::declaration of the columns of a SELECT where Describe, whose answer
  // `schema` is, leaves it open.
  virtual Status DescribeCopies(std::string_view select, Schema* schema);
  // For each column of a SELECT, whether it is a key of its table. A join may repeat a key's value
  // in many rows.
  virtual Result<std::vector<ColumnKey>> DescribeKeys(std::string_view select,
                                                      const Schema& schema);
  // Tables that a SELECT reads, through views, partitions and, as far as that can be known,
  // functions; used to detect a result table that is also a source.
  virtual Result<std::vector<TableName>> SourceTables(std::string_view select) = 0;
  // Reads the rows of a SELECT as a part of the current statement. Changes nothing.
  virtual Status Read(std::string_view select, RowReceiver* receiver);
  virtual Result<SelectStatistics> Statistics(std::string_view select, const Schema& schema,
                                              const StatisticsOptions& options) = 0;
  virtual Result<CutEstimate> EstimateCut(std::string_view select,
                                          const DatasetOptions& options) = 0;

  virtual Result<std::unique_ptr<Dataset>> OpenDataset(std::string_view select,
                                                       const DatasetOptions& options) = 0;
  // Keeps a dataset that another process has opened alive, on a connection of its own: the same
  // rows under another snapshot name (spec().snapshot()), which remains valid when the first one
  // ends. 72000: the first one has ended. 0A000: not PostgreSQL.
  virtual Result<std::unique_ptr<Dataset>> HoldDataset(const DatasetSpec& spec);
  // A reader of a dataset that this or another process opened.
  virtual Result<std::unique_ptr<ShardReader>> OpenReader(const DatasetSpec& spec) = 0;

  // The table with its schema, as the database resolves the name, or nullopt if there is none.
  virtual Result<std::optional<TableName>> ResolveTable(const TableName& table) = 0;
  // What a writer would do with the table; returns now the errors that OpenWriter and Commit would
  // return: 42P07 a table that must not be replaced unless requested, 42809 not a table, 42939 a
  // table of the catalog or the database itself, 42703 and 42804 columns that do not fit, 42501
  // rights, 0A000 a table that only the session would see or not see; 55000 and 2BP01 dependent
  // objects. Changes nothing; may read all rows of a table that Sluice wrote.
  // `columns`: of the result; null if they are not known yet.
  virtual Result<ResultPlan> PlanResultTable(const ResultTable& table, const Schema* columns) = 0;
  // Refuses what PlanResultTable refuses; Commit checks once more. PostgreSQL: requires the
  // catalog's tables (Catalog::MakeTables).
  virtual Result<std::unique_ptr<TableWriter>> OpenWriter(const ResultTable& table,
                                                          const Schema& schema) = 0;
  // Loads rows from outside into a table of the user: a new one with these columns (42P07 if it
  // exists), or an existing one. Within the current statement.
  virtual Result<std::unique_ptr<TableLoader>> OpenLoader(const TableName& table,
                                                          const Schema& columns, bool make);
  // Appends rows to an existing or new table right away (sample data, tests); not atomic.
  virtual Status AppendRows(const TableName& table, const Schema& schema,
                            const RowBatch& batch) = 0;

  // Removes what ended processes have left behind: copies of a select's rows (a table or a file)
  // without an owner. OpenDataset does it, too.
  virtual Status DropLeftovers() { return OkStatus(); }
};

// sqlite:PATH | postgresql://user[:password]@host:port/database. sqlite::memory: is a new, empty
// database that only this process can read, and that is lost with the source. `secret` is the
// password when the URL has none; otherwise libpq looks for one (PGPASSWORD, ~/.pgpass). Connects
// once, so that a wrong host or password is reported now; messages never repeat the password.
// SQLite files are created.
// `stop` ends the wait for a server (57014).
Result<std::unique_ptr<DataSource>> OpenDataSource(std::string_view url,
                                                   std::string_view secret = "",
                                                   std::stop_token stop = {});
// The same database, logged in as `role` instead of the URL's user, for a client that has proved
// nothing yet: none of this process's own secrets is used, and a server that admits the role
// without a password is refused (28000). PostgreSQL only.
Result<std::unique_ptr<DataSource>> OpenDataSourceAs(std::string_view url, std::string_view role,
                                                     std::string_view password,
                                                     std::stop_token stop = {});

}  // namespace sluice::catalog
