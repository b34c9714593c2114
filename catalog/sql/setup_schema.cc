#include "catalog/sql/setup_schema.h"

#include <fmt/core.h>

#include "catalog/sql/sql_text.h"

namespace sluice::catalog {

std::string MakeCatalogSchema(std::string_view login) {
  return fmt::format(
      R"sql(CREATE SCHEMA IF NOT EXISTS sluice AUTHORIZATION {0};
DO $setup$ BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner
             WHERE n.nspname = 'sluice' AND NOT r.rolsuper AND r.rolname <> {1}) THEN
    RAISE EXCEPTION 'another role than the gateway''s login has made schema sluice' USING ERRCODE = '42501',
      HINT = 'look at what is in it, then DROP SCHEMA sluice CASCADE, or ALTER SCHEMA sluice OWNER TO the login';
  END IF;
END $setup$;)sql",
      QuoteName(login), QuoteText(login, Dialect::kPostgres));
}

}  // namespace sluice::catalog
