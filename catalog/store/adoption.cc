#include "catalog/store/adoption.h"

#include <fmt/core.h>

#include "catalog/sql/sql_text.h"
#include "catalog/store/catalog_rights.h"
#include "catalog/store/catalog_tables.h"
#include "catalog/store/job_logins.h"

namespace sluice::catalog {
namespace {

// As statements of PL/pgSQL.
std::string Rights() {
  const CatalogTables tables(Dialect::kPostgres);
  std::string rights;
  for (const std::string& definition : RightsDefinitions(Owners::kByOid)) {
    rights += fmt::format("    {};\n", tables.Resolve(definition));
  }
  return rights;
}

}  // namespace

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
  -- What does so without naming a function, or is not of Sluice's making.
  FOR found IN
    WITH own AS (SELECT oid, relkind FROM pg_class WHERE relnamespace = to_regnamespace('sluice'))
    SELECT pg_describe_object('pg_class'::regclass, oid, 0) AS what FROM own WHERE relkind NOT IN ('r', 'i', 'S')
    UNION ALL SELECT pg_describe_object('pg_rewrite'::regclass, w.oid, 0) FROM pg_rewrite AS w JOIN own ON own.oid = w.ev_class
    UNION ALL SELECT pg_describe_object('pg_trigger'::regclass, t.oid, 0) FROM pg_trigger AS t JOIN own ON own.oid = t.tgrelid
      WHERE NOT t.tgisinternal
    UNION ALL SELECT pg_describe_object('pg_class'::regclass, i.inhrelid, 0) FROM pg_inherits AS i JOIN own
      ON own.oid IN (i.inhrelid, i.inhparent)
      WHERE EXISTS (SELECT FROM pg_class AS c WHERE c.oid = i.inhrelid AND c.relkind NOT IN ('i', 'I'))
    UNION ALL SELECT pg_describe_object('pg_constraint'::regclass, k.oid, 0) FROM pg_constraint AS k JOIN own
      ON own.oid = k.confrelid WHERE k.conrelid NOT IN (SELECT oid FROM own)
    UNION ALL SELECT pg_describe_object('pg_class'::regclass, a.attrelid, a.attnum) FROM pg_attribute AS a JOIN own
      ON own.oid = a.attrelid JOIN pg_type AS y ON y.oid = a.atttypid
      WHERE own.relkind = 'r' AND y.typnamespace <> 'pg_catalog'::regnamespace
    UNION ALL SELECT pg_describe_object('pg_proc'::regclass, p.oid, 0) FROM pg_proc AS p JOIN pg_roles AS r
      ON r.oid = p.proowner WHERE p.pronamespace = to_regnamespace('sluice') AND NOT r.rolsuper
    LIMIT 1
  LOOP
    RAISE EXCEPTION '% is not of Sluice''s making, and could run with the rights of %: drop it first', found.what, {0};
  END LOOP;
  -- The policies and grants are made anew.
  FOR found IN SELECT p.polname, p.polrelid::regclass AS name FROM pg_policy AS p JOIN pg_class AS c
               ON c.oid = p.polrelid WHERE c.relnamespace = to_regnamespace('sluice') LOOP
    EXECUTE format('DROP POLICY %I ON %s', found.polname, found.name);
  END LOOP;
  FOR found IN SELECT nspname FROM pg_namespace WHERE nspname IN ('sluice', 'sluice_stage') LOOP
    EXECUTE format('ALTER SCHEMA %I OWNER TO %I', found.nspname, {0});
  END LOOP;
  FOR found IN SELECT oid::regclass AS name FROM pg_class
               WHERE relnamespace = to_regnamespace('sluice') AND relkind = 'r' LOOP
    EXECUTE format('ALTER TABLE %s OWNER TO %I', found.name, {0});
    EXECUTE format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', found.name);
  END LOOP;
  FOR found IN SELECT c.oid::regclass AS name, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
               FROM pg_class AS c LEFT JOIN pg_attribute AS t ON t.attrelid = c.oid AND t.attacl IS NOT NULL,
               aclexplode(c.relacl || t.attacl) AS a
               WHERE c.relnamespace = to_regnamespace('sluice') AND c.relkind = 'r' AND a.grantee <> c.relowner LOOP
    EXECUTE format('REVOKE ALL ON %s FROM %s CASCADE', found.name, found.grantee);
  END LOOP;
  FOR found IN SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
               FROM pg_namespace AS n, aclexplode(n.nspacl) AS a
               WHERE n.nspname = 'sluice' AND a.grantee <> n.nspowner LOOP
    EXECUTE format('REVOKE ALL ON SCHEMA sluice FROM %s CASCADE', found.grantee);
  END LOOP;
  IF to_regclass('sluice.model_type_chunks') IS NOT NULL THEN
    GRANT USAGE ON SCHEMA sluice TO PUBLIC;
{2}  END IF;
END $adopt$;
COMMIT;
)sql",
      QuoteText(role, Dialect::kPostgres), DropJobLoginRights(), Rights());
}

}  // namespace sluice::catalog
