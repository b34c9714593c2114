// What the login of a job may do with the catalog: with its rights a master writes, on a machine
// that may be a stranger's.
#include "catalog/store/job_logins.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <future>
#include <thread>

#include "base/clock.h"
#include "catalog/source_url.h"
#include "catalog/store/adoption.h"
#include "tests/catalog/store/stores_fixture.h"
#include "tests/support/eventually.h"

namespace sluice::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class JobLoginsTest : public StoresTest {
 protected:
  void SetUp() override {
    StoresTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    const std::string database = url().substr(url().rfind('/') + 1);
    for (const std::string& role : {gateway_, ann_, bob_}) {
      Run("CREATE ROLE " + role + " LOGIN");
    }
    Run("GRANT CREATE ON DATABASE " + database + " TO " + gateway_);
    gateways_ = OpenCatalog(WithRole(url(), gateway_)).value();
    ann_catalog_ = gateways_->For({ann_});
    bob_catalog_ = gateways_->For({bob_});
    ann_job_ = ann_catalog_->jobs().Create(JobOf("m")).value();
    bob_job_ = bob_catalog_->jobs().Create(JobOf("bobs")).value();
    ASSERT_TRUE(bob_catalog_->models().Put(Model("bobs"), "weights", true).ok());
    ASSERT_TRUE(bob_catalog_->jobs().KeepRecord(bob_job_, "r", "c").ok());
    ASSERT_TRUE(ann_catalog_->jobs().KeepRecord(ann_job_, "r", "c").ok());
    ASSERT_TRUE(bob_catalog_->jobs().AddEvents(bob_job_, {{1, "e", "d"}}).ok());
    ASSERT_TRUE(bob_catalog_->jobs().BeginTerm(bob_job_).ok());
  }
  void TearDown() override {
    if (!IsSkipped()) {
      ann_catalog_.reset();
      bob_catalog_.reset();
      gateways_.reset();
      Run("DO $$ DECLARE r record; BEGIN FOR r IN SELECT l.login FROM sluice.job_logins AS l LOOP "
          "EXECUTE format('DROP ROLE %s', r.login); END LOOP; EXCEPTION WHEN undefined_table THEN "
          "NULL; END $$");
      for (const std::string& role : {gateway_, ann_, bob_}) {
        Run("DROP OWNED BY " + role + " CASCADE");
        Run("DROP ROLE " + role);
      }
    }
    StoresTest::TearDown();
  }
  // As an administrator does with what `sluice setup` prints.
  void RunAsAdministrator(const std::string& script) { EXPECT_EQ(ExitOf(script), 0) << script; }
  int ExitOf(const std::string& script) {
    FILE* const psql = popen(("psql -X -q -v ON_ERROR_STOP=1 '" + url() + "'").c_str(), "w");
    EXPECT_NE(psql, nullptr);
    EXPECT_EQ(fwrite(script.data(), 1, script.size(), psql), script.size());
    return pclose(psql);
  }
  void PrepareServer() { RunAsAdministrator(JobLoginFunctions(gateway_)); }
  DatabaseLogin MakeLogin() {
    PrepareServer();
    const auto login = gateways_->LoginForJob(ann_job_, false);
    EXPECT_TRUE(login.ok()) << login.status().ToString();
    return login.ok() ? *login : DatabaseLogin();
  }
  static Job JobOf(const std::string& model) {
    Job job;
    job.kind = "train";
    job.model = model;
    job.started_micros = WallMicros();
    job.runner = {"pods/training/uid", 1, 0, job.started_micros};
    return job;
  }
  size_t JobRoles() {
    return Select("SELECT FROM pg_roles AS r JOIN sluice.job_logins AS l ON l.login = r.oid")
        .size();
  }

  const std::string suffix_ = std::to_string(getpid());
  const std::string gateway_ = "gateway_" + suffix_, ann_ = "ann_" + suffix_,
                    bob_ = "bob_" + suffix_;
  std::unique_ptr<Catalog> gateways_, ann_catalog_, bob_catalog_;
  int64_t ann_job_ = 0, bob_job_ = 0;
};

TEST_P(JobLoginsTest, WritesItsJobAndItsModel) {
  const DatabaseLogin login = MakeLogin();
  ASSERT_TRUE(RoleIn(login.url).starts_with("sluice_job_")) << login.url;
  auto opened = OpenCatalog(login.url, login.secret);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  const auto master = (*opened)->For({ann_});
  JobStore& jobs = master->jobs();
  Job job = jobs.Find(ann_job_).value();
  ASSERT_THAT(jobs.Running().value(), SizeIs(1));
  job.runner = jobs.Running()->at(0).runner;
  const auto ok = [](const Status& status) { EXPECT_TRUE(status.ok()) << status.ToString(); };
  EXPECT_EQ(jobs.BeginTerm(ann_job_).value(), 1);
  EXPECT_EQ(jobs.BeginTerm(ann_job_).value(), 2);
  std::optional<int64_t> last;
  ok(jobs.AppendJournal(ann_job_, 2, {"one"}, false, &last));
  ok(jobs.AppendJournal(ann_job_, 2, {"two"}, true, &last));
  EXPECT_THAT(jobs.Journal(ann_job_).value(), ElementsAre("two"));
  ok(jobs.KeepRecord(ann_job_, "name", "before"));
  ok(jobs.KeepRecord(ann_job_, "name", "after"));
  EXPECT_THAT(jobs.Records(ann_job_, "n").value(), ElementsAre(Pair("name", "after")));
  ok(jobs.AddEvents(ann_job_, {{1, "kind", "detail"}}));
  EXPECT_THAT(jobs.Events(ann_job_, 0).value(), SizeIs(1));
  ok(jobs.AddMetrics(ann_job_, {{1, 1, "loss", 1}, {2, 2, "loss", 2}, {3, 3, "loss", 3}}));
  ok(jobs.ThinMetrics(ann_job_, 2));
  EXPECT_THAT(jobs.Metrics(ann_job_).value(), SizeIs(2));
  ok(jobs.WriteRows(ann_job_, 3, 2));
  EXPECT_TRUE(jobs.Seen(ann_job_, {"", 0, 0, 5}).value());
  const JobRunner successor = {job.runner.place, 2, 3, 4};
  EXPECT_TRUE(jobs.TakeOver(ann_job_, job.runner, successor).value());
  EXPECT_EQ(jobs.TakeOver(ann_job_, successor, {"elsewhere", 2, 3, 4}).status().sqlstate(),
            "42501");
  job.runner = successor;
  EXPECT_FALSE(jobs.CancelRequested(ann_job_).value());
  ok(jobs.SetSuspended(ann_job_, true));
  ok(jobs.SetSuspended(ann_job_, false));

  ok(master->models().CheckMayPut("", "m"));
  ok(master->models().Put(Model("m"), "first", false).status());
  const auto made = master->models().PutAndEnd(Model("m"), "weights", false, [&](const auto&) {
    job.state = JobState::kSucceeded;
    job.finished_micros = WallMicros();
    job.answer = "the answer";
    return job;
  });
  ok(made.status());
  EXPECT_EQ(made->version, 2);
  EXPECT_EQ(master->models().LoadWeights(*made).value(), "weights");
  EXPECT_EQ(ann_catalog_->jobs().Find(ann_job_)->state, JobState::kSucceeded);
  EXPECT_EQ(jobs.Find(ann_job_)->state, JobState::kSucceeded);
  EXPECT_EQ(ann_catalog_->jobs().Answer(ann_job_).value(), "the answer");
  EXPECT_THAT(ann_catalog_->models().Versions("", "m").value(), SizeIs(2));
}

// Models to begin with, and model types: those that its owner may use.
TEST_P(JobLoginsTest, ReadsWhatItsOwnerSees) {
  const DatabaseLogin login = MakeLogin();
  const auto opened = OpenCatalog(login.url, login.secret);
  const auto master = (*opened)->For({ann_});
  EXPECT_EQ(master->models().Find("", "bobs", {}).status().code(), Code::kNotFound);
  EXPECT_EQ((*opened)->For({bob_})->models().Find("", "bobs", {}).status().code(), Code::kNotFound);
  ASSERT_TRUE(bob_catalog_->models().Grant("", "bobs", {ann_}, {true, false}).ok());
  const auto found = master->models().FindFor(ModelRight::kUsage, "", "bobs", {});
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_EQ(master->models().LoadWeights(*found).value(), "weights");
  ASSERT_TRUE(ann_catalog_->model_types().Put(Model("t"), "source", true).ok());
  EXPECT_EQ(master->model_types().LoadWeights(*master->model_types().Find("", "t", {})).value(),
            "source");
}

TEST_P(JobLoginsTest, MayDoNothingElse) {
  const DatabaseLogin login = MakeLogin();
  const auto session = OpenDataSource(login.url, login.secret).value();
  const std::string job = std::to_string(ann_job_), other = std::to_string(bob_job_);
  for (const std::string& sql : std::vector<std::string>{
           "UPDATE sluice.jobs SET owner = '" + bob_ + "' WHERE id = " + job,
           "UPDATE sluice.jobs SET model = 'bobs' WHERE id = " + job,
           "UPDATE sluice.job_runners SET place = 'elsewhere' WHERE job_id = " + job,
           "UPDATE sluice.job_logins SET job_id = " + other,
           "UPDATE sluice.models SET users = '{0}'",
           "UPDATE sluice.models SET owner = '" + ann_ + "'",
           "UPDATE sluice.model_versions SET plan = ''",
           "DELETE FROM sluice.jobs",
           "DELETE FROM sluice.models",
           "DELETE FROM sluice.model_versions",
           "TRUNCATE sluice.job_events",
           "UPDATE sluice.job_events SET job_id = " + other,
           "UPDATE sluice.job_records SET job_id = " + other + " WHERE job_id = " + job,
           "INSERT INTO sluice.job_events (job_id, micros, kind, detail) VALUES (" + other +
               ", 1, 'k', 'd')",
           "INSERT INTO sluice.job_records VALUES (" + other + ", 'statement', '')",
           "INSERT INTO sluice.job_journal (job_id, entry) VALUES (" + other + ", '')",
           "INSERT INTO sluice.job_answers VALUES (" + other + ", '')",
           "INSERT INTO sluice.models (schema_name, name, next_version, owner) VALUES ('', 'n', 1, "
           "'" +
               ann_ + "')",
           "INSERT INTO sluice.models (schema_name, name, next_version, owner) VALUES ('', 'm', 1, "
           "'" +
               bob_ + "')",
           "INSERT INTO sluice.models (schema_name, name, next_version, owner, users) "
           "VALUES ('', 'm', 1, '0', '{0}')",
           "INSERT INTO sluice.model_chunks VALUES ('', 'bobs', 1, 9, '')",

           "INSERT INTO sluice.result_tables (schema_name, table_name, identity, columns,"
           " statement_kind, job, written_micros) VALUES ('sluice', 'jobs', '', '', '',"
           " 1, 1)",
           "CREATE TABLE sluice.another ()",
           "CREATE POLICY p ON sluice.jobs",
           "ALTER TABLE sluice.jobs DISABLE ROW LEVEL SECURITY",
           "DO $$ BEGIN LOCK TABLE sluice.jobs IN ACCESS EXCLUSIVE MODE; END $$",
           "SELECT FROM sluice.job_logins",
           "SET ROLE " + gateway_,
           "SET ROLE " + ann_,
           "SET SESSION AUTHORIZATION " + gateway_,
           "ALTER ROLE " + gateway_ + " PASSWORD 'x'",
           "SELECT sluice.make_job_login('sluice_job_0123456789abcdef', "
           "'SCRAM-SHA-256$x')",
           "SELECT sluice.drop_job_login('sluice_job_0123456789abcdef')",
       }) {
    EXPECT_EQ(session->Execute(sql, nullptr, {}).status().sqlstate(), "42501") << sql;
  }
  struct Counter final : RowReceiver {
    Status Header(const Schema&) override { return OkStatus(); }
    Status Rows(const RowBatch& batch) override {
      rows += batch.rows;
      return OkStatus();
    }
    int64_t rows = 0;
  };
  for (const std::string& sql : std::vector<std::string>{
           "SELECT id FROM sluice.jobs WHERE id <> " + job,
           "SELECT job_id FROM sluice.job_records WHERE job_id <> " + job,
           "SELECT job_id FROM sluice.job_events WHERE job_id <> " + job,
           "SELECT job_id FROM sluice.job_terms WHERE job_id <> " + job,
           "SELECT job_id FROM sluice.job_runners WHERE job_id <> " + job,
           "SELECT name FROM sluice.models",
           "SELECT name FROM sluice.model_versions",
           "SELECT name FROM sluice.model_chunks",
           "UPDATE sluice.jobs SET state = 'FAILED' WHERE id = " + other + " RETURNING id",
           "UPDATE sluice.job_terms SET term = 99 WHERE job_id = " + other + " RETURNING job_id",
           "UPDATE sluice.model_versions SET live = false RETURNING name",
           "DELETE FROM sluice.job_runners WHERE job_id = " + other + " RETURNING job_id",
           "DELETE FROM sluice.job_records WHERE job_id = " + other + " RETURNING job_id",
       }) {
    Counter counter;
    const auto done = session->Execute(sql, &counter, {});
    EXPECT_TRUE(done.ok()) << sql << "\n" << done.status().ToString();
    EXPECT_EQ(counter.rows, 0) << sql;
  }
}

// The gateway's login has got no right to make other roles by it.
TEST_P(JobLoginsTest, TheFunctionsMakeAndDropNothingElse) {
  PrepareServer();
  const auto session = OpenDataSource(WithRole(url(), gateway_)).value();
  for (const std::string& sql : std::vector<std::string>{
           "SELECT sluice.make_job_login('boss', 'SCRAM-SHA-256$4096:x$y:z')",
           "SELECT sluice.make_job_login('sluice_job_0123456789abcdef SUPERUSER', "
           "'SCRAM-SHA-256$4096:x$y:z')",
           "SELECT sluice.make_job_login('sluice_job_0123456789abcdef', 'secret')",
           "SELECT sluice.drop_job_login('" + ann_ + "')"}) {
    EXPECT_EQ(session->Execute(sql, nullptr, {}).status().sqlstate(), "22023") << sql;
  }
}

TEST_P(JobLoginsTest, IsDroppedTenMinutesAfterItsJobsEnd) {
  const DatabaseLogin login = MakeLogin();
  ASSERT_TRUE(gateways_->DropLeftovers().ok());
  EXPECT_EQ(JobRoles(), 1U);
  Job job = ann_catalog_->jobs().Find(ann_job_).value();
  job.state = JobState::kFailed;
  job.finished_micros = WallMicros();
  ASSERT_TRUE(gateways_->jobs().End(job).ok());
  ASSERT_TRUE(gateways_->DropLeftovers().ok());
  EXPECT_EQ(JobRoles(), 1U);
  Run("UPDATE sluice.jobs SET finished_micros = finished_micros - 601000000");
  const auto still_there = OpenCatalog(login.url, login.secret);
  ASSERT_TRUE(still_there.ok());
  const Status dropped = gateways_->DropLeftovers();
  ASSERT_TRUE(dropped.ok()) << dropped.ToString();
  EXPECT_EQ(JobRoles(), 0U);
  EXPECT_THAT(Select("SELECT FROM sluice.job_logins"), IsEmpty());
  EXPECT_TRUE(OpenCatalog(login.url, login.secret).status().sqlstate().starts_with("28"));
}

// Making the policies locks tables that everybody reads.
TEST_P(JobLoginsTest, SettingUpHoldsUpNobody) {
  PrepareServer();
  const std::jthread reader(
      [this] { ExitOf("BEGIN; SELECT FROM sluice.model_versions; SELECT pg_sleep(2); COMMIT;"); });
  const auto held = [this] {
    return !Select(
                "SELECT FROM pg_locks WHERE relation = 'sluice.model_versions'::regclass AND"
                " granted AND mode = 'AccessShareLock' AND pid <> pg_backend_pid()")
                .empty();
  };
  ASSERT_TRUE(Eventually(held));
  auto login =
      std::async(std::launch::async, [this] { return gateways_->LoginForJob(ann_job_, false); });
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(ann_catalog_->models().Find("", "none", {}).status().code(), Code::kNotFound);
  }
  EXPECT_TRUE(held()) << "or nothing was in the way";
  const auto made = login.get();
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_NE(made->url, gateways_->url());
}

// Whoever grants it something keeps its role from being dropped otherwise.
TEST_P(JobLoginsTest, IsDroppedWithWhatOthersHaveGrantedIt) {
  const DatabaseLogin login = MakeLogin();
  RunAsAdministrator("CREATE TABLE pin (i int); ALTER TABLE pin OWNER TO " + bob_ + "; SET ROLE " +
                     bob_ + "; GRANT SELECT ON pin TO " + RoleIn(login.url));
  Job job = ann_catalog_->jobs().Find(ann_job_).value();
  job.state = JobState::kFailed;
  job.finished_micros = WallMicros() - 601'000'000;
  ASSERT_TRUE(gateways_->jobs().End(job).ok());
  ASSERT_TRUE(gateways_->DropLeftovers().ok());
  EXPECT_THAT(Select("SELECT FROM pg_roles WHERE rolname = '" + RoleIn(login.url) + "'"),
              IsEmpty());
  Run("DROP TABLE pin");
}

// Only a training makes a model.
TEST_P(JobLoginsTest, APredictionStoresNoVersionOfItsModel) {
  ASSERT_TRUE(ann_catalog_->models().Put(Model("m"), "weights", false).ok());
  Job job = JobOf("m");
  job.kind = "predict";
  ann_job_ = ann_catalog_->jobs().Create(job).value();
  const DatabaseLogin login = MakeLogin();
  const auto opened = OpenCatalog(login.url, login.secret).value();
  const auto predicting = opened->For({ann_});
  EXPECT_EQ(predicting->models().LoadWeights(*predicting->models().Find("", "m", {})).value(),
            "weights");
  EXPECT_EQ(predicting->models().Put(Model("m"), "other", false).status().sqlstate(), "42501");
}

// A lost process writes no more once another one has a login for the same job.
TEST_P(JobLoginsTest, IsReplacedByTheNext) {
  const DatabaseLogin first = MakeLogin();
  const auto lost = OpenCatalog(first.url, first.secret).value();
  ASSERT_EQ(lost->jobs().BeginTerm(ann_job_).value(), 1);
  const DatabaseLogin second = MakeLogin();
  EXPECT_NE(second.url, first.url);
  EXPECT_FALSE(lost->jobs().BeginTerm(ann_job_).ok());
  EXPECT_TRUE(OpenCatalog(first.url, first.secret).status().sqlstate().starts_with("28"));
  EXPECT_EQ(OpenCatalog(second.url, second.secret).value()->jobs().BeginTerm(ann_job_).value(), 2);
  EXPECT_EQ(JobRoles(), 1U);
}

// Processes of this machine are let in as this one is.
TEST_P(JobLoginsTest, ThereIsNoneWhereNoPasswordIsAsked) {
  PrepareServer();
  EXPECT_EQ(gateways_->LoginForJob(ann_job_, true)->url, gateways_->url());
}

// Or one that a role without such rights has put in its place.
TEST_P(JobLoginsTest, ThereIsNoneWithoutASuperusersFunction) {
  EXPECT_EQ(gateways_->LoginForJob(ann_job_, false)->url, gateways_->url());
  Run("SET ROLE " + gateway_);
  Run("CREATE FUNCTION sluice.make_job_login(login name, verifier text) RETURNS boolean RETURN "
      "true");
  Run("CREATE FUNCTION sluice.drop_job_login(login name) RETURNS boolean RETURN true");
  EXPECT_EQ(gateways_->LoginForJob(ann_job_, false)->url, gateways_->url());
  Run("RESET ROLE");
}

// Whoever may create in the schema, before the first job has a login.
TEST_P(JobLoginsTest, WhatAnotherRolePutsInTheTablesPlaceIsNotRead) {
  PrepareServer();
  RunAsAdministrator("GRANT CREATE ON SCHEMA sluice TO " + bob_ +
                     "; CREATE TABLE loot (who text); GRANT ALL ON loot TO PUBLIC;"
                     " CREATE FUNCTION evil() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN INSERT"
                     " INTO public.loot VALUES (current_user); RETURN 1; END $$;"
                     " ALTER FUNCTION evil() OWNER TO " +
                     bob_);
  for (const std::string place :
       {"CREATE VIEW sluice.job_logins AS SELECT public.evil() AS job_id, 0::oid::regrole AS login",
        "CREATE TABLE sluice.job_logins (job_id bigint, login regrole); ALTER TABLE"
        " sluice.job_logins ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON sluice.job_logins USING"
        " (public.evil() = 1); INSERT INTO sluice.job_logins VALUES (1, 0::oid)"}) {
    RunAsAdministrator("SET ROLE " + bob_ + "; " + place +
                       "; GRANT ALL ON sluice.job_logins TO PUBLIC");
    const Status dropped = gateways_->DropLeftovers();
    EXPECT_TRUE(dropped.ok()) << dropped.ToString();
    EXPECT_FALSE(gateways_->LoginForJob(ann_job_, false).ok());
    EXPECT_THAT(Select("SELECT who FROM loot"), IsEmpty()) << place;
    Run(place.starts_with("CREATE VIEW") ? "DROP VIEW sluice.job_logins"
                                         : "DROP TABLE sluice.job_logins");
  }
  RunAsAdministrator("DROP TABLE loot; DROP FUNCTION evil()");
}

// `sluice setup --adopt`: its functions would else run with the rights of their first owner.
TEST_P(JobLoginsTest, AnotherLoginThatGetsTheCatalogMakesThemToo) {
  MakeLogin();
  RunAsAdministrator(AdoptionScript(bob_));
  RunAsAdministrator(JobLoginFunctions(bob_));
  const auto adopted = OpenCatalog(WithRole(url(), bob_)).value();
  const auto login = adopted->LoginForJob(bob_job_, false);
  ASSERT_TRUE(login.ok()) << login.status().ToString();
  const auto master = OpenCatalog(login->url, login->secret).value();
  EXPECT_EQ(master->jobs().BeginTerm(bob_job_).value(), 2);
  EXPECT_EQ(Select("SELECT DISTINCT proowner::regrole::text FROM pg_proc WHERE pronamespace = "
                   "'sluice'::regnamespace ORDER BY 1"),
            (Texts{{bob_}, {"postgres"}}));
}

// What the former owner has hidden in the catalog would run with the rights of the new one.
TEST_P(JobLoginsTest, NothingHiddenIsAdopted) {
  RunAsAdministrator("CREATE SCHEMA trap AUTHORIZATION " + gateway_ + "; SET ROLE " + gateway_ +
                     "; CREATE FUNCTION trap.evil() RETURNS boolean RETURN true;"
                     " CREATE VIEW trap.v AS SELECT trap.evil() AS x;"
                     " CREATE DOMAIN trap.d AS text CHECK (trap.evil());"
                     " CREATE FUNCTION trap.fires() RETURNS trigger LANGUAGE plpgsql AS"
                     " 'BEGIN RETURN NEW; END'");
  const std::vector<std::pair<std::string, std::string>> traps = {
      {"CREATE RULE r AS ON INSERT TO sluice.job_metrics DO ALSO SELECT x FROM trap.v",
       "DROP RULE r ON sluice.job_metrics"},
      {"CREATE TRIGGER g BEFORE INSERT ON sluice.jobs FOR EACH ROW EXECUTE FUNCTION trap.fires()",
       "DROP TRIGGER g ON sluice.jobs"},
      {"CREATE TABLE trap.child () INHERITS (sluice.jobs)", "DROP TABLE trap.child"},
      {"ALTER TABLE sluice.job_events ALTER COLUMN detail TYPE trap.d",
       "ALTER TABLE sluice.job_events ALTER COLUMN detail TYPE text"},
      {"CREATE VIEW sluice.job_logins AS SELECT x FROM trap.v", "DROP VIEW sluice.job_logins"},
      {"CREATE FUNCTION sluice.f() RETURNS boolean RETURN true", "DROP FUNCTION sluice.f()"},
      {"CREATE TABLE trap.refers (id bigint REFERENCES sluice.jobs)", "DROP TABLE trap.refers"}};
  for (const auto& [set, taken_away] : traps) {
    RunAsAdministrator("SET ROLE " + gateway_ + "; " + set);
    EXPECT_NE(ExitOf(AdoptionScript(bob_)), 0) << set;
    RunAsAdministrator(taken_away);
  }
  // These are made anew.
  RunAsAdministrator("SET ROLE " + gateway_ +
                     "; CREATE POLICY p ON sluice.models USING (EXISTS (SELECT FROM trap.v));"
                     " ALTER TABLE sluice.models FORCE ROW LEVEL SECURITY;"
                     " GRANT TRIGGER, UPDATE ON sluice.models TO " +
                     ann_ + "; GRANT CREATE ON SCHEMA sluice TO " + ann_);
  RunAsAdministrator(AdoptionScript(bob_));
  EXPECT_THAT(Select("SELECT FROM pg_policy WHERE polname = 'p'"), IsEmpty());
  EXPECT_THAT(Select("SELECT FROM pg_class WHERE relforcerowsecurity"), IsEmpty());
  EXPECT_EQ(
      Select("SELECT has_table_privilege('" + ann_ +
             "', 'sluice.models', 'TRIGGER, UPDATE'), has_table_privilege('" + ann_ +
             "', 'sluice.models', 'SELECT'), has_schema_privilege('" + ann_ +
             "', 'sluice', 'CREATE'), has_schema_privilege('" + ann_ + "', 'sluice', 'USAGE')"),
      (Texts{{"f", "t", "f", "t"}}));
  const auto adopted = OpenCatalog(WithRole(url(), bob_)).value();
  EXPECT_TRUE(adopted->models().Find("", "bobs", std::nullopt).ok());
  RunAsAdministrator("DROP SCHEMA trap CASCADE");
}

INSTANTIATE_TEST_SUITE_P(Postgres, JobLoginsTest, ::testing::Values("postgresql"));

}  // namespace
}  // namespace sluice::catalog
