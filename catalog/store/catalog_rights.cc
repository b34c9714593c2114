#include "catalog/store/catalog_rights.h"

#include <fmt/core.h>

#include <utility>

namespace sluice::catalog {
namespace {

// The calling role, by its OID, since its name may have been another role's.
constexpr std::string_view kCallingRole =
    "(SELECT a.oid FROM pg_catalog.pg_roles AS a WHERE a.rolname = current_user)";
constexpr std::string_view kLogin =
    "pg_catalog.to_regrole(pg_catalog.quote_ident(session_user::text))";

// Of {models}.users and inspectors.
constexpr std::string_view kEverybodyOid = "0";

// The roles of which `role` is a member, including itself; for a superuser all.
std::string RolesOf(std::string_view role) {
  return fmt::format(
      "SELECT r.oid FROM pg_catalog.pg_roles AS r WHERE"
      " pg_catalog.pg_has_role({}, r.oid, 'MEMBER')",
      role);
}

// Superusers also see what belonged to a dropped role.
std::string IsSuperuser(std::string_view role) {
  return fmt::format(
      "EXISTS (SELECT FROM pg_catalog.pg_roles AS s WHERE s.oid = {} AND s.rolsuper)", role);
}

// The table to which a record of {result_tables} refers, on which its role must at least have the
// right to write. A record counts only if the table itself confirms it (postgres_result_table.h):
// writing a false record does not turn a table into a result table.
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

// Names of earlier versions belong to the roles that have them now; those of dropped roles to
// nobody.
void NumberOwners(std::vector<std::string>* sql) {
  const auto run = [sql](std::string_view statement) {
    sql->push_back(fmt::format(fmt::runtime(statement), fmt::arg("login", kLogin)));
  };
  // Policies that compare names prevent the change of the column.
  for (const std::string_view policy :
       {"seen ON {models}", "owned ON {models}", "seen ON {model_versions}",
        "owned ON {model_versions}", "seen ON {model_chunks}", "owned ON {model_chunks}",
        "owned ON {jobs}"}) {
    sql->push_back(fmt::format("DROP POLICY IF EXISTS {}", policy));
  }
  for (const std::string_view table : {"{{models}}", "{{jobs}}"}) {
    const std::string alter = fmt::format("ALTER TABLE {} ", table);
    run(alter + "ALTER COLUMN owner DROP DEFAULT");
    run(alter + "RENAME COLUMN owner TO owner_name");
    run(alter + "ADD COLUMN owner regrole");
    run(
        fmt::format("UPDATE {} SET owner = coalesce(pg_catalog.to_regrole("
                    "pg_catalog.quote_ident(owner_name)), '-')",
                    table));
    run(alter + "ALTER COLUMN owner SET NOT NULL");
    run(alter + "ALTER COLUMN owner SET DEFAULT {login}");
  }
  run("ALTER TABLE {{models}} DROP COLUMN owner_name");
  run("ALTER TABLE {{jobs}} ALTER COLUMN owner_name SET DEFAULT ''");
  run("ALTER TABLE {{models}} RENAME COLUMN users TO user_names");
  run("ALTER TABLE {{models}} ADD COLUMN users regrole[] NOT NULL DEFAULT '{{}}'");
  run("UPDATE {{models}} SET users = ARRAY(SELECT coalesce(r.oid, 0)::regrole"
      " FROM pg_catalog.unnest(user_names) WITH ORDINALITY AS u (name, place)"
      " LEFT JOIN pg_catalog.pg_roles AS r ON r.rolname = u.name"
      " WHERE r.oid IS NOT NULL OR u.name = 'public' ORDER BY place)");
  run("ALTER TABLE {{models}} DROP COLUMN user_names");
}

// Rows of earlier versions belong to the login that upgrades them.
void AddOwners(std::vector<std::string>* sql) {
  for (const std::string_view table : {"{models}", "{jobs}"}) {
    sql->push_back(
        fmt::format("ALTER TABLE {} ADD COLUMN owner regrole NOT NULL DEFAULT {}", table, kLogin));
  }
  sql->emplace_back("ALTER TABLE {models} ADD COLUMN users regrole[] NOT NULL DEFAULT '{}'");
  sql->emplace_back("ALTER TABLE {jobs} ADD COLUMN owner_name text NOT NULL DEFAULT ''");
}

}  // namespace

std::string OwnerColumns() {
  return fmt::format(
      ", owner regrole NOT NULL DEFAULT {}, users regrole[] NOT NULL DEFAULT '{{}}',"
      " inspectors regrole[] NOT NULL DEFAULT '{{}}'",
      kLogin);
}

std::string OwnedBy(std::string_view role) {
  // Includes the role itself even if it was dropped: what it has begun belongs to no other role.
  return fmt::format("(owner = {} OR owner IN ({}) OR {})", role, RolesOf(role), IsSuperuser(role));
}

std::string SeenBy(std::string_view role) {
  return fmt::format("({} OR (users || inspectors)::oid[] && ({}::oid || ARRAY({})))",
                     OwnedBy(role), kEverybodyOid, RolesOf(role));
}

std::string InspectedBy(std::string_view role) {
  return fmt::format("({} OR inspectors::oid[] && ({}::oid || ARRAY({})))", OwnedBy(role),
                     kEverybodyOid, RolesOf(role));
}

std::vector<std::string> RightsDefinitions(Owners owners) {
  std::vector<std::string> sql;
  if (owners == Owners::kNotAtAll) {
    AddOwners(&sql);
  } else if (owners == Owners::kByName) {
    NumberOwners(&sql);
  }
  for (const std::string_view table : {"{models}", "{model_types}"}) {
    sql.push_back(fmt::format(
        "ALTER TABLE {} ADD COLUMN IF NOT EXISTS inspectors regrole[] NOT NULL DEFAULT '{{}}'",
        table));
  }
  const std::string owned = OwnedBy(kCallingRole);
  for (const std::string_view table : {"{models}", "{model_types}"}) {
    AddPolicy("seen", table, "SELECT", "USING", SeenBy(kCallingRole), &sql);
    AddPolicy("owned", table, "ALL", "USING", owned, &sql);
  }
  for (const auto& [table, models] :
       {std::pair("{model_versions}", "{models}"), std::pair("{model_chunks}", "{models}"),
        std::pair("{model_type_versions}", "{model_types}"),
        std::pair("{model_type_chunks}", "{model_types}")}) {
    const std::string of_model =
        fmt::format("(schema_name, name) IN (SELECT m.schema_name, m.name FROM {} AS m", models);
    // The source of a model type is for all who use it.
    const bool whole = std::string_view(models) == "{models}";
    AddPolicy("seen", table, "SELECT", "USING",
              whole ? fmt::format("{} WHERE {})", of_model, InspectedBy(kCallingRole))
                    : fmt::format("{})", of_model),
              &sql);
    AddPolicy("owned", table, "ALL", "USING", fmt::format("{} WHERE {})", of_model, owned), &sql);
  }
  AddPolicy("owned", "{jobs}", "ALL", "USING", owned, &sql);
  for (const std::string_view table :
       {"{job_events}", "{job_metrics}", "{job_terms}", "{job_journal}", "{job_runners}",
        "{job_answers}", "{job_records}", "{job_requests}"}) {
    AddPolicy("owned", table, "ALL", "USING", "job_id IN (SELECT j.id FROM {jobs} AS j)", &sql);
  }
  AddPolicy("seen", "{result_tables}", "SELECT", "USING", kOfOwnTable, &sql);
  AddPolicy("written", "{result_tables}", "INSERT", "WITH CHECK", kOfOwnTable, &sql);
  AddPolicy("rewritten", "{result_tables}", "UPDATE", "USING", kOfOwnTable, &sql);
  for (const std::string_view table :
       {"{models}", "{model_versions}", "{model_types}", "{model_type_versions}", "{jobs}",
        "{job_events}", "{job_metrics}"}) {
    sql.push_back(fmt::format("GRANT SELECT ON {} TO PUBLIC", table));
  }
  // On columns rather than the table: a role that may write a table may also LOCK it, against
  // everyone. A record cannot be moved to another table.
  sql.emplace_back("REVOKE INSERT, UPDATE ON {result_tables} FROM PUBLIC");
  sql.emplace_back(
      "GRANT SELECT, INSERT (schema_name, table_name, identity, columns, statement_kind, job,"
      " written_micros), UPDATE (identity, columns, statement_kind, job, written_micros)"
      " ON {result_tables} TO PUBLIC");
  for (const std::string_view table :
       {"{models}", "{model_versions}", "{model_chunks}", "{jobs}", "{job_events}", "{job_metrics}",
        "{job_terms}", "{job_journal}", "{job_runners}", "{result_tables}", "{job_answers}",
        "{job_records}", "{job_requests}", "{model_types}", "{model_type_versions}",
        "{model_type_chunks}"}) {
    sql.push_back(fmt::format("ALTER TABLE {} ENABLE ROW LEVEL SECURITY", table));
  }
  return sql;
}

}  // namespace sluice::catalog
