#include <fmt/core.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "catalog/postgres/postgres_database_internal.h"
#include "tests/catalog/copy_rows.h"

// Every value in PostgreSQL is shown as PostgreSQL shows it, and copied unchanged.
namespace sluice::catalog {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct TypeValues {
  std::string type;
  std::vector<std::string> values;
};

// Every base type of the catalogue, with its extremes.
const std::vector<TypeValues>& BaseTypes() {
  static const std::vector<TypeValues> types = {
      {"boolean", {"t", "f"}},
      {"bytea", {"\\x", "\\x00ff5c780a", "abc\\\\def"}},
      {"\"char\"", {"a", "", "\\"}},
      {"name", {"a name", "ünïcode"}},
      {"bigint", {"9223372036854775807", "-9223372036854775808", "0"}},
      {"smallint", {"32767", "-32768"}},
      {"int2vector", {"1 2 3", ""}},
      {"integer", {"2147483647", "-2147483648"}},
      {"regproc", {"boolin", "pg_catalog.sum(integer)::pg_catalog.regprocedure", "0"}},
      {"text", {"", "a\tb\\c\nd\r\"e'", "\\N", "ünïcode \xF0\x9F\x98\x80", " spaces "}},
      {"oid", {"4294967295", "0"}},
      {"tid", {"(4294967295,65535)", "(0,0)"}},
      {"xid", {"4294967295"}},
      {"cid", {"4294967295"}},
      {"oidvector", {"1 4294967295", ""}},
      {"xml", {"<a b=\"c\">d</a>", "just content", "<!DOCTYPE a><a/>"}},
      {"json", {"{\"a\" :  1, \"a\": [1e400]}", "null", "\"\\u00e4\""}},
      {"point", {"(1.1,-0)", "(Infinity,NaN)", "(1e-300,0.1)"}},
      {"lseg", {"[(0,0.1),(1,1)]"}},
      {"path", {"[(0,0),(1,1.1)]", "((0,0),(1,1))"}},
      {"box", {"(1,1),(0,0.3)"}},
      {"polygon", {"((0,0),(1,1),(0.1,0.2))"}},
      {"circle", {"<(0.1,1),2>"}},
      {"line", {"{1,-1,0.1}"}},
      {"cidr", {"10.1.0.0/16", "::/0"}},
      {"real", {"0.1", "3.4028235e38", "1e-45", "-0", "NaN", "-Infinity", "1000000"}},
      {"double precision",
       {"0.1", "1.7976931348623157e308", "5e-324", "-0", "NaN", "Infinity", "0.30000000000000004",
        "1e15", "9007199254740993"}},
      {"money", {"92233720368547758.07", "-0.01"}},
      {"macaddr", {"08:00:2b:01:02:03"}},
      {"inet", {"10.1.2.3/16", "::1"}},
      {"macaddr8", {"08:00:2b:01:02:03:04:05"}},
      {"aclitem", {"=r/postgres", "postgres=arwdDxt/postgres"}},
      {"character(5)", {"ab", "", "abcde"}},
      {"character varying(8)", {"ab ", ""}},
      {"date",
       {"2024-02-29", "5874897-12-31", "4713-01-01 BC", "infinity", "-infinity", "0001-01-01"}},
      {"time(2) without time zone", {"24:00:00", "00:00:00.01"}},
      {"timestamp(3) without time zone",
       {"294276-12-31 23:59:59.999", "4713-11-24 00:00:00 BC", "infinity", "-infinity",
        "2024-01-02 03:04:05.678"}},
      {"timestamp with time zone",
       {"294276-12-31 23:59:59.999999+00", "4713-11-24 00:00:00+00 BC", "infinity",
        "1850-01-01 00:00:00+00", "2024-07-01 12:00:00.000001+00"}},
      {"interval day to second(3)", {"-1 day +02:03:04.567", "0", "178000000 days"}},
      {"interval",
       {"1 mon -1 day 00:00:00.000001", "-178000000 years", "178000000 years",
        "-1 year +2 mons -3 days +04:05:06"}},
      {"time with time zone", {"24:00:00-15:59:59", "00:00:00+15:59"}},
      {"bit(5)", {"10101", "00000"}},
      {"bit varying(7)", {"1", "", "1010101"}},
      {"numeric",
       {"12345678901234567891.12", "1e1000", "-1e-1000", "NaN", "Infinity", "-Infinity", "1.500",
        "9007199254740993"}},
      {"numeric(20,2)", {"123456789012345678.91", "0"}},
      {"numeric(4,-2)", {"123400"}},
      {"refcursor", {"a cursor"}},
      {"regprocedure", {"sum(integer)", "0"}},
      {"regoper", {"pg_catalog.||/", "0"}},
      {"regoperator", {"+(integer,integer)", "0"}},
      {"regclass", {"pg_class", "\"Odd Schema\".\"odd type\"", "0"}},
      {"regcollation", {"\"C\""}},
      {"regtype", {"integer", "\"Odd Schema\".\"mood, or so\""}},
      {"regrole", {"postgres"}},
      {"regnamespace", {"pg_catalog", "\"Odd Schema\""}},
      {"uuid", {"0f0e0d0c-0b0a-0908-0706-050403020100"}},
      {"pg_lsn", {"FFFFFFFF/FFFFFFFF", "0/0"}},
      {"tsvector", {"'a':1A,2 'b c':3", ""}},
      {"tsquery", {"'a' & !'b c' | 'd':*A"}},
      {"regconfig", {"english"}},
      {"regdictionary", {"simple"}},
      {"jsonb", {"{\"a\": [1, 12345678901234567891.12], \"b\": null}", "\"\""}},
      {"jsonpath", {"$.\"a\"[*]?(@ > 1)"}},
      {"txid_snapshot", {"10:20:10,14"}},
      {"pg_snapshot", {"10:20:10,14"}},
      {"xid8", {"18446744073709551615"}},
      {"int4range", {"[1,5)", "empty", "(,)"}},
      {"numrange", {"(1.10,2.000]"}},
      {"tsrange", {"[\"2024-01-01 00:00:00\",infinity)"}},
      {"tstzrange", {"(-infinity,\"2024-01-01 00:00:00+00\"]"}},
      {"daterange", {"[2024-01-01,5874897-12-31)"}},
      {"int8range", {"[-9223372036854775808,9223372036854775807)"}},
      {"int4multirange", {"{[1,3),[7,9)}", "{}"}},
      {"nummultirange", {"{[1.10,3),[7,)}"}},
      {"tsmultirange", {"{[\"2024-01-01 00:00:00\",\"2024-01-02 00:00:00\")}"}},
      {"tstzmultirange", {"{[\"2024-01-01 00:00:00+00\",infinity)}"}},
      {"datemultirange", {"{[2024-01-01,2024-02-01)}"}},
      {"int8multirange", {"{[1,3)}"}},
      {"\"Odd Schema\".\"mood, or so\"", {"sad", "it's \"fine\", really"}},
      {"\"Odd Schema\".amount", {"12345678901234567891.12", "0.00"}},
      {"\"Odd Schema\".\"odd type\"",
       {"(1.10,\"a,\"\"b\\\\\",sad,\"{1,NULL}\")", "(,,,)",
        "(NaN,\"\",\"it's \"\"fine\"\", really\",{})"}},
      {"\"Odd Schema\".spread", {"[0.10,infinity)", "empty"}},
      {"\"Odd Schema\".names", {"{a,\"b,c\",NULL}"}},
  };
  return types;
}

constexpr std::string_view kMakeTypes =
    "CREATE SCHEMA \"Odd Schema\";"
    " CREATE TYPE \"Odd Schema\".\"mood, or so\" AS ENUM ('sad', 'it''s \"fine\", really');"
    " CREATE DOMAIN \"Odd Schema\".amount AS numeric(22,2) CHECK (VALUE >= 0);"
    " CREATE TYPE \"Odd Schema\".\"odd type\" AS (a numeric, \"b c\" text,"
    " m \"Odd Schema\".\"mood, or so\", l int[]);"
    " CREATE TYPE \"Odd Schema\".spread AS RANGE (subtype = float8);"
    " CREATE DOMAIN \"Odd Schema\".names AS varchar(5)[]";

class PostgresExactTest : public CopyTest {
 protected:
  std::unique_ptr<PostgresConnection> Connect() {
    auto connection = PostgresConnection::Connect({url(), ""}, {}, ConnectionUse::kUserStatements);
    EXPECT_TRUE(connection.ok());
    return std::move(*connection);
  }
  std::string ValueOf(const TypeValues& type, size_t row) {
    const std::string& value = type.values[row % type.values.size()];
    if (value == "pg_catalog.sum(integer)::pg_catalog.regprocedure") {
      return "'sum(integer)'::regprocedure::oid::regproc";  // overloaded: its name is ambiguous
    }
    return QuoteText(value, Dialect::kPostgres) + "::" + type.type;
  }
  // A table e(id, c0, a0, c1, a1 ...) with a column of each type and one of its arrays.
  void MakeEveryType() {
    auto connection = Connect();
    ASSERT_TRUE(connection->Run(std::string(kMakeTypes)).ok());
    std::string columns = "id integer";
    size_t rows = 0;
    for (size_t i = 0; i < BaseTypes().size(); ++i) {
      columns += fmt::format(", c{0} {1}, a{0} {1}[]", i, BaseTypes()[i].type);
      rows = std::max(rows, BaseTypes()[i].values.size());
    }
    Status made = connection->Run("CREATE TABLE e (" + columns + ")");
    ASSERT_TRUE(made.ok()) << made.ToString();
    for (size_t row = 0; row < rows; ++row) {
      std::string values = fmt::format("{}", row);
      for (const TypeValues& type : BaseTypes()) {
        const std::string value = ValueOf(type, row);
        values += fmt::format(", {0}, ARRAY[{0}, NULL, {1}]::{2}[]", value, ValueOf(type, row + 1),
                              type.type);
      }
      made = connection->Run("INSERT INTO e VALUES (" + values + ")");
      ASSERT_TRUE(made.ok()) << made.ToString();
    }
    made = connection->Run("INSERT INTO e (id) VALUES (-1)");  // all NULL
    ASSERT_TRUE(made.ok()) << made.ToString();
  }
  // The differences between table e and `copy`: column types, and cells.
  Texts Differences(const std::string& copy) {
    Texts differences = Select(
        "SELECT a.attname, format_type(a.atttypid, a.atttypmod), format_type(b.atttypid, "
        "b.atttypmod)"
        " FROM pg_attribute a FULL JOIN pg_attribute b ON a.attname = b.attname"
        " AND b.attrelid = to_regclass('" +
        copy +
        "') WHERE a.attrelid = to_regclass('e')"
        " AND a.attnum > 0 AND (a.atttypid, a.atttypmod) IS DISTINCT FROM (b.atttypid, "
        "b.atttypmod)");
    const Texts cells = Select(
        "SELECT e.id, t.key, t.value, c.value FROM e"
        " CROSS JOIN LATERAL json_each_text(row_to_json(e)) t"
        " LEFT JOIN (SELECT id, j.key, j.value FROM " +
        copy +
        " x CROSS JOIN LATERAL json_each_text(row_to_json(x)) j) c"
        " ON c.id = e.id AND c.key = t.key"
        " WHERE t.value IS DISTINCT FROM c.value");
    differences.insert(differences.end(), cells.begin(), cells.end());
    return differences;
  }
};

TEST_P(PostgresExactTest, TheTestKnowsEveryType) {
  // Types that accept no input: only the server writes them.
  const std::set<std::string> closed = {"pg_node_tree",
                                        "pg_ndistinct",
                                        "pg_dependencies",
                                        "pg_mcv_list",
                                        "gtsvector",
                                        "pg_brin_bloom_summary",
                                        "pg_brin_minmax_multi_summary"};
  auto connection = Connect();
  ASSERT_TRUE(connection->Run(std::string(kMakeTypes)).ok());
  std::set<std::string> known;
  for (const TypeValues& type : BaseTypes()) {
    const auto plain = connection->Ask("SELECT to_regtype($1)::oid", {type.type});
    ASSERT_TRUE(plain.ok()) << plain.status().ToString();
    known.insert(std::string(PostgresText(plain->get(), 0, 0)));
  }
  for (const auto& row :
       Select("SELECT oid, typname FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace"
              " AND typtype IN ('b', 'd', 'e', 'r', 'm') AND typcategory <> 'A'")) {
    EXPECT_TRUE(known.contains(row[0]) || closed.contains(row[1])) << row[1];
  }
}

TEST_P(PostgresExactTest, EveryTypeIsCopied) {
  MakeEveryType();
  for (const std::string select :
       {"SELECT * FROM e", "SELECT * FROM (SELECT e.* FROM e JOIN e AS f USING (id)) s"}) {
    const std::string copy = "copy";
    CopyInto(select, copy);
    EXPECT_THAT(Differences(copy), IsEmpty()) << select;
    EXPECT_EQ(Select("SELECT count(*) FROM copy"), Select("SELECT count(*) FROM e"));
    Run("DROP TABLE copy");
  }
}

// Settings of the session or the role do not affect a copy.
TEST_P(PostgresExactTest, SettingsDoNotChangeACopy) {
  MakeEveryType();
  const std::string database = url().substr(url().rfind('/') + 1);
  Run("ALTER DATABASE " + database + " SET extra_float_digits = -5");
  Run("ALTER DATABASE " + database + " SET xmloption = document");
  Run("ALTER DATABASE " + database + " SET array_nulls = off");
  auto reopened = OpenDataSource(url());
  ASSERT_TRUE(reopened.ok());
  CopyInto("SELECT * FROM e", "copy", reopened->get());
  EXPECT_THAT(Differences("copy"), IsEmpty());
}

TEST_P(PostgresExactTest, EveryTypeIsShownAsTheServerShowsIt) {
  MakeEveryType();
  for (const std::string settings : {"SELECT 1",
                                     "SET DateStyle = 'German'; SET TimeZone = 'Asia/Kathmandu';"
                                     " SET IntervalStyle = iso_8601; SET bytea_output = escape;"
                                     " SET extra_float_digits = -5"}) {
    auto libpq = Connect();
    ASSERT_TRUE(libpq->Run(settings).ok());
    for (size_t begin = 0; begin < settings.size();) {
      const size_t end = std::min(settings.find(';', begin), settings.size());
      Run(settings.substr(begin, end - begin));
      begin = end + 1;
    }
    const auto expected = libpq->Ask("SELECT * FROM e ORDER BY id");
    ASSERT_TRUE(expected.ok());
    const Shown shown = Show("SELECT * FROM e ORDER BY id");
    ASSERT_EQ(shown.cells.size(), static_cast<size_t>(PQntuples(expected->get())));
    for (size_t row = 0; row < shown.cells.size(); ++row) {
      for (size_t i = 0; i < shown.cells[row].size(); ++i) {
        const int r = static_cast<int>(row);
        const int c = static_cast<int>(i);
        const std::string text = PQgetisnull(expected->get(), r, c) != 0
                                     ? "NULL"
                                     : std::string(PostgresText(expected->get(), r, c));
        EXPECT_EQ(shown.cells[row][i], text) << shown.schema.columns[i].database_type;
      }
    }
  }
}

TEST_P(PostgresExactTest, AHeaderNamesTheServersTypes) {
  MakeEveryType();
  const Shown shown = Show("SELECT * FROM e");
  // For a domain, a result only reports the underlying type.
  const Texts types = Select(
      "SELECT CASE t.typtype WHEN 'd' THEN format_type(t.typbasetype, t.typtypmod)"
      " ELSE format_type(atttypid, atttypmod) END FROM pg_attribute a JOIN pg_type t"
      " ON t.oid = atttypid WHERE attrelid = 'e'::regclass AND attnum > 0 ORDER BY attnum");
  for (size_t i = 0; i < types.size(); ++i) {
    EXPECT_EQ(shown.schema.columns[i].database_type, types[i][0]);
  }
  EXPECT_EQ(shown.schema.columns[0].type, DataType::kInt64);
  const auto numeric = Show("SELECT 1.50::numeric(4,2) AS n, 1::float8 AS f, '\\x00'::bytea AS b");
  EXPECT_EQ(numeric.schema.columns[0].type, DataType::kText);
  EXPECT_EQ(numeric.schema.columns[0].database_type, "numeric(4,2)");
  EXPECT_EQ(numeric.schema.columns[1].type, DataType::kDouble);
  EXPECT_EQ(numeric.schema.columns[2].type, DataType::kBytes);
}

// A PREDICT without a table shows the same.
TEST_P(PostgresExactTest, CopiesForPeopleAreShownTheSame) {
  MakeEveryType();
  const Shown shown = Show("SELECT * FROM e");
  EXPECT_EQ(ReadCopied("SELECT * FROM e", CopiedColumns::Purpose::kShow).cells, shown.cells);
}

// A column that is both a feature and copied is read as if it were one of the two.
TEST_P(PostgresExactTest, DecodingAndCopyingAColumnDoNotAffectEachOther) {
  MakeEveryType();
  const size_t count = Show("SELECT * FROM e").schema.columns.size();
  std::vector<size_t> all(count);
  std::iota(all.begin(), all.end(), size_t{0});
  for (const char* const digits : {"1", "-10"}) {
    Run(fmt::format("SET extra_float_digits = {}", digits));
    ASSERT_TRUE(source().BeginStatement("SELECT * FROM e", {}).ok());
    for (const auto purpose : {CopiedColumns::Purpose::kShow, CopiedColumns::Purpose::kWrite}) {
      // The first column is only copied: what is copied pins the settings of what is decoded.
      const Shown decoded =
          ReadColumns("SELECT * FROM e", {all.begin() + 1, all.end()}, {0}, purpose);
      const Shown copied = ReadColumns("SELECT * FROM e", {}, all, purpose);
      const Shown both = ReadColumns("SELECT * FROM e", all, all, purpose);
      ASSERT_EQ(both.cells.size(), decoded.cells.size());
      for (size_t row = 0; row < both.cells.size(); ++row) {
        std::vector<std::string> expected = {both.cells[row].front()};
        expected.insert(expected.end(), decoded.cells[row].begin(), decoded.cells[row].end() - 1);
        expected.insert(expected.end(), copied.cells[row].begin(), copied.cells[row].end());
        EXPECT_EQ(both.cells[row], expected) << "extra_float_digits = " << digits;
      }
    }
    source().EndStatement();
  }
}

// In texts of every length up to 40, in every place.
TEST_P(PostgresExactTest, WhatNeedsAnEscapeIsCopiedWhereverItIs) {
  Run("CREATE TABLE t AS SELECT overlay(repeat(base, n) placing special from place for 1) AS text"
      " FROM generate_series(1, 40) n, generate_series(1, 40) place,"
      " (VALUES (E'\\\\'), (E'\\n'), (E'\\r'), (E'\\t'), (E'\\x01'), (E'\\x1f'), ('['), (''))"
      " AS s(special), (VALUES ('a'), (E'\\t'), (']'), ('\u00e4')) AS b(base) WHERE place <= n");
  CopyInto("SELECT * FROM t", "copy");
  EXPECT_EQ(Select("SELECT count(*) FROM (SELECT text FROM t EXCEPT ALL SELECT text FROM copy) x"),
            (Texts{{"0"}}));
  EXPECT_EQ(Select("SELECT count(*) FROM copy"), (Texts{{"26240"}}));
}

TEST_P(PostgresExactTest, AValueThatNothingCanBePutIntoIsRefused) {
  const Status status =
      TryCopy("SELECT conbin FROM pg_constraint WHERE conbin IS NOT NULL LIMIT 1", "copy");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.sqlstate(), "0A000") << status.ToString();
  EXPECT_THAT(status.message(), HasSubstr("pg_node_tree"));
}

INSTANTIATE_TEST_SUITE_P(Databases, PostgresExactTest, ::testing::Values("postgresql"),
                         DatabaseName);

}  // namespace
}  // namespace sluice::catalog
