#include "catalog/store/job_logins.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/random.h>

#include <array>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/sleep.h"
#include "catalog/sql/setup_schema.h"
#include "catalog/sql/sql_session.h"
#include "catalog/sql/sql_text.h"
#include "catalog/store/catalog_rights.h"
#include "catalog/store/catalog_tables.h"

namespace sluice::catalog {
namespace {

constexpr int64_t kKeptMicros = 600'000'000;

constexpr std::string_view kRolePrefix = "sluice_job_";  // as JobLoginFunctions has it

constexpr std::string_view kInUse = "55P03";  // lock_not_available
constexpr int kMostTries = 200;
constexpr std::chrono::milliseconds kBetweenTries{100};

constexpr std::array<std::string_view, 14> kWithPolicies = {
    "{jobs}",           "{job_events}",  "{job_metrics}",         "{job_terms}",
    "{job_journal}",    "{job_runners}", "{job_answers}",         "{job_records}",
    "{models}",         "{model_types}", "{model_type_versions}", "{model_type_chunks}",
    "{model_versions}", "{model_chunks}"};

// As functions of the tables' owner, because what a policy reads is subject to policies, too:
// spelled out, their plans would have hundreds of parts. session_user is the login; a function's
// current_user is its owner.
constexpr std::string_view kFunction =
    "CREATE OR REPLACE FUNCTION {} STABLE LANGUAGE sql SECURITY DEFINER SET search_path ="
    " pg_catalog, pg_temp AS $sql$ {} $sql$";
constexpr std::array<std::string_view, 6> kFunctions = {"sluice.job_of_login()",
                                                        "sluice.owner_of_job()",
                                                        "sluice.model_of_job()",
                                                        "sluice.job_sees_model(text, text)",
                                                        "sluice.job_sees_model_type(text, text)",
                                                        "sluice.job_may_make_model(text, text)"};
constexpr std::string_view kJobOfLogin =
    "SELECT l.job_id FROM {job_logins} AS l JOIN pg_catalog.pg_roles AS r ON r.oid = l.login"
    " WHERE r.rolname = session_user";
constexpr std::string_view kOwner = "(SELECT sluice.owner_of_job())";
// Of a row of {models}, {model_versions} or {model_chunks}: it belongs to the model that the job
// makes.
constexpr std::string_view kOfModel =
    "CASE WHEN schema_name = '' THEN name ELSE schema_name || '.' || name END ="
    " (SELECT sluice.model_of_job())";

// What a job's process writes. Of the job's own row neither owner nor model, and of its process not
// on which machine it is: both say what others do with the job.
constexpr std::array<std::string_view, 13> kGrants = {
    "UPDATE (state, finished_micros, rows_read, rows_trained, rows_retried, rows_skipped, error)"
    " ON {jobs}",
    "INSERT (job_id, micros, kind, detail) ON {job_events}",
    "INSERT (job_id, micros, step, name, value), DELETE ON {job_metrics}",
    "SELECT, INSERT, UPDATE (term) ON {job_terms}",
    "SELECT, INSERT, DELETE ON {job_journal}",
    "SELECT, UPDATE (pid, started, seen_micros), DELETE ON {job_runners}",
    "SELECT, INSERT, UPDATE (answer) ON {job_answers}",
    "SELECT, INSERT, UPDATE (content), DELETE ON {job_records}",
    "INSERT (schema_name, name, next_version, owner), UPDATE (next_version) ON {models}",
    "INSERT, UPDATE (live) ON {model_versions}",
    "SELECT, INSERT ON {model_chunks}",
    "SELECT ON {model_type_chunks}",
    "SELECT ON {model_type_versions}"};

void AddPolicy(std::string_view name, std::string_view table, std::string_view what,
               const std::string& condition, std::vector<std::string>* sql) {
  sql->push_back(fmt::format("DROP POLICY IF EXISTS {} ON {}", name, table));
  sql->push_back(fmt::format("CREATE POLICY {} ON {} FOR {} TO sluice_jobs USING ({})", name, table,
                             what, condition));
}

std::string FunctionOfModel(std::string_view name, std::string_view models,
                            const std::string& condition) {
  return fmt::format(
      kFunction, fmt::format("sluice.{}(text, text) RETURNS boolean", name),
      fmt::format("SELECT EXISTS (SELECT FROM {} WHERE schema_name = $1 AND name = $2 AND {})",
                  models, condition));
}

std::vector<std::string> Definitions() {
  std::vector<std::string> sql = {
      "CREATE TABLE IF NOT EXISTS {job_logins} (job_id bigint PRIMARY KEY,"
      " login regrole NOT NULL UNIQUE)",
      "ALTER TABLE {job_logins} ENABLE ROW LEVEL SECURITY",
      fmt::format(kFunction, "sluice.job_of_login() RETURNS bigint", kJobOfLogin),
      fmt::format(kFunction, "sluice.owner_of_job() RETURNS oid",
                  "SELECT owner::oid FROM {jobs} WHERE id = sluice.job_of_login()"),
      fmt::format(kFunction, "sluice.model_of_job() RETURNS text",
                  "SELECT model FROM {jobs} WHERE id = sluice.job_of_login() AND kind = 'train'"),
      FunctionOfModel("job_sees_model", "{models}", SeenBy(kOwner)),
      FunctionOfModel("job_sees_model_type", "{model_types}", SeenBy(kOwner)),
      FunctionOfModel("job_may_make_model", "{models}", OwnedBy(kOwner))};
  for (const std::string_view function : kFunctions) {
    sql.push_back(fmt::format("REVOKE ALL ON FUNCTION {} FROM PUBLIC", function));
    sql.push_back(fmt::format("GRANT EXECUTE ON FUNCTION {} TO sluice_jobs", function));
  }
  AddPolicy("of_login", "{jobs}", "ALL", "id = (SELECT sluice.job_of_login())", &sql);
  for (const std::string_view table :
       {"{job_events}", "{job_metrics}", "{job_terms}", "{job_journal}", "{job_runners}",
        "{job_answers}", "{job_records}"}) {
    AddPolicy("of_login", table, "ALL", "job_id = (SELECT sluice.job_of_login())", &sql);
  }
  for (const std::string_view table : {"{models}", "{model_types}"}) {
    AddPolicy("seen_by_job", table, "SELECT", SeenBy(kOwner), &sql);
  }
  for (const std::string_view table : {"{model_type_versions}", "{model_type_chunks}"}) {
    AddPolicy("seen_by_job", table, "SELECT", "sluice.job_sees_model_type(schema_name, name)",
              &sql);
  }
  AddPolicy("made_by_job", "{models}", "ALL", fmt::format("{} AND {}", kOfModel, OwnedBy(kOwner)),
            &sql);
  for (const std::string_view table : {"{model_versions}", "{model_chunks}"}) {
    AddPolicy("seen_by_job", table, "SELECT", "sluice.job_sees_model(schema_name, name)", &sql);
    AddPolicy("made_by_job", table, "ALL",
              fmt::format("{} AND sluice.job_may_make_model(schema_name, name)", kOfModel), &sql);
  }
  for (const std::string_view grant : kGrants) {
    sql.push_back(fmt::format("GRANT {} TO sluice_jobs", grant));
  }
  return sql;
}

Result<bool> IsSetUp(CatalogTables& tables, SqlSession& session) {
  ASSIGN_OR_RETURN(
      const SqlRows last,
      session.Query(tables.Resolve("SELECT count(*) FROM pg_catalog.pg_policy WHERE polname ="
                                   " 'made_by_job' AND polrelid ="
                                   " '{model_chunks}'::pg_catalog.regclass"),
                    {}));
  return IntegerCell(last.at(0).at(0)) != 0;
}

// Whoever sets the server up need not know which databases have models: their gateways make the
// policies. That locks the tables, and is not waited for: everybody else would wait behind it.
// False: a transaction uses one of them now.
Result<bool> TrySetUp(CatalogTables& tables, SqlSession& session) {
  ASSIGN_OR_RETURN(const bool before, IsSetUp(tables, session));
  if (before) {
    return true;
  }
  ASSIGN_OR_RETURN(const auto transaction, SqlTransaction::Begin(session, tables.dialect(), true));
  const Status locked =
      session
          .Query(tables.Resolve(fmt::format("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE NOWAIT",
                                            fmt::join(kWithPolicies, ", "))),
                 {})
          .status();
  if (locked.sqlstate() == kInUse) {
    return false;
  }
  RETURN_IF_ERROR(locked);
  ASSIGN_OR_RETURN(const bool meanwhile, IsSetUp(tables, session));
  if (!meanwhile) {
    for (const std::string& definition : Definitions()) {
      RETURN_IF_ERROR(session.Query(tables.Resolve(definition), {}).status());
    }
  }
  RETURN_IF_ERROR(transaction->Commit());
  return true;
}

Status SetUp(CatalogTables& tables, SqlSession& session) {
  for (int tries = 0; tries < kMostTries; ++tries) {
    ASSIGN_OR_RETURN(const bool done, TrySetUp(tables, session));
    if (done) {
      return OkStatus();
    }
    SleepFor(kBetweenTries, {});
  }
  return Unavailable("the tables of schema sluice are in use by transactions that do not end")
      .SqlState(std::string(kInUse))
      .Hint(
          "end those that hold locks on them (pg_locks), and run the statement again: rights for "
          "the logins of jobs are made once in each database");
}

// `logins`: rows of a job's number and its login, NULL if the role is gone. One that something in
// another database depends on can only be locked out, and is tried again.
Status DropLogins(CatalogTables& tables, SqlSession& session, const SqlRows& logins) {
  for (const std::vector<Value>& row : logins) {
    if (!IsNull(row.at(1))) {
      ASSIGN_OR_RETURN(const SqlRows dropped,
                       session.Query("SELECT sluice.drop_job_login($1::pg_catalog.text"
                                     "::pg_catalog.name)::pg_catalog.int4",
                                     {TextCell(row.at(1))}));
      if (IntegerCell(dropped.at(0).at(0)) == 0) {
        continue;
      }
    }
    RETURN_IF_ERROR(session
                        .Query(tables.Resolve("DELETE FROM {job_logins} WHERE job_id = $1"),
                               {IntegerCell(row.at(0))})
                        .status());
  }
  return OkStatus();
}

}  // namespace

std::string DropJobLoginRights() {
  return fmt::format("DROP FUNCTION IF EXISTS {} CASCADE", fmt::join(kFunctions, ", "));
}

std::string IsJobLogin() {
  return "EXISTS (SELECT FROM pg_catalog.pg_auth_members AS g WHERE g.roleid ="
         " pg_catalog.to_regrole('sluice_jobs') AND g.member ="
         " pg_catalog.to_regrole(pg_catalog.quote_ident(session_user::text)))";
}

// Only a superuser can make roles as a function of this name has to: one that another role has put
// in its place is not called.
Result<bool> CanMakeJobLogins(CatalogTables& tables, SqlSession& session) {
  ASSIGN_OR_RETURN(
      const SqlRows found,
      session.Query(
          tables.Resolve("SELECT count(*) FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_roles AS"
                         " r ON r.oid = p.proowner WHERE p.oid IN"
                         " (pg_catalog.to_regprocedure('sluice.make_job_login(name, text)'),"
                         " pg_catalog.to_regprocedure('sluice.drop_job_login(name)')) AND"
                         " r.rolsuper AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')"
                         " AND EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.oid ="
                         " pg_catalog.to_regclass('{jobs}') AND"
                         " pg_catalog.pg_has_role(c.relowner, 'USAGE'))"),
          {}));
  return IntegerCell(found.at(0).at(0)) == 2;
}

// Whoever may create in schema sluice may put a view, or a table with policies, in the place of a
// table that has not been made yet, and so have this login run functions of theirs.
Result<bool> HasOwnLogins(CatalogTables& tables, SqlSession& session) {
  ASSIGN_OR_RETURN(
      const SqlRows found,
      session.Query(tables.Resolve("SELECT 1 FROM pg_catalog.pg_class AS l JOIN pg_catalog.pg_class"
                                   " AS j ON j.oid = pg_catalog.to_regclass('{jobs}') WHERE l.oid ="
                                   " pg_catalog.to_regclass('{job_logins}') AND l.relkind = 'r' AND"
                                   " l.relowner = j.relowner"),
                    {}));
  return !found.empty();
}

Status MakeJobLogin(CatalogTables& tables, SqlSession& session, int64_t job,
                    const std::string& login, const std::string& verifier) {
  RETURN_IF_ERROR(tables.Create(session));
  RETURN_IF_ERROR(SetUp(tables, session));
  ASSIGN_OR_RETURN(const auto transaction, SqlTransaction::Begin(session, tables.dialect(), true));
  // That of a lost process, whose connections end with it.
  ASSIGN_OR_RETURN(
      const SqlRows earlier,
      session.Query(tables.Resolve("SELECT l.job_id, r.rolname::text FROM {job_logins} AS l LEFT"
                                   " JOIN pg_catalog.pg_roles AS r ON r.oid = l.login WHERE"
                                   " l.job_id = $1"),
                    {job}));
  RETURN_IF_ERROR(DropLogins(tables, session, earlier));
  RETURN_IF_ERROR(
      session.Query(tables.Resolve("DELETE FROM {job_logins} WHERE job_id = $1"), {job}).status());
  RETURN_IF_ERROR(session
                      .Query("SELECT sluice.make_job_login($1::pg_catalog.text::pg_catalog.name,"
                             " $2::pg_catalog.text)",
                             {login, verifier})
                      .status());
  RETURN_IF_ERROR(session
                      .Query(tables.Resolve("INSERT INTO {job_logins} (job_id, login) VALUES ($1,"
                                            " $2::pg_catalog.text::pg_catalog.regrole)"),
                             {job, login})
                      .status());
  return transaction->Commit();
}

Status DropJobLogins(CatalogTables& tables, SqlSession& session) {
  ASSIGN_OR_RETURN(const bool exist, tables.Exist(session));  // and are nobody else's
  ASSIGN_OR_RETURN(const bool can, exist ? CanMakeJobLogins(tables, session) : Result<bool>(false));
  if (!can) {
    return OkStatus();
  }
  const Result<bool> ready = TrySetUp(tables, session);
  if (!ready.ok()) {  // the next job's own attempt says why to its user
    log::Debug("jobs get no logins of their own: {}", ready.status().ToString());
  }
  ASSIGN_OR_RETURN(const bool any, HasOwnLogins(tables, session));
  if (!any) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(
      const SqlRows ended,
      session.Query(
          tables.Resolve("SELECT l.job_id, r.rolname::text FROM {job_logins} AS l LEFT JOIN"
                         " pg_catalog.pg_roles AS r ON r.oid = l.login LEFT JOIN {jobs} AS j ON"
                         " j.id = l.job_id WHERE j.id IS NULL OR (j.state NOT IN ('RUNNING',"
                         " 'SUSPENDED') AND j.finished_micros < $1)"),
          {WallMicros() - kKeptMicros}));
  return DropLogins(tables, session, ended);
}

bool IsOfJob(std::string_view role) {
  return role.starts_with(kRolePrefix);
}

Result<JobLogin> NewJobLogin() {
  std::array<uint64_t, 3> numbers{};
  if (getrandom(numbers.data(), sizeof(numbers), 0) != ssize_t{sizeof(numbers)}) {
    return Internal("the kernel gives no random numbers");
  }
  return JobLogin{fmt::format("{}{:016x}", kRolePrefix, numbers[0]),
                  fmt::format("{:016x}{:016x}", numbers[1], numbers[2])};
}

std::string JobLoginFunctions(std::string_view role) {
  return fmt::format(
      R"sql(-- For jobs in processes of their own: lets the gateway's login make a login for each job, which can write that job's
-- rows and its model, and nothing else. In pg_hba.conf they are "+sluice_jobs"; they have passwords (scram-sha-256).
BEGIN;
{1}
DO $$ BEGIN CREATE ROLE sluice_jobs NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
CREATE OR REPLACE FUNCTION sluice.make_job_login(login name, verifier text) RETURNS boolean
  LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF login !~ '^sluice_job_[0-9a-f]{{16}}$' OR verifier NOT LIKE 'SCRAM-SHA-256$%' THEN
    RAISE EXCEPTION 'this is not the login of a job' USING ERRCODE = '22023';
  END IF;
  EXECUTE format('CREATE ROLE %I LOGIN PASSWORD %L IN ROLE sluice_jobs', login, verifier);
  RETURN true;
END $$;
CREATE OR REPLACE FUNCTION sluice.drop_job_login(login name) RETURNS boolean
  LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF login !~ '^sluice_job_[0-9a-f]{{16}}$' THEN
    RAISE EXCEPTION 'this is not the login of a job' USING ERRCODE = '22023';
  END IF;
  EXECUTE format('ALTER ROLE %I NOLOGIN PASSWORD NULL', login);
  PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = login;
  EXECUTE format('DROP OWNED BY %I', login);
  EXECUTE format('DROP ROLE %I', login);
  RETURN true;
EXCEPTION
  WHEN dependent_objects_still_exist THEN  -- in another database; as it is, nobody can use it
    EXECUTE format('ALTER ROLE %I NOLOGIN PASSWORD NULL', login);
    RETURN false;
END $$;
REVOKE ALL ON FUNCTION sluice.make_job_login(name, text), sluice.drop_job_login(name) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sluice.make_job_login(name, text), sluice.drop_job_login(name) TO {0};
COMMIT;
)sql",
      QuoteName(role), MakeCatalogSchema(role));
}

}  // namespace sluice::catalog
