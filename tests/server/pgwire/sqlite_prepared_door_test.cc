#include <gmock/gmock.h>

#include "tests/server/pgwire/sqlite_door_fixture.h"

// PREPARE of statements of Sluice over SQLite, by psql.
namespace sluice {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(SqliteDoorTest, PreparesStatementsWithAndWithoutParameters) {
  Start();
  const std::string output =
      Psql(
          "SELECT x, y FROM points TO TRAIN LinearRegressor LABEL y INTO m;\n"
          "PREPARE p AS SELECT x FROM points WHERE x < 3 ORDER BY x TO PREDICT USING m;\n"
          "EXECUTE p;\n"
          "PREPARE s AS SHOW MODELS;\n"
          "EXECUTE s;\n"
          "PREPARE q (int) AS SELECT x FROM points WHERE x = $1 TO PREDICT USING m;\n"
          "EXECUTE q(5 + 2);\n"
          "EXECUTE q;\n"
          "DEALLOCATE p;\n"
          "EXECUTE p;\n",
          "-At")
          .output;
  EXPECT_THAT(output, ContainsRegex("PREPARE\n1\\|[^\n]*\n2\\|[^\n]*\nPREPARE\nm\\|"));
  EXPECT_THAT(output, ContainsRegex("PREPARE\n7\\|"));
  EXPECT_THAT(output, HasSubstr("42601: wrong number of parameters for prepared statement \"q\""));
  EXPECT_THAT(output, HasSubstr("26000: prepared statement \"p\" does not exist"));
  EXPECT_THAT(output, Not(HasSubstr("incomplete input")));
}

}  // namespace
}  // namespace sluice
