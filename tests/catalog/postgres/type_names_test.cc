#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "catalog/postgres/postgres_connection_internal.h"
#include "catalog/postgres/postgres_types_internal.h"

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

}  // namespace
}  // namespace sluice::catalog
