#include "tests/chaos/site.h"

#include <fmt/core.h>

#include <variant>

#include "server/sample/sample.h"

namespace sluice::chaos {
namespace {

// Where the sample's tables end, and those of held-out rows begin: rows are in the order in which
// they were written.
std::string Place(bool postgres) {
  return postgres ? "ctid" : "rowid";
}

}  // namespace

std::string TextOf(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : "";
}

Status Site::MakeSample(Table table, const Options& options) {
  constexpr uint64_t kSampleSeed = 1;
  ASSIGN_OR_RETURN(const auto generator, server::MakeSample(NameOf(table), kSampleSeed));
  const std::string name(NameOf(table)), place = Place(postgres_);
  RETURN_IF_ERROR(server::WriteSample(*generator, options.rows + options.held_out_rows, {"", name},
                                      *source_, [](int64_t) {}, {})
                      .status());
  const std::string first = fmt::format("(SELECT {0} FROM {1} ORDER BY {0} LIMIT 1 OFFSET {2})",
                                        place, name, options.rows);
  for (const std::string& sql :
       {fmt::format("CREATE TABLE {0}_held_out AS SELECT * FROM {0} WHERE {1} >= {2}", name, place,
                    first),
        fmt::format("DELETE FROM {} WHERE {} >= {}", name, place, first)}) {
    RETURN_IF_ERROR(source_->Execute(sql, nullptr, {}).status());
  }
  return OkStatus();
}

// A tenth is for validation; labels are balanced, in random order.
Status Site::MakeIds(int64_t rows) {
  const std::string numbers =
      postgres_ ? fmt::format("SELECT i::bigint AS i FROM generate_series(1, {}) AS s(i)", rows)
                : fmt::format(
                      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                      "WHERE i < {}) SELECT i FROM n",
                      rows);
  return source_
      ->Execute(fmt::format("CREATE TABLE ids AS SELECT i AS id, CASE WHEN i * 7919 % 10 = 0 THEN "
                            "1 ELSE 0 END AS held, (i * 2654435761 / 65536) % 2 AS answer "
                            "FROM ({}) AS numbers",
                            numbers),
                nullptr, {})
      .status();
}

Result<std::unique_ptr<Site>> Site::Make(const Options& options) {
  std::unique_ptr<Site> site(new Site());
  site->postgres_ = options.postgres;
  ASSIGN_OR_RETURN(site->source_, catalog::OpenDataSource(options.url));
  ASSIGN_OR_RETURN(site->catalog_, catalog::OpenCatalog(options.url));
  for (const Table table : {Table::kCensus, Table::kClicks}) {
    RETURN_IF_ERROR(site->MakeSample(table, options));
  }
  RETURN_IF_ERROR(site->MakeIds(options.rows));
  GatewayProcess::Options gateway;
  gateway.binary = options.binary;
  gateway.source = options.url;
  gateway.slots = options.slots;
  gateway.checkpoint_root = options.checkpoint_root;
  ASSIGN_OR_RETURN(site->gateway_, GatewayProcess::Start(gateway));
  ASSIGN_OR_RETURN(site->client_, site->gateway_->Connect());
  return site;
}

std::string Site::CatalogTable(const std::string& name) const {
  return (postgres_ ? "sluice." : "sluice_") + name;
}

Result<std::vector<std::string>> Site::Tables() {
  ASSIGN_OR_RETURN(
      const RecordingSink answer,
      Ask(postgres_ ? "SELECT table_schema || '.' || table_name AS name FROM "
                      "information_schema.tables WHERE table_schema NOT IN ('pg_catalog', "
                      "'information_schema') ORDER BY 1;"
                    : "SELECT name FROM sqlite_schema ORDER BY name;"));
  std::vector<std::string> tables;
  for (const std::vector<Value>& row : answer.rows) {
    tables.push_back(TextOf(row.at(0)));
  }
  return tables;
}

}  // namespace sluice::chaos
