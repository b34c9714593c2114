#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "catalog/sha256.h"
#include "catalog/sql/sql_text.h"
#include "catalog/sqlite/sqlite_pg_catalog_internal.h"

namespace sluice::catalog {
namespace {

// A view of ten columns takes some 200: enough for 10,000 of them, and about a second.
constexpr int64_t kViewAllocations = 2'000'000;

// A name is text; SQLite's NUMERIC affinity would turn "1e5" into a number.
std::string StoredType(std::string_view type) {
  return type == "name"                             ? "name text"
         : type.find('[') != std::string_view::npos ? QuoteName(type)
                                                    : std::string(type);
}

// The value of a column for which a row has none, if clients expect it to be NOT NULL.
std::string_view UsualValue(std::string_view type) {
  if (type == "boolean" || type == "oid" || type.starts_with("int") || type == "smallint" ||
      type == "integer" || type == "bigint" || type == "regproc" || type == "real") {
    return type == "int2vector" ? "''" : "0";
  }
  return type == "name" || type == "\"char\"" ? "''" : "NULL";
}

std::string MakeTable(const PgRelation& relation) {
  std::string columns;
  std::string_view rest = relation.columns;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(", "), rest.size());
    const std::string_view column = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 2, rest.size()));
    const size_t blank = column.find(' ');
    const std::string_view type = column.substr(blank + 1);
    const std::string_view name = column.substr(0, blank);
    columns += fmt::format("{}{} {} DEFAULT {}", columns.empty() ? "" : ", ",
                           name.starts_with('"') ? std::string(name) : QuoteName(name),
                           StoredType(type), UsualValue(type));
  }
  return fmt::format("CREATE TABLE {}.{} ({})", relation.schema, QuoteName(relation.name), columns);
}

// The relations that are filled whenever any is requested.
constexpr std::array<std::string_view, 20> kFilled = {
    "pg_namespace", "pg_class",      "pg_attribute", "pg_type",     "pg_index",
    "pg_database",  "pg_roles",      "pg_am",        "pg_attrdef",  "pg_constraint",
    "pg_settings",  "pg_tables",     "pg_views",     "pg_indexes",  "pg_user",
    "pg_authid",    "pg_tablespace", "pg_collation", "pg_language", "pg_proc"};
constexpr std::array<std::string_view, 8> kInformation = {
    "information_schema.tables",
    "information_schema.columns",
    "information_schema.schemata",
    "information_schema.views",
    "information_schema.key_column_usage",
    "information_schema.table_constraints",
    "information_schema.referential_constraints",
    "information_schema.constraint_column_usage"};

}  // namespace

Status SqlitePgCatalog::Attach() {
  // ':memory:' is not writable on a read-only connection.
  RETURN_IF_ERROR(connection_.Run("ATTACH 'file::memory:?mode=memory' AS pg_catalog"));
  RETURN_IF_ERROR(connection_.Run("ATTACH 'file::memory:?mode=memory' AS information_schema"));
  return AddPgFunctions(connection_, options_);
}

Result<bool> SqlitePgCatalog::Has(const PgRelation& relation) {
  ASSIGN_OR_RETURN(const int64_t there,
                   connection_.QueryInteger(
                       fmt::format("SELECT count(*) FROM {}.sqlite_schema WHERE name = {}",
                                   relation.schema, QuoteText(relation.name, Dialect::kSqlite))));
  return there > 0;
}

Status SqlitePgCatalog::Make(const PgRelation& relation) {
  ASSIGN_OR_RETURN(const bool there, Has(relation));
  return there ? OkStatus() : connection_.Run(MakeTable(relation));
}

Result<bool> SqlitePgCatalog::Provide(const std::vector<std::string>& relations) {
  ASSIGN_OR_RETURN(const int64_t version, connection_.QueryInteger("PRAGMA main.schema_version"));
  bool changed = false;
  if (version_ != version) {
    ASSIGN_OR_RETURN(changed, Refresh(version));
  }
  for (const std::string& name : relations) {
    if (const PgRelation* relation = FindPgRelation(name)) {
      RETURN_IF_ERROR(Make(*relation));
    }
  }
  return changed;
}

void SqlitePgCatalog::Forget() {
  version_.reset();
  if (std::exchange(of_transaction_, false)) {
    loaded_.clear();
  }
}

Result<std::string> SqlitePgCatalog::SchemaKey() {
  ASSIGN_OR_RETURN(const SqlRows rows,
                   connection_.Query("SELECT rowid, type, name, tbl_name, coalesce(sql, '') FROM"
                                     " main.sqlite_schema ORDER BY rowid",
                                     {}));
  Sha256 digest;
  const auto add = [&digest](const std::string& text) {
    digest.Add(fmt::format("{}:", text.size()));
    digest.Add(text);
  };
  add(options_.user);
  add(options_.database);
  add(fmt::format("{}", options_.other_users.size()));
  for (const std::string& user : options_.other_users) {
    add(user);
  }
  for (const std::vector<Value>& row : rows) {
    add(fmt::format("{}", IntegerCell(row[0])));
    for (size_t i = 1; i < row.size(); ++i) {
      add(TextCell(row[i]));
    }
  }
  return digest.Hex();
}

Result<bool> SqlitePgCatalog::Refresh(int64_t version) {
  ASSIGN_OR_RETURN(const std::string key, SchemaKey());
  if (key == loaded_) {
    version_ = version;
    return false;
  }
  for (sqlite3_stmt* statement = sqlite3_next_stmt(connection_.handle(), nullptr);
       statement != nullptr; statement = sqlite3_next_stmt(connection_.handle(), statement)) {
    if (!loaded_.empty() && sqlite3_stmt_busy(statement) != 0) {
      return false;  // perhaps on these very catalogs: its reader continues with the old rows
    }
  }
  std::shared_ptr<const PgImage> image = shared_->Find(key);
  if (image == nullptr) {
    ASSIGN_OR_RETURN(image, MakeImage(key));
  }
  loaded_.clear();
  RETURN_IF_ERROR(Load("pg_catalog", image == nullptr ? "" : image->pg_catalog));
  RETURN_IF_ERROR(Load("information_schema", image == nullptr ? "" : image->information_schema));
  if (image == nullptr) {
    RETURN_IF_ERROR(FillHere());
  }
  of_transaction_ = image == nullptr && !connection_.Idle();
  loaded_ = key;
  version_ = version;
  return true;
}

Result<std::shared_ptr<const PgImage>> SqlitePgCatalog::MakeImage(const std::string& key) {
  const std::shared_ptr<const PgImage> none;
  if (sqlite3_txn_state(connection_.handle(), "main") == SQLITE_TXN_WRITE) {
    return none;  // it is not committed, or could not be read while its lock is held
  }
  Result<std::unique_ptr<SqliteConnection>> own =
      SqliteConnection::Open(location_, SqliteConnection::Access::kReadOnly);
  if (!own.ok()) {
    return none;  // the file was removed, or no descriptor is left: it is made here
  }
  sqlite3_busy_handler((*own)->handle(), nullptr, nullptr);
  SqlitePgCatalog made(**own, location_, options_, shared_);
  RETURN_IF_ERROR(made.Attach());
  const Result<std::string> committed = made.SchemaKey();
  if (!committed.ok() || *committed != key) {
    return none;
  }
  const Status filled = made.FillHere();
  if (!filled.ok()) {
    return filled.sqlstate() == "55P03" ? Result<std::shared_ptr<const PgImage>>(none) : filled;
  }
  const Result<std::string> after = made.SchemaKey();
  if (!after.ok() || *after != key) {
    return none;  // another connection has changed it meanwhile
  }
  ASSIGN_OR_RETURN(PgImage image, made.Image());
  auto shared = std::make_shared<const PgImage>(std::move(image));
  shared_->Keep(key, shared);
  return std::shared_ptr<const PgImage>(std::move(shared));
}

Result<PgImage> SqlitePgCatalog::Image() {
  PgImage image;
  for (const auto& [schema, bytes] : {std::pair("pg_catalog", &image.pg_catalog),
                                      std::pair("information_schema", &image.information_schema)}) {
    sqlite3_int64 size = 0;
    unsigned char* const written = sqlite3_serialize(connection_.handle(), schema, &size, 0);
    if (written == nullptr) {
      return ResourceExhausted("no memory for the catalogs").SqlState("53200");
    }
    bytes->assign(reinterpret_cast<const char*>(written), static_cast<size_t>(size));
    sqlite3_free(written);
  }
  return image;
}

Status SqlitePgCatalog::Load(const char* schema, std::string_view image) {
  inserts_.clear();
  unsigned char* bytes = nullptr;
  if (!image.empty()) {
    bytes = static_cast<unsigned char*>(sqlite3_malloc64(image.size()));
    if (bytes == nullptr) {
      return ResourceExhausted("no memory for the catalogs").SqlState("53200");
    }
    std::memcpy(bytes, image.data(), image.size());
  }
  const auto size = static_cast<sqlite3_int64>(image.size());
  // Takes ownership of the bytes, even if it fails.
  const int code =
      sqlite3_deserialize(connection_.handle(), schema, bytes, size, size,
                          SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
  return code == SQLITE_OK ? OkStatus() : connection_.LastError("");
}

// All or nothing, inside any surrounding transaction.
Status SqlitePgCatalog::FillHere() {
  RETURN_IF_ERROR(connection_.Run("SAVEPOINT sluice_catalog"));
  Status filled = FillAll();
  if (!filled.ok()) {
    RETURN_IF_ERROR(connection_.Run("ROLLBACK TO sluice_catalog"));
  }
  RETURN_IF_ERROR(connection_.Run("RELEASE sluice_catalog"));
  return filled;
}

Status SqlitePgCatalog::Insert(std::string_view relation, std::string_view columns,
                               const std::vector<SqlParameter>& values) {
  SqliteStatement& insert = inserts_[fmt::format("{} {}", relation, columns)];
  if (insert == nullptr) {
    std::string places;
    for (size_t i = 0; i < values.size(); ++i) {
      places += i == 0 ? "?" : ", ?";
    }
    ASSIGN_OR_RETURN(insert,
                     connection_.Prepare(fmt::format("INSERT INTO pg_catalog.{} ({}) VALUES ({})",
                                                     relation, columns, places)));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const int at = static_cast<int>(i) + 1;
    if (const auto* integer = std::get_if<int64_t>(&values[i])) {
      sqlite3_bind_int64(insert.get(), at, *integer);
    } else if (const auto* number = std::get_if<double>(&values[i])) {
      sqlite3_bind_double(insert.get(), at, *number);
    } else {
      const auto& text = std::get<std::string>(values[i]);
      sqlite3_bind_text64(insert.get(), at, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    }
  }
  const bool done = sqlite3_step(insert.get()) == SQLITE_DONE;
  Status status = done ? OkStatus() : connection_.LastError("");
  sqlite3_reset(insert.get());
  return status;
}

Status SqlitePgCatalog::FillAll() {
  next_oid_ = 2'000'000'000;
  view_allocations_ = kViewAllocations;
  for (const auto& names : {std::span<const std::string_view>(kFilled),
                            std::span<const std::string_view>(kInformation)}) {
    for (const std::string_view name : names) {
      const PgRelation* relation = FindPgRelation(name);
      RETURN_IF_ERROR(Make(*relation));
      RETURN_IF_ERROR(connection_.Run(
          fmt::format("DELETE FROM {}.{}", relation->schema, QuoteName(relation->name))));
    }
  }
  RETURN_IF_ERROR(connection_.Run(
      "CREATE TABLE IF NOT EXISTS pg_catalog.sluice_texts (oid INTEGER, kind TEXT, body TEXT)"));
  RETURN_IF_ERROR(connection_.Run("DELETE FROM pg_catalog.sluice_texts"));
  for (const std::string_view column :
       {"pg_class (oid)", "pg_attribute (attrelid)", "pg_index (indrelid)", "pg_type (oid)",
        "sluice_texts (oid)", "pg_attrdef (adrelid)"}) {
    RETURN_IF_ERROR(
        connection_.Run(fmt::format("CREATE INDEX IF NOT EXISTS pg_catalog.sluice_by_{} ON {}",
                                    column.substr(0, column.find(' ')), column)));
  }
  RETURN_IF_ERROR(FillFixed());
  RETURN_IF_ERROR(FillTables());
  return FillInformationSchema();
}

}  // namespace sluice::catalog
