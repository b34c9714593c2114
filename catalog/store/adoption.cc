#include "catalog/store/adoption.h"

#include <fmt/core.h>

#include "catalog/sql/sql_text.h"
#include "catalog/store/job_logins.h"

namespace sluice::catalog {

std::string AdoptionScript(std::string_view role) {
  return fmt::format(
      R"sql(-- Gives schema sluice and its tables to a role; each model and job keeps its owner. Run it as a superuser in that database.
\set ON_ERROR_STOP on
BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;
{1};
DO $adopt$
DECLARE found record;
BEGIN
  FOR found IN
    SELECT pg_describe_object(calls.classid, calls.objid, 0) AS caller,
           pg_describe_object(calls.refclassid, calls.refobjid, 0) AS called
    FROM pg_depend AS calls JOIN pg_depend AS part
      ON part.classid = calls.classid AND part.objid = calls.objid
      AND part.refclassid = 'pg_class'::regclass
      JOIN pg_class AS c ON c.oid = part.refobjid
    WHERE calls.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)
      AND calls.refobjid >= 16384 AND c.relnamespace = to_regnamespace('sluice')
  LOOP
    RAISE EXCEPTION '% would run % with the rights of %: drop it first', found.caller, found.called, {0};
  END LOOP;
  FOR found IN SELECT nspname FROM pg_namespace WHERE nspname IN ('sluice', 'sluice_stage') LOOP
    EXECUTE format('ALTER SCHEMA %I OWNER TO %I', found.nspname, {0});
  END LOOP;
  FOR found IN SELECT oid::regclass AS name FROM pg_class
               WHERE relnamespace = to_regnamespace('sluice') AND relkind = 'r' LOOP
    EXECUTE format('ALTER TABLE %s OWNER TO %I', found.name, {0});
  END LOOP;
END $adopt$;
COMMIT;
)sql",
      QuoteText(role, Dialect::kPostgres), DropJobLoginRights());
}

}  // namespace sluice::catalog
