#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/letter_case.h"
#include "catalog/embedded_memory.h"
#include "catalog/sql/declared_type.h"
#include "catalog/sql/sql_text.h"
#include "catalog/sqlite/sqlite_pg_catalog_internal.h"

// The database's tables, views, indexes and keys.
namespace sluice::catalog {
namespace {

std::string KeyName(const std::string& table, const std::vector<std::string>& columns,
                    bool primary) {
  if (primary) {
    return table + "_pkey";
  }
  std::string name = table;
  for (const std::string& column : columns) {
    name += "_" + column;
  }
  return name + "_key";
}

constexpr std::string_view kSluicePrefix = "sluice_";

// PostgreSQL's way of showing a name: with quotes if it needs them.
std::string Shown(const std::string& name) {
  const bool plain =
      !name.empty() && (name[0] < '0' || name[0] > '9') &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == std::string::npos;
  return plain ? name : QuoteName(name);
}

std::string Joined(const std::vector<std::string>& names) {
  std::string joined;
  for (const std::string& name : names) {
    joined += (joined.empty() ? "" : ", ") + Shown(name);
  }
  return joined;
}

}  // namespace

PgPlace::PgPlace(const std::string& table)
    : sluice(LowerAscii(table).starts_with(kSluicePrefix)),
      schema(sluice ? kSluiceOid : kPublicOid),
      oids(sluice ? kSluiceOids : 0),
      name(sluice ? table.substr(kSluicePrefix.size()) : table) {}

std::string PgPlace::Quoted() const {
  return (sluice ? "sluice." : "public.") + Shown(name);
}

Status SqlitePgCatalog::FillTables() {
  ASSIGN_OR_RETURN(const SqlRows rows,
                   connection_.Query("SELECT rowid, name, type, coalesce(sql, '') FROM"
                                     " main.sqlite_schema WHERE type IN ('table', 'view') AND name"
                                     " NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid",
                                     {}));
  for (const std::vector<Value>& row : rows) {
    RETURN_IF_ERROR(
        FillTable(IntegerCell(row[0]), TextCell(row[1]), TextCell(row[2]), TextCell(row[3])));
  }
  RETURN_IF_ERROR(connection_.Run(fmt::format(
      "INSERT INTO pg_catalog.pg_namespace (oid, nspname, nspowner) SELECT DISTINCT {0}, 'sluice',"
      " {1} FROM pg_catalog.pg_class WHERE relnamespace = {0}",
      kSluiceOid, kOwnerOid)));
  RETURN_IF_ERROR(connection_.Run(
      "UPDATE pg_catalog.pg_class SET relhasindex = 1 WHERE oid IN (SELECT indrelid FROM"
      " pg_catalog.pg_index)"));
  for (const std::vector<Value>& row : rows) {  // they name each other
    if (TextCell(row[2]) == "table") {
      RETURN_IF_ERROR(FillForeignKeys(IntegerCell(row[0]), TextCell(row[1])));
    }
  }
  RETURN_IF_ERROR(connection_.Run(
      "INSERT INTO pg_catalog.pg_tables (schemaname, tablename, tableowner, hasindexes) SELECT"
      " pg_table_schema(relnamespace), relname, pg_user(), relhasindex FROM"
      " pg_catalog.pg_class WHERE relkind = 'r'"));
  RETURN_IF_ERROR(connection_.Run(
      "INSERT INTO pg_catalog.pg_views (schemaname, viewname, viewowner, definition) SELECT"
      " pg_table_schema(relnamespace), relname, pg_user(), pg_get_viewdef(oid) FROM"
      " pg_catalog.pg_class WHERE relkind = 'v'"));
  return connection_.Run(
      "INSERT INTO pg_catalog.pg_indexes (schemaname, tablename, indexname, indexdef) SELECT"
      " pg_table_schema(t.relnamespace), t.relname, c.relname, pg_get_indexdef(c.oid, 0) FROM"
      " pg_catalog.pg_index i JOIN"
      " pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_class t ON"
      " t.oid = i.indrelid");
}

// A view on tables that no longer exist, or a virtual table of a missing module, has none.
Result<SqlRows> SqlitePgCatalog::TableColumns(const std::string& name) {
  Result<SqlRows> columns = connection_.Query(
      "SELECT cid, name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo($1,"
      " 'main') WHERE hidden <> 1 ORDER BY cid",
      {name});
  return columns.ok() || columns.status().sqlstate() == "55P03" ? std::move(columns) : SqlRows();
}

// To know a view's columns, SQLite expands it. In a chain of views that each select twice from the
// one before, every view takes twice as long as the one before, and anybody may make such a chain:
// when the allocations for all views are used up, the others have no columns here.
Result<SqlRows> SqlitePgCatalog::ViewColumns(const std::string& name) {
  SqlRows columns;
  const EndsAllocations few(view_allocations_);
  const Result<SqliteStatement> prepared =
      connection_.Prepare(fmt::format("SELECT * FROM main.{}", QuoteName(name)));
  view_allocations_ = few.left();
  if (!prepared.ok()) {
    const std::string& state = prepared.status().sqlstate();
    const bool passes = !few.ended() && (state == "55P03" || state == "53200" || state == "57014");
    return passes ? Result<SqlRows>(prepared.status()) : columns;
  }
  for (int i = 0; i < sqlite3_column_count(prepared->get()); ++i) {
    const char* const column = sqlite3_column_name(prepared->get(), i);
    const char* const type = sqlite3_column_decltype(prepared->get(), i);
    columns.push_back({int64_t{i}, std::string(column == nullptr ? "" : column),
                       std::string(type == nullptr ? "" : type), int64_t{0}, std::monostate(),
                       int64_t{0}, int64_t{0}});
  }
  return columns;
}

Status SqlitePgCatalog::FillTable(int64_t row, const std::string& name, const std::string& kind,
                                  const std::string& sql) {
  const bool view = kind == "view";
  const PgPlace place(name);
  const int64_t oid = place.oids + kFirstOid + row;
  ASSIGN_OR_RETURN(const SqlRows all, view ? ViewColumns(name) : TableColumns(name));
  int64_t number = 0;
  std::vector<std::pair<int64_t, std::pair<std::string, int64_t>>> key;
  for (const std::vector<Value>& column : all) {
    ++number;
    DeclaredType type = PostgresTypeOf(TextCell(column[2]));
    type.oid = type.oid == 0 ? 25 : type.oid;
    const bool has_default = !std::holds_alternative<std::monostate>(column[4]);
    const int64_t hidden = IntegerCell(column[6]);
    const bool generated = hidden == 2 || hidden == 3;
    RETURN_IF_ERROR(
        Insert("pg_attribute",
               "attrelid, attname, atttypid, attnum, atttypmod, attnotnull, atthasdef, attlen,"
               " attgenerated, attislocal, attstorage, attalign, attstattarget, attndims",
               {oid, TextCell(column[1]), int64_t{type.oid}, number, int64_t{type.modifier},
                int64_t{IntegerCell(column[3]) != 0 || IntegerCell(column[5]) != 0 ? 1 : 0},
                int64_t{has_default ? 1 : 0}, int64_t{PostgresTypeBytes(type.oid)},
                generated ? "s" : "", int64_t{1}, "p", "i", int64_t{-1}, int64_t{0}}));
    if (has_default) {
      RETURN_IF_ERROR(Insert("pg_attrdef", "oid, adrelid, adnum, adbin",
                             {next_oid_++, oid, number, TextCell(column[4])}));
    }
    if (IntegerCell(column[5]) > 0) {
      key.push_back({IntegerCell(column[5]), {TextCell(column[1]), number}});
    }
  }
  if (view) {
    const std::string lower = LowerAscii(sql);
    size_t as = std::string::npos;
    for (const SqlToken& token : TokenizeSql(sql, Dialect::kSqlite)) {
      if (token.depth == 0 && lower.substr(token.begin, token.end - token.begin) == "as") {
        as = token.end;
        break;
      }
    }
    RETURN_IF_ERROR(
        Insert("sluice_texts", "oid, kind, body",
               {oid, "view", as == std::string::npos ? sql : " " + sql.substr(as + 1) + ";"}));
  }
  RETURN_IF_ERROR(
      Insert("pg_class",
             "oid, relname, relnamespace, relowner, relam, relkind, relpersistence, relnatts,"
             " relreplident, relispopulated, reltuples, relpages",
             {oid, place.name, place.schema, kOwnerOid, int64_t{view ? 0 : 2}, view ? "v" : "r",
              "p", number, "d", int64_t{1}, -1.0, int64_t{0}}));
  if (view) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const bool has_key, FillIndexes(oid, name));
  if (!has_key && !key.empty()) {  // the rowid is the key
    std::sort(key.begin(), key.end());
    std::vector<std::string> names;
    std::string numbers;
    for (const auto& [rank, column] : key) {
      names.push_back(column.first);
      numbers += fmt::format("{}{}", numbers.empty() ? "" : " ", column.second);
    }
    RETURN_IF_ERROR(AddIndex(kRowidKeyOids + oid, oid, place, KeyName(place.name, names, true),
                             names, numbers, true, true, true));
  }
  return OkStatus();
}

Result<bool> SqlitePgCatalog::FillIndexes(int64_t oid, const std::string& table) {
  ASSIGN_OR_RETURN(const SqlRows indexes,
                   connection_.Query("SELECT l.name, l.\"unique\", l.origin, s.rowid FROM"
                                     " pragma_index_list($1, 'main') AS l LEFT JOIN"
                                     " main.sqlite_schema AS s ON s.name = l.name AND"
                                     " s.type = 'index' ORDER BY l.seq DESC",
                                     {table}));
  bool has_key = false;
  const PgPlace place(table);
  for (const std::vector<Value>& index : indexes) {
    const std::string origin = TextCell(index[2]);
    has_key = has_key || origin == "pk";
    ASSIGN_OR_RETURN(
        const SqlRows columns,
        connection_.Query("SELECT cid, name FROM pragma_index_info($1)", {TextCell(index[0])}));
    std::vector<std::string> names;
    std::string numbers;
    for (const std::vector<Value>& column : columns) {
      const int64_t at = IntegerCell(column[0]);
      names.push_back(at < 0 ? "(expression)" : TextCell(column[1]));
      numbers += fmt::format("{}{}", numbers.empty() ? "" : " ", at < 0 ? 0 : at + 1);
    }
    const bool constraint = origin != "c";
    // A WITHOUT ROWID table's own key has no row in sqlite_schema.
    const bool stored = !std::holds_alternative<std::monostate>(index[3]);
    RETURN_IF_ERROR(AddIndex(
        stored ? place.oids + kFirstOid + IntegerCell(index[3]) : kRowidKeyOids + oid, oid, place,
        constraint ? KeyName(place.name, names, origin == "pk") : PgPlace(TextCell(index[0])).name,
        names, numbers, IntegerCell(index[1]) != 0, origin == "pk", constraint));
  }
  return has_key;
}

Status SqlitePgCatalog::AddIndex(int64_t oid, int64_t table, const PgPlace& place,
                                 const std::string& name, const std::vector<std::string>& columns,
                                 const std::string& numbers, bool unique, bool primary,
                                 bool constraint) {
  RETURN_IF_ERROR(Insert("pg_class",
                         "oid, relname, relnamespace, relowner, relam, relkind, relpersistence,"
                         " relnatts, relreplident, relispopulated",
                         {oid, name, place.schema, kOwnerOid, int64_t{403}, "i", "p",
                          static_cast<int64_t>(columns.size()), "n", int64_t{1}}));
  RETURN_IF_ERROR(Insert(
      "pg_index",
      "indexrelid, indrelid, indnatts, indnkeyatts, indisunique, indisprimary,"
      " indimmediate, indisvalid, indisready, indislive, indkey, indoption",
      {oid, table, static_cast<int64_t>(columns.size()), static_cast<int64_t>(columns.size()),
       int64_t{unique ? 1 : 0}, int64_t{primary ? 1 : 0}, int64_t{1}, int64_t{1}, int64_t{1},
       int64_t{1}, numbers, "0"}));
  RETURN_IF_ERROR(connection_.Run(fmt::format(
      "INSERT INTO pg_catalog.pg_attribute (attrelid, attname, atttypid, attnum, atttypmod, attlen)"
      " SELECT {0}, attname, atttypid, row_number() OVER (ORDER BY instr(' {1} ', ' ' || attnum ||"
      " ' ')), atttypmod, attlen FROM pg_catalog.pg_attribute WHERE attrelid = {2} AND"
      " instr(' {1} ', ' ' || attnum || ' ') > 0",
      oid, numbers, table)));
  RETURN_IF_ERROR(
      Insert("sluice_texts", "oid, kind, body",
             {oid, "index",
              fmt::format("CREATE {}INDEX {} ON {} USING btree ({})", unique ? "UNIQUE " : "",
                          Shown(name), place.Quoted(), Joined(columns))}));
  if (!constraint) {
    return OkStatus();
  }
  const int64_t con = next_oid_++;
  std::string array = numbers;
  std::replace(array.begin(), array.end(), ' ', ',');
  RETURN_IF_ERROR(Insert("pg_constraint",
                         "oid, conname, connamespace, contype, convalidated, conrelid, conindid,"
                         " conkey, conislocal, connoinherit",
                         {con, name, place.schema, primary ? "p" : "u", int64_t{1}, table, oid,
                          "{" + array + "}", int64_t{1}, int64_t{1}}));
  return Insert("sluice_texts", "oid, kind, body",
                {con, "constraint",
                 fmt::format("{} ({})", primary ? "PRIMARY KEY" : "UNIQUE", Joined(columns))});
}

Status SqlitePgCatalog::FillForeignKeys(int64_t row, const std::string& table) {
  const PgPlace place(table);
  const int64_t oid = place.oids + kFirstOid + row;
  // One that references a table of Sluice's (the guard refuses it) leads nowhere.
  ASSIGN_OR_RETURN(const SqlRows rows,
                   connection_.Query("SELECT f.id, f.\"table\", f.\"from\", f.\"to\", f.on_update,"
                                     " f.on_delete, c.oid, a.attnum FROM"
                                     " pragma_foreign_key_list($1, 'main') AS f LEFT JOIN"
                                     " pg_catalog.pg_class AS c ON lower(c.relname) ="
                                     " lower(f.\"table\") AND c.relkind = 'r' AND"
                                     " c.relnamespace = $3 LEFT JOIN"
                                     " pg_catalog.pg_attribute AS a ON a.attrelid = $2 AND"
                                     " lower(a.attname) = lower(f.\"from\") ORDER BY f.id, f.seq",
                                     {table, oid, kPublicOid}));
  for (size_t at = 0; at < rows.size();) {
    const int64_t id = IntegerCell(rows[at][0]);
    const std::string other = TextCell(rows[at][1]);
    const int64_t other_oid = IntegerCell(rows[at][6]);
    std::vector<std::string> from;
    std::vector<std::string> to;
    std::string numbers;
    const std::string update = TextCell(rows[at][4]);
    const std::string removal = TextCell(rows[at][5]);
    for (; at < rows.size() && IntegerCell(rows[at][0]) == id; ++at) {
      from.push_back(TextCell(rows[at][2]));
      if (!std::holds_alternative<std::monostate>(rows[at][3])) {
        to.push_back(TextCell(rows[at][3]));
      }
      numbers += fmt::format("{}{}", numbers.empty() ? "" : ",", IntegerCell(rows[at][7]));
    }
    if (to.empty()) {  // it references the other table's key
      ASSIGN_OR_RETURN(const SqlRows key,
                       connection_.Query("SELECT name FROM pragma_table_info($1, 'main') WHERE"
                                         " pk > 0 ORDER BY pk",
                                         {other}));
      for (const std::vector<Value>& column : key) {
        to.push_back(TextCell(column[0]));
      }
    }
    std::string other_numbers;
    for (const std::string& column : to) {
      ASSIGN_OR_RETURN(const SqlRows number,
                       connection_.Query("SELECT attnum FROM pg_catalog.pg_attribute WHERE"
                                         " attrelid = $1 AND lower(attname) = lower($2)",
                                         {other_oid, column}));
      other_numbers += fmt::format("{}{}", other_numbers.empty() ? "" : ",",
                                   number.empty() ? 0 : IntegerCell(number[0][0]));
    }
    const auto rule = [](const std::string& action) {
      return action == "CASCADE"       ? "c"
             : action == "RESTRICT"    ? "r"
             : action == "SET NULL"    ? "n"
             : action == "SET DEFAULT" ? "d"
                                       : "a";
    };
    std::string name = place.name;
    for (const std::string& column : from) {
      name += "_" + column;
    }
    const int64_t con = next_oid_++;
    ASSIGN_OR_RETURN(const int64_t index,
                     connection_.QueryInteger(fmt::format(
                         "SELECT indexrelid FROM pg_catalog.pg_index WHERE indrelid = {} AND"
                         " indisunique AND replace(indkey, ' ', ',') = '{}'",
                         other_oid, other_numbers)));
    RETURN_IF_ERROR(
        Insert("pg_constraint",
               "oid, conname, connamespace, contype, convalidated, conrelid, conindid, confrelid,"
               " conkey, confkey, confupdtype, confdeltype, confmatchtype, conislocal,"
               " connoinherit",
               {con, name + "_fkey", place.schema, "f", int64_t{1}, oid, index, other_oid,
                "{" + numbers + "}", "{" + other_numbers + "}", rule(update), rule(removal), "s",
                int64_t{1}, int64_t{1}}));
    std::string text =
        fmt::format("FOREIGN KEY ({}) REFERENCES {}({})", Joined(from), Shown(other), Joined(to));
    text += update == "NO ACTION" ? "" : " ON UPDATE " + update;
    text += removal == "NO ACTION" ? "" : " ON DELETE " + removal;
    RETURN_IF_ERROR(Insert("sluice_texts", "oid, kind, body", {con, "constraint", text}));
    // psql asks for foreign keys only if there are triggers, because PostgreSQL checks keys by
    // triggers.
    RETURN_IF_ERROR(connection_.Run(
        fmt::format("UPDATE pg_catalog.pg_class SET relhastriggers = 1 WHERE oid IN ({}, {})", oid,
                    other_oid)));
  }
  return OkStatus();
}

}  // namespace sluice::catalog
