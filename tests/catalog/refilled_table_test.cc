#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <thread>
#include <vector>

#include "tests/catalog/result_table_fixture.h"

// What happens to a table while a statement fills it again, and to objects that users have attached
// to it.
namespace sluice::catalog {
namespace {

using ::testing::HasSubstr;

TEST_P(ResultTableTest, IndexesTriggersAndViewsStay) {
  EXPECT_OK(Write(Named({"", "p"}), 3));
  Run("CREATE UNIQUE INDEX p_by_id ON p (id)");
  Run("CREATE VIEW seen AS SELECT max(id) AS m FROM p");
  Run("CREATE TABLE audit (id integer)");
  if (postgres()) {
    Run("CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN INSERT INTO audit VALUES (new.id); RETURN new; END'");
    Run("CREATE TRIGGER noted AFTER INSERT ON p FOR EACH ROW EXECUTE FUNCTION note()");
  } else {
    Run("CREATE TRIGGER noted AFTER INSERT ON p BEGIN INSERT INTO audit VALUES (new.id); END");
  }
  EXPECT_OK(Write(Named({"", "p"}), 5));
  EXPECT_EQ(Select("SELECT m FROM seen")[0][0], "5");
  EXPECT_EQ(Count("audit"), "5");
  EXPECT_EQ(Select(postgres() ? "SELECT count(*) FROM pg_indexes WHERE indexname = 'p_by_id'"
                              : "SELECT count(*) FROM sqlite_schema WHERE name = 'p_by_id'")[0][0],
            "1");
  // New rows that violate a constraint: the old rows stay.
  const auto writer = source().OpenWriter(Named({"", "p"}), TwoColumns());
  ASSERT_TRUE(writer.ok());
  EXPECT_OK((*writer)->Write(Rows(1, 2)));
  EXPECT_OK((*writer)->Write(Rows(2, 2)));
  EXPECT_EQ((*writer)->Commit({}).sqlstate(), "23505");
  EXPECT_EQ(Count("p"), "5");
}

TEST_P(ResultTableTest, ForeignKeysThatTakeRowsAlongAreTold) {
  EXPECT_OK(Write(Named({"", "p"}), 3));
  Run("CREATE UNIQUE INDEX p_by_id ON p (id)");
  Run("CREATE TABLE notes (id bigint REFERENCES p (id) ON DELETE CASCADE, note text)");
  Run("INSERT INTO notes VALUES (1, 'precious')");
  EXPECT_THAT(Refusal(Named({"", "p"})), AllOf(HasSubstr("55000"), HasSubstr("notes")));
  Run("DROP TABLE notes");
  Run("CREATE TABLE notes (id bigint REFERENCES p (id) DEFERRABLE, note text)");
  Run("INSERT INTO notes VALUES (3, 'precious')");
  EXPECT_OK(Write(Named({"", "p"}), 4));  // the row is there again
  EXPECT_FALSE(Write(Named({"", "p"}), 2).ok());
  EXPECT_EQ(Count("p"), "4");
  EXPECT_EQ(Count("notes"), "1");
}

TEST_P(ResultTableTest, ATriggerThatKeepsRowsIsTold) {
  EXPECT_OK(Write(Named({"", "p"}), 3));
  if (postgres()) {
    Run("CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN IF old.id = 2 THEN RETURN NULL; END IF; RETURN old; END'");
    Run("CREATE TRIGGER kept BEFORE DELETE ON p FOR EACH ROW EXECUTE FUNCTION keep()");
  } else {
    Run("CREATE TRIGGER kept BEFORE DELETE ON p WHEN old.id = 2 BEGIN SELECT RAISE(IGNORE); END");
  }
  const Status kept = Write(Named({"", "p"}), 5);
  EXPECT_EQ(kept.sqlstate(), "55000") << kept.ToString();
  EXPECT_EQ(Count("p"), "3");
}

TEST_P(ResultTableTest, ReadersSeeTheOldRowsOrTheNewNeverNone) {
  EXPECT_OK(Write(Named({"", "p"}), 100));
  std::atomic<bool> done = false;
  std::atomic<int> reads = 0;
  std::jthread reader([&] {
    const auto own = OpenDataSource(url());
    ASSERT_TRUE(own.ok());
    while (!done || reads == 0) {
      const auto dataset = (*own)->OpenDataset("SELECT count(*) AS n FROM p", {});
      ASSERT_TRUE(dataset.ok()) << dataset.status().ToString();
      const auto rows = ReadAll(**own, (*dataset)->spec());
      ASSERT_TRUE(rows.ok()) << rows.status().ToString();
      EXPECT_THAT((*rows)[0][0], ::testing::AnyOf("100", "200"));
      ++reads;
    }
  });
  for (int i = 0; i < 10; ++i) {
    EXPECT_OK(Write(Named({"", "p"}), i % 2 == 0 ? 200 : 100));
  }
  done = true;
}

// A transaction that has read the table before the refill sees the old rows to its end: rows are
// not truncated.
TEST_P(ResultTableTest, AnOlderSnapshotKeepsItsRows) {
  EXPECT_OK(Write(Named({"", "p"}), 3));
  const auto other = OpenDataSource(url());
  ASSERT_TRUE(other.ok());
  Run(postgres() ? "BEGIN ISOLATION LEVEL REPEATABLE READ" : "BEGIN");
  EXPECT_EQ(Count("(SELECT 1) AS s"), "1");
  if (!postgres()) {
    EXPECT_EQ(Count("p"), "3");  // SQLite takes no snapshot before the first read
  }
  const Status refilled = WriteTo(**other, Named({"", "p"}), 5);
  EXPECT_TRUE(refilled.ok()) << refilled.ToString();
  EXPECT_EQ(Count("p"), "3");
  Run("ROLLBACK");
  EXPECT_EQ(Count("p"), "5");
}

TEST_P(ResultTableTest, TwoAtOnceGiveOneOrTheOther) {
  for (int round = 0; round < 3; ++round) {
    std::vector<Status> outcomes(2);
    {
      std::vector<std::jthread> threads;
      for (int64_t i = 0; i < 2; ++i) {
        threads.emplace_back([&, i] {
          const auto own = OpenDataSource(url());
          outcomes[static_cast<size_t>(i)] = WriteTo(**own, Named({"", "p"}), 10 + i * 10);
        });
      }
    }
    EXPECT_OK(outcomes[0]);
    EXPECT_OK(outcomes[1]);
    EXPECT_THAT(Count("p"), ::testing::AnyOf("10", "20"));
  }
}

TEST_P(ResultTableTest, WhatHappensMeanwhileIsSeenAtTheEnd) {
  const auto writer = source().OpenWriter(Named({"", "p"}), TwoColumns());
  ASSERT_TRUE(writer.ok());
  EXPECT_OK((*writer)->Write(Rows(1, 3)));
  Run("CREATE TABLE p (id integer, precious text)");
  EXPECT_EQ((*writer)->Commit({}).sqlstate(), "42P07");
  Run("DROP TABLE p");
  EXPECT_OK(Write(Named({"", "p"}), 3));
  const auto refill = source().OpenWriter(Named({"", "p"}), TwoColumns());
  ASSERT_TRUE(refill.ok());
  EXPECT_OK((*refill)->Write(Rows(1, 4)));
  Run("DROP TABLE p");
  EXPECT_OK((*refill)->Commit({}));
  EXPECT_EQ(Count("p"), "4");
}

TEST_P(ResultTableTest, ACommitCanBeCancelled) {
  EXPECT_OK(Write(Named({"", "p"}), 3));
  if (postgres()) {
    Run("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM pg_sleep(600); RETURN new; END'");
    Run("CREATE TRIGGER slowly BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION slow()");
  } else {
    MakeNumbers(10'000);
    Run("CREATE TABLE other (n integer)");
    Run("CREATE TRIGGER slowly AFTER INSERT ON p BEGIN INSERT INTO other"
        " SELECT a.id FROM t a, t b, t c WHERE a.id + b.id + c.id = 0; END");
  }
  const auto writer = source().OpenWriter(Named({"", "p"}), TwoColumns());
  ASSERT_TRUE(writer.ok());
  EXPECT_OK((*writer)->Write(Rows(1, 5)));
  std::stop_source stop;
  std::jthread user([&stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  const Status cancelled = (*writer)->Commit(stop.get_token());
  EXPECT_EQ(cancelled.sqlstate(), "57014") << cancelled.ToString();
  EXPECT_EQ(Count("p"), "3");
}

}  // namespace
}  // namespace sluice::catalog
