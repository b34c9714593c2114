#include <fmt/core.h>

#include <array>
#include <utility>
#include <vector>

#include "base/letter_case.h"
#include "catalog/sql/sql_text.h"
#include "catalog/sqlite/sqlite_pg_catalog_internal.h"

// Rows that do not depend on the database's content: types, roles, settings.
namespace sluice::catalog {
namespace {

struct BuiltIn {
  int oid;
  const char* name;
  int bytes;
  const char* category;
  int array;
};
// pg_type.dat: the types that a column here may have, and those that clients look up by name.
constexpr std::array kTypes = {
    BuiltIn{16, "bool", 1, "B", 1000},        BuiltIn{17, "bytea", -1, "U", 1001},
    BuiltIn{18, "char", 1, "Z", 1002},        BuiltIn{19, "name", 64, "S", 1003},
    BuiltIn{20, "int8", 8, "N", 1016},        BuiltIn{21, "int2", 2, "N", 1005},
    BuiltIn{22, "int2vector", -1, "A", 1006}, BuiltIn{23, "int4", 4, "N", 1007},
    BuiltIn{24, "regproc", 4, "N", 1008},     BuiltIn{25, "text", -1, "S", 1009},
    BuiltIn{26, "oid", 4, "N", 1028},         BuiltIn{30, "oidvector", -1, "A", 1013},
    BuiltIn{114, "json", -1, "U", 199},       BuiltIn{700, "float4", 4, "N", 1021},
    BuiltIn{701, "float8", 8, "N", 1022},     BuiltIn{705, "unknown", -2, "X", 0},
    BuiltIn{1042, "bpchar", -1, "S", 1014},   BuiltIn{1043, "varchar", -1, "S", 1015},
    BuiltIn{1082, "date", 4, "D", 1182},      BuiltIn{1083, "time", 8, "D", 1183},
    BuiltIn{1114, "timestamp", 8, "D", 1115}, BuiltIn{1184, "timestamptz", 8, "D", 1185},
    BuiltIn{1186, "interval", 16, "T", 1187}, BuiltIn{1700, "numeric", -1, "N", 1231},
    BuiltIn{2249, "record", -1, "P", 2287},   BuiltIn{2278, "void", 4, "P", 0},
    BuiltIn{2279, "trigger", 4, "P", 0},      BuiltIn{2950, "uuid", 16, "U", 2951},
    BuiltIn{3802, "jsonb", -1, "U", 3807},
};

constexpr int64_t kArrayReceive = 2400;

}  // namespace

Status SqlitePgCatalog::FillFixed() {
  for (const auto& [oid, name] : {std::pair<int64_t, const char*>{11, "pg_catalog"},
                                  {kPublicOid, "public"},
                                  {13183, "information_schema"}}) {
    RETURN_IF_ERROR(Insert("pg_namespace", "oid, nspname, nspowner", {oid, name, kOwnerOid}));
  }
  for (const BuiltIn& type : kTypes) {
    RETURN_IF_ERROR(Insert(
        "pg_type",
        "oid, typname, typnamespace, typowner, typlen, typbyval, typtype, typcategory,"
        " typispreferred, typisdefined, typdelim, typarray, typtypmod, typbasetype, typinput",
        {int64_t{type.oid}, type.name, int64_t{11}, kOwnerOid, int64_t{type.bytes},
         int64_t{type.bytes > 0 && type.bytes <= 8 ? 1 : 0}, type.category[0] == 'P' ? "p" : "b",
         type.category, int64_t{0}, int64_t{1}, ",", int64_t{type.array}, int64_t{-1}, int64_t{0},
         fmt::format("{}in", type.name)}));
    if (type.array != 0) {
      RETURN_IF_ERROR(Insert("pg_type",
                             "oid, typname, typnamespace, typowner, typlen, typtype, typcategory,"
                             " typisdefined, typdelim, typelem, typtypmod, typinput, typreceive,"
                             " typsubscript",
                             {int64_t{type.array}, fmt::format("_{}", type.name), int64_t{11},
                              kOwnerOid, int64_t{-1}, "b", "A", int64_t{1}, ",", int64_t{type.oid},
                              int64_t{-1}, "array_in", kArrayReceive, "array_subscript_handler"}));
    }
  }
  // By which drivers recognise array types.
  RETURN_IF_ERROR(Insert("pg_proc", "oid, proname, pronamespace, proowner, prokind",
                         {kArrayReceive, "array_recv", int64_t{11}, kOwnerOid, "f"}));
  RETURN_IF_ERROR(Insert("pg_am", "oid, amname, amtype", {int64_t{2}, "heap", "t"}));
  RETURN_IF_ERROR(Insert("pg_am", "oid, amname, amtype", {int64_t{403}, "btree", "i"}));
  RETURN_IF_ERROR(
      Insert("pg_tablespace", "oid, spcname, spcowner", {int64_t{1663}, "pg_default", kOwnerOid}));
  RETURN_IF_ERROR(Insert("pg_collation", "oid, collname, collnamespace, collowner, collprovider",
                         {int64_t{100}, "default", int64_t{11}, kOwnerOid, "d"}));
  RETURN_IF_ERROR(Insert("pg_database",
                         "oid, datname, datdba, encoding, datlocprovider, datistemplate,"
                         " datallowconn, datconnlimit, dattablespace, datcollate, datctype",
                         {kDatabaseOid, options_.database, kOwnerOid, int64_t{6}, "c", int64_t{0},
                          int64_t{1}, int64_t{-1}, int64_t{1663}, "C", "C"}));
  std::vector<std::pair<int64_t, std::string>> roles = {{kOwnerOid, options_.user}};
  for (const std::string& user : options_.other_users) {
    roles.emplace_back(kOwnerOid + static_cast<int64_t>(roles.size()), user);
  }
  for (const auto& [oid, name] : roles) {
    RETURN_IF_ERROR(Insert(
        "pg_roles",
        "oid, rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb,"
        " rolcanlogin, rolconnlimit",
        {oid, name, int64_t{0}, int64_t{1}, int64_t{0}, int64_t{0}, int64_t{1}, int64_t{-1}}));
    RETURN_IF_ERROR(Insert("pg_user", "usename, usesysid", {name, oid}));
  }
  RETURN_IF_ERROR(connection_.Run(
      "INSERT INTO pg_catalog.pg_authid (oid, rolname, rolinherit, rolcanlogin, rolconnlimit)"
      " SELECT oid, rolname, 1, 1, -1 FROM pg_catalog.pg_roles"));
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, std::string>>{
           {"server_version", options_.version_number},
           {"server_version_num", "150000"},
           {"server_encoding", "UTF8"},
           {"client_encoding", "UTF8"},
           {"DateStyle", "ISO, MDY"},
           {"IntervalStyle", "postgres"},
           {"TimeZone", "UTC"},
           {"standard_conforming_strings", "on"},
           {"bytea_output", "hex"},
           {"integer_datetimes", "on"},
           {"max_identifier_length", "63"},
           {"max_index_keys", "32"},
           {"search_path", "public"},
           {"transaction_isolation", "serializable"},
           {"default_transaction_isolation", "serializable"},
           {"default_transaction_read_only", "off"},
           {"transaction_read_only", "off"},
           {"lc_collate", "C"},
           {"lc_ctype", "C"},
           {"client_min_messages", "notice"},
           {"statement_timeout", "0"},
       }) {
    RETURN_IF_ERROR(
        Insert("pg_settings",
               "name, setting, vartype, context, source, boot_val,"
               " reset_val, pending_restart",
               {LowerAscii(name), value, "string", "user", "default", value, value, int64_t{0}}));
  }
  return OkStatus();
}

}  // namespace sluice::catalog
