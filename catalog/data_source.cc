#include "catalog/data_source.h"

#include "catalog/postgres_source.h"
#include "catalog/source_url.h"
#include "catalog/sqlite_source.h"

namespace sluice::catalog {

Result<std::unique_ptr<DataSource>> OpenDataSource(std::string_view url, std::string_view secret) {
  ASSIGN_OR_RETURN(SourceUrl parsed, ParseSourceUrl(url));
  if (parsed.password.empty()) {
    parsed.password = secret;
  }
  switch (parsed.kind) {
    case SourceUrl::Kind::kSqlite:
      return OpenSqlite(parsed);
    case SourceUrl::Kind::kPostgres:
      break;
  }
  return OpenPostgres(parsed);
}

}  // namespace sluice::catalog
