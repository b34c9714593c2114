#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "catalog/embedded_session.h"
#include "catalog/sqlite/sqlite_connection_internal.h"

// pg_catalog and information_schema over SQLite: in-memory databases beside the file, attached to
// one connection, which SQLite itself reads.
namespace sluice::catalog {

// A relation of PostgreSQL 15's catalogs.
struct PgRelation {
  std::string_view schema;
  std::string_view name;
  std::string_view columns;  // "oid oid, relname name, ..."
};
// nullptr: there is none of that name. "pg_class", "information_schema.columns".
const PgRelation* FindPgRelation(std::string_view name);
// Some relation has a column of that name and type.
bool HasPgColumn(std::string_view name, std::string_view type);

// Every function of pg_catalog that clients call.
Status AddPgFunctions(SqliteConnection& connection, const EmbeddedSession::Options& options);

// The oid that the row of a table, view or index in sqlite_schema has in pg_class.
inline constexpr int64_t kFirstOid = 16384;
// Of the primary key of a table whose rowid it is: an index that SQLite does not have.
inline constexpr int64_t kRowidKeyOids = 1'000'000'000;
inline constexpr int64_t kPublicOid = 2200;
inline constexpr int64_t kOwnerOid = 10;
inline constexpr int64_t kDatabaseOid = 5;

class SqlitePgCatalog {
 public:
  SqlitePgCatalog(SqliteConnection& connection, EmbeddedSession::Options options)
      : connection_(connection), options_(std::move(options)) {}

  // Attaches the two databases; empty.
  Status Attach();
  // What a statement names is there, and as the database's schema is now.
  Status Provide(const std::vector<std::string>& relations);

 private:
  Status Make(const PgRelation& relation);
  Result<bool> Has(const PgRelation& relation);
  Status FillAll();
  Status FillFixed();
  Status FillTables();
  Status FillTable(int64_t oid, const std::string& name, const std::string& kind,
                   const std::string& sql);
  // Whether one of them is the primary key's.
  Result<bool> FillIndexes(int64_t oid, const std::string& table);
  Status FillForeignKeys(int64_t oid, const std::string& table);
  Status FillInformationSchema();
  Status AddIndex(int64_t oid, int64_t table, const std::string& table_name,
                  const std::string& name, const std::vector<std::string>& columns,
                  const std::string& numbers, bool unique, bool primary, bool constraint);
  Status Insert(std::string_view relation, std::string_view columns,
                const std::vector<SqlParameter>& values);

  SqliteConnection& connection_;
  const EmbeddedSession::Options options_;
  int64_t next_oid_ = 0;                            // of constraints and defaults
  std::map<std::string, SqliteStatement> inserts_;  // hundreds of each, for every schema
};

}  // namespace sluice::catalog
