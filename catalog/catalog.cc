#include "catalog/catalog.h"

#include <utility>

#include "catalog/data_source.h"
#include "catalog/postgres/postgres_source.h"
#include "catalog/source_url.h"
#include "catalog/sqlite/sqlite_source.h"

// Chooses the database by its URL.
namespace sluice::catalog {
namespace {

Result<SourceUrl> ParseWithSecret(std::string_view url, std::string_view secret) {
  ASSIGN_OR_RETURN(SourceUrl parsed, ParseSourceUrl(url));
  if (parsed.password.empty()) {
    parsed.password = secret;
  }
  return parsed;
}

}  // namespace

Result<std::unique_ptr<DataSource>> OpenDataSource(std::string_view url, std::string_view secret,
                                                   std::stop_token stop) {
  ASSIGN_OR_RETURN(const SourceUrl parsed, ParseWithSecret(url, secret));
  if (parsed.kind == SourceUrl::Kind::kPostgres) {
    return OpenPostgres(parsed, stop);
  }
  ASSIGN_OR_RETURN(Database database, OpenSqlite(parsed));
  return std::move(database.source);
}

Result<std::unique_ptr<DataSource>> OpenDataSourceAs(std::string_view url, std::string_view role,
                                                     std::string_view password,
                                                     std::stop_token stop) {
  ASSIGN_OR_RETURN(SourceUrl parsed, ParseSourceUrl(url));
  if (parsed.kind == SourceUrl::Kind::kSqlite) {
    return Unimplemented("a SQLite database has no users that could log in");
  }
  if (role.empty() || password.empty()) {  // libpq would use the process's own
    return Status(Code::kPermissionDenied, "a role and its password are needed").SqlState("28000");
  }
  parsed.text = WithRole(parsed.text, role);
  parsed.password = password;
  parsed.must_ask = true;
  return OpenPostgres(parsed, stop);
}

Result<std::unique_ptr<Catalog>> OpenCatalog(std::string_view url, std::string_view secret,
                                             std::stop_token stop) {
  ASSIGN_OR_RETURN(const SourceUrl parsed, ParseWithSecret(url, secret));
  if (parsed.kind == SourceUrl::Kind::kPostgres) {
    return OpenPostgresCatalog(parsed, stop);
  }
  ASSIGN_OR_RETURN(Database database, OpenSqlite(parsed));
  return std::move(database.catalog);
}

Result<Database> OpenDatabase(std::string_view url, std::string_view secret, std::stop_token stop) {
  ASSIGN_OR_RETURN(const SourceUrl parsed, ParseWithSecret(url, secret));
  if (parsed.kind == SourceUrl::Kind::kSqlite) {
    return OpenSqlite(parsed);
  }
  Database database;
  ASSIGN_OR_RETURN(database.source, OpenPostgres(parsed, stop));
  ASSIGN_OR_RETURN(database.catalog, OpenPostgresCatalog(parsed, stop));
  return database;
}

Result<Database> OpenDatabase(const DatabaseLogin& source, const DatabaseLogin& catalog,
                              const std::stop_token& stop) {
  if (source.url == catalog.url && source.secret == catalog.secret) {
    return OpenDatabase(source.url, source.secret, stop);
  }
  Database database;
  ASSIGN_OR_RETURN(database.source, OpenDataSource(source.url, source.secret, stop));
  ASSIGN_OR_RETURN(database.catalog, OpenCatalog(catalog.url, catalog.secret, stop));
  return database;
}

}  // namespace sluice::catalog
