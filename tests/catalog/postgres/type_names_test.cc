#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "catalog/data_source.h"
#include "catalog/postgres/postgres_connection_internal.h"
#include "catalog/postgres/postgres_types_internal.h"
#include "tests/support/postgres_server.h"

namespace sluice::catalog {
namespace {

TEST(PostgresTypeNames, BuiltInTypesAreWhatTheServerSays) {
  const char* url = std::getenv("SLUICE_TEST_POSTGRES");
  if (url == nullptr || std::string(url) == "none") {
    GTEST_SKIP() << "needs a PostgreSQL server: SLUICE_TEST_POSTGRES";
  }
  const auto connection = PostgresConnection::Connect({url, ""});
  ASSERT_TRUE(connection.ok()) << connection.status().ToString();
  const auto types = (*connection)
                         ->Ask(
                             "SELECT t.oid, format_type(t.oid, NULL), n.nspname || '.' || p.proname"
                             " FROM pg_type AS t JOIN pg_proc AS p ON p.oid = t.typsend"
                             " JOIN pg_namespace AS n ON n.oid = p.pronamespace"
                             " WHERE t.oid < 16384");
  ASSERT_TRUE(types.ok()) << types.status().ToString();
  int known = 0;
  for (int row = 0; row < PQntuples(types->get()); ++row) {
    const auto oid = static_cast<Oid>(PostgresInteger(types->get(), row, 0));
    const std::optional<BuiltInType> type = FindBuiltInType(oid, -1);
    if (type) {
      ++known;
      EXPECT_EQ(type->name, PostgresText(types->get(), row, 1));
      EXPECT_EQ(type->send, PostgresText(types->get(), row, 2));
      EXPECT_FALSE(FindBuiltInType(oid, 4).has_value()) << "a modifier has a name of its own";
    }
  }
  EXPECT_GT(known, 15);
}

// One role's operator in a schema that all use is not called as another role, which would have its
// rights used by a stranger's function.
TEST(PostgresTypeNames, NoOperatorOfAUserIsCalled) {
  const testing::PostgresTestDatabase database;
  if (database.url().empty()) {
    GTEST_SKIP() << "no PostgreSQL server";
  }
  const auto source = OpenDataSource(database.url()).value();
  for (const char* sql :
       {"CREATE TABLE called (by text)", "CREATE TABLE t (v varchar(10), n numeric(10, 2))",
        "CREATE FUNCTION harm(oid, integer) RETURNS boolean LANGUAGE sql AS "
        "'INSERT INTO called VALUES (current_user); SELECT true'",
        "CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = integer, FUNCTION = harm)"}) {
    const auto made = source->Execute(sql, nullptr, {});
    ASSERT_TRUE(made.ok()) << made.status().ToString();
  }
  struct Names final : RowReceiver {
    Status Header(const Schema& schema) override {
      for (const ColumnInfo& column : schema.columns) {
        types.push_back(column.database_type);
      }
      return OkStatus();
    }
    Status Rows(const RowBatch&) override { return OkStatus(); }
    std::vector<std::string> types;
  } names;
  const auto read = source->Execute("SELECT v, n FROM t", &names, {});
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(names.types, (std::vector<std::string>{"character varying(10)", "numeric(10,2)"}));
  const auto connection = PostgresConnection::Connect({database.url(), ""}).value();
  EXPECT_EQ(connection->Query("SELECT count(*) FROM called", {}).value()[0][0], Value(int64_t{0}));
}

}  // namespace
}  // namespace sluice::catalog
