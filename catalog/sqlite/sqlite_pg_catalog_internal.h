#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "catalog/embedded_session.h"
#include "catalog/sqlite/sqlite_connection_internal.h"
#include "catalog/sqlite/sqlite_pg_images_internal.h"

// pg_catalog and information_schema over SQLite: in-memory databases attached to one connection, in
// addition to the file, and queried by SQLite itself.
namespace sluice::catalog {

// A relation of PostgreSQL 15's catalogs.
struct PgRelation {
  std::string_view schema;
  std::string_view name;
  std::string_view columns;  // "oid oid, relname name, ..."
};
// nullptr: there is none of that name. "pg_class", "information_schema.columns".
const PgRelation* FindPgRelation(std::string_view name);
// Whether some relation has a column of that name and type.
bool HasPgColumn(std::string_view name, std::string_view type);

// How a table of the file appears: sluice_models as sluice.models, others in schema public.
struct PgPlace {
  explicit PgPlace(const std::string& table);
  std::string Quoted() const;  // with the schema

  bool sluice;
  int64_t schema;    // its oid
  int64_t oids;      // to be added to the oids of its relations
  std::string name;  // without the schema
};

// Every function of pg_catalog that clients call.
Status AddPgFunctions(SqliteConnection& connection, const EmbeddedSession::Options& options);

// The oid in pg_class of the first row of sqlite_schema: of a table, view or index.
inline constexpr int64_t kFirstOid = 16384;
// For the primary key of a table whose rowid it is: an index that SQLite does not have.
inline constexpr int64_t kRowidKeyOids = 1'000'000'000;
// Added to both for Sluice's own tables and their indexes.
inline constexpr int64_t kSluiceOids = 500'000'000;
inline constexpr int64_t kPublicOid = 2200;
inline constexpr int64_t kSluiceOid = 16383;  // schema sluice, as in databases that have schemas
inline constexpr int64_t kOwnerOid = 10;
inline constexpr int64_t kDatabaseOid = 5;

class SqlitePgCatalog {
 public:
  // `location`: of the connection's database.
  SqlitePgCatalog(SqliteConnection& connection, SqliteLocation location,
                  EmbeddedSession::Options options, std::shared_ptr<SharedCatalogs> shared)
      : connection_(connection),
        location_(std::move(location)),
        options_(std::move(options)),
        shared_(std::move(shared)) {}

  // Attaches the two databases; empty.
  Status Attach();
  // Makes the named relations available for the database's current schema. True: the databases are
  // not the same as before.
  Result<bool> Provide(const std::vector<std::string>& relations);
  // After a ROLLBACK: a different schema may have the same number.
  void Forget();

 private:
  // A text of everything from which the catalogs are made.
  Result<std::string> SchemaKey();
  Result<bool> Refresh(int64_t version);
  // The catalogs of the committed schema, made on a separate connection; nullptr: its key is not
  // `key`.
  Result<std::shared_ptr<const PgImage>> MakeImage(const std::string& key);
  Result<PgImage> Image();
  // Replaces the current content; "": an empty database.
  Status Load(const char* schema, std::string_view image);
  Status FillHere();
  Status Make(const PgRelation& relation);
  Result<bool> Has(const PgRelation& relation);
  Status FillAll();
  Status FillFixed();
  Status FillTables();
  Result<SqlRows> TableColumns(const std::string& name);
  Result<SqlRows> ViewColumns(const std::string& name);
  Status FillTable(int64_t row, const std::string& name, const std::string& kind,
                   const std::string& sql);
  // Whether one of them is the primary key's.
  Result<bool> FillIndexes(int64_t oid, const std::string& table);
  Status FillForeignKeys(int64_t row, const std::string& table);
  Status FillInformationSchema();
  Status AddIndex(int64_t oid, int64_t table, const PgPlace& place, const std::string& name,
                  const std::vector<std::string>& columns, const std::string& numbers, bool unique,
                  bool primary, bool constraint);
  Status Insert(std::string_view relation, std::string_view columns,
                const std::vector<SqlParameter>& values);

  SqliteConnection& connection_;
  const SqliteLocation location_;
  const EmbeddedSession::Options options_;
  const std::shared_ptr<SharedCatalogs> shared_;
  std::optional<int64_t> version_;  // of the schema when it was last read; nullopt: not yet
  std::string loaded_;              // the key of the current content; "": none
  bool of_transaction_ = false;     // the content was written in a transaction, and is rolled back
                                    // with it
  int64_t next_oid_ = 0;            // of constraints and defaults
  int64_t view_allocations_ = 0;    // SQLite's, that are left to find views' columns
  std::map<std::string, SqliteStatement> inserts_;  // reused, since there are hundreds of inserts
                                                    // for every schema
};

}  // namespace sluice::catalog
