#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/server/pgwire/door_fixture.h"
#include "tests/server/pgwire/libpq_session.h"

// The columns of a SELECT that a prediction passes through have the types and values of the plain
// SELECT through the same door, as text and in binary, which asyncpg and pgx always ask for.
namespace sluice {
namespace {

using server::pgwire::LibpqSession;
using ::testing::IsEmpty;

// A value of every built-in type that has any.
const std::vector<std::pair<std::string, std::string>>& Values() {
  static const std::vector<std::pair<std::string, std::string>> values = {
      {"bool", "t"},
      {"bytea", "\\x00ff41"},
      {"\"char\"", "c"},
      {"name", "größe"},
      {"int8", "-9007199254740993"},
      {"int2", "-7"},
      {"int2vector", "1 2 3"},
      {"int4", "70000"},
      {"regproc", "now"},
      {"text", "größer, \"quoted\""},
      {"oid", "4000000000"},
      {"tid", "(7,3)"},
      {"xid", "77"},
      {"cid", "5"},
      {"oidvector", "1 22"},
      {"json", "{\"a\": [1, null]}"},
      {"xml", "<a>größe</a>"},
      {"xid8", "99999999999"},
      {"point", "(1.5,-2)"},
      {"lseg", "[(1,2),(3,4)]"},
      {"path", "((1,2),(3,4),(5,6.25))"},
      {"box", "(3,4),(1,2)"},
      {"polygon", "((1,2),(3,4),(5,1))"},
      {"line", "{1,-2,0.5}"},
      {"circle", "<(1,2),3.5>"},
      {"float4", "0.1"},
      {"float8", "-1e300"},
      {"money", "1234.5"},
      {"macaddr", "08:00:2b:01:02:03"},
      {"macaddr8", "08:00:2b:01:02:03:04:05"},
      {"inet", "10.1.2.3/24"},
      {"cidr", "2001:db8::/32"},
      {"bpchar(5)", "ab"},
      {"varchar(9)", "größe"},
      {"date", "2024-02-29"},
      {"time(2)", "12:30:01.25"},
      {"timestamp", "2024-02-29 12:30:01.5"},
      {"timestamptz", "2024-02-29 12:30:01+02"},
      {"timetz", "12:30:00+03"},
      {"interval", "1 year 2 days 03:04:05.5"},
      {"bit(5)", "10110"},
      {"varbit(9)", "1011"},
      {"numeric(20,4)", "12345678901.25"},
      {"refcursor", "rows"},
      {"regprocedure", "abs(integer)"},
      {"regoper", "||/"},
      {"regoperator", "+(integer,integer)"},
      {"regclass", "points"},
      {"regcollation", "\"C\""},
      {"regtype", "integer"},
      {"regrole", "postgres"},
      {"regnamespace", "public"},
      {"regconfig", "english"},
      {"regdictionary", "simple"},
      {"uuid", "8f14e45f-ceea-167a-5a36-dedd4bea2543"},
      {"pg_lsn", "16/B374D848"},
      {"tsvector", "größe:2A fat:1"},
      {"tsquery", "fat & !größe"},
      {"jsonb", "{\"a\": [1, \"größe\"]}"},
      {"jsonpath", "$.a[*] ? (@ > 1)"},
      {"txid_snapshot", "10:20:10,14"},
      {"pg_snapshot", "10:20:10,14"},
      {"int4range", "[1,5)"},
      {"int8range", "empty"},
      {"numrange", "(,1.5]"},
      {"daterange", "[2024-01-01,2024-02-01)"},
      {"tsrange", "[2024-01-01 00:00,)"},
      {"tstzrange", "(2024-01-01 00:00+00,2024-01-02 00:00+00)"},
      {"int4multirange", "{[1,3),[5,7)}"},
      {"int8multirange", "{}"},
      {"nummultirange", "{[1.5,2]}"},
      {"datemultirange", "{[2024-01-01,2024-02-01)}"},
      {"tsmultirange", "{(,2024-01-01 00:00]}"},
      {"tstzmultirange", "{[2024-01-01 00:00+00,)}"},
      {"mood", "größer"},
      {"comp", "(7,\"größe, b\")"},
      {"short", "ab"},
      {"reals", "[0.5,1.5]"}};
  return values;
}

// Each value, an array of it, and NULL.
std::string Columns() {
  std::string columns = "x";
  int number = 0;
  for (const auto& [type, value] : Values()) {
    const std::string literal = fmt::format("'{}'::{}", value, type);
    columns += fmt::format(", {0} AS c{1}, ARRAY[{0}, NULL] AS a{1}, NULL::{2} AS n{1}", literal,
                           number++, type);
  }
  return columns + ", row(1, 'a'::text) AS record";
}

class PassedTypesTest : public DoorTest {
 protected:
  void SetUp() override {
    DoorTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    ASSERT_EQ(Direct("CREATE TYPE mood AS ENUM ('sad', 'größer');"
                     " CREATE TYPE comp AS (n int, t text);"
                     " CREATE DOMAIN short AS varchar(4);"
                     " CREATE TYPE reals AS RANGE (subtype = float8)")
                  .exit_code,
              0);
    Start();
    door_.emplace(Conninfo());
    ASSERT_EQ(door_->Script("SELECT x, y FROM points TO TRAIN LinearRegressor LABEL y INTO m"), "");
  }

  void ExpectThePlainSelects(const std::string& select, int format) {
    SCOPED_TRACE(select.substr(0, 80) + (format == 1 ? " in binary" : " as text"));
    const LibpqSession::Answer plain = door_->Ask(select, format);
    const LibpqSession::Answer ours = door_->Ask(select + " TO PREDICT USING m", format);
    ASSERT_EQ(plain.error, "") << door_->last_error();
    ASSERT_EQ(ours.error, "") << door_->last_error();
    ASSERT_EQ(ours.columns.size(), plain.columns.size() + 1);
    ASSERT_EQ(ours.rows.size(), 1U);
    for (size_t i = 0; i < plain.columns.size(); ++i) {
      const std::string& value = i == 0 ? "x" : Values()[(i - 1) / 3 % Values().size()].first;
      EXPECT_EQ(ours.columns[i].oid, plain.columns[i].oid) << i << " " << value;
      EXPECT_EQ(ours.columns[i].size, plain.columns[i].size) << i << " " << value;
      EXPECT_EQ(ours.columns[i].modifier, plain.columns[i].modifier) << i << " " << value;
      EXPECT_EQ(ours.rows[0][i], plain.rows[0][i]) << i << " " << value;
    }
  }

  std::optional<LibpqSession> door_;
};

TEST_F(PassedTypesTest, AreThoseOfThePlainSelect) {
  const std::string select = "SELECT " + Columns() + " FROM points LIMIT 1";
  for (const int format : {0, 1}) {
    ExpectThePlainSelects(select, format);
    // Inside a transaction the rows are read through the session.
    ASSERT_EQ(door_->Script("BEGIN"), "");
    ExpectThePlainSelects(select, format);
    ASSERT_EQ(door_->Script("ROLLBACK"), "");
  }
  ASSERT_EQ(door_->Script("SET bytea_output = escape; SET lc_monetary = 'C'"), "");
  ExpectThePlainSelects("SELECT x, '1.5'::money AS c, '10.0.0.1'::inet AS i FROM points LIMIT 1",
                        1);
}

TEST_F(PassedTypesTest, ACursorHasThemToo) {
  const std::string select =
      "SELECT x, 'größer'::mood AS m, ARRAY['sad'::mood] AS ms, '(1,2)'::point"
      " AS p, '10.0.0.1'::inet AS i, '[1,3)'::int4range AS r, row(1, 2) AS w"
      " FROM points LIMIT 1";
  ASSERT_EQ(door_->Script("BEGIN; DECLARE plain CURSOR FOR " + select), "");
  ASSERT_EQ(door_->Script("DECLARE ours CURSOR FOR " + select + " TO PREDICT USING m"), "");
  const LibpqSession::Answer plain = door_->Ask("FETCH 1 FROM plain", 0);
  const LibpqSession::Answer ours = door_->Ask("FETCH 1 FROM ours", 0);
  ASSERT_EQ(ours.rows.size(), 1U) << door_->last_error();
  for (size_t i = 0; i < plain.columns.size(); ++i) {
    const Oid kept = plain.columns[i].oid == 2249 ? 25 : plain.columns[i].oid;  // record: as text
    EXPECT_EQ(ours.columns[i].oid, kept) << i;
    EXPECT_EQ(ours.rows[0][i], plain.rows[0][i]) << i;
  }
}

TEST_F(PassedTypesTest, EveryBuiltInTypeIsAmongThem) {
  std::string names = "''";
  for (const auto& [type, value] : Values()) {
    names += fmt::format(", '{}'::regtype::text", type.substr(0, type.find('(')));
  }
  // Those without any text that could be read in.
  const LibpqSession::Answer others = door_->Ask(
      "SELECT typname FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype IN "
      "('b', 'r', 'm') AND typcategory <> 'A' AND oid::regtype::text NOT IN (" +
          names +
          ") AND typname NOT LIKE 'pg_brin%' AND typname NOT IN ('aclitem', 'gtsvector', "
          "'pg_dependencies', 'pg_mcv_list', 'pg_ndistinct', 'pg_node_tree')",
      0);
  EXPECT_THAT(others.rows, IsEmpty()) << others.rows[0][0].value_or("");
}

// As the database itself says of the plain SELECT.
TEST_F(PassedTypesTest, ATypeWithoutABinaryFormIsRefused) {
  const std::string select = "SELECT x, '=r/postgres'::aclitem AS rights FROM points LIMIT 1";
  EXPECT_EQ(door_->Ask(select, 1).error, "42883");
  EXPECT_EQ(door_->Ask(select + " TO PREDICT USING m", 1).error, "0A000");
  ExpectThePlainSelects(select, 0);
}

}  // namespace
}  // namespace sluice
