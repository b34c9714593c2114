#include <fmt/core.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "catalog/postgres/postgres_cut_internal.h"
#include "catalog/postgres/postgres_database_internal.h"
#include "catalog/postgres/postgres_explain_internal.h"
#include "catalog/sql/value_expression.h"

namespace sluice::catalog {
namespace {

// A table that seems smaller than this part of a shard is one shard; otherwise its rows are
// counted.
constexpr double kOneShardShare = 0.25;
// Enough for a rough number of rows per block.
constexpr int64_t kProbedBlocks = 16;

// Rolls back the transaction, if any.
class ReadScope {
 public:
  explicit ReadScope(PostgresConnection& connection) : connection_(connection) {}
  ~ReadScope() { connection_.Rollback(); }
  ReadScope(const ReadScope&) = delete;
  ReadScope& operator=(const ReadScope&) = delete;

 private:
  PostgresConnection& connection_;
};

std::string_view Member(const rapidjson::Value& plan, const char* name) {
  const auto member = plan.FindMember(name);
  if (member == plan.MemberEnd() || !member->value.IsString()) {
    return {};
  }
  return {member->value.GetString(), member->value.GetStringLength()};
}

double PlanRows(const rapidjson::Document& document) {
  const rapidjson::Value& plan = document[0]["Plan"];
  const auto member = plan.FindMember("Plan Rows");
  return member != plan.MemberEnd() && member->value.IsNumber() ? member->value.GetDouble() : 0;
}

// Functions whose result may differ between calls or transactions.
Result<bool> CallsUnsteadyFunction(PostgresConnection& connection, std::string_view select) {
  std::string names;
  for (const std::string& name : CalledFunctions(select, Dialect::kPostgres)) {
    if (name == "now" || name.starts_with("current_date") || name.starts_with("current_time") ||
        name.starts_with("localtime") || name.ends_with("_timestamp")) {
      return true;
    }
    names += (names.empty() ? "" : ", ") + QuoteText(name, Dialect::kPostgres);
  }
  if (names.empty()) {
    return false;
  }
  ASSIGN_OR_RETURN(
      const PostgresResult result,
      connection.Ask(fmt::format("SELECT pg_catalog.count(*) FROM pg_catalog.pg_proc AS p"
                                 " WHERE p.provolatile OPERATOR(pg_catalog.=) 'v' AND"
                                 " p.proname OPERATOR(pg_catalog.=)"
                                 " ANY (ARRAY[{}]::pg_catalog.name[])",
                                 names)));
  return PostgresInteger(result.get(), 0, 0) > 0;
}

struct TableSize {
  int64_t oid = 0;
  int64_t blocks = 0;
};

// The ordinary table (or materialised view) of that name; nullopt for other objects.
Result<std::optional<TableSize>> FindHeapTable(PostgresConnection& connection,
                                               const std::string& table) {
  ASSIGN_OR_RETURN(
      const PostgresResult result,
      connection.Ask("SELECT c.oid, pg_catalog.pg_relation_size(c.oid) OPERATOR(pg_catalog./)"
                     " pg_catalog.current_setting('block_size')::pg_catalog.int8"
                     " FROM pg_catalog.pg_class AS c WHERE c.oid OPERATOR(pg_catalog.=)"
                     " pg_catalog.to_regclass($1) AND c.relkind OPERATOR(pg_catalog.=)"
                     " ANY ('{r,m}'::pg_catalog.\"char\"[])",
                     {table}));
  if (PQntuples(result.get()) == 0) {
    return std::optional<TableSize>();
  }
  return std::optional<TableSize>(
      TableSize{PostgresInteger(result.get(), 0, 0), PostgresInteger(result.get(), 0, 1)});
}

// nullopt if the server cannot answer the SELECT for a range of blocks by reading those blocks
// only.
Result<std::optional<TidCut>> FindTidCut(PostgresConnection& connection, std::string_view select,
                                         size_t columns) {
  std::optional<SingleTableSelect> shape = FindSingleTable(select, Dialect::kPostgres);
  if (!shape.has_value()) {
    return std::optional<TidCut>();
  }
  ASSIGN_OR_RETURN(const std::optional<TableSize> table, FindHeapTable(connection, shape->table));
  if (!table.has_value()) {
    return std::optional<TidCut>();
  }
  const std::string ctid = shape->Qualified("ctid");
  TidCut cut;
  cut.shard_select =
      shape->With(fmt::format("{0} OPERATOR(pg_catalog.>=) '{{begin}}'::pg_catalog.tid AND"
                              " {0} OPERATOR(pg_catalog.<) '{{end}}'::pg_catalog.tid",
                              ctid));
  cut.shape = std::move(*shape);
  cut.table = table->oid;
  cut.blocks = table->blocks;
  cut.columns = columns;
  const auto plan = ExplainPostgresSelect(
      connection,
      SelectAllColumns(WithBounds(cut.shard_select, TidText(0), TidText(kTidsPerBlock)), columns));
  if (!plan.ok()) {
    // We composed this text; errors in the user's own text are reported by Describe.
    return plan.status().sqlstate().starts_with("42") ? Result<std::optional<TidCut>>(std::nullopt)
                                                      : plan.status();
  }
  const rapidjson::Value& top = (*plan)[0]["Plan"];
  if (Member(top, "Node Type") != "Tid Range Scan" || top.HasMember("Plans")) {
    return std::optional<TidCut>();
  }
  return std::optional<TidCut>(std::move(cut));
}

int64_t ParseTid(std::string_view text) {
  int64_t block = 0;
  int64_t offset = 0;
  const auto parsed = std::from_chars(text.data() + 1, text.data() + text.size(), block);
  std::from_chars(parsed.ptr + 1, text.data() + text.size(), offset);
  return block * kTidsPerBlock + offset;
}

void CollectTables(const rapidjson::Value& plan, std::vector<TableName>* tables) {
  const std::string_view name = Member(plan, "Relation Name");
  if (!name.empty()) {
    tables->push_back({std::string(Member(plan, "Schema")), std::string(name)});
  }
  const auto children = plan.FindMember("Plans");
  if (children != plan.MemberEnd() && children->value.IsArray()) {
    for (const rapidjson::Value& child : children->value.GetArray()) {
      CollectTables(child, tables);
    }
  }
}

}  // namespace

std::string TidText(int64_t key) {
  return fmt::format("({},{})", key / kTidsPerBlock, key % kTidsPerBlock);
}

RowDensity TidCut::Density() const {
  RowDensity density;
  density.Start(0);
  density.Add(std::max<int64_t>(blocks, 1) * kTidsPerBlock, rows);
  return density;
}

std::string SelectColumns(std::string_view rows, size_t all, const std::vector<size_t>& columns) {
  return fmt::format("SELECT {} FROM (\n{}\n) AS s({})", ChosenColumns(columns), rows,
                     NumberedColumns(all));
}

std::string WithParameters(std::string sql) {
  for (const auto& [bound, parameter] :
       {std::pair("'{end}'", "$2"), std::pair("'{begin}'", "$1")}) {
    const size_t at = sql.rfind(bound);
    SLUICE_CHECK(at != std::string::npos, "a ctid cut has both bounds");
    sql.replace(at, std::string_view(bound).size(), parameter);
  }
  return sql;
}

std::string SelectAllColumns(std::string_view rows, size_t all) {
  return fmt::format("SELECT * FROM (\n{}\n) AS s({})", rows, NumberedColumns(all));
}

std::string ValuesOf(const std::vector<size_t>& columns, const Schema& schema) {
  std::string list;
  for (const size_t column : columns) {
    const std::string name = fmt::format("c{}", column);
    const std::string value = ValueExpression(name, schema.columns[column].database_type);
    list += (list.empty() ? "" : ", ") + (value.empty() ? name : value);
  }
  return list;
}

std::string SelectValues(std::string_view rows, const Schema& schema) {
  std::vector<size_t> all(schema.columns.size());
  std::iota(all.begin(), all.end(), 0);
  return fmt::format("SELECT {} FROM (\n{}\n) AS s({})", ValuesOf(all, schema), rows,
                     NumberedColumns(all.size()));
}

std::string BeginReading(std::string_view snapshot) {
  // No parallel plans and no scans that start in the middle of a table: rows come in one order. For
  // a range of blocks, any other plan than a scan of that range would read the whole table. A
  // server from version 14 on, if its system supports it, notices within half a second that we are
  // gone.
  return fmt::format(
      "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;{}"
      " SET LOCAL synchronize_seqscans = off; SET LOCAL max_parallel_workers_per_gather = 0;"
      " SET LOCAL jit = off; SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off;"
      " SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off;"
      " SELECT pg_catalog.set_config('client_connection_check_interval', '500', true)"
      " WHERE pg_catalog.current_setting('client_connection_check_interval', true) IS NOT NULL"
      " AND pg_catalog.version() OPERATOR(pg_catalog.~) 'linux|darwin|bsd'",
      snapshot.empty()
          ? ""
          : fmt::format(" SET TRANSACTION SNAPSHOT {};", QuoteText(snapshot, Dialect::kPostgres)));
}

Result<SelectPlan> PlanPostgresSelect(PostgresConnection& connection, std::string_view select,
                                      size_t columns) {
  const ReadScope scope(connection);
  // The estimate comes from the plan that the server itself would choose.
  RETURN_IF_ERROR(connection.Begin("BEGIN READ ONLY"));
  SelectPlan plan;
  ASSIGN_OR_RETURN(const rapidjson::Document estimate, ExplainPostgresSelect(connection, select));
  plan.rows = PlanRows(estimate);
  ASSIGN_OR_RETURN(plan.unsteady, CallsUnsteadyFunction(connection, select));
  connection.Rollback();
  RETURN_IF_ERROR(connection.Begin(BeginReading("")));
  if (!plan.unsteady) {
    ASSIGN_OR_RETURN(plan.cut, FindTidCut(connection, select, columns));
    if (plan.cut.has_value()) {
      plan.cut->rows = plan.rows;
    }
  }
  return plan;
}

Result<double> ProbeTidRows(PostgresConnection& connection, const TidCut& cut) {
  const int64_t probes = std::min(kProbedBlocks, cut.blocks);
  if (probes == 0) {
    return 0.0;
  }
  std::string blocks;
  for (int64_t i = 0; i < probes; ++i) {
    const int64_t block = cut.blocks * i / probes;
    blocks += (blocks.empty() ? "" : "\nUNION ALL\n") +
              SelectColumns(WithBounds(cut.shard_select, TidText(block * kTidsPerBlock),
                                       TidText((block + 1) * kTidsPerBlock)),
                            cut.columns, {});
  }
  ASSIGN_OR_RETURN(
      const PostgresResult result,
      connection.Ask(fmt::format("SELECT pg_catalog.count(*) FROM (\n{}\n) AS s", blocks)));
  const int64_t rows = PostgresInteger(result.get(), 0, 0);
  // If the rows are too rare for a few blocks, the planner's estimate is used.
  return rows == 0 ? cut.rows
                   : static_cast<double>(rows) * static_cast<double>(cut.blocks) /
                         static_cast<double>(probes);
}

Result<std::vector<ShardRange>> CutTids(PostgresConnection& connection, TidCut cut,
                                        const DatasetOptions& options) {
  const int64_t rows_per_range = RowsPerRange(options);
  std::vector<ShardRange> shards;
  ASSIGN_OR_RETURN(cut.rows, ProbeTidRows(connection, cut));
  if (cut.rows > static_cast<double>(kExactCutRows)) {
    shards = CutEvenly(cut.Density(), rows_per_range);
  } else if (cut.rows < kOneShardShare * static_cast<double>(options.rows_per_shard)) {
    shards.resize(1);
    shards[0].set_estimated_rows(std::llround(cut.rows));
  } else {
    const std::string ctid = cut.shape.Qualified("ctid");
    SingleTableSelect addresses = cut.shape;
    addresses.list = fmt::format(
        "{0} AS address, pg_catalog.row_number() OVER () AS n,"
        " pg_catalog.lead({0}) OVER () IS NULL AS last",
        ctid);
    ASSIGN_OR_RETURN(
        const PostgresResult result,
        connection.Ask(fmt::format("SELECT address, n FROM (\n{}\n) AS s"
                                   " WHERE last OR (n OPERATOR(pg_catalog.-) 1)"
                                   " OPERATOR(pg_catalog.%) {} OPERATOR(pg_catalog.=) 0",
                                   addresses.With(ctid + " OPERATOR(pg_catalog.>=)"
                                                         " '(0,0)'::pg_catalog.tid"),
                                   rows_per_range)));
    std::vector<int64_t> keys;
    int64_t rows = 0;
    for (int i = 0; i < PQntuples(result.get()); ++i) {
      rows = PostgresInteger(result.get(), i, 1);
      if ((rows - 1) % rows_per_range == 0) {
        keys.push_back(ParseTid(PostgresText(result.get(), i, 0)));
      }
    }
    shards = CutAtKeys(keys, kEndOfTable, rows, rows_per_range);
  }
  shards.front().set_begin(0);
  shards.back().set_end(kEndOfTable);
  return shards;
}

Result<std::vector<TableName>> TablesInPlan(PostgresConnection& connection,
                                            std::string_view select) {
  ASSIGN_OR_RETURN(const rapidjson::Document document, ExplainPostgresSelect(connection, select));
  std::vector<TableName> tables;
  CollectTables(document[0]["Plan"], &tables);
  return tables;
}

}  // namespace sluice::catalog
