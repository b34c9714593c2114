#include <gmock/gmock.h>

#include "catalog/source_url.h"
#include "catalog/sql/sqlstate.h"
#include "tests/catalog/store/stores_fixture.h"

// A role with CREATEDB puts a database of its own in the place of one that keeps models and jobs.
namespace sluice::catalog {
namespace {

using RecreatedDatabaseTest = StoresTest;

TEST_P(RecreatedDatabaseTest, ItsOwnersTriggersDoNotRunAsTheGateway) {
  if (!postgres()) {
    GTEST_SKIP() << "SQLite has no roles";
  }
  const std::string suffix = url().substr(url().rfind('_') + 1);
  const std::string maker = "maker_" + suffix;
  const std::string other = "other_" + suffix;
  Run("CREATE ROLE " + maker + " LOGIN CREATEDB");
  Run("CREATE DATABASE " + other + " OWNER " + maker);
  const std::string other_url = WithDatabase(url(), other);
  {
    const auto gateways = OpenCatalog(other_url).value();
    ASSERT_TRUE(gateways->jobs().Create(Job()).ok());

    Run("DROP DATABASE " + other + " WITH (FORCE)");
    Run("CREATE DATABASE " + other + " OWNER " + maker);
    {
      const Database trap = OpenDatabase(WithRole(other_url, maker)).value();
      ASSERT_TRUE(trap.catalog->MakeTables().ok());
      for (const char* const sql :
           {"CREATE TABLE public.ran (role text)",
            "CREATE FUNCTION public.spring() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN INSERT INTO public.ran VALUES (current_user); RETURN NEW; END $$",
            "CREATE TRIGGER spring BEFORE INSERT ON sluice.jobs FOR EACH ROW"
            " EXECUTE FUNCTION public.spring()"}) {
        ASSERT_TRUE(trap.source->Execute(sql, nullptr, {}).ok()) << sql;
      }
    }
    Status created;
    for (int i = 0; i < 5 && (created.ok() || IsConnectionLost(created)); ++i) {
      created = gateways->jobs().Create(Job()).status();  // its old connections are gone
    }
    EXPECT_EQ(created.sqlstate(), "42501") << created.ToString();
    const Database look = OpenDatabase(other_url).value();
    EXPECT_EQ(look.source->Execute("SELECT role FROM public.ran", nullptr, {})->tag, "SELECT 0")
        << "the trigger has run";
  }
  Run("DROP DATABASE " + other + " WITH (FORCE)");
  Run("DROP ROLE " + maker);
}

TEST_P(RecreatedDatabaseTest, ATemplateKeepsNothing) {
  if (!postgres()) {
    GTEST_SKIP() << "SQLite has no templates";
  }
  const auto refused = OpenCatalog(WithDatabase(url(), "template1"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().sqlstate(), "55000") << refused.status().ToString();
}

ON_BOTH_DATABASES(RecreatedDatabaseTest);

}  // namespace
}  // namespace sluice::catalog
