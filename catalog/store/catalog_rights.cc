#include "catalog/store/catalog_rights.h"

#include <fmt/core.h>

namespace sluice::catalog {
namespace {

// The roles that `role` is a member of, itself included; of a superuser all.
std::string RolesOf(std::string_view role) {
  return fmt::format(
      "SELECT r.rolname::text FROM pg_catalog.pg_roles AS r WHERE"
      " pg_catalog.pg_has_role({}, r.oid, 'MEMBER')",
      role);
}

// Superusers see also what belonged to a role that is gone.
std::string IsSuperuser(std::string_view role) {
  return fmt::format(
      "EXISTS (SELECT FROM pg_catalog.pg_roles AS s WHERE s.rolname = {} AND s.rolsuper)", role);
}

constexpr std::string_view kWhoeverAsks = "current_user";

// The table that a record of {result_tables} is about, which its role may write at least. What the
// record says counts only where the table itself says so, too (postgres_result_table.h): one who
// writes there more than is so has not made the table Sluice's.
constexpr std::string_view kOfOwnTable =
    "EXISTS (SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n"
    " ON n.oid = c.relnamespace WHERE n.nspname = schema_name AND c.relname = table_name AND"
    " (pg_catalog.pg_has_role(c.relowner, 'MEMBER') OR"
    " pg_catalog.has_table_privilege(c.oid, 'INSERT')))";

void AddPolicy(std::string_view name, std::string_view table, std::string_view what,
               std::string_view clause, std::string_view condition, std::vector<std::string>* sql) {
  sql->push_back(fmt::format("DROP POLICY IF EXISTS {} ON {}", name, table));
  sql->push_back(
      fmt::format("CREATE POLICY {} ON {} FOR {} {} ({})", name, table, what, clause, condition));
}

}  // namespace

std::string OwnedBy(std::string_view role) {
  return fmt::format("(owner IN ({}) OR {})", RolesOf(role), IsSuperuser(role));
}

std::string SeenBy(std::string_view role) {
  return fmt::format("((owner || users) && ('public'::text || ARRAY({})) OR {})", RolesOf(role),
                     IsSuperuser(role));
}

std::vector<std::string> RightsDefinitions() {
  // Rows of earlier versions belong to the login that brings them up to date.
  std::vector<std::string> sql = {
      "ALTER TABLE {models} ADD COLUMN IF NOT EXISTS owner text NOT NULL DEFAULT session_user",
      "ALTER TABLE {models} ADD COLUMN IF NOT EXISTS users text[] NOT NULL DEFAULT '{}'",
      "ALTER TABLE {jobs} ADD COLUMN IF NOT EXISTS owner text NOT NULL DEFAULT session_user",
  };
  const std::string owned = OwnedBy(kWhoeverAsks);
  AddPolicy("seen", "{models}", "SELECT", "USING", SeenBy(kWhoeverAsks), &sql);
  AddPolicy("owned", "{models}", "ALL", "USING", owned, &sql);
  for (const std::string_view table : {"{model_versions}", "{model_chunks}"}) {
    const std::string_view of_model =
        "(schema_name, name) IN (SELECT m.schema_name, m.name FROM "
        "{models} AS m";
    AddPolicy("seen", table, "SELECT", "USING", fmt::format("{})", of_model), &sql);
    AddPolicy("owned", table, "ALL", "USING", fmt::format("{} WHERE {})", of_model, owned), &sql);
  }
  AddPolicy("owned", "{jobs}", "ALL", "USING", owned, &sql);
  for (const std::string_view table :
       {"{job_events}", "{job_metrics}", "{job_terms}", "{job_journal}", "{job_runners}",
        "{job_answers}", "{job_records}"}) {
    AddPolicy("owned", table, "ALL", "USING", "job_id IN (SELECT j.id FROM {jobs} AS j)", &sql);
  }
  AddPolicy("seen", "{result_tables}", "SELECT", "USING", "true", &sql);
  AddPolicy("written", "{result_tables}", "INSERT", "WITH CHECK", kOfOwnTable, &sql);
  AddPolicy("rewritten", "{result_tables}", "UPDATE", "USING", kOfOwnTable, &sql);
  for (const std::string_view table :
       {"{models}", "{model_versions}", "{jobs}", "{job_events}", "{job_metrics}"}) {
    sql.push_back(fmt::format("GRANT SELECT ON {} TO PUBLIC", table));
  }
  sql.emplace_back("GRANT SELECT, INSERT, UPDATE ON {result_tables} TO PUBLIC");
  for (const std::string_view table :
       {"{models}", "{model_versions}", "{model_chunks}", "{jobs}", "{job_events}", "{job_metrics}",
        "{job_terms}", "{job_journal}", "{job_runners}", "{result_tables}", "{job_answers}",
        "{job_records}"}) {
    sql.push_back(fmt::format("ALTER TABLE {} ENABLE ROW LEVEL SECURITY", table));
  }
  return sql;
}

}  // namespace sluice::catalog
