#include <fmt/core.h>

#include <algorithm>

#include "base/letter_case.h"
#include "catalog/sqlite/sqlite_cut_internal.h"

namespace sluice::catalog {
namespace {

constexpr int64_t kStrata = 64;
constexpr int64_t kRowsPerProbe = 64;
// A probe takes some 10 microseconds, so even a table with very irregular numbers takes a tenth of
// a second.
constexpr int kMaxProbes = 4'096;
// Each probe parses the condition's constants anew: 100,000 of them take longer than the rows. With
// a longer condition there are fewer probes.
constexpr size_t kShortCondition = 8 << 10;
// If two probes of a part of the table differ by less, the part counts as even.
constexpr double kEvenWithin = 4;

// True if the SELECT calls an aggregate or window function, or one whose result may differ between
// calls.
Result<bool> CallsUnsteadyFunction(SqliteConnection& connection, std::string_view select) {
  const std::vector<std::string> called = CalledFunctions(select, Dialect::kSqlite);
  if (called.empty()) {
    return false;
  }
  std::string names;
  for (const std::string& name : called) {
    names += (names.empty() ? "" : ", ") + QuoteText(name, Dialect::kSqlite);
    if (name.starts_with("current_")) {
      return true;
    }
  }
  // 0x800: deterministic. Date functions are, except with 'now'.
  ASSIGN_OR_RETURN(const int64_t unsteady,
                   connection.QueryInteger(fmt::format(
                       "SELECT count(*) FROM pragma_function_list WHERE name IN ({}) AND"
                       " (type <> 's' OR flags & 0x800 = 0)",
                       names)));
  return unsteady > 0 || LowerAscii(select).find("'now'") != std::string::npos;
}

// True if SQLite reads exactly one table, by a rowid range.
Result<bool> IsRowidSearch(SqliteConnection& connection, const std::string& sql) {
  const Result<SqlRows> plan = connection.Query("EXPLAIN QUERY PLAN " + sql, {});
  if (!plan.ok()) {
    // A view, or a table without rowids.
    return plan.status().sqlstate().starts_with("42") ? Result<bool>(false)
                                                      : Result<bool>(plan.status());
  }
  if (plan->size() != 1) {
    return false;
  }
  const std::string detail = TextCell((*plan)[0].at(3));
  return detail.starts_with("SEARCH ") &&
         detail.ends_with(" USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)");
}

// The fraction of `places` that a condition of this length allows; at least a few.
int64_t PlacesFor(const SingleTableSelect& shape, int64_t places) {
  constexpr int64_t kFewest = 4;
  const auto times = static_cast<int64_t>(shape.condition.size() / kShortCondition) + 1;
  return std::max(kFewest, places / times);
}

double Distance(int64_t from, int64_t to) {
  return static_cast<double>(to) - static_cast<double>(from);
}

// Estimates the number of rows in successive ranges by reading the first rows after a few rowids.
// Rowids may be dense, or sparse, or both in one table: a range whose beginning and middle differ
// is halved.
class DensityProbe {
 public:
  DensityProbe(SqliteConnection& connection, const SingleTableSelect& shape, int64_t first)
      : connection_(connection),
        sql_(fmt::format("SELECT count(*), min(r), max(r), total(kept) FROM (SELECT {0} AS r,"
                         " ({1}\n) IS TRUE AS kept FROM {2}{3} NOT INDEXED WHERE {0} >= $1"
                         " ORDER BY {0} LIMIT {4})",
                         shape.Qualified("rowid"), shape.condition.empty() ? "1" : shape.condition,
                         shape.table, shape.alias.empty() ? "" : " AS " + shape.alias,
                         kRowsPerProbe)),
        most_probes_(PlacesFor(shape, kMaxProbes)) {
    density_.Start(first);
  }

  const RowDensity& density() const { return density_; }

  Status Estimate(int64_t begin, int64_t end) {
    ASSIGN_OR_RETURN(const Look front, LookAt(begin));
    if (front.seen == 0 || front.first >= end) {
      density_.Add(end, 0);
      return OkStatus();
    }
    if (front.seen < kRowsPerProbe || front.last >= end) {  // every row of the range was read
      density_.Add(end, front.kept * std::min(1.0, Distance(begin, end) /
                                                       (Distance(begin, front.last) + 1)));
      return OkStatus();
    }
    const int64_t middle = begin + static_cast<int64_t>(Distance(begin, end) / 2);
    ASSIGN_OR_RETURN(const Look half, LookAt(middle));
    const double front_density = Density(front, begin);
    const double half_density = half.seen > 0 ? Density(half, middle) : 0;
    const bool even =
        front_density <= kEvenWithin * half_density && half_density <= kEvenWithin * front_density;
    if (even || probes_ >= most_probes_ || middle <= begin) {
      const double kept = (front.kept + half.kept) / static_cast<double>(front.seen + half.seen);
      density_.Add(end, (front_density + half_density) / 2 * kept * Distance(begin, end));
      return OkStatus();
    }
    RETURN_IF_ERROR(Estimate(begin, middle));
    return Estimate(middle, end);
  }

 private:
  struct Look {
    int64_t seen = 0, first = 0, last = 0;
    double kept = 0;  // of the rows read, those that meet the condition
  };

  static double Density(const Look& look, int64_t from) {
    return static_cast<double>(look.seen) / (Distance(from, look.last) + 1);
  }

  Result<Look> LookAt(int64_t rowid) {
    ++probes_;
    if (statement_ == nullptr) {
      ASSIGN_OR_RETURN(statement_, connection_.Prepare(sql_));
    }
    sqlite3_stmt* statement = statement_.get();
    sqlite3_reset(statement);
    sqlite3_bind_int64(statement, sqlite3_bind_parameter_index(statement, "$1"), rowid);
    if (sqlite3_step(statement) != SQLITE_ROW) {
      return connection_.LastError(sql_);
    }
    Look look{sqlite3_column_int64(statement, 0), sqlite3_column_int64(statement, 1),
              sqlite3_column_int64(statement, 2), sqlite3_column_double(statement, 3)};
    if (sqlite3_step(statement) != SQLITE_DONE) {
      return connection_.LastError(sql_);
    }
    return look;
  }

  SqliteConnection& connection_;
  const std::string sql_;
  const int64_t most_probes_;
  SqliteStatement statement_;  // prepared by the first probe
  RowDensity density_;
  int64_t probes_ = 0;
};

}  // namespace

Result<std::optional<RowidCut>> FindRowidCut(SqliteConnection& connection, std::string_view select,
                                             size_t columns) {
  std::optional<SingleTableSelect> shape = FindSingleTable(select, Dialect::kSqlite);
  if (!shape.has_value()) {
    return std::optional<RowidCut>();
  }
  ASSIGN_OR_RETURN(const bool unsteady, CallsUnsteadyFunction(connection, select));
  if (unsteady) {
    return std::optional<RowidCut>();
  }
  const std::string rowid = shape->Qualified("rowid");
  RowidCut cut;
  // BETWEEN: of two comparisons, SQLite would start or end its search at the condition's bound on
  // the same key, if it has one, and read everything from there. NOT INDEXED: an index on a column
  // of the condition must not be preferred to the rowid range.
  cut.shard_select =
      shape->With(fmt::format("{} BETWEEN {{begin}} AND {{end}} - 1", rowid), "NOT INDEXED");
  cut.shape = std::move(*shape);
  const std::string probe =
      fmt::format("WITH s({}) AS (\n{}\n) SELECT * FROM s", NumberedColumns(columns),
                  WithBounds(cut.shard_select, "0", "1"));
  ASSIGN_OR_RETURN(const bool searches, IsRowidSearch(connection, probe));
  if (!searches) {
    return std::optional<RowidCut>();
  }
  // Ranges are half-open, and there is no number after the last one.
  ASSIGN_OR_RETURN(const int64_t last,
                   connection.QueryInteger("SELECT max(rowid) FROM " + cut.shape.table));
  if (last == INT64_MAX) {
    return std::optional<RowidCut>();
  }
  return std::optional<RowidCut>(std::move(cut));
}

Result<std::optional<RowDensity>> ProbeRowids(SqliteConnection& connection, const RowidCut& cut) {
  // Two statements: SQLite finds one end of a table at once, but not both in one.
  std::optional<int64_t> ends[2];
  for (const auto& [place, function] : {std::pair(0, "min"), std::pair(1, "max")}) {
    ASSIGN_OR_RETURN(
        const SqlRows rows,
        connection.Query(fmt::format("SELECT {}(rowid) FROM {}", function, cut.shape.table), {}));
    if (!IsNull(rows.at(0).at(0))) {
      ends[place] = IntegerCell(rows[0][0]);
    }
  }
  if (!ends[0].has_value() || !ends[1].has_value()) {
    return std::optional<RowDensity>();
  }
  const int64_t first = *ends[0];
  const int64_t end = *ends[1] + 1;  // FindRowidCut has checked that there is such a number
  DensityProbe probe(connection, cut.shape, first);
  const int64_t strata = PlacesFor(cut.shape, kStrata);
  // As doubles: the span of rowids may exceed 64 bits.
  const double width =
      (static_cast<double>(end) - static_cast<double>(first)) / static_cast<double>(strata);
  int64_t begin = first;
  for (int64_t i = 1; i <= strata; ++i) {
    const int64_t next =
        i == strata
            ? end
            : static_cast<int64_t>(static_cast<double>(first) + width * static_cast<double>(i));
    if (next > begin) {
      RETURN_IF_ERROR(probe.Estimate(begin, next));
      begin = next;
    }
  }
  return std::optional<RowDensity>(probe.density());
}

Result<std::vector<ShardRange>> CutRowids(SqliteConnection& connection, const RowidCut& cut,
                                          int64_t rows_per_shard) {
  ASSIGN_OR_RETURN(const std::optional<RowDensity> density, ProbeRowids(connection, cut));
  if (!density.has_value()) {
    return std::vector<ShardRange>(1);
  }
  const int64_t first = density->first_key();
  const int64_t end = density->last_key();
  const double span = static_cast<double>(end) - static_cast<double>(first);
  if (span > static_cast<double>(kExactCutRows) && density->rows() > kExactCutRows) {
    return CutEvenly(*density, rows_per_shard);
  }
  const std::string rows_in_order = fmt::format(
      "SELECT {0} FROM {1}{2} NOT INDEXED{3} ORDER BY {0}", cut.shape.Qualified("rowid"),
      cut.shape.table, cut.shape.alias.empty() ? "" : " AS " + cut.shape.alias,
      cut.shape.condition.empty() ? "" : fmt::format(" WHERE {}\n", cut.shape.condition));
  ASSIGN_OR_RETURN(const SqliteStatement statement, connection.Prepare(rows_in_order));
  std::vector<int64_t> keys;
  int64_t rows = 0;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement.get())) == SQLITE_ROW) {
    if (rows % rows_per_shard == 0) {
      keys.push_back(sqlite3_column_int64(statement.get(), 0));
    }
    ++rows;
  }
  if (code != SQLITE_DONE) {
    return connection.LastError(rows_in_order);
  }
  if (!keys.empty()) {
    keys.front() = first;
  }
  return CutAtKeys(keys, end, rows, rows_per_shard);
}

}  // namespace sluice::catalog
