#include <gtest/gtest.h>

#include <string>

#include "catalog/sqlite/sqlite_dialect_internal.h"

namespace sluice::catalog {
namespace {

std::string Repeated(std::string_view text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) {
    all += text;
  }
  return all;
}

TEST(SqliteDialect, CastsInARowNest) {
  EXPECT_EQ(InSqliteDialect("SELECT x::int::text AS y", false),
            "SELECT CAST(CAST(x AS INTEGER) AS TEXT) AS y");
  EXPECT_EQ(InSqliteDialect("SELECT (a + b)::float8::int, f(1)::text", false),
            "SELECT CAST(CAST((a + b) AS REAL) AS INTEGER), CAST(f(1) AS TEXT)");
  EXPECT_EQ(InSqliteDialect("SELECT ((x::int))::text", false),
            "SELECT CAST(((CAST(x AS INTEGER))) AS TEXT)");
  EXPECT_EQ(InSqliteDialect("SELECT t.a :: date::bool::varchar(8) FROM t", false),
            "SELECT CAST(t.a AS TEXT)  FROM t");
  EXPECT_EQ(InSqliteDialect("SELECT 1", false), std::nullopt);
}

TEST(SqliteDialect, TextsOfPostgresBecomePlainOnes) {
  EXPECT_EQ(InSqliteDialect("SELECT E'it\\'s', $a$it's$a$, $$$$", false),
            "SELECT 'it''s', 'it''s', ''");
  EXPECT_EQ(InSqliteDialect("SELECT $1, '$a$', \"$b$\"", false), std::nullopt);
}

TEST(SqliteDialect, ArraysAndBracketsNest) {
  EXPECT_EQ(InSqliteDialect("SELECT a[1][2]::int", true),
            "SELECT CAST(pg_array_get(pg_array_get(a, 1), 2) AS INTEGER)");
  EXPECT_EQ(InSqliteDialect("SELECT ARRAY[ARRAY[1], ARRAY[2]]", true),
            "SELECT pg_make_array(pg_make_array(1), pg_make_array(2))");
  EXPECT_EQ(InSqliteDialect("SELECT x = ANY (ARRAY[1, 2])", true),
            "SELECT pg_any_equals(x  , pg_make_array(1, 2))");
  EXPECT_EQ(InSqliteDialect("SELECT ARRAY[1", true), std::nullopt);
}

// In linear time: each of these took minutes once.
TEST(SqliteDialect, LongChainsAreRewritten) {
  constexpr size_t kMany = 100'000;
  EXPECT_EQ(InSqliteDialect("SELECT 1" + Repeated("::int", kMany), false),
            "SELECT " + Repeated("CAST(", kMany) + "1" + Repeated(" AS INTEGER)", kMany));
  EXPECT_EQ(InSqliteDialect("SELECT a" + Repeated("[1]", kMany), true),
            "SELECT " + Repeated("pg_array_get(", kMany) + "a" + Repeated(", 1)", kMany));
  EXPECT_EQ(
      InSqliteDialect("SELECT " + Repeated("ARRAY[", kMany) + "1" + Repeated("]", kMany), true),
      "SELECT " + Repeated("pg_make_array(", kMany) + "1" + Repeated(")", kMany));
  EXPECT_EQ(
      InSqliteDialect("SELECT " + Repeated("(", kMany) + "1" + Repeated(")::int", kMany), false),
      "SELECT " + Repeated("CAST((", kMany) + "1" + Repeated(") AS INTEGER)", kMany));
}

}  // namespace
}  // namespace sluice::catalog
