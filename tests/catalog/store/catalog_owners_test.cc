#include <gmock/gmock.h>

#include "tests/catalog/store/stores_fixture.h"

namespace sluice::catalog {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

using CatalogOwnersTest = StoresTest;

// Models and jobs of earlier versions had no owner.
TEST_P(CatalogOwnersTest, AnOlderCatalogGetsOwners) {
  if (!postgres()) {
    GTEST_SKIP() << "SQLite has no roles";
  }
  ASSERT_TRUE(catalog().models().Put(Model("m"), "w", true).ok());
  ASSERT_TRUE(catalog().jobs().Create(Job()).ok());
  Run("DO $$ DECLARE p record; BEGIN FOR p IN SELECT * FROM pg_policies WHERE schemaname = 'sluice'"
      " LOOP EXECUTE format('DROP POLICY %I ON sluice.%I', p.policyname, p.tablename);"
      " EXECUTE format('ALTER TABLE sluice.%I DISABLE ROW LEVEL SECURITY', p.tablename); END LOOP;"
      " END $$");
  Run("ALTER TABLE sluice.models DROP COLUMN owner");
  Run("ALTER TABLE sluice.models DROP COLUMN users");
  Run("ALTER TABLE sluice.jobs DROP COLUMN owner, DROP COLUMN owner_name");
  Run("REVOKE ALL ON ALL TABLES IN SCHEMA sluice FROM PUBLIC");
  const auto later = OpenCatalog(url());
  ASSERT_TRUE(later.ok());
  EXPECT_THAT((*later)->models().List().value(), SizeIs(1));
  EXPECT_THAT((*later)->jobs().List().value(), SizeIs(1));
  EXPECT_EQ(Select("SELECT m.owner, j.owner, m.users FROM sluice.models m, sluice.jobs j"),
            (Texts{{"postgres", "postgres", "{}"}}));
  EXPECT_EQ(Select("SELECT count(*) FROM pg_class WHERE relnamespace = 'sluice'::regnamespace"
                   " AND relkind = 'r' AND NOT relrowsecurity")[0][0],
            "0");
  Run("CREATE ROLE stranger_" + url().substr(url().rfind('_') + 1));
  const auto stranger = (*later)->For({"stranger_" + url().substr(url().rfind('_') + 1)});
  EXPECT_THAT(stranger->models().List().value(), IsEmpty());
  EXPECT_THAT(stranger->jobs().List().value(), IsEmpty());
  EXPECT_EQ(stranger->jobs().Find(1).status().code(), Code::kNotFound);
  EXPECT_EQ(stranger->jobs().Count().value(), 0);
  EXPECT_EQ(stranger->models().Put(Model("m"), "w", false).status().sqlstate(), "42501");
  EXPECT_TRUE(stranger->models().Put(Model("n"), "w", true).ok());
  EXPECT_THAT(stranger->models().List().value(), SizeIs(1));
  Run("UPDATE sluice.models SET owner = '4000000000' WHERE name = 'm'");
  EXPECT_THAT((*later)->models().List().value(), SizeIs(2)) << "a superuser sees what is left";
  EXPECT_EQ((*later)->For({"nobody_at_all"})->models().List().status().sqlstate(), "42704");
  Run("DROP ROLE stranger_" + url().substr(url().rfind('_') + 1));
}

// And those of the versions after them belonged to a role by its name.
TEST_P(CatalogOwnersTest, OwnersByNameBecomeOwnersByOid) {
  if (!postgres()) {
    GTEST_SKIP() << "SQLite has no roles";
  }
  const std::string suffix = url().substr(url().rfind('_') + 1);
  const std::string ann = "Ann of_" + suffix;
  const std::string bob = "bob_" + suffix;
  Run("CREATE ROLE \"" + ann + "\"");
  Run("CREATE ROLE " + bob);
  for (const char* const name : {"m", "n", "o"}) {
    ASSERT_TRUE(catalog().models().Put(Model(name), "w", true).ok());
  }
  Job job;
  job.user = ann;
  ASSERT_TRUE(catalog().jobs().Create(job).ok());
  Run("DO $$ DECLARE p record; BEGIN FOR p IN SELECT * FROM pg_policies WHERE schemaname = 'sluice'"
      " LOOP EXECUTE format('DROP POLICY %I ON sluice.%I', p.policyname, p.tablename);"
      " END LOOP; END $$");
  Run("ALTER TABLE sluice.jobs DROP COLUMN owner, DROP COLUMN owner_name,"
      " ADD COLUMN owner text NOT NULL DEFAULT session_user");
  Run("ALTER TABLE sluice.models DROP COLUMN owner, DROP COLUMN users,"
      " ADD COLUMN owner text NOT NULL DEFAULT session_user,"
      " ADD COLUMN users text[] NOT NULL DEFAULT '{}'");
  Run("CREATE POLICY owned ON sluice.models USING (owner = current_user)");
  Run("CREATE POLICY owned ON sluice.jobs USING (owner = current_user)");
  Run("UPDATE sluice.jobs SET owner = '" + ann + "'");
  Run("UPDATE sluice.models SET owner = '" + ann + "', users = ARRAY['nobody_at_all', '" + bob +
      "'] WHERE name = 'm'");
  Run("UPDATE sluice.models SET owner = 'nobody_at_all', users = ARRAY['public'] WHERE name = 'n'");
  Run("UPDATE sluice.models SET owner = 'nobody_at_all' WHERE name = 'o'");
  Run("GRANT SELECT, INSERT, UPDATE ON sluice.result_tables TO PUBLIC");

  const auto later = OpenCatalog(url());
  ASSERT_TRUE(later.ok());
  EXPECT_THAT((*later)->models().List().value(), SizeIs(3));
  EXPECT_EQ(
      Select("SELECT name, owner::text, users::text FROM sluice.models ORDER BY name"),
      (Texts{{"m", "\"" + ann + "\"", "{" + bob + "}"}, {"n", "-", "{-}"}, {"o", "-", "{}"}}));
  const auto as_ann = (*later)->For({ann});
  EXPECT_THAT(as_ann->models().List().value(), SizeIs(2));
  EXPECT_EQ(as_ann->jobs().Find(1).value().user, ann);
  EXPECT_THAT((*later)->For({bob})->models().List().value(), SizeIs(2));
  EXPECT_EQ((*later)->For({bob})->models().CheckMayPut("", "m").sqlstate(), "42501");
  EXPECT_EQ(Select("SELECT has_table_privilege('" + bob +
                   "', 'sluice.result_tables', 'UPDATE'),"
                   " has_table_privilege('" +
                   bob + "', 'sluice.result_tables', 'INSERT')"),
            (Texts{{"f", "f"}}));
  Run("DROP ROLE \"" + ann + "\"");
  Run("DROP ROLE " + bob);
}

// Owners are roles, not names; reusing a name gives no access.
TEST_P(CatalogOwnersTest, OwnersAreRolesAndNotTheirNames) {
  if (!postgres()) {
    GTEST_SKIP() << "SQLite has no roles";
  }
  const std::string suffix = url().substr(url().rfind('_') + 1);
  const std::string ann = "ann_" + suffix;
  const std::string eve = "eve_" + suffix;
  const std::string guest = "guest_" + suffix;
  Run("CREATE ROLE " + ann);
  Run("CREATE ROLE " + guest);
  const auto before = catalog().For({ann});
  ASSERT_TRUE(before->models().Put(Model("m"), "w", true).ok());
  ASSERT_TRUE(before->models().Grant("", "m", {guest, "public"}, {.usage = true}).ok());
  ASSERT_TRUE(before->models().Revoke("", "m", {"public"}, {.usage = true}).ok());
  Job job;
  job.user = ann;
  ASSERT_TRUE(before->jobs().Create(job).ok());
  job.user = "claimed";
  ASSERT_TRUE(before->jobs().Create(job).ok());

  Run("ALTER ROLE " + ann + " RENAME TO " + eve);
  Run("CREATE ROLE " + ann);
  const auto renamed = catalog().For({eve});
  EXPECT_THAT(renamed->models().List().value(), SizeIs(1));
  EXPECT_EQ(renamed->jobs().Find(1).value().user, eve) << "its name of today";
  EXPECT_EQ(renamed->jobs().Find(2).value().user, "claimed");
  EXPECT_TRUE(renamed->models().Put(Model("m"), "w", false).ok());
  EXPECT_EQ(Select("SELECT owner::text, users::text FROM sluice.models"),
            (Texts{{eve, "{" + guest + "}"}}));
  // A session from before the change keeps its role.
  EXPECT_TRUE(before->models().Put(Model("m"), "w", false).ok());
  EXPECT_THAT(before->jobs().List().value(), SizeIs(2));
  // The role that has the name now is a different one, also in plain SQL.
  const auto stranger = catalog().For({ann});
  EXPECT_THAT(stranger->models().List().value(), IsEmpty());
  EXPECT_EQ(stranger->jobs().Count().value(), 0);
  EXPECT_EQ(stranger->models().Put(Model("m"), "w", false).status().sqlstate(), "42501");
  const auto seen_by = [&](const std::string& role) {
    Run("SET ROLE " + role);
    const Texts seen = Select(
        "SELECT (SELECT count(*) FROM sluice.models),"
        " (SELECT count(*) FROM sluice.model_versions),"
        " (SELECT count(*) FROM sluice.jobs)");
    Run("RESET ROLE");
    return seen;
  };
  EXPECT_EQ(seen_by(eve), (Texts{{"1", "3", "2"}}));
  EXPECT_EQ(seen_by(ann), (Texts{{"0", "0", "0"}}));
  EXPECT_EQ(seen_by(guest), (Texts{{"1", "0", "0"}})) << "USAGE shows no plans";

  // A role that takes a dropped role's name inherits nothing.
  for (const std::string& gone : {eve, guest}) {
    Run("DROP ROLE " + gone);
    Run("CREATE ROLE " + gone);
  }
  EXPECT_THAT(catalog().For({eve})->models().List().value(), IsEmpty());
  EXPECT_THAT(catalog().For({guest})->models().List().value(), IsEmpty());
  EXPECT_EQ(seen_by(eve), (Texts{{"0", "0", "0"}}));
  EXPECT_EQ(seen_by(guest), (Texts{{"0", "0", "0"}}));
  // What the dropped role had begun is still stored, for superusers.
  EXPECT_TRUE(before->models().Put(Model("m"), "w", false).ok());
  EXPECT_THAT(catalog().models().List().value(), SizeIs(1));
  EXPECT_EQ(catalog().jobs().Find(1).value().user, ann) << "the name that it had";
  for (const std::string& role : {ann, eve, guest}) {
    Run("DROP ROLE " + role);
  }
}

ON_BOTH_DATABASES(CatalogOwnersTest);

}  // namespace
}  // namespace sluice::catalog
