#include "base/letter_case.h"
#include "catalog/sqlite/sqlite_result_table_internal.h"

#include <fmt/core.h>

#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/process.h"
#include "catalog/row_ranges_internal.h"
#include "catalog/sqlite/sqlite_insert_internal.h"

namespace sluice::catalog {
namespace {

constexpr std::string_view kStagingPrefix = "sluice_new_";
constexpr std::string_view kMark = "/* sluice ";
constexpr std::string_view kMarkEnd = " */";

// The content of the comment in a definition.
struct Mark {
  std::string token;  // unique
  ProcessIdentity process;
};

bool IsThisProcess(const ProcessIdentity& process) {
  const ProcessIdentity own = CurrentProcess();
  return process.place == own.place && process.pid == own.pid && process.started == own.started;
}

// The names of the staging tables that this process writes; several data sources of a process may
// have the same file open. Thread-safe.
class TablesInUse {
 public:
  static TablesInUse& OfThisProcess() {
    static TablesInUse tables;
    return tables;
  }
  void Add(const std::string& name) {
    const MutexLock lock(mutex_);
    names_.insert(name);
  }
  void Remove(const std::string& name) {
    const MutexLock lock(mutex_);
    names_.erase(name);
  }
  bool Has(const std::string& name) {
    const MutexLock lock(mutex_);
    return names_.contains(name);
  }

 private:
  Mutex mutex_;
  std::set<std::string> names_ GUARDED_BY(mutex_);
};

std::optional<Mark> FindMark(std::string_view definition) {
  const size_t begin = definition.rfind(kMark);
  const size_t end = begin == std::string_view::npos ? begin : definition.find(kMarkEnd, begin);
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  const size_t text = begin + kMark.size();
  std::istringstream words{std::string(definition.substr(text, end - text))};
  Mark mark;
  words >> mark.token >> mark.process.pid >> mark.process.started;
  std::getline(words >> std::ws, mark.process.place);
  return mark.token.empty() || words.bad() ? std::nullopt : std::optional<Mark>(std::move(mark));
}

// The mark is copied together with the definition: by a dump, by `.schema`, by the procedure of
// SQLite's own manual for altering tables. So the record also identifies the rows that were
// written.
struct Record {
  std::string columns;
  std::string rows;
};

Result<std::optional<Record>> FindRecord(SqliteConnection& connection, const TableName& table,
                                         const std::string& identity) {
  std::optional<Record> found;
  ASSIGN_OR_RETURN(const int64_t recorded,
                   connection.QueryInteger("SELECT count(*) FROM main.sqlite_schema"
                                           " WHERE name = 'sluice_result_tables'"));
  if (recorded == 0) {
    return found;
  }
  ASSIGN_OR_RETURN(const SqlRows records,
                   connection.Query("SELECT identity, columns FROM main.sluice_result_tables"
                                    " WHERE lower(table_name) = lower($1)",
                                    {table.name}));
  for (const std::vector<Value>& record : records) {
    const std::string text = TextCell(record[0]);
    const size_t space = text.find(' ');
    if (text.substr(0, space) == identity) {
      found = {TextCell(record[1]), space == std::string::npos ? "" : text.substr(space + 1)};
    }
  }
  return found;
}

// The object of that name, without the catalog's record of it.
Result<SqliteTarget> LookAt(SqliteConnection& connection, const TableName& name) {
  SqliteTarget target = {{name.schema.empty() ? "main" : LowerAscii(name.schema), name.name},
                         std::nullopt};
  RETURN_IF_ERROR(CheckResultName(target.name, Dialect::kSqlite));
  ASSIGN_OR_RETURN(
      const SqlRows schemas,
      connection.Query("SELECT name FROM pragma_database_list WHERE lower(name) = lower($1)",
                       {target.name.schema}));
  if (schemas.empty()) {
    return InvalidArgument(fmt::format("there is no database '{}' here", name.schema))
        .SqlState("3F000")
        .Hint("name a table of the main database");
  }
  ASSIGN_OR_RETURN(
      const SqlRows rows,
      connection.Query(fmt::format("SELECT s.name, s.type, coalesce(s.sql, ''),"
                                   " coalesce((SELECT l.type FROM pragma_table_list l WHERE"
                                   "  l.schema = $2 AND l.name = s.name), s.type)"
                                   " FROM {}.sqlite_schema s"
                                   " WHERE lower(s.name) = lower($1) AND s.type <> 'trigger'",
                                   QuoteName(target.name.schema)),
                       {target.name.name, target.name.schema}));
  if (rows.empty()) {
    return target;
  }
  FoundTable found;
  target.name.name = TextCell(rows[0][0]);
  found.name = target.name;
  found.kind = TextCell(rows[0][3]) == "virtual" || TextCell(rows[0][3]) == "shadow"
                   ? TextCell(rows[0][3]) + " table"
                   : TextCell(rows[0][1]);
  if (found.kind != "index") {
    ASSIGN_OR_RETURN(found.columns, SqliteColumns(connection, found.name));
  }
  if (const std::optional<Mark> mark = FindMark(TextCell(rows[0][2]))) {
    found.identity = mark->token;
  }
  target.found = std::move(found);
  return target;
}

}  // namespace

Result<SqliteTarget> FindSqliteTarget(SqliteConnection& connection, const TableName& name) {
  ASSIGN_OR_RETURN(SqliteTarget target, LookAt(connection, name));
  if (!target.found || target.found->identity.empty()) {
    return target;
  }
  FoundTable& found = *target.found;
  ASSIGN_OR_RETURN(const std::optional<Record> record,
                   FindRecord(connection, found.name, found.identity));
  if (record) {
    found.recorded_identity = found.identity;
    found.recorded_columns = record->columns;
    found.recorded_rows = record->rows;
    if (found.HasOurShape()) {
      ASSIGN_OR_RETURN(found.rows, DigestSqliteRows(connection, found.name));
    }
  }
  return target;
}

Result<FoundTable> FindWrittenSqliteTable(SqliteConnection& connection, const TableName& name) {
  ASSIGN_OR_RETURN(SqliteTarget target, LookAt(connection, name));
  if (!target.found) {
    return Internal(fmt::format("table {} is gone after it was written", name.Text()));
  }
  ASSIGN_OR_RETURN(target.found->rows, DigestSqliteRows(connection, target.found->name));
  return *std::move(target.found);
}

Result<std::vector<SqliteColumn>> ListSqliteColumns(SqliteConnection& connection,
                                                    const TableName& table) {
  ASSIGN_OR_RETURN(const SqlRows rows,
                   connection.Query("SELECT name, type, hidden FROM pragma_table_xinfo($1, $2)",
                                    {table.name, table.schema}));
  std::vector<SqliteColumn> columns;
  for (const std::vector<Value>& row : rows) {
    columns.push_back({TextCell(row[0]), TextCell(row[1]), IntegerCell(row[2]) != 0});
  }
  return columns;
}

Result<std::string> SqliteColumns(SqliteConnection& connection, const TableName& table) {
  ASSIGN_OR_RETURN(const std::vector<SqliteColumn> columns, ListSqliteColumns(connection, table));
  std::string text;
  for (const SqliteColumn& column : columns) {
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", TableName{"", column.name}.Text(),
                        column.type, column.generated ? " generated" : "");
  }
  return text;
}

SqliteStaging::SqliteStaging(const TableName& beside)
    : name_{beside.schema, std::string(kStagingPrefix) + RandomSuffix()} {
  TablesInUse::OfThisProcess().Add(name_.name);
}

SqliteStaging::~SqliteStaging() {
  TablesInUse::OfThisProcess().Remove(name_.name);
}

std::string SqliteStaging::Definition(const Schema& schema) const {
  std::string definition = SqliteTableDefinition(name_.Quoted(), schema);
  const ProcessIdentity process = CurrentProcess();
  definition.insert(definition.size() - 1,
                    fmt::format(" {}{} {} {} {}{}", kMark, name_.name.substr(kStagingPrefix.size()),
                                process.pid, process.started, process.place, kMarkEnd));
  return definition;
}

Status DropAbandonedStaging(SqliteConnection& connection, const std::string& in_schema) {
  ASSIGN_OR_RETURN(const SqlRows rows,
                   connection.Query(fmt::format("SELECT name, sql FROM {}.sqlite_schema"
                                                " WHERE type = 'table'"
                                                " AND substr(name, 1, length($1)) = $1",
                                                QuoteName(in_schema)),
                                    {std::string(kStagingPrefix)}));
  for (const std::vector<Value>& row : rows) {
    const std::string name = TextCell(row[0]);
    const std::optional<Mark> mark = FindMark(TextCell(row[1]));
    if (mark && name == std::string(kStagingPrefix) + mark->token &&
        (FindProcess(mark->process) == ProcessState::kGone ||
         (IsThisProcess(mark->process) && !TablesInUse::OfThisProcess().Has(name)))) {
      // Its writer may have ended well since it was listed: then it has another name.
      RETURN_IF_ERROR(
          connection.Run("DROP TABLE IF EXISTS " + TableName{in_schema, name}.Quoted()));
    }
  }
  return OkStatus();
}

}  // namespace sluice::catalog
