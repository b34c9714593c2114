#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <string_view>

#include "catalog/postgres/postgres_columns_internal.h"
#include "catalog/postgres/postgres_cut_internal.h"
#include "catalog/postgres/postgres_database_internal.h"
#include "tests/catalog/both_databases.h"

// The two ways in which rows arrive from PostgreSQL: they give the same, and fail alike.
namespace sluice::catalog {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kEveryType =
    "SELECT true AS a, 1::smallint AS b, -2 AS c, 9223372036854775807 AS d, 0.1::real AS e,"
    " 1e300::float8 AS f, 12.50::numeric(8, 2) AS g, 'text' AS h, 'c'::char(3) AS i,"
    " DATE '2024-02-29' AS j, TIMESTAMP '1999-12-31 23:59:59.5' AS k,"
    " TIMESTAMPTZ '2024-01-01 00:00:00+02' AS l, '\\x00ff'::bytea AS m, '{1,2}'::int[] AS n,"
    " '{\"a\": 1}'::jsonb AS o, 'NaN'::float8 AS p, '-Infinity'::float8 AS q, 'NaN'::numeric AS r,"
    " '0f0e0d0c-0b0a-0908-0706-050403020100'::uuid AS s, INTERVAL '1 day' AS t,"
    " DATE '0044-03-15 BC' AS u, 'infinity'::timestamp AS v, NULL::integer AS w, NULL AS x";

class PostgresStreamTest : public BothDatabases {
 protected:
  // Reads with one of the two ways in which rows arrive.
  Texts ReadWith(Result<std::unique_ptr<RowStream>> (*open)(PostgresConnection&, std::string_view,
                                                            StreamColumns),
                 std::string_view sql) {
    const auto connection = PostgresConnection::Connect({url(), ""});
    EXPECT_TRUE(connection.ok());
    const auto schema = DescribePostgresSelect(**connection, sql);
    EXPECT_TRUE(schema.ok()) << schema.status().ToString();
    const auto stream = open(**connection, SelectValues(sql, *schema), {*schema});
    EXPECT_TRUE(stream.ok());
    Texts texts;
    RowBatch batch;
    do {
      const Status status = (*stream)->Next(10, &batch);
      EXPECT_TRUE(status.ok()) << status.ToString();
      if (!status.ok()) {
        break;
      }
      Append(batch, *schema, &texts);
    } while (batch.rows > 0);
    return texts;
  }
};

TEST_P(PostgresStreamTest, EveryTypeBothWays) {
  const Texts wire = ReadWith(OpenPostgresStream, kEveryType);
  const Texts libpq = ReadWith(OpenLibpqStream, kEveryType);
  EXPECT_EQ(wire, libpq);
  ASSERT_EQ(wire.size(), 1U);
  EXPECT_THAT(wire[0],
              ElementsAre("t", "1", "-2", "9223372036854775807", "0.1", "1e+300", "12.5", "text",
                          "c", "2024-02-29 00:00:00", "1999-12-31 23:59:59.500000",
                          "2023-12-31 22:00:00", std::string("\x00\xff", 2), "{1,2}", "{\"a\": 1}",
                          "NaN", "-Infinity", "NaN", "0f0e0d0c-0b0a-0908-0706-050403020100",
                          "86400", ::testing::_, ::testing::_, "NULL", "NULL"));
}

// The session's output formats of dates and bytes do not affect decoding.
TEST_P(PostgresStreamTest, SettingsDoNotChangeWhatIsDecoded) {
  constexpr std::string_view kSelect =
      "SELECT TIMESTAMP '2024-02-29 01:02:03' AS a, DATE '2024-02-29' AS b,"
      " TIMESTAMPTZ '2024-02-29 00:00:00+00' AS c, '\\x61ff'::bytea AS d";
  for (const auto open : {OpenPostgresStream, OpenLibpqStream}) {
    const auto connection = PostgresConnection::Connect({url(), ""});
    ASSERT_TRUE(connection.ok());
    ASSERT_TRUE((*connection)
                    ->Run("SET DateStyle = 'German'; SET TimeZone = 'Asia/Kathmandu';"
                          " SET bytea_output = escape; BEGIN")
                    .ok());
    const auto schema = DescribePostgresSelect(**connection, kSelect);
    ASSERT_TRUE(schema.ok());
    const auto stream = open(**connection, kSelect, {*schema});
    ASSERT_TRUE(stream.ok());
    RowBatch batch;
    ASSERT_TRUE((*stream)->Next(1, &batch).ok());
    Texts texts;
    Append(batch, *schema, &texts);
    EXPECT_THAT(texts[0], ElementsAre("2024-02-29 01:02:03", "2024-02-29 00:00:00",
                                      "2024-02-29 00:00:00", "a\xFF"));
  }
}

// Only rows fill a batch: an empty one would be taken for the end.
TEST_P(PostgresStreamTest, ALongNoticeIsNotTheEnd) {
  Run("CREATE FUNCTION loud(i integer) RETURNS integer LANGUAGE plpgsql AS"
      " $$BEGIN RAISE NOTICE '%', repeat('x', 5000000); RETURN i; END$$");
  EXPECT_EQ(ReadWith(OpenPostgresStream, "SELECT loud(1)"), (Texts{{"1"}}));
  EXPECT_EQ(ReadWith(OpenLibpqStream, "SELECT loud(1)"), (Texts{{"1"}}));
}

// A model accepts neither.
TEST_P(PostgresStreamTest, TimesOutOfReachAreNullBothWays) {
  constexpr std::string_view kSelect =
      "SELECT 'infinity'::date AS a, DATE '5874897-12-31' AS b, '-infinity'::timestamptz AS c,"
      " TIMESTAMP '294276-12-31' AS d, DATE '4713-01-01 BC' AS e, TIMESTAMP '294246-12-31' AS f";
  for (const auto open : {OpenPostgresStream, OpenLibpqStream}) {
    const Texts rows = ReadWith(open, kSelect);
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_THAT(rows[0], ElementsAre("NULL", "NULL", "NULL", "NULL", "4713-01-01 00:00:00 BC",
                                     "294246-12-31 00:00:00"));
  }
}

TEST_P(PostgresStreamTest, LeavingEitherStreamFreesTheConnection) {
  for (const auto open : {OpenPostgresStream, OpenLibpqStream}) {
    const auto connection = PostgresConnection::Connect({url(), ""});
    ASSERT_TRUE(connection.ok());
    const Schema schema = {{{"i", DataType::kInt64, "bigint"}}};
    {
      const auto stream =
          open(**connection, "SELECT i FROM generate_series(1::bigint, 300000) i", {schema});
      ASSERT_TRUE(stream.ok());
      RowBatch batch;
      ASSERT_TRUE((*stream)->Next(100, &batch).ok());
      EXPECT_EQ(batch.columns[0].int64s[99], 100);
    }
    (*connection)->Rollback();
    const auto answer = (*connection)->Ask("SELECT 42");
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    EXPECT_EQ(PostgresText(answer->get(), 0, 0), "42");
  }
}

TEST_P(PostgresStreamTest, AReadAnswersToBothWaysOfFailing) {
  for (const auto open : {OpenPostgresStream, OpenLibpqStream}) {
    const auto connection = PostgresConnection::Connect({url(), ""});
    ASSERT_TRUE(connection.ok());
    const Schema schema = {{{"i", DataType::kInt64, "integer"}}};
    const auto stream =
        open(**connection, "SELECT 1 / (i - 500) FROM generate_series(1, 1000) i", {schema});
    ASSERT_TRUE(stream.ok());
    RowBatch batch;
    Status status = (*stream)->Next(100, &batch);
    while (status.ok() && batch.rows > 0) {
      status = (*stream)->Next(100, &batch);
    }
    EXPECT_EQ(status.sqlstate(), "22012");
  }
}

INSTANTIATE_TEST_SUITE_P(Databases, PostgresStreamTest, ::testing::Values("postgresql"),
                         DatabaseName);

}  // namespace
}  // namespace sluice::catalog
